"""The usual optimizers, with PyTorch's names, formulas and defaults."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from .. import functional as T
from .._facula import Tensor
from .base import Move, Optimizer, _move, move_together


class SGD(Optimizer):
    """p -= lr g; with momentum the running sum of gradients."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, maximize: bool = False) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov's momentum needs a momentum and no dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov, "maximize": maximize})

    def update_all(self, moves: list[Move], group: dict[str, Any]) -> None:
        decay, momentum, nesterov = bool(group["weight_decay"]), bool(group["momentum"]), group["nesterov"]
        names = ("momentum_buffer",) if momentum else ()

        def formula(p: Any, grad: Any, states: Sequence[Any], numbers: Sequence[Any]) -> Sequence[Any]:
            lr, weight, mu, share = numbers
            if decay:
                grad = grad + p * weight
            if not momentum:
                return (p - grad * lr,)
            buffer = states[0] * mu + grad * share
            return p - (grad + buffer * mu if nesterov else buffer) * lr, buffer

        first = [m for m in moves if momentum and "momentum_buffer" not in m[2]]
        for p, _, state in first:
            state["momentum_buffer"] = T.zeros_like(p.detach())
        new = set(map(id, first))
        for share, some in ((1.0, first), (1 - group["dampening"], [m for m in moves if id(m) not in new])):
            if some:                    # the first buffer is the gradient itself
                move_together(("sgd", decay, momentum, nesterov), formula, names,
                              (group["lr"], group["weight_decay"], group["momentum"], share), some)


class Adam(Optimizer):
    """Steps by the mean of gradients over the root of the mean of their squares (Kingma and Ba 2015)."""

    decoupled = False

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, maximize: bool = False) -> None:
        if not (0 <= betas[0] < 1 and 0 <= betas[1] < 1):
            raise ValueError(f"betas are from 0 to below 1, not {betas}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "maximize": maximize})

    def update_all(self, moves: list[Move], group: dict[str, Any]) -> None:
        (b1, b2), decay = group["betas"], group["weight_decay"]
        decays, decoupled, amsgrad = bool(decay), self.decoupled, group["amsgrad"]
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if amsgrad else ("exp_avg", "exp_avg_sq")

        def formula(p: Any, grad: Any, states: Sequence[Any], numbers: Sequence[Any]) -> Sequence[Any]:
            mu, of_grad, nu, of_square, weight, lr, below, eps = numbers
            if decays and decoupled:
                p = p * weight
            elif decays:
                grad = grad + p * weight
            m = states[0] * mu + grad * of_grad
            v = states[1] * nu + (grad * grad) * of_square
            most = [v.maximum(states[2])] if amsgrad else []
            return p - (m * lr) / ((most[0] if amsgrad else v).sqrt() / below + eps), m, v, *most

        by_step: dict[int, list[Move]] = {}
        for move in moves:
            state = move[2]
            by_step.setdefault(state["step"], []).append(move)
            for name in names:
                if name not in state:
                    state[name] = T.zeros_like(move[0].detach())
        for n, some in by_step.items():
            weight = 1 - group["lr"] * decay if decoupled else decay
            numbers = (b1, 1 - b1, b2, 1 - b2, weight, group["lr"] / (1 - b1 ** n), math.sqrt(1 - b2 ** n), group["eps"])
            move_together(("adam", decays, decoupled, amsgrad), formula, names, numbers, some)


class AdamW(Adam):
    """Adam whose weight decay is taken off the parameters (Loshchilov and Hutter 2019)."""

    decoupled = True

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, maximize: bool = False) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize)


class RMSprop(Optimizer):
    """Steps by gradients over the root of the mean of their squares."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
                 momentum: float = 0.0, centered: bool = False) -> None:
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
                                  "centered": centered})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        a = group["alpha"]
        if group["weight_decay"]:
            grad = grad + group["weight_decay"] * p.detach()
        v = state["square_avg"] = a * state.get("square_avg", T.zeros_like(grad)) + (1 - a) * (grad * grad)
        if group["centered"]:
            mean = state["grad_avg"] = a * state.get("grad_avg", T.zeros_like(grad)) + (1 - a) * grad
            v = v - mean * mean
        by = grad / (T.sqrt(v) + group["eps"])
        if group["momentum"]:
            by = state["momentum_buffer"] = group["momentum"] * state.get("momentum_buffer", T.zeros_like(grad)) + by
        _move(p, group["lr"] * by)


class Adagrad(Optimizer):
    """Steps by gradients over the root of the sum of their squares."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
                 initial_accumulator_value: float = 0.0, eps: float = 1e-10) -> None:
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "initial": initial_accumulator_value,
                                  "eps": eps})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            grad = grad + group["weight_decay"] * p.detach()
        total = state["sum"] = state.get("sum", T.full_like(grad, group["initial"])) + grad * grad
        lr = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        _move(p, lr * grad / (T.sqrt(total) + group["eps"]))


class Lion(Optimizer):
    """Steps by the sign of a running mean (Chen et al. 2023)."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        b1, b2 = group["betas"]
        value = p.detach() * (1 - group["lr"] * group["weight_decay"])
        m = state.get("exp_avg", T.zeros_like(grad))
        p._become(value - group["lr"] * T.sign(b1 * m + (1 - b1) * grad))
        state["exp_avg"] = b2 * m + (1 - b2) * grad
