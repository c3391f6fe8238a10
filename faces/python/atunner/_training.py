"""torch.compile(model, backend="atunner") with gradients: forward and backward by AOTAutograd."""

import contextlib
from typing import Any, Callable, Dict, List, Sequence

import torch
import torch.fx

__all__ = ["aot_arguments"]

#: Operators that change their inputs, or that only CUDA has: taken apart before they are compiled.
_TAKEN_APART = (
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "_batch_norm_with_update",
    "_batch_norm_with_update_functional",
    "cudnn_batch_norm",
    "cudnn_batch_norm_backward",
    "miopen_batch_norm",
)

_Compile = Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[..., Any]]


def _decompositions() -> Dict[Any, Callable[..., Any]]:
    from torch._decomp import get_decompositions

    aten = torch.ops.aten
    return get_decompositions([getattr(aten, n) for n in _TAKEN_APART if hasattr(aten, n)])


def _partition() -> Callable[..., Any]:
    """Recomputes what costs less than saving it, as AOTAutograd's own backends do."""
    from functorch.compile import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition


def aot_arguments(
    compile_graph: _Compile, without_fake_tensors: Callable[[], contextlib.AbstractContextManager]
) -> Dict[str, Any]:
    """Arguments of `aot_autograd` for graphs that need gradients. `compile_graph` makes a callable
    of one graph; without a plan it is the graph's own, so that forward and backward need not both
    be compiled."""
    from functorch.compile import make_boxed_func

    def compiler(graph: torch.fx.GraphModule, inputs: List[Any]) -> Any:
        with without_fake_tensors():
            return make_boxed_func(compile_graph(graph, inputs))

    return {
        "fw_compiler": compiler,
        "bw_compiler": compiler,
        "partition_fn": _partition(),
        "decompositions": _decompositions(),
    }
