#!/usr/bin/env python3
"""KernelBench: is each model computed whole by atunner, is it right, and how fast
is it beside PyTorch?

The modules are our own (bench/kernelbench), with the benchmark's operators, sizes and inputs;
--published FOLDER runs the published files, which have no small sizes. A problem is "ok" if the
result is within 1e-4 of eager's (absolute and relative, as the benchmark compares), "ok64" if it is
not, but closer to float64 than eager's (eager uses TF32 in convolutions), "left" if PyTorch has to
run a part, "wrong", "failed" without a result, or "time" after --limit seconds.

Without a GPU: small sizes. Each model is captured, gets a plan of kernels without a search, and the
plan runs on the virtual GPU (ATUNNER_LIBCUDA names libvirtual_cuda.so). Nothing is timed.

With a GPU: the benchmark's sizes, `torch.compile(backend="atunner")` beside eager (PyTorch's
defaults) and torch.compile (its default mode). All times of a problem are from one process, in
turns: medians of CUDA events, L2 emptied before each sample. The means count a failure as 1.
--through plan captures instead, as without a GPU; --small takes the small sizes.

Usage: python3 bench/kernelbench.py [--levels 1,2,3] [--only 1/3,2/40] [--jobs 4] [--small]
           [--through plan] [--mode max-autotune --budget 60s] [--results kernelbench.json]
           [--plans FOLDER] [--published FOLDER]
       ATUNNER names the program, ATUNNER_RUNTIME libatunner_runtime.so. Rows that --results has
       already are not run again; --again wrong,failed runs those with these outcomes.
"""
import argparse
import contextlib
import json
import math
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]

import kernelbench  # noqa: E402
from kernelbench.judging import judged  # noqa: E402
from kernelbench.table import RIGHT, line_of, summary  # noqa: E402


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--levels", default="1,2")
    parser.add_argument("--only", default="", help="LEVEL/NUMBER, separated by commas")
    parser.add_argument("--small", action="store_true", help="small sizes, nothing timed")
    parser.add_argument("--through", choices=("compile", "plan"), help="torch.compile, or a plan")
    parser.add_argument("--no-times", action="store_true", help="verify only")
    parser.add_argument("--mode", default="default", help="default or max-autotune")
    parser.add_argument("--budget", default="60", help="of the search, for max-autotune")
    parser.add_argument("--target-gpu", default="", help="default: this machine's, or A100")
    parser.add_argument("--jobs", type=int, default=1, help="problems at once; times want 1")
    parser.add_argument("--limit", type=float, default=120, help="seconds a problem may take")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin none after these")
    parser.add_argument("--results", default="kernelbench.json", help="kept rows, as JSON")
    parser.add_argument("--plans", default="", help="folder that keeps plans for a later run")
    parser.add_argument("--again", default="", help="outcomes to run again, or all")
    parser.add_argument("--published", default="", help="the benchmark's folder, with level1/ …")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def chosen(options):
    levels = [int(level) for level in options.levels.split(",")]
    found = (
        kernelbench.published(options.published, levels)
        if options.published
        else kernelbench.problems(levels)
    )
    only = [key for key in options.only.split(",") if key]
    unknown = sorted(set(only) - {problem.key for problem in found})
    if unknown:
        sys.exit(f"no problem is called {', '.join(unknown)}: LEVEL/NUMBER, as 2/40")
    by_key = {problem.key: problem for problem in found}
    return {key: by_key[key] for key in only} if only else by_key


# The worker: a process that runs problems one by one.


def target_of(options):
    import torch

    return options.target_gpu or ("auto" if torch.cuda.is_available() else "A100")


def planned(model, options, folder):
    """Runs `atunner optimize` without a search; the plan's folder and the summary."""
    out = os.path.join(folder, "plan")
    command = [os.environ.get("ATUNNER", "atunner"), "optimize", model, "--out", out, "--json"]
    command += ["--target-gpu", target_of(options), "--quiet", "--first-guess"]
    if target_of(options) != "auto":
        command += ["--virtual"]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr.strip() or ended.stdout[-400:])
    return out, json.loads(ended.stdout)


def through_plan(module, inputs, options, folder):
    """Captured, planned and loaded: a function, and what the row says of the plan."""
    import atunner

    began = time.monotonic()
    model = atunner.capture(module, inputs, os.path.join(folder, "model"))
    out, summary = planned(model, options, folder)
    facts = {"kernels": sum(summary["steps"].values()), "left": externs_of(folder)}
    return atunner.load(out), {**facts, "compile_s": time.monotonic() - began}


def externs_of(folder):
    """Operators that plans under a folder leave to PyTorch."""
    found = set()
    for root, _, files in os.walk(folder):
        if "plan.json" in files:
            with open(os.path.join(root, "plan.json")) as file:
                plan = json.load(file)
            found |= {step["target"] for step in plan.get("steps", []) if "target" in step}
    return sorted(found)


def through_compile(module, inputs, options, folder):
    """torch.compile: a function, and what it left to PyTorch."""
    import warnings

    import torch

    from atunner._backend import backend

    settings = {"mode": options.mode}
    if options.mode == "max-autotune":
        settings["budget"] = options.budget
    fast = torch.compile(module, backend=backend, options=settings, dynamic=False)
    began = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fast(*inputs)
    left = [str(w.message) for w in caught if "atunner leaves a graph" in str(w.message)]
    facts = {"compile_s": time.monotonic() - began, "left": externs_of(folder) + left}
    return fast, facts


def measured(problem, options, folder):
    """The facts of a row: what was compiled, whether it is right, and its times."""
    import torch

    on_gpu = torch.cuda.is_available()
    small = options.small or not on_gpu
    through = options.through or ("compile" if on_gpu else "plan")
    module, inputs = problem.make(small, device="cuda" if on_gpu else "cpu")
    want = module(*inputs)
    make = through_compile if through == "compile" else through_plan
    fast, row = make(module, inputs, options, folder)
    got = fast(*inputs)
    row.update(judged(module, inputs, got.to(want.device), want))
    del got, want
    if not small and not options.no_times and row["outcome"] in RIGHT:
        row.update(timed(module, inputs, fast))
    return row


def timed(module, inputs, fast):
    import torch

    from common import flushing, in_turns_us

    compiled = torch.compile(module, dynamic=False)
    names, functions = ["eager_us", "atunner_us"], [module, fast]
    try:
        compiled(*inputs)
        names.append("compile_us")
        functions.append(compiled)
    except Exception as error:
        print(f"torch.compile fails: {error}", file=sys.stderr)
    calls = [lambda function=function: function(*inputs) for function in functions]
    return dict(zip(names, in_turns_us(calls, flushing())))


@contextlib.contextmanager
def folder_of(problem, options):
    """A folder for the problem's plans alone, which shows what they leave to PyTorch."""
    if options.plans:
        folder = os.path.join(os.path.abspath(options.plans), problem.key.replace("/", "_"))
        os.makedirs(folder, exist_ok=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="kernelbench-") as folder:
            yield folder


def row_of(problem, options):
    import torch

    row = {"name": problem.name, "torch": torch.__version__}
    began = time.monotonic()
    with folder_of(problem, options) as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_DATA_HOME"] = folder
        try:
            with torch.no_grad():
                row.update(measured(problem, options, folder))
        except Exception as error:  # a row says so, and the next one follows
            row.update(outcome="failed", detail=f"{type(error).__name__}: {error}"[:1500])
    if row["outcome"] in RIGHT and row.get("left"):
        row["outcome"] = "left"
    row["seconds"] = time.monotonic() - began
    return row


def work(options):
    """Answers each problem named on standard input by a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    import torch

    torch.set_num_threads(1)
    problems = chosen(options)
    if torch.cuda.is_available():
        torch.zeros(1, device="cuda")
    else:
        os.environ["ATUNNER_VIRTUAL_CUDA_GPU"] = target_of(options)
    for line in sys.stdin:
        if hasattr(torch, "_dynamo"):
            torch._dynamo.reset()
        row = row_of(problems[line.strip()], options)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        answers.write(json.dumps(row) + "\n")
        answers.flush()


# The driver: hands problems to workers, keeps rows, prints the table.


class Worker:
    """A process that is started anew after it ended or took too long."""

    def __init__(self):
        self.process = None

    def ask(self, key, limit):
        if self.process is None or self.process.poll() is not None:
            self.start()
        self.process.stdin.write(key + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.stop()
        ended = "the process ended; its output has the reason"
        return (
            {"outcome": "failed", "detail": ended}
            if ready
            else {"outcome": "time", "detail": f"no result within {limit:.0f} s"}
        )

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def stop(self):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, 9)
            self.process.wait()


class Rows:
    """Rows by their keys, kept in a file after each."""

    def __init__(self, path):
        self.path, self.lock, self.rows = path, threading.Lock(), {}
        if os.path.exists(path):
            with open(path) as file:
                self.rows = json.load(file)

    def add(self, key, row):
        with self.lock:
            self.rows[key] = row
            with open(self.path + ".new", "w") as file:
                json.dump(self.rows, file, indent=1)
            os.replace(self.path + ".new", self.path)
            print(line_of(key, row), flush=True)


def serve(worker, keys, rows, options, end):
    while time.monotonic() < end:
        try:
            key = keys.get_nowait()
        except queue.Empty:
            break
        rows.add(key, worker.ask(key, min(options.limit, max(1, end - time.monotonic()))))
    worker.stop()


def main():
    options = parsed()
    if options.worker:
        return work(options)
    rows, again, keys = Rows(options.results), options.again.split(","), queue.Queue()
    problems = chosen(options)
    for key in problems:
        old = rows.rows.get(key)
        if old is None or "all" in again or old["outcome"] in again:
            keys.put(key)
    print(f"{'':13} {'eager ms':>9} {'compile':>9} {'atunner':>9}", flush=True)
    end = time.monotonic() + options.seconds
    threads = [
        threading.Thread(target=serve, args=(Worker(), keys, rows, options, end))
        for _ in range(options.jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = {key: rows.rows[key] for key in problems if key in rows.rows}
    summary(done)
    return 0 if all(row["outcome"] in RIGHT for row in done.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
