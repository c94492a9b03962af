"""Optimizers and schedules of learning rates, with PyTorch's names, formulas and defaults."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from . import functional as T
from ._facula import Tensor, apply
from .autograd import no_grad
from .lazy import lazy


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

    def add_param_group(self, group: dict[str, Any]) -> None:
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


class lr_scheduler:
    """Schedules: step() after each epoch (or batch) sets the rate of every group."""

    class LRScheduler:
        def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
            self.optimizer = optimizer
            self.base_lrs = [g.setdefault("initial_lr", g["lr"]) for g in optimizer.param_groups]
            self.last_epoch = last_epoch
            self.step()

        def factor(self, t: int) -> float:
            raise NotImplementedError

        def rate(self, base: float, t: int) -> float:
            return base * self.factor(t)

        def step(self) -> None:
            self.last_epoch += 1
            for g, base in zip(self.optimizer.param_groups, self.base_lrs):
                g["lr"] = self.rate(base, self.last_epoch)

        def get_last_lr(self) -> list[float]:
            return [g["lr"] for g in self.optimizer.param_groups]

        def state_dict(self) -> dict[str, Any]:
            return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "function")}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.__dict__.update(state)

    class StepLR(LRScheduler):
        def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
            self.step_size, self.gamma = step_size, gamma
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return float(self.gamma ** (t // self.step_size))

    class MultiStepLR(LRScheduler):
        def __init__(self, optimizer: Optimizer, milestones: list[int], gamma: float = 0.1) -> None:
            self.milestones, self.gamma = sorted(milestones), gamma
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return float(self.gamma ** sum(m <= t for m in self.milestones))

    class ExponentialLR(LRScheduler):
        def __init__(self, optimizer: Optimizer, gamma: float) -> None:
            self.gamma = gamma
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return float(self.gamma ** t)

    class LinearLR(LRScheduler):
        def __init__(self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5) -> None:
            self.start, self.end, self.total = start_factor, end_factor, total_iters
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return self.start + (self.end - self.start) * min(t, self.total) / self.total

    class PolynomialLR(LRScheduler):
        def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0) -> None:
            self.total, self.power = total_iters, power
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return float((1 - min(t, self.total) / self.total) ** self.power)

    class LambdaLR(LRScheduler):
        def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
            self.function = lr_lambda
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return self.function(t)

    class CosineAnnealingLR(LRScheduler):
        def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
            self.T_max, self.eta_min = T_max, eta_min
            super().__init__(optimizer)

        def rate(self, base: float, t: int) -> float:
            return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / self.T_max)) / 2

    class CosineAnnealingWarmRestarts(LRScheduler):
        def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> None:
            self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
            super().__init__(optimizer)

        def rate(self, base: float, t: int) -> float:
            length = self.T_0
            while t >= length:
                t -= length
                length *= self.T_mult
            return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / length)) / 2

    class OneCycleLR(LRScheduler):
        def __init__(self, optimizer: Optimizer, max_lr: float, total_steps: int, pct_start: float = 0.3, div_factor: float = 25.0,
                     final_div_factor: float = 1e4) -> None:
            self.max_lr, self.total, self.up = max_lr, total_steps, pct_start * total_steps - 1
            self.low, self.last = max_lr / div_factor, max_lr / div_factor / final_div_factor
            super().__init__(optimizer)

        def rate(self, base: float, t: int) -> float:
            def between(a: float, b: float, share: float) -> float:
                return b + (a - b) * (1 + math.cos(math.pi * share)) / 2
            if t <= self.up:
                return between(self.low, self.max_lr, t / self.up)
            return between(self.max_lr, self.last, (t - self.up) / (self.total - 1 - self.up))

    class ReduceLROnPlateau:
        """Cuts the rate when a metric stays as it is: step(metric)."""

        def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                     threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0.0, eps: float = 1e-8) -> None:
            self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
            self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
            self.min_lr, self.eps = min_lr, eps
            self.best = math.inf if mode == "min" else -math.inf
            self.bad = self.cooling = 0

        def _better(self, x: float) -> bool:
            sign = 1 if self.mode == "min" else -1
            if self.threshold_mode == "rel":
                return sign * x < sign * self.best * (1 - sign * self.threshold) if math.isfinite(self.best) else True
            return sign * x < sign * self.best - self.threshold

        def step(self, metric: Any) -> None:
            x = float(metric)
            if self._better(x):
                self.best, self.bad = x, 0
            else:
                self.bad += 1
            if self.cooling > 0:
                self.cooling -= 1
                self.bad = 0
            if self.bad > self.patience:
                for g in self.optimizer.param_groups:
                    lr = max(g["lr"] * self.factor, self.min_lr)
                    if g["lr"] - lr > self.eps:
                        g["lr"] = lr
                self.cooling, self.bad = self.cooldown, 0
