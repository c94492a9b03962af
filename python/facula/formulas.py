"""Functions of single elements that are a line of others."""
from __future__ import annotations

import math
from typing import Any

from ._facula import Tensor, apply
from .dtypes import bool_, float64
from .create import as_tensor, floats, full_like, ones, zeros_like
from .elementwise import abs, clamp, _pair_of_floats, isfinite, isinf, isnan, log, maximum, minimum, sign, sin, trunc, where
from .promote import cast


def is_tensor(x: Any) -> bool:
    """Is it a Tensor?"""
    return isinstance(x, Tensor)


def is_floating_point(x: Tensor) -> bool:
    """Are the elements floating-point numbers?"""
    return x.dtype.is_floating_point


def numel(x: Tensor) -> int:
    """How many elements."""
    return x._count


def isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Is |x - y| <= atol + rtol |y|, element by element?  Equal infinities are close."""
    a, b = as_tensor(x), as_tensor(y)
    if a.dtype is bool_:
        return a == b
    close: Tensor = (a == b) | (isfinite(a) & isfinite(b) & (abs(a - b) <= atol + rtol * abs(b)))
    return close | (isnan(a) & isnan(b)) if equal_nan else close


def isposinf(x: Any) -> Tensor:
    """Is it +infinity?"""
    t = as_tensor(x)
    return isinf(t) & (t > 0)


def isneginf(x: Any) -> Tensor:
    """Is it -infinity?"""
    t = as_tensor(x)
    return isinf(t) & (t < 0)


def isreal(x: Any) -> Tensor:
    """Is it real?  All numbers here are."""
    return ones(as_tensor(x).shape, dtype=bool_)


def positive(x: Any) -> Tensor:
    """x itself."""
    return as_tensor(x)


def fix(x: Any) -> Tensor:
    """Rounded towards 0."""
    return trunc(x)


def frac(x: Any) -> Tensor:
    """What trunc takes away."""
    t = as_tensor(x)
    return t - trunc(t)


def sgn(x: Any) -> Tensor:
    """-1, 0 or 1."""
    return sign(x)


def deg2rad(x: Any) -> Tensor:
    """Degrees as radians."""
    return floats(as_tensor(x)) * (math.pi / 180)


def rad2deg(x: Any) -> Tensor:
    """Radians as degrees."""
    return floats(as_tensor(x)) * (180 / math.pi)


def logit(x: Any, eps: float | None = None) -> Tensor:
    """ln(x / (1 - x)); eps keeps x away from 0 and 1."""
    t = floats(as_tensor(x))
    t = t if eps is None else clamp(t, eps, 1 - eps)
    return log(t / (1 - t))


def xlogy(x: Any, y: Any) -> Tensor:
    """x ln y, and 0 where x is 0 and y is no NaN."""
    a, b = _pair_of_floats(x, y)
    none = (a == 0) & ((b <= 0) | isinf(b))                 # of other y, 0 ln y is 0 by itself, and its gradient by x is ln y
    t: Tensor = a * log(where(none, 1.0, b))
    return t


def sinc(x: Any) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0."""
    t = floats(as_tensor(x)) * math.pi
    safe = where(t == 0, full_like(t, 1), t)
    return where(t == 0, full_like(t, 1), sin(safe) / safe)


def heaviside(x: Any, values: Any) -> Tensor:
    """0 below 0, 1 above, the values at 0."""
    t, v = as_tensor(x), as_tensor(values)
    return where(t == 0, v, cast(t > 0, t.dtype))


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Numbers instead of NaN and of infinities; without any said, those are the largest of the dtype."""
    t = as_tensor(x)
    if not t.dtype.is_floating_point:
        return t
    from .array_api import finfo
    limits = finfo(t.dtype)
    t = where(isnan(t), full_like(t, nan), t)
    t = where(isposinf(t), full_like(t, limits.max if posinf is None else posinf), t)
    return where(isneginf(t), full_like(t, limits.min if neginf is None else neginf), t)


def addcmul(x: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """x + value tensor1 tensor2"""
    y: Tensor = x + value * (tensor1 * tensor2)
    return y


def addcdiv(x: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """x + value tensor1 / tensor2"""
    y: Tensor = x + value * (tensor1 / tensor2)
    return y


def clamp_min(x: Any, min: Any) -> Tensor:
    """max(x, min)"""
    return clamp(x, min)


def clamp_max(x: Any, max: Any) -> Tensor:
    """min(x, max)"""
    return clamp(x, None, max)


def fmax(x: Any, y: Any) -> Tensor:
    """The larger of both, or the one that is no NaN."""
    a, b = as_tensor(x), as_tensor(y)
    return where(isnan(b), a, where(isnan(a), b, maximum(a, b)))


def fmin(x: Any, y: Any) -> Tensor:
    """The smaller of both, or the one that is no NaN."""
    a, b = as_tensor(x), as_tensor(y)
    return where(isnan(b), a, where(isnan(a), b, minimum(a, b)))


def float_power(x: Any, y: Any) -> Tensor:
    """x^y of float64."""
    t: Tensor = cast(as_tensor(x), float64) ** (cast(y, float64) if isinstance(y, Tensor) else float(y))
    return t


def ldexp(x: Any, other: Any) -> Tensor:
    """x 2^other"""
    t: Tensor = as_tensor(x) * apply("exp2", None, 0, floats(as_tensor(other)))
    return t


