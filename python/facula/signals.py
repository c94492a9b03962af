"""Points of a line: windows, numbers evenly apart, areas under them."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _facula
from ._facula import Tensor
from .arrange import narrow
from .create import as_tensor, axis_of
from .dtypes import get_default_dtype
from .reduce import cumsum, sum


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
