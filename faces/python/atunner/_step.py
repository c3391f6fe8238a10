"""Traces a whole training step: forward, backward and the optimizer's update."""

import contextlib
import os
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch

from ._batch_norm import add_running_statistics
from ._capture import Weights, _lift_constants, _tracer, _write
from ._optimizers import Rule, Scalar, rule_of
from ._program import CaptureError, Input, Output, program_json
from ._random import drawing

__all__ = ["LossScaling", "StepOptions", "capture_step"]

_PathLike = Union[str, "os.PathLike[str]"]
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


def capture_step(
    model: torch.nn.Module,
    loss: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    batch: Sequence[torch.Tensor],
    path: _PathLike,
    **options: Any,
) -> str:
    """Writes one training step as a program of ATen operators, in the form of `capture`.

    `batch` holds the model's inputs and, last, what `loss(output, batch[-1])` compares with. Inputs
    of the program are parameters, buffers, the optimizer's states, and the batch; results are the
    loss, the gradient of each parameter, and the next values of parameters, states and buffers.

    Optimizers: SGD, Adam and AdamW. Hyperparameters are fixed as they are now; the number of steps
    is a state. `options` are those of StepOptions. Dropout draws by Philox from two buffers,
    `random.seed` and `random.count`; the scale of the loss is the buffer `scaling.scale`.

    PyTorch 1.13 or later. The model is not changed.
    """
    traced = trace_step(model, loss, optimizer, tuple(batch), StepOptions(**options))
    return _write(traced.program, traced.weights, os.fspath(path))


#: A result of steps with loss scaling: 0 if a gradient was not finite.
FINITE = Output("user_output", "scaling.finite")


class TracedStep(NamedTuple):
    """A step's program, and the tensors that it starts from."""

    program: Dict[str, Any]
    weights: Weights  #: in the order of the program's inputs, without the batch
    outputs: List[Output]  #: in the order of the program's outputs
    scalars: int  #: how many scalars of the optimizer the step takes; 0 if they are states


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


def state_of(
    optimizer: torch.optim.Optimizer, parameter: torch.Tensor, name: str
) -> torch.Tensor:
    """The optimizer's state as it is, or as its first step finds it."""
    known = optimizer.state.get(parameter, {}).get(name)
    if isinstance(known, torch.Tensor):
        return known.detach().to(parameter.device, parameter.dtype)
    if name == "step":
        return torch.tensor(float(known or 0), dtype=parameter.dtype, device=parameter.device)
    return torch.zeros_like(parameter)


class _Step:
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
            id(rule): not optimizer.state.get(parameter)
            for _, parameter, rule in self.optimized
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
        with drawing(*given["random"]) as drawn:
            for part in zip(*[_parts(tensor, parts) for tensor in batch]):
                with self._autocast(leaves[0].device):
                    output = self.functional_call(self.model, tensors, tuple(part[:-1]))
                    value = self.loss(output, part[-1])
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

    def _next_scale(
        self, scaling: _Tensors, finite: torch.Tensor
    ) -> Dict[Output, torch.Tensor]:
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
            f"a batch of shape {list(tensor.shape)} has no {count} equal parts along its first axis"
        )
    return tensor.split(tensor.shape[0] // count)


def _all_finite(gradients: Sequence[Optional[torch.Tensor]]) -> torch.Tensor:
    """True if no element of any gradient is infinite or NaN: x - x is 0 for finite numbers alone."""
    found = None
    for gradient in gradients:
        if gradient is not None:
            one = ((gradient - gradient) == 0).all()
            found = one if found is None else torch.logical_and(found, one)
    assert found is not None
    return found


def _clipped(
    gradients: List[Optional[torch.Tensor]], limit: float
) -> List[Optional[torch.Tensor]]:
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


@contextlib.contextmanager
def _portable_operators() -> Iterator[None]:
    """Without cuDNN a trace on a GPU has PyTorch's own operators."""
    if not torch.backends.cudnn.is_available():
        yield
        return
    with torch.backends.cudnn.flags(enabled=False):
        yield


def trace_step(
    model: torch.nn.Module,
    loss: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    batch: Tuple[torch.Tensor, ...],
    options: StepOptions = StepOptions(),
    live_scalars: bool = False,
    gradients: bool = True,
) -> TracedStep:
    """The program of a step; without `gradients` they are not among its results."""
    make_fx, functionalize, _ = _tracer()
    step = _Step(model, loss, optimizer, options, live_scalars)
    slots = [slot for slots in step.slots.values() for slot in slots]
    values = [slot.tensor.clone() for slot in slots] + list(batch)
    with _portable_operators():
        # Gradients cannot be taken inside of functionalize, so that the step is traced twice.
        differentiated = torch.fx.Interpreter(make_fx(step)(*values))
        traced = make_fx(functionalize(lambda *given: differentiated.run(*given)))(*values)
    lifted = _lift_constants(traced)
    outputs = list(step.outputs)
    names = {slot.name: i for i, slot in enumerate(slots)}
    outputs += add_running_statistics(traced, {i: slot.name for slot, i in zip(slots, names.values())})
    outputs = _kept_outputs(traced, outputs, names, gradients)
    traced.graph.eliminate_dead_code()
    _drop_copies(traced.graph)
    inputs = [(Input(slot.kind, slot.name), slot.tensor) for slot in slots]
    kept = _drop_unused(traced.graph, len(inputs), inputs)
    traced.recompile()
    ordered = kept + [(Input("user_input", ""), value) for value in batch] + lifted
    _check_operators(traced.graph)
    _name_inputs(traced, [given for given, _ in ordered])
    with _portable_operators():
        program = program_json(
            traced, [given for given, _ in ordered], [value for _, value in ordered], outputs
        )
    program["phase"] = "training"
    scalars = sum(len(rule.scalars(1.0)) for rule in step.rules) if live_scalars else 0
    return TracedStep(program, kept + lifted, outputs, scalars)


def _origin(node: Any) -> Any:
    """The node that copies and views without change were made of."""
    same = ("aten.clone.default", "aten.detach.default", "aten.alias.default")
    while isinstance(node, torch.fx.Node) and str(node.target) in same:
        node = node.args[0]
    return node


def _kept_outputs(
    traced: torch.fx.GraphModule, outputs: List[Output], names: Dict[str, int], gradients: bool
) -> List[Output]:
    """Drops results that are inputs unchanged, older values of what has a newer one, and gradients
    if they are not wanted."""
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    result = next(node for node in traced.graph.nodes if node.op == "output")
    found: Dict[Output, Any] = {}
    for output, node in zip(outputs, result.args[0]):
        if output.kind == "gradient_to_parameter" and not gradients:
            continue
        own = output.qualified_name in names and placeholders[names[output.qualified_name]]
        if output.kind.endswith("_mutation") and _origin(node) is own:
            continue
        found[output] = node
    result.args = (tuple(found.values()),)
    return list(found)


def _drop_copies(graph: torch.fx.Graph) -> None:
    """functionalize ends with copies into changed inputs, which the results say already."""
    for node in reversed(list(graph.nodes)):
        if str(node.target) == "aten.copy_.default" and not node.users:
            graph.erase_node(node)


def _drop_unused(graph: torch.fx.Graph, count: int, inputs: Weights) -> Weights:
    """Erases inputs among the first `count` that nothing reads; the others."""
    placeholders = [node for node in graph.nodes if node.op == "placeholder"][:count]
    kept = []
    for node, given in zip(placeholders, inputs):
        if node.users:
            kept.append(given)
        else:
            graph.erase_node(node)
    return kept


_DRAWS = re.compile(
    r"^aten\.(bernoulli|native_dropout|_fused_dropout|rand|normal|uniform|multinomial|rrelu_with|"
    r"exponential|geometric|poisson|log_normal|cauchy)"
)


def _check_operators(graph: torch.fx.Graph) -> None:
    for node in graph.nodes:
        if node.op == "call_function" and _DRAWS.match(str(node.target)):
            raise CaptureError(
                f"the step draws random numbers by {node.target}, which have no state in a graph; "
                "torch.nn.functional.dropout and its modules are known"
            )


def _name_inputs(traced: torch.fx.GraphModule, inputs: Sequence[Input]) -> None:
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    for node, given in zip(placeholders, inputs):
        if given.kind == "user_input":
            name = "batch"
        else:
            prefix = {"parameter": "p_", "buffer": "b_"}.get(given.kind, "c_")
            name = prefix + re.sub(r"\W", "_", given.qualified_name)
        node.name = traced.graph._graph_namespace.create_name(name, None)
