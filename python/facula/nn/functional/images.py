"""Lookups, resizing, windows as rows."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _facula, functional as T
from ..._facula import Tensor, apply
from ...dtypes import get_default_dtype
from ...functional import pad
from ...promote import cast
from ...places import _check_places
from .common import Size, _words, many


def embedding(ids: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of the weight."""
    if padding_idx is not None and weight.requires_grad:
        keep = T.ones(weight.shape[0], 1, dtype=weight.dtype)
        keep[padding_idx] = 0.0
        weight = weight * keep + weight.detach() * (1 - keep)
    if ids.dtype.is_floating_point:
        raise _facula.DtypeError(f"embedding: ids are integers, not {ids.dtype}")
    _check_places("embedding", ids, weight.shape[0])
    return apply("gather", "axis=0", 0, weight, ids)


def interpolate(x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """Another size of the dims after the channels: nearest, linear, bilinear, trilinear, bicubic."""
    n = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: either size or scale_factor was expected")
    if n < 1:
        raise _facula.ShapeError(f"interpolate of shape {x.shape}: three dims at least were expected")
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
    if mode == "nearest-exact":
        rounding = next(c for c in attrs["rounding"]["choices"] if c.endswith("ceil") and c != "ceil")
    factors = None
    if scale_factor is not None:
        factors = [float(scale_factor)] * n if isinstance(scale_factor, (int, float)) else [float(f) for f in scale_factor]
        whole = [math.floor(s * f) for s, f in zip(x.shape[2:], factors)]
        if align_corners:                                   # then places follow from the sizes
            size, factors = whole, None
        else:                                               # a dim that stays is not moved; one that doubles is not, where neighbours are moved
            kept = (1, 2) if mode == "nearest" and n < 3 else (1,)
            factors = [next((float(k) for k in kept if w == k * s), f) for s, f, w in zip(x.shape[2:], factors, whole)]
    words = _words(mode=how, coordinates=where, rounding=rounding, axes=list(range(2, x.ndim)), cubic_a=-0.75 if how == "cubic" else None, scales=factors)
    sizes = [] if size is None else [Tensor(many(size, n), dtype="int64")]
    if how == "nearest":
        return apply("interpolate_nearest", words, 0, x, *sizes)
    if x.dtype.is_floating_point:
        return apply("interpolate", words, 0, x, *sizes)
    return cast(T.round(apply("interpolate", words, 0, cast(x, get_default_dtype()), *sizes)), x.dtype)


def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """Channels become places: (C r^2, H, W) to (C, H r, W r)."""
    return _of_images("depth_to_space", x, upscale_factor)


def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """Places become channels: (C, H r, W r) to (C r^2, H, W)."""
    return _of_images("space_to_depth", x, downscale_factor)


def _of_images(op: str, x: Tensor, block: int) -> Tensor:
    """Of images, one or as many as the dims before say."""
    if x.ndim < 3:
        raise _facula.ShapeError(f"{op} of shape {x.shape}: three dims at least were expected")
    images = x if x.ndim == 4 else x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:])
    y = apply(op, f"block={block} channels_first=1", 0, images)
    return y if x.ndim == 4 else y.reshape(*x.shape[:-3], *y.shape[1:])


def unfold(x: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The patches of images, as columns."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = many(kernel_size, 2), many(dilation, 2), many(padding, 2), many(stride, 2)
    if x.ndim == 3:
        return unfold(x.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    if x.ndim != 4:
        raise _facula.ShapeError(f"unfold of shape {x.shape}: three or four dims were expected")
    x = pad(x, (pw, pw, ph, ph)) if ph or pw else x
    h, w = ((x.shape[2] - dh * (kh - 1) - 1) // sh + 1, (x.shape[3] - dw * (kw - 1) - 1) // sw + 1)
    rows = [x[:, :, i * dh:i * dh + sh * (h - 1) + 1:sh, j * dw:j * dw + sw * (w - 1) + 1:sw] for i in range(kh) for j in range(kw)]
    return T.stack(rows, 2).reshape(x.shape[0], x.shape[1] * kh * kw, h * w)


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Channels of the groups, in turn."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]).transpose(1, 2).reshape(x.shape)


def fold(x: Tensor, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """Patches, as columns, added up to images: the opposite of unfold."""
    (height, width), (kh, kw), (dh, dw) = many(output_size, 2), many(kernel_size, 2), many(dilation, 2)
    (ph, pw), (sh, sw) = many(padding, 2), many(stride, 2)
    if x.ndim == 2:
        return fold(x.unsqueeze(0), output_size, kernel_size, dilation, padding, stride).squeeze(0)
    if x.ndim != 3 or x.shape[1] % (kh * kw):
        raise _facula.ShapeError(f"fold of shape {x.shape}: columns of {kh * kw} numbers a channel were expected")
    h, w = (height + 2 * ph - dh * (kh - 1) - 1) // sh + 1, (width + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    channels, tall, wide = x.shape[1] // (kh * kw), height + 2 * ph, width + 2 * pw
    if x.shape[2] != h * w:
        raise _facula.ShapeError(f"fold: {x.shape[2]} columns, {h} x {w} were expected")
    place = np.arange(tall * wide).reshape(tall, wide)
    at = np.stack([place[i * dh:i * dh + sh * (h - 1) + 1:sh, j * dw:j * dw + sw * (w - 1) + 1:sw] for i in range(kh) for j in range(kw)])
    columns = x.reshape(x.shape[0], channels, kh * kw * h * w)
    index = T.expand(Tensor(np.ascontiguousarray(at.reshape(1, 1, -1))), *columns.shape)
    flat = T.scatter_add(T.zeros(x.shape[0], channels, tall * wide, dtype=x.dtype), 2, index, columns)
    return flat.reshape(x.shape[0], channels, tall, wide)[:, :, ph:ph + height, pw:pw + width]


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Tensor:
    """Images read at places that a grid names, from -1 to 1."""
    how = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}.get(mode)
    if how is None or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: mode {mode!r} and padding_mode {padding_mode!r}: bilinear, nearest or bicubic, and zeros, border or reflection "
                         "were expected")
    return apply("grid_sample", _words(mode=how, padding=padding_mode, align_corners=bool(align_corners)), 0, input, grid)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The places of an image of this size under affine maps [N, dims, dims + 1]."""
    return apply("affine_grid", _words(align_corners=bool(align_corners)), 0, theta, T.ints(size))
