"""Is a training step as right as PyTorch's own? Step by step against float64, and in a free run."""

import copy
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ._eager_step import EagerStep, state_tensors
from ._options import options_of
from ._step_function import StepOptions
from ._train_step import TrainStep

__all__ = ["StepReport", "TensorError", "moved", "verify_step"]

#: A step may be this many times as far from float64 as PyTorch's own step in the same type.
FACTOR = 1.5
#: What is near enough whatever eager does: float32, and forward passes in 16-bit types.
_FLOOR, _LOW_FLOOR = 1e-5, 4e-3
#: Variants of the eager run, which differ in roundings.
VARIANTS = 3

Batch = Tuple[torch.Tensor, ...]


class TensorError(NamedTuple):
    """The largest distance from float64 over all steps, by the tensor's largest element."""

    name: str  #: "loss", "gradient 0.weight", "change of 0.weight", "next 1.running_mean"
    ours: float
    #: None for updates that are compared given the step's own gradients
    eager: Optional[float]
    bound: float  #: of `ours`
    step: int  #: in which `ours` was nearest to its bound, or farthest beyond

    @property
    def passed(self) -> bool:
        return self.ours <= self.bound  # NaN fails


class FreeRun(NamedTuple):
    """Losses of runs that each go on from their own state."""

    ours: List[float]
    eager: List[float]
    spread: List[float]  #: how far variants of the eager run were from it, up to each step
    bounds: List[float]  #: of |ours - eager|

    @property
    def passed(self) -> bool:
        return all(abs(o - e) <= b for o, e, b in zip(self.ours, self.eager, self.bounds))


class StepReport(NamedTuple):
    """What verify_step found."""

    steps: int
    tensors: List[TensorError]
    free_run: Optional[FreeRun]
    externs: int  #: operators that PyTorch ran in the plan

    @property
    def passed(self) -> bool:
        free = self.free_run is None or self.free_run.passed
        return free and all(each.passed for each in self.tensors)

    def json(self) -> Dict[str, Any]:
        free = self.free_run
        return {
            "passed": self.passed,
            "steps": self.steps,
            "externs": self.externs,
            "tensors": [{**each._asdict(), "passed": each.passed} for each in self.tensors],
            "free_run": None if free is None else {**free._asdict(), "passed": free.passed},
        }

    def text(self) -> str:
        lines = [f"{'tensor':<44}{'distance':>11}{'of eager':>11}{'bound':>11}  step"]
        for each in self.tensors:
            eager = "-" if each.eager is None else f"{each.eager:.2e}"
            row = f"{each.name:<44}{each.ours:>11.2e}{eager:>11}{each.bound:>11.2e}"
            lines.append(f"{row}  {each.step}" + ("" if each.passed else "  WRONG"))
        if self.free_run is not None:
            lines.append(_free_text(self.free_run))
        wrong = sum(not each.passed for each in self.tensors)
        verdict = "right" if self.passed else "WRONG"
        lines.append(f"{verdict}: {len(self.tensors)} tensors in {self.steps} steps, {wrong} wrong")
        return "\n".join(lines)


def _free_text(free: FreeRun) -> str:
    worst = max(range(len(free.ours)), key=lambda i: abs(free.ours[i] - free.eager[i]))
    verdict = "within the spread" if free.passed else "OUTSIDE OF THE SPREAD"
    return (
        f"free run of {len(free.ours)} steps: loss {free.ours[0]:.6g} to {free.ours[-1]:.6g}, "
        f"eager to {free.eager[-1]:.6g}; farthest apart in step {worst}: "
        f"{abs(free.ours[worst] - free.eager[worst]):.2e}, eager under other roundings "
        f"{free.spread[worst]:.2e}: {verdict}"
    )


class _Job(NamedTuple):
    """A model with its own optimizer, and what a step of them takes."""

    model: torch.nn.Module
    loss: Callable[..., torch.Tensor]
    optimizer: torch.optim.Optimizer
    batch: Batch
    options: StepOptions

    def copied(self) -> "_Job":
        return _Job(*copy.deepcopy(tuple(self)))

    def eager(self) -> EagerStep:
        return EagerStep(self.model, self.loss, self.optimizer, self.options)

    def wide(self) -> "_Job":
        """The same in float64 without autocast and loss scaling."""
        other = self.copied()
        other.model.double()
        if isinstance(other.loss, torch.nn.Module):
            other.loss.double()
        batch = tuple(t.double() if t.is_floating_point() else t for t in other.batch)
        return other._replace(batch=batch, options=self.options._replace(autocast=None))


def verify_step(
    model: torch.nn.Module,
    loss: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    batch: Sequence[torch.Tensor],
    *,
    steps: int = 200,
    free_run: bool = True,
    compile_options: Optional[Dict[str, Any]] = None,
    make: Callable[..., TrainStep] = TrainStep,
    **options: Any,
) -> StepReport:
    """Compares `train_step` with PyTorch, all on the same batch; the model is not changed.

    First, each of `steps` steps is taken from eager's own state, so that errors do not grow: by the
    plan, by eager, and by eager in float64. Loss, gradients and running statistics must be as near
    to float64 as eager's, times FACTOR, or within 1e-5 (under autocast 4e-3) of the tensor's
    largest element. The changes of parameters and the optimizer's states are compared with those
    of the optimizer in float64 given the plan's own gradients: within 1e-5 and the last place.
    Under autocast a kernel may update by a gradient before it is rounded to 16 bits: then a change
    may be 4e-3 off, and a state as far from the step in float64 as eager's, times FACTOR.
    Then the plan and eager each go on from their own states. The plan's losses must be within twice
    the spread of eager under other roundings: parameters moved by one unit in the last place.
    """
    given = StepOptions(**options)
    job = _Job(model, loss, optimizer, tuple(batch), given).copied()
    compiled = options_of(None, compile_options)
    ours = job.copied()
    step = make(ours.model, ours.loss, ours.optimizer, given, compiled, keep_gradients=True)
    plan = step.compiled(*ours.batch).plan
    tensors = _compare(job.copied(), ours, step, steps)
    free = _free(job, make, compiled, steps) if free_run else None
    return StepReport(steps, tensors, free, getattr(plan, "extern_count", 0))


def _compare(eager_job: _Job, ours: _Job, step: TrainStep, steps: int) -> List[TensorError]:
    wide_job = eager_job.wide()
    eager, wide = eager_job.eager(), wide_job.eager()
    found: List[List[TensorError]] = []
    for number in range(steps):
        before = _cloned(state_tensors(eager_job.model, eager_job.optimizer))
        for job in (ours, wide_job):
            _take_state(job, before, eager_job)
        wide.count, wide.scale, wide.growth = eager.count, eager.scale, eager.growth
        first = not any(name.startswith("optimizer.") for name in before)
        step.begin_at(eager.count, eager.scale, eager.growth, first)
        value = step(*ours.batch)
        gradients = {n: p.grad for n, p in ours.model.named_parameters()}
        mine = _passes(ours, value, gradients)
        exact = _passes(wide_job, *_gradients(wide, wide_job))
        whole = None
        if eager_job.options.autocast is not None:
            whole = _updated(wide, wide_job)
            wide_job.optimizer.state.clear()
            _take_state(wide_job, before, eager_job)
            wide.count, wide.scale, wide.growth = eager.count, eager.scale, eager.growth
        theirs = _passes(eager_job, *eager.step(eager_job.batch))
        for name, parameter in wide_job.model.named_parameters():
            own = gradients[name]
            parameter.grad = None if own is None else own.to(parameter)
        rows = _pass_errors(mine, theirs, exact, number, eager_job.options)
        given_own = _update_errors(ours, _updated(wide, wide_job), before, number)
        if whole is not None:
            of_eager = _update_errors(eager_job, whole, before, number)
            of_step = _update_errors(ours, whole, before, number)
            given_own = [_nearer(*each) for each in zip(given_own, of_step, of_eager)]
        found.append(rows + given_own)
    return [_worst(rows) for rows in zip(*found)]


def _updated(wide: EagerStep, job: _Job) -> Dict[str, torch.Tensor]:
    """Parameters, buffers and states behind the update by the gradients in the parameters."""
    wide.update()
    return _cloned(state_tensors(job.model, job.optimizer))


def _nearer(given_own: TensorError, of_step: TensorError, of_eager: TensorError) -> TensorError:
    """Of an optimizer's state, the comparison that it passes more clearly: with the optimizer given
    the plan's own gradients, or with the step in float64, from which eager is as far as `of_eager`
    says. Changes of parameters have the first alone: Adam's first steps depend on the signs of
    gradients, so that eager itself is far from float64."""
    if not given_own.name.startswith("next "):
        return given_own
    bound = max(_LOW_FLOOR, FACTOR * of_eager.ours)
    whole = of_step._replace(eager=of_eager.ours, bound=bound)
    return min(given_own, whole, key=lambda row: row.ours / row.bound)


def _cloned(tensors: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _gradients(eager: EagerStep, job: _Job) -> Tuple[torch.Tensor, Dict[str, Any]]:
    value = eager.gradients(job.batch)
    return value, {name: parameter.grad for name, parameter in job.model.named_parameters()}


def _worst(rows: Sequence[TensorError]) -> TensorError:
    """Of one tensor in all steps: what is nearest to its bound, with the largest of eager's."""
    eager = [row.eager for row in rows if row.eager is not None]
    worst = max(rows, key=lambda row: row.ours / row.bound)
    if not eager or worst.name.startswith(("change of ", "next optimizer.")):
        return worst
    bound = max(row.bound for row in rows)
    farthest = max(rows, key=lambda row: row.ours)
    return farthest._replace(eager=max(eager), bound=bound)


def _take_state(to: _Job, before: Dict[str, torch.Tensor], of: _Job) -> None:
    """Parameters, buffers and optimizer states as they are in `of`."""
    with torch.no_grad():
        own = state_tensors(to.model, to.optimizer)
        for name, tensor in before.items():
            if name in own and not name.startswith("optimizer."):
                own[name].copy_(tensor)
        for mine, other in zip(to.model.parameters(), of.model.parameters()):
            for key, value in of.optimizer.state.get(other, {}).items():
                to.optimizer.state[mine][key] = _state_like(value, mine, key)


def _state_like(value: Any, parameter: torch.Tensor, key: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    dtype = value.dtype if key == "step" else parameter.dtype
    return value.detach().to(dtype).clone()


def _passes(
    job: _Job, value: torch.Tensor, gradients: Dict[str, Optional[torch.Tensor]]
) -> Dict[str, torch.Tensor]:
    """Results of the forward and backward pass."""
    found = {"loss": value}
    for name, gradient in gradients.items():
        if gradient is not None:
            found[f"gradient {name}"] = gradient
    for name, buffer in job.model.named_buffers():
        if buffer.is_floating_point():
            found[f"next {name}"] = buffer
    return {name: tensor.detach().double().clone() for name, tensor in found.items()}


def _pass_errors(
    ours: Dict[str, torch.Tensor],
    eager: Dict[str, torch.Tensor],
    exact: Dict[str, torch.Tensor],
    number: int,
    options: StepOptions,
) -> List[TensorError]:
    gradients = [_size(t) for name, t in exact.items() if name.startswith("gradient")]
    floor = _LOW_FLOOR if options.autocast is not None else _FLOOR
    rows = []
    for name, tensor in exact.items():
        scale = _size(tensor)
        if name.startswith("gradient"):  # a gradient that is 0 in theory is all rounding
            scale = max(scale, 1e-6 * max(gradients))
        far = [_distance(each.get(name), tensor) / (scale or 1.0) for each in (ours, eager)]
        rows.append(TensorError(name, far[0], far[1], max(floor, FACTOR * far[1]), number))
    return rows


def _update_errors(
    ours: _Job, exact: Dict[str, torch.Tensor], before: Dict[str, torch.Tensor], number: int
) -> List[TensorError]:
    """Changes of parameters, and optimizer states, beside those of `exact`. A change is as exact as
    the parameter's last place. Under autocast a kernel may update by a gradient before it is
    rounded to 16 bits, which moves a change of Adam's by up to two roundings."""
    low = ours.options.autocast is not None
    parameters = dict(ours.model.named_parameters())
    rows = []
    for name, tensor in state_tensors(ours.model, ours.optimizer).items():
        # A first step that is not finite leaves PyTorch's optimizer without states.
        want = exact[name].double() if name in exact else torch.zeros_like(tensor).double()
        if name in parameters and parameters[name].grad is not None:
            old = before[name].double()
            size = _size(want - old) or 1.0
            last = 2 * torch.finfo(tensor.dtype).eps * max(_size(old), _size(want)) / size
            far = _distance(tensor.double() - old, want - old) / size
            bound = (_LOW_FLOOR if low else _FLOOR) + last
            rows.append(TensorError(f"change of {name}", far, None, bound, number))
        elif name.startswith("optimizer.") and not name.endswith(".step"):
            far = _distance(tensor.double(), want) / (_size(want) or 1.0)
            rows.append(TensorError(f"next {name}", far, None, _FLOOR, number))
    return rows


def _size(tensor: torch.Tensor) -> float:
    """The largest of the finite elements."""
    found = tensor[tensor.isfinite()]
    return float(found.abs().max()) if found.numel() else 0.0


def _distance(one: Optional[torch.Tensor], other: torch.Tensor) -> float:
    """The largest difference; equal infinities and NaNs have none. Infinite for what is missing."""
    if one is None:
        return float("inf")
    same = (one == other) | (one.isnan() & other.isnan())
    difference = torch.where(same, torch.zeros_like(other), (one - other).abs())
    return float(difference.nan_to_num(nan=float("inf")).max()) if other.numel() else 0.0


def _free(job: _Job, make: Callable[..., TrainStep], compiled: Any, steps: int) -> FreeRun:
    mine = job.copied()
    # With gradients, which are not read: then the plan is the one of the comparison.
    step = make(mine.model, mine.loss, mine.optimizer, job.options, compiled, keep_gradients=True)
    ours = [float(step(*mine.batch)) for _ in range(steps)]
    eager = _losses(job.copied(), steps)
    spread = [0.0] * steps
    for number in range(VARIANTS):
        variant = job.copied()
        moved(variant.model, number)
        other = _losses(variant, steps)
        spread = [max(s, abs(a - b)) for s, a, b in zip(spread, other, eager)]
    for i in range(1, steps):
        spread[i] = max(spread[i], spread[i - 1])
    floor = _LOW_FLOOR if job.options.autocast is not None else _FLOOR
    bounds = [2.0 * s + floor * max(abs(eager[0]), abs(e)) for s, e in zip(spread, eager)]
    return FreeRun(ours, eager, spread, bounds)


def _losses(job: _Job, steps: int) -> List[float]:
    eager = job.eager()
    return [float(eager.step(job.batch)[0]) for _ in range(steps)]


def moved(model: torch.nn.Module, number: int) -> None:
    """Gives a model's steps other roundings: moves each parameter by about one unit in its last
    place."""
    generator = torch.Generator().manual_seed(number + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator).to(parameter)
            parameter.mul_(1.0 + noise * torch.finfo(parameter.dtype).eps)
