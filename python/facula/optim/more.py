"""Optimizers that are asked for less often, with PyTorch's names, formulas and defaults."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import functional as T
from .._facula import Tensor
from ..autograd import enable_grad, no_grad
from .base import Optimizer, _move


def _decayed(p: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
    y: Tensor = grad + group["weight_decay"] * p.detach() if group["weight_decay"] else grad
    return y


class Adadelta(Optimizer):
    """Steps whose size is the root of the mean of earlier ones squared (Zeiler 2012)."""

    def __init__(self, params: Iterable[Any], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad, rho, eps = _decayed(p, grad, group), group["rho"], group["eps"]
        zeros = T.zeros_like(grad)
        v = state["square_avg"] = rho * state.get("square_avg", zeros) + (1 - rho) * (grad * grad)
        past = state.get("acc_delta", zeros)
        by = T.sqrt(past + eps) / T.sqrt(v + eps) * grad
        state["acc_delta"] = rho * past + (1 - rho) * (by * by)
        _move(p, group["lr"] * by)


class Adafactor(Optimizer):
    """Adam whose second moments are, of matrices, products of a column and a row (Shazeer and Stern 2018); steps are relative to the size
    of parameters."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3),
                 d: float = 1.0, weight_decay: float = 0.0, *, maximize: bool = False) -> None:
        if not (eps[0] is None or eps[0] >= 0) or eps[1] < 0 or d < 1 or beta2_decay > 0:
            raise ValueError(f"Adafactor: eps {eps}, d {d}, beta2_decay {beta2_decay}: 0 or more, 1 or more and 0 or less were expected")
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
                                  "maximize": maximize})

    def _check(self, group: dict[str, Any]) -> None:
        super()._check({k: v for k, v in group.items() if k != "eps"})      # which is a pair

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        eps1, eps2 = group["eps"]
        eps1 = {"float64": 2.0 ** -52, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}.get(p.dtype.name, 2.0 ** -23) if eps1 is None else eps1
        step, x = state["step"], p.detach()
        share, size = step ** group["beta2_decay"], x.numel()
        alpha = T.clamp(T.norm(x) / math.sqrt(size), min=eps2) * min(group["lr"], step ** -0.5)

        def mean(name: str, new: Tensor) -> Tensor:
            old = state.get(name)
            y: Tensor = new * share if old is None else old + (new - old) * share
            state[name] = y
            return y
        square = grad * grad
        if grad.ndim > 1:
            row, column = mean("row_var", T.mean(square, -1, True)), mean("col_var", T.mean(square, -2, True))
            variance = T.matmul(row, column) / T.clamp(T.mean(row, -2, True), min=eps1)
        else:
            variance = mean("variance", square)
        by = grad / T.sqrt(T.clamp(variance, min=eps1 * eps1))
        by = by * (alpha / T.clamp(T.norm(by) / (math.sqrt(size) * group["d"]), min=1.0))
        _move(p, by + x * (group["lr"] * group["weight_decay"]) if group["weight_decay"] else by)


class Adamax(Optimizer):
    """Adam by the largest gradient instead of the mean of squares (Kingma and Ba 2015)."""

    def __init__(self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad, (b1, b2) = _decayed(p, grad, group), group["betas"]
        zeros = T.zeros_like(grad)
        m = state["exp_avg"] = b1 * state.get("exp_avg", zeros) + (1 - b1) * grad
        u = state["exp_inf"] = T.maximum(b2 * state.get("exp_inf", zeros), T.abs(grad) + group["eps"])
        _move(p, (group["lr"] / (1 - b1 ** state["step"])) * m / u)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat 2016)."""

    def __init__(self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum_decay: float = 4e-3) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad, (b1, b2), n = _decayed(p, grad, group), group["betas"], state["step"]
        zeros = T.zeros_like(grad)
        now, after = (b1 * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (n, n + 1))
        product = state["mu_product"] = state.get("mu_product", 1.0) * now
        m = state["exp_avg"] = b1 * state.get("exp_avg", zeros) + (1 - b1) * grad
        v = state["exp_avg_sq"] = b2 * state.get("exp_avg_sq", zeros) + (1 - b2) * (grad * grad)
        below = T.sqrt(v / (1 - b2 ** n)) + group["eps"]
        lr = group["lr"]
        _move(p, (lr * (1 - now) / (1 - product)) * grad / below + (lr * after / (1 - product * after)) * m / below)


class RAdam(Optimizer):
    """Adam that waits until the mean of squares is worth something (Liu et al. 2019)."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad, (b1, b2), n = _decayed(p, grad, group), group["betas"], state["step"]
        zeros = T.zeros_like(grad)
        m = state["exp_avg"] = b1 * state.get("exp_avg", zeros) + (1 - b1) * grad
        v = state["exp_avg_sq"] = b2 * state.get("exp_avg_sq", zeros) + (1 - b2) * (grad * grad)
        first, second = 1 - b1 ** n, 1 - b2 ** n
        most = 2 / (1 - b2) - 1
        length = most - 2 * n * b2 ** n / second
        if length <= 5:
            _move(p, (group["lr"] / first) * m)
            return
        rectified = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        _move(p, (group["lr"] / first * rectified * math.sqrt(second)) * m / (T.sqrt(v) + group["eps"]))


class Rprop(Optimizer):
    """Steps by the sign of gradients alone, larger while the sign stays (Riedmiller and Braun 1993)."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50.0)) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        (less, more), (least, most) = group["etas"], group["step_sizes"]
        zeros = T.zeros_like(grad)
        turn = grad * state.get("prev", zeros)
        factor = T.where(turn > 0, zeros + more, T.where(turn < 0, zeros + less, zeros + 1.0))
        size = state["step_size"] = T.clamp(state.get("step_size", zeros + group["lr"]) * factor, least, most)
        grad = state["prev"] = T.where(turn < 0, zeros, grad)
        _move(p, T.sign(grad) * size)


class ASGD(Optimizer):
    """Gradient steps that get smaller, and the mean of the parameters, `ax` of the state (Polyak and Juditsky 1992)."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
                 weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay})

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad, n = _decayed(p, grad, group), state["step"]
        eta = state.get("eta", group["lr"])
        p._become(p.detach() * (1 - group["lambd"] * eta) - eta * grad)
        mu = state.get("mu", 1.0)
        mean = state.get("ax", T.zeros_like(grad))
        state["ax"] = p.detach() if mu == 1 else mean + mu * (p.detach() - mean)
        state["eta"] = group["lr"] / (1 + group["lambd"] * group["lr"] * n) ** group["alpha"]
        state["mu"] = 1 / max(1.0, n - group["t0"])


class LBFGS(Optimizer):
    """Steps by an estimate of the curvature from the last gradients (Liu and Nocedal 1989); step(closure) computes the loss and its
    gradients as often as it has to.  Without a line search."""

    def __init__(self, params: Iterable[Any], lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100) -> None:
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_eval or max_iter * 5 // 4, "tolerance_grad": tolerance_grad,
                                  "tolerance_change": tolerance_change, "history_size": history_size})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS takes one group of parameters")
        self._memory: dict[str, Any] = {"steps": 0, "pairs": []}

    def _flat_gradient(self) -> Tensor:
        parts = [T.zeros(p._count) if p.grad is None else p.grad.detach().reshape(-1) for p in self.param_groups[0]["params"]]
        return T.cat(parts)

    def _add(self, step: float, direction: Tensor) -> None:
        at = 0
        for p in self.param_groups[0]["params"]:
            p._become(p.detach() + step * direction[at:at + p._count].reshape(p.shape))
            at += p._count

    def _direction(self, gradient: Tensor) -> Tensor:
        pairs, scale, shares = self._memory["pairs"], self._memory["scale"], []
        q = -gradient
        for y, s, curvature in reversed(pairs):
            shares.append(float((s * q).sum()) / curvature)
            q = q - shares[-1] * y
        d: Tensor = q * scale
        for (y, s, curvature), share in zip(pairs, reversed(shares)):
            d = d + s * (share - float((y * d).sum()) / curvature)
        return d

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; closure() computes the loss and its gradients anew."""
        if closure is None:
            raise ValueError("LBFGS.step needs a function that computes the loss and its gradients")
        g, m = self.param_groups[0], self._memory
        with enable_grad():
            first = closure()
        loss, calls, gradient = float(first), 1, self._flat_gradient()
        for _ in range(g["max_iter"]):
            if float(T.amax(T.abs(gradient))) <= g["tolerance_grad"] or calls >= g["max_eval"]:
                break
            with no_grad():
                step = self._learn(gradient, g)
                d = m["direction"]
                slope = float((gradient * d).sum())
                if slope > -g["tolerance_change"]:
                    break
                self._add(step, d)
            before = loss
            with enable_grad():
                loss = float(closure())
            calls, gradient = calls + 1, self._flat_gradient()
            if float(T.amax(T.abs(d * step))) <= g["tolerance_change"] or abs(loss - before) < g["tolerance_change"]:
                break
        return first

    def _learn(self, gradient: Tensor, g: dict[str, Any]) -> float:
        """Sets the direction; returns how far to go."""
        m = self._memory
        m["steps"] += 1
        step = g["lr"]
        if m["steps"] == 1:
            m["direction"], m["scale"] = -gradient, 1.0
            step = min(1.0, 1 / float(T.sum(T.abs(gradient)))) * g["lr"]
        else:
            y, s = gradient - m["gradient"], m["direction"] * m["step"]
            curvature = float((y * s).sum())
            if curvature > 1e-10:
                m["pairs"] = [*m["pairs"], (y, s, curvature)][-g["history_size"]:]
                m["scale"] = curvature / float((y * y).sum())
            m["direction"] = self._direction(gradient)
        m["gradient"], m["step"] = gradient, step
        return float(step)
