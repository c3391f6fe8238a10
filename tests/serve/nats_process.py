#!/usr/bin/env python3
"""Kills `atunner serve --queue`, its workers and nats-server at random moments while jobs wait.

    nats_process.py --atunner BINARY --contract openapi.yaml [--kills 9] [--jobs 12] [--seed 1]

The workers know the nats-server only; they learn the server's address from messages. At the end
every job has ended once, no trial is recorded twice, and no message is left. Exit status 77 where
NVRTC or nats-server is missing.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from kill_process import check_job, submit
from serve_process import PATIENCE_SECONDS, SKIP, Contract, Server


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Nats:
    """A nats-server that keeps its messages in a folder."""

    def __init__(self, program, home):
        self.program, self.home, self.port = program, home, free_port()
        self.url = f"nats://127.0.0.1:{self.port}/kills"
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "--addr", "127.0.0.1", "--port", str(self.port), "--jetstream",
             "--store_dir", f"{self.home}/nats", "--log", f"{self.home}/nats.log"])

    def kill(self):
        self.process.kill()
        self.process.wait()


class Worker:
    """A worker as on another machine, with a folder of its own."""

    def __init__(self, server, nats, number):
        self.command = [server.binary, "worker", "--queue", nats.url, "--name", f"worker-{number}",
                        "--folder", f"{server.home}/worker-{number}"]
        self.environment = dict(server.environment)
        self.environment.pop("ATUNNER_SERVER", None)
        self.log = open(f"{server.home}/worker-{number}.log", "a")
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.environment, stderr=self.log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0


def metric(server, name):
    """The sum of a metric's samples."""
    lines = server.get("/metrics").decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def wait_for(condition, what, seconds=60):
    for _ in range(int(seconds * 10)):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(what)

def wait_for_all(server, seconds=PATIENCE_SECONDS):
    """Until no job waits or runs; an error when none ends for so many seconds."""
    last, end = None, 0
    while True:
        jobs = server.get("/api/v1/status")["jobs"]
        left = jobs["queued"] + jobs["running"]
        if left == 0:
            return
        if left != last:
            last, end = left, time.monotonic() + seconds
        assert time.monotonic() < end, f"no job ends any more: {jobs}"
        time.sleep(0.2)


def run(options, chance, server, nats, workers):
    jobs = [submit(server, number) for number in range(options.jobs)]
    victims = {"server": [server], "nats-server": [nats], "worker": workers}
    killed = dict.fromkeys(victims, 0)
    for _ in range(options.kills):
        time.sleep(chance.uniform(0.05, 2.0))
        kind = chance.choice(list(victims))
        victim = chance.choice(victims[kind])
        victim.kill()
        victim.start()
        killed[kind] += 1
    wait_for_all(server)
    states = {}
    for job in jobs:
        ended = server.wait(job, lambda j: j["ended"] is not None)
        state = check_job(server, job, ended)
        states[state] = states.get(state, 0) + 1
    assert server.get("/api/v1/jobs?limit=1")["total"] == options.jobs
    wait_for(lambda: metric(server, "atunner_queue_lag") == 0, "messages are left")
    assert metric(server, "atunner_queue_connected") == 1
    return {"seed": options.seed, "killed": killed, "jobs": states}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", required=True)
    parser.add_argument("--contract", required=True)
    parser.add_argument("--kills", type=int, default=9)
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program = shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin")
    doctor = subprocess.run([options.atunner, "doctor", "--json"], text=True, capture_output=True)
    if program is None or '"part":"NVRTC","found":true' not in doctor.stdout:
        print("nats-server or NVRTC is not installed")
        return SKIP
    options.contract = Contract(options.contract)
    started = []
    with tempfile.TemporaryDirectory() as home:
        options.cache = f"{home}/cache"
        try:
            nats = Nats(program, home)
            started.append(nats)
            server = Server(options, home, "--lease-seconds", "2", "--workers", "0", "--queue",
                            nats.url)
            started.append(server)
            workers = [Worker(server, nats, number) for number in range(2)]
            started += workers
            result = run(options, random.Random(options.seed), server, nats, workers)
            for worker in workers:
                worker.stop()
            server.stop()
        except AssertionError:
            for log in pathlib.Path(home).glob("*.log"):
                print(log, log.read_text()[-3000:], sep="\n", file=sys.stderr)
            raise
        finally:
            for one in started:
                one.kill()
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
