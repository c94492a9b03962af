"""A package shaped as MiniTorch over facula: the course's own tests where they are found (FACULA_MINITORCH is a folder that
holds them as `tests`), and what they promise restated."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

import facula as fac

here = pathlib.Path(__file__).parent / "minitorch"


@pytest.fixture(scope="module")
def mt():
    sys.path.insert(0, str(here))
    import minitorch
    yield minitorch
    sys.path.remove(str(here))


STUBS = {"test_sigmoid", "test_transitive", "test_symmetric", "test_distribute", "test_other", "test_sum_distribute", "test_max"}


def run_suite(what, **env):
    """The course's tests `what`: how many passed, and which failed."""
    folder = os.environ.get("FACULA_MINITORCH") or os.path.join(os.environ.get("FACULA_DATA", "/nowhere"), "minitorch")
    if not os.path.isdir(os.path.join(folder, "tests")):
        pytest.skip("MiniTorch's tests are not here (FACULA_MINITORCH)")
    pytest.importorskip("hypothesis")
    package = str(pathlib.Path(fac.__file__).parents[1])
    path = os.pathsep.join([package, str(here), str(here / "stub")])
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", what], cwd=folder, text=True,
                          capture_output=True, env={**os.environ, **env, "PYTHONPATH": path})
    passed = re.search(r"(\d+) passed", done.stdout)
    return int(passed[1]) if passed else 0, set(re.findall(r"^(?:FAILED|ERROR) \S+?(\w+)(?: |$)", done.stdout, re.M)), done.stdout[-4000:]


def test_the_suite_of_the_course():
    passed, failed, text = run_suite("tests")
    assert failed == STUBS and passed >= 217, text              # stubs are for students to write: below


def test_the_suite_on_a_device(opencl):
    passed, failed, text = run_suite("tests/test_tensor_general.py", FACULA_MINITORCH_DEVICE="1")
    assert not failed and passed >= 117, text


NUMBERS = [-100.0, -3.5, -1.0, -0.0, 0.0, 1e-3, 0.5, 2.0, 99.0]


def test_what_students_write_of_operators(mt):
    o = mt.operators
    for a in NUMBERS:
        s = o.sigmoid(a)
        assert 0 <= s <= 1 and o.is_close(1 - s, o.sigmoid(-a)) and o.sigmoid(0) == 0.5
        assert o.relu(o.relu(a)) == o.relu(a) and o.neg(o.neg(a)) == a
        for b in NUMBERS:
            assert o.mul(a, b) == o.mul(b, a) and (a >= b or o.sigmoid(a) <= o.sigmoid(b))
            for c in NUMBERS:
                assert not (o.lt(a, b) and o.lt(b, c)) or o.lt(a, c)
                assert o.is_close(o.mul(c, o.add(a, b)), o.add(o.mul(c, a), o.mul(c, b)))
    xs, ys = NUMBERS, NUMBERS[::-1]
    assert o.is_close(o.sum(o.addLists(xs, ys)), o.sum(xs) + o.sum(ys)) and o.prod([]) == 1 and o.sum([]) == 0
    assert o.negList([1, -2]) == [-1, 2]


def test_scalars(mt):
    x, y = mt.Scalar(2.0), mt.Scalar(5.0)
    z = x * y + x.exp() / y - 3
    z.backward()
    assert abs(x.derivative - (5 + 2.718281828 ** 2 / 5)) < 1e-6 and abs(y.derivative - (2 - 2.718281828 ** 2 / 25)) < 1e-6
    one, two, _ = mt.MathTestVariable._comp_testing()
    for name, base, f in one:
        assert abs(f(mt.Scalar(1.3)).data - base(1.3)) < 1e-6, name
        mt.derivative_check(f, mt.Scalar(1.3))
    for name, base, f in two:
        assert abs(f(mt.Scalar(1.3), mt.Scalar(-0.7)).data - base(1.3, -0.7)) < 1e-6, name
        mt.derivative_check(f, mt.Scalar(1.3), mt.Scalar(-0.7))


def test_tensors(mt, rng):
    one, two, red = mt.MathTestVariable._comp_testing()
    a = mt.Tensor(mt.TensorData(rng.standard_normal(6), (2, 3)).permute(1, 0))
    b = mt.tensor(rng.standard_normal((3, 2)).tolist())
    for name, base, f in one:
        y = f(a)
        assert all(abs(y[i] - base(a[i])) < 1e-6 for i in y._tensor.indices()), name
        mt.grad_check(f, a)
    for name, base, f in two:
        y = f(a, b)
        assert all(abs(y[i] - base(a[i], b[i])) < 1e-6 for i in y._tensor.indices()), name
        mt.grad_check(f, a, b)
        mt.grad_check(f, a.sum(0), b)
    for name, base, f in red:
        mt.grad_check(f, a)
    assert a.sum(0).shape == (1, 2) and a.sum().shape == (1,) and a.mean().shape == (1,)
    with pytest.raises(AssertionError):
        a.view(6)
    assert a.contiguous().view(6).shape == (6,)
    for wrong in ((3, 0), (0,), (0, -1)):
        with pytest.raises(mt.IndexingError):
            a[wrong]
    with pytest.raises(mt.IndexingError):
        mt.shape_broadcast((2, 3), (4, 3))


def test_the_largest(mt, rng):
    t = mt.tensor(rng.standard_normal((2, 3, 4)).tolist())
    m = mt.max(t, 2)
    assert m.shape == (2, 3, 1) and all(m[i, j, 0] == max(t[i, j, k] for k in range(4)) for i in range(2) for j in range(3))
    mt.grad_check(lambda a: mt.max(a, 2), t)
    ties = mt.argmax(mt.tensor([[1.0, 1.0, 0.0]]), 1)
    assert [ties[0, k] for k in range(3)] == [1, 1, 0]


def test_images(mt, rng):
    x, w = mt.tensor([[[0, 1, 2, 3]]]), mt.tensor([[[1, 2, 3]]])
    y = mt.Conv1dFun.apply(x, w)
    assert [y[0, 0, i] for i in range(4)] == [8, 14, 8, 3]
    a, k = mt.tensor(rng.standard_normal((2, 2, 4, 4)).tolist()), mt.tensor(rng.standard_normal((3, 2, 2, 3)).tolist())
    assert mt.conv2d(a, k).shape == (2, 3, 4, 4)
    mt.grad_check(mt.Conv2dFun.apply, a, k)
    mt.grad_check(lambda t: mt.avgpool2d(t, (2, 2)), a)
    tiles, h, wide = mt.tile(a, (2, 2))
    assert (h, wide, tiles.shape) == (2, 2, (2, 2, 2, 2, 4))
    assert abs(tiles[0, 0, 0, 0, 3] - a[0, 0, 1, 1]) < 1e-12
    q = mt.dropout(a, 1.0)
    assert q[0, 0, 0, 0] == 0 and mt.dropout(a, 0.0)[0, 0, 1, 1] == a[0, 0, 1, 1]


@pytest.mark.parametrize("name", ["Simple", "Diag", "Split", "Xor", "Circle", "Spiral"])
def test_training_of_points(mt, name):
    fac.manual_seed(3)
    points = mt.datasets[name](50)

    class Linear(mt.Module):
        def __init__(self, n, m):
            super().__init__()
            self.w = mt.Parameter(2 * (mt.rand((n, m)) - 0.5))
            self.b = mt.Parameter(2 * (mt.rand((m,)) - 0.5))

        def forward(self, x):
            return x @ self.w.value + self.b.value
    layers = [Linear(2, 12), Linear(12, 12), Linear(12, 1)]
    optimizer = mt.SGD([p for layer in layers for p in layer.parameters()], 0.5)
    x, y = mt.tensor([list(p) for p in points.X]), mt.tensor([[float(c)] for c in points.y])
    losses = []
    for _ in range(120):
        optimizer.zero_grad()
        out = layers[2](layers[1](layers[0](x).relu()).relu()).sigmoid()
        loss = -((out * y + (1.0 - out) * (1.0 - y)).log().sum() / 50.0)
        loss.backward()
        optimizer.step()
        losses.append(loss[0])
    assert losses[-1] < losses[0]
