"""Lookups by number."""
from __future__ import annotations

from typing import Any

from ..._facula import Tensor
from .. import functional as F
from .. import init
from ..module import Module, Parameter
from .products import _new


class Embedding(Module):
    """Rows of a table; weight [count, features]."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> None:
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.weight = _new(num_embeddings, embedding_dim)
        init.normal_(self.weight)
        if padding_idx is not None:
            w = self.weight.detach()
            w[padding_idx] = 0.0
            self.weight.data = w

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        e = cls(embeddings.shape[0], embeddings.shape[1], padding_idx)
        e.weight = Parameter(embeddings, not freeze)
        return e

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class EmbeddingBag(Embedding):
    """The sum, mean or maximum of rows of a table for each bag of ids."""

    def __init__(self, num_embeddings: int, embedding_dim: int, *, mode: str = "mean", include_last_offset: bool = False,
                 padding_idx: int | None = None) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx)
        self.mode, self.include_last_offset = mode, include_last_offset

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, **options: Any) -> EmbeddingBag:
        e = cls(embeddings.shape[0], embeddings.shape[1], padding_idx=padding_idx, **options)
        e.weight = Parameter(embeddings, not freeze)
        return e

    def forward(self, ids: Tensor, offsets: Any = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(ids, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
                               include_last_offset=self.include_last_offset, padding_idx=self.padding_idx)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode}"
