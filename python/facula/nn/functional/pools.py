"""Pools: maxima and means of windows."""
from __future__ import annotations

import functools
import math
from typing import Any

from ... import _facula, functional as T
from ..._facula import Tensor, apply
from .common import Size, _words, fixed, many


@functools.lru_cache(1024)
def _pool_words(n: int, kernel: Size, stride: Size | None, padding: Size, dilation: Size, ceil_mode: bool, include: bool | None) -> str:
    p, k = many(padding, n), many(kernel, n)
    if any(2 * a > b for a, b in zip(p, k)):
        raise ValueError(f"a pool of windows of {k} with padding {p}: half a window at most was expected")
    return _words(kernel=k, stride=many(kernel if stride is None else stride, n), pad=p + p,
                  dilation=many(dilation, n), ceil_mode=ceil_mode, count_include_pad=include)


def _pool(op: str, n: int, x: Tensor, kernel: Size, stride: Size | None, padding: Size, dilation: Size, ceil_mode: bool,
          results: int = 0, include: bool | None = None) -> Any:
    batched = x.ndim == n + 2
    attrs = _pool_words(n, fixed(kernel), fixed(stride), fixed(padding), fixed(dilation), ceil_mode, include)
    y = apply(f"{op}{n}d", attrs, results, x if batched else x.unsqueeze(0))
    if batched:
        return y
    return tuple(t.squeeze(0) for t in y) if isinstance(y, tuple) else y.squeeze(0)


def _max_pool(n: int) -> Any:
    def function(input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1,
                 ceil_mode: bool = False, return_indices: bool = False) -> Any:
        if not return_indices:
            return _pool("max_pool", n, input, kernel_size, stride, padding, dilation, ceil_mode)
        y, at = _pool("max_pool", n, input, kernel_size, stride, padding, dilation, ceil_mode, 2)
        return y, at % math.prod(input.shape[-n:])          # PyTorch counts within a plane
    function.__name__ = f"max_pool{n}d"
    function.__doc__ = "The largest of each window."
    return function


def _avg_pool(n: int) -> Any:
    def function(input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> Tensor:
        return _pool("avg_pool", n, input, kernel_size, stride, padding, 1, ceil_mode, 0, count_include_pad)
    function.__name__ = f"avg_pool{n}d"
    function.__doc__ = "The mean of each window."
    return function


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)


avg_pool1d, avg_pool2d, avg_pool3d = _avg_pool(1), _avg_pool(2), _avg_pool(3)


def _windows(name: str, n: int, x: Tensor, output_size: Any) -> list[tuple[int, list[slice]]]:
    """The last n dims, each with the windows that give so many outputs; None: as many as there are elements."""
    sizes = [output_size] * n if output_size is None or isinstance(output_size, int) else list(output_size)
    if x.ndim not in (n + 1, n + 2) or len(sizes) != n or 0 in x.shape[-n:]:
        raise _facula.ShapeError(f"{name} of shape {x.shape} to {output_size}: {n + 1} or {n + 2} dims, the last {n} not empty, and {n} sizes were expected")
    windows = []
    for i, out in enumerate(sizes):
        size = x.shape[i - n]
        many = size if out is None else int(out)
        if many < 0:
            raise ValueError(f"{name}: an output of {many} elements")
        windows.append((x.ndim - n + i, [slice(k * size // many, -(-(k + 1) * size // many)) for k in range(many)]))
    return windows


def _pieces(x: Tensor, dim: int, windows: list[slice]) -> list[Tensor]:
    return [x] if windows == [slice(0, x.shape[dim])] else [x[(slice(None),) * dim + (w,)] for w in windows]


def _even(n: int, x: Tensor, windows: list[tuple[int, list[slice]]]) -> Any:
    """The kernel of the pool whose windows these are; None: they overlap, or are not all of one size."""
    sizes = x.shape[-n:]
    if any(not w or size % len(w) for size, (_, w) in zip(sizes, windows)):
        return None
    return tuple(size // len(w) for size, (_, w) in zip(sizes, windows))


def _adaptive_avg_pool(n: int) -> Any:
    name, pool = f"adaptive_avg_pool{n}d", (avg_pool1d, avg_pool2d, avg_pool3d)[n - 1]

    def function(input: Tensor, output_size: Any) -> Tensor:
        x = input
        windows = _windows(name, n, x, output_size)
        if all(len(w) == 1 for _, w in windows):
            return T.mean(x, [dim for dim, _ in windows], True)
        kernel = _even(n, x, windows)
        if kernel and x.dtype.is_floating_point:
            return pool(x, kernel)
        for dim, each in windows:
            x = T.cat([T.mean(p, dim, True) for p in _pieces(x, dim, each)], dim) if each else T.narrow(x, dim, 0, 0)
        return x
    function.__name__ = name
    function.__doc__ = "Means of windows that give so many outputs."
    return function


def _adaptive_max_pool(n: int) -> Any:
    name, pool = f"adaptive_max_pool{n}d", (max_pool1d, max_pool2d, max_pool3d)[n - 1]

    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        x = input
        plane, windows = x.shape[-n:], _windows(name, n, x, output_size)
        kernel = _even(n, x, windows)
        if kernel and x.dtype.is_floating_point:
            return pool(x, kernel, return_indices=return_indices)
        places: Any = T.arange(math.prod(plane)).reshape(plane).expand(*x.shape) if return_indices else None
        for dim, each in reversed(windows):         # so that of equal maxima the first one counts
            if not each:
                x, places = T.narrow(x, dim, 0, 0), T.narrow(places, dim, 0, 0) if return_indices else None
                continue
            largest = [T.max(p, dim, True) for p in _pieces(x, dim, each)]
            if return_indices:
                places = T.cat([T.gather(p, dim, found[1]) for p, found in zip(_pieces(places, dim, each), largest)], dim)
            x = T.cat([found[0] for found in largest], dim)
        return (x, places) if return_indices else x
    function.__name__ = name
    function.__doc__ = "The largest elements of windows that give so many outputs; return_indices: and where they are in a plane."
    return function


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = _adaptive_avg_pool(1), _adaptive_avg_pool(2), _adaptive_avg_pool(3)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = _adaptive_max_pool(1), _adaptive_max_pool(2), _adaptive_max_pool(3)


def _lp_pool(n: int) -> Any:
    mean = (avg_pool1d, avg_pool2d, avg_pool3d)[n - 1]

    def function(input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False) -> Tensor:
        y = mean(input ** norm_type, kernel_size, stride, 0, ceil_mode)
        return (T.sign(y) * T.relu(T.abs(y)) * math.prod(many(kernel_size, n))) ** (1.0 / norm_type)
    function.__name__ = f"lp_pool{n}d"
    function.__doc__ = "The root of the sum of powers of each window."
    return function


lp_pool1d, lp_pool2d, lp_pool3d = _lp_pool(1), _lp_pool(2), _lp_pool(3)


def _max_unpool(n: int) -> Any:
    name = f"max_unpool{n}d"

    def function(input: Tensor, indices: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0,
                 output_size: Any = None) -> Tensor:
        if input.shape != indices.shape or input.ndim not in (n + 1, n + 2):
            raise _facula.ShapeError(f"{name}: maxima of shape {input.shape} with indices of shape {indices.shape}: the same shape of {n + 1} or {n + 2} dims "
                                     "was expected")
        steps = many(kernel_size if stride is None else stride, n)
        sizes = [(x - 1) * s - 2 * p + k for x, s, p, k in zip(input.shape[-n:], steps, many(padding, n), many(kernel_size, n))]
        if output_size is not None:
            wanted = [int(v) for v in output_size][-n:]
            if len(wanted) != n or any(abs(a - b) >= s for a, b, s in zip(wanted, sizes, steps)):
                raise ValueError(f"{name}: output_size {list(output_size)}: within a stride of {sizes} was expected")
            sizes = wanted
        lead = list(input.shape[:-n])
        flat = T.zeros(*lead, math.prod(sizes), dtype=input.dtype, device=input.device)
        y = T.scatter(flat, -1, indices.reshape([*lead, -1]), input.reshape([*lead, -1]))
        return y.reshape([*lead, *sizes])
    function.__name__ = name
    function.__doc__ = "The maxima of a pool back where its indices say, with zeros around them."
    return function


max_unpool1d, max_unpool2d, max_unpool3d = _max_unpool(1), _max_unpool(2), _max_unpool(3)
