#!/usr/bin/env python3
"""From nothing to the first answer: reading an ONNX file, getting ready and running once, against ONNX Runtime.

    python bench/start.py --facula build/facula [--models DIR] [--rounds 5] [--threads 2] [--cache-packed] [NAME...]

Both are measured inside a fresh process, from the call that reads the model to the end of the first run (Python and its
imports are not counted), one after the other in each round.  The first round, which brings the file into the page cache, is
thrown away.  With --cache-packed facula keeps packed weights on disk, and that round fills the cache.

The host of a virtual machine takes free memory back after seconds, and bringing huge pages in again costs milliseconds a
megabyte, which says nothing of either program: before each run as much memory as it may need is touched and freed.  --cold
leaves that out.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from cpu_networks import make

NETWORKS = ["resnet50", "vgg16", "mobilenet_v2", "alexnet"]

RIVAL = """
import sys, time, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
x = numpy.random.default_rng(0).uniform(-1, 1, (1, 3, 224, 224)).astype("float32")
start = time.perf_counter()
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, {session.get_inputs()[0].name: x})
print(1e3 * (time.perf_counter() - start))
"""


WARM = """
import sys, numpy
numpy.empty(int(sys.argv[1]), "uint8").fill(1)
"""


def bring_memory(path):
    subprocess.run([sys.executable, "-c", WARM, str(4 * os.path.getsize(path) + (256 << 20))], check=True)


def rival(path, threads):
    command = [sys.executable, "-c", RIVAL, path, str(threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def ours(facula, path, threads, cached):
    command = [facula, "bench", path, "--json", "--runs", "1", "--seconds", "0.001", "--threads", str(threads)]
    command += ["--cache-packed"] if cached else []
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(a):
    rows = []
    for name in a.names or NETWORKS:
        path = name if name.endswith(".onnx") else os.path.join(a.models, name + ".onnx")
        if not os.path.exists(path):
            make(name, path)
        their, our = [], []
        for _ in range(a.rounds + 1):
            if not a.cold:
                bring_memory(path)
            their.append(rival(path, a.threads))
            if not a.cold:
                bring_memory(path)
            our.append(ours(a.facula, path, a.threads, a.cache_packed))
        their, our = their[1:], our[1:]
        ratios = [t / o["start_ms"] for t, o in zip(their, our)]
        part = {k: statistics.median(o[k] for o in our) for k in ("load_ms", "compile_ms", "first_run_ms", "start_ms")}
        rows.append(dict(network=os.path.basename(name), onnxruntime_ms=statistics.median(their), facula_ms=part["start_ms"],
                         parts=part, ratio=statistics.median(ratios), rounds=[round(r, 2) for r in ratios]))
        print(rows[-1], file=sys.stderr)
    return rows


def table(rows):
    lines = ["| network | ONNX Runtime ms | facula ms | of that load, prepare, first run | ONNX Runtime / facula (median) | rounds |",
             "| --- | --- | --- | --- | --- | --- |"]
    for r in rows:
        p = r["parts"]
        parts = ", ".join(f"{p[k]:.0f}" for k in ("load_ms", "compile_ms", "first_run_ms"))
        lines.append(f"| {r['network']} | {r['onnxruntime_ms']:.0f} | {r['facula_ms']:.0f} | {parts} | {r['ratio']:.2f} | "
                     f"{' '.join(map(str, r['rounds']))} |")
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--models", default=os.path.expanduser("~/.cache/facula/bench"))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--cache-packed", action="store_true")
    p.add_argument("--cold", action="store_true")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    os.makedirs(a.models, exist_ok=True)
    rows = measure(a)
    print(json.dumps(rows) if a.json else table(rows))


if __name__ == "__main__":
    main()
