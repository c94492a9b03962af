"""The usual loop, and curves of it."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ._facula import Tensor
from .autograd import no_grad
from .data import DataLoader
from .lazy import lazy
from .plot import curves


def _notebook() -> bool:
    ip = sys.modules.get("IPython")
    shell = ip.get_ipython() if ip else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Progress:
    """One line that is written over: in a terminal, in a notebook; nothing where output goes to a file."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        self.total, self.last = total, 0.0
        self.handle: Any = None
        self.mode = "quiet" if quiet else "notebook" if _notebook() else "terminal" if sys.stderr.isatty() else "quiet"

    def show(self, done: int, text: str, force: bool = False) -> None:
        """Says how far it is."""
        now = time.monotonic()
        if self.mode == "quiet" or (now - self.last < 0.1 and not force):
            return
        self.last = now
        if self.mode == "terminal":
            width = 24 * done // max(self.total, 1)
            sys.stderr.write(f"\r\x1b[K[{'#' * width}{'.' * (24 - width)}] {text}")
            sys.stderr.flush()
            return
        from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]
        html = HTML(f"<progress value='{done}' max='{self.total}'></progress> {text}")
        if self.handle is None:
            self.handle = display(html, display_id=True)
        else:
            self.handle.update(html)

    def close(self) -> None:
        """Ends the line."""
        if self.mode == "terminal":
            sys.stderr.write("\n")


class History(dict[str, list[float]]):
    """What a training showed, epoch by epoch; a notebook draws it."""

    def __repr__(self) -> str:
        n = len(self["loss"])
        last = ", ".join(f"{k} {v[-1]:.4g}" for k, v in self.items() if v)
        return f"History({n} epochs: {last})"

    def svg(self, width: int = 640, height: int = 260) -> str:
        """The curves as a picture."""
        return curves({k: v for k, v in self.items() if v}, width, height)

    def _repr_html_(self) -> str:
        return self.svg()


def accuracy(scores: Tensor, labels: Tensor) -> float:
    """The share of rows whose largest score stands at the label."""
    return float(np.mean(np.asarray(scores.detach().argmax(1)) == np.asarray(labels)))


class Trainer:
    """Trains a Module: Trainer(net, optimizer).fit(train, test, epochs=5).  Steps are lazy, which is faster; lazy=False
    computes each operator at once, for debugging.  studio: a facula.Studio, which shows the training while it goes on."""

    def __init__(self, net: Any, optimizer: Any = None, loss: Callable[[Any, Any], Tensor] | None = None, schedule: Any = None,
                 lazy: bool = True, studio: Any = None) -> None:
        from .nn import functional as F
        from .optim import Adam
        self.net = net
        self.optimizer = optimizer if optimizer is not None else Adam(net.parameters())
        self.loss = loss or F.cross_entropy
        self.schedule, self.lazy, self.studio = schedule, lazy, studio
        self.history = History(loss=[], accuracy=[], test_loss=[], test_accuracy=[], seconds=[])

    def step(self, x: Any, y: Any) -> tuple[float, Tensor]:
        """One step on one batch: loss and scores."""
        self.net.train()
        with lazy(self.lazy):
            out = self.net(x)
            loss = self.loss(out, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return float(loss.detach()), out.detach()

    @no_grad()
    def evaluate(self, data: Any, batch_size: int = 256) -> tuple[float, float]:
        """(loss, accuracy) of a data set."""
        loader = data if isinstance(data, DataLoader) else DataLoader(data, batch_size)
        self.net.eval()
        total = right = count = 0.0
        for x, y in loader:
            out = self.net(x)
            n = len(y)
            total += float(self.loss(out, y)) * n
            right += accuracy(out, y) * n if out.ndim == 2 else 0
            count += n
        self.net.train()
        return total / max(count, 1), right / max(count, 1)

    def fit(self, train: Any, test: Any = None, epochs: int = 1, batch_size: int = 64, quiet: bool = False,
            callback: Callable[[int, History], Any] | None = None) -> History:
        """Whole epochs; Ctrl-C stops after the step at hand and keeps what was learned.  A callback that returns False stops."""
        loader = train if isinstance(train, DataLoader) else DataLoader(train, batch_size, shuffle=True)
        bar = Progress(epochs * len(loader), quiet)
        done = 0
        try:
            for epoch in range(epochs):
                start, total, right, count = time.perf_counter(), 0.0, 0.0, 0
                for x, y in loader:
                    loss, out = self.step(x, y)
                    n = len(y)
                    total, count, done = total + loss * n, count + n, done + 1
                    right += accuracy(out, y) * n if out.ndim == 2 and not y.dtype.is_floating_point else 0
                    if self.studio is not None and self._show(loss):
                        break
                    bar.show(done, f"epoch {epoch + 1}/{epochs}  loss {total / count:.4f}  accuracy {right / count:.1%}")
                self._note(total / count, right / count, time.perf_counter() - start, test)
                if self.studio is not None and self._show_epoch():
                    break
                if self.schedule is not None:
                    self.schedule.step()
                if callback is not None and callback(epoch, self.history) is False:
                    break
        except KeyboardInterrupt:
            pass
        bar.close()
        return self.history

    def _show(self, loss: float) -> bool:
        """A step in the studio; is the training to end?"""
        self.studio.log(loss=loss)
        return bool(self.studio.stopped)

    def _show_epoch(self) -> bool:
        names = ("accuracy", "test_loss", "test_accuracy")
        self.studio.log(self.studio.step, **{k: self.history[k][-1] for k in names if self.history[k]})
        return bool(self.studio.stopped)

    def _note(self, loss: float, right: float, seconds: float, test: Any) -> None:
        h = self.history
        h["loss"].append(loss)
        h["accuracy"].append(right)
        h["seconds"].append(seconds)
        if test is not None:
            test_loss, test_right = self.evaluate(test)
            h["test_loss"].append(test_loss)
            h["test_accuracy"].append(test_right)
