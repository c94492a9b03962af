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


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    if input.ndim != 2 or mat2.ndim != 2:
        raise _facula.ShapeError(f"mm of shapes {input.shape} and {mat2.shape}: two matrices were expected")
    return matmul(input, mat2)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Products of as many matrices."""
    if input.ndim != 3 or mat2.ndim != 3:
        raise _facula.ShapeError(f"bmm of shapes {input.shape} and {mat2.shape}: three dims each were expected")
    return matmul(input, mat2)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of products of two vectors."""
    if input.ndim != 1 or tensor.ndim != 1:
        raise _facula.ShapeError(f"dot of shapes {input.shape} and {tensor.shape}: two vectors were expected")
    if input.shape != tensor.shape:
        raise _facula.ShapeError(f"dot of vectors of {input.shape[0]} and {tensor.shape[0]} elements")
    y = input * tensor
    return cast(sum(y), y.dtype)


vecdot = dot


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Each of a times each of b, of two vectors."""
    if input.ndim != 1 or vec2.ndim != 1:
        raise _facula.ShapeError(f"outer of shapes {input.shape} and {vec2.shape}: two vectors were expected")
    t: Tensor = unsqueeze(input, 1) * unsqueeze(vec2, 0)
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


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    if input.ndim != 2 or vec.ndim != 1:
        raise _facula.ShapeError(f"mv of shapes {input.shape} and {vec.shape}: a matrix and a vector were expected")
    return matmul(input, vec)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums of products along the last dims of both."""
    return tensordot(input, other, ([-1], [-1])) if input.ndim and other.ndim else input * other


ger = outer


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products of two vectors."""
    return dot(input, other)


def _plus(x: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    y = product if alpha == 1 else product * alpha
    if beta == 0:
        return y
    z: Tensor = y + (x if beta == 1 else x * beta)
    return z


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha mat1 mat2"""
    return _plus(input, mm(mat1, mat2), beta, alpha)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha mat vec"""
    return _plus(input, mv(mat, vec), beta, alpha)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha vec1 vec2^T"""
    return _plus(input, outer(vec1, vec2), beta, alpha)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha batch1 batch2, of as many matrices"""
    return _plus(input, bmm(batch1, batch2), beta, alpha)


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta input + alpha times the sum of as many products"""
    return _plus(input, sum(bmm(batch1, batch2), 0), beta, alpha)


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Each element of a times all of b, side by side."""
    n = max(input.ndim, other.ndim)
    p, q = [1] * (n - input.ndim) + list(input.shape), [1] * (n - other.ndim) + list(other.shape)
    x = _reshape(input, [k for s in p for k in (s, 1)])
    y = _reshape(other, [k for s in q for k in (1, s)])
    return _reshape(x * y, [s * t for s, t in zip(p, q)])


def matrix_power(input: Tensor, n: int) -> Tensor:
    """A square matrix times itself, n times; n >= 0."""
    if input.ndim < 2 or input.shape[-1] != input.shape[-2] or n < 0:
        raise _facula.ShapeError(f"matrix_power {n} of shape {input.shape}: a square matrix and n >= 0 were expected")
    y = expand(cast(eye(input.shape[-1]), input.dtype), *input.shape)
    while n:
        y = matmul(y, input) if n & 1 else y
        input, n = matmul(input, input) if n > 1 else input, n >> 1
    return y


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices."""
    y = matrices[0]
    for m in matrices[1:]:
        y = mm(y, m)
    return y


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vector product along a dim of size 3, the first one unless said."""
    shape = broadcast_shapes(input.shape, other.shape)
    if dim is None and 3 not in shape:
        raise _facula.ShapeError(f"cross of shapes {input.shape} and {other.shape}: no dim has size 3")
    axis = shape.index(3) if dim is None else axes_of(dim, len(shape))[0]
    if shape[axis] != 3:
        raise _facula.ShapeError(f"cross of shapes {input.shape} and {other.shape}: dim {dim} has size {shape[axis]}, not 3")
    x, y = expand(input, *shape), expand(other, *shape)
    return roll(x, -1, axis) * roll(y, -2, axis) - roll(x, -2, axis) * roll(y, -1, axis)


def _square(name: str, x: Tensor) -> Tensor:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise _facula.ShapeError(f"{name} of shape {x.shape}: square matrices were expected")
    return apply(name, None, 0, x)


def det(input: Tensor) -> Tensor:
    """The determinants of square matrices."""
    return _square("det", input)


def inverse(input: Tensor) -> Tensor:
    """The inverses of square matrices."""
    return _square("inverse", input)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """input with each part along a dim made shorter, where its p-norm is above maxnorm."""
    axis = axes_of(dim, input.ndim)[0]
    length = norm(input, p, [k for k in range(input.ndim) if k != axis], True)
    return input * where(length > maxnorm, maxnorm / (length + 1e-7), ones_like(length))
