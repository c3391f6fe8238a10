"""What a problem is: a module and its inputs, at one of two sizes."""

from typing import Any, Callable, List, NamedTuple, Tuple

import torch

#: d(real, small): an extent. A row names both: the benchmark's, and one for machines without a GPU.
Extent = Callable[[int, int], int]


class Problem(NamedTuple):
    """`build(d)` makes the module and functions that make its inputs, one each."""

    level: int
    number: int
    name: str
    build: Callable[[Extent], Tuple[torch.nn.Module, List[Callable[[], torch.Tensor]]]]

    @property
    def key(self) -> str:
        return f"{self.level}/{self.number}"

    def make(
        self, small: bool, device: str = "cpu", seed: int = 1
    ) -> Tuple[torch.nn.Module, List[torch.Tensor]]:
        """The module and its inputs on a device. Modules stay as their constructors leave them, as
        the benchmark runs them: batch norms use the batch's statistics. Only dropout is turned off,
        since random masks cannot be compared."""
        torch.manual_seed(seed)
        module, inputs = self.build((lambda real, little: little) if small else _real)
        for part in module.modules():
            if isinstance(part, torch.nn.Dropout):
                part.eval()
        return (module if device == "cpu" else module.to(device)), made_on(device, inputs)


def _real(real: int, _: int) -> int:
    return real


def made_on(device: str, inputs: List[Callable[[], torch.Tensor]]) -> List[torch.Tensor]:
    """Inputs are made where they are used: those of level 1 have gigabytes."""
    if device == "cpu":
        return [make() for make in inputs]
    if not hasattr(torch, "set_default_device"):
        return [make().to(device) for make in inputs]
    before = torch.get_default_device() if hasattr(torch, "get_default_device") else "cpu"
    torch.set_default_device(device)
    try:
        return [make() for make in inputs]
    finally:
        torch.set_default_device(before)


def rand(*shape: int) -> Callable[[], torch.Tensor]:
    """Uniform in [0, 1), as all inputs of the benchmark are."""
    return lambda: torch.rand(shape)


class Do(torch.nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


class Learned(torch.nn.Module):
    """function(x, parameter); the parameter is drawn from N(0, 1), or has a given value."""

    def __init__(
        self, function: Callable[..., Any], shape: Tuple[int, ...], value: Any = None
    ) -> None:
        super().__init__()
        self.function = function
        start = torch.randn(shape) if value is None else torch.full(shape, float(value))
        self.parameter = torch.nn.Parameter(start)

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x, self.parameter)


class Around(torch.nn.Module):
    """function(x, inner(x), …): what a chain cannot say, such as a residual."""

    def __init__(self, inner: torch.nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.inner, self.function = inner, function

    def forward(self, x: torch.Tensor, *more: torch.Tensor) -> Any:
        return self.function(x, self.inner(x), *more)


def chain(*steps: Any) -> torch.nn.Module:
    """Modules and functions one after the other."""
    return torch.nn.Sequential(
        *(step if isinstance(step, torch.nn.Module) else Do(step) for step in steps)
    )
