#!/usr/bin/env python3
"""Epochs of MiniTorch's larger trainings on the CPU against PyTorch, the two programs alternating, with as many threads.

    python bench/minitorch.py --bench build/tests/bench_minitorch [--rounds 5] [--threads 2] [--seconds 2] [mlp lenet sst2]

mlp: two hidden layers of 100 on 50 points, batches of 10 (run_fast_tensor.py).  lenet: two convolutions, pooling, two linear
layers on 5,000 images, batches of 16 (run_mnist_multiclass.py).  sst2: Kim's network on 450 sentences of 52 vectors of 50
numbers, batches of 10 (run_sentiment.py).  Samples are random.  PyTorch is eager: shuffled indices, forward, cross entropy,
backward, SGD.  Prints the median of the rounds' medians and of their ratios as a Markdown table: by the clock, and of the
processors' time, which a busy machine disturbs less (with one thread).
"""
import argparse
import statistics
import subprocess
import time

import torch
from torch import nn
from torch.nn import functional as F


class Sst2(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(50, 100, k) for k in (3, 4, 5))
        self.linear = nn.Linear(100, 2)

    def forward(self, x):
        x = x.transpose(1, 2)
        return F.dropout(self.linear(sum(F.relu(c(x)).amax(2) for c in self.convs)), 0.25, self.training)


def mlp():
    return nn.Sequential(nn.Linear(2, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 2))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(4),
                         nn.Flatten(), nn.Linear(392, 64), nn.ReLU(), nn.Dropout(0.25), nn.Linear(64, 10))


# samples, batch, sample, classes, rate
WORKLOADS = {"mlp": (mlp, 50, 10, (2,), 2, 0.05), "lenet": (lenet, 5000, 16, (1, 28, 28), 10, 0.01),
             "sst2": (Sst2, 450, 10, (52, 50), 2, 0.01)}


class Rival:
    def __init__(self, name):
        torch.manual_seed(0)
        make, count, self.batch, item, classes, rate = WORKLOADS[name]
        self.model = make().train()
        self.x, self.y = torch.rand(count, *item), torch.randint(0, classes, (count,))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)

    def epoch(self):
        order = torch.randperm(len(self.x))
        total = 0.0
        for i in range(0, len(order), self.batch):
            pick = order[i:i + self.batch]
            self.optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(self.model(self.x[pick]), self.y[pick])
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total

    def medians_ms(self, seconds):
        """By the clock, and of the processors."""
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 2:
            wall, cpu = time.perf_counter(), time.process_time()
            self.epoch()
            times.append((1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)))
        return [statistics.median(t) for t in zip(*times)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", default=list(WORKLOADS))
    p.add_argument("--bench", default="build/tests/bench_minitorch")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    print("| training | PyTorch ms an epoch | facula ms | facula / PyTorch, rounds | processors: PyTorch ms | facula ms | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in a.names:
        rival, their, our = Rival(name), [], []
        for _ in range(a.rounds):
            their.append(rival.medians_ms(a.seconds))
            command = [a.bench, name, str(a.threads), str(a.seconds)]
            our.append([float(x) for x in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()])
        wall, cpu = ([o[k] / t[k] for o, t in zip(our, their)] for k in (0, 1))
        middle = [[statistics.median(r[k] for r in side) for k in (0, 1)] for side in (their, our)]
        print(f"| {name} | {middle[0][0]:.2f} | {middle[1][0]:.2f} | {statistics.median(wall):.2f}: "
              f"{' '.join(f'{r:.2f}' for r in wall)} | {middle[0][1]:.2f} | {middle[1][1]:.2f} | {statistics.median(cpu):.2f} |",
              flush=True)


if __name__ == "__main__":
    main()
