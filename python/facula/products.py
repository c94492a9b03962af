"""Products of matrices and what is like them."""
from __future__ import annotations

import math
from typing import Any

from . import _facula
from ._facula import Tensor, apply
from .promote import reshape as _reshape
from .create import axes_of
from .elementwise import matmul
from .reduce import sum
from .shapes import permute, unsqueeze


def mm(a: Tensor, b: Tensor) -> Tensor:
    """The product of two matrices."""
    if a.ndim != 2 or b.ndim != 2:
        raise _facula.ShapeError(f"mm of shapes {a.shape} and {b.shape}: two matrices were expected")
    return matmul(a, b)


def bmm(a: Tensor, b: Tensor) -> Tensor:
    """Products of as many matrices."""
    if a.ndim != 3 or b.ndim != 3:
        raise _facula.ShapeError(f"bmm of shapes {a.shape} and {b.shape}: three dims each were expected")
    return matmul(a, b)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The sum of products of two vectors."""
    if a.ndim != 1 or b.ndim != 1:
        raise _facula.ShapeError(f"dot of shapes {a.shape} and {b.shape}: two vectors were expected")
    return sum(a * b)


vecdot = dot


def outer(a: Tensor, b: Tensor) -> Tensor:
    """Each of a times each of b."""
    t: Tensor = unsqueeze(a, 1) * unsqueeze(b, 0)
    return t


def einsum(equation: str, *operands: Any) -> Tensor:
    """Einstein's summation: "ij,jk->ik"."""
    list_of = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return apply("einsum", f'equation="{equation}"', 0, *list_of)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    if isinstance(dims, int):
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left, right = axes_of(dims[0], a.ndim), axes_of(dims[1], b.ndim)
    rest_a = [k for k in range(a.ndim) if k not in left]
    rest_b = [k for k in range(b.ndim) if k not in right]
    n = math.prod(a.shape[k] for k in left)
    x = _reshape(permute(a, rest_a + left), [math.prod(a.shape[k] for k in rest_a), n])
    y = _reshape(permute(b, right + rest_b), [n, math.prod(b.shape[k] for k in rest_b)])
    return _reshape(matmul(x, y), [*(a.shape[k] for k in rest_a), *(b.shape[k] for k in rest_b)])
