"""Pools."""
from __future__ import annotations

from typing import Any

from ..._facula import Tensor
from .. import functional as F
from ..module import Module


class _Pool(Module):
    function = "max_pool2d"

    def __init__(self, kernel_size: F.Size, stride: F.Size | None = None, padding: F.Size = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxPool(_Pool):
    def __init__(self, kernel_size: F.Size, stride: F.Size | None = None, padding: F.Size = 0, dilation: F.Size = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__(kernel_size, stride, padding)
        self.dilation, self.return_indices, self.ceil_mode = dilation, return_indices, ceil_mode

    def forward(self, x: Tensor) -> Any:
        return getattr(F, self.function)(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)


class _AvgPool(_Pool):
    def __init__(self, kernel_size: F.Size, stride: F.Size | None = None, padding: F.Size = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__(kernel_size, stride, padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        return getattr(F, self.function)(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class MaxPool1d(_MaxPool):
    """The largest element of each window over 1 dim."""

    function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """The largest element of each window over 2 dims."""

    function = "max_pool2d"


class MaxPool3d(_MaxPool):
    """The largest element of each window over 3 dims."""

    function = "max_pool3d"


class AvgPool1d(_AvgPool):
    """The mean of each window over 1 dim."""

    function = "avg_pool1d"


class AvgPool2d(_AvgPool):
    """The mean of each window over 2 dims."""

    function = "avg_pool2d"


class AvgPool3d(_AvgPool):
    """The mean of each window over 3 dims."""

    function = "avg_pool3d"


class _Adaptive(Module):
    function = "adaptive_avg_pool2d"

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: Tensor) -> Any:
        return getattr(F, self.function)(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, x: Tensor) -> Any:
        return getattr(F, self.function)(x, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_Adaptive):
    """Means of windows that give output_size outputs."""

    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_Adaptive):
    """Means of windows that give output_size outputs."""

    function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_Adaptive):
    """Means of windows that give output_size outputs."""

    function = "adaptive_avg_pool3d"


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest elements of windows that give output_size outputs."""

    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest elements of windows that give output_size outputs."""

    function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest elements of windows that give output_size outputs."""

    function = "adaptive_max_pool3d"


class _LPPool(Module):
    function = "lp_pool2d"

    def __init__(self, norm_type: float, kernel_size: F.Size, stride: F.Size | None = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        return getattr(F, self.function)(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}"


class LPPool1d(_LPPool):
    """The root of the sum of powers of each window over 1 dim."""

    function = "lp_pool1d"


class LPPool2d(_LPPool):
    """The root of the sum of powers of each window over 2 dims."""

    function = "lp_pool2d"


class LPPool3d(_LPPool):
    """The root of the sum of powers of each window over 3 dims."""

    function = "lp_pool3d"


class _MaxUnpool(_Pool):
    function = "max_unpool2d"

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:  # type: ignore[override]
        return getattr(F, self.function)(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """The maxima of a pool over 1 dim back where they were."""

    function = "max_unpool1d"


class MaxUnpool2d(_MaxUnpool):
    """The maxima of a pool over 2 dims back where they were."""

    function = "max_unpool2d"


class MaxUnpool3d(_MaxUnpool):
    """The maxima of a pool over 3 dims back where they were."""

    function = "max_unpool3d"
