"""Calls of torch as programs of facula: a list of calls becomes parts, each one program, or one call that torch computes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import _facula
from .aten.call import long, short
from .aten.indexing import meant
from .graph import Value


def shown(t: torch.Tensor, writable: bool = False, owner: Any = None) -> Any:
    """A facula Tensor over the memory of a tensor of torch's cpu."""
    if not t.numel():
        return _facula.Tensor([], dtype=short(t.dtype))._window(tuple(t.shape), (0,) * t.dim()) if t.dim() != 1 else \
            _facula.Tensor([], dtype=short(t.dtype))
    return _facula.lend(t.data_ptr(), short(t.dtype), t.shape, None if t.is_contiguous() else t.stride(), writable, owner)


def fresh(y: Value) -> torch.Tensor:
    return torch.empty(y.shape, dtype=long(y.dt))


class Bound:
    """A tensor that a program keeps: weights of torch's, packed once, anew when torch wrote to them."""

    def __init__(self, t: torch.Tensor) -> None:
        self.tensor, self.at, self.version, self.moves = shown(t, owner=t.detach()), t.data_ptr(), t._version, 0

    def fits(self, t: torch.Tensor) -> bool:
        """False: another tensor, the program is made anew."""
        if t.data_ptr() != self.at:
            return False
        if t._version != self.version:
            self.version = t._version
            self.moves += 1
            _facula.touch(self.tensor)
        return True


class Part:
    """One program: tensors of torch in, tensors of torch out."""

    def __init__(self, graph: Any, inputs: Sequence[Any], states: dict[Any, Bound], outputs: Sequence[tuple[Any, Value]], device: Any,
                 precision: str | None) -> None:
        self.inputs, self.states = list(inputs), states
        self.outputs = list(outputs)
        self.program = _facula.Program(graph, device, precision=precision)

    def run(self, of: Any) -> list[torch.Tensor]:
        """of(key): the tensor of an input."""
        held = [of(key) for key in self.inputs]
        out = [fresh(y) for _, y in self.outputs]
        into = [shown(t, writable=True) if t.numel() else None for t in out]
        try:
            self.program.run([shown(t) for t in held], into)
        except _facula.Error as error:
            raise type(error)(meant(str(error))) from None
        return out
