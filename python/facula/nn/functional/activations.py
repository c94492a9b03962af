"""Activations and dropout."""
from __future__ import annotations

from typing import Any

from ... import _facula, functional as T
from ..._facula import Tensor, apply
from ...functional import sigmoid, softmax, tanh
from ...changing import moves
from ...create import axis_of
from ...random import default_generator
from .common import _words


def _with(op: str, about: str, **attributes: Any) -> Any:
    def function(x: Tensor, **options: Any) -> Tensor:
        return apply(op, _words(**{**attributes, **options}) or None, 0, x)
    function.__name__, function.__doc__ = op, about
    return function


silu, mish = _with("silu", "x sigmoid(x)"), _with("mish", "x tanh(softplus(x))")
softsign, hardswish = _with("softsign", "x / (1 + |x|)"), _with("hard_swish", "x times hardsigmoid(x)")


selu = _with("selu", "elu with the alpha and scale that keep mean 0 and variance 1", alpha=1.6732632423543772, gamma=1.0507009873554805)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution of x; approximate="tanh" by tanh."""
    return apply("gelu" if approximate == "none" else "gelu_tanh", None, 0, x)


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x, or negative_slope x where x is negative."""
    if moves("leaky_relu", x, negative_slope):
        return T.where(x > 0, x, x * negative_slope)
    return apply("leaky_relu", f"slope={negative_slope}", 0, x)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x, or alpha (e^x - 1) where x is negative."""
    if moves("elu", x, alpha):
        return T.where(x <= 0, T.expm1(T.minimum(x, 0.0)) * alpha, x)      # of large x it would be inf, and its gradient NaN
    return apply("elu", f"alpha={alpha}", 0, x)


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """max(0, x) + min(0, alpha (e^(x / alpha) - 1))"""
    if alpha > 0 and moves("celu", x, alpha):
        return T.where(x < 0, T.expm1(T.minimum(x, 0.0) / alpha) * alpha, x)
    return apply("celu", f"alpha={alpha}", 0, x)


def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """x, or weight x where x is negative; a weight for each channel, or one."""
    w = weight if weight._count == 1 or x.ndim < 2 else weight.reshape([-1] + [1] * (x.ndim - 2))
    return apply("prelu", None, 0, x, w)


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x cut off below min_val and above max_val, where, and at which, its gradient is 0."""
    low, high = Tensor(min_val, dtype=x.dtype, device=x.device), Tensor(max_val, dtype=x.dtype, device=x.device)
    y = apply("clip", None, 0, x, low, high)
    if not x.requires_grad or not _facula.is_grad_enabled():
        return y
    # clip's own gradient passes at the bounds
    path = T.where(x <= low, low, T.where(x >= high, high, x))
    return apply("surrogate", None, 0, y.detach(), path)


def relu6(x: Tensor) -> Tensor:
    """x cut off at 0 and 6."""
    return hardtanh(x, 0.0, 6.0)


def hardsigmoid(x: Tensor) -> Tensor:
    """x / 6 + 1/2, cut off at 0 and 1."""
    return apply("hard_sigmoid", f"slope={1 / 6} offset=0.5", 0, x)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """ln(1 + e^(beta x)) / beta; x itself above the threshold."""
    steep = x if beta == 1 else x * beta
    y = apply("softplus", None, 0, steep)
    y = y if beta == 1 else y / beta
    return y if threshold >= 20 else T.where(steep > threshold, x, y)     # above 20 both are the same


def logsigmoid(x: Tensor) -> Tensor:
    """ln sigmoid(x), without overflow."""
    return -apply("softplus", None, 0, -x)


def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """x where it is above the threshold, else a value."""
    return T.where(x <= threshold, Tensor(value, dtype=x.dtype), x)


def tanhshrink(x: Tensor) -> Tensor:
    """x - tanh(x)"""
    return x - tanh(x)


def rrelu(x: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """x, or a slope times x below 0: one by chance for each element while training, else the mean slope."""
    if not lower <= upper:
        raise ValueError(f"rrelu: slopes from {lower} to {upper}")
    if not training:
        return leaky_relu(x, (lower + upper) / 2)
    from ...random import rand_like
    return T.where(x >= 0, x, x * (rand_like(x.detach()) * (upper - lower) + lower))


def softmin(x: Tensor, dim: int = -1) -> Tensor:
    """e^-x / sum e^-x along a dim."""
    return softmax(-x, dim)


def glu(x: Tensor, dim: int = -1) -> Tensor:
    """The first half along a dim times the sigmoid of the second."""
    if not x.ndim or x.shape[axis_of(dim, x.ndim)] % 2:
        raise _facula.ShapeError(f"glu of shape {x.shape}: dim {dim} has no halves")
    a, b = T.chunk(x, 2, dim)
    return a * sigmoid(b)


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Each element is 0 with probability p, the others grow by 1 / (1 - p)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is between 0 and 1, not {p}")
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    counter = Tensor(int(default_generator._np.integers(0, 2 ** 62)), dtype="int64")
    if moves("dropout", x, p):
        kept = apply("bernoulli", None, 0, T.full_like(x.detach(), 1.0) * (1 - p), counter)
        return T.where(kept, x * (1 / (1 - p)), T.zeros_like(x.detach()))
    return apply("dropout", f"ratio={p} training=1", 0, x, counter)


def _dropout_planes(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Whole channels become 0 with probability p, the others grow by 1 / (1 - p)."""
    if not training or p == 0:
        return x
    return x * dropout(T.ones(x.shape[0], x.shape[1], *[1] * (x.ndim - 2), dtype=x.dtype), p, True)


dropout1d = dropout2d = dropout3d = _dropout_planes


def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, else 0."""
    return T.where(T.abs(x) <= lambd, T.zeros_like(x), x)


def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd."""
    return x - T.clamp(x, -lambd, lambd)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """A soft choice by chance; hard: one-hot, with the gradient of the soft one."""
    from ...random import rand_like
    noise = -T.log(-T.log(T.clamp(rand_like(logits), 1e-20, 1 - 1e-7)))
    y = softmax((logits + noise) / tau, dim)
    if not hard:
        return y
    one = T.scatter(T.zeros_like(y), dim, T.argmax(y, dim, True), 1.0)
    z: Tensor = one - y.detach() + y
    return z
