#!/usr/bin/env python3
"""Memory of training steps (forward, cross entropy, backward, Adam) on the CPU against PyTorch.

    python bench/train_memory.py --facula build/facula [--threads 2] [--batch 8] [--recompute 0.7,0.5,0.3] [NAME...]

Each number is the peak resident memory of a fresh process that does a few steps, less that of a process which only loaded the
library: parameters, gradients, moments and activations.  Prints a Markdown table.  Needs torch and torchvision.
"""
import argparse
import json
import subprocess
import sys

RIVAL = """
import sys
import torch, torchvision

def peak():
    return next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM')) * 1024

torch.set_num_threads(int(sys.argv[3]))
before = peak()
model = getattr(torchvision.models, sys.argv[1])(weights=None).train()
x, labels = torch.rand(int(sys.argv[2]), 3, 224, 224), torch.randint(0, 1000, (int(sys.argv[2]),))
optimizer, loss = torch.optim.Adam(model.parameters()), torch.nn.CrossEntropyLoss()
for _ in range(3):
    optimizer.zero_grad()
    loss(model(x), labels).backward()
    optimizer.step()
print(peak() - before)
"""


def rival(name, a):
    command = [sys.executable, "-c", RIVAL, name, str(a.batch), str(a.threads)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bench(a, what, *more):
    command = [a.facula, "bench", what, "--json", "--threads", str(a.threads), "--runs", "3", *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def ours(name, a, share):
    more = ["--train", "--batch", str(a.batch)] + (["--recompute", str(share)] if share else [])
    return bench(a, "zoo:" + name, *more)["peak_bytes"] - a.empty


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", default=["resnet18", "resnet50"])
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--recompute", default="0.7,0.5,0.3")
    a = p.parse_args()
    a.empty = bench(a, "relu(f32[1])")["peak_bytes"]
    shares = [float(s) for s in a.recompute.split(",") if s]
    print("| step, MiB | PyTorch | facula | " + " | ".join("recompute %g" % s for s in shares) + " |")
    print("| --- |" + " --- |" * (2 + len(shares)))
    for name in a.names:
        numbers = [rival(name, a)] + [ours(name, a, s) for s in [0] + shares]
        print("| %s, batch %d | " % (name, a.batch) + " | ".join("%.0f" % (n / 2**20) for n in numbers) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
