"""Operators of the library with what they are in PyTorch. A case's function takes the library's inputs, in order."""
import math

import torch
import torch.nn.functional as F

from case import INF, NAN, Case, grid, positive, signs, uniform, whole
from pointwise_cases import pointwise_cases

NOT_COMPARED = {"dropout": "another generator", "quantize_fp8": "PyTorch has no such operator", "fp8_linear": "no float8 on its CPU"}
if not hasattr(torch, "float8_e4m3fn"):
    NOT_COMPARED["to_float8"] = "PyTorch has it since version 2.1"


# --- reductions and scans ---

def reduction_cases():
    functions = {
        "sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "amin": torch.amin, "logsumexp": torch.logsumexp,
        "var": lambda x, dim, keepdim: torch.var(x, dim, unbiased=True, keepdim=keepdim),
        "std": lambda x, dim, keepdim: torch.std(x, dim, unbiased=True, keepdim=keepdim),
        "norm": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 2, dim, keepdim),
        "sum_of_squares": lambda x, dim, keepdim: (x * x).sum(dim, keepdim),
        "count_nonzero": lambda x, dim, keepdim: (x != 0).sum(dim, keepdim),
    }
    for name, function in functions.items():
        for axis in (-1, 0, 1, -3):
            keep = axis in (1, -3)
            yield Case(name, [[3, 5, 7]], lambda x, f=function, a=axis, k=keep: f(x, dim=a, keepdim=k), {"axis": axis, "keep": keep})
        yield Case(name, [[2, 3, 5]], lambda x, f=function: f(x, dim=(0, 1, 2), keepdim=False), {"axis": "all"})
        yield Case(name, [[2, 1, 3, 7, 2]], lambda x, f=function: f(x, dim=2, keepdim=True), {"axis": -3, "keep": True})
        yield Case(name, [[4, 9]], lambda x, f=function: f(x, dim=-1, keepdim=False), fill={"x": grid}, note="ties",
                   backward=name not in ("norm",))
    for name in ("any", "all", "argmax", "argmin", "prod"):
        function = getattr(torch, name)
        for axis in (-1, 0):
            yield Case(name, [[4, 5]], lambda x, f=function, a=axis: f(x, dim=a), {"axis": axis}, {"x": whole(-2, 3)} if name != "prod" else {})
        yield Case(name, [[4, 5]], lambda x, f=function: f(x, dim=0, keepdim=True), {"axis": 0, "keep": True})
    yield Case("prod", [[3, 4]], lambda x: x.prod(), {"axis": "all"})
    yield Case("prod", [[9, 4]], lambda x: x.prod(-1), fill={"x": grid}, note="zeros")
    yield Case("prod", [[3, 4]], lambda x: x.prod(-1), fill={"x": [1, 0, 2, 3, 0, 1, 0, 2, 1, 2, 3, 4]}, note="zeros")
    for n, row in enumerate([[0, 0, 0, 0], [INF, 1, 2, 3], [-INF, 1, 2, 3], [-INF] * 4, [INF, -INF, 0, 1], [NAN, 1, 2, INF], [INF, INF, 1, 2]]):
        for name in ("logsumexp", "softmax", "log_softmax", "amax", "amin", "sum", "mean", "var", "norm", "normalize", "prod", "argmax", "argmin"):
            function = {"softmax": F.softmax, "log_softmax": F.log_softmax, "normalize": F.normalize, "amax": torch.amax, "amin": torch.amin,
                        "norm": torch.linalg.vector_norm}.get(name) or getattr(torch, name)
            yield Case(name, [[2, 4]], lambda x, f=function: f(x, dim=-1), {"axis": -1}, {"x": row * 2}, backward=name not in ("argmax", "argmin", "softmax") and n == 0, note=f"row {row}")
    for correction in (0, 1):
        yield Case("var", [[3, 5]], lambda x, c=correction: torch.var(x, -1, unbiased=c == 1), {"correction": correction})
        yield Case("std", [[3, 5]], lambda x, c=correction: torch.std(x, 0, unbiased=c == 1), {"correction": correction, "axis": 0})
        yield Case("std", [[3, 5]], lambda x, c=correction: torch.std(x, -1, unbiased=c == 1), {"correction": correction}, {"x": 1.5}, note="constant rows")
    for p in (1, 2, 3, 0.5, INF, -INF, 1.5, -1):
        yield Case("norm", [[3, 5]], lambda x, p=p: torch.linalg.vector_norm(x, p, -1), {"p": "inf" if p == INF else "-inf" if p == -INF else p})
        yield Case("norm", [[3, 5]], lambda x, p=p: torch.linalg.vector_norm(x, p, -1), {"p": "inf" if p == INF else "-inf" if p == -INF else p},
                   {"x": [0, 1, -2, 3, 0, 1, 2, 3, -4, 5, 2, 2, -2, 1, 0]}, note="zeros and ties")
    for name, function in {"softmax": F.softmax, "log_softmax": F.log_softmax, "normalize": F.normalize}.items():
        for axis in (-1, 0, 1):
            yield Case(name, [[3, 5, 2]], lambda x, f=function, a=axis: f(x, dim=a), {"axis": axis}, backward=name != "softmax")
        yield Case(name, [[3, 1]], lambda x, f=function: f(x, dim=-1), backward=name != "softmax")
    yield Case("softmax_backward", [[4, 6]], lambda y, dy: torch._softmax_backward_data(dy, y, -1, torch.float64), backward=False)
    yield Case("softmax_backward", [[4, 6]], lambda y, dy: torch._softmax_backward_data(dy, y, 0, torch.float64), {"axis": 0}, backward=False)
    for name, function in {"cumsum": torch.cumsum, "cumprod": torch.cumprod, "cummax": torch.cummax, "cummin": torch.cummin}.items():
        value = (lambda f: lambda x, a: f(x, a)[0])(function) if name in ("cummax", "cummin") else function
        differentiable = name in ("cumsum", "cumprod")
        for axis in (-1, 0, 1):
            yield Case(name, [[3, 5, 2]], lambda x, f=value, a=axis: f(x, a), {"axis": axis}, backward=differentiable)
        yield Case(name, [[3, 5]], lambda x, f=value: f(x.flip(-1), -1).flip(-1), {"reverse": True}, backward=differentiable)
        neutral = {"cumsum": 0, "cumprod": 1, "cummax": -INF, "cummin": INF}[name]
        shifted = lambda x, f=value, n=neutral: f(torch.cat([torch.full_like(x[:, :1], n), x[:, :-1]], -1), -1)  # noqa: E731
        yield Case(name, [[3, 5]], shifted, {"exclusive": True}, backward=differentiable)
        yield Case(name, [[4, 7]], lambda x, f=value: f(x, -1), fill={"x": grid}, backward=differentiable, note="zeros")
        yield Case(name, [[4, 7]], shifted, {"exclusive": True}, {"x": grid}, backward=differentiable, note="zeros")
        yield Case(name, [[4, 7]], lambda x, f=value: f(x.flip(-1), -1).flip(-1), {"reverse": True}, {"x": grid}, backward=differentiable, note="zeros")
        yield Case(name, [[1, 6]], lambda x, f=value: f(x, -1), fill={"x": [1, NAN, 3, INF, -INF, 0]}, backward=False, note="special values")
    small = {"x": whole(-5, 6)}
    for name in ("sum", "prod", "amax", "amin", "argmax", "argmin", "any", "all", "cumsum", "cumprod"):
        yield Case(name, [[4, 7]], lambda x, f=getattr(torch, name): f(x, 0), {"axis": 0}, small, dtype="int32", backward=False)
    for descending in (False, True):
        yield Case("sort", [[4, 9]], lambda x, d=descending: x.sort(dim=-1, descending=d, stable=True), {"descending": descending}, small, dtype="int32", backward=False)
    yield Case("masked_cumsum", [[3, 5]], lambda x, mask: (x * mask).cumsum(-1))


# --- norms ---

def batch_norm_training(x, weight, bias, running_mean, running_variance):
    mean, variance = running_mean.detach().clone(), running_variance.detach().clone()
    y = F.batch_norm(x, mean, variance, weight, bias, training=True, momentum=0.3, eps=1e-3)
    return y, mean, variance


def rms_norm(x, weight, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def layernorm_backward(x, weight, bias, dy):
    return torch.autograd.grad(F.layer_norm(x, x.shape[-1:], weight, bias), [x, weight, bias], dy)


def norm_cases():
    for name in ("layernorm", "layer_norm"):
        for eps in (1e-5, 0.1):
            yield Case(name, [[3, 2, 8]], lambda x, weight, bias, e=eps: F.layer_norm(x, x.shape[-1:], weight, bias, e), {"eps": eps}, backward=name == "layer_norm")
    yield Case("layer_norm", [[3, 1]], lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias), backward=False)
    yield Case("layernorm_backward", [[5, 8]], layernorm_backward, backward=False)
    yield Case("rms_norm", [[3, 8]], lambda x, weight: rms_norm(x, weight, 0.1), {"eps": 0.1})
    yield Case("add_rms_norm", [[3, 8]], lambda x, residual, weight: (rms_norm(x + residual, weight, 1e-6), x + residual))
    for groups in (1, 2, 6):
        yield Case("group_norm", [[2, 6, 3, 5]], lambda x, weight, bias, g=groups: F.group_norm(x, g, weight, bias, 0.01), {"groups": groups, "eps": 0.01})
    yield Case("group_norm", [[3, 4]], lambda x, weight, bias: F.group_norm(x, 2, weight, bias))
    yield Case("instance_norm", [[2, 3, 4, 5]], lambda x, weight, bias: F.instance_norm(x, None, None, weight, bias, eps=0.01), {"eps": 0.01})
    for shape in ([3, 4], [3, 4, 5], [2, 3, 2, 3, 2]):
        yield Case("batch_norm", [shape], lambda x, weight, bias: F.batch_norm(x, None, None, weight, bias, training=True))
        yield Case("batch_norm_training", [shape], batch_norm_training, {"momentum": 0.3, "eps": 1e-3}, {"running_variance": positive})
        yield Case("batch_norm_inference", [shape], lambda x, mean, variance, weight, bias: F.batch_norm(x, mean, variance, weight, bias, eps=0.1),
                   {"eps": 0.1}, {"variance": positive}, no_gradient=("mean", "variance"))


# --- losses ---

def bce_focal(prediction, target):
    p = torch.sigmoid(prediction)
    p_t = p * target + (1 - p) * (1 - target)
    return F.binary_cross_entropy_with_logits(prediction, target, reduction="none") * (1 - p_t) ** 1.5


def loss_cases():
    bits = {"target": lambda shape, g: torch.randint(0, 2, shape, generator=g).double()}
    pm = {"target": signs}
    reduced = {"mean": torch.mean, "sum": torch.sum, "none": lambda x: x}
    for r in ("mean", "sum", "none"):
        plain = {
            "mse_loss": (lambda prediction, target: F.mse_loss(prediction, target, reduction=r), {}, {}),
            "l1_loss": (lambda prediction, target: F.l1_loss(prediction, target, reduction=r), {}, {}),
            "huber_loss": (lambda prediction, target: F.huber_loss(prediction, target, reduction=r, delta=0.7), {"delta": 0.7}, {}),
            "smooth_l1_loss": (lambda prediction, target: F.smooth_l1_loss(prediction, target, reduction=r, beta=0.7), {"delta": 0.7}, {}),
            "hinge_embedding_loss": (lambda prediction, target: F.hinge_embedding_loss(prediction, target, 0.3, reduction=r), {"margin": 0.3}, pm),
            "hinge_loss": (lambda prediction, target: reduced[r]((1 - prediction * target).clamp_min(0)), {}, pm),
            "squared_hinge_loss": (lambda prediction, target: reduced[r]((1 - prediction * target).clamp_min(0) ** 2), {}, pm),
            "soft_margin_loss": (lambda prediction, target: F.soft_margin_loss(prediction, target, reduction=r), {}, pm),
            "log_cosh_loss": (lambda prediction, target: reduced[r](torch.log(torch.cosh(prediction - target))), {}, {}),
            "bce_with_logits": (lambda prediction, target: F.binary_cross_entropy_with_logits(prediction, target, reduction=r), {}, bits),
            "kl_div": (lambda prediction, target: F.kl_div(prediction, target, reduction=r, log_target=True), {}, {}),
            "poisson_nll_loss": (lambda prediction, target: F.poisson_nll_loss(prediction, target, reduction=r), {}, {"target": positive}),
            "focal_loss": (lambda prediction, target: reduced[r](bce_focal(prediction, target)), {"gamma": 1.5}, bits),
        }
        for name, (function, attributes, fill) in plain.items():
            yield Case(name, [[3, 5]], function, {**attributes, "reduction": r}, fill, no_gradient=("target",) if fill else ())
        yield Case("gaussian_nll_loss", [[3, 5]], lambda prediction, target, variance, r=r: F.gaussian_nll_loss(prediction, target, variance, eps=0.3, reduction=r),
                   {"eps": 0.3, "reduction": r}, {"variance": uniform(0.31, 3)})
        yield Case("margin_ranking_loss", [[13]], lambda a, b, target, r=r: F.margin_ranking_loss(a, b, target, 0.3, reduction=r), {"margin": 0.3, "reduction": r}, pm,
                   no_gradient=("target",))
        yield Case("cosine_loss", [[4, 5]], lambda a, b, r=r: reduced[r](1 - F.cosine_similarity(a, b)), {"reduction": r})
        yield Case("triplet_loss", [[6, 5]], lambda anchor, positive, negative, r=r: F.triplet_margin_loss(anchor, positive, negative, 0.7, reduction=r), {"margin": 0.7, "reduction": r})
        for smoothing in (0.0, 0.2):
            for ignored in (-100, 2):
                attributes = {"reduction": r, "ignore_index": ignored, "label_smoothing": smoothing}
                function = lambda logits, labels, r=r, i=ignored, s=smoothing: F.cross_entropy(logits, labels, reduction=r, ignore_index=i, label_smoothing=s)  # noqa: E731
                yield Case("cross_entropy", [[7, 5]], function, attributes, {"labels": [0, 2, 4, 2, 1, 3, 3]})
        yield Case("nll_loss", [[7, 5]], lambda log_probabilities, labels, r=r: F.nll_loss(log_probabilities, labels, reduction=r, ignore_index=1),
                   {"reduction": r, "ignore_index": 1}, {"labels": [0, 2, 4, 2, 1, 3, 1]})
        yield Case("nll_loss", [[3, 5]], lambda log_probabilities, labels, r=r: F.nll_loss(log_probabilities, labels, reduction=r), {"reduction": r}, {"labels": [0, -100, 4]})
    big = {"prediction": [800.0, -800, 0, 50], "target": [1.0, 0, 1, 0]}
    yield Case("bce_with_logits", [[4]], lambda prediction, target: F.binary_cross_entropy_with_logits(prediction, target), {}, big, no_gradient=("target",))
    yield Case("soft_margin_loss", [[4]], lambda prediction, target: F.softplus(-prediction * target).mean(), {}, {**big, "target": [1.0, 1, -1, -1]}, no_gradient=("target",))
    for name, function in {"l1_loss": F.l1_loss, "mse_loss": F.mse_loss, "huber_loss": F.huber_loss, "smooth_l1_loss": F.smooth_l1_loss}.items():
        yield Case(name, [[9, 9]], lambda prediction, target, f=function: f(prediction, target), fill={"prediction": grid, "target": grid}, note="kinks")
    for name, function in {"hinge_embedding_loss": F.hinge_embedding_loss}.items():
        yield Case(name, [[40]], lambda prediction, target, f=function: f(prediction, target), fill={"prediction": grid, "target": signs}, note="kinks", no_gradient=("target",))
    yield Case("margin_ranking_loss", [[60]], lambda a, b, target: F.margin_ranking_loss(a, b, target), {}, {"a": grid, "b": grid, "target": signs}, note="kinks", no_gradient=("target",))
    yield Case("cosine_loss", [[2, 3]], lambda a, b: (1 - F.cosine_similarity(a, b)).mean(), {}, {"a": [0.0, 0, 0, 1, 2, 3]}, note="a zero row")
    yield Case("cosine_loss", [[2, 3]], lambda a, b: (1 - F.cosine_similarity(a, b)).mean(), {}, {"a": [1e-12, 0, 0, 1e-12, 2e-12, 3e-12], "b": [1e5, 2e5, 0, 1e7, 1e7, 1e7]}, backward=False, note="tiny rows")
    yield Case("cross_entropy", [[2, 3]], lambda logits, labels: F.cross_entropy(logits, labels), {}, {"logits": [-INF, 1.0, 2.0, 800, -800, 0], "labels": [1, 0]}, note="masked logits")
    yield Case("cross_entropy", [[2, 3]], lambda logits, labels: F.cross_entropy(logits, labels), {}, {"labels": [-100, -100]}, backward=False, note="all ignored")


# --- optimizers ---

def stepped(make, *states):
    """A function that takes parameters and states through one step of an optimizer of torch.optim."""
    def run(p, grad, *given):
        p = p.detach().clone().requires_grad_(True)
        p.grad = grad.detach().clone()
        optimizer = make([p])
        optimizer.state[p].update({name: state.detach().clone() for name, state in zip(states, given)})
        optimizer.state[p].update({name: value.clone() for name, value in make.more.items()})
        optimizer.step()
        return (p.detach(), *(optimizer.state[p][name] for name in states))
    return run


class Maker:
    def __init__(self, kind, more, **settings):
        self.kind, self.more, self.settings = kind, more, settings

    def __call__(self, parameters):
        return self.kind(parameters, **self.settings)


def lion(p, grad, m):
    step = torch.sign(0.8 * m + 0.2 * grad)
    return p * (1 - 1e-3 * 0.1) - 1e-3 * step, 0.95 * m + 0.05 * grad


def optimizer_cases():
    square = {"v": positive, "sum": positive}
    for step in (1, 7):
        for decay in (0.0, 0.1):
            more = {"step": torch.tensor(float(step - 1))}
            settings = {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": decay}
            attributes = {"lr": 0.01, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "weight_decay": decay, "step": step}
            for name, kind in {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}.items():
                yield Case(name, [[3, 5]], stepped(Maker(kind, more, **settings), "exp_avg", "exp_avg_sq"), attributes, square, backward=False)
    yield Case("sgd", [[3, 5]], stepped(Maker(torch.optim.SGD, {}, lr=0.1, momentum=0.8, weight_decay=0.2), "momentum_buffer"),
               {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.2}, backward=False)
    yield Case("rmsprop", [[3, 5]], stepped(Maker(torch.optim.RMSprop, {"step": torch.tensor(0.0)}, lr=0.1, alpha=0.8, eps=1e-3), "square_avg"),
               {"lr": 0.1, "alpha": 0.8, "eps": 1e-3}, square, backward=False)
    yield Case("adagrad", [[3, 5]], stepped(Maker(torch.optim.Adagrad, {"step": torch.tensor(3.0)}, lr=0.1, eps=1e-3), "sum"),
               {"lr": 0.1, "eps": 1e-3}, square, backward=False)
    yield Case("lion", [[3, 5]], lion, {"lr": 1e-3, "beta1": 0.8, "beta2": 0.95, "weight_decay": 0.1}, backward=False)
    def clip(grad0, grad1, most):
        a, b = (torch.nn.Parameter(torch.zeros_like(g)) for g in (grad0, grad1))
        a.grad, b.grad = grad0.detach().clone(), grad1.detach().clone()
        torch.nn.utils.clip_grad_norm_([a, b], most)
        return a.grad, b.grad
    for most in (0.5, 100.0):
        yield Case("clip_grad_norm", [[3, 5], [4]], lambda grad0, grad1, m=most: clip(grad0, grad1, m), {"max_norm": most}, backward=False)
    yield Case("unscale", [[3, 5]], lambda scale, grad: (grad / scale, (~grad.isfinite()).any()), fill={"scale": 8.0}, backward=False)
    yield Case("unscale", [[3]], lambda scale, grad: (grad / scale, (~grad.isfinite()).any()), fill={"scale": 8.0, "grad": [1, INF, 2]}, backward=False)


# --- windows ---

def window_cases():
    convolve = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}
    transposed = {3: F.conv_transpose1d, 4: F.conv_transpose2d, 5: F.conv_transpose3d}
    for x, w, stride, padding, dilation, groups in [
            ([2, 4, 9], [6, 4, 3], 1, 0, 1, 1), ([2, 4, 9], [6, 2, 3], 2, 1, 2, 2), ([1, 3, 7, 5], [4, 3, 3, 2], 2, 1, 1, 1),
            ([2, 4, 7, 8], [4, 1, 3, 3], 1, 1, 1, 4), ([2, 4, 7, 8], [8, 1, 3, 3], 2, 2, 2, 4), ([1, 2, 5, 4, 6], [3, 2, 2, 3, 2], 2, 1, 1, 1),
            ([1, 2, 4, 4], [3, 2, 1, 1], 3, 0, 1, 1), ([1, 2, 4, 4], [3, 2, 4, 4], 1, 3, 1, 1)]:
        settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        yield Case("conv", [x, w], lambda x, w, s=settings: convolve[x.dim()](x, w, **s), settings)
    yield Case("conv", [[2, 4, 9], [6, 4, 3]], lambda x, w: F.conv1d(F.pad(x, (4, 0)), w, dilation=2), {"causal": True, "dilation": 2})
    yield Case("conv", [[2, 7, 8, 4], [6, 3, 3, 4]], lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), padding=1).permute(0, 2, 3, 1),
               {"channels_last": True, "padding": 1})
    yield Case("conv2d", [[2, 7, 8, 4], [6, 3, 3]], lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), stride=2, padding=1, dilation=2).permute(0, 2, 3, 1),
               {"padding": 1, "stride": 2, "dilation": 2}, dtype="float32", backward=False)
    for x, w, stride, padding, dilation, groups, extra in [
            ([2, 4, 5], [4, 3, 3], 1, 0, 1, 1, 0), ([2, 4, 5], [4, 3, 3], 2, 1, 2, 2, 1), ([1, 3, 4, 5], [3, 2, 3, 2], 3, 1, 1, 1, 2),
            ([2, 4, 4, 5], [4, 1, 3, 3], 2, 1, 1, 4, 1), ([1, 2, 3, 2, 3], [2, 3, 2, 3, 2], 2, 1, 1, 1, 0), ([1, 2, 3, 4], [2, 3, 1, 1], 2, 0, 1, 1, 1)]:
        settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "output_padding": extra}
        yield Case("conv_transpose", [x, w], lambda x, w, s=settings: transposed[x.dim()](x, w, **s), settings)
    yield Case("conv_transpose", [[2, 4, 5, 4], [4, 3, 3, 6]], lambda x, w: F.conv_transpose2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), stride=2).permute(0, 2, 3, 1),
               {"channels_last": True, "stride": 2})
    yield Case("separable_conv", [[1, 3, 6, 5], [6, 1, 3, 3]], lambda x, depthwise, pointwise: F.conv2d(F.conv2d(x, depthwise, padding=1, groups=3), pointwise),
               {"padding": 1, "channels": 4})
    largest = {3: F.max_pool1d, 4: F.max_pool2d, 5: F.max_pool3d}
    mean = {3: F.avg_pool1d, 4: F.avg_pool2d, 5: F.avg_pool3d}
    for shape in ([2, 3, 11], [2, 3, 7, 9], [1, 2, 5, 6, 4]):
        for size, stride, padding, dilation in [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (2, 3, 1, 1), (2, 1, 0, 2)]:
            for fill, note in ({}, ""), ({"x": grid}, "ties"), ({"x": 1.5}, "equal elements"):
                yield Case("max_pool", [shape], lambda x, s=size, t=stride, p=padding, d=dilation: largest[x.dim()](x, s, t, p, d),
                           {"size": size, "stride": stride, "padding": padding, "dilation": dilation}, fill, note=note)
            if dilation == 1:
                yield Case("avg_pool", [shape], lambda x, s=size, t=stride, p=padding: mean[x.dim()](x, s, t, p), {"size": size, "stride": stride, "padding": padding})
        kind = len(shape) - 2
        for output in (1, 2, 3, 4):
            for name in ("avg", "max"):
                for fill, note in ({}, ""), ({"x": grid}, "ties"):
                    yield Case(f"adaptive_{name}_pool", [shape], lambda x, f=getattr(F, f"adaptive_{name}_pool{kind}d"), o=output: f(x, o), {"output": output}, fill, note=note)
    yield Case("max_pool", [[1, 1, 2, 4]], lambda x: F.max_pool2d(x, 2), {}, {"x": [NAN, 1, 2, 3, 4, 5, 6, -INF]}, backward=False, note="NaN")
    for factor in (2, 3, 1.5, 0.5, 0.7, 1.7, 2.3, 1 / 3):
        for corners in (False, True):
            for shape, mode in (([2, 3, 7], "linear"), ([1, 2, 5, 4], "bilinear"), ([1, 1, 3, 4, 5], "trilinear")):
                yield Case("interpolate", [shape], lambda x, m=mode, c=corners, f=factor: F.interpolate(x, scale_factor=f, mode=m, align_corners=c),
                           {"factor": factor, "align_corners": corners})
    yield Case("upsample_nearest", [[1, 2, 3, 2]], lambda x: F.interpolate(x, scale_factor=3, mode="nearest"), {"factor": 3})
    yield Case("unfold", [[2, 3, 6, 7]], lambda x: F.unfold(x, 3, dilation=2, padding=2, stride=2), {"size": 3, "stride": 2, "padding": 2, "dilation": 2})
    yield Case("pixel_shuffle", [[2, 12, 2, 3]], lambda x: F.pixel_shuffle(x, 2))
    yield Case("pixel_unshuffle", [[2, 3, 6, 9]], lambda x: F.pixel_unshuffle(x, 3), {"factor": 3})


# --- products and attention ---

def attention(q, k, v, mask=None, scale=None):
    share = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    return torch.softmax(scores if mask is None else scores + mask, -1) @ v


def band(queries, keys, causal, window):
    place = torch.arange(keys)[None, :] - torch.arange(queries)[:, None] - (keys - queries)
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        seen &= place <= 0
    if window:
        seen &= place > -window
    return torch.zeros(queries, keys, dtype=torch.float64).masked_fill(~seen, -INF)


def up_to(last, keys):
    return torch.zeros(len(last), 1, 1, keys, dtype=torch.float64).masked_fill(torch.arange(keys)[None, None, None, :] > last[:, None, None, None], -INF)


def paged(q, k_pool, v_pool, table, last):
    k, v = (pool[table].flatten(1, 2).transpose(1, 2) for pool in (k_pool, v_pool))
    return attention(q[:, :, None], k, v, up_to(last, k.shape[2]))[:, :, 0]


def rope(x, base, interleaved):
    dim = x.shape[-1]
    angle = torch.arange(x.shape[-2]).double()[:, None] * base ** (-torch.arange(0, dim, 2).double() / dim)
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., : dim // 2], x[..., dim // 2:])
    turned = a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()
    return torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)


def int4(x, weight, scale, group):
    whole = torch.stack([weight & 15, weight >> 4], -1).flatten(1).double() - 8
    return x @ (whole * scale.repeat_interleave(group, 1)).t()


def product_cases():
    yield Case("matmul", [[3, 5, 7]], lambda a, b: a @ b, backward=False)
    yield Case("matmul", [[3, 5, 7]], lambda a, b: a.t() @ b.t(), {"transpose_a": True, "transpose_b": True}, backward=False)
    # float32: the operators with a reference of their own.
    yield Case("matmul", [[3, 5, 7]], lambda a, b: a @ b, dtype="float32", backward=False)
    yield Case("softmax", [[3, 5, 7]], lambda x: F.softmax(x, -1), dtype="float32", backward=False)
    yield Case("softmax_backward", [[4, 6]], lambda y, dy: torch._softmax_backward_data(dy, y, -1, torch.float64), dtype="float32", backward=False)
    yield Case("layernorm", [[3, 8]], lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias, 0.25), {"eps": 0.25}, dtype="float32", backward=False)
    yield Case("layernorm_backward", [[5, 8]], lambda x, dy, weight: layernorm_backward(x, weight, torch.zeros_like(weight, requires_grad=True), dy), dtype="float32", backward=False)
    for causal in (False, True):
        yield Case("flash_attention", [[2, 3, 5, 16]], lambda q, k, v, c=causal: attention(q, k, v, band(5, 5, c, 0)), {"causal": causal}, dtype="float32", backward=False)
    for a, b, ta, tb in [([3, 4], [4, 5], 0, 0), ([2, 3, 4], [2, 4, 5], 0, 0), ([6, 1, 3, 4], [2, 4, 5], 0, 0), ([2, 4, 3], [5, 4], 1, 1), ([1, 3, 4], [7, 4, 1], 0, 0)]:
        yield Case("batched_matmul", [a, b], lambda a, b, ta=ta, tb=tb: (a.transpose(-1, -2) if ta else a) @ (b.transpose(-1, -2) if tb else b),
                   {"transpose_a": bool(ta), "transpose_b": bool(tb)})
    yield Case("addmm", [[3, 4], [4, 5]], lambda a, b, bias: torch.addmm(bias, a, b, beta=0.5, alpha=-2), {"alpha": -2, "beta": 0.5})
    yield Case("outer", [[3], [5]], torch.outer)
    yield Case("dot", [[3, 5]], lambda a, b: (a * b).sum(-1))
    yield Case("matvec", [[3, 5]], lambda a, x: a @ x)
    for upper in (False, True):
        yield Case("triangular_matmul", [[4, 4], [4, 3]], lambda a, b, u=upper: (a.triu() if u else a.tril()) @ b, {"upper": upper})
    yield Case("diagonal_matmul", [[3, 5]], lambda d, b: torch.diag(d) @ b)
    yield Case("linear", [[3, 4], [5, 4]], lambda x, weight, bias: F.linear(x, weight, bias))
    yield Case("quantized_linear", [[3, 4], [5, 4]], lambda x, weight, scale: x @ (weight.double() * scale[:, None]).t())
    yield Case("int8_linear", [[3, 4], [5, 4]], lambda x, weight, scale_x, scale_weight: (x @ weight.t()).double() * scale_x[:, None] * scale_weight, backward=False)
    yield Case("int4_linear", [[3, 16], [5, 16]], lambda x, weight, scale: int4(x, weight, scale, 8), {"group": 8}, {"weight": whole(0, 256)})
    for causal, window, queries, keys, scale in [(0, 0, 3, 5, 0), (1, 0, 5, 5, 0), (1, 0, 3, 5, 0.3), (1, 2, 6, 6, 0), (0, 2, 5, 5, 0)]:
        yield Case("attention_gqa", [[2, 4, queries, 6], [2, 2, keys, 6]], lambda q, k, v, c=causal, w=window, s=scale: attention(q, k, v, band(q.shape[2], k.shape[2], c, w), s),
                   {"causal": bool(causal), "window": window, "scale": scale})
    yield Case("flash_attention", [[2, 3, 5, 8]], lambda q, k, v: attention(q, k, v), backward=False)
    yield Case("flash_attention", [[2, 3, 5, 8]], lambda q, k, v: attention(q, k, v, band(5, 5, True, 0)), {"causal": True}, backward=False)
    yield Case("attention_masked", [[2, 4, 3, 2], [2, 2, 5, 2]], lambda q, k, v, mask: attention(q, k, v, mask))
    yield Case("attention_masked", [[2, 4, 3, 2], [2, 2, 5, 2]], lambda q, k, v, mask: attention(q, k, v, mask[:, None]), {"per_sequence": True})
    yield Case("attention_varlen", [[3, 4, 3, 2], [3, 2, 5, 2]], lambda q, k, v, last: attention(q, k, v, up_to(last, 5)), fill={"last": [0, 3, 4]})
    # A row of large finite numbers leaves all keys equal, and a row of -inf leaves none.
    for row in (-1e9, -1e10, -1e20, -1e30, -1e300, -INF):
        mask = [[0.0] * 5, [row] * 5, [0.0, row, 0.5, row, -1.0]]
        yield Case("attention_masked", [[2, 4, 3, 2], [2, 2, 5, 2]], lambda q, k, v, mask: attention(q, k, v, mask).nan_to_num(0), fill={"mask": sum(mask, [])},
                   backward=row > -1e300, note=f"a row of {row}")
    yield Case("attention_paged", [[2, 4, 2], [6, 3, 2, 2], [2, 2]], paged, fill={"table": [3, 0, 5, 2], "last": [4, 1]}, backward=False)
    for interleaved in (False, True):
        yield Case("rope", [[2, 3, 8]], lambda x, i=interleaved: rope(x, 100.0, i), {"base": 100.0, "interleaved": interleaved})
    yield Case("swiglu_packed", [[3, 8]], lambda x: F.silu(x[..., :4]) * x[..., 4:])
    yield Case("geglu_packed", [[3, 8]], lambda x: F.gelu(x[..., :4]) * x[..., 4:])


# --- places ---

def move_cases():
    for axis in (-1, 0, 1):
        yield Case("flip", [[3, 5, 2]], lambda x, a=axis: x.flip(a), {"axis": axis})
        yield Case("concat", [[3, 4, 2], [3, 4, 2]], lambda a, b, d=axis: torch.cat([a, b], d), {"axis": axis})
        yield Case("repeat_interleave", [[3, 5, 2]], lambda x, a=axis: x.repeat_interleave(3, a), {"axis": axis, "times": 3})
        yield Case("roll", [[3, 5, 2]], lambda x, a=axis: x.roll(-2, a), {"axis": axis, "shift": -2})
        yield Case("tile", [[3, 5, 2]], lambda x, a=axis: torch.cat([x] * 3, a), {"axis": axis, "times": 3})
        yield Case("split", [[4, 6, 2]], lambda x, a=axis: x.chunk(2, a), {"axis": axis})
        yield Case("slice", [[5, 6, 7]], lambda x, a=axis: x.transpose(0, a)[1:5:2].transpose(0, a), {"axis": axis, "start": 1, "stop": 5, "step": 2})
        yield Case("pad", [[3, 5, 2]], lambda x, a=axis: F.pad(x.transpose(a, -1), (2, 1), value=1.5).transpose(a, -1), {"axis": axis, "low": 2, "high": 1, "value": 1.5})
        yield Case("transpose", [[3, 5, 2]], lambda x, a=axis: x.transpose(a, 1), {"axis0": axis, "axis1": 1})
        yield Case("index_select", [[5, 6, 7], [4]], lambda x, indices, a=axis: x.index_select(a, indices), {"axis": axis}, {"indices": [1, 3, 1, 0]})
    for axis in (0, 1, 2, -1, -3):
        yield Case("stack", [[3, 5]], lambda a, b, d=axis: torch.stack([a, b], d), {"axis": axis})
    yield Case("permute", [[2, 3, 4, 5]], lambda x: x.permute(3, 0, 2, 1), {"order": "dacb"})
    for upper in (False, True):
        for diagonal in (-2, 0, 1):
            yield Case("triangle", [[2, 4, 5]], lambda x, u=upper, d=diagonal: x.triu(d) if u else x.tril(d), {"upper": upper, "diagonal": diagonal})
    yield Case("embedding", [[5, 3], [2, 4]], lambda indices, table: F.embedding(indices, table), fill={"indices": whole(0, 5)})
    for mean in (False, True):
        yield Case("embedding_bag", [[5, 3], [2, 4]], lambda indices, table, m=mean: F.embedding_bag(indices, table, mode="mean" if m else "sum"), {"mean": mean}, {"indices": whole(0, 5)})
    yield Case("gather", [[3, 5], [3, 7]], lambda x, indices: x.gather(-1, indices), fill={"indices": whole(0, 5)})
    yield Case("scatter_add", [[5, 3], [9]], lambda x, indices, updates: x.index_add(0, indices, updates), fill={"indices": whole(0, 5)})
    yield Case("scatter", [[5, 3], [4]], lambda x, indices, updates: x.index_copy(0, indices, updates), fill={"indices": [3, 0, 4, 1]}, backward=False)
    yield Case("scatter_max", [[5, 3], [9]], lambda x, indices, updates: x.scatter_reduce(0, indices[:, None].expand(-1, 3), updates, "amax"), fill={"indices": whole(0, 5)}, backward=False)
    yield Case("one_hot", [[2, 3]], lambda indices: F.one_hot(indices, 8), fill={"indices": whole(0, 8)}, backward=False)
    yield Case("masked_fill", [[3, 5]], lambda x, mask: x.masked_fill(mask, -2.5), {"value": -2.5})
    for largest in (True, False):
        for fill in ({}, {"x": lambda shape, g: torch.randperm(math.prod(shape), generator=g).double()}):
            yield Case("topk", [[4, 9]], lambda x, b=largest: x.topk(3, largest=b), {"k": 3, "largest": largest}, fill)
        yield Case("topk", [[1, 7]], lambda x, b=largest: x.topk(7, largest=b)[0], {"k": 7, "largest": largest}, {"x": [1, NAN, -INF, 3, INF, 0, 2]}, backward=False, note="special values")
        yield Case("sort", [[4, 9]], lambda x, d=largest: x.sort(dim=-1, descending=d, stable=True), {"descending": largest}, {"x": grid}, note="ties")
        yield Case("sort", [[1, 7]], lambda x, d=largest: x.sort(dim=-1, descending=d, stable=True), {"descending": largest}, {"x": [1, NAN, -INF, 3, INF, NAN, -0.0]}, backward=False, note="special values")


# --- 8-bit floats ---

def float8_cases():
    if not hasattr(torch, "float8_e4m3fn"):
        return
    edges = [0.0, -0.0, 447, 448, 464, 464.5, -465, 480, 1e6, 57344, 61439, 61440, -65536, 2**-9, 2**-10, 1.0625, 1.1875, INF, -INF, NAN]
    for name, dtype in (("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
        limit = torch.finfo(dtype).max
        yield Case("to_float8", [[len(edges)]], lambda x, d=dtype: x.float().to(d).double(), {"format": name}, fill={"x": edges}, backward=False, note="edges")
        yield Case("to_float8", [[64]], lambda x, d=dtype: x.float().to(d).double(), {"format": name}, fill={"x": grid}, backward=False)
        yield Case("to_float8", [[len(edges)]], lambda x, d=dtype, m=limit: x.float().clamp(-m, m).to(d).double(), {"format": name, "saturate": True}, fill={"x": edges}, backward=False, note="edges, saturated")


def all_cases():
    for cases in (pointwise_cases, reduction_cases, norm_cases, loss_cases, optimizer_cases, window_cases, product_cases, move_cases, float8_cases):
        yield from cases()
