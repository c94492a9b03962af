"""Derivatives of functions: Jacobians, Hessians, products with them.  These are `fac.autograd.functional`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import functional as T
from ._facula import Tensor
from .autograd import enable_grad, grad


def _inputs(inputs: Any) -> tuple[list[Tensor], bool]:
    single = isinstance(inputs, Tensor)
    return [x.detach().requires_grad_(True) for x in ([inputs] if single else inputs)], single


def _rows(y: Tensor, xs: list[Tensor], create_graph: bool) -> list[Tensor]:
    rows: list[list[Tensor]] = [[] for _ in xs]
    for k in range(y._count):
        one = T.reshape(y, -1)[k]
        got = grad(one, xs, retain_graph=True, create_graph=create_graph, allow_unused=True) if y.requires_grad else [None] * len(xs)
        for row, x, g in zip(rows, xs, got):
            row.append(T.zeros_like(x) if g is None else g)
    return [T.reshape(T.stack(row), *y.shape, *x.shape) if row else T.zeros(*y.shape, *x.shape) for row, x in zip(rows, xs)]


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
    """d func / d input, of the result's shape and then the input's; a tuple where there are several inputs."""
    xs, single = _inputs(inputs)
    with enable_grad():
        rows = _rows(func(*xs), xs, create_graph)
    return rows[0] if single else tuple(rows)


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
    """Second derivatives of a function whose result is one number; for several inputs a tuple of tuples."""
    xs, single = _inputs(inputs)
    with enable_grad():
        first = grad(func(*xs), xs, create_graph=True, allow_unused=True)
        table = [_rows(T.zeros_like(x) if g is None else g, xs, create_graph) for x, g in zip(xs, first)]
    return table[0][0] if single else tuple(tuple(row) for row in table)


def vjp(func: Callable[..., Any], inputs: Any, v: Tensor | None = None, create_graph: bool = False) -> tuple[Any, Any]:
    """The result, and v times the Jacobian (v may be left out for one number)."""
    xs, single = _inputs(inputs)
    with enable_grad():
        y = func(*xs)
        got = grad(y, xs, v, create_graph=create_graph, allow_unused=True)
    products = [T.zeros_like(x) if g is None else g for x, g in zip(xs, got)]
    return y if create_graph else y.detach(), products[0] if single else tuple(products)


def hvp(func: Callable[..., Any], inputs: Any, v: Any) -> tuple[Any, Any]:
    """The result, which is one number, and its Hessian times v."""
    xs, single = _inputs(inputs)
    vs = [v] if single else list(v)
    with enable_grad():
        y = func(*xs)
        first = grad(y, xs, create_graph=True, allow_unused=True)
        total = sum(((g * w).sum() for g, w in zip(first, vs) if g is not None), T.zeros(()))
        got = grad(total, xs, allow_unused=True) if total.requires_grad else [None] * len(xs)
    products = [T.zeros_like(x) if g is None else g for x, g in zip(xs, got)]
    return y.detach(), products[0] if single else tuple(products)
