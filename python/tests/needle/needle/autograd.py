"""Tensors that know the op and the inputs they were made by; gradients are facula's."""
import numpy as np

import facula as fac

TENSOR_COUNTER = 0


class Device:
    """The CPU, with NumPy's random numbers, which the course's expected values are drawn from."""

    def rand(self, *shape):
        return np.random.rand(*shape)

    def randn(self, *shape):
        return np.random.randn(*shape)

    def ones(self, *shape, dtype="float32"):
        return np.ones(shape, dtype)

    def one_hot(self, n, i, dtype="float32"):
        return np.eye(n, dtype=dtype)[i]

    __tile_size__ = 8

    def __init__(self, name="cpu"):
        self.name = name

    def enabled(self):
        return self.name == "cpu"

    def matmul_tiled(self, *handles_and_sizes):
        from .backend_ndarray import matmul_tiled
        matmul_tiled(*handles_and_sizes)

    def __repr__(self):
        return f"{self.name}()"


_cpu, _cuda = Device(), Device("cuda")


def cpu():
    return _cpu


def cuda():
    return _cuda


class Shown(np.ndarray):
    """The memory of a tensor."""

    def numpy(self):
        return np.asarray(self)


def held(array, dtype):
    """The facula tensor of what a Tensor is made from.  All numbers are floats: integers have gradients here."""
    if hasattr(array, "numpy"):
        array = array.numpy()
    a = np.array(array, dtype)
    if a.dtype.kind not in "fb":
        a = a.astype("f8")
    return fac.tensor(a)


class Op:
    """What made a tensor: a function of facula tensors."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *inputs):
        return Tensor.of(self.function(*[x.held for x in inputs]), self, inputs)

    def gradient_as_tuple(self, out_grad, node):
        leaves = [x.held.detach().requires_grad_(True) for x in node.inputs]
        grads = fac.autograd.grad(self.function(*leaves), leaves, out_grad.held)
        return tuple(Tensor.of(g) for g in grads)


class Tensor:
    def __init__(self, array, *, device=None, dtype=None, requires_grad=True, **_):
        self._begin(held(array, dtype), None, ())
        if requires_grad and self.held.dtype.is_floating_point:
            self.held.requires_grad_(True)

    def _begin(self, value, op, inputs):
        global TENSOR_COUNTER
        TENSOR_COUNTER += 1
        self.held, self.op, self.inputs, self.grad = value, op, list(inputs), None

    @classmethod
    def of(cls, value, op=None, inputs=()):
        x = Tensor.__new__(Tensor)
        x._begin(value, op, inputs)
        return x

    def __del__(self):
        global TENSOR_COUNTER
        TENSOR_COUNTER -= 1

    @property
    def cached_data(self):
        return np.asarray(self.held.detach()).view(Shown)   # the same memory

    realize_cached_data = cached_data.fget

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, value):
        needs = self.held.requires_grad
        self.held = value.held.detach().requires_grad_(needs)

    def detach(self):
        return Tensor.of(self.held.detach())

    def numpy(self):
        return np.array(self.cached_data)

    shape = property(lambda self: tuple(self.held.shape))
    dtype = property(lambda self: self.cached_data.dtype)
    device = property(lambda self: _cpu)
    requires_grad = property(lambda self: self.held.requires_grad)

    def backward(self, out_grad=None):
        """Gradients of the leaves, which have a history themselves."""
        leaves = [x for x in find_topo_sort([self]) if x.op is None and x.requires_grad]
        out = out_grad.held if out_grad else fac.ones_like(self.held.detach())
        grads = fac.autograd.grad(self.held, [x.held for x in leaves], out, create_graph=True, allow_unused=True)
        for x, g in zip(leaves, grads):
            x.grad = None if g is None else Tensor.of(g, Op(None), leaves)

    def __repr__(self):
        return f"needle.Tensor({self.cached_data})"


class TensorTuple(tuple):
    """Several tensors that one op made."""

    def tuple(self):
        return self


def find_topo_sort(nodes):
    """Inputs before what is made from them, in the order of their use."""
    seen, order = set(), []

    def visit(x):
        if id(x) in seen:
            return
        seen.add(id(x))
        for i in x.inputs:
            visit(i)
        order.append(x)
    for x in nodes:
        visit(x)
    return order
