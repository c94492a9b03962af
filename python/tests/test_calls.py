"""Few calls where many operators would be recorded one by one: steps of training, formulas as one call, going back in C."""
import gc

import numpy as np
import pytest

import facula as fac
from facula.fused import fuse

nn = fac.nn


def many_layers():
    layers = []
    for k in range(6):
        layers += [nn.Conv2d(3 if k == 0 else 8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


def test_calls_of_a_step():
    """What is recorded for a network of 22 modules and 20 parameters: a call for each, two for a batch norm, one for a gradient."""
    net = many_layers()
    opt = fac.optim.Adam(net.parameters(), 1e-3)
    x, y = fac.randn(2, 3, 8, 8), fac.randint(4, (2,))
    counts = []
    with fac.lazy():
        for _ in range(4):
            before = fac.lazy_stats()["recorded"]
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
            counts.append(fac.lazy_stats()["recorded"] - before)
    assert counts[-1] == counts[-2] <= 70
    assert fac.lazy_stats()["planned"] <= 4 + fac.lazy_stats()["flushes"] - fac.lazy_stats()["hits"]


def test_a_formula_is_one_call(rng):
    a, b = (fac.tensor(rng.standard_normal((3, 2)).astype("f4")) for _ in range(2))
    f = fuse([(fac.float32, (3, 2)), (fac.float32, (3, 2)), (fac.float32, ())], lambda x, y, k: (x * k + y, -x, (y * y).sqrt().maximum(x)))
    for lazy in (False, True):
        with fac.lazy(lazy):
            p, q, r = f(a, b, 0.5)
        assert np.array_equal(np.asarray(p), np.asarray(a) * np.float32(0.5) + np.asarray(b))
        assert np.array_equal(np.asarray(q), -np.asarray(a))
        assert np.array_equal(np.asarray(r), np.maximum(np.abs(np.asarray(b)), np.asarray(a)))
        assert not p.requires_grad and p.grad_fn is None


def test_formulas_say_what_is_wrong():
    f = fuse([(fac.float32, (2,))], lambda x: (x + x,))
    with pytest.raises(TypeError, match="2 inputs, 1 were expected"):
        f(fac.ones(2), fac.ones(2))
    for lazy in (False, True):
        with fac.lazy(lazy), pytest.raises(fac.ShapeError):
            f(fac.ones(3))
    with pytest.raises((TypeError, ValueError)):
        f("two")
    with pytest.raises(ValueError, match="at most 64"):
        fuse([(fac.float32, ())] * 65, lambda *x: x)(*[1.0] * 65)


@pytest.mark.parametrize("lazy", (False, True))
@pytest.mark.parametrize("name, options", [("Adam", {"lr": 0.1, "amsgrad": True}), ("AdamW", {"lr": 0.1}), ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
                                           ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
                                           ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True})])
def test_many_parameters_move_as_each_alone(rng, lazy, name, options):
    """More than one call takes, of two dtypes, some without a gradient in some steps; in float64 to the last bits."""
    sizes = [(3,), (2, 2), (), (5,)] * 12
    values = [rng.standard_normal(s) for s in sizes]
    together = [nn.Parameter(fac.tensor(v, dtype="float32" if i % 5 == 0 else "float64")) for i, v in enumerate(values)]
    alone = [nn.Parameter(fac.tensor(v, dtype="float32" if i % 5 == 0 else "float64")) for i, v in enumerate(values)]
    make = getattr(fac.optim, name)
    one, each = make(together, **options), [make([p], **options) for p in alone]
    for step in range(4):
        grads = [rng.standard_normal(s) for s in sizes]
        with fac.lazy(lazy):
            for k, (p, q, g) in enumerate(zip(together, alone, grads)):
                for x in (p, q):
                    x.grad = None if (k + step) % 7 == 0 else fac.tensor(g, dtype=x.dtype)
            one.step()
            for o in each:
                o.step()
        for p, q in zip(together, alone):
            assert np.array_equal(p.detach().numpy(), q.detach().numpy())
    assert all(np.isfinite(p.detach().numpy()).all() for p in together)


def test_running_statistics_follow(rng):
    torch = pytest.importorskip("torch")
    ours, theirs = nn.BatchNorm2d(3, momentum=0.3), torch.nn.BatchNorm2d(3, momentum=0.3)
    for lazy in (False, True, True):
        x = rng.standard_normal((4, 3, 5, 5)).astype("f4")
        with fac.lazy(lazy):
            ours(fac.tensor(x))
        theirs(torch.tensor(x))
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        assert np.allclose(getattr(ours, name).numpy(), getattr(theirs, name).numpy(), atol=1e-6)


# ---- going back ----

def test_more_results_than_gradients():
    x = fac.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="2 results, but 1 gradients"):
        fac.autograd.backward([x * 2, x * 3], [fac.ones(2)])


def test_gradients_of_values_on_the_way(rng):
    x = fac.tensor(rng.standard_normal(3), requires_grad=True)
    y = x * x
    z = (y * y + y).sum()
    seen = []
    y.register_hook(lambda g: seen.append(g.numpy().copy()))
    dy, dx = fac.autograd.grad(z, [y, x])
    v = x.detach().numpy() ** 2
    assert np.allclose(dy.numpy(), 2 * v + 1) and np.allclose(dx.numpy(), (2 * v + 1) * 2 * x.detach().numpy())
    assert len(seen) == 1 and np.allclose(seen[0], dy.numpy())


def test_hooks_change_gradients_and_may_fail():
    x = fac.ones(2, requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert x.grad.tolist() == [30, 30]
    z = x * 2
    z.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        z.sum().backward()
    (x * 2).sum().backward()                # the next one is as if nothing had been
    assert x.grad.tolist() == [32, 32]


def test_long_chains():
    """Deeper than any stack; what is gone back over is let go on the way."""
    x = y = fac.ones(1, requires_grad=True)
    for _ in range(20000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1]
    del y
    gc.collect()


class Twice(fac.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * 2


class Odd(Twice):
    @staticmethod
    def backward(ctx, dy):
        raise KeyError("odd")


def test_functions_of_pythons_own_between_ours():
    x = fac.ones(3, requires_grad=True)
    y = Twice.apply(x * 3) + x
    (Twice.apply(y) * y).sum().backward()
    assert np.allclose(x.grad.numpy(), 2 * 2 * 7 * 7)
    with pytest.raises(KeyError):
        Odd.apply(x).sum().backward()


def test_labels_are_looked_at():
    logits = fac.zeros(3, 4)
    for dtype in ("int64", "int32", "uint8"):
        fac.nn.functional.cross_entropy(logits, fac.tensor([0, 3, 1], dtype=dtype))
        with pytest.raises(IndexError, match="label 4 of 4 classes"):
            fac.nn.functional.cross_entropy(logits, fac.tensor([0, 4, 1], dtype=dtype))
    with pytest.raises(IndexError, match="label -1 of"):
        fac.nn.functional.cross_entropy(logits, fac.tensor([0, -1, 1]))
    fac.nn.functional.cross_entropy(logits, fac.tensor([0, -1, 1]), ignore_index=-1)
