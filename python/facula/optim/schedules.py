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

        def next(self, lr: float, base: float, t: int) -> float:
            """The rate of epoch t after `lr`, which other schedules may have changed, too."""
            now, before = self.factor(t), self.factor(t - 1) if t else 1.0
            if now == before:
                return lr
            return lr * (now / before) if before else base * now

        def step(self) -> None:
            self.last_epoch += 1
            for g, base in zip(self.optimizer.param_groups, self.base_lrs):
                g["lr"] = self.next(g["lr"], base, self.last_epoch)

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

        def next(self, lr: float, base: float, t: int) -> float:
            return base * self.function(t)

    class CosineAnnealingLR(LRScheduler):
        """Down to eta_min along half a cosine."""

        def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
            self.T_max, self.eta_min = T_max, eta_min
            super().__init__(optimizer)

        def next(self, lr: float, base: float, t: int) -> float:
            now, before = (1 + math.cos(math.pi * k / self.T_max) for k in (t, t - 1))
            if t == 0:
                return lr
            if (t - 1 - self.T_max) % (2 * self.T_max) == 0:
                return lr + (base - self.eta_min) * now / 2
            return self.eta_min + (lr - self.eta_min) * now / before

    class CosineAnnealingWarmRestarts(LRScheduler):
        """Along cosines that begin again."""

        def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> None:
            self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
            super().__init__(optimizer)

        def next(self, lr: float, base: float, t: int) -> float:
            length = self.T_0
            while t >= length:
                t -= length
                length *= self.T_mult
            return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / length)) / 2

    class _Cycle(LRScheduler):
        """Rates, and the other way round momentum, or the first of Adam's betas, of each group."""

        def __init__(self, optimizer: Optimizer, cycle_momentum: bool, base_momentum: Any, max_momentum: Any) -> None:
            groups = getattr(optimizer, "param_groups", [])
            cycled = [n for n in ("betas", "momentum") if all(n in g for g in groups)]
            if cycle_momentum and not cycled:
                raise ValueError(f"{type(self).__name__}: {type(optimizer).__name__} has neither momentum nor betas: say cycle_momentum=False")
            self.cycled = cycled[0] if cycle_momentum else None
            self.least, self.most = self.of_groups(groups, base_momentum), self.of_groups(groups, max_momentum)
            super().__init__(optimizer)

        def of_groups(self, groups: list[Any], value: Any) -> list[float]:
            """A number for each group, from one for all or a list of them."""
            values = list(value) if isinstance(value, (list, tuple)) else [value] * len(groups)
            if len(values) != len(groups):
                raise ValueError(f"{type(self).__name__}: {len(values)} values for {len(groups)} groups of parameters")
            return values

        def values(self, k: int, t: int) -> tuple[float, float]:
            """Rate and momentum of group k."""
            raise NotImplementedError

        def step(self) -> None:
            self.last_epoch += 1
            for k, g in enumerate(self.optimizer.param_groups):
                g["lr"], momentum = self.values(k, self.last_epoch)
                if self.cycled == "momentum":
                    g["momentum"] = momentum
                elif self.cycled:
                    g["betas"] = (momentum, *g["betas"][1:])

    class OneCycleLR(_Cycle):
        """Up to max_lr and down again, once; momentum, or the first of betas, goes down and up meanwhile."""

        def __init__(self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None, epochs: int | None = None,
                     steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True,
                     base_momentum: float | Sequence[float] = 0.85, max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0,
                     final_div_factor: float = 1e4, three_phase: bool = False) -> None:
            if total_steps is None and (epochs is None or steps_per_epoch is None):
                raise ValueError("OneCycleLR: total_steps, or epochs and steps_per_epoch, were expected")
            if anneal_strategy not in ("cos", "linear"):
                raise ValueError(f"OneCycleLR: anneal_strategy is cos or linear, not {anneal_strategy!r}")
            self.total = int(total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0))
            if self.total < 1 or not 0 <= pct_start <= 1:
                raise ValueError(f"OneCycleLR: {self.total} steps, {pct_start} of them upwards: at least 1 and from 0 to 1 were expected")
            self.high = self.of_groups(getattr(optimizer, "param_groups", []), max_lr)
            self.strategy, self.three, self.up, self.div, self.final = anneal_strategy, three_phase, pct_start * self.total - 1, div_factor, final_div_factor
            super().__init__(optimizer, cycle_momentum, base_momentum, max_momentum)

        def between(self, a: float, b: float, share: float) -> float:
            return a + (b - a) * share if self.strategy == "linear" else b + (a - b) * (1 + math.cos(math.pi * share)) / 2

        def values(self, k: int, t: int) -> tuple[float, float]:
            if t > self.total:
                raise ValueError(f"OneCycleLR: step {t} of {self.total}")
            high, low = self.high[k], self.high[k] / self.div
            last, least, most = low / self.final, self.least[k], self.most[k]
            # the last step of a phase, and from what to what rate and momentum go in it
            phases = [(self.up, low, high, most, least)]
            if self.three:
                phases += [(2 * self.up, high, low, least, most), (self.total - 1.0, low, last, most, most)]
            else:
                phases += [(self.total - 1.0, high, last, least, most)]
            begin = 0.0
            for end, a, b, c, d in phases[:-1]:
                if t <= end:
                    break
                begin = end
            else:
                end, a, b, c, d = phases[-1]
            share = (t - begin) / (end - begin) if end > begin else 1.0
            return self.between(a, b, share), self.between(c, d, share)

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
            self.function = lr_lambda
            super().__init__(optimizer)

        def next(self, lr: float, base: float, t: int) -> float:
            return lr * self.function(t) if t else lr

    class CyclicLR(_Cycle):
        """Up from base_lr to max_lr and down again, momentum or the first of betas the other way; mode: triangular, triangular2, exp_range."""

        def __init__(self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float], step_size_up: int = 2000,
                     step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                     scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
                     base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9) -> None:
            if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
                raise ValueError(f"CyclicLR: mode is triangular, triangular2 or exp_range, not {mode!r}")
            groups = getattr(optimizer, "param_groups", [])
            self.low, self.high = self.of_groups(groups, base_lr), self.of_groups(groups, max_lr)
            self.mode, self.gamma, self.function, self.by_cycle = mode, gamma, scale_fn, scale_mode == "cycle"
            self.up = step_size_up
            self.length = step_size_up + (step_size_up if step_size_down is None else step_size_down)
            super().__init__(optimizer, cycle_momentum, base_momentum, max_momentum)

        def values(self, k: int, t: int) -> tuple[float, float]:
            cycle, place = t // self.length, t % self.length
            height = place / self.up if place <= self.up else (self.length - place) / (self.length - self.up)
            if self.function is not None:
                height *= self.function(cycle + 1 if self.by_cycle else t)
            else:
                height *= {"triangular": 1.0, "triangular2": 0.5 ** cycle, "exp_range": self.gamma ** t}[self.mode]
            return self.low[k] + (self.high[k] - self.low[k]) * height, self.most[k] - (self.most[k] - self.least[k]) * height

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

    class ChainedScheduler:
        """Several schedules at once: each changes what the one before it has made of the rates."""

        def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
            self.schedulers = list(schedulers)
            if not self.schedulers:
                raise ValueError("ChainedScheduler: schedules were expected, the list is empty")
            self.optimizer = optimizer or self.schedulers[0].optimizer
            if any(s.optimizer is not self.optimizer for s in self.schedulers):
                raise ValueError("ChainedScheduler: the schedules are of more than one optimizer")

        def step(self) -> None:
            for s in self.schedulers:
                s.step()

        def get_last_lr(self) -> list[float]:
            return [g["lr"] for g in self.optimizer.param_groups]

        def state_dict(self) -> dict[str, Any]:
            return {"schedulers": [s.state_dict() for s in self.schedulers]}

        def load_state_dict(self, state: dict[str, Any]) -> None:
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
