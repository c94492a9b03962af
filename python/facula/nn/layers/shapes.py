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
    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        return T.unflatten(x, self.dim, self.unflattened_size)


class Identity(Module):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class Dropout(Module):
    """Each element is 0 with probability p in training."""

    function = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout: p is between 0 and 1, not {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout2d(Dropout):
    """Whole channels at once."""

    function = staticmethod(F.dropout2d)


Dropout1d = Dropout3d = Dropout2d


class ZeroPad2d(Module):
    def __init__(self, padding: F.Size) -> None:
        super().__init__()
        self.padding = F.many(padding, 4)

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self.padding)


class ReflectionPad2d(ZeroPad2d):
    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self.padding, "reflect")


class ReplicationPad2d(ZeroPad2d):
    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self.padding, "replicate")


class Upsample(Module):
    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> None:
        super().__init__()
        self.options = {"size": size, "scale_factor": scale_factor, "mode": mode, "align_corners": align_corners}

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, **self.options)  # type: ignore[arg-type]


class PixelShuffle(Module):
    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, self.upscale_factor)
