"""Ctrl-C ends long work in C, and the device works on."""
import os
import signal
import subprocess
import sys
import textwrap
import pathlib

import pytest

import facula as fac

HEAD = """
import os, signal, threading, time
import numpy as np
import facula as fac
net = fac.nn.Sequential(*[layer for _ in range(60) for layer in (fac.nn.Linear(300, 300), fac.nn.Tanh())])
x = fac.ones(1000, 300)
sent = []
def interrupt():
    sent.append(time.time())
    os.kill(os.getpid(), signal.SIGINT)
def stopped(work):
    timer = threading.Timer(0.2, interrupt)
    timer.start()
    try:
        work()
    except KeyboardInterrupt:
        assert time.time() - sent[-1] < 5, "it went on"
        return
    timer.cancel()
    raise SystemExit("nothing was stopped")
"""
WORK = {
    "a run": """
m = fac.Model(fac.trace(net, (1000, 300)), name="deep")
run = lambda: [m.run(np.asarray(x)) for _ in range(1000)]
""",
    "a flush": """
def run():
    with fac.lazy(), fac.no_grad():
        for _ in range(1000):
            net(x).sum().item()
            x.add_(1)           # of tensors that stay, the sum would be known after a few turns
""",
    "eager calls": """
def run():
    with fac.no_grad():
        for _ in range(1000):
            net(x)
""",
}


def listen():
    """A shell's background jobs ignore SIGINT, and so would a Python that one of them starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def python(program):
    path = os.pathsep.join([str(pathlib.Path(fac.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], text=True, capture_output=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": path}, preexec_fn=listen)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", WORK)
def test_control_c(name):
    after = "assert abs(fac.ones(3).sum().item() - 3) < 1e-6\nstopped(run)\nprint(net(fac.ones(1, 300)).shape)"
    assert "(1, 300)" in python(HEAD + WORK[name] + "stopped(run)\n" + after)


def test_nothing_is_lost():
    """A lazy step that is stopped can be read: it is the step that was not stopped."""
    program = HEAD + """
def step(stop):
    fac.manual_seed(1)
    net = fac.nn.Sequential(*[layer for _ in range(60) for layer in (fac.nn.Linear(300, 300), fac.nn.Tanh())])
    opt = fac.optim.SGD(net.parameters(), lr=0.1)
    with fac.lazy():
        (net(x) ** 2).mean().backward()
        opt.step()
        read = lambda: [np.asarray(p.detach()) for p in net.parameters()]
        if stop:
            stopped(lambda: [fac.flush(), time.sleep(9)])
        return read()
    return read()
print(all(np.allclose(a, b, atol=1e-6) for a, b in zip(step(True), step(False))))
"""
    assert "True" in python(program)


def test_handlers_of_a_program_are_asked_instead():
    """A handler that only counts stops nothing."""
    program = HEAD + """
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
m = fac.Model(fac.trace(net, (1000, 300)), name="deep")
threading.Timer(0.05, interrupt).start()
while not seen:
    y = m.run(np.asarray(x))
print(np.isfinite(y).all(), len(seen))
"""
    assert "True 1" in python(program)


def test_work_of_other_threads_goes_on():
    program = HEAD + """
m = fac.Model(fac.trace(net, (1000, 300)), name="deep")
got = []
worker = threading.Thread(target=lambda: got.append(m.run(np.asarray(x)).shape))
worker.start()
threading.Timer(0.05, interrupt).start()
try:
    while not sent or time.time() - sent[0] < 30:
        time.sleep(0.01)
    raise SystemExit("no KeyboardInterrupt")
except KeyboardInterrupt:
    worker.join()
print(got)
"""
    assert "[(1000, 300)]" in python(program)
