"""Functions of single elements, and of two."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import elementwise as f
from .._facula import Tensor, apply
from ..create import as_tensor, zeros_like
from ..dtypes import bool_
from ..promote import cast

_Unary = Callable[[Any], Tensor]
_Binary = Callable[[Any, Any], Tensor]


def _one(name: str, function: Any) -> _Unary:
    def call(x: Any, /) -> Tensor:
        y: Tensor = function(x)
        return y
    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


def _sign(x: Any) -> Tensor:
    """-1, 0 or 1; NaN stays."""
    t = as_tensor(x)
    return t if t.dtype is bool_ else apply("sign", None, 0, t)


def _floor_divide(x1: Any, x2: Any) -> Tensor:
    """x1 // x2, but as the standard says -0, not -1, for a number over an infinity of the other sign."""
    y: Tensor = f.floor_divide(x1, x2)
    if not y.dtype.is_floating_point:
        return y
    share = cast(f.div(x1, x2).detach(), y.dtype)
    return f.where((y == -1) & (share == 0) & f.isinf(as_tensor(x2)), share, y)


def _two(name: str, function: Any) -> _Binary:
    def call(x1: Any, x2: Any, /) -> Tensor:
        y: Tensor = function(x1, x2)
        return y
    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


abs, negative, square, sign = _one("abs", f.abs), _one("negative", f.neg), _one("square", f.square), _one("sign", _sign)
exp, expm1, log, log1p = _one("exp", f.exp), _one("expm1", f.expm1), _one("log", f.log), _one("log1p", f.log1p)
log2, log10, sqrt = _one("log2", f.log2), _one("log10", f.log10), _one("sqrt", f.sqrt)
sin, cos, tan = _one("sin", f.sin), _one("cos", f.cos), _one("tan", f.tan)
asin, acos, atan = _one("asin", f.asin), _one("acos", f.acos), _one("atan", f.atan)
sinh, cosh, tanh = _one("sinh", f.sinh), _one("cosh", f.cosh), _one("tanh", f.tanh)
asinh, acosh, atanh = _one("asinh", f.asinh), _one("acosh", f.acosh), _one("atanh", f.atanh)
floor, ceil, round, trunc = _one("floor", f.floor), _one("ceil", f.ceil), _one("round", f.round), _one("trunc", f.trunc)
isnan, isinf, isfinite = _one("isnan", f.isnan), _one("isinf", f.isinf), _one("isfinite", f.isfinite)
reciprocal, signbit = _one("reciprocal", f.reciprocal), _one("signbit", f.signbit)
logical_not, bitwise_invert = _one("logical_not", f.logical_not), _one("bitwise_invert", f.bitwise_not)

add, subtract, multiply = _two("add", f.add), _two("subtract", f.sub), _two("multiply", f.mul)
divide, floor_divide, remainder = _two("divide", f.div), _two("floor_divide", _floor_divide), _two("remainder", f.remainder)
pow, maximum, minimum = _two("pow", f.pow), _two("maximum", f.maximum), _two("minimum", f.minimum)
equal, not_equal = _two("equal", f.eq), _two("not_equal", f.ne)
less, less_equal = _two("less", f.lt), _two("less_equal", f.le)
greater, greater_equal = _two("greater", f.gt), _two("greater_equal", f.ge)
logical_and, logical_or, logical_xor = (_two(f"logical_{n}", getattr(f, f"logical_{n}")) for n in ("and", "or", "xor"))
bitwise_and, bitwise_or, bitwise_xor = (_two(f"bitwise_{n}", getattr(f, f"bitwise_{n}")) for n in ("and", "or", "xor"))
bitwise_left_shift = _two("bitwise_left_shift", f.bitwise_left_shift)
bitwise_right_shift = _two("bitwise_right_shift", f.bitwise_right_shift)
atan2, hypot, copysign = _two("atan2", f.atan2), _two("hypot", f.hypot), _two("copysign", f.copysign)
nextafter, logaddexp = _two("nextafter", f.nextafter), _two("logaddexp", f.logaddexp)


def positive(x: Any, /) -> Tensor:
    """+x"""
    y: Tensor = +as_tensor(x)
    return y


def real(x: Any, /) -> Tensor:
    """The real part: x, since there are no complex dtypes."""
    return positive(x)


def conj(x: Any, /) -> Tensor:
    """The complex conjugate: x, since there are no complex dtypes."""
    return positive(x)


def imag(x: Any, /) -> Tensor:
    """The imaginary part: zeros, since there are no complex dtypes."""
    return zeros_like(as_tensor(x))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """x between min and max, in the dtype of x; without bounds x itself."""
    t = as_tensor(x)
    if min is None and max is None:
        return positive(t)
    return cast(f.clamp(t, min, max), t.dtype)
