"""Rows of x[a, :, b], read and written, and of what is done along one dim at places which are data."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Operand, Refused, Value, axis_of, broadcast
from .indexing import FEW_SOURCES, OTHER_COUNT, REFUSED, flat, from_zero, scatter_by, scatter_reduce, told
from .shapes import plain_strides
from .table import row


def _fits(x: Value, dim: int, at: Value, src: Value) -> None:
    """Whether src has a part of x's type and sizes for each index; torch itself says what is wrong."""
    sizes = list(x.shape)
    if x.rank:
        sizes[axis_of(dim, x.rank)] = at.count
    if at.rank > 1 or (not x.rank and at.count != 1) or src.shape != tuple(sizes) or src.dt != x.dt:
        raise Refused("sources that do not fit")


@row("index_reduce")
def index_reduce(g: Graph, x: Value, dim: int, at: Value, src: Value, how: str, include_self: bool = True) -> Value:
    _fits(x, dim, at, src)
    axis = axis_of(dim, x.rank)
    if x.rank:
        at = g.expand(g.reshape(at, (1,) * axis + (at.count,) + (1,) * (x.rank - axis - 1)), src.shape)
    return scatter_reduce(g, x, dim, at, src, how, include_self)


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
        if len(indices) == 1:
            return g.expand(g.cast(indices[0], "i64"), self.shape)
        total, bad = None, []
        for given, n, step in zip(indices, self.sizes, plain_strides(self.sizes)):
            given = g.cast(given, "i64")
            at = g.where(g.compare("less", given, 0), g.add(given, n), given)
            bad.append((given, g.op("or", g.compare("less", at, 0), g.compare("greater_or_equal", at, n))))
            part = at if step == 1 else g.mul(at, step)
            total = part if total is None else g.add(total, part)
        assert total is not None
        for given, outside in bad:
            total = g.where(outside, g.add(given, REFUSED), total)
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
    if values.dt != x.dt:
        raise Refused("values of another type")
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


def _put_masked(g: Graph, x: Value, lead: int, mask: Value, values: Value, accumulate: bool) -> Value:
    """x with a row of values at each true element of a mask over the dims from `lead` on."""
    if mask.shape != x.shape[lead:lead + mask.rank] or not mask.rank or values.dt != x.dt or (accumulate and x.dt == "bool"):
        raise Refused("a mask that does not fit")
    if values.rank > x.rank - mask.rank + 1:
        raise Refused("values that do not fit")
    before, after = x.shape[:lead], x.shape[lead + mask.rank:]
    mask = g.cast(mask, "bool")
    if values.count == 1:
        y = g.reshape(values, ())
    else:
        values = g.reshape(values, (1,) * (lead + 1 + len(after) - values.rank) + values.shape)
        n = values.shape[lead]
        if not n:                                   # right where the mask picks nothing
            values = g.full(values.shape[:lead] + (1,) + values.shape[lead + 1:], 0, x.dt)
        if n != 1:
            places = _counted(g, mask)
            wrong = g.op("not", g.compare("equal", g.slice(places, 0, mask.count - 1, mask.count), n - 1))
            at = g.op("clip", places, g.number(0, "i64"), g.number(max(n - 1, 0), "i64"))
            values = g.op("gather", values, told(g, wrong, at, OTHER_COUNT), axis=lead)
            values = g.reshape(values, values.shape[:lead] + mask.shape + values.shape[lead + 1:])
        else:
            values = g.reshape(values, values.shape[:lead] + (1,) * mask.rank + values.shape[lead + 1:])
        y = g.expand(values, x.shape)
    mask = g.reshape(mask, (1,) * len(before) + mask.shape + (1,) * len(after))
    return g.op("where", mask, g.add(x, y) if accumulate else g.cast(y, x.dt), x)


@row("index_put", "_unsafe_index_put")
def index_put(g: Graph, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False) -> Value:
    used = [(k, i) for k, i in enumerate(indices) if i is not None]
    if len(used) == 1 and used[0][1].dt in ("bool", "u8") and x.count:
        return _put_masked(g, x, *used[0], values, accumulate)
    return _put(g, x, indices, values, accumulate)


@row("_index_put_impl")
def index_put_impl(g: Graph, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False, unsafe: bool = False) -> Value:
    return index_put(g, x, indices, values, accumulate)


def _along(g: Graph, x: Value, dim: int, at: Value, src: Value, accumulate: bool) -> Value:
    if not x.rank:
        return g.reshape(_put(g, flat(g, x), [flat(g, at)], flat(g, src), accumulate), ())
    axis = axis_of(dim, x.rank)
    return _put(g, x, [None] * axis + [g.reshape(at, (at.count,))], src, accumulate)


@row("index_add")
def index_add(g: Graph, x: Value, dim: int, at: Value, src: Value, alpha: Any = 1) -> Value:
    if x.dt == "bool":
        raise Refused("bool")
    _fits(x, dim, at, src)
    return _along(g, x, dim, from_zero(g, at), src if alpha == 1 else g.mul(src, alpha), True)


@row("index_copy")
def index_copy(g: Graph, x: Value, dim: int, at: Value, src: Value) -> Value:
    _fits(x, dim, at, src)
    return _along(g, x, dim, from_zero(g, at), src, False)


@row("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(g: Graph, x: Value, dim: int, at: Value, value: Operand) -> Value:
    if isinstance(value, Value) and value.rank:
        raise Refused("values with dims")
    axis = axis_of(dim, x.rank)
    n = at.count
    return _along(g, x, dim, at, g.expand(g.as_(value, x.dt), x.shape[:axis] + (n,) + x.shape[axis + 1:]), False)


# ---- through the whole tensor as one row -------------------------------------------------------------------------


@row("put")
def put(g: Graph, x: Value, at: Value, src: Value, accumulate: bool = False) -> Value:
    if src.count != at.count:
        raise Refused("sources that do not fit")
    return g.reshape(_put(g, flat(g, x), [flat(g, at)], flat(g, src), accumulate), x.shape)


def _counted(g: Graph, mask: Value) -> Value:
    """The how-manieth of the true elements each one is, as one row."""
    return g.sub(g.op("cum_sum", g.cast(flat(g, mask), "i64"), g.number(0, "i64")), 1)


@row("masked_scatter")
def maskedscatter_by(g: Graph, x: Value, mask: Value, src: Value) -> Value:
    if not x.count:
        raise Refused("places in nothing")
    n, src = src.count, src if src.count else g.full((1,), 0, src.dt)
    shape = broadcast(x.shape, mask.shape)
    x, mask = g.expand(x, shape), g.expand(mask, shape)
    at = g.op("max", _counted(g, mask), g.number(0, "i64"))
    few = g.op("and", flat(g, mask), g.compare("greater_or_equal", at, n))
    at = told(g, few, g.op("min", at, g.number(src.count - 1, "i64")), FEW_SOURCES)
    return g.op("where", mask, g.reshape(g.op("gather", flat(g, src), at, axis=0), shape), x)


@row("masked_scatter_backward")
def masked_scatter_backward(g: Graph, dy: Value, mask: Value, sizes: Sequence[int]) -> Value:
    n = math.prod(sizes)
    if not dy.count:
        return g.full(sizes, 0, dy.dt)
    mask = flat(g, g.expand(mask, dy.shape))
    at = g.where(mask, _counted(g, mask), n)            # what is not masked goes after the end
    return g.reshape(g.slice(scatter_by(g, g.full((n + 1,), 0, dy.dt), 0, at, flat(g, dy), "none"), 0, 0, n), sizes)


@row("unfold_backward")
def unfold_backward(g: Graph, dy: Value, sizes: Sequence[int], dim: int, size: int, step: int) -> Value:
    zeros = g.full(sizes, 0, dy.dt)
    if not sizes:
        return g.reshape(dy, ())
    axis = axis_of(dim, len(sizes))
    n = dy.shape[axis]
    order = [k for k in range(dy.rank - 1) if k <= axis] + [dy.rank - 1] + [k for k in range(dy.rank - 1) if k > axis]
    y = g.reshape(g.transpose(dy, order), dy.shape[:axis] + (n * size,) + dy.shape[axis + 1:-1])
    i, j = g.reshape(g.arange(n), (n, 1)), g.reshape(g.arange(size), (1, size))
    return _along(g, zeros, axis, flat(g, g.add(g.mul(i, step), j)), y, True)
