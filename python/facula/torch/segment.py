"""From a recorded segment to programs: called by the shim when it meets a segment for the first time.

The segment is a list of calls on states (storages).  Reading a state through a view is a window on its newest value,
writing makes a new value of the whole state, so views and writes in place need nothing else.  A call without a row
ends a program and is computed by torch on the host, then the next program begins."""
from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import torch

from .. import _facula
from ..dtypes import find
from .aten import rows
from .aten.call import write as write_row
from .aten.shapes import assign, plain_strides, window
from .graph import Graph, Late, Refused, Value, kind, width

_DTYPES = {0: "u8", 1: "i8", 2: "i16", 3: "i32", 4: "i64", 5: "f16", 6: "f32", 7: "f64", 11: "bool", 15: "bf16"}


def _dt(code: int) -> str:
    if code not in _DTYPES:
        raise Refused("complex or unusual elements")
    return _DTYPES[code]


# ---- names -----------------------------------------------------------------------------------------------------

_SPELLED = {"normal_": "normal_functional", "bernoulli_.float": "bernoulli.p", "fill_.Scalar": "fill.Scalar",
            "fill_.Tensor": "fill.Tensor", "zero_": "zero", "copy_": "copy", "uniform_": "uniform"}
_known: dict[str, tuple[str | None, int]] = {}


def row_of(op: str) -> tuple[str | None, int]:
    """The row of an overload that writes or not, and how many of its arguments are results (out=)."""
    if op not in _known:
        _known[op] = _find(op.removeprefix("aten::"))
    return _known[op]


def _find(name: str) -> tuple[str | None, int]:
    if name in rows:
        return name, 0
    if name in _SPELLED:
        return _SPELLED[name], 0
    base, _, tail = name.partition(".")
    if base.endswith("_") and not base.endswith("__"):
        plain = base[:-1] + (f".{tail}" if tail else "")
        return (plain if plain in rows else None), 0
    return _of_out(base, tail)


def _of_out(base: str, tail: str) -> tuple[str | None, int]:
    packet = getattr(torch.ops.aten, base, None)
    if packet is None or not tail:
        return None, 0
    arguments = getattr(packet, tail)._schema.arguments
    outs = [a for a in arguments if a.is_out]
    rest = [(a.name, str(a.type)) for a in arguments if not a.is_out]
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        name = base if overload == "default" else f"{base}.{overload}"
        mine = [(a.name, str(a.type)) for a in schema.arguments]
        if outs and name in rows and mine[:len(rest)] == rest and not schema.is_mutable:
            return name, len(outs)
    return None, 0


# ---- one program -----------------------------------------------------------------------------------------------


class _Varies(Exception):
    """A row needs a number as a constant."""


class Piece:
    """Calls that become one program."""

    def __init__(self, segment: dict[str, Any], host_double: bool) -> None:
        self.segment, self.g = segment, Graph()
        self.float_dt = "f64" if host_double else "f32"
        self.now: dict[int, Value] = {}             # the newest value of a state
        self.ports: list[tuple[int, int, str, tuple[int, ...]]] = []
        self.leaves: dict[int, Value] = {}
        self.numbers: dict[int, Value] = {}
        self.written: set[int] = set()
        self.bound: dict[int, bool] = {}
        self.calls: list[int] = []
        self.fixed: set[int] = set()
        self.poisoned = False

    # -- states

    def count(self, slot: int, dt: str) -> int:
        return int(self.segment["states"][slot][0]) // width(dt)

    def covers(self, ref: dict[str, Any], dt: str) -> list[int] | None:
        """The order of dims in which a view is the whole state, in order."""
        sizes, strides = ref["z"], ref["s"]
        if ref["o"] or math.prod(sizes) != self.count(ref["t"], dt):
            return None
        order = sorted(range(len(sizes)), key=lambda i: (-strides[i], -sizes[i]))
        want = plain_strides([sizes[i] for i in order])
        dense = all(sizes[i] == 1 or strides[i] == w for i, w in zip(order, want))
        return order if dense else None

    def leaf(self, ref: dict[str, Any], dt: str) -> Value:
        slot = ref["t"]
        order = self.covers(ref, dt)
        n = self.count(slot, dt)
        shape = tuple(ref["z"][i] for i in order) if order is not None and len(order) <= 8 else (n,)
        address = self.segment["bind"].get(str(slot))
        if address is not None:
            steps = plain_strides(shape)
            v = self.g.state(f"s{slot}", _facula.wrap(address)._window(shape, steps))
            self.bound[slot] = False
        else:
            v = self.g.input(f"x{slot}", dt, shape)
            self.ports.append((0, slot, dt, shape))
        self.leaves[slot] = v
        return v

    def read(self, ref: dict[str, Any]) -> Value:
        """A view of a state.  One that no earlier call wrote becomes an input when a row asks for its value: `copy_` and
        other calls that write all of it do not, and what is no input is not brought to the device."""
        dt, slot = _dt(ref["d"]), ref["t"]
        if slot in self.now:
            return self._seen(ref, self.now[slot])
        return Late(dt, tuple(ref["z"]), lambda: self._seen(ref, self._before(ref, dt)))

    def _before(self, ref: dict[str, Any], dt: str) -> Value:
        """The state as it was before the piece."""
        slot = ref["t"]
        if slot not in self.leaves:
            self.leaf(ref, dt)
            self.now.setdefault(slot, self.leaves[slot])
        return self.leaves[slot]

    def _seen(self, ref: dict[str, Any], v: Value) -> Value:
        dt = _dt(ref["d"])
        if v.dt != dt:
            if width(v.dt) != width(dt):
                raise Refused("a view of elements of another width")
            v = self.g.op("bit_cast", v, to=dt)
        return window(self.g, v, ref["z"], ref["s"], ref["o"])

    def write(self, ref: dict[str, Any], y: Value) -> None:
        dt, slot = _dt(ref["d"]), ref["t"]
        y = self.g.expand(self.g.cast(y, dt), ref["z"])
        order = self.covers(ref, dt)
        if order is not None:
            self.now[slot] = self.g.transpose(y, order)
        else:
            if slot in self.now:
                old = self.now[slot]
            elif ref.get("new"):
                old = self.g.full((self.count(slot, dt),), 0, dt)
            else:
                old = self._before({**ref, "z": [self.count(slot, dt)], "s": [1], "o": 0}, dt)
            if old.dt != dt:
                raise Refused("a write through a view of another dtype")
            self.now[slot] = assign(self.g, old, y, ref["z"], ref["s"], ref["o"])
        self.written.add(slot)

    # -- arguments

    def number(self, k: int, ref: dict[str, Any], constant: bool) -> Any:
        d, x = ref["d"], self.segment["numbers"][k]
        weak = bool(ref["w"])
        if d == 9:
            raise Refused("complex numbers")
        dt = _dt(d)
        if constant or not self.segment["varying"][k] or kind(dt) == 0:
            if not weak:
                return self.g.number(x, dt)
            return bool(x) if kind(dt) == 0 else int(x) if kind(dt) == 1 else float(x)
        v = self.varying(k, "i64" if kind(dt) == 1 else self.float_dt)
        if weak:
            return Value(v.id, v.dt, (), weak=True)
        return self.g.cast(v, dt)

    def varying(self, k: int, dt: str) -> Value:
        if k not in self.numbers:
            self.numbers[k] = self.g.input(f"n{k}", dt, ())
            self.ports.append((1, k, dt, ()))
        return self.numbers[k]

    def argument(self, a: Any, used: list[int], constant: bool) -> Any:
        if isinstance(a, list):
            return [self.argument(x, used, constant) for x in a]
        if not isinstance(a, dict):
            return a
        if "t" in a:
            return self.read(a)
        if "n" in a:
            if self.segment["varying"][a["n"]]:
                used.append(a["n"])
            return self.number(a["n"], a, constant)
        if "x" in a:
            raise Refused("complex numbers")
        return _dt(a["d"])

    # -- calls

    def call(self, at: int, c: dict[str, Any]) -> None:
        name, outs = row_of(c["op"])
        if name is None:
            raise Refused("no row in the table")
        if _in_turn(c):
            raise Refused("tensors of a list that overlap: torch writes one after the other")
        used: list[int] = []
        try:
            self._call(name, outs, c, used, False)
        except Refused:
            if not used or self.poisoned:
                raise
            self._call(name, outs, c, [], True)
            self.fixed.update(used)
        self.calls.append(at)

    def _call(self, name: str, outs: int, c: dict[str, Any], used: list[int], constant: bool) -> None:
        args = c["a"][:len(c["a"]) - outs] if outs else c["a"]
        given = [self.argument(a, used, constant) for a in args]
        self.g.counter = self.varying(c["r"], "i64") if c["r"] >= 0 else None
        targets = self._targets(c, outs)
        wanted = [None if t is None else (_dt(t["d"]), tuple(t["z"])) for t in targets]
        result = write_row(self.g, name, given, wanted)
        self._store(c, targets, result)

    def _targets(self, c: dict[str, Any], outs: int) -> list[Any]:
        """Where results go: to new states, or to arguments that the call writes."""
        if outs:
            return list(c["a"][len(c["a"]) - outs:])
        if c["y"]:
            return [None if y is None else {**y, "new": True} for y in c["y"]]
        flat: list[Any] = []
        for a, w in zip(c["a"], c["w"]):
            if w and a is not None:
                flat += a if isinstance(a, list) else [a]
        return flat

    def _store(self, c: dict[str, Any], targets: list[Any], result: Any) -> None:
        if isinstance(result, dict):
            self._into(c, result)
            return
        values = list(result) if isinstance(result, list) else [result]
        if values and isinstance(values[-1], dict):
            self._into(c, values.pop())
        if len(values) < len(targets):
            raise Refused("fewer results than torch has")
        for t, v in zip(targets, values):
            if t is not None and v is not None:
                self.write(t, v)
            elif t is not None:
                raise Refused("a result that the row does not give")

    def _into(self, c: dict[str, Any], by_argument: dict[int, Any]) -> None:
        for k, v in by_argument.items():
            to = c["a"][k] if isinstance(c["a"][k], list) else [c["a"][k]]
            for ref, value in zip(to, v if isinstance(v, list) else [v]):
                if ref is not None and value is not None:
                    self.write(ref, value)

    # -- the end

    def program(self, device: Any, needed: set[int]) -> tuple[list[int], Any]:
        """The part as numbers for the shim, and the program."""
        out: list[tuple[int, int, str, tuple[int, ...]]] = []
        for slot in sorted(self.written & needed):
            v = self.now[slot]
            if slot in self.bound and self.leaves[slot].dt == v.dt:
                self.g.builder.update(self.leaves[slot].id, self.g.reshape(v, self.leaves[slot].shape).id)
                self.bound[slot] = True
            else:
                self.g.builder.output(f"y{slot}", v.id)
                out.append((0, slot, v.dt, v.shape))
        program = _facula.Program(self.g.builder.finish(), device, precision=self.segment["precision"])
        code = [0, program.address(), len(self.ports)]
        for port in self.ports:
            code += _port(port)
        code.append(len(out))
        for port in out:
            code += _port(port)
        code.append(len(self.bound))
        for slot, writes in self.bound.items():
            code += [slot, int(writes)]
        return code, program


def _in_turn(c: dict[str, Any]) -> bool:
    """Whether a call writes a tensor of a list that another place of its lists reads or writes, too.  A row reads all
    before it writes; torch goes from place to place."""
    lists = [(a, bool(w)) for a, w in zip(c["a"], c["w"]) if isinstance(a, list)]
    if not any(w and len(a) > 1 for a, w in lists):
        return False
    parts = sorted((r["t"], *_bytes(r), k, w) for a, w in lists for k, r in enumerate(a) if isinstance(r, dict) and "t" in r)
    seen: list[tuple[int, int, int, bool]] = []         # of this state: those that reach beyond the beginning of the next
    for i, (slot, begin, end, k, w) in enumerate(parts):
        seen = [s for s in seen if s[1] > begin] if i and parts[i - 1][0] == slot else []
        if any(k != s[2] and (w or s[3]) for s in seen):
            return True
        seen.append((begin, end, k, w))
    return False


def _bytes(ref: dict[str, Any]) -> tuple[int, int]:
    """Of its state: the first byte of a view, and the one after the last."""
    if not math.prod(ref["z"]):
        return 0, 0
    last = ref["o"] + sum((n - 1) * s for n, s in zip(ref["z"], ref["s"]))
    size = width(_dt(ref["d"]))
    return ref["o"] * size, (last + 1) * size


def _port(p: tuple[int, int, str, tuple[int, ...]]) -> list[int]:
    return [p[0], p[1], find(p[2]).code, len(p[3]), *p[3]]


# ---- a segment -------------------------------------------------------------------------------------------------


def _slots(x: Any) -> set[int]:
    if isinstance(x, list):
        return set().union(*[_slots(v) for v in x]) if x else set()
    return {x["t"]} if isinstance(x, dict) and "t" in x else set()


class Translation:
    """Parts of a segment, each a program or a call of torch's."""

    def __init__(self, segment: dict[str, Any], device: Any, host_double: bool, why: dict[str, str]) -> None:
        self.segment, self.device, self.host_double, self.why = segment, device, host_double, why
        self.calls = segment["calls"]
        self.code: list[list[int]] = []
        self.programs: list[Any] = []
        self.fixed: set[int] = set()
        self.live: list[set[int]] = [set()] * (len(self.calls) + 1)     # before each call: states that matter from there on
        self.live[-1] = {k for k, s in enumerate(segment["states"]) if s[1]}
        for k in range(len(self.calls) - 1, -1, -1):
            self.live[k] = self.live[k + 1] | (_slots(self.calls[k]["a"]) if self.matters(k) else set())

    def matters(self, k: int) -> bool:
        """A call writes what is kept or read later, or writes nothing and is there for its errors."""
        c = self.calls[k]
        written = _slots(c["y"]) | _slots([a for a, w in zip(c["a"], c["w"]) if w])
        return not written or bool(written & self.live[k + 1])

    def run(self) -> None:
        piece = self._new()
        for k, c in enumerate(self.calls):
            if not self.matters(k):
                continue
            try:
                piece.call(k, c)
            except Refused as refused:
                self.why.setdefault(c["op"].removeprefix("aten::"), str(refused))
                self._end(piece, k, broken=True)
                self.code.append([1, k])
                piece = self._new()
        self._end(piece, len(self.calls), broken=False)

    def _new(self) -> Piece:
        return Piece(self.segment, self.host_double)

    def _end(self, piece: Piece, at: int, broken: bool) -> None:
        if not piece.written & self.live[at]:
            return
        if broken:                                  # what was written of the call that failed is forgotten
            again = self._new()
            for k in piece.calls:
                again.call(k, self.calls[k])
            piece = again
        try:
            code, program = piece.program(self.device, self.live[at])
        except _facula.Error as error:
            for k in piece.calls:
                self.why.setdefault(self.calls[k]["op"].removeprefix("aten::"), str(error))
                self.code.append([1, k])
            return
        self.code.append(code)
        self.programs.append(program)
        self.fixed |= piece.fixed


class Builder:
    """Answers the shim, and keeps the programs that it runs."""

    def __init__(self, ops: Any, devices: Sequence[Any]) -> None:
        self.ops, self.devices = ops, devices
        self.kept: dict[int, list[Any]] = {}
        self.why: dict[str, str] = {}
        self.next = 1

    def drop_retired(self) -> None:
        """Frees programs that the shim no longer runs."""
        for old in self.ops.retired():
            self.kept.pop(old, None)

    def __call__(self, text: bytes) -> int:
        try:
            self.drop_retired()
            segment = json.loads(text)
            device = self.devices[segment["device"]]
            t = Translation(segment, device, device.name == "cpu", self.why)
            t.run()
            self.kept[self.next] = t.programs
            code = [self.next, len(t.code)] + [n for part in t.code for n in part]
            self.next += 1
            self.ops.answer(code + [len(t.fixed), *sorted(t.fixed)])
            return 0
        except BaseException as error:              # noqa: BLE001: nothing may go through C
            self.ops.failure(f"{type(error).__name__}: {error}")
            return 1
