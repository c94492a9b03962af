"""Linear algebra, with PyTorch's names and gradients.

Decompositions are operators of the library, computed in double precision (`cholesky`, `solve`, `qr`, `eigh`, `svd`); the others are
made of them.  What needs complex numbers is not here, and says so.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _facula, arrange, elementwise as f, products, reduce as r, shapes as s
from ._facula import Tensor, apply
from .autograd import Function
from .create import as_tensor, axes_of, eye, floats, full_like, ones_like, zeros_like
from .dtypes import result_type
from .promote import cast

__all__ = ["cholesky", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "logdet", "lstsq", "matmul", "matrix_exp",
           "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd",
           "svdvals", "vander", "vecdot", "vector_norm"]
_absent = {**dict.fromkeys(("eig", "eigvals"), "eigenvalues of matrices that are not symmetric are complex numbers, which facula has not"),
           **dict.fromkeys(("lu", "lu_factor", "lu_solve", "ldl_factor", "ldl_solve"), "solve(), inv() and slogdet() eliminate themselves"),
           "householder_product": "qr() gives the product", "tensorinv": "reshape, and inv()", "tensorsolve": "reshape, and solve()"}


def __getattr__(name: str) -> Any:
    why = f": {_absent[name]}" if name in _absent else ""
    raise AttributeError(f"facula.linalg has no {name}{why}")


class Eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    Q: Tensor
    R: Tensor


class Slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVD(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


class Lstsq(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _matrices(name: str, x: Any, square: bool = False) -> Tensor:
    t = as_tensor(x)
    if not t.dtype.is_floating_point:
        raise _facula.DtypeError(f"{name} of {t.dtype.name}: floats were expected")
    if t.ndim < 2 or (square and t.shape[-1] != t.shape[-2]):
        raise _facula.ShapeError(f"{name} of shape {t.shape}: {'square ' if square else ''}matrices were expected")
    return t


def _epsilon(x: Tensor) -> float:
    return float({"float64": 2.0 ** -52, "float32": 2.0 ** -23, "float16": 2.0 ** -10}.get(x.dtype.name, 2.0 ** -7))


def _identity(n: int, like: Tensor) -> Tensor:
    return cast(eye(n, device=like.device), like.dtype)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Elements of a diagonal of two dims, the last ones unless said."""
    return arrange.diagonal(A, offset, dim1, dim2)


def matmul(A: Tensor, B: Tensor) -> Tensor:
    """The product of matrices."""
    y: Tensor = f.matmul(A, B)
    return y


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sums of products along a dim."""
    return r.sum(x * y, dim)


def cross(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The vector product along a dim of size 3."""
    return products.cross(x, y, dim)


def multi_dot(tensors: Any) -> Tensor:
    """The product of two or more matrices, in the cheapest order; the first and the last may be vectors."""
    ts = list(tensors)
    if len(ts) < 2:
        raise ValueError(f"multi_dot of {len(ts)} matrices: two at least were expected")
    first, last = ts[0].ndim == 1, ts[-1].ndim == 1
    ts[0] = s.unsqueeze(ts[0], 0) if first else ts[0]
    ts[-1] = s.unsqueeze(ts[-1], 1) if last else ts[-1]
    for a, b in zip(ts, ts[1:]):
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise _facula.ShapeError(f"multi_dot of shapes {a.shape} and {b.shape}")
    sizes = [t.shape[0] for t in ts] + [ts[-1].shape[1]]
    n = len(ts)
    cost = [[0.0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            choices = [(cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i][j], cut[i][j] = min(choices)

    def product(i: int, j: int) -> Tensor:
        return ts[i] if i == j else matmul(product(i, cut[i][j]), product(cut[i][j] + 1, j))
    y = product(0, n - 1)
    y = s.squeeze(y, 0) if first else y
    return s.squeeze(y, -1) if last else y


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A square matrix times itself, n times; of the inverse for n below 0."""
    t = _matrices("matrix_power", A, True)
    return products.matrix_power(inv(t), -n) if n < 0 else products.matrix_power(t, n)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers 0 to N - 1 of numbers, as the last dim."""
    n = x.shape[-1] if N is None else N
    if n < 0 or x.ndim < 1:
        raise _facula.ShapeError(f"vander of shape {x.shape} with {n} powers")
    one = s.unsqueeze(x, -1)
    rows = [ones_like(one)]
    for _ in range(1, n):
        rows.append(rows[-1] * one)
    y = s.cat(rows, -1)
    return y if n else arrange.narrow(y, -1, 0, 0)


# ---- systems of equations ----

def inv(A: Tensor) -> Tensor:
    """The inverses of square matrices; an error where one is singular."""
    t = _matrices("inv", A, True)
    return solve(t, s.expand(_identity(t.shape[-1], t), *t.shape))


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B, or X A = B where left is False; B may be vectors."""
    a, b = _matrices("solve", A, True), floats(as_tensor(B))
    common = result_type(a, b)
    a, b = cast(a, common), cast(b, common)
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if vector and not left:
        raise _facula.ShapeError(f"solve of shapes {a.shape} and {b.shape}: X A = B is of matrices")
    if not left:
        return s.transpose(solve(s.transpose(a, -1, -2), s.transpose(b, -1, -2)), -1, -2)
    b = s.unsqueeze(b, -1) if vector else b
    if b.shape[-2] != a.shape[-1]:
        raise _facula.ShapeError(f"solve of shapes {a.shape} and {b.shape}: as many rows were expected")
    front = s.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = s.expand(a, *front, *a.shape[-2:]), s.expand(b, *front, *b.shape[-2:])
    y: Tensor = apply("solve", None, 0, a, b)
    return s.squeeze(y, -1) if vector else y


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """solve() with one triangle of A, and ones on its diagonal where unitriangular."""
    a = _matrices("solve_triangular", A, True)
    part = s.triu(a, int(unitriangular)) if upper else s.tril(a, -int(unitriangular))
    return solve(part + _identity(a.shape[-1], a) if unitriangular else part, B, left=left)


class _Pinv(Function):
    """Golub and Pereyra (1973): the gradient at a constant rank, which needs no differences of singular values."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, atol: Any, rtol: Any) -> Tensor:
        U, S, Vh = svd(A, full_matrices=False)
        kept = _above(S, A, atol, rtol)
        over = f.where(kept, 1 / f.where(kept, S, ones_like(S)), zeros_like(S))
        P = matmul(s.transpose(Vh, -1, -2) * s.unsqueeze(over, -2), s.transpose(U, -1, -2))
        ctx.save_for_backward(A, P)
        return P

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        A, P = ctx.saved_tensors
        At, Pt, gt = (s.transpose(x, -1, -2) for x in (A, P, g))
        dA = -matmul(matmul(Pt, g), Pt)
        dA = dA + matmul(gt - matmul(A, matmul(P, gt)), matmul(P, Pt))
        return dA + matmul(matmul(Pt, P), gt - matmul(matmul(gt, P), A)), None, None


def _lower(A: Tensor) -> Tensor:
    """The symmetric matrix whose lower triangle this is."""
    return s.tril(A) + s.transpose(s.tril(A, -1), -1, -2)


def _above(S: Tensor, A: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Which singular values of A are above atol and rtol times the largest; both may be numbers for each matrix."""
    def beside(x: Any) -> Tensor:
        t = cast(as_tensor(x), S.dtype).detach()
        return s.unsqueeze(t, -1) if t.ndim else t
    if not S.shape[-1]:
        return S > 0
    absolute = beside(0.0 if atol is None else atol)
    usual = _epsilon(A) * max(A.shape[-2:])
    relative = f.where(absolute > 0, zeros_like(absolute), full_like(absolute, usual)) if rtol is None else beside(rtol)
    return S > f.maximum(r.amax(S, -1, True) * relative, absolute)


def pinv(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The inverse of Moore and Penrose; singular values up to atol, or rtol times the largest, count as 0."""
    t = _matrices("pinv", A, hermitian)
    y: Tensor = _Pinv.apply(_lower(t) if hermitian else t, atol, rtol)
    return y


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None) -> Lstsq:
    """The shortest X for which A X - B is smallest; the squares of what is left over where A has full rank and more rows."""
    a = _matrices("lstsq", A)
    if not (B.ndim == a.ndim or (a.ndim == 2 and B.ndim == 1)) or B.shape[a.ndim - 2] != a.shape[-2]:
        raise _facula.ShapeError(f"lstsq of shapes {a.shape} and {B.shape}")
    S = svdvals(a.detach())
    rank = r.sum(_above(S, a, None, rcond), -1)
    X = matmul(pinv(a, rtol=rcond), B)
    full = a.shape[-2] > a.shape[-1] and bool(np.all(np.asarray(rank) == a.shape[-1]))
    left = matmul(a, X) - B
    left = r.sum(left * left, -2 if B.ndim == a.ndim else -1)
    return Lstsq(X, left if full else zeros_like(S.reshape(-1)[:0]), rank, S)


# ---- decompositions ----

def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L, lower triangular, with L L' = A, or its transpose; an error where A is not positive definite.  A is taken to be symmetric."""
    y: Tensor = apply("cholesky", None, 0, _matrices("cholesky", A, True))
    return s.transpose(y, -1, -2) if upper else y


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """A = Q R, with orthonormal columns of Q and an upper triangular R; mode: "reduced", "complete" (a square Q), "r" (no Q)."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode is 'reduced', 'complete' or 'r', not {mode!r}")
    q, upper = apply("qr", f"complete={int(mode == 'complete')}", 2, _matrices("qr", A))
    return QR(zeros_like(q.detach().reshape(-1)[:0]) if mode == "r" else q, upper)


def eigh(A: Tensor) -> Eigh:
    """Eigenvalues of symmetric matrices in rising order, and eigenvectors as columns.  A is taken to be symmetric."""
    return Eigh(*apply("eigh", None, 2, _matrices("eigh", A, True)))


def eigvalsh(A: Tensor) -> Tensor:
    """Eigenvalues of symmetric matrices in rising order."""
    return eigh(A).eigenvalues


def svd(A: Tensor, full_matrices: bool = True) -> SVD:
    """A = U diag(S) Vh; with full_matrices, U and Vh are square, and gradients of what completes them are not passed on."""
    t = _matrices("svd", A)
    U, S, Vh = apply("svd", None, 3, t)
    if full_matrices:
        U, V = _completed(U), _completed(s.transpose(Vh, -1, -2))
        Vh = s.transpose(V, -1, -2)
    return SVD(U, S, Vh)


def _completed(q: Tensor) -> Tensor:
    """Orthonormal columns, and others that make them square."""
    rows, columns = q.shape[-2:]
    if rows <= columns:
        return q
    return s.cat([q, arrange.narrow(qr(q.detach(), "complete").Q, -1, columns, rows - columns)], -1)


def svdvals(A: Tensor) -> Tensor:
    """Singular values, the largest first."""
    return svd(A, full_matrices=False).S


# ---- numbers of matrices ----

def det(A: Tensor) -> Tensor:
    """The determinants of square matrices."""
    return products.det(A)


def slogdet(A: Tensor) -> Slogdet:
    """The signs of determinants, and the logarithms of their sizes, which neither overflow nor vanish."""
    q, upper = qr(_matrices("slogdet", A, True))
    d = diagonal(upper)
    sign = f.round(products.det(q.detach())) * r.prod(f.sign(d.detach()), -1)
    return Slogdet(sign, r.sum(f.log(f.abs(d)), -1))


def logdet(A: Tensor) -> Tensor:
    """ln of determinants; NaN of those below 0."""
    sign, size = slogdet(A)
    return f.where(sign < 0, full_like(size, math.nan), size)


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """(sum |x|^ord)^(1/ord), of all elements or along dims."""
    return r.norm(x, ord, dim, keepdim)


def _spectral(x: Tensor, dims: list[int], ord: Any, keepdim: bool) -> Tensor:
    S = svdvals(s.movedim(x, dims, [-2, -1]))
    y = r.sum(S, -1) if ord == "nuc" else r.amax(S, -1) if ord > 0 else r.amin(S, -1)
    for d in sorted(dims) if keepdim else ():
        y = s.unsqueeze(y, d)
    return y


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """Of matrices: "fro", "nuc" (the sum of singular values), 2 and -2 (the largest and the smallest), 1, -1, inf and -inf (the
    largest and smallest sums of columns and rows)."""
    dims = axes_of(dim, A.ndim)
    if len(dims) != 2 or dims[0] == dims[1]:
        raise _facula.ShapeError(f"matrix_norm of shape {A.shape}: two dims were expected, not {dim}")
    if ord == "fro":
        return r.norm(A, 2, dims, keepdim)
    if ord in ("nuc", 2, -2):
        return _spectral(A, dims, ord, keepdim)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"matrix_norm: ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}")
    along, over = (dims[0], dims[1]) if abs(ord) == 1 else (dims[1], dims[0])
    sums = r.sum(f.abs(A), along, True)
    y: Tensor = (r.amax if ord > 0 else r.amin)(sums, over, True)
    return y if keepdim else s.squeeze(y, tuple(dims))


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    """vector_norm() along one dim, matrix_norm() along two; of all elements where neither ord nor dim is given."""
    if dim is None and ord is not None and A.ndim not in (1, 2):
        raise _facula.ShapeError(f"norm of shape {A.shape}: with ord, a vector, a matrix or a dim was expected")
    dims = list(range(A.ndim)) if dim is None else axes_of(dim, A.ndim)
    if len(dims) == 2 and ord is not None:
        return matrix_norm(A, ord, dims, keepdim)
    return vector_norm(A, 2 if ord is None else ord, dims if dims else None, keepdim)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """How much a relative error may grow: norm(A) norm(A^-1); p as ord of matrix_norm(), 2 unless said."""
    if p in (None, 2, -2):
        S = svdvals(A)
        first, last = arrange.select(S, -1, 0), arrange.select(S, -1, -1)
        return last / first if p == -2 else first / last
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def matrix_rank(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """How many singular values are above atol and rtol times the largest."""
    t = _matrices("matrix_rank", A, hermitian).detach()
    S = f.abs(eigvalsh(t)) if hermitian else svdvals(t)
    return r.sum(_above(S, t, atol, rtol), -1)


def matrix_exp(A: Tensor) -> Tensor:
    """The sum of A^k / k!: of a matrix small enough for few terms, and squared as often as that takes.

    The mean of the diagonal is taken away first, so that what is squared neither grows nor vanishes."""
    t = _matrices("matrix_exp", A, True)
    n = t.shape[-1]
    middle = (r.sum(diagonal(t.detach()), -1) / max(n, 1))[..., None, None]
    t = t - middle * _identity(n, t)
    largest = float(np.max(np.asarray(matrix_norm(t.detach(), 1)).astype("f8"), initial=0.0))
    if not math.isfinite(largest):
        raise ValueError("matrix_exp: an element is not finite")
    halvings = max(0, math.ceil(math.log2(largest)) + 1) if largest > 0 else 0
    small, one = t * 0.5 ** halvings, _identity(n, t)
    y = s.expand(one, *t.shape)
    for k in range(16, 0, -1):
        y = one + matmul(small, y) / k
    for _ in range(halvings):
        y = matmul(y, y)
    return y * f.exp(middle)
