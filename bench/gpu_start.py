#!/usr/bin/env python3
"""From the start of a process to ResNet-50's first answer on the GPU, weights from a file, against PyTorch.

    python bench/gpu_start.py --facula build/facula [--device opencl] [--network resnet50] [--rounds 3]

Both are whole processes (PyTorch's with its imports: that is what a user waits for; the time after them is shown as well).
The first round of facula compiles its kernels and fills the cache on disk; it is shown apart.  Needs torch and torchvision
with CUDA, and safetensors.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

RIVAL = """
import sys, time
import torch, torchvision
from safetensors.torch import load_file
start = time.perf_counter()
model = getattr(torchvision.models, sys.argv[1])(weights=None)
model.load_state_dict(load_file(sys.argv[2]))
model = model.eval().cuda().to(memory_format=torch.channels_last)
x = torch.rand(1, 3, 224, 224).cuda().to(memory_format=torch.channels_last)
with torch.no_grad():
    model(x).cpu()
print(time.perf_counter() - start)
"""


def seconds_of(command):
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--network", default="resnet50")
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    import torchvision
    from safetensors.torch import save_file
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(folder, "weights.safetensors")
        save_file(getattr(torchvision.models, a.network)(weights=None).state_dict(), weights)
        ours = [a.facula, "run", "zoo:" + a.network, "--weights", weights, "--random", "--device", a.device]
        first, _ = seconds_of(ours)
        mine, theirs, after = [], [], []
        for _ in range(a.rounds):
            mine.append(seconds_of(ours)[0])
            whole, said = seconds_of([sys.executable, "-c", RIVAL, a.network, weights])
            theirs.append(whole)
            after.append(float(said))
    mine, theirs, after = (statistics.median(x) for x in (mine, theirs, after))
    print(f"| network | facula, no kernel cached | facula s | PyTorch s | without its imports | PyTorch / facula |")
    print(f"| --- | --- | --- | --- | --- | --- |")
    print(f"| {a.network} | {first:.2f} | {mine:.2f} | {theirs:.2f} | {after:.2f} | {theirs / mine:.1f} |")


if __name__ == "__main__":
    sys.exit(main())
