"""Linear layers whose results tensor cores cannot store in whole units, as wider ones."""

from typing import Callable, Optional

import torch

__all__ = ["padded_linear"]

#: Tensor maps and 16-byte stores take rows of a multiple of 8 elements of 16 bits.
_UNIT = 8
#: Narrower layers, such as heads of few classes, are not worth the copy of their weight.
_LEAST = 1024


def padded_linear(
    linear: Callable[..., torch.Tensor],
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    """`linear(input, weight, bias)`. A wide layer, such as a language model's head of 50257 tokens,
    gets rows of zeros up to a multiple of 8 results, which are cut off again: the products of the
    gradients have aligned operands then, too. Results and gradients are the same numbers."""
    width = weight.shape[0]
    missing = -width % _UNIT
    if missing == 0 or width < _LEAST or not _is_low(input, weight):
        return linear(input, weight, bias)
    weight = torch.nn.functional.pad(weight, (0, 0, 0, missing))
    bias = None if bias is None else torch.nn.functional.pad(bias, (0, missing))
    return linear(input, weight, bias).narrow(-1, 0, width)


def _is_low(input: torch.Tensor, weight: torch.Tensor) -> bool:
    """True if the layer is computed in 16 bits."""
    if torch.is_autocast_enabled() if input.is_cuda else torch.is_autocast_cpu_enabled():
        return True
    return weight.dtype in (torch.float16, torch.bfloat16)
