"""New arrays."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import _facula, create as c, shapes as s
from .._facula import Tensor
from ..dtypes import find, get_default_dtype


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array of an object; copy=False: over its memory, or not at all."""
    if isinstance(obj, complex):
        raise TypeError("there are no complex dtypes")
    if copy is False:
        shares = isinstance(obj, Tensor) or hasattr(obj, "__array_interface__") or hasattr(obj, "__dlpack__")
        if not shares or (dtype is not None and getattr(obj, "dtype", None) != find(dtype)):
            raise ValueError("asarray: this cannot be had without a copy")
    return c.asarray(obj, dtype=dtype, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from start up to, but without, stop."""
    first, end = (0, start) if stop is None else (start, stop)
    if (end - first) * step < 0:            # the standard: an empty array
        end = first
    return c.arange(first, end, step, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of this shape, whose elements mean nothing (here: zeros)."""
    return c.zeros(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros."""
    return c.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones."""
    return c.ones(_sizes(shape), dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of one number."""
    return c.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def _sizes(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros, with the shape of x."""
    return c.zeros_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of the shape and dtype of x."""
    return c.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of the shape and dtype of x."""
    return c.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One number in the shape and dtype of x."""
    return c.full_like(x, fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the k-th diagonal."""
    return c.eye(n_rows, n_cols, k=k, dtype=dtype, device=device)


def linspace(start: float, stop: float, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True) -> Tensor:
    """So many numbers, evenly apart, from start to stop."""
    d = find(dtype) if dtype is not None else get_default_dtype()
    return Tensor(np.linspace(start, stop, num, endpoint=endpoint, dtype=d.name), device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid, an array for each dim."""
    return s.meshgrid(*arrays, indexing=indexing)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array."""
    y = _facula.from_dlpack(x)
    y = y.clone() if copy else y
    return y if device is None else y.to(device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Zeros above the k-th diagonal of the last two dims."""
    return s.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Zeros below the k-th diagonal of the last two dims."""
    return s.triu(x, k)
