"""Compares products of 8-bit floats (e4m3) with PyTorch and the best of cuBLAS on the GPU of this
machine. atunner's operator is fp8_linear.

cuBLAS runs each algorithm that cublasLt's heuristics propose, with one scale per tensor; sums are
in float32 ("exact") or in the precision of the tensor cores ("fast"). torch._scaled_mm has a scale
per row. atunner with the accuracy `default` is compared with "exact", with `fast` with both. Errors
are rms(c - r) / rms(r) over 128 rows, where r is computed in float64. Times are medians of CUDA
events; L2 is emptied before each sample. The runtime launches atunner's kernel on the same tensors,
in turns with the fastest algorithms.

Usage: python3 bench/gemm_fp8.py --atunner build/atunner [--budget 16,4s] [--only square]
           [--scales per_tensor]
       ATUNNER_RUNTIME names libatunner_runtime.so.
"""
import argparse
import math
import os
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]
from common import announce, in_turns_us, launched, print_rows, run_atunner, why_not  # noqa: E402
from gemm import CublasLt, fastest  # noqa: E402

SHAPES = {
    "square": [(n, n, n) for n in (4096, 8192, 2048, 1024)],
    "prefill": [(2048, 4096, 14336), (4096, 14336, 4096), (2048, 6144, 4096), (512, 28672, 4096)],
    "decode": [
        (1, 4096, 4096),
        (16, 4096, 14336),
        (16, 6144, 4096),
        (64, 28672, 4096),
        (128, 8192, 8192),
    ],
    "odd": [(1000, 1111, 1008), (333, 5003, 1021)],
}


def of_cublas(x, w, y, lt, flush, fast):
    """The fastest of cuBLAS's algorithms with one scale per tensor; None if there is none."""
    one = torch.ones(1, device="cuda")
    try:
        runs = lt.functions(x, w, y, fast=fast, scales=(one, one))
    except RuntimeError:
        return None
    return fastest([lambda run=run: (run(x, w, y), one) for run in runs], flush) if runs else None


def of_rows(x, w, by_row, by_column):
    """PyTorch's product with a scale per row; None if it does not support the shapes."""

    def run():
        return torch._scaled_mm(
            x,
            w.t(),
            by_row[:, None],
            by_column[None, :],
            out_dtype=torch.bfloat16,
            use_fast_accum=True,
        )

    try:
        run()
    except RuntimeError:
        return None
    return run


def measure(shape, options, lt, flush):
    m, n, k = shape
    x, w = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
    y, by_row, by_column = (
        torch.empty(m, n, device="cuda", dtype=torch.bfloat16),
        torch.ones(m, device="cuda"),
        torch.ones(n, device="cuda"),
    )
    exact = x[:128].double() @ w.double().t()
    others = {
        "exact": of_cublas(x, w, y, lt, flush, False),
        "fast": of_cublas(x, w, y, lt, flush, True),
        "rows": of_rows(x, w, by_row, by_column),
    }
    operator = [
        "fp8_linear",
        "--input-shape",
        f"{m},{k}",
        f"{n},{k}",
        "--accuracy",
        options.accuracy,
        "--no-baselines",
    ]
    per_tensor = options.scales == "per_tensor"
    with tempfile.TemporaryDirectory() as folder:
        answer = run_atunner(
            options.atunner,
            operator + (["--attr", "per_tensor=true"] if per_tensor else []),
            "bfloat16",
            options.budget,
            folder,
        )
        if "best" not in answer:
            return why_not(answer), math.nan
        ours, (found,) = launched(
            folder,
            (
                x,
                w,
                *(
                    scale[:1] if per_tensor else scale
                    for scale in (by_row.bfloat16(), by_column.bfloat16())
                ),
            ),
        )
        there = {name: run for name, run in others.items() if run}
        *times, us = in_turns_us([*there.values(), ours], flush)
    took = {**dict.fromkeys(others, math.nan), **dict(zip(there, times))}

    def off(result):
        return ((result[:128].double() - exact).norm() / exact.norm()).item()

    errors = {}
    for name in ("exact", "fast"):
        if others[name]:
            others[name]()
        errors[name] = off(y) if others[name] else math.nan
    counted = [
        took[name]
        for name in (("exact", "fast") if options.accuracy == "fast" else ("exact",))
        if others[name]
    ]
    best = min(counted, default=took["rows"])
    return (
        f"{took['exact']:>8.1f} {errors['exact']:.1e} {took['fast']:>8.1f} {errors['fast']:.1e} "
        f"{took['rows']:>8.1f} {us:>9.1f} {off(found):.1e} {2 * m * n * k / us / 1e6:>8.0f} "
        f"{took['exact'] / us:>7.2f} {took['fast'] / us:>7.2f} {took['rows'] / us:>7.2f} "
        f"{answer.get('trials', 0):>4} in {answer.get('seconds', 0):.0f} s  "
        f"{answer['best'].get('configuration')}",
        best / us,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--budget", default="16,4s")
    parser.add_argument("--only", default=",".join(SHAPES))
    parser.add_argument("--scales", default="per_row", choices=["per_row", "per_tensor"])
    parser.add_argument("--accuracy", default="default", choices=["strict", "default", "fast"])
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no row after so many"
    )
    options = parser.parse_args()
    lt = CublasLt()
    flush = announce(f"times in us, atunner's scales {options.scales}, accuracy {options.accuracy}")
    print(
        f"{'M x N x K':<18} {'exact':>8} {'error':>7} {'fast':>8} {'error':>7} {'row-wise':>8} "
        f"{'atunner':>9} {'error':>7} {'TFLOP/s':>8} {'exact/':>7} {'fast/':>7} {'rows/':>7}  "
        "trials"
    )
    rows = [
        (f"{'x'.join(map(str, shape)):<18}", shape)
        for kind in options.only.split(",")
        for shape in SHAPES[kind]
    ]
    print_rows(rows, options.seconds, lambda shape: measure(shape, options, lt, flush))


if __name__ == "__main__":
    main()
