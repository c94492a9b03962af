"""facula under PyTorch: `torch.compile(model, backend="facula")`.

    >>> import torch, facula.torch                                      # doctest: +SKIP
    >>> fast = torch.compile(model, backend="facula")                   # doctest: +SKIP
    >>> facula.torch.explain()                                          # doctest: +SKIP
"""
try:
    import torch as _torch
except ImportError as error:            # pragma: no cover
    raise ImportError("facula.torch needs PyTorch 2.11 or later (pip install torch)") from error

from .compile import backend, register, share_threads
from .notes import Explanation, FallbackError, explain, strict

share_threads()
register()

__all__ = ["Explanation", "FallbackError", "backend", "explain", "strict"]
