"""New tensors: of one number, of lists, of arrays."""
from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _facula, promote
from ._facula import Tensor
from .dtypes import find, get_default_dtype, int64, result_type
from .promote import cast

Dims = int | Sequence[int] | None


def as_tensor(data: Any, like: Tensor | None = None) -> Tensor:
    """The tensor itself, or a new one of numbers, lists or an array."""
    if isinstance(data, Tensor):
        return data
    if like is not None and isinstance(data, (bool, int, float)):
        return Tensor(data, dtype=result_type(like, data), device=like.device)
    return Tensor(data)


def ints(values: Any) -> Tensor:
    """A tensor of integers, kept for the next call."""
    return Tensor([int(v) for v in values], dtype="int64")


def floats(x: Tensor) -> Tensor:
    """Integers become floats where a function has no meaning for them."""
    return x if x.dtype.is_floating_point else cast(x, get_default_dtype())


def axis_of(dim: int, ndim: int) -> int:
    """The axis that a dim means, of a tensor of so many dims."""
    n = builtins.max(ndim, 1)
    if not -n <= dim < n:
        raise IndexError(f"dim {dim} is out of range for a tensor of {ndim} dims")
    return dim % n


def axes_of(dim: Dims, ndim: int) -> list[int]:
    """The axes that dims mean, of a tensor of so many dims."""
    if dim is None:
        return list(range(ndim))
    list_of = [dim] if isinstance(dim, int) else list(dim)
    axes = [axis_of(d, ndim) for d in list_of]
    if len(set(axes)) != len(axes):
        raise ValueError(f"a dim is named twice: {tuple(list_of)}")
    return axes if ndim else []


def _shape_args(shape: tuple[Any, ...]) -> list[int]:
    if len(shape) == 1 and not isinstance(shape[0], (int, Tensor)):
        shape = tuple(shape[0])
    return list(map(int, shape))


def _filled(shape: list[int], fill_value: Any, d: Any, device: Any, requires_grad: bool) -> Tensor:
    array = np.empty(shape, _numpy_of(d))
    array.fill(fill_value)
    return Tensor(_owned(array), dtype=d, device=device, requires_grad=requires_grad)


def _owned(array: Any) -> Any:
    """An array with one owner is never written without a word: lazy programs may keep what they make from it."""
    array.flags.writeable = False
    return array


@functools.cache
def _numpy_of(d: Any) -> np.dtype[Any]:
    """bfloat16, which NumPy has not, by way of float32."""
    return np.dtype("float32" if d.name == "bfloat16" else d.name)


class _Pair(tuple):  # type: ignore[type-arg]
    """(values, indices), as PyTorch's named results."""

    values = property(lambda self: self[0])
    indices = property(lambda self: self[1])


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of one number."""
    shape = _shape_args((size,) if not isinstance(size, int) else ((size,),))
    d = find(dtype) if dtype is not None else result_type(fill_value)
    return _filled(shape, fill_value, d, device, requires_grad)


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros."""
    return _facula.zeros(_shape_args(size), get_default_dtype() if dtype is None else find(dtype), device, requires_grad)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    return _filled(_shape_args(size), 1, find(dtype) if dtype is not None else get_default_dtype(), device, requires_grad)


empty = zeros


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One number, with the shape and dtype of input."""
    return full(input.shape, fill_value, dtype=dtype or input.dtype, device=device or input.device)


def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of the shape and dtype of input."""
    return full_like(input, 0, dtype=dtype, device=device)


def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of the shape and dtype of input."""
    return full_like(input, 1, dtype=dtype, device=device)


empty_like = zeros_like


def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from start up to, but without, end."""
    if end is None:
        start, end = 0, start
    if step == 0:
        raise ValueError("arange: the step is 0")
    if (end - start) * step < 0:
        raise _facula.ArgumentError(f"arange: steps of {step} do not lead from {start} to {end}")
    d = find(dtype) if dtype is not None else result_type(start, end, step)
    array = np.arange(start, end, step)
    return Tensor(array, dtype=d, device=device)


def linspace(start: float, end: float, steps: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True) -> Tensor:
    """So many numbers, evenly apart, from start to end."""
    return Tensor(np.linspace(start, end, steps, endpoint=endpoint), dtype=dtype or get_default_dtype(), device=device)


def eye(n: int, m: int | None = None, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the diagonal."""
    return Tensor(np.eye(n, m, k), dtype=dtype or get_default_dtype(), device=device)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix of a diagonal, or the diagonal of a matrix."""
    if input.ndim == 1:
        n = input.shape[0] + builtins.abs(diagonal)
        base = zeros(n, n, dtype=input.dtype)
        rows = np.arange(input.shape[0]) + builtins.max(-diagonal, 0)
        cols = np.arange(input.shape[0]) + builtins.max(diagonal, 0)
        return promote.assigned(base, (rows, cols), input)
    if input.ndim != 2:
        raise _facula.ShapeError(f"diag: a vector or a matrix was expected, not shape {input.shape}")
    n = builtins.min(input.shape[0] + builtins.min(diagonal, 0), input.shape[1] - builtins.max(diagonal, 0))
    at = np.arange(builtins.max(n, 0))
    y: Tensor = input[at + builtins.max(-diagonal, 0), at + builtins.max(diagonal, 0)]
    return y


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor over the memory of an array, without a copy."""
    return Tensor(ndarray)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor of numbers, nested lists (of numbers or of texts) or an array, which is copied.

        >>> fac.tensor([[1., 2.], [3., 4.]]).sum()
        tensor(10.)
    """
    if isinstance(data, Tensor):
        t = data.detach()._convert(dtype)
    elif hasattr(data, "__array_interface__") or isinstance(data, np.generic):
        t = Tensor(_owned(np.array(data)))
        t = t._convert(dtype) if dtype is not None else t
    else:
        t = Tensor(data, dtype=dtype)
        if dtype is None and t.dtype.name == "float32" and get_default_dtype() is not t.dtype:
            t = Tensor(data, dtype=get_default_dtype())
    if device is not None:
        t = t._on(device)
    t.requires_grad = requires_grad
    return t


def asarray(data: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of an object; without a copy where that is possible, unless one is wanted."""
    if copy:
        return tensor(data, dtype=dtype, device=device)
    if isinstance(data, Tensor) and (dtype is None or data.dtype is find(dtype)):
        return data if device is None else data._on(device)
    if copy is False and not (isinstance(data, Tensor) or hasattr(data, "__array_interface__")):
        raise ValueError("asarray: this cannot be had without a copy")
    t = Tensor(data, dtype=dtype)
    return t if device is None else t._on(device)


from_dlpack = _facula.from_dlpack
