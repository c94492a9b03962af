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


FEW_SOURCES, NO_RANGE, OTHER_COUNT = 0, 1, 2
SENTENCES = ("Number of elements of source < number of ones in mask", "torch.histc: the range of the data is not finite",
             "shape mismatch: the values that are written have other sizes than what the mask picks")


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
        return g.reshape(g.op("gather", flat(g, x), from_zero(g, flat(g, at)), axis=0), ())
    return g.op("gather", x, from_zero(g, flat(g, at)), axis=axis_of(dim, x.rank))


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


def flat(g: Graph, x: Value) -> Value:
    return g.reshape(x, (x.count,))


def scatter_by(g: Graph, x: Value, dim: int, at: Value, src: Operand, how: str) -> Value:
    if not at.count:
        return x
    if not x.rank or not at.rank:
        one = flat(g, src) if isinstance(src, Value) else src
        return g.reshape(scatter_by(g, flat(g, x), 0, flat(g, at), one, how), x.shape)
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
    return scatter_by(g, x, dim, from_zero(g, at), src, "none")


@row("scatter_add")
def scatter_add(g: Graph, x: Value, dim: int, at: Value, src: Value) -> Value:
    if x.dt == "bool":
        raise Refused("bool")
    return scatter_by(g, x, dim, from_zero(g, at), src, "add")


@row("scatter.reduce", "scatter.value_reduce")
def _reduce(g: Graph, x: Value, dim: int, at: Value, src: Operand, how: str) -> Value:
    if x.dt == "bool":
        raise Refused("bool")
    return scatter_by(g, x, dim, from_zero(g, at), src, {"add": "add", "multiply": "mul"}[how])


REDUCTIONS = {"sum": ("add", 0), "prod": ("mul", 1), "amax": ("max", -math.inf), "amin": ("min", math.inf), "mean": ("add", 0)}


@row("scatter_reduce.two")
def scatter_reduce(g: Graph, x: Value, dim: int, at: Value, src: Value, how: str, include_self: bool = True) -> Value:
    if x.dt == "bool" or (kind(x.dt) != 2 and (how == "mean" or not include_self)):
        raise Refused("integers")
    name, first = REDUCTIONS[how]
    at = from_zero(g, at)
    begun = x if include_self else scatter_by(g, x, dim, at, first, "none")
    y = scatter_by(g, begun, dim, at, src, name)
    if how != "mean":
        return y
    count = scatter_by(g, g.full(x.shape, 1 if include_self else 0, x.dt), dim, at, 1, "add")
    return g.div(y, g.op("max", count, g.number(1, x.dt)))


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


def _unpool(dims: int) -> Any:
    def function(g: Graph, x: Value, at: Value, size: Sequence[int], *_: Any) -> Value:
        lead, n = x.shape[:-dims], math.prod(size)
        planes = math.prod(lead)
        if not x.count:
            raise Refused("places in nothing")
        y = scatter_by(g, g.full((planes, n), 0, x.dt), 1, from_zero(g, g.reshape(at, (planes, x.count // planes))),
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
