"""Compares steps over all parameters of a model with PyTorch on the GPU of this machine:
optimizers, and unscaling or clipping of gradients.

Columns: "foreach" is the same arithmetic by torch's _foreach functions; "fused" is PyTorch's
in-place kernel (only for optimizers); "compile" is torch.compile of "foreach". The runtime launches
atunner's artifacts, whose results are compared with foreach's ("off": relative norm of the worst
tensor). All are captured in CUDA graphs, because launches with hundreds of tensors take the host
long. Times are medians of CUDA events; L2 is emptied by a write before each sample. "% copy" counts
every tensor as read and written once (clipping reads gradients twice, which is counted), relative
to PyTorch's device copy.

Usage: python3 bench/tensors.py --atunner build/atunner [--budget 20,6s] [--dtypes float32]
           [--only adamw] [--models gpt2,resnet50] [--no-compile]
       ATUNNER_RUNTIME names libatunner_runtime.so.
"""
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
    copied_gbps,
    flags,
    in_graph,
    launched,
    print_rows,
    run_atunner,
    time_us,
    why_not,
)  # noqa: E402

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8


def gpt2(width=768, layers=12, vocabulary=50257, positions=1024):
    of_layer = [
        (width,),
        (width,),
        (width, 3 * width),
        (3 * width,),
        (width, width),
        (width,),
        (width,),
        (width,),
        (width, 4 * width),
        (4 * width,),
        (4 * width, width),
        (width,),
    ]
    return [(vocabulary, width), (positions, width), *of_layer * layers, (width,), (width,)]


def resnet50():
    shapes, channels = [(64, 3, 7, 7), (64,), (64,)], 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            convolutions = [(width, channels, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)]
            if block == 0:
                convolutions.append((4 * width, channels, 1, 1))
            for shape in convolutions:
                shapes += [shape, shape[:1], shape[:1]]
            channels = 4 * width
    return [*shapes, (1000, 2048), (1000,)]


MODELS = {"gpt2": gpt2, "resnet50": resnet50}


def adamw(p, g, m, v):
    m, v = torch._foreach_lerp(m, g, 1 - BETA1), torch._foreach_addcmul(
        torch._foreach_mul(v, BETA2), g, g, 1 - BETA2
    )
    root = torch._foreach_add(torch._foreach_sqrt(torch._foreach_div(v, 1 - BETA2)), EPSILON)
    return torch._foreach_addcdiv(p, m, root, -RATE / (1 - BETA1)), m, v


def fused_adamw(p, g, m, v):
    steps = [torch.ones((), device="cuda") for _ in p]
    copies = [[tensor.clone() for tensor in each] for each in (p, g, m, v)]
    return lambda: torch._fused_adamw_(
        *copies,
        [],
        steps,
        lr=RATE,
        beta1=BETA1,
        beta2=BETA2,
        weight_decay=0.0,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
    )


def sgd(p, g, v):
    v = torch._foreach_add(torch._foreach_mul(v, 0.9), g)
    return torch._foreach_add(p, v, alpha=-RATE), v


def clip_grad_norm(g):
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(g)))
    return (torch._foreach_mul(g, (1 / (norm + 1e-6)).clamp(max=1)),)


def unscale(scale, g):
    scaled = torch._foreach_mul(g, 1 / scale[0])
    return scaled, ~torch.isfinite(torch.stack(torch._foreach_norm(g, float("inf")))).all().reshape(
        1
    )


# operator: the function, its lists of tensors, how often each list's elements move, what PyTorch
# has in one kernel, attributes
ROWS = {
    "adamw": (
        adamw,
        "pgmv",
        7,
        fused_adamw,
        {
            "lr": RATE,
            "beta1": BETA1,
            "beta2": BETA2,
            "eps": EPSILON,
            "weight_decay": 0.0,
            "step": 1,
        },
    ),
    "sgd": (sgd, "pgv", 5, None, {"lr": RATE, "momentum": 0.9, "weight_decay": 0.0}),
    "clip_grad_norm": (clip_grad_norm, "g", 3, None, {"max_norm": 1.0}),
    "unscale": (unscale, "g", 2, None, {}),
}


def graph_us(function, flush):
    """Time in us of the function's launches, captured once in a CUDA graph; nan if capturing
    fails."""
    try:
        return time_us(in_graph(function), (), flush)
    except Exception as error:
        print(f"  {error}"[:200])
        return math.nan


def in_order(lists, shared):
    """The arguments tensor by tensor, in the order of the operator's graph."""
    return [*shared, *(tensor for each in zip(*lists) for tensor in each)]


def measure(row, options, flush, copy):
    operator, model, name = row
    function, letters, moves, fused, attributes = ROWS[operator]
    shapes, dtype = MODELS[model](), DTYPES[name]
    lists = [
        [
            torch.rand(shape, device="cuda", dtype=dtype)
            if letter == "v" and operator == "adamw"
            else torch.randn(shape, device="cuda", dtype=dtype)
            for shape in shapes
        ]
        for letter in letters
    ]
    shared = [torch.full((1,), 8.0, device="cuda")] if operator == "unscale" else []
    arguments = [*shared, *lists]
    foreach = graph_us(lambda: function(*arguments), flush)
    one_kernel = graph_us(fused(*lists), flush) if fused else math.nan
    compiled = math.nan
    if not options.no_compile:
        torch._dynamo.reset()
        step = torch.compile(function, dynamic=False)
        compiled = graph_us(lambda: step(*arguments), flush)
    torch.cuda.empty_cache()
    with tempfile.TemporaryDirectory() as folder:
        flags_of_row = [operator, "--input-shape", *(",".join(map(str, shape)) for shape in shapes)]
        for key, value in attributes.items():
            flags_of_row += ["--attr", f"{key}={value}"]
        answer = run_atunner(
            options.atunner, [*flags_of_row, "--no-baselines"], name, options.budget, folder
        )
        if "best" not in answer:
            return (
                f"{foreach:>9.1f} {one_kernel:>9.1f} {compiled:>9.1f}   {why_not(answer)}",
                math.nan,
            )
        launch, outputs = launched(folder, in_order(lists, shared))
        us = graph_us(launch, flush)
    results = function(*arguments)
    wanted = in_order([each for each in results if isinstance(each, (list, tuple))], []) + [
        each for each in results if isinstance(each, torch.Tensor)
    ]
    off = max(
        (
            (y.flatten().float() - z.flatten().float()).norm() / z.float().norm().clamp_min(1e-30)
        ).item()
        for y, z in zip(outputs, wanted, strict=True)
    )
    moved = moves * sum(map(math.prod, shapes)) * dtype.itemsize
    best = min(each for each in (foreach, one_kernel, compiled) if not math.isnan(each))
    return (
        f"{len(shapes):>7} {foreach:>9.1f} {one_kernel:>9.1f} {compiled:>9.1f} {us:>9.1f} "
        f"{100 * moved / us / 1e3 / copy:>7.1f} {best / us:>6.2f} {off:>8.1e}"
        f"  {answer.get('trials', 0):>3} in {answer.get('seconds', 0):.0f} s"
    ), best / us


def main():
    parser = flags(__doc__, "20,6s", "float32", ",".join(ROWS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no row after so many"
    )
    options = parser.parse_args()
    flush = announce("times in us")
    copy = copied_gbps(flush)
    print(
        f"{'operator':<15} {'model':<9} {'dtype':<9} {'tensors':>7} {'foreach':>9} {'fused':>9} "
        f"{'compile':>9} {'atunner':>9} {'% copy':>7} {'ratio':>6} {'off':>8}  trials"
    )
    rows = [
        (f"{operator:<15} {model:<9} {name:<9}", (operator, model, name))
        for operator in options.only.split(",")
        for model in options.models.split(",")
        for name in options.dtypes.split(",")
    ]
    print_rows(rows, options.seconds, lambda row: measure(row, options, flush, copy))


if __name__ == "__main__":
    main()
