"""Homework 1 and 2 of CMU's 10-414: the course's own tests where they are found (FACULA_NEEDLE is a folder with hw1 and hw2, each
with `tests`, and MNIST in `data`), on a package shaped as needle over facula; and what they promise restated."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import facula as fac

here = pathlib.Path(__file__).parent / "needle"


@pytest.fixture(scope="module")
def ndl():
    sys.path.insert(0, str(here))
    import needle
    yield needle
    sys.path.remove(str(here))


@pytest.mark.parametrize("homework", ["hw1", "hw2"])
def test_the_suite_of_the_course(homework):
    folder = os.path.join(os.environ.get("FACULA_NEEDLE", "/nowhere"), homework)
    if not os.path.isdir(os.path.join(folder, "tests")):
        pytest.skip("the course's tests are not here (FACULA_NEEDLE)")
    package = str(pathlib.Path(fac.__file__).parents[1])
    path = os.pathsep.join([package, str(here), str(here / "apps"), str(here / "stub")])
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], cwd=folder, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout[-4000:]


BINARY = {"add": lambda a, b: a + b, "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b, "power": lambda a, b: a ** b}
UNARY = {"negate": lambda a: -a, "log": np.log, "exp": np.exp, "relu": lambda a: np.maximum(a, 0)}


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_ops(ndl, rng, name):
    a, b = rng.random((3, 4)) + 0.5, rng.random((3, 4)) + 0.5
    want = BINARY[name](a, b) if name in BINARY else UNARY[name](a)
    given = [ndl.Tensor(v) for v in ((a, b) if name in BINARY else (a,))]
    out = getattr(ndl, name)(*given)
    assert np.allclose(out.numpy(), want)
    for k, got in enumerate(out.op.gradient_as_tuple(ndl.Tensor(np.ones(out.shape)), out)):
        moved = [v.numpy() for v in given]
        moved[k] = moved[k] + 1e-6
        f = BINARY.get(name) or UNARY[name]
        assert np.allclose(got.numpy(), (f(*moved) - want) / 1e-6, atol=1e-4)


def test_order_and_second_gradients(ndl):
    x, y = ndl.Tensor([6]), ndl.Tensor([0])
    z = x * x + x * y
    order = ndl.autograd.find_topo_sort([z])
    assert order[0] is x and order[-1] is z and len(order) == 5
    z.backward()
    first = x.grad
    assert first.numpy() == 12 and y.grad.numpy() == 6
    first.backward()
    assert x.grad.numpy() == 2 and y.grad.numpy() == 1


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_layers_learn(ndl, optimizer):
    np.random.seed(3)
    nn = ndl.nn
    net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Residual(nn.Linear(16, 16)), nn.LayerNorm1d(16), nn.Dropout(0.1),
                        nn.Linear(16, 3))
    x, y = np.random.randn(64, 4).astype("f4"), np.random.randint(3, size=64)
    opt = getattr(ndl.optim, optimizer)(net.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        loss = nn.SoftmaxLoss()(net(ndl.Tensor(x)), ndl.Tensor(y))
        opt.reset_grad()
        loss.backward()
        opt.step()
        losses.append(float(loss.numpy()))
    assert losses[-1] < 0.7 * losses[0] and len(net.parameters()) == 10
    net.eval()
    assert not net.modules[1].training and not net.modules[3].fn.training
