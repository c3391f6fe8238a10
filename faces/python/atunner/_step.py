"""Traces a whole training step: forward, backward and the optimizer's update."""

import contextlib
import os
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple, Union

import torch

from ._batch_norm import add_running_statistics
from ._capture import Weights, _lift_constants, _tracer, _write
from ._program import CaptureError, Input, Output, program_json
from ._step_function import StepFunction, StepOptions

__all__ = ["capture_step", "trace_step"]

_PathLike = Union[str, "os.PathLike[str]"]


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


class TracedStep(NamedTuple):
    """A step's program, and the tensors that it starts from."""

    program: Dict[str, Any]
    weights: Weights  #: in the order of the program's inputs, without the batch
    outputs: List[Output]  #: in the order of the program's outputs
    module: torch.fx.GraphModule  #: the program, for PyTorch: weights, batch, constants


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
    step = StepFunction(model, loss, optimizer, options, live_scalars)
    slots = [slot for slots in step.slots.values() for slot in slots]
    values = [slot.tensor.clone() for slot in slots] + list(batch)
    with _portable_operators():
        # Gradients cannot be taken inside of functionalize, so that the step is traced twice.
        differentiated = torch.fx.Interpreter(make_fx(step)(*values))
        traced = make_fx(functionalize(lambda *given: differentiated.run(*given)))(*values)
    lifted = _lift_constants(traced)
    outputs = list(step.outputs)
    names = {slot.name: i for i, slot in enumerate(slots)}
    outputs += add_running_statistics(traced, {i: name for name, i in names.items()})
    outputs = _kept_outputs(traced, outputs, names, gradients)
    _use_origins(traced.graph)
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
    return TracedStep(program, kept + lifted, outputs, traced)


_SAME = ("aten.clone.default", "aten.detach.default", "aten.alias.default")


def _origin(node: Any) -> Any:
    """The node that copies and views without change were made of."""
    while isinstance(node, torch.fx.Node) and str(node.target) in _SAME:
        node = node.args[0]
    return node


def _use_origins(graph: torch.fx.Graph) -> None:
    """Lets nodes read what views without change were made of: nothing in the graph works in place,
    and a divided plan would keep both. Copies stay, because views may need their layout."""
    for node in graph.nodes:
        if node.op == "call_function" and str(node.target) in _SAME[1:]:
            node.replace_all_uses_with(node.args[0], lambda user: user.op != "output")


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
        # The loss itself stands in front of the backward pass, its detached copy behind it.
        origin = _origin(node)
        found[output] = node if origin.op == "placeholder" else origin
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
