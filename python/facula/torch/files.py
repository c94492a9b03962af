"""Pickles and torch.save's older form of tensors of device "ocl": torch writes a storage's memory to them and reads it from them, here by
a storage of the host."""
from __future__ import annotations

import functools
from typing import Any

import torch


def keep() -> None:
    """From now on, for every storage."""
    write, read = torch.UntypedStorage._write_file, torch.UntypedStorage._set_from_file

    @functools.wraps(write)
    def _write_file(self: torch.UntypedStorage, *args: Any) -> Any:
        return write(self.cpu() if self.device.type == "ocl" else self, *args)

    @functools.wraps(read)
    def _set_from_file(self: torch.UntypedStorage, *args: Any) -> Any:
        if self.device.type != "ocl":
            return read(self, *args)
        host = torch.UntypedStorage(self.nbytes())
        read(host, *args)
        self.copy_(host)
        return self
    torch.UntypedStorage._write_file = _write_file          # type: ignore[method-assign]
    torch.UntypedStorage._set_from_file = _set_from_file    # type: ignore[method-assign]
