"""Cross entropy of labels whose gradient is computed from the logits as they are: a step keeps
neither log probabilities nor which class each label is."""

from typing import Any, Callable, Optional, Tuple

import torch

__all__ = ["cross_entropy"]


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype == torch.float64 else x.float()


class _CrossEntropy(torch.autograd.Function):
    """loss = Σ (log Σ exp x - x[label]) / count; its gradient is (softmax x - 1[label]) / count."""

    @staticmethod
    def forward(
        ctx: Any, input: torch.Tensor, target: torch.Tensor, ignore_index: int, mean: bool
    ) -> torch.Tensor:
        wide = _wide(input)
        counted = target != ignore_index
        # Largest and logarithm stay apart: their sum would round small losses away.
        largest = wide.amax(-1, keepdim=True)
        shifted = wide - largest
        whole = torch.exp(shifted).sum(-1, keepdim=True).log()
        # A sum in the pass over the logits: what is gathered would have to be in memory. The
        # backward pass writes differences in another way, or they would be kept for both.
        classes = torch.arange(input.shape[-1], device=input.device)
        hit = classes == target.unsqueeze(-1)
        labelled = torch.where(hit, shifted, shifted.new_zeros(())).sum(-1)
        losses = whole.squeeze(-1) - labelled
        value = torch.where(counted, losses, torch.zeros_like(losses)).sum()
        count = counted.to(wide.dtype).sum() if mean else None
        ctx.save_for_backward(input, target, largest, whole, count)
        ctx.ignore_index = ignore_index
        return value if count is None else value / count

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, grad: torch.Tensor
    ) -> Tuple[Optional[torch.Tensor], ...]:
        input, target, largest, whole, count = ctx.saved_tensors
        scale = grad if count is None else grad / count
        counted = (target != ctx.ignore_index).unsqueeze(-1)
        factor = torch.where(counted, scale, torch.zeros_like(scale))
        classes = torch.arange(input.shape[-1], device=input.device)
        hit = (target.unsqueeze(-1) - classes) == 0
        weights = torch.exp(-(largest - _wide(input)) - whole)
        return ((weights - hit.to(weights.dtype)) * factor).to(input.dtype), None, None, None


def cross_entropy(
    original: Callable[..., torch.Tensor],
    input: torch.Tensor,
    target: torch.Tensor,
    weight: Optional[torch.Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """torch.nn.functional.cross_entropy; `original` computes what has weights of classes, smoothed
    labels, or more axes than rows and classes."""
    simple = (
        weight is None
        and size_average is None
        and reduce is None
        and reduction in ("mean", "sum")
        and label_smoothing == 0.0
        and input.dim() == 2
        and target.dim() == 1
        and target.dtype == torch.int64
    )
    if not simple:
        return original(
            input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing
        )
    value = _CrossEntropy.apply(input, target, ignore_index, reduction == "mean")
    autocast = torch.is_autocast_enabled() if input.is_cuda else False
    return value if autocast else value.to(input.dtype)
