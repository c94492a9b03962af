"""Products of matrices, which the engine computes, and decompositions, which NumPy computes on the host (without gradients)."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import elementwise as f, products, reduce as r, shapes as s
from .._facula import DtypeError, ShapeError, Tensor
from ..create import axis_of
from ..dtypes import result_type
from ..promote import cast
from .reduce import _wide

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
           "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
           "tensordot", "trace", "vecdot", "vector_norm"]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, or of stacks of them."""
    y: Tensor = f.matmul(x1, x2)
    return y


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dims change places."""
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose of shape {x.shape}: two dims at least were expected")
    return s.transpose(x, -1, -2)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Sums of products over pairs of axes."""
    common = result_type(x1, x2)
    return products.tensordot(cast(x1, common), cast(x2, common), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis."""
    a, b = axis_of(axis, x1.ndim), axis_of(axis, x2.ndim)
    if x1.shape[a] != x2.shape[b]:
        raise ShapeError(f"vecdot: sizes {x1.shape[a]} and {x2.shape[b]} along axis {axis} differ")
    common = result_type(x1, x2)
    left, right = s.movedim(cast(x1, common), a, -1), s.movedim(cast(x2, common), b, -1)
    return r.sum(left * right, -1, dtype=common)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Each of x1 times each of x2."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer of shapes {x1.shape} and {x2.shape}: two vectors were expected")
    return products.outer(x1, x2)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Vectors of three that are perpendicular to both."""
    for x in (x1, x2):
        if x.shape[axis_of(axis, x.ndim)] != 3:
            raise ShapeError(f"cross: shape {x.shape} has not size 3 along axis {axis}")
    left, right = s.broadcast_tensors(x1, x2)
    a = axis_of(axis, left.ndim)
    return s.roll(left, -1, a) * s.roll(right, 1, a) - s.roll(left, 1, a) * s.roll(right, -1, a)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Elements of a diagonal of the last two dims."""
    rows, columns = x.shape[-2:]
    n = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    at = np.arange(n)
    y: Tensor = x[..., at + max(-offset, 0), at + max(offset, 0)]
    return y


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of the last two dims."""
    t = _wide(diagonal(x, offset=offset), dtype)
    return r.sum(t, -1, dtype=t.dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """(sum |x|^ord)^(1/ord) over axes."""
    _floats("vector_norm", x)
    if ord == -np.inf:
        return r.amin(f.abs(x), axis, keepdims)
    if ord == 0:
        return cast(r.sum(x != 0, axis, keepdims), x.dtype)
    return r.norm(x, ord, axis, keepdims)


# ---- by NumPy ----

_lapack: Any = np.linalg            # its stubs know arrays of known dtypes only

class _Eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class _QR(NamedTuple):
    Q: Tensor
    R: Tensor


class _Slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class _SVD(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def _floats(name: str, *arrays: Tensor) -> None:
    for x in arrays:
        if x.dtype.name not in ("float32", "float64"):
            raise DtypeError(f"{name} of {x.dtype}: float32 or float64 was expected")


def _host(name: str, *arrays: Tensor) -> list[Any]:
    _floats(name, *arrays)
    common = result_type(*arrays)
    return [np.asarray(cast(x.detach(), common)) for x in arrays]


def _told(name: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except _lapack.LinAlgError as why:
        raise ShapeError(f"{name}: {why}") from None


def _new(array: Any) -> Tensor:
    return Tensor(np.array(array, order="C"))


def _by_numpy(name: str, doc: str) -> Any:
    def call(x: Tensor, /) -> Tensor:
        return _new(_told(name, getattr(_lapack, name), *_host(name, x)))
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


det = _by_numpy("det", "The determinant.")
inv = _by_numpy("inv", "The inverse matrix.")
eigvalsh = _by_numpy("eigvalsh", "Eigenvalues of a symmetric matrix, ascending.")


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """L with L L^T = x for a positive definite matrix; upper: its transpose."""
    low = _told("cholesky", _lapack.cholesky, *_host("cholesky", x))
    return _new(np.swapaxes(low, -1, -2) if upper else low)


def eigh(x: Tensor, /) -> _Eigh:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    values, vectors = _told("eigh", _lapack.eigh, *_host("eigh", x))
    return _Eigh(_new(values), _new(vectors))


def eig(x: Tensor, /) -> _Eigh:
    """Eigenvalues and eigenvectors, where all are real: there are no complex dtypes."""
    values, vectors = _told("eig", _lapack.eig, *_host("eig", x))
    _real("eig", values)
    return _Eigh(_new(values.real), _new(vectors.real))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues, where all are real: there are no complex dtypes."""
    values = _told("eigvals", _lapack.eigvals, *_host("eigvals", x))
    _real("eigvals", values)
    return _new(values.real)


def _real(name: str, values: Any) -> None:
    if np.iscomplexobj(values) and np.any(values.imag != 0):
        raise DtypeError(f"{name}: an eigenvalue is complex, and there are no complex dtypes")


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices: "fro", "nuc", 1, 2, inf and their negatives."""
    return _new(_lapack.norm(*_host("matrix_norm", x), ord=ord, axis=(-2, -1), keepdims=keepdims))


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """x @ x @ ...; of the inverse for n below 0."""
    return _new(_told("matrix_power", _lapack.matrix_power, *_host("matrix_power", x), n))


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are not small against the largest."""
    sizes = _lapack.svd(*_host("matrix_rank", x), compute_uv=False)
    bound = _tolerance(x, rtol)
    largest = sizes.max(axis=-1, keepdims=True, initial=0)
    return Tensor(np.asarray((sizes > largest * bound).sum(axis=-1)), dtype="int64")


def _tolerance(x: Tensor, rtol: Any) -> Any:
    if rtol is None:
        return max(x.shape[-2:]) * np.finfo(x.dtype.name).eps
    return np.asarray(rtol)[..., np.newaxis]


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The inverse of Moore and Penrose."""
    bound = max(x.shape[-2:]) * np.finfo(x.dtype.name).eps if rtol is None else np.asarray(rtol)
    return _new(_lapack.pinv(*_host("pinv", x), bound))


def qr(x: Tensor, /, *, mode: str = "reduced") -> _QR:
    """Q R = x with orthonormal columns of Q and an upper triangle R."""
    q, upper = _lapack.qr(*_host("qr", x), mode=mode)
    return _QR(_new(q), _new(upper))


def slogdet(x: Tensor, /) -> _Slogdet:
    """The sign of the determinant and the logarithm of its size."""
    sign, size = _told("slogdet", _lapack.slogdet, *_host("slogdet", x))
    return _Slogdet(_new(sign), _new(size))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x with x1 x = x2."""
    a, b = _host("solve", x1, x2)
    if b.ndim == 1:
        return _new(_told("solve", _lapack.solve, a, b[:, np.newaxis])[..., 0])
    return _new(_told("solve", _lapack.solve, a, b))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> _SVD:
    """U diag(S) Vh = x, with S descending."""
    u, sizes, v = _told("svd", _lapack.svd, *_host("svd", x), full_matrices=full_matrices)
    return _SVD(_new(u), _new(sizes), _new(v))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values, descending."""
    return _new(_told("svdvals", _lapack.svd, *_host("svdvals", x), compute_uv=False))
