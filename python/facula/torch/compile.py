"""torch.compile(model, backend="facula"): graphs of AOTAutograd as programs, forward and backward.

Tensors of torch's cpu are used where they lie.  What the table does not have runs in torch, between two programs."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import _facula
from . import notes
from .aten import rows
from .aten.call import PYTHON, bound, row_name, short, write
from .graph import Graph, Refused, Value
from .parts import Bound, Part

Node = Any                      # torch.fx.Node


class _Stuck(Exception):
    """The call at this place cannot be part of a program."""

    def __init__(self, at: int, why: str) -> None:
        self.at, self.why = at, why


def _tensor_type(v: Any, number: Callable[[Any], int]) -> tuple[str, tuple[int, ...]] | None:
    if not isinstance(v, torch.Tensor):
        return None
    return short(v.dtype), tuple(number(n) for n in v.shape)


class _Plan:
    """The graph for some sizes: steps in order."""

    def __init__(self) -> None:
        self.steps: list[Any] = []              # a Part, a Node that torch calls, or a Node of Python's numbers
        self.done = False


class Compiled:
    """A graph module as programs; called with the list of its inputs."""

    def __init__(self, gm: Any, static: Sequence[int], device: Any, precision: str | None) -> None:
        self.gm, self.device, self.precision = gm, device, precision
        self.places = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self.static = {self.places[i] for i in static if i < len(self.places)}
        self.nodes = self._ordered()
        self.result = next(n for n in gm.graph.nodes if n.op == "output")
        self.last = self._last_uses()
        self.plans: dict[Any, _Plan] = {}
        self.refused: dict[Node, str] = {}

    def _ordered(self) -> list[Node]:
        """Calls in order, what picks a result right after what gave it."""
        out: list[Node] = []
        for n in self.gm.graph.nodes:
            if n.op not in ("call_function", "get_attr") or n.target is operator.getitem and isinstance(n.args[0], torch.fx.Node) \
                    and n.args[0].op == "call_function":
                continue
            out.append(n)
            stack = [n]
            while stack:
                for user in stack.pop().users:
                    if user.op == "call_function" and user.target is operator.getitem:
                        out.append(user)
                        stack.append(user)
        return out

    def _last_uses(self) -> dict[Node, list[Node]]:
        """What nothing needs after a node."""
        seen: set[Node] = set(self.result.all_input_nodes)
        last: dict[Node, list[Node]] = {}
        for n in reversed(self.nodes):
            gone = [i for i in n.all_input_nodes if i not in seen]
            seen.update(gone)
            last[n] = gone
        return last

    # -- running

    def __call__(self, args: list[Any]) -> list[Any]:
        env: dict[Node, Any] = dict(zip(self.places, args))
        args.clear()
        key = tuple(v for v in env.values() if not isinstance(v, torch.Tensor))
        plan = self.plans.get(key)
        if plan is None or not plan.done or not self._states_fit(plan, env):
            plan = self.plans[key] = _Plan()
            self._first(plan, env)
            plan.done = True
        else:
            for step in plan.steps:
                self._run(step, env)
        return list(torch.fx.map_arg(self.result.args[0], lambda n: env[n]))

    def _states_fit(self, plan: _Plan, env: dict[Node, Any]) -> bool:
        for step in plan.steps:
            if not isinstance(step, Part):
                continue
            for node, state in step.states.items():
                if not state.fits(env[node]):
                    return False
                if state.moves > 1 and node in self.static:     # trained between calls: packed in each run
                    self.static.discard(node)
                    return False
        return True

    def _run(self, step: Any, env: dict[Node, Any]) -> None:
        if isinstance(step, Part):
            for (node, _), t in zip(step.outputs, step.run(env.__getitem__)):
                env[node] = t
            return
        args, kwargs = torch.fx.map_arg((step.args, step.kwargs), lambda n: env[n])
        if step.op == "get_attr":
            env[step] = getattr(self.gm, step.target)
        else:
            if isinstance(step.target, torch._ops.OpOverload):
                notes.fell_back(row_name(step.target), self.refused.get(step, ""))
            env[step] = step.target(*args, **kwargs)
        for n in self.last[step]:
            if n not in self.static:
                env.pop(n, None)

    # -- the first time: parts are made, and run, one after the other

    def _first(self, plan: _Plan, env: dict[Node, Any]) -> None:
        number = self._numbers(env)
        at = 0
        while at < len(self.nodes):
            n = self.nodes[at]
            if n.op == "get_attr" or n.target is operator.getitem or n.target in PYTHON \
                    or not self._may(n) or n in self.refused:
                plan.steps.append(n)
                self._run(n, env)
                at += 1
                continue
            end = self._run_of(at)
            part, end = self._longest(at, end, env, number)
            if part is not None:
                plan.steps.append(part)
                if not self._tried(part, at, end, plan, env):
                    continue
                at = end
        notes.compiled(not self.plans or len(self.plans) == 1, sum(isinstance(s, Part) for s in plan.steps))

    def _tried(self, part: Part, at: int, end: int, plan: _Plan, env: dict[Node, Any]) -> bool:
        """Runs it; where a device refuses it, its calls are torch's."""
        try:
            self._run(part, env)
        except _facula.Error as error:
            plan.steps.pop()
            for n in self.nodes[at:end]:
                self.refused.setdefault(n, str(error))
            return False
        for n in self.nodes[at:end]:
            if isinstance(n.target, torch._ops.OpOverload):
                notes.native(row_name(n.target))
        return True

    def _may(self, n: Node) -> bool:
        if not isinstance(n.target, torch._ops.OpOverload):
            return False
        if row_name(n.target) in rows:
            return True
        self.refused.setdefault(n, "no row in the table")
        return False

    def _run_of(self, at: int) -> int:
        end = at
        while end < len(self.nodes):
            n = self.nodes[end]
            picks = n.target is operator.getitem and end > at
            if not picks and (n in self.refused or not self._may(n)):
                break
            end += 1
        return end

    def _longest(self, at: int, end: int, env: dict[Node, Any], number: Any) -> tuple[Part | None, int]:
        while end > at:
            try:
                return self._part(at, end, env, number), end
            except _Stuck as stuck:
                self.refused[self.nodes[stuck.at]] = stuck.why
                end = stuck.at
        return None, at

    def _numbers(self, env: dict[Node, Any]) -> Callable[[Any], int]:
        """Sizes with names as numbers, by the inputs of this call."""
        symbols: dict[Any, Any] = {}
        for n, v in env.items():
            val = n.meta.get("val")
            if isinstance(val, torch.SymInt):
                symbols[val.node.expr] = v
            elif isinstance(v, torch.Tensor) and isinstance(val, torch.Tensor):
                for s, size in zip(val.shape, v.shape):
                    if isinstance(s, torch.SymInt):
                        symbols.setdefault(s.node.expr, size)

        def number(s: Any) -> int:
            return int(s.node.expr.xreplace(symbols)) if isinstance(s, torch.SymInt) else int(s)
        return number

    def _part(self, at: int, end: int, env: dict[Node, Any], number: Any) -> Part:
        return _Writer(self, self.nodes[at:end], at, env, number).part()


class _Writer:
    """Writes some calls into a graph."""

    def __init__(self, whole: Compiled, nodes: list[Node], at: int, env: dict[Node, Any], number: Any) -> None:
        self.whole, self.nodes, self.at, self.env, self.number = whole, nodes, at, env, number
        self.g = Graph()
        self.values: dict[Node, Any] = {}
        self.inputs: list[Node] = []
        self.states: dict[Node, Bound] = {}

    def leaf(self, n: Node) -> Any:
        if n in self.values:
            return self.values[n]
        v = self.env[n]
        if not isinstance(v, torch.Tensor):
            return v
        if v.device.type != "cpu" or v.layout is not torch.strided or v.is_conj() or v.is_neg():
            raise Refused(f"a tensor of {v.device.type}, {v.layout}")
        if n in self.whole.static and v.numel():
            self.states[n] = Bound(v)
            self.values[n] = self.g.state(f"s{len(self.states)}", self.states[n].tensor)
        else:
            self.inputs.append(n)
            self.values[n] = self.g.input(f"x{len(self.inputs)}", short(v.dtype), v.shape)
        return self.values[n]

    def call(self, n: Node) -> Any:
        if n.target is operator.getitem:
            return self.leaf(n.args[0])[n.args[1]]
        overload: Any = n.target
        args = bound(overload._schema, *torch.fx.map_arg((n.args, n.kwargs), self.leaf))
        val = n.meta.get("val")
        wanted = [_tensor_type(v, self.number) for v in (val if isinstance(val, (list, tuple)) else [val])]
        y = write(self.g, row_name(overload), args, wanted)
        if isinstance(y, dict) or isinstance(y, list) and y and isinstance(y[-1], dict):
            raise Refused("a call that writes")
        return y

    def part(self) -> Part:
        for k, n in enumerate(self.nodes):
            try:
                self.values[n] = self.call(n)
            except Refused as why:
                raise _Stuck(self.at + k, str(why)) from None
        inside = set(self.nodes)
        outputs = []
        for n in self.nodes:
            v = self.values[n]
            if isinstance(v, Value) and (any(u not in inside for u in n.users)):
                outputs.append((n, v))
        for n, v in outputs:
            self.g.builder.output(n.name, v.id)
        return Part(self.g.builder.finish(), self.inputs, self.states, outputs, self.whole.device, self.whole.precision)


def _on_host(inputs: Sequence[Any]) -> bool:
    return all(v.device.type == "cpu" for v in inputs if isinstance(v, torch.Tensor))


def _static() -> Sequence[int]:
    """Which inputs are parameters and buffers."""
    context = torch._guards.TracingContext.try_get()
    meta = getattr(context, "fw_metadata", None)
    return getattr(meta, "static_input_indices", None) or ()


def _compiler(forward: bool, options: dict[str, Any]) -> Callable[..., Any]:
    def compile_one(gm: Any, inputs: Sequence[Any]) -> Any:
        from functorch.compile import make_boxed_func
        if not _on_host(inputs):                    # the device records what it is given
            return make_boxed_func(gm.forward)
        f = Compiled(gm, _static() if forward else (), options.get("device"), options.get("precision"))

        def run(args: list[Any]) -> list[Any]:
            return f(args)
        run._boxed_call = True                      # type: ignore[attr-defined]
        return run
    return compile_one


def share_threads() -> None:
    """As many threads as torch has when it is imported; a cpu that was used already keeps its own."""
    try:
        _facula.set_num_threads(torch.get_num_threads())
    except RuntimeError:
        pass


def decompositions() -> dict[Any, Any]:
    """torch's core decompositions, but for what the table has whole."""
    from torch._decomp import core_aten_decompositions
    keep = {}
    for op, function in core_aten_decompositions().items():
        if isinstance(op, torch._ops.OpOverload) and row_name(op) in rows:
            continue
        keep[op] = function
    return keep


def backend(gm: Any, inputs: Sequence[Any], **kwargs: Any) -> Any:
    """The backend "facula" of torch.compile.  options: device ("cpu", "opencl", "opencl:1"), precision."""
    from torch._dynamo.backends.common import aot_autograd
    options = dict(kwargs.get("options") or {})
    unknown = set(options) - {"device", "precision"}
    if unknown:
        raise ValueError(f"backend facula: no option {', '.join(sorted(unknown))}; there are device, precision")
    forward, backward = _compiler(True, options), _compiler(False, options)
    made = aot_autograd(fw_compiler=forward, bw_compiler=backward, inference_compiler=forward, decompositions=decompositions())
    return made(gm, inputs)


def register() -> None:
    """Makes it known to torch.compile."""
    from torch._dynamo import list_backends, register_backend
    if "facula" not in list_backends(exclude_tags=()):
        register_backend(backend, name="facula")
