"""Norms by formula.  In the library's norms epsilon is an attribute, which is part of a plan; here it is an operand, so that calls with
ever new ones share one plan (changing.py).  Half floats are computed as float32, as the library's norms do inside."""
from __future__ import annotations

from typing import Any

from ... import functional as T
from ..._facula import Tensor
from ...dtypes import float32
from ...promote import cast


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype.itemsize >= 4 else cast(x, float32)


def _scaled(y: Tensor, x: Tensor, weight: Any, bias: Any) -> Tensor:
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return cast(y, x.dtype)


def _standard(x: Tensor, dims: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Mean 0 and variance 1 over these dims; that mean and variance."""
    mean = T.mean(x, dims, True)
    apart = x - mean
    var = T.mean(apart * apart, dims, True)
    return apart / T.sqrt(var + eps), mean, var


def _of_channels(x: Tensor, v: Tensor | None) -> Any:
    return None if v is None else _wide(v).reshape([-1] + [1] * (x.ndim - 2))


def layer_norm(input: Tensor, axis: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Over the dims from axis on."""
    y = _standard(_wide(input), list(range(axis, input.ndim)), eps)[0]
    return _scaled(y, input, weight if weight is None else _wide(weight), bias if bias is None else _wide(bias))


def rms_norm(input: Tensor, axis: int, weight: Tensor | None, eps: float) -> Tensor:
    """Without a mean."""
    wide = _wide(input)
    y = wide / T.sqrt(T.mean(wide * wide, list(range(axis, input.ndim)), True) + eps)
    return _scaled(y, input, weight if weight is None else _wide(weight), None)


def group_norm(input: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Over groups of channels of each sample."""
    wide = _wide(input).reshape(input.shape[0], groups, -1)
    y = _standard(wide, [2], eps)[0].reshape(input.shape)
    return _scaled(y, input, _of_channels(input, weight), _of_channels(input, bias))


def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Over each channel of each sample."""
    y = _standard(_wide(input), list(range(2, input.ndim)), eps)[0]
    return _scaled(y, input, _of_channels(input, weight), _of_channels(input, bias))


def batch_norm(input: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Over the batch; what the running statistics take from it, too."""
    y, mean, var = _standard(_wide(input), [0, *range(2, input.ndim)], eps)
    return _scaled(y, input, _of_channels(input, weight), _of_channels(input, bias)), cast(mean.reshape(-1), input.dtype), cast(var.reshape(-1), input.dtype)


def batch_norm_given(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float) -> Tensor:
    """By statistics that are given."""
    apart = _wide(x) - _of_channels(x, mean)
    return _scaled(apart / T.sqrt(_of_channels(x, var) + eps), x, _of_channels(x, weight), _of_channels(x, bias))


def local_response_norm(input: Tensor, size: int, alpha: float, beta: float, k: float) -> Tensor:
    """Over a power of the squares of neighbour channels."""
    wide, channels = _wide(input), input.shape[1]
    squares = T.pad(wide * wide, [0, 0] * (input.ndim - 2) + [size // 2, (size - 1) // 2])
    total = squares.narrow(1, 0, channels)
    for at in range(1, size):
        total = total + squares.narrow(1, at, channels)
    return _scaled(wide / (total * (alpha / size) + k) ** beta, input, None, None)
