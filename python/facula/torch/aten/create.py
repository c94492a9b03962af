"""Rows that make tensors, convert and copy them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Operand, Refused, Value, kind
from .table import row, rows


def _made(g: Graph, shape: Sequence[int], x: Operand) -> Value:
    """The dtype is what torch would give."""
    if not g.wanted or g.wanted[0] is None:
        raise Refused("a tensor of an unknown type")
    return g.expand(g.as_(x, g.wanted[0][0]), shape)


@row("full")
def full(g: Graph, shape: Sequence[int], x: Operand, *_: Any) -> Value:
    return _made(g, shape, x)


rows["zeros"] = rows["new_zeros"] = lambda g, shape, *_: _made(g, shape, 0)
rows["ones"] = lambda g, shape, *_: _made(g, shape, 1)
rows["new_zeros"] = lambda g, x, shape, *_: _made(g, shape, 0)
rows["new_ones"] = lambda g, x, shape, *_: _made(g, shape, 1)
rows["new_full"] = lambda g, x, shape, value, *_: _made(g, shape, value)
rows["zeros_like"] = lambda g, x, *_: _made(g, x.shape, 0)
rows["ones_like"] = lambda g, x, *_: _made(g, x.shape, 1)
rows["full_like"] = lambda g, x, value, *_: _made(g, x.shape, value)
rows["scalar_tensor"] = lambda g, value, *_: _made(g, (), value)
rows["empty.memory_format"] = lambda g, shape, *_: _made(g, shape, 0)
rows["empty_strided"] = lambda g, shape, *_: _made(g, shape, 0)
rows["empty_like"] = rows["new_empty"] = lambda g, x, *_: _made(g, x.shape, 0)
rows["new_empty"] = lambda g, x, shape, *_: _made(g, shape, 0)
rows["fill.Scalar"] = rows["fill.Tensor"] = lambda g, x, value: g.expand(g.as_(value, x.dt), x.shape)
rows["zero"] = lambda g, x: g.full(x.shape, 0, x.dt)
rows["empty_permuted"] = lambda g, shape, *_: _made(g, shape, 0)


def _range(g: Graph, start: Operand, end: Operand, step: Operand) -> Value:
    dt = g.wanted[0][0] if g.wanted and g.wanted[0] else None
    n = g.wanted[0][1][0] if g.wanted and g.wanted[0] else None
    if dt is None or n is None or any(isinstance(v, Value) for v in (start, end, step)):
        raise Refused("a range of unknown size")
    whole = all(isinstance(v, int) for v in (start, step))
    if not n:
        return g.full((0,), 0, dt)
    if whole:
        y = g.arange(n) if (start, step) == (0, 1) else g.add(g.mul(g.arange(n), step), start)
        return g.cast(y, dt)
    to = "f64" if dt == "f64" else "f32"
    return g.cast(g.add(g.mul(g.cast(g.arange(n), to), g.number(step, to)), g.number(start, to)), dt)


rows["arange"] = lambda g, end, *_: _range(g, 0, end, 1)
rows["arange.start"] = lambda g, start, end, *_: _range(g, start, end, 1)
rows["arange.start_step"] = lambda g, start, end, step=1, *_: _range(g, start, end, step)


@row("linspace")
def linspace(g: Graph, start: Operand, end: Operand, steps: int, *_: Any) -> Value:
    dt = g.wanted[0][0] if g.wanted and g.wanted[0] else "f32"
    if kind(dt) != 2 or isinstance(start, Value) or isinstance(end, Value):
        raise Refused("integers")
    if steps < 2:
        return g.full((steps,), start, dt)
    step = (end - start) / (steps - 1)
    i = g.cast(g.arange(steps), dt)
    low = g.add(g.mul(i, step), start)
    high = g.sub(end, g.mul(g.sub(steps - 1, i), step))
    return g.where(g.compare("less", i, steps // 2), low, high)


@row("eye", "eye.m")
def eye(g: Graph, n: int, m: Any = None, *_: Any) -> Value:
    m = m if isinstance(m, int) and not isinstance(m, bool) else n
    dt = g.wanted[0][0] if g.wanted and g.wanted[0] else "f32"
    same = g.compare("equal", g.reshape(g.arange(n), (n, 1)), g.reshape(g.arange(m), (1, m)))
    return g.cast(same, dt)


@row("_to_copy")
def to_copy(g: Graph, x: Value, dtype: str | None = None, *_: Any) -> Value:
    return g.cast(x, dtype or x.dt)


@row("copy")
def copy(g: Graph, x: Value, src: Value, non_blocking: bool = False) -> Value:
    return g.expand(g.cast(src, x.dt), x.shape)


@row("prims.convert_element_type")
def convert(g: Graph, x: Value, dtype: str) -> Value:
    return g.cast(x, dtype)


@row("tril_indices", "triu_indices")
def _triangle(g: Graph, *_: Any) -> Value:
    raise Refused("indices of triangles")
