"""Attention."""
from __future__ import annotations

import math

from ... import functional as T
from ..._facula import Tensor, apply
from ...changing import moves
from ...functional import softmax
from .common import _words
from .activations import dropout


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None) -> Tensor:
    """softmax(scale q k^T + mask) v for every head; [batch, heads, positions, width]."""
    if dropout_p:
        s = matmul_scores(query, key, attn_mask, is_causal, scale)
        return dropout(softmax(s, -1), dropout_p) @ value
    if query.ndim == key.ndim == value.ndim and query.ndim in (2, 3):
        at = query.ndim - 2                                 # one head
        mask = attn_mask if attn_mask is None or attn_mask.ndim < 3 else attn_mask.unsqueeze(1)
        q, k, v = (t.unsqueeze(at) if at else t.unsqueeze(0).unsqueeze(0) for t in (query, key, value))
        y = scaled_dot_product_attention(q, k, v, mask, 0.0, is_causal, scale)
        return y.squeeze(at) if at else y.squeeze(0).squeeze(0)
    if scale is not None and (scale == 0 or moves("attention", query, scale)):   # to the op 0 is none
        query, scale = query * scale, 1.0
    inputs = [query, key, value] + ([attn_mask] if attn_mask is not None else [])
    return apply("attention", _words(causal=is_causal, scale=scale), 0, *inputs)


def matmul_scores(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    """q k^T: the scores of attention before softmax."""
    s = (query @ key.mT) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if causal:
        ones = T.ones(query.shape[-2], key.shape[-2])
        s = T.masked_fill(s, T.triu(ones, 1).bool(), -math.inf)
    if mask is None:
        return s
    return T.masked_fill(s, ~mask, -math.inf) if mask.dtype.name == "bool" else s + mask
