#!/usr/bin/env python3
"""Writes the models of atunner/fusion/testdata: patterns of layers as PyTorch emits them, and whole
training steps.

    python3 fusion_patterns.py FOLDER
"""
import json
import math
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "faces", "python"))

import torch
from torch import nn
from torch.nn import functional as F

import atunner


class Of(nn.Module):
    """A function with its layers."""

    def __init__(self, function, **layers):
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def conv(into=32, out=32):
    return nn.Conv2d(into, out, 3, padding=1)


def attention(m, q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return F.softmax(scores, dim=-1) @ v


def rms(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def rope(m, x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def quantised(m, x):
    scale = x.abs().amax(-1, keepdim=True) / 127
    return torch.clamp(torch.round(x / scale), -127, 127).to(torch.int8), scale


def parameter(*shape):
    return nn.Parameter(torch.randn(*shape))


def image(channels=32):
    return torch.randn(8, channels, 32, 32)


def rows(width=256):
    return torch.randn(512, width)


def half(module):
    return module.to(torch.bfloat16)


def patterns():
    """name, module, inputs"""
    linear, wide = nn.Linear(256, 512), nn.Linear(512, 256)
    norm = nn.LayerNorm(256)
    heads = [torch.randn(4, 8, 64, 32) for _ in range(3)]
    yield "conv_bn_relu", nn.Sequential(conv(), nn.BatchNorm2d(32), nn.ReLU()), (image(),)
    yield "conv_bn_relu_kept", Of(
        lambda m, x: (lambda y: (y, torch.relu(m.bn(y))))(m.conv(x)),
        conv=conv(),
        bn=nn.BatchNorm2d(32),
    ), (image(),)
    yield "conv_residual_relu", Of(lambda m, x, r: torch.relu(m.conv(x) + r), conv=conv()), (
        image(),
        image(),
    )
    yield "conv_chain", nn.Sequential(conv(), nn.ReLU(), conv(), nn.ReLU()), (image(),)
    yield "linear_gelu", nn.Sequential(linear, nn.GELU()), (rows(),)
    yield "linear_relu_residual", Of(lambda m, x, r: torch.relu(m.linear(x)) + r, linear=linear), (
        rows(),
        rows(512),
    )
    yield "linear_linear", nn.Sequential(linear, nn.GELU(), wide), (rows(),)
    yield "linear_shared", Of(
        lambda m, x: (lambda y: (m.a(y), m.b(y)))(torch.relu(m.first(x))),
        first=linear,
        a=nn.Linear(512, 256),
        b=nn.Linear(512, 128),
    ), (rows(),)
    yield "matmul_scale", Of(lambda m, a, b: a @ b.t() * 0.125), (rows(), rows())
    yield "softmax_mask", Of(lambda m, x, mask: F.softmax(x * 0.125 + mask, dim=-1)), (
        torch.randn(4, 8, 128, 128),
        torch.randn(128, 128),
    )
    yield "attention", Of(attention), tuple(heads)
    yield "layer_norm_residual", Of(lambda m, x, r: m.norm(x + r), norm=norm), (rows(), rows())
    yield "layer_norm_residual_kept", Of(
        lambda m, x, r: (lambda s: (s, m.norm(s)))(x + r), norm=norm
    ), (rows(), rows())
    yield "rms_norm", Of(lambda m, x: rms(x, m.weight), weight=parameter(256)), (rows(),)
    yield "add_rms_norm", Of(lambda m, x, r: rms(x + r, m.weight), weight=parameter(256)), (
        rows(),
        rows(),
    )
    yield "swiglu", Of(lambda m, x: F.silu(x[:, :256]) * x[:, 256:]), (rows(512),)
    yield "swiglu_linear", Of(
        lambda m, x: F.silu(m.gate(x)) * m.up(x), gate=nn.Linear(256, 512), up=nn.Linear(256, 512)
    ), (rows(),)
    yield "geglu", Of(lambda m, x: F.gelu(x[:, :256]) * x[:, 256:]), (rows(512),)
    yield "rope", Of(rope), (torch.randn(4, 8, 64, 32), torch.randn(64, 32), torch.randn(64, 32))
    yield "embedding_norm", Of(
        lambda m, t, p: m.norm(m.tokens(t) + m.places(p)),
        tokens=nn.Embedding(1000, 256),
        places=nn.Embedding(128, 256),
        norm=norm,
    ), (torch.randint(0, 1000, (4, 128)), torch.arange(128))
    yield "pool_relu", nn.Sequential(nn.AvgPool2d(2), nn.ReLU()), (image(),)
    yield "cat_relu", Of(lambda m, a, b: torch.relu(torch.cat([a, b], 1))), (rows(), rows())
    yield "quantise", Of(quantised), (rows(),)
    yield "group_norm_silu", nn.Sequential(nn.GroupNorm(8, 32), nn.SiLU()), (image(),)
    yield "scan_compare", Of(
        lambda m, x: torch.where(torch.cumsum(x, -1) > 1.0, x, torch.zeros_like(x))
    ), (rows(),)
    yield "rounded_argmax", half(Of(lambda m, a, b: torch.argmax(a * b, -1))), (
        rows().bfloat16(),
        rows().bfloat16(),
    )
    yield "rounded_compare", half(Of(lambda m, a, b: ((a * b) == a).to(torch.bfloat16) + a)), (
        rows().bfloat16(),
        rows().bfloat16(),
    )
    yield "rounded_relu", half(Of(lambda m, a, b: torch.relu(a * b))), (
        rows().bfloat16(),
        rows().bfloat16(),
    )


def steps():
    """name, model, loss, optimizer, batch"""
    mlp = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64))
    labels = torch.randint(0, 64, (128,))
    adam = torch.optim.Adam(mlp.parameters(), lr=0.01)
    yield "mlp_adam", mlp, F.cross_entropy, adam, (torch.randn(128, 256), labels)
    net = nn.Sequential(
        conv(3, 16),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        conv(16, 16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    batch = (torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,)))
    yield "convnet_sgd", net.train(), F.cross_entropy, sgd, batch
    normed = nn.Sequential(nn.Linear(128, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 32))
    sgd = torch.optim.SGD(normed.parameters(), lr=0.01)
    yield "norm_sgd", normed, F.mse_loss, sgd, (torch.randn(256, 128), torch.randn(256, 32))


def keep(written, folder, name):
    """The program alone, without its weights."""
    with open(written) as file:
        program = json.load(file)
    with open(os.path.join(folder, name + ".json"), "w") as file:
        json.dump(program, file, separators=(",", ":"))
        file.write("\n")
    shutil.rmtree(os.path.dirname(written))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(1)
    for name, module, inputs in patterns():
        keep(atunner.capture(module.eval(), inputs, os.path.join(folder, name)), folder, name)
    for name, model, loss, optimizer, batch in steps():
        path = os.path.join(folder, "step_" + name)
        keep(atunner.capture_step(model, loss, optimizer, batch, path), folder, "step_" + name)


if __name__ == "__main__":
    main()
