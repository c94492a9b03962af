"""Models of few bits: trained models in integers, quantizers of 1 to 4 bits, files of packed bits."""
from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _facula
from .model import Model, load
from .tables import Report, Table


class Quantized(Model):
    """A model in integers; `layers` says what each layer with weights became."""

    layers: Table

    def __repr__(self) -> str:
        done = builtins.sum(not row["kept"] for row in self.layers)
        return f"{super().__repr__()}  # {done} of {len(self.layers)} layers in integers"


def _model_of(model: Any, example: Any) -> Model:
    if hasattr(model, "named_parameters") and not isinstance(model, Model):
        from .tools import graph_of
        return Model(graph_of(model, example), name=type(model).__name__)
    return load(model)


def _samples(model: Model, samples: Iterable[Any] | None) -> list[list[Any]]:
    """Each as the list of tensors that a run takes."""
    def one(sample: Any) -> list[Any]:
        if isinstance(sample, Mapping):
            given = model._given((), sample)
        else:
            given = model._given(sample if isinstance(sample, (list, tuple)) else (sample,), {})
        return [model._operand(port, value) for port, value in zip(model.inputs, given)]
    return [one(s) for s in samples or ()]


def quantize(model: Any, scheme: str | Sequence[str], samples: Iterable[Any] | None = None, *, keep: Sequence[str] = (),
             calibration: str = "minmax", percentile: float = 0.0, signed: bool = False, per_tensor: bool = False,
             reduce_range: bool = False, all: bool = False, example: Any = None) -> Model:  # noqa: A002
    """The same network with fewer bits.

        fac.quantize("m.onnx", "int8:static", samples=[x1, x2])     bytes, with ranges from samples
        fac.quantize(m, "int8:dynamic")                             bytes, ranges found in each run
        fac.quantize(m, "int4:block32")                             weights of products in 4 bits
        fac.quantize(m, "lq:w1a2")                                  quantizers, for training on
        fac.quantize(m, "lq:w2a2", samples=[x1, x2])                the same, levels fitted to samples

    model         a Model, a file, a Module (with an example of its input, or its shape)
    samples       inputs of single runs: arrays, lists of them, or dictionaries by name
    keep          layers that stay floats: names or patterns ("conv1", "op:matmul")
    calibration   minmax, percentile (see percentile) or entropy: how samples give ranges
    all           for quantizers: the first and the last layer, too

    Of integers the result is a `Quantized` model with a table `layers`: bytes, errors in dB."""
    m = _model_of(model, example)
    fitted = samples is not None and isinstance(scheme, str) and scheme.startswith("lq:")
    if isinstance(scheme, str) and (fitted or scheme in _facula.integer_schemes()):
        graph, rows = _facula.integers(m.graph, m.device, scheme, _samples(m, samples), list(keep), calibration, percentile,
                                       signed, per_tensor, reduce_range)
        q = Quantized(graph, m.device, m.precision, m.name, m._preset, m._shape)
        q.layers = Table(rows, ["name", "op", "kept", "bytes", "bytes_before", "weight_sqnr", "output_sqnr"])
        return q
    try:
        graph, _ = _facula.quantize(m.graph, [scheme] if isinstance(scheme, str) else list(scheme), all)
    except ValueError as why:
        if "no such scheme" not in str(why):
            raise
        raise type(why)(f"{why}; of integers: {', '.join(_facula.integer_schemes())}") from None
    return m.with_graph(graph)


def schemes() -> dict[str, str]:
    """Schemes of integers, and a line about each."""
    return _facula.integer_schemes()


def dequantize(model: Any) -> Model:
    """A model with quantizers whose weights are what they are quantized to."""
    m = load(model)
    return m.with_graph(_facula.dequantize(m.graph))


def pack(model: Any, path: Any, *, rest: str = "float") -> Report:
    """Writes a model with quantizers, weights as bits (safetensors); how many layers and bytes.

    rest          weights of layers without quantizers: float, or int8 with a scale for each output channel"""
    if rest not in ("float", "int8"):
        raise ValueError(f"rest is float or int8, not {rest}")
    return Report(_facula.packed_save(load(model).graph, os.fspath(path), rest == "int8"))


def unpack(path: Any, *, device: Any = None) -> Model:
    """The model of such a file."""
    return Model(_facula.packed_load(os.fspath(path)), device, name=os.path.basename(os.fspath(path)))
