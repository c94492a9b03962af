"""Other shapes, joining and cutting."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import shapes as s
from .._facula import ShapeError, Tensor
from ..create import axes_of, axis_of

_Axes = int | Sequence[int] | None


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """All of one shape."""
    return s.broadcast_tensors(*arrays)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that shapes have together."""
    return s.broadcast_shapes(*shapes)


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """x with dims of size 1 repeated to a shape."""
    return s.expand(x, tuple(shape))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays joined along an axis; None: all of them flat."""
    if axis is None:
        return s.cat([s.reshape(a, -1) if a.ndim != 1 else a for a in arrays], 0)
    return s.cat(list(arrays), axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """With dims of size 1 at these places of the result."""
    places = (axis,) if isinstance(axis, int) else tuple(axis)
    ndim = x.ndim + len(places)
    for at in sorted(axes_of(places, ndim)):
        x = s.unsqueeze(x, at)
    return x


def flip(x: Tensor, /, *, axis: _Axes = None) -> Tensor:
    """Elements in reverse order along axes."""
    return s.flip(x, axis)


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Axes moved to other places."""
    return s.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Dims in another order."""
    return s.permute(x, axes)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element so many times, one after the other."""
    return s.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The same elements with other sizes; one may be -1."""
    y = s.reshape(x, shape)
    return y.clone() if copy else y


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: _Axes = None) -> Tensor:
    """Elements move along axes, those that leave come in again."""
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return s.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Without these dims, which have size 1."""
    for a in axes_of(axis, x.ndim):
        if x.shape[a] != 1:
            raise ShapeError(f"squeeze: axis {a} of shape {x.shape} has not size 1")
    return s.squeeze(x, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape joined along a new axis."""
    return s.stack(list(arrays), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """x repeated so many times along each axis."""
    return s.tile(x, tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    return s.unbind(x, axis_of(axis, x.ndim))
