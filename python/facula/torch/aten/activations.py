"""Rows of activations and their gradients."""
from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Value
from .table import row, rows


@row("gelu")
def gelu(g: Graph, x: Value, approximate: str = "none") -> Value:
    return g.op("gelu" if approximate == "none" else "gelu_tanh", x)


@row("gelu_backward")
def gelu_backward(g: Graph, dy: Value, x: Value, approximate: str = "none") -> Value:
    return g.mul(dy, g.op("gelu_slope" if approximate == "none" else "gelu_tanh_slope", x))


@row("leaky_relu")
def leaky_relu(g: Graph, x: Value, slope: float = 0.01) -> Value:
    return g.op("leaky_relu", x, slope=slope)


@row("elu")
def elu(g: Graph, x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    if scale == 1 and input_scale == 1:
        return g.op("elu", x, alpha=alpha)
    low = g.mul(g.op("expm1", g.mul(x, input_scale)), alpha * scale)
    return g.where(g.compare("greater", x, 0), g.mul(x, scale), low)


@row("hardsigmoid")
def hardsigmoid(g: Graph, x: Value) -> Value:
    return g.op("hard_sigmoid", x, slope=1 / 6, offset=0.5)


@row("hardswish")
def hardswish(g: Graph, x: Value) -> Value:
    return g.op("hard_swish", x)


@row("softplus")
def softplus(g: Graph, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    scaled_x = x if beta == 1 else g.mul(x, beta)
    y = g.op("softplus", scaled_x)
    return g.where(g.compare("greater", scaled_x, threshold), x, y if beta == 1 else g.div(y, beta))


@row("log_sigmoid_forward")
def log_sigmoid(g: Graph, x: Value) -> list[Any]:
    y = g.op("neg", g.op("softplus", g.op("neg", x)))
    room = g.wanted[1] if len(g.wanted) > 1 else None       # torch's own backward reads it; ours does not
    if room is None:
        return [y, None]
    return [y, g.op("exp", g.op("neg", g.op("abs", x))) if room[1] == x.shape else g.full(room[1], 0, room[0])]


rows["log_sigmoid"] = lambda g, x: g.op("neg", g.op("softplus", g.op("neg", x)))


@row("log_sigmoid_backward")
def log_sigmoid_backward(g: Graph, dy: Value, x: Value, buffer: Any) -> Value:
    return g.mul(dy, g.op("sigmoid", g.op("neg", x)))


@row("mish")
def mish(g: Graph, x: Value) -> Value:
    return g.op("mish", x)


@row("threshold")
def threshold(g: Graph, x: Value, at: Any, value: Any) -> Value:
    return g.op("where", g.compare("less_or_equal", x, at), g.as_(value, x.dt), x)


@row("hardshrink")
def hardshrink(g: Graph, x: Value, lambd: float = 0.5) -> Value:
    inside = g.compare("less_or_equal", g.op("abs", x), lambd)
    return g.where(inside, 0.0, x)


@row("softshrink")
def softshrink(g: Graph, x: Value, lambd: float = 0.5) -> Value:
    low = g.where(g.compare("less", x, -lambd), g.add(x, lambd), g.mul(x, 0.0))
    return g.where(g.compare("greater", x, lambd), g.sub(x, lambd), low)


@row("glu")
def glu(g: Graph, x: Value, dim: int = -1) -> Value:
    axis = dim % x.rank
    half = x.shape[axis] // 2
    return g.mul(g.slice(x, axis, 0, half), g.op("sigmoid", g.slice(x, axis, half, 2 * half)))


@row("_prelu_kernel")
def prelu(g: Graph, x: Value, weight: Value) -> Value:
    return g.where(g.compare("greater", x, 0), x, g.mul(weight, x))


@row("threshold_backward")
def threshold_backward(g: Graph, dy: Value, x: Value, at: Any) -> Value:
    return g.op("where", g.compare("less_or_equal", x, at), g.number(0, dy.dt), dy)


@row("hardtanh_backward")
def hardtanh_backward(g: Graph, dy: Value, x: Value, low: Any, high: Any) -> Value:
    inner = g.op("where", g.compare("greater_or_equal", x, high), g.number(0, dy.dt), dy)
    return g.op("where", g.compare("less_or_equal", x, low), g.number(0, dy.dt), inner)


@row("sigmoid_backward")
def sigmoid_backward(g: Graph, dy: Value, y: Value) -> Value:
    return g.mul(dy, g.mul(y, g.sub(1, y)))


@row("tanh_backward")
def tanh_backward(g: Graph, dy: Value, y: Value) -> Value:
    return g.mul(dy, g.sub(1, g.mul(y, y)))


@row("silu_backward")
def silu_backward(g: Graph, dy: Value, x: Value) -> Value:
    return g.mul(dy, g.op("silu_slope", x))


@row("mish_backward")
def mish_backward(g: Graph, dy: Value, x: Value) -> Value:
    t, s = g.op("tanh", g.op("softplus", x)), g.op("sigmoid", x)
    return g.mul(dy, g.add(t, g.mul(g.mul(x, s), g.sub(1, g.mul(t, t)))))


@row("leaky_relu_backward")
def leaky_relu_backward(g: Graph, dy: Value, x: Value, slope: float, of_result: bool) -> Value:
    return g.where(g.compare("greater", x, 0), dy, g.mul(dy, slope))


@row("elu_backward")
def elu_backward(g: Graph, dy: Value, alpha: float, scale: float, input_scale: float, of_result: bool, x: Value) -> Value:
    if of_result:
        low = g.mul(g.mul(dy, input_scale), g.add(x, alpha * scale))
    else:
        low = g.mul(g.mul(dy, input_scale * alpha * scale), g.op("exp", g.mul(x, input_scale)))
    return g.where(g.compare("less_or_equal", x, 0), low, g.mul(dy, scale))


@row("hardsigmoid_backward")
def hardsigmoid_backward(g: Graph, dy: Value, x: Value) -> Value:
    inside = g.op("and", g.compare("greater", x, -3), g.compare("less", x, 3))
    return g.where(inside, g.mul(dy, 1 / 6), 0.0)


@row("hardswish_backward")
def hardswish_backward(g: Graph, dy: Value, x: Value) -> Value:
    bend = g.mul(dy, g.add(g.div(x, 3), 0.5))
    inner = g.where(g.compare("less", x, 3), bend, dy)
    return g.where(g.compare("less_or_equal", x, -3), 0.0, inner)


@row("softplus_backward")
def softplus_backward(g: Graph, dy: Value, x: Value, beta: float, threshold: float) -> Value:
    z = g.mul(x, beta)
    return g.where(g.compare("greater", z, threshold), dy, g.mul(dy, g.op("sigmoid", z)))


@row("hardshrink_backward")
def hardshrink_backward(g: Graph, dy: Value, x: Value, lambd: float) -> Value:
    return g.where(g.compare("less_or_equal", g.op("abs", x), lambd), 0.0, dy)


rows["softshrink_backward"] = rows["hardshrink_backward"]


@row("glu_backward")
def glu_backward(g: Graph, dy: Value, x: Value, dim: int) -> Value:
    axis = dim % x.rank
    half = x.shape[axis] // 2
    a, s = g.slice(x, axis, 0, half), g.op("sigmoid", g.slice(x, axis, half, 2 * half))
    return g.concat([g.mul(dy, s), g.mul(g.mul(dy, a), g.mul(s, g.sub(1, s)))], axis)


@row("_prelu_kernel_backward")
def prelu_backward(g: Graph, dy: Value, x: Value, weight: Value) -> list[Value]:
    above = g.compare("greater", x, 0)
    return [g.where(above, dy, g.mul(weight, dy)), g.where(above, 0.0, g.mul(x, dy))]


@row("celu")
def celu(g: Graph, x: Value, alpha: float = 1.0) -> Value:
    return g.op("celu", x, alpha=float(alpha))


@row("logit_backward")
def logit_backward(g: Graph, dy: Value, x: Value, eps: float | None = None) -> Value:
    low, high = (0.0, 1.0) if eps is None else (eps, 1.0 - eps)
    outside = g.op("or", g.compare("less", x, low), g.compare("greater", x, high))
    dx = g.div(dy, g.mul(x, g.sub(1.0, x)))
    return g.where(outside, math.nan if eps is None else 0.0, dx)
