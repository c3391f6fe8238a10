"""Level 1: single operators. A row is a number, a name and a function of `d` (problem.py) that
makes the module and its inputs."""

import math

import torch
import torch.nn.functional as F

from .problem import Do, Problem, chain, rand

nn = torch.nn


def _two(function, a, b):
    return Do(function), [rand(*a), rand(*b)]


def _square(function, d):
    return _two(function, (d(4096, 40), d(4096, 40)), (d(4096, 40), d(4096, 40)))


def _symmetric(size):
    def make():
        x = torch.rand(size, size)
        return (x + x.T) / 2

    return make


def _rows(function):
    """A function of a matrix of 4096 × 393216."""
    return lambda d: (Do(function), [rand(d(4096, 6), d(393216, 96))])


def _planes(make, batch=112, space=512):
    """A module on [batch, 64, space, space]; `make` gets the channels."""

    def build(d):
        channels, extent = d(64, 16), d(space, 12)
        return make(channels), [rand(d(batch, 3), channels, extent, extent)]

    return build


def _axis(function):
    """A reduction over axis 1 of [128, 4096, 4095]."""
    return lambda d: (Do(function), [rand(d(128, 3), d(4096, 40), d(4095, 35))])


def _scan(function):
    return lambda d: (Do(function), [rand(d(32768, 5), d(32768, 70))])


def _conv(kind, channels, out, kernel, batch, space, small, **options):
    """A convolution of `channels`, both as (real, small) pairs where they shrink."""

    def build(d):
        extents = [d(*pair) for pair in zip(space, small)]
        count = d(batch, 2)
        module = kind(channels, out, kernel, bias=False, **options)
        return module, [rand(count, channels, *extents)]

    return build


def _exclusive_sum(x):
    sums = torch.cumsum(x.narrow(1, 0, x.size(1) - 1), dim=1)
    return torch.cat((torch.zeros_like(x.select(1, 0).unsqueeze(1)), sums), dim=1)


def _masked(d):
    shape = (d(32768, 5), d(32768, 70))
    mask = lambda: torch.randint(0, 2, shape).bool()
    return Do(lambda x, m: torch.cumsum(x * m, dim=1)), [rand(*shape), mask]


def _new_gelu(x):
    cube = x + 0.044715 * torch.pow(x, 3.0)
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * cube))


def _pair(function, rows=(32768, 12), columns=(32768, 40)):
    """A loss of two matrices; the first is scaled by a random factor."""

    def build(d):
        shape = (d(*rows), d(*columns))
        return Do(function), [lambda: torch.rand(shape) * torch.rand(()), rand(*shape)]

    return build


def _cross_entropy(d):
    rows, classes = d(32768, 12), d(4096, 20)
    target = lambda: torch.randint(0, classes, (rows,))
    return Do(F.cross_entropy), [rand(rows, classes), target]


def _by_products(q, k, v):
    """Attention where PyTorch has no function for it (before 2.0)."""
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    return torch.matmul(torch.softmax(scores, dim=-1), v)


def _attention(d):
    shape = (d(32, 2), d(32, 2), d(512, 20), d(1024, 16))
    return Do(getattr(F, "scaled_dot_product_attention", _by_products)), [rand(*shape)] * 3


def _divergence(d):
    shape = (d(16384, 12), d(16384, 24))
    prediction = lambda: (torch.rand(shape) * torch.rand(())).softmax(dim=-1)
    target = lambda: torch.rand(shape).softmax(dim=-1)
    loss = lambda p, t: F.kl_div(torch.log(p), t, reduction="batchmean")
    return Do(loss), [prediction, target]


def _triplet(d):
    shape = (d(32768, 12), d(8192, 24))
    anchor = lambda: torch.rand(shape) * torch.rand(())
    return nn.TripletMarginLoss(margin=1.0), [anchor, rand(*shape), rand(*shape)]


def _hinge(d):
    rows = d(32768, 24)
    target = lambda: torch.randint(0, 2, (rows,)) * 2 - 1
    loss = lambda p, t: torch.mean(torch.clamp(1 - p * t, min=0))
    return Do(loss), [rand(rows, rows), target]


def _pool(module, shape, small):
    return lambda d: (module, [rand(*(d(*pair) for pair in zip(shape, small)))])


C1, C2, C3 = nn.Conv1d, nn.Conv2d, nn.Conv3d
T1, T2, T3 = nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d


def _product(function, a, b, small_a, small_b):
    pairs = lambda real, small: list(zip(real, small))

    def build(d):
        left = [d(*pair) for pair in pairs(a, small_a)]
        right = [d(*pair) for pair in pairs(b, small_b)]
        return _two(function, left, right)

    return build


_TABLE = [
    (1, "square product", lambda d: _square(torch.matmul, d)),
    (2, "product", _product(torch.matmul, (2048, 8192), (8192, 4096), (24, 48), (48, 32))),
    (3, "batched product", _product(
        torch.bmm, (128, 512, 1024), (128, 1024, 2048), (3, 16, 24), (3, 24, 20))),
    (4, "matrix · vector", _product(
        torch.matmul, (2048, 1048576), (1048576, 1), (24, 200), (200, 1))),
    (5, "matrix · scalar", lambda d: (Do(lambda x: x * 3.14), [rand(d(65536, 9), d(16384, 50))])),
    (6, "product, large K", _product(
        torch.matmul, (256, 524288), (524288, 256), (16, 400), (400, 16))),
    (7, "product, small K", _product(torch.matmul, (32768, 64), (64, 32768), (40, 8), (8, 40))),
    (8, "product, odd extents", _product(
        torch.matmul, (8205, 2949), (2949, 5921), (37, 29), (29, 41))),
    (9, "tall product", _product(torch.matmul, (32768, 32), (32, 32768), (48, 4), (4, 48))),
    (10, "3-D product", _product(
        torch.matmul, (16, 1024, 2048), (2048, 768), (2, 12, 24), (24, 20))),
    (11, "4-D product", _product(
        lambda a, b: torch.einsum("bijl,lk->bijk", a, b),
        (8, 256, 512, 256), (256, 768), (2, 4, 6, 16), (16, 20))),
    (12, "diagonal · matrix", _product(
        lambda a, b: a.unsqueeze(1) * b, (4096,), (4096, 4096), (40,), (40, 40))),
    (13, "symmetric product", lambda d: (
        Do(torch.matmul), [_symmetric(d(4096, 40)), _symmetric(d(4096, 40))])),
    (14, "upper triangular product", lambda d: (
        Do(lambda a, b: torch.triu(torch.matmul(a, b))),
        [lambda: torch.triu(torch.rand(d(4096, 40), d(4096, 40)))] * 2)),
    (15, "lower triangular product", lambda d: (
        Do(lambda a, b: torch.tril(torch.matmul(a, b))),
        [lambda: torch.tril(torch.rand(d(4096, 40), d(4096, 40)))] * 2)),
    (16, "Aᵀ·B", _product(
        lambda a, b: torch.matmul(a.T, b), (8192, 2048), (8192, 4096), (48, 24), (48, 32))),
    (17, "A·Bᵀ", _product(
        lambda a, b: torch.matmul(a, b.T), (2048, 8192), (4096, 8192), (24, 48), (32, 48))),
    (18, "Aᵀ·Bᵀ", _product(
        lambda a, b: torch.matmul(a.T, b.T), (8192, 2048), (4096, 8192), (48, 24), (32, 48))),
    (19, "relu", _rows(torch.relu)),
    (20, "leaky relu", _rows(lambda x: F.leaky_relu(x, negative_slope=0.01))),
    (21, "sigmoid", _rows(torch.sigmoid)),
    (22, "tanh", _rows(torch.tanh)),
    (23, "softmax", _rows(lambda x: torch.softmax(x, dim=1))),
    (24, "log softmax", _rows(lambda x: torch.log_softmax(x, dim=1))),
    (25, "swish", _rows(lambda x: x * torch.sigmoid(x))),
    (26, "gelu", _rows(F.gelu)),
    (27, "selu", _rows(torch.selu)),
    (28, "hard sigmoid", _rows(F.hardsigmoid)),
    (29, "softplus", _rows(F.softplus)),
    (30, "softsign", _rows(lambda x: x / (1 + torch.abs(x)))),
    (31, "elu", _rows(lambda x: F.elu(x, alpha=1.0))),
    (32, "hardtanh", _rows(lambda x: F.hardtanh(x, min_val=-1.0, max_val=1.0))),
    (33, "batch norm", _planes(nn.BatchNorm2d, batch=64)),
    (34, "instance norm", _planes(nn.InstanceNorm2d)),
    (35, "group norm", _planes(lambda channels: nn.GroupNorm(8, channels))),
    (36, "rms norm", _planes(lambda _: Do(
        lambda x: x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5)))),
    (37, "Frobenius norm", _planes(lambda _: Do(lambda x: x / torch.norm(x)))),
    (38, "L1 norm", lambda d: (
        Do(lambda x: x / torch.mean(torch.abs(x), dim=1, keepdim=True)),
        [rand(d(32768, 9), d(65535, 67))])),
    (39, "L2 norm", lambda d: (
        Do(lambda x: x / torch.norm(x, p=2, dim=1, keepdim=True)),
        [rand(d(32768, 9), d(65535, 67))])),
    (40, "layer norm", lambda d: (
        nn.LayerNorm((d(64, 4), d(256, 12), d(256, 12))),
        [rand(d(16, 3), d(64, 4), d(256, 12), d(256, 12))])),
    (41, "max pool 1-D", _pool(nn.MaxPool1d(8, 1, 4, 3), (64, 192, 65536), (2, 6, 50))),
    (42, "max pool 2-D", _pool(nn.MaxPool2d(4, 1, 1, 1), (32, 64, 512, 512), (2, 6, 14, 14))),
    (43, "max pool 3-D", _pool(
        nn.MaxPool3d(3, 2, 1, 3), (16, 32, 128, 128, 128), (2, 3, 10, 12, 14))),
    (44, "average pool 1-D", _pool(nn.AvgPool1d(8, 1, 4), (64, 128, 65536), (2, 6, 50))),
    (45, "average pool 2-D", _pool(nn.AvgPool2d(11), (16, 64, 2048, 2048), (2, 3, 36, 36))),
    (46, "average pool 3-D", _pool(
        nn.AvgPool3d(3, 2, 1), (16, 32, 128, 128, 256), (2, 3, 9, 10, 12))),
    (47, "sum over an axis", _axis(lambda x: torch.sum(x, dim=1, keepdim=True))),
    (48, "mean over an axis", _axis(lambda x: torch.mean(x, dim=1))),
    (49, "max over an axis", _axis(lambda x: torch.max(x, dim=1)[0])),
    (50, "conv 2-D, stride 4", lambda d: (
        C2(3, 96, 11, stride=4, padding=2), [rand(d(256, 1), 3, d(224, 31), d(224, 31))])),
    (51, "argmax", _axis(lambda x: torch.argmax(x, dim=1))),
    (52, "argmin", _axis(lambda x: torch.argmin(x, dim=1))),
    (53, "min over an axis", _axis(lambda x: torch.min(x, dim=1)[0])),
    (54, "conv 3-D", _conv(C3, 3, 64, 3, 16, (64, 64, 64), (6, 6, 7))),
    (55, "conv 2-D", _conv(C2, 64, 128, 3, 8, (512, 1024), (7, 9))),
    (56, "conv 2-D, 5×7", _conv(C2, 64, 128, (5, 7), 8, (512, 256), (9, 10))),
    (57, "transposed conv 2-D", _conv(T2, 64, 64, 3, 8, (1024, 1024), (7, 8))),
    (58, "transposed conv 3-D, 3×5×7", _conv(T3, 32, 16, (3, 5, 7), 16, (16, 32, 64), (3, 4, 5))),
    (59, "conv 3-D, 3×3×1", _conv(C3, 3, 64, (3, 3, 1), 16, (256, 256, 10), (8, 8, 4))),
    (60, "conv 3-D, 3×5×7", _conv(C3, 3, 64, (3, 5, 7), 16, (64, 64, 64), (5, 8, 10))),
    (61, "transposed conv 3-D", _conv(T3, 48, 48, 3, 8, (64, 64, 64), (3, 4, 4))),
    (62, "conv 2-D, 5×9", _conv(C2, 32, 64, (5, 9), 8, (512, 512), (9, 14))),
    (63, "conv 2-D, few channels", _conv(C2, 16, 128, 3, 16, (1024, 1024), (9, 9))),
    (64, "transposed conv 1-D", _conv(T1, 128, 128, 3, 64, (65536,), (20,))),
    (65, "transposed conv 2-D, 3×7", _conv(T2, 64, 64, (3, 7), 8, (512, 512), (6, 7))),
    (66, "conv 3-D, odd input", _conv(C3, 3, 64, (3, 5, 7), 8, (16, 128, 128), (5, 8, 10))),
    (67, "conv 1-D", _conv(C1, 64, 128, 3, 32, (131072,), (30,))),
    (68, "transposed conv 3-D, 3×5×5", _conv(T3, 32, 64, (3, 5, 5), 16, (64, 64, 64), (3, 4, 4))),
    (69, "transposed conv 2-D, 3×5", _conv(T2, 64, 128, (3, 5), 64, (128, 256), (6, 7))),
    (70, "transposed conv 3-D, wide", _conv(T3, 48, 24, 3, 8, (96, 96, 96), (3, 4, 5))),
    (71, "transposed conv 2-D, odd input", _conv(T2, 32, 32, 3, 8, (512, 1024), (6, 9))),
    (72, "transposed conv 3-D, groups, strided", _conv(
        T3, 32, 32, (3, 5, 7), 8, (12, 24, 48), (3, 4, 5), stride=2, padding=(1, 2, 3),
        output_padding=1, groups=4)),
    (73, "transposed conv 3-D, groups", _conv(
        T3, 32, 32, 3, 4, (32, 64, 128), (3, 4, 5), stride=2, padding=1, groups=4)),
    (74, "transposed conv 1-D, dilated", _conv(T1, 32, 64, 5, 32, (131072,), (30,), dilation=3)),
    (75, "transposed conv 2-D, all options", _conv(
        T2, 32, 64, (3, 5), 16, (128, 256), (5, 6), stride=(2, 3), padding=(1, 2),
        dilation=(2, 1), groups=4)),
    (76, "conv 1-D, strided, dilated", _conv(
        C1, 64, 128, 3, 64, (524280,), (60,), stride=3, dilation=4)),
    (77, "transposed conv 3-D, strided, dilated", _conv(
        T3, 32, 64, 3, 16, (16, 32, 32), (3, 4, 4), stride=2, padding=1, dilation=2)),
    (78, "transposed conv 2-D, padded", _conv(
        T2, 32, 32, (3, 7), 8, (512, 1024), (6, 9), padding=(1, 3))),
    (79, "transposed conv 1-D, strided, dilated", _conv(
        T1, 32, 64, 3, 16, (131072,), (30,), stride=2, padding=1, dilation=2)),
    (80, "conv 2-D, dilated", _conv(
        C2, 32, 64, (5, 9), 8, (512, 512), (9, 27), padding=(2, 4), dilation=(2, 3))),
    (81, "transposed conv 2-D, stride 5", _conv(
        T2, 32, 64, 3, 16, (64, 128), (4, 5), stride=5, padding=1, dilation=2)),
    (82, "depthwise conv", _conv(C2, 64, 64, 3, 16, (512, 512), (9, 9), groups=64)),
    (83, "depthwise conv, 3×1", _conv(C2, 8, 8, (3, 1), 64, (512, 512), (9, 9), groups=8)),
    (84, "depthwise conv, wide", _conv(C2, 128, 128, 3, 64, (256, 512), (7, 9), groups=128)),
    (85, "depthwise conv, 3×7", _conv(C2, 128, 128, (3, 7), 32, (128, 256), (7, 9), groups=128)),
    (86, "separable conv", lambda d: (
        chain(C2(64, 64, 3, padding=1, groups=64, bias=False), C2(64, 128, 1, bias=False)),
        [rand(d(16, 2), 64, d(512, 7), d(512, 8))])),
    (87, "pointwise conv", _conv(C2, 64, 128, 1, 16, (1024, 1024), (9, 9))),
    (88, "new gelu", lambda d: (Do(_new_gelu), [rand(d(8192, 9), d(8192, 50))])),
    (89, "cumulative sum", _scan(lambda x: torch.cumsum(x, dim=1))),
    (90, "cumulative product", _scan(lambda x: torch.cumprod(x, dim=1))),
    (91, "reverse cumulative sum", _scan(lambda x: torch.cumsum(x.flip(1), dim=1).flip(1))),
    (92, "exclusive cumulative sum", _scan(_exclusive_sum)),
    (93, "masked cumulative sum", _masked),
    (94, "mse loss", _pair(lambda p, t: torch.mean((p - t) ** 2))),
    (95, "cross entropy", _cross_entropy),
    (96, "Huber loss", _pair(F.smooth_l1_loss)),
    (97, "attention", _attention),
    (98, "KL divergence", _divergence),
    (99, "triplet loss", _triplet),
    (100, "hinge loss", _hinge),
]  # fmt: skip

ROWS = [Problem(1, number, name, build) for number, name, build in _TABLE]
