"""Well-known networks, with torchvision's names of parameters.

    >>> fac.zoo.resnet18(weights="resnet18.safetensors").classify("cat.jpg", top=5)

weights: a file (.safetensors, .pth, .npz); without it they are random, drawn from the seed.
"""
from __future__ import annotations

from typing import Any

from . import _facula
from .model import Model, _path
from .tables import Table

_models = {m["name"]: m for m in _facula.zoo_models()}


def build(name: str, weights: Any = None, *, seed: int = 0, device: Any = None, precision: str | None = None) -> Model:
    """The network of this name."""
    about = _models.get(name.split("?")[0])
    if about is None:
        raise _facula.ArgumentError(f"there is no network {name!r} in the zoo: {', '.join(_models)}")
    graph = _facula.zoo_new(name, _path(weights) if weights is not None else "", seed)
    _, height, width = about["shape"]
    return Model(graph, device, precision, name, about["preset"], (height, width))


def names() -> list[str]:
    """The networks that can be built."""
    return list(_models)


def models() -> Table:
    """The networks: input, classes, what they are."""
    return Table([{k: m[k] for k in ("name", "shape", "classes", "preset", "help")} for m in _models.values()])


def __getattr__(name: str) -> Any:
    if name not in _models:
        raise AttributeError(f"there is no network {name!r} in the zoo: {', '.join(_models)}")

    def function(weights: Any = None, **options: Any) -> Model:
        return build(name, weights, **options)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _models[name]["help"]
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return [*_models, "build", "models", "names"]
