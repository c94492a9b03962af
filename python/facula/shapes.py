"""Other shapes, joining and cutting."""
from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _facula
from ._facula import Tensor, apply
from .changing import varying as _varying
from .dtypes import int64, result_type
from .promote import cast, reshape as _reshape
from .create import axes_of, axis_of, as_tensor, ints, zeros, Dims, _shape_args


def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same elements with other sizes; one may be -1."""
    sizes = _shape_args(shape)
    if sizes.count(-1) > 1 or builtins.any(n < -1 for n in sizes):
        raise _facula.ShapeError(f"reshape to {tuple(sizes)}: sizes are 0 or more, and one may be -1")
    if -1 in sizes:
        known = math.prod(n for n in sizes if n >= 0)
        count = math.prod(input.shape)
        if not known or count % known:
            raise _facula.ShapeError(f"shape {input.shape} has {count} elements and cannot become {tuple(sizes)}")
        sizes[sizes.index(-1)] = count // known
    if math.prod(sizes) != math.prod(input.shape):
        raise _facula.ShapeError(f"shape {input.shape} has {math.prod(input.shape)} elements and cannot become {tuple(sizes)}")
    return _reshape(input, sizes)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dims from start to end become one."""
    if not input.ndim:
        axis_of(start_dim, 0), axis_of(end_dim, 0)
        return _reshape(input, [1])
    a, b = axis_of(start_dim, input.ndim), axis_of(end_dim, input.ndim)
    if a > b:
        raise _facula.ShapeError(f"flatten: dim {start_dim} comes after dim {end_dim} (shape {input.shape})")
    if a == 1 and b == input.ndim - 1:
        return apply("flatten", "axis=1", 0, input)
    return _reshape(input, [*input.shape[:a], math.prod(input.shape[a:b + 1]), *input.shape[b + 1:]])


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A dim becomes several."""
    if not input.ndim:
        raise IndexError("unflatten: a tensor without dims has none to become several")
    a = axis_of(dim, input.ndim)
    known, n = math.prod(s for s in sizes if s >= 0), input.shape[a]
    open_ = sum(s < 0 for s in sizes)
    if open_ > 1 or (known != n if not open_ else not known or n % known):
        raise _facula.ShapeError(f"unflatten: dim {dim} of size {n} cannot become {tuple(sizes)}")
    return _reshape(input, [*input.shape[:a], *(s if s >= 0 else n // known for s in sizes), *input.shape[a + 1:]])


def squeeze(input: Tensor, dim: Dims = None) -> Tensor:
    """Without dims of size 1."""
    axes = axes_of(dim, input.ndim)
    gone = {a for a in axes if input.shape[a] == 1}
    return _reshape(input, [n for a, n in enumerate(input.shape) if a not in gone]) if gone else input


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a dim of size 1 at this place."""
    a = axis_of(dim, input.ndim + 1)
    return apply("unsqueeze", None, 0, input, ints([a]))


def permute(input: Tensor, *dims: Any) -> Tensor:
    """Dims in another order."""
    order = axes_of(_shape_args(dims), input.ndim)
    if len(order) != input.ndim:
        raise _facula.ShapeError(f"permute: {len(order)} dims for a tensor of {input.ndim}")
    return apply("transpose", f"perm={','.join(map(str, order))}", 0, input) if input.ndim else input


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dims change places."""
    order = list(range(input.ndim))
    if not order:
        return input
    a, b = axis_of(dim0, input.ndim), axis_of(dim1, input.ndim)
    order[a], order[b] = order[b], order[a]
    return permute(input, order)


swapaxes = transpose


def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Dims move to other places, the others keep their order."""
    at, to = axes_of(source, input.ndim), axes_of(destination, input.ndim)
    order = [a for a in range(input.ndim) if a not in at]
    for place, axis in sorted(zip(to, at)):
        order.insert(place, axis)
    return permute(input, order)


moveaxis = movedim


def expand(input: Tensor, *shape: Any) -> Tensor:
    """Dims of size 1 repeated up to these sizes; -1 keeps one."""
    sizes = _shape_args(shape)
    lead = len(sizes) - input.ndim
    if lead < 0:
        raise _facula.ShapeError(f"a tensor of shape {input.shape} cannot be expanded to {len(sizes)} dims")
    full = [input.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(sizes)]
    for i, n in enumerate(full):
        if i >= lead and input.shape[i - lead] not in (1, n):
            raise _facula.ShapeError(f"shape {input.shape} cannot be expanded to {tuple(sizes)}")
    return apply("expand", None, 0, input, ints(full)) if tuple(full) != input.shape else input


broadcast_to = expand


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that shapes have together."""
    return tuple(np.broadcast_shapes(*[tuple(s) for s in shapes]))


def broadcast_tensors(*tensors: Tensor) -> list[Tensor]:
    """Tensors with the shape that they have together."""
    shape = broadcast_shapes(*[t.shape for t in tensors])
    return [expand(t, shape) for t in tensors]


def repeat(x: Tensor, *repeats: Any) -> Tensor:
    """x repeated so many times along each dim, all of which are said."""
    times = _shape_args(repeats)
    if len(times) < x.ndim:
        raise _facula.ShapeError(f"repeat: {len(times)} numbers for a tensor of {x.ndim} dims; tile takes fewer")
    return tile(x, times)


def tile(input: Tensor, *repeats: Any) -> Tensor:
    """input repeated so many times along each dim."""
    times = _shape_args(repeats)
    lead = len(times) - input.ndim
    if lead > 0:
        input = _reshape(input, [1] * lead + list(input.shape))
    times = [1] * (input.ndim - len(times)) + times
    return apply("tile", None, 0, input, ints(times)) if times else input


def repeat_interleave(input: Tensor, repeats: int | Tensor, dim: int | None = None) -> Tensor:
    """Each element so many times, one after the other; of a tensor: a number for each slice."""
    if dim is None:
        input, dim = _reshape(input, [-1] if math.prod(input.shape) else [0]), 0
    a = axis_of(dim, input.ndim)
    if isinstance(repeats, Tensor) and math.prod(repeats.shape) != 1:
        if repeats.shape != (input.shape[a],):
            raise _facula.ShapeError(f"repeats of shape {repeats.shape} for a dim of size {input.shape[a]}")
        places = np.repeat(np.arange(input.shape[a]), np.asarray(repeats.detach()))
        return apply("gather", f"axis={a}", 0, input, Tensor(places, dtype="int64"))
    repeats = int(repeats)
    wide = expand(unsqueeze(input, a + 1), *input.shape[:a + 1], repeats, *input.shape[a + 1:])
    return reshape(wide, *input.shape[:a], -1 if math.prod(input.shape) else input.shape[a] * repeats, *input.shape[a + 1:])


_MOST = 32


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along a dim; the other dims are equal."""
    if not tensors:
        raise ValueError("cat of no tensors")
    list_of = [as_tensor(t) for t in tensors]
    common = result_type(*list_of)
    list_of = [cast(t, common) for t in list_of]
    axis = axis_of(dim, list_of[0].ndim)
    while len(list_of) > 1:
        groups = [list_of[i:i + _MOST] for i in range(0, len(list_of), _MOST)]
        list_of = [apply("concat", f"axis={axis}", 0, *g) if len(g) > 1 else g[0] for g in groups]
    return list_of[0]


concat = concatenate = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dim."""
    list_of = [as_tensor(t) for t in tensors]
    if not list_of:
        raise ValueError("stack of no tensors")
    if len({t.shape for t in list_of}) > 1:
        raise _facula.ShapeError(f"stack: shapes differ: {sorted({t.shape for t in list_of})}")
    return cat([unsqueeze(t, dim) for t in list_of], axis_of(dim, list_of[0].ndim + 1))


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of this size, or of these sizes, along a dim."""
    a = axis_of(dim, tensor.ndim)
    if isinstance(split_size_or_sections, int):
        sizes = [builtins.min(split_size_or_sections, tensor.shape[a] - i) for i in range(0, tensor.shape[a], split_size_or_sections)] or [0]
    else:
        sizes = list(split_size_or_sections)
    if builtins.sum(sizes) != tensor.shape[a]:
        raise _facula.ShapeError(f"split: sizes {sizes} do not add up to {tensor.shape[a]}")
    ends = np.cumsum([0, *sizes]).tolist()
    key = (slice(None),) * a
    return tuple(tensor[(*key, slice(b, e))] for b, e in zip(ends, ends[1:]))


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """So many pieces along a dim, the last one may be smaller."""
    if chunks < 1:
        raise ValueError(f"chunk: {chunks} pieces")
    n = input.shape[axis_of(dim, input.ndim)]
    return split(input, builtins.max(-(-n // chunks), 1), dim) if n else (input,) * chunks


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dim."""
    a = axis_of(dim, input.ndim)
    return tuple(input[(slice(None),) * a + (i,)] for i in range(input.shape[a]))


def flip(input: Tensor, dims: Dims = None) -> Tensor:
    """Dims run backwards."""
    axes = set(axes_of(dims, input.ndim))
    return input[tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(input.ndim))] if axes else input


def roll(input: Tensor, shifts: int | Sequence[int], dims: Dims = None) -> Tensor:
    """Elements move along dims, those that leave come in again."""
    if dims is None:
        if not isinstance(shifts, int):
            raise ValueError("roll: several shifts need as many dims")
        return _reshape(roll(_reshape(input, [-1]), shifts, 0), input.shape)
    moves = [shifts] if isinstance(shifts, int) else list(shifts)
    axes = [dims] if isinstance(dims, int) else list(dims)
    if len(moves) != len(axes):
        raise ValueError(f"roll: {len(moves)} shifts for {len(axes)} dims")
    for n, d in zip(moves, axes):
        a = axis_of(d, input.ndim)
        size = input.shape[a]
        if size and n % size:
            key = (slice(None),) * a
            if _varying(("roll", input.shape, a), (n % size,)):
                input = apply("gather", f"axis={a}", 0, input, Tensor((np.arange(size) - n) % size))
                continue
            input = cat([input[(*key, slice(size - n % size, None))], input[(*key, slice(0, size - n % size))]], a)
    return input


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """(before, after) of the last dim, then of the one before it...; modes constant, reflect, replicate, circular."""
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise _facula.ShapeError(f"pad: {len(pad)} numbers for a tensor of {input.ndim} dims: two a dim were expected")
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    before, after = [0] * input.ndim, [0] * input.ndim
    for k, (b, a) in enumerate(pairs):
        before[input.ndim - 1 - k], after[input.ndim - 1 - k] = b, a
    how = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}.get(mode)
    if how is None:
        raise ValueError(f"pad: mode is constant, reflect, replicate or circular, not {mode!r}")
    fill = [Tensor(value, dtype=input.dtype)] if mode == "constant" else []
    return apply("pad", f"mode={how}", 0, input, ints(before + after), *fill)


def _trilu(x: Tensor, diagonal: int, lower: bool) -> Tensor:
    if _varying(("trilu", x.shape, lower), (diagonal,)):
        cut = np.tri(x.shape[-2], x.shape[-1], diagonal - (not lower), dtype=bool)
        return apply("where", None, 0, Tensor(cut if lower else ~cut), x, zeros((), dtype=x.dtype))
    return apply("trilu", f"lower={int(lower)}", 0, x, Tensor(diagonal, dtype="int64"))


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Zeros above a diagonal of the last two dims."""
    return _trilu(input, diagonal, True)


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Zeros below a diagonal of the last two dims."""
    return _trilu(input, diagonal, False)


def meshgrid(*tensors: Tensor, indexing: str = "ij") -> list[Tensor]:
    """The coordinates of a grid, a tensor for each axis: all have the shape of the grid, in "xy" with the first two axes swapped."""
    if builtins.any(t.ndim > 1 for t in tensors):
        raise _facula.ShapeError(f"meshgrid: vectors were expected, not shapes {[t.shape for t in tensors]}")
    if indexing not in ("ij", "xy"):
        raise ValueError(f'meshgrid: indexing is "ij" or "xy", not {indexing!r}')
    sizes = [t._count for t in tensors]
    grids = [expand(_reshape(t, [-1 if k == i else 1 for k in range(len(sizes))]), sizes) for i, t in enumerate(tensors)]
    return [transpose(g, 0, 1) for g in grids] if indexing == "xy" and len(sizes) > 1 else grids
