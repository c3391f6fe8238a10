"""Parts of models, each as a graph (.atg) and as a PyTorch function."""
import torch
import torch.nn.functional as F


def header(name, **inputs):
    """The first lines of a graph's text. An input is bfloat16 unless a type stands before its
    extents."""
    text = f"graph {name}\n"
    for input_name, extents in inputs.items():
        dtype, extents = (
            (extents[0], extents[1:]) if isinstance(extents[0], str) else ("bfloat16", extents)
        )
        text += f"input {input_name}: {dtype}[{', '.join(map(str, extents))}]\n"
    return text


def rms_norm(x, name, weight=None):
    scaled = f"{name}_wide * rsqrt({name}_mean + 1e-5)" + (
        f" * cast({weight}, float32)" if weight else ""
    )
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
    return (
        product("h", x, "up")
        + product("g", x, "gate")
        + "active = cast(h * (g * sigmoid(g)), bfloat16)\n"
    )


def mlp(rows, width=1024, hidden=4096):
    text = header(
        "mlp",
        x=[rows, width],
        weight=[width],
        up=[hidden, width],
        gate=[hidden, width],
        down=[width, hidden],
        last=[width],
    )
    text += (
        rms_norm("x", "normed", "weight")
        + gated("normed")
        + product("out", "active", "down")
        + """y = cast(normed_wide + out, bfloat16)
"""
        + rms_norm("y", "z", "last")
        + "output y\noutput z\n"
    )

    def call(x, weight, up, gate, down, last):
        normed = norm(x, weight)
        y = x + F.linear(F.silu(F.linear(normed, gate)) * F.linear(normed, up), down)
        return y, norm(y, last)

    return text, call


def layer_norm(x, name, weight, shift):
    return f"""{name}_wide = cast({x}, float32)
{name}_mean = reduce_mean({name}_wide, axes=[-1], keep=true)
{name}_centred = {name}_wide - {name}_mean
{name}_square = {name}_centred * {name}_centred
{name}_variance = reduce_mean({name}_square, axes=[-1], keep=true)
{name} = cast({name}_centred * rsqrt({name}_variance + 1e-5) * cast({weight}, float32) \
+ cast({shift}, float32), bfloat16)
"""


def softmax(x, name):
    return f"""{name}_top = reduce_max({x}, axes=[-1], keep=true)
{name}_grown = exp({x} - {name}_top)
{name}_total = reduce_sum({name}_grown, axes=[-1], keep=true)
{name} = {name}_grown / {name}_total
"""


def turned_heads(name, dim):
    return f"""{name}_low = slice({name}_heads, axis=3, start=0, stop={dim // 2})
{name}_high = slice({name}_heads, axis=3, start={dim // 2}, stop={dim})
{name}_minus = -{name}_high
{name}_turned = concat({name}_minus, {name}_low, axis=3)
{name} = cast(cast({name}_heads, float32) * cosine + cast({name}_turned, float32) * sine, bfloat16)
"""


def turn(x, cosine, sine):
    low, high = x.chunk(2, -1)
    return (x * cosine + torch.cat((-high, low), -1) * sine).to(x.dtype)


def layer(batch, tokens, heads=16, dim=64, hidden=4096):
    """A layer of a transformer: norm; queries, keys and values; rotary embedding; causal attention;
    product; residual; norm; gated product; residual."""
    width, rows = heads * dim, batch * tokens
    text = header(
        "layer",
        x=[rows, width],
        first=[width],
        wq=[width, width],
        wk=[width, width],
        wv=[width, width],
        wo=[width, width],
        cosine=["float32", tokens, dim],
        sine=["float32", tokens, dim],
        second=[width],
        up=[hidden, width],
        gate=[hidden, width],
        down=[width, hidden],
    )
    text += rms_norm("x", "normed", "first")
    for name in "qkv":
        text += narrow(f"{name}_flat", "normed", f"w{name}")
        text += f"{name}_rows = reshape({name}_flat, shape=[{batch}, {tokens}, {heads}, {dim}])\n"
        heads_first = "v" if name == "v" else f"{name}_heads"
        text += f"{heads_first} = transpose({name}_rows, order=[0, 2, 1, 3])\n"
    text += turned_heads("q", dim) + turned_heads("k", dim)
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
    text += (
        product("attended", "flat", "wo")
        + "middle = cast(normed_wide + attended, bfloat16)\n"
        + rms_norm("middle", "again", "second")
    )
    text += (
        gated("again")
        + product("out", "active", "down")
        + "y = cast(again_wide + out, bfloat16)\noutput y\n"
    )

    def call(x, first, wq, wk, wv, wo, cosine, sine, second, up, gate, down):
        normed = norm(x, first)
        q, k, v = (
            F.linear(normed, w).view(batch, tokens, heads, dim).transpose(1, 2)
            for w in (wq, wk, wv)
        )
        mixed = F.scaled_dot_product_attention(
            turn(q, cosine, sine), turn(k, cosine, sine), v, is_causal=True
        )
        middle = x + F.linear(mixed.transpose(1, 2).reshape(rows, width), wo)
        again = norm(middle, second)
        return middle + F.linear(F.silu(F.linear(again, gate)) * F.linear(again, up), down)

    return text, call


def linear(rows, width=1024, hidden=4096):
    text = header(
        "linear", x=[rows, width], weight=[width], shift=[width], w=[hidden, width], bias=[hidden]
    )
    text += (
        layer_norm("x", "normed", "weight", "shift")
        + product("h", "normed", "w")
        + """s = h + cast(bias, float32)
y = cast(0.5 * s * (1 + erf(s * 0.7071067811865476)), bfloat16)
output y
"""
    )
    return text, lambda x, weight, shift, w, bias: F.gelu(
        F.linear(F.layer_norm(x, weight.shape, weight, shift), w, bias)
    )


def scores(batch, heads, queries, keys, dim=64):
    text = header(
        "scores",
        q=[batch * heads, queries, dim],
        k=[batch * heads, keys, dim],
        mask=["float32", queries, keys],
    )
    text += (
        narrow("s", "q", "k", "bqd,bkd->bqk")
        + f"""masked = cast(s, float32) * {dim ** -0.5} + mask
top = reduce_max(masked, axes=[-1], keep=true)
grown = exp(masked - top)
total = reduce_sum(grown, axes=[-1], keep=true)
y = cast(grown / total, bfloat16)
output y
"""
    )
    return (
        text,
        lambda q, k, mask: torch.softmax(
            (q @ k.transpose(1, 2)).float() * dim**-0.5 + mask, -1
        ).bfloat16(),
    )


def bottleneck(images, side=56, inner=64):
    """A bottleneck of ResNet-50, channels last. Batch norms are in the form of inference: a scale
    and a shift by channel."""
    outer = 4 * inner
    text = header(
        "bottleneck",
        x=[images, side, side, outer],
        w1=[inner, outer],
        b1=["float32", inner],
        w2=[inner, 3, 3, inner],
        b2=["float32", inner],
        w3=[outer, inner],
        b3=["float32", outer],
    )
    text += f"""p1 = contract(x, w1, equation="nhwc,oc->nhwo", as=float32)
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


def vit(images, tokens=197, heads=12, dim=64):
    """A block of a vision transformer: layer norm, biased products, attention over all tokens,
    residual, layer norm, GELU."""
    width, rows = heads * dim, images * tokens
    hidden = 4 * width
    text = header(
        "vit",
        x=[rows, width],
        n1=[width],
        s1=[width],
        wqkv=[3 * width, width],
        bqkv=[3 * width],
        wo=[width, width],
        bo=[width],
        n2=[width],
        s2=[width],
        up=[hidden, width],
        bu=[hidden],
        down=[width, hidden],
        bd=[width],
    )
    text += (
        layer_norm("x", "first", "n1", "s1")
        + product("all_sum", "first", "wqkv")
        + f"""all = cast(all_sum + cast(bqkv, float32), bfloat16)
parts = reshape(all, shape=[{images}, {tokens}, 3, {heads}, {dim}])
"""
    )
    for at, name in enumerate("qkv"):
        text += f"""{name}_part = slice(parts, axis=2, start={at}, stop={at + 1})
{name}_rows = reshape({name}_part, shape=[{images}, {tokens}, {heads}, {dim}])
{name} = transpose({name}_rows, order=[0, 2, 1, 3])
"""
    text += (
        product("scores", "q", "k", "bhsd,bhtd->bhst")
        + f"scaled = scores * {dim ** -0.5}\n"
        + softmax("scaled", "share")
        + f"""narrow = cast(share, bfloat16)
"""
        + narrow("mixed", "narrow", "v", "bhst,bhtd->bhsd")
        + f"""turned = transpose(mixed, order=[0, 2, 1, 3])
flat = reshape(turned, shape=[{rows}, {width}])
"""
        + product("out", "flat", "wo")
        + "middle = cast(first_wide + out + cast(bo, float32), bfloat16)\n"
        + layer_norm("middle", "second", "n2", "s2")
    )
    text += (
        product("h_sum", "second", "up")
        + """h = h_sum + cast(bu, float32)
active = cast(0.5 * h * (1 + erf(h * 0.7071067811865476)), bfloat16)
"""
        + product("last", "active", "down")
        + "y = cast(second_wide + last + cast(bd, float32), bfloat16)\noutput y\n"
    )

    def call(x, n1, s1, wqkv, bqkv, wo, bo, n2, s2, up, bu, down, bd):
        q, k, v = (
            F.linear(F.layer_norm(x, n1.shape, n1, s1), wqkv, bqkv)
            .view(images, tokens, 3, heads, dim)
            .permute(2, 0, 3, 1, 4)
        )
        mixed = F.scaled_dot_product_attention(q, k, v)
        middle = x + F.linear(mixed.transpose(1, 2).reshape(rows, width), wo, bo)
        return middle + F.linear(
            F.gelu(F.linear(F.layer_norm(middle, n2.shape, n2, s2), up, bu)), down, bd
        )

    return text, call


def convolutions(images, side=28, channels=128):
    """Two convolutions of 3 by 3, channels last, with batch norms as in inference, ReLU and a
    residual."""
    inputs = {"x": [images, side, side, channels]}
    for i in "12":
        inputs[f"w{i}"] = [channels, 3, 3, channels]
        inputs.update(
            {f"{name}{i}": ["float32", channels] for name in ("xmean", "xvar", "gain", "shift")}
        )
    text = header("convolutions", **inputs)
    for i, source in (("1", "x"), ("2", "a1")):
        text += (
            f"""tall{i} = pad({source}, axis=1, low=1, high=1)
wide{i} = pad(tall{i}, axis=2, low=1, high=1)
rows{i} = window(wide{i}, axis=1, size=3)
taps{i} = window(rows{i}, axis=3, size=3)
"""
            + narrow(f"p{i}", f"taps{i}", f"w{i}", "nhrwsc,orsc->nhwo")
            + f"n{i} = (cast(p{i}, float32) - xmean{i}) * rsqrt(abs(xvar{i}) + 1e-5)"
            f" * gain{i} + shift{i}\n"
        )
        text += (
            "a1 = cast(maximum(n1, 0), bfloat16)\n"
            if i == "1"
            else "y = cast(maximum(n2 + cast(x, float32), 0), bfloat16)\noutput y\n"
        )

    def call(x, w1, m1, v1, g1, s1, w2, m2, v2, g2, s2):
        image = x.permute(0, 3, 1, 2)
        a = F.relu(
            F.batch_norm(F.conv2d(image, w1.permute(0, 3, 1, 2), padding=1), m1, v1.abs(), g1, s1)
        )
        return F.relu(
            F.batch_norm(F.conv2d(a, w2.permute(0, 3, 1, 2), padding=1), m2, v2.abs(), g2, s2)
            + image
        ).permute(0, 2, 3, 1)

    return text, call


def lora(rows, width=4096, rank=16):
    text = header("lora", x=[rows, width], w=[width, width], low=[rank, width], high=[width, rank])
    text += (
        narrow("h", "x", "low")
        + product("main", "x", "w")
        + product("more", "h", "high")
        + "y = cast(main + more * 2.0, bfloat16)\noutput y\n"
    )
    return text, lambda x, w, low, high: F.linear(x, w) + F.linear(F.linear(x, low), high) * 2.0


def head(rows, width=2048, vocabulary=32000):
    text = header("head", x=[rows, width], w=[vocabulary, width], labels=["int64", rows])
    text += (
        narrow("logits", "x", "w")
        + f"""wide = cast(logits, float32)
top = reduce_max(wide, axes=[-1], keep=true)
grown = exp(wide - top)
total = reduce_sum(grown, axes=[-1], keep=true)
places = reshape(labels, shape=[{rows}, 1])
chosen = gather(wide, places, axis=1, batch=1)
losses = log(total) + top - chosen
y = reduce_mean(losses, axes=[0, 1])
output y
"""
    )
    return text, lambda x, w, labels: F.cross_entropy(F.linear(x, w).float(), labels)


def gate(rows, width=2048, experts=64, chosen=8):
    text = header("gate", x=[rows, width], w=[experts, width])
    text += (
        product("logits", "x", "w")
        + softmax("logits", "share")
        + f"""places = sort(share, axis=1, descending=true, count={chosen})
best = gather(share, places, axis=1, batch=1)
whole = reduce_sum(best, axes=[-1], keep=true)
y = best / whole
output y
"""
    )

    def call(x, w):
        best, _ = torch.topk(F.linear(x, w).float().softmax(-1), chosen)
        return best / best.sum(-1, keepdim=True)

    return text, call


def qkv(tokens, width=4096, heads=32, groups=8, dim=128):
    """RMS norm; queries, keys and values by one matrix; heads that share keys; rotary embedding."""
    columns = (heads + 2 * groups) * dim
    text = header(
        "qkv",
        x=[tokens, width],
        weight=[width],
        w=[columns, width],
        cosine=["float32", tokens, dim],
        sine=["float32", tokens, dim],
    )
    text += rms_norm("x", "normed", "weight") + narrow("all", "normed", "w")
    begin = 0
    for name, count in (("q", heads), ("k", groups), ("v", groups)):
        text += f"""{name}_flat = slice(all, axis=1, start={begin}, stop={begin + count * dim})
{name}_rows = reshape({name}_flat, shape=[1, {tokens}, {count}, {dim}])
{name}{'' if name == 'v' else '_heads'} = transpose({name}_rows, order=[0, 2, 1, 3])
"""
        begin += count * dim
    text += turned_heads("q", dim) + turned_heads("k", dim) + "output q\noutput k\noutput v\n"

    def call(x, weight, w, cosine, sine):
        all = F.linear(norm(x, weight), w).view(1, tokens, heads + 2 * groups, dim).transpose(1, 2)
        q, k, v = all.split([heads, groups, groups], 1)
        return turn(q, cosine, sine), turn(k, cosine, sine), v.contiguous()

    return text, call


def training(rows, width=1024, hidden=4096):
    """Forward and backward of two linear layers with ReLU and a mean squared error: gradients of
    both matrices and biases."""
    text = header(
        "training",
        x=[rows, width],
        w1=[hidden, width],
        b1=[hidden],
        w2=[width, hidden],
        target=[rows, width],
    )
    text += (
        product("h_sum", "x", "w1")
        + "h = cast(maximum(h_sum + cast(b1, float32), 0), bfloat16)\n"
        + narrow("out", "h", "w2")
        + f"""off = cast(out, float32) - cast(target, float32)
square = off * off
loss = reduce_mean(square, axes=[0, 1])
d_out = cast(off * {2.0 / (rows * width)}, bfloat16)
"""
        + narrow("d_w2", "d_out", "h", "mn,mk->nk")
        + product("d_h_sum", "d_out", "w2", "mn,nk->mk")
        + """d_h = cast(select(h > 0, d_h_sum, 0), bfloat16)
"""
        + narrow("d_w1", "d_h", "x", "mn,mk->nk")
        + """d_h_wide = cast(d_h, float32)
d_b1_sum = reduce_sum(d_h_wide, axes=[0])
d_b1 = cast(d_b1_sum, bfloat16)
output loss
output d_w1
output d_b1
output d_w2
"""
    )

    def call(x, w1, b1, w2, target):
        h = F.relu(F.linear(x, w1, b1))
        off = F.linear(h, w2).float() - target.float()
        d_out = (off * (2.0 / off.numel())).bfloat16()
        d_h = torch.where(h > 0, d_out @ w2, 0)
        return (off * off).mean(), d_h.t() @ x, d_h.sum(0), d_out.t() @ h

    return text, call


ROWS = [
    ("mlp 512 rows", mlp(512)),
    ("mlp 4096 rows", mlp(4096)),
    ("mlp 4096 rows, 4096 to 14336", mlp(4096, 4096, 14336)),
    ("layer 1x512", layer(1, 512)),
    ("layer 4x1024", layer(4, 1024)),
    ("linear 512 rows", linear(512)),
    ("linear 8192 rows", linear(8192)),
    ("scores 1x16x512x512", scores(1, 16, 512, 512)),
    ("scores 8x16x1024x1024", scores(8, 16, 1024, 1024)),
    ("bottleneck 8", bottleneck(8)),
    ("bottleneck 64", bottleneck(64)),
    ("vit 8", vit(8)),
    ("vit 64", vit(64)),
    ("convolutions 64", convolutions(64)),
    ("lora 512 rows", lora(512)),
    ("lora 8192 rows", lora(8192)),
    ("head 2048 rows", head(2048)),
    ("gate 4096 rows", gate(4096)),
    ("qkv 512 tokens", qkv(512)),
    ("qkv 4096 tokens", qkv(4096)),
    ("training 1024 rows", training(1024)),
    ("training 8192 rows", training(8192)),
]
