"""Activations as modules."""
from __future__ import annotations

from typing import Any

from .. import functional as T
from .._facula import Tensor
from . import functional as F
from ..in_place import into
from .module import Module, Parameter


class _Writing(Module):
    """One that may write its result into its input."""

    inplace = False

    def _result(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return into(x, self._result(x), self.inplace)


class _Plain(_Writing):
    """One without options."""

    function: Any = None

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def _result(self, x: Tensor) -> Tensor:
        y: Tensor = type(self).function(x)
        return y


def _plain(name: str, function: Any) -> type[_Plain]:
    return type(name, (_Plain,), {"function": staticmethod(function), "__module__": "facula.nn", "__doc__": function.__doc__})


ReLU, ReLU6 = _plain("ReLU", F.relu), _plain("ReLU6", F.relu6)
Sigmoid, Tanh, SiLU = _plain("Sigmoid", T.sigmoid), _plain("Tanh", T.tanh), _plain("SiLU", F.silu)
Mish, SELU, Softsign = _plain("Mish", F.mish), _plain("SELU", F.selu), _plain("Softsign", F.softsign)
Hardswish, Hardsigmoid = _plain("Hardswish", F.hardswish), _plain("Hardsigmoid", F.hardsigmoid)
LogSigmoid, Tanhshrink = _plain("LogSigmoid", F.logsigmoid), _plain("Tanhshrink", F.tanhshrink)


class _Option(_Writing):
    """One with a number or a word."""

    function: Any = None
    option = ""
    usual: Any = None

    def __init__(self, value: Any = None, inplace: bool = False, **named: Any) -> None:
        super().__init__()
        value = named.pop(self.option, value)
        if named:
            raise TypeError(f"{type(self).__name__}: no option {next(iter(named))!r}, but {self.option}")
        self.value = self.usual if value is None else value
        self.inplace = inplace

    def _result(self, x: Tensor) -> Tensor:
        y: Tensor = type(self).function(x, self.value)
        return y

    def extra_repr(self) -> str:
        return f"{self.option}={self.value!r}"


def _option(name: str, function: Any, option: str, usual: Any) -> type[_Option]:
    return type(name, (_Option,), {"function": staticmethod(function), "option": option, "usual": usual, "__module__": "facula.nn",
                                   "__doc__": function.__doc__})


LeakyReLU = _option("LeakyReLU", F.leaky_relu, "negative_slope", 0.01)
ELU, CELU = _option("ELU", F.elu, "alpha", 1.0), _option("CELU", F.celu, "alpha", 1.0)
GELU = _option("GELU", F.gelu, "approximate", "none")
Softmax, LogSoftmax = _option("Softmax", T.softmax, "dim", -1), _option("LogSoftmax", T.log_softmax, "dim", -1)
Hardshrink, Softshrink = _option("Hardshrink", F.hardshrink, "lambd", 0.5), _option("Softshrink", F.softshrink, "lambd", 0.5)
Softmin, GLU = _option("Softmin", F.softmin, "dim", -1), _option("GLU", F.glu, "dim", -1)


class Softplus(Module):
    """ln(1 + e^(beta x)) / beta; x itself above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(x, self.beta, self.threshold)


class Hardtanh(_Writing):
    """x cut off below min_val and above max_val."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def _result(self, x: Tensor) -> Tensor:
        return F.hardtanh(x, self.min_val, self.max_val)


class Threshold(_Writing):
    """x where it is above the threshold, else a value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def _result(self, x: Tensor) -> Tensor:
        return F.threshold(x, self.threshold, self.value)


class PReLU(Module):
    """x, or a learned slope times x below 0."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.weight = Parameter(T.full((num_parameters,), init))

    def forward(self, x: Tensor) -> Tensor:
        return F.prelu(x, self.weight)


class RReLU(_Writing):
    """x, or a slope times x below 0: by chance while training, else the mean one."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def _result(self, x: Tensor) -> Tensor:
        return F.rrelu(x, self.lower, self.upper, self.training)


class Softmax2d(Module):
    """Softmax over channels, at each place of an image."""

    def forward(self, x: Tensor) -> Tensor:
        return T.softmax(x, -3)
