"""Plans on disk, by a digest of graph, constants, target and version."""

import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from typing import Callable, List, Mapping, Optional, Sequence, Set

import torch

import atunner_runtime as _runtime

from ._options import BackendError, Options

__all__ = [
    "PlanCache",
    "environment_of",
    "gpu_name",
    "is_ending",
    "kept",
    "program",
    "program_cache",
]


def program() -> str:
    """The command-line program."""
    found = os.environ.get("ATUNNER") or shutil.which("atunner")
    if not found:
        raise BackendError("the program `atunner` is not in PATH; name it with $ATUNNER")
    return found


def program_cache(kind: str) -> str:
    """The folder of what is kept: "plans" or "kernels"."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "atunner", kind)


def optimize_command(
    model: str,
    out: str,
    target_gpu: str,
    budget: Optional[str],
    verified: bool = True,
    conv_precision: str = "float32",
) -> List[str]:
    """`atunner optimize` for a written graph; without a budget it searches nothing."""
    command = [program(), "optimize", model, "--target-gpu", target_gpu, "--out", out, "--quiet"]
    if conv_precision != "float32":
        command += ["--conv-precision", conv_precision]
    if budget is not None:
        return command + ["--budget", budget]
    return command + ["--first-guess"] + ([] if verified else ["--unchecked"])


def environment_of(device: int) -> Mapping[str, str]:
    """The environment in which GPU `device` of this process is the first one."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = seen.split(",") if seen else []
    visible = names[device].strip() if device < len(names) else str(device)
    return os.environ if device == 0 else {**os.environ, "CUDA_VISIBLE_DEVICES": visible}


_running: Set["subprocess.Popen[str]"] = set()
_ending = threading.Event()


def is_ending() -> bool:
    """True once this process ends, and stops those that make plans."""
    return _ending.is_set()


@atexit.register
def _stop_running() -> None:
    _ending.set()
    for process in list(_running):
        process.terminate()


def _make_plan(command: Sequence[str], device: int) -> None:
    """Runs `atunner optimize`; it does not outlive this process."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment_of(device),
    )
    _running.add(process)
    try:
        message = process.communicate()[1]
    finally:
        _running.discard(process)
    if process.returncode != 0:
        raise BackendError(message.strip() or f"{command[0]} ended with {process.returncode}")


def gpu_name(target_gpu: str, device: int) -> str:
    """What "auto" stands for."""
    if target_gpu != "auto" or not torch.cuda.is_available():
        return target_gpu
    return torch.cuda.get_device_name(device)


def kept(made: str, folder: str, last_file: str) -> None:
    """Moves what was made to its place in the cache; `last_file` tells that it is complete."""
    try:
        os.rename(made, folder)
    except OSError:  # another process was faster
        if not os.path.exists(os.path.join(folder, last_file)):
            raise


class PlanCache:
    """Plans of one graph, made for one GPU. `write(folder)` writes the graph there and returns a
    digest. `conv_precision` is "float32" or "tf32"."""

    def __init__(
        self,
        write: Callable[[str], str],
        options: Options,
        device: int,
        conv_precision: str = "float32",
    ) -> None:
        self.options = options
        self._conv_precision = conv_precision
        self.device = device
        self._write = write
        self._prefix: List[str] = []

    def background(self) -> "PlanCache":
        """The same with processes of low priority."""
        other = PlanCache(self._write, self.options, self.device, self._conv_precision)
        other._prefix = ["nice", "-n", "10"] if shutil.which("nice") else []
        return other

    def _folder(self, digest: str, budget: Optional[str], verified: bool) -> str:
        what = (
            digest,
            gpu_name(self.options.target_gpu, self.device),
            budget if verified else "unchecked",
            self._conv_precision,
            _runtime.version(),
        )
        return os.path.join(
            program_cache("plans"), hashlib.sha256(repr(what).encode()).hexdigest()[:32]
        )

    def plan(
        self, budget: Optional[str], known_only: bool = False, verified: bool = True
    ) -> Optional[str]:
        """The folder of the plan with this budget (None: of first guesses, which need not be
        verified), made if no process has made it before. With `known_only` it is None then."""
        os.makedirs(program_cache("plans"), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program_cache("plans"), prefix="making-") as making:
            model = os.path.join(making, "model")
            folder = self._folder(self._write(model), budget, verified)
            if os.path.exists(os.path.join(folder, "plan.json")):
                return folder
            if known_only:
                return None
            made = os.path.join(making, "plan")
            model = os.path.join(model, "model.json")
            command = optimize_command(
                model, made, self.options.target_gpu, budget, verified, self._conv_precision
            )
            _make_plan(self._prefix + command, self.device)
            kept(made, folder, "plan.json")
            return folder
