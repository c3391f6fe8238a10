"""Compares products of a few rows with weights of 8 or 4 bits on the GPU of this machine.

atunner's operators are quantized_linear and int4_linear (a scale per 32 weights). They are
compared with the same product with 16-bit weights (torch.matmul) and with PyTorch's kernels for
int8 and int4 weights. `ratio` is the faster of those / atunner's time; GB/s counts only the bytes
of the weights. Times are medians of CUDA events; L2 is emptied by a write before each sample.

Usage: python3 bench/weights.py --atunner build/atunner [--budget 16,4s] [--bits 8,4]
           [--dtype bfloat16]
       ATUNNER_RUNTIME names libatunner_runtime.so.
"""
import argparse
import math
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import DTYPES, announce, print_rows, run_atunner, time_us  # noqa: E402

GROUP = 32
# M, N, K: tokens, and layers of Llama 3 8B and Mistral.
SHAPES = [
    (m, n, k)
    for n, k in ((4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336))
    for m in (1, 8, 16, 64)
]


def in_full(m, n, k, dtype, flush):
    x, w = torch.randn(m, k, device="cuda", dtype=dtype), torch.randn(
        n, k, device="cuda", dtype=dtype
    )
    return time_us(lambda x, w: x @ w.t(), (x, w), flush)


def packed(bits, m, n, k, flush):
    """PyTorch's kernels take bfloat16 only; nan for other types."""
    x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    try:
        if bits == 8:
            weight, scale = torch.zeros(n, k, device="cuda", dtype=torch.int8), torch.ones(
                n, device="cuda", dtype=torch.bfloat16
            )
            return time_us(torch._weight_int8pack_mm, (x, weight, scale), flush)
        weight = torch._convert_weight_to_int4pack(
            torch.randint(0, 255, (n, k // 2), device="cuda", dtype=torch.uint8), 8
        )
        scales = torch.ones(k // GROUP, n, 2, device="cuda", dtype=torch.bfloat16)
        return time_us(torch._weight_int4pack_mm, (x, weight, GROUP, scales), flush)
    except (RuntimeError, AttributeError):
        return math.nan


def measure(row, options, flush):
    bits, (m, n, k) = row
    full = in_full(m, n, k, DTYPES[options.dtype], flush)
    own = packed(bits, m, n, k, flush)
    operator = "int4_linear" if bits == 4 else "quantized_linear"
    answer = run_atunner(
        options.atunner,
        [operator, "--input-shape", f"{m},{k}", f"{n},{k}"],
        options.dtype,
        options.budget,
    )
    found = (answer.get("best") or {}).get("measurement")
    if not found:
        return (
            f"{full:>9.1f} {own:>9.1f}   "
            f"{answer.get('error', {}).get('what', 'no correct kernel')[:90]}",
            math.nan,
        )
    us = found["median_ns"] / 1e3
    ratio = min(t for t in (full, own) if not math.isnan(t)) / us
    values = (answer.get("best") or {}).get("configuration")
    return (
        f"{full:>9.1f} {own:>9.1f} {us:>9.1f} {n * k * bits / 8 / us / 1e3:>7.0f} {ratio:>6.2f} "
        f"{answer.get('trials', 0):>4} in {answer.get('seconds', 0):.0f} s  {values}",
        ratio,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--budget", default="16,4s")
    parser.add_argument("--bits", default="8,4")
    parser.add_argument("--dtype", default="bfloat16", choices=["float16", "bfloat16"])
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no row after so many"
    )
    options = parser.parse_args()
    flush = announce(f"times in us, {options.dtype}")
    print(
        f"{'bits, M x N x K':<24} {'16 bits':>9} {'PyTorch':>9} {'atunner':>9} {'GB/s':>7} "
        f"{'ratio':>6}  trials"
    )
    rows = [
        (f"{bits} {'x'.join(map(str, shape)):<22}", (bits, shape))
        for bits in map(int, options.bits.split(","))
        for shape in SHAPES
    ]
    print_rows(rows, options.seconds, lambda row: measure(row, options, flush))


if __name__ == "__main__":
    main()
