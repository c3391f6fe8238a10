"""Random numbers of training steps: an operator whose state is values of the graph."""

import contextlib
import functools
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple
from unittest import mock

import torch

from ._attention import attention, is_served
from ._cross_entropy import cross_entropy
from ._library import OPERATORS

__all__ = ["drawing", "uniform"]

_LOW = 0xFFFFFFFF

OPERATORS.define("uniform(Tensor seed, Tensor count, int[] size, int stream) -> Tensor")


def _product(a: torch.Tensor, b: int) -> List[torch.Tensor]:
    """High and low word of a product of words, which are in int64: no step exceeds 2^50."""
    low = (a & 0xFFFF) * b
    high = (a // 65536) * b
    whole = low + (high & 0xFFFF) * 65536
    return [high // 65536 + whole // (_LOW + 1), whole & _LOW]


def _uniform(
    seed: torch.Tensor, count: torch.Tensor, size: Sequence[int], stream: int
) -> torch.Tensor:
    """Float32 in [0, 1): the upper 24 bits of word 0 of Philox4x32-10 (Salmon, Moraes, Dror, Shaw:
    Parallel Random Numbers, SC 2011). Counter: the element's row-major number, `stream`, 0, 0.
    Key: `seed` and `count`, both int64 without axes of which the lower 32 bits are used."""
    total = 1
    for extent in size:
        total *= extent
    words = [torch.arange(total, dtype=torch.int64, device=seed.device)]
    words += [torch.full_like(words[0], value) for value in (stream & _LOW, 0, 0)]
    keys = [seed & _LOW, count & _LOW]
    for _ in range(10):
        first, second = _product(words[0], 0xD2511F53), _product(words[2], 0xCD9E8D57)
        words = [second[0] ^ words[1] ^ keys[0], second[1], first[0] ^ words[3] ^ keys[1], first[1]]
        keys = [(keys[0] + 0x9E3779B9) & _LOW, (keys[1] + 0xBB67AE85) & _LOW]
    return ((words[0] // 256).to(torch.float32) * 2.0**-24).reshape(list(size))


OPERATORS.impl("uniform", _uniform, "CompositeExplicitAutograd")
if hasattr(torch.library, "register_fake"):
    torch.library.register_fake(
        "atunner::uniform",
        lambda seed, count, size, stream: seed.new_empty(size, dtype=torch.float32),
    )


def uniform(
    seed: torch.Tensor, count: torch.Tensor, size: Sequence[int], stream: int
) -> torch.Tensor:
    """See `_uniform`: one operator in a trace."""
    return torch.ops.atunner.uniform.default(seed, count, list(size), stream)


class _Drawing:
    """Replaces what draws random numbers in torch.nn.functional. Each call has a stream of its own,
    so that no two masks of a step are equal."""

    def __init__(self, seed: torch.Tensor, count: torch.Tensor, whole: bool) -> None:
        self.seed, self.count, self.streams = seed, count, 0
        self.whole = whole  #: attention is one operator where it can be
        #: Functions of torch.nn.functional, and what stands in for them.
        self.replaced: List[Tuple[Callable[..., Any], Callable[..., Any]]] = []
        self.library = getattr(torch.nn.functional, "scaled_dot_product_attention", None)

    def instead_of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What stands in for a function that was taken from torch.nn.functional before."""
        return next((new for old, new in self.replaced if old is function), function)

    def _kept(self, size: Sequence[int], p: float) -> torch.Tensor:
        self.streams += 1
        return uniform(self.seed, self.count, size, self.streams) >= p

    def _masked(self, x: torch.Tensor, size: Sequence[int], p: float) -> torch.Tensor:
        if p >= 1.0:
            return x * 0.0
        return torch.where(self._kept(size, p), x * (1.0 / (1.0 - p)), torch.zeros_like(x))

    def dropout(
        self, input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        return self._masked(input, input.shape, p) if training and p > 0 else input

    def channels(
        self, input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        size = list(input.shape[:2]) + [1] * (input.dim() - 2)
        return self._masked(input, size, p) if training and p > 0 else input

    def attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: Optional[torch.Tensor] = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Optional[float] = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """scaled_dot_product_attention; from products and a softmax, as its definition says, where
        it draws, and in traces where plans have no kernel for all of it."""
        if dropout_p == 0.0 and not self.whole and self.library is not None:
            given: Dict[str, Any] = {} if scale is None else {"scale": scale}
            given.update({"enable_gqa": True} if enable_gqa else {})
            return self.library(query, key, value, attn_mask, 0.0, is_causal, **given)
        if enable_gqa:
            repeats = query.shape[-3] // key.shape[-3]
            key, value = (each.repeat_interleave(repeats, -3) for each in (key, value))
        factor = query.shape[-1] ** -0.5 if scale is None else scale
        simple = self.whole and dropout_p == 0.0 and attn_mask is None
        if simple and is_served(query, key, value, is_causal):
            return attention(query, key, value, is_causal, factor)
        scores = (query * factor) @ key.transpose(-2, -1)
        if is_causal:
            shape = (query.shape[-2], key.shape[-2])
            attn_mask = torch.ones(shape, dtype=torch.bool, device=query.device).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
        elif attn_mask is not None:
            scores = scores + attn_mask
        return self.dropout(scores.softmax(-1), dropout_p) @ value


@contextlib.contextmanager
def drawing(seed: torch.Tensor, count: torch.Tensor, traced: bool = False) -> Iterator[Any]:
    """Inside, torch.nn.functional.dropout, its forms for channels, and
    scaled_dot_product_attention draw by `uniform` from `seed` and `count`: the same state gives the
    same masks, in eager runs and in plans. Other random numbers are not replaced. With `traced`,
    attention without dropout is one operator where it can be, and cross entropy keeps its logits
    alone."""
    made = _Drawing(seed, count, traced)
    functional = torch.nn.functional
    replaced = {"dropout": made.dropout}
    for name in ("dropout1d", "dropout2d", "dropout3d"):
        if hasattr(functional, name):
            replaced[name] = made.channels
    if hasattr(functional, "scaled_dot_product_attention"):
        replaced["scaled_dot_product_attention"] = made.attention
    if traced:
        replaced["cross_entropy"] = functools.partial(cross_entropy, functional.cross_entropy)
    made.replaced = [(getattr(functional, name), other) for name, other in replaced.items()]
    with mock.patch.multiple(functional, **replaced):
        yield made
