"""Lookups, resizing, windows as rows."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _facula, functional as T
from ..._facula import Tensor, apply
from ...autograd import no_grad
from ...dtypes import get_default_dtype
from ...functional import pad
from ...promote import cast
from ...places import _check_places
from .common import Size, _words, many


def _shorten(weight: Tensor, ids: Tensor, most: float, p: float) -> None:
    with no_grad():
        read = T.unique(ids)
        rows = weight.detach()[read]
        sizes = T.norm(rows, p, -1, True)
        weight[read] = T.where(sizes > most, rows * (most / (sizes + 1e-7)), rows)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of the weight.  max_norm: rows that are read and longer than that are made shorter, in place; gradients are never sparse."""
    if scale_grad_by_freq:
        raise _facula.UnsupportedError("embedding: scale_grad_by_freq")
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    if padding_idx is not None and weight.requires_grad:
        keep = T.ones(weight.shape[0], 1, dtype=weight.dtype)
        keep[padding_idx] = 0.0
        weight = weight * keep + weight.detach() * (1 - keep)
    if input.dtype.is_floating_point:
        raise _facula.DtypeError(f"embedding: ids are integers, not {input.dtype}")
    _check_places("embedding", input, weight.shape[0])
    return apply("gather", "axis=0", 0, weight, input)


def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """Another size of the dims after the channels: nearest, linear, bilinear, trilinear, bicubic."""
    if antialias:
        raise _facula.UnsupportedError("interpolate: antialias")
    if recompute_scale_factor and scale_factor is not None:
        factors = [scale_factor] * (input.ndim - 2) if isinstance(scale_factor, (int, float)) else scale_factor
        size, scale_factor = [int(n * s) for n, s in zip(input.shape[2:], factors)], None
    n = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: either size or scale_factor was expected")
    if n < 1:
        raise _facula.ShapeError(f"interpolate of shape {input.shape}: three dims at least were expected")
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
        whole = [math.floor(s * f) for s, f in zip(input.shape[2:], factors)]
        if align_corners:                                   # then places follow from the sizes
            size, factors = whole, None
        else:                                               # a dim that stays is not moved; one that doubles is not, where neighbours are moved
            kept = (1, 2) if mode == "nearest" and n < 3 else (1,)
            factors = [next((float(k) for k in kept if w == k * s), f) for s, f, w in zip(input.shape[2:], factors, whole)]
    words = _words(mode=how, coordinates=where, rounding=rounding, axes=list(range(2, input.ndim)), cubic_a=-0.75 if how == "cubic" else None, scales=factors)
    sizes = [] if size is None else [Tensor(many(size, n), dtype="int64")]
    if how == "nearest":
        return apply("interpolate_nearest", words, 0, input, *sizes)
    if input.dtype.is_floating_point:
        return apply("interpolate", words, 0, input, *sizes)
    return cast(T.round(apply("interpolate", words, 0, cast(input, get_default_dtype()), *sizes)), input.dtype)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels become places: (C r^2, H, W) to (C, H r, W r)."""
    return _of_images("depth_to_space", input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Places become channels: (C, H r, W r) to (C r^2, H, W)."""
    return _of_images("space_to_depth", input, downscale_factor)


def _of_images(op: str, x: Tensor, block: int) -> Tensor:
    """Of images, one or as many as the dims before say."""
    if x.ndim < 3:
        raise _facula.ShapeError(f"{op} of shape {x.shape}: three dims at least were expected")
    images = x if x.ndim == 4 else x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:])
    y = apply(op, f"block={block} channels_first=1", 0, images)
    return y if x.ndim == 4 else y.reshape(*x.shape[:-3], *y.shape[1:])


def unfold(input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The patches of images, as columns."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = many(kernel_size, 2), many(dilation, 2), many(padding, 2), many(stride, 2)
    if input.ndim == 3:
        return unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    if input.ndim != 4:
        raise _facula.ShapeError(f"unfold of shape {input.shape}: three or four dims were expected")
    input = pad(input, (pw, pw, ph, ph)) if ph or pw else input
    h, w = ((input.shape[2] - dh * (kh - 1) - 1) // sh + 1, (input.shape[3] - dw * (kw - 1) - 1) // sw + 1)
    rows = [input[:, :, i * dh:i * dh + sh * (h - 1) + 1:sh, j * dw:j * dw + sw * (w - 1) + 1:sw] for i in range(kh) for j in range(kw)]
    return T.stack(rows, 2).reshape(input.shape[0], input.shape[1] * kh * kw, h * w)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of the groups, in turn."""
    return input.reshape(input.shape[0], groups, input.shape[1] // groups, *input.shape[2:]).transpose(1, 2).reshape(input.shape)


def fold(input: Tensor, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """Patches, as columns, added up to images: the opposite of unfold."""
    (height, width), (kh, kw), (dh, dw) = many(output_size, 2), many(kernel_size, 2), many(dilation, 2)
    (ph, pw), (sh, sw) = many(padding, 2), many(stride, 2)
    if input.ndim == 2:
        return fold(input.unsqueeze(0), output_size, kernel_size, dilation, padding, stride).squeeze(0)
    if input.ndim != 3 or input.shape[1] % (kh * kw):
        raise _facula.ShapeError(f"fold of shape {input.shape}: columns of {kh * kw} numbers a channel were expected")
    h, w = (height + 2 * ph - dh * (kh - 1) - 1) // sh + 1, (width + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    channels, tall, wide = input.shape[1] // (kh * kw), height + 2 * ph, width + 2 * pw
    if input.shape[2] != h * w:
        raise _facula.ShapeError(f"fold: {input.shape[2]} columns, {h} x {w} were expected")
    place = np.arange(tall * wide).reshape(tall, wide)
    at = np.stack([place[i * dh:i * dh + sh * (h - 1) + 1:sh, j * dw:j * dw + sw * (w - 1) + 1:sw] for i in range(kh) for j in range(kw)])
    columns = input.reshape(input.shape[0], channels, kh * kw * h * w)
    index = T.expand(Tensor(np.ascontiguousarray(at.reshape(1, 1, -1))), *columns.shape)
    flat = T.scatter_add(T.zeros(input.shape[0], channels, tall * wide, dtype=input.dtype), 2, index, columns)
    return flat.reshape(input.shape[0], channels, tall, wide)[:, :, ph:ph + height, pw:pw + width]


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
