"""Compares matrix products, products inside of graphs, convolutions and attention with PyTorch on
the GPU of this machine: naive, PyTorch eager (cuBLAS, cuDNN), torch.compile and atunner.

Times are medians of CUDA events; L2 is emptied by a write before each sample. More shapes are in
bench/gemm.py, bench/convolutions.py and bench/attention.py.

Usage: python3 bench/products.py --atunner build/atunner [--budget 80,40s]
           [--only matmul,graphs,conv2d,attention]
"""
import math
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import (
    DTYPES,
    announce,
    best_us,
    compiled_us,
    flags,
    naive_us,
    run_atunner,
    time_us,
    why_not,
)  # noqa: E402

MATMULS = [(2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096)]
# operator, shapes, setting: heads of attention, experts of a layer, layers of Llama 3 8B, decoding
GRAPHS = [
    ("batched_matmul", [(64, 1024, 128), (64, 128, 1024)], ""),
    ("batched_matmul", [(64, 1024, 128), (64, 1024, 128)], "transpose_b"),
    ("batched_matmul", [(8, 2048, 4096), (8, 4096, 2048)], ""),
    ("batched_matmul", [(16, 512, 4096), (4096, 1024)], ""),
    ("batched_matmul", [(256, 128, 64), (256, 64, 128)], ""),
    ("triangular_matmul", [(4096, 4096), (4096, 4096)], ""),
    ("triangular_matmul", [(2048, 2048), (2048, 8192)], "upper"),
    ("linear", [(2048, 4096), (4096, 4096)], ""),
    ("matvec", [(4096, 14336)], ""),
    ("matvec", [(28672, 4096)], ""),
    ("matvec", [(128256, 4096)], ""),
]
# n, h, w, c, k, r, s, stride, padding
CONVS = [
    (64, 56, 56, 64, 64, 3, 3, 1, 1),
    (32, 28, 28, 128, 128, 3, 3, 1, 1),
    (32, 28, 28, 256, 256, 3, 3, 1, 1),
    (32, 56, 56, 256, 64, 1, 1, 1, 0),
]
# batch, heads, sequence, dim, causal
ATTENTIONS = [
    (4, 16, 4096, 128, False),
    (4, 16, 4096, 128, True),
    (4, 16, 4096, 64, False),
    (4, 8, 4096, 256, False),
]


def matmul(m, n, k, dtype):
    a, b = torch.randn(m, k, device="cuda", dtype=dtype), torch.randn(
        k, n, device="cuda", dtype=dtype
    )
    return torch.matmul, (a, b), 2 * m * n * k, ["matmul", "--input-shape", f"{m},{n},{k}"]


def graph(operator, shapes, setting, dtype):
    made = [torch.randn(*shape, device="cuda", dtype=dtype) / 8 for shape in shapes]
    a, *more = made
    call = {"matvec": torch.mv, "linear": torch.nn.functional.linear}.get(operator, torch.matmul)
    flops = 2 * a.numel() * (more[0].shape[-1] if more else 1)
    if operator == "matvec":
        more = [torch.randn(a.shape[1], device="cuda", dtype=dtype)]
    elif operator == "linear":
        flops = 2 * a.numel() * more[0].shape[0]
        more.append(torch.randn(more[0].shape[0], device="cuda", dtype=dtype))
    elif operator == "triangular_matmul":
        side = torch.triu if setting else torch.tril
        flops //= 2

        def call(a, b):
            return torch.matmul(side(a), b)

    elif setting:
        flops = 2 * a.numel() * more[0].shape[-2]

        def call(a, b):
            return torch.matmul(a, b.transpose(-1, -2))

    arguments = [operator, "--input-shape", *(",".join(map(str, shape)) for shape in shapes)]
    return call, (a, *more), flops, arguments + (["--attr", f"{setting}=true"] if setting else [])


def conv(n, h, w, c, k, r, s, stride, padding, dtype):
    x = torch.randn(n, c, h, w, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)
    f = torch.randn(k, c, r, s, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)
    p, q = (h + 2 * padding - r) // stride + 1, (w + 2 * padding - s) // stride + 1
    arguments = [
        "conv2d",
        "--input-shape",
        f"{n},{h},{w},{c}",
        f"{k},{r},{s}",
        "--attr",
        f"stride={stride}",
        f"padding={padding}",
    ]
    return (
        (lambda x, f: torch.nn.functional.conv2d(x, f, stride=stride, padding=padding)),
        (x, f),
        2 * n * p * q * k * c * r * s,
        arguments,
    )


def attention(b, h, s, d, causal, dtype):
    q, k, v = (torch.randn(b, h, s, d, device="cuda", dtype=dtype) for _ in range(3))

    def cudnn(q, k, v):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    flops = 4 * b * h * s * s * d / (2 if causal else 1)
    return (
        cudnn,
        (q, k, v),
        flops,
        [
            "flash_attention",
            "--input-shape",
            f"{b},{h},{s},{d}",
            "--attr",
            f"causal={str(causal).lower()}",
        ],
    )


def main():
    parser = flags(__doc__, "80,40s", "bfloat16,float16", "matmul,graphs,conv2d,attention")
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    flush = announce("all measured; TFLOP/s and time in us; ratio = library time / atunner time")
    print(
        f"{'operator':<52} {'dtype':<9} {'naive':>10} {'library':>9} {'compile':>9} {'atunner':>9}"
        f" {'TFLOP/s':>8} {'roof %':>6} {'ratio':>6}"
    )
    for kind, make, sizes in (
        ("matmul", matmul, MATMULS),
        ("graphs", graph, GRAPHS),
        ("conv2d", conv, CONVS),
        ("attention", attention, ATTENTIONS),
    ):
        if kind not in options.only.split(","):
            continue
        for size in sizes:
            for name in options.dtypes.split(","):
                function, arguments, flops, command = make(*size, DTYPES[name])
                library = time_us(function, arguments, flush)
                compiled = (
                    math.nan if options.no_compile else compiled_us(function, arguments, flush)
                )
                answer = run_atunner(options.atunner, command, name, options.budget)
                best, naive = best_us(answer), naive_us(answer)
                roof = answer.get("floor_ns", 0) / 1e3 / best * 100
                label = (
                    " ".join(command[:1] + command[2:]) if kind == "graphs" else f"{kind} {size}"
                )
                print(
                    f"{label:<52} {name:<9} {naive:>10.1f} {library:>9.1f} {compiled:>9.1f} "
                    f"{best:>9.1f} {flops / best / 1e6:>8.0f} {roof:>6.0f} "
                    f"{library / best:>6.2f} {why_not(answer)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
