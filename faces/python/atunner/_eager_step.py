"""PyTorch's own training step, with the options of `train_step` by PyTorch's own means."""

import contextlib
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import torch

from ._random import drawing
from ._step_function import StepOptions

__all__ = ["EagerStep", "state_tensors"]


class EagerStep:
    """Runs `optimizer.step()` behind forward and backward passes, as a user's loop does. Dropout
    draws the masks of `train_step`."""

    def __init__(
        self,
        model: torch.nn.Module,
        loss: Callable[..., torch.Tensor],
        optimizer: torch.optim.Optimizer,
        options: StepOptions,
    ) -> None:
        self.model, self.loss, self.optimizer, self.options = model, loss, optimizer, options
        scaling = options.scaling
        self.scale, self.growth = (scaling.init_scale, 0) if scaling else (1.0, 0)
        self.count = 0  #: steps before this one, of which the masks depend

    def gradients(self, batch: Sequence[torch.Tensor]) -> torch.Tensor:
        """The loss; gradients are in the parameters."""
        self.optimizer.zero_grad(set_to_none=True)
        total, parts = torch.zeros(()), self.options.micro_batches
        device = next(self.model.parameters()).device
        state = [torch.tensor(each, device=device) for each in (self.options.seed, self.count)]
        with drawing(*state):
            for part in zip(*[tensor.chunk(parts) for tensor in batch]):
                with self._autocast(device):
                    value = self.loss(self.model(*part[:-1]), part[-1]) / parts
                (value * self.scale).backward()
                total = total.to(value) + value.detach()
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                parameter.grad /= self.scale
        return total

    def _autocast(self, device: torch.device) -> Any:
        if self.options.autocast is None:
            return contextlib.nullcontext()
        return torch.autocast(device.type, dtype=self.options.autocast)

    def step(
        self, batch: Sequence[torch.Tensor]
    ) -> Tuple[torch.Tensor, Dict[str, Optional[torch.Tensor]]]:
        """The loss, and the gradients before clipping and after unscaling, by parameter."""
        value = self.gradients(batch)
        gradients = {
            name: None if parameter.grad is None else parameter.grad.clone()
            for name, parameter in self.model.named_parameters()
        }
        self.update()
        return value, gradients

    def update(self) -> None:
        """Clips the gradients that are in the parameters, and updates by them."""
        given = [p.grad for p in self.model.parameters() if p.grad is not None]
        finite = all(bool(gradient.isfinite().all()) for gradient in given)
        if self.options.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip_norm)
        if finite or self.options.scaling is None:
            self.optimizer.step()
        self._scaled(finite)
        self.count += 1

    def _scaled(self, finite: bool) -> None:
        scaling = self.options.scaling
        if scaling is None:
            return
        self.growth = self.growth + 1 if finite else 0
        self.scale *= 1.0 if finite else scaling.backoff_factor
        if self.growth == scaling.growth_interval:
            self.scale, self.growth = self.scale * scaling.growth_factor, 0


def state_tensors(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> Dict[str, torch.Tensor]:
    """Parameters, buffers and the optimizer's states by the names that captures give them: the
    tensors themselves, where they are tensors."""
    values = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if value is not None:
                values[f"optimizer.{name}.{key}"] = torch.as_tensor(value)
    return {name: value.detach() for name, value in values.items()}
