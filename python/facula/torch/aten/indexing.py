"""Rows that read and write at places which are data."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Operand, Refused, Value, axis_of, broadcast
from .shapes import plain_strides
from .table import row, rows


def constant(g: Graph, numbers: Sequence[int]) -> Value:
    """Known integers, of any count, as a value."""
    parts = [g.ints(list(numbers[i:i + 8])) for i in range(0, len(numbers), 8)]
    while len(parts) > 1:
        parts = [g.concat(parts[i:i + 32], 0) for i in range(0, len(parts), 32)]
    return parts[0]


def _at_least_one(x: Value) -> Value:
    if not x.count:
        raise Refused("places in nothing")
    return x


@row("index_select")
def index_select(g: Graph, x: Value, dim: int, at: Value) -> Value:
    if not x.rank:
        return g.reshape(x, at.shape)
    return g.op("gather", x, g.reshape(at, (at.count,)), axis=axis_of(dim, x.rank))


@row("gather")
def gather(g: Graph, x: Value, dim: int, at: Value, sparse_grad: bool = False) -> Value:
    if not x.rank or not at.rank:
        return g.reshape(g.op("gather", g.reshape(x, (x.count,)), g.reshape(at, (at.count,)), axis=0), at.shape)
    axis = axis_of(dim, x.rank)
    for i, n in enumerate(at.shape):
        if i != axis and n < x.shape[i]:
            x = g.slice(x, i, 0, n)
    return g.op("gather_elements", x, at, axis=axis)


@row("take")
def take(g: Graph, x: Value, at: Value) -> Value:
    return g.op("gather", g.reshape(_at_least_one(x), (x.count,)), at, axis=0)


def _scatter(g: Graph, x: Value, dim: int, at: Value, src: Operand, how: str) -> Value:
    if not at.count:
        return x
    if not x.rank or not at.rank:
        raise Refused("no dims")
    axis = axis_of(dim, x.rank)
    if isinstance(src, Value):
        if src.rank != at.rank:
            raise Refused("no dims")
        for i, n in enumerate(at.shape):
            if n < src.shape[i]:
                src = g.slice(src, i, 0, n)
    else:
        src = g.full(at.shape, src, x.dt)
    return g.op("scatter_elements", x, at, g.cast(src, x.dt), axis=axis, reduction=how)


@row("scatter.src", "scatter.value")
def scatter(g: Graph, x: Value, dim: int, at: Value, src: Operand) -> Value:
    return _scatter(g, x, dim, at, src, "none")


@row("scatter_add")
def scatter_add(g: Graph, x: Value, dim: int, at: Value, src: Value) -> Value:
    if x.dt == "bool":
        raise Refused("bool")
    return _scatter(g, x, dim, at, src, "add")


@row("scatter.reduce", "scatter.value_reduce")
def scatter_by(g: Graph, x: Value, dim: int, at: Value, src: Operand, how: str) -> Value:
    if x.dt == "bool":
        raise Refused("bool")
    return _scatter(g, x, dim, at, src, {"add": "add", "multiply": "mul"}[how])


@row("scatter_reduce.two")
def scatter_reduce(g: Graph, x: Value, dim: int, at: Value, src: Value, how: str, include_self: bool = True) -> Value:
    names = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if how not in names or not include_self or x.dt == "bool":
        raise Refused("means, or without the old elements")
    return _scatter(g, x, dim, at, src, names[how])


# ---- x[a, :, b] ------------------------------------------------------------------------------------------------


class Places:
    """What x[i0, None, i2, ...] reads: the indexed dims go to the front, then to where torch has them."""

    def __init__(self, g: Graph, x: Value, indices: Sequence[Value | None]) -> None:
        if any(i is not None and i.dt in ("bool", "u8") for i in indices):
            raise Refused("a mask: the size of the result is data")
        axes = [k for k, i in enumerate(indices) if i is not None]
        if not axes or not x.count:
            raise Refused("no indices")
        self.axes = axes
        self.rest = [k for k in range(x.rank) if k not in axes]
        self.shape = broadcast(*[i.shape for i in indices if i is not None])
        self.together = axes == list(range(axes[0], axes[-1] + 1))
        self.sizes = [x.shape[k] for k in axes]
        self.flat = self._flat(g, [i for i in indices if i is not None])

    def _flat(self, g: Graph, indices: list[Value]) -> Value:
        """One index into the indexed dims as one."""
        total: Value | None = None
        for at, n, step in zip(indices, self.sizes, plain_strides(self.sizes)):
            at = g.cast(at, "i64")
            at = g.where(g.compare("less", at, 0), g.add(at, n), at)
            part = at if step == 1 else g.mul(at, step)
            total = part if total is None else g.add(total, part)
        assert total is not None
        return g.expand(total, self.shape)

    def front(self, g: Graph, x: Value) -> Value:
        y = g.transpose(x, self.axes + self.rest)
        return g.reshape(y, (math.prod(self.sizes),) + tuple(x.shape[k] for k in self.rest))

    def back(self, g: Graph, y: Value, x: Value) -> Value:
        order = self.axes + self.rest
        y = g.reshape(y, [x.shape[k] for k in order])
        return g.transpose(y, [order.index(k) for k in range(x.rank)])

    def order(self) -> list[int]:
        """The dims of a result whose indexed dims are in front, in torch's order."""
        n, lead = len(self.shape), self.axes[0] if self.together else 0
        rest = list(range(n, n + len(self.rest)))
        return rest[:lead] + list(range(n)) + rest[lead:]


@row("index.Tensor", "_unsafe_index.Tensor")
def index(g: Graph, x: Value, indices: Sequence[Value | None]) -> Value:
    used = [(k, i) for k, i in enumerate(indices) if i is not None]
    if len(used) == 1 and used[0][1].dt in ("i32", "i64") and x.count:
        return g.op("gather", x, used[0][1], axis=used[0][0])
    p = Places(g, x, indices)
    return g.transpose(g.op("gather", p.front(g, x), p.flat, axis=0), p.order())


def _put(g: Graph, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool) -> Value:
    if x.dt == "bool" and accumulate:
        raise Refused("bool")
    p = Places(g, x, indices)
    order = p.order()
    picked = p.shape + tuple(x.shape[k] for k in p.rest)
    y = g.expand(g.cast(values, x.dt), [picked[k] for k in order])
    y = g.transpose(y, [order.index(k) for k in range(len(order))])
    at = g.reshape(p.flat, (p.flat.count, 1))
    if not at.count:
        return x
    y = g.reshape(y, (p.flat.count,) + tuple(x.shape[k] for k in p.rest))
    return p.back(g, g.op("scatter_nd", p.front(g, x), at, y, reduction="add" if accumulate else "none"), x)


@row("index_put", "_unsafe_index_put")
def index_put(g: Graph, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False) -> Value:
    masks = [i for i in indices if i is not None]
    if len(masks) == 1 and masks[0].dt == "bool" and not values.rank and not accumulate:
        lead = indices.index(masks[0])
        mask = g.reshape(masks[0], (1,) * lead + masks[0].shape + (1,) * (x.rank - lead - masks[0].rank))
        return g.op("where", mask, g.cast(values, x.dt), x)
    return _put(g, x, indices, values, accumulate)


@row("_index_put_impl")
def index_put_impl(g: Graph, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False, unsafe: bool = False) -> Value:
    return index_put(g, x, indices, values, accumulate)


def _along(g: Graph, x: Value, dim: int, at: Value, src: Value, accumulate: bool) -> Value:
    axis = axis_of(dim, x.rank)
    if not x.rank:
        raise Refused("no dims")
    return _put(g, x, [None] * axis + [g.reshape(at, (at.count,))], src, accumulate)


@row("index_add")
def index_add(g: Graph, x: Value, dim: int, at: Value, src: Value, alpha: Any = 1) -> Value:
    if x.dt == "bool":
        raise Refused("bool")
    return _along(g, x, dim, at, src if alpha == 1 else g.mul(src, alpha), True)


@row("index_copy")
def index_copy(g: Graph, x: Value, dim: int, at: Value, src: Value) -> Value:
    return _along(g, x, dim, at, src, False)


@row("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(g: Graph, x: Value, dim: int, at: Value, value: Operand) -> Value:
    axis = axis_of(dim, x.rank)
    n = at.count
    return _along(g, x, dim, at, g.expand(g.as_(value, x.dt), x.shape[:axis] + (n,) + x.shape[axis + 1:]), False)


@row("isin.Tensor_Tensor")
def isin(g: Graph, x: Value, among: Value, assume_unique: bool = False, invert: bool = False) -> Value:
    if not among.count:
        hit = g.full(x.shape, False, "bool")
    else:
        same = g.compare("equal", g.reshape(x, x.shape + (1,)), g.reshape(among, (among.count,)))
        hit = g.cast(g.reduce("reduce_max", g.cast(same, "u8"), [x.rank]), "bool")
    return g.op("not", hit) if invert else hit


@row("isin.Tensor_Scalar")
def isin_scalar(g: Graph, x: Value, one: Operand, assume_unique: bool = False, invert: bool = False) -> Value:
    hit = g.compare("equal", x, one)
    return g.op("not", hit) if invert else hit


def _triangle(lower: bool) -> Any:
    return lambda g, x, k=0: g.op("trilu", x, g.number(k, "i64"), lower=lower)


rows["tril"], rows["triu"] = _triangle(True), _triangle(False)


@row("trace")
def trace(g: Graph, x: Value) -> Value:
    from .reduce import sum_all
    return sum_all(g, rows["diagonal"](g, x))
