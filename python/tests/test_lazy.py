"""Lazy calls give what eager ones give, and a step that repeats is found again.  The tests of tensors, gradients and modules run
once more with FACULA_LAZY=1."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import facula as fac

nn = fac.nn


def lenet():
    return nn.Sequential(nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(784, 10))


def recurrent():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = nn.LSTM(28, 8, batch_first=True), nn.Linear(8, 10)

        def forward(self, x):
            return self.out(self.rnn(x.squeeze(1))[0][:, -1])
    return Last()


OPTIMIZERS = [lambda p: fac.optim.SGD(p, 0.05, momentum=0.9), lambda p: fac.optim.Adam(p, 1e-3), lambda p: fac.optim.RMSprop(p, 1e-3)]


def losses_of(make, optimizer, lazy, steps=8):
    fac.manual_seed(5)
    net = make()
    opt = optimizer(net.parameters())
    x, y = fac.randn(8, 1, 28, 28), fac.randint(10, (8,))
    losses = []
    with fac.lazy(lazy):
        for _ in range(steps):
            loss = net.loss(x, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.detach())
    return np.array([float(v) for v in losses]), net.state_dict()


@pytest.mark.parametrize("make", [lenet, recurrent])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=["sgd", "adam", "rmsprop"])
def test_training_both_ways(make, optimizer):
    a, b = losses_of(make, optimizer, False), losses_of(make, optimizer, True)
    assert a[0][-1] < a[0][0] and np.allclose(a[0], b[0], atol=1e-4)
    assert all(np.allclose(a[1][k], b[1][k], atol=1e-3) for k in a[1])


def test_a_step_that_repeats_is_found_again():
    losses_of(lenet, OPTIMIZERS[0], True, 6)
    before = fac.lazy_stats()
    losses_of(lenet, OPTIMIZERS[0], True, 20)
    after = fac.lazy_stats()
    assert after["hits"] - before["hits"] >= 12


def test_values_come_when_somebody_looks(rng):
    a = rng.standard_normal((3, 3)).astype("f4")
    with fac.lazy():
        x = fac.tensor(a)
        y = (x @ x).relu() + 1
        assert y.shape == (3, 3) and y.dtype is fac.float32 and fac.lazy_stats()["pending"] > 0
        assert np.allclose(np.asarray(y), np.maximum(a @ a, 0) + 1, atol=1e-5)
        with pytest.raises(fac.ShapeError):
            x @ fac.ones(2, 2)
        x[0] = 5.0
        assert x[0].tolist() == [5, 5, 5]
        z = x * 2
    assert np.allclose(z[0], 10) and not fac.is_lazy()


@pytest.mark.skipif(bool(os.environ.get("FACULA_LAZY")), reason="this is that run")
def test_everything_lazily():
    here = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(pathlib.Path(fac.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    files = [str(here / f"test_{n}.py") for n in ("tensor", "autograd", "nn")]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not second and not types and not torch", *files],
                          text=True, capture_output=True, env={**os.environ, "FACULA_LAZY": "1", "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout[-4000:]
