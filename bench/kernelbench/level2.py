"""Level 2: a product or a convolution and what follows it. A row is a number, a name and a function
of `d` (problem.py) that makes the module and its inputs."""

import torch
import torch.nn.functional as F

from .problem import Around, Do, Learned, Problem, chain, rand

nn = torch.nn
relu, sigmoid, tanh = torch.relu, torch.sigmoid, torch.tanh
gelu, mish, hardswish, leaky = F.gelu, F.mish, F.hardswish, F.leaky_relu
C2, C3, T2, T3 = nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d


def swish(x):
    return sigmoid(x) * x


def times(factor):
    return lambda x: x * factor


def plus(term):
    return lambda x: x + term


def over(divisor):
    return lambda x: x / divisor


def clamp(low, high):
    return lambda x: torch.clamp(x, min=low, max=high)


def hardtanh(low, high):
    return lambda x: F.hardtanh(x, min_val=low, max_val=high)


def softmax(axis):
    return lambda x: torch.softmax(x, dim=axis)


def log_sum_exp(axis=1, keep=True):
    return lambda x: torch.logsumexp(x, dim=axis, keepdim=keep)


def mean(*axes):
    return lambda x: torch.mean(x, dim=axes, keepdim=True)


def total(*axes, keep=True):
    return lambda x: torch.sum(x, dim=axes, keepdim=keep)


def least(axis, keep=True):
    return lambda x: torch.min(x, dim=axis, keepdim=keep)[0]


def most(axis, keep=True):
    return lambda x: torch.max(x, dim=axis, keepdim=keep)[0]


def at_most(value):
    return lambda x: torch.min(x, torch.tensor(value, device=x.device))


def add(*shape):
    return Learned(lambda x, p: x + p, shape)


def subtract(*shape):
    return Learned(lambda x, p: x - p, shape)


def scale(*shape, value=None):
    return Learned(lambda x, p: x * p, shape, value)


def in_rows(pool):
    """A pooling along the rows of a matrix."""
    return chain(lambda x: x.unsqueeze(1), pool, lambda x: x.squeeze(1))


def _conv(layer, batch, space, small, *steps):
    """A convolution on [batch, channels, space…]; a step is a module or a function of tensors."""

    def build(d):
        extents = [d(*pair) for pair in zip(space, small)]
        conv = layer()
        return chain(conv, *(step() if isinstance(step, _Late) else step for step in steps)), [
            rand(d(batch, 2), conv.in_channels, *extents)
        ]

    return build


class _Late:
    """A step that is a module: made with each problem, since it has parameters of its own."""

    def __init__(self, make):
        self.make = make

    def __call__(self):
        return self.make()


def L(function, *arguments, **options):  # noqa: N802
    return _Late(lambda: function(*arguments, **options))


def _linear(batch, inner, outer, *steps, bias=True):
    """A linear layer on [batch, inner]. `inner` and `outer` are (real, small); a step may be a
    function of (d, features) in `_Of`."""

    def build(d):
        features = d(*outer)
        made = [step.make(d, features) if isinstance(step, _Of) else step for step in steps]
        layer = nn.Linear(d(*inner), features, bias=bias)
        return chain(layer, *made), [rand(d(batch, 5), d(*inner))]

    return build


class _Of:
    """A step that depends on the number of features."""

    def __init__(self, make):
        self.make = make


def N(make):  # noqa: N802
    return _Of(lambda d, features: make(features))


def groups(real, small):
    return _Of(lambda d, features: nn.GroupNorm(d(real, small), features))


WIDE = (8192, 64)
HUGE = (32768, 96)
LARGE = (16384, 80)
MIDDLE = (4096, 64)
BATCH_NORM = N(nn.BatchNorm1d)


def _row_norm_of_two(d):
    """28: the norm of a product's rows, then a residual and a product with the second input."""

    class Model(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.product, self.norm = nn.Linear(inner, outer), nn.InstanceNorm2d(outer)

        def forward(self, x, y):
            x = self.norm(self.product(x).unsqueeze(1).unsqueeze(1)).squeeze(1).squeeze(1)
            return (x + y) * y

    features = d(*WIDE)
    rows = d(1024, 5)
    return Model(features, features), [rand(rows, features), rand(rows, features)]


def _transposed_and_added(d):
    """26: y = conv(x) + input, times its hardswish. The published one has a bias it never uses."""

    def after(x, y, more):
        y = y + more
        return y * hardswish(y)

    count, extent = d(128, 2), d(16, 4)
    module = Around(T3(32, 64, 3, 2, 1, 1), after)
    return module, [
        rand(count, 32, extent, extent, extent),
        rand(count, 64, 2 * extent, 2 * extent, 2 * extent),
    ]


def _residual_chain(x, bias):
    return ((x + bias) + x) * x + x


def _softmax_of_positions(x):
    batch, channels = x.shape[:2]
    return torch.softmax(x.reshape(batch, channels, -1), dim=2).reshape(x.shape)


def _pool_first(d):
    """38: the pooling stands before the convolution."""
    extents = [d(32, 4), d(64, 6), d(64, 6)]
    module = chain(
        nn.AvgPool3d(2),
        T3(32, 64, 3, 2, 1, 1),
        clamp(0.0, 1.0),
        _softmax_of_positions,
        scale(1, 64, 1, 1, 1, value=1.0),
    )
    return module, [rand(d(32, 2), 32, *extents)]


def _last_axis(layer, *steps):
    """3 and 34: a layer norm over the last axis of [32, 32, 16, 32, 32], which the transposed
    convolution doubles."""

    def build(d):
        width = d(32, 6)
        made = [step.make(d, 2 * width) if isinstance(step, _Of) else step for step in steps]
        return chain(layer(), *made), [rand(d(32, 2), 32, d(16, 3), d(32, 4), width)]

    return build


def _around_norm(d):
    """92: conv + hardswish(tanh(norm(conv)))."""
    inner = chain(nn.GroupNorm(16, 64), nn.Tanh(), nn.Hardswish())
    module = chain(C2(8, 64, 3), Around(inner, lambda x, y: x + y), log_sum_exp())
    return module, [rand(d(128, 2), 8, d(128, 9), d(128, 9))]


def _mean_and_residual(d):
    """51: the mean of a row of the product, added to the input's row."""
    features = d(*WIDE)
    inner = chain(nn.Linear(features, features), subtract(features), mean(1), log_sum_exp(), gelu)
    return Around(inner, lambda x, y: y + x), [rand(d(2048, 5), features)]


def _two_products(d):
    hidden = d(4096, 48)
    module = chain(
        nn.Linear(d(2048, 32), hidden), sigmoid, nn.Linear(hidden, d(1024, 24)),
        log_sum_exp(keep=False),
    )  # fmt: skip
    return module, [rand(d(16384, 5), d(2048, 32))]


def _sum_of_product(d):
    """14: the weight is a parameter, drawn from N(0, 1)."""
    features = d(*WIDE)
    product = Learned(lambda x, w: torch.matmul(x, w.T), (features, features))
    return chain(product, over(2.0), total(1), times(1.5)), [rand(d(1024, 5), features)]


def _scaled_swish(x):
    return x * torch.clamp((x + 3) / 6, 0, 1)


def _sigmoid_sixth(x):
    return x * sigmoid(x + 3) / 6


def _minus_mean(x):
    return x - x.mean(dim=1, keepdim=True)


_S128 = (128, 128)
_S256 = (256, 256)
_D16 = (16, 32, 32)
_little2, _little3 = (9, 9), (6, 7, 7)
_few2, _few3 = (5, 6), (3, 4, 4)

_TABLE = [
    (1, "conv relu bias", _conv(L(C2, 64, 128, 3), 128, _S128, _little2, relu, L(add, 128, 1, 1))),
    (2, "transposed bias clamp scale clamp divide", _conv(
        L(T2, 64, 64, 3, 2, 1, 1), 128, _S128, _few2, L(add, 64, 1, 1), clamp(0.0, 1.0),
        times(2.0), clamp(0.0, 1.0), over(2.0))),
    (3, "transposed sum norm pool gelu", _last_axis(
        L(T3, 32, 64, 3, 2, 1, 1), _Of(lambda d, n: Learned(
            lambda x, p: x + p, (), 1.0)), N(nn.LayerNorm), nn.AvgPool3d(2), nn.GELU())),
    (4, "conv mish mish", _conv(L(C2, 64, 128, 3), 64, _S256, _little2, mish, mish)),
    (5, "transposed subtract tanh", _conv(
        L(T2, 64, 64, 4, 2, 1, 1), 32, _S256, _few2, L(subtract, 64, 1, 1), tanh)),
    (6, "conv softmax pool pool", _conv(
        L(C3, 3, 16, 3), 128, _D16, (7, 10, 10), softmax(1), nn.MaxPool3d(2), nn.MaxPool3d(2))),
    (7, "conv relu leaky gelu sigmoid bias", _conv(
        L(C3, 8, 32, 3), 64, (32, 64, 64), _little3, relu, lambda x: leaky(x, 0.01), gelu, sigmoid,
        L(add, 32, 1, 1, 1))),
    (8, "conv divide pool mean bias sum", _conv(
        L(C3, 8, 16, 3), 128, (16, 64, 64), (7, 8, 8), over(2.0), nn.MaxPool3d(2),
        nn.AdaptiveAvgPool3d((1, 1, 1)), L(add, 16, 1, 1, 1), total(1, keep=False))),
    (9, "product subtract scale relu", _linear(
        1024, WIDE, WIDE, plus(-2.0), times(1.5), relu)),
    (10, "transposed pool hardtanh mean tanh", _conv(
        L(T2, 64, 64, 3, 1, 1), 128, _S256, (6, 8), nn.MaxPool2d(2, 2), nn.Hardtanh(-1, 1),
        mean(2, 3), tanh)),
    (11, "transposed norm tanh pool norm", _conv(
        L(T2, 64, 128, 5, 1, 1), 512, (32, 32), (6, 6), L(nn.BatchNorm2d, 128), nn.Tanh(),
        nn.MaxPool2d(2, 2), L(nn.GroupNorm, 8, 128))),
    (12, "product scale leaky", _linear(1024, WIDE, WIDE, times(2.0), nn.LeakyReLU(0.1))),
    (13, "transposed mean add softmax tanh scale", _conv(
        L(T3, 16, 64, 3, 1, 1), 16, (32, 128, 128), _few3, mean(2), L(add, 1, 64, 1, 1, 1),
        softmax(1), tanh, times(2.0))),
    (14, "product divide sum scale", _sum_of_product),
    (15, "transposed norm minus mean", _conv(
        L(T3, 16, 32, 3, 2, 1), 16, _D16, _few3, L(nn.BatchNorm3d, 32),
        lambda x: x - torch.mean(x, dim=(2, 3, 4), keepdim=True))),
    (16, "transposed mish add hardtanh scale", _conv(
        L(T2, 64, 64, 3, 2, 1, 1), 128, _S128, _few2, mish, plus(0.5), hardtanh(-1, 1),
        times(2))),
    (17, "conv instance norm divide", _conv(
        L(C2, 64, 128, 3), 128, _S128, _little2, nn.InstanceNorm2d(128), over(2.0))),
    (18, "product sum max mean logsumexp twice", _linear(
        1024, WIDE, WIDE, total(1), most(1), mean(1), log_sum_exp(), log_sum_exp())),
    (19, "transposed gelu group norm", _conv(
        L(T2, 64, 64, 3), 128, _S256, _few2, gelu, L(nn.GroupNorm, 8, 64))),
    (20, "transposed residuals", _conv(
        L(T3, 32, 64, 3, 2, 1, 1), 16, _D16, _few3, L(Learned, _residual_chain, (64, 1, 1, 1)))),
    (21, "conv add scale sigmoid group norm", _conv(
        L(C2, 8, 32, 3), 128, _S256, _little2, L(add, 32, 1, 1), L(scale, 32, 1, 1), sigmoid,
        L(nn.GroupNorm, 8, 32))),
    (22, "product scale residual clamp logsumexp mish", _linear(
        1024, WIDE, WIDE, times(2.0), lambda x: x + x, clamp(-10.0, 10.0), log_sum_exp(),
        lambda x: x * mish(x))),
    (23, "conv group norm mean", _conv(
        L(C3, 3, 24, 3), 128, (24, 32, 32), _little3, L(nn.GroupNorm, 8, 24),
        lambda x: x.mean(dim=[1, 2, 3, 4]))),
    (24, "conv min softmax", _conv(
        L(C3, 3, 24, 3), 128, (24, 32, 32), _little3, least(2, keep=False), softmax(1))),
    (25, "conv min tanh tanh", _conv(
        L(C2, 16, 64, 3), 128, _S256, _little2, least(1), tanh, tanh)),
    (26, "transposed add hardswish", _transposed_and_added),
    (27, "conv hardswish group norm mean", _conv(
        L(C3, 3, 16, 4), 1024, _D16, _little3, hardswish, L(nn.GroupNorm, 4, 16),
        lambda x: torch.mean(x, dim=[2, 3, 4]))),
    (28, "product norm residual scale", _row_norm_of_two),
    (29, "product mish mish", _linear(1024, WIDE, WIDE, mish, mish)),
    (30, "product group norm hardtanh", _linear(
        1024, WIDE, WIDE, groups(16, 4), nn.Hardtanh(-2.0, 2.0))),
    (31, "conv min add scale", _conv(
        L(C2, 64, 128, 3), 128, _S128, _little2, at_most(0.5), L(add, 128, 1, 1), times(2.0))),
    (32, "conv scale min", _conv(L(C2, 64, 128, 3), 64, _S256, _little2, times(2.0), least(1))),
    (33, "product scale batch norm", _linear(1024, WIDE, WIDE, N(scale), BATCH_NORM)),
    (34, "transposed layer norm gelu scale", _last_axis(
        L(T3, 32, 64, 4, 2, 1), N(nn.LayerNorm), gelu, times(1.0))),
    (35, "conv subtract hardswish pool mish", _conv(
        L(C2, 64, 128, 3), 128, _S128, _little2, plus(-0.5), hardswish, nn.MaxPool2d(2), mish)),
    (36, "transposed min sum gelu add", _conv(
        L(T2, 64, 128, 3, 2, 1, 1), 16, _S128, _few2, least(1), total(2), gelu,
        L(add, 1, 1, 1))),
    (37, "product swish sum group norm", _linear(
        32768, (1024, 32), MIDDLE, swish, N(add), groups(64, 8))),
    (38, "pool transposed clamp softmax scale", _pool_first),
    (39, "product scale batch norm, tall", _linear(16384, MIDDLE, MIDDLE, N(scale), BATCH_NORM)),
    (40, "product scale residual", _linear(
        16384, MIDDLE, MIDDLE, lambda x: x * 0.5 + x.clone().detach())),
    (41, "product batch norm gelu relu", _linear(16384, MIDDLE, MIDDLE, BATCH_NORM, gelu, relu)),
    (42, "transposed mean bias logsumexp sum scale", _conv(
        L(T2, 64, 128, 3), 16, (512, 512), _few2, mean(2, 3), L(add, 128, 1, 1), log_sum_exp(),
        total(2, 3, keep=False), times(10.0))),
    (43, "conv pool logsumexp relu", _conv(
        L(C3, 32, 64, 3, 1, 1), 4, (32, 128, 128), (4, 6, 6), nn.MaxPool3d(2, 2), log_sum_exp(),
        relu)),
    (44, "transposed scale mean mean", _conv(
        L(T2, 64, 128, 3, 2, 1, 1), 16, _S128, _few2, times(0.5), mean(2, 3), mean(2, 3))),
    (45, "product sigmoid product logsumexp", _two_products),
    (46, "conv subtract tanh subtract pool", _conv(
        L(C2, 64, 128, 3), 128, _S128, _little2, plus(-0.5), tanh, plus(-0.2),
        nn.AvgPool2d(2))),
    (47, "conv mish tanh", _conv(L(C3, 32, 64, 3), 16, (32, 64, 64), (5, 6, 6), mish, tanh)),
    (48, "conv scale tanh scale sigmoid", _conv(
        L(C3, 3, 16, 3), 128, (16, 64, 64), _little3, L(scale, 16, 1, 1, 1), tanh,
        L(scale, 16, 1, 1, 1), sigmoid)),
    (49, "transposed softmax sigmoid", _conv(
        L(T3, 32, 64, 3, 2, 1, 1), 16, _D16, _few3, nn.Softmax(dim=1), nn.Sigmoid())),
    (50, "transposed scale pool bias scale", _conv(
        L(T3, 3, 16, 3, 2, 1), 128, _D16, _few3, L(scale, value=0.5), nn.AvgPool3d(2),
        L(add, 16, 1, 1, 1), L(scale, value=1.0))),
    (51, "product subtract mean logsumexp gelu residual", _mean_and_residual),
    (52, "conv activation batch norm", _conv(
        L(C2, 64, 128, 3), 64, _S128, _little2, lambda x: torch.multiply(tanh(F.softplus(x)), x),
        L(nn.BatchNorm2d, 128))),
    (53, "product scale hardtanh gelu", _linear(
        2048, WIDE, WIDE, times(0.5), nn.Hardtanh(-2, 2), nn.GELU())),
    (54, "conv scale leaky gelu", _conv(
        L(C2, 64, 64, 3), 64, _S256, _little2, L(scale, 64, 1, 1), nn.LeakyReLU(), gelu)),
    (55, "product pool sum scale", _linear(
        128, HUGE, HUGE, in_rows(nn.MaxPool1d(2)), total(1, keep=False), times(0.5))),
    (56, "product sigmoid sum", _linear(128, HUGE, HUGE, sigmoid, total(1))),
    (57, "conv relu hardswish", _conv(
        L(C2, 8, 64, 3), 128, _S128, _little2, relu, _scaled_swish)),
    (58, "transposed logsumexp swish subtract clamp", _conv(
        L(T3, 3, 16, 3, 2, 1), 128, _D16, _few3, log_sum_exp(), _sigmoid_sixth,
        L(subtract, 1, 1, 1, 1), clamp(-1, 1))),
    (59, "product swish scale", _linear(128, HUGE, HUGE, swish, times(2.0))),
    (60, "transposed swish group norm hardswish", _conv(
        L(T3, 3, 16, 3, 2, 1), 128, _D16, _few3, swish, L(nn.GroupNorm, 4, 16, eps=1e-5),
        hardswish)),
    (61, "transposed relu group norm", _conv(
        L(T3, 64, 128, 3, bias=False), 16, (32, 32, 32), _few3, nn.ReLU(),
        L(nn.GroupNorm, 8, 128))),
    (62, "product group norm leaky sum", _linear(
        1024, WIDE, WIDE, groups(512, 4), nn.LeakyReLU(0.01), lambda x: x + x)),
    (63, "product relu divide", _linear(1024, WIDE, WIDE, relu, over(2.0))),
    (64, "product logsumexp leaky leaky gelu gelu", _linear(
        1024, WIDE, WIDE, log_sum_exp(), lambda x: leaky(x, 0.01), lambda x: leaky(x, 0.01), gelu,
        gelu)),
    (65, "conv pool sigmoid sum", _conv(
        L(C2, 8, 64, 3), 128, (384, 384), (10, 11), nn.AvgPool2d(4), sigmoid,
        total(1, 2, 3, keep=False))),
    (66, "product dropout softmax", _linear(128, LARGE, LARGE, nn.Dropout(0.2), softmax(1))),
    (67, "conv gelu mean", _conv(
        L(C2, 8, 64, 3), 128, _S256, _little2, gelu, lambda x: F.adaptive_avg_pool2d(x, 1),
        lambda x: x.squeeze(-1).squeeze(-1))),
    (68, "product min subtract", _linear(128, LARGE, LARGE, _Of(lambda d, n: Learned(
        lambda x, p: torch.min(x, p) - p, (), 2.0)))),
    (69, "conv hardswish relu", _conv(L(C2, 8, 64, 3), 128, _S128, _little2, hardswish, relu)),
    (70, "product sigmoid scale residual", _linear(
        1024, WIDE, WIDE, lambda x: sigmoid(x) * 2.0 + x)),
    (71, "conv divide leaky", _conv(
        L(C2, 8, 64, 3), 128, _S128, _little2, over(2), lambda x: leaky(x, 0.01))),
    (72, "transposed batch norm pool pool", _conv(
        L(T3, 3, 16, 3, 2, 1), 64, (32, 32, 32), _few3, L(nn.BatchNorm3d, 16), nn.AvgPool3d(2),
        nn.AvgPool3d(2))),
    (73, "conv batch norm scale", _conv(
        L(C2, 8, 64, 3), 128, _S128, _little2, L(nn.BatchNorm2d, 64), times(2.0))),
    (74, "transposed leaky scale leaky pool", _conv(
        L(T3, 16, 32, 3, 2, 1, 1), 16, _D16, _few3, nn.LeakyReLU(0.2), L(scale, 32, 1, 1, 1),
        nn.LeakyReLU(0.2), nn.MaxPool3d(2))),
    (75, "product group norm min bias", _linear(
        1024, WIDE, WIDE, groups(512, 4), least(1), N(lambda n: add(1, n, 1, 1)))),
    (76, "product add relu", _linear(1024, WIDE, WIDE, N(add), relu, bias=False)),
    (77, "transposed scale batch norm mean", lambda d: _conv(
        L(T3, d(64, 16), d(128, 24), 5), 16, _D16, (2, 3, 3), times(2.0),
        L(nn.BatchNorm3d, d(128, 24)), nn.AdaptiveAvgPool3d((1, 1, 1)))(d)),
    (78, "transposed pool pool sum", _conv(
        L(T3, 32, 64, 5, 2, 2), 16, (32, 32, 32), (4, 4, 5), nn.MaxPool3d(2), nn.MaxPool3d(3),
        total(1))),
    (79, "conv scale instance norm clamp scale max", lambda d: _scaled_twice(d)),
    (80, "product max subtract gelu", _linear(1024, WIDE, WIDE, most(1), _minus_mean, gelu)),
    (81, "product swish divide clamp tanh clamp", _linear(
        1024, WIDE, WIDE, swish, over(2.0), clamp(-1.0, 1.0), tanh, clamp(-1.0, 1.0))),
    (82, "conv tanh scale bias pool", _conv(
        L(C2, 8, 64, 3), 128, _S256, (10, 11), tanh, times(2.0), L(add, 64, 1, 1),
        nn.MaxPool2d(4))),
    (83, "conv group norm min clamp dropout", _conv(
        L(C3, 3, 16, 3), 128, (16, 64, 64), _little3, L(nn.GroupNorm, 8, 16), at_most(0.0),
        clamp(0.0, 1.0), nn.Dropout(0.2))),
    (84, "product batch norm scale softmax", _linear(
        1024, WIDE, WIDE, BATCH_NORM, _Of(lambda d, n: scale(1, value=1.0)), nn.Softmax(dim=1))),
    (85, "conv group norm scale pool clamp", _conv(
        L(C2, 8, 64, 3), 128, _S128, (10, 11), L(nn.GroupNorm, 16, 64),
        L(scale, 64, 1, 1, value=1.0), nn.MaxPool2d(4), clamp(0.0, 1.0))),
    (86, "product divide gelu", _linear(1024, WIDE, WIDE, over(10.0), gelu)),
    (87, "conv subtract subtract mish", _conv(
        L(C2, 8, 64, 3), 128, _S256, _little2, plus(-0.5), plus(-0.2), mish)),
    (88, "product group norm swish scale swish", _linear(
        1024, WIDE, WIDE, groups(256, 4), swish, N(scale), swish)),
    (89, "transposed pool softmax subtract swish max", _conv(
        L(T3, 3, 16, 3, 2, 1, 1), 128, _D16, _few3, nn.MaxPool3d(2, 2, 0), softmax(1),
        L(Learned, lambda x, p: x - p.view(1, -1, 1, 1, 1), (16,)), swish, most(1, keep=False))),
    (90, "conv leaky sum clamp gelu", _conv(
        L(C3, 8, 64, 3), 128, (16, 64, 64), _little3, lambda x: leaky(x, 0.2),
        L(add, 64, 1, 1, 1), clamp(-1.0, 1.0), gelu)),
    (91, "transposed softmax bias scale sigmoid", _conv(
        L(T2, 64, 128, 4, 2, 1, 1), 128, (64, 64), _few2, softmax(1), L(add, 128, 1, 1),
        times(2.0), sigmoid)),
    (92, "conv group norm tanh hardswish residual logsumexp", _around_norm),
    (93, "transposed add min gelu scale", _conv(
        L(T2, 64, 128, 4, 2), 128, (64, 64), _few2, plus(0.5), at_most(0.0), gelu, times(2.0))),
    (94, "product bias hardtanh mish group norm", _linear(
        1024, WIDE, WIDE, N(add), nn.Hardtanh(), nn.Mish(), groups(256, 4))),
    (95, "product add swish tanh gelu hardtanh", _linear(
        1024, WIDE, WIDE, N(add), swish, tanh, gelu, hardtanh(-1, 1))),
    (96, "transposed scale pool mean clamp", _conv(
        L(T3, 3, 16, 3, 2, 1), 128, _D16, _few3, times(0.5), nn.MaxPool3d(2),
        nn.AdaptiveAvgPool3d((1, 1, 1)), clamp(0, 1))),
    (97, "product batch norm bias divide swish", _linear(
        1024, WIDE, WIDE, BATCH_NORM, _Of(lambda d, n: add(1)), over(1.0), swish)),
    (98, "product pool gelu scale max", _linear(
        1024, WIDE, WIDE, _Of(lambda d, n: in_rows(nn.AvgPool1d(d(16, 4)))), gelu, times(2.0),
        most(1, keep=False))),
    (99, "product gelu softmax", _linear(1024, WIDE, WIDE, gelu, softmax(1))),
    (100, "transposed clamp divide", _conv(
        L(T3, 64, 128, 3, 2, 1), 16, (24, 48, 48), _few3, clamp(-1.0, None), over(2.0))),
]  # fmt: skip


def _scaled_twice(d):
    """79: one parameter scales twice, before and after the norm."""

    def after(x, p):
        normed = F.instance_norm(x * p)
        return torch.max(torch.clamp(normed, -1.0, 1.0) * p, dim=1)[0]

    module = chain(C3(3, 16, 3), Learned(after, (16, 1, 1, 1)))
    return module, [rand(d(128, 2), 3, d(16, 6), d(32, 7), d(32, 7))]


ROWS = [Problem(2, number, name, build) for number, name, build in _TABLE]
