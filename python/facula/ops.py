"""Every operator of the library as a function, made from its descriptor when it is first asked for.

Tensors come first, in the order of the operator's ports; attributes are keywords.  What may be
absent is None.  Small integers that steer shapes (axes, sizes, pads) may be lists of Python.

    >>> import facula as fac
    >>> fac.ops.conv2d(fac.ones(1, 1, 5, 5), fac.ones(1, 1, 3, 3), stride=2).shape
    (1, 1, 2, 2)
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from . import _facula
from .dtypes import find

_BODIES = 32
_table: dict[str, dict[str, Any]] = {o["name"]: o for o in _facula.ops() if not o["is"] & _BODIES}


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value) if isinstance(value, float) else str(int(value))


def _real(value: Any) -> str:
    return repr(float(value))


def _text(op: str, attr: dict[str, Any], value: Any) -> str:
    """An attribute as the library's text form has it."""
    kind, name = attr["kind"], attr["name"]
    if kind == "flag":
        return f"{name}={int(bool(value))}"
    if kind == "enum":
        if isinstance(value, int) and not isinstance(value, bool) and value < len(attr["choices"]):
            value = attr["choices"][value]
        if value not in attr["choices"]:
            raise ValueError(f"{op}: {name} is one of {', '.join(attr['choices'])}, not {value!r}")
        return f"{name}={value}"
    if kind == "dtype":
        return f"{name}={find(value).short}"
    if kind == "text":
        return f'{name}="{value}"'
    one = _real if kind in ("real", "reals") else _number
    if isinstance(value, Sequence) or hasattr(value, "__iter__"):
        return f"{name}={','.join(one(v) for v in value)}"
    return f"{name}={','.join([one(value)] * max(attr['count'], 1))}"


def _as_tensor(value: Any, host: bool) -> Any:
    if value is None or isinstance(value, _facula.Tensor):
        return value
    if host:
        return _facula.Tensor(value, dtype="int64")
    return _facula.Tensor(value)


def call(name: str, *inputs: Any, results: int = 0, **attributes: Any) -> Any:
    """The operator called `name`.  results: so many of its results; 0: those that are not optional."""
    op = _table.get(name)
    if op is None:
        raise ValueError(f"there is no operator {name!r}")
    ports = op["in"]
    given = []
    for i, value in enumerate(inputs):
        port = ports[min(i, len(ports) - 1)] if ports else {"host": False}
        given.append(_as_tensor(value, port["host"]))
    while given and given[-1] is None:
        given.pop()
    known = {a["name"]: a for a in op["attrs"]}
    words = []
    for key, value in attributes.items():
        if key not in known:
            raise TypeError(f"{name}: no attribute {key!r}; there are {', '.join(known) or 'none'}")
        if value is not None:
            words.append(_text(name, known[key], value))
    return _facula.apply(name, " ".join(words) or None, results, *given)


def _signature(op: dict[str, Any]) -> inspect.Signature:
    list_of: list[inspect.Parameter] = []
    P = inspect.Parameter
    optional = False
    for port in op["in"]:
        if port["variadic"]:
            list_of.append(P(port["name"], P.VAR_POSITIONAL))
            break
        optional = optional or port["optional"]
        name = port["name"]
        while any(p.name == name for p in list_of) or any(a["name"] == name for a in op["attrs"]):
            name += "_"
        list_of.append(P(name, P.POSITIONAL_ONLY, default=None if optional else P.empty))
    for attr in op["attrs"]:
        list_of.append(P(attr["name"], P.KEYWORD_ONLY, default=None))
    list_of.append(P("results", P.KEYWORD_ONLY, default=0))
    return inspect.Signature(list_of)


def _doc(op: dict[str, Any]) -> str:
    lines = [op["doc"] or op["name"], ""]
    for title, ports in (("reads", op["in"]), ("gives", op["out"])):
        words = [p["name"] + (" (optional)" if p["optional"] else "") for p in ports]
        if words:
            lines.append(f"{title}: {', '.join(words)}")
    for attr in op["attrs"]:
        choices = f" ({', '.join(attr['choices'])})" if attr["choices"] else ""
        lines.append(f"{attr['name']}: {attr['help'] or attr['kind']}{choices}")
    return "\n".join(lines)


def _make(name: str) -> Callable[..., Any]:
    op = _table[name]
    ports = op["in"]
    required = sum(not p["optional"] for p in ports)
    most = 62 if any(p["variadic"] for p in ports) else len(ports)

    def function(*inputs: Any, results: int = 0, **attributes: Any) -> Any:
        if not required <= len(inputs) <= most:
            raise TypeError(f"{name}: {len(inputs)} inputs, {required} to {most} were expected")
        return call(name, *inputs, results=results, **attributes)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = _doc(op)
    setattr(function, "__signature__", _signature(op))
    return function


_made: dict[str, Callable[..., Any]] = {}          # not globals: operators are called sum, min, max, too


def names() -> list[str]:
    """All operators that can be called."""
    return sorted(_table)


def __getattr__(name: str) -> Any:
    key = name[:-1] if name.endswith("_") else name
    if key not in _table:
        raise AttributeError(f"there is no operator {name!r}; facula.ops.names() lists them")
    if key not in _made:
        _made[key] = _make(key)
    return _made[key]


def __dir__() -> list[str]:
    return names()
