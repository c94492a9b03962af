"""Norms."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import _facula, functional as T
from ..._facula import Tensor, apply
from ...autograd import no_grad
from ...changing import moves
from ...dtypes import float64, int64
from ...fused import Value, fuse
from ...promote import cast
from . import plain_norms
from .common import _words, many


_USUAL = 0.1
_USUAL_EPS = 1e-5


@functools.lru_cache(256)
def _mix(dtype: Any, n: int) -> Callable[..., tuple[Tensor, ...]]:
    """a times a number + b times a number, of n elements."""
    return fuse([(dtype, (n,)), (dtype, ()), (dtype, (n,)), (dtype, ())], lambda a, p, b, q: (a * p + b * q,))


@functools.lru_cache(1024)
def _one_more(dtype: Any, n: int, p: float, q: float) -> Callable[..., tuple[Tensor, ...]]:
    """The running variance after one more batch, p times that of the batch + q times the old one, and how many batches there were."""
    def formula(new: Value, old: Value, seen: Value) -> tuple[Value, ...]:
        return new * Value.of(new, dtype, p) + old * Value.of(old, dtype, q), seen + Value.of(seen, int64, 1)
    return fuse([(dtype, (n,)), (dtype, (n,)), (int64, ())], formula)


@functools.lru_cache(256)
def _norm_words(eps: float, kept: float | None) -> str:
    return _words(epsilon=eps) if kept is None else _words(epsilon=eps, momentum=kept, training_mode=True)


def _moves(op: str, x: Tensor, eps: float) -> bool:
    """Is epsilon another one from call to call?"""
    return eps != _USUAL_EPS and moves(op, x, eps)


def _inputs(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> list[Any]:
    """As an op takes them: what is absent in between is None."""
    return [x, weight, bias] if bias is not None else [x, weight] if weight is not None else [x]


def _first_axis(who: str, x: Tensor, normalized_shape: Sequence[int], *others: Tensor | None) -> int:
    """Where the dims that are normalized begin."""
    sizes = tuple(many(normalized_shape, 1))
    if not sizes or x.shape[max(x.ndim - len(sizes), 0):] != sizes:
        raise _facula.ShapeError(f"{who}: the last dims of shape {x.shape} are not {sizes}")
    if any(o is not None and o.shape != sizes for o in others):
        raise _facula.ShapeError(f"{who}: weight and bias have shape {sizes}")
    return x.ndim - len(sizes)


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: Any = 0.1, eps: float = 1e-5) -> Tensor:
    """Each channel with mean 0 and variance 1, of the batch in training, else of the running statistics, which training updates; momentum: a number, or a
    tensor of one."""
    return counting_batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps, None)


def counting_batch_norm(x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None, bias: Tensor | None,
                        training: bool, momentum: Any, eps: float, seen: Tensor | None) -> Tensor:
    """The same; seen: how many batches there were, which training counts."""
    c = x.shape[1]
    scale = weight if weight is not None else T.ones(c, dtype=x.dtype)
    shift = bias if bias is not None else T.zeros(c, dtype=x.dtype)
    own = training or running_mean is None or running_var is None
    mean = running_mean if running_mean is not None else T.zeros(c, dtype=x.dtype)
    var = running_var if running_var is not None else T.ones(c, dtype=x.dtype)
    plain = _moves("batch_norm", x, eps)
    if not own:
        return (plain_norms.batch_norm_given(x, scale, shift, mean, var, eps) if plain else
                apply("batch_norm", _norm_words(eps, None), 0, x, scale, shift, mean, var))
    n = x._count // max(c, 1)
    if training and n <= 1:
        raise _facula.ShapeError(f"batch norm: one value for each channel has no variance (shape {x.shape})")
    # one that changes: then what the batch gives is mixed here
    moving = momentum != _USUAL and moves("momentum", x, momentum) if isinstance(momentum, (int, float)) else True
    moving = moving or plain
    y, new_mean, new_var = (plain_norms.batch_norm(x, scale, shift, eps) if plain else
                            apply("batch_norm", _norm_words(eps, 0.0 if moving else 1 - momentum), 3, x, scale, shift, mean, var))
    share = n / (n - 1) if n > 1 else 1.0                   # PyTorch keeps the variance over one less
    if training and running_mean is not None and running_var is not None and seen is not None and not moving and not _facula.is_tracing():
        running_mean._become(new_mean.detach())
        mixed, count = _one_more(var.dtype, c, share, (1 - share) * (1 - momentum))(new_var, var, seen)
        running_var._become(mixed)
        seen._become(count)
    elif training and running_mean is not None and running_var is not None:
        before = _facula.set_grad_enabled(False)
        try:
            if seen is not None:
                seen._become(seen + 1)
            if moving:
                running_mean._become(_mix(mean.dtype, c)(new_mean, momentum, mean, 1 - momentum)[0])
                running_var._become(_mix(var.dtype, c)(new_var, momentum * share, var, 1 - momentum)[0])
                return y
            running_mean._become(new_mean.detach())
            if _facula.is_tracing():
                running_var._become(new_var.detach() * share + var.detach() * ((1 - share) * (1 - momentum)))
            else:
                running_var._become(_mix(var.dtype, c)(new_var, share, var, (1 - share) * (1 - momentum))[0])
        finally:
            _facula.set_grad_enabled(before)
    return y


def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over the last dims."""
    axis = _first_axis("layer_norm", input, normalized_shape, weight, bias)
    if _moves("layer_norm", input, eps):
        return plain_norms.layer_norm(input, axis, weight, bias, eps)
    return apply("layer_norm", _words(axis=axis, epsilon=eps), 0, *_inputs(input, weight, bias))


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """input over the root of the mean of its squares; eps: that of float32, or of float64, unless said."""
    axis = _first_axis("rms_norm", input, normalized_shape, weight)
    small = (2.0 ** -52 if input.dtype is float64 else 2.0 ** -23) if eps is None else eps
    if _moves("rms_norm", input, small):
        return plain_norms.rms_norm(input, axis, weight, small)
    return apply("rms_norm", _words(axis=axis, epsilon=small), 0, *_inputs(input, weight, None))


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over groups of channels of each sample."""
    if input.ndim > 1 and num_groups > 0 and not input.shape[1] % num_groups and _moves("group_norm", input, eps):
        return plain_norms.group_norm(input, num_groups, weight, bias, eps)
    return apply("group_norm", _words(groups=num_groups, epsilon=eps), 0, *_inputs(input, weight, bias))


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over each channel of each sample, whose statistics change the running ones; without use_input_stats by the running statistics."""
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise _facula.ArgumentError("instance_norm: without use_input_stats it needs running_mean and running_var")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if input.ndim < 2 or input._count and math.prod(input.shape[2:]) < 2:
        raise _facula.ShapeError(f"instance norm: one value for each channel has no variance (shape {input.shape})")
    if running_mean is not None or running_var is not None:
        with no_grad():
            _follow(input.detach(), running_mean, running_var, momentum)
    if input.ndim > 2 and _moves("instance_norm", input, eps):
        return plain_norms.instance_norm(input, weight, bias, eps)
    return apply("instance_norm", _words(epsilon=eps), 0, *_inputs(input, weight, bias))


def _follow(x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float) -> None:
    """Running statistics after one more batch: means over the samples, of variances over one less, as PyTorch keeps them."""
    if running_mean is not None:
        mean = cast(T.mean(x, [0, *range(2, x.ndim)]), running_mean.dtype)
        running_mean._become(running_mean.detach() * (1 - momentum) + mean * momentum)
    if running_var is not None:
        var = cast(T.mean(T.var(x, list(range(2, x.ndim))), 0), running_var.dtype)
        running_var._become(running_var.detach() * (1 - momentum) + var * momentum)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input over a power of the squares of its neighbour channels."""
    if size > 0 and input.ndim > 1 and moves("lrn", input, size, alpha, beta, k):
        return plain_norms.local_response_norm(input, size, alpha, beta, k)
    words = _words(size=size, alpha=alpha, beta=beta, bias=k)
    if size % 2 or input.ndim < 2:
        return apply("lrn", words, 0, input)
    # of an even number ONNX takes one more channel after, PyTorch before
    return T.flip(apply("lrn", words, 0, T.flip(input, 1)), 1)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along a dim, divided by their p-norm."""
    return input / T.maximum(T.norm(input, p, dim, True), eps)
