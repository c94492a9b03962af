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
