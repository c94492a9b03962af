"""Pools."""
from __future__ import annotations

from typing import Any

from ..._facula import Tensor
from .. import functional as F
from ..module import Module


class _Pool(Module):
    function = "max_pool2d"

    def __init__(self, kernel_size: F.Size, stride: F.Size | None = None, padding: F.Size = 0, **options: Any) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.options = kernel_size, kernel_size if stride is None else stride, padding, options

    def forward(self, x: Tensor) -> Any:
        return getattr(F, self.function)(x, self.kernel_size, self.stride, self.padding, **self.options)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool1d(_Pool):
    """The largest element of each window over 1 dim."""

    function = "max_pool1d"


class MaxPool2d(_Pool):
    """The largest element of each window over 2 dims."""

    function = "max_pool2d"


class MaxPool3d(_Pool):
    """The largest element of each window over 3 dims."""

    function = "max_pool3d"


class AvgPool1d(_Pool):
    """The mean of each window over 1 dim."""

    function = "avg_pool1d"


class AvgPool2d(_Pool):
    """The mean of each window over 2 dims."""

    function = "avg_pool2d"


class AvgPool3d(_Pool):
    """The mean of each window over 3 dims."""

    function = "avg_pool3d"


class _Adaptive(Module):
    function = "adaptive_avg_pool2d"

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        return getattr(F, self.function)(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means of windows that give output_size outputs."""

    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_Adaptive):
    """Means of windows that give output_size outputs."""

    function = "adaptive_avg_pool2d"


class AdaptiveMaxPool1d(_Adaptive):
    """The largest elements of windows that give output_size outputs."""

    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_Adaptive):
    """The largest elements of windows that give output_size outputs."""

    function = "adaptive_max_pool2d"
