"""Modules of the kinds that models are made of, with inputs: each is captured and compared."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Self-attention with a causal mask, written out."""

    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (
            t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in (q, k, v)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(batch, length, width))


class Block(nn.Module):
    """A transformer's layer: norms, attention and a feed-forward part with residuals."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.attention = Attention()
        self.forward_part = nn.Sequential(
            nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.Dropout(0.1)
        )

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.forward_part(self.second(x))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + x)


class Several(nn.Module):
    """Two inputs, several results, a constant of its own."""

    def forward(self, a, b):
        table = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
        values, places = torch.max(a * table, dim=1)
        return values, {"sum": (a + b).sum(), "places": places}


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 16)
        self.places = nn.Embedding(8, 16)
        self.block = Block()

    def forward(self, tokens):
        places = torch.arange(tokens.size(1), dtype=torch.int64)
        return self.block(self.tokens(tokens) + self.places(places)) @ self.tokens.weight.t()


class Loss(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels)


class Then(nn.Module):
    """A layer, and what follows it."""

    def __init__(self, layer, function):
        super().__init__()
        self.layer, self.function = layer, function

    def forward(self, x):
        return self.function(self.layer(x))


def double_mish(x):
    return F.mish(F.mish(x))


def swish_chain(x):
    """The value before is used twice in each step."""
    x = x * torch.sigmoid(x)
    x = torch.clamp(x / 2, min=-1, max=1)
    return torch.clamp(torch.tanh(x), min=-1, max=1) * x


def chains():
    """Layers with what KernelBench's second level lets follow."""
    conv, up = nn.Conv2d(4, 8, 3), nn.ConvTranspose2d(4, 8, 3, stride=2, padding=1)
    conv3, up3 = nn.Conv3d(3, 8, 3), nn.ConvTranspose3d(3, 8, 3, stride=2, padding=1)
    gemm = nn.Linear(16, 32)
    last_max = lambda x: torch.max(x, dim=1, keepdim=True)[0]
    after = {
        "conv_min_add": (conv, lambda x: (torch.min(x, torch.tensor(0.5)) + 1.5) * 2),
        "conv_mish_mish": (conv, double_mish),
        "conv_hardswish_relu": (conv, lambda x: torch.relu(F.hardswish(x))),
        "conv_tanh_max": (conv, lambda x: F.max_pool2d(torch.tanh(x) * 2 + 1, 2)),
        "conv_pool_sigmoid_sum": (conv, lambda x: torch.sigmoid(F.avg_pool2d(x, 2)).sum([1, 2, 3])),
        "conv_gelu_mean": (conv, lambda x: F.adaptive_avg_pool2d(F.gelu(x), 1).flatten(1)),
        "conv_minimum": (conv, lambda x: torch.tanh(torch.tanh(torch.min(x, 1, keepdim=True)[0]))),
        "conv_logsumexp": (conv, lambda x: torch.logsumexp(F.hardswish(x) + x, 1, keepdim=True)),
        "up_softmax_sigmoid": (up, lambda x: torch.sigmoid(F.softmax(x, 1) * 2)),
        "up_clamp_scale": (up, lambda x: torch.clamp(torch.clamp(x, 0, 1) * 2, 0, 1) / 2),
        "up_mean_logsumexp": (
            up,
            lambda x: torch.logsumexp(x.mean((2, 3), True), 1, True).sum((2, 3)),
        ),
        "up_min_sum": (up, lambda x: F.gelu(torch.min(x, 1, True)[0].sum(2, True))),
        "conv3_softmax_pool": (conv3, lambda x: F.max_pool3d(F.softmax(x, 1), 2)),
        "conv3_chain": (conv3, lambda x: torch.sigmoid(F.gelu(F.leaky_relu(torch.relu(x)))) + 1),
        "conv3_min_softmax": (conv3, lambda x: F.softmax(torch.min(x, 2)[0], 1)),
        "up3_mean_softmax": (up3, lambda x: torch.tanh(F.softmax(x.mean(2, True) + 1, 1)) * 2),
        "up3_pool_clamp": (up3, lambda x: F.softmax(torch.clamp(F.avg_pool3d(x, 2), 0, 1), 1) * 2),
        "up3_max_swish": (up3, lambda x: torch.max(torch.sigmoid(x - 1) * (x - 1), 1)[0]),
        "gemm_swish_chain": (gemm, swish_chain),
        "gemm_relu_divide": (gemm, lambda x: torch.relu((x - 2) * 1.5) / 2),
        "gemm_logsumexp": (
            gemm,
            lambda x: F.gelu(F.gelu(F.leaky_relu(torch.logsumexp(x, 1, True)))),
        ),
        "gemm_softmax": (gemm, lambda x: F.softmax(F.gelu(x), 1)),
        "gemm_max_subtract": (gemm, lambda x: F.gelu(last_max(x) - last_max(x).mean(1, True))),
        "gemm_pool_sum": (gemm, lambda x: F.max_pool1d(x.unsqueeze(1), 2).squeeze(1).sum(1) * 0.5),
        "gemm_clamp_mish": (
            gemm,
            lambda x: torch.logsumexp(torch.clamp(x * 2 + x * 2, -3, 3), 1, True),
        ),
        "gemm_residual": (gemm, lambda x: x * 0.5 + x.clone().detach()),
        "gemm_min_constant": (gemm, lambda x: torch.min(x, torch.tensor(2.0)) - 2),
        "gemm_group_norm": (gemm, lambda x: torch.min(F.group_norm(x, 4), 1, True)[0] + 1),
    }
    shapes = {
        "conv": (2, 4, 8, 8),
        "up": (2, 4, 6, 6),
        "conv3": (2, 3, 5, 6, 6),
        "up3": (2, 3, 3, 4, 4),
    }
    for name, (layer, function) in after.items():
        shape = shapes.get(name.split("_")[0], (3, 16))
        yield name, Then(layer, function), (torch.randn(*shape, dtype=torch.float64),)


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


def modules():
    """Names, modules and inputs."""
    yield from chains()

    def real(*shape):
        return torch.randn(*shape, dtype=torch.float64)

    yield "mlp", nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), (real(3, 8),)
    yield (
        "conv_bn_relu",
        nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU()),
        (real(2, 3, 9, 9),),
    )
    yield (
        "classifier",
        nn.Sequential(
            nn.Conv2d(3, 4, 5),
            nn.ReLU6(inplace=True),
            nn.MaxPool2d(2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 5),
            nn.LogSoftmax(dim=1),
        ),
        (real(2, 3, 12, 12),),
    )
    yield "residual", Residual(), (real(2, 4, 6, 6),)
    yield "attention", Attention(), (real(2, 8, 16),)
    yield "block", Block(), (real(2, 8, 16),)
    yield "self_attention", SelfAttention(), (real(2, 5, 8),)
    yield "encoder", nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), (real(2, 5, 8),)
    first = {"batch_first": True, "norm_first": True, "activation": "gelu"}
    yield "encoder_norm_first", nn.TransformerEncoderLayer(8, 2, 12, **first), (real(2, 5, 8),)
    yield "language", Language(), (torch.randint(0, 11, (2, 8)),)
    yield "several", Several(), (real(4, 3), real(4, 3))
    yield "loss", Loss(), (real(6, 5), torch.randint(0, 5, (6,)))
    yield (
        "norms",
        nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm2d(4), nn.Softplus(), nn.Mish()),
        (real(2, 4, 5, 5),),
    )
    yield (
        "upward",
        nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), nn.SiLU()),
        (real(2, 4, 5, 5),),
    )
