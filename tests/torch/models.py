#!/usr/bin/env python3
"""Do PyTorch programs mean to atunner what they mean to PyTorch? Every operator of aten.def alone,
and modules as `atunner.capture` writes them, in float64, on equal inputs.

    python3 models.py --reference build/dev/tests/model_values [--only TEXT]
Exit code 77 where there is no PyTorch.
"""
import argparse
import operator
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
from atunner._program import Input, argument, program_json, tensor_meta

from aten_cases import NOT_CALLED, Written, aten_cases
from model_modules import modules
from semantics import Reference, as_tuple, differences, flat

warnings.simplefilter("ignore")

TOLERANCE = 1e-9
#: Of results that PyTorch rounds to narrower types.
ROUNDINGS = {torch.float32: 4e-6, torch.bfloat16: 2**-8}


def is_tensors(value):
    return isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value)


def single_node(case):
    """A graph of one operator; its inputs are the tensors among the arguments."""
    graph = torch.fx.Graph()
    tensors = []

    def place(value):
        if is_tensors(value):
            return [place(each) for each in value]
        if not isinstance(value, torch.Tensor):
            return value
        tensors.append(value)
        return graph.placeholder(f"in_{len(tensors)}")

    args = [place(value) for value in case.args]
    kwargs = {name: place(value) for name, value in case.kwargs.items()}
    node = graph.call_function(case.overload(), tuple(args), kwargs)
    results = as_tuple(case.result())
    outputs = [node]
    if isinstance(case.result(), (list, tuple)):
        wanted = range(len(results)) if case.outputs is None else case.outputs
        outputs = [graph.call_function(operator.getitem, (node, i)) for i in wanted]
        results = [results[i] for i in wanted]
    graph.output(tuple(outputs))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    program = program_json(module, [Input("user_input", "")] * len(tensors), tensors)
    return program, {f"in_{i + 1}": flat(t) for i, t in enumerate(tensors)}, results


def written_node(case):
    """The program of an operator that is not called, and its results."""
    tensors = {n: value for n, value in case.kwargs.items() if isinstance(value, torch.Tensor)}
    named = {n: {"as_tensor": {"name": "in_" + n}} for n in tensors}
    arguments = [
        {"name": n, "arg": named.get(n) or argument(value)} for n, value in case.kwargs.items()
    ]
    metas = {"in_" + name: tensor_meta(value) for name, value in tensors.items()}
    results = as_tuple(case.expected)
    metas.update((f"out_{i}", tensor_meta(result)) for i, result in enumerate(results))
    outs = [{"as_tensor": {"name": f"out_{i}"}} for i in range(len(results))]
    graph = {
        "nodes": [{"target": "torch.ops." + case.target, "inputs": arguments, "outputs": outs}],
        "tensor_values": metas,
    }
    signature = {
        "input_specs": [{"user_input": {"arg": named[n]}} for n in tensors],
        "output_specs": [{"user_output": {"arg": out}} for out in outs],
    }
    program = {
        "graph_module": {"graph": graph, "signature": signature},
        "schema_version": {"major": 8, "minor": 1},
    }
    return program, {"in_" + n: flat(t) for n, t in tensors.items()}, results


def compare(answer, results, tolerance=TOLERANCE):
    """What is wrong, as text; "" where nothing is."""
    if "error" in answer:
        return answer["error"]
    found = [
        differences(f"result {i}", got, want, ROUNDINGS.get(want.dtype, tolerance))
        for i, (got, want) in enumerate(zip(answer["outputs"], results))
    ]
    return "; ".join(text for text in found if text)


def tensors_in(value):
    """The tensors of nested results, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return [tensor for part in parts for tensor in tensors_in(part)]


def check_operators(reference, only):
    wrong, tested = 0, set()
    for case in aten_cases():
        if only and only not in case.target:
            continue
        tested.add(case.target)
        make = written_node if isinstance(case, Written) else single_node
        program, inputs, results = make(case)
        problem = compare(reference.ask({"program": program, "inputs": inputs}), results)
        if problem:
            wrong += 1
            print(f"{case}: {problem}")
    known = set(reference.ask({})["operators"])
    untested = sorted(known - tested - set(NOT_CALLED))
    if not only and untested:
        wrong += 1
        print(f"operators without a case: {', '.join(untested)}")
    print(f"{len(tested)} of {len(known)} operators compared, {wrong} wrong")
    return wrong


def check_modules(reference, only):
    wrong = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, module, inputs in modules():
            if only and only not in name:
                continue
            module = module.double().eval()
            with torch.no_grad():
                want = tensors_in(module(*inputs))
            given = {}
            for ending in ("", ".pt2"):
                path = atunner.capture(module, inputs, os.path.join(folder, name + ending))
                values = input_values(path, module, inputs)
                given[ending] = reference.ask({"path": path, "inputs": values})
                problem = compare(given[ending], want)
                compared += 1
                if problem:
                    wrong += 1
                    print(f"module {name}{ending}: {problem}")
    print(f"{compared} captured modules compared, {wrong} wrong")
    return wrong


def input_values(path, module, inputs):
    """Values by the names that the program has for its inputs, weights from the module."""
    import json
    import zipfile

    if path.endswith(".pt2"):
        with zipfile.ZipFile(path) as archive:
            program = json.loads(archive.read("model/models/model.json"))
            config = json.loads(archive.read("model/data/constants/model_constants_config.json"))
            raw = {
                name: archive.read("model/data/constants/" + entry["path_name"])
                for name, entry in config["config"].items()
            }
    else:
        root = os.path.dirname(path)
        with open(path) as file:
            program = json.load(file)
        with open(os.path.join(root, "data/constants/model_constants_config.json")) as file:
            config = json.load(file)
        raw = {}
        for name, entry in config["config"].items():
            with open(os.path.join(root, "data/constants", entry["path_name"]), "rb") as file:
                raw[name] = file.read()
    known = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    metas = program["graph_module"]["graph"]["tensor_values"]
    types = {5: torch.int64, 7: torch.float32, 8: torch.float64, 12: torch.bool}
    values, users = {}, iter(inputs)
    for spec in program["graph_module"]["signature"]["input_specs"]:
        ((kind, fields),) = spec.items()
        if kind == "user_input":
            values[fields["arg"]["as_tensor"]["name"]] = flat(next(users))
        elif kind == "tensor_constant":
            name = fields["arg"]["name"]
            data = raw[fields["tensor_constant_name"]]
            values[name] = flat(
                torch.frombuffer(bytearray(data), dtype=types[metas[name]["dtype"]])
            )
        else:
            values[fields["arg"]["name"]] = flat(known[fields[kind + "_name"]].detach())
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.manual_seed(1)
    reference = Reference(options.reference)
    wrong = check_operators(reference, options.only) + check_modules(reference, options.only)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
