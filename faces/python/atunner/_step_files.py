"""The training step of a user's file, for other programs: `atunner fusion --training-graph
train.py:make_step` has it written, and `atunner verify --training` has it compared with PyTorch, by
the user's own Python."""

import argparse
import importlib.util
import inspect
import json
import os
import sys
from typing import Any, Callable, List, Optional, Sequence

import torch

import atunner_runtime

from ._options import BackendError
from ._program import CaptureError
from ._step import capture_step
from ._step_function import StepOptions
from ._verify_step import verify_step

__all__ = ["load_step", "main", "verify"]


def _function(file: str, name: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location("atunner_training_file", file)
    if spec is None or spec.loader is None:
        raise CaptureError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        raise CaptureError(
            f"{file} has no function {name}; write one that returns model, loss, optimizer, batch"
        )
    return found


def load_step(file: str, name: str, batch: Optional[int]) -> List[Any]:
    """What `make_step` of a file returns: model, loss, optimizer, batch (a tuple of tensors, the
    last for the loss), and, if it likes, a dict of StepOptions. A size of the batch is its argument
    `batch`."""
    function = _function(file, name)
    takes = "batch" in inspect.signature(function).parameters
    if batch is not None and not takes:
        raise CaptureError(
            f"{name} of {file} takes no argument `batch`, so that no size can be chosen"
        )
    made = function(batch=batch) if batch is not None else function()
    if not isinstance(made, (tuple, list)) or len(made) not in (4, 5):
        raise CaptureError(
            f"{name} of {file} must return model, loss, optimizer, batch[, options]; it returned "
            f"{type(made).__name__}"
        )
    model, loss, optimizer, given = made[:4]
    wrong = [
        text
        for right, text in (
            (isinstance(model, torch.nn.Module), "the model is no torch.nn.Module"),
            (callable(loss), "the loss is no function"),
            (isinstance(optimizer, torch.optim.Optimizer), "the optimizer is none of torch.optim"),
            (
                isinstance(given, (tuple, list))
                and len(given) > 1
                and all(isinstance(tensor, torch.Tensor) for tensor in given),
                "the batch is no tuple of at least two tensors",
            ),
        )
        if not right
    ]
    options = dict(made[4]) if len(made) == 5 else {}
    unknown = sorted(set(options) - set(StepOptions._fields))
    if unknown:
        wrong.append(f"options {', '.join(unknown)} are unknown")
    if wrong:
        raise CaptureError(f"{name} of {file}: {'; '.join(wrong)}")
    return [model, loss, optimizer, tuple(given), options]


def main(arguments: Sequence[str]) -> None:
    """Writes OUT/BATCH/model.json for each size, or OUT/model.json without sizes."""
    parser = argparse.ArgumentParser(prog="python3 -m atunner._step_files")
    parser.add_argument("file")
    parser.add_argument("function")
    parser.add_argument("--batch", type=int, nargs="*", default=[])
    parser.add_argument("--out", required=True)
    given = parser.parse_args(arguments)
    try:
        for batch in given.batch or [None]:
            folder = given.out if batch is None else os.path.join(given.out, str(batch))
            model, loss, optimizer, tensors, options = load_step(given.file, given.function, batch)
            capture_step(model, loss, optimizer, tensors, folder, **options)
    except CaptureError as error:
        sys.exit(str(error))


def verify(arguments: Sequence[str]) -> None:
    """Writes OUT/report.json and OUT/report.txt: the step, run by a plan, against PyTorch's. On a
    GPU where PyTorch sees one."""
    parser = argparse.ArgumentParser(prog="python3 -m atunner._step_files")
    parser.add_argument("file")
    parser.add_argument("function")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--target-gpu", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True)
    given = parser.parse_args(arguments)
    os.environ.setdefault("ATUNNER", given.program)
    os.environ.setdefault("ATUNNER_VIRTUAL_CUDA_GPU", given.target_gpu)
    torch.manual_seed(0)
    try:
        model, loss, optimizer, batch, options = load_step(given.file, given.function, None)
        if torch.cuda.is_available():
            model.cuda()
            batch = tuple(tensor.cuda() for tensor in batch)
        report = verify_step(
            model,
            loss,
            optimizer,
            batch,
            steps=given.steps,
            compile_options={"target_gpu": given.target_gpu},
            **options,
        )
    except (BackendError, CaptureError, atunner_runtime.Error) as error:
        sys.exit(str(error))
    for name, text in (("report.json", json.dumps(report.json())), ("report.txt", report.text())):
        with open(os.path.join(given.out, name), "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
