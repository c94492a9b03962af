"""Formulas as one call: what is computed for every parameter in every step costs one call instead of ten.

A formula is written once, in operators that tensors have as well, and called with values of a graph here:

    f = fuse([(float32, (3,)), (float32, ())], lambda x, rate: (x - rate * x,))
    y, = f(x, 0.1)
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._facula import Builder, Fused
from .dtypes import dtype


class Value:
    """A value of the graph that a formula makes."""

    def __init__(self, builder: Builder, at: int) -> None:
        self.builder, self.at = builder, at

    def _op(self, op: str, *others: Value) -> Value:
        return Value(self.builder, self.builder.apply(op, None, 1, [self.at, *(o.at for o in others)])[0])

    @staticmethod
    def of(like: Value, dtype: dtype, x: float) -> Value:
        """A constant beside `like`."""
        return Value(like.builder, like.builder.number(dtype, x))

    def __add__(self, other: Value) -> Value:
        return self._op("add", other)

    def __sub__(self, other: Value) -> Value:
        return self._op("sub", other)

    def __mul__(self, other: Value) -> Value:
        return self._op("mul", other)

    def __truediv__(self, other: Value) -> Value:
        return self._op("div", other)

    def __neg__(self) -> Value:
        return self._op("neg")

    def sqrt(self) -> Value:
        """The square root."""
        return self._op("sqrt")

    def maximum(self, other: Value) -> Value:
        """The larger of both."""
        return self._op("max", other)


def fuse(inputs: Sequence[tuple[dtype, Sequence[int]]], formula: Callable[..., Sequence[Value]]) -> Callable[..., tuple[Any, ...]]:
    """The formula of inputs of these types; a call takes tensors, and numbers for scalars, and gradients do not go through it."""
    b = Builder()
    values = [Value(b, b.input(f"x{i}", dtype, shape)) for i, (dtype, shape) in enumerate(inputs)]
    for k, y in enumerate(formula(*values)):
        b.output(f"y{k}", y.at)
    call: Callable[..., tuple[Any, ...]] = Fused(b.finish()).call
    return call
