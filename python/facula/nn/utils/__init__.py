"""Gradients kept within bounds; parameters as one vector."""
from __future__ import annotations

import math
from collections.abc import Iterable

from ... import functional as T
from ..._facula import Tensor
from ...autograd import no_grad
from . import rnn as rnn


@no_grad()
def clip_grad_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scales gradients so that all of them together have this norm at most; what it was."""
    ps = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [p.grad for p in ps if p.grad is not None]
    if not grads:
        return T.zeros(())
    total = T.norm(T.stack([T.norm(g, norm_type) for g in grads]), norm_type)
    share = T.clamp(max_norm / (total + 1e-6), max=1.0)
    for p in ps:
        if p.grad is not None:
            p.grad = p.grad * share
    return total


@no_grad()
def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Cuts each number of the gradients to -clip_value..clip_value."""
    for p in [parameters] if isinstance(parameters, Tensor) else parameters:
        if p.grad is not None:
            p.grad = T.clamp(p.grad, -clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Parameters one after the other, as one vector."""
    return T.cat([p.reshape(-1) for p in parameters])


@no_grad()
def vector_to_parameters(vector: Tensor, parameters: Iterable[Tensor]) -> None:
    """A vector back into parameters, in place."""
    at = 0
    for p in parameters:
        n = math.prod(p.shape)
        p.copy_(vector[at:at + n].reshape(p.shape))
        at += n
