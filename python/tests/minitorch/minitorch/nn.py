"""Convolutions of the same length, pools, softmax and dropout as the course has them; SGD and data sets."""
import numpy as np

import facula as fac

from .scalar import Scalar
from .tensor import Tensor


class _Conv:
    dims = 1

    @classmethod
    def apply(cls, x, weight):
        """Anchored left (top left): zeros stand after the end, so the result is as long as the input."""
        pads = [p for k in reversed(weight.shape[2:]) for p in (0, k - 1)]
        function = getattr(fac.nn.functional, f"conv{cls.dims}d")
        return x._new(function(fac.pad(x.value, pads), weight.value))


class Conv1dFun(_Conv):
    dims = 1


class Conv2dFun(_Conv):
    dims = 2


def conv1d(x, weight):
    return Conv1dFun.apply(x, weight)


def conv2d(x, weight):
    return Conv2dFun.apply(x, weight)


def tile(x, kernel):
    b, c, h, w = x.shape
    kh, kw = kernel
    y = x.value.reshape(b, c, h // kh, kh, w // kw, kw).permute(0, 1, 2, 4, 3, 5).reshape(b, c, h // kh, w // kw, kh * kw)
    return x._new(y), h // kh, w // kw


def avgpool2d(x, kernel):
    return x._new(fac.nn.functional.avg_pool2d(x.value, kernel))


def maxpool2d(x, kernel):
    return x._new(fac.nn.functional.max_pool2d(x.value, kernel))


def argmax(x, dim):
    """1.0 where the largest elements stand; equal ones all."""
    return x._new((x.value == x.value.amax(dim, True)).to(fac.float64))


class Max:
    @staticmethod
    def apply(x, dim):
        return max(x, int(dim.item()) if isinstance(dim, Tensor) else dim)


def max(x, dim):
    return x._new(x.value.amax(dim, True))


def softmax(x, dim):
    return x._new(x.value.softmax(dim))


def logsoftmax(x, dim):
    return x._new(x.value.log_softmax(dim))


def dropout(x, rate, ignore=False):
    """Each element is 0 with this probability; the others stay as they are."""
    if ignore:
        return x
    return x._new(x.value * (fac.rand(*x.shape, dtype=fac.float64) >= rate).to(fac.float64))


class SGD:
    def __init__(self, parameters, lr=1.0):
        self.parameters, self.lr = list(parameters), lr

    def zero_grad(self):
        for p in self.parameters:
            if isinstance(p.value, Scalar):
                p.value.derivative = None
            elif isinstance(p.value, Tensor):
                p.value.grad = None

    def step(self):
        for p in self.parameters:
            v = p.value
            if isinstance(v, Scalar) and v.derivative is not None:
                p.update(Scalar(v.data - self.lr * v.derivative))
            elif isinstance(v, Tensor) and v.grad is not None:
                p.update(v._new(v.value.detach() - self.lr * v.value.grad))


class Graph:
    def __init__(self, N, X, y):
        self.N, self.X, self.y = N, X, y


def _points(name):
    def make(n):
        d = fac.data.points(name, n, int(np.random.default_rng().integers(2 ** 31)))
        return Graph(n, [tuple(map(float, p)) for p in d.x], [int(c) for c in d.y])
    return make


datasets = {n.title(): _points(n) for n in ("simple", "diag", "split", "xor", "circle", "spiral")}
