#!/usr/bin/env python3
"""Do the library's operators mean what PyTorch's mean? Values and gradients of both, in float64, on
equal inputs.

    python3 semantics.py --reference build/dev/tests/reference_values [--only NAME,…] [--seed N]
 A kernel is judged by the library's own definition, so a wrong definition passes every other test:
this is the one that would fail. Exit code 77 where there is no PyTorch.
"""
import argparse
import json
import subprocess
import sys
import warnings

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)

from cases import NOT_COMPARED, all_cases

warnings.simplefilter("ignore")

TOLERANCE = 1e-9
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float64,
    "float16": torch.float64,
    "bfloat16": torch.float64,
    "bool": torch.bool,
}


class Reference:
    """The program that answers for the library."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the program ended"}


def flat(tensor):
    """Elements as JSON has them."""
    values = tensor.reshape(-1).tolist()
    return [v if not isinstance(v, float) or abs(v) < float("inf") else str(v) for v in values]


def draw(argument, case, generator):
    """An input: what the case says, or normal numbers, or bits."""
    shape, name = argument["shape"], argument["name"]
    if name in case.fill:
        given = case.fill[name]
        tensor = given(shape, generator) if callable(given) else torch.as_tensor(given)
        wanted = DTYPES.get(argument["dtype"], torch.int64)
        return (
            tensor.to(wanted).expand(shape)
            if tensor.dim() == 0
            else tensor.to(wanted).reshape(shape)
        )
    if argument["dtype"] == "bool":
        return torch.randint(0, 2, shape, generator=generator).bool()
    if argument["dtype"] in DTYPES:
        return torch.randn(shape, dtype=torch.float64, generator=generator)
    return torch.randint(
        -8 if argument["dtype"].startswith("int") else 0, 9, shape, generator=generator
    )


def as_tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def differences(name, got, want, tolerance):
    """What is not equal, as text; "" where all is."""
    got = torch.tensor([float(v) for v in got], dtype=torch.float64)
    want = want.detach().to(torch.float64).reshape(-1)
    if got.numel() != want.numel():
        return f"{name} has {got.numel()} elements, PyTorch's {want.numel()}"
    scale = want[want.isfinite()].abs().max().item() if want.isfinite().any() else 0
    equal = (
        (got == want)
        | (got.isnan() & want.isnan())
        | ((got - want).abs() <= tolerance * (want.abs() + 1e-3 * scale + 1e-3))
    )
    bad = (~equal).nonzero().reshape(-1)
    if bad.numel() == 0:
        return ""
    shown = ", ".join(
        f"[{i}] {got[i].item():.9g} for {want[i].item():.9g}" for i in bad[:4].tolist()
    )
    return f"{name}: {bad.numel()} of {got.numel()} differ: {shown}"


class Check:
    def __init__(self, reference, seed):
        self.reference = reference
        self.seed = seed

    def request(self, case, operator, attributes=None):
        return {
            "operator": operator,
            "dtype": case.dtype,
            "shapes": case.shapes,
            "attributes": {**case.attributes, **(attributes or {})},
        }

    def inputs(self, case, answer):
        generator = torch.Generator().manual_seed(self.seed)
        return {a["name"]: draw(a, case, generator) for a in answer["arguments"] if not a["output"]}

    def values(self, request, inputs):
        return self.reference.ask(
            {**request, "inputs": {name: flat(x) for name, x in inputs.items()}}
        )

    def forward(self, case):
        """Text of what is wrong, and what the gradient needs."""
        request = self.request(case, case.operator)
        answer = self.reference.ask(request)
        if "error" in answer:
            return answer["error"], None
        inputs = self.inputs(case, answer)
        leaves = {
            n: x.clone().requires_grad_(x.is_floating_point() and n not in case.no_gradient)
            for n, x in inputs.items()
        }
        want = as_tuple(case.torch(*leaves.values()))
        got = self.values(request, inputs)
        if "error" in got:
            return got["error"], None
        outputs = [a["name"] for a in answer["arguments"] if a["output"]]
        wrong = [
            differences(name, got["outputs"][name], w, case.tolerance)
            for name, w in zip(outputs, want)
        ]
        return "; ".join(filter(None, wrong)), (inputs, leaves, dict(zip(outputs, want)))

    def backward(self, case, inputs, leaves, outputs):
        request = self.request(case, case.operator + "_backward")
        answer = self.reference.ask(request)
        if "error" in answer:
            return answer["error"]
        generator = torch.Generator().manual_seed(self.seed + 1)
        takes = [a["name"] for a in answer["arguments"] if not a["output"]]
        gradients = {
            "d"
            + n: torch.randn(y.shape, dtype=torch.float64, generator=generator) * y.requires_grad
            for n, y in outputs.items()
            if "d" + n in takes
        }
        differentiable = [n for n, y in outputs.items() if y.requires_grad]
        by = [n for n, x in leaves.items() if x.requires_grad]
        try:
            want = torch.autograd.grad(
                [outputs[n] for n in differentiable],
                [leaves[n] for n in by],
                [gradients["d" + n] for n in differentiable],
                allow_unused=True,
            )
        except RuntimeError as error:
            if "not implemented" in str(error):
                return ""  # PyTorch has no such gradient
            raise
        got = self.values(request, {**inputs, **gradients})
        if "error" in got:
            return got["error"]
        wrong = []
        for name, w in zip(by, want):
            w = torch.zeros_like(leaves[name]) if w is None else w
            if "d" + name in got["outputs"]:
                wrong.append(
                    differences("d" + name, got["outputs"]["d" + name], w, case.tolerance * 10)
                )
        return "; ".join(filter(None, wrong))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", required=True, help="the program reference_values")
    parser.add_argument("--only", help="operators, with commas between")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    check = Check(Reference(options.reference), options.seed)
    only = options.only.split(",") if options.only else None
    done = failed = 0
    for case in all_cases():
        if only and case.operator not in only:
            continue
        wrong, state = check.forward(case)
        results = [("", wrong)]
        if case.backward and state and any(y.requires_grad for y in state[2].values()):
            results.append(("_backward", check.backward(case, *state)))
        for suffix, text in results:
            done += 1
            failed += text != ""
            if text:
                print(
                    f"{case.operator}{suffix} {case.shapes} {case.attributes}"
                    f"{' ' + case.note if case.note else ''}: {text}"
                )
    compared = {c.operator for c in all_cases()}
    for name in (
        []
        if only
        else sorted(set(check.reference.ask({})["operators"]) - compared - set(NOT_COMPARED))
    ):
        failed += 1
        print(f"{name}: no case")
    print(
        f"PyTorch {torch.__version__}: {done} comparisons of {len(compared)} operators, {failed} "
        "failed"
    )
    return 1 if failed or done == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
