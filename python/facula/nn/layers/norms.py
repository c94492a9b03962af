"""Norms."""
from __future__ import annotations

from typing import Any

from ... import _facula, functional as T
from ..._facula import Tensor
from ...autograd import no_grad
from ...promote import cast
from .. import functional as F
from ..functional.norms import counting_batch_norm
from ..module import Module, Parameter
from .products import _new


class _ChannelNorm(Module):
    """A norm with a factor and an addend of each channel, and running statistics."""

    dims: tuple[int, ...] = ()

    def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", Parameter(T.ones(num_features)) if affine else None)
        self.register_parameter("bias", _new(num_features) if affine else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", T.zeros(num_features) if tracked else None)
        self.register_buffer("running_var", T.ones(num_features) if tracked else None)
        self.register_buffer("num_batches_tracked", T.zeros((), dtype="int64") if tracked else None)

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")


class _BatchNorm(_ChannelNorm):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in self.dims:
            expected = " or ".join(map(str, self.dims))
            raise _facula.ShapeError(f"{type(self).__name__}: an input of shape {x.shape}, {expected} dims were expected")
        momentum: Any = self.momentum
        seen = None
        if self.training and self.track_running_stats:
            seen = self._buffers["num_batches_tracked"]
            if momentum is None:
                with no_grad():
                    momentum = 1.0 / cast(seen.detach() + 1, x.dtype)
        return counting_batch_norm(x, self._buffers["running_mean"], self._buffers["running_var"], self._parameters["weight"],
                                   self._parameters["bias"], self.training, 0.0 if momentum is None else momentum, self.eps, seen)


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 of each channel over the batch: (N, C) or (N, C, L)."""

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Mean 0 and variance 1 of each channel over the batch: (N, C, H, W)."""

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Mean 0 and variance 1 of each channel over the batch: (N, C, D, H, W)."""

    dims = (5,)


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


class _InstanceNorm(_ChannelNorm):                          # dims: without a batch, and with one
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
                 track_running_stats: bool = False) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in self.dims:
            raise _facula.ShapeError(f"{type(self).__name__}: an input of shape {x.shape}, {self.dims[0]} or {self.dims[1]} dims were expected")
        if x.ndim == self.dims[0]:
            return T.squeeze(self.forward(T.unsqueeze(x, 0)), 0)
        return F.instance_norm(x, self._buffers["running_mean"], self._buffers["running_var"], self._parameters["weight"], self._parameters["bias"],
                               self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Mean 0 and variance 1 of each channel of each sample: (N, C, L) or (C, L)."""

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Mean 0 and variance 1 of each channel of each sample: (N, C, H, W) or (C, H, W)."""

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Mean 0 and variance 1 of each channel of each sample: (N, C, D, H, W) or (C, D, H, W)."""

    dims = (4, 5)


class LocalResponseNorm(Module):
    """x over a power of the squares of its neighbour channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Tensor) -> Tensor:
        return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)
