"""Bags of rows of a table: their sums, means or maxima."""
from __future__ import annotations

from typing import Any

import numpy as np

from ... import _facula, functional as T
from ..._facula import Tensor
from .images import embedding


def _places(ids: Tensor, offsets: Any, include_last: bool) -> tuple[Tensor, Any]:
    """Which of the ids each bag has, [bags, most], and whether there is such a one."""
    begins = np.asarray(offsets.detach() if isinstance(offsets, Tensor) else offsets)
    if begins.ndim != 1 or not begins.size or begins[0] != 0 or np.any(np.diff(begins) < 0) or begins[-1] > ids.shape[0]:
        raise ValueError(f"embedding_bag: offsets {begins.tolist()}: from 0 on, rising, up to {ids.shape[0]} was expected")
    ends = np.append(begins[1:], ids.shape[0])
    if include_last:
        begins, ends = begins[:-1], ends[:-1]
    at = begins[:, None] + np.arange(max(1, int(np.max(ends - begins, initial=0))))[None]
    return Tensor(np.minimum(at, max(0, ids.shape[0] - 1)), dtype="int64"), at < ends[:, None]


def embedding_bag(input: Tensor, weight: Tensor, offsets: Any = None, *, mode: str = "mean", per_sample_weights: Tensor | None = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """The sum, mean or maximum of rows of the weight for each bag: ids [bags, n], or all of them with offsets, where bags begin.

    Rows of padding_idx do not count.  An empty bag gives zeros."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode is sum, mean or max, not {mode!r}")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        raise ValueError(f"embedding_bag: per_sample_weights go with mode sum, and have the shape of the ids, {input.shape}")
    if (input.ndim, offsets is None) not in ((2, True), (1, False)):
        raise _facula.ShapeError(f"embedding_bag: ids of shape {input.shape}: [bags, n], or [n] with offsets, was expected")
    there: Any = np.ones(input.shape, bool)
    if offsets is not None:
        at, there = _places(input, offsets, include_last_offset)
        if not input.shape[0]:
            return T.zeros(at.shape[0], weight.shape[1], dtype=weight.dtype)
        input = T.reshape(input, [-1])[at]
        per_sample_weights = None if per_sample_weights is None else per_sample_weights[at]
    if padding_idx is not None:
        there = there & (np.asarray(input.detach()) != padding_idx % weight.shape[0])
    counts = Tensor(there[..., None])
    rows = embedding(input, weight, padding_idx)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if mode == "max":
        some = Tensor(there.any(1)[:, None])
        most = T.amax(T.where(counts, rows, T.full_like(rows.detach(), float("-inf"))), 1)
        return T.where(some, most, T.zeros_like(most.detach()))
    total = T.sum(T.where(counts, rows, T.zeros_like(rows.detach())), 1)
    return total if mode == "sum" else total / Tensor(np.maximum(there.sum(1), 1)[:, None], dtype=weight.dtype)
