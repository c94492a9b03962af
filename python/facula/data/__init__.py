"""Data sets and batches.

    >>> train = fac.data.mnist("data")
    >>> for x, y in train.batches(64, shuffle=True): ...
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _facula
from .._facula import Tensor
from ..random import Generator, default_generator
from .samplers import (BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
                       WeightedRandomSampler)


class Dataset:
    """What batches are taken from: the base of data sets of your own, which have __getitem__ and __len__."""

    def __getitem__(self, i: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def batches(self, batch_size: int, shuffle: bool = False, drop_last: bool = False, generator: Generator | None = None,
                transform: Callable[[Any], Any] | None = None) -> DataLoader:
        """As often as it is asked, each time shuffled anew."""
        return DataLoader(self, batch_size, shuffle, drop_last=drop_last, generator=generator, transform=transform)


class ArrayDataset(Dataset):
    """Samples and labels in memory: images as uint8, everything else as float32."""

    def __init__(self, x: Any, y: Any, classes: int | None = None, names: Sequence[str] = (), mean: Sequence[float] = (),
                 std: Sequence[float] = ()) -> None:
        self.x = np.asarray(x)
        self.y = np.asarray(y)
        if len(self.x) != len(self.y):
            raise ValueError(f"{len(self.x)} samples but {len(self.y)} labels")
        self.classes = classes if classes is not None else int(self.y.max()) + 1 if self.y.dtype.kind in "iu" and self.y.size else 0
        self.names = list(names)
        self.mean, self.std = tuple(mean), tuple(std)

    def __len__(self) -> int:
        return len(self.x)

    def _prepared(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if x.dtype != np.uint8:
            return x
        y = x.astype(np.float32) / 255
        if not any(self.std):
            return y
        channels = y.shape[-3] if y.ndim >= 3 else 1
        shape = (channels, 1, 1)
        mean = np.asarray(self.mean[:channels], np.float32).reshape(shape)
        std = np.asarray([s or 1.0 for s in self.std[:channels]], np.float32).reshape(shape)
        return (y - mean) / std

    def __getitem__(self, i: Any) -> Any:
        return Tensor(np.ascontiguousarray(self._prepared(self.x[i]))), Tensor(np.ascontiguousarray(self.y[i]))

    def split(self, share: float, seed: int = 0) -> tuple[ArrayDataset, ArrayDataset]:
        """Two sets, drawn at random; the second gets this share."""
        order = np.random.Generator(np.random.Philox(key=seed)).permutation(len(self))
        n = len(self) - int(round(share * len(self)))
        return self.subset(order[:n]), self.subset(order[n:])

    def subset(self, indices: Any) -> ArrayDataset:
        """The samples with these numbers."""
        at = np.asarray(indices)
        return ArrayDataset(self.x[at], self.y[at], self.classes, self.names, self.mean, self.std)

    def tensors(self) -> tuple[Tensor, Tensor]:
        """All of it at once."""
        return Tensor(self._prepared(self.x)), Tensor(self.y)

    def __repr__(self) -> str:
        return f"ArrayDataset({len(self)} samples {self.x.dtype}{list(self.x.shape[1:])}, {self.classes} classes)"

    def _repr_png_(self) -> bytes | None:
        """The first pictures in a grid."""
        if self.x.dtype != np.uint8 or self.x.ndim != 4:
            return None
        n, c, h, w = self.x[:64].shape
        pictures = np.repeat(self.x[:n], 3, 1) if c == 1 else self.x[:n]
        side = int(np.ceil(np.sqrt(n)))
        grid = np.zeros((side * h, side * w, 3), np.uint8)
        for i in range(n):
            r, k = divmod(i, side)
            grid[r * h:(r + 1) * h, k * w:(k + 1) * w] = pictures[i].transpose(1, 2, 0)
        return _facula.png(Tensor(grid))


class TensorDataset(Dataset):
    """Tensors whose first dim counts samples."""

    def __init__(self, *tensors: Any) -> None:
        self.tensors = [np.asarray(t.detach() if isinstance(t, Tensor) else t) for t in tensors]
        if len({len(t) for t in self.tensors}) > 1:
            raise ValueError(f"tensors of {sorted({len(t) for t in self.tensors})} samples")

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, i: Any) -> tuple[Tensor, ...]:
        return tuple(Tensor(np.ascontiguousarray(t[i])) for t in self.tensors)


class Subset(Dataset):
    """The samples of these numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, [int(i) for i in indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, i: Any) -> Any:
        return self.dataset[self.indices[int(i)]]


class ConcatDataset(Dataset):
    """Several data sets, one after the other."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        self.ends = np.cumsum([len(d) for d in self.datasets])

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def __getitem__(self, i: Any) -> Any:
        at = int(i) + len(self) if i < 0 else int(i)
        if not 0 <= at < len(self):
            raise IndexError(f"sample {i} of {len(self)}")
        k = int(np.searchsorted(self.ends, at, side="right"))
        return self.datasets[k][at - (int(self.ends[k - 1]) if k else 0)]


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """Parts of these lengths, or of these shares that add up to 1, drawn at random."""
    n, sizes = len(dataset), [float(size) for size in lengths]
    if abs(sum(sizes) - 1) < 1e-9 and all(0 <= s <= 1 for s in sizes):
        counts = [int(n * s) for s in sizes]
        for k in range(n - sum(counts)):
            counts[k % len(counts)] += 1
    else:
        counts = [int(s) for s in sizes]
    if sum(counts) != n:
        raise ValueError(f"random_split: parts of {counts} samples do not make {n}")
    order, ends = (generator or default_generator)._np.permutation(n), np.cumsum([0, *counts])
    return [Subset(dataset, order[a:b].tolist()) for a, b in zip(ends, ends[1:])]


def _collate(samples: Sequence[Any]) -> Any:
    first = samples[0]
    if isinstance(first, dict):
        return {k: _collate([s[k] for s in samples]) for k in first}
    if isinstance(first, (str, bytes)) or first is None:
        return list(samples)
    if isinstance(first, (tuple, list)):
        return tuple(_collate([s[k] for s in samples]) for k in range(len(first)))
    return Tensor(np.stack([np.asarray(s.detach() if isinstance(s, Tensor) else s) for s in samples]))


class DataLoader:
    """Batches of a data set, again and again: each iteration is an epoch, shuffled anew.

    num_workers: so many threads get the samples of a batch (they help where reading a file or NumPy gives the interpreter lock away).
    sampler: the numbers of samples in the order of an epoch; batch_sampler: lists of them, a batch each.
    pin_memory is taken for the sake of programs for PyTorch: host memory here is never pinned."""

    def __init__(self, dataset: Any, batch_size: int = 1, shuffle: bool = False, *, drop_last: bool = False,
                 generator: Generator | None = None, transform: Callable[[Any], Any] | None = None,
                 collate_fn: Callable[[Sequence[Any]], Any] | None = None, num_workers: int = 0, pin_memory: bool = False,
                 sampler: Any = None, batch_sampler: Any = None) -> None:
        if (sampler is not None and shuffle) or (batch_sampler is not None and (sampler is not None or shuffle or drop_last or batch_size != 1)):
            raise ValueError("DataLoader: a sampler takes the place of shuffle, a batch_sampler that of batch_size, drop_last and sampler, too")
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if num_workers < 0:
            raise ValueError(f"DataLoader: {num_workers} workers")
        self.num_workers, self.pin_memory = num_workers, pin_memory
        if batch_size < 1:
            raise ValueError(f"batches of {batch_size} samples")
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.generator, self.transform, self.collate_fn = generator or default_generator, transform, collate_fn
        self._pool: Any = None

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        n = len(self.dataset if self.sampler is None else self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def _batch(self, at: np.ndarray[Any, Any]) -> Any:
        if isinstance(self.dataset, (ArrayDataset, TensorDataset)) and self.collate_fn is None:
            return self.dataset[at]
        places = [int(i) for i in at]
        if self._pool is not None:
            samples = list(self._pool.map(self.dataset.__getitem__, places))
        else:
            samples = [self.dataset[i] for i in places]
        return (self.collate_fn or _collate)(samples)

    def _batches(self) -> Any:
        if self.batch_sampler is not None:
            return self.batch_sampler
        if self.sampler is not None:
            return BatchSampler(self.sampler, self.batch_size, self.drop_last)
        n = len(self.dataset)
        order = self.generator._np.permutation(n) if self.shuffle else np.arange(n)
        return (order[k * self.batch_size:(k + 1) * self.batch_size] for k in range(len(self)))

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers and self._pool is None:
            from concurrent.futures import ThreadPoolExecutor
            self._pool = ThreadPoolExecutor(self.num_workers, "facula-data")
        for places in self._batches():
            batch = self._batch(np.asarray(places))
            if self.transform is not None:
                batch = (self.transform(batch[0]), *batch[1:])
            yield batch


def _of(kind: str, where: Any, train: bool = True, count: int = 0, seed: int = 0) -> ArrayDataset:
    x, y, classes, names, mean, std = _facula.dataset(kind, os.fspath(where), train, count, seed)
    return ArrayDataset(np.asarray(x), np.asarray(y), classes, names, mean, std)


def mnist(folder: Any, train: bool = True) -> ArrayDataset:
    """MNIST and its likes (Fashion-MNIST): the four files in a folder, as they are or .gz."""
    return _of("mnist", folder, train)


def cifar10(folder: Any, train: bool = True) -> ArrayDataset:
    """CIFAR-10, binary or Python version."""
    return _of("cifar10", folder, train)


def cifar100(folder: Any, train: bool = True) -> ArrayDataset:
    """CIFAR-100, from the files of its binary version in a folder."""
    return _of("cifar100", folder, train)


def points(name: str, count: int = 50, seed: int = 0) -> ArrayDataset:
    """Points of the unit square in two classes: simple, diag, split, xor, circle, spiral."""
    return _of("toy", name, True, count, seed)


def images(folder: Any, height: int, width: int) -> ArrayDataset:
    """A folder of folders of photos, whose names are the classes."""
    return _of("images", folder, True, height, width)
