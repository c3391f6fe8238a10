#!/usr/bin/env python3
"""Kills `atunner serve` and its worker at random moments while small jobs wait.

    kill_process.py --atunner BINARY --contract openapi.yaml [--kills 20] [--jobs 60] [--seed 1]

At the end every job that the server acknowledged has ended once, no trial is recorded twice, and a
submission that was repeated after a kill is the same job. Exit status 77 where NVRTC is missing.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error

from serve_process import SKIP, Contract, Server, relu


def workers_of(server):
    """The worker processes that the server has started."""
    children = []
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        children += (task / "children").read_text().split()
    return [int(child) for child in children]


def submit(server, number):
    """Submits until the server answers, as a client with an idempotency key may."""
    job = relu(1, 32 + 32 * (number % 4))
    for _ in range(100):
        try:
            return server.ask("POST", "/api/v1/jobs", job, {"Idempotency-Key": f"job-{number}"},
                              expect=202)["id"]
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


def kill_something(server, chance):
    """Kills the server, which takes its worker along, or a worker alone. Says which."""
    workers = workers_of(server)
    if workers and chance.random() < 0.5:
        os.kill(chance.choice(workers), signal.SIGKILL)
        return "worker"
    server.kill()
    server.start()
    return "server"


def check_job(server, job, ended):
    """None lost: it has succeeded, however often its worker was killed. None twice."""
    assert ended["state"] == "succeeded" and ended["failures"] == 0, ended
    events = server.get(f"/api/v1/jobs/{job}/events").decode()
    assert events.count("event: end\n") == 1, events
    for run in ended["runs"]:
        trials = server.get(f"/api/v1/runs/{run}/trials?limit=1000")
        numbers = [trial["number"] for trial in trials["trials"]]
        assert len(numbers) == len(set(numbers)) == trials["total"], (job, run, numbers)
    return ended["state"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", required=True)
    parser.add_argument("--contract", required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    doctor = subprocess.run([options.atunner, "doctor", "--json"], text=True, capture_output=True)
    if '"part":"NVRTC","found":true' not in doctor.stdout:
        print("NVRTC is not installed")
        return SKIP
    options.contract = Contract(options.contract)
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as home:
        options.cache = f"{home}/cache"
        server = Server(options, home, "--lease-seconds", "2")
        try:
            jobs = [submit(server, number) for number in range(options.jobs)]
            assert len(set(jobs)) == options.jobs
            killed = {"server": 0, "worker": 0}
            for _ in range(options.kills):
                time.sleep(chance.uniform(0.05, 2.0))
                killed[kill_something(server, chance)] += 1
                again = chance.randrange(options.jobs)
                assert submit(server, again) == jobs[again], "a repeated key made another job"
            states = {}
            for job in jobs:
                ended = server.wait(job, lambda j: j["ended"] is not None)
                state = check_job(server, job, ended)
                states[state] = states.get(state, 0) + 1
            assert server.get("/api/v1/jobs?limit=1")["total"] == options.jobs
            server.stop()
        except AssertionError:
            print(pathlib.Path(home, "server.log").read_text()[-4000:], file=sys.stderr)
            server.kill()
            raise
    print(json.dumps({"seed": options.seed, "killed": killed, "jobs": states}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
