"""Schedules of learning rates, with PyTorch's names, formulas and defaults."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .base import Optimizer


class lr_scheduler:
    """Schedules: step() after each epoch (or batch) sets the rate of every group."""

    class LRScheduler:
        """A schedule of learning rates; step() after each epoch."""

        def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
            if not isinstance(optimizer, Optimizer):
                raise TypeError(f"{type(self).__name__}: an Optimizer was expected, not {type(optimizer).__name__}")
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
        """Times gamma every step_size epochs."""

        def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
            self.step_size, self.gamma = step_size, gamma
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return float(self.gamma ** (t // self.step_size))

    class MultiStepLR(LRScheduler):
        """Times gamma at milestones."""

        def __init__(self, optimizer: Optimizer, milestones: list[int], gamma: float = 0.1) -> None:
            self.milestones, self.gamma = sorted(milestones), gamma
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return float(self.gamma ** sum(m <= t for m in self.milestones))

    class ExponentialLR(LRScheduler):
        """Times gamma in each epoch."""

        def __init__(self, optimizer: Optimizer, gamma: float) -> None:
            self.gamma = gamma
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return float(self.gamma ** t)

    class LinearLR(LRScheduler):
        """From one factor to another in a straight line."""

        def __init__(self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5) -> None:
            self.start, self.end, self.total = start_factor, end_factor, total_iters
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return self.start + (self.end - self.start) * min(t, self.total) / self.total

    class PolynomialLR(LRScheduler):
        """Down to 0 by a power."""

        def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0) -> None:
            self.total, self.power = total_iters, power
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return float((1 - min(t, self.total) / self.total) ** self.power)

    class LambdaLR(LRScheduler):
        """The first rate times function(epoch)."""

        def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
            self.function = lr_lambda
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return self.function(t)

    class CosineAnnealingLR(LRScheduler):
        """Down to eta_min along half a cosine."""

        def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
            self.T_max, self.eta_min = T_max, eta_min
            super().__init__(optimizer)

        def rate(self, base: float, t: int) -> float:
            return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / self.T_max)) / 2

    class CosineAnnealingWarmRestarts(LRScheduler):
        """Along cosines that begin again."""

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
        """Up to max_lr and down again, once."""

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

    class ConstantLR(LRScheduler):
        """Times a factor for the first epochs."""

        def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5) -> None:
            self.share, self.total = factor, total_iters
            super().__init__(optimizer)

        def factor(self, t: int) -> float:
            return self.share if t < self.total else 1.0

    class MultiplicativeLR(LRScheduler):
        """Each rate times function(epoch)."""

        def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
            self.function, self.product = lr_lambda, 1.0
            super().__init__(optimizer)

        def step(self) -> None:
            if self.last_epoch >= 0:
                self.product *= self.function(self.last_epoch + 1)
            super().step()

        def factor(self, t: int) -> float:
            return self.product

    class CyclicLR(LRScheduler):
        """Up from base_lr to max_lr and down again; mode: triangular, triangular2, exp_range."""

        def __init__(self, optimizer: Optimizer, base_lr: float, max_lr: float, step_size_up: int = 2000, step_size_down: int | None = None,
                     mode: str = "triangular", gamma: float = 1.0) -> None:
            if mode not in ("triangular", "triangular2", "exp_range"):
                raise ValueError(f"CyclicLR: mode is triangular, triangular2 or exp_range, not {mode!r}")
            self.low, self.high, self.mode, self.gamma = base_lr, max_lr, mode, gamma
            self.up = step_size_up
            self.length = step_size_up + (step_size_up if step_size_down is None else step_size_down)
            super().__init__(optimizer)

        def rate(self, base: float, t: int) -> float:
            cycle, place = t // self.length, t % self.length
            height = place / self.up if place <= self.up else (self.length - place) / (self.length - self.up)
            scale = {"triangular": 1.0, "triangular2": 0.5 ** cycle, "exp_range": self.gamma ** t}[self.mode]
            return self.low + (self.high - self.low) * height * scale

    class SequentialLR:
        """Schedules one after the other: milestones says where each but the first begins."""

        def __init__(self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: Sequence[int]) -> None:
            if len(milestones) != len(schedulers) - 1:
                raise ValueError(f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} milestones, not {len(milestones)}")
            self.optimizer, self.schedulers, self.milestones = optimizer, list(schedulers), list(milestones)
            self.last_epoch = 0
            self._begin(0)

        def _begin(self, k: int) -> None:
            s = self.schedulers[k]
            for g, base in zip(self.optimizer.param_groups, s.base_lrs):
                g["lr"] = base
            s.last_epoch = -1
            s.step()

        def step(self) -> None:
            self.last_epoch += 1
            if self.last_epoch in self.milestones:
                self._begin(self.milestones.index(self.last_epoch) + 1)
            else:
                self.schedulers[sum(m <= self.last_epoch for m in self.milestones)].step()

        def get_last_lr(self) -> list[float]:
            return [g["lr"] for g in self.optimizer.param_groups]

        def state_dict(self) -> dict[str, Any]:
            return {"last_epoch": self.last_epoch, "schedulers": [s.state_dict() for s in self.schedulers]}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.last_epoch = state["last_epoch"]
            for s, own in zip(self.schedulers, state["schedulers"]):
                s.load_state_dict(own)

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
