"""A graph that rows of the aten table write into: values with a dtype and a shape, operators by name."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _facula
from ..ops import _table, _text  # type: ignore[attr-defined]

_WIDTH = {"bool": 1, "u8": 1, "i8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
MOST_DIMS = 8
LONG_MAX = 2 ** 63 - 1


class Refused(Exception):
    """A call that the library does not compute as torch does: it runs in torch."""


class Value:
    """A value of the graph; `weak`: a number of Python's that became one, with its rules of promotion."""

    __slots__ = ("id", "dt", "shape", "weak")

    def __init__(self, id: int, dt: str, shape: tuple[int, ...], weak: bool = False) -> None:
        self.id, self.dt, self.shape, self.weak = id, dt, shape, weak

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)


class Late(Value):
    """A value that is made when its `id` is first asked for."""

    __slots__ = ("_make", "_made")

    def __init__(self, dt: str, shape: tuple[int, ...], make: Callable[[], Value]) -> None:
        self.dt, self.shape, self.weak = dt, shape, False
        self._make = make
        self._made: Value | None = None

    @property
    def id(self) -> int:                                # type: ignore[override]
        if self._made is None:
            self._made = self._make()
        return self._made.id


Operand = Any           # a Value, or a number of Python's


def width(dt: str) -> int:
    """Bytes of an element."""
    return _WIDTH[dt]


def kind(dt: str) -> int:
    """0 bool, 1 integer, 2 floating point."""
    return 2 if dt in ("f16", "bf16", "f32", "f64") else 0 if dt == "bool" else 1


_RANK = {"bool": 0, "u8": 1, "i8": 1, "i16": 2, "i32": 3, "i64": 4, "f16": 5, "bf16": 5, "f32": 6, "f64": 7}


def wider(a: str | None, b: str | None) -> str | None:
    """torch.promote_types."""
    if a is None or b is None or a == b:
        return b if a is None else a
    if a not in _RANK or b not in _RANK:
        raise Refused(f"{a} with {b}")
    if {a, b} == {"f16", "bf16"}:
        return "f32"
    if {a, b} == {"u8", "i8"}:
        return "i16"
    return a if _RANK[a] >= _RANK[b] else b


def _over(high: str | None, low: str | None) -> str | None:
    if high is None or low is None:
        return low if high is None else high
    if kind(high) == 2:
        return high
    return wider(high, low) if high == "bool" or kind(low) == 2 else high


def promote(*xs: Operand, default: str = "f32") -> str:
    """The dtype in which torch computes with these: tensors before those without dims before numbers."""
    groups: list[str | None] = [None, None, None]
    for x in xs:
        if x is None:
            continue
        if isinstance(x, Value):
            at, dt = (2 if x.weak else 0 if x.shape else 1), x.dt
            if x.weak and kind(dt) == 2:
                dt = default
        else:
            at, dt = 2, "bool" if isinstance(x, bool) else "i64" if isinstance(x, int) else default
        groups[at] = wider(groups[at], dt)
    return _over(_over(groups[0], groups[1]), groups[2]) or default


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for i, n in enumerate(s, rank - len(s)):
            if n != 1:
                out[i] = n
    return tuple(out)


def axis_of(dim: int, rank: int) -> int:
    return dim + max(rank, 1) if dim < 0 else dim


def axes_of(dims: Any, rank: int) -> list[int]:
    """Axes of torch's dim argument: all of them for None and []."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    return [axis_of(d, rank) for d in ([dims] if isinstance(dims, int) else dims)] if rank else []


class Graph:
    """Writes operators.  `wanted`: the types [(dtype, shape)] of what the row at hand should give."""

    def __init__(self) -> None:
        self.builder = _facula.Builder()
        self.wanted: list[tuple[str, tuple[int, ...]] | None] = []
        self.counter: Value | None = None
        self.default = "f32"
        self._numbers: dict[Any, Value] = {}

    # -- leaves

    def _value(self, id: int) -> Value:
        dtype, shape = self.builder.type(id)
        return Value(id, dtype.short, shape)

    def input(self, name: str, dt: str, shape: Sequence[int]) -> Value:
        if len(shape) > MOST_DIMS:
            raise Refused(f"{len(shape)} dims")
        return self._value(self.builder.input(name, dt, tuple(shape)))

    def state(self, name: str, tensor: Any) -> Value:
        return self._value(self.builder.leaf("state", name, tensor))

    def number(self, x: float | int | bool, dt: str) -> Value:
        key = (dt, repr(x))
        if key not in self._numbers:
            if dt in ("i64", "u64") and abs(x) > 2 ** 53:
                flat = self._value(self.builder.ints([int(x)]))
                made = self.cast(self.reshape(flat, ()), dt)
            else:
                made = self._value(self.builder.number(dt, float(x)))
            self._numbers[key] = made
        return self._numbers[key]

    def ints(self, numbers: Sequence[int]) -> Value:
        return self._value(self.builder.ints(list(numbers)))

    # -- operators

    def ops(self, name: str, *inputs: Value | None, results: int, **attributes: Any) -> list[Value]:
        known = {a["name"]: a for a in _table[name]["attrs"]}
        words = " ".join(_text(name, known[k], v) for k, v in attributes.items() if v is not None)
        ids = [None if x is None else x.id for x in inputs]
        try:
            return [self._value(i) for i in self.builder.apply(name, words or None, results, ids)]
        except (_facula.Error, OverflowError) as error:
            raise Refused(str(error)) from None

    def op(self, name: str, *inputs: Value | None, **attributes: Any) -> Value:
        return self.ops(name, *inputs, results=1, **attributes)[0]

    def cast(self, x: Value, dt: str) -> Value:
        return x if x.dt == dt else self.op("cast", x, to=dt)

    def as_(self, x: Operand, dt: str) -> Value:
        """An operand as a value of this dtype."""
        if isinstance(x, Value):
            return self.cast(x, dt)
        if isinstance(x, complex):
            raise Refused("complex numbers")
        return self.number(bool(x) if dt == "bool" else int(x) if kind(dt) == 1 and math.isfinite(x) else x, dt)

    def binary(self, name: str, a: Operand, b: Operand, dt: str | None = None) -> Value:
        to = dt or promote(a, b, default=self.default)
        return self.op(name, self.as_(a, to), self.as_(b, to))

    def add(self, a: Operand, b: Operand) -> Value:
        return self.binary("add", a, b)

    def sub(self, a: Operand, b: Operand) -> Value:
        return self.binary("sub", a, b)

    def mul(self, a: Operand, b: Operand) -> Value:
        return self.binary("mul", a, b)

    def div(self, a: Operand, b: Operand) -> Value:
        to = promote(a, b, default=self.default)
        return self.binary("div", a, b, to if kind(to) == 2 else self.default)

    def where(self, c: Value, a: Operand, b: Operand) -> Value:
        to = promote(a, b, default=self.default)
        return self.op("where", self.cast(c, "bool"), self.as_(a, to), self.as_(b, to))

    def compare(self, name: str, a: Operand, b: Operand) -> Value:
        return self.binary(name, a, b)

    # -- shapes

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if len(shape) > MOST_DIMS:
            raise Refused(f"{len(shape)} dims")
        return self.op("reshape", x, self.ints(shape), allowzero=True)

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if len(shape) > MOST_DIMS:
            raise Refused(f"{len(shape)} dims")
        return self.op("expand", x, self.ints(shape))

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        perm = list(perm)
        return x if perm == list(range(x.rank)) else self.op("transpose", x, perm=perm)

    def swap(self, x: Value, a: int, b: int) -> Value:
        perm = list(range(x.rank))
        perm[a], perm[b] = perm[b], perm[a]
        return self.transpose(x, perm)

    def slice(self, x: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
        if step == 1 and start == 0 and end >= x.shape[axis]:
            return x
        return self.op("slice", x, self.ints([start]), self.ints([end]), self.ints([axis]), self.ints([step]))

    def unsqueeze(self, x: Value, axis: int) -> Value:
        return self.reshape(x, x.shape[:axis] + (1,) + x.shape[axis:])

    def full(self, shape: Sequence[int], x: float | int | bool, dt: str) -> Value:
        return self.expand(self.number(x, dt), shape)

    def concat(self, xs: Sequence[Value], axis: int) -> Value:
        return xs[0] if len(xs) == 1 else self.op("concat", *xs, axis=axis)

    def reduce(self, name: str, x: Value, dims: Any = None, keep: bool = False) -> Value:
        axes = axes_of(dims, x.rank)
        if not x.rank:
            if name in ("sum", "mean", "reduce_max", "reduce_min", "reduce_prod"):
                return x
            return self.op(name, x, keep=False)
        return self.op(name, x, self.ints(axes), keep=keep)

    def arange(self, n: int, dt: str = "i64") -> Value:
        zero, one = self.number(0, "i64"), self.number(1, "i64")
        return self.cast(self.op("range", zero, self.number(n, "i64"), one), dt)
