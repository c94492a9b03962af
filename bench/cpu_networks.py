#!/usr/bin/env python3
"""Whole networks on the CPU against ONNX Runtime, or tinygrad: same model file, same machine, the two programs alternating.

    python bench/cpu_networks.py --facula build/facula [--models DIR] [--rounds 4] [--threads 2] [--batch 1]
                                 [--rival onnxruntime|tinygrad] [NAME...]

A NAME is one of torchvision's networks, made with random weights (seed 0) into DIR when it is not there; zoo:NAME, one of facula's
own, exported there; or FILE.onnx, or a directory, of which all .onnx files are taken.  `--light DIR` stands for the light models of
ONNX's repository, tinydarknet, super_resolution and zoo:efficientnet_lite0, looked for in DIR.  Inputs have the shapes of the file;
an open first dim is the batch, and a model without one is left out when the batch is not 1.

Runs ROUNDS rounds in which each program takes its turn, and prints the median of the rounds' medians as a Markdown table, with
the geometric mean of the rival's time / facula's, under a line with the latency of a fork and join before and after: it says in
which state the machine was.  tinygrad runs as its users run it: the file by its own reader, in a TinyJit, without a search for
kernels (BEAM).  Needs onnxruntime or tinygrad, and torch + torchvision to make the models.
"""
import argparse
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import time

from timing import fork_join_us, onnxruntime_session

NETWORKS = ["alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2", "googlenet"]


def make(name, path):
    import torch
    import torchvision
    torch.manual_seed(0)
    kw = dict(init_weights=False, aux_logits=False) if name == "googlenet" else {}
    model = getattr(torchvision.models, name)(weights=None, **kw).eval()
    torch.onnx.export(model, torch.randn(1, 3, 224, 224), path, dynamo=False, input_names=["x"], output_names=["y"],
                      opset_version=17, dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})


def light(folder):
    """The light models, whose files may lie anywhere below the folder."""
    found = {os.path.relpath(f, folder): f for f in glob.glob(os.path.join(folder, "**", "*.onnx"), recursive=True)}
    wanted = ("light_", "tinydarknet", "super_resolution")
    paths = [f for name, f in sorted(found.items()) if any(w in name for w in wanted)]
    if not paths:
        sys.exit(f"{folder}: no light models")
    return paths + ["zoo:efficientnet_lite0"]


def locate(name, facula, models):
    """The model files that a name stands for."""
    if os.path.isdir(name):
        return sorted(glob.glob(os.path.join(name, "*.onnx")))
    if name.endswith(".onnx"):
        return [name]
    path = os.path.join(models, name.removeprefix("zoo:") + ".onnx")
    if not os.path.exists(path):
        if name.startswith("zoo:"):
            subprocess.run([facula, "export", name, "-o", path], check=True, stdout=subprocess.DEVNULL)
        else:
            make(name, path)
    return [path]


def title(path):
    name = os.path.basename(path).removesuffix(".onnx")
    return os.path.basename(os.path.dirname(path)) if name == "model" else name


class OnnxRuntime:
    name = "ONNX Runtime"

    def __init__(self, path, threads, batch):
        self.session = onnxruntime_session(path, threads)
        self.feed, self.fits = inputs(path, [(i.name, i.shape) for i in self.session.get_inputs()], batch)

    def run(self):
        self.session.run(None, self.feed)


class Tinygrad:
    name = "tinygrad"

    def __init__(self, path, threads, batch):
        os.environ.update(DEV="CPU", NUM_CPU_THREADS=str(threads))
        from tinygrad import Tensor, TinyJit
        from tinygrad.nn.onnx import OnnxRunner
        graph = OnnxRunner(path)
        arrays, self.fits = inputs(path, [(n, i.shape) for n, i in graph.graph_inputs.items()], batch)
        self.feed = {n: Tensor(a).realize() for n, a in arrays.items()}
        self.jit = TinyJit(lambda **feed: [y.realize() for y in graph(feed).values()])
        for _ in range(2):          # the second call records what later ones replay
            self.run()

    def run(self):
        for y in self.jit(**self.feed):
            y.numpy()


RIVALS = {"onnxruntime": OnnxRuntime, "tinygrad": Tinygrad}


def inputs(path, shapes, batch):
    """An array for each input by its shape, whose open first dim is the batch; and whether all have that batch."""
    import numpy
    random, feed, fits = numpy.random.default_rng(0), {}, True
    for name, shape in shapes:
        dims = [d if isinstance(d, int) else batch if k == 0 else None for k, d in enumerate(shape)]
        if None in dims:
            sys.exit(f"{path}: input {name} has an open dim that is not the batch: {shape}")
        fits = fits and dims[0] == batch
        feed[name] = random.uniform(-1, 1, dims).astype("float32")
    return feed, fits


def median_ms(rival, seconds):
    times, end = [], time.perf_counter() + seconds
    for _ in range(3):
        rival.run()
        if time.perf_counter() > end:
            break
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        rival.run()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def ours(facula, path, threads, batch, seconds, isa):
    command = [facula, "bench", path, "--json", "--threads", str(threads), "--batch", str(batch), "--seconds", str(seconds)]
    if isa:
        command += ["--isa", isa]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", metavar="NAME", help="default: " + " ".join(NETWORKS))
    p.add_argument("--light", metavar="DIR", help="also the light models below this folder")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--models", default=os.path.expanduser("~/.cache/facula/bench"))
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--rival", choices=RIVALS, default="onnxruntime")
    p.add_argument("--seconds", type=float, default=1.5)
    p.add_argument("--isa", help="cpu instruction set for facula, such as avx2")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    os.makedirs(a.models, exist_ok=True)
    before, rows, names = None if a.json else fork_join_us(a.facula, a.threads), [], a.names or ([] if a.light else NETWORKS)
    names = names + (light(a.light) if a.light else [])
    for path in [path for name in names for path in locate(name, a.facula, a.models)]:
        name, rival = title(path), RIVALS[a.rival](path, a.threads, a.batch)
        if not rival.fits:
            print(f"{name}: its batch is fixed, left out", file=sys.stderr)
            continue
        their, our, ratio = [], [], []
        for _ in range(a.rounds):
            their.append(median_ms(rival, a.seconds))
            our.append(ours(a.facula, path, a.threads, a.batch, a.seconds, a.isa)["median_ms"])
            ratio.append(our[-1] / their[-1])
        del rival
        rows.append({"network": name, f"{a.rival}_ms": statistics.median(their), "facula_ms": statistics.median(our),
                     "ours_over_theirs": statistics.median(ratio), "rounds": [round(r, 2) for r in ratio]})
        print(f"{name}: {rows[-1]}", file=sys.stderr)
    if a.json:
        print(json.dumps(rows))
        return
    print(f"{a.threads} threads, batch {a.batch}, {a.rounds} rounds; fork and join {before:.2f} us before, "
          f"{fork_join_us(a.facula, a.threads):.2f} after\n")
    their = RIVALS[a.rival].name
    print(f"| network | {their} ms | facula ms | {their} / facula (median of rounds) | facula / {their} | rounds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for r in rows:
        ratio, ms = r["ours_over_theirs"], r[f"{a.rival}_ms"]
        print(f"| {r['network']} | {ms:.2f} | {r['facula_ms']:.2f} | {1 / ratio:.2f} | {ratio:.2f} | {' '.join(map(str, r['rounds']))} |")
    if rows:
        mean = math.exp(sum(math.log(r["ours_over_theirs"]) for r in rows) / len(rows))
        print(f"\nGeometric mean of {their} / facula: {1 / mean:.2f}")


if __name__ == "__main__":
    main()
