#!/usr/bin/env python3
"""What recording a step of training costs on device `ocl`: milliseconds of processor time before anything is computed.

    python bench/facula_torch/torch_recording.py [--steps 30] [--net resnet18] [--image 32] [--batch 2]

Each step is read, so its program runs between two steps and empties the caches of the processor.
"""
import argparse
import time

import torch
import torchvision

import facula.torch  # noqa: F401


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--net", default="resnet18")
    p.add_argument("--image", type=int, default=32)
    p.add_argument("--batch", type=int, default=2)
    o = p.parse_args()
    torch.set_num_threads(1)
    x = torch.randn(o.batch, 3, o.image, o.image, device="ocl")
    y = torch.zeros(o.batch, dtype=torch.int64, device="ocl")
    print("| ms | forward | backward | Adam | all | new segments |\n| --- | --- | --- | --- | --- | --- |")
    for name, options in (("foreach", {}), ("fused", {"fused": True})):
        net = getattr(torchvision.models, o.net)(num_classes=10).to("ocl")
        opt = torch.optim.Adam(net.parameters(), **options)
        before = torch.ocl.stats()["segments"]

        def step():
            at = [time.process_time()]
            loss = torch.nn.functional.cross_entropy(net(x), y)
            at.append(time.process_time())
            opt.zero_grad()
            loss.backward()
            at.append(time.process_time())
            opt.step()
            at.append(time.process_time())
            return loss, [1e3 * (b - a) for a, b in zip([at[0], *at], [at[-1], *at[1:]])]
        loop = []
        for _ in range(o.steps):
            loss, times = step()
            loop.append(times)
            loss.item()
        segments = torch.ocl.stats()["segments"] - before
        every, forward, backward, update = (min(t[k] for t in loop) for k in range(4))
        print(f"| {name} | {forward:.2f} | {backward:.2f} | {update:.2f} | {every:.2f} | {segments} |", flush=True)


if __name__ == "__main__":
    main()
