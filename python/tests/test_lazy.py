"""Lazy calls give what eager ones give, and a step that repeats is found again.  The tests of tensors, gradients and modules run
once more with FACULA_LAZY=1.

Lazy programs are bound to what does not change, such as weights, and see when it was written, whoever wrote it."""
import gc
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


# ---- weights ----

@pytest.fixture
def net():
    fac.manual_seed(3)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).eval()


def step(net, i):
    """Inputs that its program was given, and whether it was planned."""
    x = fac.tensor(np.random.default_rng(i).standard_normal((1, 2, 6, 6)).astype("f4"))
    before = fac.lazy_stats()
    with fac.no_grad(), fac.lazy():
        y = net(x).numpy()
    after = fac.lazy_stats()
    with fac.no_grad(), fac.lazy(False):
        assert np.allclose(net(x).numpy(), y, atol=1e-5)
    return after["inputs"] - before["inputs"], after["planned"] - before["planned"]


def bound(net, start):
    """Steps until all but x is bound."""
    for i in range(6):
        inputs, _ = step(net, start + i)
        if inputs == 1:
            return i
    raise AssertionError("the program is given weights in each run")


def test_weights_are_bound(net):
    assert bound(net, 0) == 2
    assert [step(net, 10 + i) for i in range(4)] == [(1, 0)] * 4


def test_another_value_is_seen(net):
    bound(net, 0)
    with fac.no_grad():
        net[0].weight.mul_(2)
        net[4].bias.add_(1)
    assert step(net, 10)[0] == 3
    bound(net, 20)


def test_arrays_write_into_weights(net):
    bound(net, 0)
    shown = net[4].weight.detach().numpy()
    for i in range(4):
        shown += 1
        assert step(net, 10 + i)[0] == 2            # it may be written at any time
    del shown
    gc.collect()
    bound(net, 20)
    shown = net[4].weight.detach().numpy()
    shown *= 3
    del shown
    gc.collect()
    step(net, 30)                                   # written between two steps, through an array that is gone now
    bound(net, 40)
    step(net, 50)


def test_dlpack_writes_into_weights(net):
    bound(net, 0)
    shown = np.from_dlpack(net[0].weight.detach())
    if shown.flags.writeable:
        shown *= 2
    assert step(net, 10)[0] == 2                    # NumPy before 2.1 does not write, but nothing says so
    del shown
    gc.collect()
    step(net, 11)
    bound(net, 20)


def test_weights_over_an_array_are_inputs(net):
    array = np.ones((3, 64), "f4")
    net[4].weight = nn.Parameter(fac.from_numpy(array))
    for i in range(5):
        array *= 2
        inputs, _ = step(net, i)
    assert inputs == 2


def test_what_was_learned_lazily_is_bound(net):
    net.train()
    opt = fac.optim.SGD(net.parameters(), 0.1)
    x, y = fac.randn(4, 2, 6, 6), fac.randint(3, (4,))
    with fac.lazy():
        for _ in range(3):
            loss = net.loss(x, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    net.eval()
    bound(net, 0)
    seen = net[4].weight.detach()                   # the same value under another name
    shown = seen.numpy()
    for i in range(4):
        shown *= 0.5
        assert step(net, 10 + i)[0] == 2


def test_batches_in_turns_are_planned_once(net):
    batches = [fac.randn(1, 2, 6, 6) for _ in range(3)]
    with fac.no_grad(), fac.lazy():
        for _ in range(6):
            for x in batches:
                net(x).numpy()
        before = fac.lazy_stats()["planned"]
        for x in batches:
            net(x).numpy()
    assert fac.lazy_stats()["planned"] == before


def test_a_look_between_is_no_write(net):
    """Arrays that are read between forward and backward are no reason to refuse the gradient."""
    for lazy in (False, True):
        with fac.lazy(lazy):
            x = fac.randn(2, 2, 6, 6)
            loss = net(x).sum()
            x.numpy(), net[0].weight.detach().numpy()
            loss.backward()
            assert np.isfinite(net[0].weight.grad.numpy()).all()


def test_a_state_of_another_library_is_copied(net):
    state = {k: np.array(v) for k, v in net.state_dict().items()}
    net.load_state_dict(state)
    state["4.weight"][:] = 7
    assert not (net[4].weight.detach().numpy() == 7).any()
    del state
    bound(net, 0)
