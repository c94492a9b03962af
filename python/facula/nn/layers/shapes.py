"""Layers that reshape, drop, pad and resize."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import functional as T
from ..._facula import Tensor
from .. import functional as F
from ..module import Module


class Flatten(Module):
    """Dims from start to end become one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        return T.flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """A dim becomes several."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        return T.unflatten(x, self.dim, self.unflattened_size)


class Identity(Module):
    """What it gets."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class Dropout(Module):
    """Each element is 0 with probability p in training."""

    function = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout: p is between 0 and 1, not {p}")
        self.p, self.inplace = p, inplace

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout2d(Dropout):
    """Whole channels at once."""

    function = staticmethod(F.dropout2d)


Dropout1d = Dropout3d = Dropout2d


class AlphaDropout(Dropout):
    """Elements at the lower end of selu: means and variances stay."""

    function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(Dropout):
    """Whole channels of AlphaDropout."""

    function = staticmethod(F.feature_alpha_dropout)


class _Pad(Module):
    """Pads before and after the last dims: one number, or two a dim, the last dim first."""

    dims, mode = 2, "constant"

    def __init__(self, padding: F.Size) -> None:
        super().__init__()
        self.padding, self.value = F.many(padding, 2 * self.dims), 0.0

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{tuple(self.padding)}"


class _ConstantPad(_Pad):
    def __init__(self, padding: F.Size, value: float) -> None:
        super().__init__(padding)
        self.value = value


def _pad(name: str, base: type[_Pad], dims: int, mode: str) -> type[Any]:
    return type(f"{name}{dims}d", (base,), {"dims": dims, "mode": mode, "__module__": "facula.nn", "__doc__": f"{name} of {dims} dims."})


ZeroPad1d, ZeroPad2d, ZeroPad3d = (_pad("ZeroPad", _Pad, n, "constant") for n in (1, 2, 3))
ConstantPad1d, ConstantPad2d, ConstantPad3d = (_pad("ConstantPad", _ConstantPad, n, "constant") for n in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_pad("ReflectionPad", _Pad, n, "reflect") for n in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_pad("ReplicationPad", _Pad, n, "replicate") for n in (1, 2, 3))
CircularPad1d, CircularPad2d, CircularPad3d = (_pad("CircularPad", _Pad, n, "circular") for n in (1, 2, 3))


class Upsample(Module):
    """Larger images: nearest, linear, bilinear, bicubic."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> None:
        super().__init__()
        self.options = {"size": size, "scale_factor": scale_factor, "mode": mode, "align_corners": align_corners}

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, **self.options)  # type: ignore[arg-type]


class PixelShuffle(Module):
    """Channels become places: (C r^2, H, W) to (C, H r, W r)."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """Places become channels: (C, H r, W r) to (C r^2, H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(Module):
    """Channels of groups one after the other become neighbours."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        return F.channel_shuffle(x, self.groups)


class Unfold(Module):
    """The patches of images, as columns."""

    def __init__(self, kernel_size: F.Size, dilation: F.Size = 1, padding: F.Size = 0, stride: F.Size = 1) -> None:
        super().__init__()
        self.options = (kernel_size, dilation, padding, stride)

    def forward(self, x: Tensor) -> Tensor:
        return F.unfold(x, *self.options)


class Fold(Unfold):
    """Patches, as columns, added up to images."""

    def __init__(self, output_size: F.Size, kernel_size: F.Size, dilation: F.Size = 1, padding: F.Size = 0, stride: F.Size = 1) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        return F.fold(x, self.output_size, *self.options)


class UpsamplingNearest2d(Upsample):
    """Larger images by the nearest element."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Larger images, bilinear, corners on corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
