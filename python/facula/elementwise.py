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
    def function(x: Any) -> Tensor:
        return apply(op or name, None, 0, floats(as_tensor(x)))
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


def relu(x: Any) -> Tensor:
    """max(x, 0)"""
    return apply("relu", None, 0, as_tensor(x))


def abs(x: Any) -> Tensor:
    """|x|"""
    t: Tensor = as_tensor(x).__abs__()
    return t


absolute = abs


def neg(x: Any) -> Tensor:
    """-x"""
    t: Tensor = -as_tensor(x)
    return t


negative = neg


def _rounding(name: str, about: str) -> Any:
    def function(x: Any) -> Tensor:
        t = as_tensor(x)
        return apply(name, None, 0, t) if t.dtype.is_floating_point else t
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{about}; integers as they are."
    return function


floor, ceil = _rounding("floor", "The next integer below"), _rounding("ceil", "The next integer above")
_round, trunc = _rounding("round", "The nearest integer, of two the even one"), _rounding("trunc", "The next integer towards 0")


def round(x: Any, *, decimals: int = 0) -> Tensor:
    """The nearest integer, of two the even one, or the nearest with so many decimals; integers as they are."""
    t = as_tensor(x)
    if not decimals or not t.dtype.is_floating_point:
        whole: Tensor = _round(t)
        return whole
    scale = 10.0 ** builtins.abs(decimals)
    y: Tensor = _round(t * scale) / scale if decimals > 0 else _round(t / scale) * scale
    return y


def sign(x: Any) -> Tensor:
    """-1, 0 or 1; 0 of NaN, as in PyTorch (array_api.sign keeps it)."""
    t = as_tensor(x)
    if t.dtype is bool_:
        return t
    y = apply("sign", None, 0, t)
    return where(apply("isnan", None, 0, t), 0, y) if t.dtype.is_floating_point else y


def square(x: Any) -> Tensor:
    """x x"""
    t = as_tensor(x)
    return t * t


def rsqrt(x: Any) -> Tensor:
    """1 / sqrt x"""
    return reciprocal(sqrt(x))


def isnan(x: Any) -> Tensor:
    """Is it NaN?"""
    t = as_tensor(x)
    return apply("isnan", None, 0, t) if t.dtype.is_floating_point else zeros(t.shape, dtype=bool_)


def isinf(x: Any) -> Tensor:
    """Is it infinite?"""
    t = as_tensor(x)
    if not t.dtype.is_floating_point:
        return zeros(t.shape, dtype=bool_)
    return apply("isinf", "positive=1 negative=1", 0, t)


def isfinite(x: Any) -> Tensor:
    """Is it neither infinite nor NaN?"""
    t = as_tensor(x)
    r: Tensor = ~(isnan(t) | isinf(t))
    return r


def logical_not(x: Any) -> Tensor:
    """True where x is 0."""
    return apply("not", None, 0, cast(as_tensor(x), bool_))


def _logical(op: str) -> Any:
    def function(x: Any, y: Any) -> Tensor:
        return apply(op, None, 0, cast(as_tensor(x), bool_), cast(as_tensor(y), bool_))
    function.__name__ = function.__qualname__ = f"logical_{op}"
    function.__doc__ = f"{op}, of what is not 0."
    return function


logical_and, logical_or, logical_xor = _logical("and"), _logical("or"), _logical("xor")


def _binary(dunder: str, name: str) -> Any:
    def function(x: Any, y: Any) -> Tensor:
        a = x if isinstance(x, Tensor) or isinstance(y, Tensor) else as_tensor(x)
        result = getattr(operator, dunder)(a, y)
        return result
    import operator
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The operator {dunder} with broadcasting and promotion."
    return function


_add, _sub, _div = _binary("add", "add"), _binary("sub", "sub"), _binary("truediv", "div")
mul, floor_divide, remainder = _binary("mul", "mul"), _binary("floordiv", "floor_divide"), _binary("mod", "remainder")


def add(x: Any, y: Any, *, alpha: Any = 1) -> Tensor:
    """x + alpha y, with broadcasting and promotion."""
    t: Tensor = _add(x, y if alpha == 1 else mul(y, alpha))
    return t


def sub(x: Any, y: Any, *, alpha: Any = 1) -> Tensor:
    """x - alpha y, with broadcasting and promotion."""
    t: Tensor = _sub(x, y if alpha == 1 else mul(y, alpha))
    return t


def div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    """x / y, with broadcasting and promotion; rounding_mode: "trunc" towards 0, "floor" down."""
    if rounding_mode == "floor":
        a, b, _ = _both(x, y)
        down: Tensor = floor_divide(a, b)
        return promote.flat(down, a, b) if down.dtype.is_floating_point else down
    if rounding_mode is None:
        t: Tensor = _div(x, y)
        return t
    if rounding_mode != "trunc":
        raise ValueError(f"div: rounding_mode is trunc, floor or None, not {rounding_mode!r}")
    a, b, common = _both(x, y)
    if common is bool_:
        return _div(a, b)
    whole: Tensor = trunc(apply("div", None, 0, a.detach(), b.detach()))
    return promote.flat(whole, a, b) if common.is_floating_point else whole


pow, matmul = _binary("pow", "pow"), _binary("matmul", "matmul")
subtract, multiply, divide, true_divide = sub, mul, div, div
eq, ne, lt = _binary("eq", "eq"), _binary("ne", "ne"), _binary("lt", "lt")
le, gt, ge = _binary("le", "le"), _binary("gt", "gt"), _binary("ge", "ge")
equal_to, not_equal, less, less_equal, greater, greater_equal = eq, ne, lt, le, gt, ge
bitwise_and, bitwise_or, bitwise_xor = _binary("and_", "bitwise_and"), _binary("or_", "bitwise_or"), _binary("xor", "bitwise_xor")
bitwise_left_shift, bitwise_right_shift = _binary("lshift", "bitwise_left_shift"), _binary("rshift", "bitwise_right_shift")


def bitwise_not(x: Any) -> Tensor:
    """Every bit inverted; not, of bools."""
    t: Tensor = ~as_tensor(x)
    return t


def fmod(x: Any, y: Any) -> Tensor:
    """The remainder with the sign of x."""
    a, b, _ = _both(x, y)
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
    def function(x: Any, y: Any) -> Tensor:
        return apply(name, None, 0, *_pair_of_floats(x, y))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


atan2 = arctan2 = _float_pair("atan2", "The angle of the point (y, x), from -pi to pi.")
hypot = _float_pair("hypot", "sqrt(x x + y y), without overflow.")
copysign = _float_pair("copysign", "|x| with the sign of y.")
nextafter = _float_pair("nextafter", "The number next to x on the way to y.")


def logaddexp(x: Any, y: Any) -> Tensor:
    """ln(e^x + e^y), without overflow."""
    a, b = _pair_of_floats(x, y)
    apart = minimum(a, b) - maximum(a, b)
    r: Tensor = maximum(a, b) + log1p(exp(where(a == b, 0.0, apart)))   # equal infinities have no difference
    return r


def logaddexp2(x: Any, y: Any) -> Tensor:
    """log2(2^x + 2^y), without overflow."""
    a, b = _pair_of_floats(x, y)
    two = math.log(2)
    r: Tensor = logaddexp(a * two, b * two) / two
    return r


def _whole(name: str, function: Any, about: str) -> Any:
    def method(x: Any, y: Any) -> Tensor:
        a, b = as_tensor(x), as_tensor(y)
        kind = result_type(a, b)
        if kind.is_floating_point or kind is bool_:
            raise _facula.DtypeError(f"{name}: integers were expected, not {kind.name}")
        return Tensor(function(np.asarray(a), np.asarray(b)), dtype=kind)
    method.__name__ = name
    method.__doc__ = about
    return method


gcd = _whole("gcd", np.gcd, "The greatest common divisor of integers.")
lcm = _whole("lcm", np.lcm, "The least common multiple of integers.")


def signbit(x: Any) -> Tensor:
    """Is the sign set?  That of -0 is."""
    t = as_tensor(x)
    return apply("signbit", None, 0, t) if t.dtype.is_floating_point else t < 0


def maximum(x: Any, y: Any) -> Tensor:
    """The larger of both; NaN in either is NaN."""
    a, b, common = _both(x, y)
    return (a | b) if common is bool_ else apply("max", None, 0, a, b)


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of both; NaN in either is NaN."""
    a, b, common = _both(x, y)
    return (a & b) if common is bool_ else apply("min", None, 0, a, b)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """x where the condition is true, else y; of the condition alone, the indices where it is."""
    c = cast(as_tensor(condition), bool_)
    if x is None and y is None:
        from .places import nonzero
        return nonzero(c, as_tuple=True)
    a, b, _ = _both(x, y)
    return apply("where", None, 0, c, a, b)


def clamp(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """x between min and max; where x is one of them, its gradient goes through."""
    t = as_tensor(x)
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


def lerp(start: Tensor, end: Tensor, weight: Any) -> Tensor:
    """x + weight (end - x)"""
    t: Tensor = start + weight * (end - start)
    return t


def equal(x: Tensor, y: Tensor) -> bool:
    """Are shapes and all elements equal?"""
    return x.shape == y.shape and bool(np.all(np.asarray((x == y).detach())))


def allclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Are all elements equal within tolerances: |x - y| <= atol + rtol |y|?"""
    return bool(np.allclose(np.asarray(as_tensor(x).detach()), np.asarray(as_tensor(y).detach()), rtol, atol, equal_nan))
