"""Transformers that read one sequence and write another, in PyTorch's layout of weights."""
from __future__ import annotations

import copy
import math
from typing import Any

from .. import functional as T
from .._facula import Tensor
from . import functional as F
from . import init
from .containers import ModuleList
from .layers import Dropout, LayerNorm, Linear
from .module import Module
from .recurrent import MultiheadAttention, TransformerEncoder, TransformerEncoderLayer


class TransformerDecoderLayer(Module):
    """Attention to what was written, attention to what was read, two products; each with a residual and a norm."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first)
        self.linear1, self.linear2 = Linear(d_model, dim_feedforward), Linear(dim_feedforward, d_model)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model, layer_norm_eps) for _ in range(3))
        self.dropout, self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout) for _ in range(4))
        self.activation = {"relu": T.relu, "gelu": F.gelu}.get(activation, activation)
        self.norm_first = norm_first

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        def own(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0])

        def other(x: Tensor) -> Tensor:
            return self.dropout2(self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask,
                                                     is_causal=memory_is_causal)[0])

        def feed(x: Tensor) -> Tensor:
            return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
        x = tgt
        for part, norm in ((own, self.norm1), (other, self.norm2), (feed, self.norm3)):
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x


class TransformerDecoder(Module):
    """Layers of a kind, one after the other, all with the same memory."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Reads one sequence and writes another (Vaswani et al. 2017): embeddings in, embeddings out."""

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu", layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        self.encoder = TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, LayerNorm(d_model, layer_norm_eps))
        self.decoder = TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, LayerNorm(d_model, layer_norm_eps))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        y: Tensor = self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return y

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> Tensor:
        """-inf where a place would see what follows it, else 0."""
        return T.triu(T.full((sz, sz), -math.inf), 1)
