"""The aten table: which operators of the library an overload of torch is.

A row is a function of a Graph and the arguments in the order of the schema; tensors are Values, absent ones None.
It gives a Value, or a list of them, or raises Refused.  The compile backend and the device read the same rows.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = Callable[..., Any]
rows: dict[str, Row] = {}


def row(*names: str) -> Callable[[Row], Row]:
    """The function is the row of these overloads: "add.Tensor", "relu"."""
    def keep(function: Row) -> Row:
        for name in names:
            rows[name] = function
        return function
    return keep
