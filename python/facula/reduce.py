"""Functions over dims: sums, means, extremes."""
from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from . import _facula
from ._facula import Tensor, apply
from .dtypes import bool_, find, int64
from .promote import cast, reshape as _reshape
from .create import axes_of, axis_of, as_tensor, floats, ints, Dims, _Pair, zeros
from .elementwise import abs, maximum, minimum, pow, sqrt, where
from .places import _check_places, take_along_dim
from .shapes import squeeze


def _reduce(op: str, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    axes = axes_of(dim, x.ndim)
    if not axes:
        return apply(op, f"keep={int(keepdim)} noop_with_empty_axes=1", 0, x) if op != "sum" and op != "mean" else x
    if dim is None:
        return apply(op, f"keep={int(keepdim)}", 0, x)
    return apply(op, f"keep={int(keepdim)}", 0, x, ints(axes))


def sum(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None, keepdims: bool = False) -> Tensor:
    """The sum over dims, or over all; of integers and bools an int64."""
    t = as_tensor(input)
    if dtype is not None:
        t = cast(t, find(dtype))
    elif not t.dtype.is_floating_point and t.dtype.name != "uint64":
        t = cast(t, int64)
    return _reduce("sum", t, dim if axis is None else axis, keepdim or keepdims)


def mean(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None, keepdims: bool = False) -> Tensor:
    """The mean over dims, or over all."""
    t = as_tensor(input)
    t = cast(t, find(dtype)) if dtype is not None else t
    if not t.dtype.is_floating_point:
        raise _facula.DtypeError(f"mean of {t.dtype}: cast it to a floating-point dtype first")
    return _reduce("mean", t, dim if axis is None else axis, keepdim or keepdims)


def prod(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None, keepdims: bool = False) -> Tensor:
    """The product over dims, or over all."""
    t = as_tensor(input)
    if dtype is not None:
        t = cast(t, find(dtype))
    elif not t.dtype.is_floating_point and t.dtype.name != "uint64":
        t = cast(t, int64)
    return _reduce("reduce_prod", t, dim if axis is None else axis, keepdim or keepdims)


def _extreme(op: str, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    sizes = [x.shape[a] for a in axes_of(dim, x.ndim)]
    if 0 in sizes:
        raise _facula.ShapeError(f"{op}: over no elements (shape {x.shape})")
    if x.dtype is bool_:
        return cast(_reduce(op, cast(x, find("uint8")), dim, keepdim), bool_)
    return _reduce(op, x, dim, keepdim)


def amax(input: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The largest element."""
    return _extreme("reduce_max", as_tensor(input), dim, keepdim)


def amin(input: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest element."""
    return _extreme("reduce_min", as_tensor(input), dim, keepdim)


def _with_place(x: Tensor, dim: int, keepdim: bool, largest: bool) -> _Pair:
    if not x.ndim:
        axis_of(dim, 0)
        return _Pair((x, zeros((), dtype=int64)))
    order = cast(x, find("uint8")) if x.dtype is bool_ else x
    at = argmax(order, dim, True) if largest else argmin(order, dim, True)
    values = take_along_dim(x, at, dim)
    return _Pair((values, at) if keepdim else (squeeze(values, dim), squeeze(at, dim)))


def max(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest of all; with a dim the largest along it and where it stands; with a tensor the larger of both."""
    t = as_tensor(input)
    if isinstance(dim, Tensor):
        return maximum(t, dim)
    return amax(t) if dim is None else _with_place(t, dim, keepdim, True)


def min(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest of all; with a dim the smallest along it and where it stands; with a tensor the smaller of both."""
    t = as_tensor(input)
    if isinstance(dim, Tensor):
        return minimum(t, dim)
    return amin(t) if dim is None else _with_place(t, dim, keepdim, False)


def _arg(op: str, x: Any, dim: int | None, keepdim: bool) -> Tensor:
    t = as_tensor(x)
    if dim is None:
        place = apply(op, "axis=0", 0, _reshape(t, [-1]))
        return _reshape(place, [1] * t.ndim if keepdim else [])
    if not t.ndim:
        return zeros((), dtype=int64)
    return apply(op, f"axis={axis_of(dim, t.ndim)} keep={int(keepdim)}", 0, t)


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element stands; the first of equal ones."""
    return _arg("arg_max", input, dim, keepdim)


def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element stands; the first of equal ones."""
    return _arg("arg_min", input, dim, keepdim)


def all(input: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Are all of them true?"""
    return cast(_reduce("reduce_min", cast(cast(as_tensor(input), bool_), find("int32")), dim, keepdim), bool_) \
        if math.prod(as_tensor(input).shape) else _counted(input, dim, keepdim, True)


def any(input: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Is one of them true?"""
    return cast(_reduce("reduce_max", cast(cast(as_tensor(input), bool_), find("int32")), dim, keepdim), bool_) \
        if math.prod(as_tensor(input).shape) else _counted(input, dim, keepdim, False)


def _counted(x: Any, dim: Dims, keepdim: bool, every: bool) -> Tensor:
    array = np.asarray(cast(as_tensor(x), bool_))
    axes = tuple(range(array.ndim) if dim is None else axes_of(dim, array.ndim))
    found = np.asarray(np.all(array, axis=axes) if every else np.any(array, axis=axes))
    return Tensor(np.expand_dims(found, axes) if keepdim else found)


def var(input: Any, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float = 1) -> Tensor:
    """The variance: squares of distances from the mean, divided by their number less the correction."""
    t = floats(as_tensor(input))
    if isinstance(dim, bool):           # var(x, False): over all
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = 1 if unbiased else 0
    n = math.prod(t.shape[a] for a in axes_of(dim, t.ndim))
    d = t - mean(t, dim, True)
    total = sum(d * d, dim, keepdim)
    return total / builtins.max(n - correction, 0.0)


def std(input: Any, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float = 1) -> Tensor:
    """The square root of the variance."""
    return _root(var(input, dim, unbiased, keepdim, correction=correction))


def _root(x: Tensor, p: float = 0.5) -> Tensor:
    """x^p, with the gradient 0 where x is 0, as of a norm or a deviation, whose slope there may be any up to 1."""
    if not x.requires_grad:
        return sqrt(x) if p == 0.5 else pow(x, p)
    none = x == 0
    safe = where(none, 1.0, x)
    return where(none, 0.0, sqrt(safe) if p == 0.5 else pow(safe, p))


def norm(input: Any, p: float | str = 2, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """(sum |input|^p)^(1/p); of p = 0 how many are not 0, of infinities the largest and the smallest."""
    t = floats(as_tensor(input))
    if p in (2, "fro"):
        return _reduce("reduce_l2", t, dim, keepdim)
    if p == 1:
        return _reduce("reduce_l1", t, dim, keepdim)
    if isinstance(p, str):
        raise ValueError(f"norm: p is a number or 'fro', not {p!r}")
    if p in (math.inf, -math.inf):
        return (amax if p > 0 else amin)(abs(t), dim, keepdim)
    if p == 0:
        return sum(cast(t != 0, t.dtype), dim, keepdim)
    if p < 0:
        return pow(sum(pow(abs(t), float(p)), dim, keepdim), 1 / float(p))
    return _root(sum(_root(abs(t), float(p)), dim, keepdim), 1 / float(p))


def logsumexp(input: Any, dim: Dims, keepdim: bool = False) -> Tensor:
    """ln sum e^input, without overflow."""
    return _reduce("reduce_log_sum_exp", floats(as_tensor(input)), dim, keepdim)


def softmax(input: Any, dim: int = -1, *, dtype: Any = None) -> Tensor:
    """e^input / sum e^input along a dim."""
    t = cast(as_tensor(input), find(dtype)) if dtype is not None else floats(as_tensor(input))
    return apply("softmax", f"axis={axis_of(dim, t.ndim)}", 0, t)


def log_softmax(input: Any, dim: int = -1, *, dtype: Any = None) -> Tensor:
    """ln softmax, without overflow."""
    t = cast(as_tensor(input), find(dtype)) if dtype is not None else floats(as_tensor(input))
    return apply("log_softmax", f"axis={axis_of(dim, t.ndim)}", 0, t)


def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Tensor:
    """Sums of what stands before, along a dim."""
    t = as_tensor(input)
    t = cast(t, find(dtype)) if dtype is not None else t if t.dtype.is_floating_point else cast(t, int64)
    return apply("cum_sum", None, 0, t, Tensor(axis_of(dim, t.ndim), dtype="int64")) if t.ndim else t


def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Tensor:
    """Products of what stands before, along a dim."""
    t = as_tensor(input)
    t = cast(t, find(dtype)) if dtype is not None else t if t.dtype.is_floating_point else cast(t, int64)
    return apply("cum_prod", None, 0, t, Tensor(axis_of(dim, t.ndim), dtype="int64")) if t.ndim else t


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """A 1 at the place that each label says."""
    if input.dtype.is_floating_point or input.dtype is bool_:
        raise _facula.DtypeError(f"one_hot of {input.dtype}: integers were expected")
    if num_classes < 0 and not input._count:
        raise _facula.ShapeError("one_hot: without a label, num_classes is not known")
    n = int(amax(input)) + 1 if num_classes < 0 else num_classes
    _check_places("one_hot", input, n)
    return apply("one_hot", "axis=-1", 0, input, Tensor(n, dtype="int64"), Tensor([0, 1], dtype="int64"))
