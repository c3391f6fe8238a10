"""torch.compile(model, backend="atunner"): graphs of ATen operators become execution plans."""

import contextlib
import hashlib
import json
import operator
import os
import shutil
import subprocess
import tempfile
import warnings
from typing import Any, Callable, ContextManager, Dict, List, NamedTuple, Optional, Sequence, Set

import torch
import torch.fx

from ._capture import Weights, _files, _lift_constants
from ._plan import Plan, load
from ._program import CaptureError, Input, named_arguments, program_json
from ._training import aot_arguments

__all__ = ["BackendError", "Options", "backend", "compile_graph"]


class BackendError(RuntimeError):
    """The graph has no plan; the framework runs it."""


class Options(NamedTuple):
    """Options of the backend: torch.compile(…, backend="atunner", options={…}).

    mode: "default" takes each kernel's first guess, and "reduce-overhead" too, but replays runs as
        CUDA graphs; "max-autotune" searches, and replays.
    budget: of the search, as `atunner optimize --budget` takes it.
    target_gpu: "auto" is the GPU of this machine.
    """

    mode: str = "default"
    budget: str = "60"
    target_gpu: str = "auto"


_MODES = ("default", "reduce-overhead", "max-autotune")
_warned: Set[str] = set()


def _options(mode: Optional[str], options: Optional[Dict[str, Any]]) -> Options:
    given = dict(options or {})
    if mode is not None:
        given["mode"] = mode
    unknown = sorted(set(given) - set(Options._fields))
    if unknown:
        raise ValueError(
            f"backend 'atunner' has no option {unknown[0]!r}; it has {', '.join(Options._fields)}"
        )
    made = Options(**given)
    if made.mode not in _MODES:
        raise ValueError(f"mode {made.mode!r} is none of {', '.join(_MODES)}")
    return made


def _program() -> str:
    """The command-line program."""
    found = os.environ.get("ATUNNER") or shutil.which("atunner")
    if not found:
        raise BackendError("the program `atunner` is not in PATH; name it with $ATUNNER")
    return found


def _cache_folder() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "atunner", "plans")


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


def _write(graph_module: torch.fx.GraphModule, values: Sequence[Any], folder: str) -> str:
    """Writes the graph as model.json with its constants; returns a digest of all files."""
    for value in values:
        if not isinstance(value, torch.Tensor):
            raise BackendError(f"an input is a {type(value).__name__}, no tensor")
        if not all(isinstance(size, int) for size in value.shape):
            raise BackendError("the graph has symbolic sizes; compile with dynamic=False")
    users = [Input("user_input", "") for _ in values]
    lifted: Weights = []
    if any(node.op == "get_attr" for node in graph_module.graph.nodes):
        if not users:
            raise BackendError("the graph has no input")
        lifted = _lift_constants(graph_module)
    _join_attention(graph_module.graph)
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()
    inputs = users + [given for given, _ in lifted]
    tensors = list(values) + [tensor for _, tensor in lifted]
    noted = _meta_results(graph_module.graph, tensors)
    program = program_json(graph_module, inputs, tensors, returned=noted)
    files = _files(program, lifted)
    files["model.json"] = json.dumps(program, sort_keys=True).encode()
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)}\n".encode() + content)
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
    return digest.hexdigest()


def _searches(options: Options) -> bool:
    return options.mode == "max-autotune"


def _make_plan(model: str, out: str, options: Options) -> None:
    """Runs `atunner optimize`."""
    command = [_program(), "optimize", model, "--target-gpu", options.target_gpu, "--out", out]
    command += ["--quiet"]
    command += ["--budget", options.budget] if _searches(options) else ["--first-guess"]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        raise BackendError(ended.stderr.strip() or f"{command[0]} ended with {ended.returncode}")


def _cached_plan(
    graph_module: torch.fx.GraphModule, values: Sequence[Any], options: Options
) -> str:
    """The folder of the graph's plan, made if no process has made it before."""
    cache = _cache_folder()
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="making-") as making:
        digest = _write(graph_module, values, os.path.join(making, "model"))
        search = options.budget if _searches(options) else ""
        key = hashlib.sha256(repr((digest, options.target_gpu, search)).encode()).hexdigest()[:32]
        folder = os.path.join(cache, key)
        if os.path.exists(os.path.join(folder, "plan.json")):
            return folder
        made = os.path.join(making, "plan")
        _make_plan(os.path.join(making, "model", "model.json"), made, options)
        try:
            os.rename(made, folder)
        except OSError:  # another process was faster
            if not os.path.exists(os.path.join(folder, "plan.json")):
                raise
        return folder


def _results_as(structure: Any, results: List[torch.Tensor]) -> Any:
    """The graph's results with their nesting; `results` are the tensors among them, in order."""
    if isinstance(structure, torch.fx.Node):
        return results.pop(0)
    if isinstance(structure, tuple):
        return tuple(_results_as(each, results) for each in structure)
    if isinstance(structure, list):
        return [_results_as(each, results) for each in structure]
    return structure


def _device_of(values: Sequence[Any]) -> int:
    for value in values:
        if isinstance(value, torch.Tensor) and value.device.type == "cuda":
            return value.device.index or 0
    return 0


def _warn_once(reason: str) -> None:
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"atunner leaves a graph to PyTorch: {reason}", stacklevel=3)


def compile_graph(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    mode: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
) -> Callable[..., Any]:
    """A callable that computes a graph of ATen operators by an execution plan.

    `graph_module` is what AOTAutograd or `make_fx` makes: functional, of `torch.ops` overloads,
    with all weights among its inputs or as attributes. It is not changed. The callable takes the
    graph's tensors one by one, and returns what the graph returns. Plans are kept in
    ~/.cache/atunner/plans by a digest of graph, constants and options, so that a later process
    compiles nothing. A graph that has no plan is run by PyTorch, with one warning for each reason.
    """
    chosen = _options(mode, options)
    try:
        copy = torch.fx.GraphModule(graph_module, _copied(graph_module.graph))
        folder = _cached_plan(copy, example_inputs, chosen)
        plan = load(folder, _device_of(example_inputs), replay=chosen.mode != "default")
    except (BackendError, CaptureError, ImportError, OSError, RuntimeError) as reason:
        _warn_once(str(reason))
        return graph_module.forward
    return _runner(plan, graph_module)


def _without_fake_tensors() -> ContextManager[Any]:
    """AOTAutograd compiles while operators make fake tensors. Constants are real ones."""
    try:
        from torch.utils._python_dispatch import _disable_current_modes
    except ImportError:  # PyTorch 1.13
        return contextlib.nullcontext()
    return _disable_current_modes()


def _copied(graph: torch.fx.Graph) -> torch.fx.Graph:
    copied = torch.fx.Graph()
    output = copied.graph_copy(graph, {})
    copied.output(output)
    return copied


def _runner(plan: Plan, graph_module: torch.fx.GraphModule) -> Callable[..., Any]:
    structure = [node for node in graph_module.graph.nodes if node.op == "output"][0].args[0]

    def run(*tensors: torch.Tensor) -> Any:
        return _results_as(structure, plan.run(tensors))

    run.plan = plan  # type: ignore[attr-defined]
    return run


def backend(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[torch.Tensor],
    *,
    mode: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
    **_: Any,
) -> Callable[..., Any]:
    """The backend "atunner" of torch.compile (PyTorch 2.1 and later). Graphs that need gradients
    become a plan of the forward pass and one of the backward pass."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def inference(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        with _without_fake_tensors():
            return make_boxed_func(compile_graph(graph, inputs, mode, options))

    def compiled_graph(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return compile_graph(graph, inputs, mode, options)

    _options(mode, options)  # a wrong option is an error, and no reason to fall back
    training = aot_arguments(compiled_graph, _without_fake_tensors)
    compiled = aot_autograd(inference_compiler=inference, **training)
    return compiled(graph_module, example_inputs)
