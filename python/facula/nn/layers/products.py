"""Linear layers, convolutions and lookups."""
from __future__ import annotations

import math
from typing import Any

from ... import functional as T
from ..._facula import Tensor
from .. import functional as F
from ..functional.products import conv
from .. import init
from ..module import Module, Parameter


def _new(*shape: int, dtype: Any = None) -> Parameter:
    return Parameter(T.zeros(*shape, dtype=dtype))


def _reset(weight: Tensor, bias: Tensor | None) -> None:
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init.fans(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


class Linear(Module):
    """x w^T + b; weight [out, in]."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _new(out_features, in_features, dtype=dtype)
        self.register_parameter("bias", _new(out_features, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """New random weights."""
        _reset(self.weight, self._parameters["bias"])

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self._parameters["bias"])

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self._parameters['bias'] is not None}"


class Bilinear(Module):
    """a^T w b + c for each output; weight [out, in1, in2]."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        bound = 1 / math.sqrt(in1_features)
        self.weight = _new(out_features, in1_features, in2_features)
        self.register_parameter("bias", _new(out_features) if bias else None)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return F.bilinear(a, b, self.weight, self._parameters["bias"])


class _Conv(Module):
    dims = 2
    transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size: F.Size, stride: F.Size = 1, padding: Any = 0,
                 dilation: F.Size = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", dtype: Any = None,
                 output_padding: F.Size = 0) -> None:
        super().__init__()
        n = self.dims
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} and {out_channels} channels are no multiples of {groups} groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = tuple(F.many(kernel_size, n)), tuple(F.many(stride, n))
        self.dilation = tuple(F.many(dilation, n))
        self.padding = padding if isinstance(padding, str) else tuple(F.many(padding, n))
        self.output_padding, self.padding_mode = tuple(F.many(output_padding, n)), padding_mode
        ends = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = _new(*ends, *self.kernel_size, dtype=dtype)
        self.register_parameter("bias", _new(out_channels, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset(self.weight, self._parameters["bias"])

    def forward(self, x: Tensor) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros" and not isinstance(padding, str):
            around = [p for k in reversed(padding) for p in (k, k)]
            x, padding = F.pad(x, around, self.padding_mode), 0
        own = self._parameters
        weight = own["weight"] if "weight" in own else self.weight      # what __getattr__ finds costs as much as a call
        return conv(self.dims, x, weight, own["bias"], self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        words = [str(self.in_channels), str(self.out_channels), f"kernel_size={self.kernel_size}", f"stride={self.stride}"]
        if isinstance(self.padding, str) or any(self.padding):
            words.append(f"padding={self.padding!r}")
        if any(d != 1 for d in self.dilation):
            words.append(f"dilation={self.dilation}")
        if self.groups != 1:
            words.append(f"groups={self.groups}")
        if self._parameters["bias"] is None:
            words.append("bias=False")
        return ", ".join(words)


class Conv1d(_Conv):
    """Convolution: (N, C, L) to (N, C', L')."""

    dims = 1


class Conv2d(_Conv):
    """Convolution: (N, C, H, W) to (N, C', H', W')."""

    dims = 2


class Conv3d(_Conv):
    """Convolution: (N, C, D, H, W) to (N, C', D', H', W')."""

    dims = 3


class _ConvTranspose(_Conv):
    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: F.Size, stride: F.Size = 1, padding: F.Size = 0,
                 output_padding: F.Size = 0, groups: int = 1, bias: bool = True, dilation: F.Size = 1) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, output_padding=output_padding)

    def forward(self, x: Tensor) -> Tensor:
        function = getattr(F, f"conv_transpose{self.dims}d")
        return function(x, self.weight, self._parameters["bias"], self.stride, self.padding, self.output_padding, self.groups,
                        self.dilation)


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution, Conv1d's gradient."""

    dims = 1


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution, Conv2d's gradient."""

    dims = 2


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution, Conv3d's gradient."""

    dims = 3
