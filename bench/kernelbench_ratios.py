#!/usr/bin/env python3
"""KernelBench's ratios in little time on a GPU: plans of bench/kernelbench_plans.py beside eager
(PyTorch's defaults) and torch.compile (its default mode), at the benchmark's sizes.

Problems go in waves. In the first half of a wave many processes prepare at once: a plan's result is
compared with eager's, and torch.compile compiles. In the second half nothing else runs: one problem
after the other is timed, its three columns in turns (medians of CUDA events, L2 emptied before each
sample). The order is drawn evenly from both levels, so that a run that is cut says something. A row
is a line of JSON in --results as soon as it is there. Outcomes as in bench/kernelbench.py; the
means count a failure as 1.

Usage: python3 bench/kernelbench_ratios.py --plans plans [--seconds 190] [--workers 14]
           [--wave 48] [--only 1/40,2/9] [--skip rows.jsonl] [--kernels] [--results rows.jsonl]
       ATUNNER_RUNTIME names libatunner_runtime.so.
"""
import argparse
import contextlib
import json
import os
import queue
import select
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]

GIGABYTE = 1 << 30


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plans", required=True)
    parser.add_argument("--small", action="store_true", help="small sizes, nothing timed: a test")
    parser.add_argument("--only", default="", help="LEVEL/NUMBER, separated by commas")
    parser.add_argument("--skip", default="", help="rows of an earlier run, which are kept")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after these")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--wave", type=int, default=48, help="problems that are prepared together")
    parser.add_argument("--memory", type=float, default=56, help="GB for preparations at once")
    parser.add_argument("--limit", type=float, default=45, help="seconds a preparation may take")
    parser.add_argument("--results", default="kernelbench_ratios.jsonl")
    parser.add_argument("--kernels", action="store_true", help="each call's kernels, in the rows")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def folder_of(key, options):
    return os.path.join(options.plans, key.replace("/", "_"), "plan")


# The worker: a process that holds prepared problems.


class Prepared:
    """A problem with its plan and what torch.compile made. Large weights are made anew for the
    times: a wave holds dozens of problems."""

    MOST_KEPT = GIGABYTE // 2

    def __init__(self, problem, folder, small):
        import atunner

        self.problem, self.small = problem, small
        self.module, self.inputs = problem.make(small, device())
        self.plan = atunner.load(folder)
        self.compiled = None

    def ours(self, *inputs):
        from kernelbench.real_programs import weights_of

        given = weights_of(self.module) + list(inputs)
        return self.plan.run_guarded(given, [], device() == "cpu")[0]

    def compile(self):
        """Compiles by a first call. Each problem has a frame of its own: PyTorch gives up on one
        that it compiled too often."""
        import torch

        module = self.module

        def call(*inputs):
            return module(*inputs)

        call.__code__ = call.__code__.replace()
        compiled = torch.compile(call, dynamic=False)
        compiled(*self.inputs)
        self.compiled = compiled

    def forget(self):
        from kernelbench.real_programs import bytes_of, weights_of

        self.inputs = None
        if bytes_of(weights_of(self.module)) > self.MOST_KEPT:
            for weight in weights_of(self.module):
                weight.untyped_storage().resize_(0)

    def remember(self):
        from kernelbench.real_programs import bytes_of, weights_of

        if self.inputs is not None:
            return
        module, self.inputs = self.problem.make(self.small, device())
        if bytes_of(weights_of(self.module)) > self.MOST_KEPT:
            for weight, new in zip(weights_of(self.module), weights_of(module)):
                weight.untyped_storage().resize_(new.untyped_storage().nbytes())
                weight.copy_(new)


def device():
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def prepare(problem, options, held):
    from kernelbench.judging import judged

    prepared = Prepared(problem, folder_of(problem.key, options), options.small)
    began = time.monotonic()
    want = prepared.module(*prepared.inputs)
    got = prepared.ours(*prepared.inputs)
    row = judged(prepared.module, prepared.inputs, got, want)
    del want, got
    row["judged_s"] = time.monotonic() - began
    try:
        prepared.compile()
    except Exception as error:
        row["no_compile"] = f"{type(error).__name__}: {error}"[:400]
    row["compile_s"] = time.monotonic() - began - row["judged_s"]
    prepared.forget()
    held[problem.key] = prepared
    return row


def timed(prepared, kernels):
    import torch

    from common import in_turns_us

    prepared.remember()
    functions = {"eager_us": prepared.module, "atunner_us": prepared.ours}
    if prepared.compiled is not None:
        functions["compile_us"] = prepared.compiled
    calls = [
        lambda function=function: function(*prepared.inputs) for function in functions.values()
    ]
    flush = torch.empty(GIGABYTE // 2, dtype=torch.int8, device="cuda")
    began = time.monotonic()
    calls[0]()
    torch.cuda.synchronize()
    calls[0]()
    torch.cuda.synchronize()
    slow = time.monotonic() - began > 0.05
    row = dict(zip(functions, in_turns_us(calls, flush, samples=7 if slow else 15)))
    if kernels:
        from torch_models import device_events

        events = {name: device_events(call) for name, call in zip(functions, calls)}
        row["kernels"] = {
            name.replace("_us", ""): [(kernel[:90], round(us)) for kernel, us in each]
            for name, each in events.items()
        }
    return row


def answer(order, problems, options, held):
    import torch

    row = {}
    try:
        with torch.no_grad():
            if order["do"] == "prepare":
                row = prepare(problems[order["key"]], options, held)
            else:
                row = timed(held.pop(order["key"]), options.kernels)
    except torch.cuda.OutOfMemoryError as error:
        row = {"outcome": "memory", "detail": str(error)[:200]}
    except Exception as error:
        row = {"outcome": "failed", "detail": f"{type(error).__name__}: {error}"[:800]}
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return row


def work(options):
    """Answers each order, a line of JSON on standard input, by a line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    import torch

    import kernelbench

    torch.set_num_threads(1)
    if torch.cuda.is_available():
        torch.zeros(1, device="cuda")
    for name in ("recompile_limit", "cache_size_limit", "accumulated_recompile_limit"):
        if hasattr(torch, "_dynamo") and hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, 4096)
    problems, held = {problem.key: problem for problem in kernelbench.problems()}, {}
    answers.write("{}\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line), problems, options, held)) + "\n")
        answers.flush()


# The driver.


class Worker:
    """A process that is started anew after it ended or took too long."""

    def __init__(self):
        self.process = None
        self.start()

    def start(self):
        environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:], "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment,
        )
        self.ready = False

    def ask(self, order, limit):
        self.ready = self.ready or self._answer(60) == {}
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        row = self._answer(limit) if self.ready else {}
        if row is not None:
            return row
        ended = self.process.poll() is not None
        self.stop()
        self.start()
        why = "the process ended" if ended else f"no result within {limit:.0f} s"
        return {"outcome": "failed" if ended else "time", "detail": why, "lost": True}

    def _answer(self, limit):
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if ready else ""
        return json.loads(line) if line else None

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait()


class Memory:
    """Gigabytes of the GPU, handed out. A problem larger than all of it gets all of it."""

    def __init__(self, all_of_it):
        self.all = self.free = all_of_it
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def of(self, wanted):
        wanted = min(wanted, self.all)
        with self.changed:
            self.changed.wait_for(lambda: self.free >= wanted)
            self.free -= wanted
        try:
            yield
        finally:
            with self.changed:
                self.free += wanted
                self.changed.notify_all()


def gigabytes(key, options):
    """What a problem is likely to take: inputs, two results, a workspace, and some for eager."""
    sizes = {"float32": 4, "int64": 8, "bool": 1, "int32": 4}
    with open(os.path.join(folder_of(key, options), "plan.json")) as file:
        plan = json.load(file)
    total = plan.get("workspace_bytes", 0)
    for buffer in plan["buffers"]:
        count = sizes.get(buffer.get("dtype"), 4)
        for extent in buffer.get("shape", []):
            count *= extent
        total += count * {"input": 1, "output": 2.2}.get(buffer["kind"], 1)
    return 0.5 + 1.2 * total / 1e9


class Run:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.seconds
        self.began = time.monotonic()
        self.rows, self.names = {}, {}
        self.memory = Memory(options.memory)
        self.workers = []
        self.file = open(options.results, "a")
        self.lock = threading.Lock()

    def left(self):
        return self.end - time.monotonic()

    def say(self, text):
        print(f"[{time.monotonic() - self.began:5.1f} s] {text}", flush=True)

    def keep(self, key, row):
        with self.lock:
            self.rows.setdefault(key, {"name": self.names.get(key, "")}).update(row)
            self.file.write(json.dumps({"key": key, **self.rows[key]}) + "\n")
            self.file.flush()

    def prepare(self, worker, keys, ready):
        while self.left() > 10:
            try:
                key = keys.get_nowait()
            except queue.Empty:
                return
            order, limit = {"do": "prepare", "key": key}, min(self.options.limit, self.left())
            with self.memory.of(gigabytes(key, self.options)):
                row = worker.ask(order, limit)
            if row.get("outcome") == "memory":
                with self.memory.of(self.memory.all):
                    row = worker.ask(order, limit)
                if row.get("outcome") == "memory":
                    row["outcome"] = "failed"
            if row.get("lost"):
                with self.lock:  # with the process all that it had prepared is gone
                    ready[:] = [(other, w) for other, w in ready if w is not worker]
            elif row["outcome"] != "failed":
                ready.append((key, worker))
            self.keep(key, row)

    def wave(self, problems):
        from kernelbench.table import line_of

        keys, ready = queue.Queue(), []
        for key in problems:
            keys.put(key)
        threads = [
            threading.Thread(target=self.prepare, args=(worker, keys, ready))
            for worker in self.workers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.say(f"{len(ready)} of {len(problems)} prepared")
        for key, worker in ready:
            if self.left() > 1 and has_gpu() and not self.options.small:
                row = worker.ask({"do": "time", "key": key}, min(20, self.left()))
                self.keep(key, {k: v for k, v in row.items() if k != "outcome"})
        for key in problems:
            if key in self.rows:
                print(line_of(key, self.rows[key]), flush=True)
        self.say("times are there")

    def size_of_wave(self):
        """What is left of the time is for preparing and timing as many, at about a second each."""
        return int(min(self.options.wave, self.left() - 15))

    def run(self, keys):
        print(f"{'':13} {'eager ms':>9} {'compile':>9} {'atunner':>9}", flush=True)
        self.workers = [Worker() for _ in range(self.options.workers)]
        while keys and self.size_of_wave() > 3:
            size = self.size_of_wave()
            self.wave(keys[:size])
            keys = keys[size:]
        for worker in self.workers:
            worker.stop()


def has_gpu():
    import torch

    return torch.cuda.is_available()


def chosen(options):
    """Problems that have a plan, drawn evenly, and what is known of them from an earlier run."""
    import kernelbench

    only = list(filter(None, options.only.split(",")))
    problems = {problem.key: problem.name for problem in kernelbench.problems()}
    drawn = sorted(problems, key=lambda k: (int(k[2:]) * 37 % 101, k))
    keys = [k for k in only or drawn if os.path.exists(f"{folder_of(k, options)}/plan.json")]
    known = {}
    if options.skip and os.path.exists(options.skip):
        with open(options.skip) as file:
            known = {row.pop("key"): row for row in map(json.loads, file)}
    return problems, keys, {k: row for k, row in known.items() if row.get("atunner_us")}


def main():
    options = parsed()
    if options.worker:
        return work(options)
    from kernelbench.table import summary

    run = Run(options)
    run.names, keys, known = chosen(options)
    run.run([key for key in keys if key not in known])
    summary({**known, **run.rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
