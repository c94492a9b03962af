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

from timing import rival_ms

REST = 0.15     # seconds
AVX2 = dict(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2", OPENBLAS_CORETYPE="Haswell")


def problems(torch):
    """(group, label, problem, computed, rival, flops, bytes).  rival() makes the call to time."""
    f = torch.nn.functional
    rand = lambda *s: torch.rand(*s) * 2 - 1
    rows = []

    def add(group, label, text, rival, flops=0, bytes_=0, computed=False, blas=None):
        rows.append((group, label, text, computed, rival, blas, flops, bytes_))

    def shape(*s):
        return "f32[" + ",".join(map(str, s)) + "]"

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
            add("gemm", f"{n}^3", f"matmul({shape(n, n)}, {shape(n, n)})", lambda n=n: product(n, n, n), 2 * n ** 3, 12 * n * n, computed,
                lambda n=n: blas(n, n, n))
    n = 1024
    for a in (False, True):
        for b in (False, True):
            def turned(a=a, b=b, n=n):
                x, y = rand(n, n), rand(n, n)
                return lambda: (x.t() if a else x) @ (y.t() if b else y)
            text = f"gemm({shape(n, n)}, {shape(n, n)})" + (" trans_a" if a else "") + (" trans_b" if b else "")
            add("gemm", f"{n}^3 {'T' if a else 'N'}{'T' if b else 'N'}", text, turned, 2 * n ** 3, 12 * n * n, True)
    for m in (1, 4, 16, 64, 256, 1024):
        for k, n in ((768, 2304), (768, 768), (768, 3072), (3072, 768)):
            add("gpt2", f"{m}x{k}x{n}", f"linear({shape(m, k)}, {shape(n, k)}, {shape(n)})", lambda m=m, k=k, n=n: linear(m, k, n),
                2 * m * k * n, 4 * (m * k + k * n + m * n), False, lambda m=m, k=k, n=n: blas(m, k, n))
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
    add("typed", "f64 512^3", "matmul(f64[512,512], f64[512,512])",
        lambda: (lambda a, b: lambda: a @ b)(torch.rand(512, 512, dtype=torch.float64), torch.rand(512, 512, dtype=torch.float64)), 2 * 512 ** 3)
    add("typed", "i32 512^3", "matmul(i32[512,512], i32[512,512])",
        lambda: (lambda a, b: lambda: a @ b)(torch.randint(-99, 99, (512, 512), dtype=torch.int32), torch.randint(-99, 99, (512, 512), dtype=torch.int32)))

    def attention(b, h, s, d, causal=False, mask=False, groups=None):
        q, k, v = rand(b, h, s, d), rand(b, groups or h, s, d), rand(b, groups or h, s, d)
        m = rand(s, s) if mask else None
        return lambda: f.scaled_dot_product_attention(q, k, v, attn_mask=m, is_causal=causal, enable_gqa=bool(groups))
    for s, d, more in [(128, 64, {}), (512, 64, {}), (1024, 64, {}), (2048, 64, {}), (128, 64, dict(causal=True)), (512, 64, dict(causal=True)),
                       (2048, 64, dict(causal=True)), (512, 64, dict(mask=True)), (512, 64, dict(groups=4)), (512, 32, {}), (512, 128, {})]:
        g = more.get("groups") or 12
        text = f"attention({shape(1, 12, s, d)}, {shape(1, g, s, d)}, {shape(1, g, s, d)}"
        text += (f", {shape(s, s)}" if "mask" in more else "") + ")" + (" causal" if "causal" in more else "")
        add("attention", f"12 x {s} x {d} " + " ".join(more), text, lambda s=s, d=d, more=more: attention(1, 12, s, d, **more),
            4 * 12 * s * s * d / (2 if "causal" in more else 1))

    def unary(call, *s):
        x = rand(*s)
        return lambda: call(x)

    for r, w in ((16, 1024), (512, 768), (4096, 768), (16384, 1024)):
        size, scale = 8 * r * w, f"{shape(w)}"
        def normal(r=r, w=w, rms=False):
            x, a, b = rand(r, w), rand(w), rand(w)
            return (lambda: f.rms_norm(x, (w,), a)) if rms else (lambda: f.layer_norm(x, (w,), a, b))
        add("norm", f"layer norm {r}x{w}", f"layer_norm({shape(r, w)}, {scale}, {scale}) axis=-1", normal, 0, size)
        add("norm", f"rms norm {r}x{w}", f"rms_norm({shape(r, w)}, {scale}) axis=-1", lambda n=normal: n(rms=True), 0, size)
        for name, op, call in (("softmax", "softmax", lambda x: f.softmax(x, -1)), ("log-softmax", "log_softmax", lambda x: f.log_softmax(x, -1))):
            add("softmax", f"{name} {r}x{w}", f"{op}({shape(r, w)}) axis=-1", lambda call=call, r=r, w=w: unary(call, r, w), 0, size)
        for name, op, call in (("gelu", "gelu", f.gelu), ("gelu tanh", "gelu_tanh", lambda x: f.gelu(x, approximate="tanh")), ("silu", "silu", f.silu)):
            add("pointwise", f"{name} {r}x{w}", f"{op}({shape(r, w)})", lambda call=call, r=r, w=w: unary(call, r, w), 0, size)

    def norm4(instance):
        x, a, b = rand(8, 256, 56, 56), rand(256), rand(256)
        return (lambda: f.instance_norm(x, weight=a, bias=b)) if instance else (lambda: f.group_norm(x, 32, a, b))
    image = shape(8, 256, 56, 56)
    add("norm", "group norm 8x256x56x56", f"group_norm({image}, {shape(256)}, {shape(256)}) groups=32", lambda: norm4(False), 0, 8 * 8 * 256 * 3136)
    add("norm", "instance norm 8x256x56x56", f"instance_norm({image}, {shape(256)}, {shape(256)})", lambda: norm4(True), 0, 8 * 8 * 256 * 3136)

    big, count = shape(4096, 4096), 4096 * 4096
    add("pointwise", "add 64 MB", f"add({big}, {big})", lambda: (lambda a, b: lambda: a + b)(rand(4096, 4096), rand(4096, 4096)), 0, 12 * count, True)
    add("pointwise", "relu 64 MB", f"relu({big})", lambda: unary(torch.relu, 4096, 4096), 0, 8 * count)
    for axes in ("0", "1", "0,1"):
        dims = tuple(map(int, axes.split(",")))
        add("reduce", f"sum over {axes}, 64 MB", f"sum({big}, i64{{{axes}}})", lambda dims=dims: unary(lambda x: x.sum(dims), 4096, 4096), 0, 4 * count)
    add("reduce", "max over 1, 64 MB", f"reduce_max({big}, i64{{1}})", lambda: unary(lambda x: x.amax(1), 4096, 4096), 0, 4 * count)
    add("reduce", "arg max over 1, 64 MB", f"arg_max({big}) axis=1", lambda: unary(lambda x: x.argmax(1), 4096, 4096), 0, 4 * count)
    add("reduce", "sum over a last axis of 16", f"sum({shape(count // 16, 16)}, i64{{1}})", lambda: unary(lambda x: x.sum(1), count // 16, 16), 0, 4 * count)
    add("move", "transpose 4096x4096", f"transpose({big}) perm=1,0", lambda: unary(lambda x: x.t().contiguous(), 4096, 4096), 0, 8 * count)
    cube = (64, 512, 512)
    for perm in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        add("move", f"transpose 64x512x512 to {perm}", f"transpose({shape(*cube)}) perm={','.join(map(str, perm))}",
            lambda perm=perm: unary(lambda x: x.permute(perm).contiguous(), *cube), 0, 8 * count)
    half = shape(4096, 2048)
    add("move", "concat 2 x 32 MB", f"concat({half}, {half}) axis=1", lambda: (lambda a, b: lambda: torch.cat((a, b), 1))(rand(4096, 2048), rand(4096, 2048)),
        0, 8 * count, True)
    return rows


def our_ms(a, text, computed):
    time.sleep(REST)
    command = [a.facula, "bench", text, "--json", "--threads", str(a.threads), "--seconds", str(a.seconds)] + (["--inputs"] if computed else [])
    done = subprocess.run(command + (["--isa", a.isa] if a.isa else []), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{text}: {done.stderr.strip()}")
    return json.loads(done.stdout)["median_ms"]


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
    if a.isa == "avx2":
        os.environ.update(AVX2)
    import torch
    torch.set_num_threads(a.threads)
    torch.set_grad_enabled(False)
    peaks = json.loads(subprocess.run([a.facula, "peaks", "--json", "--threads", str(a.threads)] + (["--isa", a.isa] if a.isa else []), check=True, capture_output=True, text=True).stdout)
    peaks = peaks["peaks"][0]
    flops, copy = peaks["flops"], peaks["memory_copy"]
    if not a.json:
        print(f"{a.threads} threads, FMA peak {flops / 1e9:.0f} GFLOP/s, copy {copy / 1e9:.1f} GB/s; torch {torch.__version__}\n")
        print("| problem | PyTorch ms | OpenBLAS ms | ours ms | ratio | rival's % of FMA peak | our % | % of copy |\n| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
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
        row = dict(group=group, problem=text, computed=computed, torch_ms=rivals[0], openblas_ms=rivals[1], ours_ms=ms, ratio=best / ms,
                   of_peak=work / ms / flops * 1e3 if work else None, of_copy=moved / ms / copy * 1e3 if moved else None)
        if a.json:
            print(json.dumps(row), flush=True)
            continue
        percent = lambda x: f"{100 * x:.0f}" if x else ""
        print(f"| {label}{' *' if computed else ''} | {rivals[0]:.3f} | {f'{rivals[1]:.3f}' if rivals[1] else ''} | {ms:.3f} | **{best / ms:.2f}** | "
              f"{percent(work / best / flops * 1e3)} | {percent(row['of_peak'])} | {percent(row['of_copy'])} |", flush=True)


if __name__ == "__main__":
    main()
