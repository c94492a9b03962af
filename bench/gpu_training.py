#!/usr/bin/env python3
"""Does reduced precision learn as well, and does a long training hold its memory?

    python bench/gpu_training.py --facula build/facula [--device opencl] [--data FOLDER] [--model zoo:resnet18] [--size 64x64]
                                 [--epochs 4] [--seeds 3] [--steps 1000]

ResNet-18 learns Fashion-MNIST (Debian's dataset-fashion-mnist), its photos enlarged, in each precision from the same first
weights, batches and flips, with several seeds: what seeds make of one precision is the noise beside which precisions are looked
at.  Then ResNet-18 takes `steps` steps, and what the device's driver gave is compared with a training of a tenth of them.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys

PRECISIONS = ["highest", "high", "medium", "bf16", "f16"]


def train(a, precision, seed):
    """What facula says of each epoch, and of the whole."""
    command = [a.facula, "train", "fashion-mnist", "--model", a.model, "--size", a.size, "--epochs", str(a.epochs), "--device",
               a.device, "--precision", precision, "--json", "--seed", str(seed)] + (["--data", a.data] if a.data else [])
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip().splitlines()
    return [json.loads(line) for line in lines]


def percents(values):
    return " ".join(f"{100 * v:.2f}" for v in values)


def curves(a):
    print("| precision | test accuracy after each epoch, mean of seeds, % | at the end, of each seed, % | mean | test loss | "
          "images/s |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for precision in a.precisions.split(","):
        runs = [train(a, precision, seed) for seed in range(a.seeds)]
        epochs = [statistics.mean(r[k]["test_accuracy"] for r in runs) for k in range(a.epochs)]
        ends = [r[-1]["test_accuracy"] for r in runs]
        loss, rate = (statistics.mean(r[-1][key] for r in runs) for key in ("test_loss", "images_per_s"))
        print(f"| {precision} | {percents(epochs)} | {percents(ends)} | {100 * statistics.mean(ends):.2f} | {loss:.4f} | "
              f"{rate:.0f} |", flush=True)


def taken(a, steps):
    """Bytes, as facula prints them, that the device's driver gave."""
    command = [a.facula, "bench", "zoo:resnet18", "--train", "--batch", "8", "--runs", str(steps), "--memory", "--device", a.device,
               "--precision", "high"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.search(r"taken from the driver\s+(.*\S)", said).group(1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--data")
    p.add_argument("--model", default="zoo:resnet18")
    p.add_argument("--size", default="64x64", help="photos, of 28 x 28, are enlarged to this")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--seeds", type=int, default=3, help="trainings in each precision")
    p.add_argument("--steps", type=int, default=1000, help="0: memory is not looked at")
    p.add_argument("--precisions", default=",".join(PRECISIONS))
    a = p.parse_args()
    curves(a)
    if a.steps:
        few, many = taken(a, a.steps // 10), taken(a, a.steps)
        print(f"\nmemory of the driver: {few} after {a.steps // 10} steps, {many} after {a.steps}")


if __name__ == "__main__":
    sys.exit(main())
