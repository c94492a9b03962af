"""What students write in apps/simple_ml.py of homework 1."""
import needle as ndl
import numpy as np
from needle.data import MNISTDataset


def parse_mnist(images, labels):
    data = MNISTDataset(images, labels)
    return data.images.reshape(len(data), -1), data.labels


def softmax_loss(z, y_one_hot):
    rows = ndl.log(ndl.exp(z).sum(1)).sum()
    return (rows - (z * y_one_hot).sum()) / z.shape[0]


def nn_epoch(x, y, w1, w2, lr=0.1, batch=100):
    for at in range(0, len(x), batch):
        hot = ndl.Tensor(np.eye(w2.shape[1])[y[at:at + batch]])
        loss = softmax_loss(ndl.relu(ndl.Tensor(x[at:at + batch]) @ w1) @ w2, hot)
        loss.backward()
        w1, w2 = (ndl.Tensor(w.numpy() - lr * w.grad.numpy().astype(w.dtype)) for w in (w1, w2))
    return w1, w2


def loss_err(h, y):
    return softmax_loss(h, ndl.Tensor(np.eye(h.shape[1])[y])).numpy(), np.mean(h.numpy().argmax(1) != y)
