"""What the command `facula` does, as functions that give objects: dictionaries, arrays, tables."""
from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _facula
from ._facula import Graph, Program, Tensor
from .model import Model, load
from .tables import Report, Table, quantity


def graph_of(model: Any, example: Any = None) -> Graph:
    """The graph of a Model, a Graph, a file, or of a Module (with the shape of an input, or an input)."""
    if isinstance(model, Graph):
        return model
    if isinstance(model, Model):
        return model.graph
    if hasattr(model, "named_parameters"):
        from .export import trace
        if example is None:
            raise _facula.ArgumentError("a Module is seen by what it does to an input: say its shape")
        return trace(model, example)
    return load(model).graph


class Summary(Report):
    """Parameters, multiply-adds and memory; prints as torchinfo does."""

    def __repr__(self) -> str:
        return "\n".join(self["table"])

    def _repr_html_(self) -> str:
        rows = Table(self["layers"].rows, ["name", "kind", "out", "params", "macs"])._repr_html_()
        t = self["totals"]
        return (f"<p><b>{quantity(t['params'])}</b> parameters, <b>{quantity(t['count'])}</b> multiply-adds, "
                f"<b>{quantity(t['peak'])}B</b> of activations at most</p>{rows}")


def summary(model: Any, input_size: Any = None, *, batch: int = 0, convention: str = "torchinfo", depth: int = 0,
            names: bool = False) -> Summary:
    """Parameters, multiply-adds and memory of a model, by layer and in all.

        fac.summary("resnet18.onnx")
        fac.summary(net, (1, 1, 28, 28))
    """
    got = _facula.analyze(graph_of(model, input_size), batch=batch, convention=convention, depth=depth, names=names)
    columns = ["name", "kind", "op", "in", "out", "params", "macs", "read", "written"]
    return Summary(layers=Table(got["layers"], columns), totals=Report(got["totals"]), table=got["table"], open=got["open"])


def inspect(model: Any, input_size: Any = None, *, batch: int = 0, sort: str | None = None) -> Report:
    """Operators, traffic and memory: layers, what each kind of operator costs, and inputs and outputs."""
    graph = graph_of(model, input_size)
    got = _facula.analyze(graph, batch=batch, convention="core")
    kinds: dict[str, dict[str, Any]] = {}
    for row in got["layers"]:
        k = kinds.setdefault(row["op"], {"op": row["op"], "layers": 0, "params": 0, "macs": 0, "bytes": 0})
        k["layers"] += 1
        k["params"] += row["params"]
        k["macs"] += row["macs"]
        k["bytes"] += row["read"] + row["written"] + row["weights"]
    columns = ["name", "op", "out", "params", "macs", "read", "written", "weights", "alive", "attrs"]
    layers = Table(got["layers"], columns)
    return Report(inputs=Table(graph.inputs()), outputs=Table(graph.outputs()), totals=Report(got["totals"]),
                  ops=Table(list(kinds.values())).sorted("macs"), layers=layers.sorted(sort) if sort else layers,
                  notes=graph.notes())


def _random_input(port: Any, batch: int, rng: np.random.Generator) -> Tensor:
    shape = [n if isinstance(n, int) else batch if i == 0 else 1 for i, n in enumerate(port["shape"])]
    if port["dtype"].is_floating_point:
        return Tensor(rng.standard_normal(shape), dtype=port["dtype"])
    return Tensor(rng.integers(0, 2, shape), dtype=port["dtype"])


def _inputs(graph: Graph, given: Any, batch: int, seed: int) -> list[Tensor]:
    ports = graph.inputs()
    if given is None:
        rng = np.random.default_rng(seed)
        return [_random_input(p, batch, rng) for p in ports]
    if isinstance(given, Mapping):
        given = [given[p["name"]] for p in ports]
    elif not isinstance(given, (list, tuple)):
        given = [given]
    return [x if isinstance(x, Tensor) else Tensor(x) for x in given]


def profile(model: Any, inputs: Any = None, *, device: Any = None, batch: int = 1, runs: int = 10, precision: str | None = None,
            seed: int = 0) -> Report:
    """Where the time of a run goes: a row for each step of the program."""
    graph = graph_of(model)
    on = device if device is not None else model.device if isinstance(model, Model) else None
    program = Program(graph, on, precision=precision)
    values = _inputs(graph, inputs, batch, seed)
    plan = program.plan(values)
    program.run(values)
    whole = []
    for _ in range(runs):
        start = time.perf_counter()
        program.run(values)
        whole.append(time.perf_counter() - start)
    program.profile(True)
    for _ in range(runs):
        program.run(values)
    steps = program.steps()
    program.profile(False)
    total = sum(s["seconds"] for s in steps) or 1.0
    rows = []
    for s in steps:
        n = max(s["runs"], 1)
        seconds = s["seconds"] / n
        rows.append({"nodes": s["nodes"], "op": s["op"], "solver": s["solver"], "ms": 1e3 * seconds, "share": s["seconds"] / total,
                     "gmacs_per_s": s["macs"] / seconds / 1e9 if seconds else 0.0, "layouts": s["layouts"], "fallback": s["fallback"]})
    return Report(ms=1e3 * float(np.median(whole)), runs=runs, steps=Table(rows), arena=plan["arena"], packed=plan["packed"],
                  macs=plan["macs"])


class Verdict(Report):
    """Whether two models are the same function; true when they are."""

    def __bool__(self) -> bool:
        return bool(self["same"] == "same")

    def __repr__(self) -> str:
        return f"{self['same']}: {self['why']}" if self["why"] else str(self["same"])


def verify(a: Any, b: Any, *, mode: str = "full", device: Any = None, seed: int = 0, rounds: int = 0, batch: int = 0,
           rtol: float = 0.0, atol: float = 0.0, inputs: Any = None, whole: bool = False) -> Verdict:
    """Are two models the same function?

        fac.verify("a.onnx", "b.onnx")      a Verdict, which is true when they are
        fac.verify(a, b, mode="data")       full, exact, bound or data
    """
    ga, gb = graph_of(a), graph_of(b)
    given = None if inputs is None else _inputs(ga, inputs, 1, 0)
    got = _facula.verify(ga, gb, device=device, mode=mode, seed=seed, rounds=rounds, batch=batch, rtol=rtol, atol=atol, inputs=given,
                         whole=whole)
    got["segments"] = Table(got["segments"])
    return Verdict(got)


def diff(a: Any, b: Any, *, names: bool = False, order: bool = False, structure: bool = False) -> Report:
    """How two models differ in structure: a row for each change."""
    got = _facula.diff(graph_of(a), graph_of(b), names=names, order=order, structure=structure)
    got["changes"] = Table(got["changes"], ["of", "kind", "a", "b", "text", "largest", "share"])
    return Report(got)


def tile(model: Any, m: int, n: int, k: int, *, sum: str = "chain", mode: str = "unroll", conv: str = "patches", pad: bool = False,
         batch: int = 0, only: str | None = None, count_only: bool = False) -> Report:
    """A model whose matrix products are m x n x k at most: `.model`, and `.rows` that say what became of each."""
    graph, rows = _facula.tile(graph_of(model), m, n, k, sum=sum, mode=mode, conv=conv, pad=pad, batch=batch, only=only,
                               count_only=count_only)
    made = None if graph is None else model.with_graph(graph) if isinstance(model, Model) else Model(graph)
    return Report(model=made, rows=Table(rows, ["name", "op", "mnk", "tile", "tiles", "utilisation", "kept", "advice"]))


def activations(model: Any, inputs: Any = None, *, at: Sequence[str] | None = None, keep: bool = False, device: Any = None,
                batch: int = 1, seed: int = 0) -> Report:
    """Statistics of every tensor inside a model; keep=True gives the tensors, too.

    at: only these, with * and ?.  inputs: an array, {name: array}, or a list of such dictionaries, one for each run.
    """
    graph = graph_of(model)
    many = inputs if isinstance(inputs, list) and inputs and isinstance(inputs[0], Mapping) else [inputs]
    runs = [_inputs(graph, one, batch, seed) for one in many]
    on = device if device is not None else model.device if isinstance(model, Model) else None
    rows, kept = _facula.activations(graph, on, runs, list(at) if at else None, keep)
    columns = ["name", "op", "shape", "dtype", "min", "max", "mean", "std", "zeros", "nan", "infinite", "dead"]
    return Report(rows=Table(rows, columns), tensors=kept)


_OPEN = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("facula._facula", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
try:
    module.Device("opencl")
except module.Error:
    pass
"""


@functools.cache
def _opencl_survives() -> bool:
    """Whether a process outlives opening an OpenCL device: some drivers end it (PoCL where there is no /sys)."""
    if _facula.opens_in_a_child("opencl"):
        return True
    trial = subprocess.run([sys.executable, "-I", "-c", _OPEN, str(_facula.__file__)], capture_output=True)
    if trial.returncode < 0:
        warnings.warn(f"OpenCL is left out: its driver ends the process that opens a device (signal {-trial.returncode})", RuntimeWarning)
    return trial.returncode >= 0


def devices() -> Table:
    """Where programs can run.  OpenCL is left out, with a warning, where its driver ends the process that opens a device."""
    rows = []
    for name in ("cpu", *(f"opencl:{i}" for i in range(16))):
        if name == "opencl:0" and not _opencl_survives():
            break
        try:
            d = _facula.Device(name)
        except _facula.Error:
            break
        rows.append({"name": d.name, "about": d.about})
    return Table(rows)


def _timing(graph: Graph, on: _facula.Device, precision: str | None, batch: int, seconds: float) -> tuple[Any, ...]:
    """A program that was watched for so long, and the median of its runs."""
    program = Program(graph, on, precision=precision)
    values = _inputs(graph, None, batch, 0)
    program.run(values)
    program.profile(True)
    whole: list[float] = []
    begin = time.perf_counter()
    while len(whole) < 3 or (time.perf_counter() - begin < seconds and len(whole) < 2000):
        start = time.perf_counter()
        program.run(values)
        whole.append(time.perf_counter() - start)
    half = any(p["dtype"].name in ("float16", "bfloat16") for p in graph.inputs())
    return program, float(np.median(whole)), len(whole), precision, half


def report(model: Any, path: Any = None, input_size: Any = None, *, batch: int = 1, profile: bool = False, seconds: float = 1.0,
           peaks: bool = False, target: str | None = None, date: bool = False, device: Any = None, precision: str | None = None,
           name: str | None = None) -> str:
    """A page about a model: graph, costs, memory, roofline; its text, which is written to `path`, too.

        fac.report("resnet18.onnx", "page.html")
        fac.report(net, "page.html", (1, 1, 28, 28), profile=True)      it is run, for `seconds`

    peaks: the roofline of this machine, measured; target="350G,20G": of one with so many operations and bytes a second.
    date: the page says when it was made; without, a model gives one and the same page.
    """
    graph = graph_of(model, input_size)
    if name is None:
        name = os.fspath(model) if isinstance(model, (str, os.PathLike)) else getattr(model, "name", None) or type(model).__name__
    if device is None and isinstance(model, Model):
        device = model.device
    if precision is None and isinstance(model, Model):
        precision = model.precision
    if batch < 1:
        raise ValueError(f"report: a batch of {batch}, expected 1 or more")
    on = _facula.Device(device)
    timing = _timing(graph, on, precision, batch, seconds) if profile else None
    day = time.strftime("%Y-%m-%d", time.gmtime()) if date else None
    text = _facula.page(graph, name, None, day, batch, target, on if peaks or profile else None, timing)
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text
