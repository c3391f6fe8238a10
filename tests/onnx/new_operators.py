"""Operators that are newer than the onnx package at hand, or whose tests it lacks: name, opset,
attributes, inputs (None is left out), and the results that numpy computes."""

import math

import numpy as np

rng = np.random.default_rng(7)


def real(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def softmax(x):
    grown = np.exp(x - x.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


def scores_of(q, k, scale, group):
    return np.einsum("bhqd,bhkd->bhqk", q, np.repeat(k, group, 1)) * scale


def attention_cases():
    q, k, v = real(2, 4, 3, 8), real(2, 4, 5, 8), real(2, 4, 5, 6)
    scores = scores_of(q, k, 1 / math.sqrt(8), 1)
    yield "Attention", 23, {}, [q, k, v], softmax(scores) @ v
    mask = rng.integers(0, 2, (3, 5)).astype(bool)
    mask[:, 0] = True
    yield "Attention", 23, {}, [q, k, v, mask], softmax(np.where(mask, scores, -np.inf)) @ v
    bias = real(2, 1, 3, 5)
    capped = np.tanh(scores / 0.5) * 0.5
    for mode, wanted in enumerate([scores, capped, capped + bias, softmax(capped + bias)]):
        yield (
            "Attention",
            24,
            {"softcap": 0.5, "qk_matmul_output_mode": mode},
            [q, k, v, bias],
            [softmax(capped + bias) @ v, None, None, wanted],
        )
    few = real(3, 4)
    padded = np.concatenate([few, np.full((3, 1), -np.inf, np.float32)], 1)
    yield "Attention", 24, {}, [q, k, v, few], softmax(scores + padded) @ v
    # Three axes, groups of heads, and keys of earlier calls.
    flat = [real(2, 3, 32), real(2, 3, 16), real(2, 3, 16)]
    past = [real(2, 2, 4, 8), real(2, 2, 4, 8)]
    heads = [a.reshape(2, 3, -1, 8).transpose(0, 2, 1, 3) for a in flat]
    keys, values = (np.concatenate([p, h], 2) for p, h in zip(past, heads[1:]))
    grouped = scores_of(heads[0], keys, 0.4, 2)
    causal = np.where(np.arange(7) <= np.arange(3)[:, None] + 4, grouped, -np.inf)
    y = softmax(causal) @ np.repeat(values, 2, 1)
    yield (
        "Attention",
        23,
        {"q_num_heads": 4, "kv_num_heads": 2, "is_causal": 1, "scale": 0.4},
        flat + [None] + past,
        [y.transpose(0, 2, 1, 3).reshape(2, 3, 32), keys, values],
    )
    # Caches of which each batch has filled a part.
    filled = np.array([3, 5], np.int64)
    ends = (filled - 3).reshape(2, 1, 1, 1)
    seen = np.arange(5) <= np.arange(3)[:, None] + ends
    yield (
        "Attention",
        24,
        {"is_causal": 1},
        [q, k, v, None, None, None, filled],
        softmax(np.where(seen, scores, -np.inf)) @ v,
    )


def turned(x, cosine, sine):
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cosine - b * sine, a * sine + b * cosine], -1)


def rotary_cases():
    x, cosine, sine = real(2, 3, 4, 8), real(10, 4), real(10, 4)
    at = rng.integers(0, 10, (2, 4))
    c, s = cosine[at][:, None], sine[at][:, None]
    yield "RotaryEmbedding", 23, {}, [x, cosine, sine, at], turned(x, c, s)
    apart = np.concatenate([x[..., 0::2], x[..., 1::2]], -1)
    pairs = np.stack(np.split(turned(apart, c, s), 2, -1), -1).reshape(x.shape)
    yield "RotaryEmbedding", 23, {"interleaved": 1}, [x, cosine, sine, at], pairs
    flat = x.transpose(0, 2, 1, 3).reshape(2, 4, 24)
    part = np.concatenate([turned(x[..., :4], c[..., :2], s[..., :2]), x[..., 4:]], -1)
    yield (
        "RotaryEmbedding",
        23,
        {"num_heads": 3, "rotary_embedding_dim": 4},
        [flat, cosine[at][..., :2], sine[at][..., :2]],
        part.transpose(0, 2, 1, 3).reshape(2, 4, 24),
    )


def linear_attention(q, k, v, state, decay, beta, scale):
    outputs = []
    for t in range(q.shape[2]):
        state = state * np.exp(decay[:, :, t])[..., None]
        value = beta[:, :, t] * (v[:, :, t] - np.einsum("bhdm,bhd->bhm", state, k[:, :, t]))
        state = state + k[:, :, t, :, None] * value[:, :, None]
        read = np.repeat(state, q.shape[1] // k.shape[1], 1)
        outputs.append(scale * np.einsum("bhd,bhdm->bhm", q[:, :, t], read))
    return np.stack(outputs, 1).reshape(q.shape[0], q.shape[2], -1), state


def state_cases():
    q, k, v = real(1, 3, 8) * 0.5, real(1, 3, 4) * 0.5, real(1, 3, 6)
    decay, beta, state = -abs(real(1, 3, 2)), abs(real(1, 3, 2)), real(1, 2, 2, 3)

    def heads(x, n):
        return x.reshape(1, 3, n, -1).transpose(0, 2, 1, 3)

    given = heads(q, 4), heads(k, 2), heads(v, 2), state, heads(decay, 2), heads(beta, 2), 0.5
    yield (
        "LinearAttention",
        27,
        {"q_num_heads": 4, "kv_num_heads": 2, "scale": 0.5},
        [q, k, v, state, decay, beta],
        list(linear_attention(*given)),
    )
    x, w, bias, past = real(2, 3, 5), real(3, 1, 3), real(3), real(2, 3, 2)
    whole = np.concatenate([past, x], 2)
    y = sum(whole[:, :, i : i + 5] * w[:, 0, i : i + 1] for i in range(3)) + bias[:, None]
    yield (
        "CausalConvWithState",
        27,
        {"activation": "silu"},
        [x, w, bias, past],
        [y / (1 + np.exp(-y)), whole[:, :, -2:]],
    )
    cache, update = real(2, 3, 5, 2), real(2, 3, 2, 2)
    for mode, start in [("linear", [1, 3]), ("circular", [4, 2])]:
        wanted = cache.copy()
        for batch, first in enumerate(start):
            for i in range(2):
                wanted[batch, :, (first + i) % 5] = update[batch, :, i]
        yield ("TensorScatter", 24, {"mode": mode}, [cache, update, np.array(start)], wanted)
    numbers = rng.integers(1, 5, (3, 4)).astype(np.int32)
    for axis in (0, 1):
        yield ("CumProd", 26, {}, [numbers, np.int32(axis)], np.cumprod(numbers, axis))


def parts(x):
    return np.stack([x.real, x.imag], -1)


def signal_cases():
    x, pair = real(2, 12, 1), real(2, 12, 2)
    signal = pair[..., 0] + 1j * pair[..., 1]
    yield "DFT", 20, {}, [x, None, np.int64(1)], parts(np.fft.fft(x[..., 0]))
    yield "DFT", 20, {"onesided": 1}, [x, np.int64(9), np.int64(1)], parts(
        np.fft.rfft(x[..., 0], 9)
    )
    yield "DFT", 17, {"axis": 1}, [pair, np.int64(16)], parts(np.fft.fft(signal, 16))
    yield "DFT", 17, {"axis": 1, "inverse": 1}, [pair], parts(np.fft.ifft(signal))
    yield "DFT", 17, {"axis": 0}, [pair], parts(np.fft.fft(signal, axis=0))
    window = np.hanning(6).astype(np.float32)
    frames = np.stack([x[:, i : i + 6, 0] * window for i in range(0, 7, 3)], 1)
    yield (
        "STFT",
        17,
        {"onesided": 1},
        [x, np.int64(3), window, np.int64(6)],
        parts(np.fft.rfft(frames)),
    )


def sampled(image, row, col, border):
    """One value of an image [H, W] between its elements."""
    h, w = image.shape
    total = 0.0
    for r, weight_r in ((math.floor(row), 1 - row % 1), (math.floor(row) + 1, row % 1)):
        for c, weight_c in ((math.floor(col), 1 - col % 1), (math.floor(col) + 1, col % 1)):
            inside = 0 <= r < h and 0 <= c < w
            if inside or border:
                total += weight_r * weight_c * image[min(max(r, 0), h - 1), min(max(c, 0), w - 1)]
    return total


def sampling_cases():
    image, grid = real(2, 2, 4, 5), rng.uniform(-1.3, 1.3, (2, 3, 3, 2)).astype(np.float32)
    for mode in ("zeros", "border"):
        wanted = np.empty((2, 2, 3, 3))
        for n, c, i, j in np.ndindex(wanted.shape):
            col, row = ((grid[n, i, j] + 1) * (5, 4) - 1) / 2
            if mode == "border":
                col, row = np.clip(col, 0, 4), np.clip(row, 0, 3)
            wanted[n, c, i, j] = sampled(image[n, c], row, col, mode == "border")
        yield "GridSample", 20, {"padding_mode": mode}, [image, grid], wanted
    corners = np.rint((grid + 1) / 2 * (4, 3)).astype(int)
    wanted = np.zeros((2, 2, 3, 3))
    for n, c, i, j in np.ndindex(wanted.shape):
        col, row = corners[n, i, j]
        if 0 <= col < 5 and 0 <= row < 4:
            wanted[n, c, i, j] = image[n, c, row, col]
    yield "GridSample", 20, {"mode": "nearest", "align_corners": 1}, [image, grid], wanted
    theta = real(2, 2, 3)
    for aligned in (0, 1):
        x, y = (
            np.linspace(-1, 1, n) if aligned else (2 * np.arange(n) + 1) / n - 1 for n in (5, 4)
        )
        base = np.stack([*np.meshgrid(x, y), np.ones((4, 5))], -1)
        yield (
            "AffineGrid",
            20,
            {"align_corners": aligned},
            [theta, np.array([2, 3, 4, 5])],
            np.einsum("nkc,hwc->nhwk", theta, base),
        )
    regions = np.array([[0, 0, 3, 2], [1, 0.5, 4, 3]], np.float32)
    wanted = np.zeros((2, 2, 2, 2))
    for r, c, i, j in np.ndindex(wanted.shape):
        left, top, right, bottom = regions[r] - 0.5
        for s, t in np.ndindex(2, 2):
            row = top + (bottom - top) / 2 * (i + (s + 0.5) / 2)
            col = left + (right - left) / 2 * (j + (t + 0.5) / 2)
            row, col = min(max(row, 0), 3), min(max(col, 0), 4)
            wanted[r, c, i, j] += sampled(image[1 - r, c], row, col, True) / 4
    yield (
        "RoiAlign",
        16,
        {"output_height": 2, "output_width": 2, "sampling_ratio": 2},
        [image, regions, np.array([1, 0])],
        wanted,
    )


def shape_cases():
    x = real(4, 5, 3)
    yield (
        "CenterCropPad",
        18,
        {"axes": [0, 1]},
        [x, np.array([7, 2])],
        np.pad(x[:, 1:3], ((1, 2), (0, 0), (0, 0))),
    )
    columns = real(1, 4, 9)
    wanted = np.zeros((1, 1, 4, 4))
    for number, (i, j) in enumerate(np.ndindex(3, 3)):
        wanted[0, 0, i : i + 2, j : j + 2] += columns[0, :, number].reshape(2, 2)
    yield "Col2Im", 18, {}, [columns, np.array([4, 4]), np.array([2, 2])], wanted
    image = real(1, 2, 4, 4)
    windows = image.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(1, 2, 2, 2, 4)
    best = windows.argmax(-1)
    c, i, j = (np.arange(2).reshape(s) for s in ((2, 1, 1), (2, 1), (2,)))
    places = (c * 4 + 2 * i + best // 2) * 4 + 2 * j + best % 2
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    yield "MaxPool", 12, pool, [image], [windows.max(-1), places]
    spread = np.zeros(32, np.float32)
    spread[places.reshape(-1)] = windows.max(-1).reshape(-1)
    yield "MaxUnpool", 11, pool, [windows.max(-1), places], spread.reshape(1, 2, 4, 4)
    x8, w8 = rng.integers(0, 9, (1, 2, 3, 3)), rng.integers(-4, 5, (2, 2, 2, 2))
    views = np.lib.stride_tricks.sliding_window_view(x8 - 4, (2, 2), axis=(2, 3))
    total = np.einsum("nchwij,kcij->nkhw", views, w8)
    scale = np.array([0.3, 0.7], np.float32)
    wanted = np.clip(np.rint(total * 0.5 * scale[:, None, None] / 0.25) + 10, 0, 255)
    yield (
        "QLinearConv",
        10,
        {},
        [
            x8.astype(np.uint8),
            np.float32(0.5),
            np.uint8(4),
            w8.astype(np.int8),
            scale,
            np.zeros(2, np.int8),
            np.float32(0.25),
            np.uint8(10),
        ],
        wanted.astype(np.uint8),
    )


def known_cases():
    x = rng.integers(0, 3, (4, 3)).astype(np.int64)
    yield "NonZero", 13, {}, [x], np.stack(np.nonzero(x))
    yield "Unique", 11, {}, [x], list(np.unique(x, True, True, True))
    rows = x[[0, 1, 0, 2]]
    firsts = list(np.unique(rows, True, True, True, axis=0))
    yield "Unique", 11, {"axis": 0}, [rows], firsts
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]], np.float32)
    scores = np.array([[[0.9, 0.75, 0.6]]], np.float32)
    yield (
        "NonMaxSuppression",
        11,
        {},
        [boxes, scores, np.int64(3), np.float32(0.5), np.float32(0.0)],
        np.array([[0, 0, 0], [0, 0, 2]]),
    )


def new_cases():
    for cases in (
        attention_cases,
        rotary_cases,
        state_cases,
        signal_cases,
        sampling_cases,
        shape_cases,
        known_cases,
    ):
        yield from cases()
