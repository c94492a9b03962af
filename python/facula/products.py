"""Products of matrices and what is like them."""
from __future__ import annotations

import math
from typing import Any

from . import _facula
from ._facula import Tensor, apply
from .dtypes import bool_, int64, result_type
from .promote import cast, reshape as _reshape
from .create import as_tensor, axes_of, eye, ones_like
from .elementwise import matmul, where
from .reduce import norm, sum
from .shapes import broadcast_shapes, expand, permute, roll, unsqueeze


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
    if a.shape != b.shape:
        raise _facula.ShapeError(f"dot of vectors of {a.shape[0]} and {b.shape[0]} elements")
    y = a * b
    return cast(sum(y), y.dtype)


vecdot = dot


def outer(a: Tensor, b: Tensor) -> Tensor:
    """Each of a times each of b, of two vectors."""
    if a.ndim != 1 or b.ndim != 1:
        raise _facula.ShapeError(f"outer of shapes {a.shape} and {b.shape}: two vectors were expected")
    t: Tensor = unsqueeze(a, 1) * unsqueeze(b, 0)
    return t


def einsum(equation: str, *operands: Any) -> Tensor:
    """Einstein's summation: "ij,jk->ik", with promotion.  Of bools: is any of the products true?"""
    list_of = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    xs = [as_tensor(x) for x in list_of]
    if not xs:
        raise _facula.ArgumentError("einsum: no tensors were given")
    common = result_type(*xs)
    if common is bool_:
        some: Tensor = apply("einsum", f'equation="{equation}"', 0, *(cast(x, int64) for x in xs)) != 0
        return some
    return apply("einsum", f'equation="{equation}"', 0, *(cast(x, common) for x in xs))


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Sums of products over dims of both: so many last and first ones, or those named."""
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise _facula.ShapeError(f"tensordot of shapes {a.shape} and {b.shape}: over {dims} dims")
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left, right = axes_of(dims[0], a.ndim), axes_of(dims[1], b.ndim)
    if [a.shape[k] for k in left] != [b.shape[k] for k in right]:
        raise _facula.ShapeError(f"tensordot of shapes {a.shape} and {b.shape}: sizes of dims {left} and {right} differ")
    rest_a = [k for k in range(a.ndim) if k not in left]
    rest_b = [k for k in range(b.ndim) if k not in right]
    n = math.prod(a.shape[k] for k in left)
    x = _reshape(permute(a, rest_a + left), [math.prod(a.shape[k] for k in rest_a), n])
    y = _reshape(permute(b, right + rest_b), [n, math.prod(b.shape[k] for k in rest_b)])
    return _reshape(matmul(x, y), [*(a.shape[k] for k in rest_a), *(b.shape[k] for k in rest_b)])


def mv(a: Tensor, b: Tensor) -> Tensor:
    """A matrix times a vector."""
    if a.ndim != 2 or b.ndim != 1:
        raise _facula.ShapeError(f"mv of shapes {a.shape} and {b.shape}: a matrix and a vector were expected")
    return matmul(a, b)


def inner(a: Tensor, b: Tensor) -> Tensor:
    """Sums of products along the last dims of both."""
    return tensordot(a, b, ([-1], [-1])) if a.ndim and b.ndim else a * b


ger = outer


def vdot(a: Tensor, b: Tensor) -> Tensor:
    """The sum of products of two vectors."""
    return dot(a, b)


def _plus(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    y = product if alpha == 1 else product * alpha
    if beta == 0:
        return y
    z: Tensor = y + (x if beta == 1 else x * beta)
    return z


def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a b, of matrices"""
    return _plus(x, mm(a, b), beta, alpha)


def addmv(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a b, of a matrix a and a vector b"""
    return _plus(x, mv(a, b), beta, alpha)


def addr(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a b^T, of vectors"""
    return _plus(x, outer(a, b), beta, alpha)


def baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a b, of as many matrices"""
    return _plus(x, bmm(a, b), beta, alpha)


def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha times the sum of as many products"""
    return _plus(x, sum(bmm(a, b), 0), beta, alpha)


def kron(a: Tensor, b: Tensor) -> Tensor:
    """Each element of a times all of b, side by side."""
    n = max(a.ndim, b.ndim)
    p, q = [1] * (n - a.ndim) + list(a.shape), [1] * (n - b.ndim) + list(b.shape)
    x = _reshape(a, [k for s in p for k in (s, 1)])
    y = _reshape(b, [k for s in q for k in (1, s)])
    return _reshape(x * y, [s * t for s, t in zip(p, q)])


def matrix_power(a: Tensor, n: int) -> Tensor:
    """A square matrix times itself, n times; n >= 0."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or n < 0:
        raise _facula.ShapeError(f"matrix_power {n} of shape {a.shape}: a square matrix and n >= 0 were expected")
    y = expand(cast(eye(a.shape[-1]), a.dtype), *a.shape)
    while n:
        y = matmul(y, a) if n & 1 else y
        a, n = matmul(a, a) if n > 1 else a, n >> 1
    return y


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices."""
    y = matrices[0]
    for m in matrices[1:]:
        y = mm(y, m)
    return y


def cross(a: Tensor, b: Tensor, dim: int | None = None) -> Tensor:
    """The vector product along a dim of size 3, the first one unless said."""
    shape = broadcast_shapes(a.shape, b.shape)
    if dim is None and 3 not in shape:
        raise _facula.ShapeError(f"cross of shapes {a.shape} and {b.shape}: no dim has size 3")
    axis = shape.index(3) if dim is None else axes_of(dim, len(shape))[0]
    if shape[axis] != 3:
        raise _facula.ShapeError(f"cross of shapes {a.shape} and {b.shape}: dim {dim} has size {shape[axis]}, not 3")
    x, y = expand(a, *shape), expand(b, *shape)
    return roll(x, -1, axis) * roll(y, -2, axis) - roll(x, -2, axis) * roll(y, -1, axis)


def _square(name: str, x: Tensor) -> Tensor:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise _facula.ShapeError(f"{name} of shape {x.shape}: square matrices were expected")
    return apply(name, None, 0, x)


def det(x: Tensor) -> Tensor:
    """The determinants of square matrices."""
    return _square("det", x)


def inverse(x: Tensor) -> Tensor:
    """The inverses of square matrices."""
    return _square("inverse", x)


def renorm(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """x with each part along a dim made shorter, where its p-norm is above maxnorm."""
    axis = axes_of(dim, x.ndim)[0]
    length = norm(x, p, [k for k in range(x.ndim) if k != axis], True)
    return x * where(length > maxnorm, maxnorm / (length + 1e-7), ones_like(length))
