"""Options of the backend, and errors of it."""

from typing import Any, Dict, NamedTuple, Optional

__all__ = ["BackendError", "Options", "options_of"]


class BackendError(RuntimeError):
    """The graph has no plan; the framework runs it."""


class Options(NamedTuple):
    """Options of the backend: torch.compile(…, backend="atunner", options={…}).

    mode: "default" takes each kernel's first guess, and "reduce-overhead" too, but replays runs as
        CUDA graphs; "max-autotune" searches, and replays; "max-autotune-no-cudagraphs" searches.
    budget: of the search, as `atunner optimize --budget` takes it.
    target_gpu: "auto" is the GPU of the graph's tensors.
    tune: "background" serves first guesses while a process searches, and then its kernels.
    verify: "background" serves first guesses as soon as they are compiled: the first call is
        compared with PyTorch's, and a process verifies the kernels meanwhile; with "first" the
        first call waits for that.
    max_sizes: a graph with symbolic sizes gets a plan for each sizes that it meets, up to so many;
        PyTorch runs it for others.
    fallback: with False, a graph that has no plan is an error, and is not left to PyTorch.
    """

    mode: str = "default"
    budget: str = "60"
    target_gpu: str = "auto"
    tune: str = "first"
    verify: str = "background"
    max_sizes: int = 16
    fallback: bool = True

    @property
    def searches(self) -> bool:
        """True if compilation waits for a search."""
        return self.mode.startswith("max-autotune")

    @property
    def replays(self) -> bool:
        return self.mode in ("reduce-overhead", "max-autotune")

    @property
    def in_background(self) -> bool:
        return self.tune == "background" and not self.searches


_CHOICES = {
    "mode": ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
    "tune": ("first", "background"),
    "verify": ("first", "background"),
}


def options_of(mode: Optional[str], options: Optional[Dict[str, Any]]) -> Options:
    """Checked options. ValueError names a wrong one, and what there is."""
    given = dict(options or {})
    if mode is not None:
        given["mode"] = mode
    unknown = sorted(set(given) - set(Options._fields))
    if unknown:
        raise ValueError(
            f"backend 'atunner' has no option {unknown[0]!r}; it has {', '.join(Options._fields)}"
        )
    made = Options(**given)
    for name, choices in _CHOICES.items():
        if getattr(made, name) not in choices:
            raise ValueError(f"{name} {getattr(made, name)!r} is none of {', '.join(choices)}")
    return made._replace(budget=str(made.budget))
