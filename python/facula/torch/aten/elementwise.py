"""Rows of elementwise functions and their gradients."""
from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Operand, Refused, Value, kind, promote
from .table import row, rows

# ---- one operand -----------------------------------------------------------------------------------------------


def floating(g: Graph, x: Value) -> Value:
    return x if kind(x.dt) == 2 else g.cast(x, g.default)


def _unary(name: str, op: str, floats: bool) -> None:
    def function(g: Graph, x: Value) -> Value:
        return g.op(op, floating(g, x) if floats else x)
    rows[name] = function


for _name in ("acos acosh asin asinh atan atanh cos cosh digamma erf erfc erfinv exp exp2 expm1 lgamma log log10 log1p log2 "
              "reciprocal sigmoid sin sinh sqrt tan tanh silu").split():
    _unary(_name, _name, True)




def _whole(name: str) -> None:
    def function(g: Graph, x: Value) -> Value:
        if kind(x.dt) == 2:
            return g.op(name, x)
        if x.dt in ("bool",):
            raise Refused("bool")
        return x
    rows[name] = function


for _name in ("ceil", "floor", "round", "trunc"):
    _whole(_name)
rows["fix"] = rows["trunc"]


def _signed(name: str) -> None:
    def function(g: Graph, x: Value) -> Value:
        if x.dt == "bool":
            raise Refused("bool")
        if x.dt == "u8" and name in ("abs", "relu"):
            return x
        return g.op(name, x)
    rows[name] = function


for _name in ("abs", "neg", "relu"):
    _signed(_name)


@row("sign", "sgn")
def sign(g: Graph, x: Value) -> Value:
    return x if x.dt == "bool" else g.op("sign", x)


@row("round.decimals")
def round_decimals(g: Graph, x: Value, decimals: int = 0) -> Value:
    if kind(x.dt) != 2 or decimals:
        raise Refused("decimals")
    return g.op("round", x)


@row("frac")
def frac(g: Graph, x: Value) -> Value:
    return g.sub(x, g.op("trunc", x))


@row("rsqrt")
def rsqrt(g: Graph, x: Value) -> Value:
    return g.op("reciprocal", g.op("sqrt", floating(g, x)))


@row("square")
def square(g: Graph, x: Value) -> Value:
    return g.mul(x, x)


@row("isnan")
def isnan(g: Graph, x: Value) -> Value:
    return g.op("isnan", x) if kind(x.dt) == 2 else g.full(x.shape, False, "bool")


@row("isinf")
def isinf(g: Graph, x: Value) -> Value:
    return g.compare("equal", g.op("abs", x), math.inf) if kind(x.dt) == 2 else g.full(x.shape, False, "bool")




rows["isposinf"] = lambda g, x: g.compare("equal", x, math.inf) if kind(x.dt) == 2 else g.full(x.shape, False, "bool")
rows["isneginf"] = lambda g, x: g.compare("equal", x, -math.inf) if kind(x.dt) == 2 else g.full(x.shape, False, "bool")


@row("isfinite")
def isfinite(g: Graph, x: Value) -> Value:
    if kind(x.dt) != 2:
        return g.full(x.shape, True, "bool")
    return g.compare("less", g.op("abs", x), math.inf)


@row("signbit")
def signbit(g: Graph, x: Value) -> Value:
    return g.op("signbit", x) if kind(x.dt) == 2 else g.compare("less", g.cast(x, "i64"), 0)


@row("logical_not")
def logical_not(g: Graph, x: Value) -> Value:
    return g.op("not", truth(g, x))


@row("bitwise_not")
def bitwise_not(g: Graph, x: Value) -> Value:
    return g.op("not" if x.dt == "bool" else "bitwise_not", x)


@row("positive", "clone", "alias", "detach", "lift", "lift_fresh", "lift_fresh_copy", "alias_copy", "detach_copy", "resolve_conj",
     "resolve_neg", "contiguous", "conj", "conj_physical", "real", "_conj", "_conj_physical")
def same(g: Graph, x: Value, *_: Any) -> Value:
    return x


@row("sinc")
def sinc(g: Graph, x: Value) -> Value:
    y = g.mul(floating(g, x), math.pi)
    return g.where(g.compare("equal", y, 0), 1.0, g.div(g.op("sin", y), y))


@row("deg2rad")
def deg2rad(g: Graph, x: Value) -> Value:
    return g.mul(floating(g, x), math.pi / 180)


@row("rad2deg")
def rad2deg(g: Graph, x: Value) -> Value:
    return g.mul(floating(g, x), 180 / math.pi)


@row("logit")
def logit(g: Graph, x: Value, eps: float | None = None) -> Value:
    x = floating(g, x)
    if eps is not None:
        high = g.where(g.compare("greater", x, 1 - eps), 1 - eps, x)
        x = g.where(g.compare("less", x, eps), eps, high)
    return g.op("log", g.div(x, g.sub(1, x)))


@row("nan_to_num")
def nan_to_num(g: Graph, x: Value, nan: float | None = None, pos: float | None = None, neg: float | None = None) -> Value:
    if kind(x.dt) != 2:
        return x
    top = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308}[x.dt]
    y = g.where(g.op("isnan", x), nan or 0.0, x)
    y = g.where(g.compare("equal", x, math.inf), top if pos is None else pos, y)
    return g.where(g.compare("equal", x, -math.inf), -top if neg is None else neg, y)


# ---- two operands ----------------------------------------------------------------------------------------------


def truth(g: Graph, x: Operand) -> Value:
    if not isinstance(x, Value):
        return g.number(bool(x), "bool")
    return x if x.dt == "bool" else g.op("not", g.compare("equal", x, 0))


def scaled(g: Graph, x: Operand, alpha: Any) -> Operand:
    if not isinstance(alpha, Value) and alpha == 1:
        return x
    return g.mul(x, alpha) if isinstance(x, Value) or isinstance(alpha, Value) else x * alpha


@row("add.Tensor", "add.Scalar")
def add(g: Graph, a: Operand, b: Operand, alpha: Any = 1) -> Value:
    to = promote(a, b, default=g.default)
    if to == "bool":
        return g.op("or", truth(g, a), truth(g, b))
    if isinstance(alpha, float) and kind(to) == 1:
        raise Refused("a fractional alpha for integers")
    if not isinstance(alpha, Value) and alpha == 1:
        return g.binary("add", a, b, to)
    return g.binary("add", g.as_(a, to), g.mul(g.as_(b, to), alpha), to)


@row("sub.Tensor", "sub.Scalar")
def sub(g: Graph, a: Operand, b: Operand, alpha: Any = 1) -> Value:
    to = promote(a, b, default=g.default)
    if to == "bool":
        raise Refused("bool")
    if not isinstance(alpha, Value) and alpha == 1:
        return g.binary("sub", a, b, to)
    return g.binary("sub", g.as_(a, to), g.mul(g.as_(b, to), alpha), to)


@row("rsub.Tensor", "rsub.Scalar")
def rsub(g: Graph, a: Operand, b: Operand, alpha: Any = 1) -> Value:
    return sub(g, b, a, alpha)


@row("mul.Tensor", "mul.Scalar")
def mul(g: Graph, a: Operand, b: Operand) -> Value:
    to = promote(a, b, default=g.default)
    return g.op("and", truth(g, a), truth(g, b)) if to == "bool" else g.binary("mul", a, b, to)


@row("div.Tensor", "div.Scalar", "true_divide.Tensor")
def div(g: Graph, a: Operand, b: Operand) -> Value:
    return g.div(a, b)


@row("div.Tensor_mode", "div.Scalar_mode")
def div_mode(g: Graph, a: Operand, b: Operand, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return g.div(a, b)
    to = promote(a, b, default=g.default)
    if rounding_mode == "trunc":
        return g.binary("div", a, b, to) if kind(to) == 1 else g.op("trunc", g.binary("div", a, b, to))
    return floor_divide(g, a, b)


@row("floor_divide", "floor_divide.Scalar")
def floor_divide(g: Graph, a: Operand, b: Operand) -> Value:
    to = promote(a, b, default=g.default)
    if kind(to) == 0:
        raise Refused("bool")
    x, y = g.as_(a, to), g.as_(b, to)
    if kind(to) == 2:                       # as C Python: the quotient of what the remainder leaves
        rest = g.op("mod", x, y)
        near = g.op("div", g.op("sub", x, rest), y)
        down = g.op("floor", near)
        up = g.compare("greater", g.op("sub", near, down), 0.5)
        whole = g.where(up, g.add(down, 1.0), down)
        return g.where(g.compare("equal", y, 0), g.op("div", x, y), whole)
    rest = g.op("mod", x, y)
    return g.op("div", g.op("sub", x, rest), y)


@row("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(g: Graph, a: Operand, b: Operand) -> Value:
    return g.binary("mod", a, b)


@row("fmod.Tensor", "fmod.Scalar")
def fmod(g: Graph, a: Operand, b: Operand) -> Value:
    return g.binary("fmod", a, b)


def _math(name: str, op: str) -> None:
    def function(g: Graph, a: Operand, b: Operand) -> Value:
        to = promote(a, b, default=g.default)
        return g.binary(op, a, b, to if kind(to) == 2 else g.default)
    rows[name] = function


for _name in ("atan2", "copysign.Tensor", "copysign.Scalar"):
    _math(_name, _name.split(".")[0])
for _name in ("hypot", "nextafter"):
    rows[_name] = (lambda op: lambda g, a, b: g.binary(op, a, b))(_name)


@row("maximum", "max.other")
def maximum(g: Graph, a: Operand, b: Operand) -> Value:
    to = promote(a, b, default=g.default)
    return g.op("or", a, b) if to == "bool" else g.binary("max", a, b, to)


@row("minimum", "min.other")
def minimum(g: Graph, a: Operand, b: Operand) -> Value:
    to = promote(a, b, default=g.default)
    return g.op("and", a, b) if to == "bool" else g.binary("min", a, b, to)


def _but_nan(g: Graph, op: str, a: Value, b: Value) -> Value:
    to = promote(a, b, default=g.default)
    if to == "bool":
        return g.op("or" if op == "max" else "and", a, b)
    x, y = g.as_(a, to), g.as_(b, to)
    if kind(to) != 2:
        return g.op(op, x, y)
    return g.where(g.op("isnan", x), y, g.where(g.op("isnan", y), x, g.op(op, x, y)))


rows["fmax"] = lambda g, a, b: _but_nan(g, "max", a, b)
rows["fmin"] = lambda g, a, b: _but_nan(g, "min", a, b)


def _compare(name: str, op: str, negate: bool = False) -> None:
    def function(g: Graph, a: Operand, b: Operand) -> Value:
        to = promote(a, b, default=g.default)
        if to == "bool" and op != "equal":
            to = "u8"
        y = g.binary(op, a, b, to)
        return g.op("not", y) if negate else y
    rows[f"{name}.Tensor"] = rows[f"{name}.Scalar"] = function


for _name, _op in (("eq", "equal"), ("lt", "less"), ("le", "less_or_equal"), ("gt", "greater"), ("ge", "greater_or_equal")):
    _compare(_name, _op)
_compare("ne", "equal", True)


def _logical(name: str, op: str) -> None:
    rows[name] = lambda g, a, b: g.op(op, truth(g, a), truth(g, b))


for _name in ("and", "or", "xor"):
    _logical(f"logical_{_name}", _name)


def _bitwise(name: str) -> None:
    def function(g: Graph, a: Operand, b: Operand) -> Value:
        to = promote(a, b, default=g.default)
        if kind(to) == 2:
            raise Refused("floats")
        return g.binary(name if to == "bool" else f"bitwise_{name}", a, b, to)
    for overload in ("Tensor", "Scalar", "Scalar_Tensor"):
        rows[f"bitwise_{name}.{overload}"] = function
    for overload in ("Tensor", "Scalar"):
        rows[f"__{name}__.{overload}"] = function


for _name in ("and", "or", "xor"):
    _bitwise(_name)


@row("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(g: Graph, a: Operand, b: Operand) -> Value:
    to = promote(a, b, default=g.default)
    if to == "bool":
        raise Refused("bool")
    if not isinstance(b, Value) and b in (1, 2, 3, 0.5, -1) and kind(to) == 2:
        x = g.as_(a, to)
        if b == 1:
            return x
        if b == 0.5:
            return g.op("sqrt", x)
        if b == -1:
            return g.op("reciprocal", x)
        y = g.op("mul", x, x)
        return y if b == 2 else g.op("mul", y, x)
    return g.binary("pow", a, b, to)


@row("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self")
def xlogy(g: Graph, a: Operand, b: Operand) -> Value:
    to = promote(a, b, default=g.default)
    to = to if kind(to) == 2 else g.default
    x, y = g.as_(a, to), g.as_(b, to)
    plain = g.where(g.compare("equal", x, 0), 0.0, g.mul(x, g.op("log", y)))
    return g.where(g.op("isnan", y), y, plain)


@row("logaddexp")
def logaddexp(g: Graph, a: Value, b: Value) -> Value:
    top, low = g.binary("max", a, b), g.binary("min", a, b)
    y = g.add(top, g.op("log1p", g.op("exp", g.sub(low, top))))
    same_infinite = g.op("and", g.compare("equal", top, low), g.compare("equal", g.op("abs", top), math.inf))
    return g.where(same_infinite, top, y)


@row("heaviside")
def heaviside(g: Graph, x: Value, values: Value) -> Value:
    y = g.where(g.compare("greater", x, 0), 1, g.number(0, x.dt))
    y = g.where(g.compare("equal", x, 0), values, y)
    return y if kind(x.dt) != 2 else g.where(g.op("isnan", x), 0.0, y)


# ---- three operands --------------------------------------------------------------------------------------------


@row("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(g: Graph, c: Value, a: Operand, b: Operand) -> Value:
    return g.where(truth(g, c), a, b)


@row("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(g: Graph, x: Value, mask: Value, value: Operand) -> Value:
    return g.op("where", mask, g.as_(value, x.dt), x)


@row("clamp", "clamp.Tensor", "clip", "clip.Tensor")
def clamp(g: Graph, x: Value, low: Operand = None, high: Operand = None) -> Value:
    to = promote(x, low, high, default=g.default)
    y = g.as_(x, to)
    if low is not None and high is not None and not isinstance(low, Value) and not isinstance(high, Value) and low <= high:
        return g.op("clip", y, g.as_(low, to), g.as_(high, to))
    if low is not None:
        y = g.op("max", y, g.as_(low, to))
    return y if high is None else g.op("min", y, g.as_(high, to))


rows["clamp_min"] = rows["clamp_min.Tensor"] = lambda g, x, low: clamp(g, x, low, None)
rows["clamp_max"] = rows["clamp_max.Tensor"] = lambda g, x, high: clamp(g, x, None, high)


@row("hardtanh")
def hardtanh(g: Graph, x: Value, low: float = -1, high: float = 1) -> Value:
    return clamp(g, x, low, high)


@row("relu6")
def relu6(g: Graph, x: Value) -> Value:
    return clamp(g, x, 0, 6)


@row("addcmul")
def addcmul(g: Graph, x: Value, a: Value, b: Value, value: Any = 1) -> Value:
    return g.add(x, g.mul(scaled(g, a, value), b))


@row("addcdiv")
def addcdiv(g: Graph, x: Value, a: Value, b: Value, value: Any = 1) -> Value:
    return g.add(x, scaled(g, g.div(a, b), value))


@row("lerp.Scalar", "lerp.Tensor")
def lerp(g: Graph, a: Value, b: Value, weight: Operand) -> Value:
    if isinstance(weight, Value):
        w = g.cast(weight, a.dt)
        low = g.compare("less", g.op("abs", w), 0.5)
        return g.where(low, g.add(a, g.mul(w, g.sub(b, a))), g.sub(b, g.mul(g.sub(b, a), g.sub(1, w))))
    if abs(weight) < 0.5:
        return g.add(a, g.mul(g.sub(b, a), weight))
    return g.sub(b, g.mul(g.sub(b, a), 1 - weight))


# ---- activations -----------------------------------------------------------------------------------------------


@row("gelu")
def gelu(g: Graph, x: Value, approximate: str = "none") -> Value:
    return g.op("gelu" if approximate == "none" else "gelu_tanh", x)


@row("gelu_backward")
def gelu_backward(g: Graph, dy: Value, x: Value, approximate: str = "none") -> Value:
    return g.mul(dy, g.op("gelu_slope" if approximate == "none" else "gelu_tanh_slope", x))


@row("leaky_relu")
def leaky_relu(g: Graph, x: Value, slope: float = 0.01) -> Value:
    return g.op("leaky_relu", x, slope=slope)


@row("elu")
def elu(g: Graph, x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    if scale == 1 and input_scale == 1:
        return g.op("elu", x, alpha=alpha)
    low = g.mul(g.op("expm1", g.mul(x, input_scale)), alpha * scale)
    return g.where(g.compare("greater", x, 0), g.mul(x, scale), low)


@row("hardsigmoid")
def hardsigmoid(g: Graph, x: Value) -> Value:
    return g.op("hard_sigmoid", x, slope=1 / 6, offset=0.5)


@row("hardswish")
def hardswish(g: Graph, x: Value) -> Value:
    return g.op("hard_swish", x)


@row("softplus")
def softplus(g: Graph, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    scaled_x = x if beta == 1 else g.mul(x, beta)
    y = g.op("softplus", scaled_x)
    return g.where(g.compare("greater", scaled_x, threshold), x, y if beta == 1 else g.div(y, beta))


@row("log_sigmoid_forward")
def log_sigmoid(g: Graph, x: Value) -> list[Any]:
    return [g.op("neg", g.op("softplus", g.op("neg", x))), None]


rows["log_sigmoid"] = lambda g, x: g.op("neg", g.op("softplus", g.op("neg", x)))


@row("log_sigmoid_backward")
def log_sigmoid_backward(g: Graph, dy: Value, x: Value, buffer: Any) -> Value:
    return g.mul(dy, g.op("sigmoid", g.op("neg", x)))


@row("mish")
def mish(g: Graph, x: Value) -> Value:
    return g.op("mish", x)


@row("threshold")
def threshold(g: Graph, x: Value, at: Any, value: Any) -> Value:
    return g.op("where", g.compare("less_or_equal", x, at), g.as_(value, x.dt), x)


@row("hardshrink")
def hardshrink(g: Graph, x: Value, lambd: float = 0.5) -> Value:
    inside = g.compare("less_or_equal", g.op("abs", x), lambd)
    return g.where(inside, 0.0, x)


@row("softshrink")
def softshrink(g: Graph, x: Value, lambd: float = 0.5) -> Value:
    low = g.where(g.compare("less", x, -lambd), g.add(x, lambd), g.mul(x, 0.0))
    return g.where(g.compare("greater", x, lambd), g.sub(x, lambd), low)


@row("glu")
def glu(g: Graph, x: Value, dim: int = -1) -> Value:
    axis = dim % x.rank
    half = x.shape[axis] // 2
    return g.mul(g.slice(x, axis, 0, half), g.op("sigmoid", g.slice(x, axis, half, 2 * half)))


@row("_prelu_kernel")
def prelu(g: Graph, x: Value, weight: Value) -> Value:
    return g.where(g.compare("greater", x, 0), x, g.mul(weight, x))


@row("threshold_backward")
def threshold_backward(g: Graph, dy: Value, x: Value, at: Any) -> Value:
    return g.op("where", g.compare("greater", x, at), dy, g.number(0, dy.dt))


@row("hardtanh_backward")
def hardtanh_backward(g: Graph, dy: Value, x: Value, low: Any, high: Any) -> Value:
    inner = g.op("where", g.compare("less", x, high), dy, g.number(0, dy.dt))
    return g.op("where", g.compare("greater", x, low), inner, g.number(0, dy.dt))


@row("sigmoid_backward")
def sigmoid_backward(g: Graph, dy: Value, y: Value) -> Value:
    return g.mul(dy, g.mul(y, g.sub(1, y)))


@row("tanh_backward")
def tanh_backward(g: Graph, dy: Value, y: Value) -> Value:
    return g.mul(dy, g.sub(1, g.mul(y, y)))


@row("silu_backward")
def silu_backward(g: Graph, dy: Value, x: Value) -> Value:
    return g.mul(dy, g.op("silu_slope", x))


@row("mish_backward")
def mish_backward(g: Graph, dy: Value, x: Value) -> Value:
    t, s = g.op("tanh", g.op("softplus", x)), g.op("sigmoid", x)
    return g.mul(dy, g.add(t, g.mul(g.mul(x, s), g.sub(1, g.mul(t, t)))))


@row("leaky_relu_backward")
def leaky_relu_backward(g: Graph, dy: Value, x: Value, slope: float, of_result: bool) -> Value:
    return g.where(g.compare("greater", x, 0), dy, g.mul(dy, slope))


@row("elu_backward")
def elu_backward(g: Graph, dy: Value, alpha: float, scale: float, input_scale: float, of_result: bool, x: Value) -> Value:
    if of_result:
        low = g.mul(g.mul(dy, input_scale), g.add(x, alpha * scale))
    else:
        low = g.mul(g.mul(dy, input_scale * alpha * scale), g.op("exp", g.mul(x, input_scale)))
    return g.where(g.compare("less_or_equal", x, 0), low, g.mul(dy, scale))


@row("hardsigmoid_backward")
def hardsigmoid_backward(g: Graph, dy: Value, x: Value) -> Value:
    inside = g.op("and", g.compare("greater", x, -3), g.compare("less", x, 3))
    return g.where(inside, g.mul(dy, 1 / 6), 0.0)


@row("hardswish_backward")
def hardswish_backward(g: Graph, dy: Value, x: Value) -> Value:
    bend = g.mul(dy, g.add(g.div(x, 3), 0.5))
    inner = g.where(g.compare("less", x, 3), bend, dy)
    return g.where(g.compare("greater", x, -3), inner, 0.0)


@row("softplus_backward")
def softplus_backward(g: Graph, dy: Value, x: Value, beta: float, threshold: float) -> Value:
    z = g.mul(x, beta)
    return g.where(g.compare("greater", z, threshold), dy, g.mul(dy, g.op("sigmoid", z)))


@row("hardshrink_backward")
def hardshrink_backward(g: Graph, dy: Value, x: Value, lambd: float) -> Value:
    return g.where(g.compare("less_or_equal", g.op("abs", x), lambd), 0.0, dy)


rows["softshrink_backward"] = rows["hardshrink_backward"]


@row("glu_backward")
def glu_backward(g: Graph, dy: Value, x: Value, dim: int) -> Value:
    axis = dim % x.rank
    half = x.shape[axis] // 2
    a, s = g.slice(x, axis, 0, half), g.op("sigmoid", g.slice(x, axis, half, 2 * half))
    return g.concat([g.mul(dy, s), g.mul(g.mul(dy, a), g.mul(s, g.sub(1, s)))], axis)


@row("_prelu_kernel_backward")
def prelu_backward(g: Graph, dy: Value, x: Value, weight: Value) -> list[Value]:
    above = g.compare("greater", x, 0)
    return [g.where(above, dy, g.mul(weight, dy)), g.where(above, 0.0, g.mul(x, dy))]
