"""Activations and dropout."""
from __future__ import annotations

from typing import Any

from ... import _facula, functional as T
from ..._facula import Tensor, apply
from ...functional import sigmoid, softmax, tanh
from ...changing import moves
from ...create import as_tensor, axis_of
from ...in_place import into
from ...random import default_generator
from .common import _words


def _with(op: str, about: str, **attributes: Any) -> Any:
    def function(input: Tensor, inplace: bool = False) -> Tensor:
        return into(input, apply(op, words, 0, input), inplace)
    words = _words(**attributes) or None
    function.__name__, function.__doc__ = op, about
    return function


def relu(input: Any, inplace: bool = False) -> Tensor:
    """max(input, 0)"""
    y: Tensor = apply("relu", None, 0, as_tensor(input))
    return into(input, y, inplace)


silu, mish = _with("silu", "x sigmoid(x)"), _with("mish", "x tanh(softplus(x))")
softsign, hardswish = _with("softsign", "x / (1 + |x|)"), _with("hard_swish", "x times hardsigmoid(x)")


selu = _with("selu", "elu with the alpha and scale that keep mean 0 and variance 1", alpha=1.6732632423543772, gamma=1.0507009873554805)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """input times the normal distribution of input; approximate="tanh" by tanh."""
    return apply("gelu" if approximate == "none" else "gelu_tanh", None, 0, input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input, or negative_slope input where input is negative."""
    if moves("leaky_relu", input, negative_slope):
        return into(input, T.where(input > 0, input, input * negative_slope), inplace)
    return into(input, apply("leaky_relu", f"slope={negative_slope}", 0, input), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input, or alpha (e^input - 1) where input is negative."""
    if moves("elu", input, alpha):
        below = T.expm1(T.minimum(input, 0.0)) * alpha      # without minimum it would be inf of large x, and its gradient NaN
        return into(input, T.where(input <= 0, below, input), inplace)
    return into(input, apply("elu", f"alpha={alpha}", 0, input), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, input) + min(0, alpha (e^(input / alpha) - 1))"""
    if alpha > 0 and moves("celu", input, alpha):
        return into(input, T.where(input < 0, T.expm1(T.minimum(input, 0.0) / alpha) * alpha, input), inplace)
    return into(input, apply("celu", f"alpha={alpha}", 0, input), inplace)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """input, or weight input where input is negative; a weight for each channel, or one."""
    w = weight if weight._count == 1 or input.ndim < 2 else weight.reshape([-1] + [1] * (input.ndim - 2))
    return apply("prelu", None, 0, input, w)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """input cut off below min_val and above max_val, where, and at which, its gradient is 0."""
    low, high = Tensor(min_val, dtype=input.dtype, device=input.device), Tensor(max_val, dtype=input.dtype, device=input.device)
    y = apply("clip", None, 0, input, low, high)
    if not input.requires_grad or not _facula.is_grad_enabled():
        return into(input, y, inplace)
    # clip's own gradient passes at the bounds
    path = T.where(input <= low, low, T.where(input >= high, high, input))
    return into(input, apply("surrogate", None, 0, y.detach(), path), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """input cut off at 0 and 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """input / 6 + 1/2, cut off at 0 and 1."""
    return into(input, apply("hard_sigmoid", f"slope={1 / 6} offset=0.5", 0, input), inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """ln(1 + e^(beta input)) / beta; input itself above the threshold."""
    steep = input if beta == 1 else input * beta
    y = apply("softplus", None, 0, steep)
    y = y if beta == 1 else y / beta
    return y if threshold >= 20 else T.where(steep > threshold, input, y)     # above 20 both are the same


def logsigmoid(input: Tensor) -> Tensor:
    """ln sigmoid(input), without overflow."""
    return -apply("softplus", None, 0, -input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where it is above the threshold, else a value."""
    return into(input, T.where(input <= threshold, Tensor(value, dtype=input.dtype), input), inplace)


def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input)"""
    return input - tanh(input)


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """input, or a slope times input below 0: one by chance for each element while training, else the mean slope."""
    if not lower <= upper:
        raise ValueError(f"rrelu: slopes from {lower} to {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    from ...random import rand_like
    return into(input, T.where(input >= 0, input, input * (rand_like(input.detach()) * (upper - lower) + lower)), inplace)


def softmin(input: Tensor, dim: int = -1) -> Tensor:
    """e^-input / sum e^-input along a dim."""
    return softmax(-input, dim)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along a dim times the sigmoid of the second."""
    if not input.ndim or input.shape[axis_of(dim, input.ndim)] % 2:
        raise _facula.ShapeError(f"glu of shape {input.shape}: dim {dim} has no halves")
    a, b = T.chunk(input, 2, dim)
    return a * sigmoid(b)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element is 0 with probability p, the others grow by 1 / (1 - p)."""
    return into(input, _dropped(input, p), inplace) if training else input


def _dropped(input: Tensor, p: float) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is between 0 and 1, not {p}")
    if p == 0:
        return input
    if p == 1:
        return input * 0.0
    counter = Tensor(int(default_generator._np.integers(0, 2 ** 62)), dtype="int64")
    if moves("dropout", input, p):
        kept = apply("bernoulli", None, 0, T.full_like(input.detach(), 1.0) * (1 - p), counter)
        return T.where(kept, input * (1 / (1 - p)), T.zeros_like(input.detach()))
    return apply("dropout", f"ratio={p} training=1", 0, input, counter)


def _dropout_planes(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels become 0 with probability p, the others grow by 1 / (1 - p)."""
    if not training or p == 0:
        return input
    kept = dropout(T.ones(input.shape[0], input.shape[1], *[1] * (input.ndim - 2), dtype=input.dtype), p, True)
    return into(input, input * kept, inplace)


dropout1d = dropout2d = dropout3d = _dropout_planes


def _alpha_dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"alpha_dropout: p is between 0 and 1, not {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return into(input, input * 0.0, inplace)
    least = -1.7580993408473766                             # what selu is of the smallest numbers
    scale = ((least * least * p + 1) * (1 - p)) ** -0.5
    counter = Tensor(int(default_generator._np.integers(0, 2 ** 62)), dtype="int64")
    kept = apply("bernoulli", None, 0, T.full(shape, 1.0, dtype=input.dtype, device=input.device) * (1 - p), counter)
    return into(input, T.where(kept, input * scale, least * scale) - least * scale * p, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Each element is the lower end of selu with probability p; what comes out has the mean and variance of what came in, 0 and 1."""
    return _alpha_dropped(input, p, training, inplace, input.shape)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels."""
    return _alpha_dropped(input, p, training, inplace, (*input.shape[:2], *[1] * (input.ndim - 2)))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input where |input| > lambd, else 0."""
    return T.where(T.abs(input) <= lambd, T.zeros_like(input), input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input moved towards 0 by lambd."""
    return input - T.clamp(input, -lambd, lambd)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A soft choice by chance; hard: one-hot, with the gradient of the soft one."""
    from ...random import rand_like
    noise = -T.log(-T.log(T.clamp(rand_like(logits), 1e-20, 1 - 1e-7)))
    y = softmax((logits + noise) / tau, dim)
    if not hard:
        return y
    one = T.scatter(T.zeros_like(y), dim, T.argmax(y, dim, True), 1.0)
    z: Tensor = one - y.detach() + y
    return z


def _writing(function: Any) -> Any:
    def method(input: Tensor, *args: Any, **options: Any) -> Tensor:
        return function(input, *args, **options, inplace=True)
    method.__name__ = f"{function.__name__}_"
    method.__doc__ = f"{function.__name__}(), written into its input."
    return method


relu_, elu_, celu_, selu_, leaky_relu_ = (_writing(f) for f in (relu, elu, celu, selu, leaky_relu))
hardtanh_, threshold_, rrelu_ = (_writing(f) for f in (hardtanh, threshold, rrelu))
