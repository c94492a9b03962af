#!/usr/bin/env python3
"""Single problems on the CPU against PyTorch and OpenBLAS (numpy): the two programs alternating, medians of rounds.

    python bench/cpu_kernels.py --facula build/facula [--rounds 3] [--threads 2] [--seconds 0.3] [--isa avx2] [--json] [NAME...]

NAME selects the rows whose group or label contains it: gemm, gpt2, skinny, batched, attention, norm, softmax, pointwise, reduce,
move.  A problem is the text that `facula bench` takes.  Weights are packed once, as in a network; rows marked * have all operands
computed in each run (`--inputs`).  Columns: median ms of the rivals and ours, the best rival's time / ours, the share of the FMA
peak that the best rival and we reach, and our share of the bandwidth of a copy, both measured here (`facula peaks`).  OpenBLAS
(numpy) has no number where it has no such call.  --isa avx2 holds the rivals to AVX2, too.  Needs torch and numpy.

Idle threads of the rivals spin for a while, so there is a rest before each of our turns.
"""
import argparse
import json
import os
import statistics
import subprocess
import time

import workloads
from timing import hold_to, rival_ms

REST = 0.15     # seconds


def problems(torch):
    """(group, label, problem, computed, rival, flops, bytes).  rival() makes the call to time."""
    f = torch.nn.functional
    rand = lambda *s: torch.rand(*s) * 2 - 1
    rows = []

    def add(group, label, text, rival, flops=0, bytes_=0, computed=False, blas=None):
        rows.append((group, label, text, computed, rival, blas, flops, bytes_))

    shape = workloads.shape

    def product(m, k, n):
        a, b = rand(m, k), rand(k, n)
        return lambda: a @ b

    def blas(m, k, n):
        a, b = rand(m, k).numpy(), rand(k, n).numpy()
        return lambda: a @ b

    def linear(m, k, n):
        x, w, b = rand(m, k), rand(n, k), rand(n)
        return lambda: f.linear(x, w, b)

    for n in (512, 1024, 2048):
        for computed in (False, True):
            add("gemm", f"{n}^3", f"matmul({shape(n, n)}, {shape(n, n)})", lambda n=n: product(n, n, n), 2 * n ** 3, 12 * n * n,
                computed, lambda n=n: blas(n, n, n))
    n = 1024
    for a in (False, True):
        for b in (False, True):
            def transposed(a=a, b=b, n=n):
                x, y = rand(n, n), rand(n, n)
                return lambda: (x.t() if a else x) @ (y.t() if b else y)
            text = f"gemm({shape(n, n)}, {shape(n, n)})" + (" trans_a" if a else "") + (" trans_b" if b else "")
            add("gemm", f"{n}^3 {'T' if a else 'N'}{'T' if b else 'N'}", text, transposed, 2 * n ** 3, 12 * n * n, True)
    for m in (1, 4, 16, 64, 256, 1024):
        for k, n in ((768, 2304), (768, 768), (768, 3072), (3072, 768)):
            add("gpt2", f"{m}x{k}x{n}", f"linear({shape(m, k)}, {shape(n, k)}, {shape(n)})",
                lambda m=m, k=k, n=n: linear(m, k, n), 2 * m * k * n, 4 * (m * k + k * n + m * n), False,
                lambda m=m, k=k, n=n: blas(m, k, n))
    for m in (1, 64):
        add("gpt2", f"{m}x768x50257", f"matmul({shape(m, 768)}, {shape(768, 50257)})", lambda m=m: product(m, 768, 50257),
            2 * m * 768 * 50257, 4 * 768 * 50257, False, lambda m=m: blas(m, 768, 50257))
    for m, k, n in ((1, 4096, 4096), (1, 9216, 4096), (1, 25088, 4096), (4, 4096, 4096), (16, 4096, 4096), (16, 25088, 4096)):
        add("skinny", f"{m}x{k}x{n}", f"linear({shape(m, k)}, {shape(n, k)}, {shape(n)})", lambda m=m, k=k, n=n: linear(m, k, n),
            2 * m * k * n, 4 * k * n, False, lambda m=m, k=k, n=n: blas(m, k, n))

    def batched(h, m, k, n):
        a, b = rand(h, m, k), rand(h, k, n)
        return lambda: a @ b
    for h, m, k, n in ((12, 512, 64, 512), (12, 512, 512, 64), (12, 128, 64, 128)):
        add("batched", f"{h}x{m}x{k}x{n}", f"matmul({shape(h, m, k)}, {shape(h, k, n)})", lambda s=(h, m, k, n): batched(*s),
            2 * h * m * k * n, 4 * h * (m * k + k * n + m * n), True)
    def typed(make):
        a, b = make(), make()
        return lambda: a @ b
    add("typed", "f64 512^3", "matmul(f64[512,512], f64[512,512])",
        lambda: typed(lambda: torch.rand(512, 512, dtype=torch.float64)), 2 * 512 ** 3)
    add("typed", "i32 512^3", "matmul(i32[512,512], i32[512,512])",
        lambda: typed(lambda: torch.randint(-99, 99, (512, 512), dtype=torch.int32)))

    for r in workloads.cpu(torch):
        add(r.group, r.label, r.text, r.rival, r.flops, r.bytes, r.computed)
    return rows


def ask(a, *command):
    command = [a.facula, *command, "--json", "--threads", str(a.threads), *(["--isa", a.isa] if a.isa else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def our_ms(a, text, computed):
    time.sleep(REST)
    return ask(a, "bench", text, "--seconds", str(a.seconds), *(["--inputs"] if computed else []))["median_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--isa", help="cpu instruction set for facula, such as avx2")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = str(a.threads)
    hold_to(a.isa)
    import torch
    torch.set_num_threads(a.threads)
    torch.set_grad_enabled(False)
    peaks = max((ask(a, "peaks")["peaks"][0] for _ in range(3)), key=lambda p: p["flops"])     # libraries' threads spin at first
    flops, copy = peaks["flops"], peaks["memory_copy"]
    if not a.json:
        print(f"{a.threads} threads, FMA peak {flops / 1e9:.0f} GFLOP/s, copy {copy / 1e9:.1f} GB/s; torch {torch.__version__}\n")
        print("| problem | PyTorch ms | OpenBLAS ms | ours ms | ratio | rival's % of FMA peak | our % | % of copy |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for group, label, text, computed, rival, blas, work, moved in problems(torch):
        if a.names and not any(n in group or n in label for n in a.names):
            continue
        calls, their, our = [rival()] + ([blas()] if blas else []), [[], []], []
        for _ in range(a.rounds):
            for k, call in enumerate(calls):
                their[k].append(rival_ms(call, a.seconds))
            our.append(our_ms(a, text, computed))
        ms, rivals = statistics.median(our), [statistics.median(t) if t else None for t in their]
        best = min(r for r in rivals if r)
        row = dict(group=group, problem=text, computed=computed, torch_ms=rivals[0], openblas_ms=rivals[1], ours_ms=ms,
                   ratio=best / ms, of_peak=work / ms / flops * 1e3 if work else None,
                   of_copy=moved / ms / copy * 1e3 if moved else None)
        if a.json:
            print(json.dumps(row), flush=True)
            continue
        percent = lambda x: f"{100 * x:.0f}" if x else ""
        blas_ms = f"{rivals[1]:.3f}" if rivals[1] else ""
        print(f"| {label}{' *' if computed else ''} | {rivals[0]:.3f} | {blas_ms} | {ms:.3f} | **{best / ms:.2f}** | "
              f"{percent(work / best / flops * 1e3)} | {percent(row['of_peak'])} | {percent(row['of_copy'])} |", flush=True)


if __name__ == "__main__":
    main()
