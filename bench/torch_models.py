#!/usr/bin/env python3
"""Whole models by torch.compile(backend="atunner"), beside eager and torch.compile's own default.
Needs a GPU, PyTorch 2, and torchvision and transformers for their models; weights are random.

    bench/torch_models.py --results rows.jsonl
    bench/torch_models.py --only resnet50,bert --dtypes bfloat16 --batches 1 --results rows.jsonl

A row is a model, a type and a batch. The first row is prepared alone, for its seconds to the first
result; then all others are prepared at once, each in a process of its own: the models are compiled,
and compared with a run in float64. Then nothing else runs: one row after the other is timed, its
columns in turns (medians of CUDA events, L2 emptied before each sample), and profiled. Last, a
second process of each row loads the plans that the first one left. A row is a line of JSON in
--results as soon as it is there; rows that have times are not run again.

Columns: milliseconds of a call in eager, torch.compile and atunner; `replay`, atunner with
mode="reduce-overhead"; the ratio of torch.compile to atunner; the share of device time in
atunner's kernels; megabytes at the peak of a call beyond what lay there before, eager and atunner
(with the constants of its plans); the largest errors of both, relative to the largest value of
float64; seconds to the first result, in all and in the backend, and in a second process. The
kernels of the first result are verified afterwards, and all else is measured with verified ones.
"""

import argparse
import collections
import contextlib
import copy
import glob
import json
import math
import os
import re
import sys
import threading
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]

from kernelbench_ratios import Worker

MODES = {
    "eager": None,
    "compile": {"backend": "inductor"},
    "atunner": {"backend": "atunner"},
    "replay": {"backend": "atunner", "options": {"mode": "reduce-overhead"}},
}


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(MODELS), help="models, separated by commas")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--seconds", type=float, default=1e9, help="end after these")
    parser.add_argument("--workers", type=int, default=10, help="rows that are prepared at once")
    parser.add_argument(
        "--unverified", action="store_true", help="measure first guesses, and verify nothing"
    )
    parser.add_argument("--results", default="torch_models.jsonl")
    parser.add_argument("--device", default="cuda", help="cpu: eager alone and no times; a test")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


# The models: a module and its input.


def vision(name, batch):
    import torch
    import torchvision

    model = getattr(torchvision.models, name)()
    if hasattr(model, "heads"):  # ViT's last weights are zeros
        torch.nn.init.normal_(model.heads[-1].weight, std=0.02)
    return model, torch.randn(batch, 3, 224, 224)


def first_of(model, **given):
    """A model of transformers with one tensor as its result."""
    import torch

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, tokens):
            return self.model(tokens, **given)[0]

    return First()


def bert(batch):
    import transformers

    return first_of(transformers.BertModel(transformers.BertConfig())), tokens(batch, 128)


def gpt2(batch):
    import transformers

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    return first_of(model, use_cache=False), tokens(batch, 128)


def llama(batch):
    """One block of Llama 2 7B with its embedding."""
    import transformers

    config = transformers.LlamaConfig(num_hidden_layers=1)
    return first_of(transformers.LlamaModel(config), use_cache=False), tokens(batch, 512)


def tokens(batch, count):
    import torch

    return torch.randint(0, 30000, (batch, count))


MODELS = {
    "resnet50": lambda batch: vision("resnet50", batch),
    "vit": lambda batch: vision("vit_b_16", batch),
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
}


# The worker: a process that holds the compiled functions of rows.


def compiled(model, mode):
    import torch

    import atunner

    given = MODES[mode]
    if given is None:
        return model
    if given["backend"] == "atunner":
        given = {**given, "backend": atunner.backend}

    def call(given):
        return model(given)

    call.__code__ = call.__code__.replace()  # what is compiled is kept by code
    return torch.compile(call, dynamic=False, **given)


class Backend:
    """Plans that the backend loads, and the seconds that it takes to make them."""

    def __init__(self, unverified=False):
        from atunner import _backend, _fixed_graph

        self.plans, self.graphs, self.seconds = [], [], 0.0
        load, graph = _fixed_graph.load, _backend.FixedGraph

        def loaded(folder, *arguments, **named):
            plan = load(folder, *arguments, **named)
            self.plans.append((os.fspath(folder), plan))
            return plan

        def fixed(*arguments):
            began = time.monotonic()
            try:
                self.graphs.append(graph(*arguments))
                return self.graphs[-1]
            finally:
                self.seconds += time.monotonic() - began

        _fixed_graph.load, _backend.FixedGraph = loaded, fixed
        if unverified:
            graph._improve = lambda *_: None

    def verified(self):
        """Waits until the kernels of all plans are verified; what they were refused for."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for graph in self.graphs:
                if graph.tuner is not None:
                    graph.tuner.join()
        return [str(each.message)[:400] for each in seen if "atunner" in str(each.message)]

    def kernels(self):
        """Names of all kernels of the plans."""
        names = set()
        for folder, _ in self.plans:
            for path in glob.glob(os.path.join(glob.escape(folder), "kernels", "*", "kernel.ptx")):
                with open(path) as file:
                    names.update(re.findall(r"\.entry\s+(\w+)", file.read()))
        return names


def synchronize():
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def error_of(result, exact):
    return float(f"{((result.double() - exact).abs().max() / exact.abs().max()).item():.2e}")


def made(key, device):
    """The module, its input, and its result in float64."""
    import torch

    name, dtype, batch = key.split()
    torch.manual_seed(1)
    model, given = MODELS[name](int(batch))
    model, given = model.eval().to(device), given.to(device)
    real = given.is_floating_point()
    exact = copy.deepcopy(model).double()(given.double() if real else given)
    dtype = getattr(torch, dtype)
    return model.to(dtype), given.to(dtype) if real else given, exact


def first_call(function, given, exact, backend):
    """Seconds to the first result, and its error."""
    began, earlier = time.monotonic(), backend.seconds
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = function(given)
        synchronize()
    row = {
        "first_s": round(time.monotonic() - began, 2),
        "backend_s": round(backend.seconds - earlier, 2),
        "error": error_of(result, exact),
    }
    left = [str(each.message)[:400] for each in seen if "atunner" in str(each.message)]
    return {**row, "left": left} if left else row


def prepare(key, modes, options, held):
    if key not in held:
        held[key] = (*made(key, options.device), {})
    model, given, exact, functions = held[key]
    backend = held.get("backend") or held.setdefault("backend", Backend(options.unverified))
    row = {}
    for mode in [mode for mode in modes if mode not in functions]:
        function = compiled(model, mode)
        graphs = len(backend.graphs)
        try:
            row[mode] = first_call(function, given, exact, backend)
        except Exception as error:  # the next one is tried
            row[mode] = {"failed": f"{type(error).__name__}: {error}"[-700:]}
            continue
        if row[mode].get("backend_s"):
            began = time.monotonic()
            row[mode].setdefault("left", []).extend(backend.verified())
            row[mode]["verified_s"] = round(time.monotonic() - began, 2)
            again = first_call(function, given, exact, backend)  # by the verified plan
            row[mode]["error"] = again["error"]
            row[mode]["left"] += again.get("left", [])
            row[mode]["verified"] = all(graph.is_verified for graph in backend.graphs)
        loaded = [graph.plan for graph in backend.graphs[graphs:]]
        row[mode]["externs"] = sum(plan.extern_count for plan in loaded)
        row[mode]["constants_mb"] = round(sum(plan.weight_bytes for plan in loaded) / 1e6, 2)
        functions[mode] = lambda function=function: function(given)
    return row


def second(key, options, held):
    """As a second process: what the first one made is loaded."""
    model, given, exact = made(key, options.device)
    backend = Backend()
    row = first_call(compiled(model, "atunner"), given, exact, backend)
    return {"second": row}


def peak_mb(function):
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    torch.cuda.synchronize()
    return round((torch.cuda.max_memory_allocated() - before) / 1e6, 2)


def device_events(function):
    """Names and microseconds of what a call runs on the device, in its order."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        function()
        torch.cuda.synchronize()
    events = [each for each in profile.events() if str(each.device_type).endswith("CUDA")]
    events = [each for each in events if not getattr(each, "is_user_annotation", False)]
    events.sort(key=lambda each: each.time_range.start)
    return [(each.name, each.time_range.elapsed_us()) for each in events]


def profiled(function, ours):
    """Device time, the share of our kernels, the largest of all kernels, and ours in order."""
    events = device_events(function)
    total = sum(us for _, us in events)
    own = [[name, round(us, 2)] for name, us in events if name in ours]
    taken = collections.Counter()
    for name, us in events:
        taken[name[:90]] += us
    return {
        "device_us": round(total, 1),
        "launches": len(events),
        "share": round(sum(us for _, us in own) / total, 4) if total else None,
        "largest": [[name, round(us, 1)] for name, us in taken.most_common(12)],
        "kernels": own,
    }


def measured(key, held):
    import torch

    from common import in_turns_us

    functions = held.pop(key)[-1]
    flush = torch.empty(1 << 29, dtype=torch.int8, device="cuda")
    times = in_turns_us(list(functions.values()), flush, samples=15)
    row = {mode: {"ms": round(us / 1e3, 4)} for mode, us in zip(functions, times)}
    ours = held["backend"].kernels()
    for mode, function in functions.items():
        row[mode]["peak_mb"] = peak_mb(function)
        try:
            row[mode].update(profiled(function, ours))
        except Exception as error:  # times stand without it
            row[mode]["no_profile"] = str(error)[:200]
    return row


def answer(order, options, held):
    import torch

    try:
        with torch.no_grad():
            if order["do"] == "prepare":
                return prepare(order["key"], order["modes"], options, held)
            if order["do"] == "second":
                return second(order["key"], options, held)
            return measured(order["key"], held)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:800]}


def work(options):
    """Answers each order, a line of JSON on standard input, by a line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    import torch
    import torchvision  # imported before the clock runs

    with contextlib.suppress(ImportError):
        import transformers
    if torch.cuda.is_available():
        torch.zeros(1, device="cuda")
    for name in ("recompile_limit", "cache_size_limit"):
        if hasattr(torch, "_dynamo") and hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, 64)
    held = {}
    answers.write("{}\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line), options, held)) + "\n")
        answers.flush()


# The driver.


class Run:
    def __init__(self, options, rows):
        self.options, self.rows = options, rows
        self.began = time.monotonic()
        self.file = open(options.results, "a")
        self.lock = threading.Lock()

    def left(self):
        return self.options.seconds - (time.monotonic() - self.began)

    def say(self, text):
        print(f"[{time.monotonic() - self.began:5.1f} s] {text}", flush=True)

    def keep(self, key, row):
        with self.lock:
            merge(self.rows.setdefault(key, {}), row)
            self.file.write(json.dumps({"key": key, **self.rows[key]}) + "\n")
            self.file.flush()
            self.say(f"{key} {json.dumps(row)}"[:1500])

    def prepare(self, key, worker, modes):
        """True if the worker holds the row."""
        # A fifth of the time is for measurements.
        limit = max(5.0, self.left() - 0.2 * min(self.options.seconds, 1200))
        row = worker.ask({"do": "prepare", "key": key, "modes": modes}, limit)
        self.keep(key, row)
        return "lost" not in row and "failed" not in row

    def prepare_all(self, keys, workers, ready):
        modes, waiting = self.options.modes.split(","), list(keys)

        def serve():
            while waiting and self.left() > 10:
                with self.lock:
                    key = waiting.pop(0) if waiting else None
                if key is not None and self.prepare(key, workers[key], modes):
                    ready.append(key)

        threads = [threading.Thread(target=serve) for _ in range(self.options.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run(self, keys):
        workers = {key: Worker() for key in keys}
        ready = []
        for key in keys[:1]:
            alone = [m for m in self.options.modes.split(",") if m in ("eager", "atunner")]
            self.prepare(key, workers[key], alone)
        self.prepare_all(keys, workers, ready)
        for key in [key for key in keys if key in ready]:
            if self.options.device == "cuda" and self.left() > 2:
                self.keep(key, workers[key].ask({"do": "measure", "key": key}, self.left()))
        for key, worker in workers.items():
            worker.stop()
        for key in [key for key in keys if key in ready]:
            if "atunner" in self.options.modes and self.left() > 25:
                worker = Worker()
                self.keep(key, worker.ask({"do": "second", "key": key}, self.left()))
                worker.stop()


def merge(row, new):
    for name, value in new.items():
        if isinstance(value, dict) and isinstance(row.get(name), dict):
            row[name].update(value)
        else:
            row[name] = value


def cell(row, mode, name, form="{:.3f}"):
    value = row.get(mode, {}).get(name)
    return form.format(value) if isinstance(value, (int, float)) else "-"


def table(rows):
    """A line for each row, and geometric means of the ratios."""
    print(
        "model dtype batch | ms: eager compile atunner replay | compile/atunner | share | "
        "peak MB: eager atunner | errors: eager atunner | first s: all backend second | left"
    )
    ratios = []
    for key, row in rows.items():
        ms = [cell(row, mode, "ms") for mode in MODES]
        ratio = "-"
        if "-" not in ms[1:3]:
            ratios.append(row["compile"]["ms"] / row["atunner"]["ms"])
            ratio = f"{ratios[-1]:.2f}"
        memory = row.get("atunner", {}).get("peak_mb", math.nan) + row.get("atunner", {}).get(
            "constants_mb", 0
        )
        errors = [cell(row, mode, "error", "{:.1e}") for mode in ("eager", "atunner")]
        first = [cell(row, "atunner", name, "{:.1f}") for name in ("first_s", "backend_s")]
        left = row.get("atunner", {}).get("left") or row.get("atunner", {}).get("failed") or ""
        print(
            f"{key:22} | {' '.join(ms)} | {ratio} | {cell(row, 'atunner', 'share')} | "
            f"{cell(row, 'eager', 'peak_mb', '{:.1f}')} {memory:.1f} | {' '.join(errors)} | "
            f"{' '.join(first)} {cell(row, 'second', 'first_s', '{:.1f}')} | {str(left)[:120]}"
        )
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} rows: geometric mean of compile/atunner {mean:.3f}")


def known_rows(path):
    rows = {}
    if os.path.exists(path):
        with open(path) as file:
            for row in map(json.loads, file):
                rows[row.pop("key")] = row
    return rows


def main():
    options = parsed()
    if options.worker:
        return work(options)
    wanted = [
        f"{name} {dtype} {batch}"
        for batch in options.batches.split(",")
        for name in options.only.split(",")
        for dtype in options.dtypes.split(",")
    ]
    rows = known_rows(options.results)
    run = Run(options, rows)
    run.run([key for key in wanted if "ms" not in rows.get(key, {}).get("atunner", {})])
    table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
