#!/usr/bin/env python3
"""Attention with its gradients, and what memory limits, against PyTorch: the two programs alternating, medians of rounds.

    python bench/memory_bound.py --facula build/facula [--rounds 3] [--threads 2] [--seconds 0.1] [NAME...]

NAME selects the rows whose label contains it.  PyTorch writes into tensors that are already there where its call has out=, as
ours does: fresh ones cost it the page faults of new memory.  A gradient is the forward pass and the backward pass of one
call, as bench/gradient.c runs it for us.  The last column is bytes read and
written once, over the time, as a share of what `facula peaks` copies in the same run.
"""
import argparse
import json
import os
import statistics
import subprocess

import torch

from timing import rival_ms

f = torch.nn.functional


def shape(*s):
    return "f32[" + ",".join(map(str, s)) + "]"


def rand(*s, grad=False):
    return (torch.rand(*s) * 2 - 1).requires_grad_(grad)


def forward(call):
    def run():
        with torch.no_grad():
            call()
    return run


def backward(call, *leaves):
    out = call()
    dy = torch.ones_like(out)

    def run():
        torch.autograd.grad(call(), leaves, dy)
    return run


def problems():
    """label, problem, gradient?, rival, bytes moved (0: not limited by memory)"""
    rows = []
    for s in (128, 512, 1024, 2048):
        text = f"attention({shape(1, 12, s, 64)}, {shape(1, 12, s, 64)}, {shape(1, 12, s, 64)})"

        def attention(grad, s=s):
            q, k, v = (rand(1, 12, s, 64, grad=grad) for _ in range(3))
            call = lambda: f.scaled_dot_product_attention(q, k, v)
            return backward(call, q, k, v) if grad else forward(call)
        rows.append((f"attention {s}", text, False, lambda a=attention: a(False), 0))
        rows.append((f"attention {s}, gradient", text, True, lambda a=attention: a(True), 0))
    for r, w in ((512, 768), (4096, 768), (16384, 1024)):
        count = r * w
        x = shape(r, w)

        def row(name, text, call, moved, leaves=()):
            def rival(grad, r=r, w=w, call=call, leaves=leaves):
                t = [rand(r, w, grad=grad)] + [rand(*s, grad=grad) for s in leaves]
                return backward(lambda: call(*t), *t) if grad else forward(lambda: call(*t))
            rows.append((f"{name} {r}x{w}", text, False, lambda rival=rival: rival(False), 8 * count))
            rows.append((f"{name} {r}x{w}, gradient", text, True, lambda rival=rival: rival(True), moved * count))
        row("layer norm", f"layer_norm({x}, {shape(w)}, {shape(w)}) axis=-1",
            lambda x, a, b, w=w: f.layer_norm(x, (w,), a, b), 20, ((w,), (w,)))
        row("softmax", f"softmax({x}) axis=-1", lambda x: f.softmax(x, -1), 20)
        row("gelu", f"gelu({x})", f.gelu, 20)

    big, count = shape(4096, 4096), 4096 * 4096

    def into(call, *s):
        y = torch.empty(*s)
        return forward(lambda: call(y))

    def two(op):
        a, b = rand(4096, 4096), rand(4096, 4096)
        return into(lambda y: op(a, b, out=y), 4096, 4096)
    rows.append(("add 64 MB", f"add({big}, {big})", False, lambda: two(torch.add), 12 * count))

    def relu():
        a = rand(4096, 4096)
        return into(lambda y: torch.clamp_min(a, 0, out=y), 4096, 4096)
    rows.append(("relu 64 MB", f"relu({big})", False, relu, 8 * count))
    for name, op, text in (("sum over 0", lambda x: x.sum(0), f"sum({big}, i64{{0}})"), ("sum over 1", lambda x: x.sum(1), f"sum({big}, i64{{1}})"),
                           ("max over 1", lambda x: x.amax(1), f"reduce_max({big}, i64{{1}})"), ("max over 0", lambda x: x.amax(0), f"reduce_max({big}, i64{{0}})")):
        rows.append((f"{name}, 64 MB", text, False, lambda op=op: (lambda x: forward(lambda: op(x)))(rand(4096, 4096)), 4 * count))
    rows.append(("sum over a last axis of 16, 64 MB", f"sum({shape(count // 16, 16)}, i64{{1}})", False,
                 lambda: (lambda x: forward(lambda: x.sum(1)))(rand(count // 16, 16)), 4 * count + count // 4))

    def turned(perm, *s):
        x = rand(*s).permute(perm)
        return into(lambda y: y.copy_(x), *x.shape)
    rows.append(("transpose 4096x4096", f"transpose({big}) perm=1,0", False, lambda: turned((1, 0), 4096, 4096), 8 * count))
    for perm in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        rows.append((f"transpose 64x512x512 to {perm}", f"transpose({shape(64, 512, 512)}) perm={','.join(map(str, perm))}", False,
                     lambda perm=perm: turned(perm, 64, 512, 512), 8 * count))

    def joined():
        a, b = rand(4096, 2048), rand(4096, 2048)
        return into(lambda y: torch.cat((a, b), 1, out=y), 4096, 4096)
    half = shape(4096, 2048)
    rows.append(("concat 2 x 32 MB", f"concat({half}, {half}) axis=1", False, joined, 8 * count))
    return rows


def our_ms(a, text, gradient):
    if gradient:
        command = [a.gradient or os.path.join(os.path.dirname(a.facula), "tests", "bench_gradient"), text, str(a.threads), str(a.seconds)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    command = [a.facula, "bench", text, "--json", "--threads", str(a.threads), "--seconds", str(a.seconds), "--inputs"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["median_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--gradient", help="the program bench_gradient; default: in tests/ beside facula")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.1)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    peaks = subprocess.run([a.facula, "peaks", "--json", "--threads", str(a.threads)], check=True, capture_output=True, text=True).stdout
    copy = json.loads(peaks)["peaks"][0]["memory_copy"]
    print(f"{a.threads} threads, copy {copy / 1e9:.1f} GB/s; torch {torch.__version__}\n")
    print("| problem | PyTorch ms | facula ms | PyTorch / facula | % of copy |\n| --- | --- | --- | --- | --- |", flush=True)
    for label, text, gradient, rival, moved in problems():
        if a.names and not any(n in label for n in a.names):
            continue
        call, their, our = rival(), [], []
        for _ in range(a.rounds):
            their.append(rival_ms(call, a.seconds))
            our.append(our_ms(a, text, gradient))
        ms, ratio = statistics.median(our), statistics.median(t / o for t, o in zip(their, our))
        share = f"{100 * moved / ms / copy * 1e3:.0f}" if moved else ""
        print(f"| {label} | {statistics.median(their):.3f} | {ms:.3f} | {ratio:.2f} | {share} |", flush=True)


if __name__ == "__main__":
    main()
