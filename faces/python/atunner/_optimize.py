"""Rounds of ideas from Python: a kernel's source or a module becomes a faster kernel."""

import json
import os
import re
import subprocess
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch

import atunner_runtime as _runtime

from ._capture import capture
from ._options import BackendError
from ._plan_cache import environment_of, program

__all__ = ["Optimized", "optimize"]

_Size = Union[int, Sequence[int]]

_TYPES = {
    torch.float16: "__half",
    torch.bfloat16: "__nv_bfloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.int16: "short",
    torch.int32: "int",
    torch.int64: "long long",
    torch.bool: "bool",
}
_HEADERS = {torch.float16: "cuda_fp16.h", torch.bfloat16: "cuda_bf16.h"}

#: `__global__ void name(parameters)`, with attributes and launch bounds in between.
_KERNEL = re.compile(
    r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+"
    r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)"
)


class Optimized(NamedTuple):
    """What the rounds found.

    source: CUDA C++ of the fastest kernel that passed verification.
    speedup: time of what was given (a kernel as it is written; for a module the plain kernel that
        computes the same) over that of the fastest kernel.
    idea: the idea that it came from, in words; its rule or rewrite is `proposer`.
    evidence: "measured" on a GPU, or "predicted".
    ns: time of the fastest kernel, nanoseconds.
    """

    source: str
    speedup: float
    idea: str
    proposer: str
    evidence: str
    ns: float
    run: str
    artifact: str
    lineage: List[Dict[str, Any]]

    def load(self, device: int = 0) -> "_runtime.Kernel":
        """The kernel on GPU `device`: call it with tensors in the order of its `arguments`. Raises
        atunner_runtime.Error if it cannot be loaded there."""
        artifacts = _runtime.ArtifactSet(self.artifact)
        return artifacts.choose(artifacts[0].dims, name=artifacts[0].name, device=device)


def _dim3(size: _Size) -> str:
    sizes = [size] if isinstance(size, int) else list(size)
    if not 1 <= len(sizes) <= 3 or any(one < 1 for one in sizes):
        raise ValueError(f"{size!r} is no size of a grid or a block: one to three positive numbers")
    return f"dim3({', '.join(str(one) for one in sizes)})"


def _signature(code: str, kernel: Optional[str]) -> Tuple[str, List[str]]:
    """Name and parameters of the kernel in `code`."""
    found = _KERNEL.findall(re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL))
    matching = [one for one in found if kernel in (None, one[0])]
    if len(matching) != 1:
        names = ", ".join(one[0] for one in found) or "none"
        raise ValueError(f"the code must have one kernel, or `kernel` name one; it has: {names}")
    name, parameters = matching[0]
    words = [re.findall(r"\w+", one) for one in parameters.split(",") if one.strip()]
    return name, [each[-1] for each in words]


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    raise ValueError(f"{value!r} is neither a tensor nor a number")


def _program(code: str, inputs: Sequence[Any], launch: Any, kernel: Optional[str]) -> str:
    """`code` with a host function that launches its kernel on buffers like the inputs."""
    name, parameters = _signature(code, kernel)
    if len(parameters) != len(inputs):
        raise ValueError(f"{name} has {len(parameters)} parameters; there are {len(inputs)} inputs")
    lines, arguments, headers = [], [], set()
    for parameter, value in zip(parameters, inputs):
        if not isinstance(value, torch.Tensor):
            arguments.append(_literal(value))
            continue
        if value.dtype not in _TYPES:
            raise ValueError(f"{parameter}: a tensor of {value.dtype} is no argument of a kernel")
        if not value.is_contiguous():
            raise ValueError(f"{parameter}: the tensor is not contiguous")
        kind = _TYPES[value.dtype]
        headers.add(_HEADERS.get(value.dtype, ""))
        lines.append(f"  {kind}* {parameter};")
        lines.append(f"  cudaMalloc(&{parameter}, {value.numel()} * sizeof({kind}));")
        arguments.append(parameter)
    grid, block = launch
    lines.append(f"  {name}<<<{_dim3(grid)}, {_dim3(block)}>>>({', '.join(arguments)});")
    includes = "".join(f"#include <{one}>\n" for one in sorted(headers - {""}) if one not in code)
    return f"{includes}{code}\n\nint main() {{\n" + "\n".join(lines) + "\n}\n"


def _write(what: Any, inputs: Sequence[Any], launch: Any, kernel: Optional[str], to: str) -> str:
    """What is to be optimised, as a file."""
    if isinstance(what, torch.nn.Module):
        return capture(what, tuple(inputs), os.path.join(to, "module.pt2"))
    if not isinstance(what, str):
        raise TypeError("optimize takes CUDA C++ as a string, or a torch.nn.Module")
    if launch is None and "<<<" not in what:
        raise ValueError("the code launches nothing: give launch=(grid, block)")
    path = os.path.join(to, "kernel.cu")
    with open(path, "w", encoding="utf-8") as file:
        file.write(what if launch is None else _program(what, inputs, launch, kernel))
    return path


def _run(command: List[str], device: int) -> Dict[str, Any]:
    ended = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment_of(device),
    )
    try:
        found = json.loads(ended.stdout)
    except ValueError:
        said = ended.stderr.strip() or f"{command[0]} ended with {ended.returncode}"
        raise BackendError(said) from None
    if "error" in found:
        error = found["error"]
        raise BackendError(": ".join(error[key] for key in ("where", "what", "hint") if error[key]))
    return found


def _time_of(trial: Dict[str, Any]) -> float:
    measured = trial.get("measurement")
    return measured["median_ns"] if measured else trial["estimate"]["time_ns"]


def _optimized(found: Dict[str, Any]) -> Optimized:
    best = found.get("best")
    if not best:
        raise BackendError(f"no kernel passed verification: {found.get('stop', '')}")
    given = next((one for one in found["baselines"] if one["verdict"]["kind"] == "correct"), best)
    won = [one for one in found["ideas"] if best["candidate"] in one["candidates"]]
    ns = _time_of(best)
    with open(os.path.join(found["artifact"], "kernel.cu"), encoding="utf-8") as file:
        source = file.read()
    return Optimized(
        source=source,
        speedup=_time_of(given) / ns,
        idea=won[0]["title"] if won else "",
        proposer=won[0]["proposer"] if won else "",
        evidence=found["evidence"],
        ns=ns,
        run=found["run"],
        artifact=found["artifact"],
        lineage=found["lineage"],
    )


def optimize(
    module_or_code: Union[torch.nn.Module, str],
    inputs: Sequence[Any] = (),
    rounds: int = 3,
    ideas: int = 8,
    implementations: int = 2,
    keep: float = 0.25,
    launch: Optional[Tuple[_Size, _Size]] = None,
    kernel: Optional[str] = None,
    budget: str = "60",
    target_gpu: str = "auto",
    device: int = 0,
) -> Optimized:
    """Makes a kernel or a module faster in rounds of ideas (docs/how-to/agents.md).

        fast = atunner.optimize(code, (x, y, rows, cols), launch=(8, 128))
        fast.speedup, fast.idea, fast.source

    module_or_code: CUDA C++ as a string, or a module that one kernel can compute. Code may launch
        its kernel itself; otherwise `launch` is its grid and its block (each one to three numbers).
    inputs: example inputs: of a module, or of the kernel in the order of its parameters. Tensors
        give types and sizes; numbers are passed as they are. The verifier makes contents of its
        own, of many kinds.
    rounds, ideas, implementations: ideas of each round, and kernels of each idea.
    keep: share of a round's ideas on which the next one builds.
    kernel: name of one of several kernels in the code.
    budget: trials or time of all rounds, as `atunner optimize --budget` takes it.
    target_gpu: "auto" is this machine's GPU; without one, times for another are predicted.

    A module that needs several kernels is one for `atunner optimize model.pt2`. Raises ValueError
    for wrong inputs, and BackendError with the program's message.
    """
    with tempfile.TemporaryDirectory(prefix="atunner-") as folder:
        path = _write(module_or_code, inputs, launch, kernel, folder)
        command = [program(), "optimize", path, "--json", "--quiet", "--target-gpu", target_gpu]
        command += ["--rounds", str(rounds), "--ideas", str(ideas)]
        command += ["--implementations", str(implementations), "--keep", str(keep)]
        command += ["--budget", str(budget)]
        command += ["--kernel", kernel] if kernel is not None else []
        return _optimized(_run(command, device))
