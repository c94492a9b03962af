"""Recurrent networks and attention, in PyTorch's layout of weights."""
from __future__ import annotations

import math
from typing import Any

from .. import functional as T
from .._facula import Tensor, apply
from . import functional as F
from . import init
from .containers import ModuleList
from .layers import Dropout, LayerNorm, Linear
from .layers.products import _new
from .module import Module, Parameter


class _Recurrent(Module):
    op, gates, states = "rnn", 1, 1

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, nonlinearity: str = "tanh", proj_size: int = 0) -> None:
        super().__init__()
        if proj_size and (self.op != "lstm" or not 0 < proj_size < hidden_size):
            raise ValueError(f"{type(self).__name__}: proj_size is of an LSTM, from 0 to below hidden_size, not {proj_size} of {hidden_size}")
        self.proj_size = proj_size
        shown = proj_size or hidden_size
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        self.nonlinearity = nonlinearity
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            width = input_size if layer == 0 else shown * directions
            for end in ["", "_reverse"][:directions]:
                shapes = {"weight_ih": (width,), "weight_hh": (shown,), "bias_ih": (), "bias_hh": ()}
                for name, rest in shapes.items():
                    if bias or name.startswith("weight"):
                        self.register_parameter(f"{name}_l{layer}{end}", _new(self.gates * hidden_size, *rest))
                if proj_size:
                    self.register_parameter(f"weight_hr_l{layer}{end}", _new(proj_size, hidden_size))
        for p in self.parameters():
            init.uniform_(p, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))

    def _weights(self, layer: int) -> list[Tensor | None]:
        ends = ["", "_reverse"] if self.bidirectional else [""]

        def of(name: str) -> Tensor:
            return T.stack([self._parameters[f"{name}_l{layer}{e}"] for e in ends])
        b = T.cat([of("bias_ih"), of("bias_hh")], 1) if self.bias else None
        return [of("weight_ih"), of("weight_hh"), b]

    def forward(self, x: Tensor, state: Any = None) -> Any:
        single = x.ndim == 2
        x = x.unsqueeze(1) if single else x.transpose(0, 1) if self.batch_first else x
        directions = 2 if self.bidirectional else 1
        first = list(state) if isinstance(state, tuple) else [state] if state is not None else []
        if single:
            first = [s.unsqueeze(1) for s in first]
        ends: list[list[Tensor]] = [[] for _ in range(self.states)]
        words = f"direction={'bidirectional' if self.bidirectional else 'forward'} torch_gates=1"
        if self.op == "gru":
            words += " linear_before_reset=1"
        if self.op == "rnn" and self.nonlinearity == "relu":
            words += f' activations="{" ".join(["Relu"] * directions)}"'
        for layer in range(self.num_layers):
            inputs: list[Any] = [x, *self._weights(layer), None]
            inputs += [s[layer * directions:(layer + 1) * directions] for s in first]
            while inputs[-1] is None:
                inputs.pop()
            y, *last = self._projected(layer, x, first) if self.proj_size else apply(self.op, words, 1 + self.states, *inputs)
            for k, s in enumerate(last):
                ends[k].append(s)
            x = y.permute(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)       # T,D,B,H -> T,B,DH
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        out = [T.cat(e, 0) for e in ends]
        if single:
            x, out = x.squeeze(1), [s.squeeze(1) for s in out]
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, out[0] if self.states == 1 else tuple(out)

    def _projected(self, layer: int, x: Tensor, first: list[Tensor]) -> list[Tensor]:
        """An LSTM whose output is multiplied with weight_hr before it goes on (Sak et al. 2014), step by step: T,D,B,P and the last states."""
        ends = ["", "_reverse"] if self.bidirectional else [""]
        rows: list[Tensor] = []
        hs, cs = [], []
        for k, end in enumerate(ends):
            w, r, hr = (self._parameters[f"weight_{part}_l{layer}{end}"] for part in ("ih", "hh", "hr"))
            b = self._parameters[f"bias_ih_l{layer}{end}"] + self._parameters[f"bias_hh_l{layer}{end}"] if self.bias else None
            gates = F.linear(x, w, b)
            at = layer * len(ends) + k
            h, c = [s[at] for s in first] or [T.zeros(x.shape[1], n, dtype=x.dtype) for n in (self.proj_size, self.hidden_size)]
            steps: list[Tensor] = []
            for t in range(x.shape[0]):
                now = gates[x.shape[0] - 1 - t if k else t] + F.linear(h, r)
                i, f, g, o = T.chunk(now, 4, -1)
                c = T.sigmoid(f) * c + T.sigmoid(i) * T.tanh(g)
                h = F.linear(T.sigmoid(o) * T.tanh(c), hr)
                steps.append(h)
            rows.append(T.stack(steps[::-1] if k else steps, 0))
            hs.append(h)
            cs.append(c)
        return [T.stack(rows, 1), T.stack(hs, 0), T.stack(cs, 0)]

    def extra_repr(self) -> str:
        words = f", proj_size={self.proj_size}" if self.proj_size else ""
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}{words}"


class RNN(_Recurrent):
    """tanh or relu of x w^T + h r^T + b, step by step."""


class LSTM(_Recurrent):
    """Long short-term memory."""

    op, gates, states = "lstm", 4, 2


class GRU(_Recurrent):
    """Gated recurrent units."""

    op, gates, states = "gru", 3, 1


class MultiheadAttention(Module):
    """Attention of several heads with its projections."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, batch_first: bool = False) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"a width of {embed_dim} cannot be shared by {num_heads} heads")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.in_proj_weight = _new(3 * embed_dim, embed_dim)
        self.register_parameter("in_proj_bias", _new(3 * embed_dim) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.out_proj._parameters["bias"])

    def _heads(self, x: Tensor, part: int) -> Tensor:
        e = self.embed_dim
        w = self.in_proj_weight[part * e:(part + 1) * e]
        b = self._parameters["in_proj_bias"]
        y = F.linear(x, w, None if b is None else b[part * e:(part + 1) * e])
        return y.reshape(y.shape[0], y.shape[1], self.num_heads, -1).transpose(1, 2)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False) -> Any:
        if not self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        q, k, v = self._heads(query, 0), self._heads(key, 1), self._heads(value, 2)
        mask = None if attn_mask is None else ~attn_mask if attn_mask.dtype.name == "bool" else attn_mask
        if key_padding_mask is not None:
            keep = ~key_padding_mask.reshape(key_padding_mask.shape[0], 1, 1, -1)
            if mask is None:
                mask = keep
            elif mask.dtype.name == "bool":
                mask = mask & keep
            else:
                mask = T.masked_fill(T.expand(mask, *T.broadcast_shapes(mask.shape, keep.shape)), ~keep, -math.inf)
        weights = None
        if need_weights:
            weights = T.softmax(F.matmul_scores(q, k, mask, is_causal, None), -1)
            y = F.dropout(weights, self.dropout, self.training) @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            y = F.scaled_dot_product_attention(q, k, v, mask, self.dropout if self.training else 0.0, is_causal)
        y = self.out_proj(y.transpose(1, 2).reshape(y.shape[0], y.shape[2], self.embed_dim))
        return y if self.batch_first else y.transpose(0, 1), weights


class TransformerEncoderLayer(Module):
    """Attention and two products, each with a residual and a norm."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first)
        self.linear1, self.linear2 = Linear(d_model, dim_feedforward), Linear(dim_feedforward, d_model)
        self.norm1, self.norm2 = LayerNorm(d_model, layer_norm_eps), LayerNorm(d_model, layer_norm_eps)
        self.dropout, self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.activation = {"relu": T.relu, "gelu": F.gelu}.get(activation, activation)
        self.norm_first = norm_first

    def _attend(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, causal: bool) -> Tensor:
        y, _ = self.self_attn(x, x, x, padding, False, mask, is_causal=causal)
        return self.dropout1(y)

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def forward(self, x: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._feed(x))


class TransformerEncoder(Module):
    """Layers of a kind, one after the other."""

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        import copy
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(self, x: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, is_causal)
        return x if self.norm is None else self.norm(x)


__all__ = ["RNN", "LSTM", "GRU", "MultiheadAttention", "TransformerEncoderLayer", "TransformerEncoder", "Parameter"]
