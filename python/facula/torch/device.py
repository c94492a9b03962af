"""Device "ocl": `model.to("ocl")`, `torch.ocl`, on OpenCL devices and on facula's own cpu."""
from __future__ import annotations

import contextlib
import ctypes
import os
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from .. import _facula, tools
from . import build as _build
from . import files, notes, ties
from .segment import Builder


def _is_gpu(name: str) -> bool:
    return "(CPU" not in _facula.Device(name).facts().get("device", "")


def device_names() -> list[str]:
    """What ocl:0, ocl:1, ... are: GPUs first, then facula's cpu, then CPUs by OpenCL.  FACULA_TORCH_DEVICES says otherwise."""
    own = os.environ.get("FACULA_TORCH_DEVICES")
    if own:
        return [name.strip() for name in own.split(",")]
    opencl = [d["name"] for d in tools.devices() if d["name"] != "cpu"]
    gpus = [name for name in opencl if _is_gpu(name)]
    return gpus + ["cpu"] + [name for name in opencl if name not in gpus]


class Properties:
    """Of a device: name, about, total_memory (0: unknown)."""

    def __init__(self, name: str) -> None:
        d = _facula.Device(name)
        self.name, self.about, self.total_memory = d.name, d.about, 0

    def __repr__(self) -> str:
        return f"{self.name}: {self.about}"


class _DeviceContext:
    """with torch.ocl.device(1): what is made there is on ocl:1."""

    def __init__(self, device: Any) -> None:
        self.index, self.before = _index(device), 0

    def __enter__(self) -> _DeviceContext:
        self.before = torch.ops.ocl.current_device()
        torch.ops.ocl.set_device(self.index)
        return self

    def __exit__(self, *error: object) -> None:
        torch.ops.ocl.set_device(self.before)


def _index(device: Any) -> int:
    if device is None:
        return int(torch.ops.ocl.current_device())
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return int(torch.ops.ocl.current_device()) if index is None else index


class Module:
    """torch.ocl: what torch asks of a device, and statistics."""

    __name__ = "torch.ocl"
    Event, Stream = torch.Event, torch.Stream
    device = _DeviceContext

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def _lazy_init(self) -> None:
        pass

    def init(self) -> None:
        """Nothing is left to do after `import facula.torch`."""

    def device_count(self) -> int:
        return len(self._names)

    def current_device(self) -> int:
        return int(torch.ops.ocl.current_device())

    def set_device(self, device: Any) -> None:
        index = _index(device)
        if not 0 <= index < len(self._names):
            raise RuntimeError(f"there is no device ocl:{index}, but {len(self._names)}")
        torch.ops.ocl.set_device(index)

    def get_device_name(self, device: Any = None) -> str:
        return self._names[_index(device)]

    def get_device_properties(self, device: Any = None) -> Properties:
        return Properties(self._names[_index(device)])

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return (0, 0)

    def synchronize(self, device: Any = None) -> None:
        """Computes what was recorded, and waits for it."""
        torch.ops.ocl.flush()
        _facula.Device(self._names[_index(device)]).synchronize()

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed(self, seed: int) -> None:
        torch.ops.ocl.default_generator(-1).manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        for k in range(len(self._names)):
            torch.ops.ocl.default_generator(k).manual_seed(seed)

    def seed(self) -> int:
        return int(torch.ops.ocl.default_generator(-1).seed())

    def initial_seed(self) -> int:
        return int(torch.ops.ocl.default_generator(-1).initial_seed())

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return torch.ops.ocl.default_generator(_index(device)).get_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        torch.ops.ocl.default_generator(_index(device)).set_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def current_stream(self, device: Any = None) -> torch.Stream:
        return torch.Stream(device=f"ocl:{_index(device)}")

    # -- memory

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        """Bytes of storages: now, at most, kept for later; how many; and what the device itself holds."""
        now, peak, kept, states = torch.ops.ocl.memory()
        held = {f"device.{k}": v for k, v in _facula.Device(self._names[_index(device)]).memory().items()}
        return {"allocated_bytes.all.current": now, "allocated_bytes.all.peak": peak, "reserved_bytes.all.current": now + kept,
                "storages": states, **held}

    def memory_allocated(self, device: Any = None) -> int:
        return int(torch.ops.ocl.memory()[0])

    def max_memory_allocated(self, device: Any = None) -> int:
        return int(torch.ops.ocl.memory()[1])

    def memory_reserved(self, device: Any = None) -> int:
        now, _, kept, _ = torch.ops.ocl.memory()
        return int(now + kept)

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        torch.ops.ocl.memory_reset_peak()

    def empty_cache(self) -> None:
        """Gives memory back that is kept for later tensors, and programs that are kept for segments that come again."""
        torch.ops.ocl.flush()
        torch.ops.ocl.forget_plans()
        _state["builder"].drop_retired()
        torch.ops.ocl.memory_trim()
        for name in self._names:
            _facula.Device(name).trim()

    # -- the recorder

    def stats(self) -> dict[str, int]:
        """recorded calls, flushes, segments that were planned and found again, shapes asked of torch and known, ...; kept: leaves
        (parameters, mostly) that the program of the last segment keeps on its device."""
        names = ("recorded", "flushes", "planned", "found", "shape_misses", "shape_hits", "pending", "segments", "plan_us",
                 "kept")
        return dict(zip(names, torch.ops.ocl.stats()))

    def set_eager(self, on: bool) -> None:
        """Each call runs when it is made: for debugging, errors come where they arise."""
        torch.ops.ocl.flush()
        torch.ops.ocl.set_each(on)

    def set_ahead(self, calls: int) -> None:
        """After so many calls, or a few more, those recorded so far are run, and a GPU computes while further ones are recorded.
        0, as it is at first: they wait until a result is read and become one program.  32 makes transformers faster that only
        infer; other networks lose more by what is no longer fused than they win."""
        if calls < 0:
            raise ValueError(f"a number of calls, 0 or more, not {calls}")
        torch.ops.ocl.flush()
        torch.ops.ocl.set_ahead(calls)

    def set_precision(self, precision: str | None) -> None:
        """Of products and convolutions of float32: "default" (1e-5 of the largest, fast algorithms), "highest" (3e-6), "high" (TF32),
        "medium" (bfloat16); None: as torch.set_float32_matmul_precision says, whose "highest" is our default."""
        known = (None, "default", "highest", "high", "medium")
        if precision not in known:
            raise ValueError(f"precision is None, default, highest, high or medium, not {precision!r}")
        torch.ops.ocl.set_precision(known.index(precision) - 1)

    def get_precision(self) -> str:
        """In which products are recorded now."""
        return str(torch.ops.ocl.precision())

    # -- DLPack, whose own protocol knows only devices of torch's list

    def to_dlpack(self, x: torch.Tensor) -> Any:
        """A capsule of a copy on the host."""
        return torch.utils.dlpack.to_dlpack(x.detach().cpu())

    def from_dlpack(self, capsule: Any, device: Any = None) -> torch.Tensor:
        """A tensor of this device with the contents of a capsule, or of an object with __dlpack__."""
        return torch.from_dlpack(capsule).to(f"ocl:{_index(device)}")


_told: set[str] = set()


def fallbacks(why: dict[str, str], reset: bool = False) -> dict[str, tuple[int, str]]:
    """Calls that torch computed, {name: (how often, why)}; reset: count anew."""
    out: dict[str, tuple[int, str]] = {}
    for line in torch.ops.ocl.counts(reset):
        op, reason, n = line.split("\t")
        name = op.removeprefix("aten::")
        before = out.get(name, (0, ""))[0]
        out[name] = (before + int(n), reason or why.get(name, ""))
    return out


_state: dict[str, Any] = {}


def _call_of(builder: Builder) -> Any:
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)

    def run(text: bytes) -> int:
        known = set(builder.why)
        bad = builder(text)
        try:
            for op in set(builder.why) - known:
                _warn(op, builder.why[op])
        except Warning as error:                    # the user's filter says that warnings are errors
            builder.ops.failure(f"{type(error).__name__}: {error}")
            return 1
        if not bad and notes.is_strict() and set(builder.why) - known:
            op = next(iter(set(builder.why) - known))
            builder.why.pop(op)
            builder.ops.failure(f"FallbackError: {op} is not computed by facula: {builder_reason(builder, op)}")
            return 1
        return bad
    return kind(run)


def builder_reason(builder: Builder, op: str) -> str:
    """Why an operator falls back."""
    return builder.why.get(op, "no row in the table")


def _warn(op: str, why: str) -> None:
    if op in _told:
        return
    _told.add(op)
    warnings.warn(f"device ocl: {op} is computed by torch on the host ({why}); facula.torch.explain() counts such calls", stacklevel=2)


def load(quiet: bool = False) -> Module:
    """Compiles the shim if need be and makes torch know the device."""
    if "module" in _state:
        return _state["module"]
    library = _build.build(quiet)
    names = device_names()
    torch.utils.rename_privateuse1_backend("ocl")
    torch.ops.load_library(str(library))
    ops = torch.ops.ocl
    ops.set_api(_facula.c_api())
    devices = [_facula.Device(name) for name in names]
    ops.set_devices([d.address() for d in devices])
    builder = Builder(ops, devices)
    call = _call_of(builder)
    ops.set_builder(ctypes.cast(call, ctypes.c_void_p).value)
    module = Module(names)
    torch._register_device_module("ocl", module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    ops.register_all(True)
    ties.keep()
    files.keep()
    _state.update(module=module, builder=builder, call=call)
    return module


def explained(reset: bool = False) -> dict[str, tuple[int, str]]:
    """Fallbacks of the device so far; reset: count anew."""
    return fallbacks(_state["builder"].why, reset) if "builder" in _state else {}


def stats() -> dict[str, int]:
    return _state["module"].stats() if "module" in _state else {}


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Within, each call of the device runs when it is made."""
    module = load()
    module.set_eager(True)
    try:
        yield
    finally:
        module.set_eager(False)
