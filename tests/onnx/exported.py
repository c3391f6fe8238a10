#!/usr/bin/env python3
"""Do PyTorch's modules mean to atunner what they mean to PyTorch, when they come as ONNX models?
The modules of tests/torch/model_modules.py, as `torch.onnx.export` writes them; with --networks
the 50 networks of bench/kernelbench at their small sizes.

    exported.py --reference build/dev/tests/model_values [--networks] [--only NAME] [--opset 11]
"""

import argparse
import os
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "torch"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "faces", "python"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
sys.path.insert(0, HERE)

try:
    import torch
    import onnx
    from onnx import numpy_helper
except ImportError:
    sys.exit(77)

from model_modules import modules
from models import tensors_in
from nodes import Reference, compare, flat, identifier


def exported(module, inputs, path, opset):
    """True if PyTorch can write the module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, inputs, path, opset_version=opset, do_constant_folding=False)
        return True
    except Exception as error:  # PyTorch has no single class for "cannot be exported"
        print("PyTorch cannot write it:", str(error).split("\n")[0][:100])
        return False


def networks():
    import kernelbench

    for problem in kernelbench.problems((3,)):
        module, inputs = problem.make(small=True)
        yield f"{problem.key} {problem.name}", module, inputs


def in_float64(inputs):
    return tuple(each.double() if each.is_floating_point() else each for each in inputs)


def check(reference, module, inputs, path):
    with torch.no_grad():
        want = [tensor.numpy() for tensor in tensors_in(module(*inputs))]
    model = onnx.load(path)
    values = {
        identifier(tensor.name): flat(numpy_helper.to_array(tensor))
        for tensor in model.graph.initializer
    }
    weights = {tensor.name for tensor in model.graph.initializer}
    users = [value for value in model.graph.input if value.name not in weights]
    for value, given in zip(users, inputs):
        values[identifier(value.name)] = flat(given.numpy())
    return compare(reference.ask({"path": path, "inputs": values}), want)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--networks", action="store_true", help="the networks of bench/kernelbench")
    parser.add_argument("--opset", type=int, default=17, help="version of the operator set")
    options = parser.parse_args()
    torch.manual_seed(1)
    reference = Reference(options.reference)
    compared = wrong = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        for name, module, inputs in networks() if options.networks else modules():
            if options.only and options.only not in name:
                continue
            print(f"{name}: ", end="")
            module, inputs = module.double().eval(), in_float64(inputs)
            if not exported(module, inputs, path, options.opset):
                refused += 1
                continue
            compared += 1
            problem = check(reference, module, inputs, path)
            wrong += bool(problem)
            print(problem or "agrees")
    print(f"{compared} modules compared, {wrong} wrong, {refused} that PyTorch cannot write")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
