"""Calls everything with random arguments: wrong_calls.py COUNT SEED.  Each call gives something or raises one exception; the
process must live.  Prints how many calls raised what."""
import collections
import os
import random
import sys
import tempfile
import warnings

import numpy as np

import facula as fac
from facula import _facula

count, seed = int(sys.argv[1]), int(sys.argv[2])
r = random.Random(seed)
warnings.simplefilter("ignore")
folder = tempfile.mkdtemp()
os.chdir(folder)                                            # some calls take a random word for the name of a file
net = fac.nn.Sequential(fac.nn.Conv2d(1, 2, 3), fac.nn.ReLU(), fac.nn.Flatten(), fac.nn.Linear(8, 2))
graph = fac.trace(net, (1, 1, 4, 4))
program = _facula.Program(graph)
leaf = fac.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
node = (leaf * leaf).grad_fn


def thing(depth=0):
    kinds = [lambda: None, lambda: r.choice([True, False]), lambda: r.randint(-3, 5), lambda: r.choice([2 ** 62, -2 ** 63, 2 ** 70, 10 ** 30]),
             lambda: r.choice([0.0, -1.5, float("nan"), float("inf")]), lambda: r.choice(["", "x", "axis=1", "f32", "float32", "a,b", "\0", "é" * 40, "x" * 700]),
             lambda: b"abc" * r.randint(0, 3), lambda: graph, lambda: program, lambda: node, lambda: object(), lambda: fac.float32, lambda: _facula.Device(),
             lambda: fac.ones(*[r.randint(0, 3) for _ in range(r.randint(0, 4))]), lambda: fac.tensor([1, 2, 3][:r.randint(0, 3)], dtype="int64"),
             lambda: leaf, lambda: np.ones([2] * r.randint(0, 9), r.choice(["f4", "c8", "i2", "O", "U3", ">f4"])), lambda: slice(r.randint(-2, 2), None, r.randint(-2, 2)),
             lambda: Ellipsis, lambda: folder + "/x.onnx"]
    if depth < 2:
        kinds += [lambda: [thing(depth + 1) for _ in range(r.randint(0, 3))], lambda: tuple(thing(depth + 1) for _ in range(r.randint(0, 3))),
                  lambda: {r.choice("abx"): thing(depth + 1) for _ in range(r.randint(0, 2))}]
    return r.choice(kinds)()


# what would switch recording off for good, wait for a device, is not for users, or takes the address of memory at its word
left_out = {"lend", "wrap", "set_dtypes", "set_fallbacks", "set_grad_enabled", "set_lazy_at_first", "set_tracing", "set_num_threads", "Tensor", "Graph", "Node", "Program", "Builder"}
functions = [getattr(_facula, n) for n in dir(_facula) if callable(getattr(_facula, n)) and n not in left_out and not n.startswith("__")
             and not (isinstance(getattr(_facula, n), type) and issubclass(getattr(_facula, n), BaseException))]
functions += [_facula.Tensor, _facula.Program]
names = fac.ops.names()
methods = [n for n in dir(_facula.Tensor) if callable(getattr(_facula.Tensor, n)) and n not in ("__init_subclass__", "__class__", "__del__")]
objects = [graph, program, node, _facula.Builder(), _facula.Device()]


def call():
    how = r.random()
    args = [thing() for _ in range(r.randint(0, 4))]
    if how < 0.3:
        return r.choice(functions)(*args)
    if how < 0.5:
        return _facula.apply(r.choice(names), r.choice([None, "", "axis=1", "axis=9", "keep=1", thing()]), r.choice([0, 1, 2, 70, -1, thing()]), *args)
    if how < 0.75:
        return getattr(fac.ones(2, 2) if r.random() < 0.5 else leaf, r.choice(methods))(*args[:3])
    if how < 0.85:
        o = r.choice(objects)
        return getattr(o, r.choice([n for n in dir(o) if not n.startswith("_") and n != "release"]))(*args)
    if how < 0.95:
        return getattr(fac.functional, r.choice([n for n in dir(fac.functional) if n[0] != "_"]))(*args)
    x = fac.ones(2, 2)
    x[thing()] = thing()
    return x[thing()]


seen = collections.Counter()
for _ in range(count):
    try:
        call()
        seen["fine"] += 1
    except Exception as why:
        seen[type(why).__name__] += 1
        if isinstance(why, SystemError):
            raise
    leaf.grad = None
    if leaf.shape != (2, 2) or not leaf.requires_grad:
        leaf = fac.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
print(dict(seen))
assert fac.ones(2).sum().item() == 2
