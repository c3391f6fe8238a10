#!/usr/bin/env python3
"""How much load `atunner serve` takes on this machine, over the loopback address.

    bench/serve.py --atunner build/atunner [--seconds 5] [--streams 1000] [--submissions 200]

1. Requests a second of the status of one job, by connections that stay open and send several
   requests before they read the answers (the load generator shares the machine's cores).
2. Event streams that are open at once: memory of the server before and with them, and whether an
   event reaches all.
3. Submissions at once, each over its own connection: time until all are accepted, and that the
   queue holds each once.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time

JOB = {"kind": "operator", "operator": "relu", "shapes": [[64, 64]], "target_gpu": "A100",
       "budget": {"trials": 1}}
BATCH = 32  # requests that a connection sends before it reads


def start(options, home):
    environment = dict(os.environ, XDG_DATA_HOME=f"{home}/data")
    log = open(f"{home}/server.log", "w")
    server = subprocess.Popen(
        [options.atunner, "serve", "--json", "--listen", "127.0.0.1:0", "--workers", "0",
         "--store", f"{home}/runs.db"], stdout=subprocess.PIPE, stderr=log, env=environment,
        text=True)
    line = server.stdout.readline()
    assert line, pathlib.Path(f"{home}/server.log").read_text()
    return server, int(json.loads(line)["url"].rsplit(":", 1)[1])


def exchange(port, method, target, body=b""):
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = b""
        while part := link.recv(65536):
            answer += part
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), rest


def submit(port):
    status, answer = exchange(port, "POST", "/api/v1/jobs", json.dumps(JOB).encode())
    assert status == 202, answer
    return json.loads(answer)["id"]


def ask_for_status(port, job, seconds, counted):
    """Asks again and again; puts the number of answers into the queue `counted`."""
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = f"GET /api/v1/jobs/{job} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * BATCH
    marker, count = b"HTTP/1.1 200 OK\r\n", 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        link.sendall(request)
        answers = 0
        tail = b""
        while answers < BATCH:
            part = link.recv(1 << 18)
            assert part, "the server closed the connection"
            text = tail + part
            answers += text.count(marker)
            tail = text[-(len(marker) - 1):] if not text.endswith(marker) else b""
        # The rest of the last answer is short; it precedes the next batch's first one.
        count += answers
    counted.put(count)


def requests_a_second(port, job, seconds, clients):
    counted = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=ask_for_status,
                                         args=(port, job, seconds, counted))
                 for _ in range(clients)]
    begin = time.monotonic()
    for process in processes:
        process.start()
    total = sum(counted.get() for _ in processes)
    for process in processes:
        process.join()
    return total / (time.monotonic() - begin)


def memory(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_streams(port, pid, count):
    before = memory(pid, "VmRSS")
    links = []
    waiting = selectors.DefaultSelector()
    for _ in range(count):
        link = socket.create_connection(("127.0.0.1", port))
        link.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        link.setblocking(False)
        links.append(link)
        waiting.register(link, selectors.EVENT_READ, [b""])
    time.sleep(1)
    submit(port)
    reached, end, begin = 0, time.monotonic() + 60, time.monotonic()
    while reached < count and time.monotonic() < end:
        for key, _ in waiting.select(1):
            part = key.fileobj.recv(65536)
            key.data[0] += part
            if b"event: state" in key.data[0] or not part:
                reached += bool(part)
                waiting.unregister(key.fileobj)
    seconds = time.monotonic() - begin
    after = memory(pid, "VmRSS")
    for link in links:
        link.close()
    return {"streams": count, "reached": reached, "seconds": round(seconds, 2),
            "megabytes": round(after - before, 1), "server_megabytes": round(after, 1)}


def submit_at_once(port, count):
    before = json.loads(exchange(port, "GET", "/api/v1/jobs?limit=1")[1])["total"]
    made, lock = [], threading.Lock()

    def one():
        job = submit(port)
        with lock:
            made.append(job)

    threads = [threading.Thread(target=one) for _ in range(count)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin
    after = json.loads(exchange(port, "GET", "/api/v1/jobs?limit=1")[1])["total"]
    assert len(set(made)) == count and after - before == count, (len(set(made)), after - before)
    return {"submissions": count, "seconds": round(seconds, 2)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--submissions", type=int, default=200)
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as home:
        server, port = start(options, home)
        try:
            job = submit(port)
            before, begin = cpu_seconds(server.pid), time.monotonic()
            rate = requests_a_second(port, job, options.seconds, options.clients)
            used = cpu_seconds(server.pid) - before
            each = used / (rate * (time.monotonic() - begin))
            print(json.dumps({"status_requests_a_second": round(rate),
                              "server_cpu_microseconds_each": round(each * 1e6, 1),
                              "cores": os.cpu_count(),
                              "load": round(os.getloadavg()[0], 1)}), flush=True)
            print(json.dumps(open_streams(port, server.pid, options.streams)), flush=True)
            print(json.dumps(submit_at_once(port, options.submissions)), flush=True)
        finally:
            server.terminate()
            server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
