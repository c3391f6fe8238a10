"""Compares row operators with PyTorch on the GPU of this machine: naive, PyTorch eager,
torch.compile and atunner.

Every tensor exceeds 256 MB. Times are medians of CUDA events; L2 is emptied by a write before each
sample. "% probe" is the rate relative to the copy bandwidth that `atunner devices --probe` measures
in this run; "% roof" relative to the peak bandwidth of the profile. With --ahead N, N processes let
torch.compile make its kernels first; the run finds them in its cache.

Usage: python3 bench/rows.py --atunner build/atunner [--operators softmax,layernorm]
           [--dtypes float32,bfloat16] [--cols 256,4096]
"""
import concurrent.futures
import math
import multiprocessing
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import (
    DTYPES,
    announce,
    best_us,
    compiled_us,
    copied_gbps,
    flags,
    geometric_mean,
    naive_us,
    probed_gbps,
    run_atunner,
    time_us,
    why_not,
)  # noqa: E402


def functions(name, rows, cols, dtype):
    def matrix():
        return torch.randn(rows, cols, device="cuda", dtype=dtype)

    x = matrix()
    if name == "softmax":
        return lambda x: torch.softmax(x, -1), (x,), 2
    if name == "softmax_backward":
        return (
            lambda y, dy: torch._softmax_backward_data(dy, y, -1, y.dtype),
            (torch.softmax(x, -1), matrix()),
            3,
        )
    weight, bias = torch.randn(cols, device="cuda", dtype=dtype), torch.randn(
        cols, device="cuda", dtype=dtype
    )
    if name == "layernorm":
        return (
            lambda x, w, b: torch.nn.functional.layer_norm(x, (cols,), w, b, 1e-5),
            (x, weight, bias),
            2,
        )
    _, mean, rstd = torch.native_layer_norm(x, (cols,), weight, bias, 1e-5)
    return (
        lambda dy, x, mean, rstd, w, b: torch.ops.aten.native_layer_norm_backward(
            dy, x, [cols], mean, rstd, w, b, [True, True, True]
        ),
        (matrix(), x, mean, rstd, weight, bias),
        3,
    )


def cells(options):
    """Operator, type, rows and columns of every line; each tensor has 512 MB."""
    for name in options.operators.split(","):
        for dtype in options.dtypes.split(","):
            for cols in map(int, options.cols.split(",")):
                yield name, dtype, (1 << 29) // (cols * DTYPES[dtype].itemsize), cols


def compile_ahead(name, dtype, rows, cols):
    """Fills torch.compile's cache. A kernel that cannot be compiled is reported when it is to be
    timed."""
    function, arguments, _ = functions(name, rows, cols, DTYPES[dtype])
    try:
        torch.compile(function, dynamic=False)(*arguments)
    except Exception:
        pass


def main():
    parser = flags(__doc__, "40,20s")
    parser.add_argument(
        "--operators", default="softmax,softmax_backward,layernorm,layernorm_backward"
    )
    parser.add_argument("--dtypes", default="float32,float16,bfloat16")
    parser.add_argument("--cols", default="256,1024,4096,16384,65536,262144")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument(
        "--ahead",
        type=int,
        default=0,
        help="processes that let torch.compile make its kernels first",
    )
    options = parser.parse_args()

    if options.ahead:
        with concurrent.futures.ProcessPoolExecutor(
            options.ahead, multiprocessing.get_context("spawn")
        ) as pool:
            list(pool.map(compile_ahead, *zip(*cells(options))))
    probe = probed_gbps(options.atunner)
    flush = announce("copies: GB/s read + written")
    copy = copied_gbps(flush)
    print(f"copy of PyTorch {copy:.0f} GB/s, of the probe {probe:.0f} GB/s")
    print(
        f"{'operator':<19}{'dtype':<10}{'shape':<16}{'naive us':>10}{'eager us':>10}"
        f"{'compile us':>11}{'atunner us':>11}{'GB/s':>7}{'% probe':>8}{'% copy':>7}{'% roof':>7}"
        f"{'x eager':>8}{'x comp.':>8}  trials/s busy%"
    )
    over_eager, over_compile, shares = [], [], []
    for name, dtype, rows, cols in cells(options):
        function, arguments, tensors = functions(name, rows, cols, DTYPES[dtype])
        eager = time_us(function, arguments, flush)
        compiled = math.nan if options.no_compile else compiled_us(function, arguments, flush)
        del arguments
        torch.cuda.empty_cache()
        run = run_atunner(
            options.atunner, [name, "--input-shape", f"{rows},{cols}"], dtype, options.budget
        )
        label = f"{name:<19}{dtype:<10}{f'{rows}x{cols}':<16}"
        naive, best = naive_us(run), best_us(run)
        if math.isnan(best):
            print(f"{label}{'':>10}{eager:>10.1f}{compiled:>11.1f}  {why_not(run)}", flush=True)
            continue
        rate = tensors * (1 << 29) / best / 1e3
        shares.append(rate / probe)
        over_eager.append(eager / best)
        if not math.isnan(compiled):
            over_compile.append(compiled / best)
        print(
            f"{label}{naive:>10.1f}{eager:>10.1f}{compiled:>11.1f}{best:>11.1f}{rate:>7.0f}"
            f"{100 * rate / probe:>8.1f}{100 * rate / copy:>7.1f}"
            f"{run['floor_ns'] / best / 10:>7.1f}"
            f"{eager / best:>8.2f}{compiled / best:>8.2f}  {run['trials'] / run['seconds']:.1f} "
            f"{100 * run['judge_seconds'] / run['seconds']:.0f}",
            flush=True,
        )

    print(
        f"geometric means of {len(shares)} rows: {geometric_mean(over_eager):.2f}x eager, "
        f"{geometric_mean(over_compile):.2f}x torch.compile, "
        f"{100 * geometric_mean(shares):.1f} % of the probed copy bandwidth; lowest "
        f"{100 * min(shares, default=math.nan):.1f} %, {min(over_compile, default=math.nan):.2f}x "
        "torch.compile"
    )


if __name__ == "__main__":
    main()
