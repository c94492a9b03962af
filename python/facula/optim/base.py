"""What optimizers are: parameters in groups, a state for each."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import _facula
from .._facula import Tensor, apply
from ..autograd import no_grad
from ..fused import fuse
from ..lazy import lazy
from ..nn.module import Module

Move = tuple[Tensor, Tensor, dict[str, Any]]          # a parameter, its gradient, its state
_PORTS, _MOST_CALLS = 64, 512


class Optimizer:
    """The base: parameters in groups, each with options of its own."""

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, (Tensor, Module)):
            hint = "its parameters()" if isinstance(params, Module) else "a list of it"
            raise TypeError(f"{type(self).__name__}: parameters were expected, not a {type(params).__name__}: give {hint}")
        list_of = list(params)
        if not list_of:
            raise ValueError("an optimizer needs parameters: the list is empty")
        groups = list_of if isinstance(list_of[0], dict) else [{"params": list_of}]
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[Any, dict[str, Any]] = {}
        for g in groups:
            self.add_param_group(g)

    def _check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "eps", "weight_decay", "momentum"):
            value = group.get(name, 0)
            if not value >= 0:
                raise ValueError(f"{type(self).__name__}: {name} is 0 or more, not {value}")

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Takes more parameters, with options of their own."""
        self._check({**self.defaults, **group})
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else [p[1] if isinstance(p, tuple) else p for p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"an optimizer takes Tensors, not {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("an optimizer takes leaves, not results of operators")
        self.param_groups.append({**self.defaults, **group, "params": params})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets gradients."""
        for g in self.param_groups:
            for p in g["params"]:
                p.grad = None if set_to_none or p.grad is None else p.grad * 0.0

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves all parameters that have gradients."""
        loss = closure() if closure is not None else None
        with no_grad(), lazy():         # one program for all parameters, also after eager gradients
            for g in self.param_groups:
                moves: list[Move] = []
                for p in g["params"]:
                    grad = p.grad
                    if grad is not None:
                        state = self.state.setdefault(id(p), {"step": 0})
                        state["step"] += 1
                        moves.append((p, -grad.detach() if g.get("maximize") else grad, state))
                self.update_all(moves, g)
        return loss                     # lazy() flushed: a step is a segment, which the next step finds again

    def update_all(self, moves: list[Move], group: dict[str, Any]) -> None:
        """What step() does with the parameters of a group that have gradients: update() of each."""
        for p, grad, state in moves:
            self.update(p, grad.detach(), state, group)

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter; for classes of your own."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on later."""
        order = {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}
        groups, at = [], 0
        for g in self.param_groups:
            n = len(g["params"])
            groups.append({**{k: v for k, v in g.items() if k != "params"}, "params": list(range(at, at + n))})
            at += n
        return {"state": {order[k]: dict(v) for k, v in self.state.items() if k in order}, "param_groups": groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what state_dict() gave."""
        if [len(g["params"]) for g in state["param_groups"]] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError("the state of another optimizer: groups have other numbers of parameters")
        params = [p for g in self.param_groups for p in g["params"]]
        self.state = {id(params[int(i)]): dict(v) for i, v in state["state"].items()}
        for own, g in zip(self.param_groups, state["param_groups"]):
            own.update({k: v for k, v in g.items() if k != "params"})

    def __repr__(self) -> str:
        lines = []
        for i, g in enumerate(self.param_groups):
            words = ", ".join(f"{k}={v}" for k, v in g.items() if k != "params")
            lines.append(f"group {i}: {len(g['params'])} parameters, {words}")
        return f"{type(self).__name__}({'; '.join(lines)})"


def _move(p: Tensor, by: Tensor) -> None:
    p._become(apply("sub", None, 0, p.detach(), by))


_calls: dict[Any, Callable[..., tuple[Any, ...]]] = {}


def move_together(kind: Any, formula: Callable[..., Sequence[Any]], names: tuple[str, ...], numbers: Sequence[float],
                  moves: Sequence[Move]) -> None:
    """formula(p, grad, states, numbers) gives the next p and states, by operators alone; `kind` says which formula it is.

    As many parameters as one call can take are moved by it.  A call for each operator of each parameter took five times as long.
    """
    wide, k = 2 + len(names), len(numbers)
    most = (_PORTS - k) // wide
    if _facula.is_tracing():
        for p, grad, state in moves:
            _keep(p, state, names, formula(p.detach(), grad.detach(), [state[n] for n in names], numbers))
        return
    by_dtype: dict[Any, list[Move]] = {}
    for m in moves:
        by_dtype.setdefault(m[0].dtype, []).append(m)
    for dtype, alike in by_dtype.items():
        for at in range(0, len(alike), most):
            some = alike[at:at + most]
            key = (kind, dtype, tuple(p.shape for p, _, _ in some))
            call = _calls.get(key)
            if call is None:
                if len(_calls) >= _MOST_CALLS:
                    _calls.clear()
                call = _calls[key] = _call_of(formula, dtype, key[2], wide, k)
            ys = call(*[x for p, grad, state in some for x in (p, grad, *[state[n] for n in names])], *numbers)
            for i, (p, _, state) in enumerate(some):
                _keep(p, state, names, ys[i * (wide - 1):(i + 1) * (wide - 1)])


def _call_of(formula: Callable[..., Sequence[Any]], dtype: Any, shapes: Sequence[Any], wide: int, k: int) -> Callable[..., tuple[Any, ...]]:
    n = wide * len(shapes)

    def of_all(*x: Any) -> list[Any]:
        return [y for i in range(0, n, wide) for y in formula(x[i], x[i + 1], x[i + 2:i + wide], x[n:])]
    return fuse([(dtype, shape) for shape in shapes for _ in range(wide)] + [(dtype, ())] * k, of_all)


def _keep(p: Tensor, state: dict[str, Any], names: tuple[str, ...], y: Sequence[Tensor]) -> None:
    p._become(y[0])
    for name, value in zip(names, y[1:]):
        state[name] = value
