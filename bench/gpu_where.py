#!/usr/bin/env python3
"""Where the time of whole networks goes on an OpenCL device: launches, memory, arithmetic.

    python bench/gpu_where.py --facula build/facula [NAME...] [--infer 1,16,64] [--train 16,64] [--precision highest,high,bf16]
                              [--device opencl] [--seconds 0.2]

From `facula profile --json`.  Each step is counted where its own least is largest: its bytes at the bandwidth that was measured,
its multiply-adds at the peak of the units that do them, or LAUNCH_US for each kernel, and beside it stands that least: what
is over it is the kernels' own.  "GB moved": what all steps read and write.  "idle" is the time in which no kernel ran; a run may
be shorter than the sum of its kernels where they run on two queues.
"""
import argparse
import json
import subprocess

NETWORKS = ["alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2", "googlenet"]
LAUNCH_US = 2.0             # from one small kernel to the next, measured on an H200
CLASSES = ["memory", "arithmetic", "launches"]


def profile(a, name, batch, precision, train):
    command = [a.facula, "profile", "zoo:" + name, "--batch", str(batch), "--precision", precision, "--device", a.device,
               "--seconds", str(a.seconds), "--json"] + (["--train"] if train else [])
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip() or f"facula profile ended with {done.returncode}")
    return json.loads(done.stdout)


def classes(report):
    """For each class the time of its steps and their least, in ms."""
    sums = {c: [0.0, 0.0] for c in CLASSES}
    machine = report["machine"]
    for n in report["nodes"]:
        us, peak = n["us"], n["peak_share"]
        least = {"memory": n["bytes"] / machine["memory_read"] * 1e6, "arithmetic": us * peak if peak else 0.0,
                 "launches": LAUNCH_US * n.get("launches", 1)}
        c = max(CLASSES, key=least.get)
        sums[c][0] += us / 1e3
        sums[c][1] += least[c] / 1e3
    return sums


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("networks", nargs="*", default=NETWORKS, metavar="NAME")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--infer", default="1,16,64", help="batch sizes; empty for none")
    p.add_argument("--train", default="16,64")
    p.add_argument("--precision", default="highest,high")
    p.add_argument("--seconds", type=float, default=0.2)
    a = p.parse_args()
    print("| network | what | batch | precision | run ms | kernels | " + " | ".join(f"{c} ms (least)" for c in CLASSES)
          + " | idle ms | GB moved |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in a.networks or NETWORKS:
        for what, batches in ("infer", a.infer), ("train", a.train):
            for precision in a.precision.split(","):
                for batch in filter(None, batches.split(",")):
                    r = profile(a, name, batch, precision, what == "train")
                    cells = " | ".join(f"{t:.3f} ({least:.3f})" for t, least in classes(r).values())
                    launches = r.get("launches") or {}
                    moved = sum(n["bytes"] for n in r["nodes"]) / 1e9
                    print(f"| {name} | {what} | {batch} | {precision} | {r['median_ms']:.3f} | {len(launches.get('all', r['nodes']))} | "
                          f"{cells} | {launches.get('idle_us', 0) / 1e3:.3f} | {moved:.2f} |", flush=True)


if __name__ == "__main__":
    main()
