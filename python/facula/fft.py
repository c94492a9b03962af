"""Fourier transforms, with PyTorch's names.

facula has no complex numbers: a spectrum is pairs of real and imaginary parts in a last dim of size 2, as `torch.view_as_real` gives
them.  `rfft` takes a real signal, `irfft` gives one; `fft` and `ifft` take pairs and give pairs (`pairs(x)` makes them).  `dim` counts
the dims of the signal, without that of the pairs.  Gradients pass through all of them.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _facula, arrange, shapes as s
from ._facula import Tensor, apply
from .create import as_tensor, axes_of, axis_of, ints, zeros_like
from .dtypes import get_default_dtype

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "imag", "irfft", "irfft2",
           "irfftn", "pairs", "real", "rfft", "rfft2", "rfftfreq", "rfftn"]


def pairs(real: Any, imag: Any = None) -> Tensor:
    """Pairs of real and imaginary parts, which are 0 unless given."""
    x = as_tensor(real)
    return s.stack([x, zeros_like(x) if imag is None else as_tensor(imag)], -1)


def real(x: Tensor) -> Tensor:
    """The real parts of pairs."""
    return arrange.select(_pairs("real", x), -1, 0)


def imag(x: Tensor) -> Tensor:
    """The imaginary parts of pairs."""
    return arrange.select(_pairs("imag", x), -1, 1)


def _pairs(name: str, x: Any) -> Tensor:
    t = as_tensor(x)
    if not t.dtype.is_floating_point:
        raise _facula.DtypeError(f"{name} of {t.dtype.name}: floats were expected")
    if t.ndim < 1 or t.shape[-1] != 2:
        raise _facula.ShapeError(f"{name} of shape {t.shape}: pairs of real and imaginary parts were expected, a last dim of size 2"
                                 " (fft.pairs() makes them of real numbers)")
    return t


def _signal(name: str, x: Any) -> Tensor:
    t = as_tensor(x)
    if not t.dtype.is_floating_point:
        raise _facula.DtypeError(f"{name} of {t.dtype.name}: floats were expected")
    return s.unsqueeze(t, -1)


def _conj(x: Tensor) -> Tensor:
    return x * Tensor([1.0, -1.0], dtype=x.dtype)


def _scale(name: str, norm: str | None, n: int, inverse: bool) -> float:
    """What a transform that divides by n where it is inverse has to be multiplied with."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{name}: norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    by = {"ortho": math.sqrt(n), "forward": float(n)}.get(norm or "", 1.0)
    return by if inverse else 1 / by


def _transform(name: str, x: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool, onesided: bool = False) -> Tensor:
    """x: pairs, or real numbers in a last dim of 1."""
    axis = axis_of(dim, x.ndim - 1)
    from_half = inverse and onesided
    size = (2 * (x.shape[axis] - 1) if from_half else x.shape[axis]) if n is None else n
    if size < 1:
        raise _facula.ShapeError(f"{name}: a transform of {size} numbers")
    by = _scale(name, norm, size, inverse)
    y: Tensor = apply("dft", f"inverse={int(inverse)} onesided={int(onesided)}", 0, x, ints([size]), ints([axis]))
    return y if by == 1 else y * by


# ---- one dim ----

def fft(x: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The spectrum of pairs, of n of them: cut, or filled up with 0."""
    return _transform("fft", _pairs("fft", x), n, dim, norm, False)


def ifft(x: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Pairs from their spectrum."""
    return _transform("ifft", _pairs("ifft", x), n, dim, norm, True)


def rfft(x: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first n / 2 + 1 pairs of the spectrum of real numbers; the others mirror them."""
    return _transform("rfft", _signal("rfft", x), n, dim, norm, False, True)


def irfft(x: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """n real numbers, an even number unless said, from half of their spectrum."""
    return s.squeeze(_transform("irfft", _pairs("irfft", x), n, dim, norm, True, True), -1)


_other_way = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real spectrum of pairs that are half of a Hermitian signal."""
    return irfft(_conj(_pairs("hfft", x)), n, dim, _other_way.get(norm, norm))


def ihfft(x: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Half of the Hermitian signal whose spectrum is real."""
    return _conj(rfft(x, n, dim, _other_way.get(norm, norm)))


# ---- several dims ----

def _sizes(name: str, ndim: int, sizes: Sequence[int] | None, dim: Any) -> list[tuple[int, int | None]]:
    """Axes with the sizes of their transforms."""
    if dim is None:
        axes = list(range(ndim - len(sizes), ndim)) if sizes is not None else list(range(ndim))
    else:
        axes = axes_of(dim, ndim)
    if not axes or len(set(axes)) < len(axes) or axes[0] < 0 or (sizes is not None and len(sizes) != len(axes)):
        raise _facula.ShapeError(f"{name} of {ndim} dims: sizes {sizes} along dims {dim}")
    return [(a, None if sizes is None or sizes[k] == -1 else sizes[k]) for k, a in enumerate(axes)]


def _all(name: str, x: Tensor, sizes: Any, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    for axis, n in _sizes(name, x.ndim - 1, sizes, dim):
        x = _transform(name, x, n, axis, norm, inverse)
    return x


def fftn(x: Any, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """fft along several dims, all of them unless said."""
    return _all("fftn", _pairs("fftn", x), s, dim, norm, False)


def ifftn(x: Any, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """ifft along several dims."""
    return _all("ifftn", _pairs("ifftn", x), s, dim, norm, True)


def rfftn(x: Any, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """rfft along the last dim, fft along the others."""
    t = as_tensor(x)
    *rest, (last, n) = _sizes("rfftn", t.ndim, s, dim)
    y = rfft(t, n, last, norm)
    for axis, n in rest:
        y = fft(y, n, axis, norm)
    return y


def irfftn(x: Any, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """ifft along all dims but the last, irfft along it."""
    t = _pairs("irfftn", x)
    *rest, (last, n) = _sizes("irfftn", t.ndim - 1, s, dim)
    for axis, size in rest:
        t = ifft(t, size, axis, norm)
    return irfft(t, n, last, norm)


def fft2(x: Any, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """fft along two dims."""
    return fftn(x, s, dim, norm)


def ifft2(x: Any, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """ifft along two dims."""
    return ifftn(x, s, dim, norm)


def rfft2(x: Any, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """rfft along the last dim, fft along the one before."""
    return rfftn(x, s, dim, norm)


def irfft2(x: Any, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """A real picture from half of its spectrum."""
    return irfftn(x, s, dim, norm)


# ---- frequencies ----

def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequency of each element of a spectrum of n samples that are d apart."""
    return Tensor(np.fft.fftfreq(n, d), dtype=dtype or get_default_dtype(), device=device)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The same of rfft."""
    return Tensor(np.fft.rfftfreq(n, d), dtype=dtype or get_default_dtype(), device=device)


def _rolled(x: Tensor, dim: Any, sign: int) -> Tensor:
    axes = axes_of(dim, x.ndim)
    return s.roll(x, [(x.shape[a] + (sign < 0)) // 2 for a in axes], axes)


def fftshift(x: Tensor, dim: Any) -> Tensor:
    """Frequency 0 comes to the middle of dims; they are those of the tensor, so that pairs keep theirs."""
    return _rolled(x, dim, 1)


def ifftshift(x: Tensor, dim: Any) -> Tensor:
    """The opposite of fftshift."""
    return _rolled(x, dim, -1)
