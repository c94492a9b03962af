"""Single steps of recurrent networks, in PyTorch's layout of weights."""
from __future__ import annotations

import math
from typing import Any

from .. import functional as T
from .._facula import Tensor
from . import functional as F
from . import init
from .layers.products import _new
from .module import Module


class _Cell(Module):
    gates, states = 1, 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        for name, rest in {"weight_ih": (input_size,), "weight_hh": (hidden_size,), "bias_ih": (), "bias_hh": ()}.items():
            wanted = bias or name.startswith("weight")
            self.register_parameter(name, _new(self.gates * hidden_size, *rest) if wanted else None)
        for p in self.parameters():
            init.uniform_(p, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))

    def _sums(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        p = self._parameters
        return F.linear(x, self.weight_ih, p["bias_ih"]), F.linear(h, self.weight_hh, p["bias_hh"])

    def _first(self, x: Tensor) -> Tensor:
        return T.zeros(*x.shape[:-1], self.hidden_size, dtype=x.dtype, device=x.device)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class RNNCell(_Cell):
    """tanh or relu of x w^T + h r^T + b."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNNCell: nonlinearity is tanh or relu, not {nonlinearity!r}")
        super().__init__(input_size, hidden_size, bias)
        self.nonlinearity = nonlinearity

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        a, b = self._sums(x, self._first(x) if h is None else h)
        return T.tanh(a + b) if self.nonlinearity == "tanh" else T.relu(a + b)


class LSTMCell(_Cell):
    """A step of long short-term memory: (x, (h, c)) -> (h, c)."""

    gates = 4

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Tensor]:
        h, c = (self._first(x), self._first(x)) if state is None else state
        a, b = self._sums(x, h)
        i, f, g, o = T.chunk(a + b, 4, -1)
        c = T.sigmoid(f) * c + T.sigmoid(i) * T.tanh(g)
        return T.sigmoid(o) * T.tanh(c), c


class GRUCell(_Cell):
    """A step of gated recurrent units."""

    gates = 3

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        h = self._first(x) if h is None else h
        a, b = (T.chunk(s, 3, -1) for s in self._sums(x, h))
        reset, update = T.sigmoid(a[0] + b[0]), T.sigmoid(a[1] + b[1])
        new = T.tanh(a[2] + reset * b[2])
        y: Tensor = (1 - update) * new + update * h
        return y
