"""Rows of functions of two and three elements."""
from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Operand, Refused, Value, kind, promote
from .table import row, rows


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
    if kind(to) == 1 and (b.weak if isinstance(b, Value) else b is not None and b < 0):
        raise Refused("an integer to a negative power")
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
    if isinstance(value, Value) and value.rank:
        raise Refused("values with dims")
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
    to = promote(x, a, b, default=g.default)        # torch multiplies in the type of the result
    return g.add(x, g.mul(scaled(g, g.as_(a, to), value), g.as_(b, to)))


@row("addcdiv")
def addcdiv(g: Graph, x: Value, a: Value, b: Value, value: Any = 1) -> Value:
    to = promote(x, a, b, default=g.default)
    return g.add(x, scaled(g, g.div(g.as_(a, to), g.as_(b, to)), value))


@row("lerp.Scalar", "lerp.Tensor")
def lerp(g: Graph, a: Value, b: Value, weight: Operand) -> Value:
    if isinstance(weight, Value):
        w = g.cast(weight, a.dt)
        low = g.compare("less", g.op("abs", w), 0.5)
        return g.where(low, g.add(a, g.mul(w, g.sub(b, a))), g.sub(b, g.mul(g.sub(b, a), g.sub(1, w))))
    if abs(weight) < 0.5:
        return g.add(a, g.mul(g.sub(b, a), weight))
    return g.sub(b, g.mul(g.sub(b, a), 1 - weight))
