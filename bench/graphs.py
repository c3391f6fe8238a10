"""Parts of models as graphs (.atg) on the GPU of this machine: PyTorch eager, torch.compile as it comes and with CUDA graphs
(mode "reduce-overhead"), and atunner: as it measures itself, and through its runtime from Python, launch by launch and in a CUDA graph; in one run and one table.

Times are medians of CUDA events with L2 emptied by a write before each sample, us. Results are compared with PyTorch's in float32.
Usage: python3 bench/graphs.py --atunner build/atunner [--budget 60,60s] [--only mlp,layer,bottleneck,linear,scores] [--ahead] [--texts FOLDER]
       The runtime is $ATUNNER_RUNTIME, or where faces/python/atunner_runtime.py looks for it. --texts: only writes the graphs there.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "faces", "python")]
from common import announce, best_us, flags, time_us, why_not  # noqa: E402

BF16 = "bfloat16"
MODES = [{}, {"mode": "reduce-overhead"}]  # of torch.compile


def rms_norm(x, name, weight=None):
    scaled = f"{name}_wide * rsqrt({name}_mean + 1e-5)" + (f" * cast({weight}, float32)" if weight else "")
    return f"""{name}_wide = cast({x}, float32)
{name}_square = {name}_wide * {name}_wide
{name}_mean = reduce_mean({name}_square, axes=[-1], keep=true)
{name} = cast({scaled}, bfloat16)
"""


def norm(x, weight):
    x = x.float()
    return (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight.float()).bfloat16()


def product(name, a, b, equation="mk,nk->mn"):
    return f'{name} = contract({a}, {b}, equation="{equation}", as=float32)\n'


def narrow(name, a, b, equation="mk,nk->mn"):
    return product(f"{name}_sum", a, b, equation) + f"{name} = cast({name}_sum, bfloat16)\n"


def gated(x):
    return product("h", x, "up") + product("g", x, "gate") + "active = cast(h * (g * sigmoid(g)), bfloat16)\n"


def mlp(rows, width=1024, hidden=4096):
    text = f"""graph mlp
input x: bfloat16[{rows}, {width}]
input weight: bfloat16[{width}]
input up: bfloat16[{hidden}, {width}]
input gate: bfloat16[{hidden}, {width}]
input down: bfloat16[{width}, {hidden}]
input last: bfloat16[{width}]
""" + rms_norm("x", "normed", "weight") + gated("normed") + product("out", "active", "down") + """y = cast(normed_wide + out, bfloat16)
""" + rms_norm("y", "z", "last") + "output y\noutput z\n"

    def call(x, weight, up, gate, down, last):
        normed = norm(x, weight)
        y = x + F.linear(F.silu(F.linear(normed, gate)) * F.linear(normed, up), down)
        return y, norm(y, last)

    return text, call


def layer(batch, tokens, heads=16, dim=64, hidden=4096):
    """A layer of a transformer: norm, queries, keys and values, rotary embedding, causal attention, product, residual; norm, gated product, residual."""
    width, rows = heads * dim, batch * tokens
    text = f"""graph layer
input x: bfloat16[{rows}, {width}]
input first: bfloat16[{width}]
input wq: bfloat16[{width}, {width}]
input wk: bfloat16[{width}, {width}]
input wv: bfloat16[{width}, {width}]
input wo: bfloat16[{width}, {width}]
input cosine: float32[{tokens}, {dim}]
input sine: float32[{tokens}, {dim}]
input second: bfloat16[{width}]
input up: bfloat16[{hidden}, {width}]
input gate: bfloat16[{hidden}, {width}]
input down: bfloat16[{width}, {hidden}]
""" + rms_norm("x", "normed", "first")
    for name in "qkv":
        text += narrow(f"{name}_flat", "normed", f"w{name}")
        text += f"{name}_rows = reshape({name}_flat, shape=[{batch}, {tokens}, {heads}, {dim}])\n"
        text += f"{'v' if name == 'v' else name + '_heads'} = transpose({name}_rows, order=[0, 2, 1, 3])\n"
    for name in "qk":
        text += f"""{name}_low = slice({name}_heads, axis=3, start=0, stop={dim // 2})
{name}_high = slice({name}_heads, axis=3, start={dim // 2}, stop={dim})
{name}_minus = -{name}_high
{name}_turned = concat({name}_minus, {name}_low, axis=3)
{name} = cast(cast({name}_heads, float32) * cosine + cast({name}_turned, float32) * sine, bfloat16)
"""
    text += f"""scores = contract(q, k, equation="bhsd,bhtd->bhst", as=float32)
masked = select(index(-1) <= index(-2), scores * {dim ** -0.5}, -inf)
top = reduce_max(masked, axes=[-1], keep=true)
grown = exp(masked - top)
total = reduce_sum(grown, axes=[-1], keep=true)
share = cast(grown / total, bfloat16)
mixed_sum = contract(share, v, equation="bhst,bhtd->bhsd", as=float32, sparse=true)
mixed = cast(mixed_sum, bfloat16)
turned = transpose(mixed, order=[0, 2, 1, 3])
flat = reshape(turned, shape=[{rows}, {width}])
"""
    text += product("attended", "flat", "wo") + "middle = cast(normed_wide + attended, bfloat16)\n" + rms_norm("middle", "again", "second")
    text += gated("again") + product("out", "active", "down") + "y = cast(again_wide + out, bfloat16)\noutput y\n"

    def turn(x, cosine, sine):
        low, high = x.chunk(2, -1)
        return (x * cosine + torch.cat((-high, low), -1) * sine).to(x.dtype)

    def call(x, first, wq, wk, wv, wo, cosine, sine, second, up, gate, down):
        normed = norm(x, first)
        q, k, v = (F.linear(normed, w).view(batch, tokens, heads, dim).transpose(1, 2) for w in (wq, wk, wv))
        mixed = F.scaled_dot_product_attention(turn(q, cosine, sine), turn(k, cosine, sine), v, is_causal=True)
        middle = x + F.linear(mixed.transpose(1, 2).reshape(rows, width), wo)
        again = norm(middle, second)
        return middle + F.linear(F.silu(F.linear(again, gate)) * F.linear(again, up), down)

    return text, call


def linear(rows, width=1024, hidden=4096):
    text = f"""graph linear
input x: bfloat16[{rows}, {width}]
input weight: bfloat16[{width}]
input shift: bfloat16[{width}]
input w: bfloat16[{hidden}, {width}]
input bias: bfloat16[{hidden}]
wide = cast(x, float32)
mean = reduce_mean(wide, axes=[-1], keep=true)
centred = wide - mean
square = centred * centred
variance = reduce_mean(square, axes=[-1], keep=true)
normed = cast(centred * rsqrt(variance + 1e-5) * cast(weight, float32) + cast(shift, float32), bfloat16)
""" + product("h", "normed", "w") + """s = h + cast(bias, float32)
y = cast(0.5 * s * (1 + erf(s * 0.7071067811865476)), bfloat16)
output y
"""
    return text, lambda x, weight, shift, w, bias: F.gelu(F.linear(F.layer_norm(x, weight.shape, weight, shift), w, bias))


def scores(batch, heads, queries, keys, dim=64):
    text = f"""graph scores
input q: bfloat16[{batch * heads}, {queries}, {dim}]
input k: bfloat16[{batch * heads}, {keys}, {dim}]
input mask: float32[{queries}, {keys}]
""" + narrow("s", "q", "k", "bqd,bkd->bqk") + f"""masked = cast(s, float32) * {dim ** -0.5} + mask
top = reduce_max(masked, axes=[-1], keep=true)
grown = exp(masked - top)
total = reduce_sum(grown, axes=[-1], keep=true)
y = cast(grown / total, bfloat16)
output y
"""
    return text, lambda q, k, mask: torch.softmax((q @ k.transpose(1, 2)).float() * dim ** -0.5 + mask, -1).bfloat16()


def bottleneck(images, side=56, inner=64):
    """Channels last; of batch norms what inference leaves of them: a scale and a shift by channel."""
    outer = 4 * inner
    text = f"""graph bottleneck
input x: bfloat16[{images}, {side}, {side}, {outer}]
input w1: bfloat16[{inner}, {outer}]
input b1: float32[{inner}]
input w2: bfloat16[{inner}, 3, 3, {inner}]
input b2: float32[{inner}]
input w3: bfloat16[{outer}, {inner}]
input b3: float32[{outer}]
p1 = contract(x, w1, equation="nhwc,oc->nhwo", as=float32)
a1 = cast(maximum(p1 + b1, 0), bfloat16)
tall = pad(a1, axis=1, low=1, high=1)
wide = pad(tall, axis=2, low=1, high=1)
rows = window(wide, axis=1, size=3)
taps = window(rows, axis=3, size=3)
p2 = contract(taps, w2, equation="nhrwsc,orsc->nhwo", as=float32)
a2 = cast(maximum(p2 + b2, 0), bfloat16)
p3 = contract(a2, w3, equation="nhwc,oc->nhwo", as=float32)
y = cast(maximum(p3 + b3 + cast(x, float32), 0), bfloat16)
output y
"""

    def call(x, w1, b1, w2, b2, w3, b3):
        image = x.permute(0, 3, 1, 2)
        a = F.relu(F.conv2d(image, w1[:, :, None, None], b1.bfloat16()))
        a = F.relu(F.conv2d(a, w2.permute(0, 3, 1, 2), b2.bfloat16(), padding=1))
        return F.relu(F.conv2d(a, w3[:, :, None, None], b3.bfloat16()) + image).permute(0, 2, 3, 1)

    return text, call


ROWS = [("mlp 512 rows", mlp(512)), ("mlp 4096 rows", mlp(4096)), ("mlp 4096 rows, 4096 to 14336", mlp(4096, 4096, 14336)),
        ("layer 1x512", layer(1, 512)), ("layer 4x1024", layer(4, 1024)), ("linear 512 rows", linear(512)), ("linear 8192 rows", linear(8192)),
        ("scores 1x16x512x512", scores(1, 16, 512, 512)), ("scores 8x16x1024x1024", scores(8, 16, 1024, 1024)),
        ("bottleneck 8", bottleneck(8)), ("bottleneck 64", bottleneck(64))]


def inputs_of(text):
    """Random tensors for the graph's inputs, by name; matrices such that products stay near one."""
    made = {}
    for name, dtype, shape in re.findall(r"^input (\w+): (\w+)\[([\d, ]+)\]", text, re.M):
        shape = [int(extent) for extent in shape.split(",")]
        fan = math.prod(shape[1:]) if len(shape) > 1 and not name.startswith(("x", "q", "k")) and dtype == BF16 else 1
        made[name] = (torch.randn(shape, device="cuda") / fan ** 0.5).to(getattr(torch, dtype))
    return made


def in_graph(function):
    """The same launches, captured once."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def compiled(call, arguments, flush, **options):
    torch._dynamo.reset()
    try:
        function = torch.compile(call, dynamic=False, **options)

        def step():
            torch.compiler.cudagraph_mark_step_begin()
            return function(*arguments)

        return time_us(step, (), flush)
    except Exception:
        return math.nan


def tuned(atunner, text, folder, budget):
    """The artifact's folder and what atunner measured, or why there is none."""
    path = os.path.join(folder, "graph.atg")
    with open(path, "w") as file:
        file.write(text)
    out = os.path.join(folder, "out")
    command = [atunner, "optimize", "--graph", path, "--budget", budget, "--out", out, "--fresh", "--no-baselines", "--json"]
    answer = subprocess.run(command + ["--store", os.path.join(folder, "runs.db")], capture_output=True, text=True)
    try:
        told = json.loads(answer.stdout)
    except json.JSONDecodeError:
        told = {"error": {"what": (answer.stderr or answer.stdout).strip()[-300:]}}
    return out, best_us(told), why_not(told)


def measure(label, text, call, args, flush):
    import atunner_runtime
    arguments = inputs_of(text)
    values = list(arguments.values())
    wanted = call(*values)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    line = [time_us(call, values, flush), *(compiled(call, values, flush, **options) for options in MODES)]
    with tempfile.TemporaryDirectory() as folder:
        out, measured, why = tuned(args.atunner, text, folder, args.budget)
        if why:
            return f"| {label} | " + " | ".join(f"{each:.1f}" for each in line) + f" | {why} |", math.nan
        kernel = atunner_runtime.ArtifactSet(out).choose(dims={}, device=torch.cuda.current_device())
        names = re.findall(r"^output (\w+)", text, re.M)
        results = {name: torch.empty_like(each, memory_format=torch.contiguous_format) for name, each in zip(names, wanted)}

        def launch():
            kernel(**arguments, **results)

        launches = time_us(launch, (), flush)
        error = max((results[name].float() - each.float()).abs().max().item() / each.float().abs().max().item() for name, each in zip(names, wanted))
        captured = time_us(in_graph(launch), (), flush)
    ratio = min(each for each in line if not math.isnan(each)) / min(measured, launches, captured)
    return f"| {label} | " + " | ".join(f"{each:.1f}" for each in line + [measured, launches, captured]) + f" | {ratio:.2f} | {error:.1e} |", ratio


def main():
    parser = flags(__doc__, "60,60s", dtypes=None)
    parser.add_argument("--only", default="", help="parts of rows' names")
    parser.add_argument("--texts")
    parser.add_argument("--ahead", action="store_true", help="torch.compile's kernels first, every row in a process of its own")
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    rows = [row for row in ROWS if not args.only or any(part in row[0] for part in args.only.split(","))]
    if args.compile:
        for _, (text, call) in rows:
            arguments = list(inputs_of(text).values())
            for options in MODES:
                compiled(call, arguments, torch.empty(1, device="cuda"), **options)
        return
    if args.ahead:
        command = [sys.executable, os.path.abspath(__file__), "--compile", "--only"]
        for process in [subprocess.Popen([*command, label], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for label, _ in rows]:
            process.wait()
    if args.texts:
        for label, (text, _) in rows:
            with open(os.path.join(args.texts, re.sub(r"\W+", "_", label) + ".atg"), "w") as file:
                file.write(text)
        return
    flush = announce("us")
    print("| graph | eager | compiled | with CUDA graphs | atunner's own measurement | launched from Python | in a CUDA graph | ratio | largest difference |\n|---|---|---|---|---|---|---|---|---|")
    for label, (text, call) in rows:
        try:
            print(measure(label, text, call, args, flush)[0], flush=True)
        except Exception as error:
            print(f"| {label} | {type(error).__name__}: {str(error)[:200]} |", flush=True)


if __name__ == "__main__":
    main()
