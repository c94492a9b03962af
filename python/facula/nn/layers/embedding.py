"""Lookups by number."""
from __future__ import annotations

from ..._facula import Tensor
from .. import functional as F
from .. import init
from ..module import Module, Parameter
from .products import _new


class Embedding(Module):
    """Rows of a table; weight [count, features]."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        super().__init__()
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
        return F.embedding(ids, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
