"""Lazy loops whose sizes grow: what grows by `cat` has room, so a loop is planned a few times and not in each step; whatever else
reads it gets the exact value."""
import numpy as np
import pytest

import facula as fac

F = fac.nn.functional
WIDTH, HEADS = 16, 2


def by_hand(q, k, v):
    s = (q @ k.transpose(-2, -1)) * (1 / (WIDTH // HEADS) ** 0.5)
    return s.softmax(-1) @ v


class Layer(fac.nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.qkv, self.out = fac.nn.Linear(WIDTH, 3 * WIDTH), fac.nn.Linear(WIDTH, WIDTH)
        self.k = self.v = None

    def forward(self, x):
        b, t = x.shape[:2]
        q, k, v = (p.reshape(b, t, HEADS, -1).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        if self.k is not None:
            k, v = fac.cat([self.k, k], 2), fac.cat([self.v, v], 2)
        self.k, self.v = k, v
        return x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(b, t, WIDTH))


def written(attend, lazy, steps, batch=1):
    """Results of each step, and the programs that they needed."""
    fac.manual_seed(3)
    layers, table = [Layer(attend), Layer(attend)], fac.randn(50, WIDTH)
    before, results = fac.lazy_stats()["planned"], []
    with fac.lazy(lazy), fac.no_grad():
        ids = fac.tensor([[3, 1, 4]] * batch)
        for step in range(steps):
            x = table[ids]
            for layer in layers:
                x = layer(x)
            results.append(np.asarray(x[:, -1]))
            ids = fac.tensor([[(7 * step + 2) % 50]] * batch)
        keys = np.asarray(layers[1].k)
    return np.stack(results), keys, fac.lazy_stats()["planned"] - before


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("attend", [F.scaled_dot_product_attention, by_hand], ids=["attention", "by_hand"])
def test_caches_have_room(attend, batch):
    steps = 150
    exact, lazy = written(attend, False, steps, batch), written(attend, True, steps, batch)
    assert np.allclose(exact[0], lazy[0], atol=2e-5) and np.allclose(exact[1], lazy[1], atol=2e-5)
    assert lazy[1].shape == (batch, HEADS, 2 + steps, WIDTH // HEADS)
    assert lazy[2] <= 12, lazy[2]                # 152 sizes; rooms of 64, 128 and 192 rows, weights that come to be states


READERS = {
    "sum": lambda x: x.sum(1),
    "last": lambda x: x[:, -1],
    "whole": lambda x: x,
    "softmax": lambda x: x.softmax(1),
    "softmax across": lambda x: x.softmax(2),
    "exp": lambda x: x.exp().sum(1),
    "product": lambda x: x @ fac.ones(4, 3),
    "of columns": lambda x: fac.ones(2, 5, 4) @ x.mT,
    "summed rows": lambda x: fac.ones(2, 5, x.shape[1]) @ x,
    "squared": lambda x: (x * x).mT @ x,
    "of two": lambda x: x.softmax(1).mT @ x,
    "as many": lambda x: x + fac.ones(*x.shape),
    "beside": lambda x: x * fac.ones(1, 4),
    "flat": lambda x: x.reshape(2, -1),
    "again": lambda x: fac.cat([x, x], 1),
    "elsewhere": lambda x: fac.cat([x, x], 2),
    "largest": lambda x: x.argmax(1),
    "integers": lambda x: x.int().sum(1),
    "halves": lambda x: x.half().float().mT.softmax(-1) @ x,
    "detached": lambda x: x.detach().amax(1),
    "copied": lambda x: x.clone(),
}


@pytest.mark.parametrize("name", READERS)
def test_whatever_reads_it(name, rng):
    parts = [rng.standard_normal((2, n, 4)).astype("f4") for n in (3, 1, 2, 70, 1, 1)]
    x = None
    with fac.lazy():
        for n, part in enumerate(parts):
            x = fac.tensor(part) if x is None else fac.cat([x, fac.tensor(part)], 1)
            y = READERS[name](x)
            whole = np.concatenate(parts[:n + 1], 1)
            assert tuple(y.shape) == tuple(READERS[name](fac.tensor(whole)).shape)
            y = np.asarray(y)
            with fac.lazy(False):
                want = np.asarray(READERS[name](fac.tensor(whole)))
            assert np.allclose(y, want, atol=1e-5)
    assert np.array_equal(np.asarray(x), whole)


def test_infinite_rows_stay_where_they_are():
    with fac.lazy():
        x = fac.full((1, 2, 3), float("inf"))
        for _ in range(3):
            x = fac.cat([x, fac.ones(1, 1, 3)], 1)
            np.asarray(x * 2)
            weights = fac.zeros(1, 1, 3) @ x.mT
            assert np.isnan(np.asarray(weights)[..., :2]).all()


def test_gradients_read_the_exact_value():
    def grads(lazy):
        fac.manual_seed(1)
        w = fac.randn(4, 4, requires_grad=True)
        with fac.lazy(lazy):
            k = None
            for _ in range(4):
                row = fac.randn(1, 2, 1, 4)
                k = row if k is None else fac.cat([k, row], 2)
                loss = F.scaled_dot_product_attention(row @ w, k, k).sum()
                loss.backward()
                float(loss)
        return np.asarray(w.grad)
    assert np.allclose(grads(False), grads(True), atol=1e-5)


def test_errors_name_sizes_that_were_given():
    with fac.lazy():
        x = fac.ones(2, 3)
        for _ in range(3):
            x = fac.cat([x, fac.ones(1, 3)], 0)
            np.asarray(x + 0)
        with pytest.raises(fac.ShapeError, match="5"):
            x.mT + fac.ones(4, 7)
        with pytest.raises(fac.Error):
            fac.cat([x, fac.ones(1, 4)], 0)


def test_parts_of_the_past_stay(rng):
    """A beam goes back to an earlier cache: what came since does not show."""
    with fac.lazy():
        rows = [fac.tensor(rng.standard_normal((1, 1, 2, 4)).astype("f4")) for _ in range(5)]
        x, kept = rows[0], []
        for row in rows[1:]:
            x = fac.cat([x, row], 2)
            kept.append(x)
            np.asarray(F.scaled_dot_product_attention(row, x, x))
        other = fac.cat([kept[1], rows[0]], 2)
        np.asarray(F.scaled_dot_product_attention(rows[0], other, other))
    for n, x in enumerate(kept):
        assert np.array_equal(np.asarray(x), np.concatenate([np.asarray(r) for r in rows[:n + 2]], 2))
    assert np.array_equal(np.asarray(other)[:, :, -2:], np.asarray(rows[0]))
