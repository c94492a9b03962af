"""Rows of norms, pools, losses and embeddings."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..graph import Graph, Refused, Value, kind
from .products import spread
from .table import row, rows

# ---- norms -----------------------------------------------------------------------------------------------------


def _channels(g: Graph, c: Value, rank: int) -> Value:
    return g.reshape(c, (c.shape[0],) + (1,) * (rank - 2))


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
    if any(t is not None and t.dt != x.dt for t in (w, b, rm, rv)):
        raise Refused("a norm of two dtypes")
    c = x.shape[1]
    if not training:
        if rm is None or rv is None:
            raise Refused("no statistics")
        one, zero = g.full((c,), 1, x.dt), g.full((c,), 0, x.dt)
        y = g.op("batch_norm", x, one if w is None else w, zero if b is None else b, rm, rv, epsilon=eps)
        said = g.wanted[1][1] if len(g.wanted) > 1 and g.wanted[1] else (0,)
        nothing = g.full(said, 0, x.dt)                 # nobody reads it; torch's meta kernel says [C]
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
    c = x.shape[1]
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
    if not x.count or kind(x.dt) != 2 or any(t is not None and t.dt != x.dt for t in (w, b)):
        raise Refused("a norm of nothing")
    if w is None and b is not None:
        w = g.full(shape, 1, x.dt)
    return g.ops("layer_norm", x, w, b, results=3, axis=x.rank - len(shape), epsilon=eps)


@row("native_layer_norm_backward")
def native_layer_norm_backward(g: Graph, dy: Value, x: Value, shape: Sequence[int], mean: Value, inv: Value, w: Any, b: Any,
                               mask: Sequence[bool]) -> list[Any]:
    if not x.count or kind(x.dt) != 2:
        raise Refused("a norm of nothing")
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
    shape = (n, groups, c // groups, hw)
    m, i = g.reshape(mean, (n, groups, 1, 1)), g.reshape(inv, (n, groups, 1, 1))
    hat = g.mul(g.sub(g.reshape(x, shape), m), i)
    d = g.reshape(dy, shape)
    dh = d if w is None else g.mul(d, g.reshape(w, (1, groups, c // groups, 1)))
    m1, m2 = g.reduce("mean", dh, [2, 3], True), g.reduce("mean", g.mul(dh, hat), [2, 3], True)
    dx = g.reshape(g.mul(i, g.sub(g.sub(dh, m1), g.mul(hat, m2))), x.shape)
    dw, db = g.reshape(g.reduce("sum", g.mul(d, hat), [0, 3]), (c,)), g.reshape(g.reduce("sum", d, [0, 3]), (c,))
    return [dx if mask[0] else None, dw if mask[1] else None, db if mask[2] else None]


# ---- pools -----------------------------------------------------------------------------------------------------


def _batched(g: Graph, x: Value, dims: int) -> Value:
    if not x.count or kind(x.dt) != 2:
        raise Refused("a pool of nothing")
    return x if x.rank == dims + 2 else g.reshape(x, (1,) + x.shape)


def _pool(kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool, n: int) -> dict[str, Any]:
    k = spread(kernel, n)
    return {"kernel": k, "stride": spread(stride, n) if stride else k, "pad": spread(pad, n) * 2, "dilation": spread(dilation, n),
            "ceil_mode": ceil}


def _ceil_ok(how: dict[str, Any], shape: Sequence[int], want: Any) -> None:
    """torch drops windows that begin behind the image; with ceil_mode both must agree."""
    if want is not None and tuple(want) != tuple(shape):
        raise Refused("another size")


@row("max_pool2d_with_indices")
def max_pool2d(g: Graph, x: Value, kernel: Any, stride: Any = (), pad: Any = (0,), dilation: Any = (1,), ceil: bool = False) -> list[Value]:
    return _max_pool(g, x, 2, kernel, stride, pad, dilation, ceil)


@row("max_pool3d_with_indices")
def max_pool3d(g: Graph, x: Value, kernel: Any, stride: Any = (), pad: Any = (0,), dilation: Any = (1,), ceil: bool = False) -> list[Value]:
    return _max_pool(g, x, 3, kernel, stride, pad, dilation, ceil)


def _max_pool(g: Graph, x: Value, n: int, kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool) -> list[Value]:
    wide = _batched(g, x, n)
    y, at = g.ops(f"max_pool{n}d", wide, results=2, **_pool(kernel, stride, pad, dilation, ceil, n))
    at = g.op("mod", at, g.number(math.prod(wide.shape[2:]), "i64"))
    if wide is not x:
        y, at = g.reshape(y, y.shape[1:]), g.reshape(at, at.shape[1:])
    if g.wanted and g.wanted[0]:
        _ceil_ok({}, y.shape, g.wanted[0][1])
    return [y, at]


def _max_pool_back(g: Graph, dy: Value, x: Value, n: int, kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool) -> Value:
    dx = g.op(f"max_pool{n}d_grad", _batched(g, x, n), _batched(g, dy, n), **_pool(kernel, stride, pad, dilation, ceil, n))
    return g.reshape(dx, x.shape)


rows["max_pool2d_with_indices_backward"] = lambda g, dy, x, kernel, stride, pad, dilation, ceil, at: _max_pool_back(
    g, dy, x, 2, kernel, stride, pad, dilation, ceil)
rows["max_pool3d_with_indices_backward"] = lambda g, dy, x, kernel, stride, pad, dilation, ceil, at: _max_pool_back(
    g, dy, x, 3, kernel, stride, pad, dilation, ceil)


def _avg(n: int) -> Any:
    def function(g: Graph, x: Value, kernel: Any, stride: Any = (), pad: Any = (0,), ceil: bool = False, count: bool = True,
                 divisor: int | None = None) -> Value:
        if divisor:
            raise Refused("a divisor of its own")
        wide = _batched(g, x, n)
        y = g.op(f"avg_pool{n}d", wide, count_include_pad=count, **_pool(kernel, stride, pad, (1,), ceil, n))
        y = y if wide is x else g.reshape(y, y.shape[1:])
        if g.wanted and g.wanted[0]:
            _ceil_ok({}, y.shape, g.wanted[0][1])
        return y
    return function


def _avg_back(n: int) -> Any:
    def function(g: Graph, dy: Value, x: Value, kernel: Any, stride: Any, pad: Any, ceil: bool, count: bool, divisor: int | None) -> Value:
        if divisor:
            raise Refused("a divisor of its own")
        how = _pool(kernel, stride, pad, (1,), ceil, n)
        dx = g.op(f"avg_pool{n}d_grad", _batched(g, x, n), _batched(g, dy, n), count_include_pad=count, **how)
        return g.reshape(dx, x.shape)
    return function


for _n in (2, 3):
    rows[f"avg_pool{_n}d"], rows[f"avg_pool{_n}d_backward"] = _avg(_n), _avg_back(_n)


def _averaging(g: Graph, n: int, m: int, dt: str) -> Value:
    """[m, n]: row i averages what adaptive pooling gives to output i."""
    i, j = g.reshape(g.arange(m), (m, 1)), g.reshape(g.arange(n), (1, n))
    first = g.op("div", g.mul(i, n), g.number(m, "i64"))
    last = g.op("div", g.add(g.mul(g.add(i, 1), n), m - 1), g.number(m, "i64"))
    inside = g.op("and", g.compare("greater_or_equal", j, first), g.compare("less", j, last))
    return g.div(g.cast(inside, dt), g.cast(g.sub(last, first), dt))


def _adaptive(n: int) -> Any:
    def function(g: Graph, x: Value, size: Sequence[int]) -> Value:
        wide = _batched(g, x, n)
        for axis, m in zip(range(2, 2 + n), size):
            k = wide.shape[axis]
            if m == k:
                continue
            if m == 1:
                wide = g.reduce("mean", wide, [axis], True)
                continue
            y = g.swap(wide, axis, 1 + n)
            y = g.op("matmul", y, g.swap(_averaging(g, k, m, x.dt), 0, 1))
            wide = g.swap(y, axis, 1 + n)
        return wide if x.rank == n + 2 else g.reshape(wide, wide.shape[1:])
    return function


def _adaptive_back(n: int) -> Any:
    def function(g: Graph, dy: Value, x: Value) -> Value:
        wide, shape = _batched(g, dy, n), x.shape[-n:]
        for axis, k in zip(range(2, 2 + n), shape):
            m = wide.shape[axis]
            if m == k:
                continue
            if m == 1:
                wide = g.expand(g.mul(wide, 1.0 / k), wide.shape[:axis] + (k,) + wide.shape[axis + 1:])
                continue
            y = g.swap(wide, axis, 1 + n)
            wide = g.swap(g.op("matmul", y, _averaging(g, k, m, x.dt)), axis, 1 + n)
        return g.reshape(wide, x.shape)
    return function


for _n in (2, 3):
    rows[f"_adaptive_avg_pool{_n}d"], rows[f"_adaptive_avg_pool{_n}d_backward"] = _adaptive(_n), _adaptive_back(_n)


# ---- interpolation ---------------------------------------------------------------------------------------------


def _nearest(exact: bool, n: int) -> Any:
    def function(g: Graph, x: Value, size: Sequence[int], *scales: Any) -> Value:
        if kind(x.dt) != 2 or not x.count:
            raise Refused("integers")
        for axis, m, s in zip(range(2, 2 + n), size, scales or (None,) * n):
            k = x.shape[axis]
            if s is not None and abs(s * k - m) > 1e-6:
                raise Refused("a scale that does not give the size")
            if m == k:
                continue
            at = [min(int(((i + 0.5) if exact else i) * k / m), k - 1) for i in range(m)]
            x = _picked(g, x, axis, at)
        return x
    return function


def _picked(g: Graph, x: Value, axis: int, at: Sequence[int]) -> Value:
    k, m = x.shape[axis], len(at)
    if m % k == 0 and all(a == i // (m // k) for i, a in enumerate(at)):
        wide = g.unsqueeze(x, axis + 1)
        y = g.expand(wide, wide.shape[:axis + 1] + (m // k,) + wide.shape[axis + 2:])
        return g.reshape(y, x.shape[:axis] + (m,) + x.shape[axis + 1:])
    from .indexing import constant
    return g.op("gather", x, constant(g, at), axis=axis)


def _linear(g: Graph, n: int, m: int, align: bool, scale: float | None, dt: str) -> Value:
    """[m, n]: the weights of linear interpolation."""
    if align:
        step = (n - 1) / (m - 1) if m > 1 else 0.0
    else:
        step = 1 / scale if scale else n / m
    i = g.cast(g.arange(m), dt)
    at = g.mul(i, step) if align else g.op("max", g.sub(g.mul(g.add(i, 0.5), step), 0.5), g.number(0, dt))
    low = g.op("min", g.op("floor", at), g.number(n - 1, dt))
    part = g.op("min", g.sub(at, low), g.number(1, dt))
    high = g.op("min", g.add(low, 1), g.number(n - 1, dt))
    j = g.reshape(g.cast(g.arange(n), dt), (1, n))
    low, high, part = (g.reshape(v, (m, 1)) for v in (low, high, part))
    is_low, is_high = g.cast(g.compare("equal", j, low), dt), g.cast(g.compare("equal", j, high), dt)
    return g.add(g.mul(is_low, g.sub(1, part)), g.mul(is_high, part))


def _along(g: Graph, x: Value, axis: int, w: Value) -> Value:
    y = g.swap(x, axis, x.rank - 1)
    return g.swap(g.op("matmul", y, g.swap(w, 0, 1)), axis, x.rank - 1)


def _upsample_linear(n: int, back: bool) -> Any:
    def forward(g: Graph, x: Value, size: Sequence[int], align: bool, *scales: Any) -> Value:
        if kind(x.dt) != 2 or not x.count:
            raise Refused("integers")
        for axis, m, s in zip(range(2, 2 + n), size, scales or (None,) * n):
            if m != x.shape[axis]:
                x = _along(g, x, axis, _linear(g, x.shape[axis], m, align, s, x.dt))
        return x

    def backward(g: Graph, dy: Value, size: Sequence[int], shape: Sequence[int], align: bool, *scales: Any) -> Value:
        for axis, m, s in zip(range(2, 2 + n), size, scales or (None,) * n):
            if m != shape[axis]:
                w = _linear(g, shape[axis], m, align, s, dy.dt)
                dy = _along(g, dy, axis, g.swap(w, 0, 1))
        return dy
    return backward if back else forward


def _nearest_back(exact: bool, n: int) -> Any:
    def function(g: Graph, dy: Value, size: Sequence[int], shape: Sequence[int], *scales: Any) -> Value:
        from .indexing import constant
        for axis, m, s in zip(range(2, 2 + n), size, scales or (None,) * n):
            k = shape[axis]
            if s is not None and abs(s * k - m) > 1e-6:
                raise Refused("a scale that does not give the size")
            if m == k:
                continue
            at = [min(int(((i + 0.5) if exact else i) * k / m), k - 1) for i in range(m)]
            hit = g.compare("equal", g.reshape(constant(g, at), (m, 1)), g.reshape(g.arange(k), (1, k)))
            dy = _along(g, dy, axis, g.swap(g.cast(hit, dy.dt), 0, 1))
        return dy
    return function


for _n, _name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    rows[f"upsample_{_name}"], rows[f"upsample_{_name}_backward"] = _upsample_linear(_n, False), _upsample_linear(_n, True)
    rows[f"upsample_nearest{_n}d"], rows[f"_upsample_nearest_exact{_n}d"] = _nearest(False, _n), _nearest(True, _n)
    rows[f"upsample_nearest{_n}d_backward"] = _nearest_back(False, _n)
    rows[f"_upsample_nearest_exact{_n}d_backward"] = _nearest_back(True, _n)


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


def _class_axis(x: Value) -> int:
    return 0 if x.rank == 1 else 1


def _of_class(g: Graph, x: Value, labels: Value, ignore: int) -> tuple[Value, Value, Value]:
    """Labels that may be used as indices, x at them, and where they count."""
    counts = g.op("not", g.compare("equal", labels, ignore))
    safe = g.where(counts, labels, 0)
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
    return g.op("gather", w, at, axis=0)


@row("embedding_dense_backward")
def embedding_backward(g: Graph, dy: Value, at: Value, n: int, padding: int, by_freq: bool) -> Value:
    if by_freq:
        raise Refused("scale_grad_by_freq")
    d = dy if padding < 0 else g.where(g.unsqueeze(g.compare("equal", at, padding), at.rank), 0.0, dy)
    return g.op("gather_grad", g.full((n, dy.shape[-1]), 0, dy.dt), at, d, axis=0)
