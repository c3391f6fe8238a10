"""A whole training step, optimizer included, as one execution plan."""

import functools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from ._graphs import device_of, write_program
from ._optimizers import Rule
from ._options import Options, options_of
from ._plan import Plan, load
from ._plan_cache import PlanCache
from ._program import Output
from ._step import TracedStep, trace_step
from ._step_function import FINITE, StepOptions, optimized, shared_names, state_of

__all__ = ["TrainStep", "train_step"]


def train_step(
    model: torch.nn.Module,
    loss: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    mode: Optional[str] = None,
    compile_options: Optional[Dict[str, Any]] = None,
    keep_gradients: bool = False,
    **options: Any,
) -> "TrainStep":
    """A training step as one execution plan: `step = train_step(…); value = step(x, labels)`.

    A call computes `loss(model(*batch[:-1]), batch[-1])`, its gradients and the optimizer's update,
    changes the model's parameters and buffers and the optimizer's states in place, and returns the
    loss. The plan is made at the first call, and for each further shape of the batch; it is kept in
    ~/.cache/atunner/plans. Learning rates are read from the optimizer at each call, so that
    schedules work. To go on without atunner, use model and optimizer as they are.

    `mode` and `compile_options` are those of the backend of torch.compile; `options` those of
    StepOptions. With `keep_gradients` a call leaves gradients in `parameter.grad`, before clipping
    and after unscaling.
    Raises CaptureError for steps that cannot be traced, and BackendError where no plan is made.
    """
    return TrainStep(
        model,
        loss,
        optimizer,
        StepOptions(**options),
        options_of(mode, compile_options),
        keep_gradients,
    )


#: Names of a parameter, the parameter, and how the optimizer changes it.
_Optimized = Tuple[List[str], torch.Tensor, Rule]


class _Compiled(NamedTuple):
    plan: Plan
    inputs: List[str]  #: names of the tensors in front of the batch
    outputs: List[Output]  #: what the plan returns


class TrainStep:
    """See `train_step`."""

    def __init__(
        self,
        model: torch.nn.Module,
        loss: Callable[..., torch.Tensor],
        optimizer: torch.optim.Optimizer,
        options: StepOptions,
        compile_options: Options,
        keep_gradients: bool = False,
    ) -> None:
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.options, self.compile_options = options, compile_options
        self.keep_gradients = keep_gradients
        self._compiled: Dict[Any, _Compiled] = {}
        self._own: Dict[str, torch.Tensor] = {}  # random numbers and loss scaling
        self._begins: Set[int] = set()  # parameters whose states are new

    def __call__(self, *batch: torch.Tensor) -> torch.Tensor:
        optimized = self._optimized()
        compiled = self._compiled_for(batch, optimized)
        tensors = self._tensors(optimized)
        self._own["scalars"] = self._scalars(optimized)
        if self.keep_gradients:  # those of the last step are not held beside the new ones
            for _, parameter, _ in optimized:
                parameter.grad = None
        passed = [self._own[n] if n in self._own else tensors[n] for n in compiled.inputs]
        results = compiled.plan.run(passed + list(batch))
        named = dict(zip(compiled.outputs, results))
        self._keep(named, optimized)
        if self.options.scaling is None or bool(named[FINITE]):
            self._count(optimized)
        return named[Output("loss_output", "")]

    @property
    def scale(self) -> Optional[float]:
        """The scale of the loss in the next step."""
        scale = self._own.get("scaling.scale")
        if scale is not None:
            return float(scale)
        return self.options.scaling.init_scale if self.options.scaling else None

    def begin_at(self, count: int, scale: float, growth: int, first: bool) -> None:
        """The next step draws as step `count`, from 0, and scales the loss so; `first` if the
        optimizer has no states yet. Parameters and states are the model's and the optimizer's."""
        values = {"random.count": count, "scaling.scale": scale, "scaling.growth": growth}
        for name, value in values.items():
            if name in self._own:
                self._own[name].fill_(value)
        if not first:
            self._begins.clear()

    def compiled(self, *batch: torch.Tensor) -> _Compiled:
        """The plan for batches of this shape, made where it is not known."""
        return self._compiled_for(batch, self._optimized())

    def adopt(self, other: "TrainStep") -> None:
        """Takes over the plans of a step with the same model, loss, options and optimizer."""
        self._prepare_states(self._optimized())
        self._compiled.update(other._compiled)
        self._own.update({name: tensor.clone() for name, tensor in other._own.items()})

    def _compiled_for(
        self, batch: Tuple[torch.Tensor, ...], optimized: List[_Optimized]
    ) -> _Compiled:
        key = (
            tuple((tuple(tensor.shape), tensor.dtype) for tensor in batch),
            tuple(rule.fixed() for rule in _rules(optimized)),
            tuple(module.training for module in self.model.modules()),
        )
        if key not in self._compiled:
            self._prepare_states(optimized)
            self._compiled[key] = self._compile(batch, optimized)
        return self._compiled[key]

    def _optimized(self) -> List[_Optimized]:
        return list(optimized(self.model, self.optimizer))

    def _prepare_states(self, optimized: List[_Optimized]) -> None:
        """Makes the optimizer's states as its own first step does."""
        for _, parameter, rule in optimized:
            state = self.optimizer.state[parameter]
            for name in rule.states:
                if not isinstance(state.get(name), torch.Tensor):
                    self._begins.add(id(parameter))
                    state[name] = state_of(self.optimizer, parameter, name)
            if rule.counts and "step" not in state:
                state["step"] = torch.tensor(0.0)

    def _compile(self, batch: Tuple[torch.Tensor, ...], optimized: List[_Optimized]) -> _Compiled:
        traced = trace_step(
            self.model,
            self.loss,
            self.optimizer,
            batch,
            self.options,
            live_scalars=True,
            gradients=self.keep_gradients,
        )
        inputs = [given for given, _ in traced.weights if given.kind != "tensor_constant"]
        known = self._tensors(optimized)
        for given, tensor in traced.weights:
            name = given.qualified_name
            if given.kind != "tensor_constant" and name not in known and name not in self._own:
                self._own[name] = tensor.clone()
        plan = self._plan(traced, device_of(batch))
        outputs = [output for output in traced.outputs if not output.kind.endswith("_mutation")]
        return _Compiled(plan, [given.qualified_name for given in inputs], outputs)

    def _plan(self, traced: TracedStep, device: int) -> Plan:
        """The plan of a traced step, made if it is not known."""
        if torch.cuda.is_available():  # another process makes the plan, on the same GPU
            torch.cuda.empty_cache()
        _take_all_as_inputs(traced.program)
        constants = [each for each in traced.weights if each[0].kind == "tensor_constant"]
        write = functools.partial(write_program, traced.program, constants)
        options = self.compile_options
        folder = PlanCache(write, options, device).plan(
            options.budget if options.searches else None
        )
        assert folder is not None
        return load(folder, device, replay=options.replays)

    def _tensors(self, optimized: List[_Optimized]) -> Dict[str, torch.Tensor]:
        """The model's and the optimizer's tensors as they are, by their names in programs."""
        found: Dict[str, torch.Tensor] = {}
        for kind in ("_parameters", "_buffers"):
            found.update({n[0]: t.detach() for t, n in shared_names(self.model, kind)})
        for names, parameter, rule in optimized:
            for name in rule.states:
                state = self.optimizer.state.get(parameter, {}).get(name)
                if state is not None:
                    found[f"optimizer.{names[0]}.{name}"] = state
        return found

    def _scalars(self, optimized: List[_Optimized]) -> torch.Tensor:
        """Learning rates and bias corrections of the next step, in the order of the rules."""
        values: List[float] = []
        for rule in _rules(optimized):
            parameter = next(p for _, p, other in reversed(optimized) if other is rule)
            values += [float(v) for v in rule.scalars(self._steps_of(parameter, rule) + 1.0)]
        first = optimized[0][1]
        dtype = first.dtype if first.dtype == torch.float64 else torch.float32
        return torch.tensor(values, dtype=dtype).to(first.device, non_blocking=True)

    def _steps_of(self, parameter: torch.Tensor, rule: Rule) -> float:
        state = self.optimizer.state[parameter]
        if rule.counts:
            return float(state["step"])
        return 0.0 if id(parameter) in self._begins else 1.0

    def _count(self, optimized: List[_Optimized]) -> None:
        """Advances the optimizer's counts, as its own step does."""
        self._begins.clear()
        for _, parameter, rule in optimized:
            state = self.optimizer.state[parameter]
            if not rule.counts:
                continue
            if isinstance(state["step"], torch.Tensor):
                state["step"] += 1
            else:
                state["step"] = state["step"] + 1

    def _keep(self, named: Dict[Output, torch.Tensor], optimized: List[_Optimized]) -> None:
        if not self.keep_gradients:
            return
        for names, parameter, _ in optimized:
            parameter.grad = named.get(Output("gradient_to_parameter", names[0]))


def _rules(optimized: List[_Optimized]) -> List[Rule]:
    """Each parameter group's rule once, in the order of the parameters."""
    return list({id(rule): rule for _, _, rule in optimized}.values())


def _take_all_as_inputs(program: Dict[str, Any]) -> None:
    """Makes inputs of what the program holds, so that it changes its caller's tensors in place."""
    signature = program["graph_module"]["signature"]
    places: Dict[str, str] = {}
    inputs = []
    for spec in signature["input_specs"]:
        ((kind, fields),) = spec.items()
        if kind in ("parameter", "buffer"):
            places[fields[f"{kind}_name"]] = fields["arg"]["name"]
            spec = {"user_input": {"arg": {"as_tensor": fields["arg"]}}}
        inputs.append(spec)
    outputs = []
    for spec in signature["output_specs"]:
        ((kind, fields),) = spec.items()
        if kind.endswith("_mutation"):
            name = fields.get("parameter_name") or fields["buffer_name"]
            spec = {"user_input_mutation": {"arg": fields["arg"], "user_input_name": places[name]}}
        elif kind.startswith("gradient"):
            spec = {"user_output": {"arg": fields["arg"]}}
        outputs.append(spec)
    signature["input_specs"], signature["output_specs"] = inputs, outputs
