"""Traces a whole training step: forward, backward and the optimizer's update."""

import operator
import os
import re
from typing import Any, Callable, Dict, List, Sequence, Tuple, Union

import torch

from ._capture import _lift_constants, _tracer, _write
from ._program import CaptureError, Input, Output, program_json

__all__ = ["capture_step"]

_PathLike = Union[str, "os.PathLike[str]"]
_Tensors = List[torch.Tensor]

#: Update of one parameter: (parameter, gradient, states, step) -> (parameter, states)
_Update = Callable[[torch.Tensor, torch.Tensor, _Tensors], Tuple[torch.Tensor, _Tensors]]


def capture_step(
    model: torch.nn.Module,
    loss: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    batch: Sequence[torch.Tensor],
    path: _PathLike,
) -> str:
    """Writes one training step as a program of ATen operators, in the form of `capture`.

    `batch` holds the model's inputs and, last, what `loss(output, batch[-1])` compares with. Inputs
    of the program are parameters, buffers, the optimizer's states, and the batch; results are the
    loss, the gradient of each parameter, and the next values of parameters, states and running
    statistics of batch norms (not their count of batches).

    Optimizers: SGD with momentum, weight decay, Nesterov and dampening; Adam and AdamW without
    amsgrad. Hyperparameters are fixed as they are now; the number of steps is a state.

    Dropout must be off (p = 0): its random numbers are not traced. PyTorch 1.13 or later.
    """
    path = os.fspath(path)
    program, weights = _traced_step(model, loss, optimizer, tuple(batch))
    return _write(program, weights, path)


def _sgd(group: Dict[str, Any]) -> Tuple[List[str], _Update]:
    rate, momentum, decay = group["lr"], group["momentum"], group["weight_decay"]
    nesterov, dampening = group["nesterov"], group["dampening"]
    if group.get("maximize"):
        raise CaptureError("SGD with maximize is not traced")

    def update(
        parameter: torch.Tensor, gradient: torch.Tensor, states: _Tensors
    ) -> Tuple[torch.Tensor, _Tensors]:
        if decay:
            gradient = gradient + decay * parameter
        if momentum:
            states = [momentum * states[0] + (1 - dampening) * gradient]
            gradient = gradient + momentum * states[0] if nesterov else states[0]
        return parameter - rate * gradient, states

    return (["momentum_buffer"] if momentum else []), update


def _adam(group: Dict[str, Any], decoupled: bool) -> Tuple[List[str], _Update]:
    rate, decay, eps = group["lr"], group["weight_decay"], group["eps"]
    beta1, beta2 = group["betas"]
    if group.get("amsgrad") or group.get("maximize"):
        raise CaptureError("Adam with amsgrad or maximize is not traced")

    def update(
        parameter: torch.Tensor, gradient: torch.Tensor, states: _Tensors
    ) -> Tuple[torch.Tensor, _Tensors]:
        mean, square, step = states
        step = step + 1
        if decay and decoupled:
            parameter = parameter * (1 - rate * decay)
        elif decay:
            gradient = gradient + decay * parameter
        mean = beta1 * mean + (1 - beta1) * gradient
        square = beta2 * square + (1 - beta2) * (gradient * gradient)
        unbiased = 1 - torch.pow(beta1, step)
        root = torch.sqrt(square) / torch.sqrt(1 - torch.pow(beta2, step)) + eps
        return parameter - (rate / unbiased) * (mean / root), [mean, square, step]

    return ["exp_avg", "exp_avg_sq", "step"], update


def _updates(optimizer: torch.optim.Optimizer) -> Dict[int, Tuple[List[str], _Update]]:
    """By the parameter's identity: names of its states, and its update."""
    updates = {}
    for group in optimizer.param_groups:
        if isinstance(optimizer, torch.optim.SGD):
            made = _sgd(group)
        elif isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)):
            made = _adam(group, isinstance(optimizer, torch.optim.AdamW))
        else:
            raise CaptureError(f"the optimizer {type(optimizer).__name__} is not traced")
        for parameter in group["params"]:
            updates[id(parameter)] = made
    return updates


def _state_of(optimizer: torch.optim.Optimizer, parameter: torch.Tensor, name: str) -> torch.Tensor:
    """The optimizer's state as it is, or as its first step finds it."""
    known = optimizer.state.get(parameter, {}).get(name)
    if isinstance(known, torch.Tensor):
        return known.detach().to(parameter.dtype)
    if name == "step":
        return torch.tensor(float(known or 0), dtype=parameter.dtype)
    return torch.zeros_like(parameter)


def _check_model(model: torch.nn.Module) -> None:
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd) and module.p > 0:
            raise CaptureError(f"'{name}' draws random numbers: set its p to 0 for the capture")


Weights = List[Tuple[Input, torch.Tensor]]


def _traced_step(
    model: torch.nn.Module,
    loss: Callable[..., torch.Tensor],
    optimizer: torch.optim.Optimizer,
    batch: Tuple[torch.Tensor, ...],
) -> Tuple[Dict[str, Any], Weights]:
    """The program of a step, and its parameters, buffers and states."""
    _check_model(model)
    make_fx, functionalize, functional_call = _tracer()
    updates = _updates(optimizer)
    named = [(n, p) for n, p in model.named_parameters() if id(p) in updates]
    buffers = list(model.named_buffers())
    states = [
        (f"{name}.{state}", _state_of(optimizer, parameter, state))
        for name, parameter in named
        for state in updates[id(parameter)][0]
    ]

    first, second = len(named), len(named) + len(buffers)
    third = second + len(states)

    def step(*tensors_of_step: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        parameters, held = tensors_of_step[:first], tensors_of_step[first:second]
        state, given = tensors_of_step[second:third], tensors_of_step[third:]
        leaves = [tensor.detach().requires_grad_() for tensor in parameters]
        tensors = dict(zip([n for n, _ in named], leaves))
        tensors.update(zip([n for n, _ in buffers], held))
        value = loss(functional_call(model, tensors, given[:-1]), given[-1])
        gradients = torch.autograd.grad(value, leaves)
        left = list(state)
        changed: _Tensors = []
        kept: _Tensors = []
        with torch.no_grad():
            for (_, parameter), before, gradient in zip(named, parameters, gradients):
                names, update = updates[id(parameter)]
                mine, left = left[: len(names)], left[len(names) :]
                after, mine = update(before, gradient, mine)
                changed.append(after)
                kept += mine
        return (value.detach(), *gradients, *changed, *kept)

    weights: Weights = [(Input("parameter", n), p.detach()) for n, p in named]
    weights += [(Input("buffer", n), b.detach().clone()) for n, b in buffers]
    weights += [(Input("buffer", f"optimizer.{n}"), s) for n, s in states]
    values = [value.clone() for _, value in weights]
    # Gradients cannot be taken inside of functionalize, so that the step is traced twice.
    differentiated = torch.fx.Interpreter(make_fx(step)(*values, *batch))
    traced = make_fx(functionalize(lambda *given: differentiated.run(*given)))(*values, *batch)
    lifted = _lift_constants(traced)
    traced.graph.eliminate_dead_code()
    outputs = [Output("loss_output", "")]
    outputs += [Output("gradient_to_parameter", n) for n, _ in named]
    outputs += [Output("parameter_mutation", n) for n, _ in named]
    outputs += [Output("buffer_mutation", f"optimizer.{n}") for n, _ in states]
    outputs += _add_running_statistics(traced, [n for n, _ in buffers], first)
    traced.recompile()
    ordered = weights + [(Input("user_input", ""), value) for value in batch] + lifted
    _name_inputs(traced, [given for given, _ in ordered])
    program = program_json(
        traced, [given for given, _ in ordered], [value for _, value in ordered], outputs
    )
    program["phase"] = "training"
    return program, weights + lifted


def _add_running_statistics(
    traced: torch.fx.GraphModule, buffers: Sequence[str], first: int
) -> List[Output]:
    """Batch norms change their running statistics in place, which the trace does not show: adds
    their next values to the results."""
    aten = torch.ops.aten
    graph = traced.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    names = {node: name for node, name in zip(placeholders[first:], buffers)}
    result = next(node for node in graph.nodes if node.op == "output")
    found: List[Output] = []
    values: List[torch.fx.Node] = []
    for node in list(graph.nodes):
        if node.target is not aten.native_batch_norm.default or not node.args[5]:
            continue
        x, _, _, mean, variance, _, momentum, eps = node.args
        if mean not in names or variance not in names:
            continue
        with graph.inserting_before(result):
            item = lambda i: graph.call_function(operator.getitem, (node, i))  # noqa: E731
            call = lambda target, *args: graph.call_function(target, args)  # noqa: E731
            inverse = item(2)
            biased = call(aten.sub.Tensor, call(aten.pow.Tensor_Scalar, inverse, -2.0), float(eps))
            count = _count_of(traced, x)
            fresh = [item(1), call(aten.mul.Tensor, biased, count / max(count - 1.0, 1.0))]
            for old, new in zip((mean, variance), fresh):
                kept = call(aten.mul.Tensor, old, 1.0 - momentum)
                values.append(
                    call(aten.add.Tensor, kept, call(aten.mul.Tensor, new, float(momentum)))
                )
                found.append(Output("buffer_mutation", names[old]))
    result.args = (tuple(result.args[0]) + tuple(values),)
    return found


def _count_of(traced: torch.fx.GraphModule, node: torch.fx.Node) -> float:
    """The elements of each channel of a batch norm's input."""
    meta = node.meta.get("tensor_meta") or node.meta.get("val")
    shape = meta.shape if meta is not None else None
    if shape is None:
        raise CaptureError(f"the shape of '{node.name}' is not known")
    count = 1.0
    for axis, size in enumerate(shape):
        count *= 1.0 if axis == 1 else float(size)
    return count


def _name_inputs(traced: torch.fx.GraphModule, inputs: Sequence[Input]) -> None:
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    for node, given in zip(placeholders, inputs):
        if given.kind == "user_input":
            name = "batch"
        else:
            prefix = {"parameter": "p_", "buffer": "b_"}.get(given.kind, "c_")
            name = prefix + re.sub(r"\W", "_", given.qualified_name)
        node.name = traced.graph._graph_namespace.create_name(name, None)
