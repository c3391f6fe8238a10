"""BERT-base with its head for masked tokens, sequences of 512, as a program of
atunner._parallel."""

import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import training_models  # noqa: E402

TOKENS, LENGTH = 30522, 512
autocast = torch.bfloat16


def model():
    torch.manual_seed(1)
    return training_models.Language(False, 12, 768, 12, TOKENS, LENGTH)


def batch(samples):
    generator = torch.Generator().manual_seed(2)
    draw = lambda *shape: torch.randint(0, TOKENS, shape, generator=generator)  # noqa: E731
    return draw(samples, LENGTH), draw(samples * LENGTH)


def loss(model, tokens, targets):
    return torch.nn.functional.cross_entropy(model(tokens), targets)


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=1e-4)


def blocks(model):
    return model.layers
