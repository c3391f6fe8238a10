"""Compares matrix products in float32 with cuBLAS: time, and error against float64 on families of
inputs.

Times are medians with L2 emptied by a write before each sample (atunner's are from its own
harness). Errors are those of the kernel that was timed, launched from its artifact: ||c - r|| /
||r||, and the largest |c - r| / (|r| + rms(r)) of an element.

Usage: ATUNNER_RUNTIME=build/runtime/libatunner_runtime.so python3 bench/gemm_float32.py
           --atunner build/atunner
"""
import math
import os
import shutil
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, os.path.join(HERE, "..", "faces", "python")]
import atunner_runtime  # noqa: E402
from common import (
    announce,
    best_us,
    flags,
    geometric_mean,
    run_atunner,
    time_us,
    why_not,
)  # noqa: E402

SHAPES = [
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (2048, 2048, 16384),
    (4096, 4096, 11008),
]  # m, n, k


def normal(*shape):
    return torch.randn(*shape, device="cuda")


def cancelling(m, n, k):
    """Inputs whose products nearly cancel in pairs along k."""
    a = 8 + normal(m, k)
    a[:, 1::2] = 0.125 * normal(m, k // 2) - a[:, 0 : k // 2 * 2 : 2]
    return a, 1 + normal(k, n) / 64


def opposed(m, n, k):
    """Inputs with a large range of magnitudes: columns of a are scaled by powers of two, rows of b
    by their inverses, so that small elements of a meet large ones of b."""
    power = torch.exp2(torch.randint(-30, 30, (k,), device="cuda").float())
    return normal(m, k) * power, normal(k, n) / power[:, None]


FAMILIES = {
    "normal": lambda m, n, k: (normal(m, k), normal(k, n)),
    "uniform": lambda m, n, k: (torch.rand(m, k, device="cuda"), torch.rand(k, n, device="cuda")),
    "cancelling": cancelling,
    "opposed ranges": opposed,
}


def errors(c, exact):
    difference = c.double() - exact
    rms = exact.norm() / math.sqrt(exact.numel())
    return (difference.norm() / exact.norm()).item(), (
        difference.abs() / (exact.abs() + rms)
    ).max().item()


def compare(kernel, m, n, k, make):
    a, b = make(m, n, k)
    exact = a.double() @ b.double()
    vendor = errors(a @ b, exact)
    c = torch.full((m, n), float("nan"), device="cuda")
    kernel(a, b, c)
    return vendor, errors(c, exact)


def main():
    parser = flags(__doc__, "40,20s")
    parser.add_argument("--shapes", help="m,n,k;m,n,k")
    options = parser.parse_args()
    shapes = (
        [tuple(map(int, one.split(","))) for one in options.shapes.split(";")]
        if options.shapes
        else SHAPES
    )
    torch.backends.cuda.matmul.allow_tf32 = False
    flush = announce("errors: cuBLAS -> atunner, of the norm (worst element)")
    ratios = []
    for m, n, k in shapes:
        a, b = FAMILIES["normal"](m, n, k)
        vendor = time_us(torch.matmul, (a, b), flush)
        folder = tempfile.mkdtemp()
        answer = run_atunner(
            options.atunner,
            ["matmul", "--input-shape", f"{m},{n},{k}", "--out", folder],
            "float32",
            options.budget,
        )
        best = best_us(answer)
        rate = 2e-6 * m * n * k
        ratios.append(vendor / best)
        print(
            f"{m}x{n}x{k}: cuBLAS {vendor:.1f} us {rate / vendor:.1f} TFLOP/s, atunner {best:.1f} "
            f"us {rate / best:.1f} TFLOP/s, {vendor / best:.2f} times as fast "
            f"{why_not(answer)}",
            flush=True,
        )
        if best == best:
            kernel = atunner_runtime.ArtifactSet(folder).choose(dims={"M": m, "N": n, "K": k})
            for name, make in FAMILIES.items():
                theirs, ours = compare(kernel, m, n, k, make)
                print(
                    f"    {name:<16} {theirs[0]:.2e} ({theirs[1]:.2e}) -> {ours[0]:.2e} ("
                    f"{ours[1]:.2e}), {ours[0] / theirs[0]:.2f} times the error",
                    flush=True,
                )
        shutil.rmtree(folder)
    print(f"geometric mean {geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
