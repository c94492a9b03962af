"""Statistics and order: medians, quantiles, counts, sums without NaN."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _facula
from ._facula import Tensor, apply
from .create import Dims, _Pair, as_tensor, axis_of, floats, full_like, zeros_like
from .dtypes import bool_, int64
from .elementwise import isnan, logaddexp, minimum, round, sqrt, where
from .places import nonzero, sort, take_along_dim
from .products import mm
from .promote import cast, reshape as _reshape
from .reduce import amax, amin, mean, norm, _root, sum, var
from .shapes import cat, squeeze, unsqueeze


def _lines(x: Tensor, dim: int | None) -> tuple[Tensor, int]:
    return (_reshape(x, [x._count]), 0) if dim is None else (x, axis_of(dim, x.ndim)) if x.ndim else (_reshape(x, [1]), 0)


def _ended(pair: Any, a: int, keepdim: bool, ndim: int) -> Any:
    """Values and places with a dim of size 1, as they are given back."""
    return _Pair(pair if keepdim and ndim else tuple(squeeze(p, a) for p in pair))


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest along a dim (from 1), and where it stands."""
    t, a = _lines(input, dim)
    if not 1 <= k <= t.shape[a]:
        raise IndexError(f"kthvalue: k is {k}, the dim has {t.shape[a]} elements")
    values, at = sort(t, a)
    key = (slice(None),) * a + (slice(k - 1, k),)
    return _ended((values[key], at[key]), a, keepdim, input.ndim)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The element in the middle, the lower one of two; with a dim, also where it stands.  NaN if there is one."""
    t, a = _lines(input, dim)
    if not t.shape[a]:
        if dim is None and t.dtype.is_floating_point:
            return full_like(sum(t), math.nan)
        raise _facula.ShapeError(f"median: over no elements (shape {input.shape})")
    pair = kthvalue(t, (t.shape[a] + 1) // 2, a, True)
    if t.dtype.is_floating_point and t._count:
        lost = amax(cast(isnan(t), int64), a, True)
        first = apply("arg_max", f"axis={a} keep=1", 0, cast(isnan(t), int64))
        pair = [where(lost > 0, take_along_dim(t, first, a), pair[0]), where(lost > 0, first, pair[1])]
    if dim is None:
        return _reshape(pair[0], [])
    return _ended(pair, a, keepdim, input.ndim)


def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of what is not NaN; NaN where there is nothing else."""
    if not input.dtype.is_floating_point:
        return median(input, dim, keepdim)
    t, a = _lines(input, dim)
    if not t.shape[a]:
        return median(input, dim, keepdim)
    values, at = sort(t, a)                                 # NaN stands last
    there = sum(cast(~isnan(t), int64), a, True)
    middle = where(there > 0, (there - 1) // 2, 0)
    pair = take_along_dim(values, middle, a), take_along_dim(at, middle, a)
    return _reshape(pair[0], []) if dim is None else _ended(pair, a, keepdim, input.ndim)


def nanquantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """quantile() of what is not NaN; NaN where there is nothing else."""
    shares = np.asarray(as_tensor(q).detach(), "f8")
    t, a = _lines(floats(input), dim)
    if interpolation not in _BETWEEN or ((shares < 0) | (shares > 1)).any() or not t._count:
        return quantile(input, q, dim, keepdim, interpolation=interpolation)     # which says what is wrong
    values = sort(t, a)[0]
    last = sum(cast(~isnan(t), int64), a, True) - 1
    results = []
    for share in shares.reshape(-1):
        place = cast(where(last > 0, last, 0), t.dtype) * float(share)
        low = cast(place, int64)
        high = minimum(low + 1, where(last > 0, last, 0))
        below, above = take_along_dim(values, low, a), take_along_dim(values, high, a)
        up = place - cast(low, t.dtype)
        step = {"linear": up, "lower": up * 0, "higher": cast(up > 0, t.dtype), "midpoint": cast(up > 0, t.dtype) * 0.5,
                "nearest": round(place) - cast(low, t.dtype)}[interpolation]
        y = below + (above - below) * step
        y = y if keepdim and dim is not None else squeeze(y, a)
        results.append(_reshape(y, [1] * input.ndim) if keepdim and dim is None else y)
    from .shapes import stack
    return stack(results, 0) if shares.ndim else results[0]


def msort(input: Tensor) -> Tensor:
    """Sorted along the first dim."""
    y: Tensor = sort(input, 0)[0]
    return y


# how much of the element above, for a place between low and low + 1
_BETWEEN: dict[str, Any] = {
    "linear": lambda place, low: place - low, "lower": lambda place, low: 0.0, "higher": lambda place, low: 1.0,
    "midpoint": lambda place, low: 0.5, "nearest": lambda place, low: float(round(place) - low)}


def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """What a share q of the elements is below: one number, or several, which become the first dim."""
    if interpolation not in _BETWEEN:
        raise ValueError(f"quantile: interpolation is one of {', '.join(_BETWEEN)}, not {interpolation!r}")
    shares = np.asarray(as_tensor(q).detach(), "f8")
    if ((shares < 0) | (shares > 1)).any():
        raise ValueError(f"quantile: q is from 0 to 1, not {shares.tolist()}")
    t, a = _lines(floats(input), dim)
    if not t._count:
        raise _facula.ShapeError(f"quantile: over no elements (shape {input.shape})")
    lost = amax(cast(isnan(t), int64), a, True) > 0
    values = sort(t, a)[0]
    results = []
    for share in shares.reshape(-1):
        place = float(share) * (t.shape[a] - 1)
        low = int(math.floor(place))
        key = (slice(None),) * a
        below, above = values[(*key, slice(low, low + 1))], values[(*key, slice(math.ceil(place), math.ceil(place) + 1))]
        share_above = _BETWEEN[interpolation](place, low)
        y = below + (above - below) * share_above if share_above else below
        y = where(lost, full_like(y, math.nan), y)
        y = y if keepdim and dim is not None else squeeze(y, a)
        results.append(_reshape(y, [1] * input.ndim) if keepdim and dim is None else y)
    from .shapes import stack
    return stack(results, 0) if shares.ndim else results[0]


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """What comes most often along a dim, the smallest of those, and where it stands last."""
    t, a = _lines(input, dim)
    lines = np.moveaxis(np.asarray(t.detach()), a, -1)
    flat, places = lines.reshape(-1, lines.shape[-1]), []
    for line in flat:
        found, counts = np.unique(line, return_counts=True)
        places.append(np.flatnonzero(line == found[counts.argmax()])[-1])
    at = Tensor(np.expand_dims(np.asarray(places, "i8").reshape(lines.shape[:-1]), a))
    pair = take_along_dim(t, at, a), at
    return _Pair(pair if keepdim else tuple(squeeze(p, a) for p in pair))


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest."""
    return amin(input, dim, keepdim), amax(input, dim, keepdim)


def std_mean(input: Any, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float = 1) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    v, m = var_mean(input, dim, unbiased, keepdim, correction=correction)
    return _root(v), m


def var_mean(input: Any, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float = 1) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    return var(input, dim, unbiased, keepdim, correction=correction), mean(floats(as_tensor(input)), None if isinstance(dim, bool) else dim, keepdim)


def nansum(input: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The sum of what is no NaN."""
    t = as_tensor(input)
    return sum(where(isnan(t), zeros_like(t), t), dim, keepdim)


def nanmean(input: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The mean of what is no NaN."""
    t = as_tensor(input)
    return nansum(t, dim, keepdim) / sum(cast(~isnan(t), t.dtype), dim, keepdim)


def count_nonzero(input: Any, dim: Dims = None) -> Tensor:
    """How many are not 0."""
    return sum(cast(cast(as_tensor(input), bool_), int64), dim)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often 0, 1, 2... come, or the sum of their weights."""
    if input.ndim != 1 or input.dtype.is_floating_point:
        raise _facula.ShapeError(f"bincount of {input.dtype} of shape {input.shape}: a vector of integers was expected")
    given = None if weights is None else np.asarray(weights.detach())
    counts = np.bincount(np.asarray(input), given, minlength)
    kind = "int64" if weights is None else "float32" if weights.dtype.name == "float32" else "float64"
    return Tensor(counts, dtype=kind)


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of so many parts of min..max; both 0: of all there are."""
    array = np.asarray(input.detach())
    low, high = (float(array.min()), float(array.max())) if min == max == 0 and array.size else (min, max)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    return Tensor(np.histogram(array, bins, (low, high))[0], dtype=input.dtype)


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along a dim, n times; prepend, append: what comes before and after."""
    a = axis_of(dim, input.ndim)
    if prepend is not None or append is not None:
        input = cat([t for t in (prepend, input, append) if t is not None], a)
    key = (slice(None),) * a
    if n < 0:
        raise ValueError(f"diff: {n} times")
    for _ in range(min(n, input.shape[a])):
        after, before = input[(*key, slice(1, None))], input[(*key, slice(None, -1))]
        input = after ^ before if input.dtype is bool_ else after - before
    return input


def argwhere(input: Any) -> Tensor:
    """Indices of what is not zero, a row for each."""
    at: Tensor = nonzero(input)
    return at


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Is it one of these?"""
    a, b = as_tensor(elements), as_tensor(test_elements)
    return Tensor(np.isin(np.asarray(a.detach()), np.asarray(b.detach()), invert=invert))


def bucketize(input: Any, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """Between which of the sorted boundaries each element lies."""
    from .places import searchsorted
    return searchsorted(boundaries, as_tensor(input), right=right)


def _running(x: Tensor, dim: int, largest: bool) -> Any:
    t, a = _lines(x, dim)
    array = np.asarray(t.detach())
    best = (np.maximum if largest else np.minimum).accumulate(array, axis=a)
    places = np.broadcast_to(np.arange(array.shape[a]).reshape([-1 if k == a else 1 for k in range(array.ndim)]), array.shape)
    here = (array == best) | np.isnan(array) if array.dtype.kind == "f" else array == best
    at = _reshape(Tensor(np.maximum.accumulate(np.where(here, places, 0), axis=a)), x.shape)
    return _Pair((take_along_dim(x, at, dim) if x.ndim else x, at))


def cummax(input: Tensor, dim: int) -> Any:
    """The largest so far along a dim, and where it stands: the last of equal ones."""
    return _running(input, dim, True)


def cummin(input: Tensor, dim: int) -> Any:
    """The smallest so far along a dim, and where it stands: the last of equal ones."""
    return _running(input, dim, False)


def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """ln of the sums of e^input so far."""
    t, a = _lines(floats(input), dim)
    axis_of(dim, input.ndim)
    key, step = (slice(None),) * a, 1
    while step < t.shape[a]:                                # sums of twice as many in each turn; no one shift would do for all
        more = logaddexp(t[(*key, slice(step, None))], t[(*key, slice(None, -step))])
        t, step = cat([t[(*key, slice(None, step))], more], a), 2 * step
    return _reshape(t, input.shape)


def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    """Covariances of the rows of a matrix."""
    if input.ndim > 2:
        raise _facula.ShapeError(f"cov of shape {input.shape}: two dims at most were expected")
    t = floats(input if input.ndim == 2 else _reshape(input, [1, input._count]))
    d = t - mean(t, 1, True)
    y = mm(d, d.mT) / float(max(t.shape[1] - correction, 0))
    return y if t.shape[0] != 1 else _reshape(y, [])


def corrcoef(input: Tensor) -> Tensor:
    """Correlations of the rows of a matrix, from -1 to 1."""
    c = cov(input)
    if not c.ndim:
        return c / c
    from .arrange import diagonal
    s = sqrt(diagonal(c))
    y: Tensor = c / unsqueeze(s, 1) / unsqueeze(s, 0)
    return y


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other."""
    return norm(input - other, p)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The distance of every row of x1 from every row of x2."""
    return norm(unsqueeze(x1, -2) - unsqueeze(x2, -3), p, -1)


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """Without the repetitions that follow each other, of all elements."""
    array = np.asarray(input.detach()).reshape(-1)
    new = np.ones(array.size, bool)
    new[1:] = array[1:] != array[:-1]
    at = np.flatnonzero(new)
    more = [Tensor((np.cumsum(new) - 1).reshape(input.shape))] if return_inverse else []
    more += [Tensor(np.diff(np.append(at, array.size)))] if return_counts else []
    values = cast(Tensor(array[new]), input.dtype)
    return (values, *more) if more else values
