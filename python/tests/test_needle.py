"""Homework 1 to 4 of CMU's 10-414: the course's own tests where they are found (FACULA_NEEDLE is a folder with hw1, hw2, hw3, hw4 and
hw4_extra, each with `tests`; MNIST, CIFAR-10 and PTB in `data`), on a package shaped as needle over facula; and what they promise
restated."""
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


DATA = {"data/cifar-10-batches-py": "cifar10", "data/ptb": "ptb or language_model_training"}


@pytest.mark.parametrize("homework", ["hw1", "hw2", "hw3", "hw4", "hw4_extra"])
def test_the_suite_of_the_course(homework):
    folder = os.path.join(os.environ.get("FACULA_NEEDLE", "/nowhere"), homework)
    if not os.path.isdir(os.path.join(folder, "tests")):
        pytest.skip("the course's tests are not here (FACULA_NEEDLE)")
    package = str(pathlib.Path(fac.__file__).parents[1])
    path = os.pathsep.join([package, str(here), str(here / "apps"), str(here / "stub")])
    missing = [names for data, names in DATA.items() if not os.path.exists(os.path.join(folder, data))]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", "-k", f"not ({' or '.join(missing) or 'none'})"],
                          cwd=folder, text=True, capture_output=True, env={**os.environ, "PYTHONPATH": path})
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


def test_arrays_are_windows(ndl, rng):
    """What homework 3 asks of an NDArray: strides, one memory, writes in place."""
    a = rng.standard_normal((4, 5, 6)).astype("f4")
    x = ndl.backend_ndarray.array(a)
    for mine, numpys in ((x.permute((2, 0, 1)), a.transpose(2, 0, 1)), (x.reshape((20, 6)), a.reshape(20, 6)), (x[1:4:2, 2:5, :3], a[1:4:2, 2:5, :3]),
                         (x[0:1, 0:5, 2:3].broadcast_to((3, 5, 7)), np.broadcast_to(a[0:1, :, 2:3], (3, 5, 7)))):
        assert mine._handle.ptr() == x._handle.ptr() and mine.strides == tuple(s // 4 for s in numpys.strides)
        assert np.array_equal(mine.numpy(), numpys) and np.array_equal(mine.compact().numpy(), numpys) and mine.compact().is_compact()
    x[1:3, 2, ::2] = 7.0
    a[1:3, 2, ::2] = 7.0
    assert np.array_equal(x.numpy(), a)
    assert np.allclose((x.permute((0, 2, 1))[1:2, 0:6, 0:5].reshape((6, 5)) @ x[0:1, 0:5, 0:6].reshape((5, 6))).numpy(), a[1].T @ a[0], atol=1e-5)


@pytest.mark.parametrize("kind", ["rnn", "lstm", "transformer"])
def test_a_language_model_learns(ndl, kind):
    np.random.seed(5)
    sys.path.insert(0, str(here))
    from apps.models import LanguageModel
    model = LanguageModel(8, 5, 8, 2, kind, seq_len=6)
    text = np.arange(24).reshape(6, 4) % 5
    opt = ndl.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(15):
        y, _ = model(ndl.Tensor(text, requires_grad=False))
        loss = ndl.nn.SoftmaxLoss()(y, ndl.Tensor((text.reshape(-1) + 1) % 5, requires_grad=False))
        opt.reset_grad()
        loss.backward()
        assert all(p.grad is not None for p in model.parameters())
        opt.step()
        losses.append(float(loss.numpy()))
    assert losses[-1] < 0.6 * losses[0]


def test_images(ndl, rng):
    """Convolutions with channels last, and zeros between the slices of their gradient."""
    x, w = ndl.Tensor(rng.standard_normal((2, 7, 7, 3))), ndl.Tensor(rng.standard_normal((3, 3, 3, 4)))
    y = ndl.conv(x, w, stride=2, padding=1)
    want = np.zeros((2, 4, 4, 4))
    wide = np.pad(x.numpy(), ((0, 0), (1, 1), (1, 1), (0, 0)))
    for i in range(4):
        for j in range(4):
            want[:, i, j] = np.einsum("nhwc,hwco->no", wide[:, 2 * i:2 * i + 3, 2 * j:2 * j + 3], w.numpy())
    assert np.allclose(y.numpy(), want)
    y.sum().backward()
    assert x.grad.shape == x.shape and w.grad.shape == w.shape
    d = ndl.dilate(y, (1, 2), 1).numpy()
    assert d.shape == (2, 8, 8, 4) and np.array_equal(d[:, ::2, ::2], y.numpy()) and not d[:, 1::2].any()
    assert np.array_equal(ndl.flip(y, (1,)).numpy(), y.numpy()[:, ::-1])
