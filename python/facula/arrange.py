"""Shapes by more names: stacks, cuts, corners, diagonals, windows."""
from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _facula
from ._facula import Tensor, apply
from .create import as_tensor, axis_of, zeros
from .promote import reshape as _reshape
from .reduce import sum
from .shapes import cat, flip, meshgrid, movedim, split, transpose, unsqueeze


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """So many slices along a dim, from a start on."""
    a = axis_of(dim, input.ndim)
    n = input.shape[a]
    first = start + n if start < 0 else start
    if first < 0 or length < 0 or first + length > n:
        raise IndexError(f"narrow: {length} from {start} on of a dim of size {n}")
    y: Tensor = input[(slice(None),) * a + (slice(first, first + length),)]
    return y


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One slice along a dim."""
    y: Tensor = input[(slice(None),) * axis_of(dim, input.ndim) + (index,)]
    return y


def ravel(input: Tensor) -> Tensor:
    """All elements in one dim."""
    return _reshape(input, [math.prod(input.shape)])


swapdims = transpose


def _at_least(x: Any, n: int) -> Tensor:
    t = as_tensor(x)
    if t.ndim >= n:
        return t
    if n == 3:
        return _reshape(t, [1] * (2 - t.ndim) + [*t.shape] + [1]) if t.ndim else _reshape(t, [1, 1, 1])
    return _reshape(t, [1] * (n - t.ndim) + [*t.shape])


def _each_at_least(tensors: tuple[Any, ...], n: int) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
        return tuple(_at_least(t, n) for t in tensors)
    return tuple(_at_least(t, n) for t in tensors) if len(tensors) > 1 else _at_least(tensors[0], n)


def atleast_1d(*tensors: Any) -> Any:
    """With one dim or more."""
    return _each_at_least(tensors, 1)


def atleast_2d(*tensors: Any) -> Any:
    """With two dims or more: a vector becomes a row."""
    return _each_at_least(tensors, 2)


def atleast_3d(*tensors: Any) -> Any:
    """With three dims or more."""
    return _each_at_least(tensors, 3)


def vstack(tensors: Sequence[Any]) -> Tensor:
    """Rows one below the other."""
    return cat([_at_least(t, 2) for t in tensors], 0)


row_stack = vstack


def hstack(tensors: Sequence[Any]) -> Tensor:
    """Columns one beside the other; vectors one after the other."""
    list_of = [_at_least(t, 1) for t in tensors]
    return cat(list_of, 0 if builtins.all(t.ndim == 1 for t in list_of) else 1)


def dstack(tensors: Sequence[Any]) -> Tensor:
    """Along the third dim."""
    return cat([_at_least(t, 3) for t in tensors], 2)


def column_stack(tensors: Sequence[Any]) -> Tensor:
    """As hstack, but vectors are columns."""
    list_of = [as_tensor(t) for t in tensors]
    return hstack([t if t.ndim > 1 else _reshape(t, [t._count, 1]) for t in list_of])


def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """So many pieces of nearly one size, or cut at these places."""
    n = input.shape[axis_of(dim, input.ndim)]
    at = indices_or_sections
    cuts = list(at) if not isinstance(at, int) else [len(p) for p in np.array_split(np.arange(n), at)]
    if isinstance(at, int):
        return split(input, cuts, dim)
    ends = [builtins.min(builtins.max(c + n if c < 0 else c, 0), n) for c in cuts]
    key = (slice(None),) * axis_of(dim, input.ndim)
    return tuple(input[(*key, slice(a, builtins.max(a, b)))] for a, b in zip([0, *ends], [*ends, n]))


def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Cut along columns."""
    return tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Cut along rows."""
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Cut along the third dim."""
    return tensor_split(input, indices_or_sections, 2)


def fliplr(input: Tensor) -> Tensor:
    """Columns run backwards."""
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """Rows run backwards."""
    return flip(input, 0)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotated by so many quarters from the first dim to the second."""
    a, b = axis_of(dims[0], input.ndim), axis_of(dims[1], input.ndim)
    if a == b:
        raise _facula.ShapeError(f"rot90: dims {dims[0]} and {dims[1]} are the same")
    if k % 4 == 2:
        return flip(input, [a, b])
    if k % 4 == 1:
        return transpose(flip(input, b), a, b)
    return flip(transpose(input, a, b), b) if k % 4 else input


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal of two dims, which becomes the last dim."""
    a, b = axis_of(dim1, input.ndim), axis_of(dim2, input.ndim)
    if a == b:
        raise _facula.ShapeError(f"diagonal: dims {dim1} and {dim2} are the same")
    y = movedim(input, (a, b), (-2, -1))
    rows, columns = y.shape[-2:]
    n = builtins.max(builtins.min(rows + builtins.min(offset, 0), columns - builtins.max(offset, 0)), 0)
    at = [(i - builtins.min(offset, 0)) * columns + i + builtins.max(offset, 0) for i in range(n)]
    flat = _reshape(y, [*y.shape[:-2], rows * columns])
    return apply("gather", f"axis={flat.ndim - 1}", 0, flat, Tensor(np.asarray(at, "i8")))


def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise _facula.ShapeError(f"trace of shape {input.shape}: a matrix was expected")
    return sum(diagonal(input))


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dim as a diagonal of two dims, zeros beside it."""
    n = input.shape[-1] + builtins.abs(offset)
    if not input.shape[-1]:
        return movedim(zeros(*input.shape[:-1], n, n, dtype=input.dtype), (-2, -1), (dim1, dim2))
    at = np.zeros((n, n), bool)
    at[np.arange(input.shape[-1]) - builtins.min(offset, 0), np.arange(input.shape[-1]) + builtins.max(offset, 0)] = True
    which = np.zeros((n, n), "i8")
    which[at] = np.arange(input.shape[-1])
    wide = apply("gather", f"axis={input.ndim - 1}", 0, input, Tensor(which))
    y = apply("where", None, 0, Tensor(at), wide, zeros((), dtype=input.dtype))
    return movedim(y, (-2, -1), (dim1, dim2))


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """All elements as a diagonal of a matrix."""
    return diag_embed(ravel(input), offset)


def block_diag(*tensors: Any) -> Tensor:
    """Matrices along the diagonal of one, zeros beside them."""
    parts = [_at_least(t, 2) for t in tensors]
    width = builtins.sum(p.shape[1] for p in parts)
    rows, at = [], 0
    for p in parts:
        left, right = zeros(p.shape[0], at, dtype=p.dtype), zeros(p.shape[0], width - at - p.shape[1], dtype=p.dtype)
        rows.append(cat([left, p, right], 1))
        at += p.shape[1]
    return cat(rows, 0)


def sliding(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of a size along a dim, a step apart; they become the last dim."""
    a = axis_of(dimension, x.ndim)
    if size > x.shape[a] or size < 0 or step < 1:
        raise _facula.ShapeError(f"unfold: windows of {size}, {step} apart, of a dim of size {x.shape[a]}")
    places = np.arange(0, x.shape[a] - size + 1, step)[:, None] + np.arange(size)
    return movedim(apply("gather", f"axis={a}", 0, x, Tensor(places)), a + 1, -1)


def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Rows and columns of what lies on and below a diagonal."""
    return Tensor(np.stack(np.tril_indices(row, offset, col)))


def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Rows and columns of what lies on and above a diagonal."""
    return Tensor(np.stack(np.triu_indices(row, offset, col)))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every choice of one element of each, a row for each choice."""
    if builtins.any(t.ndim != 1 for t in tensors):
        raise _facula.ShapeError(f"cartesian_prod: vectors were expected, not shapes {[t.shape for t in tensors]}")
    if len(tensors) == 1:
        return tensors[0]
    return cat([unsqueeze(ravel(g), 1) for g in meshgrid(*tensors)], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r elements of a vector, a row for each choice."""
    if input.ndim != 1 or r < 0:
        raise _facula.ShapeError(f"combinations of {r} of shape {input.shape}: a vector was expected, and a number from 0 on")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input.shape[0]), r)) if r else []
    return input[Tensor(np.array(rows), dtype="int64")] if rows else _reshape(input[:0], [0, r] if r else [0])
