#!/usr/bin/env python3
"""Device "ocl" of facula.torch in one call: operators, networks against the cpu, and speed against cuda where there is one.

    python bench/torch_device.py [--out torch_device.json] [--seconds 420] [--device opencl:0] [--parts ops,nets,speed]
                                 [--nets resnet18,...] [--ops 200] [--size 224]

ops    samples of torch's op_db on the device against the cpu, forward and gradient (needs expecttest): correct, native
nets   torchvision's networks of pytorch_dlprim's list, batch 2: gradients and evaluation against the cpu, calls of the host
speed  ResNet-50, VGG16, MobileNetV2, ViT-B/16 and GPT-2, inference at batch 1, 16, 64 and training at 64 (fp32, TF32, bf16):
       device ocl and cuda, alternating; ratio = cuda's time over ours, above 1 facula is faster

Each part stops when its share of --seconds is used and says what it did not reach.  A table is printed, --out gets JSON.
"""
import argparse
import collections
import copy
import json
import os
import statistics
import sys
import time
import warnings

NETS = ("alexnet resnet18 resnet50 convnext_small vgg16 squeezenet1_0 googlenet densenet161 inception_v3 shufflenet_v2_x1_0 mobilenet_v2 "
        "mobilenet_v3_large mobilenet_v3_small resnext50_32x4d wide_resnet50_2 mnasnet1_0 efficientnet_b0 efficientnet_b4 regnet_y_400mf vit_b_16").split()
RANDOM = ("empty", "rand", "normal", "bernoulli", "multinomial", "uniform", "dropout", "rrelu", "exponential", "cauchy", "geometric", "log_normal",
          "poisson", "svd", "jiterator", "sparse", "nested", "pca_lowrank", "eig", "qr", "fractional")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out")
    p.add_argument("--seconds", type=float, default=420)
    p.add_argument("--device", help="of facula.torch.devices(): becomes ocl:0")
    p.add_argument("--parts", default="ops,nets,speed")
    p.add_argument("--nets")
    p.add_argument("--ops", type=int, default=0, help="at most so many operators; 0: all")
    p.add_argument("--size", type=int, default=128, help="of images in nets")
    return p.parse_args()


A = arguments()
if A.device:
    os.environ["FACULA_TORCH_DEVICES"] = A.device
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402

import facula.torch as ft  # noqa: E402

warnings.filterwarnings("ignore")


def say(*words):
    print(*words, flush=True)


# ---- operators -------------------------------------------------------------------------------------------------


def on_cpu(t):
    def one(x):
        if isinstance(x, torch.Tensor):
            return x.detach().cpu().requires_grad_(x.requires_grad and x.is_floating_point())
        if isinstance(x, torch.device) or isinstance(x, str) and x in ("ocl", "ocl:0"):
            return torch.device("cpu")
        return x
    return tree_map(one, t)


def one_op(op, samples=4):
    """"native", "host" or what is wrong."""
    before = sum(n for n, _ in ft.explain()["device_fallbacks"].values())
    for k, s in enumerate(op.sample_inputs("ocl", torch.float32, requires_grad=op.supports_autograd)):
        if k == samples:
            break
        a, b, kw = on_cpu((s.input, s.args, s.kwargs))
        want, got = op(a, *b, **kw), op(s.input, *s.args, **s.kwargs)
        torch.testing.assert_close(on_cpu(got), on_cpu(want), rtol=1e-4, atol=1e-4, equal_nan=True)
        if op.supports_autograd and isinstance(want, torch.Tensor) and want.requires_grad and isinstance(s.input, torch.Tensor) \
                and s.input.requires_grad and want.is_floating_point():
            dw = torch.autograd.grad(want.sum(), a, allow_unused=True)[0]
            dg = torch.autograd.grad(got.sum(), s.input, allow_unused=True)[0]
            if dw is not None:
                torch.testing.assert_close(dg.cpu(), dw, rtol=1e-3, atol=1e-4, equal_nan=True)
    return "native" if sum(n for n, _ in ft.explain()["device_fallbacks"].values()) == before else "host"


def ops(until):
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as missing:
        return {"skipped": str(missing)}
    counts, wrong = collections.Counter(), {}
    todo = [op for op in op_db if not any(s in op.name for s in RANDOM) and op.supports_dtype(torch.float32, "cpu")]
    for op in todo[:A.ops or None]:
        if time.time() > until:
            counts["not reached"] += 1
            continue
        try:
            counts[one_op(op)] += 1
        except Exception as error:
            counts["wrong"] += 1
            wrong[f"{op.name}.{op.variant_test_name}"] = str(error).strip().split("\n")[0][:160]
            try:
                torch.ocl.synchronize()
            except RuntimeError:
                pass
    say("operators:", dict(counts), "correct", counts["native"] + counts["host"], "of", sum(counts.values()))
    for name, why in wrong.items():
        say("  wrong:", name, why)
    return {"counts": dict(counts), "wrong": wrong}


# ---- networks --------------------------------------------------------------------------------------------------


def network(name, classes=10):
    import torchvision
    how = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    net = getattr(torchvision.models, name)(weights=None, num_classes=classes, **how)
    for m in net.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0
        if "StochasticDepth" in type(m).__name__:
            m.p = 0.0
    return net


def one_net(name):
    torch.manual_seed(0)
    size = 224 if name == "vit_b_16" else A.size
    plain, began = network(name), time.time()
    mine = copy.deepcopy(plain).to("ocl")
    x, y = torch.randn(2, 3, size, size), torch.tensor([1, 2])
    host = sum(n for n, _ in ft.explain()["device_fallbacks"].values())
    F.cross_entropy(plain(x), y).backward()
    F.cross_entropy(mine(x.to("ocl")), y.to("ocl")).backward()
    pairs = [(p.grad, q.grad.cpu()) for p, q in zip(plain.parameters(), mine.parameters()) if p.grad is not None]
    top = max(p.abs().max().item() for p, _ in pairs)
    off = max((p - q).abs().max().item() for p, q in pairs) / top
    plain.eval(), mine.eval()
    with torch.no_grad():
        away = (plain(x) - mine(x.to("ocl")).cpu()).abs().max().item()
    host = sum(n for n, _ in ft.explain()["device_fallbacks"].values()) - host
    return {"gradient": off, "eval": away, "host_calls": host, "seconds": round(time.time() - began, 1)}


def nets(until):
    out = {}
    for name in (A.nets.split(",") if A.nets else NETS):
        if time.time() > until:
            out[name] = {"skipped": "no time"}
            continue
        try:
            out[name] = one_net(name)
        except Exception as error:
            out[name] = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        say(f"{name:20s}", " ".join(f"{k} {v:.2g}" if isinstance(v, float) else f"{k} {v}" for k, v in out[name].items()))
    return out


# ---- speed -----------------------------------------------------------------------------------------------------


def gpt2():
    import transformers
    config = transformers.GPT2Config(attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, use_cache=False)
    return transformers.GPT2LMHeadModel(config)


def wait(device):
    (torch.ocl if device.startswith("ocl") else torch.cuda if device == "cuda" else None or torch.cpu).synchronize()


def workload(name, device, batch, train, dtype):
    """A function that does the work once."""
    torch.manual_seed(0)
    text = name == "gpt2"
    net = (gpt2() if text else network(name, 1000)).to(device)
    net.train(train)
    x = torch.randint(50000, (batch, 128)).to(device) if text else torch.randn(batch, 3, 224, 224).to(device)
    y = torch.randint(1000, (batch,)).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    kind = device.split(":")[0]

    def forward():
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=dtype == "bf16"):
            return net(x, labels=x).loss if text and train else net(x).logits[:, -1] if text else net(x)

    def step():
        if not train:
            with torch.no_grad():
                return forward()
        opt.zero_grad()
        loss = forward() if text else F.cross_entropy(forward().float(), y)
        loss.backward()
        opt.step()
        return loss
    return step


def timed(step, device, seconds):
    step()
    wait(device)
    took, began = [], time.time()
    while len(took) < 3 or time.time() - began < seconds and len(took) < 50:
        t = time.perf_counter()
        step()
        wait(device)
        took.append(time.perf_counter() - t)
    return statistics.median(took)


def one_speed(name, batch, train, dtype, devices, seconds):
    row = {}
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype == "tf32"
    steps = {}
    for d in devices:
        try:
            steps[d] = workload(name, d, batch, train, dtype)
            timed(steps[d], d, 0)                   # plans and compiles
        except Exception as error:
            steps.pop(d, None)
            row[d] = f"{type(error).__name__}: {str(error)[:120]}"
    for _ in range(2):                              # alternating
        for d, step in steps.items():
            row[d] = min(row.get(d, 1e9), timed(step, d, seconds))
    if all(isinstance(row.get(d), float) for d in ("ocl", "cuda")):
        row["ratio"] = row["cuda"] / row["ocl"]
    return row


def speed(until):
    devices = ["ocl"] + (["cuda"] if torch.cuda.is_available() else ["cpu"])
    cells = [(n, b, False, t) for t in ("tf32", "fp32", "bf16") for b in (1, 16, 64) for n in ("resnet50", "vgg16", "mobilenet_v2", "vit_b_16", "gpt2")]
    cells += [(n, 64, True, "tf32") for n in ("resnet50", "vgg16", "mobilenet_v2", "vit_b_16", "gpt2")]
    cells.sort(key=lambda c: (c[3] != "tf32", c[1] != 1 and not c[2]))
    if devices[1] == "cpu":
        cells = [c for c in cells if c[1] == 1 and c[3] == "fp32" and c[0] != "vgg16"]
    out = {}
    for name, batch, train, dtype in cells:
        key = f"{name} {'train' if train else 'infer'} b{batch} {dtype}"
        if time.time() > until:
            out[key] = {"skipped": "no time"}
            continue
        out[key] = one_speed(name, batch, train, dtype, devices, 0.5)
        say(f"{key:32s}", " ".join(f"{k} {1e3 * v:.3g} ms" if k != "ratio" and isinstance(v, float) else f"{k} {v:.2f}" if isinstance(v, float)
                                   else f"{k} {v}" for k, v in out[key].items()))
    ratios = [r["ratio"] for r in out.values() if "ratio" in r]
    if ratios:
        say("ratio: mean", round(statistics.mean(ratios), 2), "least", round(min(ratios), 2), "of", len(ratios), "cells")
    return out


def main():
    if ft.ocl is None:
        sys.exit("torch_device.py: device ocl is not there, see the warning above")
    began, result = time.time(), {"torch": torch.__version__, "devices": ft.devices()}
    say("devices:", ", ".join(f"ocl:{k} is {d}" for k, d in enumerate(ft.devices())))
    parts = A.parts.split(",")
    share = {"ops": 0.25, "nets": 0.35, "speed": 0.4}
    end = began
    for part in parts:
        end = max(time.time(), end) + A.seconds * share[part] / sum(share[p] for p in parts)
        result[part] = {"ops": ops, "nets": nets, "speed": speed}[part](min(end, began + A.seconds))
        if A.out:
            with open(A.out, "w") as f:
                json.dump(result, f, indent=1)
    say(ft.explain())
    result["recorder"] = torch.ocl.stats()
    if A.out:
        with open(A.out, "w") as f:
            json.dump(result, f, indent=1)


main()
