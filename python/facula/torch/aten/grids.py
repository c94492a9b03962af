"""Rows of grid_sample: images that are read at places which data tell, and the gradients of both."""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..graph import Graph, Refused, Value, kind
from .indexing import scatter_by
from .table import row

LINEAR, NEAREST, CUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
BEND = -0.75                    # of the cubic kernel


@dataclass
class Tap:
    """One pixel of an axis that a place reads: where, with which weight, and how both change with the grid."""
    at: Value
    weight: Value
    slope: Value | None


@dataclass
class How:
    mode: int
    padding: int
    align: bool


def _spread(g: Graph, at: Value, size: int, how: How) -> tuple[Value, float]:
    """From -1 .. 1 to pixels; what a step of the grid is in pixels."""
    scale = (size - 1) / 2 if how.align else size / 2
    y = g.mul(g.add(at, 1), scale)
    return (y if how.align else g.sub(y, 0.5)), scale


def _clipped(g: Graph, at: Value, size: int) -> tuple[Value, Value]:
    inside = g.op("and", g.compare("greater", at, 0), g.compare("less", at, size - 1))
    return g.op("clip", at, g.number(0, at.dt), g.number(size - 1, at.dt)), g.cast(inside, at.dt)


def _mirrored(g: Graph, at: Value, size: int, align: bool) -> tuple[Value, Value]:
    """Mirrored at the edges, and the sign of the step."""
    low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
    if span <= 0:
        zero = g.full(at.shape, 0, at.dt)
        return zero, zero
    off = g.sub(at, low)
    far = g.op("abs", off)
    turns = g.op("floor", g.div(far, span))
    rest = g.sub(far, g.mul(turns, span))
    odd = g.compare("greater", g.sub(turns, g.mul(g.op("floor", g.mul(turns, 0.5)), 2)), 0.5)
    sign = g.where(g.compare("less", off, 0), -1.0, g.full(at.shape, 1, at.dt))
    return g.add(g.where(odd, g.sub(span, rest), rest), low), g.where(odd, g.op("neg", sign), sign)


def _padded(g: Graph, at: Value, size: int, how: How) -> tuple[Value, Value | None]:
    """A place as the padding has it, and the slope of that."""
    if how.padding == ZEROS:
        return at, None
    if how.padding == BORDER:
        return _clipped(g, at, size)
    at, sign = _mirrored(g, at, size, how.align)
    at, inside = _clipped(g, at, size)
    return at, g.mul(sign, inside)


def _seen(g: Graph, at: Value, weight: Value, slope: Value | None, size: int) -> Tap:
    """A tap whose place exists: outside of the image it weighs nothing."""
    inside = g.op("and", g.compare("greater_or_equal", at, 0), g.compare("less_or_equal", at, size - 1))
    there = g.cast(g.where(inside, at, 0.0), "i64")
    return Tap(there, g.where(inside, weight, 0.0), None if slope is None else g.where(inside, slope, 0.0))


def _cubic(g: Graph, t: Value) -> list[tuple[Value, Value]]:
    """Weights of the four pixels around a place, and their slopes."""
    a = BEND
    out: list[tuple[Value, Value]] = []
    for k in range(-1, 3):
        d = g.op("abs", g.sub(t, k))
        if k in (0, 1):
            w = g.add(g.mul(g.mul(g.sub(g.mul(d, a + 2), a + 3), d), d), 1)
            s = g.mul(g.sub(g.mul(d, 3 * (a + 2)), 2 * (a + 3)), d)
        else:
            w = g.sub(g.mul(g.add(g.mul(g.sub(g.mul(d, a), 5 * a), d), 8 * a), d), 4 * a)
            s = g.add(g.mul(g.sub(g.mul(d, 3 * a), 10 * a), d), 8 * a)
        out.append((w, s if k <= 0 else g.op("neg", s)))
    return out


def _taps(g: Graph, grid: Value, size: int, how: How) -> list[Tap]:
    """What is read along one axis, for a grid [N, places]."""
    at, scale = _spread(g, grid, size, how)
    if how.mode == CUBIC:
        low = g.op("floor", at)
        out: list[Tap] = []
        for k, (w, s) in zip(range(-1, 3), _cubic(g, g.sub(at, low))):
            place, _ = _padded(g, g.add(low, k), size, how)
            out.append(_seen(g, place, w, g.mul(s, scale), size))
        return out
    at, bend = _padded(g, at, size, how)
    if how.mode == NEAREST:
        return [_seen(g, g.op("round", at), g.full(at.shape, 1, at.dt), None, size)]
    low = g.op("floor", at)
    part = g.sub(at, low)
    slope = g.full(at.shape, scale, at.dt) if bend is None else g.mul(bend, scale)
    return [_seen(g, low, g.sub(1, part), g.op("neg", slope), size), _seen(g, g.add(low, 1), part, slope, size)]


class Reading:
    """The pixels that a grid names.  x [N, C, spatial..] is seen as [N, C, pixels], the grid as one row of places for each dim."""

    def __init__(self, g: Graph, x: Value, grid: Value, how: How) -> None:
        dims = x.rank - 2
        if kind(x.dt) != 2 or grid.dt != x.dt or not x.count or not grid.count or grid.rank != x.rank:
            raise Refused("places in nothing")
        self.dt = "f32" if x.dt in ("f16", "bf16") else x.dt
        self.dims, self.sizes, self.places = dims, x.shape[2:], grid.shape[1:-1]
        self.n, self.c, self.p = x.shape[0], x.shape[1], math.prod(grid.shape[1:-1])
        flat = g.cast(g.reshape(grid, (self.n, self.p, dims)), self.dt)
        self.x = g.cast(g.reshape(x, (self.n, self.c, math.prod(self.sizes))), self.dt)
        # the last coordinate is of the first spatial dim
        rows = [g.reshape(g.slice(flat, 2, dims - 1 - k, dims - k), (self.n, self.p)) for k in range(dims)]
        self.taps = [_taps(g, r, size, how) for r, size in zip(rows, self.sizes)]

    def choices(self) -> Any:
        """Each pixel that a place reads, as one tap of each axis."""
        return itertools.product(*self.taps)

    def index(self, g: Graph, taps: Sequence[Tap]) -> Value:
        """[N, C, places]: into the pixels of an image."""
        total = taps[0].at
        for t, size in zip(taps[1:], self.sizes[1:]):
            total = g.add(g.mul(total, size), t.at)
        return self.wide(g, total)

    def wide(self, g: Graph, v: Value) -> Value:
        return g.expand(g.reshape(v, (self.n, 1, self.p)), (self.n, self.c, self.p))

    def weight(self, g: Graph, taps: Sequence[Tap], sloped: int = -1) -> Value:
        """[N, places]; of axis `sloped` its slope."""
        parts = [t.slope if k == sloped else t.weight for k, t in enumerate(taps)]
        total = parts[0]
        for v in parts[1:]:
            total = g.mul(total, v)
        assert total is not None
        return total


def _sum(g: Graph, parts: Sequence[Value]) -> Value:
    total = parts[0]
    for v in parts[1:]:
        total = g.add(total, v)
    return total


@row("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(g: Graph, x: Value, grid: Value, mode: int, padding: int, align: bool) -> Value:
    r = Reading(g, x, grid, How(mode, padding, align))
    parts = [g.mul(g.op("gather_elements", r.x, r.index(g, taps), axis=2), r.wide(g, r.weight(g, taps))) for taps in r.choices()]
    return g.cast(g.reshape(_sum(g, parts), x.shape[:2] + r.places), x.dt)


def _grid_slopes(g: Graph, r: Reading, dy: Value) -> list[Value]:
    """Of each spatial dim [N, places]: the gradient of the grid."""
    sums: list[list[Value]] = [[] for _ in range(r.dims)]
    for taps in r.choices():
        read = g.reduce("sum", g.mul(g.op("gather_elements", r.x, r.index(g, taps), axis=2), dy), [1])
        for k in range(r.dims):
            sums[k].append(g.mul(read, r.weight(g, taps, k)))
    return [_sum(g, s) for s in sums]


@row("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(g: Graph, dy: Value, x: Value, grid: Value, mode: int, padding: int, align: bool,
                          mask: Sequence[bool]) -> list[Value | None]:
    r = Reading(g, x, grid, How(mode, padding, align))
    dy = g.cast(g.reshape(dy, (r.n, r.c, r.p)), r.dt)
    dx: Value | None = None
    if mask[0]:
        total = g.full(r.x.shape, 0, r.dt)
        for taps in r.choices():
            total = scatter_by(g, total, 2, r.index(g, taps), g.mul(dy, r.wide(g, r.weight(g, taps))), "add")
        dx = g.cast(g.reshape(total, x.shape), x.dt)
    # torch gives the gradient of the grid whatever the mask says; what is not read is not computed
    if mode == NEAREST:
        dgrid = g.full(grid.shape, 0, grid.dt)
    else:
        last_first = [g.reshape(v, (r.n, r.p, 1)) for v in reversed(_grid_slopes(g, r, dy))]
        dgrid = g.cast(g.reshape(g.concat(last_first, 2), grid.shape), grid.dt)
    return [dx, dgrid]
