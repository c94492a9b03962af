"""Windows, areas, choices and matrices beside PyTorch's, with their gradients."""
import numpy as np
import pytest

import facula as fac

torch = pytest.importorskip("torch")


def beside(function, *arrays):
    both = []
    for package in (torch, fac):
        xs = [package.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        y = function(package, *xs)
        if y.requires_grad:
            (y * y).sum().backward()
        both.append([y.detach().numpy(), *[x.grad.numpy() for x in xs if x.grad is not None]])
    assert len(both[0]) == len(both[1])
    for theirs, ours in zip(*both):
        assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["hann_window", "hamming_window", "blackman_window", "bartlett_window"])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 16])
def test_windows(name, periodic, n):
    beside(lambda package: getattr(package, name)(n, periodic))


def test_numbers_evenly_apart_in_powers():
    beside(lambda package: package.logspace(-2, 3, 6))
    beside(lambda package: package.logspace(0, 4, 5, 2.0))


@pytest.mark.parametrize("name", ["trapezoid", "trapz", "cumulative_trapezoid"])
def test_areas(rng, name):
    y, x = rng.standard_normal((3, 5)).astype("f4"), np.sort(rng.standard_normal(5)).astype("f4")
    beside(lambda package, y: getattr(package, name)(y), y)
    beside(lambda package, y: getattr(package, name)(y, dx=0.5, dim=0), y)
    beside(lambda package, y, x: getattr(package, name)(y, x), y, x)
    beside(lambda package, y, x: getattr(package, name)(y, x, dim=1), y, np.stack([x, 2 * x, x * x]))
    beside(lambda package, y, x: getattr(package, name)(y, x, dim=0), y, x[:3])
    with pytest.raises(fac.ShapeError, match="5 values at 4 places"):
        getattr(fac, name)(fac.tensor(y), fac.tensor(x[:4]))


def test_choices(rng):
    x = rng.standard_normal(5).astype("f4")
    for r in (1, 2, 3, 6):
        beside(lambda package, x, r=r: package.combinations(x, r), x)
    beside(lambda package, x: package.combinations(x, with_replacement=True), x)
    assert fac.combinations(fac.tensor(x), 0).shape == (0,)
    with pytest.raises(fac.ShapeError, match="a vector"):
        fac.combinations(fac.ones(2, 2))


def test_divisors():
    a, b = np.array([12, 0, -8, 7, 0]), np.array([18, 5, 12, 1, 0])
    for name in ("gcd", "lcm"):
        beside(lambda package, a, b, name=name: getattr(package, name)(a, b), a, b)
        beside(lambda package, a, b, name=name: getattr(a, name)(b), a.astype("i4"), b)
        with pytest.raises(fac.DtypeError, match="integers"):
            getattr(fac, name)(fac.ones(2), fac.ones(2))


def test_matrices(rng):
    x = rng.standard_normal((2, 3, 3)).astype("f4") + 3 * np.eye(3, dtype="f4")
    beside(lambda package, x: package.det(x), x)
    beside(lambda package, x: package.inverse(x), x)
    for name in ("det", "inverse"):
        with pytest.raises(fac.ShapeError, match="square"):
            getattr(fac, name)(fac.ones(2, 3))


def test_sums_of_powers_and_shorter_parts(rng):
    a, b = rng.standard_normal((2, 4, 3)).astype("f4")
    beside(lambda package, a, b: package.logaddexp2(a, b), a, b)
    for p in (1, 2, 3.5):
        beside(lambda package, a, p=p: package.renorm(a, p, 0, 1.5), a)
        beside(lambda package, a, p=p: a.renorm(p, 1, 0.7), a)
