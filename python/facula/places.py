"""Elements by their places: gathered, scattered, sorted, found."""
from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from . import _facula
from ._facula import Tensor, apply
from .dtypes import bool_, int64
from .promote import cast, reshape as _reshape
from .create import axis_of, as_tensor, ints, _Pair, zeros
from .elementwise import where
from .shapes import broadcast_shapes, expand, unsqueeze


def _check_places(who: str, index: Tensor, size: int) -> None:
    """Places that are there already, as those of data sets are, must be some of those of the dim."""
    if not index._is_there or not index.device.name.startswith("cpu") or index.dtype.is_floating_point:
        return
    wrong = _facula.outside(index, size, 0 if size else 1 << 62)
    if wrong is not None:
        raise IndexError(f"{who}: index {wrong} is out of range for a dim of size {size}")


def _wide(x: Tensor) -> Tensor:
    """With a dim at least."""
    return x if x.ndim else _reshape(x, [1])


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements at places along a dim."""
    if dim is None:
        return _gather(_reshape(input, [-1]), 0, _reshape(indices, [-1]))
    a = axis_of(dim, input.ndim)
    shape = list(broadcast_shapes(input.shape[:a] + (1,) + input.shape[a + 1:], indices.shape[:a] + (1,) + indices.shape[a + 1:]))
    return _gather(expand(input, *shape[:a], input.shape[a], *shape[a + 1:]), a, expand(indices, *shape[:a], indices.shape[a], *shape[a + 1:]))


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """y[i][j] = input[index[i][j]][j] for dim 0, and so on."""
    a = axis_of(dim, input.ndim)
    if _wide(index).ndim != _wide(input).ndim:
        raise _facula.ShapeError(f"gather: an index of shape {index.shape} for a tensor of shape {input.shape}")
    _check_places("gather", index, input.shape[a] if input.ndim else 1)
    return _reshape(_gather(_wide(input), a, _wide(index)), index.shape)


def _gather(x: Tensor, a: int, index: Tensor) -> Tensor:
    cut = tuple(slice(0, n) if k != a else slice(None) for k, n in enumerate(index.shape))
    return apply("gather_elements", f"axis={a}", 0, x[cut], index)


def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
    """input with elements of src, or one value, at places along a dim."""
    a = axis_of(dim, input.ndim)
    src = value if src is None else src
    if src is None:
        raise TypeError("scatter: src or value was expected")
    how = {None: "none", "add": "add", "multiply": "mul", "amax": "max", "amin": "min"}
    if reduce not in how:
        raise ValueError(f"scatter: reduce is add, multiply, amax, amin or None, not {reduce!r}")
    index, ready = _wide(index), _wide(input)
    _check_places("scatter", index, ready.shape[a])
    source = _wide(src) if isinstance(src, Tensor) else expand(Tensor(src, dtype=input.dtype), *index.shape)
    source = source[tuple(slice(0, n) for n in index.shape)]
    return _reshape(apply("scatter_elements", f"axis={a} reduction={how[reduce]}", 0, ready, index, cast(source, input.dtype)), input.shape)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """input with elements of src added at places along a dim."""
    return scatter(input, dim, index, src, reduce="add")


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of these numbers along a dim."""
    if not input.ndim:
        axis_of(dim, 0)
        _check_places("index_select", index, 1)
        return _reshape(apply("gather", "axis=0", 0, _reshape(input, [1]), _reshape(index, [-1])), [])
    a = axis_of(dim, input.ndim)
    _check_places("index_select", index, input.shape[a])
    return apply("gather", f"axis={a}", 0, input, index)


def take(input: Tensor, index: Tensor, *, axis: int | None = None) -> Tensor:
    """The elements with these row-major numbers; with an axis, slices."""
    t = _reshape(input, [-1]) if axis is None else input
    a = axis_of(axis or 0, t.ndim)
    size = t.shape[a]
    if index._is_there and index.device.name.startswith("cpu"):
        _check_places("take", where(index < 0, index + size, index), size)
    return apply("gather", f"axis={a}", 0, t, index)


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """The value where the mask is true, else x."""
    v = value if isinstance(value, Tensor) else Tensor(value, dtype=input.dtype)
    return apply("where", None, 0, cast(mask, bool_), cast(v, input.dtype), input)


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true, as a vector."""
    y: Tensor = input[expand(cast(mask, bool_), *input.shape)]
    return y


def nonzero(input: Any, as_tuple: bool = False) -> Any:
    """Indices of what is not zero, a row for each; as a tuple, a tensor for each dim."""
    array = np.asarray(as_tensor(input).detach())
    if not array.ndim and not as_tuple:
        return zeros((int(builtins.bool(array)), 0), dtype=int64)
    at = np.nonzero(np.atleast_1d(array))
    columns = tuple(Tensor(np.ascontiguousarray(a), dtype="int64") for a in at)
    return columns if as_tuple else Tensor(np.stack(at, axis=-1) if at else np.zeros((0, 0)), dtype="int64")


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest along a dim, always sorted, and where they stand."""
    a = axis_of(dim, input.ndim)
    y, at = apply("top_k", f"axis={a} smallest={int(not largest)}", 2, input, ints([k]))
    return _Pair((y, at))


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The order that sorts along a dim; equal ones keep theirs."""
    if not input.ndim:
        return zeros((), dtype=int64)
    array = np.asarray(input.detach())
    if not descending:
        return Tensor(np.argsort(array, axis=dim, kind="stable"), dtype="int64")
    back = np.flip(array, axis=dim)
    order = np.flip(np.argsort(back, axis=dim, kind="stable"), axis=dim)
    return Tensor(np.ascontiguousarray(array.shape[dim] - 1 - order), dtype="int64")


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sorted along a dim, and where each element stood."""
    if not input.ndim:
        return _Pair((input, zeros((), dtype=int64)))
    at = argsort(input, dim, descending, stable)
    return _Pair((take_along_dim(input, at, dim), at))


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The different elements, always sorted; with a dim the different slices along it."""
    a = None if dim is None else axis_of(dim, input.ndim)
    got: Any = np.unique(np.asarray(input.detach()), return_inverse=return_inverse, return_counts=return_counts, axis=a)  # type: ignore[call-overload]
    if not isinstance(got, tuple):
        return cast(Tensor(got), input.dtype)
    places = [Tensor(np.ascontiguousarray(g)) for g in got[1:]]
    if return_inverse:
        places[0] = _reshape(places[0], input.shape if a is None else [input.shape[a]])
    return (cast(Tensor(np.ascontiguousarray(got[0])), input.dtype), *places)


def searchsorted(sorted_sequence: Tensor, input: Tensor, *, right: bool = False, side: str | None = None) -> Tensor:
    """Where input would be put in to keep the order: right, or side="right", after equal ones."""
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side is left or right, not {side!r}")
    if right and side == "left":
        raise ValueError("searchsorted: right and side='left' contradict each other")
    side = "right" if right or side == "right" else "left"
    lines, wanted = np.asarray(sorted_sequence.detach()), np.asarray(input.detach())
    if lines.ndim <= 1:
        found = np.searchsorted(lines, wanted, side=side)  # type: ignore[call-overload]
        return Tensor(np.asarray(found), dtype="int64")
    if lines.shape[:-1] != wanted.shape[:-1]:
        raise _facula.ShapeError(f"searchsorted of shapes {lines.shape} and {wanted.shape}: all dims but the last one were expected to be equal")
    each = [np.searchsorted(lines[k], wanted[k], side=side) for k in np.ndindex(*lines.shape[:-1])]  # type: ignore[call-overload]
    return Tensor(np.array(each, "i8").reshape(wanted.shape))


def _rows(x: Tensor, dim: int, index: Tensor) -> tuple[int, Tensor]:
    """Places of whole slices, as scatter takes them."""
    a = axis_of(dim, x.ndim)
    x = _wide(x)
    shape = [1] * x.ndim
    shape[a] = index.shape[0] if index.ndim else 1
    return a, expand(_reshape(index, shape), *x.shape[:a], shape[a], *x.shape[a + 1:])


def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """input with src in place of its slice start:end:step along a dim."""
    a = axis_of(dim, input.ndim)
    key = (slice(None),) * a + (slice(start, end, step),)
    n = len(range(*key[-1].indices(input.shape[a])))
    shape = (*input.shape[:a], n, *input.shape[a + 1:])
    if src.shape != shape:
        raise _facula.ShapeError(f"slice_scatter: src of shape {src.shape} for a slice of shape {shape}")
    return index_copy(input, a, Tensor(np.arange(input.shape[a])[key[-1]]), src)


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """input with src in place of its slice `index` along a dim."""
    a = axis_of(dim, input.ndim)
    shape = (*input.shape[:a], *input.shape[a + 1:])
    if src.shape != shape:
        raise _facula.ShapeError(f"select_scatter: src of shape {src.shape} for a slice of shape {shape}")
    if not -input.shape[a] <= index < input.shape[a]:
        raise IndexError(f"select_scatter: slice {index} of {input.shape[a]}")
    return index_copy(input, a, Tensor([index % input.shape[a]], dtype="int64"), unsqueeze(src, a))


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """input with slices added at places along a dim."""
    a, at = _rows(input, dim, index)
    return scatter(input, a, at, source if alpha == 1 else source * alpha, reduce="add")


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """input with slices written at places along a dim."""
    a, at = _rows(input, dim, index)
    return scatter(input, a, at, source)


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """x with a number at places along a dim."""
    a, at = _rows(input, dim, index)
    return scatter(input, a, at, value)


def index_put(input: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """x with values at places; indices: a tensor for each dim, or a mask."""
    v = as_tensor(values)
    if accumulate:
        flat = arange_like(input)[tuple(indices)]
        return _reshape(scatter_add(_reshape(input, [-1]), 0, _reshape(flat, [-1]), _reshape(expand(cast(v, input.dtype), *flat.shape), [-1])), input.shape)
    y = input.clone()
    y[tuple(indices)] = v
    return y


def arange_like(x: Tensor) -> Tensor:
    """0, 1, 2... in the shape of x: where each element lies."""
    return Tensor(np.arange(int(np.prod(x.shape, dtype="i8"))).reshape(x.shape))


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with elements of the source, in their order, where the mask is true."""
    at = np.asarray(expand(cast(mask, bool_), *input.shape).detach())
    if int(at.sum()) > source._count:
        raise ValueError(f"masked_scatter: {int(at.sum())} places, but {source._count} elements")
    which = np.maximum(np.cumsum(at.reshape(-1)) - 1, 0).reshape(input.shape)
    picked = apply("gather", "axis=0", 0, _reshape(cast(source, input.dtype), [-1]), Tensor(which))
    return apply("where", None, 0, Tensor(at), picked, input)


def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """input with elements of src at places along a dim, joined by sum, prod, amax, amin or mean."""
    how = {"sum": "add", "prod": "multiply", "amax": "amax", "amin": "amin", "mean": "add"}
    if reduce not in how:
        raise ValueError(f"scatter_reduce: reduce is sum, prod, mean, amax or amin, not {reduce!r}")
    if not include_self:
        first = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf}[reduce]
        if not input.dtype.is_floating_point and reduce in ("amax", "amin"):
            info = np.iinfo(input.dtype.name)
            first = info.min if reduce == "amax" else info.max
        input = scatter(input, dim, index, first)
    y = scatter(input, dim, index, src, reduce=how[reduce])
    if reduce != "mean":
        return y
    ones = zeros(input.shape, dtype=input.dtype) + 1
    n = scatter_add(ones if include_self else scatter(ones, dim, index, 0), dim, index, zeros(src.shape, dtype=input.dtype) + 1)
    return y / n if input.dtype.is_floating_point else y // n
