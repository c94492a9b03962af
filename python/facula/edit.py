"""Models out of models.  Every function gives a new model; the one it was made of stays as it is.

    >>> m = fac.edit("a.onnx").rename("input.1", "x").extract(outputs=["features"])
    >>> m.save("b.onnx")
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _facula
from ._facula import Graph, Tensor
from .model import Model
from .tables import Report, Table
from .tools import graph_of


class Editor:
    """A model to which edits are done one after the other; each returns a new Editor.  `.count` says how many nodes the
    last one changed, `.report` what it found."""

    def __init__(self, graph: Graph, count: int = 0, report: Any = None) -> None:
        self.graph, self.count, self.report = graph, count, report

    def _text(self, what: str, a: str | None = None, b: str | None = None) -> Editor:
        return Editor(*_facula.edit(what, self.graph, a, b))

    def simplify(self) -> Editor:
        """Constants computed, what changes nothing gone, equal nodes joined."""
        return self._text("simplify")

    def bake(self) -> Editor:
        """Nodes that read nothing but parameters become parameters."""
        return self._text("bake")

    def rename(self, old: str, name: str) -> Editor:
        """An input, output, parameter or value by another name."""
        return self._text("rename", old, name)

    def remove(self, node: str) -> Editor:
        """Nodes go; their first input takes the place of their result: "op:dropout", "layer4.*"."""
        return self._text("remove", node)

    def insert(self, where: str, text: str) -> Editor:
        """Ops after a value: ("features", "relu"), ("x", "clip(_, 0, 6)")."""
        return self._text("insert", where, text)

    def replace(self, node: str, text: str) -> Editor:
        """Ops instead of a node, whose inputs are x0, x1...: ("op:relu", "clip(x0, 0, 6)")."""
        return self._text("replace", node, text)

    def set(self, node: str, **attributes: Any) -> Editor:
        """Attributes of nodes: set("conv1", stride=(2, 2))."""
        def text(v: Any) -> str:
            return ",".join(map(str, v)) if isinstance(v, (list, tuple)) else str(int(v) if isinstance(v, bool) else v)
        return self._text("set", node, " ".join(f"{k}={text(v)}" for k, v in attributes.items()))

    def add_output(self, value: str, name: str | None = None) -> Editor:
        """A value becomes an output."""
        return self._text("add_output", value, name)

    def remove_output(self, name: str) -> Editor:
        return self._text("remove_output", name)

    def shape(self, name: str, *dims: int | str) -> Editor:
        """An input with other sizes; texts are open ones: shape("x", "N", 3, 224, 224)."""
        return self._text("shape", name, ",".join(map(str, dims)))

    def bind(self, symbol: str, size: int) -> Editor:
        """An open size becomes a number."""
        return Editor(*_facula.edit_sized("bind", self.graph, size, symbol))

    def batch(self, size: int) -> Editor:
        """All open sizes bound: the batch to this, others to 1."""
        return Editor(*_facula.edit_sized("batch", self.graph, size))

    def reorder(self, batch: int = 1) -> Editor:
        """Nodes in the order that needs least memory."""
        return Editor(*_facula.edit_sized("reorder", self.graph, batch))

    def strip(self, least: int = 1024) -> Editor:
        """Tensors of so many elements become zeros that take no room in a file."""
        return Editor(*_facula.edit_sized("strip", self.graph, least))

    def extract(self, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> Editor:
        """The part between values."""
        return Editor(_facula.extract(self.graph, list(inputs), list(outputs)))

    def floats(self, dtype: Any, keep: Sequence[str] = (), keep_ports: bool = False) -> Editor:
        """Floats of another dtype; nodes in `keep` stay, between casts."""
        graph, report = _facula.floats(self.graph, dtype, list(keep), keep_ports)
        return Editor(graph, report["tensors"], Report(report))

    half = floats

    def tensor(self, name: str, value: Any) -> Editor:
        """A parameter or constant gets other contents."""
        return Editor(_facula.tensor_set(self.graph, name, value if isinstance(value, Tensor) else Tensor(value)))

    def append(self, other: Any, outputs: Sequence[str] = (), inputs: Sequence[str] = ()) -> Editor:
        """Another model after this one."""
        return Editor(_facula.append(self.graph, graph_of(other), list(outputs), list(inputs)))

    def rules(self, text: str, limit: int = 0) -> Editor:
        """Rewriting by rules, pattern -> replacement; a text or a file of them."""
        name = "rules"
        if "\n" not in text and os.path.exists(text):
            name = text
            with open(text) as file:
                text = file.read()
        graph, report = _facula.rewrite(self.graph, text, name, limit)
        return Editor(graph, sum(r["matches"] for r in report), Table(report))

    def note(self, key: str, text: str | None) -> Editor:
        """Metadata of the model."""
        graph = self.graph.clone()
        graph.set_note(key, text)
        return Editor(graph)

    def model(self, **options: Any) -> Model:
        return Model(self.graph, **options)

    def save(self, path: Any, **options: Any) -> Report:
        """Writes the model as ONNX."""
        return Report(self.graph.save(os.fspath(path), **options))

    def text(self) -> str:
        return self.graph.text()

    def run(self, *args: Any, **feed: Any) -> Any:
        return self.model().run(*args, **feed)

    def __repr__(self) -> str:
        return f"facula.edit({Model(self.graph)!r})"


def edit(model: Any) -> Editor:
    """Begins to edit a model: a file, a Model or a Graph."""
    return Editor(graph_of(model))
