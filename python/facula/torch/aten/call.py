"""One call of an operator of torch, written into a graph."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from ..graph import Graph, Refused, Value, kind
from .table import rows

_SHORT = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "i8", torch.int16: "i16",
          torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "bool"}
_LONG = {short: dtype for dtype, short in _SHORT.items()}


def short(dtype: torch.dtype) -> str:
    """torch.float32 -> "f32"."""
    if dtype not in _SHORT:
        raise Refused(f"elements of type {dtype}")
    return _SHORT[dtype]


def long(dt: str) -> torch.dtype:
    return _LONG[dt]


def row_name(overload: Any) -> str:
    """torch.ops.aten.add.Tensor -> "add.Tensor"."""
    space, name = overload._schema.name.split("::")
    tail = overload._schema.overload_name
    full = f"{name}.{tail}" if tail else name
    return full if space == "aten" else f"{space}.{full}"


def bound(schema: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """All arguments in the order of the schema."""
    out = list(args)
    for a in schema.arguments[len(args):]:
        out.append(kwargs.get(a.name, a.default_value if a.has_default_value() else None))
    return out


def _plain(x: Any) -> Any:
    if isinstance(x, torch.dtype):
        return short(x)
    if isinstance(x, (list, tuple)):
        return [_plain(v) for v in x]
    if isinstance(x, complex):
        raise Refused("complex numbers")
    return x


def _as_wanted(g: Graph, y: Any, k: int) -> Any:
    if not isinstance(y, Value) or k >= len(g.wanted) or g.wanted[k] is None:
        return y
    dt, shape = g.wanted[k]                     # type: ignore[misc]
    if y.shape != tuple(shape):
        raise Refused(f"a result of shape {list(y.shape)}, torch's has {list(shape)}")
    if kind(y.dt) != kind(dt) and kind(y.dt) == 2:
        raise Refused(f"a result of {y.dt}, torch's is of {dt}")
    return g.cast(y, dt)


def write(g: Graph, name: str, args: Sequence[Any], wanted: list[Any]) -> Any:
    """What a row gives, as values of the types that torch gives; Refused if there is no such row."""
    row = rows.get(name)
    if row is None:
        raise Refused("no row in the table")
    g.wanted = wanted
    try:
        out = row(g, *[_plain(a) for a in args])
    except (IndexError, ZeroDivisionError, OverflowError, AttributeError, KeyError, ValueError, TypeError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
    if isinstance(out, dict):
        return out
    if isinstance(out, list):
        return [_as_wanted(g, y, k) for k, y in enumerate(out)]
    return _as_wanted(g, out, 0)


PYTHON = {operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv, operator.neg, operator.pow,
          operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}
