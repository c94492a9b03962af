"""Connectionist temporal classification (Graves et al. 2006): how likely a text is, whenever its letters come."""
from __future__ import annotations

from typing import Any

import numpy as np

from ... import _facula, functional as T
from ..._facula import Tensor

_NEVER = -1e30          # the logarithm of 0: infinity would make gradients NaN


def _lengths(name: str, lengths: Any, n: int, most: int) -> Any:
    at = np.asarray(lengths.detach() if isinstance(lengths, Tensor) else lengths, "i8").reshape(-1)
    if at.shape != (n,) or np.any(at < 0) or np.any(at > most):
        raise ValueError(f"ctc_loss: {name} {at.tolist()}: {n} of 0 to {most} were expected")
    return at


def _paths(targets: Any, sizes: Any, blank: int, classes: int) -> tuple[Any, Any]:
    """Labels with blanks around each, [N, 2 S + 1], and where a step over a blank is allowed."""
    n, most = len(sizes), int(np.max(sizes, initial=0))
    rows = np.full((n, 2 * most + 1), blank, "i8")
    at = 0
    for k, size in enumerate(sizes):
        row = targets[k, :size] if targets.ndim == 2 else targets[at:at + size]
        at += size
        rows[k, 1:2 * size:2] = row
    if np.any(rows < 0) or np.any(rows >= classes):
        raise ValueError(f"ctc_loss: a label that is none of {classes} classes")
    over = np.zeros(rows.shape, bool)
    over[:, 2:] = (rows[:, 2:] != blank) & (rows[:, 2:] != rows[:, :-2])
    return rows, over


def _moved(x: Tensor, by: int) -> Tensor:
    never = T.full((x.shape[0], by), _NEVER, dtype=x.dtype)
    return T.cat([never, x[:, :x.shape[1] - by]], 1) if x.shape[1] > by else T.full_like(x.detach(), _NEVER)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    """-ln of the sum over all ways to spell the targets, from log_probs [T, N, C] or [T, C]; targets [N, S], or one after the other.

    Infinite where the time is too short for the letters, or 0 with zero_infinity.  "mean" divides by the lengths of the targets first."""
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"ctc_loss: reduction is none, sum or mean, not {reduction!r}")
    single = log_probs.ndim == 2
    x = log_probs.unsqueeze(1) if single else log_probs
    if x.ndim != 3 or not x.shape[0]:
        raise _facula.ShapeError(f"ctc_loss: log_probs of shape {log_probs.shape}: [time, batch, classes] was expected")
    steps, n, classes = x.shape
    labels = np.asarray(targets.detach(), "i8")
    labels = labels[None] if single and labels.ndim == 1 else labels
    times = _lengths("input_lengths", input_lengths, n, steps)
    sizes = _lengths("target_lengths", target_lengths, n, labels.shape[1] if labels.ndim == 2 else labels.size)
    if labels.ndim == 1 and int(sizes.sum()) > labels.size:
        raise ValueError(f"ctc_loss: {labels.size} labels for targets of {int(sizes.sum())}")
    rows, over = _paths(labels, sizes, blank, classes)
    heard = T.gather(x, 2, Tensor(np.broadcast_to(rows, (steps, *rows.shape)).copy(), dtype="int64"))
    barred = Tensor(np.where(over, 0.0, _NEVER), dtype=x.dtype)
    start = np.full(rows.shape, _NEVER)
    start[:, :2] = 0.0
    ways = heard[0] + Tensor(start, dtype=x.dtype)
    for t in range(1, steps):
        some = T.stack([ways, _moved(ways, 1), _moved(ways, 2) + barred])
        ways = T.where(Tensor((t < times)[:, None]), T.logsumexp(some, 0) + heard[t], ways)
    last = np.stack([2 * sizes, np.maximum(2 * sizes - 1, 0)], 1)
    ends = T.gather(ways, 1, Tensor(last, dtype="int64"))
    alone = Tensor(np.stack([np.zeros(n), np.where(sizes == 0, _NEVER, 0.0)], 1), dtype=x.dtype)
    loss = -T.logsumexp(ends + alone, 1)
    # without time there is one way to spell nothing, and none to spell more
    none = Tensor(np.where(sizes == 0, 0.0, -_NEVER), dtype=x.dtype)
    loss = T.where(Tensor(times > 0), loss, none)
    impossible = loss.detach() > -_NEVER / 2
    loss = T.where(impossible, T.full_like(loss.detach(), 0.0 if zero_infinity else float("inf")), loss)
    if reduction == "mean":
        return T.mean(loss / Tensor(np.maximum(sizes, 1), dtype=x.dtype))
    if reduction == "sum":
        return T.sum(loss)
    return loss.squeeze(0) if single else loss
