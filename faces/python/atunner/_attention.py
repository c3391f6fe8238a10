"""Attention as one operator of a traced step, with its gradient as another, so that a plan has
kernels for them that keep no scores."""

from typing import Any, Optional, Tuple

import torch

from ._library import OPERATORS

__all__ = ["attention", "is_served"]

OPERATORS.define(
    "attention(Tensor query, Tensor key, Tensor value, bool is_causal, float scale) -> Tensor"
)
OPERATORS.define(
    "attention_backward(Tensor query, Tensor key, Tensor value, Tensor grad, bool is_causal, "
    "float scale) -> (Tensor, Tensor, Tensor)"
)


def _weights(
    query: torch.Tensor, key: torch.Tensor, is_causal: bool, scale: float
) -> torch.Tensor:
    scores = (query.float() @ key.float().transpose(-2, -1)) * scale
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return scores.softmax(-1)


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, is_causal: bool, scale: float
) -> torch.Tensor:
    return (_weights(query, key, is_causal, scale) @ value.float()).to(query.dtype)


def _attention_backward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    grad: torch.Tensor,
    is_causal: bool,
    scale: float,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """With weights P = softmax(S): dV = Pᵀ · dY, dS = P · (dP - Σ P · dP), dP = dY · Vᵀ."""
    weights, wide = _weights(query, key, is_causal, scale), grad.float()
    of_weights = wide @ value.float().transpose(-2, -1)
    scores = weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True)) * scale
    found = (
        scores @ key.float(),
        scores.transpose(-2, -1) @ query.float(),
        weights.transpose(-2, -1) @ wide,
    )
    first, second, third = (each.to(query.dtype) for each in found)
    return first, second, third


OPERATORS.impl("attention", _attention, "CompositeExplicitAutograd")
OPERATORS.impl("attention_backward", _attention_backward, "CompositeExplicitAutograd")


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        is_causal: bool,
        scale: float,
    ) -> torch.Tensor:
        ctx.save_for_backward(query, key, value)
        ctx.given = is_causal, scale
        return torch.ops.atunner.attention.default(query, key, value, is_causal, scale)

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, grad: torch.Tensor
    ) -> Tuple[Optional[torch.Tensor], ...]:
        found = torch.ops.atunner.attention_backward.default(*ctx.saved_tensors, grad, *ctx.given)
        return (*found, None, None)


def is_served(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool) -> bool:
    """True for operands of which plans have kernels: 16-bit, [batch, heads, length, dim]."""
    return (
        query.dtype in (torch.float16, torch.bfloat16)
        and query.dtype == key.dtype == value.dtype
        and query.dim() == 4
        and key.shape == value.shape
        and query.shape[:2] == key.shape[:2]
        and query.shape[-1] == key.shape[-1]
        and query.shape[-1] % 8 == 0
        and query.shape[-1] <= 256
        and (not causal or query.shape[-2] == key.shape[-2])
    )


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool, scale: float
) -> torch.Tensor:
    """softmax(query · keyᵀ · scale) · value, without later keys if `causal`: one operator in a
    trace, whose gradient is one more. Operands as `is_served` says."""
    return _Attention.apply(query, key, value, causal, scale)
