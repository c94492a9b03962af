"""Layers with parameters: products, convolutions, norms, embeddings; and pools."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import functional as T
from .._facula import Tensor
from . import functional as F
from . import init
from .module import Module, Parameter


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
        function = getattr(F, f"conv{self.dims}d")
        return function(x, self.weight, self._parameters["bias"], self.stride, padding, self.dilation, self.groups)

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
    dims = 1


class Conv2d(_Conv):
    dims = 2


class Conv3d(_Conv):
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
    dims = 1


class ConvTranspose2d(_ConvTranspose):
    dims = 2


class ConvTranspose3d(_ConvTranspose):
    dims = 3


class _BatchNorm(Module):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", Parameter(T.ones(num_features)) if affine else None)
        self.register_parameter("bias", _new(num_features) if affine else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", T.zeros(num_features) if tracked else None)
        self.register_buffer("running_var", T.ones(num_features) if tracked else None)
        self.register_buffer("num_batches_tracked", T.zeros((), dtype="int64") if tracked else None)

    def forward(self, x: Tensor) -> Tensor:
        momentum = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked._become(self.num_batches_tracked + 1)
            if momentum is None:
                momentum = 1 / int(self.num_batches_tracked)
        return F.batch_norm(x, self._buffers["running_mean"], self._buffers["running_var"], self._parameters["weight"],
                            self._parameters["bias"], self.training, momentum or 0.0, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")


class BatchNorm1d(_BatchNorm):
    pass


class BatchNorm2d(_BatchNorm):
    pass


class BatchNorm3d(_BatchNorm):
    pass


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last dims."""

    def __init__(self, normalized_shape: F.Size, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True) -> None:
        super().__init__()
        self.normalized_shape, self.eps = tuple(F.many(normalized_shape, 1)), eps
        self.register_parameter("weight", Parameter(T.ones(*self.normalized_shape)) if elementwise_affine else None)
        self.register_parameter("bias", _new(*self.normalized_shape) if elementwise_affine and bias else None)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self._parameters["weight"], self._parameters["bias"], self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """Mean square 1 over the last dims."""

    def __init__(self, normalized_shape: F.Size, eps: float | None = None, elementwise_affine: bool = True) -> None:
        super().__init__()
        self.normalized_shape, self.eps = tuple(F.many(normalized_shape, 1)), eps
        self.register_parameter("weight", Parameter(T.ones(*self.normalized_shape)) if elementwise_affine else None)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self._parameters["weight"], self.eps)


class GroupNorm(Module):
    """Mean 0 and variance 1 over groups of channels."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__()
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.register_parameter("weight", Parameter(T.ones(num_channels)) if affine else None)
        self.register_parameter("bias", _new(num_channels) if affine else None)

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, self.num_groups, self._parameters["weight"], self._parameters["bias"], self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class InstanceNorm2d(Module):
    """Mean 0 and variance 1 of each plane."""

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = False) -> None:
        super().__init__()
        self.num_features, self.eps = num_features, eps
        self.register_parameter("weight", Parameter(T.ones(num_features)) if affine else None)
        self.register_parameter("bias", _new(num_features) if affine else None)

    def forward(self, x: Tensor) -> Tensor:
        return F.instance_norm(x, self._parameters["weight"], self._parameters["bias"], self.eps)


InstanceNorm1d = InstanceNorm3d = InstanceNorm2d


class LocalResponseNorm(Module):
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Tensor) -> Tensor:
        return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)


class Embedding(Module):
    """Rows of a table; weight [count, features]."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.weight = _new(num_embeddings, embedding_dim)
        init.normal_(self.weight)
        if padding_idx is not None:
            w = self.weight.detach()
            w[padding_idx] = 0.0
            self.weight.data = w

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        e = cls(embeddings.shape[0], embeddings.shape[1], padding_idx)
        e.weight = Parameter(embeddings, not freeze)
        return e

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


# ---- pools and shapes ----

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
    function = "max_pool1d"


class MaxPool2d(_Pool):
    function = "max_pool2d"


class MaxPool3d(_Pool):
    function = "max_pool3d"


class AvgPool1d(_Pool):
    function = "avg_pool1d"


class AvgPool2d(_Pool):
    function = "avg_pool2d"


class AvgPool3d(_Pool):
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
    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_Adaptive):
    function = "adaptive_avg_pool2d"


class AdaptiveMaxPool1d(_Adaptive):
    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_Adaptive):
    function = "adaptive_max_pool2d"


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
