"""A traced graph as the JSON of an exported program: docs/formats/model-json.md."""

import math
import operator
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.fx

SCHEMA = {"major": 8, "minor": 1}

#: PyTorch's numbers of element types in exported programs.
SCALAR_TYPES = {
    torch.uint8: 1,
    torch.int8: 2,
    torch.int16: 3,
    torch.int32: 4,
    torch.int64: 5,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.bool: 12,
    torch.bfloat16: 13,
}


class CaptureError(RuntimeError):
    """The module cannot be written as a program."""


class Input(NamedTuple):
    """An input of the traced graph, in the order of its placeholders."""

    kind: str  #: user_input, parameter, buffer or tensor_constant
    qualified_name: str  #: "layers.0.weight"; "" for inputs of users


class Output(NamedTuple):
    """A result of the traced graph."""

    kind: str  #: user_output, loss_output, gradient_to_parameter, or …_mutation
    qualified_name: str  #: of the parameter or buffer; "" for others


def tensor_meta(tensor: torch.Tensor) -> Dict[str, Any]:
    """Type and shape of a tensor."""
    if tensor.dtype not in SCALAR_TYPES:
        raise CaptureError(f"tensors of {tensor.dtype} cannot be written")
    return {
        "dtype": SCALAR_TYPES[tensor.dtype],
        "sizes": [{"as_int": size} for size in tensor.shape],
        "requires_grad": False,
        "device": {"type": tensor.device.type, "index": tensor.device.index},
        "strides": [{"as_int": stride} for stride in tensor.stride()],
        "storage_offset": {"as_int": tensor.storage_offset()},
        "layout": 7,
    }


class _Shapes(torch.fx.Interpreter):
    """Runs a graph once and keeps what each node returned."""

    def __init__(self, graph_module: torch.fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.results: Dict[torch.fx.Node, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        self.results[n] = super().run_node(n)
        return self.results[n]


def _name(node: torch.fx.Node) -> Dict[str, str]:
    return {"name": node.name}


def _real(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _list_argument(values: Sequence[Any]) -> Dict[str, Any]:
    if any(isinstance(value, torch.fx.Node) for value in values):
        if all(isinstance(value, torch.fx.Node) for value in values):
            return {"as_tensors": [_name(value) for value in values]}
        return {
            "as_optional_tensors": [
                {"as_none": True} if value is None else {"as_tensor": _name(value)}
                for value in values
            ]
        }
    if any(isinstance(value, float) for value in values):
        return {"as_floats": [_real(float(value)) for value in values]}
    if values and all(isinstance(value, bool) for value in values):
        return {"as_bools": list(values)}
    return {"as_ints": [int(value) for value in values]}


def argument(value: Any) -> Dict[str, Any]:
    """An argument of an operator as a member of the schema's union."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, torch.fx.Node):
        return {"as_tensor": _name(value)}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": _real(value)}
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, torch.dtype):
        return {"as_scalar_type": SCALAR_TYPES.get(value, 0)}
    if isinstance(value, torch.device):
        return {"as_device": {"type": value.type, "index": value.index}}
    if isinstance(value, torch.memory_format):
        return {"as_memory_format": 1}
    if isinstance(value, torch.layout):
        return {"as_layout": 7}
    if isinstance(value, (list, tuple)):
        return _list_argument(value)
    raise CaptureError(f"an argument of the type {type(value).__name__} cannot be written")


def named_arguments(
    target: Any, args: Sequence[Any], kwargs: Dict[str, Any]
) -> Iterator[Tuple[str, Any, int]]:
    """Names of the operator's schema, values, and kinds: 1 is positional, 2 is by keyword."""
    schema = target._schema.arguments
    for place, value in zip(schema, args):
        yield place.name, value, 1
    for name, value in kwargs.items():
        yield name, value, 2


class _Writer:
    def __init__(self, graph_module: torch.fx.GraphModule, results: Dict[torch.fx.Node, Any]):
        self.graph = graph_module.graph
        self.results = results
        self.tensors: Dict[str, Any] = {}

    def _tensor(self, name: str, tensor: torch.Tensor) -> Dict[str, Any]:
        self.tensors[name] = tensor_meta(tensor)
        return {"as_tensor": {"name": name}}

    def _results_of(self, node: torch.fx.Node) -> List[Dict[str, Any]]:
        """A node's results. Those of a tuple are called like the nodes that take them out."""
        result = self.results[node]
        if isinstance(result, torch.Tensor):
            return [self._tensor(node.name, result)]
        if not isinstance(result, (list, tuple)):
            raise CaptureError(f"'{node.name}' ({node.target}) makes no tensor")
        taken = {user.args[1]: user.name for user in node.users if _is_item(user)}
        names = [taken.get(i, f"{node.name}_unused_{i}") for i in range(len(result))]
        if isinstance(result, list):
            for name, tensor in zip(names, result):
                self._tensor(name, tensor)
            return [{"as_tensors": [{"name": name} for name in names]}]
        return [
            self._tensor(name, part) if isinstance(part, torch.Tensor) else {"as_none": True}
            for name, part in zip(names, result)
        ]

    def node(self, node: torch.fx.Node) -> Dict[str, Any]:
        target = node.target
        if not isinstance(target, torch._ops.OpOverload):
            raise CaptureError(f"'{node.name}' calls {target}, which is no operator of PyTorch")
        return {
            "target": f"torch.ops.{target}",
            "inputs": [
                {"name": name, "arg": argument(value), "kind": kind}
                for name, value, kind in named_arguments(target, node.args, node.kwargs)
            ],
            "outputs": self._results_of(node),
            "metadata": {},
        }


def _is_item(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and node.target is operator.getitem


def _input_spec(name: str, given: Input) -> Dict[str, Any]:
    tensor = {"name": name}
    if given.kind == "user_input":
        return {"user_input": {"arg": {"as_tensor": tensor}}}
    spec: Dict[str, Any] = {"arg": tensor, f"{given.kind}_name": given.qualified_name}
    if given.kind == "buffer":
        spec["persistent"] = True
    return {given.kind: spec}


def _output_spec(argument: Dict[str, Any], given: Output) -> Dict[str, Any]:
    spec = {"arg": argument}
    if given.kind.startswith("buffer"):
        spec["buffer_name"] = given.qualified_name
    elif given.qualified_name and given.kind != "user_output":
        spec["parameter_name"] = given.qualified_name
    return {given.kind: spec}


def _results(node: Any) -> List[torch.fx.Node]:
    """The tensors among a graph's results, which may be nested."""
    if isinstance(node, torch.fx.Node):
        return [node]
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, (list, tuple)):
        return [inner for each in node for inner in _results(each)]
    return []


def program_json(
    graph_module: torch.fx.GraphModule,
    inputs: Sequence[Input],
    values: Sequence[torch.Tensor],
    results: Sequence[Output] = (),
    returned: Optional[Dict[torch.fx.Node, Any]] = None,
) -> Dict[str, Any]:
    """The program of a graph with these inputs, whose placeholders have these values. Without
    `results` all are the user's. `returned` is what each node returns; without it the graph is run
    once."""
    if returned is None:
        shapes = _Shapes(graph_module)
        with torch.no_grad():
            shapes.run(*values)
        returned = shapes.results
    writer = _Writer(graph_module, returned)
    nodes: List[Dict[str, Any]] = []
    placeholders: List[str] = []
    outputs: List[torch.fx.Node] = []
    for node in graph_module.graph.nodes:
        if node.op == "placeholder":
            placeholders.append(node.name)
            writer._tensor(node.name, returned[node])
        elif node.op == "output":
            outputs = _results(node.args[0])
        elif node.op == "call_function" and not _is_item(node):
            nodes.append(writer.node(node))
        elif not _is_item(node):
            raise CaptureError(f"'{node.name}' is a node of the kind {node.op}")
    named = [{"as_tensor": {"name": node.name}} for node in outputs]
    kinds = list(results) or [Output("user_output", "")] * len(named)
    return {
        "graph_module": {
            "graph": {
                "inputs": [{"as_tensor": {"name": name}} for name in placeholders],
                "outputs": named,
                "nodes": nodes,
                "tensor_values": writer.tensors,
                "sym_int_values": {},
                "sym_bool_values": {},
                "is_single_tensor_return": len(outputs) == 1,
            },
            "signature": {
                "input_specs": [_input_spec(n, i) for n, i in zip(placeholders, inputs)],
                "output_specs": [_output_spec(arg, kind) for arg, kind in zip(named, kinds)],
            },
            "module_call_graph": [],
        },
        "opset_version": {"aten": 10},
        "range_constraints": {},
        "schema_version": SCHEMA,
        "verifiers": [],
        "torch_version": torch.__version__,
    }


def weight_meta(tensor: torch.Tensor, file: str, is_param: bool) -> Dict[str, Any]:
    """A tensor's line in a list of weights. The file holds the dense tensor alone."""
    return {
        "path_name": file,
        "is_param": is_param,
        "use_pickle": False,
        "tensor_meta": tensor_meta(tensor.detach().cpu().contiguous()),
    }
