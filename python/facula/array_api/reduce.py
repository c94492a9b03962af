"""Functions over axes: sums, means, extremes, places of extremes."""
from __future__ import annotations

from typing import Any

from .. import reduce as r
from .._facula import Tensor
from ..create import axis_of, zeros
from ..dtypes import bool_, find, int64, uint64
from ..promote import cast
from ..shapes import cat, reshape as _reshape
from .shapes import _Axes


def _wide(x: Tensor, dtype: Any) -> Tensor:
    """Integers are added and multiplied as the widest of their kind."""
    if dtype is not None:
        return cast(x, find(dtype))
    return x if x.dtype.is_floating_point else cast(x, uint64 if x.dtype.kind == "u" else int64)


def sum(x: Tensor, /, *, axis: _Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, or over all."""
    t = _wide(x, dtype)
    return r.sum(t, axis, keepdims, dtype=t.dtype)


def prod(x: Tensor, /, *, axis: _Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes, or over all."""
    t = _wide(x, dtype)
    return r.prod(t, axis, keepdims, dtype=t.dtype)


def mean(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """The mean over axes, or over all."""
    return r.mean(x, axis, keepdims)


def var(x: Tensor, /, *, axis: _Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance: squared distances from the mean, divided by their number less the correction."""
    return r.var(x, axis, keepdim=keepdims, correction=correction)


def std(x: Tensor, /, *, axis: _Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of the variance."""
    return r.std(x, axis, keepdim=keepdims, correction=correction)


def max(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element."""
    return r.amax(x, axis, keepdims)


def min(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element."""
    return r.amin(x, axis, keepdims)


def all(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """Are all of them true?"""
    return r.all(x, axis, keepdims)


def any(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """Is one of them true?"""
    return r.any(x, axis, keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element stands; the first of equal ones."""
    return r.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element stands; the first of equal ones."""
    return r.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: _Axes = None, keepdims: bool = False) -> Tensor:
    """How many are not zero."""
    return r.sum(cast(x, bool_), axis, keepdims)


def _running(function: Any, x: Tensor, axis: int | None, dtype: Any, first: int | None) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"an axis has to be said for an array of {x.ndim} dims")
        axis = 0
    t = _wide(x if x.ndim else _reshape(x, 1), dtype)
    y: Tensor = function(t, axis, dtype=t.dtype)
    if first is None:
        return y
    a = axis_of(axis, t.ndim)
    start = zeros(t.shape[:a] + (1,) + t.shape[a + 1:], dtype=t.dtype, device=t.device)
    return cat([start + first, y], a)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Sums of what stands before, along an axis."""
    return _running(r.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Products of what stands before, along an axis."""
    return _running(r.cumprod, x, axis, dtype, 1 if include_initial else None)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along an axis, n times."""
    a = axis_of(axis, x.ndim)
    parts = [t for t in (prepend, x, append) if t is not None]
    y = cat(parts, a) if len(parts) > 1 else x
    before = (slice(None),) * a
    for _ in range(n):
        late, early = y[(*before, slice(1, None))], y[(*before, slice(None, -1))]
        y = late != early if y.dtype is bool_ else late - early
    return y
