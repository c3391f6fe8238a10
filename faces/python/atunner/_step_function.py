"""A training step as a function of tensors alone."""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ._capture import _tracer
from ._optimizers import Rule, Scalar, rule_of
from ._program import CaptureError, Output
from ._random import drawing

__all__ = ["FINITE", "LossScaling", "StepFunction", "StepOptions"]

_Tensors = List[torch.Tensor]


class LossScaling(NamedTuple):
    """Loss scaling as torch.cuda.amp.GradScaler does it: a step whose gradients are not all finite
    changes no parameter and no state, and lowers the scale."""

    init_scale: float = 65536.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000


class StepOptions(NamedTuple):
    """What a step does besides forward, backward and update.

    clip_norm: gradients are scaled so that their norm over all parameters is at most this, as
        torch.nn.utils.clip_grad_norm_ does.
    micro_batches: the batch is cut along its first axis into so many parts of equal size, whose
        gradients are summed; the loss is the mean over the parts.
    scaling: the loss is multiplied before the backward pass.
    autocast: forward runs under torch.autocast with this type.
    seed: of dropout's random numbers.
    """

    clip_norm: Optional[float] = None
    micro_batches: int = 1
    scaling: Optional[LossScaling] = None
    autocast: Optional[torch.dtype] = None
    seed: int = 0


#: A result of steps with loss scaling: 0 if a gradient was not finite.
FINITE = Output("user_output", "scaling.finite")


class Slot(NamedTuple):
    """A tensor that a step reads or changes, by its name in the program."""

    kind: str  #: parameter or buffer
    name: str
    tensor: torch.Tensor


def shared_names(model: torch.nn.Module, kind: str) -> List[Tuple[torch.Tensor, List[str]]]:
    """Each parameter or buffer of a model once, with all names that tied modules give it."""
    found: Dict[int, Tuple[torch.Tensor, List[str]]] = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name, tensor in getattr(module, kind).items():
            if tensor is not None:
                whole = f"{prefix}.{name}" if prefix else name
                found.setdefault(id(tensor), (tensor, []))[1].append(whole)
    return list(found.values())


def optimized(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> Iterator[Tuple[List[str], torch.Tensor, Rule]]:
    """The parameters that the optimizer changes, in the model's order."""
    rules = {}
    for group in optimizer.param_groups:
        rule = rule_of(optimizer, group)
        rules.update({id(parameter): rule for parameter in group["params"]})
    for parameter, names in shared_names(model, "_parameters"):
        if id(parameter) in rules and parameter.requires_grad:
            yield names, parameter, rules[id(parameter)]


def state_of(optimizer: torch.optim.Optimizer, parameter: torch.Tensor, name: str) -> torch.Tensor:
    """The optimizer's state as it is, or as its first step finds it."""
    known = optimizer.state.get(parameter, {}).get(name)
    if isinstance(known, torch.Tensor):
        return known.detach().to(parameter.device, parameter.dtype)
    if name == "step":
        return torch.tensor(float(known or 0), dtype=parameter.dtype, device=parameter.device)
    return torch.zeros_like(parameter)


class StepFunction:
    """A step as a function of tensors alone, which make_fx can trace."""

    def __init__(
        self,
        model: torch.nn.Module,
        loss: Callable[..., torch.Tensor],
        optimizer: torch.optim.Optimizer,
        options: StepOptions,
        live_scalars: bool,
    ) -> None:
        """With `live_scalars` learning rates and bias corrections are an input, else the count of
        steps is a state and rates are constants."""
        self.model, self.loss, self.options = model, loss, options
        self.live_scalars = live_scalars
        _, _, self.functional_call = _tracer()
        self.optimized = list(optimized(model, optimizer))
        if not self.optimized:
            raise CaptureError("the optimizer has none of the model's parameters")
        known = {id(parameter) for _, parameter, _ in self.optimized}
        self.held = [
            (names, tensor, kind)
            for kind, of in (("parameter", "_parameters"), ("buffer", "_buffers"))
            for tensor, names in shared_names(model, of)
            if id(tensor) not in known
        ]
        self.rules = list({id(rule): rule for _, _, rule in self.optimized}.values())
        self.first = {
            id(rule): not optimizer.state.get(parameter) for _, parameter, rule in self.optimized
        }
        self.random_streams = 0
        self.outputs: List[Output] = []
        self.slots = self._slots(optimizer)

    def _states(self, rule: Rule) -> List[str]:
        return rule.states + (["step"] if rule.counts and not self.live_scalars else [])

    def _slots(self, optimizer: torch.optim.Optimizer) -> Dict[str, List[Slot]]:
        device = self.optimized[0][1].device
        number = lambda value, dtype: torch.tensor(value, dtype=dtype, device=device)  # noqa: E731
        slots = {
            "parameters": [Slot("parameter", n[0], p.detach()) for n, p, _ in self.optimized],
            "held": [Slot(kind, names[0], t.detach()) for names, t, kind in self.held],
            "states": [
                Slot("buffer", f"optimizer.{n[0]}.{name}", state_of(optimizer, p, name))
                for n, p, rule in self.optimized
                for name in self._states(rule)
            ],
            "random": [
                Slot("buffer", "random.seed", number(self.options.seed, torch.int64)),
                Slot("buffer", "random.count", number(0, torch.int64)),
            ],
            "scaling": [],
            "scalars": [],
        }
        if self.options.scaling:
            scale = self.options.scaling.init_scale
            slots["scaling"] = [
                Slot("buffer", "scaling.scale", number(scale, torch.float32)),
                Slot("buffer", "scaling.growth", number(0.0, torch.float32)),
            ]
        if self.live_scalars:
            count = sum(len(rule.scalars(1.0)) for rule in self.rules)
            dtype = self.optimized[0][1].dtype
            dtype = dtype if dtype == torch.float64 else torch.float32
            slots["scalars"] = [
                Slot("buffer", "scalars", torch.zeros(count, dtype=dtype, device=device))
            ]
        return slots

    def __call__(self, *tensors: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        """Loss, gradients, next values; `self.outputs` says what each is."""
        left = list(tensors)
        given: Dict[str, _Tensors] = {}
        for name, slots in self.slots.items():
            given[name], left = left[: len(slots)], left[len(slots) :]
        held = [tensor.clone() for tensor in given["held"]]
        scale = given["scaling"][0] if given["scaling"] else None
        value, gradients = self._differentiate(given, held, left, scale)
        results: Dict[Output, torch.Tensor] = {Output("loss_output", ""): value.detach()}
        with torch.no_grad():
            finite = None
            if scale is not None:
                gradients = [g if g is None else g * (1.0 / scale).to(g.dtype) for g in gradients]
                finite = _all_finite(gradients)
                results.update(self._next_scale(given["scaling"], finite))
                if self.live_scalars:
                    results[FINITE] = torch.where(finite, 1.0, 0.0)
            for (names, _, _), gradient in zip(self.optimized, gradients):
                if gradient is not None:
                    results[Output("gradient_to_parameter", names[0])] = gradient
            if self.options.clip_norm is not None:
                gradients = _clipped(gradients, self.options.clip_norm)
            results.update(self._update(given, gradients, finite))
            for slot, tensor in zip(self.slots["held"], held):
                results[Output(f"{slot.kind}_mutation", slot.name)] = tensor
            if self.random_streams:
                results[Output("buffer_mutation", "random.count")] = given["random"][1] + 1
        self.outputs = list(results)
        return tuple(results.values())

    def _differentiate(
        self,
        given: Dict[str, _Tensors],
        held: _Tensors,
        batch: _Tensors,
        scale: Optional[torch.Tensor],
    ) -> Tuple[torch.Tensor, List[Optional[torch.Tensor]]]:
        """The loss, and the sums of the parts' gradients."""
        leaves = [tensor.detach().requires_grad_() for tensor in given["parameters"]]
        tensors = {n: t for (names, _, _), t in zip(self.optimized, leaves) for n in names}
        tensors.update({n: t for (names, _, _), t in zip(self.held, held) for n in names})
        parts = self.options.micro_batches
        losses: _Tensors = []
        sums: List[Optional[torch.Tensor]] = [None] * len(leaves)
        with drawing(*given["random"], traced=True) as drawn:
            for part in zip(*[_parts(tensor, parts) for tensor in batch]):
                with self._autocast(leaves[0].device):
                    output = self.functional_call(self.model, tensors, tuple(part[:-1]))
                    value = drawn.instead_of(self.loss)(output, part[-1])
                value = value / parts if parts > 1 else value
                losses.append(value.detach())
                target = value * scale.to(value.dtype) if scale is not None else value
                found = torch.autograd.grad(target, leaves, allow_unused=True)
                sums = [b if a is None else a if b is None else a + b for a, b in zip(sums, found)]
        self.random_streams = drawn.streams
        total = losses[0]
        for value in losses[1:]:
            total = total + value
        return total, sums

    def _autocast(self, device: torch.device) -> Any:
        if self.options.autocast is None:
            return contextlib.nullcontext()
        return torch.autocast(device.type, dtype=self.options.autocast, cache_enabled=False)

    def _next_scale(self, scaling: _Tensors, finite: torch.Tensor) -> Dict[Output, torch.Tensor]:
        """torch._amp_update_scale_."""
        scale, growth = scaling
        rates = self.options.scaling
        assert rates is not None
        grown = growth + 1.0
        due = grown >= float(rates.growth_interval)
        kept = torch.where(due, scale * rates.growth_factor, scale)
        none = torch.zeros_like(growth)
        return {
            Output("buffer_mutation", "scaling.scale"): torch.where(
                finite, kept, scale * rates.backoff_factor
            ),
            Output("buffer_mutation", "scaling.growth"): torch.where(
                finite, torch.where(due, none, grown), none
            ),
        }

    def _scalars(self, given: Dict[str, _Tensors]) -> Dict[int, List[Scalar]]:
        """By rule, where the host computes them."""
        found: Dict[int, List[Scalar]] = {}
        at = 0
        for rule in self.rules if self.live_scalars else []:
            count = len(rule.scalars(1.0))
            found[id(rule)] = [given["scalars"][0][at + i] for i in range(count)]
            at += count
        return found

    def _update(
        self,
        given: Dict[str, _Tensors],
        gradients: List[Optional[torch.Tensor]],
        finite: Optional[torch.Tensor],
    ) -> Dict[Output, torch.Tensor]:
        results: Dict[Output, torch.Tensor] = {}
        scalars = self._scalars(given)
        states = list(given["states"])
        for (names, _, rule), before, gradient in zip(
            self.optimized, given["parameters"], gradients
        ):
            own = self._states(rule)
            mine, states = states[: len(own)], states[len(own) :]
            if gradient is None:
                continue
            gradient = gradient.to(before.dtype)
            after, kept = self._updated(rule, before, gradient, mine, scalars)
            if finite is not None:
                after = torch.where(finite, after, before)
                kept = [torch.where(finite, new, old) for new, old in zip(kept, mine)]
            results[Output("parameter_mutation", names[0])] = after
            for name, value in zip(own, kept):
                results[Output("buffer_mutation", f"optimizer.{names[0]}.{name}")] = value
        return results

    def _updated(
        self,
        rule: Rule,
        before: torch.Tensor,
        gradient: torch.Tensor,
        states: _Tensors,
        scalars: Dict[int, List[Scalar]],
    ) -> Tuple[torch.Tensor, _Tensors]:
        if self.live_scalars:
            return rule.update(before, gradient, states, scalars[id(rule)])
        if not rule.counts:
            step = 1.0 if self.first[id(rule)] else 2.0
            return rule.update(before, gradient, states, rule.scalars(step))
        step = states[-1] + 1
        after, kept = rule.update(before, gradient, states[:-1], rule.scalars(step))
        return after, kept + [step]


def _parts(tensor: torch.Tensor, count: int) -> Sequence[torch.Tensor]:
    if count == 1:
        return [tensor]
    if tensor.dim() == 0 or tensor.shape[0] % count:
        raise CaptureError(
            f"a batch of shape {list(tensor.shape)} has no {count} equal parts along axis 0"
        )
    return tensor.split(tensor.shape[0] // count)


def _all_finite(gradients: Sequence[Optional[torch.Tensor]]) -> torch.Tensor:
    """True if no element is infinite or NaN: x - x is 0 for finite numbers alone."""
    found = None
    for gradient in gradients:
        if gradient is not None:
            one = ((gradient - gradient) == 0).all()
            found = one if found is None else torch.logical_and(found, one)
    assert found is not None
    return found


def _clipped(gradients: List[Optional[torch.Tensor]], limit: float) -> List[Optional[torch.Tensor]]:
    """torch.nn.utils.clip_grad_norm_ with the Euclidean norm."""
    total = None
    for gradient in gradients:
        if gradient is not None:
            wide = gradient if gradient.dtype == torch.float64 else gradient.float()
            squares = (wide * wide).sum()
            total = squares if total is None else total + squares
    assert total is not None
    factor = torch.clamp(limit / (torch.sqrt(total) + 1e-6), max=1.0)
    return [g if g is None else g * factor.to(g.dtype) for g in gradients]
