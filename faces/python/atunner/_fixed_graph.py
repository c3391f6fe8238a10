"""A graph of fixed sizes with the plans that serve it, one after the other."""

import functools
import threading
import warnings
from typing import Any, List, Optional, Sequence, Tuple

import torch
import torch.fx

from ._capture import CaptureError
from ._graphs import device_of, write_graph
from ._options import BackendError, Options, conv_precision_of
from ._plan import Plan, load
from ._plan_cache import PlanCache, is_ending

__all__ = ["REASONS", "FixedGraph"]

#: Why a graph may have no plan.
REASONS = (BackendError, CaptureError, ImportError, OSError, RuntimeError)

#: One process at a time works for graphs that are served already.
_in_background = threading.Lock()


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


def _tensors_in(value: Any) -> List[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in _tensors_in(each)]
    return []


def _agree(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True if two results of one graph differ by roundings alone."""
    if not one.is_floating_point():
        return bool((one == other).float().mean() > 0.99) if one.numel() else True
    tolerance = 1e-3 if one.dtype in (torch.float32, torch.float64) else 3e-2
    scale = float(one.abs().amax()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


class FixedGraph:
    """A graph of fixed sizes with its plan.

    A plan of first guesses serves before it is verified, unless options.verify is "first": the
    first call runs PyTorch too, returns its result, and takes the plan if the results agree. A
    thread waits for the processes that verify the kernels, and with tune="background" for the one
    that searches; the first call after the end of each takes the plan that it made.
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
        #: PyTorch's own run of the graph, as long as the plan is not verified.
        self._by_pytorch: Optional[torch.fx.GraphModule] = graph_module
        self._unlike_pytorch = False
        self._compared = False
        self._tuned: Optional[Plan] = None
        cache = PlanCache(
            functools.partial(write_graph, graph_module, values),
            options,
            self.device,
            conv_precision_of(options, on_gpu=not self._on_host),
        )
        first, later = self._first_plan(cache)
        self.plan = self._loaded(first)
        #: Verifies and searches while the plan serves.
        self.tuner: Optional[threading.Thread] = None
        if later:
            self.tuner = threading.Thread(
                target=self._improve, args=(cache.background(), later), daemon=True
            )
            self.tuner.start()

    @property
    def is_verified(self) -> bool:
        """True if the judge has accepted every kernel of the plan."""
        return self._by_pytorch is None

    def _first_plan(self, cache: PlanCache) -> Tuple[Optional[str], List[Optional[str]]]:
        """The plan that serves first, and the budgets of those that are made meanwhile."""
        options = self.options
        searched = options.budget if options.searches or options.in_background else None
        found = cache.plan(searched, known_only=True)
        later: List[Optional[str]] = []
        if found is None and options.searches:
            found = cache.plan(searched)
        elif found is None:
            later = [options.budget] if options.in_background else []
            found = cache.plan(None, known_only=options.verify != "first")
        if found is not None:
            self._by_pytorch = None
            return found, later
        return cache.plan(None, verified=False), [None, *later]

    def _loaded(self, folder: Optional[str]) -> Plan:
        assert folder is not None
        return load(folder, self.device, replay=self.options.replays)

    def _improve(self, cache: PlanCache, budgets: List[Optional[str]]) -> None:
        """Makes better plans, in a thread."""
        for budget in budgets:
            try:
                with _in_background:
                    folder = cache.plan(budget)
                self._tuned = self._loaded(folder)
            except REASONS as reason:
                if not is_ending():
                    self._give_up(str(reason))
                return

    def _give_up(self, reason: str) -> None:
        """No better plan can be made. One that is not verified serves no longer."""
        if self._by_pytorch is None:
            _warn_tuning(reason)
            return
        self._unlike_pytorch = self._compared = True
        warnings.warn(
            f"atunner leaves a graph to PyTorch, since its kernels cannot be verified: {reason}"
        )

    def _take_tuned(self, tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        tuned, self._tuned = self._tuned, None
        if tuned is None:  # another thread took it
            return self._run(self.plan, tensors)
        if self._by_pytorch is not None:  # the first that is verified
            self.plan, self._by_pytorch = tuned, None
            return self._run(tuned, tensors)
        results = self._run(self.plan, tensors)
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

    def _compare(self, graph_module: torch.fx.GraphModule, tensors: Sequence[torch.Tensor]) -> Any:
        """PyTorch's result on these inputs; notes whether the plan's is the same."""
        tried = list(tensors)
        for i in self.plan.changed:
            tried[i] = tensors[i].clone()
        wrong = ""
        try:
            results = self._run(self.plan, tried)
        except REASONS as reason:
            wrong = str(reason)
        with torch.no_grad():
            expected = graph_module(*tensors)
        if not wrong:
            pairs = list(zip(_tensors_in(expected), results))
            pairs += [(tensors[i], tried[i]) for i in self.plan.changed]
            if not all(_agree(one, other) for one, other in pairs):
                wrong = "results of the first call differ from PyTorch's"
        self._unlike_pytorch, self._compared = bool(wrong), True
        if wrong:
            warnings.warn(
                f"atunner leaves a graph to PyTorch until its kernels are verified: {wrong}"
            )
        return expected

    def __call__(self, *tensors: torch.Tensor) -> Any:
        graph_module = self._by_pytorch
        if graph_module is not None and self._tuned is None:
            if not self._compared:
                return self._compare(graph_module, tensors)
            if self._unlike_pytorch:
                return graph_module(*tensors)
        if self._tuned is None:
            results = self._run(self.plan, tensors)
        else:
            results = self._take_tuned(tensors)
        shaped = [_with_strides(each, to) for each, to in zip(results, self._strides)]
        return _results_as(self._structure, shaped)


def _warn_tuning(reason: str) -> None:
    warnings.warn(f"atunner keeps the plan of first guesses: {reason}")
