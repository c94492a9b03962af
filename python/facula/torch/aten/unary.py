"""Rows of functions of one element."""
from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Refused, Value, kind
from .table import row, rows
from .elementwise import truth


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
    if x.dt == "bool":
        return x
    y = g.op("sign", x)
    return g.where(g.op("isnan", x), 0.0, y) if kind(x.dt) == 2 else y


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


@row("angle")
def angle(g: Graph, x: Value) -> Value:
    x = floating(g, x)
    return g.where(g.op("isnan", x), x, g.where(g.compare("less", x, 0.0), g.number(math.pi, x.dt), g.number(0, x.dt)))


@row("ldexp.Tensor")
def ldexp(g: Graph, x: Value, power: Value) -> Value:
    """In two steps: 2 to the power alone may be beyond the largest number."""
    x = floating(g, x)
    power = g.cast(power, x.dt) if kind(power.dt) != 2 else power
    half = g.op("floor", g.mul(power, 0.5))
    return g.mul(g.mul(x, g.op("exp2", half)), g.op("exp2", g.sub(power, half)))
