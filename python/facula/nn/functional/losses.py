"""Losses."""
from __future__ import annotations

import warnings

from ... import _facula, functional as T
from ..._facula import Tensor, apply
from ...changing import moves
from ...dtypes import int64
from ...functional import log_softmax
from ...promote import cast
from .common import _words


def _reduced(x: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return T.mean(x)
    if reduction == "sum":
        return T.sum(x)
    if reduction == "none":
        return x
    raise ValueError(f"reduction is mean, sum or none, not {reduction!r}")


def _check_labels(who: str, labels: Tensor, classes: int, ignore_index: int) -> None:
    """Labels that are there already, as those of data sets are, must be some of the classes."""
    if not labels._is_there or not labels.device.name.startswith("cpu"):
        return
    wrong = _facula.outside(labels, classes, ignore_index)
    if wrong is not None:
        raise IndexError(f"{who}: label {wrong} of {classes} classes")


def _same_shapes(who: str, x: Tensor, target: Tensor) -> None:
    if x.shape != target.shape:
        raise _facula.ShapeError(f"{who}: shapes {x.shape} and {target.shape} differ")


def _check_shapes(who: str, x: Tensor, target: Tensor) -> None:
    if x.shape != target.shape:
        warnings.warn(f"{who}: shapes {x.shape} and {target.shape} differ, so one is repeated for the other; is that meant?", stacklevel=3)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """-input[label], input being logarithms of probabilities."""
    labels = cast(target, int64)
    if not input.ndim or labels.shape != input.shape[:1] * (input.ndim > 1) + input.shape[2:]:
        raise _facula.ShapeError(f"nll_loss: labels of shape {labels.shape} for {input.shape}")
    _check_labels("nll_loss", labels, input.shape[1 if input.ndim > 1 else 0], ignore_index)
    counts = labels != ignore_index
    safe = T.where(counts, labels, T.zeros_like(labels))
    picked = -T.gather(input, 1, safe.unsqueeze(1)).squeeze(1) if input.ndim > 1 else -input[safe]
    share = cast(counts, input.dtype)
    if weight is not None:
        share = share * apply("gather", "axis=0", 0, weight, safe)
    losses = T.where(counts, picked, 0.0) * share           # what is ignored may be infinite
    if reduction == "mean":
        return T.sum(losses) / T.sum(share)
    return _reduced(losses, reduction)


def _smoothed(x: Tensor, target: Tensor, ignore_index: int, reduction: str, share: float) -> Tensor:
    """Cross entropy with a share of smoothing that changes from call to call."""
    log_p = log_softmax(x, 1)
    counts = cast(target, int64) != ignore_index
    sharp = nll_loss(log_p, target, None, ignore_index, "none")
    flat = T.where(counts, -T.mean(log_p, 1), T.zeros_like(sharp.detach()))
    losses = sharp * (1 - share) + flat * share
    return T.sum(losses) / T.sum(cast(counts, x.dtype)) if reduction == "mean" else _reduced(losses, reduction)


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """-log softmax(input)[label]; target: labels (integers), or probabilities (floats) of input's shape."""
    if target.dtype.is_floating_point:
        log_p = log_softmax(input, 1 if input.ndim > 1 else 0)
        classes = input.shape[1 if input.ndim > 1 else 0]
        t = target * (1 - label_smoothing) + label_smoothing / classes if label_smoothing else target
        if weight is not None:
            t = t * weight.reshape([1, -1] + [1] * (input.ndim - 2))
        losses = -T.sum(t * log_p, 1 if input.ndim > 1 else 0)
        return T.sum(losses) / losses._count if reduction == "mean" else _reduced(losses, reduction)
    if input.ndim == 1:
        return cross_entropy(input.unsqueeze(0), target.reshape(1), weight, ignore_index, reduction, label_smoothing)
    if weight is None and reduction in ("mean", "sum", "none"):
        _check_labels("cross_entropy", target, input.shape[1], ignore_index)
        if label_smoothing and moves("cross_entropy", input, label_smoothing):
            return _smoothed(input, target, ignore_index, reduction, label_smoothing)
        attrs = _words(reduction=reduction, ignore=True, ignore_index=ignore_index, label_smoothing=label_smoothing or None)
        return apply("cross_entropy", attrs, 0, input, cast(target, int64))
    log_p = log_softmax(input, 1)
    loss = nll_loss(log_p, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return loss
    labels = cast(target, int64)
    counts = labels != ignore_index
    spread = T.where(counts, -T.sum(log_p * weight.reshape([1, -1] + [1] * (input.ndim - 2)), 1), 0.0)  # type: ignore[union-attr]
    share = apply("gather", "axis=0", 0, weight, T.where(counts, labels, 0)) * cast(counts, input.dtype)
    smooth = T.sum(spread) / T.sum(share) if reduction == "mean" else _reduced(spread, reduction)
    return loss * (1 - label_smoothing) + smooth * (label_smoothing / input.shape[1])


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(input - target)^2"""
    _check_shapes("mse_loss", input, target)
    d = input - target
    return _reduced(d * d, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """|input - target|"""
    _check_shapes("l1_loss", input, target)
    return _reduced(T.abs(input - target), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d^2 / (2 beta) of distances d below beta, d - beta / 2 of others."""
    _check_shapes("smooth_l1_loss", input, target)
    d = T.abs(input - target)
    if beta == 0:
        return _reduced(d, reduction)
    return _reduced(T.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta), reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """d^2 / 2 of small distances d, delta (d - delta / 2) of large ones."""
    _check_shapes("huber_loss", input, target)
    d = T.abs(input - target)
    return _reduced(T.where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta), reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """The binary cross entropy of sigmoid(input), without overflow."""
    _same_shapes("binary_cross_entropy_with_logits", input, target)
    soft = apply("softplus", None, 0, -input)
    if pos_weight is None:
        losses = (1 - target) * input + soft
    else:
        losses = (1 - target) * input + (1 + (pos_weight - 1) * target) * soft
    return _reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """-y ln p - (1 - y) ln(1 - p), of probabilities."""
    _same_shapes("binary_cross_entropy", input, target)
    low = Tensor(-100.0, dtype=input.dtype)
    losses = -(target * T.maximum(T.log(input), low) + (1 - target) * T.maximum(T.log(1 - input), low))
    return _reduced(losses if weight is None else losses * weight, reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target (ln target - input): the divergence of the target from logarithms of probabilities."""
    if log_target:
        losses = T.exp(target) * (target - input)
    else:
        none = target == 0
        losses = T.where(none, 0.0, target * (T.log(T.where(none, 1.0, target)) - input))
    return T.sum(losses) / (input.shape[0] if input.ndim else 1) if reduction == "batchmean" else _reduced(losses, reduction)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along a dim."""
    x1, x2 = (x1, x2) if x1.shape == x2.shape else T.broadcast_tensors(x1, x2)
    return T.sum(x1 * x2, dim) / (T.maximum(T.norm(x1, 2, dim), eps) * T.maximum(T.norm(x2, 2, dim), eps))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """input where the label is 1, max(0, margin - input) where it is -1, and the sum of both where it is another."""
    return _reduced(T.where(target == -1, 0.0, input) + T.where(target == 1, 0.0, T.clamp(margin - input, 0.0)), reduction)
