"""The course's NDArray: windows on flat memory of facula's, and facula's operators between them."""
import math

import numpy as np

import facula as fac

from .autograd import cpu, cuda  # noqa: F401


class Handle:
    """Flat memory that windows share."""

    def __init__(self, flat):
        self.flat = flat

    def ptr(self):
        return np.asarray(self.flat).ctypes.data


def _plain(shape):
    """Row-major strides."""
    return tuple(math.prod(shape[k + 1:]) for k in range(len(shape)))


class NDArray:
    def __init__(self, other, device=None):
        if isinstance(other, NDArray):
            other = other.numpy()
        a = np.array(other, "f4")
        self._begin(Handle(fac.Tensor(a.reshape(-1)).clone()), a.shape, _plain(a.shape), 0)

    def _begin(self, handle, shape, strides, offset):
        self._handle, self.shape, self.strides, self._offset = handle, tuple(shape), tuple(strides), offset

    @staticmethod
    def make(shape, strides=None, device=None, handle=None, offset=0):
        a = NDArray.__new__(NDArray)
        a._begin(handle or Handle(fac.zeros(math.prod(shape))), shape, strides or _plain(shape), offset)
        return a

    @staticmethod
    def of(t):
        return NDArray.make(t.shape, handle=Handle(t.reshape(-1).float()))

    @property
    def tensor(self):
        return self._handle.flat._window(self.shape, self.strides, self._offset)

    device = property(lambda self: cpu())
    dtype = property(lambda self: "float32")
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def numpy(self):
        return np.array(self.tensor)

    def __repr__(self):
        return f"NDArray({self.numpy()})"

    # ---- windows ----

    def is_compact(self):
        return self.strides == _plain(self.shape) and self.size == self._handle.flat._count

    def compact(self):
        return self if self.is_compact() else NDArray.of(self.tensor.clone())

    def as_strided(self, shape, strides):
        return NDArray.make(shape, strides, handle=self._handle, offset=self._offset)

    def reshape(self, shape):
        a = self if self.strides == _plain(self.shape) else self.compact()
        shape = tuple(np.empty(self.shape, "b").reshape(shape).shape)
        return a.as_strided(shape, _plain(shape))

    def permute(self, axes):
        return self.as_strided([self.shape[a] for a in axes], [self.strides[a] for a in axes])

    def broadcast_to(self, shape):
        assert all(n in (1, m) for n, m in zip(self.shape, shape))
        return self.as_strided(shape, [s if n == m else 0 for n, m, s in zip(self.shape, shape, self.strides)])

    def process_slice(self, part, dim):
        return slice(*part.indices(self.shape[dim]))

    def __getitem__(self, key):
        parts = [self.process_slice(p, k) if isinstance(p, slice) else slice(p, p + 1, 1)
                 for k, p in enumerate(key if isinstance(key, tuple) else (key,))]
        assert len(parts) == self.ndim and all(p.step > 0 for p in parts)
        offset = self._offset + sum(p.start * s for p, s in zip(parts, self.strides))
        shape = [len(range(p.start, p.stop, p.step)) for p in parts]
        return NDArray.make(shape, [p.step * s for p, s in zip(parts, self.strides)], handle=self._handle, offset=offset)

    def __setitem__(self, key, value):
        with fac.no_grad():
            np.asarray(self[key].tensor)[...] = value.numpy() if isinstance(value, NDArray) else value

    def flip(self, axes):
        return NDArray.of(fac.flip(self.tensor, axes))

    def pad(self, widths):
        return NDArray.of(fac.nn.functional.pad(self.tensor, [n for pair in reversed(widths) for n in pair]))

    # ---- numbers ----

    def _with(self, other, function):
        return NDArray.of(function(self.tensor, other.tensor if isinstance(other, NDArray) else other))

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self._with(other, lambda a, b: b - a)

    def __neg__(self):
        return self * -1

    def __truediv__(self, other):
        return self._with(other, lambda a, b: a / b)

    def __pow__(self, other):
        return self._with(other, lambda a, b: a ** b)

    def maximum(self, other):
        return self._with(other, lambda a, b: fac.maximum(a, b if isinstance(b, fac.Tensor) else fac.tensor(b)))

    def __eq__(self, other):
        return self._with(other, lambda a, b: a == b)

    def __ne__(self, other):
        return self._with(other, lambda a, b: a != b)

    def __ge__(self, other):
        return self._with(other, lambda a, b: a >= b)

    def __gt__(self, other):
        return self._with(other, lambda a, b: a > b)

    def __le__(self, other):
        return self._with(other, lambda a, b: a <= b)

    def __lt__(self, other):
        return self._with(other, lambda a, b: a < b)

    def log(self):
        return NDArray.of(fac.log(self.tensor))

    def exp(self):
        return NDArray.of(fac.exp(self.tensor))

    def tanh(self):
        return NDArray.of(fac.tanh(self.tensor))

    def __matmul__(self, other):
        return self._with(other, lambda a, b: a @ b)

    def sum(self, axis=None, keepdims=False):
        return NDArray.of(fac.sum(self.tensor, axis, keepdim=keepdims))

    def max(self, axis=None, keepdims=False):
        return NDArray.of(fac.amax(self.tensor, axis, keepdim=keepdims))


def array(a, dtype="float32", device=None):
    return NDArray(a, device)


def matmul_tiled(a, b, out, m, n, p):
    """Handles of matrices as tiles: tile (i, j) stands whole."""
    t = cpu().__tile_size__

    def whole(h, rows, columns):
        return fac.permute(h.flat.reshape(rows // t, columns // t, t, t), (0, 2, 1, 3)).reshape(rows, columns)
    c = whole(a, m, n) @ whole(b, n, p)
    np.asarray(out.flat)[...] = np.asarray(fac.permute(c.reshape(m // t, t, p // t, t), (0, 2, 1, 3)).reshape(-1))
