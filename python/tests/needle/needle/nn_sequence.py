"""The course's layers of homework 4: convolutions with channels last inside, recurrent cells step by step, attention."""
import numpy as np

import facula as fac

from . import init, ops
from .autograd import Op, Tensor
from .nn import BatchNorm1d, Dropout, LayerNorm1d, Linear, Module, Parameter, ReLU, Sequential


class Conv(Module):
    """NCHW in and out, as large as before at stride 1."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, bias=True, device=None, dtype="float32"):
        super().__init__()
        self.stride, self.padding = stride, kernel_size // 2
        area = kernel_size ** 2
        shape = (kernel_size, kernel_size, in_channels, out_channels)
        self.weight = Parameter(init.kaiming_uniform(in_channels * area, out_channels * area, shape=shape, dtype=dtype))
        a = (in_channels * area) ** -0.5
        self.bias = Parameter(init.rand(out_channels, low=-a, high=a, dtype=dtype)) if bias else None

    def forward(self, x):
        x = ops.permute(x, (0, 2, 3, 1))
        y = ops.conv(x, self.weight, self.stride, self.padding)
        y = y + self.bias if self.bias is not None else y
        return ops.permute(y, (0, 3, 1, 2))


class BatchNorm2d(BatchNorm1d):
    def forward(self, x):
        n, c, h, w = x.shape
        y = super().forward(ops.permute(x, (0, 2, 3, 1)).reshape((n * h * w, c)))
        return ops.permute(y.reshape((n, h, w, c)), (0, 3, 1, 2))


class Sigmoid(Module):
    def forward(self, x):
        return ops.sigmoid(x)


class _Cell(Module):
    def __init__(self, input_size, hidden_size, bias, wide):
        super().__init__()
        self.hidden_size = hidden_size
        a = hidden_size ** -0.5

        def drawn(*shape):
            return Parameter(init.rand(*shape, low=-a, high=a))
        self.W_ih, self.W_hh = drawn(input_size, wide), drawn(hidden_size, wide)
        self.bias_ih, self.bias_hh = (drawn(wide), drawn(wide)) if bias else (None, None)

    def begin(self, x):
        return init.zeros(x.shape[0], self.hidden_size)

    def sums(self, x, h):
        y = x @ self.W_ih + h @ self.W_hh
        return y if self.bias_ih is None else y + self.bias_ih + self.bias_hh


class RNNCell(_Cell):
    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype="float32"):
        super().__init__(input_size, hidden_size, bias, hidden_size)
        self.act = {"tanh": ops.tanh, "relu": ops.relu}[nonlinearity]

    def forward(self, x, h=None):
        return self.act(self.sums(x, self.begin(x) if h is None else h))


class LSTMCell(_Cell):
    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype="float32"):
        super().__init__(input_size, hidden_size, bias, 4 * hidden_size)

    def forward(self, x, h=None):
        h, c = (self.begin(x), self.begin(x)) if h is None else h
        four = ops.split(self.sums(x, h).reshape((x.shape[0], 4, self.hidden_size)), 1)
        i, f, o = (ops.sigmoid(four[k]) for k in (0, 1, 3))
        c = f * c + i * ops.tanh(four[2])
        return o * ops.tanh(c), c


class _Layers(Module):
    """Cells over a sequence, one above the other; a state is a tuple of tensors."""

    def _run(self, cells, x, states):
        steps, last = list(ops.split(x, 0)), []
        for cell, state in zip(cells, states):
            out = []
            for step in steps:
                state = self.state_of(cell(step, state))
                out.append(state[0] if isinstance(state, tuple) else state)
            steps = out
            last.append(state)
        return ops.stack(steps), last

    def state_of(self, made):
        return made


class RNN(_Layers):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, nonlinearity="tanh", device=None, dtype="float32"):
        super().__init__()
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.rnn_cells = [RNNCell(n, hidden_size, bias, nonlinearity) for n in sizes]

    def forward(self, x, h0=None):
        states = [None] * len(self.rnn_cells) if h0 is None else ops.split(h0, 0)
        y, last = self._run(self.rnn_cells, x, states)
        return y, ops.stack(last)


class LSTM(_Layers):
    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, device=None, dtype="float32"):
        super().__init__()
        self.lstm_cells = [LSTMCell(n, hidden_size, bias) for n in [input_size] + [hidden_size] * (num_layers - 1)]

    def forward(self, x, h=None):
        states = [None] * len(self.lstm_cells) if h is None else list(zip(ops.split(h[0], 0), ops.split(h[1], 0)))
        y, last = self._run(self.lstm_cells, x, states)
        return y, tuple(ops.stack([s[k] for s in last]) for k in (0, 1))


class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim, device=None, dtype="float32"):
        super().__init__()
        self.weight = Parameter(init.randn(num_embeddings, embedding_dim, dtype=dtype))

    def forward(self, x):
        return Op(lambda i, w: fac.nn.functional.embedding(i.detach().long(), w))(x, self.weight)


class MultiHeadAttention(Module):
    def __init__(self, *, dropout=0.0, causal=False, device=None, dtype="float32"):
        super().__init__()
        self.causal, self.dropout = causal, Dropout(dropout)

    def forward(self, q, k, v):
        scores = q @ ops.transpose(k) / q.shape[-1] ** 0.5
        if self.causal:
            n, m = scores.shape[-2:]
            scores = scores + Tensor(np.triu(np.full((n, m), -np.finfo("f4").max, "f4"), m - n + 1), requires_grad=False)
        probs = self.dropout(Op(lambda x: fac.softmax(x, -1))(scores))
        return probs @ v, probs


class AttentionLayer(Module):
    def __init__(self, q_features, num_head, dim_head, *, k_features=None, v_features=None, out_features=None, dropout=0.0, causal=True,
                 device=None, dtype="float32"):
        super().__init__()
        self.num_head, self.dim_head = num_head, dim_head
        inner, sizes = num_head * dim_head, (q_features, k_features or q_features, v_features or q_features)
        self.prenorm_q, self.prenorm_k, self.prenorm_v = (LayerNorm1d(n) for n in sizes)
        self.q_projection, self.k_projection, self.v_projection = (Linear(n, inner, bias=False) for n in sizes)
        self.attn = MultiHeadAttention(dropout=dropout, causal=causal)
        self.out_projection = Linear(inner, out_features or q_features, bias=False)

    def _heads(self, x, norm, projection):
        b, n, d = x.shape
        y = projection(norm(x.reshape((b * n, d)))).reshape((b, n, self.num_head, self.dim_head))
        return ops.permute(y, (0, 2, 1, 3))

    def forward(self, q, k=None, v=None):
        b, n, _ = q.shape
        k, v = q if k is None else k, q if v is None else v
        y, _ = self.attn(self._heads(q, self.prenorm_q, self.q_projection), self._heads(k, self.prenorm_k, self.k_projection),
                         self._heads(v, self.prenorm_v, self.v_projection))
        y = ops.permute(y, (0, 2, 1, 3)).reshape((b * n, self.num_head * self.dim_head))
        return self.out_projection(y).reshape((b, n, -1))


class TransformerLayer(Module):
    def __init__(self, q_features, num_head, dim_head, hidden_size, *, dropout=0.0, causal=True, device=None, dtype="float32"):
        super().__init__()
        self.attention = AttentionLayer(q_features, num_head, dim_head, dropout=dropout, causal=causal)
        self.dropout = Dropout(dropout)
        self.mlp = Sequential(LayerNorm1d(q_features), Linear(q_features, hidden_size), ReLU(), Dropout(dropout),
                              Linear(hidden_size, q_features), Dropout(dropout))

    def forward(self, x):
        b, n, d = x.shape
        x = x + self.dropout(self.attention(x))
        return x + self.mlp(x.reshape((b * n, d))).reshape((b, n, d))


class Transformer(Module):
    def __init__(self, embedding_size, hidden_size, num_layers, *, num_head=8, dim_head=32, dropout=0.0, causal=True, device=None,
                 dtype="float32", batch_first=False, sequence_len=2048):
        super().__init__()
        self.batch_first = batch_first
        self.places = Embedding(sequence_len, embedding_size)
        self.layers = Sequential(*[TransformerLayer(embedding_size, num_head, dim_head, hidden_size, dropout=dropout, causal=causal)
                                   for _ in range(num_layers)])

    def forward(self, x, h=None):
        x = x if self.batch_first else ops.permute(x, (1, 0, 2))
        at = Tensor(np.tile(np.arange(x.shape[1], dtype="f4"), (x.shape[0], 1)), requires_grad=False)
        x = self.layers(x + self.places(at))
        x = x if self.batch_first else ops.permute(x, (1, 0, 2))
        return x, init.zeros_like(x)
