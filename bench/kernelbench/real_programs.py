"""Problems as programs, without memory for their tensors."""

import contextlib
from typing import Any, Iterator, List

import torch

from .problem import Problem

Tensors = List[torch.Tensor]


def weights_of(module: torch.nn.Module) -> Tensors:
    """Parameters and buffers: the first inputs of a problem's program, before the module's own."""
    return [x.detach() for x in (*module.parameters(), *module.buffers())]


def _names_of(module: torch.nn.Module) -> List[str]:
    return [name for name, _ in (*module.named_parameters(), *module.named_buffers())]


@contextlib.contextmanager
def _fake_tensors() -> Iterator[Any]:
    """Tensors without memory. PyTorch 1.13 loses the device inside of some operators, and cannot
    mix constants with such tensors: the inner device is allowed, and numbers are filled tensors."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    defaults = FakeTensorMode.__init__.__kwdefaults__
    old, make = defaults.get("allow_meta"), torch.tensor
    if old is not None:
        defaults["allow_meta"] = True
    torch.tensor = lambda value, device=None, **options: torch.full((), value, **options)
    try:
        yield FakeTensorMode()
    finally:
        torch.tensor = make
        if old is not None:
            defaults["allow_meta"] = old


def write_program(problem: Problem, folder: str, small: bool) -> None:
    """Writes model.json of a problem. Weights are inputs, in the order of `weights_of`."""
    from torch.fx.experimental.proxy_tensor import make_fx

    from atunner._capture import _tracer
    from atunner._graphs import write_graph

    _, functionalize, functional_call = _tracer()
    with _fake_tensors() as mode, torch.no_grad():
        with mode:
            module, inputs = problem.make(small)
        names = _names_of(module)

        def run(*values: torch.Tensor) -> Any:
            count = len(names)
            return functional_call(module, dict(zip(names, values[:count])), values[count:])

        given = weights_of(module) + list(inputs)
        graph = make_fx(functionalize(run), tracing_mode="fake")(*given)
        with mode:
            write_graph(graph, given, folder)


def bytes_of(tensors: Tensors) -> int:
    return sum(x.numel() * x.element_size() for x in tensors)
