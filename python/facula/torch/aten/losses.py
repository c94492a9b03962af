"""Rows of losses and embeddings."""
from __future__ import annotations

from ..graph import Graph, Refused, Value
from .indexing import from_zero
from .table import row, rows


# ---- losses ----------------------------------------------------------------------------------------------------

MEAN, SUM = 1, 2


def _reduced(g: Graph, x: Value, how: int) -> Value:
    return x if how == 0 else g.reduce("mean" if how == MEAN else "sum", x)


rows["mse_loss"] = lambda g, x, y, how=MEAN: _reduced(g, rows["square"](g, g.sub(x, y)), how)


@row("mse_loss_backward")
def mse_backward(g: Graph, dy: Value, x: Value, y: Value, how: int) -> Value:
    d = g.mul(g.sub(x, y), 2.0 / max(x.count, 1) if how == MEAN else 2.0)
    return g.mul(d, dy)


def _smooth(g: Graph, x: Value, y: Value, beta: float) -> Value:
    d = g.op("abs", g.sub(x, y))
    return g.where(g.compare("less", d, beta), g.mul(g.mul(d, d), 0.5 / beta if beta else 0.0), g.sub(d, 0.5 * beta))


def _huber(g: Graph, x: Value, y: Value, delta: float) -> Value:
    d = g.op("abs", g.sub(x, y))
    return g.where(g.compare("less_or_equal", d, delta), g.mul(g.mul(d, d), 0.5), g.mul(g.sub(d, 0.5 * delta), delta))


rows["smooth_l1_loss"] = lambda g, x, y, how=MEAN, beta=1.0: _reduced(g, _smooth(g, x, y, beta), how)
rows["huber_loss"] = lambda g, x, y, how=MEAN, delta=1.0: _reduced(g, _huber(g, x, y, delta), how)


@row("smooth_l1_loss_backward")
def smooth_l1_backward(g: Graph, dy: Value, x: Value, y: Value, how: int, beta: float) -> Value:
    d = g.sub(x, y)
    slope = g.op("sign", d)
    if beta:
        slope = g.where(g.compare("less", g.op("abs", d), beta), g.div(d, beta), slope)
    return g.mul(g.mul(slope, dy), 1.0 / max(x.count, 1) if how == MEAN else 1.0)


@row("huber_loss_backward")
def huber_backward(g: Graph, dy: Value, x: Value, y: Value, how: int, delta: float) -> Value:
    d = g.sub(x, y)
    slope = g.op("clip", d, g.number(-delta, d.dt), g.number(delta, d.dt))
    return g.mul(g.mul(slope, dy), 1.0 / max(x.count, 1) if how == MEAN else 1.0)


def _bce(g: Graph, x: Value, y: Value) -> Value:
    floor = g.number(-100, x.dt)
    a, b = g.op("max", g.op("log", x), floor), g.op("max", g.op("log1p", g.op("neg", x)), floor)
    return g.sub(g.mul(g.sub(y, 1), b), g.mul(y, a))


@row("binary_cross_entropy")
def bce(g: Graph, x: Value, y: Value, weight: Value | None = None, how: int = MEAN) -> Value:
    loss = _bce(g, x, y)
    return _reduced(g, loss if weight is None else g.mul(loss, weight), how)


@row("binary_cross_entropy_backward")
def bce_backward(g: Graph, dy: Value, x: Value, y: Value, weight: Value | None = None, how: int = MEAN) -> Value:
    below = g.op("max", g.mul(g.sub(1, x), x), g.number(1e-12, x.dt))
    d = g.mul(dy, g.div(g.sub(x, y), below))
    d = d if weight is None else g.mul(d, weight)
    return g.mul(d, 1.0 / max(x.count, 1)) if how == MEAN else d


@row("binary_cross_entropy_with_logits")
def bce_logits(g: Graph, x: Value, y: Value, weight: Value | None = None, pos: Value | None = None, how: int = MEAN) -> Value:
    soft = g.op("softplus", g.op("neg", x))
    if pos is None:
        loss = g.add(g.mul(g.sub(1, y), x), soft)
    else:
        loss = g.add(g.mul(g.sub(1, y), x), g.mul(soft, g.add(g.mul(g.sub(pos, 1), y), 1)))
    return _reduced(g, loss if weight is None else g.mul(loss, weight), how)


@row("soft_margin_loss")
def soft_margin(g: Graph, x: Value, y: Value, how: int = MEAN) -> Value:
    return _reduced(g, g.op("softplus", g.op("neg", g.mul(x, y))), how)


@row("soft_margin_loss_backward")
def soft_margin_backward(g: Graph, dy: Value, x: Value, y: Value, how: int = MEAN) -> Value:
    d = g.mul(g.op("neg", y), g.op("sigmoid", g.op("neg", g.mul(x, y))))
    return g.mul(g.div(d, max(x.count, 1)) if how == MEAN else d, dy)


def _class_axis(x: Value) -> int:
    return 0 if x.rank == 1 else 1


def _of_class(g: Graph, x: Value, labels: Value, ignore: int) -> tuple[Value, Value, Value]:
    """Labels that may be used as indices, x at them, and where they count."""
    counts = g.op("not", g.compare("equal", labels, ignore))
    safe = from_zero(g, g.where(counts, labels, 0))
    axis = _class_axis(x)
    at = g.unsqueeze(safe, axis)
    picked = g.op("gather_elements", x, at, axis=axis)
    return safe, g.reshape(picked, labels.shape), counts


def _weights(g: Graph, x: Value, safe: Value, counts: Value, weight: Value | None) -> Value:
    w = g.full(safe.shape, 1, x.dt) if weight is None else g.op("gather", weight, safe, axis=0)
    return g.where(counts, w, 0.0)


@row("nll_loss_forward", "nll_loss2d_forward")
def nll_forward(g: Graph, x: Value, labels: Value, weight: Value | None, how: int, ignore: int) -> list[Value]:
    if not x.count:
        raise Refused("a loss of nothing")
    safe, picked, counts = _of_class(g, x, labels, ignore)
    w = _weights(g, x, safe, counts, weight)
    loss = g.where(counts, g.op("neg", g.mul(picked, w)), 0.0)
    if how == 0:
        return [loss, g.number(0, x.dt)]
    total, all_w = g.reduce("sum", loss), g.reduce("sum", w)
    return [g.div(total, all_w) if how == MEAN else total, all_w]


@row("nll_loss_backward", "nll_loss2d_backward")
def nll_backward(g: Graph, dy: Value, x: Value, labels: Value, weight: Value | None, how: int, ignore: int, total: Value) -> Value:
    counts = g.op("not", g.compare("equal", labels, ignore))
    safe = g.where(counts, labels, 0)
    d = g.op("neg", g.mul(_weights(g, x, safe, counts, weight), g.div(dy, total) if how == MEAN else dy))
    axis = _class_axis(x)
    n = x.shape[axis]
    classes = g.reshape(g.arange(n), (n,) + (1,) * (x.rank - axis - 1))
    here = g.compare("equal", g.unsqueeze(safe, axis), classes)
    return g.op("where", here, g.unsqueeze(d, axis), g.number(0, x.dt))


# ---- embeddings ------------------------------------------------------------------------------------------------

@row("embedding")
def embedding(g: Graph, w: Value, at: Value, padding: int = -1, by_freq: bool = False, sparse: bool = False) -> Value:
    return g.op("gather", w, from_zero(g, at), axis=0)


@row("embedding_dense_backward")
def embedding_backward(g: Graph, dy: Value, at: Value, n: int, padding: int, by_freq: bool) -> Value:
    if by_freq:
        raise Refused("scale_grad_by_freq")
    d = dy if padding < 0 else g.where(g.unsqueeze(g.compare("equal", at, padding), at.rank), 0.0, dy)
    return g.op("gather_grad", g.full((n, dy.shape[-1]), 0, dy.dt), at, d, axis=0)
