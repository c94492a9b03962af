"""Sequences of different lengths as one tensor."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import functional as T
from ..._facula import ShapeError, Tensor
from .. import functional as F


def pad_sequence(sequences: Sequence[Tensor] | Tensor, batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Sequences side by side, [longest, how many, ...] (batch_first: [how many, longest, ...]), filled up with a value."""
    if padding_side not in ("right", "left"):
        raise ValueError(f"pad_sequence: padding_side is 'right' or 'left', not {padding_side!r}")
    every = list(sequences)
    if not every:
        raise ValueError("pad_sequence: no sequences")
    if any(x.ndim < 1 or x.shape[1:] != every[0].shape[1:] for x in every):
        raise ShapeError(f"pad_sequence: sequences may differ in their first dim only, not {', '.join(str(x.shape) for x in every)}")
    longest = max(x.shape[0] for x in every)
    rows = []
    for x in every:
        more = longest - x.shape[0]
        ends = (0, more) if padding_side == "right" else (more, 0)
        rows.append(F.pad(x, (0, 0) * (x.ndim - 1) + ends, value=padding_value) if more else x)
    return T.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences that pad_sequence put side by side, by their lengths."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [rows[i, :int(n)] for i, n in enumerate(lengths)]
