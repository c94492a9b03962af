"""Averages of weights over training: stochastic weight averaging (Izmailov et al. 2018) and exponential moving averages."""
from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import functional as T
from .._facula import Tensor
from ..autograd import no_grad
from ..nn.module import Module
from ..promote import cast
from .base import Optimizer
from .schedules import lr_scheduler

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[list[Tensor], list[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An exponential moving average, for AveragedModel(avg_fn=...)."""
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn: decay is from 0 to 1, not {decay}")
    return lambda average, now, n: average * decay + now * (1 - decay)


def get_swa_avg_fn() -> Average:
    """The mean of all updates, for AveragedModel(avg_fn=...)."""
    return lambda average, now, n: average + (now - average) / (float(n) + 1)


def _each(function: Average) -> Averages:
    def every(averages: list[Tensor], values: list[Tensor], n: Any) -> None:
        for average, value in zip(averages, values):
            average.copy_(cast(function(average, value, n), average.dtype))
    return every


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """get_ema_avg_fn of a list, for AveragedModel(multi_avg_fn=...)."""
    return _each(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """get_swa_avg_fn of a list, for AveragedModel(multi_avg_fn=...)."""
    return _each(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over the updates: their mean, unless a function says otherwise.

    use_buffers: buffers are averaged as well; else they are those of the last update."""

    def __init__(self, model: Module, device: Any = None, avg_fn: Average | None = None, multi_avg_fn: Averages | None = None,
                 use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: avg_fn or multi_avg_fn, not both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", T.zeros((), dtype="int64"))
        self.average = multi_avg_fn or _each(avg_fn or get_swa_avg_fn())
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **named: Any) -> Any:
        return self.module(*args, **named)

    def _values(self, model: Module) -> list[Tensor]:
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the parameters as they are now into the averages."""
        ours, values = self._values(self.module), [v.detach() for v in self._values(model)]
        n = int(self.n_averaged)
        if n:
            self.average(ours, values, n)
        else:
            _each(lambda average, now, n: now)(ours, values, n)
        if not self.use_buffers:
            for ours_, theirs in zip(self.module.buffers(), model.buffers()):
                ours_.copy_(theirs.detach())
        self.n_averaged.copy_(self.n_averaged + 1)


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the statistics of batch norms anew, as means over all batches: averages of weights do not have those of the weights."""
    norms = [m for m in model.modules() if getattr(m, "running_mean", None) is not None]
    if not norms:
        return
    before, training = [m.momentum for m in norms], model.training
    for m in norms:
        m.running_mean.copy_(T.zeros_like(m.running_mean))
        m.running_var.copy_(T.ones_like(m.running_var))
        if getattr(m, "num_batches_tracked", None) is not None:
            m.num_batches_tracked.copy_(T.zeros_like(m.num_batches_tracked))
    model.train()
    try:
        for k, batch in enumerate(loader):
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            for m in norms:
                m.momentum = 1 / (k + 1)
            model(x if device is None else x.to(device))
    finally:
        for m, momentum in zip(norms, before):
            m.momentum = momentum
        model.train(training)


class SWALR(lr_scheduler.LRScheduler):
    """Moves rates to swa_lr within anneal_epochs, along a cosine or a line, and leaves them there."""

    def __init__(self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10, anneal_strategy: str = "cos",
                 last_epoch: int = -1) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        if anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs is 0 or more, not {anneal_epochs}")
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        if len(rates) != len(optimizer.param_groups):
            raise ValueError(f"SWALR: {len(rates)} rates for {len(optimizer.param_groups)} groups of parameters")
        for group, rate in zip(optimizer.param_groups, rates):
            group["swa_lr"] = rate
        self.anneal_epochs, self.strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, t: int) -> float:
        part = max(0.0, min(1.0, t / max(1, self.anneal_epochs)))
        return part if self.strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def step(self) -> None:
        """Sets the rates of the next epoch."""
        self.last_epoch += 1
        t = max(1, self.last_epoch) if self.anneal_epochs == 0 else self.last_epoch
        before, now = self._share(t - 1), self._share(t)
        for g in self.optimizer.param_groups:
            first = g["swa_lr"] if before == 1 else (g["lr"] - before * g["swa_lr"]) / (1 - before)
            g["lr"] = g["swa_lr"] * now + first * (1 - now)
