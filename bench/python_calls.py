#!/usr/bin/env python3
"""What the Python package costs: calls, import, a recorded step, models beside ONNX Runtime, training beside PyTorch.

    python bench/python_calls.py [--rounds 5] [calls import step run train]

facula is the package that is imported; onnxruntime and torch are compared with where they are there.  Figures are processors'
time, which a busy machine disturbs less than the clock: the least of the rounds for calls, the median for the rest; programs
alternate within a round.  One thread, but --threads N for `run` and `train`.
"""
import argparse
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import facula as fac

NETWORKS = "resnet18 resnet50 mobilenet_v2 squeezenet1_1 googlenet efficientnet_lite0".split()


def least(call, count, rounds):
    """Seconds of one call: the least of the rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(count):
            call()
        best = min(best, (time.process_time() - start) / count)
    return best


def ns(seconds):
    return f"{1e9 * seconds:.0f} ns"


def calls(o):
    x, a, torch = fac.ones(1), np.ones(1, "f4"), torch_or_none()
    t = torch.ones(1) if torch else None
    four = np.zeros(4, "f4")
    rows = [("a call without work", fac._facula.is_lazy, None, None),
            ("a tensor of an array of 4, without a copy", lambda: fac.Tensor(four), None, lambda: torch.from_numpy(four)),
            ("4 zeros", lambda: fac.zeros(4), lambda: np.zeros(4, "f4"), lambda: torch.zeros(4)),
            ("eager `x + x` of 1 element", lambda: x + x, lambda: a + a, lambda: t + t)]
    empty = least(lambda: None, 200000, o.rounds)
    print("| one call | facula | NumPy | torch |\n| --- | --- | --- | --- |")
    for name, mine, numpy, torchs in rows:
        costs = [least(f, 50000, o.rounds) if f and (torch or f is not torchs) else None for f in (mine, numpy, torchs)]
        loop = 0 if mine is fac._facula.is_lazy else empty              # of the lambda
        print("| " + " | ".join([name, *("" if c is None else ns(c - loop) for c in costs)]) + " |")


def torch_or_none():
    try:
        import torch
    except ImportError:
        return None
    return torch


def import_time(o):
    """A fresh process each time, the least of the rounds."""
    import os

    def seconds(what):
        before = os.times()
        subprocess.run([sys.executable, "-c", what], check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system
    empty = min(seconds("pass") for _ in range(o.rounds))
    print("| import | seconds of CPU |\n| --- | --- |")
    for name in ("numpy", "facula", *(["torch"] if torch_or_none() else [])):
        print(f"| {name} | {min(seconds(f'import {name}') for _ in range(o.rounds)) - empty:.2f} |")


def step(o):
    """Host time of a ResNet-18 step that was recorded before: what Python and the recorder do until the program runs."""
    fac.manual_seed(1)
    net = resnet(fac.nn)
    opt = fac.optim.Adam(net.parameters(), 1e-3)
    x, y = fac.randn(2, 3, 32, 32), fac.randint(10, (2,))
    parts, nodes = [], 0
    module = sys.modules["facula.lazy"]
    flush, module.flush = module.flush, lambda: None                    # step() would run the program
    with fac.lazy():
        def record():
            loss = fac.nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        for _ in range(4 + 4 * o.rounds):
            at = [time.thread_time()]
            loss = fac.nn.functional.cross_entropy(net(x), y)
            at.append(time.thread_time())
            opt.zero_grad()
            loss.backward()
            at.append(time.thread_time())
            opt.step()
            at.append(time.thread_time())
            nodes = fac.lazy_stats()["pending"]
            flush()
            parts.append([1e3 * (b - a) for a, b in zip(at, at[1:])])
        again = least(lambda: net(x), 20, o.rounds)
        flush()
        warm = least(record, 6, 1)                  # a longer segment would be flushed by itself
        flush()
        for _ in range(o.rounds - 1):
            warm = min(warm, least(record, 6, 1))
            flush()
    module.flush = flush
    forward, backward, update = (min(p[k] for p in parts[4:]) for k in range(3))
    print(f"a recorded ResNet-18 step, {nodes} nodes, ms of CPU before its program runs: forward {forward:.2f}, backward {backward:.2f}, Adam {update:.2f}; "
          f"the forward calls again and again {1e3 * again:.2f}, whole steps without a run between them {1e3 * warm:.2f}")


def resnet(nn):
    """ResNet-18 in a form that both packages build."""
    def block(a, b, stride):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.main = nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, 1, 1, bias=False),
                                          nn.BatchNorm2d(b))
                self.side = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if stride > 1 else nn.Identity()
                self.act = nn.ReLU()

            def forward(self, x):
                return self.act(self.main(x) + self.side(x))
        return Block()
    stages = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *[block(*s) for s in stages],
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def lenet(nn):
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def ms_of(call, least_calls=3):
    call()
    times = []
    for _ in range(least_calls):
        start = time.process_time()
        call()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)


def compared(name, mine, theirs, rounds):
    pairs = [(ms_of(mine), ms_of(theirs)) for _ in range(rounds)]
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"| {name} | {statistics.median(a for a, _ in pairs):.2f} | {statistics.median(b for _, b in pairs):.2f} | {ratio:.2f} |", flush=True)


def run(o):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = o.threads
    print("| batch 1, ms of CPU | `fac.load(m).run` | ONNX Runtime | ratio |\n| --- | --- | --- | --- |")
    for name in NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/m.onnx"
            getattr(fac.zoo, name)().save(path)
            model, session = fac.load(path), ort.InferenceSession(path, options)
            port = session.get_inputs()[0]
            x = np.random.default_rng(1).standard_normal([n if isinstance(n, int) else 1 for n in port.shape], "f4")
            compared(name, lambda: model.run(x), lambda: session.run(None, {port.name: x}), o.rounds)


def trainer(package, make, shape):
    net = make(package.nn)
    x = package.ones(*shape) if package is fac else package.ones(*shape)
    y = package.zeros(shape[0], dtype=package.int64)
    opt = package.optim.Adam(net.parameters(), lr=1e-3)
    loss_of = fac.nn.functional.cross_entropy if package is fac else package.nn.functional.cross_entropy

    def one():
        loss = loss_of(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return float(loss.detach())
    return one


def train(o):
    import torch
    torch.set_num_threads(o.threads)
    print("| batch 8, ms of CPU a step | facula | PyTorch | ratio |\n| --- | --- | --- | --- |")
    for name, make, shape in (("LeNet", lenet, (8, 1, 28, 28)), ("ResNet-18, 64 x 64", resnet, (8, 3, 64, 64)),
                              ("ResNet-18, 224 x 224", resnet, (8, 3, 224, 224))):
        for lazy in (False, True):
            mine, theirs = trainer(fac, make, shape), trainer(torch, make, shape)

            def ours():
                with fac.lazy(lazy):
                    return mine()
            for _ in range(3):
                ours()
            compared(f"{name}, {'lazy' if lazy else 'eager'}", ours, theirs, o.rounds)


def main():
    parts = {"calls": calls, "import": import_time, "step": step, "run": run, "train": train}
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("part", nargs="*", help=f"{', '.join(parts)}; default all")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    o = p.parse_args()
    fac.set_num_threads(o.threads)
    for name in o.part or parts:
        if name not in parts:
            p.error(f"there is no part {name!r}")
        parts[name](o)
        print()


if __name__ == "__main__":
    main()
