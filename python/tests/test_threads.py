"""Eight threads at once give what one gives: programs, eager and lazy calls, gradients."""
import sys
import threading

import numpy as np
import pytest

import facula as fac

THREADS = 8


def everywhere(work):
    """work(i) in eight threads that begin together; what each gave."""
    got, wrong = [None] * THREADS, []
    barrier = threading.Barrier(THREADS)

    def run(i):
        try:
            barrier.wait()
            got[i] = work(i)
        except BaseException as why:
            wrong.append(why)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)                     # threads change places often
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong, wrong
    return got


def test_one_program(small, rng):
    x = rng.standard_normal((3, 3, 8, 8)).astype("f4")
    want = small.run(x)
    for got in everywhere(lambda i: [small.run(x) for _ in range(20)]):
        assert all(np.array_equal(y, want) for y in got)


def test_own_inputs(small, rng):
    xs = [rng.standard_normal((1 + i % 3, 3, 8, 8)).astype("f4") for i in range(THREADS)]
    want = [small.run(x) for x in xs]
    for i, got in enumerate(everywhere(lambda i: [small.run(xs[i]) for _ in range(20)])):
        assert all(np.array_equal(y, want[i]) for y in got)


@pytest.mark.parametrize("lazy", [False, True])
def test_gradients(lazy, rng):
    fac.manual_seed(2)
    net = fac.nn.Sequential(fac.nn.Linear(6, 9), fac.nn.Tanh(), fac.nn.Linear(9, 4))
    a = rng.standard_normal((THREADS, 7, 6)).astype("f4")

    def work(i):
        x = fac.tensor(a[i], requires_grad=True)
        with fac.lazy(lazy):
            for _ in range(5):
                (g,) = fac.autograd.grad((net(x) ** 2).sum(), [x])
                with fac.no_grad():
                    assert not (x * 2).requires_grad
        return np.asarray(g)
    want = [work(i) for i in range(THREADS)]
    for got, wanted in zip(everywhere(work), want):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_switches_are_those_of_a_thread():
    inside, out = threading.Event(), threading.Event()

    def work():
        with fac.no_grad(), fac.lazy():
            inside.set()
            out.wait()
    other = threading.Thread(target=work)
    other.start()
    inside.wait()
    assert fac.is_grad_enabled() and not fac.is_lazy()
    out.set()
    other.join()


def test_own_trainings(rng):
    """Each thread trains a network of its own; the numbers are those of training alone."""
    data = rng.standard_normal((40, 5)).astype("f4")
    label = rng.integers(0, 3, 40)
    start = [rng.standard_normal((3, 5)).astype("f4") for _ in range(THREADS)]

    def work(i):
        net = fac.nn.Linear(5, 3)
        with fac.no_grad():
            net.weight.copy_(fac.tensor(start[i]))
            net.bias.zero_()
        opt = fac.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(10):
            loss = net.loss(fac.tensor(data), fac.tensor(label))
            opt.zero_grad()
            loss.backward()
            opt.step()
        return np.asarray(net.weight.detach())
    want = [work(i) for i in range(THREADS)]
    for got, wanted in zip(everywhere(work), want):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
