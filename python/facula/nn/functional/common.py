"""Arguments that are a number or one for each dim."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any


Size = int | Sequence[int]


def many(value: Size, n: int) -> list[int]:
    """One number for each dim."""
    return [value] * n if isinstance(value, int) else [int(v) for v in value]


def fixed(value: Any) -> Any:
    """What may be a key: sizes as a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _words(**attributes: Any) -> str:
    def text(v: Any) -> str:
        return ",".join(map(str, v)) if isinstance(v, (list, tuple)) else str(int(v) if isinstance(v, bool) else v)
    return " ".join(f"{k}={text(v)}" for k, v in attributes.items() if v is not None)
