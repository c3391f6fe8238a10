"""Functions that all benches use: flags, times of PyTorch functions, runs of atunner, means."""
import argparse
import json
import math
import statistics
import subprocess
import time

import torch

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def flags(description, budget, dtypes=None, only=None):
    """A parser of the flags that all benches have: --atunner, --budget; and types and rows if a
    bench has several."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--budget", default=budget)
    if dtypes is not None:
        parser.add_argument("--dtypes", default=dtypes)
        parser.add_argument("--only", default=only, help="kinds of rows, or parts of their names")
    return parser


def flushing():
    """The buffer that `time_us` writes to empty L2. The write takes so long that the next launch is
    queued before it ends, even if the host is slow for a moment."""
    return torch.empty(1 << 30, dtype=torch.int8, device="cuda")


def announce(text):
    """Prints the device and the kind of measurement; returns the buffer of `flushing`."""
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; {text}", flush=True)
    return flushing()


worked_at = -math.inf


def wake(functions):
    """Runs the GPU for a while: an idle one is slow for a tenth of a second (measure/harness.h)."""
    for function in functions * 3:  # the first call may compile
        function()
    begin = time.monotonic()
    while begin - worked_at > 0.1 and time.monotonic() - begin < 0.15:
        functions[0]()
        torch.cuda.synchronize()


def in_turns_us(functions, flush, samples=15):
    """Median times of functions by CUDA events, L2 emptied by a write to `flush` before each
    sample. The functions take turns, so that changes of clocks, power and host load affect all of
    them alike."""
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
    """As in_turns_us, for one function."""
    return in_turns_us([lambda: function(*arguments)], flush, samples)[0]


def in_graph(function):
    """The same launches, captured once in a CUDA graph."""
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
    """GB/s read and written by the copy of `atunner devices --probe`; nan if the probe fails."""
    answer = subprocess.run(
        [atunner, "devices", "--probe", "--json"], capture_output=True, text=True
    )
    rates = json.loads(answer.stdout)["rates"] if answer.returncode == 0 else []
    return next((rate["measured"] for rate in rates if rate["name"] == "copy bandwidth"), math.nan)


def run_atunner(path, operator, dtype, budget, out=None):
    """Runs `optimize`. `operator` is the operator's name with the flags that describe the task,
    `out` a folder for the artifact."""
    command = [
        path,
        "optimize",
        "--operator",
        *operator,
        "--dtype",
        dtype,
        "--budget",
        budget,
        "--json",
        "--fresh",
        *(["--out", out] if out else []),
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(result.stdout)
    except json.JSONDecodeError:
        return {"error": {"what": (result.stderr or result.stdout)[-200:]}}


def scratch(kernel):
    """Workspace for a launch of a kernel of the runtime."""
    return (
        {"workspace": torch.empty(kernel.workspace_bytes, device="cuda", dtype=torch.uint8)}
        if kernel.workspace_bytes
        else {}
    )


def launched(folder, inputs):
    """Binds the artifact in `folder` to PyTorch's `inputs`, in their order. Returns a function that
    launches it, and its outputs. An input that PyTorch's call does not need (a gradient without
    values) is drawn here."""
    import atunner_runtime

    artifacts = atunner_runtime.ArtifactSet(folder)
    kernel = artifacts.choose(dims=artifacts[0].dims)
    given, tensors, outputs = list(inputs), [], []
    for argument in kernel.arguments:
        if (
            argument.role == atunner_runtime.Role.INPUT
            and given
            and argument.bytes == given[0].numel() * given[0].element_size()
        ):
            tensors.append(given.pop(0))
            continue
        tensors.append(
            torch.empty(argument.shape, device="cuda", dtype=getattr(torch, argument.dtype))
        )
        if argument.role == atunner_runtime.Role.INPUT:
            tensors[-1].normal_()
        else:
            outputs.append(tensors[-1])
    if given:
        raise ValueError(f"{len(given)} of PyTorch's tensors fit none of {kernel.arguments}")
    room = scratch(kernel)
    return lambda: kernel(*tensors, **room), outputs


def compiled_us(function, arguments, flush):
    """Time in us of torch.compile's kernel; nan if it cannot compile the function."""
    torch._dynamo.reset()
    try:
        return time_us(torch.compile(function, dynamic=False), arguments, flush)
    except Exception:
        return math.nan


def best_us(answer):
    """Time in us of the winner in atunner's JSON; nan without a winner."""
    return ((answer.get("best") or {}).get("measurement") or {}).get("median_ns", math.nan) / 1e3


def naive_us(answer):
    """Time in us of the plain kernel; nan if it was not timed."""
    measured = (
        each["measurement"]
        for each in answer.get("baselines", [])
        if each["name"] == "naive" and each.get("measurement")
    )
    return next(measured, {}).get("median_ns", math.nan) / 1e3


def why_not(answer):
    """The reason why atunner's JSON has no winner; "" if it has one."""
    reason = (
        answer.get("error", {}).get("what")
        or answer.get("refused", {}).get("reason")
        or answer.get("stop_reason")
    )
    return "" if answer.get("best") else f"no correct kernel: {reason}"[:200]


def print_rows(rows, seconds, measure):
    """Prints a line per row, then the means of the ratios. A row is (label, arguments); `measure`
    makes the text and the ratio of the arguments. No row begins after `seconds`."""
    begin, ratios = time.time(), {}
    for label, row in rows:
        if time.time() - begin > seconds:
            continue
        line, ratio = measure(row)
        print(f"{label} {line}", flush=True)
        if not math.isnan(ratio):
            ratios[" ".join(label.split())] = ratio
    label, least = min(ratios.items(), key=lambda item: item[1], default=("none", math.nan))
    print(
        f"{len(ratios)} rows: geometric mean of the ratios "
        f"{geometric_mean(list(ratios.values())):.3f}, worst {least:.3f} ({label})"
    )


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan
