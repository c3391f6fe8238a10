"""Searches the launch parameters of a user's Triton kernel."""

import importlib.util
import itertools
import math
import random
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch

__all__ = ["TritonTrial", "TunedTriton", "tune_triton"]

Config = Dict[str, Any]
Grid = Union[Tuple[int, ...], Callable[[Config], Tuple[int, ...]]]

#: Draws of the inputs for which a configuration must agree with the first one.
_DRAWS = 2
_FLUSH_BYTES = 256 << 20  # more than the L2 cache of any GPU that there is
_SAMPLES = 15


#: Relative to the largest value of a tensor: the order of sums differs, and float32 products may
#: use TF32. Types that are not here have 8 bits.
_TOLERANCES = {
    torch.float64: 1e-10,
    torch.float32: 2e-3,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}


class TritonTrial(NamedTuple):
    """A configuration and what came of it."""

    config: Config
    time_us: Optional[float]  #: median of the GPU's time with a cold cache; None if it failed
    problem: str  #: why it failed; "" if it did not


class TunedTriton:
    """A kernel with its best configuration. Call it with the kernel's arguments."""

    def __init__(self, kernel: Any, grid: Grid, trials: List[TritonTrial]) -> None:
        right = [trial for trial in trials if trial.time_us is not None]
        best = min(right, key=lambda trial: trial.time_us or 0.0)
        self.config = best.config  #: the best one
        self.time_us = best.time_us
        self.first_us = trials[0].time_us  #: of the space's first configuration
        self.trials = trials  #: all, in the order of the search
        self._kernel, self._grid = kernel, grid

    def __call__(self, *args: Any) -> None:
        _launch(self._kernel, self._grid, args, self.config)

    def __repr__(self) -> str:
        return (
            f"<TunedTriton {self.config}: {self.time_us:.2f} us, {self.first_us:.2f} us at first, "
            f"{len(self.trials)} tried>"
        )


def _launch(kernel: Any, grid: Grid, args: Sequence[Any], config: Config) -> None:
    launched = kernel[grid] if callable(grid) else kernel[tuple(grid)]
    launched(*args, **config)


def _drawn(args: Sequence[Any], draw: int) -> List[Any]:
    """Copies of the arguments; from the second draw on floating-point tensors have new values."""
    copies = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    for copy in copies:
        if draw > 0 and isinstance(copy, torch.Tensor) and copy.is_floating_point():
            copy.copy_(torch.randn(copy.shape, device=copy.device).to(copy.dtype))
    return copies


def _difference(got: Any, want: Any, tolerance: Optional[float]) -> float:
    """The largest difference as a multiple of the permitted one; tensors alone count."""
    if not isinstance(want, torch.Tensor):
        return 0.0
    if not want.is_floating_point():
        return 0.0 if torch.equal(got, want) else math.inf
    if tolerance is None:
        tolerance = _TOLERANCES.get(want.dtype, 0.1)
    if not torch.equal(got.isfinite(), want.isfinite()):
        return math.inf
    finite = want.isfinite()
    got, want = got[finite].double(), want[finite].double()
    if want.numel() == 0:
        return 0.0
    allowed = tolerance * max(want.abs().max().item(), 1e-30)
    return (got - want).abs().max().item() / allowed


class _Judge:
    """Runs a configuration: does it agree with the first one, and how long does it take?"""

    def __init__(
        self,
        kernel: Any,
        grid: Grid,
        args: Sequence[Any],
        first: Config,
        tolerance: Optional[float],
    ) -> None:
        self.kernel, self.grid, self.args, self.tolerance = kernel, grid, args, tolerance
        self.draws = [_drawn(args, draw) for draw in range(_DRAWS)]
        self.wanted = [self._results(draw, first) for draw in self.draws]

    def _results(self, draw: Sequence[Any], config: Config) -> List[Any]:
        results = _drawn(draw, 0)
        _launch(self.kernel, self.grid, results, config)
        return results

    def trial(self, config: Config) -> TritonTrial:
        try:
            problem = self._check(config)
            time = None if problem else self._time_us(config)
        except Exception as error:  # Triton has many kinds: out of resources, does not compile, …
            return TritonTrial(config, None, f"{type(error).__name__}: {error}".strip()[:500])
        return TritonTrial(config, time, problem)

    def _check(self, config: Config) -> str:
        for draw, wanted in zip(self.draws, self.wanted):
            for i, (got, want) in enumerate(zip(self._results(draw, config), wanted)):
                worst = _difference(got, want, self.tolerance)
                if worst > 1:
                    return f"argument {i} differs {worst:.3g} times more than is permitted"
        return ""

    def _time_us(self, config: Config) -> float:
        """The median of launches, each with a cold L2 cache. The argument tensors are copies."""
        passed = _drawn(self.args, 0)
        flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device=_device_of(self.args))
        times = []
        for _ in range(_SAMPLES):
            flush.zero_()
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            _launch(self.kernel, self.grid, passed, config)
            ended.record()
            ended.synchronize()
            times.append(began.elapsed_time(ended) * 1e3)
        return sorted(times)[len(times) // 2]


def _device_of(args: Sequence[Any]) -> torch.device:
    for arg in args:
        if isinstance(arg, torch.Tensor) and arg.is_cuda:
            return arg.device
    raise ValueError("args: no tensor on a GPU")


def _neighbours(config: Config, space: Dict[str, Sequence[Any]]) -> List[Config]:
    """Configurations that differ by one step of one parameter."""
    found = []
    for name, values in space.items():
        place = list(values).index(config[name])
        for other in (place - 1, place + 1):
            if 0 <= other < len(values):
                found.append({**config, name: values[other]})
    return found


def _search(
    space: Dict[str, Sequence[Any]],
    judge: Callable[[Config], TritonTrial],
    budget: int,
    allowed: Callable[[Config], bool],
    seed: int,
) -> List[TritonTrial]:
    """All configurations if the budget suffices. Else half of the budget is spent on random ones,
    and the rest on neighbours of the best so far."""
    every = [dict(zip(space, values)) for values in itertools.product(*space.values())]
    first, rest = every[0], [config for config in every[1:] if allowed(config)]
    trials = [judge(first)]
    draw = random.Random(seed)
    if 1 + len(rest) <= budget:
        return trials + [judge(config) for config in rest]
    draw.shuffle(rest)
    while len(trials) < budget:
        tried = [trial.config for trial in trials]
        best = min(trials, key=lambda trial: math.inf if trial.time_us is None else trial.time_us)
        near = [c for c in _neighbours(best.config, space) if c not in tried and allowed(c)]
        far = [config for config in rest if config not in tried]
        if not far:
            break
        climbs = len(trials) * 2 >= budget and near
        trials.append(judge(near[0] if climbs else far[0]))
    return trials


def _check_space(space: Dict[str, Sequence[Any]], budget: int) -> None:
    empty = [name for name, values in space.items() if len(values) == 0]
    if empty or not space:
        raise ValueError(f"space: no values for {', '.join(empty) or 'any parameter'}")
    if budget < 1:
        raise ValueError(f"budget is {budget}; it is at least 1")


def tune_triton(
    kernel: Any,
    space: Dict[str, Sequence[Any]],
    args: Sequence[Any],
    grid: Grid,
    budget: int = 100,
    tolerance: Optional[float] = None,
    allowed: Callable[[Config], bool] = lambda config: True,
    seed: int = 1,
) -> TunedTriton:
    """Finds the fastest configuration of a Triton kernel for these arguments.

    `kernel` is a function with @triton.jit. `space` has the values of its constexpr parameters, and
    of `num_warps` and `num_stages`; the first value of each, together, is the configuration that is
    taken as right. `args` are the other arguments, in order; tensors are copied, not changed.
    `grid` is a tuple, or a function of the configuration, as in kernel[grid](…). `budget`:
    configurations to try. `allowed` leaves configurations out.

    A configuration counts if all tensors afterwards agree with those of the first configuration,
    for the given values and for values drawn anew. `tolerance` is relative to the largest value of
    a tensor; the default follows its type. Times are measured on the GPU with a cold L2 cache.

    Raises ImportError without Triton, ValueError for an empty space, and RuntimeError if the first
    configuration does not run.
    """
    if importlib.util.find_spec("triton") is None:
        raise ImportError("atunner.tune_triton needs Triton: pip install triton")
    _check_space(space, budget)
    first = {name: values[0] for name, values in space.items()}
    try:
        judge = _Judge(kernel, grid, args, first, tolerance)
    except Exception as error:
        raise RuntimeError(f"the first configuration {first} does not run: {error}") from error
    trials = _search(space, judge.trial, budget, allowed, seed)
    if trials[0].time_us is None:
        raise RuntimeError(f"the first configuration {first}: {trials[0].problem}")
    return TunedTriton(kernel, grid, trials)
