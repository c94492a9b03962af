"""Rows that read and write at places which are data."""
from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Operand, Refused, Value, axis_of, broadcast, kind
from .shapes import plain_strides
from .table import row, rows


def constant(g: Graph, numbers: Sequence[int]) -> Value:
    """Known integers, of any count, as a value."""
    parts = [g.ints(list(numbers[i:i + 8])) for i in range(0, len(numbers), 8)]
    while len(parts) > 1:
        parts = [g.concat(parts[i:i + 32], 0) for i in range(0, len(parts), 32)]
    return parts[0]


# The library counts negative indices from the end, torch mostly does not; and errors that only data tells need an index that no
# dim has.  Below this the shim (run_plan.cpp) finds the index that was meant, or one of its sentences.
REFUSED = -(1 << 30)


def from_zero(g: Graph, at: Value) -> Value:
    """Indices of which negative ones are an error."""
    return g.where(g.compare("less", at, 0), g.add(at, REFUSED), at)


def told(g: Graph, bad: Value, at: Value, sentence: int) -> Value:
    """Indices where reading or writing at them fails with that sentence where `bad`."""
    return g.where(bad, g.number(REFUSED - (1 << 29) - sentence, at.dt), at)


FEW_SOURCES, NO_RANGE = 0, 1
SENTENCES = ("Number of elements of source < number of ones in mask", "torch.histc: the range of the data is not finite")


def meant(text: str) -> str:
    """An error of the library in the caller's terms, as run_plan.cpp says it."""
    found = re.search(r": index (-?\d+) is out of range", text)
    index = int(found[1]) if found else 0
    if not found or index >= REFUSED // 2:
        return text
    sentence = REFUSED - (1 << 29) - index
    if 0 <= sentence < len(SENTENCES):
        return SENTENCES[sentence]
    return f"{text[:found.start()]}: index {index - REFUSED} is out of range"


def _at_least_one(x: Value) -> Value:
    if not x.count:
        raise Refused("places in nothing")
    return x


@row("index_select")
def index_select(g: Graph, x: Value, dim: int, at: Value) -> Value:
    if at.rank > 1 or (not x.rank and at.count != 1):
        raise Refused("indices that are no vector")
    if not x.rank:
        return g.reshape(g.op("gather", _flat(g, x), from_zero(g, _flat(g, at)), axis=0), ())
    return g.op("gather", x, from_zero(g, _flat(g, at)), axis=axis_of(dim, x.rank))


@row("gather")
def gather(g: Graph, x: Value, dim: int, at: Value, sparse_grad: bool = False) -> Value:
    at = from_zero(g, at)
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


def _flat(g: Graph, x: Value) -> Value:
    return g.reshape(x, (x.count,))


def _scatter(g: Graph, x: Value, dim: int, at: Value, src: Operand, how: str) -> Value:
    if not at.count:
        return x
    if not x.rank or not at.rank:
        one = _flat(g, src) if isinstance(src, Value) else src
        return g.reshape(_scatter(g, _flat(g, x), 0, _flat(g, at), one, how), x.shape)
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
    return _scatter(g, x, dim, from_zero(g, at), src, "none")


@row("scatter_add")
def scatter_add(g: Graph, x: Value, dim: int, at: Value, src: Value) -> Value:
    if x.dt == "bool":
        raise Refused("bool")
    return _scatter(g, x, dim, from_zero(g, at), src, "add")


@row("scatter.reduce", "scatter.value_reduce")
def scatter_by(g: Graph, x: Value, dim: int, at: Value, src: Operand, how: str) -> Value:
    if x.dt == "bool":
        raise Refused("bool")
    return _scatter(g, x, dim, from_zero(g, at), src, {"add": "add", "multiply": "mul"}[how])


REDUCTIONS = {"sum": ("add", 0), "prod": ("mul", 1), "amax": ("max", -math.inf), "amin": ("min", math.inf), "mean": ("add", 0)}


@row("scatter_reduce.two")
def scatter_reduce(g: Graph, x: Value, dim: int, at: Value, src: Value, how: str, include_self: bool = True) -> Value:
    if x.dt == "bool" or (kind(x.dt) != 2 and (how == "mean" or not include_self)):
        raise Refused("integers")
    name, first = REDUCTIONS[how]
    at = from_zero(g, at)
    begun = x if include_self else _scatter(g, x, dim, at, first, "none")
    y = _scatter(g, begun, dim, at, src, name)
    if how != "mean":
        return y
    count = _scatter(g, g.full(x.shape, 1 if include_self else 0, x.dt), dim, at, 1, "add")
    return g.div(y, g.op("max", count, g.number(1, x.dt)))


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
    if not x.rank:
        return g.reshape(_put(g, _flat(g, x), [_flat(g, at)], _flat(g, src), accumulate), ())
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


# ---- through the whole tensor as one row -------------------------------------------------------------------------


@row("put")
def put(g: Graph, x: Value, at: Value, src: Value, accumulate: bool = False) -> Value:
    if src.count != at.count:
        raise Refused("sources that do not fit")
    return g.reshape(_put(g, _flat(g, x), [_flat(g, at)], _flat(g, src), accumulate), x.shape)


def _counted(g: Graph, mask: Value) -> Value:
    """The how-manieth of the true elements each one is, as one row."""
    return g.sub(g.op("cum_sum", g.cast(_flat(g, mask), "i64"), g.number(0, "i64")), 1)


@row("masked_scatter")
def masked_scatter(g: Graph, x: Value, mask: Value, src: Value) -> Value:
    if not src.count or not x.count:
        raise Refused("places in nothing")
    shape = broadcast(x.shape, mask.shape)
    x, mask = g.expand(x, shape), g.expand(mask, shape)
    at = g.op("max", _counted(g, mask), g.number(0, "i64"))
    few = g.op("and", _flat(g, mask), g.compare("greater_or_equal", at, src.count))
    at = told(g, few, g.op("min", at, g.number(src.count - 1, "i64")), FEW_SOURCES)
    return g.op("where", mask, g.reshape(g.op("gather", _flat(g, src), at, axis=0), shape), x)


@row("masked_scatter_backward")
def masked_scatter_backward(g: Graph, dy: Value, mask: Value, sizes: Sequence[int]) -> Value:
    n = math.prod(sizes)
    if not dy.count:
        return g.full(sizes, 0, dy.dt)
    mask = _flat(g, g.expand(mask, dy.shape))
    at = g.where(mask, _counted(g, mask), n)            # what is not masked goes after the end
    return g.reshape(g.slice(_scatter(g, g.full((n + 1,), 0, dy.dt), 0, at, _flat(g, dy), "none"), 0, 0, n), sizes)


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
    return _along(g, zeros, axis, _flat(g, g.add(g.mul(i, step), j)), y, True)


def _unpool(dims: int) -> Any:
    def function(g: Graph, x: Value, at: Value, size: Sequence[int], *_: Any) -> Value:
        lead, n = x.shape[:-dims], math.prod(size)
        planes = math.prod(lead)
        if not x.count:
            raise Refused("places in nothing")
        y = _scatter(g, g.full((planes, n), 0, x.dt), 1, from_zero(g, g.reshape(at, (planes, x.count // planes))),
                     g.reshape(x, (planes, x.count // planes)), "none")
        return g.reshape(y, lead + tuple(size))
    return function


rows["max_unpool2d"], rows["max_unpool3d"] = _unpool(2), _unpool(3)


def _triangle(lower: bool) -> Any:
    return lambda g, x, k=0: g.op("trilu", x, g.number(k, "i64"), lower=lower)


rows["tril"], rows["triu"] = _triangle(True), _triangle(False)


@row("trace")
def trace(g: Graph, x: Value) -> Value:
    from .reduce import sum_all
    return sum_all(g, rows["diagonal"](g, x))
