"""Single operators on tuned kernels: atunner.ops.softmax(x), layer_norm, rms_norm.

    y = atunner.ops.softmax(x, -1)
    atunner.ops.set_options(mode="max-autotune", budget="200")   # later sizes are searched

Each takes and returns PyTorch's tensors, has PyTorch's meaning, and has gradients. A kernel is made
for each size and type when it is met first, and kept on disk, as torch.compile's are. In PyTorch
2.4 and later they are also operators of the namespace `atunner` (torch.ops.atunner.softmax), which
fake tensors and torch.compile know.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from ._backend import compile_graph
from ._options import options_of

__all__ = ["layer_norm", "rms_norm", "set_options", "softmax"]

_Tensor = torch.Tensor
_options: Dict[str, Any] = {}
_kernels: Dict[Tuple[Any, ...], Callable[..., Any]] = {}


def set_options(**options: Any) -> None:
    """Options of kernels that are made from now on, those of the backend of torch.compile; none
    are the defaults. ValueError for a wrong one."""
    options_of(None, options)
    _options.clear()
    _options.update(options)


def _run(formula: Callable[..., _Tensor], tensors: Sequence[_Tensor], *numbers: Any) -> _Tensor:
    """formula(*tensors, *numbers) by a plan for these sizes, types and numbers."""
    key = (formula, numbers, tuple(sorted(_options.items()))) + tuple(
        (tensor.shape, tensor.dtype, tensor.device) for tensor in tensors
    )
    if key not in _kernels:
        _kernels[key] = _compiled(formula, tensors, numbers)
    with torch.no_grad():
        return _kernels[key](*[tensor.detach() for tensor in tensors])


def _compiled(
    formula: Callable[..., _Tensor], tensors: Sequence[_Tensor], numbers: Sequence[Any]
) -> Callable[..., _Tensor]:
    from torch.fx.experimental.proxy_tensor import make_fx

    dense = [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in tensors]
    with torch.no_grad():
        graph = make_fx(lambda *given: formula(*given, *numbers), tracing_mode="fake")(*dense)
    return compile_graph(graph, dense, options=_options)


def _softmax(x: _Tensor, dim: int) -> _Tensor:
    return torch.softmax(x, dim)


def _layer_norm(x: _Tensor, weight: _Tensor, bias: _Tensor, eps: float) -> _Tensor:
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps)


def _rms_norm(x: _Tensor, weight: _Tensor, eps: float) -> _Tensor:
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * scale * weight).to(x.dtype)


def _softmax_gradient(grad: _Tensor, y: _Tensor, dim: int) -> _Tensor:
    return (grad - (grad * y).sum(dim, keepdim=True)) * y


def _norm_gradients(
    grad: _Tensor, x: _Tensor, weight: _Tensor, eps: float, centered: bool
) -> Tuple[_Tensor, _Tensor, _Tensor]:
    """Of x, weight and bias. With `centered` the mean is subtracted, as in a layer norm."""
    axes = tuple(range(-weight.dim(), 0))
    rows = tuple(range(x.dim() - weight.dim()))
    wide = torch.promote_types(x.dtype, torch.float32)
    grad, x, w = grad.to(wide), x.to(wide), weight.to(wide)
    if centered:
        x = x - x.mean(axes, keepdim=True)
    scale = torch.rsqrt(x.square().mean(axes, keepdim=True) + eps)
    y, g = x * scale, grad * w
    inner = g - y * (g * y).mean(axes, keepdim=True)
    if centered:
        inner = inner - g.mean(axes, keepdim=True)
    over_rows = [(each.sum(rows) if rows else each) for each in (grad * y, grad)]
    return inner * scale, over_rows[0], over_rows[1]


class _Operator:
    """An operator with its gradient: of torch.library where PyTorch has custom_op, else of
    torch.autograd.Function."""

    def __init__(
        self,
        name: str,
        forward: Callable[..., _Tensor],
        tensors: int,
        backward: Callable[..., List[Optional[_Tensor]]],
    ) -> None:
        self.forward, self.tensors, self.backward = forward, tensors, backward
        define = getattr(torch.library, "custom_op", None)
        self.call = self._of_library(name) if define else self._of_function()

    def run(self, *args: Any) -> _Tensor:
        return _run(self.forward, args[: self.tensors], *args[self.tensors :])

    def _of_library(self, name: str) -> Callable[..., _Tensor]:
        schema = {
            "softmax": "(Tensor x, int dim) -> Tensor",
            "layer_norm": "(Tensor x, Tensor weight, Tensor bias, float eps) -> Tensor",
            "rms_norm": "(Tensor x, Tensor weight, float eps) -> Tensor",
        }[name]
        made = torch.library.custom_op(f"atunner::{name}", self.run, mutates_args=(), schema=schema)
        made.register_fake(lambda x, *_: torch.empty(x.shape, dtype=x.dtype, device=x.device))
        made.register_autograd(
            lambda context, grad: tuple(self._gradients(context, grad)), setup_context=self._keep
        )
        return made

    def _of_function(self) -> Callable[..., _Tensor]:
        operator = self

        class Function(torch.autograd.Function):
            @staticmethod
            def forward(context: Any, *args: Any) -> _Tensor:
                result = operator.run(*args)
                operator._keep(context, args, result)
                return result

            @staticmethod
            def backward(context: Any, grad: _Tensor) -> Any:
                return tuple(operator._gradients(context, grad))

        return Function.apply

    def _keep(self, ctx: Any, inputs: Sequence[Any], output: _Tensor) -> None:
        ctx.save_for_backward(*inputs[: self.tensors], output)
        ctx.numbers = inputs[self.tensors :]

    def _gradients(self, context: Any, grad: _Tensor) -> List[Optional[_Tensor]]:
        saved = context.saved_tensors
        found = self.backward(grad, saved[-1], *saved[:-1], *context.numbers)
        typed = [
            None if each is None else each.to(given.dtype) for each, given in zip(found, saved)
        ]
        return typed + [None] * len(context.numbers)


_operators = {
    "softmax": _Operator(
        "softmax", _softmax, 1, lambda grad, y, x, dim: [_softmax_gradient(grad, y, dim)]
    ),
    "layer_norm": _Operator(
        "layer_norm",
        _layer_norm,
        3,
        lambda grad, y, x, w, b, eps: list(_norm_gradients(grad, x, w, eps, True)),
    ),
    "rms_norm": _Operator(
        "rms_norm",
        _rms_norm,
        2,
        lambda grad, y, x, w, eps: list(_norm_gradients(grad, x, w, eps, False)[:2]),
    ),
}


def softmax(x: _Tensor, dim: int = -1) -> _Tensor:
    """torch.softmax(x, dim): x has any shape and a floating type; so has the result."""
    return _operators["softmax"].call(x, dim)


def layer_norm(
    x: _Tensor, weight: _Tensor, bias: Optional[_Tensor] = None, eps: float = 1e-5
) -> _Tensor:
    """torch.nn.functional.layer_norm over the last axes: `weight` and `bias` have their shape."""
    return _operators["layer_norm"].call(
        x, weight, torch.zeros_like(weight) if bias is None else bias, float(eps)
    )


def rms_norm(x: _Tensor, weight: _Tensor, eps: float = 1e-6) -> _Tensor:
    """x / sqrt(mean(x²) + eps) · weight over the last axis; `weight` has its length. 16-bit types
    are computed in float32."""
    return _operators["rms_norm"].call(x, weight, float(eps))
