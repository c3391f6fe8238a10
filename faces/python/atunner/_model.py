"""Exports a model that a Python file describes: `atunner optimize model.py[:Class]` runs this.

    python3 -m atunner._model FILE.py CLASS OUT.pt2     CLASS may be empty: Model, or the only one

The file defines a torch.nn.Module and get_inputs(), which returns its example inputs. It may define
get_init_inputs(), which returns the arguments of the module's constructor: a list, or [list, dict]
with keywords. Exit code 2 with one line on standard error where that is not so.
"""

import importlib.util
import os
import sys
from typing import Any, List, Type

EXPECTED = "a Python model has a torch.nn.Module, get_inputs() and, if needed, get_init_inputs()"


class ModelError(Exception):
    """The file is no model."""


def _file_as_module(path: str) -> Any:
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{path} cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _class_of(module: Any, name: str) -> Type[Any]:
    import torch

    own = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, torch.nn.Module)
        and each.__module__ == module.__name__
    ]
    names = [each.__name__ for each in own]
    wanted = name or ("Model" if "Model" in names else names[0] if len(names) == 1 else "")
    if wanted in names:
        return own[names.index(wanted)]
    if name:
        has = ", ".join(names) or "none"
        raise ModelError(f"no torch.nn.Module is called {name}; it has: {has}")
    raise ModelError(
        f"name one of its modules, FILE.py:CLASS: {', '.join(names)}" if names else EXPECTED
    )


def _built(module: Any, name: str) -> Any:
    given: List[Any] = list(getattr(module, "get_init_inputs", list)())
    keywords = {}
    if len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict):
        given, keywords = list(given[0]), given[1]
    return _class_of(module, name)(*given, **keywords)


def export(path: str, name: str, out: str) -> None:
    """Writes the model of a file, in inference, as `atunner.capture` does."""
    from ._capture import capture

    module = _file_as_module(path)
    if not hasattr(module, "get_inputs"):
        raise ModelError("get_inputs() is missing: " + EXPECTED)
    capture(_built(module, name).eval(), tuple(module.get_inputs()), out)


def main() -> int:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(f"no PyTorch: {error}", file=sys.stderr)
        return 3
    try:
        export(*sys.argv[1:4])
    except ModelError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
