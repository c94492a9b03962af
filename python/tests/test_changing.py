"""What changes from call to call is an operand: a loop over places plans once, gives what NumPy gives, and has the gradient."""
import numpy as np
import pytest

import facula as fac
from facula import changing

TURNS = 40
CUTS = {"row": lambda x, t: x[t], "column": lambda x, t: x[:, t], "element": lambda x, t: x[t, t], "from the end": lambda x, t: x[-1 - t],
        "rows": lambda x, t: x[t:t + 3], "every other": lambda x, t: x[t:t + 5:2], "part of a row": lambda x, t: x[t, 2:7],
        "a new dim": lambda x, t: x[None, t, ..., None]}
BACK = {"backwards": (lambda x, t: fac.flip(x[t:t + 5], 0) if isinstance(x, fac.Tensor) else x[t:t + 5][::-1]),
        "a step back": lambda x, t: x[t + 5:t:-1], "to the start": lambda x, t: x[5::-1, t]}
NAMED = {"narrow": (lambda x, t: fac.narrow(x, 0, t, 2), lambda x, t: x[t:t + 2]),
         "select": (lambda x, t: fac.select(x, 1, t), lambda x, t: x[:, t]),
         "roll": (lambda x, t: fac.roll(x, t, 1), lambda x, t: np.roll(x, t, 1)),
         "roll of all": (lambda x, t: fac.roll(x, -3 * t), lambda x, t: np.roll(x, -3 * t)),
         "tril": (lambda x, t: fac.tril(x, t - 20), lambda x, t: np.tril(x, t - 20)),
         "triu": (lambda x, t: fac.triu(x, t - 20), lambda x, t: np.triu(x, t - 20)),
         "kthvalue": (lambda x, t: fac.kthvalue(x, t + 1)[0], lambda x, t: np.sort(x, -1)[:, t]),
         "quantile": (lambda x, t: fac.quantile(x, (t + 0.25) / 44, 1, interpolation="lower"), lambda x, t: np.sort(x, -1)[:, t])}
ALL = {**{n: (f, f) for n, f in {**CUTS, **BACK}.items()}, **NAMED}


@pytest.fixture(autouse=True)
def forgotten():
    changing._forms.clear()


def planned(lazily):
    return fac.lazy_stats()["planned"] if lazily else fac._facula.cache_info()["made"]


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_one_plan(rng, name, lazily):
    mine, numpys = ALL[name]
    a = rng.standard_normal((46, 45)).astype("f4")
    x = fac.tensor(a)
    at = []
    with fac.lazy(lazily):
        for t in range(TURNS):
            want = numpys(a, t)
            got = np.asarray(mine(x, t))
            assert got.shape == want.shape and np.array_equal(got, want), t
            at.append(planned(lazily))
    late = at[-1] - at[changing.MOST + 4]
    assert late <= 1, f"{late} plans in the last turns"


@pytest.mark.parametrize("lazily", [False, True])
def test_gradients(rng, lazily):
    a = rng.standard_normal((30, 6)).astype("f4")
    w = fac.tensor(a, requires_grad=True)
    with fac.lazy(lazily):
        for t in range(25):
            w.grad = None
            (w[t:t + 2, 1:4] * float(t + 1)).sum().backward()
            want = np.zeros_like(a)
            want[t:t + 2, 1:4] = t + 1
            assert np.array_equal(np.asarray(w.grad), want)
            if t == 14:
                before = planned(lazily)
    assert planned(lazily) - before <= 1


def test_places_that_come_again_stay_slices(rng):
    """Three parts of a row in every step, and the rows of an unrolled loop, are no change."""
    x = fac.tensor(rng.standard_normal((4, 96)).astype("f4"))
    for _ in range(30):
        for k in range(3):
            np.asarray(x[:, 32 * k:32 * k + 32])
    assert not any(f.turns > changing.MOST for f in changing._forms.values())
    with fac.lazy():
        for _ in range(12):
            y = x[:, 0]
            for k in range(1, 60):
                y = y + x[:, k]
            np.asarray(y)
    assert not any(f.turns > changing.MOST for f in changing._forms.values())


def test_a_traced_graph_has_slices(rng, tmp_path):
    x = fac.tensor(rng.standard_normal((20, 4)).astype("f4"))
    for t in range(15):
        np.asarray(x[t])

    class Third(fac.nn.Module):
        def forward(self, v):
            return v[3]
    text = fac.trace(Third(), (20, 4)).text()
    assert "slice" in text and "gather" not in text


def test_forms_are_forgotten():
    changing._forms.update({(k,): changing._Form((0,)) for k in range(changing.KEPT)})
    np.asarray(fac.ones(3)[1])
    assert len(changing._forms) == 1


# ---- attributes

F = fac.nn.functional


def expm1_of(x, by):
    return np.expm1(np.minimum(x, 0) / by)


ATTRIBUTES = {"leaky_relu": (F.leaky_relu, lambda x, s: np.where(x < 0, x * s, x)),
              "elu": (F.elu, lambda x, a: np.where(x < 0, a * expm1_of(x, 1), x)),
              "celu": (F.celu, lambda x, a: np.where(x < 0, a * expm1_of(x, a), x))}


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes(rng, name, lazily):
    mine, numpys = ATTRIBUTES[name]
    a = np.concatenate([rng.standard_normal(40) * 3, [200.0, -200.0, np.inf, -np.inf, np.nan, 0.0]])
    at = []
    with fac.lazy(lazily):
        for t in range(TURNS):
            x = fac.tensor(a, requires_grad=True)
            y = mine(x, 0.1 + t / 64)
            y.sum().backward()
            assert np.allclose(np.asarray(y.detach()), numpys(a, 0.1 + t / 64), rtol=1e-12, atol=1e-12, equal_nan=True)
            h = 1e-6
            with np.errstate(invalid="ignore"):
                slope = (numpys(a + h, 0.1 + t / 64) - numpys(a - h, 0.1 + t / 64)) / (2 * h)
            inner = np.isfinite(a) & (a != 0)
            assert np.allclose(np.asarray(x.grad)[inner], slope[inner], rtol=1e-4, atol=1e-6)
            at.append(planned(lazily))
    assert at[-1] - at[changing.MOST + 4] <= 1


@pytest.mark.parametrize("lazily", [False, True])
def test_shares_of_dropout(lazily):
    fac.manual_seed(3)
    x = fac.ones(20000, requires_grad=True)
    at = []
    with fac.lazy(lazily):
        for t in range(TURNS):
            p = 0.1 + t / 100
            x.grad = None
            y = F.dropout(x, p)
            y.sum().backward()
            got = np.asarray(y.detach())
            assert np.all((got == 0) | (np.abs(got - 1 / (1 - p)) < 1e-6)) and abs((got == 0).mean() - p) < 0.02
            assert np.array_equal(np.asarray(x.grad), got)
            at.append(planned(lazily))
    assert at[-1] - at[changing.MOST + 4] <= 1


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_shares_of_smoothing(rng, reduction, lazily):
    torch = pytest.importorskip("torch")
    a, labels = rng.standard_normal((6, 5)), [0, 4, -100, 2, 2, 1]
    at = []
    with fac.lazy(lazily):
        for t in range(TURNS):
            share = 0.01 + t / 100
            x = fac.tensor(a, requires_grad=True)
            z = torch.tensor(a, requires_grad=True)
            mine = F.cross_entropy(x, fac.tensor(labels), reduction=reduction, label_smoothing=share)
            theirs = torch.nn.functional.cross_entropy(z, torch.tensor(labels), reduction=reduction, label_smoothing=share)
            mine.sum().backward()
            theirs.sum().backward()
            assert np.allclose(np.asarray(mine.detach()), theirs.detach().numpy(), atol=1e-12)
            assert np.allclose(np.asarray(x.grad), z.grad.numpy(), atol=1e-12)
            at.append(planned(lazily))
    assert at[-1] - at[changing.MOST + 4] <= 1


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("falling", [False, True])
def test_momentum_of_batch_norms(rng, falling, lazily):
    """None: the mean of all batches.  falling: a schedule of it."""
    torch = pytest.importorskip("torch")
    mine, theirs = fac.nn.BatchNorm2d(3, momentum=None), torch.nn.BatchNorm2d(3, momentum=None)
    at = []
    with fac.lazy(lazily):
        for t in range(TURNS):
            if falling:
                mine.momentum = theirs.momentum = 0.5 / (1 + t)
            a = rng.standard_normal((2, 3, 4, 4)).astype("f4") + t
            y = mine(fac.tensor(a))
            z = theirs(torch.tensor(a))
            assert np.allclose(np.asarray(y.detach()), z.detach().numpy(), atol=1e-5)
            if t % 8 == 7:
                assert np.allclose(mine.running_mean.numpy(), theirs.running_mean.numpy(), rtol=1e-5)
                assert np.allclose(mine.running_var.numpy(), theirs.running_var.numpy(), rtol=1e-4)
            at.append(planned(lazily))
    assert at[-1] - at[changing.MOST + 9] <= 1
