"""Writes gpt.json: 4 blocks of width 256, 2048 words, 128 tokens, a batch of 4. Needs PyTorch.

    PYTHONPATH=faces/python python3 examples/system/gpt.py gpt    # gpt/model.json
"""

import sys
import torch, atunner, warnings
from torch import nn
from torch.nn import functional as F
warnings.simplefilter("ignore")
class Block(nn.Module):
    def __init__(s, d, h):
        super().__init__(); s.h = h
        s.ln1, s.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        s.qkv, s.out = nn.Linear(d, 3*d), nn.Linear(d, d)
        s.up, s.down = nn.Linear(d, 4*d), nn.Linear(4*d, d)
    def forward(s, x):
        b, t, d = x.shape
        q, k, v = s.qkv(s.ln1(x)).view(b, t, 3, s.h, d//s.h).permute(2, 0, 3, 1, 4)
        a = F.softmax(q @ k.transpose(-2, -1) / (d//s.h)**0.5, dim=-1) @ v
        x = x + s.out(a.transpose(1, 2).reshape(b, t, d))
        return x + s.down(F.gelu(s.up(s.ln2(x))))
class Gpt(nn.Module):
    def __init__(s, layers, d, h, vocab, t):
        super().__init__()
        s.tokens, s.places = nn.Embedding(vocab, d), nn.Embedding(t, d)
        s.h = nn.ModuleList(Block(d, h) for _ in range(layers))
        s.norm, s.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
    def forward(s, x):
        y = s.tokens(x) + s.places(torch.arange(x.shape[1]))
        for b in s.h: y = b(y)
        return s.head(s.norm(y)).flatten(0, 1)


model = Gpt(4, 256, 4, 2048, 128).eval()
atunner.capture(model, (torch.randint(0, 2048, (4, 128)),), sys.argv[1])
