#!/usr/bin/env python3
"""Training steps of ResNet-50, BERT-base, GPT-2 (124 M) and ViT-B: `atunner.train_step` beside
eager PyTorch and torch.compile. Needs a GPU and PyTorch 2; weights are random.

    bench/training.py --json results.jsonl          # gradients against float64, times, memory
    bench/training.py --only bert-bf16 --parts time,check,curve --json results.jsonl
    bench/training.py --only gpt2-bf16 --columns eager,plan --parts time
    bench/training.py --small --device cpu --columns plan --parts check   # on the virtual GPU

Columns are timed in turns. Peak memory is what a step, its gradients included, adds to parameters,
states and batch.
"""

import argparse
import fcntl
import functools
import json
import os
import statistics
import sys
import time
import traceback

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faces/python"))
import atunner  # noqa: E402
import training_models as models  # noqa: E402
from atunner._step_function import StepOptions  # noqa: E402
from atunner._train_step import TrainStep  # noqa: E402
from atunner._verify_step import moved  # noqa: E402

loss_of = torch.nn.functional.cross_entropy
COLUMNS = ("eager", "compile", "plan", "replay")


class Job:
    """A model with its optimizer and its batch on the device."""

    def __init__(self, given, name, kind):
        self.given, self.autocast = given, kind == "bf16"
        model, batch, optimizer = models.make(name, given.small, given.batch, given.layers)
        self.model = model.to(given.device).train()
        self.batch = tuple(each.to(given.device) for each in batch)
        self.optimizer = optimizer(self.model)
        self.options = {"autocast": torch.bfloat16} if self.autocast else {}

    def eager(self, compiled):
        forward = torch.compile(self.model) if compiled else self.model

        def run():
            self.optimizer.zero_grad(set_to_none=True)
            with torch.autocast(self.given.device, torch.bfloat16, enabled=self.autocast):
                loss = loss_of(forward(*self.batch[:-1]), self.batch[-1])
            loss.backward()
            self.optimizer.step()
            return loss.detach()

        return run

    def planned(self):
        """The step with its gradients, as eager has them; its plan is made or found."""
        step = atunner.train_step(
            self.model,
            loss_of,
            self.optimizer,
            compile_options={"target_gpu": self.given.target_gpu},
            keep_gradients=True,
            **self.options,
        )
        step.compiled(*self.batch)
        return step

    def by_plan(self, step, replay):
        plan = step.compiled(*self.batch).plan

        def run():
            plan.replay = replay
            return step(*self.batch)

        return run


class Examination:
    """The columns of one model in one type."""

    def __init__(self, given, name, kind):
        self.given, self.name, self.kind = given, name, kind
        self.step, self.runs, self.jobs = None, {}, {}
        self.facts = {"model": name, "kind": kind, "layers": given.layers, "prepare_s": {}}
        self.facts["torch"] = torch.__version__
        if given.device == "cuda":
            self.facts["gpu"] = torch.cuda.get_device_name()

    def prepare(self):
        """Makes the plan, and runs each column once."""
        for column in self.given.columns:
            began = time.time()
            try:
                self.runs[column] = self.made(column)
                self.runs[column]()
            except Exception as problem:
                self.runs.pop(column, None)
                self.fail(column, problem)
            self.facts["prepare_s"][column] = round(time.time() - began, 1)
        print(f"{self.name}-{self.kind} prepared {self.facts['prepare_s']}", flush=True)

    def fail(self, part, problem):
        traceback.print_exc()
        self.facts[part + "_failed"] = f"{type(problem).__name__}: {problem}"[-1200:]

    def made(self, column):
        if column in ("eager", "compile"):
            self.jobs[column] = Job(self.given, self.name, self.kind)
            return self.jobs[column].eager(column == "compile")
        if self.step is None:
            self.job = Job(self.given, self.name, self.kind)
            self.step = self.job.planned()
        self.jobs[column] = self.job
        return self.job.by_plan(self.step, column == "replay")

    def check(self):
        """Loss, gradients, statistics and updates against float64."""
        job = Job(self.given, self.name, self.kind)
        report = atunner.verify_step(
            job.model,
            loss_of,
            job.optimizer,
            job.batch,
            steps=self.given.steps,
            free_run=False,
            make=self.adopting,
            **job.options,
        )
        worst = sorted(report.tensors, key=lambda each: -each.ours / each.bound)
        self.facts["check"] = {
            "right": report.passed,
            "tensors": len(report.tensors),
            "wrong": sum(not each.passed for each in report.tensors),
            **beside_eager(report.tensors),
            "worst": [[e.name, e.ours, e.eager, e.bound] for e in worst[:4]],
            "externs": report.externs,
        }

    def adopting(self, *arguments, **options):
        step = TrainStep(*arguments, **options)
        step.adopt(self.step)
        return step

    def time(self):
        """Milliseconds, peak bytes and device microseconds of each column."""
        peak, seen = {}, {column: [] for column in self.runs}
        for column, run in self.runs.items():
            run()
            self.jobs[column].model.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
            held = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            run()
            torch.cuda.synchronize()
            peak[column] = round((torch.cuda.max_memory_allocated() - held) / 1e6, 1)
        for _ in range(self.given.rounds):
            for column, run in self.runs.items():
                seen[column].append(milliseconds(run, self.given.count))
        self.facts["peak_mb"] = peak
        if self.step is not None:
            plan = self.step.compiled(*self.job.batch).plan
            self.facts["workspace_mb"] = round(plan.workspace_bytes / 1e6, 1)
            self.facts["externs"] = plan.extern_count
        self.facts["ms"] = {c: round(statistics.median(v), 3) for c, v in seen.items()}

    def profile(self):
        found = {column: kernels_of(run) for column, run in self.runs.items() if column != "replay"}
        self.facts["device_us"] = {column: us for column, (us, _) in found.items()}
        self.facts["kernels"] = {column: rows for column, (_, rows) in found.items()}

    def curve(self):
        """Losses of free runs on one batch: the plan's, and eager's as it is and with parameters
        moved by about one unit in their last place, in the same type and in float32."""
        losses = {"plan": self.free_run(variant=None, planned=True)}
        for kind in dict.fromkeys((self.kind, "fp32")):
            for variant in (None, 0, 1):
                name = f"eager {kind}" + ("" if variant is None else f" {variant + 1}")
                losses[name] = self.free_run(variant, kind=kind)
        self.facts["curve"] = {c: [round(v, 6) for v in all_] for c, all_ in losses.items()}

    def free_run(self, variant, kind=None, planned=False):
        job = Job(self.given, self.name, kind or self.kind)
        if variant is not None:
            moved(job.model, variant)
        if planned:
            step = self.adopting(
                job.model,
                loss_of,
                job.optimizer,
                StepOptions(**job.options),
                self.step.compile_options,
                keep_gradients=True,
            )
            run = functools.partial(step, *job.batch)
        else:
            run = job.eager(False)
        return [float(run()) for _ in range(self.given.curve_steps)]

    def write(self):
        if self.given.json:
            with open(self.given.json, "a") as file:
                file.write(json.dumps(self.facts) + "\n")


def beside_eager(tensors):
    """How far the plan's results are from float64 in units of eager's own distance, of results that
    eager does not have exactly."""
    ratios = [(e.ours / e.eager, e.name) for e in tensors if e.eager]
    return {
        "compared_with_eager": len(ratios),
        "nearer_than_eager": sum(ratio <= 1 for ratio, _ in ratios),
        "median_of_eager": statistics.median(ratio for ratio, _ in ratios) if ratios else None,
        "largest_of_eager": max(ratios, default=None),
    }


def milliseconds(run, count):
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(count):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / count * 1e3


def kernels_of(run, count=2):
    """Device time of a step in microseconds, and its longest kernels: us, launches, name."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(count):
            run()
        torch.cuda.synchronize()
    rows = [(e.self_device_time_total / count, e.count / count, e.key) for e in seen.key_averages()]
    rows = sorted((row for row in rows if row[0] > 0), reverse=True)
    return round(sum(row[0] for row in rows)), [[round(a, 1), n, k[:60]] for a, n, k in rows[:16]]


def wait_for(gate):
    """Until the file is there; then nobody else measures."""
    while not os.path.exists(gate):
        time.sleep(0.2)
    lock = open(gate)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    jobs = [f"{name}-{kind}" for kind in ("bf16", "fp32") for name in models.NAMES]
    parser.add_argument("--only", default=",".join(jobs))
    parser.add_argument("--columns", default=",".join(COLUMNS))
    parser.add_argument("--small", action="store_true", help="one layer each, small batches")
    parser.add_argument("--layers", type=int, help="of transformers, in place of 12")
    parser.add_argument("--batch", type=int, help="in place of 32 pictures or 8 texts")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--target-gpu", default="auto")
    parser.add_argument("--steps", type=int, default=2, help="steps compared with float64")
    parser.add_argument("--curve-steps", type=int, default=200, help="of the part `curve`")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=3, help="steps of a round")
    parser.add_argument("--parts", default="time,check,profile")
    parser.add_argument("--gate", help="prepare, and measure when this file is there")
    parser.add_argument("--json", help="a file, to which lines are added")
    given = parser.parse_args()
    given.columns = given.columns.split(",")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for job in given.only.split(","):
        made = Examination(given, *job.split("-"))
        made.prepare()
        lock = wait_for(given.gate) if given.gate else None
        for part in given.parts.split(","):
            try:
                getattr(made, part)()
            except Exception as problem:
                made.fail(part, problem)
            print(json.dumps(made.facts), flush=True)
        made.write()
        if lock is not None:
            lock.close()


if __name__ == "__main__":
    main()
