"""Rows of distances, cross products and norms of rows."""
from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Refused, Value, axis_of, broadcast, kind
from .shapes import roll
from .table import row


def _differences(g: Graph, a: Value, b: Value) -> Value:
    """[..., P, R, M] of [..., P, M] and [..., R, M]."""
    if kind(a.dt) != 2:
        raise Refused("distances of integers")
    return g.sub(g.unsqueeze(a, a.rank - 1), g.unsqueeze(b, b.rank - 2))


@row("_cdist_forward")
def cdist(g: Graph, a: Value, b: Value, p: float, mode: Any = None) -> Value:
    from .reduce import vector_norm
    if not a.count or not b.count:
        return g.full(broadcast(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-2]), 0, a.dt)
    return vector_norm(g, _differences(g, a, b), p, [-1])


def _slope(g: Graph, d: Value, length: Value, p: float) -> Value:
    """The derivative of a norm by what it is of; 0 where that is 0."""
    size, sign = g.op("abs", d), g.op("sign", d)
    if p == 0:
        return g.full(d.shape, 0, d.dt)
    if p == 1:
        return sign
    if math.isinf(p):
        return g.where(g.compare("equal", size, length), sign, 0.0)
    y = g.div(g.mul(sign, g.binary("pow", size, p - 1, d.dt)), g.binary("pow", length, p - 1, d.dt))
    return g.where(g.compare("equal", size, 0.0), 0.0, y)


@row("_cdist_backward")
def cdist_backward(g: Graph, dy: Value, a: Value, b: Value, p: float, y: Value) -> Value:
    if not a.count or not b.count:
        return g.full(a.shape, 0, a.dt)
    d = _differences(g, a, b)
    by = _slope(g, d, g.unsqueeze(y, y.rank), p)
    dx = g.reduce("sum", g.mul(by, g.unsqueeze(dy, dy.rank)), [-2])
    extra = dx.rank - a.rank
    dx = g.reduce("sum", dx, list(range(extra))) if extra else dx
    return dx if dx.shape == a.shape else g.reduce("sum", dx, [k for k in range(a.rank) if a.shape[k] == 1 < dx.shape[k]], True)


@row("linalg_cross")
def cross(g: Graph, a: Value, b: Value, dim: int = -1) -> Value:
    shape = broadcast(a.shape, b.shape)
    a, b, axis = g.expand(a, shape), g.expand(b, shape), axis_of(dim, len(shape))

    def rolled(x: Value, by: int) -> Value:
        return roll(g, x, [by], [axis])
    return g.sub(g.mul(rolled(a, -1), rolled(b, -2)), g.mul(rolled(a, -2), rolled(b, -1)))


@row("renorm")
def renorm(g: Graph, x: Value, p: float, dim: int, most: float) -> Value:
    from .reduce import vector_norm
    if kind(x.dt) != 2 or not x.count:
        raise Refused("a norm of nothing")
    axis = axis_of(dim, x.rank)
    wide = g.cast(x, "f64" if x.dt == "f64" else "f32")
    n = vector_norm(g, wide, p, [k for k in range(x.rank) if k != axis], True)
    by = g.where(g.compare("greater", n, most), g.div(g.number(most, wide.dt), g.add(n, 1e-7)), 1.0)
    return g.cast(g.mul(wide, by), x.dt)


@row("dist")
def dist(g: Graph, a: Value, b: Value, p: float = 2) -> Value:
    from .reduce import vector_norm
    return vector_norm(g, g.sub(a, b), p)


@row("_trilinear")
def trilinear(g: Graph, a: Value, b: Value, c: Value, ea: Any, eb: Any, ec: Any, dims: Any, unroll: int = 1) -> Value:
    """The three with new dims of 1, multiplied and summed over dims."""
    for_each = []
    for x, extra in ((a, ea), (b, eb), (c, ec)):
        for axis in sorted(extra):
            x = g.unsqueeze(x, axis)
        for_each.append(x)
    x, y, z = for_each
    return g.reduce("sum", g.mul(g.mul(x, y), z), list(dims)) if dims else g.mul(g.mul(x, y), z)


@row("rot90")
def rot90(g: Graph, x: Value, k: int = 1, dims: Any = (0, 1)) -> Value:
    from .shapes import flip
    a, b = (axis_of(d, x.rank) for d in dims)
    k %= 4
    if k == 0:
        return x
    if k == 2:
        return flip(g, x, [a, b])
    return g.swap(flip(g, x, [b]), a, b) if k == 1 else flip(g, g.swap(x, a, b), [b])
