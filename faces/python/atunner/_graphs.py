"""Graphs of AOTAutograd, made ready to be written as programs."""

import hashlib
import inspect
import json
import operator
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
import torch.fx

from ._capture import Weights, _files, _lift_constants
from ._options import BackendError
from ._program import Input, named_arguments, program_json

__all__ = [
    "device_of",
    "has_fixed_sizes",
    "sizes_of",
    "specialized",
    "write_graph",
    "write_program",
]


def has_fixed_sizes(values: Sequence[Any]) -> bool:
    """True if all inputs are tensors whose sizes are numbers."""
    return all(
        isinstance(value, torch.Tensor) and all(isinstance(size, int) for size in value.shape)
        for value in values
    )


def sizes_of(values: Sequence[Any]) -> Tuple[Any, ...]:
    """What a graph's plan depends on: sizes and order of tensors, and the values of others."""
    return tuple(
        (tuple(value.shape), value.is_contiguous()) if isinstance(value, torch.Tensor) else value
        for value in values
    )


def specialized(
    graph_module: torch.fx.GraphModule, values: Sequence[Any]
) -> Tuple[torch.fx.GraphModule, List[int]]:
    """A graph with symbolic sizes as it is for these inputs: all sizes are numbers, and inputs that
    are no tensors are constants. Also the numbers of the inputs that remain."""
    from torch.fx.experimental.proxy_tensor import make_fx

    places = [place for place, value in enumerate(values) if isinstance(value, torch.Tensor)]

    def run(*tensors: torch.Tensor) -> Any:
        given = list(values)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        return graph_module(*given)

    given = inspect.signature(make_fx).parameters
    allowed = {"_allow_non_fake_inputs": True} if "_allow_non_fake_inputs" in given else {}
    with torch.no_grad():
        traced = make_fx(run, tracing_mode="fake", **allowed)(*[values[i] for i in places])
    return traced, places


def _meta_results(
    graph: torch.fx.Graph, values: Sequence[torch.Tensor]
) -> Optional[Dict[torch.fx.Node, Any]]:
    """What each node returns, where AOTAutograd has noted it (with fake tensors). `values` are
    those of the placeholders."""
    results: Dict[torch.fx.Node, Any] = {}
    given = iter(values)
    for node in graph.nodes:
        if node.op == "placeholder":
            results[node] = next(given)
        elif node.op != "output":
            if "val" not in node.meta:
                return None
            results[node] = node.meta["val"]
    return results


#: The forms that AOTAutograd chooses for a GPU. In inference their first result alone is used.
_ATTENTION = (
    "aten._scaled_dot_product_flash_attention.default",
    "aten._scaled_dot_product_efficient_attention.default",
    "aten._scaled_dot_product_cudnn_attention.default",
)


def _join_attention(graph: torch.fx.Graph) -> None:
    """Makes aten.scaled_dot_product_attention of its forms for GPUs, which atunner would leave to
    the framework."""
    for node in list(graph.nodes):
        if node.op != "call_function" or str(node.target) not in _ATTENTION:
            continue
        listed = named_arguments(node.target, node.args, node.kwargs)
        given = {name: value for name, value, _ in listed}
        items = list(node.users)
        whole = all(item.target is operator.getitem and item.args[1] == 0 for item in items)
        if not whole or given.get("dropout_p", 0.0) != 0.0:
            continue
        arguments = (given["query"], given["key"], given["value"], given.get("attn_bias"), 0.0)
        causal = bool(given.get("is_causal", False))
        for item in items:
            with graph.inserting_before(item):
                joined = graph.call_function(
                    torch.ops.aten.scaled_dot_product_attention.default,
                    arguments + (causal,),
                    {"scale": given["scale"]} if given.get("scale") is not None else {},
                )
            joined.meta = dict(item.meta)
            item.replace_all_uses_with(joined)
            graph.erase_node(item)


def _copied(graph: torch.fx.Graph) -> torch.fx.Graph:
    copied = torch.fx.Graph()
    output = copied.graph_copy(graph, {})
    copied.output(output)
    return copied


def device_of(values: Sequence[Any]) -> int:
    """The number of the GPU that holds the first tensor on one; 0 where none does."""
    for value in values:
        if isinstance(value, torch.Tensor) and value.device.type == "cuda":
            return value.device.index or 0
    return 0


def write_program(program: Dict[str, Any], constants: Weights, folder: str) -> str:
    """Writes a program as model.json with its constants; returns a digest of all files."""
    files = _files(program, constants)
    files["model.json"] = json.dumps(program, sort_keys=True).encode()
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)}\n".encode() + content)
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
    return digest.hexdigest()


def write_graph(graph_module: torch.fx.GraphModule, values: Sequence[Any], folder: str) -> str:
    """Writes the graph as model.json with its constants; returns a digest of all files. `values`
    are tensors of fixed sizes, fake ones too. The graph is not changed."""
    graph_module = torch.fx.GraphModule(graph_module, _copied(graph_module.graph))
    lifted: Weights = []
    if any(node.op == "get_attr" for node in graph_module.graph.nodes):
        if not values:
            raise BackendError("the graph has no input")
        lifted = _lift_constants(graph_module)
    graph_module.graph.eliminate_dead_code()  # results of attention that nothing takes
    _join_attention(graph_module.graph)
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()
    inputs = [Input("user_input", "") for _ in values] + [given for given, _ in lifted]
    tensors = list(values) + [tensor for _, tensor in lifted]
    noted = _meta_results(graph_module.graph, tensors)
    program = program_json(graph_module, inputs, tensors, returned=noted)
    return write_program(program, lifted, folder)
