"""Points of a line: windows, numbers evenly apart, areas under them."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _facula, fft
from ._facula import Tensor, apply
from .arrange import narrow
from .create import as_tensor, axis_of, ints, ones
from .dtypes import get_default_dtype
from .promote import cast
from .reduce import cumsum, sum
from .shapes import pad, permute, reshape, squeeze, transpose, unsqueeze


def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """base to the power of so many numbers, evenly apart, from start to end."""
    return Tensor(base ** np.linspace(start, end, steps), dtype=dtype or get_default_dtype(), device=device)


def _window(name: str, weight: Any, about: str) -> Any:
    """weight: of places from 0 to 1 in the window."""
    def function(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None) -> Tensor:
        if window_length < 0:
            raise ValueError(f"{name}: a window of {window_length} numbers")
        at = np.arange(window_length) / max(window_length - (not periodic), 1)
        return Tensor(np.ones(1) if window_length == 1 else weight(at), dtype=dtype or get_default_dtype(), device=device)
    function.__name__ = name
    function.__doc__ = f"{about} periodic: the first of a longer one of one more number, as spectra need it."
    return function


def _cosines(*weights: float) -> Any:
    return lambda at: np.sum([w * np.cos(2 * np.pi * k * at) for k, w in enumerate(weights)], 0)


hann_window = _window("hann_window", _cosines(0.5, -0.5), "Hann's window, a raised cosine;")
hamming_window = _window("hamming_window", _cosines(0.54, -0.46), "Hamming's window;")
blackman_window = _window("blackman_window", _cosines(0.42, -0.5, 0.08), "Blackman's window;")
bartlett_window = _window("bartlett_window", lambda at: 1 - np.abs(2 * at - 1), "Bartlett's window, a triangle;")


def _areas(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    axis = axis_of(dim, y.ndim)
    n = y.shape[axis]
    if n < 1:
        raise _facula.ShapeError(f"trapezoid of shape {y.shape}: dim {dim} has no points")
    both = narrow(y, axis, 0, n - 1) + narrow(y, axis, 1, n - 1)
    if x is None:
        return both * (dx / 2)
    if x.ndim == 1:
        x = x.reshape([-1] + [1] * (y.ndim - 1 - axis))
        axis = 0
    else:
        axis = axis - y.ndim + x.ndim
    m = x.shape[axis]
    if m != n:
        raise _facula.ShapeError(f"trapezoid: {n} values at {m} places")
    return both * (narrow(x, axis, 1, n - 1) - narrow(x, axis, 0, n - 1)) / 2


def trapezoid(y: Any, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The area under lines through points along a dim, dx apart or at x."""
    t = as_tensor(y)
    return sum(_areas(t, x, dx, dim), dim)


def cumulative_trapezoid(y: Any, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The areas up to each point but the first."""
    return cumsum(_areas(as_tensor(y), x, dx, dim), dim)


trapz = trapezoid


def _framing(name: str, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, like: Tensor) -> tuple[int, Tensor]:
    """The hop and the window, as long as a frame."""
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if n_fft < 1 or hop < 1 or not 1 <= width <= n_fft:
        raise ValueError(f"{name}: frames of {n_fft} samples, one every {hop}, with a window of {width}")
    w = ones(width) if window is None else window
    if w.shape != (width,):
        raise _facula.ShapeError(f"{name}: a window of shape {w.shape}, ({width},) was expected")
    before = (n_fft - width) // 2
    return hop, pad(cast(w, like.dtype), [before, n_fft - width - before])


def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: bool = True, return_complex: bool = False) -> Tensor:
    """Spectra of frames of n_fft samples, one every hop_length (a quarter of that): [.., frequencies, frames, 2], pairs of real and
    imaginary parts.  center: frames have their middle, not their beginning, at multiples of the hop."""
    if return_complex:
        raise _facula.UnsupportedError("stft: facula has no complex numbers; the last dim of the result are real and imaginary parts")
    if input.ndim not in (1, 2) or not input.dtype.is_floating_point:
        raise _facula.ShapeError(f"stft of shape {input.shape} and {input.dtype.name}: floats [samples] or [batch, samples] were expected")
    hop, w = _framing("stft", n_fft, hop_length, win_length, window, input)
    rows = unsqueeze(input, 0) if input.ndim == 1 else input
    if center and pad_mode == "reflect" and rows.shape[1] <= n_fft // 2:
        raise _facula.ShapeError(f"stft: {rows.shape[1]} samples cannot be reflected by {n_fft // 2}")
    rows = pad(rows, [n_fft // 2, n_fft // 2], pad_mode) if center else rows
    y = permute(apply("stft", f"onesided={int(onesided)}", 0, rows, w, ints([hop]), ints([n_fft])), [0, 2, 3, 1])
    y = y * n_fft ** -0.5 if normalized else y
    return squeeze(y, 0) if input.ndim == 1 else y


def _added(frames: Tensor, hop: int) -> Tensor:
    """Frames [batch, length, frames] added up where they overlap: pieces of a hop, each frame's own k hops later."""
    batch, length, count = frames.shape
    pieces = -(-length // hop)
    x = reshape(pad(frames, [0, 0, 0, pieces * hop - length]), batch, pieces, hop, count)
    total: Any = None
    for k in range(pieces):
        row = pad(transpose(squeeze(narrow(x, 1, k, 1), 1), 1, 2), [0, 0, k, pieces - 1 - k])
        total = row if total is None else total + row
    return narrow(reshape(total, batch, -1), 1, 0, length + hop * (count - 1))


def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
          normalized: bool = False, onesided: bool = True, length: int | None = None, return_complex: bool = False) -> Tensor:
    """The signal whose stft() this is; an error where windows leave a sample without weight."""
    if return_complex:
        raise _facula.UnsupportedError("istft: facula has no complex numbers: the result is real")
    bins = n_fft // 2 + 1 if onesided else n_fft
    if input.ndim not in (3, 4) or input.shape[-1] != 2 or input.shape[-3] != bins:
        raise _facula.ShapeError(f"istft of shape {input.shape}: [.., {bins}, frames, 2] was expected")
    hop, w = _framing("istft", n_fft, hop_length, win_length, window, input)
    spectra = unsqueeze(input, 0) if input.ndim == 3 else input
    norm = "ortho" if normalized else None
    frames = fft.irfft(narrow(spectra, 1, 0, n_fft // 2 + 1), n_fft, 1, norm)
    w = reshape(w, 1, -1, 1)
    y, weight = _added(frames * w, hop), _added((w * w).expand(1, n_fft, spectra.shape[2]), hop)
    first = n_fft // 2 if center else 0
    last = y.shape[1] - first if length is None else min(first + length, y.shape[1])
    y, weight = narrow(y, 1, first, last - first), narrow(weight, 1, first, last - first)
    if weight.shape[1] and float(np.min(np.asarray(weight.detach()))) < 1e-11:
        raise _facula.ArgumentError("istft: the windows leave a sample without weight")
    y = y / weight
    y = pad(y, [0, length - y.shape[1]]) if length is not None and length > y.shape[1] else y
    return squeeze(y, 0) if input.ndim == 3 else y
