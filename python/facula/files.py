"""Tensors in files: .npy, .npz, .safetensors; PyTorch's .pth can be read."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from . import _facula
from ._facula import Tensor


def _tensor(value: Any) -> Tensor:
    t = value if isinstance(value, Tensor) else Tensor(value)
    return t.detach()


def save(what: Any, path: Any) -> None:
    """A tensor (.npy), a dictionary of tensors or a Module (.npz, else safetensors); anything else is pickled."""
    name = os.fspath(path)
    if hasattr(what, "state_dict"):
        what = what.state_dict()
    if isinstance(what, Tensor):
        _facula.save_weights("npy", name, {"": _tensor(what)})
        return
    if isinstance(what, Mapping) and all(isinstance(v, Tensor) or hasattr(v, "__array__") for v in what.values()):
        kind = "npz" if name.endswith(".npz") else "safetensors"
        _facula.save_weights(kind, name, {k: _tensor(v) for k, v in what.items()})
        return
    import pickle
    with open(name, "wb") as file:
        pickle.dump(what, file)


def load_weights(path: Any) -> dict[str, Tensor]:
    """Named tensors of a file: .npy, .npz, .safetensors, PyTorch's .pth and .pt."""
    try:
        return _facula.load_weights(os.fspath(path))
    except _facula.FormatError as why:
        if "pickle" not in str(why):
            raise
        raise _facula.FormatError(f"{why}; fac.load_saved reads what fac.save pickled") from None


def load(path: Any) -> Any:
    """What save() wrote, or a FormatError.  What was pickled runs code of the file: only of files that you trust."""
    name = os.fspath(path)
    try:
        got = load_weights(name)
    except _facula.FormatError:
        with open(name, "rb") as file:
            if file.read(1) != b"\x80":             # with which all begin that save() pickles
                raise
            file.seek(0)
            return _unpickled(file, name)
    if name.endswith(".npy"):
        return next(iter(got.values()))
    return got


def _unpickled(file: BinaryIO, name: str) -> Any:
    import pickle
    try:
        return pickle.load(file)
    except (pickle.UnpicklingError, EOFError) as why:
        raise _facula.FormatError(f"{name}: a pickle that is damaged or cut off: {why}") from None
