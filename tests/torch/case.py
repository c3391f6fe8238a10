"""What a case of an operator beside PyTorch is, and what inputs are filled with."""
import math
from dataclasses import dataclass, field
from typing import Callable

import torch

INF, NAN = math.inf, math.nan


@dataclass
class Case:
    operator: str
    shapes: list
    torch: Callable
    attributes: dict = field(default_factory=dict)
    fill: dict = field(
        default_factory=dict
    )  # by input: values, or a function of shape and generator
    backward: bool = True
    dtype: str = "float64"
    tolerance: float = 1e-9
    no_gradient: tuple = ()  # inputs whose gradient PyTorch does not define so
    note: str = ""


def uniform(low, high):
    return lambda shape, g: low + (high - low) * torch.rand(shape, dtype=torch.float64, generator=g)


def whole(low, high):
    return lambda shape, g: torch.randint(low, high, shape, generator=g)


def grid(shape, g):
    """Small halves: ties, zeros and kinks, and the same numbers more than once."""
    return torch.randint(-6, 7, shape, generator=g).double() / 2


def signs(shape, g):
    return torch.randint(0, 2, shape, generator=g).double() * 2 - 1


positive = uniform(0.1, 3)
inside = uniform(-0.95, 0.95)

# NaN stays NaN in these, as in NumPy; PyTorch loses it (softshrink: some versions).
KEEPS_NAN = {"sign", "softshrink", "heaviside"}
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    6.0,
    7.5,
    -40.0,
    40.0,
    1e-8,
    -1e-8,
    800.0,
    -800.0,
    INF,
    -INF,
    NAN,
]
