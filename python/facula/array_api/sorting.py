"""Elements by their places: taken, found, sorted, counted."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import elementwise as f, places as p
from .._facula import Tensor


class _All(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class _Counts(NamedTuple):
    values: Tensor
    counts: Tensor


class _Inverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def _unique(x: Tensor) -> _All:
    """Each NaN is a value of its own."""
    got = np.unique(np.asarray(x.detach()), return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    values, first, inverse, counts = (np.ascontiguousarray(g) for g in got)
    places = [Tensor(a, dtype="int64") for a in (first, inverse.reshape(x.shape), counts)]
    return _All(Tensor(values), *places)


def unique_all(x: Tensor, /) -> _All:
    """The different elements, where each stands first, which one each element is, and how many there are."""
    return _unique(x)


def unique_counts(x: Tensor, /) -> _Counts:
    """The different elements, and how many there are of each."""
    got = _unique(x)
    return _Counts(got.values, got.counts)


def unique_inverse(x: Tensor, /) -> _Inverse:
    """The different elements, and which one each element is."""
    got = _unique(x)
    return _Inverse(got.values, got.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements."""
    return _unique(x).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The order that sorts along an axis; equal ones keep theirs."""
    return p.argsort(x, axis, descending, stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorted along an axis."""
    y: Tensor = p.sort(x, axis, descending, stable)[0]
    return y


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where elements are not zero: an array for each dim."""
    if not x.ndim:
        raise ValueError("nonzero of an array without dims")
    y: tuple[Tensor, ...] = p.nonzero(x, as_tuple=True)
    return y


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where elements of x2 would have to be put into the sorted x1."""
    if side not in ("left", "right"):
        raise ValueError(f"side is left or right, not {side!r}")
    ordered = x1 if sorter is None else take(x1, sorter)
    return p.searchsorted(ordered, x2, right=side == "right")


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of these numbers along an axis; negative ones count from its end."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"an axis has to be said for an array of {x.ndim} dims")
    axis = 0 if axis is None else axis
    return p.index_select(x, axis, f.where(indices < 0, indices + x.shape[axis], indices))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements at places along an axis; the other dims are broadcast."""
    return p.take_along_dim(x, indices, axis)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition is true, else x2."""
    y: Tensor = f.where(condition, x1, x2)
    return y
