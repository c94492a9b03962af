"""Methods that write into their tensor: add_, exp_, copy_... by the functions of the same name."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _facula, autograd, functional as F
from ._facula import Tensor
from .dtypes import bool_
from .promote import cast

_same_shape = """abs absolute neg negative exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square sin cos tan asin acos atan sinh cosh
tanh asinh acosh atanh arcsin arccos arctan arcsinh arccosh arctanh erf erfc erfinv lgamma digamma sigmoid relu reciprocal
floor ceil round trunc fix frac sign sgn deg2rad rad2deg logit sinc nan_to_num add sub mul div subtract multiply divide
true_divide floor_divide remainder fmod pow float_power atan2 arctan2 hypot copysign nextafter heaviside xlogy ldexp
clamp clip clamp_min clamp_max lerp addcmul addcdiv addmm addmv addr baddbmm addbmm masked_fill masked_scatter tril triu
cumsum cumprod eq ne lt le gt ge not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift scatter scatter_add
scatter_reduce index_add index_copy index_fill index_put"""
_other_shapes = "squeeze unsqueeze transpose swapaxes swapdims"


def _check(x: Tensor) -> None:
    if x.requires_grad and x.is_leaf and autograd.is_grad_enabled():
        raise RuntimeError("a leaf that requires gradients is written in place: say `with no_grad():`")


def written(x: Tensor, y: Tensor) -> Tensor:
    """x with the value of y, which has its shape and type.  What x was computed from then has the gradient 0, as PyTorch has it."""
    _check(x)
    if x.requires_grad and not y.requires_grad and autograd.is_grad_enabled():
        y = F.where(F.full_like(x, 1, dtype=bool_), y, x)
    return x._become(y)


def into(x: Tensor, y: Tensor, inplace: bool) -> Tensor:
    """y; of functions and layers with `inplace`, written into x."""
    return written(x, y) if inplace else y


def _in_place(name: str) -> Any:
    function = getattr(F, name)

    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        _check(x)
        y = function(x, *args, **kwargs)
        if y.shape != x.shape:
            raise _facula.ShapeError(f"{name}_: a result of shape {y.shape} cannot be written into {x.shape}")
        if y.dtype.is_floating_point and not x.dtype.is_floating_point:
            raise _facula.DtypeError(f"{name}_: a result of {y.dtype.name} cannot be written into {x.dtype.name}")
        return written(x, cast(y, x.dtype))
    method.__name__ = f"{name}_"
    method.__doc__ = f"{name}(), written into this tensor."
    return method


def _other_shape(name: str) -> Any:
    function = getattr(F, name)

    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return x._become(function(x, *args, **kwargs))
    method.__name__ = f"{name}_"
    method.__doc__ = f"{name}(): this tensor becomes the result."
    return method


def copy_(x: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Takes the elements of another one, in place.  non_blocking is for PyTorch's sake: the copy is made when it is needed."""
    y = F.expand(cast(F.as_tensor(src, x), x.dtype), *x.shape)
    return written(x, y.clone() if y is src else y)


def fill_(x: Tensor, value: Any) -> Tensor:
    """All elements become this number."""
    return written(x, F.full_like(x, value))


def zero_(x: Tensor) -> Tensor:
    """All elements become 0."""
    return written(x, F.full_like(x, 0))


def t_(x: Tensor) -> Tensor:
    """t(): this tensor becomes the result."""
    return x._become(x.t())


def attach(to: Callable[[str, Any], None]) -> None:
    """Gives Tensor these methods."""
    for name in _same_shape.split():
        to(f"{name}_", _in_place(name))
    for name in _other_shapes.split():
        to(f"{name}_", _other_shape(name))
    for method in (copy_, fill_, zero_, t_):
        to(method.__name__, method)
