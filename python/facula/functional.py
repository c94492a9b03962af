"""Functions of tensors with PyTorch's names and arguments, made of the library's operators."""
from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _facula, promote
from ._facula import Tensor, apply
from .dtypes import bool_, find, get_default_dtype, int64, result_type
from .promote import cast, reshape as _reshape

Dims = int | Sequence[int] | None


def as_tensor(x: Any, like: Tensor | None = None) -> Tensor:
    if isinstance(x, Tensor):
        return x
    if like is not None and isinstance(x, (bool, int, float)):
        return Tensor(x, dtype=result_type(like, x), device=like.device)
    return Tensor(x)


def ints(values: Any) -> Tensor:
    return Tensor([int(v) for v in values], dtype="int64")


def floats(x: Tensor) -> Tensor:
    """Integers become floats where a function has no meaning for them."""
    return x if x.dtype.is_floating_point else cast(x, get_default_dtype())


def axis_of(dim: int, ndim: int) -> int:
    n = builtins.max(ndim, 1)
    if not -n <= dim < n:
        raise IndexError(f"dim {dim} is out of range for a tensor of {ndim} dims")
    return dim % n


def axes_of(dim: Dims, ndim: int) -> list[int]:
    if dim is None:
        return list(range(ndim))
    list_of = [dim] if isinstance(dim, int) else list(dim)
    axes = [axis_of(d, ndim) for d in list_of]
    if len(set(axes)) != len(axes):
        raise ValueError(f"a dim is named twice: {tuple(list_of)}")
    return axes if ndim else []


# ---- one element at a time ----

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


def _rounding(name: str) -> Any:
    def function(x: Any) -> Tensor:
        t = as_tensor(x)
        return apply(name, None, 0, t) if t.dtype.is_floating_point else t
    function.__name__ = name
    return function


floor, ceil, round = _rounding("floor"), _rounding("ceil"), _rounding("round")


def trunc(x: Any) -> Tensor:
    """Towards zero."""
    t = as_tensor(x)
    if not t.dtype.is_floating_point:
        return t
    return where(t < 0, ceil(t), floor(t))


def sign(x: Any) -> Tensor:
    """-1, 0 or 1."""
    t = as_tensor(x)
    return t if t.dtype is bool_ else apply("sign", None, 0, t)


def square(x: Any) -> Tensor:
    """x x"""
    t = as_tensor(x)
    return t * t


def rsqrt(x: Any) -> Tensor:
    """1 / sqrt x"""
    return reciprocal(sqrt(x))


def log2(x: Any) -> Tensor:
    """The logarithm to base 2."""
    return log(x) * (1 / math.log(2))


def log10(x: Any) -> Tensor:
    """The logarithm to base 10."""
    return log(x) * (1 / math.log(10))


def log1p(x: Any) -> Tensor:
    """ln(1 + x), exact for small x: the rounding of 1 + x is taken out again."""
    t = floats(as_tensor(x))
    u = 1 + t
    exact = log(u) * (t / where(u == 1, ones_like(u), u - 1))
    return where(u == 1, t, where(isinf(u), u, exact))


def expm1(x: Any) -> Tensor:
    """e^x - 1, exact for small x."""
    t = floats(as_tensor(x))
    half = tanh(t * 0.5)
    return where(abs(t) < 1, 2 * half / (1 - half), exp(t) - 1)


def exp2(x: Any) -> Tensor:
    """2^x"""
    return pow(2.0, floats(as_tensor(x)))


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
    return apply("not", None, 0, cast(as_tensor(x), bool_))


def _logical(op: str) -> Any:
    def function(x: Any, y: Any) -> Tensor:
        return apply(op, None, 0, cast(as_tensor(x), bool_), cast(as_tensor(y), bool_))
    function.__name__ = f"logical_{op}"
    return function


logical_and, logical_or, logical_xor = _logical("and"), _logical("or"), _logical("xor")


# ---- two at a time ----

def _binary(dunder: str, name: str) -> Any:
    def function(x: Any, y: Any) -> Tensor:
        a = x if isinstance(x, Tensor) or isinstance(y, Tensor) else as_tensor(x)
        result = getattr(operator, dunder)(a, y)
        return result
    import operator
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The operator {dunder} with broadcasting and promotion."
    return function


add, sub, mul = _binary("add", "add"), _binary("sub", "sub"), _binary("mul", "mul")
div, floor_divide, remainder = _binary("truediv", "div"), _binary("floordiv", "floor_divide"), _binary("mod", "remainder")
pow, matmul = _binary("pow", "pow"), _binary("matmul", "matmul")
subtract, multiply, divide, true_divide = sub, mul, div, div
eq, ne, lt = _binary("eq", "eq"), _binary("ne", "ne"), _binary("lt", "lt")
le, gt, ge = _binary("le", "le"), _binary("gt", "gt"), _binary("ge", "ge")
equal_to, not_equal, less, less_equal, greater, greater_equal = eq, ne, lt, le, gt, ge
bitwise_and, bitwise_or, bitwise_xor = _binary("and_", "bitwise_and"), _binary("or_", "bitwise_or"), _binary("xor", "bitwise_xor")
bitwise_left_shift, bitwise_right_shift = _binary("lshift", "bitwise_left_shift"), _binary("rshift", "bitwise_right_shift")


def bitwise_not(x: Any) -> Tensor:
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
        return nonzero(c, as_tuple=True)
    a, b, _ = _both(x, y)
    return apply("where", None, 0, c, a, b)


def clamp(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """x between min and max."""
    t = as_tensor(x)
    if min is not None:
        t = maximum(t, min)
    if max is not None:
        t = minimum(t, max)
    return t


clip = clamp


def lerp(start: Tensor, end: Tensor, weight: Any) -> Tensor:
    t: Tensor = start + weight * (end - start)
    return t


def equal(x: Tensor, y: Tensor) -> bool:
    """Are shapes and all elements equal?"""
    return x.shape == y.shape and bool(all((x == y)))


def allclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(np.allclose(np.asarray(as_tensor(x).detach()), np.asarray(as_tensor(y).detach()), rtol, atol, equal_nan))


# ---- over dims ----

def _reduce(op: str, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    axes = axes_of(dim, x.ndim)
    if not axes:
        return apply(op, f"keep={int(keepdim)} noop_with_empty_axes=1", 0, x) if op != "sum" and op != "mean" else x
    if dim is None:
        return apply(op, f"keep={int(keepdim)}", 0, x)
    return apply(op, f"keep={int(keepdim)}", 0, x, ints(axes))


def sum(x: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None) -> Tensor:
    """The sum over dims, or over all; of integers and bools an int64."""
    t = as_tensor(x)
    if dtype is not None:
        t = cast(t, find(dtype))
    elif not t.dtype.is_floating_point and t.dtype.name != "uint64":
        t = cast(t, int64)
    return _reduce("sum", t, dim if axis is None else axis, keepdim)


def mean(x: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None) -> Tensor:
    """The mean over dims, or over all."""
    t = as_tensor(x)
    t = cast(t, find(dtype)) if dtype is not None else t
    if not t.dtype.is_floating_point:
        raise _facula.DtypeError(f"mean of {t.dtype}: cast it to a floating-point dtype first")
    return _reduce("mean", t, dim if axis is None else axis, keepdim)


def prod(x: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None) -> Tensor:
    """The product over dims, or over all."""
    t = as_tensor(x)
    if dtype is not None:
        t = cast(t, find(dtype))
    elif not t.dtype.is_floating_point and t.dtype.name != "uint64":
        t = cast(t, int64)
    return _reduce("reduce_prod", t, dim if axis is None else axis, keepdim)


def _extreme(op: str, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    sizes = [x.shape[a] for a in axes_of(dim, x.ndim)]
    if 0 in sizes:
        raise _facula.ShapeError(f"{op}: over no elements (shape {x.shape})")
    if x.dtype is bool_:
        return cast(_reduce(op, cast(x, find("uint8")), dim, keepdim), bool_)
    return _reduce(op, x, dim, keepdim)


def amax(x: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The largest element."""
    return _extreme("reduce_max", as_tensor(x), dim, keepdim)


def amin(x: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest element."""
    return _extreme("reduce_min", as_tensor(x), dim, keepdim)


class _Pair(tuple):  # type: ignore[type-arg]
    """(values, indices), as PyTorch's named results."""

    values = property(lambda self: self[0])
    indices = property(lambda self: self[1])


def _with_place(x: Tensor, dim: int, keepdim: bool, largest: bool) -> _Pair:
    at = argmax(x, dim, True) if largest else argmin(x, dim, True)
    values = take_along_dim(x, at, dim)
    return _Pair((values, at) if keepdim else (squeeze(values, dim), squeeze(at, dim)))


def max(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest of all; with a dim the largest along it and where it stands; with a tensor the larger of both."""
    t = as_tensor(x)
    if isinstance(dim, Tensor):
        return maximum(t, dim)
    return amax(t) if dim is None else _with_place(t, dim, keepdim, True)


def min(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest of all; with a dim the smallest along it and where it stands; with a tensor the smaller of both."""
    t = as_tensor(x)
    if isinstance(dim, Tensor):
        return minimum(t, dim)
    return amin(t) if dim is None else _with_place(t, dim, keepdim, False)


def _arg(op: str, x: Any, dim: int | None, keepdim: bool) -> Tensor:
    t = as_tensor(x)
    if dim is None:
        place = apply(op, "axis=0", 0, _reshape(t, [-1]))
        return _reshape(place, [1] * t.ndim if keepdim else [])
    if not t.ndim:
        return zeros((), dtype=int64)
    return apply(op, f"axis={axis_of(dim, t.ndim)} keep={int(keepdim)}", 0, t)


def argmax(x: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element stands; the first of equal ones."""
    return _arg("arg_max", x, dim, keepdim)


def argmin(x: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element stands; the first of equal ones."""
    return _arg("arg_min", x, dim, keepdim)


def all(x: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Are all of them true?"""
    return cast(_reduce("reduce_min", cast(cast(as_tensor(x), bool_), find("int32")), dim, keepdim), bool_) \
        if math.prod(as_tensor(x).shape) else _counted(x, dim, keepdim, True)


def any(x: Any, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Is one of them true?"""
    return cast(_reduce("reduce_max", cast(cast(as_tensor(x), bool_), find("int32")), dim, keepdim), bool_) \
        if math.prod(as_tensor(x).shape) else _counted(x, dim, keepdim, False)


def _counted(x: Any, dim: Dims, keepdim: bool, every: bool) -> Tensor:
    array = np.asarray(cast(as_tensor(x), bool_))
    axes = None if dim is None else tuple(axes_of(dim, array.ndim))
    return Tensor(np.asarray((np.all if every else np.any)(array, axis=axes, keepdims=keepdim)))


def var(x: Any, dim: Dims = None, keepdim: bool = False, *, correction: float = 1, unbiased: bool | None = None) -> Tensor:
    """The variance: squares of distances from the mean, divided by their number less the correction."""
    t = floats(as_tensor(x))
    if unbiased is not None:
        correction = 1 if unbiased else 0
    n = math.prod(t.shape[a] for a in axes_of(dim, t.ndim))
    d = t - mean(t, dim, True)
    total = sum(d * d, dim, keepdim)
    return total / (n - correction) if n > correction else total * math.nan


def std(x: Any, dim: Dims = None, keepdim: bool = False, *, correction: float = 1, unbiased: bool | None = None) -> Tensor:
    """The square root of the variance."""
    return sqrt(var(x, dim, keepdim, correction=correction, unbiased=unbiased))


def norm(x: Any, p: float | str = 2, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """(sum |x|^p)^(1/p)"""
    t = floats(as_tensor(x))
    if p in (2, "fro"):
        return _reduce("reduce_l2", t, dim, keepdim)
    if p == 1:
        return _reduce("reduce_l1", t, dim, keepdim)
    if p == math.inf:
        return amax(abs(t), dim, keepdim)
    return pow(sum(pow(abs(t), float(p)), dim, keepdim), 1 / float(p))


def logsumexp(x: Any, dim: Dims, keepdim: bool = False) -> Tensor:
    """ln sum e^x, without overflow."""
    return _reduce("reduce_log_sum_exp", floats(as_tensor(x)), dim, keepdim)


def softmax(x: Any, dim: int = -1, *, dtype: Any = None) -> Tensor:
    """e^x / sum e^x along a dim."""
    t = cast(as_tensor(x), find(dtype)) if dtype is not None else floats(as_tensor(x))
    return apply("softmax", f"axis={axis_of(dim, t.ndim)}", 0, t)


def log_softmax(x: Any, dim: int = -1, *, dtype: Any = None) -> Tensor:
    """ln softmax, without overflow."""
    t = cast(as_tensor(x), find(dtype)) if dtype is not None else floats(as_tensor(x))
    return apply("log_softmax", f"axis={axis_of(dim, t.ndim)}", 0, t)


def cumsum(x: Any, dim: int, *, dtype: Any = None) -> Tensor:
    """Sums of what stands before, along a dim."""
    t = as_tensor(x)
    t = cast(t, find(dtype)) if dtype is not None else t if t.dtype.is_floating_point else cast(t, int64)
    return apply("cum_sum", None, 0, t, Tensor(axis_of(dim, t.ndim), dtype="int64")) if t.ndim else t


def cumprod(x: Any, dim: int, *, dtype: Any = None) -> Tensor:
    """Products of what stands before, along a dim."""
    t = as_tensor(x)
    t = cast(t, find(dtype)) if dtype is not None else t if t.dtype.is_floating_point else cast(t, int64)
    return apply("cum_prod", None, 0, t, Tensor(axis_of(dim, t.ndim), dtype="int64")) if t.ndim else t


# ---- shapes ----

def _shape_args(shape: tuple[Any, ...]) -> list[int]:
    if len(shape) == 1 and not isinstance(shape[0], (int, Tensor)):
        shape = tuple(shape[0])
    return [int(n) for n in shape]


def reshape(x: Tensor, *shape: Any) -> Tensor:
    """The same elements with other sizes; one may be -1."""
    sizes = _shape_args(shape)
    if sizes.count(-1) > 1 or builtins.any(n < -1 for n in sizes):
        raise _facula.ShapeError(f"reshape to {tuple(sizes)}: sizes are 0 or more, and one may be -1")
    if -1 in sizes:
        known = math.prod(n for n in sizes if n >= 0)
        count = math.prod(x.shape)
        if not known or count % known:
            raise _facula.ShapeError(f"shape {x.shape} has {count} elements and cannot become {tuple(sizes)}")
        sizes[sizes.index(-1)] = count // known
    if math.prod(sizes) != math.prod(x.shape):
        raise _facula.ShapeError(f"shape {x.shape} has {math.prod(x.shape)} elements and cannot become {tuple(sizes)}")
    return _reshape(x, sizes)


def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dims from start to end become one."""
    if not x.ndim:
        return _reshape(x, [1])
    a, b = axis_of(start_dim, x.ndim), axis_of(end_dim, x.ndim)
    if a == 1 and b == x.ndim - 1:
        return apply("flatten", "axis=1", 0, x)
    return _reshape(x, [*x.shape[:a], math.prod(x.shape[a:b + 1]), *x.shape[b + 1:]])


def unflatten(x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    a = axis_of(dim, x.ndim)
    return reshape(x, [*x.shape[:a], *sizes, *x.shape[a + 1:]])


def squeeze(x: Tensor, dim: Dims = None) -> Tensor:
    """Without dims of size 1."""
    axes = axes_of(dim, x.ndim)
    gone = {a for a in axes if x.shape[a] == 1}
    return _reshape(x, [n for a, n in enumerate(x.shape) if a not in gone]) if gone else x


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """With a dim of size 1 at this place."""
    a = axis_of(dim, x.ndim + 1)
    return apply("unsqueeze", None, 0, x, ints([a]))


def permute(x: Tensor, *dims: Any) -> Tensor:
    """Dims in another order."""
    order = axes_of(_shape_args(dims), x.ndim)
    if len(order) != x.ndim:
        raise _facula.ShapeError(f"permute: {len(order)} dims for a tensor of {x.ndim}")
    return apply("transpose", f"perm={','.join(map(str, order))}", 0, x) if x.ndim else x


def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dims change places."""
    order = list(range(x.ndim))
    if not order:
        return x
    a, b = axis_of(dim0, x.ndim), axis_of(dim1, x.ndim)
    order[a], order[b] = order[b], order[a]
    return permute(x, order)


swapaxes = transpose


def movedim(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Dims move to other places, the others keep their order."""
    at, to = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    order = [a for a in range(x.ndim) if a not in at]
    for place, axis in sorted(zip(to, at)):
        order.insert(place, axis)
    return permute(x, order)


moveaxis = movedim


def expand(x: Tensor, *shape: Any) -> Tensor:
    """Dims of size 1 repeated up to these sizes; -1 keeps one."""
    sizes = _shape_args(shape)
    lead = len(sizes) - x.ndim
    if lead < 0:
        raise _facula.ShapeError(f"a tensor of shape {x.shape} cannot be expanded to {len(sizes)} dims")
    full = [x.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(sizes)]
    for i, n in enumerate(full):
        if i >= lead and x.shape[i - lead] not in (1, n):
            raise _facula.ShapeError(f"shape {x.shape} cannot be expanded to {tuple(sizes)}")
    return apply("expand", None, 0, x, ints(full)) if tuple(full) != x.shape else x


broadcast_to = expand


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    return tuple(np.broadcast_shapes(*[tuple(s) for s in shapes]))


def broadcast_tensors(*tensors: Tensor) -> list[Tensor]:
    shape = broadcast_shapes(*[t.shape for t in tensors])
    return [expand(t, shape) for t in tensors]


def tile(x: Tensor, *repeats: Any) -> Tensor:
    """x repeated so many times along each dim."""
    times = _shape_args(repeats)
    lead = len(times) - x.ndim
    if lead > 0:
        x = _reshape(x, [1] * lead + list(x.shape))
    times = [1] * (x.ndim - len(times)) + times
    return apply("tile", None, 0, x, ints(times)) if times else x


def repeat_interleave(x: Tensor, repeats: int, dim: int | None = None) -> Tensor:
    """Each element so many times, one after the other."""
    if dim is None:
        x, dim = _reshape(x, [-1]), 0
    a = axis_of(dim, x.ndim)
    wide = expand(unsqueeze(x, a + 1), *x.shape[:a + 1], repeats, *x.shape[a + 1:])
    return reshape(wide, *x.shape[:a], -1 if math.prod(x.shape) else x.shape[a] * repeats, *x.shape[a + 1:])


_MOST = 32


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along a dim; the other dims are equal."""
    if not tensors:
        raise ValueError("cat of no tensors")
    list_of = [as_tensor(t) for t in tensors]
    common = result_type(*list_of)
    list_of = [cast(t, common) for t in list_of]
    axis = axis_of(dim, list_of[0].ndim)
    while len(list_of) > 1:
        groups = [list_of[i:i + _MOST] for i in range(0, len(list_of), _MOST)]
        list_of = [apply("concat", f"axis={axis}", 0, *g) if len(g) > 1 else g[0] for g in groups]
    return list_of[0]


concat = concatenate = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dim."""
    list_of = [as_tensor(t) for t in tensors]
    if not list_of:
        raise ValueError("stack of no tensors")
    if len({t.shape for t in list_of}) > 1:
        raise _facula.ShapeError(f"stack: shapes differ: {sorted({t.shape for t in list_of})}")
    return cat([unsqueeze(t, dim) for t in list_of], axis_of(dim, list_of[0].ndim + 1))


def split(x: Tensor, size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of this size, or of these sizes, along a dim."""
    a = axis_of(dim, x.ndim)
    if isinstance(size, int):
        sizes = [builtins.min(size, x.shape[a] - i) for i in range(0, x.shape[a], size)] or [0]
    else:
        sizes = list(size)
    if builtins.sum(sizes) != x.shape[a]:
        raise _facula.ShapeError(f"split: sizes {sizes} do not add up to {x.shape[a]}")
    ends = np.cumsum([0, *sizes]).tolist()
    key = (slice(None),) * a
    return tuple(x[(*key, slice(b, e))] for b, e in zip(ends, ends[1:]))


def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """So many pieces along a dim, the last one may be smaller."""
    n = x.shape[axis_of(dim, x.ndim)]
    return split(x, builtins.max(-(-n // chunks), 1), dim)


def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dim."""
    a = axis_of(dim, x.ndim)
    return tuple(x[(slice(None),) * a + (i,)] for i in range(x.shape[a]))


def flip(x: Tensor, dims: Dims = None) -> Tensor:
    """Dims run backwards."""
    axes = set(axes_of(dims, x.ndim))
    return x[tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(x.ndim))] if axes else x


def roll(x: Tensor, shifts: int | Sequence[int], dims: Dims = None) -> Tensor:
    """Elements move along dims, those that leave come in again."""
    if dims is None:
        if not isinstance(shifts, int):
            raise ValueError("roll: several shifts need as many dims")
        return _reshape(roll(_reshape(x, [-1]), shifts, 0), x.shape)
    moves = [shifts] if isinstance(shifts, int) else list(shifts)
    axes = [dims] if isinstance(dims, int) else list(dims)
    if len(moves) != len(axes):
        raise ValueError(f"roll: {len(moves)} shifts for {len(axes)} dims")
    for n, d in zip(moves, axes):
        a = axis_of(d, x.ndim)
        size = x.shape[a]
        if size and n % size:
            key = (slice(None),) * a
            x = cat([x[(*key, slice(size - n % size, None))], x[(*key, slice(0, size - n % size))]], a)
    return x


def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """(before, after) of the last dim, then of the one before it...; modes constant, reflect, replicate, circular."""
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    before, after = [0] * x.ndim, [0] * x.ndim
    for k, (b, a) in enumerate(pairs):
        before[x.ndim - 1 - k], after[x.ndim - 1 - k] = b, a
    how = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}.get(mode)
    if how is None:
        raise ValueError(f"pad: mode is constant, reflect, replicate or circular, not {mode!r}")
    fill = [Tensor(value, dtype=x.dtype)] if mode == "constant" else []
    return apply("pad", f"mode={how}", 0, x, ints(before + after), *fill)


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """Zeros above a diagonal of the last two dims."""
    return apply("trilu", "lower=1", 0, x, Tensor(diagonal, dtype="int64"))


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """Zeros below a diagonal of the last two dims."""
    return apply("trilu", "lower=0", 0, x, Tensor(diagonal, dtype="int64"))


# ---- by index ----

def take_along_dim(x: Tensor, index: Tensor, dim: int | None = None) -> Tensor:
    """Elements at places along a dim."""
    if dim is None:
        return gather(_reshape(x, [-1]), 0, _reshape(index, [-1]))
    a = axis_of(dim, x.ndim)
    shape = list(broadcast_shapes(x.shape[:a] + (1,) + x.shape[a + 1:], index.shape[:a] + (1,) + index.shape[a + 1:]))
    return gather(expand(x, *shape[:a], x.shape[a], *shape[a + 1:]), a, expand(index, *shape[:a], index.shape[a], *shape[a + 1:]))


def gather(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """y[i][j] = x[index[i][j]][j] for dim 0, and so on."""
    a = axis_of(dim, x.ndim)
    cut = tuple(slice(0, n) if k != a else slice(None) for k, n in enumerate(index.shape))
    return apply("gather_elements", f"axis={a}", 0, x[cut], index)


def scatter(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
    """x with elements of src at places along a dim."""
    a = axis_of(dim, x.ndim)
    how = {None: "none", "add": "add", "multiply": "mul", "amax": "max", "amin": "min"}[reduce]
    source = src if isinstance(src, Tensor) else expand(Tensor(src, dtype=x.dtype), *index.shape)
    source = source[tuple(slice(0, n) for n in index.shape)]
    return apply("scatter_elements", f"axis={a} reduction={how}", 0, x, index, cast(source, x.dtype))


def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return scatter(x, dim, index, src, reduce="add")


def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of these numbers along a dim."""
    return apply("gather", f"axis={axis_of(dim, x.ndim)}", 0, x, index)


def take(x: Tensor, index: Tensor, *, axis: int | None = None) -> Tensor:
    return index_select(_reshape(x, [-1]) if axis is None else x, axis or 0, index)


def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """The value where the mask is true, else x."""
    v = value if isinstance(value, Tensor) else Tensor(value, dtype=x.dtype)
    return apply("where", None, 0, cast(mask, bool_), cast(v, x.dtype), x)


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    y: Tensor = x[expand(cast(mask, bool_), *x.shape)]
    return y


def nonzero(x: Any, as_tuple: bool = False) -> Any:
    """Indices of what is not zero, a row for each; as a tuple, a tensor for each dim."""
    at = np.nonzero(np.asarray(as_tensor(x).detach()))
    columns = tuple(Tensor(np.ascontiguousarray(a), dtype="int64") for a in at)
    return columns if as_tuple else Tensor(np.stack(at, axis=-1) if at else np.zeros((0, 0)), dtype="int64")


def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True) -> Any:
    """The k largest along a dim and where they stand."""
    a = axis_of(dim, x.ndim)
    y, at = apply("top_k", f"axis={a} smallest={int(not largest)}", 2, x, ints([k]))
    return _Pair((y, at))


def argsort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The order that sorts along a dim; equal ones keep theirs."""
    if not x.ndim:
        return zeros((), dtype=int64)
    array = np.asarray(x.detach())
    if not descending:
        return Tensor(np.argsort(array, axis=dim, kind="stable"), dtype="int64")
    back = np.flip(array, axis=dim)
    order = np.flip(np.argsort(back, axis=dim, kind="stable"), axis=dim)
    return Tensor(np.ascontiguousarray(array.shape[dim] - 1 - order), dtype="int64")


def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sorted along a dim, and where each element stood."""
    if not x.ndim:
        return _Pair((x, zeros((), dtype=int64)))
    at = argsort(x, dim, descending, stable)
    return _Pair((take_along_dim(x, at, dim), at))


def unique(x: Tensor, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The different elements, sorted."""
    got: Any = np.unique(np.asarray(x.detach()), return_inverse=return_inverse, return_counts=return_counts)  # type: ignore[call-overload]
    return tuple(Tensor(np.ascontiguousarray(g)) for g in got) if isinstance(got, tuple) else Tensor(got)


def searchsorted(sorted_sequence: Tensor, values: Tensor, *, right: bool = False) -> Tensor:
    side = "right" if right else "left"
    found = np.searchsorted(np.asarray(sorted_sequence.detach()), np.asarray(values.detach()), side=side)  # type: ignore[call-overload]
    return Tensor(np.asarray(found), dtype="int64")


def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """A 1 at the place that each label says."""
    n = int(amax(x)) + 1 if num_classes < 0 else num_classes
    return apply("one_hot", "axis=-1", 0, x, Tensor(n, dtype="int64"), Tensor([0, 1], dtype="int64"))


# ---- products ----

def mm(a: Tensor, b: Tensor) -> Tensor:
    """The product of two matrices."""
    if a.ndim != 2 or b.ndim != 2:
        raise _facula.ShapeError(f"mm of shapes {a.shape} and {b.shape}: two matrices were expected")
    return matmul(a, b)


def bmm(a: Tensor, b: Tensor) -> Tensor:
    """Products of as many matrices."""
    if a.ndim != 3 or b.ndim != 3:
        raise _facula.ShapeError(f"bmm of shapes {a.shape} and {b.shape}: three dims each were expected")
    return matmul(a, b)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The sum of products of two vectors."""
    if a.ndim != 1 or b.ndim != 1:
        raise _facula.ShapeError(f"dot of shapes {a.shape} and {b.shape}: two vectors were expected")
    return sum(a * b)


vecdot = dot


def outer(a: Tensor, b: Tensor) -> Tensor:
    """Each of a times each of b."""
    t: Tensor = unsqueeze(a, 1) * unsqueeze(b, 0)
    return t


def einsum(equation: str, *operands: Any) -> Tensor:
    """Einstein's summation: "ij,jk->ik"."""
    list_of = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return apply("einsum", f'equation="{equation}"', 0, *list_of)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    if isinstance(dims, int):
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left, right = axes_of(dims[0], a.ndim), axes_of(dims[1], b.ndim)
    rest_a = [k for k in range(a.ndim) if k not in left]
    rest_b = [k for k in range(b.ndim) if k not in right]
    n = math.prod(a.shape[k] for k in left)
    x = _reshape(permute(a, rest_a + left), [math.prod(a.shape[k] for k in rest_a), n])
    y = _reshape(permute(b, right + rest_b), [n, math.prod(b.shape[k] for k in rest_b)])
    return _reshape(matmul(x, y), [*(a.shape[k] for k in rest_a), *(b.shape[k] for k in rest_b)])


# ---- new ones ----

def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of one number."""
    shape = _shape_args((size,) if not isinstance(size, int) else ((size,),))
    d = find(dtype) if dtype is not None else result_type(fill_value)
    array = np.full(shape, fill_value, dtype=d.name if d.name != "bfloat16" else "float32")
    return Tensor(array, dtype=d, device=device, requires_grad=requires_grad)


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros."""
    return full(_shape_args(size), 0, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    return full(_shape_args(size), 1, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad)


empty = zeros


def full_like(x: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x: Tensor, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of the shape and dtype of x."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Tensor, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of the shape and dtype of x."""
    return full_like(x, 1, dtype=dtype, device=device)


empty_like = zeros_like


def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from start up to, but without, end."""
    if end is None:
        start, end = 0, start
    d = find(dtype) if dtype is not None else result_type(start, end, step)
    array = np.arange(start, end, step)
    return Tensor(array, dtype=d, device=device)


def linspace(start: float, end: float, steps: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True) -> Tensor:
    """So many numbers, evenly apart, from start to end."""
    return Tensor(np.linspace(start, end, steps, endpoint=endpoint), dtype=dtype or get_default_dtype(), device=device)


def eye(n: int, m: int | None = None, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the diagonal."""
    return Tensor(np.eye(n, m, k), dtype=dtype or get_default_dtype(), device=device)


def meshgrid(*tensors: Tensor, indexing: str = "ij") -> list[Tensor]:
    grids: Any = np.meshgrid(*[np.asarray(t.detach()) for t in tensors], indexing=indexing)  # type: ignore[call-overload,arg-type]
    return [Tensor(np.ascontiguousarray(g), dtype=t.dtype) for g, t in zip(grids, tensors)]


def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix of a diagonal, or the diagonal of a matrix."""
    if x.ndim == 1:
        n = x.shape[0] + builtins.abs(diagonal)
        base = zeros(n, n, dtype=x.dtype)
        rows = np.arange(x.shape[0]) + builtins.max(-diagonal, 0)
        cols = np.arange(x.shape[0]) + builtins.max(diagonal, 0)
        return promote.assigned(base, (rows, cols), x)
    n = builtins.min(x.shape[0] + builtins.min(diagonal, 0), x.shape[1] - builtins.max(diagonal, 0))
    at = np.arange(builtins.max(n, 0))
    y: Tensor = x[at + builtins.max(-diagonal, 0), at + builtins.max(diagonal, 0)]
    return y


def from_numpy(array: Any) -> Tensor:
    """A tensor over the memory of an array, without a copy."""
    return Tensor(array)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor of numbers, nested lists or an array, which is copied.

        >>> fac.tensor([[1., 2.], [3., 4.]]).sum()
        tensor(10.)
    """
    if isinstance(data, Tensor):
        t = data.detach()._convert(dtype)
    elif hasattr(data, "__array_interface__") or isinstance(data, np.generic):
        t = Tensor(np.array(data))
        t = t._convert(dtype) if dtype is not None else t
    else:
        t = Tensor(data, dtype=dtype)
        if dtype is None and t.dtype.name == "float32" and get_default_dtype() is not t.dtype:
            t = Tensor(data, dtype=get_default_dtype())
    if device is not None:
        t = t._on(device)
    t.requires_grad = requires_grad
    return t


def asarray(data: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of an object; without a copy where that is possible, unless one is wanted."""
    if copy:
        return tensor(data, dtype=dtype, device=device)
    if isinstance(data, Tensor) and dtype is None:
        return data if device is None else data._on(device)
    if copy is False and not (isinstance(data, Tensor) or hasattr(data, "__array_interface__")):
        raise ValueError("asarray: this cannot be had without a copy")
    t = Tensor(data, dtype=dtype)
    return t if device is None else t._on(device)


from_dlpack = _facula.from_dlpack
