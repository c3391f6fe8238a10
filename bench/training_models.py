"""The models of training.py, at their published sizes or small, for PyTorch 1.13 and 2."""

import math

import torch
from torch import nn

F = nn.functional


def attention(q, k, v, causal):
    """scaled_dot_product_attention, also where PyTorch has none."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return F.softmax(scores, dim=-1) @ v


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        parts = self.qkv(x).split(c, dim=-1)
        q, k, v = (a.reshape(n, t, self.heads, c // self.heads).transpose(1, 2) for a in parts)
        return self.out(attention(q, k, v, self.causal).transpose(1, 2).reshape(n, t, c))


class Layer(nn.Module):
    """A transformer's layer with the norms in front (GPT-2, ViT) or behind (BERT)."""

    def __init__(self, width, heads, causal, norms_first, approximate):
        super().__init__()
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms_first, self.approximate = norms_first, approximate

    def forward(self, x):
        if self.norms_first:
            x = x + self.attention(self.norm(x))
            return x + self.between(self.last(x))
        x = self.norm(x + self.attention(x))
        return self.last(x + self.between(x))

    def between(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.approximate))


class Language(nn.Module):
    """GPT-2 (causal, tied head) or BERT with its head for masked tokens."""

    def __init__(self, causal, layers, width, heads, tokens, length):
        super().__init__()
        self.causal = causal
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(length, width)
        gelu = "tanh" if causal else "none"
        made = [Layer(width, heads, causal, causal, gelu) for _ in range(layers)]
        self.layers, self.norm = nn.Sequential(*made), nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=not causal)
        self.head.weight = self.tokens.weight
        if not causal:
            self.kinds = nn.Embedding(2, width)
            self.change, self.changed = nn.Linear(width, width), nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, (nn.Embedding, nn.Linear)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        if self.causal:
            return self.head(self.norm(self.layers(x))).flatten(0, 1)
        x = self.layers(self.norm(x + self.kinds.weight[0]))
        return self.head(self.changed(F.gelu(self.change(x)))).flatten(0, 1)


class Vision(nn.Module):
    """ViT with a class token, patches of 16 x 16."""

    def __init__(self, layers, width, heads, size, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, (size // 16) ** 2 + 1, width))
        made = [Layer(width, heads, False, True, "none") for _ in range(layers)]
        self.layers, self.norm = nn.Sequential(*made), nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


class Bottleneck(nn.Module):
    def __init__(self, given, inner, stride):
        super().__init__()
        convolution = lambda i, o, k, s=1: nn.Conv2d(i, o, k, s, k // 2, bias=False)  # noqa: E731
        self.a, self.na = convolution(given, inner, 1), nn.BatchNorm2d(inner)
        self.b, self.nb = convolution(inner, inner, 3, stride), nn.BatchNorm2d(inner)
        self.c, self.nc = convolution(inner, 4 * inner, 1), nn.BatchNorm2d(4 * inner)
        self.beside = None
        if stride != 1 or given != 4 * inner:
            change = convolution(given, 4 * inner, 1, stride)
            self.beside = nn.Sequential(change, nn.BatchNorm2d(4 * inner))

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        y = F.relu(self.nb(self.b(y)))
        y = self.nc(self.c(y))
        return F.relu(y + (x if self.beside is None else self.beside(x)))


class ResNet(nn.Module):
    """ResNet-50 for blocks (3, 4, 6, 3) of width 64."""

    def __init__(self, blocks, width, classes):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        made, given = [], width
        for stage, count in enumerate(blocks):
            for i in range(count):
                stride = 2 if i == 0 and stage > 0 else 1
                made.append(Bottleneck(given, width << stage, stride))
                given = 4 * (width << stage)
        self.blocks, self.head = nn.Sequential(*made), nn.Linear(given, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


NAMES = ("resnet50", "bert", "gpt2", "vit")
#: Parameters as published; BERT's are those of BertForMaskedLM.
PARAMETERS = {"resnet50": 25557032, "bert": 109514298, "gpt2": 124439808, "vit": 86567656}


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)


def make(name, small=False, batch=None, layers=None):
    """model, batch, and a function that makes the optimizer; on the CPU, the same in each call.
    `layers` is of transformers, in place of 12."""
    torch.manual_seed(0)
    depth = layers or (1 if small else 12)
    if name == "resnet50":
        count, size, classes = (batch or 4, 32, 10) if small else (batch or 32, 224, 1000)
        model = ResNet((1, 1), 8, classes) if small else ResNet((3, 4, 6, 3), 64, classes)
        given = torch.randn(count, 3, size, size), torch.randint(0, classes, (count,))
        return model, given, sgd
    if name == "vit":
        count, size, classes = (batch or 4, 32, 10) if small else (batch or 32, 224, 1000)
        width, heads = (64, 4) if small else (768, 12)
        model = Vision(depth, width, heads, size, classes)
        given = torch.randn(count, 3, size, size), torch.randint(0, classes, (count,))
        return model, given, adamw
    causal = name == "gpt2"
    tokens, places = (50257, 1024) if causal else (30522, 512)
    width, heads, count, length = 768, 12, batch or 8, 512 if causal else 128
    if small:
        tokens, places, width, heads, count, length = 128, 32, 64, 4, batch or 4, 32
    model = Language(causal, depth, width, heads, tokens, places)
    chosen = lambda *shape: torch.randint(0, tokens, shape)  # noqa: E731
    return model, (chosen(count, length), chosen(count * length)), adamw
