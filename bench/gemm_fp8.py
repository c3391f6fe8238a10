"""Products of 8-bit floats (e4m3) on the GPU of this machine: atunner's fp8_linear beside PyTorch and the best that cuBLAS has.

cuBLAS through each algorithm that cublasLt's heuristics propose, with one scale per tensor, summed in float32 ("exact") or as the tensor cores
do it ("fast"); torch._scaled_mm with a scale per row. Errors are rms against float64, over rms of the result, of 128 rows.
`accuracy` default is held against "exact", fast against both. All are medians of CUDA events with L2 emptied before each sample; the library's before and after atunner, of which the lower one counts.
Usage: python3 bench/gemm_fp8.py --atunner build/atunner [--budget 16,4s] [--only square] [--scales per_tensor]
"""
import argparse
import math
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import print_rows, run_atunner, time_us  # noqa: E402
from gemm import CublasLt  # noqa: E402

SHAPES = {
    "square": [(n, n, n) for n in (4096, 8192, 2048, 1024)],
    "prefill": [(2048, 4096, 14336), (4096, 14336, 4096), (2048, 6144, 4096), (512, 28672, 4096)],
    "decode": [(1, 4096, 4096), (16, 4096, 14336), (16, 6144, 4096), (64, 28672, 4096), (128, 8192, 8192)],
    "odd": [(1000, 1111, 1008), (333, 5003, 1021)],
}


class Product:
    def __init__(self, shape, lt, flush):
        m, n, k = shape
        self.lt, self.flush = lt, flush
        self.x = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
        self.w = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn)
        self.y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        self.one = torch.ones(1, device="cuda")
        self.by_row, self.by_column = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")

    def cublas(self, fast):
        """us of the fastest algorithm, and its error; NaN where there is none."""
        try:
            runs = self.lt.functions(self.x, self.w, self.y, fast=fast, scales=(self.one, self.one))
        except RuntimeError:
            return math.nan, math.nan
        times = [(time_us(run, (self.x, self.w, self.y), self.flush, 9), run) for run in runs]
        if not times:
            return math.nan, math.nan
        us, run = min(times, key=lambda each: each[0])
        run(self.x, self.w, self.y)
        exact = self.x[:128].double() @ self.w.double().t()
        return us, ((self.y[:128].double() - exact).norm() / exact.norm()).item()

    def rowwise(self):
        try:
            return time_us(lambda x, w, a, b: torch._scaled_mm(x, w.t(), a, b, out_dtype=torch.bfloat16, use_fast_accum=True),
                           (self.x, self.w, self.by_row, self.by_column), self.flush, 9)
        except RuntimeError:
            return math.nan


def measure(shape, options, lt, flush):
    m, n, k = shape
    product = Product(shape, lt, flush)
    exact, fast, rowwise = product.cublas(False), product.cublas(True), product.rowwise()
    del product
    torch.cuda.empty_cache()
    operator = ["fp8_linear", "--input-shape", f"{m},{k}", f"{n},{k}", "--accuracy", options.accuracy]
    answer = run_atunner(options.atunner, operator + (["--attr", "per_tensor=true"] if options.scales == "per_tensor" else []), "bfloat16", options.budget)
    found = (answer.get("best") or {}).get("measurement")
    left = f"{exact[0]:>8.1f} {exact[1]:.1e} {fast[0]:>8.1f} {fast[1]:.1e} {rowwise:>8.1f}"
    if not found:
        return f"{left}   {answer.get('error', {}).get('what', 'no correct kernel')[:90]}", math.nan
    product = Product(shape, lt, flush)
    again = min(product.cublas(False)[0], exact[0]), min(product.cublas(True)[0], fast[0])
    us = found["median_ns"] / 1e3
    best = min((t for t in again[:1 if options.accuracy != "fast" else 2] if not math.isnan(t)), default=rowwise)
    values = (answer.get("best") or {}).get("configuration")
    return (f"{left} {us:>9.1f} {2 * m * n * k / us / 1e6:>8.0f} {again[0] / us:>7.2f} {again[1] / us:>7.2f} {rowwise / us:>7.2f} {answer.get('trials', 0):>4} in {answer.get('seconds', 0):.0f} s  {values}", best / us)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument("--budget", default="16,4s")
    parser.add_argument("--only", default=",".join(SHAPES))
    parser.add_argument("--scales", default="per_row", choices=["per_row", "per_tensor"])
    parser.add_argument("--accuracy", default="default", choices=["strict", "default", "fast"])
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no row after so many")
    options = parser.parse_args()
    lt = CublasLt()
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; times in us, atunner's scales {options.scales}, accuracy {options.accuracy}")
    print(f"{'M x N x K':<18} {'exact':>8} {'error':>7} {'fast':>8} {'error':>7} {'row-wise':>8} {'atunner':>9} {'TFLOP/s':>8} {'exact/':>7} {'fast/':>7} {'rows/':>7}  trials")
    rows = [(f"{'x'.join(map(str, shape)):<18}", shape) for kind in options.only.split(",") for shape in SHAPES[kind]]
    print_rows(rows, options.seconds, lambda shape: measure(shape, options, lt, flush))


if __name__ == "__main__":
    main()
