"""Element types, with the names of NumPy and PyTorch, and how two of them meet."""
from __future__ import annotations

from typing import Any, Final

from . import _facula


class dtype:
    """An element type.  There is one object for each; compare them with ``is`` or ``==``."""

    __slots__ = ("code", "short", "name", "kind", "itemsize")

    def __init__(self, code: int, short: str, name: str, kind: str, itemsize: int) -> None:
        self.code = code
        self.short = short
        self.name = name
        self.kind = kind
        self.itemsize = itemsize

    def __repr__(self) -> str:
        return f"facula.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (find, (self.name,))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dtype):
            return self is other
        if isinstance(other, str):
            return _elsewhere.get(other, other) in (self.name, self.short)
        name = getattr(other, "name", None)
        return isinstance(name, str) and _elsewhere.get(name, name) == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def is_floating_point(self) -> bool:
        return self.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.kind in "fi"


_kinds = {"f": "float", "i": "int", "u": "uint", "b": "bool", "t": "text"}


def _long(short: str, kind: str) -> str:
    """"f32" is "float32", as NumPy has it; types of blocks keep facula's names."""
    if short in ("bf16", "bool", "bit", "text"):
        return "bfloat16" if short == "bf16" else short
    return _kinds[kind] + short[1:] if short[1:].isdigit() and kind in "fiu" else short


_all = [dtype(code, short, _long(short, kind), kind, size if elements == 1 else 0)
        for code, (short, kind, elements, size, _) in enumerate(_facula.dtype_rows())]
_facula.set_dtypes(_all)
# what ml_dtypes calls the types that NumPy has from there alone, and types that have facula's own names here (PyTorch's are the same)
_apart = {d: row[4] for d, row in zip(_all, _facula.dtype_rows()) if row[4]}
_elsewhere = {other: d.name for d, other in _apart.items() if other != d.name}
_by_name = {d.name: d for d in _all} | {d.short: d for d in _all}
_by_name |= {other: _by_name[name] for other, name in _elsewhere.items()}

float32: Final = _by_name["float32"]
float64: Final = _by_name["float64"]
float16: Final = _by_name["float16"]
bfloat16: Final = _by_name["bfloat16"]
int8: Final = _by_name["int8"]
int16: Final = _by_name["int16"]
int32: Final = _by_name["int32"]
int64: Final = _by_name["int64"]
uint8: Final = _by_name["uint8"]
uint16: Final = _by_name["uint16"]
uint32: Final = _by_name["uint32"]
uint64: Final = _by_name["uint64"]
bool_: Final = _by_name["bool"]
text: Final = _by_name["text"]


def is_apart(d: dtype) -> bool:
    """Is it a type that NumPy has from ml_dtypes alone?"""
    return d in _apart


def added(d: dtype) -> Any:
    """ml_dtypes' type for such a one."""
    import ml_dtypes
    return getattr(ml_dtypes, _apart[d])


_default = [float32]


def is_name(word: str) -> bool:
    """Is it the name of a dtype?"""
    return word in _by_name


def find(like: Any) -> dtype:
    """The dtype of a name, of NumPy's dtype or of a Python class (float, int, bool)."""
    if isinstance(like, dtype):
        return like
    if like is float:
        return _default[0]
    if like is int:
        return int64
    if like is bool:
        return bool_
    name = like if isinstance(like, str) else getattr(like, "name", getattr(like, "__name__", ""))
    if name in _by_name:
        return _by_name[name]
    raise TypeError(f"no dtype: {like!r}")


def get_default_dtype() -> dtype:
    """What floats of Python become: float32 unless it was set."""
    return _default[0]


def set_default_dtype(like: Any) -> None:
    """float32 or float64 for floats of Python."""
    d = find(like)
    if not d.is_floating_point:
        raise TypeError(f"the default dtype has to be a floating-point one, not {d}")
    _default[0] = d


_floats = {float16: 1, bfloat16: 1, float32: 2, float64: 3}


def _ints(a: dtype, b: dtype) -> dtype:
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    wider = {1: int16, 2: int32, 4: int64}.get(unsigned.itemsize)
    if wider is None:
        raise TypeError(f"{signed} and {unsigned} have no common integer type: cast one of them")
    return wider


def promote_types(one: Any, other: Any) -> dtype:
    """The dtype of a result of two: floats before integers before bool, then the wider one."""
    a, b = find(one), find(other)
    if a is b:
        return a
    if "t" in (a.kind, b.kind):
        raise TypeError(f"{a} and {b} have no common type")
    if a.kind == "b":
        return b
    if b.kind == "b":
        return a
    if a.kind == "f" and b.kind == "f":
        if _floats[a] == _floats[b]:
            return float32
        return a if _floats[a] > _floats[b] else b
    if a.kind == "f":
        return a
    if b.kind == "f":
        return b
    return _ints(a, b)


def result_type(*operands: Any) -> dtype:
    """The same for tensors, dtypes and numbers of Python, which are weak: 1.5 * float16 is float16."""
    strong: dtype | None = None
    weak = ""
    for o in operands:
        if isinstance(o, (bool, int, float)):
            kind = "b" if isinstance(o, bool) else "i" if isinstance(o, int) else "f"
            weak = max(weak, kind, key="bif".find) if weak else kind
            continue
        d = o if isinstance(o, dtype) else o.dtype if hasattr(o, "dtype") else find(o)
        d = find(d)
        strong = d if strong is None else promote_types(strong, d)
    order = {"b": 0, "u": 1, "i": 1, "f": 2}
    of_weak = {"b": bool_, "i": int64, "f": _default[0]}
    if strong is None:
        return of_weak[weak or "f"]
    if weak and order[weak] > order.get(strong.kind, 3):
        return of_weak[weak]
    return strong
