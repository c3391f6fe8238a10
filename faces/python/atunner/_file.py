"""Kernels of .cu files, tuned and loaded."""

import hashlib
import os
import subprocess
import tempfile
from typing import List, Optional, Union

import atunner_runtime as _runtime

from ._options import BackendError
from ._plan_cache import environment_of, gpu_name, kept, program, program_cache

__all__ = ["compile_from_file"]

_PathLike = Union[str, "os.PathLike[str]"]
_HEADERS = (".h", ".cuh", ".hpp")


def _sources(path: str) -> List[str]:
    """The file, and headers beside it."""
    folder = os.path.dirname(os.path.abspath(path))
    headers = [name for name in sorted(os.listdir(folder)) if name.endswith(_HEADERS)]
    return [path] + [os.path.join(folder, name) for name in headers]


def _digest(path: str, what: List[str]) -> str:
    digest = hashlib.sha256(repr(what).encode())
    for name in _sources(path):
        with open(name, "rb") as file:
            content = file.read()
        digest.update(f"{os.path.basename(name)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:32]


def _tune(path: str, out: str, options: List[str], device: int) -> None:
    command = [program(), "hardware-optimize", "--source", path, "--auto-tune", "--quiet"]
    ended = subprocess.run(
        command + options + ["--out", out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment_of(device),
    )
    if ended.returncode != 0:
        raise BackendError(ended.stderr.strip() or f"{command[0]} ended with {ended.returncode}")


def compile_from_file(
    path: _PathLike,
    kernel: Optional[str] = None,
    budget: str = "60",
    target_gpu: str = "auto",
    device: int = 0,
) -> _runtime.Kernel:
    """The tuned kernel of a .cu file, loaded on GPU `device`: `saxpy = compile_from_file("my.cu")`,
    then `saxpy(x, y)`, with tensors in the order of `saxpy.arguments`.

    The file is what `atunner hardware-optimize --source` takes: a program that launches the kernel,
    or a kernel with annotations. Sizes and numbers are those of its launch. `kernel` is the name of
    one of several. The artifact is kept in ~/.cache/atunner/kernels by a digest of the file, the
    headers beside it, options, GPU and version, so that a later process compiles nothing.

    Raises BackendError with the program's message, and atunner_runtime.Error if the kernel cannot
    be loaded.
    """
    path = os.fspath(path)
    options = ["--target-gpu", target_gpu, "--budget", str(budget)]
    options += ["--kernel", kernel] if kernel is not None else []
    what = options + [gpu_name(target_gpu, device), _runtime.version()]
    cache = program_cache("kernels")
    folder = os.path.join(cache, _digest(path, what))
    if not os.path.exists(folder):
        os.makedirs(cache, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="making-") as making:
            made = os.path.join(making, "artifact")
            _tune(path, made, options, device)
            kept(made, folder, "manifest.json")
    artifacts = _runtime.ArtifactSet(folder)
    return artifacts.choose(artifacts[0].dims, name=artifacts[0].name, device=device)
