"""Options of the backend, and errors of it."""

from typing import Any, Dict, NamedTuple, Optional

import torch

__all__ = ["BackendError", "Options", "conv_precision_of", "options_of"]


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
    conv_precision: of convolutions in float32: "float32", "tf32" (where cuDNN would take it), or
        "auto", what PyTorch allows its own convolutions of tensors on a GPU
        (torch.backends.cudnn.allow_tf32: TF32 unless that is False).
    """

    mode: str = "default"
    budget: str = "60"
    target_gpu: str = "auto"
    tune: str = "first"
    verify: str = "background"
    max_sizes: int = 16
    fallback: bool = True
    conv_precision: str = "float32"

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


def conv_precision_of(options: Options, on_gpu: bool) -> str:
    """The precision that "auto" stands for, for a graph whose tensors are on a GPU or not."""
    if options.conv_precision != "auto":
        return options.conv_precision
    try:
        allowed = torch.backends.cudnn.allow_tf32
    except RuntimeError:  # convolutions and recurrent layers were given different precisions
        allowed = torch.backends.cudnn.conv.fp32_precision == "tf32"
    return "tf32" if on_gpu and allowed else "float32"


_CHOICES = {
    "mode": ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
    "tune": ("first", "background"),
    "verify": ("first", "background"),
    "conv_precision": ("auto", "float32", "tf32"),
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
