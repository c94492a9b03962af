#!/usr/bin/env python3
"""Whole networks on the CPU against ONNX Runtime: same model file, same machine, the two programs alternating.

    python bench/cpu_networks.py --facula build/facula [--models DIR] [--rounds 4] [--threads 2] [--batch 1] [NAME...]

Makes the models with torchvision (random weights, seed 0) into DIR when they are not there, runs ROUNDS rounds in which
each program takes its turn, and prints the median of the rounds' medians as a Markdown table.  Needs onnxruntime, and
torch + torchvision to make the models.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

NETWORKS = ["alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2", "googlenet"]


def make(name, path):
    import torch
    import torchvision
    torch.manual_seed(0)
    kw = dict(init_weights=False, aux_logits=False) if name == "googlenet" else {}
    model = getattr(torchvision.models, name)(weights=None, **kw).eval()
    torch.onnx.export(model, torch.randn(1, 3, 224, 224), path, dynamo=False, input_names=["x"], output_names=["y"],
                      opset_version=17, dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})


class Rival:
    def __init__(self, path, threads, batch):
        import numpy
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.x = numpy.random.default_rng(0).uniform(-1, 1, (batch, 3, 224, 224)).astype("float32")

    def median_ms(self, seconds):
        feed, times, end = {"x": self.x}, [], time.perf_counter() + seconds
        for _ in range(3):
            self.session.run(None, feed)
        while time.perf_counter() < end or len(times) < 5:
            start = time.perf_counter()
            self.session.run(None, feed)
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times)


def ours(facula, path, threads, batch, seconds, isa):
    command = [facula, "bench", path, "--json", "--threads", str(threads), "--batch", str(batch), "--seconds", str(seconds)]
    if isa:
        command += ["--isa", isa]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", default=NETWORKS)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--models", default=os.path.expanduser("~/.cache/facula/bench"))
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1.5)
    p.add_argument("--isa", help="cpu instruction set for facula, such as avx2")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    os.makedirs(a.models, exist_ok=True)
    rows = []
    for name in a.names:
        path = name if name.endswith(".onnx") else os.path.join(a.models, name + ".onnx")
        if not os.path.exists(path):
            make(name, path)
        rival = Rival(path, a.threads, a.batch)
        their, our, ratio = [], [], []
        for _ in range(a.rounds):
            their.append(rival.median_ms(a.seconds))
            our.append(ours(a.facula, path, a.threads, a.batch, a.seconds, a.isa)["median_ms"])
            ratio.append(our[-1] / their[-1])
        del rival
        rows.append(dict(network=name, onnxruntime_ms=statistics.median(their), facula_ms=statistics.median(our),
                         ours_over_theirs=statistics.median(ratio), rounds=[round(r, 2) for r in ratio]))
        print(f"{name}: {rows[-1]}", file=sys.stderr)
    if a.json:
        print(json.dumps(rows))
        return
    print("| network | ONNX Runtime ms | facula ms | facula / ONNX Runtime (median of rounds) | rounds |")
    print("| --- | --- | --- | --- | --- |")
    for r in rows:
        print(f"| {r['network']} | {r['onnxruntime_ms']:.2f} | {r['facula_ms']:.2f} | {r['ours_over_theirs']:.2f} | {' '.join(map(str, r['rounds']))} |")


if __name__ == "__main__":
    main()
