"""Reverse mode: from a result back to the leaves it was made from.

Each recorded call is a node that knows its inputs and can say what a gradient of its results means
for them.  `backward` visits the nodes in the reverse order of their making, adds up what comes into
each result (python/src/walk.c), and leaves the sums in `.grad` of the leaves.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

from . import _facula
from ._facula import Tensor, apply
from .promote import cast

F = TypeVar("F", bound=Callable[..., Any])


class _Mode:
    """Switches recording on or off, as a context or around a function."""

    on = False

    def __enter__(self) -> None:
        self._before = getattr(self, "_before", [])
        self._before.append(_facula.set_grad_enabled(self.on))

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _facula.set_grad_enabled(self._before.pop())

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return function(*args, **kwargs)
        return inside  # type: ignore[return-value]


class no_grad(_Mode):
    """Nothing inside is recorded for gradients."""


class enable_grad(_Mode):
    """Calls inside are recorded, also within no_grad."""

    on = True


inference_mode = no_grad


def is_grad_enabled() -> bool:
    """Are gradients recorded here?"""
    return _facula.is_grad_enabled()


class set_grad_enabled(_Mode):
    """Recording as the argument says, from now on or as a context."""

    def __init__(self, mode: bool) -> None:
        self._before = [_facula.set_grad_enabled(mode)]

    def __enter__(self) -> None:
        pass


def _add(a: Tensor | None, b: Tensor) -> Tensor:
    return b if a is None else apply("add", None, 0, a, b)


class _After:
    """A hook of a leaf, called after its gradient was added up."""

    def __init__(self, hook: Callable[[Tensor], None]) -> None:
        self.hook = hook


def _hooked(hooks: Sequence[Callable[[Tensor], Tensor | None]] | None, g: Tensor) -> Tensor:
    for hook in list(hooks or ()):
        if isinstance(hook, _After):
            continue
        changed = hook(g)
        if changed is not None:
            g = changed
    return g


def _seed(y: Tensor, g: Any) -> Tensor:
    if not y.requires_grad:
        raise RuntimeError("this tensor does not require gradients and has no history: nothing to go back through")
    if g is None:
        if y._count != 1:
            raise RuntimeError(f"backward of a tensor of shape {y.shape} needs the gradient to start from;"
                               " without one it starts from a scalar")
        g = Tensor(1.0, dtype=y.dtype)
        return apply("expand", None, 0, g, Tensor(list(y.shape), dtype="int64")) if y.ndim else g
    g = g if isinstance(g, Tensor) else Tensor(g)
    if g.shape != y.shape:
        raise _facula.ShapeError(f"a gradient of shape {g.shape} for a tensor of shape {y.shape}")
    return cast(g, y.dtype)


def _run(outputs: list[Tensor], grads: Sequence[Any], create: bool, retain: bool | None,
         wanted: dict[tuple[int, int], list[int]]) -> tuple[list[tuple[Tensor, Tensor]], dict[int, Tensor]]:
    """Gradients of leaves, and of what is wanted: {(id of a node, result): [places]}."""
    if len(outputs) != len(grads):
        raise ValueError(f"{len(outputs)} results, but {len(grads)} gradients to start from")
    with _Recording(create):
        seeds = [_seed(y, g) for y, g in zip(outputs, grads)]
        return _facula.walk(outputs, seeds, create, create if retain is None else retain, wanted)


class _Recording(_Mode):
    def __init__(self, on: bool) -> None:
        self.on = on


def backward(tensors: Tensor | Sequence[Tensor], grad_tensors: Any = None, retain_graph: bool | None = None,
             create_graph: bool = False) -> None:
    """Adds d tensors / d leaf to `.grad` of every leaf that requires one."""
    outputs = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    grads = list(grad_tensors) if isinstance(grad_tensors, (list, tuple)) else [grad_tensors] * len(outputs)
    leaves, _ = _run(outputs, grads, create_graph, retain_graph, {})
    with _Recording(create_graph):
        for x, g in leaves:
            g = _hooked(x._hooks, g)
            x.grad = g if x.grad is None else _add(x.grad, g)
            for hook in list(x._hooks or ()):
                if isinstance(hook, _After):
                    hook.hook(x)


def grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], grad_outputs: Any = None,
         retain_graph: bool | None = None, create_graph: bool = False, allow_unused: bool = False) -> tuple[Tensor | None, ...]:
    """d outputs / d inputs, without touching `.grad`."""
    ys = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    xs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    gs = list(grad_outputs) if isinstance(grad_outputs, (list, tuple)) else [grad_outputs] * len(ys)
    wanted: dict[tuple[int, int], list[int]] = {}
    for i, x in enumerate(xs):
        if x.grad_fn is not None:
            wanted.setdefault((id(x.grad_fn), x._index), []).append(i)
    leaves, found = _run(ys, gs, create_graph, retain_graph, wanted)
    by_leaf = {id(x): g for x, g in leaves}
    result: list[Tensor | None] = []
    for i, x in enumerate(xs):
        g = found.get(i)
        if g is None and id(x) in by_leaf:
            g = _hooked(x._hooks, by_leaf[id(x)])
        if g is None and not allow_unused:
            raise RuntimeError(f"input {i} was not used to make the outputs; allow_unused=True gives None for it")
        result.append(g)
    return tuple(result)


class RemovableHandle:
    """What register_hook gives: remove() takes the hook away again."""

    def __init__(self, hooks: Any, hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Takes the hook away."""
        if isinstance(self._hooks, dict):
            for key, value in list(self._hooks.items()):
                if value is self._hook:
                    del self._hooks[key]
        elif self._hook in self._hooks:
            self._hooks.remove(self._hook)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *args: object) -> None:
        self.remove()


def callable_or_error(hook: Any) -> None:
    """A hook is called later, when an error no longer shows where it was given."""
    if not callable(hook):
        raise TypeError(f"a hook is something to call, not {hook!r}")


def register_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Calls hook(gradient) when the gradient by x is known; what it returns takes its place."""
    callable_or_error(hook)
    if not x.requires_grad:
        raise RuntimeError("a hook needs a tensor that requires gradients")
    if x.grad_fn is None:
        if x._hooks is None:
            x._hooks = []
        hooks: Any = x._hooks
    else:
        if x.grad_fn.hooks is None:
            x.grad_fn.hooks = {}
        hooks = x.grad_fn.hooks.setdefault(x._index, [])
    hooks.append(hook)
    return RemovableHandle(hooks, hook)


def register_post_accumulate_grad_hook(x: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Calls hook(x) when backward() has added to x.grad: a leaf may be moved, and its gradient dropped, right there."""
    callable_or_error(hook)
    if not x.requires_grad or x.grad_fn is not None:
        raise RuntimeError("a hook after gradients are added up needs a leaf that requires gradients")
    if x._hooks is None:
        x._hooks = []
    after = _After(hook)
    x._hooks.append(after)
    return RemovableHandle(x._hooks, after)


def retain_grad(x: Tensor) -> None:
    """Keeps the gradient of a tensor that is no leaf in its `.grad`."""
    if x.grad_fn is None or x._retains_grad:
        return

    def keep(g: Tensor) -> None:
        x.grad = g if x.grad is None else _add(x.grad, g)
    register_hook(x, keep)
    x._retains_grad = True


# ---- functions with a backward of their own ----

class FunctionContext:
    """Carries what forward saves for backward."""

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize_grads = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for backward, which reads them as ctx.saved_tensors."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self._saved

    saved_values = saved_tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which results have no gradient."""
        self._fixed = {id(t) for t in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """Does backward get zeros (the default) or None for unused results?"""
        self.materialize_grads = value


class _PythonNode:
    """A node whose gradients are written in Python."""

    def __init__(self, function: type[Function], context: FunctionContext, inputs: tuple[Any, ...],
                 shapes: list[tuple[Any, Any]]) -> None:
        self.function, self.context, self.shapes = function, context, shapes
        self.inputs = inputs
        self.outputs = len(shapes)
        self.name = function.__name__
        self.hooks: dict[int, Any] | None = None

    def vjp(self, incoming: list[Tensor | None], create: bool) -> list[Tensor | None]:
        if self.context is None:
            raise RuntimeError(f"{self.name}: backward() went through this part of the graph already and released it:"
                               " say retain_graph=True the first time")
        given: list[Tensor | None] = []
        for g, (shape, dtype) in zip(incoming, self.shapes):
            if g is None and self.context.materialize_grads:
                g = cast(Tensor(0.0), dtype)
                g = apply("expand", None, 0, g, Tensor(list(shape), dtype="int64")) if shape else g
            given.append(g)
        with _Recording(create):
            result = self.function.backward(self.context, *given)
        grads = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(grads) != len(self.inputs):
            raise RuntimeError(f"{self.name}.backward gave {len(grads)} gradients, {len(self.inputs)} were expected,"
                               " one for each input of forward")
        for i, (x, g) in enumerate(zip(self.inputs, grads)):
            if isinstance(x, Tensor) and isinstance(g, Tensor) and g.shape != x.shape:
                raise _facula.ShapeError(f"{self.name}.backward: gradient {i} has shape {g.shape}, the input {x.shape}")
        return grads

    def release(self) -> None:
        self.context = None  # type: ignore[assignment]
        self.inputs = ()


class Function:
    """A function with a backward of its own: subclass it, write both as static methods, call apply.

        class Square(fac.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x
            @staticmethod
            def backward(ctx, dy):
                x, = ctx.saved_tensors
                return 2 * x * dy

    With a setup_context(ctx, inputs, output), forward(inputs...) has no ctx.
    """

    @staticmethod
    def forward(*args: Any, **named: Any) -> Any:
        """forward(ctx, inputs...): what is computed."""
        raise NotImplementedError("forward(ctx, ...) has to be written")

    @staticmethod
    def setup_context(ctx: FunctionContext, inputs: tuple[Any, ...], output: Any) -> None:
        """setup_context(ctx, inputs, output): what backward needs is kept."""
        raise NotImplementedError("setup_context(ctx, inputs, output) has to be written")

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Any) -> Any:
        """backward(ctx, gradients...): a gradient, or None, for each input."""
        raise NotImplementedError("backward(ctx, ...) has to be written")

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        context = FunctionContext()
        context.needs_input_grad = tuple(isinstance(x, Tensor) and x.requires_grad for x in inputs)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                result = cls.forward(context, *inputs)
            else:
                result = cls.forward(*inputs)
                cls.setup_context(context, inputs, result)
        outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        if not (is_grad_enabled() and any(context.needs_input_grad)):
            return result
        node = _PythonNode(cls, context, inputs, [(y.shape, y.dtype) for y in outputs])
        fixed: set[int] = getattr(context, "_fixed", set())
        wrapped = []
        for k, y in enumerate(outputs):
            z = y.detach()
            if y.dtype.is_floating_point and id(y) not in fixed:
                z.requires_grad = True
                z.grad_fn = node
                z._index = k
            wrapped.append(z)
        return tuple(wrapped) if isinstance(result, (tuple, list)) else wrapped[0]


# ---- checking ----

def gradcheck(function: Callable[..., Any], inputs: Sequence[Tensor] | Tensor, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3, raise_exception: bool = True) -> bool:
    """Compares gradients with central differences, element by element; inputs should be float64."""
    import numpy as np
    xs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    y = function(*xs)
    ys = list(y) if isinstance(y, (tuple, list)) else [y]
    rng = np.random.default_rng(0)
    weights = [Tensor(rng.standard_normal(v.shape), dtype=v.dtype) for v in ys]

    def total(*values: Tensor) -> float:
        out = function(*values)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        return sum(float((np.asarray(o.detach()).astype(np.float64) * np.asarray(w)).sum()) for o, w in zip(outs, weights))

    wrt = [x for x in xs if x.requires_grad]
    got = grad(ys, wrt, weights, allow_unused=True)
    for x, g in zip(wrt, got):
        place = next(i for i, v in enumerate(xs) if v is x)
        base = np.array(np.asarray(x.detach()), dtype=np.float64)
        numeric = np.zeros_like(base)
        for at in np.ndindex(base.shape):
            two = []
            for sign in (1, -1):
                moved = base.copy()
                moved[at] += sign * eps
                values = list(xs)
                values[place] = Tensor(moved, dtype=x.dtype, requires_grad=True)
                two.append(total(*values))
            numeric[at] = (two[0] - two[1]) / (2 * eps)
        analytic = np.zeros_like(base) if g is None else np.asarray(g).astype(np.float64)
        if not np.allclose(analytic, numeric, rtol=rtol, atol=atol):
            if raise_exception:
                raise AssertionError(f"the gradient by input {place} is\n{analytic}\nbut differences give\n{numeric}")
            return False
    return True
