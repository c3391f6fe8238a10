#!/usr/bin/env python3
"""Do ONNX operators mean to atunner what they mean to ONNX? Every node test of the onnx package,
with the values that it states, and small models of every element type and container.

    nodes.py --reference build/dev/tests/model_values [--only NAME] [--list]

Inputs that a model uses as shapes or axes are made constants, as exporters write them; all inputs
are, if the number of results depends on them. Tests of
text, sequences, optionals, control flow and random numbers are left out.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np

    for old in ("float", "int", "bool", "object"):  # the package was written for an older numpy
        if old not in np.__dict__:
            setattr(np, old, {"float": float, "int": int, "bool": bool, "object": object}[old])
    import onnx
    from onnx.backend.test.case.node import collect_testcases
except ImportError:
    sys.exit(77)

from new_operators import new_cases

LEFT_OUT = {
    "Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    "Multinomial", "If", "Loop", "Scan", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
    "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence",
    "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement",
    "StringNormalizer", "TfIdfVectorizer",
}


class Reference:
    def __init__(self, program):
        self.program = program
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.start()
        return {"error": "the program that computes references has crashed"}


def number(value):
    value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def flat(array):
    return [number(value) for value in np.asarray(array).reshape(-1)]


def as_numbers(array, info):
    """The values of an array; numpy holds bfloat16 by its bits."""
    array = np.asarray(array)
    if info.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def compare(answer, expected):
    """What is wrong; an empty text if nothing is."""
    if "error" in answer:
        return answer["error"].split("\n")[0]
    outputs = answer["outputs"]
    if len(outputs) < len(expected):
        return f"{len(outputs)} of {len(expected)} results"
    for i, (found, wanted) in enumerate(zip(outputs, expected)):
        wanted = np.asarray(wanted)
        values = np.array([float(value) for value in found])
        if values.size != wanted.size:
            return f"result {i} has {values.size} of {wanted.size} elements"
        reference = wanted.reshape(-1).astype(np.float64)
        if not np.allclose(values, reference, rtol=1e-3, atol=1e-6, equal_nan=True):
            with np.errstate(invalid="ignore"):
                worst = np.nanmax(np.abs(values - reference))
            return f"result {i} differs by {worst:.3g}"
    return ""


def identifier(name):
    """A graph's name of an input: keywords of graphs get a _ in front."""
    name = "".join(c if c.isalnum() else "_" for c in name)
    keyword = name in {"graph", "dim", "input", "output"} or name[:1].isdigit() or not name
    return "_" + name if keyword else name


def operators_of(model):
    names = {node.op_type for node in model.graph.node}
    for function in model.functions:
        names |= {node.op_type for node in function.node}
    return names


def is_tensor_case(case):
    def is_array(value):
        return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fiub"

    inputs, outputs = case.data_sets[0]
    return all(is_array(value) for value in list(inputs) + list(outputs))


def ask(reference, path, model, inputs, bind):
    given, bound = {}, {}
    for info, value in zip(model.graph.input, inputs):
        name, array = info.name, as_numbers(value, info)
        small = array.dtype.kind in "iub" or array.size == 1 or name in ("scales", "roi")
        if bind == "all" or (bind == "small" and small):
            bound[name] = {
                "dtype": array.dtype.name,
                "shape": list(array.shape),
                "values": flat(array),
            }
        else:
            given[identifier(name)] = flat(array)
    return reference.ask({"path": path, "inputs": given, "bound": bound})


def own_cases():
    """Operators that are newer than the package, or that it does not test: name, opset, node
    attributes, inputs and the values that numpy computes."""
    rng = np.random.default_rng(5)

    def real(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def whole(*shape):
        return rng.integers(-99, 99, shape).astype(np.int32)

    a, b = whole(3, 4), whole(3, 4)
    x, image = real(2, 6, 5), real(2, 3, 4, 6)
    softplus = np.log1p(np.exp(x))
    erf = np.vectorize(math.erf)
    groups = image.reshape(2, 1, -1)
    grouped = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(
        groups.var(-1, keepdims=True) + 1e-5
    )
    scale, bias = real(3), real(3)
    windows = np.lib.stride_tricks.sliding_window_view(image, (2, 2), axis=(2, 3))
    rms = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    weight = real(5)
    channel = (1, 3, 1, 1)
    cubes = (abs(image) ** 3).sum((2, 3), keepdims=True)
    norms = np.sqrt((windows**2).sum((-2, -1)))
    return [
        ("BitwiseAnd", 18, {}, [a, b], a & b),
        ("BitwiseOr", 18, {}, [a, b], a | b),
        ("BitwiseXor", 18, {}, [a, b], a ^ b),
        ("BitwiseNot", 18, {}, [a], ~a),
        ("Gelu", 20, {}, [x], 0.5 * x * (1 + erf(x / math.sqrt(2)))),
        (
            "Gelu",
            20,
            {"approximate": "tanh"},
            [x],
            0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
        ("Mish", 18, {}, [x], x * np.tanh(softplus)),
        ("Swish", 24, {"alpha": 0.5}, [x], x / (1 + np.exp(-0.5 * x))),
        ("GlobalLpPool", 2, {"p": 3}, [image], cubes ** (1 / 3)),
        ("LpPool", 18, {"p": 2, "kernel_shape": [2, 2]}, [image], norms),
        ("LpNormalization", 1, {"p": 1, "axis": 1}, [x], x / abs(x).sum(1, keepdims=True)),
        ("LpNormalization", 1, {}, [x], x / np.sqrt((x * x).sum(-1, keepdims=True))),
        (
            "GroupNormalization",
            21,
            {"num_groups": 1},
            [image, scale, bias],
            grouped.reshape(image.shape) * scale.reshape(channel) + bias.reshape(channel),
        ),
        ("RMSNormalization", 23, {}, [x, weight], x / rms * weight),
    ]


class OwnCase:
    """A model of one node, in the form of the package's cases. Inputs and expected results that are
    None are left out."""

    def __init__(self, op_type, opset, attributes, inputs, expected):
        self.name = "own_" + op_type.lower()
        results = expected if isinstance(expected, list) else [expected]
        names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
        outputs = ["" if value is None else f"y{i}" for i, value in enumerate(results)]

        def infos(names, arrays):
            return [
                onnx.helper.make_tensor_value_info(
                    name, onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.asarray(a).dtype], np.shape(a)
                )
                for name, a in zip(names, arrays)
                if name
            ]

        node = onnx.helper.make_node(op_type, names, outputs, **attributes)
        graph = onnx.helper.make_graph(
            [node], self.name, infos(names, inputs), infos(outputs, results)
        )
        self.model = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", opset)]
        )
        given = [value for value in inputs if value is not None]
        self.data_sets = [(given, [np.asarray(value) for value in results if value is not None])]


def run(reference, case, folder):
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(case.model.SerializeToString())
    problems = []
    for inputs, outputs in case.data_sets:
        for bind in ("none", "small", "all"):
            answer = ask(reference, path, case.model, inputs, bind)
            if "error" not in answer:
                break
        expected = [as_numbers(a, i) for a, i in zip(outputs, case.model.graph.output)]
        problems.append(compare(answer, expected))
    return "; ".join(problem for problem in problems if problem)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="all that fail, by message")
    parser.add_argument("--least", type=float, default=0, help="share that has to pass")
    options = parser.parse_args()
    reference = Reference(options.reference)
    passed, failed, left_out, seen = 0, {}, 0, set()
    with tempfile.TemporaryDirectory() as folder:
        own = [OwnCase(*each) for each in [*own_cases(), *new_cases()]]
        for case in list(collect_testcases(None)) + own:
            if options.only and options.only not in case.name:
                continue
            operators = operators_of(case.model)
            if operators & LEFT_OUT or not is_tensor_case(case):
                left_out += 1
                continue
            problem = run(reference, case, folder)
            if problem:
                failed[case.name] = problem
            else:
                passed += 1
                seen |= operators
    for name, problem in failed.items():
        if options.list:
            print(f"{name}: {problem}")
    known = set(reference.ask({})["onnx"])
    total = passed + len(failed)
    wrong = [name for name, problem in failed.items() if "differs" in problem or "has" in problem]
    print(f"{passed} of {total} node tests agree, {len(wrong)} give other values, "
          f"{total - passed - len(wrong)} are refused, {left_out} left out")
    print(f"{len(known & seen)} of {len(known)} operators compared")
    if not options.only and known - seen:
        print("without a test:", ", ".join(sorted(known - seen)))
    for name in wrong:
        print(f"WRONG {name}: {failed[name]}")
    return 1 if passed < options.least * total else 0


if __name__ == "__main__":
    sys.exit(main())
