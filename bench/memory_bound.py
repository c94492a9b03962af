#!/usr/bin/env python3
"""Attention with its gradients, and what memory limits, against PyTorch: the two programs alternating, medians of rounds.

    python bench/memory_bound.py --facula build/facula [--rounds 3] [--threads 2] [--seconds 0.1] [--isa avx2] [NAME...]

The problems of bench/workloads.py; NAME selects the rows whose label contains it.  A gradient is the forward pass and the
backward pass of one call, as bench/programs/gradient.c runs it for us.  The last column is bytes read and written once, over the time, as
a share of what `facula peaks` copies in the same run.  --isa avx2 holds PyTorch to AVX2, too.
"""
import argparse
import json
import os
import statistics
import subprocess

import workloads
from timing import hold_to, rival_ms


def our_ms(a, text, gradient, computed):
    if gradient:
        program = a.gradient or os.path.join(os.path.dirname(a.facula), "tests", "bench_gradient")
        command = [program, text, str(a.threads), str(a.seconds)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    command = [a.facula, "bench", text, "--json", "--threads", str(a.threads), "--seconds", str(a.seconds)]
    command += ["--inputs"] if computed else []
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["median_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--gradient", help="the program bench_gradient; default: in tests/ beside facula")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.1)
    p.add_argument("--isa", help="cpu instruction set, such as avx2")
    a = p.parse_args()
    hold_to(a.isa)
    import torch
    torch.set_num_threads(a.threads)
    command = [a.facula, "peaks", "--json", "--threads", str(a.threads)]
    peaks = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    copy = json.loads(peaks)["peaks"][0]["memory_copy"]
    print(f"{a.threads} threads, copy {copy / 1e9:.1f} GB/s; torch {torch.__version__}\n")
    print("| problem | PyTorch ms | facula ms | PyTorch / facula | % of copy |\n| --- | --- | --- | --- | --- |", flush=True)
    rows = workloads.cpu(torch)
    passes = [(r.label, r.text, False, r.computed, r.rival, r.bytes) for r in rows]
    passes += [(r.label + ", gradient", r.text, True, True, r.backward, r.moved_back) for r in rows if r.backward]
    for label, text, gradient, computed, rival, moved in passes:
        if a.names and not any(n in label for n in a.names):
            continue
        call, their, our = rival(), [], []
        for _ in range(a.rounds):
            their.append(rival_ms(call, a.seconds))
            our.append(our_ms(a, text, gradient, computed))
        ms, ratio = statistics.median(our), statistics.median(t / o for t, o in zip(their, our))
        share = f"{100 * moved / ms / copy * 1e3:.0f}" if moved else ""
        print(f"| {label} | {statistics.median(their):.3f} | {ms:.3f} | {ratio:.2f} | {share} |", flush=True)


if __name__ == "__main__":
    main()
