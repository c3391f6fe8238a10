# Python runs this at its start under `atunner memory serve -- PROGRAM`: as soon as the program has
# imported torch, its GPU memory comes from libatunner_memory.so.
import atexit
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _report(served):
    import torch

    for device in range(torch.cuda.device_count()):
        stats = served.stats(device)
        if stats.allocations > 0:
            sys.stderr.write(
                f"atunner: GPU {device}: at most {stats.peak_live / 1e9:.3f} GB in tensors, "
                f"{stats.peak_reserved / 1e9:.3f} GB reserved "
                f"({100 * stats.peak_live / stats.peak_reserved:.1f} %); {stats.moves} of "
                f"{stats.allocations} allocations moved pages\n"
            )


class _AfterTorch:
    """Finds torch as Python does, and adds a step behind its import."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            from atunner_memory import serve_memory

            atexit.register(_report, serve_memory(os.environ["ATUNNER_MEMORY"]))

        spec.loader.exec_module = exec_module
        return spec


def _other_sitecustomize():
    """The one that this file stands in front of."""
    folders = [folder for folder in sys.path if os.path.abspath(folder or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", folders)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _AfterTorch())
_other_sitecustomize()
