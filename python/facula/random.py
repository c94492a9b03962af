"""Random tensors.  Numbers come from Philox, a counter-based generator: the same seed gives the
same numbers on every machine and every device."""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from ._facula import Tensor
from .dtypes import bool_, find, get_default_dtype, int64
from .functional import _shape_args, as_tensor
from .in_place import written
from .promote import flat


class Generator:
    """A stream of random numbers of its own."""

    def __init__(self, seed: int | None = None) -> None:
        self._np = np.random.Generator(np.random.Philox())
        self.manual_seed(int.from_bytes(os.urandom(7), "little") if seed is None else seed)

    def manual_seed(self, seed: int) -> Generator:
        """Begins anew with a seed."""
        self._seed = int(seed) % (1 << 64)
        self._np = np.random.Generator(np.random.Philox(key=self._seed))
        return self

    def initial_seed(self) -> int:
        """The seed that it began with."""
        return self._seed

    def get_state(self) -> Any:
        """The state, for set_state."""
        return self._np.bit_generator.state

    def set_state(self, state: Any) -> None:
        """Goes on from a state."""
        self._np.bit_generator.state = state


default_generator = Generator(0)


def manual_seed(seed: int) -> Generator:
    """Starts the numbers that all functions draw from anew."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """A start that nobody knows; which one it was."""
    default_generator.manual_seed(int.from_bytes(os.urandom(7), "little"))
    return default_generator.initial_seed()


def _of(generator: Generator | None) -> np.random.Generator:
    return (generator or default_generator)._np


def _made(array: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    return Tensor(np.asarray(array), dtype=find(dtype) if dtype else get_default_dtype(), device=device, requires_grad=requires_grad)


def rand(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Evenly from 0 to 1 (without 1)."""
    return _made(_of(generator).random(_shape_args(size), dtype=np.float32 if find(dtype or get_default_dtype()).itemsize < 8
                                       else np.float64), dtype, device, requires_grad)


def randn(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Normal, mean 0, standard deviation 1."""
    return _made(_of(generator).standard_normal(_shape_args(size)), dtype, device, requires_grad)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = None,
            device: Any = None) -> Tensor:
    """Integers from low up to, but without, high."""
    if size is None:
        low, high, size = 0, low, high
    if size is None:
        raise TypeError("randint: a shape was expected after the limits: randint(10, (3, 4))")
    return _made(_of(generator).integers(low, high, tuple(size)), dtype or int64, device, False)


def randperm(n: int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """The numbers 0 to n - 1 in random order."""
    if n < 0:
        raise ValueError(f"randperm: {n} numbers")
    return _made(_of(generator).permutation(n), dtype or int64, device, False)


def bernoulli(input: Any, *, generator: Generator | None = None) -> Tensor:
    """1 with probability input, else 0; its gradient by input is zeros."""
    t = as_tensor(input)
    return flat(Tensor(_of(generator).random(t.shape) < np.asarray(t.detach()), dtype=t.dtype), t)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = (), *, generator: Generator | None = None, dtype: Any = None) -> Tensor:
    """Normal with this mean and standard deviation, by which its gradients are zeros."""
    m, s = as_tensor(mean), as_tensor(std)
    shape = tuple(size) or np.broadcast_shapes(m.shape, s.shape)
    y = _made(_of(generator).standard_normal(shape) * np.asarray(s.detach()) + np.asarray(m.detach()), dtype, None, False)
    return flat(y, *(x for x in (m, s) if x.requires_grad))


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """Indices drawn with these weights, for each row."""
    rows = np.asarray(input.detach()).astype(np.float64)
    weights = rows.reshape(-1, rows.shape[-1])
    drawn = [_of(generator).choice(r.size, num_samples, replacement, r / r.sum()) for r in weights]
    return Tensor(np.asarray(drawn).reshape(rows.shape[:-1] + (num_samples,)), dtype=int64)


def rand_like(input: Tensor, **options: Any) -> Tensor:
    """Uniform numbers from 0 to 1, with the shape of input."""
    return rand(input.shape, **{"dtype": input.dtype, "device": input.device, **options})


def randn_like(input: Tensor, **options: Any) -> Tensor:
    """Normal numbers, with the shape of input."""
    return randn(input.shape, **{"dtype": input.dtype, "device": input.device, **options})


_words = {"from": "low", "to": "high"}          # what PyTorch calls them is a word of Python's


def _fill(name: str, about: str, draw: Any) -> None:
    def method(input: Tensor, *args: Any, generator: Generator | None = None, **named: Any) -> Tensor:
        numbers = draw(_of(generator), input, *args, **{_words.get(k, k): v for k, v in named.items()})
        return written(input, Tensor(np.asarray(numbers), dtype=input.dtype, device=input.device))
    method.__name__, method.__doc__ = name, f"Filled with random numbers in place: {about}."
    setattr(Tensor, name, method)


_fill("uniform_", "uniform ones from low to high", lambda g, x, low=0.0, high=1.0: g.uniform(low, high, x.shape))
_fill("normal_", "normal ones", lambda g, x, mean=0.0, std=1.0: g.standard_normal(x.shape) * std + mean)
_fill("bernoulli_", "1 with probability p, else 0", lambda g, x, p=0.5: g.random(x.shape) < p)
_fill("random_", "integers from low up to, but without, high", lambda g, x, low=0, high=2 ** 31: g.integers(low, high, x.shape))
_fill("exponential_", "of the exponential distribution", lambda g, x, lambd=1.0: g.exponential(1 / lambd, x.shape))
setattr(Tensor, "multinomial", multinomial)
setattr(Tensor, "bernoulli", bernoulli)
del bool_
