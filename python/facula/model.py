"""Models from files and from the zoo: arrays in, arrays out."""
from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _facula
from ._facula import Graph, Program, Tensor
from .dtypes import added, dtype, is_apart


class Port(NamedTuple):
    """An input or output: open sizes are names."""

    name: str
    dtype: dtype
    shape: tuple[int | str, ...]

    @property
    def type(self) -> str:
        """As ONNX Runtime says it: tensor(float), tensor(int64)..."""
        word = {"float32": "float", "float64": "double", "text": "string"}.get(self.dtype.name, self.dtype.name)
        return f"tensor({word})"

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Prediction:
    """One class that a classifier found."""

    index: int
    label: str | None
    probability: float
    score: float

    def __repr__(self) -> str:
        return f"{100 * self.probability:6.2f} %  {self.label or self.index}"


class Predictions(list[Prediction]):
    """The best classes of a photo, the best first."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        import html
        rows = "".join(f"<tr><td>{html.escape(str(p.label or p.index))}</td><td><div style='background:#4477aa;height:1em;"
                       f"width:{200 * p.probability:.0f}px'></div></td><td>{100 * p.probability:.2f} %</td></tr>" for p in self)
        return f"<table>{rows}</table>"


def _path(path: Any) -> str:
    return os.fspath(path) if not isinstance(path, str) else path


class Model:
    """A network that can be run; any number of threads may run it at once.

    Made by `facula.load(path)` and `facula.zoo.NAME()`."""

    def __init__(self, graph: Graph, device: Any = None, precision: str | None = None, name: str = "model",
                 preset: str | None = None, shape: tuple[int, int] | None = None) -> None:
        self.graph = graph
        self.name = name
        self.device = _facula.Device(device)
        self.precision = precision
        self.inputs = [Port(p["name"], p["dtype"], p["shape"]) for p in graph.inputs()]
        self.outputs = [Port(p["name"], p["dtype"], p["shape"]) for p in graph.outputs()]
        self._apart = [p.name for p in self.outputs if is_apart(p.dtype)]
        self._preset, self._shape = preset, shape
        self._program: Program | None = None
        self._lock = threading.Lock()

    # -- running

    @property
    def program(self) -> Program:
        if self._program is None:
            with self._lock:
                if self._program is None:
                    self._program = Program(self.graph, self.device, precision=self.precision)
        return self._program

    def _given(self, args: Sequence[Any], feed: Mapping[str, Any]) -> list[Any]:
        names = [p.name for p in self.inputs]
        if len(args) == 1 and isinstance(args[0], Mapping) and not feed:
            feed, args = args[0], ()
        if len(args) > len(names):
            raise _facula.ArgumentError(f"{self.name}: {len(args)} inputs were given, it has {len(names)}: {', '.join(names)}")
        values = dict(zip(names, args))
        for name, value in feed.items():
            if name not in names:
                raise _facula.ArgumentError(f"{self.name}: there is no input {name!r}, but {', '.join(names)}")
            if name in values:
                raise _facula.ArgumentError(f"{self.name}: input {name!r} was given twice")
            values[name] = value
        missing = [n for n in names if n not in values]
        if missing:
            raise _facula.ArgumentError(f"{self.name}: no value for input {', '.join(map(repr, missing))}")
        return [values[n] for n in names]

    def _operand(self, port: Port, value: Any) -> Tensor:
        x = value if isinstance(value, Tensor) else Tensor(value, dtype=port.dtype if isinstance(value, (list, tuple, int, float, str)) else None)
        if x.dtype is not port.dtype:
            raise _facula.DtypeError(f"{self.name}: input {port.name!r} is {port.dtype}, but {x.dtype} was given"
                                     f" (x.astype('{port.dtype}') converts it)")
        if len(x.shape) != len(port.shape) or any(isinstance(n, int) and n != m for n, m in zip(port.shape, x.shape)):
            raise _facula.ShapeError(f"{self.name}: input {port!r} was given shape {x.shape}")
        return x

    def __call__(self, *args: Any, **feed: Any) -> Any:
        """Runs it: Tensors out, one or a list."""
        values = [self._operand(p, v) for p, v in zip(self.inputs, self._given(args, feed))]
        out = self.program.run(values)
        return out[0] if len(out) == 1 else out

    def run(self, *args: Any, **feed: Any) -> Any:
        """Runs it: arrays in, arrays out.

            model.run(x)                    one input: its result
            model.run({"x": x, "y": y})     by name
            model.run(None, {"x": x})       as ONNX Runtime's InferenceSession.run: a list
            model.run(["y"], {"x": x})      these outputs
        """
        if len(args) == 2 and isinstance(args[1], Mapping) and (args[0] is None or isinstance(args[0], (list, tuple))):
            return self._as_session(args[0], args[1])
        given = self._given(args, feed)
        out = self._arrays(self.program.run([self._operand(p, v) for p, v in zip(self.inputs, given)]), given)
        return out[0] if len(out) == 1 else out

    def _arrays(self, results: Sequence[Tensor], given: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        """Types that NumPy has from ml_dtypes alone are such where an input was, else wider ones of NumPy's own."""
        if not self._apart or not any(map(_facula.is_added, given)):
            return [np.asarray(y) for y in results]
        return [np.asarray(y, added(y.dtype)) if is_apart(y.dtype) else np.asarray(y) for y in results]

    def _as_session(self, names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
        given = self._given((), feed)
        results = self.program.run([self._operand(p, v) for p, v in zip(self.inputs, given)])
        out = dict(zip([p.name for p in self.outputs], self._arrays(results, given)))
        for n in names or ():
            if n not in out:
                raise _facula.ArgumentError(f"{self.name}: there is no output {n!r}, but {', '.join(out)}")
        return [out[n] for n in (names or out)]

    def get_inputs(self) -> list[Port]:
        """As ONNX Runtime's InferenceSession."""
        return self.inputs

    def get_outputs(self) -> list[Port]:
        """What it gives: names, shapes, types, as ONNX Runtime says them."""
        return self.outputs

    # -- photos

    @property
    def preset(self) -> str:
        """How photos are prepared: what the file says, or the zoo, or ImageNet's usual way."""
        return self.graph.notes().get("facula.preset") or self._preset or "imagenet"

    def prepare(self, image: Any) -> Tensor:
        """The input that a photo becomes: a path, the bytes of a file, an array uint8 [H, W, 3] or a picture of Pillow."""
        pixels = _pixels(image)
        sizes = [n for n in self.inputs[0].shape[-2:] if isinstance(n, int)]
        height, width = sizes if len(sizes) == 2 else self._shape or (0, 0)
        return _facula.prepare(pixels, self.preset, height, width, self.inputs[0].dtype)

    def classify(self, image: Any, top: int = 5, labels: Sequence[str] | None = None) -> Predictions:
        """What is on a photo: the best classes, the best first."""
        scores = self(self.prepare(image))
        first = scores[0] if isinstance(scores, list) else scores
        text = "\n".join(labels) if labels else self.graph.notes().get("facula.labels")
        best = _facula.top(first.detach(), 0, top, text)
        return Predictions(Prediction(i, name, p, s) for i, s, p, name in best)

    # -- what it is made of

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Parameters and states by name."""
        return {name: t for name, t, _ in self.graph.parameters()}

    def state_dict(self) -> dict[str, Tensor]:
        """Its parameters, {name: tensor}."""
        return self.parameters

    def save(self, path: Any, *, opset: int = 0, batch: int = 0) -> Any:
        """Writes it as an ONNX model."""
        from .tables import Report
        return Report(self.graph.save(_path(path), opset=opset, batch=batch))

    export = save

    def to(self, device: Any) -> Model:
        """The same model on another device."""
        return Model(self.graph, device, self.precision, self.name, self._preset, self._shape)

    def with_graph(self, graph: Graph) -> Model:
        """The same settings with another graph."""
        return Model(graph, self.device, self.precision, self.name, self._preset, self._shape)

    def summary(self, **options: Any) -> Any:
        """Its layers and what they cost; see facula.summary."""
        from . import tools
        return tools.summary(self, **options)

    def profile(self, *args: Any, **options: Any) -> Any:
        """How long each of its steps takes; see facula.profile."""
        from . import tools
        return tools.profile(self, *args, **options)

    def text(self) -> str:
        """The graph as text, a node a line."""
        return self.graph.text()

    def __repr__(self) -> str:
        return f"facula.Model({self.name!r}: {', '.join(map(repr, self.inputs))} -> {', '.join(map(repr, self.outputs))})"

    def _repr_html_(self) -> str:
        html: str = self.summary()._repr_html_()
        return html

    def __reduce__(self) -> Any:
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            self.graph.save(path)
            with open(path, "rb") as file:
                data = file.read()
        return (_revive, (data, self.device.name, self.precision, self.name, self._preset, self._shape))


def _revive(data: bytes, device: str, precision: str | None, name: str, preset: str | None, shape: Any) -> Model:
    return Model(graph_of_bytes(data), device, precision, name, preset, shape)


def graph_of_bytes(data: bytes) -> Graph:
    """A graph from the bytes of an ONNX file."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:           # what is mapped stays when the name is gone
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(data)
        return _facula.load_onnx(path, None)


def _pixels(image: Any) -> Tensor:
    if isinstance(image, (str, bytes, os.PathLike)):
        return _facula.photo(image)
    array = np.asarray(image.convert("RGB") if hasattr(image, "convert") else image)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] not in (3, 4):
        raise _facula.ArgumentError(f"a photo is an array uint8 [height, width, 3], not {array.dtype} {array.shape}")
    return Tensor(np.ascontiguousarray(array[:, :, :3]))


def load(source: Any, *, device: Any = None, precision: str | None = None, shapes: Mapping[str, Any] | None = None) -> Model:
    """A model from an ONNX file, from its bytes, from a file of facula's graph text, or "zoo:NAME".

    device      "cpu" (default), "opencl", "opencl:1"
    precision   of products inside float32: "default", "highest", "high", "medium"
    shapes      {input: shape} binds open sizes
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, Graph):
        return Model(source, device, precision)
    if isinstance(source, (bytes, bytearray)):
        return Model(graph_of_bytes(bytes(source)), device, precision)
    if hasattr(source, "SerializeToString"):
        return Model(graph_of_bytes(source.SerializeToString()), device, precision)
    if not isinstance(source, (str, os.PathLike)):
        hint = ": facula.trace(module, shape) makes a graph of it" if callable(source) else ""
        raise TypeError(f"load: a path, bytes of an ONNX file or a graph were expected, not a {type(source).__name__}{hint}")
    path = _path(source)
    if path.startswith("zoo:"):
        from . import zoo
        return zoo.build(path[4:], device=device, precision=precision)
    if path.endswith(".txt"):
        with open(path) as file:
            return Model(_facula.read_text(file.read()), device, precision, os.path.basename(path))
    graph = _facula.load_onnx(path, dict(shapes) if shapes else None)
    return Model(graph, device, precision, os.path.basename(path))
