"""Attention."""
from __future__ import annotations

import math

from ... import functional as T
from ..._facula import Tensor, apply
from ...functional import softmax
from .common import _words
from .activations import dropout


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None) -> Tensor:
    """softmax(scale q k^T + mask) v for every head; [batch, heads, positions, width]."""
    if dropout_p:
        s = matmul_scores(query, key, attn_mask, is_causal, scale)
        return dropout(softmax(s, -1), dropout_p) @ value
    inputs = [query, key, value] + ([attn_mask] if attn_mask is not None else [])
    return apply("attention", _words(causal=is_causal, scale=scale), 0, *inputs)


def matmul_scores(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    """q k^T: the scores of attention before softmax."""
    s = (query @ key.mT) * (scale or 1 / math.sqrt(query.shape[-1]))
    if causal:
        ones = T.ones(query.shape[-2], key.shape[-2])
        s = T.masked_fill(s, T.triu(ones, 1).bool(), -math.inf)
    if mask is None:
        return s
    return T.masked_fill(s, ~mask, -math.inf) if mask.dtype.name == "bool" else s + mask
