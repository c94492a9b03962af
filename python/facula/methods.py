"""Methods of Tensor: the functions of facula.functional, and what only a method can be."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _facula, autograd, functional as F, in_place
from ._facula import Tensor
from .dtypes import dtype, find, is_name
from .promote import cast, readable

_same = """abs absolute neg negative exp log log2 log10 log1p expm1 exp2 sqrt rsqrt square sin cos tan asin acos atan sinh
cosh tanh asinh acosh atanh erf sigmoid relu reciprocal floor ceil round trunc sign isnan isinf isfinite logical_not
logical_and logical_or logical_xor add sub mul div floor_divide remainder fmod pow matmul eq ne lt le gt ge maximum minimum
clamp clip lerp equal allclose sum mean prod amax amin max min argmax argmin all any var std norm logsumexp softmax
log_softmax cumsum cumprod reshape flatten unflatten squeeze unsqueeze permute transpose swapaxes movedim moveaxis expand
broadcast_to tile repeat_interleave split chunk unbind flip roll tril triu take_along_dim gather scatter scatter_add
index_select take masked_fill masked_select nonzero topk argsort sort unique mm bmm dot outer diag bitwise_and bitwise_or
bitwise_xor bitwise_not true_divide divide multiply subtract greater greater_equal less less_equal not_equal
atan2 hypot copysign nextafter logaddexp logaddexp2 gcd lcm det inverse renorm signbit erfc erfinv lgamma digamma isclose isposinf isneginf isreal positive fix
frac sgn deg2rad rad2deg logit xlogy sinc heaviside nan_to_num addcmul addcdiv clamp_min clamp_max fmax fmin float_power ldexp
narrow select ravel swapdims tensor_split hsplit vsplit dsplit fliplr flipud rot90 diagonal trace diag_embed diagflat
kthvalue median nanmedian msort quantile nanquantile slice_scatter select_scatter mode aminmax nansum nanmean count_nonzero bincount histc diff argwhere cummax cummin
logcumsumexp cov corrcoef dist unique_consecutive mv inner ger vdot addmm addmv addr baddbmm addbmm kron matrix_power cross
index_add index_copy index_fill index_put masked_scatter scatter_reduce arcsin arccos arctan arcsinh arccosh arctanh arctan2
bitwise_left_shift bitwise_right_shift""".split()


def _attach(name: str, function: Any) -> None:
    setattr(Tensor, name, function)


for _name in _same:
    _attach(_name, getattr(F, _name))
in_place.attach(_attach)
_attach("view", F.reshape)
_attach("repeat", F.repeat)
_attach("unfold", F.sliding)


def _method(function: Any) -> Any:
    _attach(function.__name__, function)
    return function


class _Size(int):
    """How many elements, as in NumPy and the array API; called, the shape or one size of it, as in PyTorch."""

    _shape: tuple[int, ...]

    def __new__(cls, x: Tensor) -> _Size:
        self = int.__new__(cls, x._count)
        self._shape = x.shape
        return self

    def __call__(self, dim: int | None = None) -> Any:
        return self._shape if dim is None else self._shape[dim]


setattr(Tensor, "size", property(_Size, doc=_Size.__doc__))


@_method
def numel(x: Tensor) -> int:
    """How many elements."""
    return x._count


@_method
def dim(x: Tensor) -> int:
    """How many dims."""
    return x.ndim


@_method
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """With the shape of another."""
    return F.reshape(x, other.shape)


@_method
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """With dims of size 1 repeated to the shape of another."""
    return F.expand(x, *other.shape)


@_method
def t(x: Tensor) -> Tensor:
    """The transposed matrix."""
    if x.ndim > 2:
        raise _facula.ShapeError(f"t() of shape {x.shape}: two dims at most were expected")
    return F.transpose(x, 0, 1) if x.ndim == 2 else x


@_method
def clone(x: Tensor) -> Tensor:
    """A copy of its own, through which gradients flow."""
    history = x.requires_grad or x.grad_fn is not None
    return _facula.apply("identity", None, 0, x) if history else x.detach()._convert(None)


@_method
def contiguous(x: Tensor) -> Tensor:
    """Row-major in memory."""
    return x


@_method
def is_contiguous(x: Tensor) -> bool:
    """Is it row-major in memory?  What has no elements is."""
    if not x._count:
        return True
    strides, step = x._strides, 1
    for n, s in zip(reversed(x.shape), reversed(strides)):
        if n != 1 and s != step:
            return False
        step *= n
    return True


@_method
def stride(x: Tensor, dim: int | None = None) -> Any:
    """Steps in elements."""
    return x._strides if dim is None else x._strides[dim]


@_method
def to(x: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False) -> Tensor:
    """Another dtype, another device, or both: x.to(fac.float64), x.to("opencl"), x.to(other).  non_blocking is for PyTorch's sake."""
    for a in args:
        if isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, _facula.Device) or (isinstance(a, str) and a.split(":")[0] in ("cpu", "opencl")):
            device = a
        elif isinstance(a, str) and not is_name(a):
            raise TypeError(f"to({a!r}): neither a dtype (float32, int64, ...) nor a device (cpu, opencl, opencl:1)")
        else:
            dtype = a
    y = x if dtype is None else cast(x, find(dtype))
    if device is not None and F.as_tensor(y).device.name != _facula.Device(device).name:
        moved = y._on(device)
        if y.requires_grad:
            moved.requires_grad, moved.grad_fn, moved._index = True, y.grad_fn, y._index
        y = moved
    return y.clone() if copy and y is x else y


def _type(x: Tensor, dtype: Any = None) -> Any:
    """The dtype, or the tensor as another one."""
    return x.dtype if dtype is None else cast(x, find(dtype))


_attach("type", _type)


@_method
def astype(x: Tensor, dtype: Any) -> Tensor:
    """As another dtype."""
    return cast(x, find(dtype))


def _caster(name: str, to_name: str) -> None:
    def method(x: Tensor) -> Tensor:
        return cast(x, find(to_name))
    method.__name__ = name
    method.__doc__ = f"As {to_name}."
    _attach(name, method)


for _name, _to in (("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("int", "int32"),
                   ("long", "int64"), ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool")):
    _caster(_name, _to)


@_method
def cpu(x: Tensor) -> Tensor:
    """On the CPU."""
    return x.to("cpu")


@_method
def opencl(x: Tensor, index: int = 0) -> Tensor:
    """On an OpenCL device."""
    return x.to(f"opencl:{index}")


@_method
def numpy(x: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """An array over the same memory."""
    if x.requires_grad and not force:
        raise RuntimeError("numpy() of a tensor that requires gradients: use x.detach().numpy()")
    return np.asarray(x.detach() if force else x)


@_method
def __array__(x: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    if x.dtype.name == "text":
        return np.array(x.tolist(), dtype=object).reshape(x.shape)
    array = np.asarray(memoryview(readable(x)))
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"an array of {dtype} cannot be had of {x.dtype} without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


@_method
def __complex__(x: Tensor) -> complex:
    return complex(x.item())


@_method
def __iter__(x: Tensor) -> Any:
    if not x.ndim:
        raise TypeError("a tensor without dims cannot be iterated over")
    return iter(F.unbind(x, 0))


@_method
def __contains__(x: Tensor, value: Any) -> bool:
    return bool(F.any(x == value))


@_method
def __format__(x: Tensor, spec: str) -> str:
    return format(x.item(), spec) if spec and not x.ndim else repr(x) if not spec else format(repr(x), spec)


def _revive(kind: type, data: Any, name: str, requires_grad: bool, device: str) -> Tensor:
    x = kind(data)
    if x.dtype.name != name:
        x = x._convert(find(name))
    x.requires_grad = requires_grad
    return x if device.startswith("cpu") else x._on(device)


@_method
def __reduce_ex__(x: Tensor, protocol: int) -> Any:
    kind = Tensor if x.grad_fn is not None else x.__class__
    data = np.array(np.asarray(x.detach()))
    return (_revive, (kind, data, x.dtype.name, x.requires_grad and x.grad_fn is None, x.device.name))


@_method
def __deepcopy__(x: Tensor, memo: Any) -> Tensor:
    if x.grad_fn is not None:
        raise RuntimeError("only leaves can be copied deeply: detach() the others")
    y = x.__class__(x.detach()._convert(None))
    y.requires_grad = x.requires_grad
    memo[id(x)] = y
    return y


@_method
def requires_grad_(x: Tensor, requires_grad: bool = True) -> Tensor:
    """Says whether a gradient by this tensor is wanted."""
    x.requires_grad = requires_grad
    return x


@_method
def detach_(x: Tensor) -> Tensor:
    """Forgets its history."""
    x.grad_fn = None
    x.requires_grad = False
    return x


@_method
def backward(x: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False) -> None:
    """Adds d x / d leaf to `.grad` of every leaf that requires one."""
    autograd.backward(x, gradient, retain_graph, create_graph)


_attach("register_hook", autograd.register_hook)
_attach("retain_grad", autograd.retain_grad)
_attach("register_post_accumulate_grad_hook", autograd.register_post_accumulate_grad_hook)


def _new(name: str) -> None:
    function = getattr(F, name)

    def method(x: Tensor, *args: Any, dtype: Any = None, device: Any = None) -> Tensor:
        return function(*args, dtype=dtype or x.dtype, device=device or x.device)
    method.__name__, method.__doc__ = f"new_{name}", f"As facula.{name}, with this dtype and device."
    _attach(f"new_{name}", method)


for _name in ("zeros", "ones", "empty", "full"):
    _new(_name)


@_method
def new_tensor(x: Tensor, data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Data as a tensor of this dtype, on this device."""
    return F.tensor(data, dtype=dtype or x.dtype, device=device or x.device)


@_method
def is_floating_point(x: Tensor) -> bool:
    """Is its dtype one of floating point?"""
    return x.dtype.is_floating_point


@_method
def element_size(x: Tensor) -> int:
    """Bytes of an element."""
    return x.dtype.itemsize


@_method
def apply_(x: Tensor, function: Any) -> Tensor:
    """function(number) for each element, in place; slow."""
    array = np.asarray(x.detach())
    return x._become(Tensor(np.vectorize(function, otypes=[array.dtype])(array)))


@_method
def type_as(x: Tensor, other: Tensor) -> Tensor:
    """With the dtype of another one."""
    return cast(x, other.dtype)


@_method
def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """With the shape of another."""
    return F.reshape(x, other.shape)


@_method
def is_same_size(x: Tensor, other: Tensor) -> bool:
    """Have both the same shape?"""
    return x.shape == other.shape


@_method
def is_nonzero(x: Tensor) -> bool:
    """Is the one element not 0?"""
    return bool(x.item())


@_method
def where(x: Tensor, condition: Any, other: Any) -> Tensor:
    """x where the condition is true, else the other."""
    y: Tensor = F.where(condition, x, other)
    return y


_attach("nelement", numel)
_attach("ndimension", dim)


@_method
def to_device(x: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """On another device; the array API's name of to()."""
    return x.to(device=device)


setattr(Tensor, "itemsize", property(lambda x: x.dtype.itemsize, doc="Bytes of an element."))
setattr(Tensor, "T", property(lambda x: F.permute(x, list(range(x.ndim))[::-1]), doc="Dims in reverse order."))
setattr(Tensor, "mT", property(lambda x: F.transpose(x, -1, -2), doc="The last two dims change places."))


def _set_data(x: Tensor, y: Tensor) -> None:
    x._become(F.as_tensor(y).detach())


setattr(Tensor, "data", property(lambda x: x.detach(), _set_data, doc="The value without history; may be set."))
setattr(Tensor, "__array_priority__", 1000)
__all__ = ["dtype"]
