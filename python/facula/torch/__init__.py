"""facula under PyTorch: `torch.compile(model, backend="facula")`.

    >>> import torch, facula.torch                                      # doctest: +SKIP
    >>> fast = torch.compile(model, backend="facula")                   # doctest: +SKIP
    >>> facula.torch.explain()                                          # doctest: +SKIP
"""
try:
    import torch as _torch
except ImportError as error:            # pragma: no cover
    raise ImportError("facula.torch needs PyTorch 2.11 or later (pip install torch)") from error

import os as _os
import warnings as _warnings
from typing import Any as _Any

from . import device as _device
from .build import BuildError, build
from .compile import backend, register, share_threads
from .layers import ocl_conv2d, ocl_matmul, swap, unswap
from .notes import Explanation, FallbackError, explain, strict

share_threads()
register()



def devices() -> list[str]:
    """What ocl:0, ocl:1, ... are."""
    return _device.device_names()


def _load() -> _Any:
    """Device "ocl"; a compiler that is missing is no error before somebody asks for it."""
    if _os.environ.get("FACULA_TORCH_DEVICES") == "none":
        return None
    try:
        return _device.load()
    except BuildError as error:
        _warnings.warn(f"device 'ocl' is not there: {error}", stacklevel=3)
        return None


ocl = _load()

__all__ = ["BuildError", "Explanation", "FallbackError", "backend", "build", "devices", "explain", "ocl", "ocl_conv2d", "ocl_matmul",
           "strict", "swap", "unswap"]
