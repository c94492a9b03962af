#!/usr/bin/env python3
"""Attention and its gradient on a GPU against torch's scaled_dot_product_attention on the same card, the two programs
alternating, medians of rounds.

    python bench/gpu_attention.py --facula build/facula [--rounds 3] [--seconds 0.2] [--modes bf16,tf32] [--json] [NAME...]

NAMEs select the rows whose labels contain all of them: forward, backward, causal, 64, 128, or a length.  16,384
tokens in all, 2,048 features: heads 64 or 128 wide.  bf16 are bf16 tensors on both sides; tf32 are f32 tensors with
`--precision high` and with TF32 allowed.  torch chooses its kernel (cuDNN, flash or memory-efficient) as it does by
itself.  Both sides wait after each call, so a launch's latency is in all numbers.  Prints a Markdown table: ms,
TFLOP/s, the rival's time / ours; a gradient counts as two and a half times the forward products, half of them where
causal.  Needs torch with CUDA.
"""
import argparse
import json
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F

PRECISION = {"bf16": "default", "f16": "default", "tf32": "high"}
DTYPE = {"bf16": torch.bfloat16, "f16": torch.float16, "tf32": torch.float32}
TOKENS, FEATURES = 16384, 2048


def rows():
    """(label, backward, causal, size of a head, length)"""
    for backward in (False, True):
        for causal in (False, True):
            for size in (64, 128):
                for length in (512, 1024, 2048, 4096, 8192):
                    label = f"{'backward' if backward else 'forward'}{', causal' if causal else ''}, {size} x {length}"
                    yield label, backward, causal, size, length


def problem_of(mode, backward, causal, size, length):
    batch, heads = TOKENS // length, FEATURES // size
    operand = f"{'f32' if mode == 'tf32' else mode}[{batch},{heads},{length},{size}]"
    operands = [operand] * 3 + ([operand] * 2 + [f"f32[{batch},{heads},{length}]"] if backward else [])
    return f"attention{'_grad' if backward else ''}({', '.join(operands)}){' causal' if causal else ''}"


def rival_of(mode, backward, causal, size, length):
    shape = (TOKENS // length, FEATURES // size, length, size)
    q, k, v = (torch.rand(shape, device="cuda").mul_(2).sub_(1).to(DTYPE[mode]).requires_grad_(backward) for _ in range(3))
    if not backward:
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    dy = torch.rand_like(y)
    return lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)


def rival_ms(call, seconds):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def our_ms(a, mode, problem):
    how = ["--device", a.device, "--precision", PRECISION[mode], "--seconds", str(a.seconds), "--json"]
    done = subprocess.run([a.facula, "bench", problem] + how, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{problem}: {done.stderr.strip()}")
    return json.loads(done.stdout)["median_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.2)
    p.add_argument("--modes", default="bf16,tf32")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    if not a.json:
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n", flush=True)
        print("| mode | attention | PyTorch ms | facula ms | TFLOP/s | PyTorch / facula |\n| --- | --- | --- | --- | --- | --- |")
    for mode in a.modes.split(","):
        for label, backward, causal, size, length in rows():
            if not all(n in label for n in a.names):
                continue
            call, theirs, ours = rival_of(mode, backward, causal, size, length), [], []
            for _ in range(a.rounds):
                theirs.append(rival_ms(call, a.seconds))
                ours.append(our_ms(a, mode, problem_of(mode, backward, causal, size, length)))
            t, o = statistics.median(theirs), statistics.median(ours)
            flops = 4 * TOKENS * FEATURES * length * (2.5 if backward else 1) / (2 if causal else 1)
            if a.json:
                print(json.dumps(dict(mode=mode, attention=label, rival_ms=t, facula_ms=o, tflops=1e-9 * flops / o)), flush=True)
            else:
                print(f"| {mode} | {label} | {t:.3f} | {o:.3f} | {1e-9 * flops / o:.0f} | {t / o:.2f} |", flush=True)


if __name__ == "__main__":
    main()
