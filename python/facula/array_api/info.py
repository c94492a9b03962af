"""What dtypes are, and what this namespace can do."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes as d
from .._facula import Device, Tensor
from ..promote import cast

_kinds: dict[str, tuple[d.dtype, ...]] = {
    "bool": (d.bool_,),
    "signed integer": (d.int8, d.int16, d.int32, d.int64),
    "unsigned integer": (d.uint8, d.uint16, d.uint32, d.uint64),
    "real floating": (d.float32, d.float64),
    "complex floating": (),
}
_kinds["integral"] = _kinds["signed integer"] + _kinds["unsigned integer"]
_kinds["numeric"] = _kinds["integral"] + _kinds["real floating"]


def _of_kind(kind: Any) -> tuple[d.dtype, ...]:
    if isinstance(kind, tuple):
        return tuple(t for k in kind for t in _of_kind(k))
    if kind not in _kinds:
        raise ValueError(f"no kind of dtypes: {kind!r}; there are {', '.join(_kinds)}")
    return _kinds[kind]


class _Finfo(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: d.dtype


class _Iinfo(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: d.dtype


def _dtype_of(what: Any) -> d.dtype:
    return what.dtype if isinstance(what, Tensor) else d.find(what)


def finfo(type: Any, /) -> _Finfo:
    """Limits of a floating-point dtype."""
    dtype = _dtype_of(type)
    if dtype is d.bfloat16:
        return _Finfo(16, 2.0 ** -7, (2 - 2.0 ** -7) * 2.0 ** 127, -(2 - 2.0 ** -7) * 2.0 ** 127, 2.0 ** -126, dtype)
    if dtype not in (d.float16, d.float32, d.float64):
        raise TypeError(f"finfo of {dtype}: a floating-point dtype was expected")
    i = np.finfo(dtype.name)
    return _Finfo(i.bits, float(i.eps), float(i.max), float(i.min), float(i.smallest_normal), dtype)


def iinfo(type: Any, /) -> _Iinfo:
    """Limits of an integer dtype."""
    dtype = _dtype_of(type)
    if dtype.kind not in "iu":
        raise TypeError(f"iinfo of {dtype}: an integer dtype was expected")
    i = np.iinfo(dtype.name)
    return _Iinfo(i.bits, int(i.max), int(i.min), dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Is the dtype this one, or of this kind ("bool", "integral", "numeric"...)?"""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        return d.find(dtype) in _of_kind(kind)
    return d.find(dtype) is d.find(kind)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Does promotion turn the one into the other?"""
    to = d.find(to)
    try:
        return d.promote_types(_dtype_of(from_), to) is to
    except TypeError:
        return False


def result_type(*arrays_and_dtypes: Any) -> d.dtype:
    """The dtype that these have together; numbers of Python are weak."""
    if not arrays_and_dtypes:
        raise ValueError("result_type of nothing")
    return d.result_type(*arrays_and_dtypes)


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x as another dtype."""
    y = cast(x, d.find(dtype))
    y = y.clone() if copy and y is x else y
    return y if device is None else y.to(device=device)


class _Info:
    """What the standard lets a program ask."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> Device:
        return self.devices()[0]

    def default_dtypes(self, *, device: Any = None) -> dict[str, d.dtype]:
        return {"real floating": d.get_default_dtype(), "integral": d.int64, "indexing": d.int64}

    def devices(self) -> list[Device]:
        return [Device("cpu")]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> Mapping[str, d.dtype]:
        of = _kinds["bool"] + _kinds["numeric"] if kind is None else _of_kind(kind)
        return {t.name: t for t in of}


def __array_namespace_info__() -> _Info:
    return _Info()


def _namespace_of(x: Tensor, /, *, api_version: str | None = None) -> Any:
    """facula.array_api."""
    import facula.array_api as xp
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"array API {api_version!r}: 2021.12 to 2024.12 are known")
    return xp


setattr(Tensor, "__array_namespace__", _namespace_of)
