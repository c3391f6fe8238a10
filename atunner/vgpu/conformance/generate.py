#!/usr/bin/env python3
"""Writes the conformance files beside it: PTX forms with inputs and expected outputs, computed here with exact integers
and fractions, independently of the C++ that they test. Usage: generate.py [FOLDER]

A file holds forms and their cases:
    form PTX | output types | input types | tolerance | least architecture
    inputs = outputs                      (hexadecimal bits; "nan" stands for any NaN)
In the PTX $d and $e are the outputs, $a, $b, $c and $f the inputs. Tolerance: exact, rel=X (relative), abs=X.
"""
import math
import os
import random
import sys
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
INF, NAN = "inf", "nan"
BITS = {"u8": 8, "s8": 8, "u16": 16, "s16": 16, "b16": 16, "u32": 32, "s32": 32, "b32": 32, "u64": 64, "s64": 64,
        "b64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32, "pred": 1, "tf32": 32,
        "u16x2": 32, "s16x2": 32, "e4m3x2": 16, "e5m2x2": 16}
# name → (significand bits with the hidden one, bias, exponent bits, has infinity)
FLOATS = {"f16": (11, 15, 5), "bf16": (8, 127, 8), "f32": (24, 127, 8), "f64": (53, 1023, 11), "tf32": (11, 127, 8)}


def rng(name):
    return random.Random(name)


# ---- floats as (sign, magnitude): magnitude is a Fraction, INF or NAN ------------------------------------------------
def decode(t, bits):
    digits, bias, ebits = FLOATS[t]
    if t == "tf32":
        return decode("f32", bits)
    m = digits - 1
    sign = bits >> (m + ebits) & 1
    e = bits >> m & ((1 << ebits) - 1)
    f = bits & ((1 << m) - 1)
    if e == (1 << ebits) - 1:
        return (sign, NAN if f else INF)
    if e == 0:
        return (sign, Fraction(f) * Fraction(2) ** (1 - bias - m))
    return (sign, Fraction(f + (1 << m)) * Fraction(2) ** (e - bias - m))


def round_integer(v, mode, sign):
    """Non-negative fraction to integer; the sign matters for directed modes."""
    q = v.numerator // v.denominator
    rest = v - q
    if rest == 0:
        return q
    up = {"rz": False, "rm": sign == 1, "rp": sign == 0, "rna": rest >= Fraction(1, 2)}.get(mode)
    if up is None:
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and q % 2 == 1)
    return q + 1 if up else q


def place_of(v, digits, lowest):
    """Exponent of the last place of a positive fraction."""
    e = v.numerator.bit_length() - v.denominator.bit_length()
    if Fraction(2) ** e > v:
        e -= 1
    return max(e + 1 - digits, lowest)


def round_fraction(t, sign, v, mode):
    """→ magnitude as a Fraction or INF."""
    if v in (INF, NAN) or v == 0:
        return v
    digits, bias, ebits = FLOATS[t]
    place = place_of(v, digits, 1 - bias - (digits - 1))
    r = round_integer(v / Fraction(2) ** place, mode, sign) * Fraction(2) ** place
    top = ((1 << digits) - 1) * Fraction(2) ** ((1 << ebits) - 2 - bias - (digits - 1))
    if r > top:
        inward = mode == "rz" or (mode == "rm" and sign == 0) or (mode == "rp" and sign == 1)
        return top if inward else INF
    return r


def encode(t, value, mode="rn"):
    sign, v = value
    digits, bias, ebits = FLOATS[t]
    if v == NAN:
        return NAN
    v = round_fraction(t, sign, v, mode)
    if t == "tf32":
        return encode("f32", (sign, v))
    m = digits - 1
    if v == INF:
        return sign << (m + ebits) | ((1 << ebits) - 1) << m
    if v == 0:
        return sign << (m + ebits)
    place = place_of(v, digits, 1 - bias - m)
    s = int(v / Fraction(2) ** place)
    return sign << (m + ebits) | ((place + bias + m - 1) << m) + s


def flush(t, value):
    sign, v = value
    smallest = Fraction(2) ** (1 - FLOATS[t][1])
    return (sign, Fraction(0)) if v not in (INF, NAN) and v < smallest else value


def signed(value):
    return -value[1] if value[0] else value[1]


def from_fraction(v, zero_sign=0):
    return (1, -v) if v < 0 else ((zero_sign, v) if v == 0 else (0, v))


def add(a, b, mode="rn"):
    if NAN in (a[1], b[1]):
        return (0, NAN)
    if a[1] == INF or b[1] == INF:
        if a[1] == INF and b[1] == INF and a[0] != b[0]:
            return (0, NAN)
        return a if a[1] == INF else b
    total = signed(a) + signed(b)
    if total == 0:
        both = a[1] == 0 and b[1] == 0 and a[0] == b[0]
        return (a[0] if both else (1 if mode == "rm" else 0), Fraction(0))
    return from_fraction(total)


def mul(a, b):
    sign = a[0] ^ b[0]
    if NAN in (a[1], b[1]) or (INF in (a[1], b[1]) and 0 in (a[1], b[1])):
        return (0, NAN)
    return (sign, INF) if INF in (a[1], b[1]) else (sign, a[1] * b[1])


def div(a, b):
    sign = a[0] ^ b[0]
    if NAN in (a[1], b[1]) or (a[1] == INF and b[1] == INF) or (a[1] == 0 and b[1] == 0):
        return (0, NAN)
    if a[1] == INF or b[1] == 0:
        return (sign, INF)
    return (sign, Fraction(0)) if b[1] == INF else (sign, a[1] / b[1])


def root(a):
    """Square root to 200 bits, sticky: enough for any rounding to 53."""
    if a[1] == NAN or (a[0] and a[1] != 0):
        return (0, NAN)
    if a[1] in (INF, 0):
        return a
    scale = 1 << 200
    n = a[1].numerator * scale * scale * 4 ** 600 // a[1].denominator
    s = math.isqrt(n)
    exact = s * s == n and a[1] * scale * scale * 4 ** 600 == n
    return (0, Fraction(2 * s + (0 if exact else 1), 2 * scale * 2 ** 600))


def neg(a):
    return (1 - a[0], a[1])


# ---- files ----------------------------------------------------------------------------------------------------------
class File:
    def __init__(self, name):
        self.name, self.lines, self.cases = name, [], 0

    def form(self, ptx, outs, ins, cases, tolerance="exact", arch=75):
        """cases: of (inputs, outputs) as bit patterns; NAN allowed among the outputs."""
        self.lines.append(f"form {ptx} | {' '.join(outs)} | {' '.join(ins)} | {tolerance} | {arch}")
        for inputs, outputs in cases:
            show = lambda v: v if v == NAN else f"{v:x}"
            self.lines.append(" ".join(f"{v:x}" for v in inputs) + " = " + " ".join(show(v) for v in outputs))
            self.cases += 1

    def write(self, folder):
        with open(os.path.join(folder, self.name), "w") as out:
            out.write("# Written by generate.py; do not edit.\n" + "\n".join(self.lines) + "\n")


def wrap(t, v):
    return v & ((1 << BITS[t]) - 1)


def value(t, bits):
    n = BITS[t]
    return bits - (1 << n) if t[0] == "s" and bits >> (n - 1) else bits


def integers(t, count, seed):
    n = BITS[t]
    edge = [0, 1, 2, (1 << n) - 1, 1 << (n - 1), (1 << (n - 1)) - 1, (1 << n) - 2, 0x55 * ((1 << n) // 255), 1 << (n // 2)]
    r = rng(f"{t}{seed}")
    return [wrap(t, r.choice(edge) if r.random() < 0.6 else r.getrandbits(n)) for _ in range(count)]


def float_values(t, count, seed):
    digits, _, ebits = FLOATS[t]
    m = digits - 1
    n = m + ebits + 1
    top = (1 << ebits) - 1
    one = (top >> 1) << m
    edge = [0, 1, (1 << m) - 1, 1 << m, one, one + 1, one - 1, one + (1 << m), (top << m) - 1, top << m, top << m | 1 << (m - 1),
            one | 1 << (m - 1), ((top >> 1) + m) << m, ((top >> 1) - m) << m | 1, ((top >> 1) + 1) << m | 3]
    r = rng(f"{t}{seed}")
    out = []
    for _ in range(count):
        p = r.random()
        if p < 0.45:
            v = r.choice(edge)
        elif p < 0.8:  # near one, so that sums round
            v = ((top >> 1) + r.randint(-3, 3)) << m | r.getrandbits(m)
        else:
            v = r.getrandbits(n - 1)
            if v >> m == top:
                v = one
        if t == "tf32":
            v <<= 0
        out.append(v | r.getrandbits(1) << (n - 1))
    return out


N = 14
INT_TYPES = ["u16", "s16", "u32", "s32", "u64", "s64"]


def binary_int(f, ptx, t, function, out=None, arch=75, other=None):
    out = out or t
    a, b = integers(t, N, ptx + "a"), integers(other or t, N, ptx + "b")
    f.form(f"{ptx} $d, $a, $b;", [out], [t, other or t],
           [((x, y), (wrap(out, function(value(t, x), value(other or t, y))),)) for x, y in zip(a, b)], arch=arch)


def clamp32(v):
    return max(-(1 << 31), min((1 << 31) - 1, v))


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def make_integers():
    f = File("integers.txt")
    for t in INT_TYPES:
        n = BITS[t]
        binary_int(f, f"add.{t}", t, lambda x, y: x + y)
        binary_int(f, f"sub.{t}", t, lambda x, y: x - y)
        binary_int(f, f"mul.lo.{t}", t, lambda x, y: x * y)
        binary_int(f, f"mul.hi.{t}", t, lambda x, y: x * y >> n)
        binary_int(f, f"min.{t}", t, min)
        binary_int(f, f"max.{t}", t, max)
        if n < 64:
            binary_int(f, f"mul.wide.{t}", t, lambda x, y: x * y, out=t[0] + str(2 * n))
        for name, function in (("div", trunc_div), ("rem", lambda x, y: x - y * trunc_div(x, y))):
            cases = [((x, y or 3), (wrap(t, function(value(t, x), value(t, y or 3))),))
                     for x, y in zip(integers(t, N, name + "x"), integers(t, N, name + "y"))]
            f.form(f"{name}.{t} $d, $a, $b;", [t], [t, t], cases)
        trio = list(zip(integers(t, N, "m1"), integers(t, N, "m2"), integers(t, N, "m3")))
        ternary = [("mad.lo", lambda x, y, z: x * y + z), ("mad.hi", lambda x, y, z: (x * y >> n) + z),
                   ("sad", lambda x, y, z: z + abs(x - y))]
        for name, function in ternary:
            f.form(f"{name}.{t} $d, $a, $b, $c;", [t], [t, t, t],
                   [(v, (wrap(t, function(*(value(t, q) for q in v))),)) for v in trio])
        if n < 64:
            w = t[0] + str(2 * n)
            wide = list(zip(integers(t, N, "w1"), integers(t, N, "w2"), integers(w, N, "w3")))
            f.form(f"mad.wide.{t} $d, $a, $b, $c;", [w], [t, t, w],
                   [(v, (wrap(w, value(t, v[0]) * value(t, v[1]) + v[2]),)) for v in wide])
        if t[0] == "s":
            for name, function in (("abs", abs), ("neg", lambda x: -x)):
                f.form(f"{name}.{t} $d, $a;", [t], [t],
                       [((x,), (wrap(t, function(value(t, x))),)) for x in integers(t, N, name)])
    binary_int(f, "add.sat.s32", "s32", lambda x, y: clamp32(x + y))
    binary_int(f, "sub.sat.s32", "s32", lambda x, y: clamp32(x - y))
    trio = list(zip(integers("s32", N, "1"), integers("s32", N, "2"), integers("s32", N, "3")))
    f.form("mad.hi.sat.s32 $d, $a, $b, $c;", ["s32"], ["s32"] * 3,
           [(v, (wrap("s32", clamp32((value("s32", v[0]) * value("s32", v[1]) >> 32) + value("s32", v[2]))),)) for v in trio])
    for t in ("u32", "s32"):
        cut = (lambda x: (x & 0xffffff) - (1 << 24) if x >> 23 & 1 else x & 0xffffff) if t == "s32" else (lambda x: x & 0xffffff)
        for half, shift in (("lo", 0), ("hi", 16)):
            binary_int(f, f"mul24.{half}.{t}", t, lambda x, y: cut(x) * cut(y) >> shift)
            f.form(f"mad24.{half}.{t} $d, $a, $b, $c;", [t], [t] * 3,
                   [(v, (wrap(t, (cut(v[0]) * cut(v[1]) >> shift) + v[2]),)) for v in trio])
    f.form("mad24.hi.sat.s32 $d, $a, $b, $c;", ["s32"], ["s32"] * 3,
           [(v, (wrap("s32", clamp32((value("s32", wrap("s32", v[0] << 8)) // 256 * (value("s32", wrap("s32", v[1] << 8)) // 256) >> 16)
                                     + value("s32", v[2]))),)) for v in trio])
    for t, n in (("u32", 32), ("u64", 64)):
        b = f"b{n}"
        four = list(zip(*(integers(b, N, f"c{i}") for i in range(4))))
        for first, second, out in (("add.cc", "addc", lambda p, q: p + q), ("sub.cc", "subc", lambda p, q: p - q)):
            cases = []
            for a0, a1, b0, b1 in four:
                r = out(a0 | a1 << n, b0 | b1 << n)
                cases.append(((a0, a1, b0, b1), (wrap(b, r), wrap(b, r >> n))))
            f.form(f"{first}.{t} $d, $a, $c; {second}.{t} $e, $b, $f;", [b, b], [b] * 4, cases)
        # a difference that does not borrow carries, for a sum
        cases = [((a0, a1, b0, b1), (wrap(b, a0 - b0), wrap(b, a1 + b1 + (a0 >= b0)))) for a0, a1, b0, b1 in four]
        f.form(f"sub.cc.{t} $d, $a, $c; addc.{t} $e, $b, $f;", [b, b], [b] * 4, cases)
        cases = []
        for a0, a1, b0, b1 in four:
            low = a0 * a1 + (b0 | b1 << n)
            cases.append(((a0, a1, b0, b1), (wrap(b, low), wrap(b, low >> n))))
        f.form(f"mad.lo.cc.{t} $d, $a, $b, $c; madc.hi.{t} $e, $a, $b, $f;", [b, b], [b] * 4, cases)
    for ta in ("u32", "s32"):
        for tb in ("u32", "s32"):
            part = lambda v, i, bits, s: ((v >> (i * bits)) & ((1 << bits) - 1)) - (1 << bits if s and v >> (i * bits + bits - 1) & 1 else 0)
            sa, sb = ta == "s32", tb == "s32"
            f.form(f"dp4a.{ta}.{tb} $d, $a, $b, $c;", ["b32"], ["b32"] * 3,
                   [(v, (wrap("b32", v[2] + sum(part(v[0], i, 8, sa) * part(v[1], i, 8, sb) for i in range(4))),)) for v in trio])
            for half, base in (("lo", 0), ("hi", 2)):
                f.form(f"dp2a.{half}.{ta}.{tb} $d, $a, $b, $c;", ["b32"], ["b32"] * 3,
                       [(v, (wrap("b32", v[2] + sum(part(v[0], i, 16, sa) * part(v[1], base + i, 8, sb) for i in range(2))),)) for v in trio])
    pairs = list(zip(integers("b32", N, "p"), integers("b32", N, "q")))
    half = lambda v, h, s: value("s16" if s else "u16", v >> (16 * h) & 0xffff)
    both = lambda function, s: [((x, y), (wrap("u16", function(half(x, 0, s), half(y, 0, s))) |
                                         wrap("u16", function(half(x, 1, s), half(y, 1, s))) << 16,)) for x, y in pairs]
    for t in ("u16x2", "s16x2"):
        s = t[0] == "s"
        for name, function in (("add", lambda x, y: x + y), ("min", min), ("max", max)):
            f.form(f"{name}.{t} $d, $a, $b;", ["b32"], ["b32"] * 2, both(function, s), arch=90)
    f.form("max.relu.s16x2 $d, $a, $b;", ["b32"], ["b32"] * 2, both(lambda x, y: max(x, y, 0), True), arch=90)
    binary_int(f, "min.relu.s32", "s32", lambda x, y: max(min(x, y), 0), arch=90)
    video(f, trio)
    video_parts(f, trio)
    # A policy is opaque: that it may be asked for is what there is to see.
    for policy in ("fractional.L2::evict_last.b64 p, 0.5", "fractional.L2::evict_first.L2::evict_unchanged.b64 p"):
        f.form(f"{{ .reg .b64 p; createpolicy.{policy}; add.u32 $d, $a, 1; pmevent 7; }}", ["b32"], ["b32"],
               [((v[0],), (wrap("b32", v[0] + 1),)) for v in trio[:2]], arch=80)
    return f


def video(f, trio):
    functions = {"vadd": lambda x, y: x + y, "vsub": lambda x, y: x - y, "vabsdiff": lambda x, y: abs(x - y),
                 "vmin": min, "vmax": max, "vavrg": lambda x, y: (x + y + (1 if x + y >= 0 else 0)) >> 1}
    for parts in (2, 4):
        bits = 32 // parts
        for name, function in functions.items():
            for t in ("u32", "s32"):
                get = lambda v, i: value(f"{t[0]}{bits}", v >> (i * bits) & ((1 << bits) - 1))
                cases, sums = [], []
                for v in trio:
                    r = [function(get(v[0], i), get(v[1], i)) for i in range(parts)]
                    cases.append((v, (sum((x & ((1 << bits) - 1)) << (i * bits) for i, x in enumerate(r)),)))
                    sums.append((v, (wrap("b32", v[2] + sum(r)),)))
                ptx = f"{name}{parts}.{t}.{t}.{t}"
                f.form(f"{ptx} $d, $a, $b, $c;", ["b32"], ["b32"] * 3, cases)
                if name in ("vabsdiff", "vadd"):
                    f.form(f"{ptx}.add $d, $a, $b, $c;", ["b32"], ["b32"] * 3, sums)
    amounts = [0, 1, 31, 32, 33, 5, 64, 16]
    for d, a in (("u32", "u32"), ("s32", "s32"), ("u32", "s32")):
        shifts = [(v[0], amounts[i % 8], v[2]) for i, v in enumerate(trio)]
        for mode, limit in (("clamp", lambda s: min(s, 32)), ("wrap", lambda s: s & 31)):
            for name, function in (("vshl", lambda x, s: x << s), ("vshr", lambda x, s: x >> s)):
                low, high = (-(1 << 31), (1 << 31) - 1) if d == "s32" else (0, (1 << 32) - 1)
                shifted = [(v, function(value(a, v[0]), limit(v[1]))) for v in shifts]
                f.form(f"{name}.{d}.{a}.u32.{mode} $d, $a, $b;", ["b32"], ["b32"] * 2,
                       [(v[:2], (wrap("b32", r),)) for v, r in shifted])
                if name == "vshr":  # of vshl hardware makes something else than the ISA says: it is not supported
                    f.form(f"{name}.{d}.{a}.u32.sat.{mode} $d, $a, $b;", ["b32"], ["b32"] * 2,
                           [(v[:2], (wrap("b32", max(low, min(high, r))),)) for v, r in shifted])
                f.form(f"{name}.{d}.{a}.u32.{mode}.add $d, $a, $b, $c;", ["b32"], ["b32"] * 3,
                       [(v, (wrap("b32", r + v[2]),)) for v, r in shifted])


def part_of(word, name, signed):
    """The byte or half of a word that a selector names."""
    bits, index = (32, 0) if not name else (8, int(name[1])) if name[0] == "b" else (16, int(name[1]))
    return value(f"{'s' if signed else 'u'}{bits}", word >> (bits * index) & ((1 << bits) - 1))


def limited(r, bits, signed):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return max(low, min(high, r))


def video_parts(f, trio):
    functions = {"vadd": lambda x, y: x + y, "vsub": lambda x, y: x - y, "vabsdiff": lambda x, y: abs(x - y), "vmin": min, "vmax": max}
    dot = lambda name: "." + name if name else ""
    picks = [("b0", "b3"), ("", "h1"), ("h0", ""), ("b1", "b2"), ("b3", "h1")]
    for name, function in functions.items():
        for n, (pa, pb) in enumerate(picks):
            td, ta, tb = ("u32", "s32", "u32")[n % 3], ("s32", "u32")[n % 2], ("u32", "s32")[n // 2 % 2]
            raw = [(v, function(part_of(v[0], pa, ta == "s32"), part_of(v[1], pb, tb == "s32"))) for v in trio]
            for sat in ("", ".sat"):
                f.form(f"{name}.{td}.{ta}.{tb}{sat} $d, $a{dot(pa)}, $b{dot(pb)};", ["b32"], ["b32"] * 2,
                       [(v[:2], (wrap("b32", limited(r, 32, td == "s32") if sat else r),)) for v, r in raw])
    for n, (pa, pb) in enumerate(picks):
        less = lambda v: int(part_of(v[0], pa, n % 2) < part_of(v[1], pb, False))
        f.form(f"vset.{'s' if n % 2 else 'u'}32.u32.lt $d, $a{dot(pa)}, $b{dot(pb)};", ["b32"], ["b32"] * 2,
               [(v[:2], (less(v),)) for v in trio])
    f.form("vset.s32.s32.ge.add $d, $a.h1, $b.b0, $c;", ["b32"], ["b32"] * 3,
           [(v, (wrap("b32", int(part_of(v[0], "h1", True) >= part_of(v[1], "b0", True)) + v[2]),)) for v in trio])
    f.form("vshr.s32.s32.u32.clamp $d, $a.h1, $b.b0;", ["b32"], ["b32"] * 2,
           [(v[:2], (wrap("b32", part_of(v[0], "h1", True) >> min(part_of(v[1], "b0", False), 32)),)) for v in trio])
    video_multiply(f, trio, dot)
    # Packed: parts of a, then of b, by number; the highest first.
    for parts, letter, orders in ((2, "h", (("10", "32"), ("01", "23"), ("30", "11"))),
                                  (4, "b", (("3210", "7654"), ("0123", "0077"), ("7164", "5203")))):
        bits = 32 // parts
        for oa, ob in orders:
            for t in ("u32", "s32"):
                def pick(v, digit):
                    word = v[0] if int(digit) < parts else v[1]
                    return value(f"{t[0]}{bits}", word >> (bits * (int(digit) % parts)) & ((1 << bits) - 1))
                def results(v, function):
                    return [function(pick(v, oa[-1 - i]), pick(v, ob[-1 - i])) for i in range(parts)]
                for name, function in functions.items():
                    for mask in (range(parts), [0], [parts - 1]):
                        chosen = "".join(str(i) for i in sorted(mask, reverse=True))
                        field = lambda x, i: (x & ((1 << bits) - 1)) << (bits * i)
                        cases = [(v, (sum(field(r, i) if i in mask else v[2] & field(-1, i)
                                          for i, r in enumerate(results(v, function))),)) for v in trio]
                        f.form(f"{name}{parts}.{t}.{t}.{t} $d.{letter}{chosen}, $a.{letter}{oa}, $b.{letter}{ob}, $c;", ["b32"],
                               ["b32"] * 3, cases[:6])
                f.form(f"vabsdiff{parts}.{t}.{t}.{t}.add $d.{letter}{parts - 1}, $a.{letter}{oa}, $b.{letter}{ob}, $c;", ["b32"],
                       ["b32"] * 3, [(v, (wrap("b32", v[2] + results(v, functions["vabsdiff"])[-1]),)) for v in trio])


def video_multiply(f, trio, dot):
    """The ISA has whole words of type u32 unsigned, and c as well; an H200 takes them as signed, and so does this."""
    for n, (pa, pb) in enumerate((("", ""), ("b0", "h1"), ("h0", "b3"), ("", "b1"))):
        for ta, tb in (("u32", "u32"), ("s32", "u32"), ("s32", "s32")):
            for scale in ("", ".shr7", ".shr15"):
                for sat in ("", ".sat"):
                    for variant in ("", "po", "-ab", "-c"):
                        if variant and (n + len(scale) + len(sat) + len(variant)) % 2:
                            continue  # a half of them is enough
                        signed = ta == "s32" or tb == "s32" or variant in ("-ab", "-c")
                        if sat and scale and not signed:
                            continue
                        def run(v):
                            product = part_of(v[0], pa, ta == "s32" or not pa) * part_of(v[1], pb, tb == "s32" or not pb)
                            c = value("s32", v[2])
                            r = (-product if variant == "-ab" else product) + (-c if variant == "-c" else c) + (variant == "po")
                            r >>= int(scale[4:] or 0)
                            return wrap("b32", limited(r, 32, signed) if sat else r)
                        d = "s32" if signed else "u32"
                        a, c = ("-" if variant == "-ab" else "") + "$a", ("-" if variant == "-c" else "") + "$c"
                        po = ".po" if variant == "po" else ""
                        # -(-2^31) as c is not what the ISA's pseudo-code says it is
                        cases = [v for v in trio if not (variant == "-c" and v[2] == 1 << 31)]
                        f.form(f"vmad.{d}.{ta}.{tb}{po}{sat}{scale} $d, {a}{dot(pa)}, $b{dot(pb)}, {c};", ["b32"], ["b32"] * 3,
                               [(v, (run(v),)) for v in cases[:5]])


def make_logic():
    f = File("logic.txt")
    for n in (16, 32, 64):
        t = f"b{n}"
        top = (1 << n) - 1
        binary_int(f, f"and.{t}", t, lambda x, y: x & y)
        binary_int(f, f"or.{t}", t, lambda x, y: x | y)
        binary_int(f, f"xor.{t}", t, lambda x, y: x ^ y)
        f.form(f"not.{t} $d, $a;", [t], [t], [((x,), (x ^ top,)) for x in integers(t, N, "not")])
        f.form(f"cnot.{t} $d, $a;", [t], [t], [((x,), (int(x == 0),)) for x in integers(t, N, "cnot")])
        amounts = [0, 1, 7, n // 2, n - 1, n, n + 1, 2 * n, 255, 256, 0xffffffff, 5, 13, 3]
        for x_type, name, function in ((t, "shl", lambda x, s: wrap(t, x << min(s, n))),
                                       (f"u{n}", "shr", lambda x, s: x >> min(s, n)),
                                       (f"s{n}", "shr", lambda x, s: value(f"s{n}", x) >> min(s, n - 1))):
            f.form(f"{name}.{x_type} $d, $a, $b;", [x_type], [x_type, "u32"],
                   [((x, s), (wrap(t, function(x, s)),)) for x, s in zip(integers(x_type, N, name), amounts)])
    for n in (32, 64):
        t = f"b{n}"
        values = integers(t, N, "bits")
        f.form(f"popc.{t} $d, $a;", ["u32"], [t], [((x,), (bin(x).count("1"),)) for x in values])
        f.form(f"clz.{t} $d, $a;", ["u32"], [t], [((x,), (n - x.bit_length(),)) for x in values])
        f.form(f"brev.{t} $d, $a;", [t], [t], [((x,), (int(f"{x:0{n}b}"[::-1], 2),)) for x in values])
        for s in "us":
            def find(x):
                v = value(f"s{n}", x) if s == "s" else x
                v = ~v if v < 0 else v
                return v.bit_length() - 1
            f.form(f"bfind.{s}{n} $d, $a;", ["u32"], [f"{s}{n}"], [((x,), (wrap("u32", find(x)),)) for x in values])
            f.form(f"bfind.shiftamt.{s}{n} $d, $a;", ["u32"], [f"{s}{n}"],
                   [((x,), (wrap("u32", -1 if find(x) < 0 else n - 1 - find(x)),)) for x in values])
        places = [(0, 0), (0, n), (3, 8), (n - 4, 8), (n, 5), (255, 1), (1, n - 1), (7, 1), (n - 1, 1), (0, 255), (5, 0), (16, 16),
                  (256 + 3, 8), (2, 256 + 5)]
        # Beyond 255 the ISA promises nothing; this is what an H200 does.
        place = (lambda v: min(v, 255)) if n == 64 else (lambda v: v & 255)
        for s in "us":
            cases = []
            for x, (p, c) in zip(integers(f"b{n}", N, "bfe" + s), places):
                pos, length = place(p), place(c)
                sign_at = min(pos + length - 1, n - 1)
                sign = s == "s" and length > 0 and x >> sign_at & 1
                r = 0
                for i in range(n):
                    bit = x >> (pos + i) & 1 if i < length and pos + i < n else sign
                    r |= int(bool(bit)) << i
                cases.append(((x, p, c), (r,)))
            f.form(f"bfe.{s}{n} $d, $a, $b, $c;", [t], [t, "u32", "u32"], cases)
        cases = []
        for x, y, (p, c) in zip(integers(t, N, "bfi1"), integers(t, N, "bfi2"), places):
            pos, length = place(p), place(c)
            field = sum(1 << i for i in range(pos, min(pos + length, n)))
            cases.append(((x, y, p, c), (y & ~field | (x << pos) & field,)))
        f.form(f"bfi.{t} $d, $a, $b, $c, $f;", [t], [t, t, "u32", "u32"], cases)
    trio = list(zip(*(integers("b32", N, f"l{i}") for i in range(3))))
    for lut in (0x00, 0xff, 0x96, 0xe8, 0xca, 0x1b, 0x80, 0x2d):
        cases = []
        for a, b, c in trio:
            r = 0
            for i in range(32):
                r |= (lut >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i
            cases.append(((a, b, c), (r,)))
        f.form(f"lop3.b32 $d, $a, $b, $c, {lut};", ["b32"], ["b32"] * 3, cases)
    for op, together in (("and", lambda p, q: p & q), ("or", lambda p, q: p | q)):
        for sign in ("", "!"):
            cases = [((a, b, c, q), (a & b & c, together(int(a & b & c != 0), q ^ (sign == "!"))))
                     for i, (a, b, c) in enumerate(trio) for q in (i & 1,)]
            f.form(f"{{ .reg .pred p, q; setp.ne.u32 q, $f, 0; lop3.{op}.b32 $d|p, $a, $b, $c, 0x80, {sign}q; selp.u32 $e, 1, 0, p; }}",
                   ["b32", "u32"], ["b32"] * 3 + ["u32"], cases, arch=75)
    f.form("{ .reg .pred p, q; setp.ne.u32 q, $f, 0; lop3.or.b32 _|p, $a, $b, $c, 0xfe, q; selp.u32 $d, 1, 0, p; }", ["u32"],
           ["b32"] * 3 + ["u32"], [((a, b, c, q), (int((a | b | c) != 0) | q,)) for a, b, c in trio[:6] + [(0, 0, 0)] for q in (0, 1)], arch=75)
    amounts = [0, 1, 31, 32, 33, 64, 0xffffffff, 7, 16, 5, 12, 63, 30, 2]
    for direction in "lr":
        for mode in ("clamp", "wrap"):
            cases = []
            for (low, high, _), s in zip(trio, amounts):
                k = s & 31 if mode == "wrap" else min(s, 32)
                both = high << 32 | low
                cases.append(((low, high, s), (wrap("b32", both << k >> 32 if direction == "l" else both >> k),)))
            f.form(f"shf.{direction}.{mode}.b32 $d, $a, $b, $c;", ["b32"], ["b32", "b32", "u32"], cases)
    permute(f)
    for mode in ("clamp", "wrap"):
        cases, extensions = [], {"u32": [], "s32": []}
        for p, c in zip([0, 1, 31, 32, 5, 8, 16, 33, 0, 30, 255, 3, 4, 7], [0, 32, 1, 4, 27, 8, 40, 2, 31, 5, 1, 33, 64, 9]):
            a, b = (p & 31, c & 31) if mode == "wrap" else (p, c)
            cases.append(((p, c), (wrap("b32", ((1 << min(b, 32)) - 1) << a) if a < 32 else 0,)))
        f.form(f"bmsk.{mode}.b32 $d, $a, $b;", ["b32"], ["u32", "u32"], cases, arch=75)
        for t in extensions:
            for x, s in zip(integers("b32", N, "szext" + t), amounts):
                k = s & 31 if mode == "wrap" else s
                r = x if k >= 32 else x & ((1 << k) - 1)
                if t == "s32" and 0 < k < 32 and x >> (k - 1) & 1:
                    r |= wrap("b32", -1 << k)
                extensions[t].append(((x, s), (r,)))
            f.form(f"szext.{mode}.{t} $d, $a, $b;", [t], [t, "u32"], extensions[t], arch=75)
    compare_integers(f)
    wide(f)
    return f


def wide(f):
    """128 bits: moves, local memory, exchange."""
    pairs = list(zip(integers("b64", 8, "wide0"), integers("b64", 8, "wide1")))
    same = [(v, v) for v in pairs]
    declare = "{ .reg .b128 q, r; .reg .b64 x, y; mov.b128 q, {$a, $b};"
    f.form(f"{declare} mov.b128 r, q; mov.b128 {{$d, $e}}, r; }}", ["b64"] * 2, ["b64"] * 2, same, arch=75)
    f.form(f"{declare} mov.b128 {{x, y}}, q; mov.b128 r, {{y, x}}; mov.b128 {{$d, $e}}, r; }}", ["b64"] * 2, ["b64"] * 2,
           [(v, v[::-1]) for v in pairs], arch=75)
    cell = "{ .local .align 16 .b8 cell[16];" + declare[1:]
    f.form(f"{cell} st.local.b128 [cell], q; ld.local.v2.b64 {{$d, $e}}, [cell]; }}", ["b64"] * 2, ["b64"] * 2, same, arch=75)
    f.form(f"{cell} st.local.v2.b64 [cell], {{$b, $a}}; ld.local.b128 r, [cell]; mov.b128 {{$d, $e}}, r; }}", ["b64"] * 2,
           ["b64"] * 2, [(v, v[::-1]) for v in pairs], arch=75)
    shared = "{ .shared .align 16 .b8 cells[512]; .reg .b32 at, lane;" + declare[1:] + \
             " mov.u32 at, cells; mov.u32 lane, %laneid; mad.lo.u32 at, lane, 16, at; st.shared.b128 [at], q;"
    f.form(f"{shared} mov.b128 r, {{$b, $a}}; atom.shared.exch.b128 q, [at], r; ld.shared.v2.b64 {{$d, $e}}, [at]; }}",
           ["b64"] * 2, ["b64"] * 2, [(v, v[::-1]) for v in pairs], arch=90)
    f.form(f"{shared} mov.b128 r, {{$b, $a}}; atom.shared.cas.b128 r, [at], q, r; ld.shared.v2.b64 {{$d, $e}}, [at]; }}",
           ["b64"] * 2, ["b64"] * 2, [(v, v[::-1]) for v in pairs], arch=90)


def permute(f):
    def pick(a, b, selector):
        both = b << 32 | a
        r = 0
        for i in range(4):
            s = selector >> (4 * i) & 15
            byte = both >> (8 * (s & 7)) & 255
            r |= ((255 if byte >> 7 else 0) if s & 8 else byte) << (8 * i)
        return r
    r = rng("prmt")
    words = [(r.getrandbits(32), r.getrandbits(32), r.getrandbits(32)) for _ in range(N)]
    f.form("prmt.b32 $d, $a, $b, $c;", ["b32"], ["b32"] * 3, [(w, (pick(w[0], w[1], w[2] & 0xffff),)) for w in words])
    patterns = {"f4e": "3210 4321 5432 6543", "b4e": "5670 6701 7012 0123", "rc8": "0000 1111 2222 3333",
                "ecl": "3210 3211 3222 3333", "ecr": "0000 1110 2210 3210", "rc16": "1010 3232 1010 3232"}
    for mode, text in patterns.items():
        table = [int(p, 16) for p in text.split()]
        f.form(f"prmt.b32.{mode} $d, $a, $b, $c;", ["b32"], ["b32"] * 3,
               [((a, b, c & 3), (pick(a, b, table[c & 3]),)) for a, b, c in words[:8]])


COMPARE = {"eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
           "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y}


def compare_integers(f):
    for t in INT_TYPES:
        a, b = integers(t, N, "cmp1"), integers(t, N, "cmp2")
        b = [x if i % 3 == 0 else y for i, (x, y) in enumerate(zip(a, b))]
        for name, function in COMPARE.items():
            f.form(f"setp.{name}.{t} $d, $a, $b;", ["pred"], [t, t],
                   [((x, y), (int(function(value(t, x), value(t, y))),)) for x, y in zip(a, b)])
        f.form(f"set.lt.u32.{t} $d, $a, $b;", ["u32"], [t, t],
               [((x, y), (0xffffffff if value(t, x) < value(t, y) else 0,)) for x, y in zip(a, b)])
        f.form(f"set.ge.f32.{t} $d, $a, $b;", ["b32"], [t, t],
               [((x, y), (0x3f800000 if value(t, x) >= value(t, y) else 0,)) for x, y in zip(a, b)])
    a, b, c = integers("s32", N, "1"), integers("s32", N, "2"), integers("s32", N, "3")
    for how, function in (("and", lambda p, q: p and q), ("or", lambda p, q: p or q), ("xor", lambda p, q: p != q)):
        f.form(f"{{ .reg .pred q; setp.gt.s32 q, $c, 0; setp.lt.{how}.s32 $d, $a, $b, !q; }}", ["pred"], ["s32"] * 3,
               [((x, y, z), (int(function(value("s32", x) < value("s32", y), not value("s32", z) > 0)),)) for x, y, z in zip(a, b, c)])
    for t in ("b16", "b32", "b64"):
        f.form(f"{{ .reg .pred q; setp.gt.s32 q, $c, 0; selp.{t} $d, $a, $b, q; }}", [t], [t, t, "s32"],
               [((x, y, z), (x if value("s32", z) > 0 else y,)) for x, y, z in zip(integers(t, N, "x"), integers(t, N, "y"), c)])
        f.form(f"slct.{t}.s32 $d, $a, $b, $c;", [t], [t, t, "s32"],
               [((x, y, z), (x if value("s32", z) >= 0 else y,)) for x, y, z in zip(integers(t, N, "x"), integers(t, N, "y"), c)])


def saturate(v):
    if v[1] == NAN or v[0]:
        return (0, Fraction(0))
    return (0, min(v[1], Fraction(1)) if v[1] != INF else Fraction(1))


def float_cases(t, arity, seed, function, mode="rn", ftz=False, sat=False, relu=False, count=20):
    cases = []
    for bits in zip(*(float_values(t, count, f"{seed}{i}") for i in range(arity))):
        args = [decode(t, b) for b in bits]
        if ftz:
            args = [flush(t, a) for a in args]
        sign, v = function(*args)
        v = round_fraction(t, sign, v, mode)
        r = (sign, v)
        if ftz:
            r = flush(t, r)
        if sat:
            r = saturate(r)
        if relu and r[1] != NAN and (r[0] or r[1] == 0):
            r = (0, Fraction(0))
        cases.append((bits, (encode(t, r),)))
    return cases


def order(a, b):
    """-1, 0, 1 of two values that are no NaN; infinities are ordered."""
    key = lambda v: (float("inf") if v[1] == INF else v[1]) * (-1 if v[0] else 1)
    return (key(a) > key(b)) - (key(a) < key(b))


def pick_extreme(a, b, largest, nan_wins):
    if a[1] == NAN or b[1] == NAN:
        return (0, NAN) if nan_wins or a[1] == b[1] else (b if a[1] == NAN else a)
    if a[1] == 0 and b[1] == 0:
        return (a[0] & b[0] if largest else a[0] | b[0], Fraction(0))
    return a if (order(a, b) > 0) == largest else b


def make_floats():
    f = File("floats.txt")
    operations = [("add", 2, add), ("sub", 2, lambda a, b, mode="rn": add(a, neg(b), mode)), ("mul", 2, lambda a, b: mul(a, b)),
                  ("fma", 3, None)]
    for t in ("f32", "f64"):
        for name, arity, function in operations:
            for mode in ("rn", "rz", "rm", "rp"):
                for ftz, sat in ((False, False), (True, False), (False, True), (True, True)):
                    if t == "f64" and (ftz or sat):
                        continue
                    if name == "fma":
                        run = lambda a, b, c: add(mul(a, b), c, mode)
                    elif name == "mul":
                        run = mul
                    else:
                        run = lambda a, b: function(a, b, mode)
                    ptx = f"{name}.{mode}{'.ftz' if ftz else ''}{'.sat' if sat else ''}.{t}"
                    operands = ", ".join(["$d", "$a", "$b", "$c"][: arity + 1])
                    f.form(f"{ptx} {operands};", [t], [t] * arity, float_cases(t, arity, ptx, run, mode, ftz, sat, count=12))
        for mode in ("rn", "rz", "rm", "rp"):
            for ftz in ("", ".ftz") if t == "f32" else ("",):
                one = (0, Fraction(1))
                f.form(f"div.{mode}{ftz}.{t} $d, $a, $b;", [t], [t, t], float_cases(t, 2, f"div{mode}{ftz}", div, mode, bool(ftz)))
                f.form(f"rcp.{mode}{ftz}.{t} $d, $a;", [t], [t], float_cases(t, 1, f"rcp{mode}{ftz}", lambda a: div(one, a), mode, bool(ftz)))
                f.form(f"sqrt.{mode}{ftz}.{t} $d, $a;", [t], [t], float_cases(t, 1, f"sqrt{mode}{ftz}", root, mode, bool(ftz)))
        for largest, name in ((False, "min"), (True, "max")):
            for ftz in ("", ".ftz") if t == "f32" else ("",):
                f.form(f"{name}{ftz}.{t} $d, $a, $b;", [t], [t, t],
                       float_cases(t, 2, name + ftz, lambda a, b: pick_extreme(a, b, largest, False), ftz=bool(ftz)))
            if t == "f32":
                f.form(f"{name}.NaN.f32 $d, $a, $b;", [t], [t, t],
                       float_cases(t, 2, name + "nan", lambda a, b: pick_extreme(a, b, largest, True)), arch=80)
                def xorsign(a, b):
                    r = pick_extreme((0, a[1]), (0, b[1]), largest, False)
                    return (a[0] ^ b[0], r[1])
                f.form(f"{name}.xorsign.abs.f32 $d, $a, $b;", [t], [t, t], float_cases(t, 2, name + "xs", xorsign), arch=86)
                for nan in (False, True):
                    three = lambda a, b, c: pick_extreme(pick_extreme(a, b, largest, nan), c, largest, nan)
                    f.form(f"{name}{'.NaN' if nan else ''}.f32 $d, $a, $b, $c;", [t], [t] * 3,
                           float_cases(t, 3, f"{name}3{nan}", three), arch=100)
                f.form(f"{name}.xorsign.abs.f32 $d, $a, $b, $c;", [t], [t] * 3,
                       float_cases(t, 3, name + "xs3", lambda a, b, c: xorsign(xorsign(a, b), c)), arch=100)
        f.form(f"abs.{t} $d, $a;", [t], [t], float_cases(t, 1, "abs", lambda a: (0, a[1])))
        f.form(f"neg.{t} $d, $a;", [t], [t], float_cases(t, 1, "neg", neg))
        f.form(f"copysign.{t} $d, $a, $b;", [t], [t, t], float_cases(t, 2, "copysign", lambda a, b: (a[0], b[1])))
        classes = {"finite": lambda t, v: v not in (INF, NAN), "infinite": lambda t, v: v == INF, "number": lambda t, v: v != NAN,
                   "notanumber": lambda t, v: v == NAN,
                   "normal": lambda t, v: v not in (INF, NAN) and v >= Fraction(2) ** (1 - FLOATS[t][1]),
                   "subnormal": lambda t, v: v not in (INF, NAN) and 0 < v < Fraction(2) ** (1 - FLOATS[t][1])}
        for name, function in classes.items():
            f.form(f"testp.{name}.{t} $d, $a;", ["pred"], [t],
                   [((b,), (int(function(t, decode(t, b)[1])),)) for b in float_values(t, 24, "testp")])
        compare_floats(f, t, 75)
    return f


def compare_floats(f, t, arch, count=18):
    a, b = float_values(t, count, "c1"), float_values(t, count, "c2")
    b = [x if i % 3 == 0 else y for i, (x, y) in enumerate(zip(a, b))]
    tests = {**{n: (c, False) for n, c in COMPARE.items()}, **{n + "u": (c, True) for n, c in COMPARE.items()}}
    for ftz in ("", ".ftz") if t == "f32" else ("",):
        for name, (function, unordered) in tests.items():
            cases = []
            for x, y in zip(a, b):
                p, q = decode(t, x), decode(t, y)
                if ftz:
                    p, q = flush(t, p), flush(t, q)
                cases.append(((x, y), (int(unordered) if NAN in (p[1], q[1]) else int(function(order(p, q), 0)),)))
            f.form(f"setp.{name}{ftz}.{t} $d, $a, $b;", ["pred"], [t, t], cases, arch=arch)
        for name, wanted in (("num", False), ("nan", True)):
            f.form(f"setp.{name}{ftz}.{t} $d, $a, $b;", ["pred"], [t, t],
                   [((x, y), (int((NAN in (decode(t, x)[1], decode(t, y)[1])) == wanted),)) for x, y in zip(a, b)], arch=arch)


def make_halves():
    f = File("halves.txt")
    fma = lambda a, b, c: add(mul(a, b), c)
    sub = lambda a, b: add(a, neg(b))
    for t in ("f16", "bf16"):
        arch = 75 if t == "f16" else 90
        for name, arity, function in (("add", 2, add), ("sub", 2, sub), ("mul", 2, mul), ("fma.rn", 3, fma)):
            variants = ["", ".ftz", ".sat", ".ftz.sat"] if t == "f16" else [""]
            if name == "fma.rn":
                variants = variants + [".relu"]
            for v in variants:
                least = max(80, arch) if ".relu" in v and t == "f16" else (80 if name == "fma.rn" and t == "bf16" else arch)
                operands = ", ".join(["$d", "$a", "$b", "$c"][: arity + 1])
                cases = float_cases(t, arity, f"{name}{v}", function, "rn", "ftz" in v, "sat" in v, "relu" in v, count=24)
                f.form(f"{name}{v}.{t} {operands};", [t], [t] * arity, cases, arch=least)
                joined = [(tuple(x | y << 16 for x, y in zip(p[0], q[0])), (p[1][0] | q[1][0] << 16,))
                          for p, q in zip(cases[::2], cases[1::2]) if NAN not in (p[1][0], q[1][0])]
                f.form(f"{name}{v}.{t}x2 {operands};", ["b32"], ["b32"] * arity, joined, arch=least)
        for largest, name in ((False, "min"), (True, "max")):
            for nan in ("", ".NaN"):
                f.form(f"{name}{nan}.{t} $d, $a, $b;", [t], [t, t],
                       float_cases(t, 2, name + nan, lambda a, b: pick_extreme(a, b, largest, bool(nan))), arch=80)
        for v in ("", ".relu"):  # a factor that is the NaN 0x7ff7, of either sign, makes the result zero
            outside = (0x7ff7, 0xfff7)
            plain = [c for c in float_cases(t, 3, f"fma.rn.oob{v}", fma, "rn", False, False, bool(v), count=24)
                     if not {c[0][0], c[0][1]} & set(outside)]
            numbers = [c[0] for c in plain if NAN not in [decode(t, x)[1] for x in c[0]]][:12]
            filled = [((o, b, c), (0,)) for _, b, c in numbers for o in outside] + [((a, o, c), (0,)) for a, _, c in numbers for o in outside]
            operands = ", ".join(["$d", "$a", "$b", "$c"])
            f.form(f"fma.rn.oob{v}.{t} {operands};", [t], [t] * 3, plain + filled, arch=90)
            joined = [(tuple(x | y << 16 for x, y in zip(p[0], q[0])), (p[1][0] | q[1][0] << 16,))
                      for p, q in zip(plain, filled) if p[1][0] != NAN]
            f.form(f"fma.rn.oob{v}.{t}x2 {operands};", ["b32"], ["b32"] * 3, joined, arch=90)
        f.form(f"neg.{t} $d, $a;", [t], [t], float_cases(t, 1, "neg", neg), arch=max(80, arch if t == "f16" else 80))
        if t == "f16":
            for name, function in (("neg", neg), ("abs", lambda a: (0, a[1]))):
                f.form(f"{name}.ftz.f16 $d, $a;", [t], [t], float_cases(t, 1, name + "ftz", function, ftz=True), arch=75)
        f.form(f"abs.{t} $d, $a;", [t], [t], float_cases(t, 1, "abs", lambda a: (0, a[1])), arch=80)
        compare_floats(f, t, arch)
    return f


def float_to_int(t, bits, to, mode, ftz=False):
    a = decode(t, bits)
    if ftz:
        a = flush(t, a)
    n = BITS[to]
    if a[1] == NAN:
        return 0 if t != "f64" and n < 64 else 1 << (n - 1)
    low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if to[0] == "s" else (0, (1 << n) - 1)
    if a[1] == INF:
        return wrap(to, low if a[0] else high)
    r = round_integer(a[1], {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}[mode], a[0])
    return wrap(to, max(low, min(high, -r if a[0] else r)))


def register_bits(to, v):
    """8-bit results lie extended in a 32-bit register."""
    return wrap("b32", value(to, v)) if BITS[to] == 8 else v


def make_convert():
    f = File("convert.txt")
    ints = ["u8", "s8"] + INT_TYPES
    for a in ints:
        for b in ints:
            if a == b:
                continue
            values = integers(a, 10, f"{a}{b}")
            f.form(f"cvt.{b}.{a} $d, $a;", [b], [a],
                   [((x,), (register_bits(b, wrap(b, value(a, x))),)) for x in values])
            low, high = (-(1 << (BITS[b] - 1)), (1 << (BITS[b] - 1)) - 1) if b[0] == "s" else (0, (1 << BITS[b]) - 1)
            narrows = not (low <= (-(1 << (BITS[a] - 1)) if a[0] == "s" else 0) and
                           ((1 << (BITS[a] - (a[0] == "s"))) - 1) <= high)
            if narrows:
                f.form(f"cvt.sat.{b}.{a} $d, $a;", [b], [a],
                       [((x,), (register_bits(b, wrap(b, max(low, min(high, value(a, x))))),)) for x in values])
    for t in ("f16", "f32", "f64"):
        for i in ints:
            for mode in ("rn", "rz", "rm", "rp"):
                f.form(f"cvt.{mode}.{t}.{i} $d, $a;", [t], [i],
                       [((x,), (encode(t, from_fraction(Fraction(value(i, x))), mode),)) for x in integers(i, 10, f"{t}{mode}")])
            for mode in ("rni", "rzi", "rmi", "rpi"):
                for ftz in ("", ".ftz") if t == "f32" else ("",):
                    f.form(f"cvt.{mode}{ftz}.{i}.{t} $d, $a;", [i], [t],
                           [((x,), (register_bits(i, float_to_int(t, x, i, mode, bool(ftz))),))
                            for x in float_values(t, 12, f"{i}{mode}")])
        for mode in ("rni", "rzi", "rmi", "rpi"):
            cases = []
            for x in float_values(t, 14, mode):
                a = decode(t, x)
                if a[1] not in (INF, NAN):
                    a = (a[0], Fraction(round_integer(a[1], {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}[mode], a[0])))
                cases.append(((x,), (encode(t, a),)))
            f.form(f"cvt.{mode}.{t}.{t} $d, $a;", [t], [t], cases)
    convert_floats(f)
    return f


def convert_floats(f):
    for source in ("f16", "bf16", "f32", "f64"):
        for to in ("f16", "bf16", "f32", "f64"):
            if source == to or (source == "bf16" and to != "f32") or (to == "bf16" and source != "f32"):
                continue
            narrows = FLOATS[to][0] < FLOATS[source][0]
            for mode in (["rn", "rz"] if to in ("f16", "bf16") else ["rn", "rz", "rm", "rp"]) if narrows else [""]:
                for suffix in ([""] + ([".sat"] if to in ("f16", "f32") and source != "bf16" else [])):
                    cases = []
                    for x in float_values(source, 16, f"{to}{mode}"):
                        a = decode(source, x)
                        a = (a[0], round_fraction(to, a[0], a[1], mode or "rn"))
                        cases.append(((x,), (encode(to, saturate(a) if suffix else a),)))
                    dot = f".{mode}" if mode else ""
                    arch = 90 if source == "bf16" or suffix and to != "f32" else 80 if "bf16" in (source, to) or to == "f16" and mode == "rz" else 75
                    f.form(f"cvt{dot}{suffix}.{to}.{source} $d, $a;", [to], [source], cases, arch=arch)
    for ftz in ("", ".ftz"):
        cases = []
        for x in float_values("f32", 16, f"sat{ftz}"):
            a = decode("f32", x)
            cases.append(((x,), (encode("f32", saturate(flush("f32", a) if ftz else a)),)))
        f.form(f"cvt{ftz}.sat.f32.f32 $d, $a;", ["f32"], ["f32"], cases)
    for mode in ("rna",):
        f.form(f"cvt.{mode}.tf32.f32 $d, $a;", ["b32"], ["f32"],
               [((x,), (encode("tf32", decode("f32", x), mode),)) for x in float_values("f32", 24, "tf32") if decode("f32", x)[1] not in (NAN,)], arch=80)
    for t in ("f16", "bf16"):
        for relu in ("", ".relu"):
            cases = []
            for x, y in zip(float_values("f32", 20, t + "1"), float_values("f32", 20, t + "2")):
                pair = [decode("f32", x), decode("f32", y)]
                if relu:
                    pair = [(0, Fraction(0)) if a[0] and a[1] != NAN else a for a in pair]
                r = [encode(t, a) for a in pair]
                if NAN not in r:
                    cases.append(((x, y), (r[0] << 16 | r[1],)))
            f.form(f"cvt.rn{relu}.{t}x2.f32 $d, $a, $b;", ["b32"], ["f32", "f32"], cases, arch=80)
    for name, digits, lowest, top in (("e4m3", 4, -9, Fraction(448)), ("e5m2", 3, -16, Fraction(57344))):
        def narrow(a):
            sign, v = a
            if v == NAN:
                return 0x7f
            if v != INF and v != 0:
                place = place_of(v, digits, lowest)
                v = round_integer(v / Fraction(2) ** place, "rn", sign) * Fraction(2) ** place
            v = top if v == INF or v > top else v
            if v == 0:
                return sign << 7
            place = place_of(v, digits, lowest)
            return sign << 7 | ((place - lowest) << (digits - 1)) + int(v / Fraction(2) ** place)
        values = float_values("f16", 40, name)
        as_f32 = [encode("f32", decode("f16", v)) for v in values]
        as_f32 = [0x7fc00000 if v == NAN else v for v in as_f32]
        cases = [((x, y), (narrow(decode("f32", x)) << 8 | narrow(decode("f32", y)),)) for x, y in zip(as_f32[::2], as_f32[1::2])]
        f.form(f"cvt.rn.satfinite.{name}x2.f32 $d, $a, $b;", ["b16"], ["f32", "f32"], cases, arch=89)
        def widen(b):
            m, bits = digits - 1, b & 0x7f
            if name == "e4m3" and bits == 0x7f or name == "e5m2" and bits > 0x7c:
                return NAN
            if name == "e5m2" and bits == 0x7c:
                return encode("f16", (b >> 7, INF))
            e, s = bits >> m, bits & ((1 << m) - 1)
            v = Fraction(s + (1 << m if e else 0)) * Fraction(2) ** (lowest + (e - 1 if e else 0))
            return encode("f16", (b >> 7, v))
        pairs = [(b, (b * 37 + 11) & 255) for b in range(0, 256, 5)]
        f.form(f"cvt.rn.f16x2.{name}x2 $d, $a;", ["b32"], ["b16"],
               [((h << 8 | l,), (widen(h) << 16 | widen(l),)) for h, l in pairs if NAN not in (widen(h), widen(l))], arch=89)
    pairs = list(zip(integers("s32", N, "pk1"), integers("s32", N, "pk2")))
    for t in ("s16", "u16"):
        low, high = (-(1 << 15), (1 << 15) - 1) if t == "s16" else (0, 65535)
        cut = lambda v: wrap(t, max(low, min(high, value("s32", v))))
        f.form(f"cvt.pack.sat.{t}.s32 $d, $a, $b;", ["b32"], ["s32", "s32"], [((x, y), (cut(x) << 16 | cut(y),)) for x, y in pairs])
    for n in (8, 4, 2):
        small = [(x % (3 << n), wrap("s32", y % (3 << n) - (2 << n))) for x, y in pairs]
        for t in ("s", "u"):
            low, high = (-(1 << n - 1), (1 << n - 1) - 1) if t == "s" else (0, (1 << n) - 1)
            cut = lambda v: max(low, min(high, value("s32", v))) & ((1 << n) - 1)
            f.form(f"cvt.pack.sat.{t}{n}.s32.b32 $d, $a, $b, $c;", ["b32"], ["s32", "s32", "b32"],
                   [((x, y, x ^ y), (wrap("b32", (x ^ y) << 2 * n) | cut(x) << n | cut(y),)) for x, y in pairs + small])


def make_approximate():
    """Errors as the ISA states them; the expected value is float64's."""
    f = File("approximate.txt")
    r = rng("approximate")
    bits = lambda v: encode("f32", from_fraction(Fraction(v)))
    f32 = lambda v: float(signed(decode("f32", bits(v))))
    def cases(function, low, high, count=40):
        out = []
        for i in range(count):
            x = f32(low + (high - low) * (i + r.random()) / count)
            out.append(((bits(x),), (bits(function(x)),)))
        return out
    for ftz in ("", ".ftz"):
        f.form(f"ex2.approx{ftz}.f32 $d, $a;", ["f32"], ["f32"], cases(lambda x: 2.0 ** x, -20, 20), "rel=4e-7")
        f.form(f"lg2.approx{ftz}.f32 $d, $a;", ["f32"], ["f32"], cases(math.log2, 0.001, 0.5) + cases(math.log2, 2, 1e6), "rel=1e-6")
        f.form(f"sin.approx{ftz}.f32 $d, $a;", ["f32"], ["f32"], cases(math.sin, -3.14, 3.14), "abs=8e-7")
        f.form(f"cos.approx{ftz}.f32 $d, $a;", ["f32"], ["f32"], cases(math.cos, -3.14, 3.14), "abs=8e-7")
        f.form(f"rcp.approx{ftz}.f32 $d, $a;", ["f32"], ["f32"], cases(lambda x: 1 / x, 0.01, 100), "rel=2.4e-7")
        f.form(f"sqrt.approx{ftz}.f32 $d, $a;", ["f32"], ["f32"], cases(math.sqrt, 0.01, 1e6), "rel=3.6e-7")
        f.form(f"rsqrt.approx{ftz}.f32 $d, $a;", ["f32"], ["f32"], cases(lambda x: 1 / math.sqrt(x), 0.01, 1e6), "rel=3.6e-7")
        quotient = [((bits(a), bits(b)), (bits(f32(a) / f32(b)),)) for a, b in ((r.uniform(-9, 9), r.uniform(0.1, 9)) for _ in range(40))]
        f.form(f"div.approx{ftz}.f32 $d, $a, $b;", ["f32"], ["f32", "f32"], quotient, "rel=4.8e-7")
        f.form(f"div.full{ftz}.f32 $d, $a, $b;", ["f32"], ["f32", "f32"], quotient, "rel=4.8e-7")
    f.form("tanh.approx.f32 $d, $a;", ["f32"], ["f32"], cases(math.tanh, -4, 4), "rel=5e-4", 75)
    double = lambda v: encode("f64", from_fraction(Fraction(v)))
    xs = [r.uniform(0.01, 1000) for _ in range(30)]
    f.form("rcp.approx.ftz.f64 $d, $a;", ["f64"], ["f64"], [((double(x),), (double(1 / x),)) for x in xs], "rel=4e-6")
    f.form("rsqrt.approx.f64 $d, $a;", ["f64"], ["f64"], [((double(x),), (double(1 / math.sqrt(x)),)) for x in xs], "rel=4e-6")
    half = lambda v: encode("f16", from_fraction(Fraction(v)))
    hs = [float(signed(decode("f16", half(r.uniform(-4, 4))))) for _ in range(30)]
    f.form("ex2.approx.f16 $d, $a;", ["f16"], ["f16"], [((half(x),), (half(2.0 ** x),)) for x in hs], "rel=2e-3", 75)
    f.form("tanh.approx.f16 $d, $a;", ["f16"], ["f16"], [((half(x),), (half(math.tanh(x)),)) for x in hs], "rel=3e-3", 75)
    return f


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else HERE
    for make in (make_integers, make_logic, make_floats, make_halves, make_convert, make_approximate):
        file = make()
        file.write(folder)
        print(f"{file.name}: {sum(l.startswith('form') for l in file.lines)} forms, {file.cases} cases")


if __name__ == "__main__":
    main()
