"""Rows of what sorting gives: medians, places in sorted rows, histograms."""
from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Operand, Refused, Value, axis_of, kind, promote
from .indexing import NO_RANGE, told
from .table import row, rows


def _sorted(g: Graph, x: Value, axis: int) -> tuple[Value, Value]:
    """Rising values along an axis, and where they were."""
    y, at = g.ops("top_k", x, g.number(x.shape[axis], "i64"), results=2, axis=axis, smallest=True)
    return y, at


def largest(g: Graph, x: Value, n: int) -> list[Value]:
    """The n largest of each row, and where they are."""
    return g.ops("top_k", x, g.number(n, "i64"), results=2, axis=x.rank - 1)


def _one(g: Graph, x: Value, at: Value, axis: int) -> Value:
    return g.op("gather_elements", x, at, axis=axis)


def _median(g: Graph, x: Value, dim: int, keep: bool, skip: bool) -> list[Value]:
    """The lower of two in the middle.  skip: nan counts not; else one makes the result nan."""
    if not x.count or x.dt == "bool":
        raise Refused("a median of nothing")
    if not x.rank:
        return [x, g.full((), 0, "i64")]
    axis, floats = axis_of(dim, x.rank), kind(x.dt) == 2
    n = x.shape[axis]
    bad = g.op("isnan", x) if floats else None
    values, places = _sorted(g, x if bad is None else g.where(bad, math.inf, x), axis)
    first = g.full(x.shape[:axis] + (1,) + x.shape[axis + 1:], (n - 1) // 2, "i64")
    if bad is not None:
        count = g.reduce("sum", g.cast(bad, "i64"), [axis], True)
        if skip:
            first = g.op("clip", g.op("div", g.sub(n - 1, count), g.number(2, "i64")), g.number(0, "i64"), g.number(n - 1, "i64"))
        none = g.compare("equal", count, n) if skip else g.compare("greater", count, 0)
        where = g.op("arg_max", g.cast(bad, "u8"), axis=axis, keep=True)
        y = g.where(none, math.nan, _one(g, values, first, axis))
        at = g.where(none, where, _one(g, places, first, axis))
    else:
        y, at = _one(g, values, first, axis), _one(g, places, first, axis)
    shape = y.shape if keep else x.shape[:axis] + x.shape[axis + 1:]
    return [g.reshape(y, shape), g.reshape(at, shape)]


rows["median.dim"] = lambda g, x, dim, keep=False: _median(g, x, dim, keep, False)
rows["nanmedian.dim"] = lambda g, x, dim, keep=False: _median(g, x, dim, keep, True)
rows["median"] = lambda g, x: _median(g, g.reshape(x, (x.count,)), 0, False, False)[0]
rows["nanmedian"] = lambda g, x: _median(g, g.reshape(x, (x.count,)), 0, False, True)[0]


@row("kthvalue")
def kthvalue(g: Graph, x: Value, k: int, dim: int = -1, keep: bool = False) -> list[Value]:
    if not x.count or x.dt == "bool":
        raise Refused("nothing to sort")
    if not x.rank:
        return [x, g.full((), 0, "i64")]
    axis = axis_of(dim, x.rank)
    out = [g.slice(v, axis, k - 1, k) for v in _sorted(g, x, axis)]
    return out if keep else [g.reshape(v, x.shape[:axis] + x.shape[axis + 1:]) for v in out]


@row("searchsorted.Tensor")
def searchsorted(g: Graph, edges: Value, x: Value, int32: bool = False, right: bool = False, side: str | None = None,
                 sorter: Value | None = None) -> Value:
    """How many edges lie before each value; all before nan, as torch has it."""
    if not edges.count or not x.count:
        return g.full(x.shape, 0, "i32" if int32 else "i64")
    if sorter is not None:
        edges = g.op("gather_elements", edges, sorter, axis=edges.rank - 1)
    name = "greater" if right or side == "right" else "greater_or_equal"
    if edges.rank == 1:
        after = g.binary(name, g.reshape(edges, (1,) * x.rank + edges.shape), g.reshape(x, x.shape + (1,)))
    else:
        after = g.binary(name, g.unsqueeze(edges, edges.rank - 1), g.reshape(x, x.shape + (1,)))
    return g.reduce("sum", g.cast(g.op("not", after), "i32" if int32 else "i64"), [-1])


@row("searchsorted.Scalar")
def searchsorted_scalar(g: Graph, edges: Value, x: Operand, *how: Any) -> Value:
    if edges.rank != 1:
        raise Refused("a number, and edges of more than one dim")
    return searchsorted(g, edges, g.as_(x, promote(edges, x, default=g.default)), *how)


@row("bucketize.Tensor")
def bucketize(g: Graph, x: Value, edges: Value, int32: bool = False, right: bool = False) -> Value:
    if edges.rank != 1:
        raise Refused("edges of more than one dim")
    return searchsorted(g, edges, x, int32, right)


@row("histc")
def histc(g: Graph, x: Value, bins: int = 100, low: Operand = 0, high: Operand = 0) -> Value:
    if kind(x.dt) != 2 or not x.count or isinstance(low, Value) or isinstance(high, Value):
        raise Refused("a range that is data")
    flat = g.reshape(x, (x.count,))
    if low == high:                                     # that of the data
        low, high = g.reduce("reduce_min", flat), g.reduce("reduce_max", flat)
        one = g.compare("equal", low, high)
        low, high = g.where(one, g.sub(low, 1.0), low), g.where(one, g.add(high, 1.0), high)
    at = g.mul(g.div(g.sub(flat, low), g.sub(g.as_(high, x.dt), low)), float(bins))
    at = g.op("min", g.cast(g.op("floor", at), "i64"), g.number(bins - 1, "i64"))
    inside = g.op("and", g.compare("greater_or_equal", flat, low), g.compare("less_or_equal", flat, high))
    at = g.where(inside, at, bins)
    if isinstance(low, Value):                         # nan or infinity among the data
        at = told(g, g.op("not", g.compare("less", g.op("abs", g.sub(high, low)), math.inf)), at, NO_RANGE)
    zeros = g.full((bins + 1,), 0, x.dt)
    y = g.op("scatter_elements", zeros, at, g.full(flat.shape, 1, x.dt), axis=0, reduction="add")
    return g.slice(y, 0, 0, bins)
