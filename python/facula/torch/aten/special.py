"""Rows of special functions.  Bessel functions are means over a circle, which converge fast for what is periodic, and their
asymptotic series far from 0; the trigamma function is its series after it was moved to large numbers."""
from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Refused, Value, kind, promote
from .table import row, rows
from .unary import floating

POINTS = 64             # of the circle
FAR = 48.0              # from where on the series is used
TERMS = 12


def _on_circle(g: Graph, x: Value) -> tuple[Value, Value]:
    """x with a dim at the end, and the cosines of the points."""
    if x.rank > 7:
        raise Refused("8 dims")
    angle = g.mul(g.add(g.cast(g.arange(POINTS), x.dt), 0.5), math.pi / POINTS)
    return g.unsqueeze(x, x.rank), g.op("cos", angle)


def _series(g: Graph, x: Value, order: int) -> Value:
    """The asymptotic series of exp(-x) I_order(x) for large x."""
    inverse = g.div(1.0, x)
    term, y = g.full(x.shape, 1, x.dt), g.full(x.shape, 1, x.dt)
    for k in range(1, TERMS):
        term = g.mul(g.mul(term, inverse), -(4 * order * order - (2 * k - 1) ** 2) / (8.0 * k))
        y = g.add(y, term)
    return g.div(y, g.op("sqrt", g.mul(x, 2 * math.pi)))


def _modified(order: int, scaled: bool) -> Any:
    def function(g: Graph, x: Value) -> Value:
        if x.dt in ("f16", "bf16") or not x.count:
            raise Refused("of two bytes")
        x = floating(g, x)
        size = g.op("abs", x)
        wide, cosine = _on_circle(g, g.op("min", size, g.number(FAR, x.dt)))
        mean = g.op("exp", g.mul(wide, g.sub(cosine, 1.0)))
        mean = g.reduce("mean", g.mul(mean, cosine) if order else mean, [-1])
        y = g.where(g.compare("greater", size, FAR), _series(g, g.op("max", size, g.number(FAR, x.dt)), order), mean)
        y = y if scaled else g.mul(y, g.op("exp", size))
        return g.mul(y, g.op("sign", x)) if order else y
    return function


rows["i0"] = rows["special_i0"] = _modified(0, False)
rows["special_i0e"] = _modified(0, True)
rows["special_i1"], rows["special_i1e"] = _modified(1, False), _modified(1, True)


BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)      # B_2k / (2k)!
MOVED = 10


def _power(g: Graph, x: Value, n: int) -> Value:
    y = x
    for _ in range(n - 1):
        y = g.mul(y, x)
    return y


def _zeta(g: Graph, s: int, x: Value) -> Value:
    """The sum of 1 / (x + k)^s, x > 0: some terms, then what Euler and Maclaurin say of the others."""
    y = g.full(x.shape, 0, x.dt)
    for k in range(MOVED):
        y = g.add(y, g.op("reciprocal", _power(g, g.add(x, float(k)), s)))
    inverse = g.op("reciprocal", g.add(x, float(MOVED)))
    square = g.mul(inverse, inverse)
    last = _power(g, inverse, s - 1)
    tail, rising = g.full(x.shape, 0, x.dt), []
    for k in range(len(BERNOULLI)):
        rising.append(math.prod(s + i for i in range(2 * k + 1)))
    for b, r in reversed(list(zip(BERNOULLI, rising))):
        tail = g.mul(g.add(tail, b * r), square)
    return g.add(y, g.mul(last, g.add(g.add(tail, 1.0 / (s - 1)), g.mul(inverse, 0.5))))


def _cotangents(n: int) -> list[int]:
    """d^n cot(t) / dt^n as a polynomial of cot(t)."""
    p = [0, 1]
    for _ in range(n):
        d = [k * c for k, c in enumerate(p)][1:]
        p = [-(d[k] if k < len(d) else 0) - (d[k - 2] if 0 <= k - 2 < len(d) else 0) for k in range(len(d) + 2)]
    return p


@row("polygamma")
def polygamma(g: Graph, n: int, x: Value) -> Value:
    if n == 0:
        return rows["digamma"](g, x)
    if n > 8 or x.dt in ("f16", "bf16"):
        raise Refused("of high orders")
    x = floating(g, x)
    sign = 1.0 if n % 2 else -1.0
    below = g.compare("less", x, 0.5)
    y = g.mul(_zeta(g, n + 1, g.where(below, g.sub(1.0, x), x)), sign * math.factorial(n))
    part = g.mul(g.sub(x, g.op("round", x)), math.pi)   # the tangent of what is left keeps its digits
    c, p = g.op("reciprocal", g.op("tan", part)), g.full(x.shape, 0, x.dt)
    for by in reversed(_cotangents(n)):
        p = g.add(g.mul(p, c), float(by))
    mirrored = g.sub(g.mul(p, -math.pi ** (n + 1)), g.mul(y, sign))
    pole = g.op("and", below, g.compare("equal", x, g.op("round", x)))
    return g.where(pole, sign * math.inf, g.where(below, mirrored, y))


@row("special_entr")
def entr(g: Graph, x: Value) -> Value:
    x = floating(g, x)
    y = g.op("neg", g.mul(x, g.op("log", x)))
    y = g.where(g.compare("less", x, 0.0), -math.inf, g.where(g.compare("equal", x, 0.0), 0.0, y))
    return g.where(g.op("isnan", x), x, y)


@row("special_xlog1py", "special_xlog1py.other_scalar", "special_xlog1py.self_scalar")
def xlog1py(g: Graph, x: Any, y: Any) -> Value:
    to = promote(x, y, default=g.default)
    a, b = (g.as_(v, to if kind(to) == 2 else g.default) for v in (x, y))
    product = g.where(g.compare("equal", a, 0.0), 0.0, g.mul(a, g.op("log1p", b)))
    return g.where(g.op("isnan", b), b, product)


@row("mvlgamma")
def mvlgamma(g: Graph, x: Value, p: int) -> Value:
    x = floating(g, x)
    y: Value = g.full(x.shape, p * (p - 1) / 4 * math.log(math.pi), x.dt)
    for j in range(p):
        y = g.add(y, g.op("lgamma", g.sub(x, j / 2)))
    return y


@row("logaddexp2")
def logaddexp2(g: Graph, a: Value, b: Value) -> Value:
    high, low = rows["maximum"](g, a, b), rows["minimum"](g, a, b)
    y = g.add(high, g.div(g.op("log1p", g.op("exp2", g.sub(low, high))), math.log(2)))
    return g.where(g.op("and", g.compare("equal", high, low), rows["isinf"](g, high)), high, y)
