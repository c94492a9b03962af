"""Rows of random numbers: the same for a seed and a place, whatever runs around."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Operand, Refused, Value, kind
from .order import largest
from .table import row


def _counter(g: Graph) -> Value:
    if g.counter is None:
        raise Refused("random numbers of torch")
    return g.counter


def _random(g: Graph, op: str, shape: Sequence[int], dt: str) -> Value:
    inner = "f32" if dt in ("f16", "bf16") else dt
    if kind(dt) != 2:
        raise Refused("integers")
    return g.cast(g.op(op, _counter(g), g.ints(shape), dtype=inner), dt)


@row("uniform")
def uniform(g: Graph, x: Value, low: float = 0, high: float = 1, *_: Any) -> Value:
    y = _random(g, "random_uniform", x.shape, x.dt)
    return y if (low, high) == (0, 1) else g.add(g.mul(y, high - low), low)


@row("normal_functional")
def normal(g: Graph, x: Value, mean: float = 0, std: float = 1, *_: Any) -> Value:
    y = _random(g, "random_normal", x.shape, x.dt)
    return y if (mean, std) == (0, 1) else g.add(g.mul(y, std), mean)


@row("bernoulli.p")
def bernoulli_p(g: Graph, x: Value, p: float = 0.5, *_: Any) -> Value:
    u = _random(g, "random_uniform", x.shape, "f32")
    return g.cast(g.compare("less", u, p), x.dt)


@row("bernoulli")
def bernoulli(g: Graph, x: Value, *_: Any) -> Value:
    u = _random(g, "random_uniform", x.shape, x.dt)
    return g.cast(g.compare("less", u, x), x.dt)


@row("native_dropout")
def native_dropout(g: Graph, x: Value, p: float, train: bool | None) -> list[Value]:
    if not train or p == 0:
        return [x, g.full(x.shape, True, "bool")]
    if p == 1:
        return [g.full(x.shape, 0, x.dt), g.full(x.shape, False, "bool")]
    kept = g.compare("less", _random(g, "random_uniform", x.shape, "f32"), 1 - p)
    return [g.mul(g.mul(x, g.cast(kept, x.dt)), 1 / (1 - p)), kept]


@row("native_dropout_backward")
def native_dropout_backward(g: Graph, dy: Value, mask: Value, scale: float) -> Value:
    return g.mul(g.mul(dy, g.cast(mask, dy.dt)), scale)


@row("randperm", "randperm.generator")
def randperm(g: Graph, n: int, *_: Any) -> Value:
    dt = g.wanted[0][0] if g.wanted and g.wanted[0] else "i64"
    return g.cast(g.op("permutation", _counter(g), g.number(n, "i64")), dt)


# ---- whole numbers -------------------------------------------------------------------------------------------------


_END = {"bool": 2, "u8": 2 ** 8, "i8": 2 ** 7, "i16": 2 ** 15, "i32": 2 ** 31, "f16": 2 ** 11 + 1, "bf16": 2 ** 8 + 1, "f32": 2 ** 24 + 1,
        "f64": 2 ** 53 + 1}


@row("random", "random.to", "random.from")
def whole(g: Graph, x: Value, *bounds: Any) -> Value:
    """From 0 or the first bound to the one before the last, or to what the type holds."""
    ends = [b for b in bounds if isinstance(b, int)]
    low = ends[0] if len(ends) == 2 else 0
    high = ends[-1] if ends else _END.get(x.dt, 0)
    if not low < high or high - low > 2 ** 32:
        raise Refused("a range of so many numbers")
    return g.cast(g.op("randint", _counter(g), g.ints(x.shape), g.number(low, "i64"), g.number(high, "i64")), x.dt)


# ---- other distributions, by the inverse of what they sum to ----------------------------------------------------------


def _positive(g: Graph, x: Value, p: float) -> Value:
    """-log(1 - u) of uniform u: exponential numbers, none of them zero where they are divided by."""
    u = _random(g, "random_uniform", x.shape, "f64" if x.dt == "f64" else "f32")
    return g.op("neg", g.op("log1p", g.op("neg", g.op("max", u, g.number(p, u.dt)))))


@row("bernoulli.Tensor")
def bernoulli_of(g: Graph, x: Value, p: Value, *_: Any) -> Value:
    u = _random(g, "random_uniform", x.shape, "f64" if p.dt == "f64" else "f32")
    return g.cast(g.compare("less", u, g.expand(g.cast(p, u.dt), x.shape)), x.dt)


@row("exponential")
def exponential(g: Graph, x: Value, rate: float = 1, *_: Any) -> Value:
    if kind(x.dt) != 2:
        raise Refused("integers")
    return g.cast(g.mul(_positive(g, x, 2.0 ** -25), 1 / rate), x.dt)


@row("geometric")
def geometric(g: Graph, x: Value, p: float, *_: Any) -> Value:
    if not 0 < p < 1:
        raise Refused("a probability of 0 or 1")
    return g.cast(g.op("ceil", g.mul(_positive(g, x, 2.0 ** -25), -1 / math.log1p(-p))), x.dt)


@row("log_normal")
def log_normal(g: Graph, x: Value, mean: float = 1, std: float = 2, *_: Any) -> Value:
    return g.op("exp", normal(g, x, mean, std))


@row("cauchy")
def cauchy(g: Graph, x: Value, median: float = 0, sigma: float = 1, *_: Any) -> Value:
    u = _random(g, "random_uniform", x.shape, x.dt)
    return g.add(g.mul(g.op("tan", g.mul(g.sub(u, 0.5), math.pi)), sigma), median)


@row("multinomial")
def multinomial(g: Graph, p: Value, n: int, replacement: bool = False, *_: Any) -> Value:
    """The largest of p / e for exponential e are drawn without replacement; with it, each number is drawn by itself."""
    if p.rank not in (1, 2) or not p.count or (not replacement and n > p.shape[-1]):
        raise Refused("probabilities that do not fit")
    dt = "f64" if p.dt == "f64" else "f32"
    p = g.cast(p, dt)
    if not replacement or n == 1:
        return largest(g, g.div(p, _positive(g, p, 2.0 ** -25)), n)[1]
    wide = g.expand(g.reshape(p, p.shape[:-1] + (1, p.shape[-1])), p.shape[:-1] + (n, p.shape[-1]))
    return g.op("arg_max", g.div(wide, _positive(g, wide, 2.0 ** -25)), axis=p.rank, keep=False)
