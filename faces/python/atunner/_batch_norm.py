"""Running statistics of batch norms, which change without a trace."""

import operator
from typing import Any, Dict, List, Tuple

import torch

from ._program import CaptureError, Output

__all__ = ["add_running_statistics"]

_NORMS = ("aten.native_batch_norm.default", "aten._native_batch_norm_legit.default")


def add_running_statistics(traced: torch.fx.GraphModule, names: Dict[int, str]) -> List[Output]:
    """Batch norms change their running statistics in place, which the trace does not show: adds
    their next values to the results. `names` has those of the inputs by their numbers. A norm that
    runs several times in a step continues from its own last values."""
    graph = traced.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    known = {node: names[i] for i, node in enumerate(placeholders) if i in names}
    result = next(node for node in graph.nodes if node.op == "output")
    newest: Dict[torch.fx.Node, torch.fx.Node] = {}
    for node in list(graph.nodes):
        if str(node.target) not in _NORMS or not node.args[5]:
            continue
        statistics = [_source(each) for each in node.args[3:5]]
        if all(each in known for each in statistics):
            with graph.inserting_before(result):
                _continue(traced, node, statistics, newest)
    result.args = (tuple(result.args[0]) + tuple(newest.values()),)
    return [Output("buffer_mutation", known[old]) for old in newest]


def _source(node: Any) -> Any:
    """The input that a copy was made of."""
    while isinstance(node, torch.fx.Node) and str(node.target) == "aten.clone.default":
        node = node.args[0]
    return node


def _continue(
    traced: torch.fx.GraphModule,
    norm: torch.fx.Node,
    statistics: List[torch.fx.Node],
    newest: Dict[torch.fx.Node, torch.fx.Node],
) -> None:
    """The statistics behind one run of a norm; it saved the mean and 1 / sqrt(variance + eps)."""
    aten = torch.ops.aten
    call = lambda target, *args: traced.graph.call_function(target, args)  # noqa: E731
    x, momentum, eps = norm.args[0], norm.args[6], norm.args[7]
    mean, inverse = (_result(traced, norm, i) for i in (1, 2))
    biased = call(aten.sub.Tensor, call(aten.pow.Tensor_Scalar, inverse, -2.0), float(eps))
    count = _count_of(x)
    fresh = (mean, call(aten.mul.Tensor, biased, count / max(count - 1.0, 1.0)))
    for old, new in zip(statistics, fresh):
        kept = call(aten.mul.Tensor, newest.get(old, old), 1.0 - momentum)
        newest[old] = call(aten.add.Tensor, kept, call(aten.mul.Tensor, new, float(momentum)))


def _result(traced: torch.fx.GraphModule, node: torch.fx.Node, index: int) -> torch.fx.Node:
    for user in node.users:
        if user.target is operator.getitem and user.args[1] == index:
            return user
    return traced.graph.call_function(operator.getitem, (node, index))


def _shape_of(node: torch.fx.Node) -> Tuple[int, ...]:
    meta = node.meta.get("tensor_meta") or node.meta.get("val")
    if meta is None:
        raise CaptureError(f"the shape of '{node.name}' is not known")
    return tuple(meta.shape)


def _count_of(node: torch.fx.Node) -> float:
    """The elements of each channel of a batch norm's input."""
    count = 1.0
    for axis, size in enumerate(_shape_of(node)):
        count *= 1.0 if axis == 1 else float(size)
    return count
