"""Products and decompositions of matrices, by facula.linalg, with gradients; eigenvalues that may be complex by NumPy."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import elementwise as f, linalg, products, reduce as r, shapes as s
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


# ---- of facula.linalg, with the standard's names and checks ----

def _floats(name: str, *arrays: Tensor) -> None:
    for x in arrays:
        if x.dtype.name not in ("float32", "float64"):
            raise DtypeError(f"{name} of {x.dtype}: float32 or float64 was expected")


def _of_matrices(name: str, doc: str) -> Any:
    function = getattr(linalg, name)

    def call(x: Tensor, /) -> Any:
        _floats(name, x)
        return function(x)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


det = _of_matrices("det", "The determinant.")
eigh = _of_matrices("eigh", "Eigenvalues, ascending, and eigenvectors of a symmetric matrix.")
eigvalsh = _of_matrices("eigvalsh", "Eigenvalues of a symmetric matrix, ascending.")
inv = _of_matrices("inv", "The inverse matrix.")
slogdet = _of_matrices("slogdet", "The sign of the determinant and the logarithm of its size.")
svdvals = _of_matrices("svdvals", "Singular values, descending.")


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """L with L L^T = x for a positive definite matrix; upper: its transpose."""
    _floats("cholesky", x)
    return linalg.cholesky(x, upper=upper)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices: "fro", "nuc", 1, 2, inf and their negatives."""
    _floats("matrix_norm", x)
    return linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """x @ x @ ...; of the inverse for n below 0."""
    _floats("matrix_power", x)
    return linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are not small against the largest."""
    _floats("matrix_rank", x)
    return linalg.matrix_rank(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The inverse of Moore and Penrose."""
    _floats("pinv", x)
    return linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> linalg.QR:
    """Q R = x with orthonormal columns of Q and an upper triangle R."""
    _floats("qr", x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', not {mode!r}")
    return linalg.qr(x, mode)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x with x1 x = x2: x2 of one dim is one vector, of more dims matrices."""
    _floats("solve", x1, x2)
    return s.squeeze(linalg.solve(x1, s.unsqueeze(x2, -1)), -1) if x2.ndim == 1 else linalg.solve(x1, x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> linalg.SVD:
    """U diag(S) Vh = x, with S descending."""
    _floats("svd", x)
    return linalg.svd(x, full_matrices)


# ---- by NumPy: results may be complex, which facula has not ----

class _Eig(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


def _real(name: str, function: Any, x: Tensor) -> Any:
    _floats(name, x)
    try:
        found = function(np.asarray(x.detach()))
    except np.linalg.LinAlgError as why:
        raise ShapeError(f"{name}: {why}") from None
    values = found if isinstance(found, np.ndarray) else found[0]
    if np.any(values.imag != 0):
        raise DtypeError(f"{name}: an eigenvalue is complex, and there are no complex dtypes")
    return found


def eig(x: Tensor, /) -> _Eig:
    """Eigenvalues and eigenvectors, where all are real: there are no complex dtypes."""
    values, vectors = _real("eig", np.linalg.eig, x)
    return _Eig(Tensor(np.ascontiguousarray(values.real)), Tensor(np.ascontiguousarray(vectors.real)))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues, where all are real: there are no complex dtypes."""
    return Tensor(np.ascontiguousarray(_real("eigvals", np.linalg.eigvals, x).real))
