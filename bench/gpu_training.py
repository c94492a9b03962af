#!/usr/bin/env python3
"""Does reduced precision learn as well, and does a long training hold its memory?

    python bench/gpu_training.py --facula build/facula [--device opencl] [--data FOLDER] [--epochs 3] [--steps 1000]

A residual network learns Fashion-MNIST (Debian's dataset-fashion-mnist) in each precision from the same first weights, batches
and crops; then ResNet-18 takes `steps` steps, and what the device's driver gave is compared with a training of a tenth of them.
"""
import argparse
import json
import re
import subprocess
import sys

PRECISIONS = ["highest", "high", "medium", "bf16", "f16"]


def train(a, precision):
    command = [a.facula, "train", "fashion-mnist", "--model", "resnet", "--epochs", str(a.epochs), "--device", a.device,
               "--precision", precision, "--json", "--seed", "0"] + (["--data", a.data] if a.data else [])
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().splitlines()
    return json.loads(lines[-1])


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
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--precisions", default=",".join(PRECISIONS))
    a = p.parse_args()
    print("| precision | test accuracy | test loss | images/s |")
    print("| --- | --- | --- | --- |", flush=True)
    for precision in a.precisions.split(","):
        r = train(a, precision)
        print(f"| {precision} | {100 * r['test_accuracy']:.2f} % | {r['test_loss']:.4f} | {r['images_per_s']:.0f} |", flush=True)
    print(f"\nmemory of the driver: {taken(a, a.steps // 10)} after {a.steps // 10} steps, {taken(a, a.steps)} after {a.steps}")


if __name__ == "__main__":
    sys.exit(main())
