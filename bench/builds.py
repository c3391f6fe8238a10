"""Compares the speed of the kernels that two builds of atunner find on the GPU of this machine.

Each task is tuned in the order A B B A, so that slow drifts of the card affect both builds alike. A
time is the winner's median from the tuner's own harness. The ratio of a row is the geometric mean
of B's two times over that of A's two times: below 1, B is faster.

Usage: python3 bench/builds.py --before OLD/atunner --after build/atunner [--budget 20]
           [--seconds 500]
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import time

ROWS = ["softmax", "layernorm", "rms_norm", "softmax_backward", "sum"]
WIDTHS = [1024, 8192]
PRODUCTS = [
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (2048, 2048, 2048),
    (8192, 128, 8192),
    (128, 8192, 8192),
    (1, 28672, 4096),
    (8, 28672, 4096),
    (64, 4096, 14336),
    (512, 512, 16384),
    (2048, 6144, 4096),
    (4096, 14336, 4096),
    (1000, 1111, 999),
]


def tasks():
    """Pairs of a row's label and the flags that describe the task."""
    for width in WIDTHS:
        rows = (1 << 28) // (2 * width)  # 256 MB of bfloat16
        for name in ROWS:
            yield f"{name} {rows}x{width}", ["--operator", name, "--input-shape", f"{rows},{width}"]
    for m, n, k in PRODUCTS:
        shapes = [f"{m},{k}", f"{k},{n}"]
        yield f"matmul {m}x{n}x{k}", ["--operator", "matmul", "--input-shape", *shapes]


def tuned_us(atunner, task, budget):
    """The winner's median in microseconds, or nan and the reason on standard output."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            atunner,
            "optimize",
            *task,
            "--dtype",
            "bfloat16",
            "--budget",
            budget,
            "--json",
            "--quiet",
            "--fresh",
            "--no-baselines",
            "--store",
            os.path.join(folder, "store.db"),
            "--out",
            os.path.join(folder, "artifact"),
        ]
        result = subprocess.run(command, capture_output=True, text=True)
    try:
        answer = json.loads(result.stdout)
        return answer["best"]["measurement"]["median_ns"] / 1e3
    except (json.JSONDecodeError, KeyError, TypeError):
        print("  failed:", (result.stderr or result.stdout)[-300:], flush=True)
        return math.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--budget", default="20")
    parser.add_argument("--seconds", type=float, default=500, help="no row begins after this time")
    options = parser.parse_args()
    begin, ratios = time.monotonic(), []
    print(f"{'task':30} {'A us':>9} {'B us':>9} {'B us':>9} {'A us':>9}  B/A", flush=True)
    for label, task in tasks():
        if time.monotonic() - begin > options.seconds:
            print(f"{label:30} not reached", flush=True)
            continue
        order = [options.before, options.after, options.after, options.before]
        a1, b1, b2, a2 = (tuned_us(path, task, options.budget) for path in order)
        ratio = math.sqrt(b1 * b2 / (a1 * a2))
        print(f"{label:30} {a1:9.2f} {b1:9.2f} {b2:9.2f} {a2:9.2f}  {ratio:.4f}", flush=True)
        if not math.isnan(ratio):
            ratios.append(ratio)
    if not ratios:
        raise SystemExit("no task was tuned by both builds")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(
        f"{len(ratios)} rows: geometric mean of B/A {mean:.4f}, "
        f"least {min(ratios):.4f}, most {max(ratios):.4f}"
    )


if __name__ == "__main__":
    main()
