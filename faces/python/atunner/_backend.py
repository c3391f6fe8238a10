"""torch.compile(model, backend="atunner"): graphs of ATen operators become execution plans."""

import contextlib
import functools
import threading
import warnings
from typing import Any, Callable, ContextManager, Dict, List, Optional, Sequence, Set, Tuple

import torch
import torch.fx

from ._capture import CaptureError
from ._graphs import device_of, has_fixed_sizes, sizes_of, specialized, write_graph
from ._options import BackendError, Options, conv_precision_of, options_of
from ._plan import Plan, load
from ._plan_cache import PlanCache

__all__ = ["BackendError", "Options", "backend", "compile_graph"]

_warned: Set[str] = set()

#: Why a graph may have no plan.
_REASONS = (BackendError, CaptureError, ImportError, OSError, RuntimeError)


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


def _output_of(graph: torch.fx.Graph) -> Any:
    return [node for node in graph.nodes if node.op == "output"][0].args[0]


def _results_as(structure: Any, results: List[torch.Tensor]) -> Any:
    """The graph's results with their nesting; `results` are the tensors among them, in order."""
    if isinstance(structure, torch.fx.Node):
        return results.pop(0)
    if isinstance(structure, tuple):
        return tuple(_results_as(each, results) for each in structure)
    if isinstance(structure, list):
        return [_results_as(each, results) for each in structure]
    return structure


def _tensors_of(structure: Any) -> List[torch.fx.Node]:
    if isinstance(structure, torch.fx.Node):
        return [structure]
    if isinstance(structure, (tuple, list)):
        return [node for each in structure for node in _tensors_of(each)]
    return []


Strides = Tuple[int, ...]


def _strides_of(node: torch.fx.Node) -> Optional[Strides]:
    """The strides that PyTorch's result would have; None for a dense one in row-major order."""
    noted = node.meta.get("val")
    if not isinstance(noted, torch.Tensor) or noted.is_contiguous():
        return None
    dense = all(stride > 0 for size, stride in zip(noted.shape, noted.stride()) if size > 1)
    return tuple(noted.stride()) if dense and noted.numel() > 0 else None


def _with_strides(result: torch.Tensor, strides: Optional[Strides]) -> torch.Tensor:
    if strides is None:
        return result
    return torch.empty_strided(
        result.shape, strides, dtype=result.dtype, device=result.device
    ).copy_(result)


def _agree(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True if two plans' results differ by roundings alone."""
    if not one.is_floating_point():
        return bool((one == other).float().mean() > 0.99) if one.numel() else True
    tolerance = 1e-3 if one.dtype in (torch.float32, torch.float64) else 3e-2
    scale = float(one.abs().amax()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


class FixedGraph:
    """A graph of fixed sizes with its plan.

    With tune="background" a thread waits for the search; the first call after its end runs both
    plans, and takes the tuned one if the results agree.
    """

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        values: Sequence[Any],
        options: Options,
        guarded: bool,
    ) -> None:
        self.options = options
        self._guarded = guarded
        self.device = device_of(values)
        self._on_host = not any(value.is_cuda for value in values)
        self._strided = [i for i, value in enumerate(values) if not value.is_contiguous()]
        self._numbers = [
            i for i, value in enumerate(values) if value.dim() == 0 and not value.is_cuda
        ]
        self._structure = _output_of(graph_module.graph)
        self._strides = [_strides_of(node) for node in _tensors_of(self._structure)]
        self._tuned: Optional[Plan] = None
        cache = PlanCache(
            functools.partial(write_graph, graph_module, values),
            options,
            self.device,
            conv_precision_of(options, on_gpu=not self._on_host),
        )
        found = cache.plan(options.budget, known_only=True) if options.in_background else None
        first = found or cache.plan(options.budget if options.searches else None)
        self.plan = self._loaded(first)
        #: Searches while the plan serves, with tune="background".
        self.tuner: Optional[threading.Thread] = None
        if options.in_background and found is None:
            self.tuner = threading.Thread(
                target=self._tune, args=(cache.background(),), daemon=True
            )
            self.tuner.start()

    def _loaded(self, folder: Optional[str]) -> Plan:
        assert folder is not None
        return load(folder, self.device, replay=self.options.replays)

    def _tune(self, cache: PlanCache) -> None:
        try:
            self._tuned = self._loaded(cache.plan(self.options.budget))
        except _REASONS as reason:
            _warn_tuning(str(reason))

    def _take_tuned(self, tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        tuned, self._tuned = self._tuned, None
        results = self._run(self.plan, tensors)
        if tuned is None:  # another thread took it
            return results
        tuned_results = self._run(tuned, tensors)
        if all(_agree(old, new) for old, new in zip(results, tuned_results)):
            self.plan = tuned
        else:
            _warn_tuning("the tuned plan's results differ from the first one's")
        return results

    def _run(self, plan: Plan, tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        if not self._guarded:
            return plan.run(tensors)
        if self._numbers and not self._on_host:
            tensors = plan.with_numbers(tensors)
        return plan.run_guarded(tensors, self._strided, self._on_host)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        if self._tuned is None:
            results = self._run(self.plan, tensors)
        else:
            results = self._take_tuned(tensors)
        shaped = [_with_strides(each, to) for each, to in zip(results, self._strides)]
        return _results_as(self._structure, shaped)


def _warn_tuning(reason: str) -> None:
    warnings.warn(f"atunner keeps the plan of first guesses: {reason}")


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
        ours = isinstance(reason, _REASONS)
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
