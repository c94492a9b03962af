"""The usual optimizers, with PyTorch's names, formulas and defaults."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .. import functional as T
from .._facula import Tensor
from .base import Optimizer, _move


class SGD(Optimizer):
    """p -= lr g; with momentum the running sum of gradients."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, maximize: bool = False) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov's momentum needs a momentum and no dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov, "maximize": maximize})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            grad = grad + group["weight_decay"] * p.detach()
        if group["momentum"]:
            before = state.get("momentum_buffer")
            buffer = grad if before is None else group["momentum"] * before + (1 - group["dampening"]) * grad
            state["momentum_buffer"] = buffer
            grad = grad + group["momentum"] * buffer if group["nesterov"] else buffer
        _move(p, group["lr"] * grad)


class Adam(Optimizer):
    """Steps by the mean of gradients over the root of the mean of their squares (Kingma and Ba 2015)."""

    decoupled = False

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, maximize: bool = False) -> None:
        if not (0 <= betas[0] < 1 and 0 <= betas[1] < 1):
            raise ValueError(f"betas are from 0 to below 1, not {betas}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "maximize": maximize})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        b1, b2 = group["betas"]
        value = p.detach()
        if group["weight_decay"]:
            if self.decoupled:
                value = value * (1 - group["lr"] * group["weight_decay"])
            else:
                grad = grad + group["weight_decay"] * value
        if "exp_avg" not in state:
            state["exp_avg"], state["exp_avg_sq"] = T.zeros_like(value), T.zeros_like(value)
        m = state["exp_avg"] = b1 * state["exp_avg"] + (1 - b1) * grad
        v = state["exp_avg_sq"] = b2 * state["exp_avg_sq"] + (1 - b2) * (grad * grad)
        if group["amsgrad"]:
            v = state["max_exp_avg_sq"] = T.maximum(state.get("max_exp_avg_sq", v), v)
        n = state["step"]
        denominator = T.sqrt(v) / math.sqrt(1 - b2 ** n) + group["eps"]
        p._become(value - (group["lr"] / (1 - b1 ** n)) * m / denominator)


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
