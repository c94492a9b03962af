"""The playground beside a training: facula.studio(net) serves a page on this machine, where one watches curves and weights."""
from __future__ import annotations

import html
import time
from collections.abc import Mapping
from typing import Any

from . import _facula


class Studio:
    """A page at `address`, which holds a key that only its reader has.  Serves until close(), or the end of a with block.

    log() adds points to curves, weights() shows tensors.  With a network, log() also shows its parameters as they are then, at most
    twice a second.
    """

    def __init__(self, net: Any = None, port: int = 0, threads: int = 0, device: str | None = None, data: str | None = None,
                 model: str | None = None, watch: str | None = None) -> None:
        self.net, self.step, self._last = net, 0, 0.0
        self._studio, address = _facula.studio_open(port, threads, device, data, model, watch)
        self.address: str = address + "&page=notebook"
        if net is not None:
            self.weights(net)

    def log(self, step: int | None = None, **values: Any) -> None:
        """The next point of each curve: log(loss=0.3, accuracy=0.9).  A step of its own: one after the last."""
        self.step = self.step + 1 if step is None else int(step)
        _facula.studio_log(self._studio, float(self.step), list(values), [float(v) for v in values.values()])
        if self.net is not None and time.monotonic() - self._last > 0.5:
            self.weights(self.net)

    def weights(self, what: Any) -> None:
        """Shows the parameters of a Module, or tensors by name."""
        pairs = what if isinstance(what, Mapping) else dict(what.named_parameters())
        names = list(pairs)[:200]
        _facula.studio_weights(self._studio, names, [pairs[n].detach() for n in names])
        self._last = time.monotonic()

    @property
    def stopped(self) -> bool:
        """Somebody pressed Stop on the page.  Trainer.fit then ends after the step at hand."""
        return _facula.studio_stop_asked(self._studio)

    def close(self) -> None:
        """Ends the page."""
        _facula.studio_close(self._studio)

    def __enter__(self) -> Studio:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Studio({self.address})"

    def _repr_html_(self) -> str:
        address = html.escape(self.address, quote=True)
        return f"<a href='{address}' target='_blank' rel='noopener'>The training in facula's studio</a>"


def studio(net: Any = None, **options: Any) -> Studio:
    """Opens a Studio: s = facula.studio(net); print(s.address); facula.Trainer(net, studio=s).fit(train)."""
    return Studio(net, **options)
