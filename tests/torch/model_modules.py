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


def modules():
    """Names, modules and inputs."""

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
            nn.Conv2d(3, 4, 5), nn.ReLU6(inplace=True), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(4, 5), nn.LogSoftmax(dim=1),
        ),
        (real(2, 3, 12, 12),),
    )
    yield "residual", Residual(), (real(2, 4, 6, 6),)
    yield "attention", Attention(), (real(2, 8, 16),)
    yield "block", Block(), (real(2, 8, 16),)
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
