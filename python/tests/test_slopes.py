"""Slopes where functions jump, bend or have no number: as PyTorch's, and those of all that stays between jumps are zeros."""
import math

import numpy as np
import pytest

import facula as fac
from facula import array_api as xp
from facula.nn import functional as F

NAN, INF = math.nan, math.inf
VALUES = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, -3.0, 6.0, 20.0]
PAIRS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -2.5, 0.5, 2.0]
FLAT = ["round", "sign", "floor", "ceil", "trunc", "fix"]


def slope(function, *columns, lib=fac, dtype="float32"):
    """The values, and what an incoming gradient of 2 becomes for each input."""
    xs = [lib.tensor(np.array(c, dtype)) for c in columns]
    for x in xs:
        x.requires_grad_(True)
    y = function(*xs)
    assert y.requires_grad
    y.backward(lib.full_like(y.detach(), 2))
    return np.asarray(y.detach()), [np.asarray(x.grad) for x in xs]


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("lazily", [False, True])
def test_what_jumps_has_zeros(name, lazily):
    with fac.lazy(lazily):
        got = slope(getattr(fac, name), VALUES)[1][0]
    assert np.array_equal(got, np.zeros(len(VALUES))) and got.dtype == np.float32
    assert not getattr(fac, name)(fac.tensor(VALUES)).requires_grad
    assert not fac.tensor([1.5], requires_grad=True).floor().detach().requires_grad


def test_zeros_of_a_gradient_that_is_none():
    """What comes in does not matter, not even NaN."""
    x = fac.tensor([1.5, -0.5], requires_grad=True)
    x.round().backward(fac.tensor([NAN, INF]))
    assert x.grad.tolist() == [0, 0]
    for mode in ("trunc", "floor"):
        a, b = fac.tensor([1.0, INF, NAN, 3.0], requires_grad=True), fac.tensor([0.0, 2.0, 1.0, INF], requires_grad=True)
        fac.div(a, b, rounding_mode=mode).sum().backward()
        assert a.grad.tolist() == b.grad.tolist() == [0, 0, 0, 0]
    wide, one = fac.ones(2, 3).requires_grad_(True), fac.ones(3).requires_grad_(True)
    fac.div(wide, one, rounding_mode="floor").sum().backward()
    assert wide.grad.shape == (2, 3) and one.grad.tolist() == [0, 0, 0]


def test_random_numbers_have_zeros():
    p, s = fac.tensor([0.5, 0.25], requires_grad=True), fac.tensor(2.0, requires_grad=True)
    for y, of in ((fac.bernoulli(p), [p]), (fac.normal(p, s), [p, s]), (fac.normal(0.0, s, (3,)), [s]), (p.bernoulli(), [p])):
        p.grad = s.grad = None
        y.sum().backward()
        assert all(x.grad.shape == x.shape and not np.asarray(x.grad).any() for x in of)
    assert not fac.bernoulli(p.detach()).requires_grad and not fac.normal(0.0, 1.0, (2,)).requires_grad


def test_comparisons_have_no_history():
    x = fac.tensor([1.0, 2.0], requires_grad=True)
    for y in (x < 1, x == x, x != 1, x >= 1, x.isnan(), x.isinf(), x.isfinite(), x.signbit(), x.argmax(), x.argsort(), x.bool(), x.logical_not(), x // 1):
        assert not y.requires_grad


def test_signs():
    assert fac.sign(fac.tensor([NAN, -2.0, 0.0, INF])).tolist() == [0, -1, 0, 1]
    assert math.isnan(xp.sign(xp.asarray([NAN]))[0].item()) and fac.sign(fac.tensor([-3, 0])).tolist() == [-1, 0]


def test_slopes_of_no_number():
    none = [NAN]
    for function, want in ((fac.relu, 2), (fac.abs, 0), (F.relu6, 2), (F.hardtanh, 2), (F.hardswish, 2), (F.selu, 2 * 1.0507009873554805),
                           (F.leaky_relu, 0.02), (F.elu, 2), (F.celu, 2), (F.softshrink, 2), (fac.frac, 2), (fac.nan_to_num, 0)):
        got = slope(function, none)[1][0]
        assert np.allclose(got, want), (function, got)


def test_slopes_at_bends():
    for function, at, want in ((F.relu6, [0, 6, 3, 7], [0, 0, 2, 0]), (F.hardtanh, [-1, 1, 0, 2], [0, 0, 2, 0]), (F.leaky_relu, [0, 1], [0.02, 2]),
                               (lambda x: F.elu(x, 2.0), [0, 1], [4, 2]), (F.softshrink, [0.5, -0.5, 1], [0, 0, 2]), (F.hardsigmoid, [-3, 3], [0, 0])):
        assert np.allclose(slope(function, at)[1][0], want), function


def test_how_remainders_change_with_the_divisor():
    a, b = [1.0, -1.0, 2.5, -2.5, 1.0, 5.0], [-INF, INF, INF, -INF, 0.0, 2.0]
    assert np.array_equal(slope(fac.remainder, a, b)[1][1], [2, 2, 0, 0, -INF, -4])
    assert np.array_equal(slope(fac.fmod, a, b)[1][1], [0, 0, 0, 0, -INF, -4])
    assert (fac.tensor([1.0, -1.0, 2.5, 0.0]) // fac.tensor([-INF, INF, INF, -INF])).tolist() == [-1, -1, 0, 0]


def test_an_exported_activation_is_one_op(tmp_path):
    """The surrogate of a gradient is no part of a model."""
    graph = fac.trace(F.relu6, (2, 3))
    text = graph.text()
    assert text.count("clip(") == 1 and "surrogate" not in text and "where" not in text


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_neighbours(dtype):
    at, to = [1.0, 1.0, 0.0, 0.0, -1.0, 2.0, 2.0, NAN, INF, -0.0], [2.0, 0.0, 1.0, -1.0, -2.0, 2.0, -INF, 1.0, 0.0, 0.0]
    got = fac.nextafter(fac.tensor(at).to(dtype), fac.tensor(to).to(dtype))
    assert got.dtype is fac.dtypes.find(dtype)
    if dtype != "bfloat16":
        assert np.array_equal(np.asarray(got), np.nextafter(np.array(at, dtype), np.array(to, dtype)), equal_nan=True)
    eps = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -23, "float64": 2.0 ** -52}[dtype]
    assert got[0].item() == 1 + eps and got[1].item() == 1 - eps / 2 and got[4].item() == -1 - eps and got[2].item() == -got[3].item() > 0
    y, (da, db) = slope(fac.nextafter, [1.0, 2.0], [3.0, 2.0])
    assert da.tolist() == [2, 0] and db.tolist() == [0, 0]


# ---- beside PyTorch ----

# what differs on purpose: (function, input) -> where; ours is the limit, or a number where PyTorch has none
BETTER = {"softsign": lambda x: np.isinf(x), "gelu": lambda x: np.isinf(x),
          "clamp": lambda x: np.abs(x) == 1,                       # the whole slope at its bounds, as PyTorch before 2.15
          "copysign": lambda x, y: np.isinf(x), "hypot": lambda x, y: (x == 0) & (y == 0), "logaddexp": lambda x, y: np.isinf(x) & (x == y),
          "xlogy": lambda x, y: (x == 0) & ((y == 0) | np.isinf(y)),
          "div_floor": lambda x, y: np.isinf(x)}                  # the array API's inf // 1 is inf

ONE = {n: (lambda lib, x, n=n: getattr(lib, n)(x)) for n in
       FLAT + "frac abs relu nan_to_num sqrt exp log log1p reciprocal sinc square tanh sigmoid erf atan".split()}
ACTIVATIONS = "relu6 hardtanh hardsigmoid hardswish elu selu celu leaky_relu softsign softshrink tanhshrink softplus mish silu gelu logsigmoid".split()
ONE |= {n: (lambda lib, x, n=n: getattr(lib.nn.functional, n)(x)) for n in ACTIVATIONS}
ONE |= {"decimals": lambda lib, x: lib.round(x, decimals=1), "clamp": lambda lib, x: lib.clamp(x, -1, 1),
        "threshold": lambda lib, x: lib.nn.functional.threshold(x, 0.5, 2.0), "elu2": lambda lib, x: lib.nn.functional.elu(x, 2.0)}
TWO = {n: (lambda lib, x, y, n=n: getattr(lib, n)(x, y)) for n in
       "remainder fmod copysign maximum minimum fmax fmin hypot atan2 xlogy pow logaddexp ldexp nextafter mul div".split()}
TWO |= {f"div_{m}": (lambda lib, x, y, m=m: lib.div(x, y, rounding_mode=m)) for m in ("trunc", "floor")}


def compared(name, function, columns):
    torch = pytest.importorskip("torch")
    given = [np.array(c, "f4") for c in columns]
    with np.errstate(invalid="ignore"):
        looked_at = ~BETTER[name](*given) if name in BETTER else np.ones(len(given[0]), bool)
    mine, theirs = slope(lambda *x: function(fac, *x), *columns), slope(lambda *x: function(torch, *x), *columns, lib=torch)
    for what, a, b in [("value", mine[0], theirs[0]), *[(f"slope {k}", a, b) for k, (a, b) in enumerate(zip(mine[1], theirs[1]))]]:
        bad = looked_at & ~np.isclose(a, b, 1e-5, 1e-6, equal_nan=True)
        assert not bad.any(), [(what, *(c[i] for c in given), a[i], b[i]) for i in np.nonzero(bad)[0]]


@pytest.mark.parametrize("name", ONE)
def test_slopes_of_one_beside_torch(name):
    compared(name, ONE[name], [VALUES])


@pytest.mark.parametrize("name", TWO)
def test_slopes_of_two_beside_torch(name):
    compared(name, TWO[name], [[a for a in PAIRS for _ in PAIRS], PAIRS * len(PAIRS)])
