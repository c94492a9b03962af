"""Lookups, resizing, windows as rows."""
from __future__ import annotations

import math
from typing import Any

from ... import functional as T
from ..._facula import Tensor, apply
from ...functional import pad
from .common import Size, _words, many


def embedding(ids: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of the weight."""
    if padding_idx is not None and weight.requires_grad:
        keep = T.ones(weight.shape[0], 1, dtype=weight.dtype)
        keep[padding_idx] = 0.0
        weight = weight * keep + weight.detach() * (1 - keep)
    return apply("gather", "axis=0", 0, weight, ids)


def interpolate(x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """Another size of the dims after the channels: nearest, linear, bilinear, trilinear, bicubic."""
    n = x.ndim - 2
    if size is None:
        factors = [scale_factor] * n if isinstance(scale_factor, (int, float)) else list(scale_factor)
        size = [int(math.floor(s * f)) for s, f in zip(x.shape[2:], factors)]
    how = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear",
           "bicubic": "cubic"}.get(mode)
    if how is None:
        raise ValueError(f"interpolate: no mode {mode!r}")
    from ...ops import _table
    attrs = {a["name"]: a for a in _table["interpolate"]["attrs"]}
    places = attrs["coordinates"]["choices"]
    where = next(c for c in places if c.startswith("align")) if align_corners else next(c for c in places if c.startswith("half"))
    rounding = None
    if mode == "nearest":
        where = next(c for c in places if c.startswith("asym"))
        rounding = next(c for c in attrs["rounding"]["choices"] if c.startswith("floor"))
    words = _words(mode=how, coordinates=where, rounding=rounding, axes=list(range(2, x.ndim)), cubic_a=-0.75 if how == "cubic" else None)
    return apply("interpolate", words, 0, x, Tensor(many(size, n), dtype="int64"))


def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    return apply("depth_to_space", f"block={upscale_factor} channels_first=1", 0, x)


def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    return apply("space_to_depth", f"block={downscale_factor} channels_first=1", 0, x)


def unfold(x: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The patches of images, as columns."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = many(kernel_size, 2), many(dilation, 2), many(padding, 2), many(stride, 2)
    x = pad(x, (pw, pw, ph, ph)) if ph or pw else x
    h, w = ((x.shape[2] - dh * (kh - 1) - 1) // sh + 1, (x.shape[3] - dw * (kw - 1) - 1) // sw + 1)
    rows = [x[:, :, i * dh:i * dh + sh * (h - 1) + 1:sh, j * dw:j * dw + sw * (w - 1) + 1:sw] for i in range(kh) for j in range(kw)]
    return T.stack(rows, 2).reshape(x.shape[0], x.shape[1] * kh * kw, h * w)
