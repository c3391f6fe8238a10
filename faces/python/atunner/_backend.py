"""torch.compile(model, backend="atunner"): graphs of ATen operators become execution plans."""

import contextlib
import warnings
from typing import Any, Callable, ContextManager, Dict, Optional, Sequence, Set, Tuple

import torch
import torch.fx

from ._fixed_graph import REASONS, FixedGraph
from ._graphs import has_fixed_sizes, sizes_of, specialized
from ._options import BackendError, Options, options_of

__all__ = ["BackendError", "Options", "backend", "compile_graph"]

_warned: Set[str] = set()


def _warn_once(reason: str) -> None:
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"atunner leaves a graph to PyTorch: {reason}", stacklevel=3)


def _without_fake_tensors() -> ContextManager[Any]:
    """AOTAutograd compiles while operators make fake tensors. Constants are real ones."""
    try:
        from torch.utils._python_dispatch import _disable_current_modes
    except ImportError:  # PyTorch 1.13
        return contextlib.nullcontext()
    return _disable_current_modes()


class SizedGraph:
    """A graph with symbolic sizes: a plan for each sizes, made when they are met first."""

    def __init__(self, graph_module: torch.fx.GraphModule, options: Options, guarded: bool) -> None:
        self.options = options
        self._guarded = guarded
        self.plans: Dict[Tuple[Any, ...], Callable[..., Any]] = {}
        self._graph_module = graph_module

    def __call__(self, *values: Any) -> Any:
        sizes = sizes_of(values)
        if sizes not in self.plans:
            if len(self.plans) >= self.options.max_sizes:
                _warn_once(f"it met more than max_sizes={self.options.max_sizes} different sizes")
                return self._graph_module(*values)
            self.plans[sizes] = _compiled(
                self._graph_module, lambda: self._fixed(values), self.options
            )
        return self.plans[sizes](*values)

    def _fixed(self, values: Sequence[Any]) -> Callable[..., Any]:
        graph_module, places = specialized(self._graph_module, values)
        tensors = [values[place] for place in places]
        fixed = FixedGraph(graph_module, tensors, self.options, self._guarded)
        return lambda *given: fixed(*[given[place] for place in places])


def _compiled(
    graph_module: torch.fx.GraphModule, make: Callable[[], Callable[..., Any]], options: Options
) -> Callable[..., Any]:
    """What `make` makes; else the graph as PyTorch runs it, with a warning."""
    try:
        return make()
    except Exception as reason:  # the model runs in any case
        if not options.fallback:
            raise
        ours = isinstance(reason, REASONS)
        _warn_once(str(reason) if ours else f"a bug: {type(reason).__name__}: {reason}")
        return graph_module.forward


def compile_graph(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    mode: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
    guarded: bool = False,
) -> Callable[..., Any]:
    """A callable that computes a graph of ATen operators by an execution plan.

    `graph_module` is what AOTAutograd or `make_fx` makes: functional, of `torch.ops` overloads,
    with all weights among its inputs or as attributes. It is not changed. The callable takes the
    graph's inputs one by one, and returns what the graph returns. A graph with symbolic sizes gets
    a plan for each sizes that it is called with. With `guarded` types, shapes and devices of the
    inputs are not checked again, because torch.compile's guards have done it.

    Plans are kept in ~/.cache/atunner/plans by a digest of graph, constants and options, so that a
    later process compiles nothing. A graph that has no plan is run by PyTorch, with one warning for
    each reason; with options={"fallback": False} the reason is raised. ValueError for a wrong
    option.
    """
    chosen = options_of(mode, options)
    if not has_fixed_sizes(example_inputs):
        return SizedGraph(graph_module, chosen, guarded)
    return _compiled(
        graph_module, lambda: FixedGraph(graph_module, example_inputs, chosen, guarded), chosen
    )


def backend(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[torch.Tensor],
    *,
    mode: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
    **_: Any,
) -> Callable[..., Any]:
    """The backend "atunner" of torch.compile (PyTorch 2.1 and later), for inference.

    Graphs that need gradients are run by PyTorch.
    """
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def inference(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        with _without_fake_tensors():
            return make_boxed_func(compile_graph(graph, inputs, mode, options, guarded=True))

    def training(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        _warn_once("it needs gradients; call the model under torch.no_grad()")
        return make_boxed_func(graph.forward)

    options_of(mode, options)  # a wrong option is an error, and no reason to fall back
    compiled = aot_autograd(
        fw_compiler=training, bw_compiler=training, inference_compiler=inference
    )
    return compiled(graph_module, example_inputs)
