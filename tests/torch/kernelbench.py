#!/usr/bin/env python3
"""Do KernelBench's problems mean to atunner what they mean to PyTorch? Each is captured at its
small size and computed in float64 from the graph that is read.

    python3 kernelbench.py --reference build/dev/tests/model_values [--all]
Without --all, one of each kind. Exit code 77 where there is no PyTorch.
"""
import argparse
import os
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(ROOT, "faces", "python"), os.path.join(ROOT, "bench")]

import atunner
import kernelbench
from atunner import _model

from models import compare, input_values, tensors_in
from semantics import Reference

# Each kind of operator, and what once was not computed.
KINDS = """1/12 1/15 1/18 1/24 1/29 1/33 1/34 1/37 1/41 1/45 1/51 1/72 1/75 1/83 1/90 1/91 1/92 1/93
1/95 1/96 1/98 1/99 1/100 2/3 2/15 2/18 2/20 2/24 2/28 2/36 2/38 2/55 2/58 2/68 2/75 2/79 2/98
3/7 3/14 3/18 3/24 3/25 3/28 3/29 3/30 3/31 3/34 3/38 3/41 3/44 3/45 3/46 3/48"""

FILE = """
import torch

class Net(torch.nn.Module):
    def __init__(self, factor=1.0):
        super().__init__()
        self.factor, self.drop = factor, torch.nn.Dropout(0.5)

    def forward(self, x):
        return torch.tanh(self.drop(x)) * self.factor

def get_inputs():
    return [torch.arange(6, dtype=torch.float64).reshape(2, 3) / 6]
"""
MORE = """
class Other(Net):
    pass
"""


def check_problems(reference, keys):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for problem in kernelbench.problems((1, 2, 3)):
            if keys and problem.key not in keys:
                continue
            module, inputs = problem.make(small=True)
            module = module.double()
            inputs = [x.double() if x.is_floating_point() else x for x in inputs]
            path = atunner.capture(module, inputs, os.path.join(folder, problem.key))
            values = input_values(path, module, inputs)
            with torch.no_grad():
                want = tensors_in(module(*inputs))
            began = time.monotonic()
            text = compare(reference.ask({"path": path, "inputs": values}), want)
            if time.monotonic() - began > 2:
                print(f"{problem.key} took {time.monotonic() - began:.1f} s")
            if text:
                wrong += 1
                print(f"{problem.key} {problem.name}: {text}")
    return wrong


def check_file(reference, text, name, wanted):
    """A Python file as `atunner optimize FILE.py:NAME` exports it; `wanted` is a factor or an
    error."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.py")
        with open(path, "w") as file:
            file.write(text)
        try:
            _model.export(path, name, os.path.join(folder, "out"))
        except _model.ModelError as error:
            return "" if isinstance(wanted, str) and wanted in str(error) else f"error: {error}"
        x = torch.arange(6, dtype=torch.float64).reshape(2, 3) / 6
        request = {"path": os.path.join(folder, "out", "model.json")}
        request["inputs"] = {"x": x.reshape(-1).tolist()}
        return compare(reference.ask(request), [torch.tanh(x) * wanted])


def check_files(reference):
    cases = [
        (FILE, "", 1.0),
        (FILE + "def get_init_inputs(): return [3.0]\n", "Net", 3.0),
        (FILE + "def get_init_inputs(): return [[], {'factor': 2.0}]\n", "", 2.0),
        (FILE + MORE, "Other", 1.0),
        (FILE + MORE.replace("Other", "Model"), "", 1.0),
        (FILE + MORE, "", "Net, Other"),
        (FILE, "Nat", "it has: Net"),
        (FILE.replace("get_inputs", "inputs"), "", "get_inputs() is missing"),
        ("def get_inputs(): return []\n", "", "torch.nn.Module"),
    ]
    problems = [check_file(reference, *case) for case in cases]
    for case, problem in zip(cases, problems):
        if problem:
            print(f"file of {case[1]!r}, {case[2]!r}: {problem}")
    return sum(map(bool, problems))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    reference = Reference(options.reference)
    keys = [] if options.all else KINDS.split()
    wrong = check_problems(reference, keys) + check_files(reference)
    print(f"{len(keys) or 250} problems and 9 files compared, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
