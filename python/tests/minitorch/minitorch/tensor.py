"""Tensors of facula with MiniTorch's rules: f64, reductions keep dims, comparisons are 0.0 and 1.0."""
import itertools
import random

import numpy as np

import facula as fac
from facula.autograd import Function

MAX_DIMS = 32


class IndexingError(RuntimeError):
    pass


def prod(xs):
    value = 1.0
    for x in xs:
        value *= x
    return value


def strides_from_shape(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def index_to_position(index, strides):
    return int(sum(i * s for i, s in zip(index, strides)))


def to_index(ordinal, shape, out):
    for k in reversed(range(len(shape))):
        ordinal, out[k] = divmod(ordinal, shape[k])


def broadcast_index(big_index, big_shape, shape, out):
    lead = len(big_shape) - len(shape)
    for k, n in enumerate(shape):
        out[k] = big_index[k + lead] if n > 1 else 0


def shape_broadcast(a, b):
    try:
        return tuple(np.broadcast_shapes(tuple(a), tuple(b)))
    except ValueError as why:
        raise IndexingError(str(why)) from None


class TensorData:
    def __init__(self, storage, shape, strides=None):
        self._storage = np.asarray(storage, dtype=np.float64).reshape(-1)
        assert isinstance(shape, tuple), "the shape is a tuple"
        strides = strides_from_shape(shape) if strides is None else strides
        assert isinstance(strides, tuple), "strides are a tuple"
        if len(strides) != len(shape):
            raise IndexingError(f"strides {strides} for shape {shape}")
        self.shape, self.strides, self.dims = shape, strides, len(shape)
        self.size = int(prod(shape))
        assert len(self._storage) == self.size, f"{len(self._storage)} numbers for shape {shape}"

    def is_contiguous(self):
        return all(a >= b for a, b in zip(self.strides, self.strides[1:]))

    shape_broadcast = staticmethod(shape_broadcast)

    def index(self, index):
        index = (index,) if isinstance(index, int) else tuple(index)
        if not self.dims and index == (0,):
            index = ()
        if len(index) != self.dims:
            raise IndexingError(f"index {index} for shape {self.shape}")
        for i, n in zip(index, self.shape):
            if not 0 <= i < n:
                raise IndexingError(f"index {index} is outside of shape {self.shape}")
        return index_to_position(index, self.strides)

    def indices(self):
        return itertools.product(*[range(n) for n in self.shape])

    def sample(self):
        return tuple(random.randint(0, n - 1) for n in self.shape)

    def get(self, key):
        return self._storage[self.index(key)]

    def set(self, key, value):
        self._storage[self.index(key)] = value

    def tuple(self):
        return self._storage, self.shape, self.strides

    def permute(self, *order):
        assert sorted(order) == list(range(self.dims)), f"{order} is no order of {self.dims} dims"
        return TensorData(self._storage, tuple(self.shape[o] for o in order), tuple(self.strides[o] for o in order))

    def array(self):
        return np.lib.stride_tricks.as_strided(self._storage, self.shape, [8 * s for s in self.strides])

    def to_string(self):
        return np.array2string(self.array())

    def to_cuda_(self):
        pass


# ---- where work runs ----

class SimpleOps:
    device, cuda = None, False


class FastOps(SimpleOps):
    pass


class CudaOps(SimpleOps):
    device, cuda = "opencl", True


class TensorBackend:
    def __init__(self, ops):
        self.ops, self.device, self.cuda = ops, ops.device, ops.cuda


SimpleBackend = TensorBackend(SimpleOps)


# ---- what MiniTorch computes in its own way ----

class _Log(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return fac.log(x + 1e-6)

    @staticmethod
    def backward(ctx, d):
        return d / (ctx.saved_tensors[0] + 1e-6)


def _flag(x):
    return x.detach().to(fac.float64)


class Tensor:
    _ids = itertools.count()

    def __init__(self, v, back=None, name=None, backend=None):
        self.backend = backend or SimpleBackend
        self.unique_id = next(Tensor._ids)
        self.name = name or str(self.unique_id)
        self._strides = None
        if isinstance(v, TensorData):
            self.value = fac.tensor(v.array(), dtype=fac.float64, device=self.backend.device)
            self._strides = v.strides
        else:
            self.value = v
        self._host = None

    # -- what it is

    @property
    def shape(self):
        return self.value.shape

    @property
    def size(self):
        return self.value.numel()

    @property
    def dims(self):
        return self.value.ndim

    @property
    def _tensor(self):
        flat = np.asarray(self.value.detach())
        strides = self._strides or strides_from_shape(self.shape)
        order = sorted(range(self.dims), key=lambda k: (-strides[k], k))
        packed = np.ascontiguousarray(flat.transpose(order))
        steps = [0] * self.dims
        for k, s in zip(order, strides_from_shape(packed.shape)):
            steps[k] = s
        return TensorData(packed.reshape(-1), self.shape, tuple(steps))

    @property
    def _storage(self):
        return self._tensor._storage

    def requires_grad_(self, x=True):
        self.value = self.value.detach().clone()
        self.value.requires_grad = x

    def requires_grad(self):
        return self.value.requires_grad

    @property
    def history(self):
        return self.value.grad_fn

    @property
    def grad(self):
        return None if self.value.grad is None else self._new(self.value.grad)

    @grad.setter
    def grad(self, x):
        self.value.grad = None if x is None else x.value

    def is_leaf(self):
        return self.value.is_leaf

    def is_constant(self):
        return not self.value.requires_grad

    def to_numpy(self):
        return np.asarray(self.value.detach())

    def item(self):
        assert self.size == 1
        return float(self.value.reshape(-1)[0].detach().item())

    def __getitem__(self, key):
        key = (key,) if isinstance(key, int) else tuple(key)
        if len(key) != self.dims or any(not 0 <= i < n for i, n in zip(key, self.shape)):
            raise IndexingError(f"index {key} for shape {self.shape}")
        if self._host is None:
            self._host = np.asarray(self.value.detach())
        return float(self._host[key])

    def __setitem__(self, key, x):
        self._host = None
        with fac.no_grad():
            self.value[(key,) if isinstance(key, int) else tuple(key)] = float(x)

    def __repr__(self):
        return self._tensor.to_string()

    # -- operators

    def _new(self, value, strides=None):
        t = Tensor(value, backend=self.backend)
        t._strides = strides
        return t

    def _other(self, b):
        return b.value if isinstance(b, Tensor) else fac.tensor([float(b)], dtype=fac.float64, device=self.backend.device)

    def __add__(self, b):
        return self._new(self.value + self._other(b))

    __radd__ = __add__

    def __sub__(self, b):
        return self._new(self.value - self._other(b))

    def __rsub__(self, b):
        return self._new(self._other(b) - self.value)

    def __mul__(self, b):
        return self._new(self.value * self._other(b))

    __rmul__ = __mul__

    def __truediv__(self, b):
        return self._new(self.value / self._other(b))

    def __rtruediv__(self, b):
        return self._new(self._other(b) / self.value)

    def __matmul__(self, b):
        return self._new(self.value @ b.value)

    def __neg__(self):
        return self._new(-self.value)

    def __lt__(self, b):
        return self._new(_compared(self.value, self._other(b), "lt"))

    def __gt__(self, b):
        return self._new(_compared(self._other(b), self.value, "lt"))

    def __eq__(self, b):
        return self._new(_compared(self.value, self._other(b), "eq"))

    def __hash__(self):
        return hash(self.unique_id)

    def is_close(self, b):
        return self._new(_flag((self.value.detach() - b.value.detach()).abs() < 1e-2))

    def sigmoid(self):
        return self._new(self.value.sigmoid())

    def relu(self):
        return self._new(self.value.relu())

    def log(self):
        return self._new(_Log.apply(self.value))

    def exp(self):
        return self._new(self.value.exp())

    # -- over dims: they stay, with size 1

    def sum(self, dim=None):
        return self._new(self.value.sum().reshape(1) if dim is None else self.value.sum(dim, True))

    def mean(self, dim=None):
        return self._new(self.value.mean().reshape(1) if dim is None else self.value.mean(dim, True))

    def all(self, dim=None):
        return self._new(self.value.prod().reshape(1) if dim is None else self.value.prod(dim, True))

    # -- shapes

    def permute(self, *order):
        strides = self._strides or strides_from_shape(self.shape)
        return self._new(self.value.permute(*order), tuple(strides[o] for o in order))

    def view(self, *shape):
        strides = self._strides or strides_from_shape(self.shape)
        assert all(a >= b for a, b in zip(strides, strides[1:])), "view() needs a contiguous tensor"
        return self._new(self.value.reshape(*shape))

    def contiguous(self):
        return self._new(self.value)

    def expand(self, other):
        return other if other.shape == self.shape else self._new(fac.ops.sum_like(other.value, self.value))

    def zeros(self, shape=None):
        return self._new(fac.zeros(*(shape or self.shape), dtype=fac.float64))

    def detach(self):
        return self._new(self.value.detach())

    def zero_grad_(self):
        self.value.grad = None

    def backward(self, grad_output=None):
        if grad_output is None:
            assert self.shape == (1,), "a gradient must be given unless the tensor is a scalar"
        self.value.backward(fac.ones(*self.shape, dtype=fac.float64) if grad_output is None else grad_output.value)

    def _type_(self, backend):
        self.backend = backend


class _Compare(Function):
    """0.0 and 1.0, with gradients of zero."""

    @staticmethod
    def forward(ctx, a, b, how):
        ctx.shapes = a, b
        return (a < b if how == "lt" else a == b).to(fac.float64)

    @staticmethod
    def backward(ctx, d):
        a, b = ctx.shapes
        return fac.zeros_like(a), fac.zeros_like(b), None


def _compared(a, b, how):
    return _Compare.apply(a, b, how)


def tensor(ls, backend=SimpleBackend, requires_grad=False):
    t = Tensor(fac.tensor(np.asarray(ls, dtype=np.float64), device=backend.device), backend=backend)
    t.value.requires_grad = requires_grad
    return t


def zeros(shape, backend=SimpleBackend):
    return Tensor(fac.zeros(*shape, dtype=fac.float64), backend=backend)


def rand(shape, backend=SimpleBackend, requires_grad=False):
    t = Tensor(fac.rand(*shape, dtype=fac.float64), backend=backend)
    t.value.requires_grad = requires_grad
    return t


def grad_central_difference(f, *vals, arg=0, epsilon=1e-6, ind):
    x = vals[arg]

    def at(by):
        moved = np.array(x.to_numpy())
        moved[tuple(ind)] += by
        given = [v if i != arg else Tensor(fac.tensor(moved), backend=x.backend) for i, v in enumerate(vals)]
        return f(*given).sum()[0]
    with fac.no_grad():
        return (at(epsilon) - at(-epsilon)) / (2 * epsilon)


def grad_check(f, *vals):
    for x in vals:
        x.requires_grad_(True)
        x.zero_grad_()
    f(*vals).sum().backward()
    for i, x in enumerate(vals):
        ind = tuple(random.randint(0, n - 1) for n in x.shape)
        check = grad_central_difference(f, *vals, arg=i, ind=ind)
        got = x.grad[ind]
        assert abs(got - check) <= 1e-2 + 1e-2 * abs(check), f"gradient {got} at {ind} of input {i}, differences give {check}"


def sum_practice(a):
    """Sums of blocks of 32, as the course's kernel gives them."""
    x = a.value.detach()
    n = -(-x.shape[0] // 32)
    return a._new(fac.pad(x, (0, 32 * n - x.shape[0])).reshape(n, 32).sum(1))


def mm_practice(a, b):
    return a @ b
