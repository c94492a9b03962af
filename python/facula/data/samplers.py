"""Which samples come when: what DataLoader takes as its sampler and batch_sampler."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..random import Generator, default_generator


class Sampler:
    """The base: gives the numbers of samples, one after another, anew in each epoch."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("__iter__ has to be written")


class SequentialSampler(Sampler):
    """All of them, in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """So many of them in any order, all unless said; replacement: one may come again."""

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Generator | None = None) -> None:
        if num_samples is not None and num_samples < 1:
            raise ValueError(f"RandomSampler: {num_samples} samples")
        self.data_source, self.replacement, self.num_samples = data_source, replacement, num_samples
        self.generator = generator or default_generator

    def __iter__(self) -> Iterator[int]:
        n, many = len(self.data_source), len(self)
        if self.replacement:
            return iter(self.generator._np.integers(0, n, many).tolist())
        order: list[int] = []
        while len(order) < many:
            order += self.generator._np.permutation(n).tolist()
        return iter(order[:many])

    def __len__(self) -> int:
        return len(self.data_source) if self.num_samples is None else self.num_samples


class SubsetRandomSampler(Sampler):
    """These, in any order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator or default_generator

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in self.generator._np.permutation(len(self.indices)).tolist()])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """num_samples of them, each as often as its weight says."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None) -> None:
        self.weights = np.asarray(weights, "f8")
        if num_samples < 1 or self.weights.ndim != 1 or not (self.weights >= 0).all() or not self.weights.any():
            raise ValueError(f"WeightedRandomSampler: {num_samples} samples by weights of shape {self.weights.shape},"
                             " which are 0 or more and not all 0")
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise ValueError(f"WeightedRandomSampler: {num_samples} different samples of {np.count_nonzero(self.weights)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator or default_generator

    def __iter__(self) -> Iterator[int]:
        p = self.weights / self.weights.sum()
        return iter(self.generator._np.choice(len(p), self.num_samples, self.replacement, p).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of so many numbers of another sampler."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        if batch_size < 1:
            raise ValueError(f"batches of {batch_size} samples")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for i in self.sampler:
            batch.append(int(i))
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
