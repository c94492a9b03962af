"""Rows of interpolation."""
from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Refused, Value, kind
from .table import rows
from .losses import rows


def _rounded(x: float) -> float:
    """To float32, in which torch computes places."""
    return float(struct.unpack("f", struct.pack("f", x))[0])


def _places(exact: bool, k: int, m: int, scale: float | None) -> list[int]:
    """Which of k elements each of m takes."""
    step = _rounded(1 / scale if scale else k / m)
    return [min(int(_rounded(((i + 0.5) if exact else i) * step)), k - 1) for i in range(m)]


def _nearest(exact: bool, n: int) -> Any:
    def function(g: Graph, x: Value, size: Sequence[int], *scales: Any) -> Value:
        if kind(x.dt) != 2 or not x.count:
            raise Refused("integers")
        for axis, m, s in zip(range(2, 2 + n), size, scales or (None,) * n):
            at = _places(exact, x.shape[axis], m, s)
            if at != list(range(x.shape[axis])):
                x = _picked(g, x, axis, at)
        return x
    return function


def _picked(g: Graph, x: Value, axis: int, at: Sequence[int]) -> Value:
    k, m = x.shape[axis], len(at)
    if m % k == 0 and all(a == i // (m // k) for i, a in enumerate(at)):
        wide = g.unsqueeze(x, axis + 1)
        y = g.expand(wide, wide.shape[:axis + 1] + (m // k,) + wide.shape[axis + 2:])
        return g.reshape(y, x.shape[:axis] + (m,) + x.shape[axis + 1:])
    from .indexing import constant
    return g.op("gather", x, constant(g, at), axis=axis)


def _linear(g: Graph, n: int, m: int, align: bool, scale: float | None, dt: str) -> Value:
    """[m, n]: the weights of linear interpolation."""
    if align:
        step = (n - 1) / (m - 1) if m > 1 else 0.0
    else:
        step = 1 / scale if scale else n / m
    i = g.cast(g.arange(m), dt)
    at = g.mul(i, step) if align else g.op("max", g.sub(g.mul(g.add(i, 0.5), step), 0.5), g.number(0, dt))
    low = g.op("min", g.op("floor", at), g.number(n - 1, dt))
    part = g.op("min", g.sub(at, low), g.number(1, dt))
    high = g.op("min", g.add(low, 1), g.number(n - 1, dt))
    j = g.reshape(g.cast(g.arange(n), dt), (1, n))
    low, high, part = (g.reshape(v, (m, 1)) for v in (low, high, part))
    is_low, is_high = g.cast(g.compare("equal", j, low), dt), g.cast(g.compare("equal", j, high), dt)
    return g.add(g.mul(is_low, g.sub(1, part)), g.mul(is_high, part))


def _cubic(g: Graph, n: int, m: int, align: bool, scale: float | None, dt: str) -> Value:
    """[m, n]: the weights of four neighbours, those beyond the border are the last ones."""
    step = ((n - 1) / (m - 1) if m > 1 else 0.0) if align else 1 / scale if scale else n / m
    i = g.cast(g.arange(m), dt)
    at = g.mul(i, step) if align else g.sub(g.mul(g.add(i, 0.5), step), 0.5)
    low = g.op("floor", at)
    j, total = g.reshape(g.cast(g.arange(n), dt), (1, n)), None
    for k in range(-1, 3):
        d = g.op("abs", g.sub(g.sub(at, low), k))
        near = g.add(g.mul(g.mul(g.sub(g.mul(d, 1.25), 2.25), d), d), 1)                        # a = -0.75
        far = g.add(g.mul(g.sub(g.mul(g.sub(3.75, g.mul(d, 0.75)), d), 6), d), 3)
        weight = g.where(g.compare("less_or_equal", d, 1), near, far)
        place = g.op("clip", g.add(low, k), g.number(0, dt), g.number(n - 1, dt))
        part = g.mul(g.cast(g.compare("equal", j, g.reshape(place, (m, 1))), dt), g.reshape(weight, (m, 1)))
        total = part if total is None else g.add(total, part)
    assert total is not None
    return total


def _antialiased(cubic: bool) -> Any:
    def weights(g: Graph, n: int, m: int, align: bool, scale: float | None, dt: str) -> Value:
        """[m, n]: a filter as wide as the step, whose weights sum to one."""
        step = ((n - 1) / (m - 1) if m > 1 else 0.0) if align else 1 / scale if scale else n / m
        wide = max(step, 1.0)
        center = g.reshape(g.mul(g.add(g.cast(g.arange(m), dt), 0.5), step), (m, 1))
        reach = (2 if cubic else 1) * wide
        low = g.op("max", g.op("trunc", g.add(center, 0.5 - reach)), g.number(0, dt))
        high = g.op("min", g.op("trunc", g.add(center, 0.5 + reach)), g.number(n, dt))
        j = g.reshape(g.cast(g.arange(n), dt), (1, n))
        d = g.op("abs", g.mul(g.sub(g.add(j, 0.5), center), 1 / wide))
        if cubic:                                                                               # a = -0.5
            near = g.add(g.mul(g.mul(g.sub(g.mul(d, 1.5), 2.5), d), d), 1)
            far = g.add(g.mul(g.sub(g.mul(g.sub(2.5, g.mul(d, 0.5)), d), 4), d), 2)
            w = g.where(g.compare("less", d, 1), near, g.where(g.compare("less", d, 2), far, 0.0))
        else:
            w = g.op("max", g.sub(1, d), g.number(0, dt))
        inside = g.op("and", g.compare("greater_or_equal", j, low), g.compare("less", j, high))
        w = g.where(inside, w, 0.0)
        return g.div(w, g.reduce("sum", w, [1], True))
    return weights


def _along(g: Graph, x: Value, axis: int, w: Value) -> Value:
    y = g.swap(x, axis, x.rank - 1)
    return g.swap(g.op("matmul", y, g.swap(w, 0, 1)), axis, x.rank - 1)


def _upsample(weights: Any, n: int, back: bool) -> Any:
    def forward(g: Graph, x: Value, size: Sequence[int], align: bool, *scales: Any) -> Value:
        if kind(x.dt) != 2 or not x.count:
            raise Refused("integers")
        for axis, m, s in zip(range(2, 2 + n), size, scales or (None,) * n):
            if m != x.shape[axis] or (s and s != 1):
                x = _along(g, x, axis, weights(g, x.shape[axis], m, align, s, x.dt))
        return x

    def backward(g: Graph, dy: Value, size: Sequence[int], shape: Sequence[int], align: bool, *scales: Any) -> Value:
        for axis, m, s in zip(range(2, 2 + n), size, scales or (None,) * n):
            if m != shape[axis] or (s and s != 1):
                w = weights(g, shape[axis], m, align, s, dy.dt)
                dy = _along(g, dy, axis, g.swap(w, 0, 1))
        return dy
    return backward if back else forward


def _nearest_back(exact: bool, n: int) -> Any:
    def function(g: Graph, dy: Value, size: Sequence[int], shape: Sequence[int], *scales: Any) -> Value:
        from .indexing import constant
        for axis, m, s in zip(range(2, 2 + n), size, scales or (None,) * n):
            k = shape[axis]
            at = _places(exact, k, m, s)
            if at == list(range(k)):
                continue
            hit = g.compare("equal", g.reshape(constant(g, at), (m, 1)), g.reshape(g.arange(k), (1, k)))
            dy = _along(g, dy, axis, g.swap(g.cast(hit, dy.dt), 0, 1))
        return dy
    return function


for _n, _name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    rows[f"upsample_{_name}"], rows[f"upsample_{_name}_backward"] = _upsample(_linear, _n, False), _upsample(_linear, _n, True)
    rows[f"upsample_nearest{_n}d"], rows[f"_upsample_nearest_exact{_n}d"] = _nearest(False, _n), _nearest(True, _n)
    rows[f"upsample_nearest{_n}d_backward"] = _nearest_back(False, _n)
    rows[f"_upsample_nearest_exact{_n}d_backward"] = _nearest_back(True, _n)
for _name, _weights in (("upsample_bicubic2d", _cubic), ("_upsample_bilinear2d_aa", _antialiased(False)), ("_upsample_bicubic2d_aa", _antialiased(True))):
    rows[_name], rows[f"{_name}_backward"] = _upsample(_weights, 2, False), _upsample(_weights, 2, True)
