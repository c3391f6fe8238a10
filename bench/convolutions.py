"""Compares convolutions of real models with cuDNN on the GPU of this machine.

cuDNN runs through PyTorch (benchmark mode, TF32 as PyTorch allows it). Both have the same layout
and tensors and are timed in turns. The runtime launches atunner's artifacts, whose results are
compared with cuDNN's. Times are medians of CUDA events; L2 is emptied by a write before each
sample. The ratio is cuDNN's time / atunner's time; geometric means by class come last.

Rows are appended to --out as they come, and a later run continues behind them. With `--ahead 4` all
rows are tuned first, four at a time on the one GPU, so that the searches see each other's work as
noise; then the winners are timed one after the other. So 80 rows need less than five minutes.

Usage: python3 bench/convolutions.py --atunner build/atunner [--dtypes bfloat16,float32]
           [--only 3d,transposed] [--budget 20,8s] [--seconds 80] [--ahead 4]
       ATUNNER_RUNTIME names libatunner_runtime.so.
"""
import concurrent.futures
import json
import math
import os
import sys
import tempfile
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]
import atunner_runtime  # noqa: E402
from common import (
    DTYPES,
    announce,
    flags,
    geometric_mean,
    in_turns_us,
    run_atunner,
    scratch,
    why_not,
)  # noqa: E402

# class, model, operator, image, weights, stride, padding, dilation, groups
F, T, DX, DW = "conv", "conv_transpose", "by image", "by filter"
ROWS = [
    ("2d", "resnet50 7x7", F, (32, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1, 1),
    ("2d", "resnet50 56 3x3", F, (32, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, 1),
    ("2d", "resnet50 56 1x1 up", F, (32, 64, 56, 56), (256, 64, 1, 1), 1, 0, 1, 1),
    ("2d", "resnet50 28 3x3", F, (32, 128, 28, 28), (128, 128, 3, 3), 1, 1, 1, 1),
    ("2d", "resnet50 14 3x3", F, (32, 256, 14, 14), (256, 256, 3, 3), 1, 1, 1, 1),
    ("2d", "resnet50 7 3x3", F, (32, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1, 1),
    ("2d", "resnet50 56 3x3 s2", F, (32, 128, 56, 56), (128, 128, 3, 3), 2, 1, 1, 1),
    ("2d", "resnet50 14 1x1 down", F, (32, 1024, 14, 14), (256, 1024, 1, 1), 1, 0, 1, 1),
    ("2d", "stable diffusion 64 3x3", F, (2, 320, 64, 64), (320, 320, 3, 3), 1, 1, 1, 1),
    ("2d", "stable diffusion 32 3x3", F, (2, 640, 32, 32), (640, 640, 3, 3), 1, 1, 1, 1),
    ("2d", "vae 256 3x3", F, (1, 128, 256, 256), (128, 128, 3, 3), 1, 1, 1, 1),
    ("2d", "deeplab 33 3x3 d2", F, (8, 256, 33, 33), (256, 256, 3, 3), 1, 2, 2, 1),
    ("grouped", "resnext50 56 g32", F, (32, 128, 56, 56), (128, 4, 3, 3), 1, 1, 1, 32),
    ("grouped", "regnet 28 g8", F, (32, 192, 28, 28), (192, 24, 3, 3), 1, 1, 1, 8),
    ("1d", "wavenet d8", F, (8, 128, 16000), (256, 128, 2), 1, 8, 8, 1),
    ("1d", "wavenet d64 k3", F, (8, 64, 16000), (64, 64, 3), 1, 64, 64, 1),
    ("1d", "whisper k3 s2", F, (16, 768, 3000), (768, 768, 3), 2, 1, 1, 1),
    ("3d", "unet 128 3x3x3", F, (1, 32, 128, 128, 128), (32, 32, 3, 3, 3), 1, 1, 1, 1),
    ("3d", "unet 64 3x3x3", F, (2, 64, 64, 64, 64), (64, 64, 3, 3, 3), 1, 1, 1, 1),
    ("3d", "unet 32 3x3x3", F, (2, 128, 32, 32, 32), (128, 128, 3, 3, 3), 1, 1, 1, 1),
    ("3d", "unet 64 3x3x3 s2", F, (2, 64, 64, 64, 64), (128, 64, 3, 3, 3), 2, 1, 1, 1),
    ("3d", "video 8x56 3x3x3", F, (4, 64, 8, 56, 56), (64, 64, 3, 3, 3), 1, 1, 1, 1),
    ("3d", "video patches 2x4x4", F, (4, 3, 16, 224, 224), (96, 3, 4, 4, 4), 4, 0, 1, 1),
    ("transposed", "unet 2x2 s2 64", T, (8, 256, 64, 64), (256, 128, 2, 2), 2, 0, 1, 1),
    ("transposed", "unet 2x2 s2 128", T, (8, 128, 128, 128), (128, 64, 2, 2), 2, 0, 1, 1),
    ("transposed", "dcgan 4x4 s2 16", T, (32, 512, 16, 16), (512, 256, 4, 4), 2, 1, 1, 1),
    ("transposed", "dcgan 4x4 s2 32", T, (32, 256, 32, 32), (256, 128, 4, 4), 2, 1, 1, 1),
    ("transposed", "unet 3d 2x2x2 s2", T, (2, 128, 32, 32, 32), (128, 64, 2, 2, 2), 2, 0, 1, 1),
    ("transposed", "hifigan k16 s8", T, (8, 256, 1024), (256, 128, 16), 8, 4, 1, 1),
    ("depthwise", "mobilenet 112 3x3", F, (32, 32, 112, 112), (32, 1, 3, 3), 1, 1, 1, 32),
    ("depthwise", "mobilenet 112 3x3 s2", F, (32, 96, 112, 112), (96, 1, 3, 3), 2, 1, 1, 96),
    ("depthwise", "mobilenet 14 3x3", F, (32, 384, 14, 14), (384, 1, 3, 3), 1, 1, 1, 384),
    ("depthwise", "efficientnet 28 5x5", F, (32, 240, 28, 28), (240, 1, 5, 5), 1, 2, 1, 240),
    ("depthwise", "convnext 56 7x7", F, (32, 96, 56, 56), (96, 1, 7, 7), 1, 3, 1, 96),
    ("depthwise", "convnext 14 7x7", F, (32, 384, 14, 14), (384, 1, 7, 7), 1, 3, 1, 384),
    ("depthwise", "conformer k31", F, (16, 512, 1000), (512, 1, 31), 1, 15, 1, 512),
    ("depthwise", "mamba k4", F, (8, 4096, 2048), (4096, 1, 4), 1, 3, 1, 4096),
    ("gradient", "resnet50 56 3x3 dx", DX, (32, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, 1),
    ("gradient", "resnet50 28 3x3 s2 dx", DX, (32, 128, 56, 56), (128, 128, 3, 3), 2, 1, 1, 1),
    ("gradient", "unet 32 3x3x3 dx", DX, (2, 128, 32, 32, 32), (128, 128, 3, 3, 3), 1, 1, 1, 1),
    ("filter", "resnet50 56 3x3 dw", DW, (32, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, 1),
    ("filter", "resnet50 14 3x3 dw", DW, (32, 256, 14, 14), (256, 256, 3, 3), 1, 1, 1, 1),
    ("filter", "resnet50 56 1x1 up dw", DW, (32, 64, 56, 56), (256, 64, 1, 1), 1, 0, 1, 1),
    ("filter", "resnet50 56 3x3 s2 dw", DW, (32, 128, 56, 56), (128, 128, 3, 3), 2, 1, 1, 1),
    ("filter", "unet 32 3x3x3 dw", DW, (2, 128, 32, 32, 32), (128, 128, 3, 3, 3), 1, 1, 1, 1),
    ("filter", "stable diffusion 32 3x3 dw", DW, (2, 640, 32, 32), (640, 640, 3, 3), 1, 1, 1, 1),
    ("filter", "video 8x56 3x3x3 dw", DW, (4, 64, 8, 56, 56), (64, 64, 3, 3, 3), 1, 1, 1, 1),
    ("filter", "wavenet d64 k3 dw", DW, (8, 64, 16000), (64, 64, 3), 1, 64, 64, 1),
    ("filter", "resnet50 14 1x1 down dw", DW, (32, 1024, 14, 14), (256, 1024, 1, 1), 1, 0, 1, 1),
    ("filter", "resnext50 56 g32 dw", DW, (32, 128, 56, 56), (128, 4, 3, 3), 1, 1, 1, 32),
    ("filter", "mobilenet 112 3x3 dw", DW, (32, 32, 112, 112), (32, 1, 3, 3), 1, 1, 1, 32),
    ("filter", "convnext 14 7x7 dw", DW, (32, 384, 14, 14), (384, 1, 7, 7), 1, 3, 1, 384),
    ("filter", "conformer k31 dw", DW, (16, 512, 1000), (512, 1, 31), 1, 15, 1, 512),
]


def command_of(row, dtype):
    """atunner's flags for a row."""
    _, _, operator, image, weights, stride, padding, dilation, groups = row
    flags = [
        "conv_backward" if operator in (DX, DW) else operator,
        "--input-shape",
        ",".join(map(str, image)),
        ",".join(map(str, weights)),
        "--attr",
        f"stride={stride}",
        f"padding={padding}",
        f"dilation={dilation}",
        f"groups={groups}",
    ]
    flags += {DX: ["wrt=x"], DW: ["wrt=w"]}.get(operator, [])
    return flags + (["--accuracy", "fast"] if dtype == "float32" else []) + ["--no-baselines"]


def task(operator, image, weights, stride, padding, dilation, groups, dtype):
    """PyTorch's function, its arguments under atunner's names, and the number of operations."""
    rank = len(image) - 2
    x = torch.randn(image, device="cuda", dtype=dtype)
    w = torch.randn(weights, device="cuda", dtype=dtype)
    same = [[each] * rank for each in (stride, padding, dilation)]

    def forward(x, w):
        return torch.ops.aten.convolution(x, w, None, *same, operator == T, [0] * rank, groups)

    y = forward(x, w)
    flops = 2 * w.numel() * (x if operator == T else y).numel() // weights[0]
    if operator in (F, T):
        return forward, {"x": x, "w": w}, flops
    by_filter = operator == DW

    def backward(dy, x, w):
        return torch.ops.aten.convolution_backward(
            dy, x, w, None, *same, False, [0] * rank, groups, [not by_filter, by_filter, False]
        )[by_filter]

    return backward, {"dy": torch.randn_like(y), "x": x, "w": w}, flops


def beside(folder, tensors, function, flush):
    """Times in us of the artifact and of cuDNN's function on the same tensors, in turns, and the
    distance of the results."""
    artifacts = atunner_runtime.ArtifactSet(folder)
    kernel = artifacts.choose(dims=artifacts[0].dims)
    (result,) = [each for each in kernel.arguments if each.role == atunner_runtime.Role.OUTPUT]
    wanted = function(*tensors.values())
    y = torch.empty(result.shape, device="cuda", dtype=wanted.dtype)
    named = {
        each.name: y if each is result else tensors[each.name] for each in kernel.arguments
    } | scratch(kernel)
    ours, theirs = in_turns_us(
        [lambda: kernel(**named), lambda: function(*tensors.values())], flush
    )
    return ours, theirs, ((y.double() - wanted.double()).norm() / wanted.double().norm()).item()


def search(options, row, dtype, folder):
    """Tunes a row; the artifact goes into `folder`. Returns the seconds it took and atunner's
    answer."""
    begun = time.monotonic()
    where = ["--store", folder + ".db", "--compile-threads", "4"] if options.ahead else []
    answer = run_atunner(
        options.atunner, command_of(row, dtype) + where, dtype, options.budget, folder
    )
    return round(time.monotonic() - begun, 1), answer


def measure(options, row, dtype, flush, folder, ahead=None):
    function, tensors, flops = task(*row[2:], DTYPES[dtype])
    seconds, answer = ahead or search(options, row, dtype, folder)
    error, ours, theirs = why_not(answer), None, math.nan
    if not error:
        try:
            ours, theirs, apart = beside(folder, tensors, function, flush)
            error = "" if apart < 5e-3 else f"cuDNN's result is {apart:.1e} away"
        except (RuntimeError, KeyError) as reason:
            error = str(reason)[:200]
    return {
        "class": row[0],
        "name": row[1],
        "dtype": dtype,
        "cudnn_us": theirs,
        "atunner_us": None if error else ours,
        "flops": flops,
        "seconds": seconds,
        "spent": answer.get("spent"),
        "configuration": (answer.get("best") or {}).get("configuration", ""),
        "error": error,
    }


def measured(options, tasks, flush):
    """The figures of the rows, one after the other; with --ahead after all searches."""
    if not options.ahead:
        for row, dtype in tasks:
            with tempfile.TemporaryDirectory() as folder:
                yield measure(options, row, dtype, flush, folder)
        return
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(
        options.ahead
    ) as pool:
        folders = [os.path.join(root, str(i)) for i in range(len(tasks))]
        for folder in folders:
            os.mkdir(folder)
        searches = [
            pool.submit(search, options, row, dtype, folder)
            for (row, dtype), folder in zip(tasks, folders)
        ]
        concurrent.futures.wait(searches, options.ahead_s)
        for each in searches:
            each.cancel()
        concurrent.futures.wait(searches)
        tuned = [each.result() if not each.cancelled() else None for each in searches]
        print(
            f"tuned ahead: {sum(each is not None for each in tuned)} of {len(tasks)} rows in "
            f"{time.monotonic() - begun:.0f} s",
            flush=True,
        )
        for (row, dtype), folder, answer in zip(tasks, folders, tuned):
            if answer is not None:
                yield measure(options, row, dtype, flush, folder, answer)


def main():
    parser = flags(__doc__, "20,8s", "bfloat16,float32")
    parser.add_argument("--out", default="convolutions.jsonl")
    parser.add_argument("--seconds", type=float, default=1e9, help="no row begins after them")
    parser.add_argument(
        "--ahead",
        type=int,
        default=0,
        help="rows that are tuned at the same time, before any is timed",
    )
    parser.add_argument("--ahead-s", type=float, default=170, help="no search begins after them")
    options = parser.parse_args()
    atunner_runtime.version()  # before anything is tuned: is there a library?
    torch.backends.cudnn.benchmark = True
    done = [json.loads(line) for line in open(options.out)] if os.path.exists(options.out) else []
    known = {(row["name"], row["dtype"]) for row in done}
    wanted = options.only.split(",") if options.only else []
    begun = time.monotonic()
    flush = announce("times in us")
    print(
        f"{'class':<11} {'convolution':<26} {'dtype':<9} {'cuDNN':>9} {'atunner':>9} "
        f"{'TFLOP/s':>8} {'ratio':>6} {'seconds':>7}"
    )
    tasks = [
        (row, dtype)
        for dtype in options.dtypes.split(",")
        for row in ROWS
        if (row[1], dtype) not in known
        and (not wanted or any(each == row[0] or each in row[1] for each in wanted))
    ]
    for row in measured(options, tasks, flush):
        done.append(row)
        with open(options.out, "a") as out:
            out.write(json.dumps(row) + "\n")
        ours, theirs = row["atunner_us"], row["cudnn_us"]
        figures = (
            f"{ours:>9.1f} {row['flops'] / ours / 1e6:>8.0f} {theirs / ours:>6.2f}"
            if ours
            else f"{'none':>9} {'':>8} {'':>6}"
        )
        print(
            f"{row['class']:<11} {row['name']:<26} {row['dtype']:<9} {theirs:>9.1f} {figures} "
            f"{row['seconds']:>7.1f} {row['error']}",
            flush=True,
        )
        if time.monotonic() - begun > options.seconds:
            break
    for dtype in options.dtypes.split(","):
        rows = [row for row in done if row["dtype"] == dtype and row["atunner_us"]]
        for name in [*dict.fromkeys(row["class"] for row in rows), None]:
            ratios = [
                row["cudnn_us"] / row["atunner_us"] for row in rows if name in (None, row["class"])
            ]
            print(
                f"{dtype:<9} {name or 'all':<11} {len(ratios):>3} rows, geometric mean "
                f"{geometric_mean(ratios):.2f}"
            )


if __name__ == "__main__":
    main()
