"""Compares parts of models that are given as graphs (.atg) with PyTorch on the GPU of this machine.

Columns: PyTorch eager; torch.compile with its defaults and with CUDA graphs (mode
"reduce-overhead"); atunner by its own measurement, and launched by its runtime from Python, launch
by launch and in a CUDA graph. Times are medians of CUDA events in us; L2 is emptied by a write
before each sample. Results are compared with PyTorch's in float32.

Usage: python3 bench/graphs.py --atunner build/atunner [--budget 60,60s]
           [--only mlp,layer,bottleneck,linear,scores] [--ahead] [--texts FOLDER]
       --texts writes the graphs into FOLDER and ends. The runtime is $ATUNNER_RUNTIME, or where
       faces/python/atunner_runtime.py finds it.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]
from common import announce, best_us, flags, in_graph, time_us, why_not  # noqa: E402
from graph_models import ROWS  # noqa: E402

MODES = [{}, {"mode": "reduce-overhead"}]  # of torch.compile


def inputs_of(text):
    """Random tensors for the graph's inputs, by name. Matrices are scaled so that products stay
    near one."""
    made = {}
    for name, dtype, shape in re.findall(r"^input (\w+): (\w+)\[([\d, ]+)\]", text, re.M):
        shape = [int(extent) for extent in shape.split(",")]
        if dtype == "int64":  # labels
            made[name] = torch.randint(0, 1000, shape, device="cuda")
            continue
        fan = (
            math.prod(shape[1:])
            if len(shape) > 1 and not name.startswith(("x", "q", "k")) and dtype == "bfloat16"
            else 1
        )
        made[name] = (torch.randn(shape, device="cuda") / fan**0.5).to(getattr(torch, dtype))
    return made


def compiled(call, arguments, flush, **options):
    torch._dynamo.reset()
    try:
        function = torch.compile(call, dynamic=False, **options)

        def step():
            torch.compiler.cudagraph_mark_step_begin()
            return function(*arguments)

        return time_us(step, (), flush)
    except Exception:
        return math.nan


def tuned(atunner, text, folder, budget):
    """The folder of the artifact and atunner's measurements, or the reason why there is none."""
    path = os.path.join(folder, "graph.atg")
    with open(path, "w") as file:
        file.write(text)
    out = os.path.join(folder, "out")
    command = [
        atunner,
        "optimize",
        "--graph",
        path,
        "--budget",
        budget,
        "--out",
        out,
        "--fresh",
        "--no-baselines",
        "--json",
    ]
    answer = subprocess.run(
        command + ["--store", os.path.join(folder, "runs.db")], capture_output=True, text=True
    )
    try:
        told = json.loads(answer.stdout)
    except json.JSONDecodeError:
        told = {"error": {"what": (answer.stderr or answer.stdout).strip()[-300:]}}
    return out, best_us(told), why_not(told)


def measure(label, text, call, args, flush):
    import atunner_runtime

    arguments = inputs_of(text)
    values = list(arguments.values())
    wanted = call(*values)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    line = [
        time_us(call, values, flush),
        *(compiled(call, values, flush, **options) for options in MODES),
    ]
    with tempfile.TemporaryDirectory() as folder:
        out, measured, why = tuned(args.atunner, text, folder, args.budget)
        if why:
            return (
                f"| {label} | " + " | ".join(f"{each:.1f}" for each in line) + f" | {why} |",
                math.nan,
            )
        kernel = atunner_runtime.ArtifactSet(out).choose(
            dims={}, device=torch.cuda.current_device()
        )
        names = re.findall(r"^output (\w+)", text, re.M)
        results = {
            name: torch.empty_like(each, memory_format=torch.contiguous_format)
            for name, each in zip(names, wanted)
        }

        def launch():
            kernel(**arguments, **results)

        launches = time_us(launch, (), flush)
        error = max(
            (results[name].float() - each.float()).abs().max().item()
            / each.float().abs().max().item()
            for name, each in zip(names, wanted)
        )
        captured = time_us(in_graph(launch), (), flush)
    ratio = min(each for each in line if not math.isnan(each)) / min(measured, launches, captured)
    return (
        f"| {label} | "
        + " | ".join(f"{each:.1f}" for each in line + [measured, launches, captured])
        + f" | {ratio:.2f} | {error:.1e} |",
        ratio,
    )


def main():
    parser = flags(__doc__, "60,60s", dtypes=None)
    parser.add_argument("--only", default="", help="parts of rows' names")
    parser.add_argument("--texts")
    parser.add_argument(
        "--ahead",
        action="store_true",
        help="torch.compile's kernels first, every row in a process of its own",
    )
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    rows = [
        row for row in ROWS if not args.only or any(part in row[0] for part in args.only.split(","))
    ]
    if args.compile:
        for _, (text, call) in rows:
            arguments = list(inputs_of(text).values())
            for options in MODES:
                compiled(call, arguments, torch.empty(1, device="cuda"), **options)
        return
    if args.ahead:
        command = [sys.executable, os.path.abspath(__file__), "--compile", "--only"]
        for process in [
            subprocess.Popen(
                [*command, label], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            for label, _ in rows
        ]:
            process.wait()
    if args.texts:
        for label, (text, _) in rows:
            with open(os.path.join(args.texts, re.sub(r"\W+", "_", label) + ".atg"), "w") as file:
                file.write(text)
        return
    flush = announce("us")
    print(
        "| graph | eager | compiled | with CUDA graphs | atunner's own measurement | launched "
        "from Python | in a CUDA graph | ratio | largest difference "
        "|\n|---|---|---|---|---|---|---|---|---|"
    )
    for label, (text, call) in rows:
        try:
            print(measure(label, text, call, args, flush)[0], flush=True)
        except Exception as error:
            print(f"| {label} | {type(error).__name__}: {str(error)[:200]} |", flush=True)


if __name__ == "__main__":
    main()
