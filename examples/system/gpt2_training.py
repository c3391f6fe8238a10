"""A program for `atunner system --apply`: GPT-2 (124 M parameters) on random tokens of length 1024.

model, batch, loss and optimizer are what it must have; docs/how-to/optimize-a-system.md says more.
"""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, TOKENS, LENGTH = 768, 12, 12, 50257, 1024

autocast = torch.bfloat16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (
            part.reshape(n, t, HEADS, c // HEADS).transpose(1, 2)
            for part in self.qkv(self.ln_1(x)).split(c, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, t, c))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS, bias=False)
        self.head.weight = self.tokens.weight
        for module in self.modules():
            if isinstance(module, (nn.Embedding, nn.Linear)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


def model():
    torch.manual_seed(1)
    return Gpt2()


def batch(samples):
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(0, TOKENS, (samples, LENGTH + 1), generator=generator)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()


def loss(model, tokens, next_tokens):
    return F.cross_entropy(model(tokens), next_tokens)


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=1e-4)


def blocks(model):
    return model.h
