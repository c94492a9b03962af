"""What the operators of Python do between tensors when the C side does not know better: promotion
of dtypes, numbers on either side, writing in place, indexing, printing."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _facula
from .dtypes import bool_, dtype, find, get_default_dtype, int64, result_type
from ._facula import Tensor, apply
from .changing import varying

_numbers = (bool, int, float)


def cast(x: Tensor, to: dtype) -> Tensor:
    """x as another dtype, in a way that gradients go through."""
    return x if x.dtype is to else apply("cast", f"to={to.short}", 0, x)


def operand(x: Any) -> Any:
    """What a function of two takes: a tensor, an array as one, or a number of Python; None of other things."""
    if isinstance(x, (Tensor, *_numbers)):
        return x
    if isinstance(x, np.generic):
        return Tensor(np.asarray(x))
    if isinstance(x, np.ndarray):
        return Tensor(x)
    return None


def both(a: Any, b: Any) -> tuple[Any, Any, dtype] | None:
    """Both as tensors of their common dtype; None where one of them is something else."""
    a, b = operand(a), operand(b)
    if a is None or b is None:
        return None
    common = result_type(a, b)
    on = a.device if isinstance(a, Tensor) else b.device
    ta = a if isinstance(a, Tensor) else Tensor(a, dtype=common, device=on)
    tb = b if isinstance(b, Tensor) else Tensor(b, dtype=common, device=on)
    return cast(ta, common), cast(tb, common), common


def _arithmetic(op: str, on_bool: str | None = None) -> Callable[[Any, Any], Any]:
    def function(a: Any, b: Any) -> Any:
        pair = both(a, b)
        if pair is None:
            return NotImplemented
        if pair[2] is bool_:
            if on_bool is None:
                raise _facula.DtypeError(f"{op}: not for two tensors of bools: cast one of them")
            return apply(on_bool, None, 0, pair[0], pair[1])
        return apply(op, None, 0, pair[0], pair[1])
    return function


def _divide(a: Any, b: Any) -> Any:
    """True division: integers become floats."""
    pair = both(a, b)
    if pair is None:
        return NotImplemented
    if not pair[2].is_floating_point:
        f = get_default_dtype()
        return apply("div", None, 0, cast(pair[0], f), cast(pair[1], f))
    return apply("div", None, 0, pair[0], pair[1])


def flat(y: Tensor, *inputs: Tensor) -> Tensor:
    """y, whose gradients by the inputs are zeros, whatever they are: so has it what jumps and stays."""
    if not _facula.is_grad_enabled() or not any(x.requires_grad for x in inputs):
        return y
    path = functools.reduce(lambda a, b: apply("add", None, 0, a, b), (cast(x, y.dtype) for x in inputs))
    if path.shape != y.shape:
        path = apply("expand", None, 0, path, Tensor(list(y.shape), dtype="int64"))
    return apply("surrogate", None, 0, y, apply("floor", None, 0, path))


def _whole_times(x: Tensor, y: Tensor) -> Tensor:
    """How often y goes into x: x / y may be rounded up to the next integer, as 1 / 0.1 is, but 0.1 goes into 1 nine times.
    An infinite y of the other sign goes into x once less than not at all."""
    x, y = x.detach(), y.detach()
    share = apply("div", None, 0, x, y)
    rest = apply("mod", None, 0, x, y)
    exact = apply("round", None, 0, apply("div", None, 0, apply("sub", None, 0, x, rest), y))
    exact = apply("where", None, 0, apply("isinf", "positive=1 negative=1", 0, rest), Tensor(-1, dtype=x.dtype, device=x.device), exact)
    known = apply("less", None, 0, apply("abs", None, 0, share), Tensor(math.inf, dtype=x.dtype, device=x.device))
    here = apply("and", None, 0, known, apply("not", None, 0, apply("equal", None, 0, exact, Tensor(0, dtype=x.dtype, device=x.device))))
    return apply("where", None, 0, here, exact, apply("floor", None, 0, share))


def _floor_divide(a: Any, b: Any) -> Any:
    pair = both(a, b)
    if pair is None:
        return NotImplemented
    x, y, common = pair
    if common.is_floating_point:
        return _whole_times(x, y)
    whole = apply("div", None, 0, x, y)
    if common.kind == "u":
        return whole
    rest = apply("sub", None, 0, x, apply("mul", None, 0, whole, y))
    zero = Tensor(0, dtype=common, device=x.device)
    below = apply("xor", None, 0, apply("less", None, 0, rest, zero), apply("less", None, 0, y, zero))
    wrong = apply("and", None, 0, below, apply("not", None, 0, apply("equal", None, 0, rest, zero)))
    return apply("sub", None, 0, whole, cast(wrong, common))


def _power(a: Any, b: Any) -> Any:
    pair = both(a, b)
    if pair is None:
        return NotImplemented
    x, y, common = pair
    if common is bool_:
        x, y = cast(x, int64), cast(y, int64)
    return apply("pow", None, 0, x, y)


def _compare(op: str) -> Callable[[Any, Any], Any]:
    def function(a: Any, b: Any) -> Any:
        pair = both(a, b)
        if pair is None:
            return NotImplemented
        x, y, common = pair
        if common is bool_ and op != "equal":
            x, y = cast(x, find("uint8")), cast(y, find("uint8"))
        return apply(op, None, 0, x, y)
    return function


def not_equal(a: Any, b: Any) -> Any:
    """Where both differ."""
    pair = both(a, b)
    if pair is None:
        return NotImplemented
    return apply("not", None, 0, apply("equal", None, 0, pair[0], pair[1]))


def _bits(on_bool: str, on_int: str) -> Callable[[Any, Any], Any]:
    def function(a: Any, b: Any) -> Any:
        pair = both(a, b)
        if pair is None:
            return NotImplemented
        return apply(on_bool if pair[2] is bool_ else on_int, None, 0, pair[0], pair[1])
    return function


def matmul(a: Any, b: Any) -> Any:
    """The product of matrices, or of stacks of them; integers are multiplied as such, of bools it is whether any product is true."""
    if isinstance(a, _numbers) or isinstance(b, _numbers):
        raise _facula.ShapeError("matmul: numbers are no matrices; use *")
    pair = both(a, b)
    if pair is None:
        return NotImplemented
    if pair[2] is bool_:
        return not_equal(apply("matmul", None, 0, cast(pair[0], int64), cast(pair[1], int64)), 0)
    return apply("matmul", None, 0, pair[0], pair[1])


def _negative(x: Tensor) -> Tensor:
    raise _facula.DtypeError("neg: not for bools; use ~")


def _in_place(binary: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """x op= y: the object takes the value of the result, which keeps its dtype."""
    def function(a: Tensor, b: Any) -> Any:
        if a.requires_grad and a.is_leaf and _facula.is_grad_enabled():
            raise RuntimeError("a leaf that requires gradients is written in place: say `with no_grad():`")
        y = binary(a, b)
        if y is NotImplemented:
            return y
        if y.dtype is not a.dtype:
            if y.dtype.is_floating_point and not a.dtype.is_floating_point:
                raise _facula.DtypeError(f"a result of {y.dtype} cannot be written into {a.dtype}")
            y = cast(y, a.dtype)
        if y.shape != a.shape:
            raise _facula.ShapeError(f"a result of shape {y.shape} cannot be written into {a.shape}")
        return a._become(y)
    return function


# ---- indexing ----

_basic = (int, slice, type(None), type(Ellipsis))


def _is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(isinstance(p, _basic) and not isinstance(p, bool) for p in parts)


def _expand_ellipsis(key: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    used = sum(p is not None and p is not Ellipsis for p in key)
    dots = sum(p is Ellipsis for p in key)
    if dots > 1:
        raise IndexError("an index has at most one ellipsis ('...')")
    if used > ndim:
        raise IndexError(f"too many indices: {used} for {ndim} dims")
    fill = (slice(None),) * (ndim - used)
    if not dots:
        return key + fill
    at = next(i for i, p in enumerate(key) if p is Ellipsis)
    return key[:at] + fill + key[at + 1:]


@functools.lru_cache(2048)
def _numbers_tensor(values: tuple[int, ...]) -> Tensor:
    """Numbers that steer a shape; they are never written."""
    return Tensor(list(values), dtype="int64")


def _cut(x: Tensor, starts: list[int], ends: list[int], axes: list[int], steps: list[int], counts: list[int]) -> Tensor:
    """By slices, and by places where starts change from call to call (changing.py).  count -1: a number, so that the dim goes."""
    moving = varying((x.shape, *axes, *steps, *counts), tuple(starts))
    if not moving:
        return apply("slice", None, 0, x, *[_numbers_tensor(tuple(v)) for v in (starts, ends, axes, steps)])
    still = [k for k in range(len(axes)) if k not in moving]
    if still:
        x = apply("slice", None, 0, x, *[_numbers_tensor(tuple(v[k] for k in still)) for v in (starts, ends, axes, steps)])
    for k in sorted(moving, reverse=True):                  # the last dim first: a dim that goes moves no other
        at = starts[k] + steps[k] * np.arange(counts[k]) if counts[k] >= 0 else starts[k]
        x = apply("gather", f"axis={axes[k]}", 0, x, Tensor(at, dtype="int64"))
    return x


def _basic_index(x: Tensor, key: Any) -> Tensor:
    parts = _expand_ellipsis(key if isinstance(key, tuple) else (key,), x.ndim)
    starts: list[int] = []
    ends: list[int] = []
    axes: list[int] = []
    steps: list[int] = []
    counts: list[int] = []
    shape: list[int] = []
    axis = 0
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        size = x.shape[axis]
        if isinstance(part, int):
            at = part + size if part < 0 else part
            if not 0 <= at < size:
                raise IndexError(f"index {part} is out of range for a dim of size {size} (axis {axis})")
            begin, end, step, count = at, at + 1, 1, -1
        else:
            begin, end, step = part.indices(size)
            count = len(range(begin, end, step))
            shape.append(count)
            if step < 0 and end < 0:
                end = -size - 1
            if not count:
                begin = end = 0
                step = 1
        if (begin, end, step) != (0, size, 1):
            starts.append(begin)
            ends.append(end)
            axes.append(axis)
            steps.append(step)
            counts.append(count)
        axis += 1
    y = _cut(x, starts, ends, axes, steps, counts) if axes else x
    return y if tuple(shape) == y.shape else reshape(y, shape)


def reshape(x: Tensor, shape: Any) -> Tensor:
    """The same elements with other sizes."""
    return apply("reshape", "allowzero=1", 0, x, _numbers_tensor(tuple(shape)))


def _key_of(key: Any) -> Any:
    """Tensors in an index as arrays of NumPy."""
    if isinstance(key, tuple):
        return tuple(_key_of(k) for k in key)
    if isinstance(key, Tensor):
        array = np.asarray(key.detach())
        if array.dtype.kind not in "iub":
            raise IndexError(f"a tensor of {key.dtype} is no index: integers and bools are")
        return array
    return key


def _is_number(k: Any) -> bool:
    """Is it a single place, not a switch?"""
    if isinstance(k, (int, np.integer)):
        return not isinstance(k, bool)
    return isinstance(k, np.ndarray) and not k.ndim and k.dtype.kind in "iu"


def _numbers_first(key: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """An index as two, the first of single places alone.  To NumPy they are arrays like others, which decides where the dims of
    arrays go when a slice stands between; PyTorch takes such a dim away first."""
    first: list[Any] = []
    then: list[Any] = []
    for k in key:
        if _is_number(k):
            first.append(k)
            continue
        then.append(k)
        if k is Ellipsis:
            first.append(k)
        elif k is not None:
            mask = np.asarray(k) if not isinstance(k, slice) else None
            dims = mask.ndim if mask is not None and mask.dtype.kind == "b" else 1
            first.extend([slice(None)] * dims)
    return tuple(first), tuple(then)


def _places(x: Tensor, key: Any) -> np.ndarray[Any, Any]:
    """The row-major numbers of the elements that an index means."""
    at = np.arange(math.prod(x.shape), dtype=np.int64).reshape(x.shape)
    known = _key_of(key)
    if not isinstance(known, tuple) or not any(map(_is_number, known)):
        return np.asarray(at[known])
    first, then = _numbers_first(known)
    return np.asarray(np.asarray(at[first])[then])


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key]"""
    if _is_basic(key):
        return _basic_index(x, key)
    at = _places(x, key)
    if not x._count:
        return reshape(x, at.shape)
    return apply("gather", "axis=0", 0, reshape(x, [-1]), Tensor(at))


def assigned(x: Tensor, key: Any, value: Any) -> Tensor:
    """x with other elements at `key`: a new value."""
    at = _places(x, key)
    v = value if isinstance(value, Tensor) else Tensor(value, device=x.device)
    v = cast(v, x.dtype)
    if not at.size:
        return x
    lead = v.ndim - at.ndim
    if lead > 0 and all(n == 1 for n in v.shape[:lead]):
        v = reshape(v, v.shape[lead:])
    if v.shape != at.shape:
        v = apply("expand", None, 0, v, Tensor(list(at.shape), dtype="int64"))
        if v.shape != at.shape:
            raise _facula.ShapeError(f"a value of shape {v.shape} cannot be written to an index of shape {at.shape}")
    flat = apply("scatter_elements", "axis=0", 0, reshape(x, [-1]), Tensor(at.reshape(-1)), reshape(v, [-1]))
    return reshape(flat, x.shape)


def setitem(x: Tensor, pair: tuple[Any, Any]) -> None:
    """x[key] = value"""
    if x.requires_grad and x.is_leaf and _facula.is_grad_enabled():
        raise RuntimeError("a leaf that requires gradients is written in place: say `with no_grad():`")
    x._become(assigned(x, *pair))


# ---- printing ----

_print_options: dict[str, Any] = {}


def set_printoptions(precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None, linewidth: int | None = None,
                     sci_mode: bool | None = None) -> None:
    """How tensors are printed: digits, from how many elements on in part, how many at each end, width of a line.  None: as NumPy does."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "max_line_width": linewidth, "suppress_small":
             None if sci_mode is None else not sci_mode}
    _print_options.clear()
    _print_options.update({k: v for k, v in given.items() if v is not None})


_SHOWN_AS = {"f": "float32", "i": "int8", "u": "uint8", "b": "bool"}


def readable(x: Tensor) -> Tensor:
    """Without history, and as a type that other libraries have: those of fewer than 8 bits and bfloat16 are not among them."""
    known = x.dtype.kind == "t" or x.dtype.name != "bit" and x.dtype.itemsize and hasattr(np, x.dtype.name)
    return x.detach() if known else x.detach()._convert(_SHOWN_AS[x.dtype.kind])


def _numbers_text(x: Tensor) -> str:
    if x.dtype.name == "text":
        return repr(x.tolist())
    return np.array2string(np.asarray(x.detach()), separator=", ", prefix="tensor(", **_print_options)


def text_of(x: Tensor) -> str:
    """As PyTorch prints it."""
    words = [_numbers_text(x)]
    if x.dtype not in (get_default_dtype(), int64, bool_) or not math.prod(x.shape):
        words.append(f"dtype={x.dtype!r}")
    if not math.prod(x.shape) and x.ndim != 1:
        words.insert(1, f"size={x.shape}")
    if not x.device.name.startswith("cpu"):
        words.append(f"device={x.device.name!r}")
    if x.grad_fn is not None and x.requires_grad:
        words.append(f"grad_fn=<{getattr(x.grad_fn, 'name', type(x.grad_fn).__name__)}>")
    elif x.requires_grad:
        words.append("requires_grad=True")
    return f"tensor({', '.join(words)})"


_add, _sub, _mul = _arithmetic("add", "or"), _arithmetic("sub"), _arithmetic("mul", "and")
_mod = _arithmetic("mod")
_and, _or, _xor = _bits("and", "bitwise_and"), _bits("or", "bitwise_or"), _bits("xor", "bitwise_xor")
_left, _right = _arithmetic("shift_left"), _arithmetic("shift_right")


def _divmod(a: Any, b: Any) -> Any:
    whole = _floor_divide(a, b)
    return whole if whole is NotImplemented else (whole, _mod(a, b))


_facula.set_fallbacks({
    "add": _add, "sub": _sub, "mul": _mul, "div": _divide, "mod": _mod, "pow": _power, "matmul": matmul,
    "floordiv": _floor_divide, "divmod": _divmod, "and": _and, "or": _or, "xor": _xor, "lshift": _left,
    "rshift": _right, "neg": _negative, "iadd": _in_place(_add), "isub": _in_place(_sub), "imul": _in_place(_mul),
    "idiv": _in_place(_divide), "imod": _in_place(_mod), "ipow": _in_place(_power), "ifloordiv": _in_place(_floor_divide),
    "iand": _in_place(_and), "ior": _in_place(_or), "ixor": _in_place(_xor), "ilshift": _in_place(_left),
    "irshift": _in_place(_right), "imatmul": _in_place(matmul), "less": _compare("less"),
    "less_or_equal": _compare("less_or_equal"), "greater": _compare("greater"),
    "greater_or_equal": _compare("greater_or_equal"), "equal": _compare("equal"), "not_equal": not_equal,
    "getitem": getitem, "setitem": setitem, "repr": text_of})
