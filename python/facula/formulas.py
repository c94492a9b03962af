"""Functions of single elements that are a line of others."""
from __future__ import annotations

import math
from typing import Any

from ._facula import Tensor, apply
from .dtypes import bool_, float64
from .create import as_tensor, floats, full_like, ones, zeros_like
from .elementwise import abs, clamp, _pair_of_floats, isfinite, isinf, isnan, log, maximum, minimum, sign, sin, trunc, where
from .promote import cast


def is_tensor(input: Any) -> bool:
    """Is it a Tensor?"""
    return isinstance(input, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Are the elements floating-point numbers?"""
    return input.dtype.is_floating_point


def numel(input: Tensor) -> int:
    """How many elements."""
    return input._count


def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Is |input - other| <= atol + rtol |other|, element by element?  Equal infinities are close."""
    a, b = as_tensor(input), as_tensor(other)
    if a.dtype is bool_:
        return a == b
    close: Tensor = (a == b) | (isfinite(a) & isfinite(b) & (abs(a - b) <= atol + rtol * abs(b)))
    return close | (isnan(a) & isnan(b)) if equal_nan else close


def isposinf(input: Any) -> Tensor:
    """Is it +infinity?"""
    t = as_tensor(input)
    return isinf(t) & (t > 0)


def isneginf(input: Any) -> Tensor:
    """Is it -infinity?"""
    t = as_tensor(input)
    return isinf(t) & (t < 0)


def isreal(input: Any) -> Tensor:
    """Is it real?  All numbers here are."""
    return ones(as_tensor(input).shape, dtype=bool_)


def positive(input: Any) -> Tensor:
    """input itself."""
    return as_tensor(input)


def fix(input: Any) -> Tensor:
    """Rounded towards 0."""
    return trunc(input)


def frac(input: Any) -> Tensor:
    """What trunc takes away."""
    t = as_tensor(input)
    return t - trunc(t)


def sgn(input: Any) -> Tensor:
    """-1, 0 or 1."""
    return sign(input)


def deg2rad(input: Any) -> Tensor:
    """Degrees as radians."""
    return floats(as_tensor(input)) * (math.pi / 180)


def rad2deg(input: Any) -> Tensor:
    """Radians as degrees."""
    return floats(as_tensor(input)) * (180 / math.pi)


def logit(input: Any, eps: float | None = None) -> Tensor:
    """ln(input / (1 - input)); eps keeps input away from 0 and 1."""
    t = floats(as_tensor(input))
    t = t if eps is None else clamp(t, eps, 1 - eps)
    return log(t / (1 - t))


def xlogy(input: Any, other: Any) -> Tensor:
    """input ln other, and 0 where input is 0 and other is no NaN."""
    a, b = _pair_of_floats(input, other)
    none = (a == 0) & ((b <= 0) | isinf(b))                 # of other y, 0 ln y is 0 by itself, and its gradient by x is ln y
    t: Tensor = a * log(where(none, 1.0, b))
    return t


def sinc(input: Any) -> Tensor:
    """sin(pi input) / (pi input), and 1 at 0."""
    t = floats(as_tensor(input)) * math.pi
    safe = where(t == 0, full_like(t, 1), t)
    return where(t == 0, full_like(t, 1), sin(safe) / safe)


def heaviside(input: Any, values: Any) -> Tensor:
    """0 below 0, 1 above, the values at 0."""
    t, v = as_tensor(input), as_tensor(values)
    return where(t == 0, v, cast(t > 0, t.dtype))


def nan_to_num(input: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Numbers instead of NaN and of infinities; without any said, those are the largest of the dtype."""
    t = as_tensor(input)
    if not t.dtype.is_floating_point:
        return t
    from .array_api import finfo
    limits = finfo(t.dtype)
    t = where(isnan(t), full_like(t, nan), t)
    t = where(isposinf(t), full_like(t, limits.max if posinf is None else posinf), t)
    return where(isneginf(t), full_like(t, limits.min if neginf is None else neginf), t)


def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """input + value tensor1 tensor2"""
    y: Tensor = input + value * (tensor1 * tensor2)
    return y


def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """input + value tensor1 / tensor2"""
    y: Tensor = input + value * (tensor1 / tensor2)
    return y


def clamp_min(input: Any, min: Any) -> Tensor:
    """max(x, min)"""
    return clamp(input, min)


def clamp_max(input: Any, max: Any) -> Tensor:
    """min(x, max)"""
    return clamp(input, None, max)


def fmax(input: Any, other: Any) -> Tensor:
    """The larger of both, or the one that is no NaN."""
    a, b = as_tensor(input), as_tensor(other)
    return where(isnan(b), a, where(isnan(a), b, maximum(a, b)))


def fmin(input: Any, other: Any) -> Tensor:
    """The smaller of both, or the one that is no NaN."""
    a, b = as_tensor(input), as_tensor(other)
    return where(isnan(b), a, where(isnan(a), b, minimum(a, b)))


def float_power(input: Any, exponent: Any) -> Tensor:
    """input^exponent of float64."""
    t: Tensor = cast(as_tensor(input), float64) ** (cast(exponent, float64) if isinstance(exponent, Tensor) else float(exponent))
    return t


def ldexp(input: Any, other: Any) -> Tensor:
    """input 2^other"""
    t: Tensor = as_tensor(input) * apply("exp2", None, 0, floats(as_tensor(other)))
    return t


