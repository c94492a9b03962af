#!/usr/bin/env python3
"""CPU time of a training of language: facula against PyTorch, nanoGPT's recipe for a CPU (4 layers, 4 heads,
width 128, blocks of 64 characters, batches of 12), one thread each, alternating.  Each side is run with few and
with more steps; the difference is what the steps cost.

    python3 bench/text_training.py build/facula TEXT.txt [--rounds 3]

Needs torch.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys

FEW, MANY = 20, 140


def torch_side(text, steps):
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = open(text).read()
    letters = sorted(set(data))
    code = {c: k for k, c in enumerate(letters)}
    ids = torch.tensor([code[c] for c in data[:len(data) * 9 // 10]])
    T, E, H, L, B = 64, 128, 4, 4, 12

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(E), nn.LayerNorm(E)
            self.qkv, self.out = nn.Linear(E, 3 * E), nn.Linear(E, E)
            self.up, self.down = nn.Linear(E, 4 * E), nn.Linear(4 * E, E)

        def forward(self, x):
            q, k, v = (t.view(B, T, H, E // H).transpose(1, 2) for t in self.qkv(self.n1(x)).split(E, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, E)
            x = x + self.out(y)
            return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(len(letters), E), nn.Embedding(T, E)
            self.blocks, self.last = nn.Sequential(*(Block() for _ in range(L))), nn.LayerNorm(E)

        def forward(self, x):
            h = self.tokens(x) + self.places(torch.arange(T))
            return F.linear(self.last(self.blocks(h)), self.tokens.weight)

    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    for _ in range(steps):
        at = torch.randint(len(ids) - T, (B,))
        x = torch.stack([ids[k:k + T] for k in at])
        y = torch.stack([ids[k + 1:k + T + 1] for k in at])
        loss = F.cross_entropy(net(x).view(-1, len(letters)), y.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def side(name, facula, text, steps):
    if name == "torch":
        return cpu_seconds([sys.executable, __file__, "--torch", text, str(steps)])
    return cpu_seconds([facula, "train", "text", "--data", text, "--model", "gpt:4x4x128", "--steps", str(steps),
                        "--test-batches", "1", "--evaluate-every", "1000000", "--threads", "1", "--json"])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("facula", help="the command")
    p.add_argument("text", help="a file of text")
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    cost = {"facula": [], "torch": []}
    for _ in range(a.rounds):
        for name, all_ in cost.items():
            few, many = side(name, a.facula, a.text, FEW), side(name, a.facula, a.text, MANY)
            all_.append(1000 * (many - few) / (MANY - FEW))
    for name, all_ in cost.items():
        print(f"{name:8s} {statistics.median(all_):7.1f} ms of CPU a step ({min(all_):.1f} .. {max(all_):.1f})")
    ratios = [a / b for a, b in zip(cost["facula"], cost["torch"])]
    print(f"facula / torch, paired: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch"]:                # the other side, as side() calls it
        torch_side(sys.argv[2], int(sys.argv[3]))
    else:
        main()
