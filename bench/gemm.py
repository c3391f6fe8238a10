"""Compares matrix products in 16 bits with the best of cuBLAS on the GPU of this machine: 40
shapes.

cuBLAS is timed through torch.matmul and through each algorithm that cublasLt's heuristics propose.
Then three are timed in turns on the same tensors: cuBLAS's own choice, the fastest proposal, and
atunner's kernel, which the runtime launches. `ratio` is the faster of the first two / atunner.
"off" is the relative distance of the results. Times are medians of CUDA events; L2 is emptied by a
write before each sample.

Usage: python3 bench/gemm.py --atunner build/atunner [--budget 40,10s] [--only decode,square]
           [--dtypes bfloat16]
       ATUNNER_RUNTIME names libatunner_runtime.so.
"""
import ctypes
import math
import os
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]
from common import (
    DTYPES,
    announce,
    flags,
    in_turns_us,
    launched,
    print_rows,
    run_atunner,
    why_not,
)  # noqa: E402

# M, N, K. Layers of Llama 3 8B and 70B, Mistral, Qwen; M is the number of tokens.
SHAPES = {
    "square": [(n, n, n) for n in (1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384)],
    "skinny": [
        (8192, 128, 8192),
        (16384, 256, 4096),
        (128, 8192, 8192),
        (256, 16384, 4096),
        (128, 4096, 4096),
    ],
    "decode": [
        (1, 4096, 4096),
        (1, 28672, 4096),
        (1, 128256, 4096),
        (2, 4096, 14336),
        (2, 6144, 4096),
        (4, 1024, 8192),
        (4, 28672, 8192),
        (8, 28672, 4096),
        (8, 4096, 4096),
        (16, 6144, 4096),
        (16, 4096, 14336),
        (32, 8192, 28672),
        (64, 4096, 14336),
        (64, 28672, 4096),
    ],
    "deep": [(512, 512, 16384), (256, 256, 32768), (1024, 1024, 16384), (64, 64, 65536)],
    "prefill": [
        (512, 28672, 4096),
        (2048, 6144, 4096),
        (2048, 4096, 14336),
        (4096, 14336, 4096),
        (4096, 4096, 128),
    ],
    "odd": [(1000, 1111, 999), (4097, 4097, 4097), (2047, 2049, 2051), (333, 5003, 1021)],
}
CUDA_TYPES = {torch.float16: 2, torch.bfloat16: 14, torch.float8_e4m3fn: 28}


class CublasLt:
    """The algorithms that cublasLt's heuristics propose for c = a · b, row-major, computed as cᵀ =
    bᵀ · aᵀ, column-major. For 8-bit floats b is [n, k]."""

    class Proposal(ctypes.Structure):  # cublasLtMatmulHeuristicResult_t
        _fields_ = [
            ("algorithm", ctypes.c_uint64 * 8),
            ("workspace", ctypes.c_size_t),
            ("state", ctypes.c_int),
            ("waves", ctypes.c_float),
            ("reserved", ctypes.c_int * 4),
        ]

    def __init__(self):
        self.library = ctypes.CDLL(f"libcublasLt.so.{torch.version.cuda.split('.')[0]}")
        self.handle = ctypes.c_void_p()
        self.call("cublasLtCreate", ctypes.byref(self.handle))
        self.workspace = torch.empty(64 << 20, dtype=torch.int8, device="cuda")

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: status {status}")

    def layout(self, rows, columns, dtype):
        made = ctypes.c_void_p()
        self.call(
            "cublasLtMatrixLayoutCreate",
            ctypes.byref(made),
            CUDA_TYPES[dtype],
            ctypes.c_uint64(rows),
            ctypes.c_uint64(columns),
            ctypes.c_int64(rows),
        )
        return made

    def set(self, operation, attribute, value):
        self.call(
            "cublasLtMatmulDescSetAttribute",
            operation,
            attribute,
            ctypes.byref(value),
            ctypes.c_size_t(ctypes.sizeof(value)),
        )

    def functions(self, a, b, c, count=8, fast=False, scales=()):
        """`scales`: the scales of a and b, for 8-bit floats. `fast`: sums in the tensor cores'
        precision."""
        (m, k), n = a.shape, c.shape[1]
        compute_32f, real_32f, workspace_bytes = 68, 0, 1
        operation, preference = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cublasLtMatmulDescCreate", ctypes.byref(operation), compute_32f, real_32f)
        self.call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        limit = ctypes.c_size_t(self.workspace.numel())
        self.call(
            "cublasLtMatmulPreferenceSetAttribute",
            preference,
            workspace_bytes,
            ctypes.byref(limit),
            ctypes.c_size_t(8),
        )
        of_b, of_a, of_c = (
            self.layout(n, k, b.dtype),
            self.layout(k, m, a.dtype),
            self.layout(n, m, c.dtype),
        )
        if scales:
            transpose_a, scale_a, scale_b, fast_sums = 3, 17, 18, 25
            of_b = self.layout(k, n, b.dtype)
            self.set(operation, transpose_a, ctypes.c_int32(1))
            self.set(operation, scale_a, ctypes.c_void_p(scales[1].data_ptr()))
            self.set(operation, scale_b, ctypes.c_void_p(scales[0].data_ptr()))
            self.set(operation, fast_sums, ctypes.c_int8(fast))
        proposals, found = (self.Proposal * count)(), ctypes.c_int()
        self.call(
            "cublasLtMatmulAlgoGetHeuristic",
            self.handle,
            operation,
            of_b,
            of_a,
            of_c,
            of_c,
            preference,
            count,
            proposals,
            ctypes.byref(found),
        )
        one, zero = ctypes.c_float(1), ctypes.c_float(0)

        def make(proposal):
            def run(a, b, c):
                pointers = [ctypes.c_void_p(t.data_ptr()) for t in (b, a, c)]
                self.call(
                    "cublasLtMatmul",
                    self.handle,
                    operation,
                    ctypes.byref(one),
                    pointers[0],
                    of_b,
                    pointers[1],
                    of_a,
                    ctypes.byref(zero),
                    pointers[2],
                    of_c,
                    pointers[2],
                    of_c,
                    proposal.algorithm,
                    ctypes.c_void_p(self.workspace.data_ptr()),
                    ctypes.c_size_t(self.workspace.numel()),
                    ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
                )

            return run

        return [make(proposals[i]) for i in range(found.value) if proposals[i].state == 0]


def fastest(functions, flush):
    """The fastest of some functions, by few samples."""
    times = in_turns_us(functions, flush, 5)
    return functions[times.index(min(times))]


def measure(shape, name, options, lt, flush):
    """The text of the row and its ratio."""
    m, n, k = shape
    a, b, c = (torch.randn(s, device="cuda", dtype=DTYPES[name]) for s in ((m, k), (k, n), (m, n)))

    def own():
        return torch.matmul(a, b, out=c)

    best = fastest([own, *(lambda run=run: run(a, b, c) for run in lt.functions(a, b, c))], flush)
    with tempfile.TemporaryDirectory() as folder:
        answer = run_atunner(
            options.atunner,
            ["matmul", "--input-shape", f"{m},{n},{k}", "--no-baselines"],
            name,
            options.budget,
            folder,
        )
        if "best" not in answer:
            return why_not(answer), math.nan
        ours, (found,) = launched(folder, (a, b))
        times = in_turns_us([own, best, ours], flush)
    us, off = times[2], ((found.float() - own().float()).norm() / c.float().norm()).item()
    rates = f"{2 * m * n * k / us / 1e6:>8.0f} {2 * (m * k + k * n + m * n) / us / 1e3:>6.0f}"
    ratio = min(times[:2]) / us
    return (
        f"{times[0]:>9.1f} {times[1]:>9.1f} {us:>9.1f} {rates} {ratio:>6.2f}  off {off:.0e}, "
        f"{answer['trials']:>3} in {answer.get('seconds', 0):.0f} s",
        ratio,
    )


def main():
    parser = flags(__doc__, "40,10s", "bfloat16", ",".join(SHAPES))
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no row after so many"
    )
    options = parser.parse_args()
    lt = CublasLt()
    flush = announce("times in us")
    print(
        f"{'M x N x K':<20} {'dtype':<9} {'cuBLAS':>9} {'best alg.':>9} {'atunner':>9} "
        f"{'TFLOP/s':>8} {'GB/s':>6} {'ratio':>6}  trials"
    )
    rows = [
        (f"{'x'.join(map(str, shape)):<20} {name:<9}", (shape, name))
        for name in options.dtypes.split(",")
        for kind in options.only.split(",")
        for shape in SHAPES[kind]
    ]
    print_rows(rows, options.seconds, lambda row: measure(*row, options, lt, flush))


if __name__ == "__main__":
    main()
