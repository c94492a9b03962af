"""Rows of norms."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Refused, Value, kind
from .table import row


def _channels(g: Graph, c: Value, rank: int) -> Value:
    return g.reshape(c, (c.shape[0],) + (1,) * (rank - 2))


def _wide(g: Graph, x: Value, others: Sequence[Value | None]) -> Value:
    """x in the dtype of its parameters: autocast norms bf16 or f16 with weights and statistics of f32."""
    dts = {t.dt for t in others if t is not None}
    if len(dts) > 1 or (dts and x.dt not in ("bf16", "f16") and dts != {x.dt}):
        raise Refused("a norm of two dtypes")
    return g.cast(x, dts.pop()) if dts else x


def _own(g: Graph, x: Value, eps: float, w: Value | None, b: Value | None) -> tuple[Value, Value, Value]:
    """y, mean and variance (biased) of a norm in training."""
    c = x.shape[1]
    one, zero = g.full((c,), 1, x.dt), g.full((c,), 0, x.dt)
    y, mean, var = g.ops("batch_norm", x, one if w is None else w, zero if b is None else b, zero, zero, results=3, epsilon=eps,
                         momentum=0.0, training_mode=True)
    return y, mean, var


def _normed(g: Graph, x: Value, w: Value | None, b: Value | None, rm: Value | None, rv: Value | None, training: bool, momentum: float,
            eps: float) -> tuple[Value, Value, Value, Any, Any]:
    if x.rank < 2 or not x.count or kind(x.dt) != 2:
        raise Refused("a norm of nothing")
    x = _wide(g, x, (w, b, rm, rv))
    c = x.shape[1]
    if not training:
        if rm is None or rv is None:
            raise Refused("no statistics")
        one, zero = g.full((c,), 1, x.dt), g.full((c,), 0, x.dt)
        y = g.op("batch_norm", x, one if w is None else w, zero if b is None else b, rm, rv, epsilon=eps)
        said = g.wanted[1][1] if len(g.wanted) > 1 and g.wanted[1] else (0,)
        nothing = g.full(said, 0, x.dt)                 # nothing reads it; torch's meta kernel says [C]
        return y, nothing, nothing, rm, rv
    n = x.count // c
    y, mean, var = _own(g, x, eps, w, b)
    inv = g.op("reciprocal", g.op("sqrt", g.add(var, eps)))
    if rm is not None:
        rm = g.add(g.mul(rm, 1 - momentum), g.mul(mean, momentum))
    if rv is not None:
        rv = g.add(g.mul(rv, 1 - momentum), g.mul(var, momentum * n / max(n - 1, 1)))
    return y, mean, inv, rm, rv


@row("native_batch_norm")
def native_batch_norm(g: Graph, x: Value, w: Any, b: Any, rm: Any, rv: Any, training: bool, momentum: float, eps: float) -> list[Any]:
    y, mean, inv, new_mean, new_var = _normed(g, x, w, b, rm, rv, training, momentum, eps)
    return [y, mean, inv, {3: new_mean, 4: new_var}] if training else [y, mean, inv]


@row("_native_batch_norm_legit_functional")
def functional_batch_norm(g: Graph, x: Value, w: Any, b: Any, rm: Any, rv: Any, training: bool, momentum: float, eps: float) -> list[Any]:
    return list(_normed(g, x, w, b, rm, rv, training, momentum, eps))


@row("_native_batch_norm_legit")
def legit_batch_norm(g: Graph, x: Value, w: Any, b: Any, rm: Any, rv: Any, training: bool, momentum: float, eps: float) -> list[Any]:
    return native_batch_norm(g, x, w, b, rm, rv, training, momentum, eps)


@row("_native_batch_norm_legit_no_training")
def batch_norm_eval(g: Graph, x: Value, w: Any, b: Any, rm: Any, rv: Any, momentum: float, eps: float) -> list[Any]:
    return list(_normed(g, x, w, b, rm, rv, False, momentum, eps))[:3]


@row("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(g: Graph, x: Value, w: Any, b: Any, training: bool, momentum: float, eps: float) -> list[Any]:
    return list(_normed(g, x, w, b, None, None, True, momentum, eps))[:3]


@row("native_batch_norm_backward")
def batch_norm_backward(g: Graph, dy: Value, x: Value, w: Any, rm: Any, rv: Any, save_mean: Any, save_inv: Any, training: bool, eps: float,
                        mask: Sequence[bool]) -> list[Any]:
    if x.rank < 2 or not x.count or kind(x.dt) != 2:
        raise Refused("a norm of nothing")
    x = _wide(g, x, (w, rm, rv))
    dy, c = g.cast(dy, x.dt), x.shape[1]
    scale = g.full((c,), 1, x.dt) if w is None else w
    if training:
        dx, dw, db = g.ops("batch_norm_grad", x, dy, scale, results=3, epsilon=eps)
    else:
        axes = [0, *range(2, x.rank)]
        inv = g.op("reciprocal", g.op("sqrt", g.add(rv, eps)))
        dx = g.mul(dy, _channels(g, g.mul(scale, inv), x.rank))
        hat = g.mul(g.sub(x, _channels(g, rm, x.rank)), _channels(g, inv, x.rank))
        dw, db = g.reduce("sum", g.mul(dy, hat), axes), g.reduce("sum", dy, axes)
    return [dx if mask[0] else None, dw if mask[1] else None, db if mask[2] else None]


@row("native_layer_norm")
def native_layer_norm(g: Graph, x: Value, shape: Sequence[int], w: Any, b: Any, eps: float) -> list[Any]:
    if not x.count or kind(x.dt) != 2:
        raise Refused("a norm of nothing")
    x = _wide(g, x, (w, b))
    if w is None and b is not None:
        w = g.full(shape, 1, x.dt)
    return g.ops("layer_norm", x, w, b, results=3, axis=x.rank - len(shape), epsilon=eps)


@row("native_layer_norm_backward")
def native_layer_norm_backward(g: Graph, dy: Value, x: Value, shape: Sequence[int], mean: Value, inv: Value, w: Any, b: Any,
                               mask: Sequence[bool]) -> list[Any]:
    if not x.count or kind(x.dt) != 2:
        raise Refused("a norm of nothing")
    x = _wide(g, x, (w, b))
    dy = g.cast(dy, x.dt)
    inner = list(range(x.rank - len(shape), x.rank))
    outer = list(range(x.rank - len(shape)))
    mean, inv = g.cast(mean, x.dt), g.cast(inv, x.dt)
    hat = g.mul(g.sub(x, mean), inv)
    dh = dy if w is None else g.mul(dy, w)
    dx = None
    if mask[0]:
        m1, m2 = g.reduce("mean", dh, inner, True), g.reduce("mean", g.mul(dh, hat), inner, True)
        dx = g.mul(inv, g.sub(g.sub(dh, m1), g.mul(hat, m2)))
    dw = _outer_sum(g, g.mul(dy, hat), outer) if mask[1] and w is not None else None
    db = _outer_sum(g, dy, outer) if mask[2] and b is not None else None
    return [dx, dw, db]


def _outer_sum(g: Graph, x: Value, axes: list[int]) -> Value:
    return g.reduce("sum", x, axes) if axes else x


def _grouped(g: Graph, x: Value, groups: int) -> Value:
    return g.reshape(x, (x.shape[0], groups, x.count // (x.shape[0] * groups)))


@row("native_group_norm")
def native_group_norm(g: Graph, x: Value, w: Any, b: Any, n: int, c: int, hw: int, groups: int, eps: float) -> list[Any]:
    if not x.count or kind(x.dt) != 2:
        raise Refused("a norm of nothing")
    x = _wide(g, x, (w, b))
    flat = _grouped(g, x, groups)
    mean = g.reduce("mean", flat, [2], True)
    d = g.sub(flat, mean)
    inv = g.op("reciprocal", g.op("sqrt", g.add(g.reduce("mean", g.mul(d, d), [2], True), eps)))
    scale = w if w is not None or b is None else g.full((c,), 1, x.dt)
    y = g.op("group_norm", x, scale, b, groups=groups, epsilon=eps)
    return [y, g.reshape(mean, (n, groups)), g.reshape(inv, (n, groups))]


@row("native_group_norm_backward")
def native_group_norm_backward(g: Graph, dy: Value, x: Value, mean: Value, inv: Value, w: Any, n: int, c: int, hw: int, groups: int,
                               mask: Sequence[bool]) -> list[Any]:
    if not x.count:
        raise Refused("a norm of nothing")
    x = _wide(g, x, (w,))
    dy, mean, inv = g.cast(dy, x.dt), g.cast(mean, x.dt), g.cast(inv, x.dt)
    shape = (n, groups, c // groups, hw)
    m, i = g.reshape(mean, (n, groups, 1, 1)), g.reshape(inv, (n, groups, 1, 1))
    hat = g.mul(g.sub(g.reshape(x, shape), m), i)
    d = g.reshape(dy, shape)
    dh = d if w is None else g.mul(d, g.reshape(w, (1, groups, c // groups, 1)))
    m1, m2 = g.reduce("mean", dh, [2, 3], True), g.reduce("mean", g.mul(dh, hat), [2, 3], True)
    dx = g.reshape(g.mul(i, g.sub(g.sub(dh, m1), g.mul(hat, m2))), x.shape)
    dw, db = g.reshape(g.reduce("sum", g.mul(d, hat), [0, 3]), (c,)), g.reshape(g.reduce("sum", d, [0, 3]), (c,))
    return [dx if mask[0] else None, dw if mask[1] else None, db if mask[2] else None]


# ---- weights by direction and length -------------------------------------------------------------------------------


def _directions(g: Graph, v: Value, dim: int) -> tuple[Value, list[int]]:
    """The length of v for each index of a dim."""
    axes = [k for k in range(v.rank) if k != dim % v.rank]
    wide = g.cast(v, "f32") if v.dt in ("f16", "bf16") else v
    return g.op("sqrt", g.reduce("sum", g.mul(wide, wide), axes, True)), axes


@row("_weight_norm_interface")
def weight_norm(g: Graph, v: Value, size: Value, dim: int = 0) -> list[Value]:
    norms, _ = _directions(g, v, dim)
    return [g.mul(v, g.cast(g.div(size, norms), v.dt)), norms]


@row("_weight_norm_interface_backward")
def weight_norm_backward(g: Graph, dw: Value, v: Value, size: Value, norms: Value, dim: int) -> list[Value]:
    _, axes = _directions(g, v, dim)
    norms = g.cast(norms, v.dt)
    along = g.div(g.reduce("sum", g.mul(dw, v), axes, True), norms)
    rest = g.sub(dw, g.mul(v, g.div(along, norms)))
    return [g.mul(rest, g.div(size, norms)), along]
