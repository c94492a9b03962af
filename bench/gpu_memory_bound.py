#!/usr/bin/env python3
"""What memory limits on a GPU, against PyTorch on the same card, the two programs alternating, medians of rounds.

    python bench/gpu_memory_bound.py --facula build/facula [--rounds 3] [--seconds 0.1] [--peak 4250] [--times 1]
                                     [--json] [NAME...]

NAME selects the rows whose label contains it.  GB/s counts every operand read and written once, though some kernels have to read
one twice (statistics before normalization), so their best is below the peak; --peak is what a long plain copy reaches, in GB/s,
and "copy ms" how long PyTorch copies so that as many bytes are read and written in all, what a launch costs included; --times 4
makes all but the optimizer's and the layers' tensors four times as long, so that it costs less of the whole.  Both sides
run with their operands on the device, and wait for each run.  Depthwise convolutions and pools take images with channels last on
both sides; ours are the kernel's own time on the device's clock, since a problem alone begins and ends with plain images.
Needs torch with CUDA.
"""
import argparse
import functools
import itertools
import json
import statistics

import torch

import workloads
from timing import facula_json, rival_ms
from workloads import shape

EACH = {"f32": 4, "bf16": 2, "i64": 8}


def problems(c, times):
    """label, text, rival, bytes"""
    f, t, aten = c.f, torch, torch.ops.aten
    image, flat, n = (64 * times, 256, 56, 56), (64 * times * 56 * 56, 256), 64 * times * 56 * 56 * 256
    last = lambda *s, dtype=t.float32: t.randn(*s, device="cuda").to(dtype).to(memory_format=t.channels_last)
    numbers = lambda k, value=1.0: t.full((k,), value, device="cuda")
    p, side, big = shape(256), (8192 * times, 8192), 8192 * times * 8192

    # Channels last: a pixel is a row of channels.
    def norm(dtype, residual):
        def make():
            x, r, k = last(*image, dtype=dtype), last(*image, dtype=dtype), [numbers(256) for _ in range(4)]
            def call():
                y = f.batch_norm(x, k[0], k[1], k[2], k[3], True, 0.1, 1e-5)
                return t.relu_(y.add_(r) if residual else y)
            return c.forward(call)
        return make

    def norm_grad(dtype, masked):
        def make():
            x, dy, y = (last(*image, dtype=dtype) for _ in range(3))
            k = [numbers(256) for _ in range(5)]
            def call():
                g = aten.threshold_backward(dy, y, 0) if masked else dy
                return aten.native_batch_norm_backward(g, x, *k, True, 1e-5, [True] * 3)
            return c.forward(call)
        return make

    for e, dtype in (("f32", t.float32), ("bf16", t.bfloat16)):
        x, b = shape(*flat, t=e), EACH[e]
        train = "epsilon=1e-5 momentum=0.9 training_mode"
        yield (f"batch norm training {{relu}} {e}", f"batch_norm({x}, {p}, {p}, {p}, {p}) {train} {{relu}}", norm(dtype, False),
               2 * b * n)
        yield (f"batch norm training {{add relu}} {e}", f"batch_norm({x}, {p}, {p}, {p}, {p}, {x}) {train} {{add(_, x1) relu}}",
               norm(dtype, True), 3 * b * n)
        yield f"batch norm gradient {e}", f"batch_norm_grad({x}, {x}, {p}) epsilon=1e-5", norm_grad(dtype, False), 3 * b * n
        yield (f"batch norm relu gradient {e}", f"batch_norm_act_grad({x}, {x}, {p}, {x}) epsilon=1e-5", norm_grad(dtype, True),
               4 * b * n)

    for e in ("f32", "bf16"):
        x, b = shape(*side, t=e), EACH[e]
        yield f"add {e}", f"add({x}, {x})", c.into(lambda a, b, y: t.add(a, b, out=y), side, side, t=e), 3 * b * big
        yield f"relu {e}", f"relu({x})", c.into(lambda a, y: t.clamp_min(a, 0, out=y), side, t=e), 2 * b * big
        yield f"gelu {e}", f"gelu({x})", c.on(f.gelu, side, t=e), 2 * b * big
        other = "bf16" if e == "f32" else "f32"
        yield f"cast {e} to {other}", f"cast({x}) to={other}", c.into(lambda a, y: y.copy_(a), side, t=e, to=other), 6 * big
        yield (f"transpose {e}", f"transpose({x}) perm=1,0", c.into(lambda a, y: y.copy_(a.t()), side, t=e, result=side[::-1]), 2 * b * big)
    yield ("fused chain f32", f"fused({shape(*side)}, f32[8192]) {{t0 = mul(x0, x1); t1 = tanh(t0); t2 = add(t1, x0); t2}}",
           c.on(lambda x, a: t.tanh(x * a) + x, side, side[1:]), 8 * big)
    yield ("dropout f32", f"dropout({shape(*side)}, i64[]) ratio=0.5 training", c.on(lambda x: f.dropout(x, 0.5), side),
           9 * big)                             # the mask is a result: a byte an element
    for perm in ((0, 2, 3, 1), (0, 3, 1, 2)):
        s = image if perm[1] == 2 else (64 * times, 56, 56, 256)
        yield (f"transpose image to {perm}", f"transpose({shape(*s)}) perm={','.join(map(str, perm))}",
               c.on(lambda x, perm=perm: x.permute(perm).contiguous(), s), 8 * n)
    half = (8192 * times, 4096)
    yield ("concat f32", f"concat({shape(*half)}, {shape(*half)}) axis=1",
           c.into(lambda a, b, y: t.cat((a, b), 1, out=y), half, half, result=side), 8 * big)

    for r, w, e in ((65536, 1024, "f32"), (16384, 4096, "f32"), (65536, 1024, "bf16"), (16384, 8192, "bf16")):
        lines = r * times
        x, a, s, b = shape(lines, w, t=e), shape(w, t=e), (lines, w), EACH[e] * lines * w
        grad = lambda call, s=s, w=w, e=e: c.on(call, s, s, (w,), t=e)
        def layer(x, dy, a, w=w):
            _, mean, inverse = aten.native_layer_norm(x[:1], [w], a, a, 1e-5)
            mean, inverse = mean.expand(x.shape[0], 1).contiguous(), inverse.expand(x.shape[0], 1).contiguous()
            return aten.native_layer_norm_backward(dy, x, [w], mean, inverse, a, a, [True] * 3)
        yield f"softmax {r}x{w} {e}", f"softmax({x}) axis=-1", c.on(lambda x: f.softmax(x, -1), s, t=e), 2 * b
        yield (f"softmax gradient {r}x{w} {e}", f"softmax_grad({x}, {x}) axis=-1",
               grad(lambda y, dy, a: aten._softmax_backward_data(dy, y, -1, y.dtype)), 3 * b)
        yield (f"log-softmax gradient {r}x{w} {e}", f"log_softmax_grad({x}, {x}) axis=-1",
               grad(lambda y, dy, a: aten._log_softmax_backward_data(dy, y, -1, y.dtype)), 3 * b)
        yield (f"layer norm {r}x{w} {e}", f"layer_norm({x}, {a}, {a}) axis=-1 epsilon=1e-5",
               c.on(lambda x, a, b, w=w: f.layer_norm(x, (w,), a, b), s, (w,), (w,), t=e), 2 * b)
        yield f"layer norm gradient {r}x{w} {e}", f"layer_norm_grad({x}, {x}, {a}) axis=-1 epsilon=1e-5", grad(layer), 3 * b
    yield ("rms norm 16384x4096 f32", f"rms_norm({shape(16384 * times, 4096)}, f32[4096]) axis=-1",
           c.on(lambda x, a: f.rms_norm(x, (4096,), a), (16384 * times, 4096), (4096,)), 8 * big)
    yield ("group norm f32", f"group_norm({shape(*image)}, {p}, {p}) groups=32",
           c.on(lambda x, a, b: f.group_norm(x, 32, a, b), image, (256,), (256,)), 8 * n)
    for axes in ((0,), (1,), (0, 1)):
        name = ",".join(map(str, axes))
        yield f"sum over {name} f32", f"sum({shape(*side)}, i64{{{name}}})", c.on(lambda x, axes=axes: x.sum(axes), side), 4 * big
    yield "sum over 1 bf16", f"sum({shape(*side, t='bf16')}, i64{{1}})", c.on(lambda x: x.sum(1), side, t="bf16"), 2 * big
    yield "max over 1 f32", f"reduce_max({shape(*side)}, i64{{1}})", c.on(lambda x: x.amax(1), side), 4 * big
    yield ("mean of pixels f32", f"mean(f32[{64 * times},3136,256], i64{{1}})", c.on(lambda x: x.mean(1), (64 * times, 3136, 256)), 4 * n)

    def adam():
        w = t.nn.Parameter(c.rand(25600000))
        w.grad = c.rand(25600000)
        step = t.optim.Adam([w], lr=1e-3, fused=True).step
        return lambda: step()
    m = shape(25600000)
    body = ("t0 = sub(x1, x2); t1 = mul(t0, x4); t2 = add(x2, t1); t3 = mul(x1, x1); t4 = sub(t3, x3); t5 = mul(t4, x5); "
            "t6 = add(x3, t5); t7 = sqrt(t6); t8 = add(t7, x6); t9 = div(t2, t8); t10 = mul(t9, x7); t11 = sub(x0, t10)")
    yield ("adam, 25.6 M parameters", f"fused({m}, {m}, {m}, {m}, f32[], f32[], f32[], f32[]) {{{body}; t11, t2, t6}}", adam,
           28 * 25600000)


def channels_last(c):
    """label, text, rival, bytes, solver: layers of MobileNetV2, EfficientNet and ResNeXt; pools of ResNet, VGG and GoogLeNet"""
    t, f = torch, c.f
    kinds = {"f32": t.float32, "bf16": t.bfloat16}
    last = lambda *s, e="f32": c.rand(*s).to(kinds[e]).to(memory_format=t.channels_last)

    def conv(C, H, k, stride, e="f32", each=1, N=64):
        P, pad, b = (H - 1) // stride + 1, k // 2, EACH[e]
        x, y, w = (N, C, H, H), (N, C, P, P), (C, each, k, k)
        sx, sy, sw = shape(*x, t=e), shape(*y, t=e), shape(*w, t=e)
        attrs = f"stride={stride},{stride} pad={pad},{pad},{pad},{pad} groups={C // each}"
        name, solver = f"{'depthwise' if each == 1 else f'{each} channels a group'} {C} k{k} s{stride} @{H} {e}", "conv/depthwise"
        moved = b * (N * C * H * H + N * C * P * P)
        args = dict(stride=stride, padding=pad, groups=C // each)

        def forward():
            a, k_, bias = last(*x, e=e), last(*w, e=e), c.rand(C, t=e)
            return c.forward(lambda: t.relu_(f.conv2d(a, k_, bias, **args)))

        def back(mask):
            a, k_, dy = last(*x, e=e), last(*w, e=e), last(*y, e=e)
            return c.forward(lambda: t.ops.aten.convolution_backward(dy, a, k_, None, [stride] * 2, [pad] * 2, [1, 1], False,
                                                                     [0, 0], C // each, mask))
        yield f"{name} {{relu}}", f"conv2d({sx}, {sw}, {shape(C, t=e)}) {attrs} {{relu}}", forward, moved, solver
        yield f"{name} by x", f"conv2d_grad_x({sy}, {sw}, {sx}) {attrs}", lambda: back([True, False, False]), moved, solver
        if each == 1:
            yield f"{name} by w", f"conv2d_grad_w({sx}, {sy}, {sw}) {attrs}", lambda: back([False, True, False]), moved, solver

    def pool(kind, C, H, k, stride, pad, e="f32", N=64):
        P, b = (H + 2 * pad - k) // stride + 1, EACH[e]
        x, y = (N, C, H, H), (N, C, P, P)
        attrs, moved = f"kernel={k},{k} stride={stride},{stride} pad={pad},{pad},{pad},{pad}", b * (N * C * H * H + N * C * P * P)
        call = {"max": f.max_pool2d, "avg": f.avg_pool2d}[kind]
        aten = t.ops.aten

        def back():
            a, dy = last(*x, e=e), last(*y, e=e)
            if kind == "avg":
                return c.forward(lambda: aten.avg_pool2d_backward(dy, a, [k, k], [stride] * 2, [pad] * 2, False, True, None))
            window = [k, k], [stride] * 2, [pad] * 2
            at = aten.max_pool2d_with_indices(a, *window)[1]
            return c.forward(lambda: aten.max_pool2d_with_indices_backward(dy, a, *window, [1, 1], False, at))

        def forward():
            a = last(*x, e=e)
            return c.forward(lambda: call(a, k, stride, pad))
        name, sx, sy = f"{kind} pool {C} k{k} s{stride} @{H} {e}", shape(*x, t=e), shape(*y, t=e)
        yield name, f"{kind}_pool2d({sx}) {attrs}", forward, moved, "pool/quads"
        read = moved + (b * N * C * H * H if kind == "max" else 0)
        yield f"{name} gradient", f"{kind}_pool2d_grad({sx}, {sy}) {attrs}", back, read, "pool/quads"

    for layer in ((32, 112, 3, 1), (96, 112, 3, 2), (144, 56, 3, 1), (144, 56, 3, 2), (192, 28, 3, 1), (384, 14, 3, 1),
                  (960, 7, 3, 1), (240, 28, 5, 1), (144, 56, 3, 1, "bf16"), (128, 56, 3, 1, "f32", 4),
                  (512, 14, 3, 1, "f32", 16)):
        yield from conv(*layer)
    for layer in (("max", 64, 112, 3, 2, 1), ("max", 64, 224, 2, 2, 0), ("max", 256, 28, 3, 1, 1), ("avg", 2048, 7, 7, 1, 0)):
        yield from pool(*layer)


def our_ms(a, text, solver=None):
    if not solver:
        return facula_json(a.facula, "bench", text, a.device, a.seconds, "--inputs")["median_ms"]
    seen = facula_json(a.facula, "profile", text, a.device, a.seconds, "--solver", solver)
    mine = {n["node"] for n in seen["nodes"] if n["solver"] == solver}
    if not mine:
        raise SystemExit(f"{text}: not solved by {solver}")
    return 1e-3 * sum(one["us"] for one in seen["launches"]["all"] if one["node"] in mine)


@functools.lru_cache(maxsize=None)
def copy_ms(moved, seconds):
    x = torch.zeros(moved // 2, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    return rival_ms(lambda: y.copy_(x), seconds, torch.cuda.synchronize)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.1)
    p.add_argument("--peak", type=float, default=4250, help="GB/s")
    p.add_argument("--times", type=int, default=1)
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    if not a.json:
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
        print("| problem | PyTorch ms | facula ms | PyTorch / facula | GB/s | % of peak | copy ms |")
        print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    c = workloads.Calls(torch, "cuda")
    for label, text, rival, moved, *solver in itertools.chain(problems(c, a.times), channels_last(c)):
        if a.names and not any(n in label for n in a.names):
            continue
        call, their, our = rival(), [], []
        for _ in range(a.rounds):
            their.append(rival_ms(call, a.seconds, torch.cuda.synchronize))
            our.append(our_ms(a, text, *solver))
        del call
        torch.cuda.empty_cache()
        copy = copy_ms(moved, a.seconds)
        ms, theirs, speed = statistics.median(our), statistics.median(their), moved / statistics.median(our) * 1e-6
        if a.json:
            row = dict(label=label, problem=text, torch_ms=theirs, ours_ms=ms, gb_s=speed, of_peak=speed / a.peak,
                       copy_ms=copy)
            print(json.dumps(row), flush=True)
            continue
        percent = 100 * speed / a.peak
        print(f"| {label} | {theirs:.3f} | {ms:.3f} | {theirs / ms:.2f} | {speed:.0f} | {percent:.0f} | {copy:.3f} |", flush=True)


if __name__ == "__main__":
    main()
