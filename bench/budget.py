"""Shows what a larger budget would bring. Operators of different families are tuned with the
default budget and with ten times as much; then both winners are timed in turns.

  seconds   time of the whole run of `optimize`: plain kernel, search, proof of the winner, and
            comparison with the plain kernel
  ratio     time of the winner with ten times the budget / time of the winner with the default
            budget: 1 if more trials find nothing better

On a GPU the runtime launches both artifacts on the same tensors, in turns; L2 is emptied before
each sample. With `--virtual` the times are the model's and nothing is launched. The run with the
larger budget is not compared with the plain kernel.

Usage: python3 bench/budget.py --atunner build/atunner [--only softmax,matmul]
           [--budget 60 --times 10] [--seconds 1200] [--virtual H200]
       ATUNNER_RUNTIME names libatunner_runtime.so.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]

# Integers of a task, where not every table has a place for 0 and 1 alone or the work hangs on them:
# below what they are drawn.
BELOW = {"attention_paged": {"table": 8192, "last": 256 * 16}}
# family, operator, shapes, type, attributes; the quick ones first
ROWS = [
    ("rows", "softmax", ["8192,4096"], "float32", []),
    ("products", "matmul", ["2048,2048,2048"], "bfloat16", []),
    ("transpose", "transpose", ["8192,8192"], "bfloat16", []),
    ("columns", "sum", ["16384,4096"], "float32", ["axis=0"]),
    ("scan", "cumsum", ["8192,8192"], "float32", []),
    ("pointwise", "swiglu", ["8192,14336"] * 2, "bfloat16", []),
    ("conv", "conv2d", ["32,28,28,128", "128,3,3"], "bfloat16", ["padding=1"]),
    ("reduction", "rms_norm", ["16384,4096"], "bfloat16", []),
    ("weights", "quantized_linear", ["16,4096", "14336,4096"], "bfloat16", []),
    ("decode", "attention_paged", ["32,32,128", "8192,16,8,128", "32,256"], "bfloat16", []),
    ("attention", "flash_attention", ["4,16,1024,128"], "bfloat16", ["causal=true"]),
    ("rows", "layernorm_backward", ["8192,4096"], "bfloat16", []),
    ("planes", "matmul", ["2048,2048,2048"], "float32", []),
    ("pooling", "max_pool", ["64,64,112,112"], "float32", ["size=3", "stride=2", "padding=1"]),
]


def optimize(options, row, budget, folder, *more):
    _, operator, shapes, dtype, attributes = row
    command = [
        options.atunner,
        "optimize",
        "--operator",
        operator,
        "--input-shape",
        *shapes,
        "--dtype",
        dtype,
        "--budget",
        str(budget),
        "--fresh",
        "--json",
        "--out",
        folder,
        *more,
    ]
    command += ["--attr", *attributes] if attributes else []
    command += ["--virtual", "--target-gpu", options.virtual] if options.virtual else []
    begin = time.time()
    run = subprocess.run(command, capture_output=True, text=True)
    try:
        answer = json.loads(run.stdout)
    except json.JSONDecodeError:
        answer = {"error": {"what": (run.stderr or run.stdout)[-200:]}}
    answer["took"] = time.time() - begin
    return answer


def tensors_of(kernel, below):
    """A tensor for each argument of an artifact. Floats are normal numbers; integers are below the
    stated limit, or below 2, so that they are valid indices of every table."""
    import torch

    made = []
    for argument in kernel.arguments:
        dtype = getattr(torch, argument.dtype)
        made.append(
            torch.randn(argument.shape, device="cuda").to(dtype)
            if dtype.is_floating_point
            else torch.randint(0, below.get(argument.name, 2), argument.shape, device="cuda").to(
                dtype
            )
        )
    return made


def in_turns(folders, below):
    """Median times in us of artifacts that compute the same, launched in turns."""
    import atunner_runtime
    from common import flushing, in_turns_us, scratch

    kernels = []
    for folder in folders:
        artifacts = atunner_runtime.ArtifactSet(folder)
        kernels.append(artifacts.choose(dims=artifacts[0].dims))
    tensors = tensors_of(kernels[0], below)
    launches = [
        lambda kernel=kernel, room=scratch(kernel): kernel(*tensors, **room) for kernel in kernels
    ]
    return in_turns_us(launches, flushing(), samples=31)


def measure(options, row):
    """The text of a row and its ratio."""
    least = int(options.budget)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        answers = [
            optimize(options, row, least, one),
            optimize(options, row, least * options.times, other, "--no-baselines"),
        ]
        seconds = " ".join(
            f"{answer['took']:>8.1f} {answer.get('trials', 0):>6}" for answer in answers
        )
        failed = [answer for answer in answers if "best" not in answer]
        if failed:
            return (
                f"{seconds}  {failed[0].get('error', {}).get('what', 'no correct kernel')[:80]}",
                math.nan,
            )
        times = (
            [answer["best"]["estimate"]["time_ns"] / 1e3 for answer in answers]
            if options.virtual
            else in_turns([one, other], BELOW.get(row[1], {}))
        )
    return (
        f"{seconds} {times[0]:>9.1f} {times[1]:>9.1f} {times[1] / times[0]:>6.3f}  "
        f"{answers[1]['stop_reason']}",
        times[1] / times[0],
    )


def default_budget(path):
    """The number of trials of `optimize` without --budget."""
    text = subprocess.run([path, "optimize", "--help"], capture_output=True, text=True).stdout
    return re.search(r"--budget \D*(\d+)", text).group(1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--only", default="", help="families or operators")
    parser.add_argument("--budget", help="trials, in place of the default's")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1200, help="no row begins later")
    parser.add_argument("--virtual", help="a GPU whose times are predicted")
    options = parser.parse_args()
    options.budget = options.budget or default_budget(options.atunner)
    chosen = [
        row for row in ROWS if not options.only or {row[0], row[1]} & set(options.only.split(","))
    ]
    print(
        f"{options.budget} trials and {options.times} times as many; times in us, "
        f"{'predicted' if options.virtual else 'measured'}"
    )
    print(
        f"{'family':<11}{'operator':<44} {'seconds':>8} {'trials':>6} {'seconds':>8} {'trials':>6}"
        f" {'default':>9} {'ten times':>9} {'ratio':>6}",
        flush=True,
    )
    begin, ratios = time.time(), []
    for row in chosen:
        if time.time() - begin > options.seconds:
            break
        family, operator, shapes, dtype, attributes = row
        line, ratio = measure(options, row)
        print(
            f"{family:<11}{' '.join([operator, *shapes[:1], dtype, *attributes]):<44} {line}",
            flush=True,
        )
        if ratio == ratio:
            ratios.append(ratio)
    if ratios:
        print(
            f"{len(ratios)} of {len(chosen)} rows: geometric mean of the ratios "
            f"{math.exp(statistics.fmean(map(math.log, ratios))):.3f}, least {min(ratios):.3f}; "
            f"{sum(ratio >= 0.97 for ratio in ratios)} at 0.97 or more"
        )


if __name__ == "__main__":
    main()
