"""Lazy programs are bound to what does not change, such as weights, and see when it was written, whoever wrote it."""
import gc

import numpy as np
import pytest

import facula as fac

nn = fac.nn


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
