"""Convolutions of real models on the GPU of this machine: cuDNN through PyTorch (benchmark mode, TF32 as PyTorch allows it) and
atunner, on the same layout, in pairs. Rows are written to --out as they come, and a later run goes on behind them; geometric means
by class come last.

Times are medians of CUDA events with L2 emptied by a write before each sample; cuDNN is timed before and after atunner, and the
smaller counts. ratio = cuDNN / atunner.
Usage: python3 bench/convolutions.py --atunner build/atunner [--dtypes bfloat16,float32] [--only 3d,transposed] [--budget 20,8s] [--seconds 80]
"""
import json
import os
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import DTYPES, flags, geometric_mean, run_atunner, time_us, why_not  # noqa: E402

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


def task(operator, image, weights, stride, padding, dilation, groups, dtype):
    """PyTorch's function with its arguments, operations, and atunner's flags."""
    rank = len(image) - 2
    x = torch.randn(image, device="cuda", dtype=dtype)
    w = torch.randn(weights, device="cuda", dtype=dtype)
    flags = ["--input-shape", ",".join(map(str, image)), ",".join(map(str, weights)), "--attr", f"stride={stride}", f"padding={padding}",
             f"dilation={dilation}", f"groups={groups}"]
    same = [[each] * rank for each in (stride, padding, dilation)]

    def forward(x, w):
        return torch.ops.aten.convolution(x, w, None, *same, operator == T, [0] * rank, groups)

    y = forward(x, w)
    flops = 2 * w.numel() * (x if operator == T else y).numel() // weights[0]
    if operator in (F, T):
        return forward, (x, w), flops, [operator, *flags]
    by_filter = operator == DW

    def backward(dy, x, w):
        return torch.ops.aten.convolution_backward(dy, x, w, None, *same, False, [0] * rank, groups, [not by_filter, by_filter, False])[by_filter]

    return backward, (torch.randn_like(y), x, w), flops, ["conv_backward", *flags, "wrt=w" if by_filter else "wrt=x"]


def measure(options, row, dtype, flush):
    function, arguments, flops, command = task(*row[2:], DTYPES[dtype])
    before = time_us(function, arguments, flush)
    begun = time.monotonic()
    answer = run_atunner(options.atunner, command + (["--accuracy", "fast"] if dtype == "float32" else []), dtype, options.budget)
    seconds = time.monotonic() - begun
    after = time_us(function, arguments, flush)
    best = answer.get("best", {}).get("measurement", {}).get("median_ns")
    return {"class": row[0], "name": row[1], "dtype": dtype, "cudnn_us": min(before, after), "atunner_us": best and best / 1e3, "flops": flops,
            "seconds": round(seconds, 1), "spent": answer.get("spent"), "configuration": answer.get("best", {}).get("configuration", ""), "error": why_not(answer)}


def main():
    parser = flags(__doc__, "20,8s", "bfloat16,float32")
    parser.add_argument("--out", default="convolutions.jsonl")
    parser.add_argument("--seconds", type=float, default=1e9, help="no row begins after them")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    done = [json.loads(line) for line in open(options.out)] if os.path.exists(options.out) else []
    known = {(row["name"], row["dtype"]) for row in done}
    wanted = options.only.split(",") if options.only else []
    begun = time.monotonic()
    print(f"{torch.cuda.get_device_name()}; times in us")
    print(f"{'class':<11} {'convolution':<26} {'dtype':<9} {'cuDNN':>9} {'atunner':>9} {'TFLOP/s':>8} {'ratio':>6} {'seconds':>7}")
    for dtype in options.dtypes.split(","):
        for row in ROWS:
            if (row[1], dtype) in known or (wanted and not any(each == row[0] or each in row[1] for each in wanted)):
                continue
            if time.monotonic() - begun > options.seconds:
                break
            done.append(measure(options, row, dtype, flush))
            with open(options.out, "a") as out:
                out.write(json.dumps(done[-1]) + "\n")
            ours, theirs = done[-1]["atunner_us"], done[-1]["cudnn_us"]
            figures = f"{ours:>9.1f} {done[-1]['flops'] / ours / 1e6:>8.0f} {theirs / ours:>6.2f}" if ours else f"{'none':>9} {'':>8} {'':>6}"
            print(f"{row[0]:<11} {row[1]:<26} {dtype:<9} {theirs:>9.1f} {figures} {done[-1]['seconds']:>7.1f} {done[-1]['error']}", flush=True)
    for dtype in options.dtypes.split(","):
        rows = [row for row in done if row["dtype"] == dtype and row["atunner_us"]]
        for name in [*dict.fromkeys(row["class"] for row in rows), None]:
            ratios = [row["cudnn_us"] / row["atunner_us"] for row in rows if name in (None, row["class"])]
            print(f"{dtype:<9} {name or 'all':<11} {len(ratios):>3} rows, geometric mean {geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
