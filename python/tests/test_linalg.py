"""facula.linalg beside torch.linalg and NumPy: values, gradients, batches, and what is refused."""
import math

import numpy as np
import pytest

import facula as fac

torch = pytest.importorskip("torch")
SHAPES = [(4, 4), (6, 3), (3, 6), (2, 3, 3), (2, 2, 5, 3), (1, 1)]


def both(function, *arrays, near=1e-9):
    """function(package, tensors...) gives one tensor or several: values, and gradients of a sum of waves of them."""
    results = []
    for package in (torch, fac):
        xs = [package.tensor(a, requires_grad=True) for a in arrays]
        ys = function(package, *xs)
        ys = list(ys) if isinstance(ys, (tuple, list)) else [ys]
        loss = sum(package.sin(y * (k + 1) + 0.3).sum() for k, y in enumerate(ys) if y.requires_grad)
        if not isinstance(loss, int):
            loss.backward()
        results.append([y.detach().numpy() for y in ys] + [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in xs])
    assert len(results[0]) == len(results[1])
    for theirs, ours in zip(*results):
        assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
        np.testing.assert_allclose(ours, theirs, rtol=near, atol=near)


def positive(rng, *shape):
    x = rng.standard_normal(shape)
    return x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 3), (2, 2, 4, 4)])
def test_cholesky(rng, shape):
    a = positive(rng, *shape)
    for upper in (False, True):
        both(lambda p, x: p.linalg.cholesky(x, upper=upper), a)
    lower = fac.linalg.cholesky(fac.tensor(a)).numpy()
    np.testing.assert_allclose(lower @ np.swapaxes(lower, -1, -2), a, rtol=1e-12)


@pytest.mark.parametrize("a, b", [((4, 4), (4, 2)), ((4, 4), (4,)), ((2, 3, 3), (2, 3)), ((3, 3), (2, 3, 5)), ((5, 1, 3, 3), (2, 3, 2)), ((1, 1), (1, 0))])
def test_solve(rng, a, b):
    x, y = rng.standard_normal(a) + 3 * np.eye(a[-1]), rng.standard_normal(b)
    both(lambda p, x, y: p.linalg.solve(x, y), x, y)
    if len(b) >= 2 and b[-2] == a[-1] and len(a) == 2:
        both(lambda p, x, y: p.linalg.solve(x, y, left=False), x, np.swapaxes(y, -1, -2).copy())
        for upper in (False, True):
            for ones in (False, True):
                both(lambda p, x, y: p.linalg.solve_triangular(x, y, upper=upper, unitriangular=ones), x, y)
        both(lambda p, x, y: p.linalg.solve_triangular(x, y, upper=True, left=False), x, np.swapaxes(y, -1, -2).copy())
    both(lambda p, x: p.linalg.inv(x), x)


@pytest.mark.parametrize("shape", SHAPES)
def test_qr(rng, shape):
    a = rng.standard_normal(shape)
    both(lambda p, x: p.linalg.qr(x), a)
    with torch.no_grad(), fac.no_grad():
        both(lambda p, x: p.linalg.qr(x, "complete"), a)
        both(lambda p, x: p.linalg.qr(x, "r"), a)
    zeros = np.zeros(shape)
    for y, z in zip(fac.linalg.qr(fac.tensor(zeros)), np.linalg.qr(zeros)):
        np.testing.assert_array_equal(y.numpy(), z)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 4, 4), (40, 40)])
def test_eigenvalues(rng, shape):
    a = positive(rng, *shape)
    both(lambda p, x: p.linalg.eigvalsh(x), a)
    both(lambda p, x: p.linalg.eigh(x).eigenvalues, a)
    both(lambda p, x: (lambda w, v: p.abs(v) * w.unsqueeze(-2))(*p.linalg.eigh(x)), a, near=1e-7)        # signs are free
    w, v = (y.numpy() for y in fac.linalg.eigh(fac.tensor(a)))
    np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=1e-11 * np.abs(w).max())
    np.testing.assert_allclose(np.swapaxes(v, -1, -2) @ v, np.broadcast_to(np.eye(shape[-1]), shape), atol=1e-13)


@pytest.mark.parametrize("a", [np.zeros((3, 3)), np.eye(4), np.diag([2.0, -1, 2, 0]), np.ones((6, 6)), np.diag([1e300, 1e-300, 1]),
                               np.array([[0.0, 1], [1, 0]]), np.diag(np.full(5, 1e-8), 1) + np.diag(np.full(5, 1e-8), -1)])
def test_eigenvalues_that_are_equal_or_far_apart(a):
    w, v = (y.numpy() for y in fac.linalg.eigh(fac.tensor(a)))
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), rtol=1e-12, atol=1e-15 * np.abs(a).max())
    np.testing.assert_allclose(v.T @ v, np.eye(len(a)), atol=1e-13)
    for y, z in zip(fac.linalg.svd(fac.tensor(a)), (None, np.linalg.svd(a)[1], None)):
        if z is not None:
            np.testing.assert_allclose(y.numpy(), z, rtol=1e-12, atol=1e-15 * np.abs(a).max())
    u, s, vh = (y.numpy() for y in fac.linalg.svd(fac.tensor(a)))
    np.testing.assert_allclose((u * s) @ vh, a, rtol=1e-12, atol=1e-14 * np.abs(a).max())
    for q in (u, vh):
        np.testing.assert_allclose(q.T @ q, np.eye(len(a)), atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values(rng, shape):
    a = rng.standard_normal(shape)
    both(lambda p, x: p.linalg.svdvals(x), a)
    both(lambda p, x: (lambda u, s, v: (p.abs(u) * s.unsqueeze(-2), p.abs(v)))(*p.linalg.svd(x, full_matrices=False)), a, near=1e-7)
    u, s, vh = (y.numpy() for y in fac.linalg.svd(fac.tensor(a)))
    k = min(shape[-2:])
    np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, atol=1e-13)
    for q in (u, vh):
        np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape), atol=1e-13)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_matrices_that_lack_rank(rng, rank):
    a = rng.standard_normal((5, rank)) @ rng.standard_normal((rank, 3))
    u, s, vh = (y.numpy() for y in fac.linalg.svd(fac.tensor(a)))
    np.testing.assert_allclose(s, np.linalg.svd(a)[1], atol=1e-13)
    for q in (u, vh):
        np.testing.assert_allclose(q.T @ q, np.eye(len(q)), atol=1e-13)
    both(lambda p, x: p.linalg.matrix_rank(x), a)
    both(lambda p, x: p.linalg.matrix_rank(x, atol=1e-3), a)
    both(lambda p, x: p.linalg.matrix_rank(x, rtol=0.5), a)
    both(lambda p, x: p.linalg.matrix_rank(x, hermitian=True), a @ a.T)
    np.testing.assert_allclose(fac.linalg.pinv(fac.tensor(a)).numpy(), np.linalg.pinv(a), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_pseudoinverses(rng, shape):
    a = rng.standard_normal(shape)
    both(lambda p, x: p.linalg.pinv(x), a, near=1e-8)
    both(lambda p, x: p.pinverse(x), a, near=1e-8)
    b = rng.standard_normal((*shape[:-1], 2))
    both(lambda p, x, y: p.linalg.lstsq(x, y).solution, a, b, near=1e-8)
    got = fac.linalg.lstsq(fac.tensor(a), fac.tensor(b))
    if len(shape) == 2:
        x, residuals, rank, s = np.linalg.lstsq(a, b, None)
        for ours, theirs in zip(got, (x, residuals if shape[0] > shape[1] else np.zeros(0), rank, s)):
            np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 3)])
def test_determinants(rng, shape):
    a = rng.standard_normal(shape)
    both(lambda p, x: p.linalg.det(x), a)
    both(lambda p, x: p.linalg.slogdet(x), a)
    both(lambda p, x: p.slogdet(x), a)
    both(lambda p, x: p.logdet(x), positive(rng, *shape))
    assert math.isnan(float(fac.logdet(fac.tensor([[-1.0]]))))
    for size in (200, 300):                             # whose determinants are beyond f64
        big = rng.standard_normal((size, size)) * 100
        for ours, theirs in zip(fac.linalg.slogdet(fac.tensor(big)), np.linalg.slogdet(big)):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-11)


def test_small_singular_values(rng):
    """atol and rtol, as numbers and for each matrix, and matrices that are told to be symmetric."""
    a = np.linalg.qr(rng.standard_normal((2, 4, 3)))[0] * [1, 0.5, 0.01] @ np.linalg.qr(rng.standard_normal((2, 3, 3)))[0]
    spd = positive(rng, 2, 3, 3)
    each = np.array([0.1, 1e-6])
    for options in ({"atol": 0.1}, {"rtol": 0.1}, {"atol": 1e-6, "rtol": 0.1}, {"atol": 0.0}):
        both(lambda p, x: p.linalg.pinv(x, **options), a, near=1e-7)
        both(lambda p, x: p.linalg.matrix_rank(x, **options), a)
    both(lambda p, x: p.linalg.pinv(x, rtol=p.tensor(each)), a, near=1e-7)
    both(lambda p, x: p.linalg.matrix_rank(x, atol=p.tensor(each)), a)
    for function in ("pinv", "matrix_rank"):
        got = getattr(fac.linalg, function)(fac.tensor(np.tril(spd)), hermitian=True)
        np.testing.assert_allclose(got.numpy(), getattr(torch.linalg, function)(torch.tensor(spd), hermitian=True).numpy(), rtol=1e-9)


def condition(package, x, order):
    """torch's own cond() loses its gradient but for singular values."""
    if package is fac or order in (None, 2, -2):
        return package.linalg.cond(x, order)
    return torch.linalg.matrix_norm(x, order) * torch.linalg.matrix_norm(torch.linalg.inv(x), order)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf])
def test_norms_of_matrices(rng, order):
    a = rng.standard_normal((2, 4, 3))
    both(lambda p, x: p.linalg.norm(x, order, (-2, -1)), a)
    both(lambda p, x: p.linalg.norm(x, order, (1, 0), keepdim=True), a)
    if order is not None:
        both(lambda p, x: p.linalg.matrix_norm(x, order, keepdim=True), a)
        both(lambda p, x: p.linalg.norm(x, order), a[0])
    if order not in ("fro", "nuc"):
        both(lambda p, x: condition(p, x, order), a[:, :3], near=1e-7)


@pytest.mark.parametrize("order", [2, 1, 0, 3, 2.5, math.inf, -math.inf, -1])
def test_norms_of_vectors(rng, order):
    a = rng.standard_normal((3, 4))
    both(lambda p, x: p.linalg.vector_norm(x, order), a)
    both(lambda p, x: p.linalg.vector_norm(x, order, 1, True), a)
    both(lambda p, x: p.linalg.norm(x, order, 0), a)
    both(lambda p, x: p.linalg.norm(x), a)


def test_powers_and_products(rng):
    even = rng.uniform(-0.5, 0.5, (2, 3, 3)) + 2 * np.eye(3)        # whose inverse is not large
    for n in (-3, -1, 0, 1, 5):
        both(lambda p, x: p.linalg.matrix_power(x, n), even)
    a = rng.standard_normal((2, 3, 3)) + 2 * np.eye(3)
    for scale in (0, 0.1, 1):
        both(lambda p, x: (lambda y: y / y.detach().abs().max())(p.linalg.matrix_exp(x)), a[:1] * scale - scale * 3 * np.eye(3), near=1e-8)
    for shift in (-60, 0, 60):          # torch's gradients of such matrices are not exact
        both(lambda p, x: (lambda y: y / y.abs().max())(p.linalg.matrix_exp(x.detach())), a[:1] * 20 + shift * np.eye(3), near=1e-9)
    both(lambda p, x: p.matrix_exp(x * 0.3), a)
    m = [rng.standard_normal(s) for s in ((5, 2), (2, 7), (7, 1), (1, 4))]
    both(lambda p, *xs: p.linalg.multi_dot(xs), *m)
    both(lambda p, *xs: p.linalg.multi_dot(xs), m[0][0], m[1], m[2][:, 0])
    both(lambda p, x, y: p.linalg.cross(x, y), rng.standard_normal((4, 3)), rng.standard_normal((4, 3)))
    both(lambda p, x, y: p.linalg.vecdot(x, y), rng.standard_normal((4, 3)), rng.standard_normal((4, 3)))
    both(lambda p, x, y: p.linalg.matmul(x, y), m[0], m[1])
    both(lambda p, x: p.linalg.diagonal(x, offset=1), a)
    for n in (2, 4):
        both(lambda p, x: p.linalg.vander(x, N=n), rng.standard_normal((2, 3)))
    both(lambda p, x: p.linalg.vander(x), rng.standard_normal(3))


@pytest.mark.parametrize("lazily", [False, True])
def test_slopes(rng, lazily):
    """By central differences, which know nothing of torch."""
    a, square, spd = rng.standard_normal((3, 2)), rng.standard_normal((3, 3)), positive(rng, 3, 3)
    L = fac.linalg
    with fac.lazy(lazily):
        for function, x in ((L.qr, a), (L.qr, a.T.copy()), (L.qr, square), (L.eigh, spd), (L.cholesky, spd), (L.pinv, a), (lambda t: L.slogdet(t).logabsdet, square),
                            (lambda t: L.svd(t, full_matrices=False), a), (lambda t: L.svd(t, full_matrices=False), a.T.copy()),
                            (lambda t: L.solve(t, t[:, :2] * 2), square)):
            assert fac.autograd.gradcheck(function, [fac.tensor(x, requires_grad=True)])


def test_gradients_of_gradients(rng):
    x = fac.tensor(positive(rng, 3, 3), requires_grad=True)
    for f in (lambda t: fac.linalg.inv(t).sum(), lambda t: fac.linalg.cholesky(t).sum(), lambda t: fac.linalg.eigvalsh(t).pow(3).sum(),
              lambda t: fac.linalg.slogdet(t).logabsdet):
        assert fac.autograd.gradcheck(lambda t: fac.autograd.grad(f(t), t, create_graph=True), [x])


def test_what_cannot_be():
    L, ones, eye = fac.linalg, fac.ones(3, 3), fac.eye(3)
    with pytest.raises(fac.ArgumentError, match="matrix 0 is singular"):
        L.solve(ones, ones).numpy()
    with pytest.raises(fac.ArgumentError, match="matrix 1 is singular"):
        np.asarray(L.inv(fac.stack([eye, ones])))
    with pytest.raises(fac.ArgumentError, match="not positive definite: pivot 1"):
        np.asarray(L.cholesky(ones))
    for name in ("eigh", "svd"):
        with pytest.raises(fac.ArgumentError, match="not finite"):
            np.asarray(getattr(L, name)(ones * math.nan)[0])
    for name in ("cholesky", "eigh", "inv", "slogdet", "matrix_exp"):
        with pytest.raises(fac.ShapeError, match="square"):
            getattr(L, name)(fac.ones(2, 3))
    for name in ("cholesky", "svd", "qr", "eigvalsh", "pinv"):
        with pytest.raises(fac.DtypeError, match="floats"):
            getattr(L, name)(fac.ones(2, 2, dtype="int64"))
    for name, why in (("eig", "complex"), ("lu_factor", "solve"), ("nonsense", "has no nonsense")):
        with pytest.raises(AttributeError, match=why):
            getattr(L, name)
    with pytest.raises(ValueError, match="reduced"):
        L.qr(eye, "full")
    with pytest.raises(ValueError, match="nuc"):
        L.matrix_norm(eye, 3)
    with pytest.raises(fac.ShapeError, match="as many rows"):
        L.solve(eye, fac.ones(2, 2))
    with pytest.raises(fac.UnsupportedError, match="complete"):
        x = fac.ones(3, 2).requires_grad_()
        L.qr(x, "complete").Q.sum().backward()
