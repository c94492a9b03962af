"""Parameters that several modules share stay shared when a model goes to device "ocl" or comes back: between it and the cpu torch makes
a new parameter for each module that has one, where for cuda it gives the old one new contents."""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

_within = threading.local()


def _shared(model: torch.nn.Module) -> list[list[tuple[torch.nn.Module, str]]]:
    """Modules and names, by parameter, of those that more than one has."""
    where: dict[int, list[tuple[torch.nn.Module, str]]] = {}
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is not None:
                where.setdefault(id(p), []).append((module, name))
    return [places for places in where.values() if len(places) > 1]


def keep() -> None:
    """From now on, for every module."""
    plain = torch.nn.Module._apply

    @functools.wraps(plain)
    def _apply(self: torch.nn.Module, fn: Callable[..., Any], recurse: bool = True) -> torch.nn.Module:
        if getattr(_within, "on", False):               # a part of a model that is on its way
            return plain(self, fn, recurse)
        shared, _within.on = _shared(self), True
        try:
            out = plain(self, fn, recurse)
        finally:
            _within.on = False
        for (first, name), *rest in shared:
            for module, other in rest:
                module._parameters[other] = first._parameters[name]
        return out
    torch.nn.Module._apply = _apply                     # type: ignore[method-assign]
