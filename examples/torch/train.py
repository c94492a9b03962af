#!/usr/bin/env python3
"""Trains a small network of convolutions with PyTorch, on whatever device is named: the code is the same for all of them.

    python examples/torch/train.py --device cpu|cuda|ocl [--compile] [--epochs 3] [--save net.pt]

--device ocl needs `import facula.torch`, which is all that differs; --compile computes the model by facula on CPU tensors.
The task: which of ten positions a bright square of a noisy image has.
"""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.out = nn.Linear(32 * 5 * 5, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.out(x.flatten(1))


def images(n, generator):
    labels = torch.randint(10, (n,), generator=generator)
    x = torch.randn(n, 1, 20, 20, generator=generator)
    for k, label in enumerate(labels.tolist()):
        row, column = divmod(label, 5)
        x[k, 0, 10 * row + 2:10 * row + 8, 4 * column:4 * column + 4] += 1.5
    return x, labels


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--device", default="cpu")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--save")
    a = p.parse_args()
    if a.device.startswith("ocl") or a.compile:
        import facula.torch
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    train, test = images(2000, generator), images(500, generator)
    net = Net().to(a.device)
    model = torch.compile(net, backend="facula") if a.compile else net
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(a.epochs):
        began, losses = time.time(), []
        net.train()
        for x, y in zip(train[0].split(100), train[1].split(100)):
            opt.zero_grad()
            loss = F.cross_entropy(model(x.to(a.device)), y.to(a.device))
            loss.backward()
            opt.step()
            losses.append(loss.detach())
        net.eval()
        with torch.no_grad():
            right = (model(test[0].to(a.device)).argmax(1).cpu() == test[1]).float().mean().item()
        print(f"epoch {epoch + 1}: loss {torch.stack(losses).mean().item():.4f}, right {100 * right:.1f} %, {time.time() - began:.1f} s")
    if a.save:
        torch.save(net.state_dict(), a.save)
        print(f"saved {a.save}")
    if a.device.startswith("ocl") or a.compile:
        print(facula.torch.explain())


main()
