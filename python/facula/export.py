"""From calls to graphs: a Module, or any function of tensors, as a Graph that is saved, analysed and run as one program."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _facula
from ._facula import Builder, Graph, Tensor
from .nn.module import Module, traced
from .tables import Report


def _examples(example: Any) -> list[Tensor]:
    """Tensors; a tuple of integers is a shape, a tuple of tensors or shapes is several inputs."""
    if isinstance(example, Tensor):
        return [example]
    if isinstance(example, (tuple, list)) and example and not all(isinstance(n, int) for n in example):
        return [t for e in example for t in _examples(e)]
    if isinstance(example, (tuple, list)):
        from .functional import zeros
        return [zeros(*example)]
    return [Tensor(example)]


def _leaf_names(module: Any) -> dict[int, tuple[str, str]]:
    names: dict[int, tuple[str, str]] = {}
    if hasattr(module, "named_parameters"):
        for name, p in module.named_parameters():
            names[id(p)] = ("param", name)
        for name, b in module.named_buffers():
            names[id(b)] = ("state", name)
    return names


def _nodes(outputs: Sequence[Tensor]) -> list[Any]:
    """All nodes, in the order of their making."""
    class Root:
        inputs = list(outputs)

    seen: set[int] = set()
    order: list[Any] = []
    stack: list[tuple[Any, Any]] = [(Root, iter(Root.inputs))]
    while stack:
        node, rest = stack[-1]
        for x in rest:
            n = x.grad_fn if isinstance(x, Tensor) else None
            if n is not None and id(n) not in seen:
                seen.add(id(n))
                stack.append((n, iter(n.inputs)))
                break
        else:
            stack.pop()
            if node is not Root:
                order.append(node)
    return order


class _Writer:
    def __init__(self, names: dict[int, tuple[str, str]]) -> None:
        self.builder = Builder()
        self.names = names
        self.values: dict[Any, int] = {}
        self.path: list[str] = []

    def enter(self, path: str | None) -> None:
        """What comes now is of this module: profiles, errors and ONNX say so."""
        parts = path.split(".") if path else []
        same = 0
        while same < min(len(parts), len(self.path)) and parts[same] == self.path[same]:
            same += 1
        for _ in self.path[same:]:
            self.builder.scope("", None)
        for name in parts[same:]:
            self.builder.scope(name, None)
        self.path = parts

    def leaf(self, x: Tensor) -> int:
        if id(x) not in self.values:
            self.enter(None)                        # it has its whole name
            kind, name = self.names.get(id(x), ("const", None))
            self.values[id(x)] = self.builder.leaf(kind, name, x)
        return self.values[id(x)]

    def value(self, x: Any) -> int | None:
        if not isinstance(x, Tensor):
            return None
        if x.grad_fn is None:
            return self.leaf(x)
        return self.values[(id(x.grad_fn), x._index)]

    def node(self, node: Any) -> None:
        if node.name == "identity":
            same = self.value(node.inputs[0])
            assert same is not None
            self.values[(id(node), 0)] = same
            return
        if not isinstance(node, _facula.Node):
            raise _facula.UnsupportedError(f"{node.name}: a function written in Python cannot become part of a graph")
        inputs = [self.value(x) for x in node.inputs]
        self.enter(node.scope)
        out = self.builder.emit(node, inputs)
        for k, v in enumerate(out):
            self.values[(id(node), k)] = v


def trace(function: Callable[..., Any], example: Any, input_names: Sequence[str] | None = None,
          output_names: Sequence[str] | None = None, dynamic: bool = False) -> Graph:
    """What a function does to tensors like these, as a Graph.  dynamic: the first size of the inputs stays open."""
    xs = [x.detach() for x in _examples(example)]
    training = getattr(function, "training", False)
    if training:
        function.eval()  # type: ignore[attr-defined]
    paths = {id(m): path for path, m in function.named_modules()} if isinstance(function, Module) else {}
    traced.append(paths)
    before, grads = _facula.set_tracing(True), _facula.set_grad_enabled(False)
    try:
        result = function(*[_facula.apply("identity", None, 0, x) for x in xs])
    finally:
        traced.pop()
        _facula.set_scope(None)
        _facula.set_tracing(before)
        _facula.set_grad_enabled(grads)
        if training:
            function.train()  # type: ignore[attr-defined]
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    names = list(input_names or (["x"] if len(xs) == 1 else [f"x{i}" for i in range(len(xs))]))
    w = _Writer(_leaf_names(function))
    if isinstance(function, Module):
        for path, m in function.named_modules():
            w.builder.scope(path, type(m).__name__)
    for x, name in zip(xs, names):
        w.values[id(x)] = w.builder.input(name, x.dtype, x.shape)
    for node in _nodes(outputs):
        w.node(node)
    w.enter(None)
    ends = list(output_names or (["y"] if len(outputs) == 1 else [f"y{i}" for i in range(len(outputs))]))
    for name, y in zip(ends, outputs):
        v = w.value(y)
        if v is not None:
            w.builder.output(name, v)
    graph = w.builder.finish()
    return _opened(graph, names, xs) if dynamic else graph


def _opened(graph: Graph, names: Sequence[str], xs: Sequence[Tensor]) -> Graph:
    for name, x in zip(names, xs):
        if x.ndim:
            graph, _ = _facula.edit("shape", graph, name, ",".join(["N", *map(str, x.shape[1:])]))
    return graph


def export(module: Any, path: Any, example: Any = None, *, opset: int = 0, dynamic: bool = True,
           input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None) -> Report:
    """Writes a Module as an ONNX model.  example: an input, or its shape; Modules remember the last one they were given.

    dynamic: the batch size stays open where the network allows that."""
    if example is None:
        example = getattr(module, "_last_inputs", None)
    if example is None:
        raise _facula.ArgumentError("export: say an input or its shape, which the network was never given yet")
    graph = trace(module, example, input_names, output_names)
    if dynamic:
        xs = _examples(example)
        names = [p["name"] for p in graph.inputs()]
        try:
            graph = _opened(graph, names, xs)
        except _facula.Error:
            pass            # sizes of this batch are part of the network: it keeps them
    return Report(graph.save(os.fspath(path), opset=opset))


