#!/usr/bin/env python3
"""Are captured training steps PyTorch's? Loss, every gradient, and every update of parameters,
optimizer states and running statistics, evaluated in float64, against PyTorch's own second step.

    python3 steps.py --reference build/dev/tests/model_values [--only TEXT]
Exit code 77 where there is no PyTorch.
"""
import argparse
import json
import os
import sys
import tempfile
import warnings

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "faces", "python"))

import atunner
from semantics import Reference, differences, flat

from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")

TOLERANCE = 1e-8


class Block(nn.Module):
    """A layer of a transformer with tokens in front."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.norm, self.last = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 11)

    def forward(self, tokens):
        x = self.tokens(tokens)
        q, k, v = self.qkv(self.norm(x)).split(8, dim=-1)
        x = x + self.out(F.softmax(q @ k.transpose(-2, -1) / 8**0.5, dim=-1) @ v)
        return self.down(F.gelu(self.up(self.last(x)))).flatten(0, 1)


def steps():
    """name, model, loss, optimizer, batch"""
    labels = torch.randint(0, 4, (6,))
    mlp = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 4)).double()
    adam = torch.optim.Adam(mlp.parameters(), lr=0.01, weight_decay=0.1)
    yield "mlp_adam", mlp, F.cross_entropy, adam, (torch.randn(6, 5).double(), labels)
    net = (
        nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, stride=2),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 4),
        )
        .double()
        .train()
    )
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
    yield "convnet_sgd", net, F.cross_entropy, sgd, (torch.randn(6, 3, 8, 8).double(), labels)
    block = Block().double()
    adamw = torch.optim.AdamW(block.parameters(), lr=0.01)
    tokens = torch.randint(0, 11, (2, 6))
    yield "transformer_adamw", block, F.cross_entropy, adamw, (tokens, torch.randint(0, 11, (12,)))


def run_step(model, loss, optimizer, batch):
    """One step of PyTorch's own; the loss."""
    optimizer.zero_grad(set_to_none=True)
    value = loss(model(*batch[:-1]), batch[-1])
    value.backward()
    optimizer.step()
    return value.detach()


def state(model, optimizer):
    """Parameters, buffers and the optimizer's states by the names that captures give them."""
    values = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            if value is not None:
                values[f"optimizer.{name}.{key}"] = torch.as_tensor(value)
    return {name: value.detach().clone() for name, value in values.items()}


def inputs_of(program, before, batch):
    values, users = {}, iter(batch)
    for spec in program["graph_module"]["signature"]["input_specs"]:
        ((kind, fields),) = spec.items()
        if kind == "user_input":
            values[fields["arg"]["as_tensor"]["name"]] = flat(next(users))
        else:
            values[fields["arg"]["name"]] = flat(before[fields[kind + "_name"]].double())
    return values


def wanted(spec, loss, model, after):
    """What PyTorch has for a result of the program."""
    ((kind, fields),) = spec.items()
    if kind == "loss_output":
        return "the loss", loss
    name = fields.get("parameter_name") or fields["buffer_name"]
    if kind == "gradient_to_parameter":
        return f"the gradient of {name}", dict(model.named_parameters())[name].grad
    return f"the next {name}", after[name].double()


def check(reference, folder, name, model, loss, optimizer, batch):
    """The number of results, and what is wrong with them."""
    run_step(model, loss, optimizer, batch)
    before = state(model, optimizer)
    path = atunner.capture_step(model, loss, optimizer, batch, os.path.join(folder, name))
    with open(path) as file:
        program = json.load(file)
    changed = [n for n, value in state(model, optimizer).items() if not value.equal(before[n])]
    wrong = [f"{n} was changed by the capture" for n in changed]
    value = run_step(model, loss, optimizer, batch)
    after = state(model, optimizer)
    answer = reference.ask({"path": path, "inputs": inputs_of(program, before, batch)})
    if "error" in answer:
        return 0, wrong + [answer["error"]]
    specs = program["graph_module"]["signature"]["output_specs"]
    for spec, got in zip(specs, answer["outputs"]):
        what, want = wanted(spec, value, model, after)
        problem = differences(what, got, want, TOLERANCE)
        if problem:
            wrong.append(problem)
    return len(specs), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.manual_seed(1)
    reference = Reference(options.reference)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, *step in steps():
            if options.only not in name:
                continue
            count, wrong = check(reference, folder, name, *step)
            failed += len(wrong)
            print(f"{name}: {count} results compared, {len(wrong)} wrong")
            for problem in wrong:
                print("  " + problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
