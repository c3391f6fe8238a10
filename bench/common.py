"""What the benches share: their flags, times of PyTorch functions, runs of atunner, means."""
import argparse
import json
import math
import statistics
import subprocess
import time

import torch

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def flags(description, budget, dtypes=None, only=None):
    """A parser of what every bench is asked: which atunner, how long; and which types and rows, if it has several."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--budget", default=budget)
    if dtypes is not None:
        parser.add_argument("--dtypes", default=dtypes)
        parser.add_argument("--only", default=only, help="kinds of rows, or parts of their names")
    return parser


def flushing():
    """What `time_us` writes to empty L2: so much that a launch is there before that is written, even where the host is slow for a moment."""
    return torch.empty(1 << 30, dtype=torch.int8, device="cuda")


def announce(text):
    """Says what is measured where; returns what `flushing` does."""
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; {text}", flush=True)
    return flushing()


worked_at = -math.inf


def wake(functions):
    """A GPU that has idled is slow for a tenth of a second (measure/harness.h)."""
    for function in functions * 3:  # the first call may compile
        function()
    begin = time.monotonic()
    while begin - worked_at > 0.1 and time.monotonic() - begin < 0.15:
        functions[0]()
        torch.cuda.synchronize()


def in_turns_us(functions, flush, samples=15):
    """Medians of CUDA events, L2 emptied by a write to `flush` before each sample. Functions take turns: what clocks, power and the host do
    meanwhile concerns them all."""
    global worked_at
    wake(functions)
    times = [[] for _ in functions]
    for _ in range(samples):
        for function, taken in zip(functions, times):
            flush.fill_(1)
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            function()
            end.record()
            end.synchronize()
            taken.append(start.elapsed_time(end) * 1e3)
    worked_at = time.monotonic()
    return [statistics.median(taken) for taken in times]


def time_us(function, arguments, flush, samples=15):
    """The same of one function alone."""
    return in_turns_us([lambda: function(*arguments)], flush, samples)[0]


def in_graph(function):
    """The same launches, captured once."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def copied_gbps(flush):
    """GB/s read and written by PyTorch's copy of a gigabyte."""
    source = torch.empty(1 << 30, dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / time_us(lambda: target.copy_(source), (), flush) / 1e3


def probed_gbps(atunner):
    """GB/s read and written by the copy of `atunner devices --probe`; nan where the probe fails."""
    answer = subprocess.run([atunner, "devices", "--probe", "--json"], capture_output=True, text=True)
    rates = json.loads(answer.stdout)["rates"] if answer.returncode == 0 else []
    return next((rate["measured"] for rate in rates if rate["name"] == "copy bandwidth"), math.nan)


def run_atunner(path, operator, dtype, budget, out=None):
    """`operator`: its name and the flags that describe the task. `out`: a folder for the artifact."""
    command = [path, "optimize", "--operator", *operator, "--dtype", dtype, "--budget", budget, "--json", "--fresh", *(["--out", out] if out else [])]
    result = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(result.stdout)
    except json.JSONDecodeError:
        return {"error": {"what": (result.stderr or result.stdout)[-200:]}}


def scratch(kernel):
    """What a launch of the runtime's kernel needs beside its tensors."""
    return {"workspace": torch.empty(kernel.workspace_bytes, device="cuda", dtype=torch.uint8)} if kernel.workspace_bytes else {}


def launched(folder, inputs):
    """The artifact in `folder` bound to PyTorch's `inputs`, which come in its order: what launches it, and its outputs. An input that PyTorch's
    call does without (its gradient needs no values) is drawn here."""
    import atunner_runtime
    artifacts = atunner_runtime.ArtifactSet(folder)
    kernel = artifacts.choose(dims=artifacts[0].dims)
    given, tensors, outputs = list(inputs), [], []
    for argument in kernel.arguments:
        if argument.role == atunner_runtime.Role.INPUT and given and argument.bytes == given[0].numel() * given[0].element_size():
            tensors.append(given.pop(0))
            continue
        tensors.append(torch.empty(argument.shape, device="cuda", dtype=getattr(torch, argument.dtype)))
        if argument.role == atunner_runtime.Role.INPUT:
            tensors[-1].normal_()
        else:
            outputs.append(tensors[-1])
    if given:
        raise ValueError(f"{len(given)} of PyTorch's tensors fit none of {kernel.arguments}")
    room = scratch(kernel)
    return lambda: kernel(*tensors, **room), outputs


def compiled_us(function, arguments, flush):
    """Of torch.compile's kernel; nan for what it cannot make."""
    torch._dynamo.reset()
    try:
        return time_us(torch.compile(function, dynamic=False), arguments, flush)
    except Exception:
        return math.nan


def best_us(answer):
    """Of the winner that atunner's JSON names; nan without one."""
    return ((answer.get("best") or {}).get("measurement") or {}).get("median_ns", math.nan) / 1e3


def naive_us(answer):
    """Of the plain kernel; nan where it was not timed."""
    measured = (each["measurement"] for each in answer.get("baselines", []) if each["name"] == "naive" and each.get("measurement"))
    return next(measured, {}).get("median_ns", math.nan) / 1e3


def why_not(answer):
    """Why atunner's JSON names no winner; nothing where it does."""
    reason = answer.get("error", {}).get("what") or answer.get("refused", {}).get("reason") or answer.get("stop_reason")
    return "" if answer.get("best") else f"no correct kernel: {reason}"[:200]


def print_rows(rows, seconds, measure):
    """A line per row of (label, what `measure` takes), which gives the text and the ratio; then what the ratios come to. No row begins after `seconds`."""
    begin, ratios = time.time(), {}
    for label, row in rows:
        if time.time() - begin > seconds:
            continue
        line, ratio = measure(row)
        print(f"{label} {line}", flush=True)
        if not math.isnan(ratio):
            ratios[" ".join(label.split())] = ratio
    label, least = min(ratios.items(), key=lambda item: item[1], default=("none", math.nan))
    print(f"{len(ratios)} rows: geometric mean of the ratios {geometric_mean(list(ratios.values())):.3f}, worst {least:.3f} ({label})")


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan
