"""Rows of shapes: views as values, joins, cuts, and the writes through views."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..graph import LONG_MAX, Graph, Operand, Refused, Value, axis_of
from .table import row, rows


def sized(x: Value, shape: Sequence[int]) -> list[int]:
    """A shape with at most one -1."""
    shape = list(shape)
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        shape[shape.index(-1)] = x.count // rest if rest else 0
    return shape


@row("view", "reshape", "_unsafe_view", "_reshape_alias", "view_copy", "_reshape_copy", "_reshape_alias_copy", "reshape_copy")
def view(g: Graph, x: Value, shape: Sequence[int], *_: Any) -> Value:
    return g.reshape(x, sized(x, shape))


@row("view.dtype", "view_copy.dtype")
def view_dtype(g: Graph, x: Value, dtype: str) -> Value:
    from ..graph import width
    if width(dtype) != width(x.dt):
        raise Refused("elements of another width")
    return x if dtype == x.dt else g.op("bit_cast", x, to=dtype)


@row("expand", "expand_copy")
def expand(g: Graph, x: Value, shape: Sequence[int], implicit: bool = False) -> Value:
    lead = len(shape) - x.rank
    return g.expand(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)])


@row("permute", "permute_copy")
def permute(g: Graph, x: Value, dims: Sequence[int]) -> Value:
    return g.transpose(x, [axis_of(d, x.rank) for d in dims])


@row("transpose.int", "transpose_copy.int")
def transpose(g: Graph, x: Value, a: int, b: int) -> Value:
    return g.swap(x, axis_of(a, x.rank), axis_of(b, x.rank)) if x.rank else x


@row("t", "t_copy")
def t(g: Graph, x: Value) -> Value:
    return g.swap(x, 0, 1) if x.rank == 2 else x


@row("unsqueeze", "unsqueeze_copy")
def unsqueeze(g: Graph, x: Value, dim: int) -> Value:
    return g.unsqueeze(x, dim + x.rank + 1 if dim < 0 else dim)


@row("squeeze", "squeeze_copy", "squeeze.dim", "squeeze.dims", "squeeze_copy.dim", "squeeze_copy.dims")
def squeeze(g: Graph, x: Value, dims: Any = None) -> Value:
    axes = range(x.rank) if dims is None else [axis_of(d, x.rank) for d in ([dims] if isinstance(dims, int) else dims)]
    return g.reshape(x, [n for i, n in enumerate(x.shape) if not (i in axes and n == 1)])


@row("slice.Tensor", "slice_copy.Tensor")
def slice_(g: Graph, x: Value, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Value:
    axis = axis_of(dim, x.rank)
    first, last = bounds(x.shape[axis], start, end)
    return g.slice(x, axis, first, last, step)


def bounds(n: int, start: int | None, end: int | None) -> tuple[int, int]:
    first = 0 if start is None else start + n if start < 0 else start
    last = n if end is None or end >= LONG_MAX else end + n if end < 0 else end
    first = min(max(first, 0), n)
    return first, max(min(max(last, 0), n), first)


@row("select.int", "select_copy.int")
def select(g: Graph, x: Value, dim: int, index: int) -> Value:
    axis = axis_of(dim, x.rank)
    at = index + x.shape[axis] if index < 0 else index
    return g.reshape(g.slice(x, axis, at, at + 1), x.shape[:axis] + x.shape[axis + 1:])


@row("narrow", "narrow_copy")
def narrow(g: Graph, x: Value, dim: int, start: int, length: int) -> Value:
    axis = axis_of(dim, x.rank)
    first = start + x.shape[axis] if start < 0 else start
    return g.slice(x, axis, first, first + length)


def cut(g: Graph, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    if len(sizes) == 1:
        return [x]
    return g.ops("split", x, g.ints(sizes), results=len(sizes), axis=axis) if len(sizes) <= 8 else _slices(g, x, axis, sizes)


def _slices(g: Graph, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    out, at = [], 0
    for n in sizes:
        out.append(g.slice(x, axis, at, at + n))
        at += n
    return out


@row("split.Tensor", "split_copy.Tensor", "unsafe_split.Tensor")
def split(g: Graph, x: Value, size: int, dim: int = 0) -> list[Value]:
    axis = axis_of(dim, x.rank)
    n = x.shape[axis]
    return cut(g, x, axis, [min(size, n - at) for at in range(0, n, size)] if size and n else [n])


@row("split_with_sizes", "split_with_sizes_copy", "split.sizes", "unsafe_split_with_sizes")
def split_with_sizes(g: Graph, x: Value, sizes: Sequence[int], dim: int = 0) -> list[Value]:
    return cut(g, x, axis_of(dim, x.rank), sizes)


@row("chunk")
def chunk(g: Graph, x: Value, chunks: int, dim: int = 0) -> list[Value]:
    return split(g, x, -(-x.shape[axis_of(dim, x.rank)] // chunks), dim)


@row("unbind.int", "unbind_copy.int")
def unbind(g: Graph, x: Value, dim: int = 0) -> list[Value]:
    return [select(g, x, dim, i) for i in range(x.shape[axis_of(dim, x.rank)])]


@row("cat")
def cat(g: Graph, xs: Sequence[Value], dim: int = 0) -> Value:
    from ..graph import promote
    to = promote(*xs)
    xs = [g.cast(x, to) for x in xs if x.shape != (0,)] or [g.cast(xs[0], to)]
    return g.concat(xs, axis_of(dim, xs[0].rank))


@row("stack")
def stack(g: Graph, xs: Sequence[Value], dim: int = 0) -> Value:
    axis = dim + xs[0].rank + 1 if dim < 0 else dim
    return cat(g, [g.unsqueeze(x, axis) for x in xs], axis)


@row("repeat")
def repeat(g: Graph, x: Value, repeats: Sequence[int]) -> Value:
    x = g.reshape(x, (1,) * (len(repeats) - x.rank) + x.shape)
    return g.op("tile", x, g.ints(repeats)) if repeats else x


@row("tile")
def tile(g: Graph, x: Value, repeats: Sequence[int]) -> Value:
    return repeat(g, x, [1] * (x.rank - len(repeats)) + list(repeats))


@row("flip")
def flip(g: Graph, x: Value, dims: Sequence[int]) -> Value:
    axes = [axis_of(d, x.rank) for d in dims]
    if not axes or not x.rank:
        return x
    n = len(axes)
    return g.op("slice", x, g.ints([-1] * n), g.ints([-2 ** 62] * n), g.ints(axes), g.ints([-1] * n))


@row("roll")
def roll(g: Graph, x: Value, shifts: Sequence[int], dims: Sequence[int] = ()) -> Value:
    if not x.count:
        return x
    if not dims:
        return g.reshape(roll(g, g.reshape(x, (x.count,)), shifts, [0]), x.shape)
    for by, dim in zip(shifts, dims):
        axis = axis_of(dim, x.rank)
        n = x.shape[axis]
        at = n - by % n
        if at % n:
            x = g.concat([g.slice(x, axis, at, n), g.slice(x, axis, 0, at)], axis)
    return x


@row("constant_pad_nd")
def constant_pad(g: Graph, x: Value, pads: Sequence[int], value: Operand = 0) -> Value:
    begin, end = [0] * x.rank, [0] * x.rank
    for i in range(len(pads) // 2):
        begin[-1 - i], end[-1 - i] = pads[2 * i], pads[2 * i + 1]
    if x.rank > 4:
        raise Refused("more than four dims")
    return g.op("pad", x, g.ints(begin + end), g.as_(value, x.dt), mode="constant")


def _border(mode: str, dims: int) -> Any:
    def function(g: Graph, x: Value, pads: Sequence[int]) -> Value:
        if x.rank > 4 or (mode == "edge" and not x.count):
            raise Refused("more than four dims")
        begin, end = [0] * x.rank, [0] * x.rank
        for i in range(dims):
            begin[-1 - i], end[-1 - i] = pads[2 * i], pads[2 * i + 1]
        return g.op("pad", x, g.ints(begin + end), None, mode=mode)
    return function


def _border_back(mode: str, dims: int) -> Any:
    def function(g: Graph, dy: Value, x: Value, pads: Sequence[int]) -> Value:
        if x.rank > 4 or min(pads) < 0:
            raise Refused("more than four dims, or pads that crop")
        begin, end = [0] * x.rank, [0] * x.rank
        for i in range(dims):
            begin[-1 - i], end[-1 - i] = pads[2 * i], pads[2 * i + 1]
        return g.op("pad_grad", x, g.ints(begin + end), None, dy, mode=mode)
    return function


for _n in (1, 2, 3):
    rows[f"reflection_pad{_n}d"], rows[f"replication_pad{_n}d"] = _border("reflect", _n), _border("edge", _n)
    rows[f"reflection_pad{_n}d_backward"] = _border_back("reflect", _n)
    rows[f"replication_pad{_n}d_backward"] = _border_back("edge", _n)


# ---- windows of any strides ------------------------------------------------------------------------------------


def plain_strides(shape: Sequence[int]) -> list[int]:
    out, n = [1] * len(shape), 1
    for i in range(len(shape) - 1, -1, -1):
        out[i] = n
        n *= max(shape[i], 1)
    return out


def window(g: Graph, x: Value, sizes: Sequence[int], strides: Sequence[int], offset: int) -> Value:
    """torch.as_strided of a contiguous x."""
    sizes, strides = list(sizes), list(strides)
    if not math.prod(sizes):
        return g.full(sizes, 0, x.dt)
    flat = offset == 0 and math.prod(sizes) == x.count
    if flat and all(n == 1 or a == b for n, a, b in zip(sizes, strides, plain_strides(sizes))):
        return g.reshape(x, sizes)
    order = sorted(range(len(sizes)), key=lambda i: -strides[i])
    sorted_sizes, sorted_strides = [sizes[i] for i in order], [strides[i] for i in order]
    if flat and all(n == 1 or a == b for n, a, b in zip(sorted_sizes, sorted_strides, plain_strides(sorted_sizes))):
        back = [order.index(i) for i in range(len(sizes))]
        return g.transpose(g.reshape(x, sorted_sizes), back)
    wide = [n if s else 1 for n, s in zip(sizes, strides)]
    if 0 in strides and wide != sizes:
        return g.expand(window(g, x, wide, [s or 1 for s in strides], offset), sizes)
    span = _span(sizes, strides, offset)
    if span is not None:
        y = g.slice(g.reshape(x, (x.count,)), 0, offset, offset + math.prod(sizes))
        return g.transpose(g.reshape(y, [sizes[i] for i in span]), [span.index(i) for i in range(len(sizes))])
    if len(sizes) > 8:
        raise Refused("more than eight dims")
    return g.op("as_strided", x, sizes=sizes or None, strides=strides or None, offset=offset)


def _span(sizes: Sequence[int], strides: Sequence[int], offset: int) -> list[int] | None:
    """The order of dims in which the window is one run of memory."""
    order = sorted(range(len(sizes)), key=lambda i: (-strides[i], -sizes[i]))
    want = plain_strides([sizes[i] for i in order])
    dense = all(sizes[i] == 1 or strides[i] == want[k] for k, i in enumerate(order))
    return order if dense else None


@row("as_strided", "as_strided_copy")
def as_strided(g: Graph, x: Value, sizes: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Value:
    return window(g, x, sizes, strides, offset or 0)


@row("as_strided_scatter")
def as_strided_scatter(g: Graph, x: Value, src: Value, sizes: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Value:
    return assign(g, x, src, sizes, strides, offset or 0)


def assign(g: Graph, x: Value, y: Value, sizes: Sequence[int], strides: Sequence[int], offset: int) -> Value:
    """x with a window of it replaced by y."""
    sizes, strides = list(sizes), list(strides)
    y = g.expand(g.cast(y, x.dt), sizes)
    n = math.prod(sizes)
    if not n:
        return x
    span = _span(sizes, strides, offset)
    if span is not None:
        flat = g.reshape(g.transpose(y, span), (n,))
        whole = g.reshape(x, (x.count,))
        parts = [g.slice(whole, 0, 0, offset)] if offset else []
        parts.append(flat)
        if offset + n < x.count:
            parts.append(g.slice(whole, 0, offset + n, x.count))
        return g.reshape(g.concat(parts, 0), x.shape)
    if any(s == 0 and m > 1 for s, m in zip(strides, sizes)):
        raise Refused("a write to elements that lie over each other")
    return g.op("as_strided_assign", x, y, sizes=sizes, strides=strides, offset=offset)


@row("slice_scatter")
def slice_scatter(g: Graph, x: Value, src: Value, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Value:
    axis = axis_of(dim, x.rank)
    first, last = bounds(x.shape[axis], start, end)
    if step != 1:
        strides = plain_strides(x.shape)
        offset = first * strides[axis]
        strides[axis] *= step
        return assign(g, x, src, src.shape, strides, offset)
    parts = [g.slice(x, axis, 0, first)] if first else []
    parts.append(g.expand(g.cast(src, x.dt), x.shape[:axis] + (last - first,) + x.shape[axis + 1:]))
    if last < x.shape[axis]:
        parts.append(g.slice(x, axis, last, x.shape[axis]))
    return g.concat(parts, axis)


@row("select_scatter")
def select_scatter(g: Graph, x: Value, src: Value, dim: int, index: int) -> Value:
    axis = axis_of(dim, x.rank)
    at = index + x.shape[axis] if index < 0 else index
    return slice_scatter(g, x, g.unsqueeze(src, axis), axis, at, at + 1)


@row("slice_backward")
def slice_backward(g: Graph, dy: Value, shape: Sequence[int], dim: int, start: int, end: int, step: int) -> Value:
    return slice_scatter(g, g.full(shape, 0, dy.dt), dy, dim, start, end, step)


@row("select_backward")
def select_backward(g: Graph, dy: Value, shape: Sequence[int], dim: int, index: int) -> Value:
    return select_scatter(g, g.full(shape, 0, dy.dt), dy, dim, index)


def _diagonal(shape: Sequence[int], offset: int, a: int, b: int) -> tuple[list[int], list[int], int]:
    a, b = axis_of(a, len(shape)), axis_of(b, len(shape))
    strides = plain_strides(shape)
    n = min(shape[a], shape[b] - offset) if offset >= 0 else min(shape[a] + offset, shape[b])
    at = offset * strides[b] if offset >= 0 else -offset * strides[a]
    rest = [i for i in range(len(shape)) if i not in (a, b)]
    return [shape[i] for i in rest] + [max(n, 0)], [strides[i] for i in rest] + [strides[a] + strides[b]], at if n > 0 else 0


@row("diagonal", "diagonal_copy")
def diagonal(g: Graph, x: Value, offset: int = 0, a: int = 0, b: int = 1) -> Value:
    return window(g, x, *_diagonal(x.shape, offset, a, b))


@row("diagonal_scatter")
def diagonal_scatter(g: Graph, x: Value, src: Value, offset: int = 0, a: int = 0, b: int = 1) -> Value:
    return assign(g, x, src, *_diagonal(x.shape, offset, a, b))


@row("diagonal_backward")
def diagonal_backward(g: Graph, dy: Value, shape: Sequence[int], offset: int, a: int, b: int) -> Value:
    return diagonal_scatter(g, g.full(shape, 0, dy.dt), dy, offset, a, b)


@row("diag_embed")
def diag_embed(g: Graph, x: Value, offset: int = 0, a: int = -2, b: int = -1) -> Value:
    n, rank = x.shape[-1] + abs(offset), x.rank + 1
    shape = list(x.shape[:-1])
    for axis in sorted((axis_of(a, rank), axis_of(b, rank))):
        shape.insert(axis, n)
    return diagonal_scatter(g, g.full(shape, 0, x.dt), x, offset, a, b)


@row("block_diag")
def block_diag(g: Graph, xs: Sequence[Value]) -> Value:
    from ..graph import promote
    to = promote(*xs)
    parts = [g.cast(g.reshape(x, (1,) * (2 - x.rank) + x.shape), to) for x in xs]
    width, at, out = sum(x.shape[1] for x in parts), 0, []
    for x in parts:
        h, w = x.shape
        out.append(g.concat([g.full((h, at), 0, to), x, g.full((h, width - at - w), 0, to)], 1))
        at += w
    return g.concat(out, 0)


@row("unfold", "unfold_copy")
def unfold(g: Graph, x: Value, dim: int, size: int, step: int) -> Value:
    if not x.rank:
        return g.reshape(x, (size,))
    axis = axis_of(dim, x.rank)
    sizes, strides = list(x.shape), plain_strides(x.shape)
    last = strides[axis]
    sizes[axis] = (sizes[axis] - size) // step + 1
    strides[axis] *= step
    return window(g, x, sizes + [size], strides + [last], 0)


@row("pixel_shuffle")
def pixel_shuffle(g: Graph, x: Value, by: int) -> Value:
    if x.rank < 3:
        raise Refused("dims")
    lead, (c, h, w) = x.shape[:-3], x.shape[-3:]
    n = math.prod(lead)
    y = g.reshape(x, (n, c // by ** 2, by, by, h, w))
    return g.reshape(g.transpose(y, [0, 1, 4, 2, 5, 3]), lead + (c // by ** 2, h * by, w * by))


@row("pixel_unshuffle")
def pixel_unshuffle(g: Graph, x: Value, by: int) -> Value:
    if x.rank < 3:
        raise Refused("dims")
    lead, (c, h, w) = x.shape[:-3], x.shape[-3:]
    y = g.reshape(x, (math.prod(lead), c, h // by, by, w // by, by))
    return g.reshape(g.transpose(y, [0, 1, 3, 5, 2, 4]), lead + (c * by ** 2, h // by, w // by))


@row("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(g: Graph, x: Value, groups: int) -> Value:
    n, c, *rest = x.shape
    y = g.reshape(x, (n, groups, c // groups, math.prod(rest)))
    return g.reshape(g.swap(y, 1, 2), x.shape)
