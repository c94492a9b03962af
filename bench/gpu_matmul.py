#!/usr/bin/env python3
"""Matrix products on a GPU against torch.matmul (cuBLAS) on the same card, the two programs alternating, medians of rounds.

    python bench/gpu_matmul.py --facula build/facula [--rounds 3] [--seconds 0.2] [--modes fp32,tf32,bf16] [--json] [NAME...]

NAME selects the rows whose group or label contains it: cube, gpt2, attention, classifier.  fp32 is `--precision highest` against
cuBLAS without TF32, tf32 is `--precision high` against cuBLAS with it, bf16 are bf16 tensors on both sides.  Weights are packed
once, as in a network; rows marked * have both operands computed in each run (`--inputs`).  Both sides wait after each call, so a
launch's latency is in all numbers.  Prints a Markdown table: ms, TFLOP/s, TB/s of operands and results, the rival's time / ours.
Needs torch with CUDA.
"""
import argparse
import json
import statistics

import torch

from timing import facula_json, rival_ms

PRECISION = {"fp32": "highest", "tf32": "high", "bf16": "default"}


def shape(mode, *sizes):
    return ("bf16" if mode == "bf16" else "f32") + "[" + ",".join(map(str, sizes)) + "]"


def rows(mode):
    """(group, label, problem, computed, shapes of the rival's operands, whether b is a linear layer's weight)"""
    s = lambda *sizes: shape(mode, *sizes)
    out = []
    for n in (1024, 2048, 4096, 8192):
        for computed in (False, True):
            out.append(("cube", f"{n}^3", f"matmul({s(n, n)}, {s(n, n)})", computed, (n, n), (n, n), False))
    for seq in (1, 16, 128, 1024):
        for k, n in ((768, 2304), (768, 768), (768, 3072), (3072, 768), (768, 50257)):
            out.append(("gpt2", f"{seq} x {k} x {n}", f"linear({s(seq, k)}, {s(n, k)}, {s(n)})", False, (seq, k), (n, k), True))
    for seq in (128, 1024):
        for label, a, b in (("q k", (12, seq, 64), (12, 64, seq)), ("p v", (12, seq, seq), (12, seq, 64))):
            out.append(("attention", f"{label}, 12 x {seq} x 64", f"matmul({s(*a)}, {s(*b)})", True, a, b, False))
    for batch in (1, 16, 64):
        for k, n in ((9216, 4096), (25088, 4096), (4096, 4096), (4096, 1000)):
            text = f"linear({s(batch, k)}, {s(n, k)}, {s(n)})"
            out.append(("classifier", f"{batch} x {k} x {n}", text, False, (batch, k), (n, k), True))
    return out


def rival_of(mode, a, b, linear):
    torch.backends.cuda.matmul.allow_tf32 = mode == "tf32"
    dtype = torch.bfloat16 if mode == "bf16" else torch.float32
    make = lambda *sizes: torch.rand(*sizes, device="cuda").mul_(2).sub_(1).to(dtype)
    x, w = make(*a), make(*b)
    bias = make(b[0]) if linear else None
    return (lambda: torch.nn.functional.linear(x, w, bias)) if linear else (lambda: torch.matmul(x, w))


def our_ms(a, mode, problem, computed):
    options = ["--precision", PRECISION[mode]] + (["--inputs"] if computed else []) + (["--solver", a.solver] if a.solver else [])
    return facula_json(a.facula, "bench", problem, a.device, a.seconds, *options)["median_ms"]


def work_of(row, mode):
    _, _, _, _, a, b, linear = row
    n = b[0] if linear else b[-1]
    count = 1
    for d in a[:-1]:
        count *= d
    size = 2 if mode == "bf16" else 4
    elements = lambda dims: torch.Size(dims).numel()
    return 2 * count * n * a[-1], size * (elements(a) + elements(b) + count * n)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--solver")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.2)
    p.add_argument("--modes", default="fp32,tf32,bf16")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    if not a.json:
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n", flush=True)
        print("| mode | product | PyTorch ms | facula ms | TFLOP/s | TB/s | PyTorch / facula |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
    for mode in a.modes.split(","):
        for row in rows(mode):
            group, label, problem, computed, left, right, linear = row
            if a.names and not any(n in f"{group} {label}" for n in a.names):
                continue
            call = rival_of(mode, left, right, linear)
            theirs, ours = [], []
            for _ in range(a.rounds):
                theirs.append(rival_ms(call, a.seconds, torch.cuda.synchronize, 3))
                ours.append(our_ms(a, mode, problem, computed))
            t, o = statistics.median(theirs), statistics.median(ours)
            flops, size = work_of(row, mode)
            if a.json:
                row = dict(mode=mode, product=label, computed=computed, rival_ms=t, facula_ms=o, tflops=1e-9 * flops / o)
                print(json.dumps(row), flush=True)
            else:
                print(f"| {mode} | {label}{' *' if computed else ''} | {t:.4f} | {o:.4f} | {1e-9 * flops / o:.1f} | "
                      f"{1e-9 * size / o:.2f} | {t / o:.2f} |", flush=True)


if __name__ == "__main__":
    main()
