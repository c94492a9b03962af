#!/usr/bin/env python3
"""Writes tests/golden/nn_training.txt: loss, gradients and weights of PyTorch's steps 1, 2 and 10, as digests, for the networks
of tests/nn/test_nn_training.c.  scripts/peers/check_training.py compares all elements."""
import os
import sys

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_nn_layers import digest, first_values, numbers, tensor  # noqa: E402


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Block(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)
        self.downsample = nn.Sequential()
        if stride > 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.downsample(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 4, 3, 1, 1, bias=False), nn.BatchNorm2d(4)
        self.layer1, self.layer2 = nn.Sequential(Block(4, 4, 1)), nn.Sequential(Block(4, 8, 2))
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.fc = nn.Embedding(11, 5), nn.LSTM(5, 6, 2, batch_first=True), nn.Linear(6, 4)

    def forward(self, x):
        return self.fc(self.lstm(self.embedding(x))[1][0][-1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer
        self.embedding, self.fc = nn.Embedding(11, 8), nn.Linear(8, 4)
        self.layers = nn.ModuleList([layer(8, 2, 12, 0.0, "gelu", batch_first=True, norm_first=True),
                                     layer(8, 4, 12, 0.0, batch_first=True)])
        self.mask = torch.ones(6, 6, dtype=torch.bool).triu(1)

    def forward(self, x):
        x = self.layers[0](self.embedding(x), src_mask=self.mask)
        return self.fc(self.layers[1](x).mean(1))


def resnet18():
    import torchvision
    return torchvision.models.resnet18()


MODELS = {"lenet": (LeNet, (4, 1, 28, 28), 10), "resnet": (ResNet, (4, 3, 12, 12), 5), "lstm": (LSTM, (3, 7), 4),
          "transformer": (Transformer, (3, 6), 4), "resnet18": (resnet18, (8, 3, 64, 64), 1000)}
OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, 0.05, 0.9), "adam": lambda p: torch.optim.Adam(p, 0.01),
              "adamw": lambda p: torch.optim.AdamW(p, 0.01)}


def integers(name, below, *shape):
    return ((tensor(name, *shape) + 1) / 2 * below).floor().long()


def train(model, optimizer, dtype, steps):
    """Yields (step, loss, module) after each step; gradients are those of the step."""
    make, shape, classes = MODELS[model]
    module = first_values(make().double()).to(dtype).train()
    optimizer = OPTIMIZERS[optimizer](module.parameters())
    x = tensor("x", *shape).to(dtype) if len(shape) > 2 else integers("ids", 11, *shape)
    labels = integers("labels", classes, shape[0])
    for k in range(1, steps + 1):
        optimizer.zero_grad()
        loss = F.cross_entropy(module(x), labels)
        loss.backward()
        optimizer.step()
        yield k, loss, module


def tensors(loss, module):
    yield "loss", loss.reshape(1)
    for name, p in module.named_parameters():
        yield "grad." + name, p.grad
    for name, p in module.state_dict().items():
        if p.is_floating_point():
            yield "after." + name, p


def noise(t, t32):
    """PyTorch's own f32 is off, as Adam makes it where the true gradient is 0 and rounding decides"""
    a, b = (np.array(digest(v).split(), dtype=float) for v in (t, t32))
    return " noise" if np.abs(a - b).max() > 3e-6 * max(1, a[2]) else ""


def main():
    assert numbers("x", 1).size == 1
    lines = ["# Written by tests/golden/make/golden_nn_training.py: case MODEL/OPTIMIZER/STEP, then digests as in nn_layers.txt."]
    for model in list(MODELS)[:4]:
        for optimizer in OPTIMIZERS:
            pairs = zip(train(model, optimizer, torch.float64, 10), train(model, optimizer, torch.float32, 10))
            for (k, loss, module), (_, *single) in pairs:
                if k in (1, 2, 10):
                    lines.append(f"case {model}/{optimizer}/{k}")
                    for (name, t), (_, t32) in zip(tensors(loss, module), tensors(*single)):
                        lines.append(f"{name} {digest(t)}{noise(t, t32)}")
    with open("tests/golden/nn_training.txt", "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
