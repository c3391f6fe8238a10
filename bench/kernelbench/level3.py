"""Level 3: whole networks, after the problems' names and sizes. A row is a number, a name and a
function of `d` (problem.py) that makes the module and its inputs. The small size has narrow layers
and small images, but each kind of layer that the real one has."""

import torch
import torch.nn.functional as F

from .problem import Do, Problem, chain, rand

nn = torch.nn


class Skip(nn.Module):
    """A body and a shortcut, added; `last` follows."""

    def __init__(self, body, shortcut=None, last=F.relu):
        super().__init__()
        self.body, self.shortcut, self.last = body, shortcut or nn.Identity(), last

    def forward(self, x):
        y = self.body(x) + self.shortcut(x)
        return self.last(y) if self.last else y


class Branches(nn.Module):
    """Results side by side."""

    def __init__(self, *branches, axis=1):
        super().__init__()
        self.branches, self.axis = nn.ModuleList(branches), axis

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], self.axis)


class Dense(nn.Module):
    """Each layer sees the results of all before it."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        seen = [x]
        for layer in self.layers:
            seen.append(layer(torch.cat(seen, 1)))
        return torch.cat(seen, 1)


def conv_bn(i, o, size=1, stride=1, act=nn.ReLU, groups=1):
    layers = [
        nn.Conv2d(i, o, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(o),
    ]
    return nn.Sequential(*layers, *([act()] if act else []))


def head(channels, classes):
    return chain(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def images(d, batch, channels=3, size=224, little=32):
    return [rand(d(batch, 2), channels, d(size, little), d(size, little))]


def mlp(sizes):
    def build(d):
        widths = [d(size, 4 + i % 3) for i, size in enumerate(sizes[1:])]
        steps = []
        for i, o in zip(widths, widths[1:]):
            steps += [nn.Linear(i, o), nn.ReLU()]
        return chain(*steps[:-1]), [rand(d(sizes[0], 3), widths[0])]

    return build


def lenet(d):
    steps = [
        nn.Conv2d(1, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 20),
    ]
    return chain(*steps), [rand(d(4096, 2), 1, 32, 32)]


def alexnet(d):
    w = d(32, 1)
    steps = [
        nn.Conv2d(3, 3 * w, 11, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(3 * w, 8 * w, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(8 * w, 12 * w, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(12 * w, 12 * w, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(12 * w, 8 * w, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Flatten(),
        nn.Linear(8 * w * d(36, 1), 128 * w),
        nn.ReLU(),
        nn.Dropout(0.0),
        nn.Linear(128 * w, 1000),
    ]
    return chain(*steps), images(d, 1024, little=64)


def inception_module(i, one, three_in, three, five_in, five, pooled):
    return Branches(
        nn.Conv2d(i, one, 1),
        chain(nn.Conv2d(i, three_in, 1), nn.Conv2d(three_in, three, 3, padding=1)),
        chain(nn.Conv2d(i, five_in, 1), nn.Conv2d(five_in, five, 5, padding=2)),
        chain(nn.MaxPool2d(3, 1, 1), nn.Conv2d(i, pooled, 1)),
    )


def inception(d):
    sizes = [480, 192, 96, 208, 16, 48, 64]
    return inception_module(*(d(size, size // 16) for size in sizes)), images(
        d, 10, d(480, 30), 224, 9
    )


def googlenet(d):
    w = d(16, 1)
    rows = [
        (12, 4, 6, 8, 1, 2, 2),
        (16, 8, 8, 12, 2, 6, 4),
        None,
        (30, 12, 6, 13, 1, 3, 4),
        (32, 10, 7, 14, 2, 4, 4),
        (32, 8, 8, 16, 2, 4, 4),
        (32, 7, 9, 18, 2, 4, 4),
        (33, 16, 10, 20, 2, 8, 8),
        None,
        (52, 16, 10, 20, 2, 8, 8),
        (52, 24, 12, 24, 3, 8, 8),
    ]
    steps = [
        nn.Conv2d(3, 4 * w, 7, 2, 3),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(4 * w, 4 * w, 1),
        nn.ReLU(),
        nn.Conv2d(4 * w, 12 * w, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    for row in rows:
        steps.append(inception_module(*(n * w for n in row)) if row else nn.MaxPool2d(3, 2, 1))
    return chain(*steps, head(64 * w, 1000)), images(d, 10)


def basic(i, o, stride=1):
    short = conv_bn(i, o, 1, stride, None) if stride != 1 or i != o else None
    return Skip(nn.Sequential(conv_bn(i, o, 3, stride), conv_bn(o, o, 3, act=None)), short)


def bottleneck(i, o, stride=1, groups=1, ratio=4):
    short = conv_bn(i, o, 1, stride, None) if stride != 1 or i != o else None
    body = [conv_bn(i, o // ratio), conv_bn(o // ratio, o // ratio, 3, stride, groups=groups)]
    return Skip(nn.Sequential(*body, conv_bn(o // ratio, o, act=None)), short)


def resnet(block, counts, batch, expansion):
    def build(d):
        width = d(64, 4)
        steps, i = [conv_bn(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)], width
        for stage, count in enumerate(counts):
            o = width * 2**stage * expansion
            for number in range(d(count, min(count, 2))):
                steps.append(block(i, o, 2 if stage and not number else 1))
                i = o
        return chain(*steps, head(i, 1000)), images(d, batch)

    return build


def vgg(counts):
    def build(d):
        steps, i = [], 3
        for stage, count in enumerate(counts):
            o = d(64, 2) * min(2**stage, 8)
            for _ in range(count):
                steps += [nn.Conv2d(i, o, 3, padding=1), nn.ReLU()]
                i = o
            steps.append(nn.MaxPool2d(2))
        steps += [
            nn.Flatten(),
            nn.Linear(i * d(49, 1), d(4096, 8)),
            nn.ReLU(),
            nn.Dropout(0.0),
            nn.Linear(d(4096, 8), d(4096, 8)),
            nn.ReLU(),
            nn.Linear(d(4096, 8), 1000),
        ]
        return chain(*steps), images(d, 10)

    return build


def transition(i, o):
    return chain(nn.BatchNorm2d(i), nn.ReLU(), nn.Conv2d(i, o, 1, bias=False), nn.AvgPool2d(2))


def dense_block(count, i, growth):
    return Dense(
        [
            chain(
                nn.BatchNorm2d(i + k * growth),
                nn.ReLU(),
                nn.Conv2d(i + k * growth, growth, 3, padding=1, bias=False),
            )
            for k in range(count)
        ]
    )


def densenet(counts):
    def build(d):
        growth, i = d(32, 2), d(64, 4)
        steps = [conv_bn(3, i, 7, 2), nn.MaxPool2d(3, 2, 1)]
        for stage, count in enumerate(counts):
            count = d(count, 2)
            steps.append(dense_block(count, i, growth))
            i += count * growth
            if stage < 3:
                steps.append(transition(i, i // 2))
                i //= 2
        return chain(*steps, nn.BatchNorm2d(i), nn.ReLU(), head(i, 10)), images(d, 10)

    return build


def fire(i, squeezed, one, three):
    return chain(
        nn.Conv2d(i, squeezed, 1),
        nn.ReLU(),
        Branches(
            chain(nn.Conv2d(squeezed, one, 1), nn.ReLU()),
            chain(nn.Conv2d(squeezed, three, 3, padding=1), nn.ReLU()),
        ),
    )


def squeezenet(d):
    w = d(16, 1)
    rows = [1, 1, 2, None, 2, 3, 3, 4, None, 4]
    steps, i = [nn.Conv2d(3, 6 * w, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)], 6 * w
    for n in rows:
        if n is None:
            steps.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            continue
        steps.append(fire(i, n * w, 4 * n * w, 4 * n * w))
        i = 8 * n * w
    steps += [
        nn.Dropout(0.0),
        nn.Conv2d(i, 1000, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ]
    return chain(*steps), images(d, 64, size=512, little=48)


def mobilenet_v1(d):
    w, steps, i = d(32, 2), [conv_bn(3, d(32, 2), 3, 2)], d(32, 2)
    for o, stride in [
        (2, 1),
        (4, 2),
        (4, 1),
        (8, 2),
        (8, 1),
        (16, 2),
        *[(16, 1)] * 5,
        (32, 2),
        (32, 1),
    ]:
        steps += [conv_bn(i, i, 3, stride, groups=i), conv_bn(i, o * w)]
        i = o * w
    return chain(*steps, head(i, 1000)), images(d, 10)


class Excite(nn.Module):
    def __init__(self, channels, squeezed):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


def inverted(i, o, stride, expansion, size=3, act=nn.ReLU6, excite=False):
    wide = i * expansion
    steps = [conv_bn(i, wide, act=act)] if expansion != 1 else []
    steps.append(conv_bn(wide, wide, size, stride, act, wide))
    if excite:
        steps.append(Excite(wide, max(1, i // 4)))
    body = nn.Sequential(*steps, conv_bn(wide, o, act=None))
    return Skip(body, last=None) if stride == 1 and i == o else body


def inverted_net(rows, first, last, batch, size=224, act=nn.ReLU6, excite=False):
    def build(d):
        def scaled(n):
            return d(n, max(n // 8, 2))

        i = scaled(first)
        steps = [conv_bn(3, i, 3, 2, act)]
        for expansion, o, count, stride, window in rows:
            for number in range(d(count, min(count, 2))):
                steps.append(
                    inverted(i, scaled(o), 1 if number else stride, expansion, window, act, excite)
                )
                i = scaled(o)
        return chain(*steps, conv_bn(i, scaled(last), act=act), head(scaled(last), 1000)), images(
            d, batch, size=size
        )

    return build


V2 = [
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 32, 3, 2, 3),
    (6, 64, 4, 2, 3),
    (6, 96, 3, 1, 3),
    (6, 160, 3, 2, 3),
    (6, 320, 1, 1, 3),
]
B0 = [
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
]
B1 = [
    (1, 16, 2, 1, 3),
    (6, 24, 3, 2, 3),
    (6, 40, 3, 2, 5),
    (6, 80, 4, 2, 3),
    (6, 112, 4, 1, 5),
    (6, 192, 5, 2, 5),
    (6, 320, 2, 1, 3),
]


def shuffled(groups):
    def run(x):
        n, c, h, w = x.shape
        return x.view(n, groups, c // groups, h, w).transpose(1, 2).contiguous().view(n, c, h, w)

    return run


def shuffle_unit(i, o, groups=3):
    middle = o // 4
    body = chain(
        conv_bn(i, middle, groups=groups),
        shuffled(groups),
        conv_bn(middle, middle, 3, act=None, groups=middle),
        conv_bn(middle, o, act=None, groups=groups),
    )
    return Skip(body, None if i == o else conv_bn(i, o, act=None))


def shufflenet(d):
    steps, i = [conv_bn(3, d(24, 12), 3, 2), nn.MaxPool2d(3, 2, 1)], d(24, 12)
    for o, count in [(d(240, 24), 3), (d(480, 48), 7), (d(960, 96), 3)]:
        for _ in range(d(count + 1, 2)):
            steps.append(shuffle_unit(i, o))
            i = o
    return chain(*steps, conv_bn(i, d(1024, 32)), head(d(1024, 32), 1000)), images(d, 10, little=16)


def regnet(d):
    steps, i = [], 3
    for o in (d(64, 4), d(128, 6), d(256, 8)):
        for _ in range(3):
            steps.append(conv_bn(i, o, 3))
            i = o
        steps.append(nn.MaxPool2d(2))
    return chain(*steps, Do(lambda x: x.mean((2, 3))), nn.Linear(i, 10)), images(d, 8)


class ViT(nn.Module):
    def __init__(self, size, patch, channels, width, depth, heads, hidden, classes):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(channels * patch * patch, width)
        self.position = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width))
        self.token = nn.Parameter(torch.randn(1, 1, width))
        layer = nn.TransformerEncoderLayer(width, heads, hidden, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.head = chain(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, classes))

    def forward(self, x):
        p = self.patch
        x = x.unfold(2, p, p).unfold(3, p, p).reshape(x.shape[0], -1, p * p * x.shape[1])
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), self.embed(x)], 1) + self.position
        return self.head(self.encoder(x)[:, 0])


def vit(d):
    size, patch = d(224, 8), d(16, 4)
    return ViT(size, patch, 3, d(512, 8), d(6, 2), d(8, 2), d(2048, 12), 10), [
        rand(2, 3, size, size)
    ]


class Windowed(nn.Module):
    """Windows of a [batch, h, w, channels] map, moved by half a window, each computed by `mix`."""

    def __init__(self, window, shift, mix):
        super().__init__()
        self.window, self.shift, self.mix = window, shift, mix

    def forward(self, x):
        w, (n, height, width, c) = self.window, x.shape
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        x = x.view(n, height // w, w, width // w, w, c).permute(0, 1, 3, 2, 4, 5)
        x = self.mix(x.reshape(-1, w * w, c))
        x = x.view(n, height // w, width // w, w, w, c).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(n, height, width, c)
        return torch.roll(x, (self.shift, self.shift), (1, 2)) if self.shift else x


class CosineAttention(nn.Module):
    """Swin's second version: cosines with a learned scale, and a bias of places from an MLP."""

    def __init__(self, width, heads, window):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((heads, 1, 1), 2.3))
        self.places = chain(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, heads, bias=False))
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij"))
        apart = (at.flatten(1)[:, :, None] - at.flatten(1)[:, None]).permute(1, 2, 0).float()
        self.register_buffer("apart", torch.sign(apart) * torch.log2(apart.abs() + 1))

    def forward(self, x):
        n, l, c = x.shape
        q, k, v = self.qkv(x).view(n, l, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * torch.clamp(self.scale, max=4.6).exp()
        scores = scores + 16 * torch.sigmoid(self.places(self.apart)).permute(2, 0, 1)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, l, c))


class HeadMix(nn.Module):
    """Swin-MLP: a grouped convolution over the places of a window, one group for each head."""

    def __init__(self, width, heads, window):
        super().__init__()
        self.heads, places = heads, window * window
        self.mix = nn.Conv1d(heads * places, heads * places, 1, groups=heads)

    def forward(self, x):
        n, l, c = x.shape
        x = x.view(n, l, self.heads, c // self.heads).transpose(1, 2).reshape(n, self.heads * l, -1)
        return self.mix(x).view(n, self.heads, l, -1).transpose(1, 2).reshape(n, l, c)


def merged(x):
    return torch.cat([x[:, i::2, j::2] for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))], -1)


def swin(mixer):
    def build(d):
        window, width, size = d(7, 2), d(96, 8), d(224, 32)
        steps = [
            nn.Conv2d(3, width, 4, 4),
            Do(lambda x: x.permute(0, 2, 3, 1)),
            nn.LayerNorm(width),
        ]
        for stage, depth in enumerate(d((2, 2, 6, 2), (2, 1))):
            heads = d(3, 2) * 2**stage
            for number in range(depth):
                mix = Windowed(window, window // 2 * (number % 2), mixer(width, heads, window))
                steps.append(Skip(chain(mix, nn.LayerNorm(width)), last=None))
                wide = chain(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
                steps.append(Skip(chain(wide, nn.LayerNorm(width)), last=None))
            if stage < d(3, 1):
                steps += [
                    Do(merged),
                    nn.Linear(4 * width, 2 * width, bias=False),
                    nn.LayerNorm(2 * width),
                ]
                width *= 2
        steps += [nn.LayerNorm(width), Do(lambda x: x.mean((1, 2))), nn.Linear(width, 1000)]
        return chain(*steps), [rand(d(10, 1), 3, size, size)]

    return build


class ImageAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(width, heads), nn.LayerNorm(width)

    def forward(self, x):
        n, c, h, w = x.shape
        x = x.view(n, c, h * w).permute(2, 0, 1)
        y = self.norm(self.attention(x, x, x)[0] + x)
        return y.permute(1, 2, 0).view(n, c, h, w)


class CvT(nn.Module):
    def __init__(self, width, heads, classes):
        super().__init__()
        self.embed, self.project = nn.Conv2d(3, width, 4, 4), nn.Linear(width * 64, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0) for _ in range(2)
        )
        self.token, self.head = nn.Parameter(torch.zeros(1, 1, width)), nn.Linear(width, classes)

    def forward(self, x):
        x = self.project(self.embed(x).flatten(1)).unsqueeze(1)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0])


class Cell(nn.Module):
    """One step of a plain recurrent network; the state is an input."""

    def __init__(self, given, hidden, out):
        super().__init__()
        self.step, self.out = nn.Linear(given + hidden, hidden), nn.Linear(hidden, out)

    def forward(self, x, state):
        return self.out(torch.tanh(self.step(torch.cat([x, state], 1))))


class Steps(Cell):
    def forward(self, x, state):
        outputs = []
        for each in x:
            state = torch.tanh(self.step(torch.cat([each, state], 1)))
            outputs.append(self.out(state))
        return torch.stack(outputs)


class Recurrent(nn.Module):
    """torch.nn's LSTM or GRU with its states as inputs. `result`: of a linear layer on the last
    step, the outputs, or a state."""

    def __init__(self, kind, sizes, out, result, **options):
        super().__init__()
        self.cells = kind(*sizes, **options)
        self.result = result
        width = sizes[1] * (2 if self.cells.bidirectional else 1)
        self.last = nn.Linear(width, out) if out else None

    def forward(self, x, *states):
        outputs, state = self.cells(
            x, states if len(states) == 2 else states[0] if states else None
        )
        if self.result == "last":
            return self.last(outputs[:, -1])
        if self.result == "outputs":
            return outputs
        return state if isinstance(state, torch.Tensor) else state[self.result == "cell"]


def recurrent(kind, result, states, **options):
    def build(d):
        width, hidden, layers = d(128, 3), d(256, 4), d(6, 2)
        first = options.get("batch_first", False)
        steps, batch = (d(512, 3), d(10, 2))
        shape = (batch, steps, width) if first else (steps, batch, width)
        depth = layers * (2 if options.get("bidirectional") else 1)
        out = d(10, 3) if result == "last" else 0
        module = Recurrent(kind, (width, hidden, layers), out, result, **options)
        return module, [rand(*shape)] + [rand(depth, batch, hidden)] * states

    return build


class Causal(nn.Module):
    """minGPT's attention; `grade` makes weights of the masked scores."""

    def __init__(self, width, heads, length, grade=lambda x: x.softmax(-1), out=True):
        super().__init__()
        self.heads, self.qkv, self.grade = heads, nn.Linear(width, 3 * width), grade
        self.out = nn.Linear(width, width) if out else nn.Identity()
        self.register_buffer(
            "mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        )

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (
            part.view(n, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(c, 2)
        )
        scores = q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        return self.out((self.grade(scores) @ v).transpose(1, 2).reshape(n, t, c))


def new_gelu(x):
    return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * torch.pow(x, 3))))


def causal(d):
    return Causal(d(768, 8), d(8, 2), d(1024, 8)), [rand(d(128, 2), d(512, 5), d(768, 8))]


def gpt_block(d):
    width = d(768, 8)
    wide = [
        nn.LayerNorm(width),
        nn.Linear(width, 4 * width),
        Do(new_gelu),
        nn.Linear(4 * width, width),
    ]
    steps = [
        Skip(chain(nn.LayerNorm(width), Causal(width, d(8, 2), d(1024, 8))), last=None),
        Skip(chain(*wide), last=None),
    ]
    return chain(*steps), [rand(d(128, 2), d(512, 5), width)]


def relu_attention(d):
    module = Causal(d(768, 8), d(12, 2), d(1024, 5), F.relu, out=False)
    return module, [rand(d(16, 2), d(1024, 5), d(768, 8))]


class UNet(nn.Module):
    """Softmax along the last axis in the place of activations."""

    def __init__(self, i, o, width, depth=4):
        super().__init__()

        def double(i, o):
            return chain(
                *(
                    step
                    for a in (i, o)
                    for step in (nn.Conv2d(a, o, 3, padding=1), nn.BatchNorm2d(o), nn.Softmax(-1))
                )
            )

        widths = [width * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(double(a, b) for a, b in zip([i, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[:-1])
        self.after = nn.ModuleList(double(2 * w, w) for w in widths[:-1])
        self.last = nn.Conv2d(width, o, 1)

    def forward(self, x):
        seen = []
        for level, step in enumerate(self.down):
            x = step(F.max_pool2d(x, 2) if level else x)
            seen.append(x)
        for up, after, before in zip(self.up[::-1], self.after[::-1], seen[-2::-1]):
            x = after(torch.cat([up(x), before], 1))
        return self.last(x)


def unet(d):
    return UNet(d(8, 2), d(4, 2), d(64, 2), d(4, 2)), [rand(d(8, 1), d(8, 2), d(64, 8), d(512, 8))]


class NetVlad(nn.Module):
    def __init__(self, clusters, width, ghosts):
        super().__init__()
        self.clusters, scale = clusters, width**-0.5
        self.assign = nn.Parameter(scale * torch.randn(width, clusters + ghosts))
        self.norm = nn.BatchNorm1d(clusters + ghosts)
        self.centres = nn.Parameter(scale * torch.randn(1, width, clusters))

    def forward(self, x):
        n, t, c = x.shape
        shares = self.norm(x.reshape(-1, c) @ self.assign).softmax(1)[:, : self.clusters]
        shares = shares.view(n, t, self.clusters)
        centred = (shares.transpose(1, 2) @ x).transpose(1, 2) - shares.sum(1, True) * self.centres
        return F.normalize(F.normalize(centred).reshape(n, -1))


def netvlad(ghosts):
    def build(d):
        return NetVlad(d(32, 3), d(512, 6), ghosts), [rand(d(2048, 2), d(100, 5), d(512, 6))]

    return build


class StateSpace(nn.Module):
    """Mamba 2's scan in chunks: products inside of a chunk, and a recurrence between them."""

    def __init__(self, batch, length, heads, width, state, chunk, final):
        super().__init__()
        self.chunk, self.final = chunk, final
        self.decay = nn.Parameter(torch.randn(batch, length, heads))
        self.into = nn.Parameter(torch.randn(batch, length, heads, state))
        self.out = nn.Parameter(torch.randn(batch, length, heads, state))

    @staticmethod
    def sums(x):
        """Sums over each segment i … j, -inf above the diagonal."""
        ends = torch.cumsum(x, -1)
        apart = ends[..., :, None] - ends[..., None, :]
        mask = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool).tril()
        return apart.masked_fill(~mask, float("-inf"))

    def forward(self, x):
        n, t = x.shape[:2]
        x, into, out = (
            v.reshape(n, t // self.chunk, self.chunk, *v.shape[2:])
            for v in (x, self.into, self.out)
        )
        decay = self.decay.reshape(n, t // self.chunk, self.chunk, -1).permute(0, 3, 1, 2)
        ends = torch.cumsum(decay, -1)
        inside = torch.einsum(
            "bclhn,bcshn,bhcls,bcshp->bclhp", out, into, self.sums(decay).exp(), x
        )
        left = torch.exp(ends[..., -1:] - ends)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", into, left, x)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
        between = self.sums(F.pad(ends[..., -1], (1, 0))).exp()
        states = torch.einsum("bhzc,bchpn->bzhpn", between, states)
        if self.final:
            return states[:, -1]
        across = torch.einsum("bclhn,bchpn,bhcl->bclhp", out, states[:, :-1], ends.exp())
        return (inside + across).reshape(n, t, *x.shape[3:])


def mamba(final):
    def build(d):
        sizes = d((2048, 128, 8, 64, 16, 64), (1, 8, 2, 3, 4, 4))
        return StateSpace(*sizes, final), [rand(*sizes[:4])]

    return build


def unit(build_module, batch, channels, size, little=9):
    def build(d):
        return build_module(d), images(d, batch, channels(d), size, little)

    return build


LSTM = {"batch_first": True}
both = {"bidirectional": True}
TABLE = [
    (1, "MLP", mlp([128, 16384, 16384, 16384, 8192])),
    (2, "ShallowWideMLP", mlp([128, 16384, 32768, 32768, 16384])),
    (3, "DeepNarrowMLP", mlp([1024, 8192, *[1024] * 16, 8192])),
    (4, "LeNet5", lenet),
    (5, "AlexNet", alexnet),
    (6, "GoogleNetInceptionModule", inception),
    (7, "GoogleNetInceptionV1", googlenet),
    (8, "ResNetBasicBlock", unit(lambda d: basic(3, d(64, 4)), 10, lambda d: 3, 224)),
    (9, "ResNet18", resnet(basic, (2, 2, 2, 2), 2, 1)),
    (10, "ResNet101", resnet(bottleneck, (3, 4, 23, 3), 10, 4)),
    (11, "VGG16", vgg((2, 2, 3, 3, 3))),
    (12, "VGG19", vgg((2, 2, 4, 4, 4))),
    (
        13,
        "DenseNet121TransitionLayer",
        unit(lambda d: transition(d(32, 4), d(64, 6)), 128, lambda d: d(32, 4), 256, 8),
    ),
    (
        14,
        "DenseNet121DenseBlock",
        unit(lambda d: dense_block(d(6, 3), d(32, 4), d(32, 3)), 10, lambda d: d(32, 4), 224),
    ),
    (15, "DenseNet121", densenet((6, 12, 24, 16))),
    (16, "DenseNet201", densenet((6, 12, 48, 32))),
    (
        17,
        "SqueezeNetFireModule",
        unit(lambda d: fire(3, 6, d(64, 4), d(64, 4)), 128, lambda d: 3, 256),
    ),
    (18, "SqueezeNet", squeezenet),
    (19, "MobileNetV1", mobilenet_v1),
    (20, "MobileNetV2", inverted_net(V2, 32, 1280, 10)),
    (
        21,
        "EfficientNetMBConv",
        unit(lambda d: inverted(d(112, 4), d(192, 6), 2, 6, 5), 10, lambda d: d(112, 4), 224),
    ),
    (22, "EfficientNetB0", inverted_net(B0, 32, 1280, 10, act=nn.ReLU)),
    (23, "EfficientNetB1", inverted_net(B1, 32, 1280, 10, 240)),
    (24, "EfficientNetB2", inverted_net(B1, 32, 1408, 2, act=nn.ReLU, excite=True)),
    (
        25,
        "ShuffleNetUnit",
        unit(lambda d: shuffle_unit(d(240, 12), d(480, 24)), 10, lambda d: d(240, 12), 224),
    ),
    (26, "ShuffleNet", shufflenet),
    (27, "RegNet", regnet),
    (28, "VisionTransformer", vit),
    (29, "SwinMLP", swin(HeadMix)),
    (30, "SwinTransformerV2", swin(CosineAttention)),
    (
        31,
        "VisionAttention",
        lambda d: (ImageAttention(d(128, 8), d(4, 2)), [rand(2, d(128, 8), d(128, 3), d(128, 3))]),
    ),
    (
        32,
        "ConvolutionalVisionTransformer",
        lambda d: (CvT(d(128, 8), d(4, 2), 1000), [rand(d(10, 2), 3, 32, 32)]),
    ),
    (
        33,
        "VanillaRNN",
        lambda d: (
            Cell(d(16384, 5), d(16384, 4), d(8192, 3)),
            [rand(d(256, 2), d(16384, 5)), rand(d(256, 2), d(16384, 4))],
        ),
    ),
    (
        34,
        "VanillaRNNHidden",
        lambda d: (
            Steps(d(1024, 5), d(256, 4), d(128, 3)),
            [rand(d(256, 3), d(8, 2), d(1024, 5)), rand(d(8, 2), d(256, 4))],
        ),
    ),
    (35, "LSTM", recurrent(nn.LSTM, "last", 0, **LSTM)),
    (36, "LSTMHn", recurrent(nn.LSTM, "hidden", 2, **LSTM)),
    (37, "LSTMCn", recurrent(nn.LSTM, "cell", 2, **LSTM)),
    (38, "LSTMBidirectional", recurrent(nn.LSTM, "last", 2, **LSTM, **both)),
    (39, "GRU", recurrent(nn.GRU, "outputs", 1)),
    (40, "GRUHidden", recurrent(nn.GRU, "hidden", 1)),
    (41, "GRUBidirectional", recurrent(nn.GRU, "outputs", 1, **both)),
    (42, "GRUBidirectionalHidden", recurrent(nn.GRU, "hidden", 1, **both)),
    (43, "MinGPTCausalAttention", causal),
    (44, "MiniGPTBlock", gpt_block),
    (45, "UNetSoftmax", unet),
    (46, "NetVladWithGhostClusters", netvlad(16)),
    (47, "NetVladNoGhostClusters", netvlad(0)),
    (48, "Mamba2ReturnY", mamba(False)),
    (49, "Mamba2ReturnFinalState", mamba(True)),
    (50, "ReLUSelfAttention", relu_attention),
]
ROWS = [Problem(3, number, name, build) for number, name, build in TABLE]
