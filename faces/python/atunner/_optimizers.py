"""Optimizers as arithmetic that can be traced."""

from typing import Any, Dict, List, Sequence, Tuple, Type, Union

import torch

from ._program import CaptureError

__all__ = ["Rule", "rule_of"]

_Tensors = List[torch.Tensor]
#: A number of the host, or a tensor without axes.
Scalar = Union[float, torch.Tensor]


def _power(base: float, exponent: Scalar) -> Scalar:
    if isinstance(exponent, torch.Tensor):
        return torch.pow(base, exponent)
    return base**exponent


class Rule:
    """One parameter group's update. Hyperparameters that schedules change are scalars, which a step
    gets anew each time; the others are fixed when the step is traced."""

    def __init__(self, group: Dict[str, Any]) -> None:
        self.group = group

    @property
    def states(self) -> List[str]:
        """Names of a parameter's states in `optimizer.state`, without the count of steps."""
        raise NotImplementedError

    #: True if `optimizer.state` counts steps.
    counts = False

    def fixed(self) -> Tuple[Any, ...]:
        """What is fixed in a trace: if it changes, the step is another one."""
        kinds = ("params", "lr")
        return tuple((k, repr(v)) for k, v in sorted(self.group.items()) if k not in kinds)

    def scalars(self, step: Scalar) -> List[Scalar]:
        """Scalars of an update; `step` is 1 for the first one."""
        raise NotImplementedError

    def update(
        self,
        parameter: torch.Tensor,
        gradient: torch.Tensor,
        states: _Tensors,
        scalars: Sequence[Scalar],
    ) -> Tuple[torch.Tensor, _Tensors]:
        """The next value of the parameter and of its states."""
        raise NotImplementedError

    def _gradient(
        self, parameter: torch.Tensor, gradient: torch.Tensor, decays: bool
    ) -> torch.Tensor:
        if self.group.get("maximize"):
            gradient = -gradient
        decay = self.group["weight_decay"]
        return gradient + decay * parameter if decays and decay else gradient


class _Sgd(Rule):
    """torch.optim.SGD: momentum, Nesterov's form, dampening, weight decay."""

    @property
    def states(self) -> List[str]:
        return ["momentum_buffer"] if self.group["momentum"] else []

    def scalars(self, step: Scalar) -> List[Scalar]:
        """The rate, and the gradient's share of the momentum: 1 in the first step."""
        share = 1 - self.group["dampening"]
        if isinstance(step, float) and step == 1.0:
            share = 1.0
        return [self.group["lr"], share]

    def update(
        self,
        parameter: torch.Tensor,
        gradient: torch.Tensor,
        states: _Tensors,
        scalars: Sequence[Scalar],
    ) -> Tuple[torch.Tensor, _Tensors]:
        rate, share = scalars
        gradient = self._gradient(parameter, gradient, True)
        momentum = self.group["momentum"]
        if momentum:
            states = [momentum * states[0] + share * gradient]
            nesterov = self.group["nesterov"]
            gradient = gradient + momentum * states[0] if nesterov else states[0]
        return parameter - rate * gradient, states


class _Adam(Rule):
    """torch.optim.Adam."""

    decoupled = False
    counts = True

    @property
    def states(self) -> List[str]:
        largest = ["max_exp_avg_sq"] if self.group.get("amsgrad") else []
        return ["exp_avg", "exp_avg_sq"] + largest

    def scalars(self, step: Scalar) -> List[Scalar]:
        """The rate, the rate over the first moment's bias correction, and the root of the
        second's."""
        rate = self.group["lr"]
        beta1, beta2 = self.group["betas"]
        return [rate, rate / (1 - _power(beta1, step)), (1 - _power(beta2, step)) ** 0.5]

    def update(
        self,
        parameter: torch.Tensor,
        gradient: torch.Tensor,
        states: _Tensors,
        scalars: Sequence[Scalar],
    ) -> Tuple[torch.Tensor, _Tensors]:
        rate, size, root = scalars
        decay = self.group["weight_decay"]
        beta1, beta2 = self.group["betas"]
        decoupled = self.group.get("decoupled_weight_decay", self.decoupled)
        gradient = self._gradient(parameter, gradient, not decoupled)
        if decoupled and decay:
            parameter = parameter * (1 - rate * decay)
        mean = beta1 * states[0] + (1 - beta1) * gradient
        square = beta2 * states[1] + (1 - beta2) * (gradient * gradient)
        after = [mean, square]
        if self.group.get("amsgrad"):
            after.append(torch.maximum(states[2], square))
        below = torch.sqrt(after[-1]) / root + self.group["eps"]
        return parameter - size * (mean / below), after


class _AdamW(_Adam):
    """torch.optim.AdamW: the decay acts on the parameter alone."""

    decoupled = True


_RULES: Sequence[Tuple[Type[torch.optim.Optimizer], Type[Rule]]] = (
    (torch.optim.AdamW, _AdamW),
    (torch.optim.Adam, _Adam),
    (torch.optim.SGD, _Sgd),
)


def rule_of(optimizer: torch.optim.Optimizer, group: Dict[str, Any]) -> Rule:
    """The update of a parameter group; raises CaptureError for optimizers that are not known."""
    for known, rule in _RULES:
        if isinstance(optimizer, known):
            return rule(group)
    names = ", ".join(known.__name__ for known, _ in _RULES)
    raise CaptureError(f"the optimizer {type(optimizer).__name__} is not traced; {names} are")
