#!/usr/bin/env python3
"""Writes the models of tests/data/models: programs that the command line's tests read where there
is no PyTorch.

    python3 write_models.py FOLDER
"""
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "faces", "python"))

import torch

import atunner
from model_modules import Attention

nn = torch.nn
MODELS = {
    "mlp": (
        nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 32)),
        torch.randn(16, 64),
    ),
    "conv_bn_relu": (
        nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
        torch.randn(2, 8, 16, 16),
    ),
    "attention": (Attention(width=64, heads=2), torch.randn(2, 8, 64)),
}


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, (module, example) in MODELS.items():
        path = atunner.capture(module.eval(), (example,), os.path.join(folder, name))
        with open(path) as file:
            program = json.load(file)
        with open(os.path.join(folder, name + ".json"), "w") as file:
            json.dump(program, file, separators=(",", ":"))
            file.write("\n")
        shutil.rmtree(os.path.join(folder, name))


if __name__ == "__main__":
    main()
