"""NumPy's spelling of arguments: axis for dim, keepdims for keepdim, as PyTorch takes them, too."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, MutableMapping
from typing import Any

_OTHER = {"axis": "dim", "keepdims": "keepdim"}


def _spelled(function: Callable[..., Any], other: dict[str, str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def either(*args: Any, **named: Any) -> Any:
        if named:
            for name, ours in other.items():
                if name in named:
                    if ours in named:
                        raise TypeError(f"{function.__name__}: {name} and {ours} are the same argument")
                    named[ours] = named.pop(name)
        return function(*args, **named)
    return either


def take_both(functions: MutableMapping[str, Any]) -> None:
    """Every function with a dim or a keepdim takes NumPy's name for it as well; inside the package they are called without."""
    for name, function in list(functions.items()):
        if not inspect.isfunction(function) or name.startswith("_"):
            continue
        own = inspect.signature(function).parameters
        other = {theirs: ours for theirs, ours in _OTHER.items() if ours in own and theirs not in own}
        if other:
            functions[name] = _spelled(function, other)
