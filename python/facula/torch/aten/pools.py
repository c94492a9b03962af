"""Rows of pools."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Refused, Value, kind
from .products import spread
from .table import row, rows


def _batched(g: Graph, x: Value, dims: int) -> Value:
    if not x.count or kind(x.dt) != 2:
        raise Refused("a pool of nothing")
    return x if x.rank == dims + 2 else g.reshape(x, (1,) + x.shape)


def _pool(kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool, n: int) -> dict[str, Any]:
    k = spread(kernel, n)
    return {"kernel": k, "stride": spread(stride, n) if stride else k, "pad": spread(pad, n) * 2, "dilation": spread(dilation, n),
            "ceil_mode": ceil}


def _ceil_ok(how: dict[str, Any], shape: Sequence[int], want: Any) -> None:
    """torch drops windows that begin past the image; with ceil_mode both must agree."""
    if want is not None and tuple(want) != tuple(shape):
        raise Refused("another size")


@row("max_pool2d_with_indices")
def max_pool2d(g: Graph, x: Value, kernel: Any, stride: Any = (), pad: Any = (0,), dilation: Any = (1,), ceil: bool = False) -> list[Value]:
    return _max_pool(g, x, 2, kernel, stride, pad, dilation, ceil)


@row("max_pool3d_with_indices")
def max_pool3d(g: Graph, x: Value, kernel: Any, stride: Any = (), pad: Any = (0,), dilation: Any = (1,), ceil: bool = False) -> list[Value]:
    return _max_pool(g, x, 3, kernel, stride, pad, dilation, ceil)


def _max_pool(g: Graph, x: Value, n: int, kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool) -> list[Value]:
    wide = _batched(g, x, n)
    y, at = g.ops(f"max_pool{n}d", wide, results=2, **_pool(kernel, stride, pad, dilation, ceil, n))
    at = g.op("mod", at, g.number(math.prod(wide.shape[2:]), "i64"))
    if wide is not x:
        y, at = g.reshape(y, y.shape[1:]), g.reshape(at, at.shape[1:])
    if g.wanted and g.wanted[0]:
        _ceil_ok({}, y.shape, g.wanted[0][1])
    return [y, at]


def _max_pool_back(g: Graph, dy: Value, x: Value, n: int, kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool) -> Value:
    dx = g.op(f"max_pool{n}d_grad", _batched(g, x, n), _batched(g, dy, n), **_pool(kernel, stride, pad, dilation, ceil, n))
    return g.reshape(dx, x.shape)


rows["max_pool2d_with_indices_backward"] = lambda g, dy, x, kernel, stride, pad, dilation, ceil, at: _max_pool_back(
    g, dy, x, 2, kernel, stride, pad, dilation, ceil)
rows["max_pool3d_with_indices_backward"] = lambda g, dy, x, kernel, stride, pad, dilation, ceil, at: _max_pool_back(
    g, dy, x, 3, kernel, stride, pad, dilation, ceil)


def _divided(g: Graph, y: Value, kernel: Any, ceil: bool, divisor: int | None, n: int) -> Value:
    """Means of whole windows, divided by another number than their size."""
    if not divisor:
        return y
    if ceil:
        raise Refused("a divisor of its own, and windows that reach out")
    return g.mul(y, math.prod(spread(kernel, n)) / divisor)


def _avg(n: int) -> Any:
    def function(g: Graph, x: Value, kernel: Any, stride: Any = (), pad: Any = (0,), ceil: bool = False, count: bool = True,
                 divisor: int | None = None) -> Value:
        wide = _batched(g, x, n)
        y = g.op(f"avg_pool{n}d", wide, count_include_pad=count or bool(divisor), **_pool(kernel, stride, pad, (1,), ceil, n))
        y = _divided(g, y, kernel, ceil, divisor, n)
        y = y if wide is x else g.reshape(y, y.shape[1:])
        if g.wanted and g.wanted[0]:
            _ceil_ok({}, y.shape, g.wanted[0][1])
        return y
    return function


def _avg_back(n: int) -> Any:
    def function(g: Graph, dy: Value, x: Value, kernel: Any, stride: Any, pad: Any, ceil: bool, count: bool, divisor: int | None) -> Value:
        how = _pool(kernel, stride, pad, (1,), ceil, n)
        dx = g.op(f"avg_pool{n}d_grad", _batched(g, x, n), _batched(g, dy, n), count_include_pad=count or bool(divisor), **how)
        return g.reshape(_divided(g, dx, kernel, ceil, divisor, n), x.shape)
    return function


for _n in (2, 3):
    rows[f"avg_pool{_n}d"], rows[f"avg_pool{_n}d_backward"] = _avg(_n), _avg_back(_n)


def _averaging(g: Graph, n: int, m: int, dt: str) -> Value:
    """[m, n]: row i averages what adaptive pooling gives to output i."""
    i, j = g.reshape(g.arange(m), (m, 1)), g.reshape(g.arange(n), (1, n))
    first = g.op("div", g.mul(i, n), g.number(m, "i64"))
    last = g.op("div", g.add(g.mul(g.add(i, 1), n), m - 1), g.number(m, "i64"))
    inside = g.op("and", g.compare("greater_or_equal", j, first), g.compare("less", j, last))
    return g.div(g.cast(inside, dt), g.cast(g.sub(last, first), dt))


def _adaptive(n: int) -> Any:
    def function(g: Graph, x: Value, size: Sequence[int]) -> Value:
        wide = _batched(g, x, n)
        for axis, m in zip(range(2, 2 + n), size):
            k = wide.shape[axis]
            if m == k:
                continue
            if m == 1:
                wide = g.reduce("mean", wide, [axis], True)
                continue
            y = g.swap(wide, axis, 1 + n)
            y = g.op("matmul", y, g.swap(_averaging(g, k, m, x.dt), 0, 1))
            wide = g.swap(y, axis, 1 + n)
        return wide if x.rank == n + 2 else g.reshape(wide, wide.shape[1:])
    return function


def _adaptive_back(n: int) -> Any:
    def function(g: Graph, dy: Value, x: Value) -> Value:
        wide, shape = _batched(g, dy, n), x.shape[-n:]
        for axis, k in zip(range(2, 2 + n), shape):
            m = wide.shape[axis]
            if m == k:
                continue
            if m == 1:
                wide = g.expand(g.mul(wide, 1.0 / k), wide.shape[:axis] + (k,) + wide.shape[axis + 1:])
                continue
            y = g.swap(wide, axis, 1 + n)
            wide = g.swap(g.op("matmul", y, _averaging(g, k, m, x.dt)), axis, 1 + n)
        return g.reshape(wide, x.shape)
    return function


for _n in (2, 3):
    rows[f"_adaptive_avg_pool{_n}d"], rows[f"_adaptive_avg_pool{_n}d_backward"] = _adaptive(_n), _adaptive_back(_n)


# ---- max pools whose windows are not side by side: they are gathered ---------------------------------------------


def _equal(x: Value, size: Sequence[int], n: int) -> list[int] | None:
    """The windows where they are equal and side by side."""
    sides = x.shape[-n:]
    if any(not m for m in size):
        raise Refused("a pool of nothing")
    return None if any(k % m for k, m in zip(sides, size)) else [k // m for k, m in zip(sides, size)]


def _uneven(k: int, m: int) -> list[list[int]]:
    """Which of k elements each of m windows holds; the last one fills short windows, and is no new maximum."""
    windows = [list(range(i * k // m, -(-(i + 1) * k // m))) for i in range(m)]
    most = max(len(w) for w in windows)
    return [w + w[-1:] * (most - len(w)) for w in windows]


def _uneven_max(g: Graph, x: Value, size: Sequence[int], n: int) -> list[Value]:
    """The largest of each window, and where it lies in its plane."""
    from .indexing import constant
    wide = _batched(g, x, n)
    sides, lead = wide.shape[2:], wide.shape[:2]
    tables = [_uneven(k, m) for k, m in zip(sides, size)]
    rows_of = [constant(g, [i for window in t for i in window]) for t in tables]
    reach = [len(t[0]) for t in tables]
    y = wide
    for axis, places in enumerate(rows_of, 2):
        y = g.op("gather", y, places, axis=axis)
    pairs = [v for m, k in zip(size, reach) for v in (m, k)]
    order = [0, 1] + [2 + 2 * k for k in range(n)] + [3 + 2 * k for k in range(n)]
    y = g.reshape(g.transpose(g.reshape(y, lead + tuple(pairs)), order), lead + tuple(size) + (math.prod(reach),))
    best = g.op("arg_max", y, axis=n + 2, keep=False)
    at = None
    for k in range(n):                                  # from the place in the window to the place in the plane
        inside = g.op("mod", g.op("div", best, g.number(math.prod(reach[k + 1:]), "i64")), g.number(reach[k], "i64"))
        window = g.reshape(g.arange(size[k]), [size[k] if axis == k else 1 for axis in range(n)])
        place = g.op("gather", rows_of[k], g.add(g.mul(window, reach[k]), inside), axis=0)
        at = place if at is None else g.add(g.mul(at, sides[k]), place)
    assert at is not None
    shape = x.shape[:-n] + tuple(size)
    return [g.reshape(g.reduce("reduce_max", y, [n + 2]), shape), g.reshape(at, shape)]


def _uneven_back(g: Graph, dy: Value, x: Value, at: Value, n: int) -> Value:
    from .indexing import scatter_by
    planes = (math.prod(x.shape[:-n]), math.prod(x.shape[-n:]))
    taken = (planes[0], math.prod(dy.shape[-n:]))
    zeros = g.full(planes, 0, dy.dt)
    return g.reshape(scatter_by(g, zeros, 1, g.reshape(at, taken), g.reshape(dy, taken), "add"), x.shape)


# ---- fractional max pools: windows of one size that begin where random numbers say ------------------------------


def _starts(g: Graph, sample: Value, k: int, m: int, size: int) -> Value:
    """[planes, m]: where windows of `size` begin along an axis of k, from one number for each plane."""
    last = g.full((sample.shape[0], 1), k - size, "i64")
    if m == 1:
        return last
    step = (k - size) / (m - 1)
    i = g.cast(g.reshape(g.arange(m - 1), (1, m - 1)), sample.dt)
    whole = g.cast(g.op("trunc", g.mul(g.add(i, sample), step)), "i64")
    return g.concat([g.sub(whole, g.cast(g.op("trunc", g.mul(sample, step)), "i64")), last], 1)


def _fractional(n: int) -> Any:
    def function(g: Graph, x: Value, kernel: Sequence[int], size: Sequence[int], samples: Value) -> list[Value]:
        if x.dt not in ("f32", "f64") or samples.dt != x.dt or not x.count or not math.prod(size):
            raise Refused("windows of 16 bits, or of nothing")
        sides, planes = x.shape[-n:], math.prod(x.shape[:-n])
        numbers, total = g.reshape(samples, (planes, n)), None
        for k in range(n):
            column = n - 1 - k if n == 2 else k         # torch's order: width, height; but depth, height, width
            first = _starts(g, g.slice(numbers, 1, column, column + 1), sides[k], size[k], kernel[k])
            counts = [size[k] if axis == k else 1 for axis in range(n)]
            inside = g.reshape(g.arange(kernel[k]), [1] * (n + 1) + [kernel[k] if axis == k else 1 for axis in range(n)])
            place = g.add(g.reshape(first, [planes, *counts] + [1] * n), inside)
            total = place if total is None else g.add(g.mul(total, sides[k]), place)
        assert total is not None
        windows, reach = math.prod(size), math.prod(kernel)
        total = g.reshape(total, (planes, windows * reach))
        read = g.op("gather_elements", g.reshape(x, (planes, math.prod(sides))), total, axis=1)
        read, total = (g.reshape(v, (planes, windows, reach)) for v in (read, total))
        at = g.op("gather_elements", total, g.op("arg_max", read, axis=2, keep=True), axis=2)
        shape = x.shape[:-n] + tuple(size)
        return [g.reshape(g.reduce("reduce_max", read, [2]), shape), g.reshape(at, shape)]
    return function


for _n in (2, 3):
    rows[f"fractional_max_pool{_n}d"] = _fractional(_n)
    rows[f"fractional_max_pool{_n}d_backward"] = lambda g, dy, x, kernel, size, at, n=_n: _uneven_back(g, dy, x, at, n)


# ---- adaptive max pools ----------------------------------------------------------------------------------------


def _adaptive_max(n: int) -> Any:
    def function(g: Graph, x: Value, size: Sequence[int]) -> list[Value]:
        windows = _equal(x, size, n)
        if windows is None:
            return _uneven_max(g, x, size, n)
        return _max_pool(g, x, n, windows, (), (0,), (1,), False)
    return function


def _adaptive_max_back(n: int) -> Any:
    def function(g: Graph, dy: Value, x: Value, at: Value) -> Value:
        windows = _equal(x, dy.shape[-n:], n)
        if windows is None:
            return _uneven_back(g, dy, x, at, n)
        return _max_pool_back(g, dy, x, n, windows, (), (0,), (1,), False)
    return function


for _n in (2, 3):
    rows[f"adaptive_max_pool{_n}d"], rows[f"adaptive_max_pool{_n}d_backward"] = _adaptive_max(_n), _adaptive_max_back(_n)
