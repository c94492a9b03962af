#!/usr/bin/env python3
"""Whole networks on an OpenCL GPU against PyTorch on the same card, the two programs alternating.

    python bench/opencl_networks.py --facula build/facula [--rounds 3] [--infer 1,16,64] [--train 16,64] [NAME...]

PyTorch runs eager in f32 (TF32 off, cudnn.benchmark on) in the better of NCHW and channels_last; weights are random on both
sides.
Prints medians and the ratio PyTorch / facula as a Markdown table.  Needs torch and torchvision with CUDA.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

import torch
import torchvision

NETWORKS = ["alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2", "googlenet"]


def median_ms(step, seconds):
    times = []
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def rival(name, batch, train, form):
    torch.manual_seed(0)
    kw = dict(init_weights=False, aux_logits=False) if name == "googlenet" else {}
    model = getattr(torchvision.models, name)(weights=None, **kw).cuda().to(memory_format=form)
    x = torch.rand(batch, 3, 224, 224, device="cuda").mul_(2).sub_(1).to(memory_format=form)
    if not train:
        model.eval()

        def infer():
            with torch.no_grad():
                model(x)
        return infer
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    labels, loss = torch.randint(0, 1000, (batch,), device="cuda"), torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), labels).backward()
        optimizer.step()
    return step


def ours(facula, device, name, batch, train, seconds):
    command = [facula, "bench", "zoo:" + name, "--device", device, "--batch", str(batch), "--seconds", str(seconds), "--json"]
    done = subprocess.run(command + (["--train"] if train else []), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["median_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", default=NETWORKS)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--infer", default="1,16,64")
    p.add_argument("--train", default="16,64")
    p.add_argument("--seconds", type=float, default=0.5)
    a = p.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, f32 without TF32", flush=True)
    print("| network | what | batch | PyTorch ms | facula ms | PyTorch / facula | rounds |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    work = [(n, False, int(b)) for n in a.names for b in a.infer.split(",") if b]
    work += [(n, True, int(b)) for n in a.names for b in a.train.split(",") if b]
    for name, train, batch in work:
        forms = [rival(name, batch, train, f) for f in (torch.contiguous_format, torch.channels_last)]
        step = min(forms, key=lambda s: median_ms(s, 0.1))
        theirs, mine, ratio = [], [], []
        try:
            for _ in range(a.rounds):
                theirs.append(median_ms(step, a.seconds))
                mine.append(ours(a.facula, a.device, name, batch, train, a.seconds))
                ratio.append(theirs[-1] / mine[-1])
            print(f"| {name} | {'train' if train else 'infer'} | {batch} | "
                  f"{statistics.median(theirs):.2f} | {statistics.median(mine):.2f} | "
                  f"{statistics.median(ratio):.2f} | {' '.join(f'{r:.2f}' for r in ratio)} |", flush=True)
        except RuntimeError as e:
            print(f"| {name} | {'train' if train else 'infer'} | {batch} | | | | {e} |", flush=True)
        del forms, step
        torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
