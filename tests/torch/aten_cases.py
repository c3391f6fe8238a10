"""Calls of all operators of aten.def, as exported programs have them."""
import torch

#: Operators that are not called alone.
NOT_CALLED = {
    "atunner.uniform.default": "compared by steps.py",
    "aten.nll_loss2d_forward.default": "images, compared by nll_loss_nd",
    "aten.native_dropout.default": "random numbers in training only",
    "aten.to.device": "like to.dtype",
    "aten.to.dtype_layout": "like to.dtype",
    "aten.to.other": "like to.dtype",
}


class Case:
    """A call. `outputs` are the results that are compared; None is all."""

    def __init__(self, target, /, *args, outputs=None, **kwargs):
        self.target, self.args, self.kwargs, self.outputs = target, args, kwargs, outputs

    def overload(self):
        namespace, name, overload = self.target.split(".")
        return getattr(getattr(getattr(torch.ops, namespace), name), overload)

    def result(self):
        return self.overload()(*self.args, **self.kwargs)

    def __str__(self):
        shown = [
            f"{a.dtype}{list(a.shape)}".replace("torch.", "") if isinstance(a, torch.Tensor) else repr(a)
            for a in self.args
        ]
        return f"{self.target}({', '.join(shown)}{', ' + str(self.kwargs) if self.kwargs else ''})"[:200]


class Written(Case):
    """A call of an operator that this PyTorch may lack: its result, or a tuple of the first results,
    is computed in another way."""

    def __init__(self, target, expected, /, **arguments):
        super().__init__(target)
        self.kwargs = arguments
        self.expected = expected


def x(*shape):
    return torch.randn(shape, dtype=torch.float64)


def positive(*shape):
    return torch.rand(*shape, dtype=torch.float64) + 0.1


def whole(*shape):
    return torch.randint(-4, 5, shape)


def bits(*shape):
    return torch.randint(0, 2, shape).bool()


def arithmetic():
    for name in ("add", "sub", "rsub"):
        yield Case(f"aten.{name}.Tensor", x(3, 4), x(4))
        yield Case(f"aten.{name}.Tensor", x(3, 4), x(3, 1), alpha=2.5)
        yield Case(f"aten.{name}.Scalar", x(3, 4), 1.5, 2)
        yield Case(f"aten.{name}.Scalar", whole(3, 4), 3, 2)
    yield Case("aten.add.Tensor", whole(3, 4), x(3, 4))
    yield Case("aten.add.Tensor", x(3, 4), whole(3, 4))
    yield Case("aten.add.Tensor", x(3, 4).float(), torch.tensor(1.5, dtype=torch.float64))
    for name in ("mul", "div", "remainder", "fmod"):
        yield Case(f"aten.{name}.Tensor", x(3, 4), x(4))
        yield Case(f"aten.{name}.Scalar", x(3, 4), 0.7)
    yield Case("aten.mul.Tensor", x(3, 4), bits(3, 4))
    yield Case("aten.div.Tensor", whole(3, 4), whole(3, 4).abs() + 1)
    yield Case("aten.remainder.Scalar", whole(3, 4), 3)
    for mode in (None, "floor", "trunc"):
        yield Case("aten.div.Tensor_mode", x(3, 4), x(3, 4), rounding_mode=mode)
        yield Case("aten.div.Scalar_mode", x(3, 4), 0.3, rounding_mode=mode)
        yield Case("aten.div.Tensor_mode", whole(3, 4), whole(3, 4).abs() + 1, rounding_mode=mode)
    yield Case("aten.floor_divide.default", x(3, 4), x(3, 4))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield Case(f"aten.{name}.Tensor", whole(3, 4), whole(3, 4))
        yield Case(f"aten.{name}.Tensor", whole(3, 4), x(3, 4))
        yield Case(f"aten.{name}.Scalar", x(3, 4), 0)
    for name in ("and", "or", "xor"):
        yield Case(f"aten.bitwise_{name}.Tensor", bits(3, 4), bits(3, 4))
        yield Case(f"aten.bitwise_{name}.Scalar", whole(3, 4), 3)
        yield Case(f"aten.logical_{name}.default", whole(3, 4), bits(3, 4))
    yield Case("aten.bitwise_not.default", bits(3, 4))
    yield Case("aten.logical_not.default", x(3, 4))
    for exponent in (2, 3, 4, 0.5, -1, -0.5, 1.7):
        yield Case("aten.pow.Tensor_Scalar", positive(3, 4), exponent)
    yield Case("aten.pow.Tensor_Tensor", positive(3, 4), x(4))
    yield Case("aten.pow.Scalar", 2.5, x(3, 4))
    for name in ("maximum.default", "minimum.default", "max.other", "min.other", "atan2.default"):
        yield Case(f"aten.{name}", x(3, 4), x(4))
    for name in ("addcmul", "addcdiv"):
        yield Case(f"aten.{name}.default", x(3, 4), x(3, 4), positive(4), value=0.3)
    yield Case("aten.lerp.Scalar", x(3, 4), x(3, 4), 0.3)
    yield Case("aten.lerp.Tensor", x(3, 4), x(3, 4), x(4))
    yield Case("aten.where.self", bits(3, 4), x(4), x(3, 1))
    yield Case("aten.where.Scalar", bits(3, 4), 1.5, 2.5)
    yield Case("aten.where.ScalarSelf", bits(3, 4), 1.5, x(3, 4))
    yield Case("aten.where.ScalarOther", bits(3, 4), x(3, 4), 2.5)
    yield Case("aten.masked_fill.Scalar", x(3, 4), bits(3, 4), float("-inf"))
    yield Case("aten.masked_fill.Tensor", x(3, 4), bits(4), torch.tensor(2.0, dtype=torch.float64))


def unary():
    for name in (
        "abs asinh atan ceil cos cosh erf erfc exp exp2 expm1 floor frac hardsigmoid hardswish isinf"
        " isnan mish neg reciprocal relu relu6 round selu sigmoid sign silu sin sinh square tan tanh trunc"
    ).split():
        yield Case(f"aten.{name}.default", 2 * x(3, 5))
    for name in "log log10 log1p log2 rsqrt sqrt lgamma".split():
        yield Case(f"aten.{name}.default", positive(3, 5))
    yield Case("aten.acosh.default", 1 + positive(3, 5))
    for name in ("acos", "asin", "atanh"):
        yield Case(f"aten.{name}.default", positive(3, 5) * 0.8)
    yield Case("aten.exp.default", torch.tensor([0, 1, 2], dtype=torch.int32).long().double())
    yield Case("aten.gelu.default", x(3, 5))
    yield Case("aten.gelu.default", x(3, 5), approximate="tanh")
    yield Case("aten.leaky_relu.default", x(3, 5))
    yield Case("aten.leaky_relu.default", x(3, 5), 0.2)
    yield Case("aten.elu.default", x(3, 5))
    yield Case("aten.elu.default", x(3, 5), 0.7, 1.5, 0.9)
    yield Case("aten.celu.default", x(3, 5), 0.7)
    yield Case("aten.softplus.default", 20 * x(3, 5))
    yield Case("aten.softplus.default", 3 * x(3, 5), 2, 3)
    yield Case("aten.hardtanh.default", x(3, 5))
    yield Case("aten.hardtanh.default", x(3, 5), -0.3, 0.6)
    for name in ("hardshrink", "softshrink"):
        yield Case(f"aten.{name}.default", x(3, 5), 0.4)
    yield Case("aten.threshold.default", x(3, 5), 0.1, -2.0)
    yield Case("aten.log_sigmoid.default", 5 * x(3, 5))
    yield Case("aten.log_sigmoid_forward.default", 5 * x(3, 5), outputs=[0])
    yield Case("aten.prelu.default", x(2, 3, 4), x(3))
    yield Case("aten.prelu.default", x(2, 3), x(1))
    yield Case("aten.glu.default", x(3, 6))
    yield Case("aten.glu.default", x(4, 3), 0)
    yield Case("aten.clamp.default", x(3, 5), -0.5, 0.5)
    yield Case("aten.clamp.default", x(3, 5), -0.5)
    yield Case("aten.clamp.default", x(3, 5), None, 0.5)
    yield Case("aten.clamp.default", whole(3, 5), 0, 2)
    yield Case("aten.clamp.Tensor", x(3, 5), x(5) - 1, x(5) + 1)
    yield Case("aten.clamp_min.default", x(3, 5), 0.2)
    yield Case("aten.clamp_max.default", x(3, 5), 0.2)
    yield Case("aten.clamp_min.Tensor", x(3, 5), x(5))
    yield Case("aten.clamp_max.Tensor", x(3, 5), x(5))


def copies():
    for name in "alias contiguous detach clone lift_fresh_copy lift_fresh resolve_conj resolve_neg detach_".split():
        yield Case(f"aten.{name}.default", x(3, 4))
    yield Case("aten._to_copy.default", x(3, 4), dtype=torch.int64)
    yield Case("aten._to_copy.default", whole(3, 4), dtype=torch.float64)
    yield Case("aten._to_copy.default", whole(3, 4), dtype=torch.bool)
    yield Case("aten.to.dtype", whole(3, 4), torch.float64)
    yield Case("aten.type_as.default", whole(3, 4), x(1))
    for name in ("dropout", "feature_dropout", "alpha_dropout"):
        yield Case(f"aten.{name}.default", x(3, 4), 0.5, False)
    yield Case("aten.full.default", [2, 3], 1.5, dtype=torch.float64)
    yield Case("aten.zeros.default", [2, 3], dtype=torch.int64)
    yield Case("aten.ones.default", [2, 3])
    yield Case("aten.full_like.default", x(2, 3), 2.5)
    yield Case("aten.zeros_like.default", whole(2, 3))
    yield Case("aten.ones_like.default", x(2, 3))
    yield Case("aten.new_full.default", x(1), [2, 3], 2.5)
    yield Case("aten.new_zeros.default", x(1), [2, 3])
    yield Case("aten.new_ones.default", x(1), [2, 3], dtype=torch.int64)
    yield Case("aten.scalar_tensor.default", 2.5, dtype=torch.float64)
    yield Case("aten.arange.default", 7)
    yield Case("aten.arange.start", 2, 7, dtype=torch.float64)
    yield Case("aten.arange.start_step", 1, 7, 2)
    yield Case("aten.arange.start_step", 5.0, 1.0, -0.75, dtype=torch.float64)


def layout():
    for name in ("view", "_unsafe_view", "reshape"):
        yield Case(f"aten.{name}.default", x(2, 3, 4), [6, -1])
    yield Case("aten._reshape_alias.default", x(2, 3, 4), [6, 4], [4, 1])
    yield Case("aten.flatten.using_ints", x(2, 3, 4, 5), 1, -2)
    yield Case("aten.flatten.using_ints", x(2, 3))
    yield Case("aten.squeeze.default", x(1, 3, 1))
    yield Case("aten.squeeze.dim", x(1, 3, 1), -1)
    yield Case("aten.squeeze.dim", x(1, 3, 1), 1)
    yield Case("aten.unsqueeze.default", x(3, 4), 1)
    yield Case("aten.unsqueeze.default", x(3, 4), -1)
    yield Case("aten.permute.default", x(2, 3, 4), [2, 0, -2])
    yield Case("aten.transpose.int", x(2, 3, 4), 0, -1)
    for name in ("t", "numpy_T"):
        yield Case(f"aten.{name}.default", x(3, 4))
    yield Case("aten.expand.default", x(3, 1), [2, -1, 4])
    yield Case("aten.broadcast_to.default", x(3, 1), [2, 3, 4])
    yield Case("aten.repeat.default", x(2, 3), [2, 1, 3])
    yield Case("aten.flip.default", x(2, 3, 4), [0, -1])
    yield Case("aten.constant_pad_nd.default", x(2, 3, 4), [1, 2, 0, 1], 1.5)
    yield Case("aten.constant_pad_nd.default", x(2, 3, 4), [-1, 2])
    yield Case("aten.pad.default", x(2, 3, 4), [1, 2])
    for name in ("tril", "triu"):
        yield Case(f"aten.{name}.default", x(2, 4, 5))
        yield Case(f"aten.{name}.default", bits(4, 4), 1)
    for name in ("cat", "concat"):
        yield Case(f"aten.{name}.default", [x(2, 3), x(2, 4)], -1)
    yield Case("aten.cat.default", [x(2, 3), whole(1, 3)])
    yield Case("aten.stack.default", [x(2, 3), x(2, 3)], -1)
    yield Case("aten.stack.default", [x(2, 3), x(2, 3)])
    yield Case("aten.slice.Tensor", x(6, 5), 0, 1, -1, 2)
    yield Case("aten.slice.Tensor", x(6, 5), 1, 2, 2**63 - 1)
    yield Case("aten.slice.Tensor", x(6, 5))
    yield Case("aten.narrow.default", x(6, 5), 0, 2, 3)
    yield Case("aten.select.int", x(6, 5), 1, -2)
    yield Case("aten.split.Tensor", x(7, 2), 3)
    yield Case("aten.split.sizes", x(7, 2), [3, 4])
    yield Case("aten.split_with_sizes.default", x(2, 7), [3, 4], 1)
    yield Case("aten.chunk.default", x(7, 2), 3)
    yield Case("aten.unbind.int", x(3, 2), 1)


def indexing():
    yield Case("aten.embedding.default", x(7, 3), torch.randint(0, 7, (2, 4)))
    yield Case("aten.index_select.default", x(5, 3), 0, torch.randint(0, 5, (4,)))
    yield Case("aten.index_select.default", x(5, 3), 1, torch.randint(0, 3, (4,)))
    for indices in (
        [torch.tensor([3, -1, 0])],
        [None, torch.randint(0, 5, (2, 3))],
        [None, torch.randint(-5, 5, (3, 1)), torch.randint(0, 6, (4,))],
        [torch.randint(0, 4, (3, 1)), torch.randint(0, 5, (1, 2)), torch.randint(-6, 6, (3, 2))],
        [torch.randint(0, 4, (2, 3)), None, torch.randint(0, 6, (3,))],
    ):
        yield Case("aten.index.Tensor", x(4, 5, 6), indices)
    yield Case("aten.index.Tensor", bits(4, 5), [whole(3, 1), whole(2).int().long()])
    yield Case("aten.gather.default", x(4, 5), 1, torch.randint(0, 5, (4, 2)))
    yield Case("aten.gather.default", x(4, 5), 0, torch.randint(0, 4, (3, 5)))
    yield Case("aten.sort.default", x(4, 5))
    yield Case("aten.sort.default", x(4, 5), 0, True)
    yield Case("aten.topk.default", x(4, 5), 2)
    yield Case("aten.topk.default", x(4, 5), 3, 0, False)


def products():
    yield Case("aten.mm.default", x(3, 4), x(4, 5))
    yield Case("aten.bmm.default", x(2, 3, 4), x(2, 4, 5))
    yield Case("aten.mv.default", x(3, 4), x(4))
    yield Case("aten.dot.default", x(4), x(4))
    for a, b in [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (4, 5)),
                 ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((3, 4), (2, 4, 5)), ((4,), (4,)), ((1, 3, 4), (2, 4, 5))]:
        yield Case("aten.matmul.default", x(*a), x(*b))
    yield Case("aten.addmm.default", x(5), x(3, 4), x(4, 5))
    yield Case("aten.addmm.default", x(3, 5), x(3, 4), x(4, 5), beta=0.5, alpha=2)
    yield Case("aten.addmv.default", x(3), x(3, 4), x(4))
    yield Case("aten.baddbmm.default", x(2, 3, 5), x(2, 3, 4), x(2, 4, 5), beta=2)
    yield Case("aten.baddbmm.default", x(2, 3, 5), x(2, 3, 4), x(2, 4, 5), beta=0, alpha=0.5)
    yield Case("aten.linear.default", x(3, 4), x(5, 4), x(5))
    yield Case("aten.linear.default", x(2, 3, 4), x(5, 4))


def reductions():
    for name in ("sum", "mean", "prod"):
        yield Case(f"aten.{name}.default", x(3, 4))
    yield Case("aten.sum.default", whole(3, 4))
    yield Case("aten.sum.default", bits(3, 4))
    yield Case("aten.sum.default", x())
    yield Case("aten.sum.dim_IntList", x(2, 3, 4), [0, 2])
    yield Case("aten.sum.dim_IntList", x(2, 3, 4), [-1], True)
    yield Case("aten.mean.dim", x(2, 3, 4), [1, 2], True)
    yield Case("aten.mean.dim", x(2, 3, 4), [-1])
    yield Case("aten.prod.dim_int", x(2, 3), 1)
    for name in ("max", "min"):
        yield Case(f"aten.{name}.default", x(3, 4))
        yield Case(f"aten.{name}.dim", x(3, 4), 0)
        yield Case(f"aten.{name}.dim", x(3, 4), -1, True)
        yield Case(f"aten.a{name}.default", x(2, 3, 4), [0, 2], True)
        yield Case(f"aten.a{name}.default", x(3, 4))
        yield Case(f"aten.arg{name}.default", x(3, 4), 0)
        yield Case(f"aten.arg{name}.default", x(3, 4))
        yield Case(f"aten.arg{name}.default", x(3, 4), -1, True)
    for name in ("any", "all"):
        yield Case(f"aten.{name}.default", bits(3, 4))
        yield Case(f"aten.{name}.dim", bits(3, 4), 1)
        flags = bits(2, 3, 4)
        rows = getattr(flags.transpose(0, 1).reshape(3, 8), name)(1)
        yield Written(f"aten.{name}.dims", rows, self=flags, dim=[0, 2])
    for name in ("var", "std"):
        yield Case(f"aten.{name}.default", x(3, 4))
        yield Case(f"aten.{name}.default", x(3, 4), False)
        yield Case(f"aten.{name}.dim", x(2, 3, 4), [0, 2], False, True)
        yield Case(f"aten.{name}.correction", x(3, 4), [1], correction=0)
        yield Case(f"aten.{name}.correction", x(2, 3, 4), [0, 2], correction=1, keepdim=True)
    yield Case("aten.var_mean.correction", x(3, 4), [1], correction=0, keepdim=True)
    yield Case("aten.norm.Scalar", x(3, 4), 2)
    yield Case("aten.norm.ScalarOpt_dim", x(3, 4), 1, [1], True)
    yield Case("aten.norm.ScalarOpt_dim", x(3, 4), None, [0])
    for p in (2, 1, float("inf"), 3):
        yield Case("aten.linalg_vector_norm.default", x(2, 3, 4), p, [0, 2])
    yield Case("aten.linalg_vector_norm.default", x(2, 3, 4))
    yield Case("aten.logsumexp.default", x(2, 3, 4), [0, 2])
    yield Case("aten.logsumexp.default", x(3, 4), [1], True)
    masked = x(3, 4)
    masked[1], masked[2, 0] = float("-inf"), float("-inf")
    safe = masked.softmax(1).nan_to_num(0.0)
    yield Written("aten._safe_softmax.default", safe, self=masked, dim=-1)
    for name in ("softmax", "log_softmax"):
        yield Case(f"aten.{name}.int", x(3, 4), 0)
        yield Case(f"aten._{name}.default", x(2, 3, 4), 1, False)
    for name in ("cumsum", "cumprod"):
        yield Case(f"aten.{name}.default", x(3, 4), 1)
    yield Case("aten.cumsum.default", whole(3, 4), 0)
    yield Case("aten.cumsum.default", x(3, 4) > 0, 1)


def norms():
    yield Case("aten.layer_norm.default", x(3, 4), [4], x(4), x(4))
    yield Case("aten.layer_norm.default", x(2, 3, 4), [3, 4], x(3, 4), x(3, 4), 1e-3)
    yield Case("aten.layer_norm.default", x(2, 3, 4), [4])
    yield Case("aten.native_layer_norm.default", x(3, 4), [4], x(4), None, 1e-5, outputs=[0])
    yield Case("aten.group_norm.default", x(2, 6, 3), 3, x(6), x(6))
    yield Case("aten.group_norm.default", x(2, 6, 3, 2), 2)
    yield Case("aten.native_group_norm.default", x(2, 6, 3), x(6), x(6), 2, 6, 3, 3, 1e-5, outputs=[0])
    for running in ((x(3), positive(3)), ):
        yield Case("aten.batch_norm.default", x(2, 3, 4, 4), x(3), x(3), *running, False, 0.1, 1e-5, True)
        yield Case("aten.batch_norm.default", x(5, 3), None, None, *running, False, 0.1, 1e-3, True)
        yield Case("aten.native_batch_norm.default", x(2, 3, 4), x(3), x(3), *running, False, 0.1, 1e-5, outputs=[0])
    yield Case("aten.batch_norm.default", x(2, 3, 4), x(3), x(3), None, None, True, 0.1, 1e-5, True)
    yield Case("aten.instance_norm.default", x(2, 3, 5), x(3), x(3), None, None, True, 0.1, 1e-5, True)


def windows():
    for n in (1, 2, 3):
        image, filters = x(2, 4, *(7, 6, 5)[:n]), x(6, 4, *(3, 2, 3)[:n])
        each = lambda *numbers: list(numbers[:n])
        yield Case("aten.convolution.default", image, filters, x(6), each(2, 1, 1), each(1, 0, 1), each(1, 2, 1), False, each(0, 0, 0), 1)
        yield Case("aten.convolution.default", image, x(6, 2, *(3, 2, 3)[:n]), None, each(1, 1, 1), each(0, 0, 0), each(1, 1, 1), False, each(0, 0, 0), 2)
        yield Case("aten.convolution.default", image, x(4, 3, *(3, 2, 3)[:n]), x(6), each(2, 1, 2), each(1, 0, 1), each(1, 2, 1), True, each(1, 0, 0), 2)
        yield Case(f"aten.conv{n}d.default", image, filters, x(6))
        yield Case(f"aten.conv{n}d.default", image, x(4, 1, *(3, 2, 3)[:n]), None, each(1, 2, 1), each(1, 1, 0), each(1, 1, 1), 4)
        yield Case(f"aten.conv{n}d.default", image[0], filters, x(6))
        yield Case(f"aten.conv{n}d.padding", image, filters, None, [1], "same")
        yield Case(f"aten.conv{n}d.padding", image, filters, None, each(2, 1, 1), "valid")
        transposed = f"aten.conv_transpose{n}d." + ("default" if n == 1 else "input")
        yield Case(transposed, image, x(4, 3, *(3, 2, 3)[:n]), x(3), each(2, 3, 1), each(1, 0, 1), each(1, 1, 0), 1, each(1, 1, 1))
        for ceil in (False, True):
            yield Case(f"aten.max_pool{n}d.default", image, each(3, 2, 2), each(2, 2, 1), each(1, 0, 1), each(1, 2, 1), ceil)
            for counted in (False, True):
                yield Case(f"aten.avg_pool{n}d.default", image, each(3, 2, 2), each(2, 2, 2), each(1, 0, 1), ceil, counted)
        yield Case(f"aten.max_pool{n}d.default", image, [2])
        yield Case(f"aten.adaptive_avg_pool{n}d.default", image, each(1, 1, 1))
        yield Case(f"aten.adaptive_avg_pool{n}d.default", image, each(3, 3, 3))
        yield Case(f"aten.adaptive_max_pool{n}d.default", image, each(2, 2, 2), outputs=[0])
    for n in (2, 3):
        image = x(2, 3, *(7, 6, 5)[:n])
        yield Case(f"aten.max_pool{n}d_with_indices.default", image, [2] * n, [2] * n, outputs=[0])
        yield Case(f"aten._adaptive_avg_pool{n}d.default", image, [2] * n)
    yield Case("aten._adaptive_avg_pool2d.default", x(2, 3, 6, 4), [3, 2])
    yield Case("aten.avg_pool2d.default", x(2, 3, 6, 4), [2, 2], [2, 2], [0, 0], False, True, 3)


def losses():
    for reduction in (0, 1, 2):
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
            yield Case(f"aten.{name}.default", x(3, 4), x(3, 4), reduction)
        labels = torch.tensor([0, 3, 2, 3, 1])
        yield Case("aten.nll_loss.default", x(5, 4), labels, None, reduction)
        yield Case("aten.nll_loss_nd.default", x(5, 4, 2), torch.randint(0, 4, (5, 2)), positive(4), reduction, 1)
        yield Case("aten.nll_loss_forward.default", x(5, 4), labels, positive(4), reduction, 3, outputs=[0])
        yield Case("aten.cross_entropy_loss.default", x(5, 4), labels, None, reduction)
    zeros = torch.tensor([0.0, 0.0, 0.0, 1.0, 2.0, -1.0], dtype=torch.float64)
    others = torch.tensor([0.0, -1.0, float("nan"), 0.0, 3.0, 0.5], dtype=torch.float64)
    yield Case("aten.xlogy.Tensor", zeros, others)
    yield Case("aten.xlogy.Scalar_Self", 0.0, others)
    yield Case("aten.xlogy.Scalar_Other", zeros, 0.5)
    yield Case("aten.smooth_l1_loss.default", x(3, 4), x(3, 4), 1, 0.3)
    yield Case("aten.huber_loss.default", x(3, 4), x(3, 4), 1, 0.3)
    yield Case("aten.cross_entropy_loss.default", x(5, 4, 2), torch.randint(0, 4, (5, 2)), positive(4))


def attention(q, k, v, mask=None, scale=None, causal=False):
    """Scaled dot-product attention by its definition."""
    scores = q @ k.transpose(-2, -1) * (q.size(-1) ** -0.5 if scale is None else scale)
    if causal:
        seen = torch.ones(q.size(-2), k.size(-2)).tril().bool()
        scores = scores.masked_fill(~seen, float("-inf"))
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, float("-inf"))
    elif mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ v


def batch_norms(a, mean, var, w, b):
    """In training. The new running moments are results of the functional forms."""
    given = {"input": a, "weight": w, "bias": b}
    running = {"running_mean": mean, "running_var": var, "momentum": 0.1, "eps": 1e-4}
    new_mean, new_var = mean.clone(), var.clone()
    y = torch.nn.functional.batch_norm(a, new_mean, new_var, w, b, True, 0.1, 1e-4)
    batch = a.mean((0, 2))
    rstd = (a.var((0, 2), unbiased=False) + 1e-4).rsqrt()
    yield Written("aten._native_batch_norm_legit.no_stats", (y, batch, rstd), **given, training=True,
                  momentum=0.1, eps=1e-4)
    yield Written("aten._native_batch_norm_legit_functional.default", (y, batch, rstd, new_mean, new_var),
                  **given, **running, training=True)
    yield Written("aten._batch_norm_with_update_functional.default", (y, batch, rstd, rstd, new_mean, new_var),
                  **given, **running)
    still = torch.nn.functional.batch_norm(a, mean, var, w, b, eps=1e-4)
    yield Written("aten._batch_norm_no_update.default", still, **given, **running)
    cudnn = {"running_mean": mean, "running_var": var, "exponential_average_factor": 0.1, "epsilon": 1e-4}
    yield Written("aten.cudnn_batch_norm.default", (y, batch, rstd), **given, **cudnn, training=True)
    yield Written("aten.cudnn_batch_norm.default", still, **given, **cudnn, training=False)


def moved():
    yield Case("aten.roll.default", x(4, 5, 3), [1, -2], [0, 1])
    yield Case("aten.roll.default", x(4, 5), [7])
    yield Case("aten.unfold.default", x(2, 7, 3), 1, 3, 2)
    yield Case("aten.unfold.default", x(5), 0, 2, 1)
    yield Case("aten.unsafe_split.Tensor", x(7, 2), 3)
    yield Case("aten.unsafe_split_with_sizes.default", x(2, 7), [3, 4], 1)
    yield Case("aten.unsafe_chunk.default", x(7, 2), 2)


def later():
    """Operators of later versions than 1.13."""
    yield from moved()
    target = "aten.scaled_dot_product_attention.default"
    for shape, keys in [((2, 3, 4, 8), (2, 3, 4, 8)), ((2, 3, 4, 8), (2, 3, 6, 8)), ((3, 4, 8), (3, 6, 8))]:
        q, k, v = x(*shape), x(*keys), x(*keys)
        yield Written(target, attention(q, k, v), query=q, key=k, value=v)
        yield Written(target, attention(q, k, v, causal=True), query=q, key=k, value=v, is_causal=True)
        yield Written(target, attention(q, k, v, scale=0.3), query=q, key=k, value=v, scale=0.3)
        mask = x(shape[-2], keys[-2])
        yield Written(target, attention(q, k, v, mask), query=q, key=k, value=v, attn_mask=mask)
        mask = mask > -1
        mask[:, 0] = True
        yield Written(target, attention(q, k, v, mask), query=q, key=k, value=v, attn_mask=mask)
    for causal, scale in [(False, 0.3), (True, 8**-0.5)]:
        q, k, v = (x(2, 3, 4, 8).requires_grad_() for _ in range(3))
        result, grad = attention(q, k, v, scale=scale, causal=causal), x(2, 3, 4, 8)
        gradients = torch.autograd.grad(result, (q, k, v), grad)
        tensors = {"query": q.detach(), "key": k.detach(), "value": v.detach()}
        given = {"is_causal": causal, "scale": scale}
        yield Written("atunner.attention.default", result.detach(), **tensors, **given)
        yield Written(
            "atunner.attention_backward.default", gradients, **tensors, grad=grad, **given
        )
    a, w = x(3, 8), x(8)
    yield Written("aten.rms_norm.default", a * (a.square().mean(-1, True) + 1e-6).rsqrt() * w,
                  input=a, normalized_shape=[8], weight=w, eps=1e-6)
    a = x(2, 3, 4)
    mean, var, w, b = x(3), positive(3), x(3), x(3)
    yield Written("aten._native_batch_norm_legit_no_training.default",
                  torch.nn.functional.batch_norm(a, mean, var, w, b, eps=1e-4), input=a, weight=w, bias=b,
                  running_mean=mean, running_var=var, momentum=0.1, eps=1e-4)
    yield from batch_norms(a, mean, var, w, b)
    yield Written("aten._prelu_kernel.default", torch.nn.functional.prelu(a, w), self=a, weight=w.view(1, 3, 1))
    yield Written("aten.mT.default", a.transpose(-2, -1), self=a)
    yield Written("aten.unflatten.int", a.reshape(2, 3, 2, 2), self=a, dim=-1, sizes=[2, -1])
    yield Written("aten.squeeze.dims", x(3, 1) * 0 + 1, self=x(1, 3, 1) * 0 + 1, dim=[0])


def gradients():
    """Operators that autograd writes."""
    a, dy = x(3, 4), x(3, 4)
    yield Case("aten.threshold_backward.default", dy, a, 0)
    yield Case("aten.threshold_backward.default", dy, a, 0.3)
    yield Case("aten.sigmoid_backward.default", dy, a.sigmoid())
    yield Case("aten.tanh_backward.default", dy, a.tanh())
    yield Case("aten.silu_backward.default", dy, a)
    for approximate in ("none", "tanh"):
        yield Case("aten.gelu_backward.default", dy, a, approximate=approximate)
    for dim in (0, -1):
        yield Case("aten._softmax_backward_data.default", dy, a.softmax(dim), dim, torch.float64)
        yield Case("aten._log_softmax_backward_data.default", dy, a.log_softmax(dim), dim, torch.float64)
    labels = torch.tensor([0, 3, 2, 3, 1])
    for reduction in (0, 1, 2):
        for weight in (None, positive(4)):
            logs = x(5, 4).log_softmax(1)
            forward = torch.ops.aten.nll_loss_forward.default(logs, labels, weight, reduction, 3)
            grad = x(5) if reduction == 0 else x(1)[0]
            dy = x(3, 4) if reduction == 0 else x(1)[0]
            yield Case("aten.mse_loss_backward.default", dy, x(3, 4), x(3, 4), reduction)
            yield Case("aten.nll_loss_backward.default", grad, logs, labels, weight, reduction, 3, forward[1])
    for shape, normalised in (((3, 8), [8]), ((2, 3, 4), [3, 4])):
        a, w, b = x(*shape), x(*normalised), x(*normalised)
        yield Case("aten.native_layer_norm.default", a, normalised, w, b, 1e-4)
        y, mean, rstd = torch.ops.aten.native_layer_norm.default(a, normalised, w, b, 1e-4)
        yield Case("aten.native_layer_norm_backward.default", x(*shape), a, normalised, mean, rstd, w, b,
                   [True, True, True])
    a, w, b, mean, var = x(3, 4, 5), x(4), x(4), x(4), positive(4)
    call = (a, w, b, mean, var, True, 0.1, 1e-4)
    yield Case("aten.native_batch_norm.default", *call)
    y, saved, inverse = torch.ops.aten.native_batch_norm.default(*call)
    yield Case("aten.native_batch_norm_backward.default", x(3, 4, 5), a, w, mean, var, saved, inverse, True, 1e-4,
               [True, True, True])
    low = x(3, 4, 5).bfloat16()  # autocast: the weights are wider
    w, b, mean, var = (each.float() for each in (w, b, mean, var))
    call = (low, w, b, mean, var, True, 0.1, 1e-4)
    yield Case("aten.native_batch_norm.default", *call)
    y, saved, inverse = torch.ops.aten.native_batch_norm.default(*call)
    yield Case("aten.native_batch_norm_backward.default", x(3, 4, 5).bfloat16(), low, w, mean, var, saved, inverse,
               True, 1e-4, [True, True, True])
    for stride, padding, dilation, groups in ((1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2)):
        a, w = x(2, 4, 7, 6), x(6, 4 // groups, 3, 3)
        y = torch.nn.functional.conv2d(a, w, None, stride, padding, dilation, groups)
        yield Case("aten.convolution_backward.default", torch.randn_like(y), a, w, [6], [stride] * 2, [padding] * 2,
                   [dilation] * 2, False, [0, 0], groups, [True, True, True])
    a, w = x(2, 4, 5), x(4, 3, 3)
    y = torch.nn.functional.conv_transpose1d(a, w, None, 2, 1, 1)
    yield Case("aten.convolution_backward.default", torch.randn_like(y), a, w, [3], [2], [1], [1], True, [1], 1,
               [True, True, True])
    for size, stride, padding in ((2, 2, 0), (3, 2, 1)):
        a = x(2, 3, 8, 8)
        y, places = torch.nn.functional.max_pool2d(a, size, stride, padding, return_indices=True)
        yield Case("aten.max_pool2d_with_indices_backward.default", torch.randn_like(y), a, [size] * 2, [stride] * 2,
                   [padding] * 2, [1, 1], False, places)
    tokens = torch.tensor([[1, 3, 1], [0, 4, 1]])
    for padding in (-1, 3):
        yield Case("aten.embedding_dense_backward.default", x(2, 3, 5), tokens, 6, padding, False)
    yield Case("aten.slice_backward.default", x(3, 2), [3, 7], 1, 2, 6, 3)
    yield Case("aten.slice_backward.default", x(2, 4), [5, 4], 0, -3, 9223372036854775807, 2)
    yield Case("aten.select_backward.default", x(3, 4), [3, 5, 4], 1, -2)


def aten_cases():
    """All calls."""
    for part in (arithmetic, unary, copies, layout, indexing, products, reductions, norms, windows, losses, gradients,
                 later):
        yield from part()
