#!/usr/bin/env python3
"""Judges large tasks (1 to 16 GB of tensors, sizes of KernelBench's first level) on a GPU.

    bench/scale.py [--atunner build/atunner] [--budget 3] [--limit 300] [--total 0] [--only PART,…]

For each task: the bytes of its tensors, the largest use of the GPU's memory beyond them while
atunner worked (nvidia-smi, ten times a second), seconds for the first candidate (with references
and error budgets of all inputs) and for each further one, and the verdicts. A task that is not
judged is a failure.
With --total, the time that is left is divided evenly among the tasks that are left; a task that
takes longer is ended, and the next one begins.
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time

HINGE = """graph hinge
input prediction: float32[32768, 32768]
input target: float32[32768]
wide = reshape(target, shape=[32768, 1])
loss = maximum(1 - prediction * wide, 0)
y = reduce_mean(loss, axes=[0, 1])
output y
"""
FROBENIUS = """graph frobenius
input x: float32[112, 64, 512, 512]
square = x * x
sum = reduce_sum(square, axes=[0, 1, 2, 3])
y = x / sqrt(sum)
output y
"""
Task = collections.namedtuple("Task", "name gigabytes arguments graph")


def conv(operator, image, weights, *more):
    shapes = [",".join(map(str, shape)) for shape in (image, weights)]
    flags = [flag for shape in shapes for flag in ("--input-shape", shape)]
    return ["--operator", operator, *flags, *more]


def attributes(**values):
    return [flag for name, value in values.items() for flag in ("--attr", f"{name}={value}")]


GB = 1e9
FAST = ["--accuracy", "fast"]
TASKS = [
    Task("Frobenius norm", 2 * 4 * 112 * 64 * 512 * 512 / GB, [], FROBENIUS),
    Task("smooth L1", 2 * 4 * 32768**2 / GB,
         ["--operator", "smooth_l1_loss", "--input-shape", "32768,32768"], ""),
    Task("hinge by row", 4 * 32768**2 / GB, [], HINGE),
    Task("attention, heads of 1024", 4 * 4 * 32 * 32 * 512 * 1024 / GB,
         ["--operator", "attention_gqa", "--input-shape", "32,32,512,1024"], ""),
    Task("average pooling 3-D", 4 * 16 * 32 * 128 * 128 * 256 * 1.125 / GB,
         ["--operator", "avg_pool", "--input-shape", "16,32,128,128,256",
          *attributes(size=3, stride=2, padding=1)], ""),
    Task("transposed convolution 3-D", 4 * 16 * (32 * 64**3 + 64 * 66 * 68 * 68) / GB,
         conv("conv_transpose", (16, 32, 64, 64, 64), (32, 64, 3, 5, 5), *FAST), ""),
    Task("depthwise convolution", 2 * 4 * 64 * 128 * 256 * 512 / GB,
         conv("conv", (64, 128, 256, 512), (128, 1, 3, 3), *attributes(groups=128, padding=1),
              *FAST), ""),
    Task("transposed convolution, stride 2", 4 * 16 * (64 * 24 * 48 * 48 + 128 * 47 * 95 * 95) / GB,
         conv("conv_transpose", (16, 64, 24, 48, 48), (64, 128, 3, 3, 3),
              *attributes(stride=2, padding=1), *FAST), ""),
    Task("convolution of 5 x 7", 4 * 8 * (64 + 128) * 512 * 256 / GB,
         conv("conv", (8, 64, 512, 256), (128, 64, 5, 7), *FAST), ""),
]


def memory_used():
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                         capture_output=True, text=True, check=True).stdout
    return float(out.split()[0]) * 2**20


def wait_until_free(base):
    """The driver frees the memory of a process that was ended some time later."""
    end = time.monotonic() + 15
    while memory_used() > base + 2**28 and time.monotonic() < end:
        time.sleep(0.1)


class Peak:
    """The largest use of memory between begin and end beyond that of the idle GPU."""

    def __init__(self, base):
        self.base = base

    def __enter__(self):
        wait_until_free(self.base)
        self.most, self.ends = 0, False
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.ends:
            self.most = max(self.most, memory_used() - self.base)
            time.sleep(0.1)

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()


def run(command, limit):
    """Status, output and errors of a command; status None if it took longer than `limit` seconds.
    Its workers, which hold the GPU's memory, end with it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            out, errors = process.communicate(timeout=limit)
            return process.returncode, out, errors
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, "", f"longer than {limit:.0f} s"


def judge(args, task, folder, limit, idle):
    graph = []
    if task.graph:
        path = pathlib.Path(folder, "graph.atg")
        path.write_text(task.graph)
        graph = ["--graph", str(path)]
    store = os.path.join(folder, "store.db")
    command = [args.atunner, "optimize", *task.arguments, *graph, "--target-gpu", "auto",
               "--budget", args.budget, "--json", "--quiet", "--store", store, "--no-baselines",
               "--out", os.path.join(folder, "out")]
    begin = time.monotonic()
    with Peak(idle) as peak:
        status, _, errors = run(command, limit)
    seconds = time.monotonic() - begin
    verdicts = []
    if os.path.exists(store):
        with sqlite3.connect(store) as database:
            verdicts = [(verdict, json.loads(body)["judge_seconds"]) for verdict, body in
                        database.execute("select verdict, body from trials order by number")]
    if status != 0:
        return peak, seconds, verdicts, errors.strip()[-300:]
    return peak, seconds, verdicts, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--budget", default="3")
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--total", type=float, default=0, help="seconds for all tasks; 0 = any")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    print(subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                         capture_output=True, text=True, check=True).stdout.strip())
    print(f"{'task':34} {'GB':>6} {'extra GB':>9} {'first s':>10} {'s/candidate':>11} "
          f"{'all s':>6}  verdicts", flush=True)
    tasks = [task for task in TASKS
             if not args.only or any(part in task.name for part in args.only.split(","))]
    idle = memory_used()
    failures, end = 0, time.monotonic() + args.total
    for number, task in enumerate(tasks):
        share = (end - time.monotonic()) / (len(tasks) - number)
        limit = min(args.limit, max(share, 1)) if args.total else args.limit
        with tempfile.TemporaryDirectory() as folder:
            peak, seconds, verdicts, error = judge(args, task, folder, limit, idle)
        extra = peak.most / GB - task.gigabytes
        judged = sum(verdict == "correct" for verdict, _ in verdicts)
        first, *others = [seconds_of for _, seconds_of in verdicts] or [0]
        each = sum(others) / len(others) if others else 0
        counts = collections.Counter(verdict for verdict, _ in verdicts)
        kinds = ", ".join(f"{n} {kind}" for kind, n in counts.items())
        failures += judged == 0
        print(f"{task.name:34} {task.gigabytes:6.2f} {extra:9.2f} {first:10.1f} "
              f"{each:11.2f} {seconds:6.1f}  {kinds} {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
