"""First values of parameters, as torch.nn.init."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._facula import Tensor
from ..random import default_generator


def fans(t: Tensor) -> tuple[int, int]:
    """Inputs and outputs of one unit of a weight [out, in, ...]."""
    if t.ndim < 2:
        raise ValueError(f"a weight of shape {t.shape} has no fans: two dims at least were expected")
    size = math.prod(t.shape[2:])
    return t.shape[1] * size, t.shape[0] * size


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """How much an activation shrinks what it gets, for initial values."""
    gains = {"sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    return gains.get(nonlinearity, 1.0)


def _put(t: Tensor, array: Any) -> Tensor:
    return t._become(Tensor(np.asarray(array), dtype=t.dtype, device=t.device))


def constant_(t: Tensor, value: float) -> Tensor:
    """Fills it with one number."""
    return _put(t, np.full(t.shape, value))


def zeros_(t: Tensor) -> Tensor:
    """Zeros."""
    return constant_(t, 0.0)


def ones_(t: Tensor) -> Tensor:
    """Ones."""
    return constant_(t, 1.0)


def eye_(t: Tensor) -> Tensor:
    """Ones on the diagonal."""
    return _put(t, np.eye(t.shape[0], t.shape[1]))


def uniform_(t: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform numbers."""
    return _put(t, default_generator._np.uniform(a, b, t.shape))


def normal_(t: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal numbers."""
    return _put(t, default_generator._np.normal(mean, std, t.shape))


def trunc_normal_(t: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Normal numbers between two limits."""
    values = default_generator._np.normal(mean, std, t.shape)
    while True:
        out = (values < a) | (values > b)
        if not out.any():
            return _put(t, values)
        values[out] = default_generator._np.normal(mean, std, int(out.sum()))


def xavier_uniform_(t: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform numbers that keep the variance both ways (Glorot)."""
    fan_in, fan_out = fans(t)
    bound = gain * math.sqrt(6 / (fan_in + fan_out))
    return uniform_(t, -bound, bound)


def xavier_normal_(t: Tensor, gain: float = 1.0) -> Tensor:
    """Normal numbers that keep the variance both ways (Glorot)."""
    fan_in, fan_out = fans(t)
    return normal_(t, 0.0, gain * math.sqrt(2 / (fan_in + fan_out)))


def _fan(t: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode is fan_in or fan_out, not {mode!r}")
    return fans(t)[mode == "fan_out"]


def kaiming_uniform_(t: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Uniform numbers that keep the variance through relu (He)."""
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3 / _fan(t, mode))
    return uniform_(t, -bound, bound)


def kaiming_normal_(t: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normal numbers that keep the variance through relu (He)."""
    return normal_(t, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(t, mode)))


def orthogonal_(t: Tensor, gain: float = 1.0) -> Tensor:
    """Rows, or columns, that are orthogonal."""
    rows, cols = t.shape[0], math.prod(t.shape[1:])
    flat = default_generator._np.normal(size=(max(rows, cols), min(rows, cols)))
    q, r = np.linalg.qr(flat)
    q = q * np.sign(np.diag(r))
    return _put(t, gain * (q if rows >= cols else q.T).reshape(t.shape))
