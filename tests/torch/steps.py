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
from atunner._eager_step import EagerStep, state_tensors
from semantics import Reference, differences, flat

from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")

TOLERANCE = 1e-8
BFLOAT16_TOLERANCE = 0.1


class Block(nn.Module):
    """A layer of a transformer with tokens in front; `tied` also gives its head their weights."""

    def __init__(self, dropout=0.0, tied=False):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.norm, self.last = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.head = nn.Linear(8, 11, bias=False)
        if tied:
            self.head.weight = self.tokens.weight
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens):
        x = self.tokens(tokens)
        q, k, v = self.qkv(self.norm(x)).split(8, dim=-1)
        weights = F.dropout(F.softmax(q @ k.transpose(-2, -1) / 8**0.5, dim=-1), self.dropout.p)
        x = x + self.dropout(self.out(weights @ v))
        return self.head(x + self.down(F.gelu(self.up(self.last(x))))).flatten(0, 1)


def mlp():
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 4)).double()


def convolutions():
    layers = [nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(4, 4, 3, stride=2), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4, 4)).double().train()


class Infinite(nn.Module):
    """Its gradients are not finite in float64 either."""

    def __init__(self):
        super().__init__()
        self.inner = mlp()

    def forward(self, x):
        return self.inner(x * 1e200) * 1e200


def steps():
    """name, model, loss, optimizer, batch, options"""
    labels = torch.randint(0, 4, (6,))
    vectors, images = (torch.randn(6, 5).double(), labels), (
        torch.randn(6, 3, 8, 8).double(),
        labels,
    )
    tokens = (torch.randint(0, 11, (2, 6)), torch.randint(0, 11, (12,)))
    optim, entropy = torch.optim, F.cross_entropy

    def adam(model, **given):
        return optim.Adam(model.parameters(), lr=0.01, **given)

    def adamw(model, **given):
        return optim.AdamW(model.parameters(), lr=0.01, **given)

    def sgd(model, **given):
        return optim.SGD(model.parameters(), lr=0.1, momentum=0.9, **given)

    model = mlp()
    yield "mlp_adam", model, entropy, adam(model, weight_decay=0.1), vectors, {}
    model = mlp()
    yield "mlp_amsgrad", model, entropy, adam(model, amsgrad=True), vectors, {}
    model = convolutions()
    made = sgd(model, nesterov=True, weight_decay=0.01)
    yield "convnet_sgd", model, entropy, made, images, {}
    model = Block().double()
    yield "transformer_adamw", model, entropy, adamw(model), tokens, {}
    model = Block(dropout=0.3, tied=True).double()
    yield "tied_dropout", model, entropy, adamw(model), tokens, {"seed": 12345}
    model = mlp()
    yield "clipped", model, entropy, sgd(model), vectors, {"clip_norm": 0.05}
    model = mlp()
    yield "not_clipped", model, entropy, sgd(model, dampening=0.5), vectors, {"clip_norm": 1e3}
    model = convolutions()
    yield "micro_batches", model, entropy, sgd(model), images, {"micro_batches": 3}
    model = mlp()
    scaling = atunner.LossScaling(init_scale=1024.0, growth_interval=1)
    yield "scaled", model, entropy, adam(model), vectors, {"scaling": scaling, "clip_norm": 0.05}
    model = Infinite()
    yield "scaled_infinite", model, F.mse_loss, adam(model), (
        vectors[0],
        torch.randn(6, 4).double(),
    ), {"scaling": scaling}
    model = mlp().float()
    yield "autocast", model, entropy, sgd(model), (vectors[0].float(), labels), {
        "autocast": torch.bfloat16
    }
    model = mlp()
    model[0].weight.requires_grad_(False)
    groups = [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[2].parameters()}]
    yield "frozen_and_groups", model, entropy, optim.SGD(groups, lr=0.1), vectors, {}


def state(eager):
    """Values of all states by the names that captures give them."""
    values = {"scaling.scale": torch.tensor(eager.scale)}
    values["scaling.growth"] = torch.tensor(float(eager.growth))
    values["random.seed"] = torch.tensor(eager.options.seed)
    values["random.count"] = torch.tensor(0)
    values.update(state_tensors(eager.model, eager.optimizer))
    return {name: value.clone() for name, value in values.items()}


def inputs_of(program, before, batch):
    values, users = {}, iter(batch)
    for spec in program["graph_module"]["signature"]["input_specs"]:
        ((kind, fields),) = spec.items()
        if kind == "user_input":
            values[fields["arg"]["as_tensor"]["name"]] = flat(next(users))
        else:
            values[fields["arg"]["name"]] = flat(before[fields[kind + "_name"]].double())
    return values


def wanted(spec, loss, gradients, after):
    """What PyTorch has for a result of the program."""
    ((kind, fields),) = spec.items()
    if kind == "loss_output":
        return "the loss", loss
    name = fields.get("parameter_name") or fields["buffer_name"]
    if kind == "gradient_to_parameter":
        return f"the gradient of {name}", gradients[name]
    if name == "random.count":
        return "the next count of draws", torch.tensor(1.0)
    return f"the next {name}", after[name].double()


def missing(specs, before, after):
    """What PyTorch changes and the program does not."""
    said = {
        fields.get("parameter_name") or fields.get("buffer_name")
        for spec in specs
        for kind, fields in spec.items()
        if kind.endswith("_mutation")
    }
    changed = [name for name, value in after.items() if not value.equal(before[name])]
    return [f"no result is the next {name}" for name in changed if name not in said]


def check(reference, folder, name, model, loss, optimizer, batch, options):
    """The number of results, and what is wrong with them."""
    eager = EagerStep(model, loss, optimizer, atunner.StepOptions(**options))
    if "infinite" not in name:
        eager.step(batch)
        eager.count = 0  # the capture begins with the first masks
    before = state(eager)
    given = dict(options)
    if eager.options.scaling:
        given["scaling"] = eager.options.scaling._replace(init_scale=eager.scale)
    path = atunner.capture_step(model, loss, optimizer, batch, os.path.join(folder, name), **given)
    with open(path) as file:
        program = json.load(file)
    wrong = [
        f"{n} was changed by the capture"
        for n, value in state(eager).items()
        if not value.equal(before[n])
    ]
    for model_name, parameter in model.named_parameters():  # states of a first step
        for key in ("exp_avg", "exp_avg_sq", "step"):
            missing_state = torch.zeros_like(parameter) if key != "step" else torch.tensor(0.0)
            before.setdefault(f"optimizer.{model_name}.{key}", missing_state)
    value, gradients = eager.step(batch)
    after = {**before, **state(eager)}
    answer = reference.ask({"path": path, "inputs": inputs_of(program, before, batch)})
    if "error" in answer:
        return 0, wrong + [answer["error"]]
    specs = program["graph_module"]["signature"]["output_specs"]
    wrong += missing(specs, before, after)
    tolerance = TOLERANCE if eager.options.autocast is None else BFLOAT16_TOLERANCE
    for spec, got in zip(specs, answer["outputs"]):
        problem = differences(*reordered(wanted(spec, value, gradients, after), got), tolerance)
        if problem:
            wrong.append(problem)
    return len(specs), wrong


def reordered(named, got):
    return named[0], got, named[1]


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
