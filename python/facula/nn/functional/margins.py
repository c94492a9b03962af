"""Losses of distances, margins and distributions."""
from __future__ import annotations

import math
from typing import Any

from ... import functional as T
from ..._facula import ShapeError, Tensor
from ...dtypes import int64
from ...promote import cast
from .activations import softplus
from .losses import _reduced, cosine_similarity


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of a - b + eps along the last dim."""
    return T.norm(x1 - x2 + eps, p, -1, keepdim)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """max(0, margin - t (a - b)), t being 1 or -1."""
    return _reduced(T.relu(margin - target * (input1 - input2)), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """ln(1 + e^(-t input)), t being 1 or -1."""
    return _reduced(softplus(-(target * input)), reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """1 - cos(a, b) where the target is 1, max(0, cos(a, b) - margin) where it is -1."""
    c = cosine_similarity(input1, input2, -1)
    return _reduced(T.where(target == 1, 1 - c, T.relu(c - margin)), reduction)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                        swap: bool = False, reduction: str = "mean") -> Tensor:
    """max(0, margin + the distance to the positive - the one to the negative)."""
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = T.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduced(T.relu(margin + pairwise_distance(anchor, positive, p, eps) - far), reduction)


def multi_margin_loss(input: Tensor, target: Tensor, p: float = 1, margin: float = 1.0, weight: Tensor | None = None,
                      reduction: str = "mean") -> Tensor:
    """The mean over classes of max(0, margin - input[label] + input[class])^p, but for the label's own."""
    rows = input if input.ndim > 1 else input.unsqueeze(0)
    at = cast(target, int64).reshape(-1, 1)
    d = T.relu(margin - T.gather(rows, 1, at) + rows) ** p
    d = d if weight is None else d * weight[at.squeeze(1)].unsqueeze(1)
    losses = T.sum(T.scatter(d, 1, at, 0.0), 1) / rows.shape[1]
    return _reduced(losses if input.ndim > 1 else losses.squeeze(0), reduction)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """The mean over classes of the logistic loss of each."""
    losses = target * softplus(-input) + (1 - target) * softplus(input)
    losses = losses if weight is None else losses * weight
    return _reduced(T.mean(losses, -1), reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Of each label and each class that is none, max(0, 1 - (input[label] - input[class])), over the number of classes.

    A row of target has labels up to the first -1."""
    rows, at = (input, target) if input.ndim > 1 else (input.unsqueeze(0), target.unsqueeze(0))
    if at.shape != rows.shape:
        raise ShapeError(f"multilabel_margin_loss: target of shape {target.shape} for an input of shape {input.shape}")
    there = T.cumprod(cast(at >= 0, rows.dtype), 1)
    at = T.where(there > 0, cast(at, int64), 0)
    others = cast(T.scatter_add(T.zeros_like(rows.detach()), 1, at, there) == 0, rows.dtype)
    gaps = T.relu(1 - T.gather(rows, 1, at).unsqueeze(2) + rows.unsqueeze(1))
    losses = T.sum(gaps * there.unsqueeze(2) * others.unsqueeze(1), (1, 2)) / rows.shape[1]
    return _reduced(losses if input.ndim > 1 else losses.squeeze(0), reduction)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Any = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Tensor:
    """triplet_margin_loss by another distance."""
    distance = distance_function or pairwise_distance
    far = distance(anchor, negative)
    if swap:
        far = T.minimum(far, distance(positive, negative))
    return _reduced(T.relu(margin + distance(anchor, positive) - far), reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                     reduction: str = "mean") -> Tensor:
    """What a count costs, input being its mean or the logarithm of that."""
    losses = T.exp(input) - target * input if log_input else input - target * T.log(input + eps)
    if full:
        large = T.where(target > 1, target, T.ones_like(target))
        stirling = large * T.log(large) - large + 0.5 * T.log(2 * math.pi * large)
        losses = losses + T.where(target > 1, stirling, T.zeros_like(target))
    return _reduced(losses, reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """What a target costs, input and var being mean and variance."""
    v: Any = var if isinstance(var, Tensor) else T.full_like(input, var)
    if v.ndim == input.ndim - 1:
        v = v.unsqueeze(-1)
    v = v + (T.clamp(v, eps) - v).detach()
    losses = 0.5 * (T.log(v) + (input - target) ** 2 / v)
    return _reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
