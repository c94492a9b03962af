"""Rows of reductions, scans and order."""
from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Refused, Value, axes_of, axis_of, kind
from .elementwise import truth
from .table import row, rows


def given(g: Graph, x: Value, dt: str | None = None) -> str:
    """The dtype of a sum: what was asked for, else int64 for integers."""
    return dt or (x.dt if kind(x.dt) == 2 else "i64")


@row("sum", "sum.default")
def sum_all(g: Graph, x: Value, dtype: str | None = None) -> Value:
    return g.reduce("sum", g.cast(x, given(g, x, dtype)))


@row("sum.dim_IntList")
def sum_dims(g: Graph, x: Value, dim: Any = None, keep: bool = False, dtype: str | None = None) -> Value:
    return g.reduce("sum", g.cast(x, given(g, x, dtype)), dim, keep)


@row("mean")
def mean_all(g: Graph, x: Value, dtype: str | None = None) -> Value:
    return mean_dims(g, x, None, False, dtype)


@row("mean.dim")
def mean_dims(g: Graph, x: Value, dim: Any = None, keep: bool = False, dtype: str | None = None) -> Value:
    y = g.cast(x, dtype or x.dt)
    if not y.count:
        raise Refused("the mean of nothing")
    return g.reduce("mean", y, dim, keep)


rows["nansum"] = lambda g, x, dim=None, keep=False, dtype=None: sum_dims(
    g, g.where(g.op("isnan", x), 0.0, x) if kind(x.dt) == 2 else x, dim, keep, dtype)


@row("prod")
def prod_all(g: Graph, x: Value, dtype: str | None = None) -> Value:
    return g.reduce("reduce_prod", g.cast(x, given(g, x, dtype)))


@row("prod.dim_int")
def prod_dim(g: Graph, x: Value, dim: int, keep: bool = False, dtype: str | None = None) -> Value:
    return g.reduce("reduce_prod", g.cast(x, given(g, x, dtype)), dim, keep)


def extreme(g: Graph, name: str, x: Value, dims: Any, keep: bool) -> Value:
    if not x.count:
        raise Refused("the extreme of nothing")
    if x.dt == "bool":
        return g.cast(g.reduce(name, g.cast(x, "u8"), dims, keep), "bool")
    return g.reduce(name, x, dims, keep)


rows["amax"] = lambda g, x, dim=None, keep=False: extreme(g, "reduce_max", x, dim, keep)
rows["amin"] = lambda g, x, dim=None, keep=False: extreme(g, "reduce_min", x, dim, keep)
rows["max"] = lambda g, x: extreme(g, "reduce_max", x, None, False)
rows["min"] = lambda g, x: extreme(g, "reduce_min", x, None, False)
rows["aminmax"] = lambda g, x, dim=None, keep=False: [extreme(g, "reduce_min", x, dim, keep), extreme(g, "reduce_max", x, dim, keep)]


def place(g: Graph, op: str, x: Value, dim: int | None, keep: bool) -> Value:
    if not x.count:
        raise Refused("the extreme of nothing")
    x = g.cast(x, "u8") if x.dt == "bool" else x
    if dim is None:
        y = g.op(op, g.reshape(x, (x.count,)), axis=0, keep=False)
        return g.reshape(y, (1,) * x.rank) if keep else y
    if not x.rank:
        return g.number(0, "i64")
    return g.op(op, x, axis=axis_of(dim, x.rank), keep=keep)


rows["argmax"] = lambda g, x, dim=None, keep=False: place(g, "arg_max", x, dim, keep)
rows["argmin"] = lambda g, x, dim=None, keep=False: place(g, "arg_min", x, dim, keep)
rows["max.dim"] = lambda g, x, dim, keep=False: [extreme(g, "reduce_max", x, dim, keep), place(g, "arg_max", x, dim, keep)]
rows["min.dim"] = lambda g, x, dim, keep=False: [extreme(g, "reduce_min", x, dim, keep), place(g, "arg_min", x, dim, keep)]


def _any(g: Graph, x: Value, dims: Any, keep: bool) -> Value:
    if not x.count:
        return g.compare("greater", g.reduce("sum", g.cast(truth(g, x), "i32"), dims, keep), 0)
    return g.cast(g.reduce("reduce_max", g.cast(truth(g, x), "u8"), dims, keep), "bool")


def _byte(g: Graph, x: Value, y: Value) -> Value:
    return g.cast(y, "u8") if x.dt == "u8" else y


for _name in ("any", "any.dim", "any.dims"):
    rows[_name] = lambda g, x, dim=None, keep=False: _byte(g, x, _any(g, x, dim, keep))
for _name in ("all", "all.dim", "all.dims"):
    rows[_name] = lambda g, x, dim=None, keep=False: _byte(g, x, g.op("not", _any(g, g.op("not", truth(g, x)), dim, keep)))


@row("count_nonzero", "count_nonzero.dim_IntList")
def count_nonzero(g: Graph, x: Value, dim: Any = None) -> Value:
    return g.reduce("sum", g.cast(truth(g, x), "i64"), dim, False)


# ---- variance --------------------------------------------------------------------------------------------------


def variance(g: Graph, x: Value, dims: Any, correction: Any, keep: bool) -> tuple[Value, Value]:
    axes = axes_of(dims, x.rank)
    n = math.prod(x.shape[a] for a in axes)
    by = 1 if correction is None else correction
    if kind(x.dt) != 2 or not x.count or n - by <= 0:
        raise Refused("the variance of too few")
    mean = g.reduce("mean", x, axes, True)
    d = g.sub(x, mean)
    total = g.reduce("sum", g.mul(d, d), axes, keep)
    return g.mul(total, 1.0 / (n - by)), mean if keep else g.reshape(mean, total.shape)


def _corrected(unbiased: Any) -> int:
    return int(bool(unbiased))


rows["var.correction"] = lambda g, x, dim=None, correction=None, keep=False: variance(g, x, dim, correction, keep)[0]
rows["std.correction"] = lambda g, x, dim=None, correction=None, keep=False: g.op("sqrt", variance(g, x, dim, correction, keep)[0])
rows["var_mean.correction"] = lambda g, x, dim=None, correction=None, keep=False: list(variance(g, x, dim, correction, keep))


@row("std_mean.correction")
def std_mean(g: Graph, x: Value, dim: Any = None, correction: Any = None, keep: bool = False) -> list[Value]:
    var, mean = variance(g, x, dim, correction, keep)
    return [g.op("sqrt", var), mean]


rows["var"] = lambda g, x, unbiased=True: variance(g, x, None, _corrected(unbiased), False)[0]
rows["var.dim"] = lambda g, x, dim, unbiased=True, keep=False: variance(g, x, dim, _corrected(unbiased), keep)[0]
rows["std"] = lambda g, x, unbiased=True: g.op("sqrt", rows["var"](g, x, unbiased))
rows["std.dim"] = lambda g, x, dim, unbiased=True, keep=False: g.op("sqrt", rows["var.dim"](g, x, dim, unbiased, keep))


# ---- norms of vectors ------------------------------------------------------------------------------------------


@row("linalg_vector_norm")
def vector_norm(g: Graph, x: Value, order: float = 2, dim: Any = None, keep: bool = False, dtype: str | None = None) -> Value:
    x = g.cast(x, dtype or x.dt)
    if kind(x.dt) != 2 or not x.count:
        raise Refused("no floats")
    a = g.op("abs", x)
    if order == 2:
        return g.op("sqrt", g.reduce("sum", g.mul(x, x), dim, keep))
    if order == 1:
        return g.reduce("sum", a, dim, keep)
    if order == 0:
        return g.reduce("sum", g.cast(truth(g, x), x.dt), dim, keep)
    if math.isinf(order):
        return g.reduce("reduce_max" if order > 0 else "reduce_min", a, dim, keep)
    total = g.reduce("sum", g.binary("pow", a, float(order), x.dt), dim, keep)
    return g.binary("pow", total, 1.0 / order, x.dt)


rows["norm.ScalarOpt_dim"] = lambda g, x, p, dim, keep=False: vector_norm(g, x, 2 if p is None else p, dim, keep)
rows["norm.Scalar"] = lambda g, x, p=2: vector_norm(g, x, 2 if p is None else p)
rows["norm.ScalarOpt_dtype"] = lambda g, x, p, dtype: vector_norm(g, x, 2 if p is None else p, None, False, dtype)
rows["norm.ScalarOpt_dim_dtype"] = lambda g, x, p, dim, keep, dtype: vector_norm(g, x, 2 if p is None else p, dim, keep, dtype)


@row("logsumexp")
def logsumexp(g: Graph, x: Value, dim: Any, keep: bool = False) -> Value:
    if not x.count:
        raise Refused("of nothing")
    x = x if kind(x.dt) == 2 else g.cast(x, g.default)
    top = g.reduce("reduce_max", x, dim, True)
    top = g.where(g.compare("equal", g.op("abs", top), math.inf), 0.0, top)
    y = g.add(g.op("log", g.reduce("sum", g.op("exp", g.sub(x, top)), dim, True)), top)
    if keep:
        return y
    axes = axes_of(dim, x.rank)
    return g.reshape(y, [n for i, n in enumerate(x.shape) if i not in axes])


# ---- scans and order -------------------------------------------------------------------------------------------


@row("cumsum")
def cumsum(g: Graph, x: Value, dim: int, dtype: str | None = None) -> Value:
    y = g.cast(x, given(g, x, dtype))
    return g.op("cum_sum", y, g.number(axis_of(dim, x.rank), "i64")) if x.rank else y


@row("cumprod")
def cumprod(g: Graph, x: Value, dim: int, dtype: str | None = None) -> Value:
    y = g.cast(x, given(g, x, dtype))
    return g.op("cum_prod", y, g.number(axis_of(dim, x.rank), "i64")) if x.rank else y


def _ranked(x: Value) -> Value:
    if not x.rank or not x.count or x.dt == "bool":
        raise Refused("nothing to sort")
    return x


@row("topk")
def topk(g: Graph, x: Value, k: int, dim: int = -1, largest: bool = True, ordered: bool = True) -> list[Value]:
    return g.ops("top_k", _ranked(x), g.number(k, "i64"), results=2, axis=axis_of(dim, x.rank), smallest=not largest)


@row("sort.stable")
def sort_stable(g: Graph, x: Value, stable: Any = None, dim: int = -1, descending: bool = False) -> list[Value]:
    return topk(g, x, _ranked(x).shape[axis_of(dim, x.rank)], dim, descending)


rows["sort"] = lambda g, x, dim=-1, descending=False: sort_stable(g, x, None, dim, descending)
rows["argsort"] = lambda g, x, dim=-1, descending=False: sort_stable(g, x, None, dim, descending)[1]
rows["argsort.stable"] = lambda g, x, stable, dim=-1, descending=False: sort_stable(g, x, None, dim, descending)[1]


# ---- softmax ---------------------------------------------------------------------------------------------------


def _along(name: str) -> Any:
    def function(g: Graph, x: Value, dim: int, half_to_float: bool = False) -> Value:
        if half_to_float:
            x = g.cast(x, "f32")
        if kind(x.dt) != 2:
            raise Refused("integers")
        if not x.count:
            return x
        if not x.rank:
            return g.reshape(g.op(name, g.reshape(x, (1,)), axis=0), ())
        return g.op(name, x, axis=axis_of(dim, x.rank))
    return function


rows["_softmax"], rows["_log_softmax"] = _along("softmax"), _along("log_softmax")


@row("_safe_softmax")
def safe_softmax(g: Graph, x: Value, dim: int, dtype: str | None = None) -> Value:
    y = rows["_softmax"](g, g.cast(x, dtype or x.dt), dim)
    hidden = g.op("not", _any(g, g.op("not", g.compare("equal", x, -math.inf)), [dim], True))
    return g.where(hidden, 0.0, y)


def _back(name: str) -> Any:
    def function(g: Graph, dy: Value, y: Value, dim: int, dtype: str) -> Value:
        if not y.count:
            return g.cast(dy, dtype)
        if not y.rank:
            return g.cast(g.reshape(g.op(name, g.reshape(y, (1,)), g.reshape(dy, (1,)), axis=0), ()), dtype)
        return g.cast(g.op(name, y, g.cast(dy, y.dt), axis=axis_of(dim, y.rank)), dtype)
    return function


rows["_softmax_backward_data"], rows["_log_softmax_backward_data"] = _back("softmax_grad"), _back("log_softmax_grad")
