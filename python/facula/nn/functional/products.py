"""Linear layers and convolutions."""
from __future__ import annotations

import functools
import math
from typing import Any

from ... import _facula, functional as T
from ..._facula import Tensor, apply
from .common import Size, _words, fixed, many

_CONV = ("", "conv1d", "conv2d", "conv3d")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input w^T + b"""
    return apply("linear", None, 0, input, weight, bias) if bias is not None else apply("linear", None, 0, input, weight)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """a W b for each output, and a bias."""
    if input1.ndim < 1 or input1.shape[:-1] != input2.shape[:-1] or weight.ndim != 3:
        raise _facula.ShapeError(f"bilinear of shapes {input1.shape} and {input2.shape} with a weight of shape {weight.shape}")
    rows = math.prod(input1.shape[:-1])
    y = T.einsum("bi,oij,bj->bo", input1.reshape(rows, input1.shape[-1]), weight, input2.reshape(rows, input2.shape[-1])).reshape(*input1.shape[:-1], weight.shape[0])
    return y if bias is None else y + bias


@functools.lru_cache(1024)
def _conv_words(n: int, stride: Size, padding: Any, dilation: Size, groups: int) -> str:
    """Attributes as text, which is the same in every step."""
    auto = {"same": "same_upper", "valid": None}.get(padding) if isinstance(padding, str) else None
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise ValueError(f"padding is a number, 'same' or 'valid', not {padding!r}")
    p = [0] * n if isinstance(padding, str) else many(padding, n)
    return _words(stride=many(stride, n), pad=p + p, dilation=many(dilation, n), groups=groups, auto_pad=auto)


def conv(n: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Size, padding: Any, dilation: Size, groups: int) -> Tensor:
    """Convolution over as many dims as the weight has beyond channels."""
    batched = x.ndim == n + 2
    if x.ndim not in (n + 1, n + 2):
        raise _facula.ShapeError(f"conv{n}d: an input of shape {x.shape}, {n + 1} or {n + 2} dims were expected")
    attrs = _conv_words(n, fixed(stride), fixed(padding), fixed(dilation), groups)
    given = x if batched else x.unsqueeze(0)
    y = apply(_CONV[n], attrs, 0, given, weight) if bias is None else apply(_CONV[n], attrs, 0, given, weight, bias)
    return y if batched else y.squeeze(0)


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Any = 0, dilation: Size = 1,
           groups: int = 1) -> Tensor:
    """Convolution: x (N, C, L), weight (C', C / groups, k)."""
    return conv(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Any = 0, dilation: Size = 1,
           groups: int = 1) -> Tensor:
    """Convolution: x (N, C, H, W), weight (C', C / groups, kh, kw)."""
    return conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Any = 0, dilation: Size = 1,
           groups: int = 1) -> Tensor:
    """Convolution: x (N, C, D, H, W), weight (C', C / groups, kd, kh, kw)."""
    return conv(3, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(n: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Size, padding: Size, output_padding: Size,
                    groups: int, dilation: Size) -> Tensor:
    p = many(padding, n)
    attrs = _words(stride=many(stride, n), pad=p + p, dilation=many(dilation, n), output_pad=many(output_padding, n), groups=groups)
    batched = x.ndim != n + 1
    inputs = [x if batched else x.unsqueeze(0), weight] + ([bias] if bias is not None else [])
    y = apply(f"conv_transpose{n}d", attrs, 0, *inputs)
    return y if batched else y.squeeze(0)


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Size = 0,
                     output_padding: Size = 0, groups: int = 1, dilation: Size = 1) -> Tensor:
    """Transposed convolution, conv1d's gradient: weight (C, C' / groups, k)."""
    return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Size = 0,
                     output_padding: Size = 0, groups: int = 1, dilation: Size = 1) -> Tensor:
    """Transposed convolution, conv2d's gradient: weight (C, C' / groups, kh, kw)."""
    return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Size = 0,
                     output_padding: Size = 0, groups: int = 1, dilation: Size = 1) -> Tensor:
    """Transposed convolution, conv3d's gradient: weight (C, C' / groups, kd, kh, kw)."""
    return _conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)
