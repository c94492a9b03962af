"""A small network trained for many steps on device "ocl": nothing may grow.  torch_long.py [STEPS] (10000)."""
from __future__ import annotations

import resource
import sys

import torch
import torch.nn as nn

import facula.torch  # noqa: F401

GROWTH = 8 << 20        # of the process, in bytes: what allocators keep for themselves


def small():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 80), nn.ReLU(), nn.Linear(80, 2))


def step(net, opt, x):
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
    return loss


def held():
    """Bytes of the process now."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def sizes():
    stats, memory = torch.ocl.stats(), torch.ocl.memory_stats()
    return stats["segments"], stats["planned"], memory["storages"], memory["allocated_bytes.all.current"]


def main(steps):
    net = small().to("ocl")
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    x = torch.ones(6, 4, device="ocl")
    first = after = None
    for k in range(steps):
        loss = step(net, opt, x)
        if k % 10 == 9:
            value = loss.item()
        if k == steps // 5 - 1:
            first, before = sizes(), held()
    after, grown = sizes(), held() - before
    assert value == value and after == first, f"grew from {first} to {after}: segments, planned, storages, bytes"
    assert grown < GROWTH, f"the process grew by {grown} bytes in {steps - steps // 5} steps"
    return grown


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    print(n, "steps, the process grew by", main(n), "bytes")
