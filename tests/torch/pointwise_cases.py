"""Expressions of elements, in the library and in PyTorch."""
import torch
import torch.nn.functional as F

from case import KEEPS_NAN, SPECIAL, Case, grid, inside, positive, uniform, whole


def squared_relu(a):
    return F.relu(a) ** 2


UNARY = {
    "abs": torch.abs, "acos": torch.acos, "acosh": torch.acosh, "asin": torch.asin, "asinh": torch.asinh, "atan": torch.atan,
    "atanh": torch.atanh, "cbrt": lambda a: a.sign() * a.abs() ** (1 / 3), "ceil": torch.ceil, "celu": F.celu, "cos": torch.cos, "cosh": torch.cosh,
    "deg2rad": torch.deg2rad, "digamma": torch.digamma, "elu": F.elu, "erf": torch.erf, "erfc": torch.erfc,
    "erfinv": torch.erfinv, "entr": torch.special.entr, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1,
    "floor": torch.floor, "frac": torch.frac, "gelu": F.gelu, "gelu_quick": lambda a: a * torch.sigmoid(1.702 * a),
    "gelu_tanh": lambda a: F.gelu(a, approximate="tanh"), "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish,
    "hardshrink": F.hardshrink, "hardtanh": F.hardtanh, "isinf": torch.isinf, "isfinite": torch.isfinite, "isnan": torch.isnan,
    "leaky_relu": F.leaky_relu, "lgamma": torch.lgamma, "log": torch.log, "log10": torch.log10, "log1p": torch.log1p,
    "log2": torch.log2, "logical_not": torch.logical_not, "logit": torch.logit, "log_sigmoid": F.logsigmoid, "mish": F.mish,
    "ndtr": torch.special.ndtr, "neg": torch.neg, "rad2deg": torch.rad2deg, "reciprocal": torch.reciprocal, "relu": F.relu,
    "relu6": F.relu6, "round": torch.round, "rsqrt": torch.rsqrt, "selu": F.selu, "sigmoid": torch.sigmoid, "sign": torch.sign,
    "signbit": torch.signbit, "silu": F.silu, "sin": torch.sin, "sinc": torch.sinc, "sinh": torch.sinh,
    "softplus": lambda a: F.softplus(a, threshold=1e9), "softshrink": F.softshrink, "softsign": F.softsign, "sqrt": torch.sqrt,
    "square": torch.square, "squared_relu": squared_relu, "tan": torch.tan, "tanh": torch.tanh, "tanhshrink": F.tanhshrink,
    "trunc": torch.trunc,
}
# Where a formula has no finite value, or is not asked for: fills that keep to the domain for gradients.
DOMAIN = {"acos": inside, "asin": inside, "atanh": inside, "erfinv": inside, "acosh": uniform(1.05, 5), "log": positive,
          "log10": positive, "log2": positive, "log1p": uniform(-0.9, 3), "sqrt": positive, "rsqrt": positive,
          "logit": uniform(0.05, 0.95), "lgamma": uniform(0.2, 6), "digamma": uniform(0.2, 6), "entr": positive}
BINARY = {
    "add": torch.add, "atan2": torch.atan2, "copysign": torch.copysign, "div": torch.div, "eq": torch.eq,
    "floor_divide": lambda a, b: torch.div(a, b, rounding_mode="floor"), "fmax": torch.fmax, "fmin": torch.fmin,
    "fmod": torch.fmod, "ge": torch.ge, "gt": torch.gt, "heaviside": torch.heaviside, "hypot": torch.hypot,
    "ldexp": torch.ldexp, "le": torch.le, "logaddexp": torch.logaddexp, "logaddexp2": torch.logaddexp2,
    "logical_and": torch.logical_and, "logical_or": torch.logical_or, "logical_xor": torch.logical_xor, "lt": torch.lt,
    "maximum": torch.maximum, "minimum": torch.minimum, "mul": torch.mul, "ne": torch.ne, "pow": torch.pow,
    "remainder": torch.remainder, "rsub": torch.rsub, "sub": torch.sub, "xlogy": torch.xlogy,
    "xlog1py": torch.special.xlog1py, "prelu": lambda a, b: torch.where(a > 0, a, a * b),
    "geglu": lambda a, b: F.gelu(a) * b, "geglu_tanh": lambda a, b: F.gelu(a, approximate="tanh") * b,
    "glu": lambda a, b: F.glu(torch.cat([a, b], -1)) if a.shape == b.shape else a * torch.sigmoid(b),
    "reglu": lambda a, b: F.relu(a) * b, "swiglu": lambda a, b: F.silu(a) * b,
}
BINARY_DOMAIN = {"pow": {"a": positive}, "xlogy": {"b": positive}, "xlog1py": {"b": positive}}
WITH_ATTRIBUTES = [
    ("celu", {"alpha": 2.5}, lambda a: F.celu(a, 2.5)), ("elu", {"alpha": 0.3}, lambda a: F.elu(a, 0.3)),
    ("clamp", {"min": -0.5, "max": 1.0}, lambda a: a.clamp(-0.5, 1)), ("clamp", {"min": 1, "max": -1}, lambda a: a.clamp(1, -1)),
    ("clamp_min", {"min": 0.5}, lambda a: a.clamp_min(0.5)), ("clamp_max", {"max": -0.5}, lambda a: a.clamp_max(-0.5)),
    ("hardshrink", {"lambda": 1.5}, lambda a: F.hardshrink(a, 1.5)), ("softshrink", {"lambda": 1.5}, lambda a: F.softshrink(a, 1.5)),
    ("hardtanh", {"min": -2, "max": 0.5}, lambda a: F.hardtanh(a, -2, 0.5)),
    ("leaky_relu", {"slope": 0.5}, lambda a: F.leaky_relu(a, 0.5)), ("leaky_relu", {"slope": -0.5}, lambda a: F.leaky_relu(a, -0.5)),
    ("nan_to_num", {}, torch.nan_to_num), ("nan_to_num", {"nan": 3, "limit": 65504}, lambda a: torch.nan_to_num(a, 3, 65504, -65504)),
    ("pow_scalar", {"exponent": 3}, lambda a: a ** 3), ("pow_scalar", {"exponent": 2}, lambda a: a ** 2),
    ("pow_scalar", {"exponent": 0}, lambda a: a ** 0), ("pow_scalar", {"exponent": -2}, lambda a: a ** -2),
    ("pow_scalar", {"exponent": 0.5}, lambda a: a ** 0.5), ("pow_scalar", {"exponent": 2.5}, lambda a: a ** 2.5),
    ("pow_scalar", {"exponent": -0.5}, lambda a: a ** -0.5), ("pow_scalar", {"exponent": 1}, lambda a: a ** 1),
    ("softplus", {"beta": 2}, lambda a: F.softplus(a, 2, 1e9)), ("softplus", {"beta": -1.5}, lambda a: F.softplus(a, -1.5, 1e9)),
    ("threshold", {"threshold": 0.5, "value": -7}, lambda a: F.threshold(a, 0.5, -7)),
]


def pointwise_cases():
    for name in ("add", "atan2", "maximum", "pow", "logaddexp", "swiglu", "lt", "copysign"):
        fill = {"a": positive, "b": positive}
        yield Case(name, [[2, 1, 3, 1, 2], [3, 1, 5, 1]], BINARY[name], fill=fill)
        yield Case(name, [[1], [1, 1, 1, 1, 7]], BINARY[name], fill=fill)
        yield Case(name, [[1, 13], [11, 1]], BINARY[name], fill=fill)
    for name, function in UNARY.items():
        yield Case(name, [[3, 1, 5]], function, fill={"a": DOMAIN.get(name, uniform(-3, 3))}, backward=name != "digamma",
                   tolerance=1e-8 if name == "hardsigmoid" else 1e-9)  # PyTorch takes a sixth of float32
        values = SPECIAL[:-1] if name in KEEPS_NAN else SPECIAL
        yield Case(name, [[len(values)]], function, fill={"a": values}, backward=False, note="special values")
        if name not in DOMAIN and name not in ("reciprocal", "cbrt", "hardswish"):
            yield Case(name, [[40]], function, fill={"a": grid}, note="kinks", tolerance=1e-8)
    for name, attributes, function in WITH_ATTRIBUTES:
        fractional = name == "pow_scalar" and attributes["exponent"] % 1 != 0
        yield Case(name, [[7]], function, attributes, {"a": positive} if fractional else {})
        # NaN: see above. The root of -inf is NaN in PyTorch, to the power of a half it is inf, as IEEE 754 has it.
        values = SPECIAL[:-1] if name in KEEPS_NAN else SPECIAL[:-2] if fractional else SPECIAL
        yield Case(name, [[len(values)]], function, attributes, {"a": values}, backward=False, note="special values")
        if name != "pow_scalar":
            yield Case(name, [[40]], function, attributes, {"a": grid}, note="kinks")
    for name, function in BINARY.items():
        yield Case(name, [[2, 1, 5], [3, 1]], function, fill=BINARY_DOMAIN.get(name, {}))
        values = SPECIAL[:-1] if name in KEEPS_NAN else SPECIAL
        n = len(values)
        pairs = {"a": sum([[v] * n for v in values], []), "b": values * n}
        yield Case(name, [[n * n]], function, fill=pairs, backward=False, note="special values")
        if name not in ("div", "remainder", "floor_divide", "fmod", "pow", "xlogy", "xlog1py", "atan2", "hypot"):
            yield Case(name, [[90]], function, fill={"a": grid, "b": grid}, note="kinks")
    # Where gradients lose digits or leave the domain.
    far = [-1.0, -5.0, -10.0, -15.0, -18.0, -30.0, -100.0, -800.0, 5.0, 30.0, 800.0]
    for name in ("elu", "celu", "selu", "sigmoid", "silu", "mish", "tanh", "gelu", "gelu_tanh", "log_sigmoid", "softsign", "expm1"):
        yield Case(name, [[len(far)]], UNARY[name], fill={"a": far}, note="far from 0")
    edges = [0.0, 1.0, -0.5, 1.5, 0.5, 1e-30, 1 - 1e-15, -1e-30]
    for name in ("logit", "nan_to_num"):
        yield Case(name, [[len(edges)]], {"nan_to_num": torch.nan_to_num, **UNARY}[name], fill={"a": edges}, note="edges of the domain")
    yield Case("nan_to_num", [[6]], torch.nan_to_num, fill={"a": [1e6, -1e6, 3e38, float("inf"), float("-inf"), float("nan")]}, note="large")
    yield Case("addcdiv", [[4, 3], [3], [1]], lambda a, b, c: torch.addcdiv(a, b, c, value=-2), {"value": -2})
    yield Case("addcmul", [[4, 3], [3], [1]], lambda a, b, c: torch.addcmul(a, b, c, value=0.5), {"value": 0.5})
    yield Case("floor_divide", [[40]], BINARY["floor_divide"], fill={"a": [i / 10 for i in range(-20, 20)], "b": 0.1}, note="quotients that are rounded up")
    yield Case("lerp", [[4, 3]], lambda a, b, c: torch.lerp(a, b, c))
    yield Case("clamp_tensor", [[60]], lambda a, b, c: torch.clamp(a, b, c), fill={"a": grid, "b": grid, "c": grid}, backward=False)
    yield Case("clamp_tensor", [[60]], lambda a, b, c: torch.clamp(a, b, c))
    yield Case("where", [[60]], lambda a, b, c: torch.where(a > 0, b, c), fill={"a": grid})
    for name, function in {"floor_divide": lambda a, b: torch.div(a, b, rounding_mode="floor"), "remainder": torch.remainder,
                           "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor,
                           "mul": torch.mul, "sub": torch.sub, "maximum": torch.maximum, "minimum": torch.minimum}.items():
        yield Case(name, [[60]], function, fill={"a": whole(-40, 41), "b": whole(1, 9)}, dtype="int32", backward=False)
        yield Case(name, [[60]], function, fill={"a": whole(-40, 41), "b": whole(-9, 0)}, dtype="int32", backward=False)
    for name, function in {"bitwise_left_shift": torch.bitwise_left_shift, "bitwise_right_shift": torch.bitwise_right_shift}.items():
        yield Case(name, [[60]], function, fill={"a": whole(-40, 41), "b": whole(0, 12)}, dtype="int32", backward=False)
    for name, function in {"bitwise_not": torch.bitwise_not, "abs": torch.abs, "neg": torch.neg, "sign": torch.sign,
                           "square": torch.square, "logical_not": torch.logical_not}.items():
        yield Case(name, [[17]], function, fill={"a": whole(-9, 10)}, dtype="int32", backward=False)
