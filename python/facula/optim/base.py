"""What optimizers are: parameters in groups, a state for each."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._facula import Tensor, apply
from ..autograd import no_grad
from ..lazy import lazy


class Optimizer:
    """The base: parameters in groups, each with options of its own."""

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
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
                for p in g["params"]:
                    if p.grad is not None:
                        state = self.state.setdefault(id(p), {"step": 0})
                        state["step"] += 1
                        grad = p.grad.detach()
                        self.update(p, -grad if g.get("maximize") else grad, state, g)
        return loss                     # lazy() flushed: a step is a segment, which the next step finds again

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
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
