"""Functions of single elements, and of two."""
from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from . import _facula, promote
from ._facula import Tensor, apply
from .dtypes import bool_, get_default_dtype, result_type
from .promote import cast
from .create import as_tensor, floats, zeros


def _unary(name: str, doc: str, op: str | None = None) -> Any:
    def function(input: Any) -> Tensor:
        return apply(op or name, None, 0, floats(as_tensor(input)))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


exp = _unary("exp", "e^x")
log = _unary("log", "ln x")
sqrt = _unary("sqrt", "Square root; NaN below 0.")
sin = _unary("sin", "Sine of radians.")
cos = _unary("cos", "Cosine of radians.")
tan = _unary("tan", "Tangent of radians.")
asin = arcsin = _unary("asin", "Inverse sine.")
acos = arccos = _unary("acos", "Inverse cosine.")
atan = arctan = _unary("atan", "Inverse tangent.")
sinh = _unary("sinh", "Hyperbolic sine.")
cosh = _unary("cosh", "Hyperbolic cosine.")
tanh = _unary("tanh", "Hyperbolic tangent.")
asinh = arcsinh = _unary("asinh", "Inverse hyperbolic sine.")
acosh = arccosh = _unary("acosh", "Inverse hyperbolic cosine.")
atanh = arctanh = _unary("atanh", "Inverse hyperbolic tangent.")
erf = _unary("erf", "The error function.")
sigmoid = _unary("sigmoid", "1 / (1 + e^-x)")
erfc = _unary("erfc", "1 - erf(x), exact far out.")
log2 = _unary("log2", "The logarithm to base 2.")
log10 = _unary("log10", "The logarithm to base 10.")
log1p = _unary("log1p", "ln(1 + x), exact for small x.")
expm1 = _unary("expm1", "e^x - 1, exact for small x.")
exp2 = _unary("exp2", "2^x")
lgamma = _unary("lgamma", "ln |gamma(x)|")
digamma = _unary("digamma", "The slope of lgamma.")
erfinv = _unary("erfinv", "The inverse of erf.")
reciprocal = _unary("reciprocal", "1 / x")
gelu_exact = _unary("gelu", "x / 2 (1 + erf(x / sqrt 2))")
isnan_ = _unary("isnan", "Is it NaN?")


def relu(input: Any) -> Tensor:
    """max(input, 0)"""
    return apply("relu", None, 0, as_tensor(input))


def abs(input: Any) -> Tensor:
    """|input|"""
    t: Tensor = as_tensor(input).__abs__()
    return t


absolute = abs


def neg(input: Any) -> Tensor:
    """-input"""
    t: Tensor = -as_tensor(input)
    return t


negative = neg


def _rounding(name: str, about: str) -> Any:
    def function(input: Any) -> Tensor:
        t = as_tensor(input)
        return apply(name, None, 0, t) if t.dtype.is_floating_point else t
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{about}; integers as they are."
    return function


floor, ceil = _rounding("floor", "The next integer below"), _rounding("ceil", "The next integer above")
_round, trunc = _rounding("round", "The nearest integer, of two the even one"), _rounding("trunc", "The next integer towards 0")


def round(input: Any, *, decimals: int = 0) -> Tensor:
    """The nearest integer, of two the even one, or the nearest with so many decimals; integers as they are."""
    t = as_tensor(input)
    if not decimals or not t.dtype.is_floating_point:
        whole: Tensor = _round(t)
        return whole
    scale = 10.0 ** builtins.abs(decimals)
    y: Tensor = _round(t * scale) / scale if decimals > 0 else _round(t / scale) * scale
    return y


def sign(input: Any) -> Tensor:
    """-1, 0 or 1; 0 of NaN, as in PyTorch (array_api.sign keeps it)."""
    t = as_tensor(input)
    if t.dtype is bool_:
        return t
    y = apply("sign", None, 0, t)
    return where(apply("isnan", None, 0, t), 0, y) if t.dtype.is_floating_point else y


def square(input: Any) -> Tensor:
    """input input"""
    t = as_tensor(input)
    return t * t


def rsqrt(input: Any) -> Tensor:
    """1 / sqrt input"""
    return reciprocal(sqrt(input))


def isnan(input: Any) -> Tensor:
    """Is it NaN?"""
    t = as_tensor(input)
    return apply("isnan", None, 0, t) if t.dtype.is_floating_point else zeros(t.shape, dtype=bool_)


def isinf(input: Any) -> Tensor:
    """Is it infinite?"""
    t = as_tensor(input)
    if not t.dtype.is_floating_point:
        return zeros(t.shape, dtype=bool_)
    return apply("isinf", "positive=1 negative=1", 0, t)


def isfinite(input: Any) -> Tensor:
    """Is it neither infinite nor NaN?"""
    t = as_tensor(input)
    r: Tensor = ~(isnan(t) | isinf(t))
    return r


def logical_not(input: Any) -> Tensor:
    """True where input is 0."""
    return apply("not", None, 0, cast(as_tensor(input), bool_))


def _logical(op: str) -> Any:
    def function(input: Any, other: Any) -> Tensor:
        return apply(op, None, 0, cast(as_tensor(input), bool_), cast(as_tensor(other), bool_))
    function.__name__ = function.__qualname__ = f"logical_{op}"
    function.__doc__ = f"{op}, of what is not 0."
    return function


logical_and, logical_or, logical_xor = _logical("and"), _logical("or"), _logical("xor")


def _binary(dunder: str, name: str) -> Any:
    def function(input: Any, other: Any) -> Tensor:
        a = input if isinstance(input, Tensor) or isinstance(other, Tensor) else as_tensor(input)
        result = getattr(operator, dunder)(a, other)
        return result
    import operator
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The operator {dunder} with broadcasting and promotion."
    return function


_add, _sub, _div = _binary("add", "add"), _binary("sub", "sub"), _binary("truediv", "div")
mul, floor_divide, remainder = _binary("mul", "mul"), _binary("floordiv", "floor_divide"), _binary("mod", "remainder")


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input + alpha other, with broadcasting and promotion."""
    t: Tensor = _add(input, other if alpha == 1 else mul(other, alpha))
    return t


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input - alpha other, with broadcasting and promotion."""
    t: Tensor = _sub(input, other if alpha == 1 else mul(other, alpha))
    return t


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, with broadcasting and promotion; rounding_mode: "trunc" towards 0, "floor" down."""
    if rounding_mode == "floor":
        a, b, _ = _both(input, other)
        down: Tensor = floor_divide(a, b)
        return promote.flat(down, a, b) if down.dtype.is_floating_point else down
    if rounding_mode is None:
        t: Tensor = _div(input, other)
        return t
    if rounding_mode != "trunc":
        raise ValueError(f"div: rounding_mode is trunc, floor or None, not {rounding_mode!r}")
    a, b, common = _both(input, other)
    if common is bool_:
        return _div(a, b)
    whole: Tensor = trunc(apply("div", None, 0, a.detach(), b.detach()))
    return promote.flat(whole, a, b) if common.is_floating_point else whole


_pow, matmul = _binary("pow", "pow"), _binary("matmul", "matmul")


def pow(input: Any, exponent: Any) -> Tensor:
    """input^exponent, with broadcasting and promotion."""
    t: Tensor = _pow(input, exponent)
    return t


subtract, multiply, divide, true_divide = sub, mul, div, div
eq, ne, lt = _binary("eq", "eq"), _binary("ne", "ne"), _binary("lt", "lt")
le, gt, ge = _binary("le", "le"), _binary("gt", "gt"), _binary("ge", "ge")
equal_to, not_equal, less, less_equal, greater, greater_equal = eq, ne, lt, le, gt, ge
bitwise_and, bitwise_or, bitwise_xor = _binary("and_", "bitwise_and"), _binary("or_", "bitwise_or"), _binary("xor", "bitwise_xor")
bitwise_left_shift, bitwise_right_shift = _binary("lshift", "bitwise_left_shift"), _binary("rshift", "bitwise_right_shift")


def bitwise_not(input: Any) -> Tensor:
    """Every bit inverted; not, of bools."""
    t: Tensor = ~as_tensor(input)
    return t


def fmod(input: Any, other: Any) -> Tensor:
    """The remainder with the sign of input."""
    a, b, _ = _both(input, other)
    return apply("fmod", None, 0, a, b)


def _both(x: Any, y: Any) -> tuple[Tensor, Tensor, Any]:
    pair = promote.both(x, y)
    if pair is None:
        raise TypeError(f"a tensor and {type(y).__name__} have no common type")
    return pair


def _pair_of_floats(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Both as floats of one type: -1 stays below 0 beside a tensor of unsigned numbers."""
    a, b = promote.operand(x), promote.operand(y)
    if a is None or b is None:
        raise TypeError(f"{type(x).__name__} and {type(y).__name__} have no common type")
    common = result_type(a, b)
    if not common.is_floating_point:
        common = get_default_dtype()
    on = next((t.device for t in (a, b) if isinstance(t, Tensor)), None)
    p, q = (cast(t, common) if isinstance(t, Tensor) else Tensor(t, dtype=common, device=on) for t in (a, b))
    return p, q


def _float_pair(name: str, doc: str) -> Any:
    def function(input: Any, other: Any) -> Tensor:
        return apply(name, None, 0, *_pair_of_floats(input, other))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


atan2 = arctan2 = _float_pair("atan2", "The angle of the point (y, x), from -pi to pi.")
hypot = _float_pair("hypot", "sqrt(x x + y y), without overflow.")
copysign = _float_pair("copysign", "|x| with the sign of y.")
nextafter = _float_pair("nextafter", "The number next to x on the way to y.")


def logaddexp(input: Any, other: Any) -> Tensor:
    """ln(e^input + e^other), without overflow."""
    a, b = _pair_of_floats(input, other)
    apart = minimum(a, b) - maximum(a, b)
    r: Tensor = maximum(a, b) + log1p(exp(where(a == b, 0.0, apart)))   # equal infinities have no difference
    return r


def logaddexp2(input: Any, other: Any) -> Tensor:
    """log2(2^input + 2^other), without overflow."""
    a, b = _pair_of_floats(input, other)
    two = math.log(2)
    r: Tensor = logaddexp(a * two, b * two) / two
    return r


def _whole(name: str, function: Any, about: str) -> Any:
    def method(input: Any, other: Any) -> Tensor:
        a, b = as_tensor(input), as_tensor(other)
        kind = result_type(a, b)
        if kind.is_floating_point or kind is bool_:
            raise _facula.DtypeError(f"{name}: integers were expected, not {kind.name}")
        return Tensor(function(np.asarray(a), np.asarray(b)), dtype=kind)
    method.__name__ = name
    method.__doc__ = about
    return method


gcd = _whole("gcd", np.gcd, "The greatest common divisor of integers.")
lcm = _whole("lcm", np.lcm, "The least common multiple of integers.")


def signbit(input: Any) -> Tensor:
    """Is the sign set?  That of -0 is."""
    t = as_tensor(input)
    return apply("signbit", None, 0, t) if t.dtype.is_floating_point else t < 0


def maximum(input: Any, other: Any) -> Tensor:
    """The larger of both; NaN in either is NaN."""
    a, b, common = _both(input, other)
    return (a | b) if common is bool_ else apply("max", None, 0, a, b)


def minimum(input: Any, other: Any) -> Tensor:
    """The smaller of both; NaN in either is NaN."""
    a, b, common = _both(input, other)
    return (a & b) if common is bool_ else apply("min", None, 0, a, b)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """input where the condition is true, else other; of the condition alone, the indices where it is."""
    c = cast(as_tensor(condition), bool_)
    if input is None and other is None:
        from .places import nonzero
        return nonzero(c, as_tuple=True)
    a, b, _ = _both(input, other)
    return apply("where", None, 0, c, a, b)


def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """input between min and max; where input is one of them, its gradient goes through."""
    t = as_tensor(input)
    if min is None and max is None:
        raise ValueError("clamp: min, max or both were expected")
    bounds = [promote.operand(b) for b in (min, max) if b is not None]
    if builtins.any(b is None for b in bounds):
        raise TypeError("clamp: min and max are numbers or tensors")
    common = result_type(t, *bounds)
    if common.is_floating_point:
        low, high = (as_tensor(b, cast(t, common)) for b in (-math.inf if min is None else min, math.inf if max is None else max))
        shape = tuple(np.broadcast_shapes(t.shape, low.shape, high.shape))
        t = cast(t, common) if shape == t.shape else cast(t, common).expand(shape)
        return apply("clip", None, 0, t, cast(low, common), cast(high, common))
    if min is not None:
        t = maximum(t, min)
    if max is not None:
        t = minimum(t, max)
    return t


clip = clamp


def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """x + weight (end - x)"""
    t: Tensor = input + weight * (end - input)
    return t


def equal(input: Tensor, other: Tensor) -> bool:
    """Are shapes and all elements equal?"""
    return input.shape == other.shape and bool(np.all(np.asarray((input == other).detach())))


def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Are all elements equal within tolerances: |input - other| <= atol + rtol |other|?"""
    return bool(np.allclose(np.asarray(as_tensor(input).detach()), np.asarray(as_tensor(other).detach()), rtol, atol, equal_nan))
