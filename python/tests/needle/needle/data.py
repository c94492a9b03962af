"""The course's data sets and loaders."""
import gzip

import numpy as np

from .autograd import Tensor


class RandomFlipHorizontal:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, image):
        return image[:, ::-1] if np.random.rand() < self.p else image


class RandomCrop:
    def __init__(self, padding=3):
        self.padding = padding

    def __call__(self, image):
        x, y = np.random.randint(low=-self.padding, high=self.padding + 1, size=2) + self.padding
        n = self.padding
        h, w = image.shape[:2]
        return np.pad(image, ((n, n), (n, n), (0, 0)))[x:x + h, y:y + w]


class Dataset:
    def __init__(self, transforms=None):
        self.transforms = transforms or []

    def apply_transforms(self, x):
        for t in self.transforms:
            x = t(x)
        return x


def _idx(path):
    with gzip.open(path) as file:
        data = file.read()
    sizes = np.frombuffer(data, ">i4", data[3], 4)
    return np.frombuffer(data, "u1", offset=4 + 4 * data[3]).reshape(sizes)


class MNISTDataset(Dataset):
    def __init__(self, image_filename, label_filename, transforms=None):
        super().__init__(transforms)
        self.images, self.labels = _idx(image_filename)[..., None].astype("f4") / 255, _idx(label_filename)

    def __getitem__(self, i):
        images = self.images[i]
        if images.ndim == 4:
            return np.stack([self.apply_transforms(x) for x in images]), self.labels[i]
        return self.apply_transforms(images), self.labels[i]

    def __len__(self):
        return len(self.labels)


class NDArrayDataset(Dataset):
    def __init__(self, *arrays):
        super().__init__()
        self.arrays = arrays

    def __getitem__(self, i):
        return tuple(a[i] for a in self.arrays)

    def __len__(self):
        return len(self.arrays[0])


class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=False):
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle

    def __iter__(self):
        order = np.arange(len(self.dataset))
        if self.shuffle:
            np.random.shuffle(order)
        for at in np.array_split(order, range(self.batch_size, len(order), self.batch_size)):
            yield tuple(Tensor(x) for x in self.dataset[at])
