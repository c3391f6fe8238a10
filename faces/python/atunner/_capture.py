"""Traces a module and writes it with its weights."""

import inspect
import json
import os
import re
import shutil
import tempfile
import zipfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch

from ._layers import decompositions
from ._program import CaptureError, Input, program_json, weight_meta

__all__ = ["CaptureError", "capture"]

_OLD_PROGRAM = "serialized_exported_program.json"

_PathLike = Union[str, "os.PathLike[str]"]


def capture(module: torch.nn.Module, example_inputs: Sequence[Any], path: _PathLike) -> str:
    """Writes `module` as a program of ATen operators, with its weights.

    `path` ends with ".pt2" for one archive; any other path is a folder that gets model.json and
    data/. The module should be in inference (`module.eval()`); shapes are those of
    `example_inputs`. PyTorch 2.5 and later export by `torch.export`, older ones trace with
    `make_fx`: then control flow that depends on values is fixed as these inputs take it.

    Returns the path of what `atunner optimize` takes.
    """
    path = os.fspath(path)
    if hasattr(torch, "export") and hasattr(torch.export, "save"):
        return _write_exported(module, tuple(example_inputs), path)
    program, weights = _traced(module, tuple(example_inputs))
    return _write(program, weights, path)


def _write_exported(module: torch.nn.Module, inputs: Tuple[Any, ...], path: str) -> str:
    exported = torch.export.export(module, inputs)
    with tempfile.TemporaryDirectory() as folder:
        archive = os.path.join(folder, "model.pt2")
        torch.export.save(exported, archive)
        program = _old_program(archive)
        if program is not None:
            return _write(program, _exported_weights(exported), path)
        if path.endswith(".pt2"):
            shutil.copyfile(archive, path)
            return path
        _unpack(archive, path)
    return os.path.join(path, "model.json")


def _old_program(archive: str) -> Optional[Dict[str, Any]]:
    """The program in an archive of PyTorch 2.5 to 2.7, whose weights are in a pickle."""
    with zipfile.ZipFile(archive) as entries:
        if _OLD_PROGRAM not in entries.namelist():
            return None
        return json.loads(entries.read(_OLD_PROGRAM))


def _exported_weights(exported: Any) -> "Weights":
    """Parameters, buffers and constants of an exported program, in the order of its inputs."""
    kinds = {"PARAMETER": "parameter", "BUFFER": "buffer", "CONSTANT_TENSOR": "tensor_constant"}
    weights: Weights = []
    for spec in exported.graph_signature.input_specs:
        if spec.kind.name not in kinds:
            continue
        held = exported.state_dict if spec.target in exported.state_dict else exported.constants
        weights.append((Input(kinds[spec.kind.name], spec.target), held[spec.target].detach()))
    return weights


def _unpack(archive: str, folder: str) -> None:
    """The program and the raw weights of an archive as files of a folder."""
    with zipfile.ZipFile(archive) as entries:
        for name in entries.namelist():
            inner = name.split("/", 1)[-1]
            if inner == "models/model.json":
                inner = "model.json"
            elif not inner.startswith(("data/weights/", "data/constants/")):
                continue
            target = os.path.join(folder, inner)
            if ".." in inner.split("/"):
                raise CaptureError(f"the entry {name!r} leaves the archive")
            os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
            with open(target, "wb") as file:
                file.write(entries.read(name))


def _tracer() -> Tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """make_fx, functionalize and functional_call of PyTorch 1.13 to 2.4."""
    try:
        from torch.fx.experimental.proxy_tensor import make_fx
    except ImportError as error:
        raise CaptureError("PyTorch 1.13 or later is needed") from error
    try:
        from torch.func import functional_call, functionalize
    except ImportError:
        from functorch.experimental import functionalize
        from torch.nn.utils.stateless import functional_call
    return make_fx, functionalize, functional_call


Weights = List[Tuple[Input, torch.Tensor]]


def _traced(module: torch.nn.Module, inputs: Tuple[Any, ...]) -> Tuple[Dict[str, Any], Weights]:
    """The program of a module, and its weights in the order of the program's inputs."""
    if not all(isinstance(value, torch.Tensor) for value in inputs):
        raise CaptureError("example inputs that are no tensors cannot be traced")
    make_fx, functionalize, functional_call = _tracer()
    weights: Weights = [
        (Input("parameter", name), tensor.detach()) for name, tensor in module.named_parameters()
    ]
    weights += [(Input("buffer", name), tensor) for name, tensor in module.named_buffers()]
    names = [given.qualified_name for given, _ in weights]

    def run(tensors: List[torch.Tensor], *arguments: torch.Tensor) -> Any:
        return functional_call(module, dict(zip(names, tensors)), arguments)

    with torch.no_grad():
        trace = make_fx(functionalize(run), decomposition_table=decompositions())
        traced = trace([tensor for _, tensor in weights], *inputs)
    weights += _lift_constants(traced)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    users = [(Input("user_input", ""), value) for value in inputs]
    lifted = [each for each in weights if each[0].kind == "tensor_constant"]
    ordered = [each for each in weights if each[0].kind != "tensor_constant"] + users + lifted
    _name_inputs(traced, module, [given for given, _ in ordered])
    program = program_json(traced, [given for given, _ in ordered], [v for _, v in ordered])
    return program, weights


def _name_inputs(
    traced: torch.fx.GraphModule, module: torch.nn.Module, inputs: Sequence[Input]
) -> None:
    """Names placeholders as `torch.export` does: p_layers_0_weight, b_…, c_…, x of forward(x)."""
    users = list(inspect.signature(module.forward).parameters)
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    for node, given in zip(placeholders, inputs):
        if given.kind != "user_input":
            name = re.sub(r"\W", "_", given.qualified_name)
            name = {"parameter": "p_", "buffer": "b_"}.get(given.kind, "c_") + name
        else:
            name = users.pop(0) if users else "input"
        node.name = traced.graph._graph_namespace.create_name(name, None)


def _lift_constants(traced: torch.fx.GraphModule) -> Weights:
    """Makes inputs of the tensors that tracing found outside of the module's parameters."""
    lifted: Weights = []
    places: Dict[str, torch.fx.Node] = {}
    last = [node for node in traced.graph.nodes if node.op == "placeholder"][-1]
    for node in list(traced.graph.nodes):
        if node.op != "get_attr":
            continue
        if node.target not in places:
            with traced.graph.inserting_after(last):
                last = places[node.target] = traced.graph.placeholder(f"c_{node.target}")
            lifted.append((Input("tensor_constant", node.target), getattr(traced, node.target)))
        node.replace_all_uses_with(places[node.target])
        traced.graph.erase_node(node)
    return lifted


def _raw_bytes(tensor: torch.Tensor) -> bytes:
    """The elements of a tensor in row-major order, as they are in memory."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if flat.numel() == 0:
        return b""
    return (
        bytes(flat.view(torch.uint8).numpy())
        if flat.dtype != torch.bool
        else bytes(flat.to(torch.uint8).numpy())
    )


def _files(program: Dict[str, Any], weights: Weights) -> Dict[str, bytes]:
    """Files of a model by their names from its root, without the program itself."""
    files: Dict[str, bytes] = {}
    lists: Dict[str, Dict[str, Any]] = {"weights": {}, "constants": {}}
    for given, tensor in weights:
        kind = "constants" if given.kind == "tensor_constant" else "weights"
        prefix = "tensor" if kind == "constants" else "weight"
        file = f"{prefix}_{len(lists[kind])}"
        lists[kind][given.qualified_name] = weight_meta(tensor, file, given.kind == "parameter")
        files[f"data/{kind}/{file}"] = _raw_bytes(tensor)
    for kind, config in lists.items():
        text = json.dumps({"config": config})
        files[f"data/{kind}/model_{kind}_config.json"] = text.encode()
    return files


def _write(program: Dict[str, Any], weights: Weights, path: str) -> str:
    files = _files(program, weights)
    text = json.dumps(program).encode()
    if path.endswith(".pt2"):
        files["models/model.json"] = text
        files["archive_format"] = b"pt2"
        files["archive_version"] = b"0"
        files["byteorder"] = b"little"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for name, content in files.items():
                archive.writestr("model/" + name, content)
        return path
    files["model.json"] = text
    for name, content in files.items():
        target = os.path.join(path, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
    return os.path.join(path, "model.json")
