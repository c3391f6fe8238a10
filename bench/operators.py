"""Compares operators of the library, at shapes of models, with PyTorch on the GPU of this machine.

Columns: naive, PyTorch eager, torch.compile and atunner. All columns but "naive" are launched by
this process and timed alike: medians of CUDA events, L2 emptied by a write before each sample,
artifacts (launched by the runtime) in turns with torch.compile's kernels.

  off       distance of an artifact's outputs from eager's, relative to their norm
  % copy    bytes that must move / time, relative to PyTorch's device copy in the same run
  % probe   the same, relative to the copy that `atunner devices --probe` measures in this run

torch.compile compiles ahead, many rows at a time in processes of their own (`--ahead`), into a
cache on disk. With `--json` every row is written at once, and a run that finds the file continues
it. With `--gpus 2` two GPUs share the rows; each measures all columns of its rows.

Usage: python3 bench/operators.py --atunner build/atunner [--only columns,scan]
           [--dtypes float32,bfloat16] [--ahead 16] [--limit-s 140] [--gpus 2] [--json FILE]
       --only takes groups, operators and group:operator; --list shows the rows.
       ATUNNER_RUNTIME names libatunner_runtime.so.
"""
import argparse
import functools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]


class Row:
    """One operator on one set of shapes. An input is a shape, or (values, shape) for indices below
    `values`, or ("bool", shape), or ("positive", shape)."""

    def __init__(self, group, operator, shapes, call, inputs=None, moved=None, **attributes):
        self.group, self.operator, self.shapes, self.call, self.attributes = (
            group,
            operator,
            shapes,
            call,
            attributes,
        )
        self.inputs = inputs or shapes
        # (elements of the dtype, bytes of other types) that must move; None: every input and output
        # once.
        self.moved = moved

    def label(self):
        attributes = "".join(f" {name}={value}" for name, value in self.attributes.items())
        return (
            self.operator
            + " "
            + " ".join("x".join(map(str, shape)) for shape in self.shapes)
            + attributes
        )

    def flags(self):
        flags = [
            self.operator,
            "--input-shape",
            *(",".join(map(str, shape)) for shape in self.shapes),
        ]
        for name, value in self.attributes.items():
            flags += [
                "--attr",
                f"{name}={str(value).lower() if isinstance(value, bool) else value}",
            ]
        return flags


@functools.cache
def rotations(length, pairs):
    """Cosines and sines of rotary embeddings, [length, pairs] in float32."""
    import torch

    angles = torch.arange(length, device="cuda").float()[:, None] * torch.exp2(
        torch.arange(pairs, device="cuda").float() * (-math.log2(10000.0) / pairs)
    )
    return angles.cos(), angles.sin()


def rows():
    import torch
    import torch.nn.functional as F

    mlp, hidden, vocabulary = (
        (16384, 14336),
        (32768, 4096),
        (16384, 32000),
    )  # tokens of Llama 3 8B and of a 32k vocabulary
    image, deep = (256, 64, 112, 112), (256, 256, 56, 56)  # ResNet-50's first layers
    table = []

    def add(group, operator, shapes, call, **more):
        table.append(
            Row(group, operator, shapes if isinstance(shapes, list) else [shapes], call, **more)
        )

    def pair(shape):
        return {"inputs": [shape, shape]}

    def rope(a):
        cosine, sine = rotations(a.shape[-2], a.shape[-1] // 2)
        first, second = a.float().chunk(2, -1)
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1).to(
            a.dtype
        )

    for operator, call in {
        "relu": F.relu,
        "gelu": F.gelu,
        "gelu_tanh": lambda a: F.gelu(a, approximate="tanh"),
        "silu": F.silu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "softplus": F.softplus,
        "mish": F.mish,
        "elu": F.elu,
        "exp": torch.exp,
        "leaky_relu": F.leaky_relu,
        "erf": torch.erf,
    }.items():
        add("pointwise", operator, mlp, call)
    add("pointwise", "hardswish", image, F.hardswish)
    add("pointwise", "swiglu", mlp, lambda a, b: F.silu(a) * b, **pair(mlp))
    add("pointwise", "geglu", mlp, lambda a, b: F.gelu(a) * b, **pair(mlp))
    add("pointwise", "add", (65536, 4096), torch.add, **pair((65536, 4096)))
    add("pointwise", "mul", (65536, 4096), torch.mul, **pair((65536, 4096)))
    add("pointwise", "add", [mlp, (14336,)], torch.add)
    add(
        "pointwise",
        "where",
        [hidden],
        lambda a, b, c: torch.where(a > 0, b, c),
        inputs=[hidden] * 3,
    )
    add("pointwise", "rope", (8, 32, 2048, 128), rope)
    add(
        "pointwise",
        "gelu_backward",
        mlp,
        lambda a, dy: torch.ops.aten.gelu_backward(dy, a),
        **pair(mlp),
    )
    add(
        "pointwise",
        "silu_backward",
        mlp,
        lambda a, dy: torch.ops.aten.silu_backward(dy, a),
        **pair(mlp),
    )
    add(
        "optimizer",
        "sgd",
        (8192, 8192),
        lambda p, g, v: (p - 1e-2 * (0.9 * v + g), 0.9 * v + g),
        inputs=[(8192, 8192)] * 3,
    )

    def adamw(p, g, m, v):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v

    add(
        "optimizer",
        "adamw",
        (8192, 8192),
        adamw,
        inputs=[(8192, 8192)] * 3 + [("positive", (8192, 8192))],
    )

    for shape in (hidden, (65536, 1024), (8192, 8192)):
        add(
            "rows",
            "rms_norm",
            shape,
            lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
            inputs=[shape, shape[-1:]],
        )
    add(
        "rows",
        "layernorm",
        hidden,
        lambda x, w, b: F.layer_norm(x, w.shape, w, b),
        inputs=[hidden, hidden[-1:], hidden[-1:]],
    )
    for operator, call in {
        "softmax": lambda x: torch.softmax(x, -1),
        "log_softmax": lambda x: torch.log_softmax(x, -1),
        "logsumexp": lambda x: torch.logsumexp(x, -1),
    }.items():
        add("rows", operator, vocabulary, call)
    for operator, call in {
        "sum": lambda x: x.sum(-1),
        "amax": lambda x: x.amax(-1),
        "var": lambda x: x.var(-1),
        "norm": lambda x: x.norm(dim=-1),
    }.items():
        add("rows", operator, (65536, 4096), call)
    add("rows", "normalize", (262144, 768), lambda x: F.normalize(x, dim=-1))

    for shape in (mlp, (65536, 4096), (262144, 768)):  # gradients of biases
        add("columns", "sum", shape, lambda x: x.sum(0), axis=0)
    add("columns", "mean", (65536, 4096), lambda x: x.mean(0), axis=0)
    add("columns", "var", (65536, 4096), lambda x: x.var(0), axis=0)
    add("columns", "amax", (256, 2048, 512), lambda x: x.amax(1), axis=1)
    add(
        "columns", "mean", (512, 196, 2048), lambda x: x.mean(1), axis=1
    )  # tokens of a vision transformer
    add("columns", "log_softmax", (512, 512, 512), lambda x: torch.log_softmax(x, 1), axis=1)
    add("columns", "sum", (16384, 16384), lambda x: x.sum(), axis="all")
    add("columns", "sum_of_squares", (16384, 16384), lambda x: (x * x).sum(), axis="all")
    for shape in (image, deep, (256, 512, 28, 28)):
        add(
            "columns",
            "batch_norm",
            shape,
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
            inputs=[shape, shape[1:2], shape[1:2]],
        )
    add(
        "columns",
        "batch_norm_inference",
        image,
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
        inputs=[image, image[1:2], ("positive", image[1:2]), image[1:2], image[1:2]],
    )
    add(
        "columns",
        "instance_norm",
        (16, 64, 512, 256),
        lambda x, w, b: F.instance_norm(x, None, None, w, b),
        inputs=[(16, 64, 512, 256), (64,), (64,)],
    )

    for operator, call in {
        "mse_loss": F.mse_loss,
        "l1_loss": F.l1_loss,
        "huber_loss": F.huber_loss,
        "bce_with_logits": F.binary_cross_entropy_with_logits,
        "kl_div": lambda a, b: F.kl_div(a, b, reduction="mean", log_target=True),
        "hinge_loss": lambda a, b: (1 - a * b).clamp(min=0).mean(),
    }.items():
        add("losses", operator, (32768, 8192), call, **pair((32768, 8192)))

    def gradient(
        logits, labels, scale
    ):  # from the logits on: what the forward pass keeps is computed again
        return torch.func.grad(lambda x: F.cross_entropy(x, labels) * scale[0])(logits)

    for shape in (
        (8192, 50257),
        (8192, 128256),
        (32768, 32000),
    ):  # tokens by vocabularies of GPT-2, Llama 3 and Llama 2
        labels = (shape[1], shape[:1])
        add("labels", "cross_entropy", shape, F.cross_entropy, inputs=[shape, labels])
        add("labels", "cross_entropy_backward", shape, gradient, inputs=[shape, labels, (1,)])
    add(
        "labels",
        "nll_loss_backward",
        (8192, 50257),
        lambda labels, scale: torch.ops.aten.nll_loss_backward(
            scale[0], scale.expand(8192, 50257), labels, None, 1, -100, scale.new_full((), 8192)
        ),
        inputs=[(50257, (8192,)), (1,)],
    )

    for entries, width, tokens in ((128256, 4096, 32768), (50257, 768, 262144)):
        add(
            "scatter",
            "embedding_backward",
            [(entries, width), (tokens,)],
            lambda places, dy, entries=entries: torch.ops.aten.embedding_dense_backward(
                dy, places, entries, -1, False
            ),
            inputs=[(entries, (tokens,)), (tokens, width)],
        )
    add(
        "scatter",
        "scatter_add",
        [(131072, 2048), (65536,)],
        lambda x, places, updates: x.index_add(0, places, updates),
        inputs=[(131072, 2048), (131072, (65536,)), (65536, 2048)],
    )
    for shape, k in (((16384, 4096), 64), ((64, 128256), 50)):  # routing, and sampling
        add("topk", "topk", shape, lambda x, k=k: torch.topk(x, k), k=k)

    places = (2048, (65536, 1024))
    add(
        "scatter",
        "gather_backward",
        [(65536, 2048), (65536, 1024)],
        lambda places, dy: dy.new_zeros(65536, 2048).scatter_add_(-1, places, dy),
        inputs=[places, (65536, 1024)],
    )
    add(
        "scatter",
        "index_select_backward",
        [(64, 8192, 512), (4096,)],
        lambda places, dy: dy.new_zeros(64, 8192, 512).index_add_(1, places, dy),
        inputs=[(8192, (4096,)), (64, 4096, 512)],
        axis=1,
    )
    add(
        "scatter",
        "topk_backward",
        (16384, 4096),
        lambda x, dy: torch.zeros_like(x).scatter_(-1, x.topk(64).indices, dy),
        inputs=[(16384, 4096), (16384, 64)],
        k=64,
    )
    add("topk", "sort", (16384, 4096), lambda x: torch.sort(x, stable=True))
    add(
        "scatter",
        "sort_backward",
        (16384, 4096),
        lambda x, dy: torch.zeros_like(x).scatter_(-1, x.sort(stable=True).indices, dy),
        inputs=[(16384, 4096), (16384, 4096)],
    )
    small, large = (32, 256, 64, 64), (32, 256, 128, 128)
    for shape, factor in ((small, 2.0), (large, 0.5)):
        add(
            "moves",
            "interpolate",
            shape,
            lambda x, factor=factor: F.interpolate(x, scale_factor=factor, mode="bilinear"),
            factor=factor,
        )
    for shape, other, factor in ((small, large, 2.0), (large, small, 0.5)):
        add(
            "scatter",
            "interpolate_backward",
            shape,
            lambda dy, shape=shape: torch.ops.aten.upsample_bilinear2d_backward(
                dy, dy.shape[2:], shape, False
            ),
            inputs=[other],
            factor=factor,
        )

    for shape in ((32768, 8192), (4096, 65536)):
        add("scan", "cumsum", shape, lambda x: x.cumsum(-1))
    add("scan", "cumsum", (32768, 8192), lambda x: x.flip(-1).cumsum(-1).flip(-1), reverse=True)
    add(
        "scan",
        "cumsum",
        (32768, 8192),
        lambda x: F.pad(x.cumsum(-1)[..., :-1], (1, 0)),
        exclusive=True,
    )
    add("scan", "cumsum", (8192, 32768), lambda x: x.cumsum(0), axis=0)
    add("scan", "cumsum", (64, 4096, 1024), lambda x: x.cumsum(1), axis=1)
    add("scan", "cumprod", (32768, 8192), lambda x: x.cumprod(-1))
    add("scan", "cummax", (32768, 4096), lambda x: x.cummax(-1).values)
    add(
        "scan",
        "masked_cumsum",
        (32768, 8192),
        lambda x, mask: (x * mask).cumsum(-1),
        inputs=[(32768, 8192), ("bool", (32768, 8192))],
    )

    for entries, width, tokens in ((128256, 4096, 32768), (50257, 768, 262144)):
        read = entries * (1 - math.exp(-tokens / entries)) * width  # rows that occur at all
        add(
            "gather",
            "embedding",
            [(entries, width), (tokens,)],
            lambda places, weights: F.embedding(places, weights),
            inputs=[(entries, (tokens,)), (entries, width)],
            moved=(read + tokens * width, 8 * tokens),
        )
    read = 131072 * (1 - math.exp(-0.5)) * 2048
    add(
        "gather",
        "index_select",
        [(131072, 2048), (65536,)],
        lambda x, places: x.index_select(0, places),
        inputs=[(131072, 2048), (131072, (65536,))],
        moved=(read + 65536 * 2048, 8 * 65536),
        axis=0,
    )
    add(
        "gather",
        "gather",
        [(65536, 2048), (65536, 1024)],
        lambda x, places: x.gather(-1, places),
        inputs=[(65536, 2048), (2048, (65536, 1024))],
    )
    add("moves", "transpose", (16384, 14336), lambda x: x.t().contiguous())
    add("moves", "transpose", (64, 2048, 1024), lambda x: x.transpose(1, 2).contiguous())
    add(
        "moves",
        "transpose",
        (8, 4096, 32, 128),
        lambda x: x.transpose(1, 2).contiguous(),
        axis0=1,
        axis1=2,
    )  # heads before tokens
    add("moves", "pad", image, lambda x: F.pad(x, (1, 1)), low=1, high=1)
    add("moves", "pad", (64, 2000, 1024), lambda x: F.pad(x, (0, 0, 0, 48)), axis=1, low=0, high=48)
    add("moves", "concat", [hidden, hidden], lambda a, b: torch.cat((a, b), -1))
    add(
        "moves",
        "concat",
        [(256, 64, 56, 56), (256, 256, 56, 56)],
        lambda a, b: torch.cat((a, b), 1),
        axis=1,
    )
    add("moves", "flip", hidden, lambda x: x.flip(-1))
    add(
        "moves",
        "repeat_interleave",
        (8, 8, 8192, 128),
        lambda x: x.repeat_interleave(4, 1),
        axis=1,
        times=4,
    )  # key heads of grouped queries
    add("moves", "upsample_nearest", (32, 256, 64, 64), lambda x: F.interpolate(x, scale_factor=2))
    add(
        "pooling",
        "max_pool",
        image,
        lambda x: F.max_pool2d(x, 3, 2, 1),
        size=3,
        stride=2,
        padding=1,
    )
    add("pooling", "avg_pool", image, lambda x: F.avg_pool2d(x, 2, 2))
    add("pooling", "avg_pool", (256, 512, 1024), lambda x: F.avg_pool1d(x, 4, 4), size=4, stride=4)
    add("pooling", "max_pool", (16, 32, 64, 64, 64), lambda x: F.max_pool3d(x, 2, 2))
    add("pooling", "adaptive_avg_pool", (2048, 2048, 7, 7), lambda x: F.adaptive_avg_pool2d(x, 1))
    return table


def tensor(spec, dtype):
    import torch

    if spec and isinstance(spec[-1], tuple):
        kind, shape = spec
        if kind == "positive":
            return torch.rand(shape, device="cuda", dtype=dtype)
        return (
            torch.rand(shape, device="cuda") < 0.5
            if kind == "bool"
            else torch.randint(kind, shape, device="cuda")
        )
    return torch.randn(spec, device="cuda", dtype=dtype)


def bytes_of(row, inputs, outputs, size):
    if row.moved:
        return row.moved[0] * size + row.moved[1]
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return sum(t.numel() * t.element_size() for t in (*inputs, *outputs))


def beside_torch(folder, row, inputs, compiled, flush):
    """Median times in us of the artifact and of torch.compile's kernel (if there is one), in turns,
    and the largest distance of the artifact's outputs from eager's, relative to their norm."""
    from common import in_turns_us, launched

    launch, outputs = launched(folder, inputs)
    us, *beside = in_turns_us([launch] + [lambda: compiled(*inputs)] * bool(compiled), flush)
    wanted = row.call(*inputs)
    wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    pairs = [
        (y.flatten().float(), z.flatten().float()) for y, z in zip(outputs, wanted, strict=True)
    ]
    return (
        us,
        next(iter(beside), math.nan),
        max(((y - z).norm() / z.norm().clamp_min(1e-30)).item() for y, z in pairs),
    )


def measure(row, dtype, options, flush):
    """Times in us by column, and the number of bytes that must move."""
    import torch
    from common import run_atunner, time_us

    inputs = tuple(tensor(spec, dtype) for spec in row.inputs)
    begun = time.monotonic()
    found = {
        "eager": math.nan,
        "compile": math.nan,
        "naive": math.nan,
        "atunner": math.nan,
        "off": math.nan,
        "why": "",
    }
    found["bytes"] = bytes_of(row, inputs, row.call(*inputs), dtype.itemsize)
    found["eager"] = time_us(row.call, inputs, flush)
    compiled = None
    if not options.no_compile:
        torch._dynamo.reset()
        try:
            compiled = torch.compile(row.call)
            compiled(*inputs)
        except Exception as error:  # a row without this column
            compiled, found["why"] = None, f"compile: {error}"[:80]
    torch.cuda.empty_cache()
    found["torch_s"] = time.monotonic() - begun
    with tempfile.TemporaryDirectory() as folder:
        flags = row.flags() + (["--no-baselines"] if options.no_naive else [])
        run = run_atunner(
            options.atunner, flags, str(dtype).removeprefix("torch."), options.budget, folder
        )
        if "best" in run:
            try:
                found["atunner"], found["compile"], found["off"] = beside_torch(
                    folder, row, inputs, compiled, flush
                )
            except Exception as error:  # a row without this column
                found["why"] += f"launching: {error}"[:120]
    if compiled and math.isnan(found["compile"]):  # beside no artifact
        found["compile"] = time_us(compiled, inputs, flush)
    found["atunner_s"] = time.monotonic() - begun - found["torch_s"]
    if "error" in run or "best" not in run:
        found["why"] = run.get("error", {}).get("what", "no correct kernel")
        return found
    naive = run["baselines"][0]["measurement"] if run.get("baselines") else None
    found["naive"] = naive["median_ns"] / 1e3 if naive else math.nan
    found["tuned"] = run["best"]["measurement"]["median_ns"] / 1e3
    found["configuration"] = run["best"].get("configuration")
    return found


def compile_these(names):
    """Runs in a process of its own: torch.compile's kernels of some rows go into its cache on
    disk."""
    import torch

    table = {(row.group, row.label()): row for row in rows()}
    for group, label, dtype in names:
        row = table[group, label]
        try:
            torch.compile(row.call)(*(tensor(spec, getattr(torch, dtype)) for spec in row.inputs))
            torch.cuda.synchronize()
            print("compiled", flush=True)
        except Exception as error:  # its turn will tell
            print(f"{label}: {error}"[:200], flush=True)
        torch._dynamo.reset()
        torch.cuda.empty_cache()


def on_gpu(index, gpus):
    """The environment of a process that sees one of several GPUs. With one GPU it is unchanged."""
    return {**os.environ, "CUDA_VISIBLE_DEVICES": str(index)} if gpus > 1 else os.environ.copy()


def compile_ahead(tasks, processes, limit_s, gpus):
    """Compiles many rows at a time before anything is measured, since a row takes one core some
    seconds. Rows that the time limit cuts off are compiled when they are measured."""
    begun = time.monotonic()
    names = [[row.group, row.label(), dtype] for row, dtype in tasks]
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                os.path.abspath(__file__),
                "--compile-these",
                json.dumps(names[i::processes]),
            ],
            env=on_gpu(i % gpus, gpus),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for i in range(min(processes, len(names)))
    ]
    while any(worker.poll() is None for worker in workers) and time.monotonic() - begun < limit_s:
        time.sleep(0.2)
    for worker in workers:
        worker.kill()
    said = [line for worker in workers for line in worker.communicate()[0].splitlines()]
    print(
        f"torch.compile ahead: {said.count('compiled')} of {len(tasks)} rows in "
        f"{time.monotonic() - begun:.0f} s",
        flush=True,
    )
    for line in said:
        if line != "compiled":
            print("  " + line)


def begun_before(path):
    """The rows that an earlier run with the same file has measured, by group."""
    if not path or not os.path.exists(path):
        return {}
    with open(path) as file:
        return json.load(file)["rows"]


def geometric(values):
    values = [value for value in values if value == value]
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def summary(name, results):
    done = [r for r in results if r["atunner"] == r["atunner"]]
    shares, probed = (
        [100 * r["bytes"] / r["atunner"] / 1e3 / r.get(copy, math.nan) for r in done]
        for copy in ("copy_gbps", "probe_gbps")
    )
    print(
        f"{name:<10} {len(done):>3} of {len(results):>3} rows: "
        f"{geometric(r['naive'] / r['atunner'] for r in done):6.2f}x naive, "
        f"{geometric(r['eager'] / r['atunner'] for r in done):5.2f}x eager, "
        f"{geometric(r['compile'] / r['atunner'] for r in done):5.2f}x torch.compile, "
        f"{geometric(shares):5.1f} % of copy, lowest {min(shares, default=math.nan):.1f} %, "
        f"{geometric(probed):5.1f} and {min(probed, default=math.nan):.1f} % of the probe's; "
        f"{sum(r['compile'] / r['atunner'] < 0.97 for r in done)} behind torch.compile by more "
        "than 3 %"
    )


def keep(path, results):
    if path:
        with open(path + ".new", "w") as file:
            json.dump({"rows": results}, file, indent=1)
        os.replace(path + ".new", path)


def measure_all(tasks, options, results, begun):
    """Prints a line for each task. The figures go into `results`, and at once into the file."""
    import torch
    from common import DTYPES, announce, copied_gbps, probed_gbps

    probe = probed_gbps(options.atunner)
    flush = announce("times in us, all measured")
    copy = copied_gbps(flush)
    torch.cuda.empty_cache()
    print(
        f"copy of PyTorch {copy:.0f} GB/s, of the probe {probe:.0f} GB/s (read + written)",
        flush=True,
    )
    print(
        f"{'dtype':<9}{'operator':<58}{'naive':>10}{'eager':>9}{'compile':>9}{'atunner':>9}"
        f"{'% copy':>7}{'% probe':>8}{'x eager':>8}{'x comp.':>8}{'off':>9}"
    )
    for left, (row, dtype) in zip(range(len(tasks), 0, -1), tasks):
        if time.monotonic() - begun > options.limit_s:
            print(f"stopped after {options.limit_s:.0f} s, {left} rows to go", flush=True)
            break
        found = measure(row, DTYPES[dtype], options, flush)
        results.setdefault(row.group, []).append(
            {"row": row.label(), "dtype": dtype, "copy_gbps": copy, "probe_gbps": probe, **found}
        )
        rate = found["bytes"] / found["atunner"] / 1e3
        print(
            f"{dtype:<9}{row.label():<58}{found['naive']:>10.1f}{found['eager']:>9.1f}"
            f"{found['compile']:>9.1f}{found['atunner']:>9.1f}{100 * rate / copy:>7.1f}"
            f"{100 * rate / probe:>8.1f}"
            f"{found['eager'] / found['atunner']:>8.2f}{found['compile'] / found['atunner']:>8.2f}"
            f"{found['off']:>9.1e}  {found['why']}",
            flush=True,
        )
        keep(options.json, results)


def parts_of(path, gpus):
    """The files in which the process of each GPU keeps its rows until all are joined. Rows of an
    interrupted run in them count, too."""
    return [f"{path}.{gpu}" for gpu in range(gpus)]


def gather(path, results):
    for group, found in begun_before(path).items():
        results.setdefault(group, []).extend(found)


def drop(paths):
    for path in filter(os.path.exists, paths):
        os.remove(path)


def share_out(tasks, options, results, begun):
    """As measure_all, on several GPUs with a process each; lines come as they are measured."""
    with tempfile.TemporaryDirectory() as folder:
        parts = parts_of(options.json or os.path.join(folder, "rows"), options.gpus)
        left = options.limit_s - (time.monotonic() - begun)
        workers = [
            subprocess.Popen(
                [
                    sys.executable,
                    os.path.abspath(__file__),
                    "--atunner",
                    options.atunner,
                    "--budget",
                    options.budget,
                    "--limit-s",
                    str(left),
                    *(["--no-compile"] if options.no_compile else []),
                    *(["--no-naive"] if options.no_naive else []),
                    "--json",
                    part,
                    "--measure-these",
                    json.dumps(
                        [
                            [row.group, row.label(), dtype]
                            for row, dtype in tasks[gpu :: options.gpus]
                        ]
                    ),
                ],
                env=on_gpu(gpu, options.gpus),
            )
            for gpu, part in enumerate(parts)
        ]
        for worker, part in zip(workers, parts):
            worker.wait()
            gather(part, results)
        keep(options.json, results)
        drop(parts)


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--atunner", default="build/atunner")
    parser.add_argument(
        "--only", default="", help="groups, operators or group:operator, with commas; in this order"
    )
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--budget", default="40,15s")
    parser.add_argument(
        "--limit-s",
        type=float,
        default=math.inf,
        help="start no row after this many seconds; rows of the first type come first",
    )
    parser.add_argument("--json", default="", help="file for all numbers")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument(
        "--no-naive",
        action="store_true",
        help="plain kernels are not timed, of which some take seconds a row",
    )
    parser.add_argument(
        "--ahead", type=int, default=0, help="processes that torch.compile first, all rows"
    )
    parser.add_argument("--ahead-s", type=float, default=150, help="seconds that they may take")
    parser.add_argument("--gpus", type=int, default=1, help="that share the rows")
    parser.add_argument("--compile-these", help=argparse.SUPPRESS)
    parser.add_argument("--measure-these", help=argparse.SUPPRESS)
    parser.add_argument("--first", action="store_true", help="of each operator only the first row")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def chosen_tasks(options):
    """The pairs (row, dtype) that the flags select."""
    table = rows()
    if options.measure_these:
        named = {(row.group, row.label()): row for row in table}
        return [
            (named[group, label], dtype)
            for group, label, dtype in json.loads(options.measure_these)
        ]
    if options.only:
        table = [
            row
            for name in options.only.split(",")
            for row in table
            if name in (row.group, row.operator, f"{row.group}:{row.operator}")
        ]
    if options.first:
        table = list({row.operator: row for row in reversed(table)}.values())[::-1]
    return [(row, dtype) for dtype in options.dtypes.split(",") for row in table]


def main():
    options = parse()
    begun = time.monotonic()
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    if options.compile_these:
        compile_these(json.loads(options.compile_these))
        return
    tasks = chosen_tasks(options)
    if options.list:
        for row, dtype in tasks:
            print(f"{row.group:<10} {dtype:<9} {row.label()}")
        print(len(tasks), "rows")
        return
    if options.measure_these:
        measure_all(tasks, options, {}, begun)
        return

    results = begun_before(options.json)
    left_behind = parts_of(options.json, options.gpus) if options.json else []
    for part in left_behind:
        gather(part, results)
    keep(options.json, results)
    drop(left_behind)
    known = {
        (group, found["row"], found["dtype"]) for group, done in results.items() for found in done
    }
    tasks = [(row, dtype) for row, dtype in tasks if (row.group, row.label(), dtype) not in known]
    if known:
        print(f"{options.json}: {len(known)} rows are there, {len(tasks)} to go")
    if options.ahead and not options.no_compile and tasks:
        compile_ahead(tasks, options.ahead, options.ahead_s, options.gpus)
    (share_out if options.gpus > 1 else measure_all)(tasks, options, results, begun)
    print("\ngeometric means")
    for group, found in results.items():
        summary(group, found)
    summary("all", [r for found in results.values() for r in found])


if __name__ == "__main__":
    main()
