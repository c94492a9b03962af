#!/usr/bin/env python3
"""One training step (forward, cross entropy, backward, Adam) on the CPU against PyTorch, the two programs alternating.

    python bench/train_step.py --facula build/facula [--rounds 4] [--threads 2] [--batch 8,32] [--form FORM] [NAME...]

PyTorch runs eager, in whichever of NCHW and channels_last, and of Adam's fused and foreach forms, is fastest in a trial; --form
(such as channels_last,fused) leaves the trial out, for networks whose steps take seconds.
Neither has dropout: the zoo's networks do without it, and PyTorch's are freed of it.
Prints the median of the rounds' medians, and the ratio of each round, as a Markdown table.  Needs torch and torchvision.
"""
import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time

import torch
import torchvision

NETWORKS = ["lenet", "alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2"]


def lenet():
    """zoo:lenet as PyTorch has it."""
    from torch import nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def without_dropout(model):
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Dropout):
                setattr(module, name, torch.nn.Identity())
    return model


class Rival:
    def __init__(self, name, batch, only):
        def trainer(form, adam):
            torch.manual_seed(0)
            model = lenet() if name == "lenet" else without_dropout(getattr(torchvision.models, name)(weights=None))
            model.train()
            side, channels = (28, 1) if name == "lenet" else (224, 3)
            x = torch.rand(batch, channels, side, side).mul_(2).sub_(1).to(memory_format=form)
            model = model.to(memory_format=form)
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **{adam: True})
            labels, loss = torch.randint(0, 10, (batch,)), torch.nn.CrossEntropyLoss()

            def step():
                optimizer.zero_grad(set_to_none=True)
                loss(model(x), labels).backward()
                optimizer.step()
            return step

        forms = {"NCHW": torch.contiguous_format, "channels_last": torch.channels_last}
        best = None                                     # only the fastest stays: VGG16 and its moments are 2 GB
        for form, adam in [tuple(only.split(","))] if only else itertools.product(forms, ("fused", "foreach")):
            step = trainer(forms[form], adam)
            ms = median_ms(step, 0.5)
            if best is None or ms < best:
                best, self.how, self.step = ms, f"{form} {adam}", step


def timed(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def median_ms(step, seconds):
    """Steps that take longer than all of the time are timed once."""
    first = timed(step)
    times, end = [], time.perf_counter() + seconds
    if first > seconds:
        return 1e3 * first
    least = 3
    while time.perf_counter() < end or len(times) < least:
        times.append(1e3 * timed(step))
    return statistics.median(times)


def ours(a, name, batch):
    command = [a.facula, "bench", "zoo:" + name, "--train", "--json", "--threads", str(a.threads), "--batch", str(batch),
               "--seconds", str(a.seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["median_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", default=NETWORKS)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch", default="8,32")
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--form", help="PyTorch's form, such as channels_last,fused")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    print(f"PyTorch {torch.__version__}", file=sys.stderr)
    print("| network | batch | PyTorch ms | facula ms | PyTorch / facula (median of rounds) | rounds | PyTorch's best form |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in a.names:
        for batch in map(int, a.batch.split(",")):
            rival = Rival(name, batch, a.form)
            their, our = [], []
            for _ in range(a.rounds):
                their.append(median_ms(rival.step, a.seconds))
                our.append(ours(a, name, batch))
            ratio = [t / o for o, t in zip(our, their)]
            print(f"| {name} | {batch} | {statistics.median(their):.1f} | {statistics.median(our):.1f} | "
                  f"{statistics.median(ratio):.2f} | {' '.join(f'{r:.2f}' for r in ratio)} | {rival.how} |", flush=True)


if __name__ == "__main__":
    main()
