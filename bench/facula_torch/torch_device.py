#!/usr/bin/env python3
"""Device "ocl" of facula.torch against eager PyTorch, the same unchanged user code: networks, speed beside cuda, operators.

    python bench/facula_torch/torch_device.py [--parts check,train,speed,ops] [--minutes 8] [--out torch_device.json] [--device opencl:0]
                                 [--models resnet50,gpt2] [--cells '*/infer/b1/*,*/train/*'] [--tiny] [--ahead CALLS]

check  torchvision's networks of pytorch_dlprim's list, batch 2: gradients and evaluation against the cpu in f32, and of both against
       f64, calls of the host; good where the device is off by no more than 1e-4 of the largest gradient, or no more than f32 itself,
       or off f64 by that little where f64 follows its decisions at kinks, all of them within 1e-4 of the kink (torch_decisions.py)
train  20 steps of Adam of the same networks on the same batch: losses on the device, on the cpu and in f64; good where the device's are as
       near to one of the others as these are to each other, twice that at most, or within 1e-4 of the largest loss, or no farther off than
       twice what the cpu's are from f64's when weights are moved by a last bit, the farthest of three such runs
speed  ResNet-50, VGG16, MobileNetV2, ViT-B/16 and GPT-2 (128 tokens, logits of the last), inference at batch 1, 16, 64 and training
       at 64, f32, TF32, bf16: medians after warm-up, device ocl and cuda (else the cpu) in turns; ratio = the rival's time over ours
ops    samples of torch's op_db on the device against the cpu, forward and gradient (needs expecttest): correct, native

--out is written again after each cell, so that a limit of time loses nothing; what was not reached is named.  Parts share --minutes
as they come.  --tiny: small networks of the same layers, in a minute or two anywhere.
"""
import argparse
import collections
import copy
import json
import os
import random
import sys
import time
import warnings

NETS = ("alexnet resnet18 resnet50 convnext_small vgg16 squeezenet1_0 googlenet densenet161 inception_v3 shufflenet_v2_x1_0 mobilenet_v2 "
        "mobilenet_v3_large mobilenet_v3_small resnext50_32x4d wide_resnet50_2 mnasnet1_0 efficientnet_b0 efficientnet_b4 regnet_y_400mf vit_b_16").split()
TINY_NETS = ["resnet50", "mobilenet_v2", "vit_b_16"]
RANDOM = ("empty", "rand", "normal", "bernoulli", "multinomial", "uniform", "dropout", "rrelu", "exponential", "cauchy", "geometric", "log_normal",
          "poisson", "svd", "jiterator", "sparse", "nested", "pca_lowrank", "eig", "qr", "fractional")
SHARES = {"check": 0.35, "train": 0.35, "speed": 0.5, "ops": 0.15}
GOOD = 1e-4                 # of the largest gradient, or loss
STEPS = 20


def words(text):
    return [w for w in text.split(",") if w]


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out")
    p.add_argument("--minutes", type=float, default=8)
    p.add_argument("--device", default="opencl:0", help="of facula.torch.devices(): becomes ocl:0 (opencl:0)")
    p.add_argument("--parts", type=words, default="check,speed,ops")
    p.add_argument("--models", type=words, default="", help="of speed, or of check and train")
    p.add_argument("--cells", type=words, default="", help="patterns of cells: NETWORK/infer|train/bN/f32|tf32|bf16")
    p.add_argument("--seconds", type=float, default=0.6, help="of measuring, for each device of a cell")
    p.add_argument("--ops", type=int, default=0, help="at most so many operators, drawn by --seed; 0: all")
    p.add_argument("--seed", type=int, default=0, help="which operators --ops draws")
    p.add_argument("--size", type=int, default=128, help="of images in check and train")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--ahead", type=int, default=0, help="torch.ocl.set_ahead(): run so many calls while further ones are recorded")
    return p.parse_args()


A = arguments()
os.environ["FACULA_TORCH_DEVICES"] = A.device
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402

import facula.torch as ft  # noqa: E402

if ft.ocl is None:
    sys.exit("torch_device.py: device ocl is not there, see the warning above")
torch.ocl.set_ahead(A.ahead)
import torch_cells  # noqa: E402
import torch_decisions  # noqa: E402
import torch_work  # noqa: E402

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


def ops(left, keep):
    """Counts of op_db's entries and what is wrong."""
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as missing:
        return {"skipped": str(missing)}
    counts, wrong, host = collections.Counter(), {}, []
    todo = [op for op in op_db if not any(s in op.name for s in RANDOM) and op.supports_dtype(torch.float32, "cpu")]
    most = A.ops or (40 if A.tiny else len(todo))
    for op in random.Random(A.seed).sample(todo, most) if most < len(todo) else todo:
        if left() <= 0:
            counts["not reached"] += 1
            continue
        try:
            how = one_op(op)
            counts[how] += 1
            host += [f"{op.name}.{op.variant_test_name}"] * (how == "host")
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
    return {"counts": dict(counts), "wrong": wrong, "host": host}


# ---- networks --------------------------------------------------------------------------------------------------


def gradients(net, x, y):
    F.cross_entropy(net(x), y).backward()
    return [p.grad for p in net.parameters() if p.grad is not None]


def apart(got, want, top):
    """The largest difference of two lists of gradients, over the largest gradient."""
    return max((a.cpu().double() - b.cpu().double()).abs().max().item() for a, b in zip(got, want)) / top


def evaluated(net, x):
    with torch.no_grad():
        return net.eval()(x).cpu().double()


def drawn(name):
    """A network, a batch and its classes."""
    torch.manual_seed(0)
    vit = name == "vit_b_16"
    size = (32 if vit else 64) if A.tiny else 224 if vit else A.size
    return torch_work.network(name, 10, A.tiny), torch.randn(2, 3, size, size), torch.tensor([1, 2])


def one_net(name):
    """How far the device and the cpu are from each other and from f64."""
    (plain, x, y), began = drawn(name), time.time()
    mine, truth, first = copy.deepcopy(plain).to("ocl"), copy.deepcopy(plain).double(), copy.deepcopy(plain)
    host = torch_cells.host_calls()
    here = gradients(mine, x.to("ocl"), y.to("ocl"))
    away = evaluated(mine, x.to("ocl"))
    row = {"host_calls": torch_cells.host_calls() - host, "seconds": round(time.time() - began, 1)}
    f32, f64 = gradients(plain, x, y), gradients(truth, x.double(), y)
    top = max(g.abs().max().item() for g in f64)
    row.update(gradient=apart(here, f32, top), gradient_f64=apart(here, f64, top), cpu_f64=apart(f32, f64, top))
    # all networks saw one batch of training, so their statistics are equal but for rounding
    want, exact = evaluated(plain, x), evaluated(truth, x.double())
    row.update(eval=torch_cells.off(away, want), eval_f64=torch_cells.off(away, exact), eval_cpu_f64=torch_cells.off(want, exact))
    row["good"] = row["gradient"] <= GOOD or row["gradient_f64"] <= 2 * row["cpu_f64"]
    if not row["good"]:
        row.update(followed(first, x, y, top))
    return row


def followed(plain, x, y, top):
    """The same, where f64 takes the device's decisions at kinks and in max pools."""
    mine, truth = copy.deepcopy(plain).to("ocl"), copy.deepcopy(plain).double()
    with torch_decisions.Recorded() as decisions:
        here = gradients(mine, x.to("ocl"), y.to("ocl"))
    with torch_decisions.Following(decisions.host()) as f:
        there = gradients(truth, x.double(), y)
    off = apart(here, there, top)
    return {"followed": off, "decisions": f.other, "away": f.away, "good": off <= GOOD and f.away <= GOOD}


def losses(net, x, y):
    """Of STEPS steps of Adam; each is read at once."""
    opt, out = torch.optim.Adam(net.parameters(), lr=1e-3), []
    for _ in range(STEPS):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    return torch.tensor(out, dtype=torch.float64)


def nudged(net, seed):
    """Weights moved by a last bit at most: training may amplify such a difference, whichever program makes it."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(1 + 2 ** -23 * (2 * torch.rand(p.shape, generator=draw) - 1))
    return net


def trained(name):
    """How far the losses on the device, on the cpu and in f64 are from each other, over the largest of f64."""
    plain, x, y = drawn(name)
    mine, truth, began = copy.deepcopy(plain).to("ocl"), copy.deepcopy(plain).double(), time.time()
    host, before = torch_cells.host_calls(), torch.ocl.stats()["segments"]
    here = losses(mine, x.to("ocl"), y.to("ocl"))
    row = {"host_calls": torch_cells.host_calls() - host, "segments": torch.ocl.stats()["segments"] - before,
           "seconds": round(time.time() - began, 1)}
    f32, f64 = losses(plain, x, y), losses(truth, x.double(), y)

    def off(a, b):
        return ((a - b).abs().max() / f64.abs().max()).item()
    row.update(loss=off(here, f32), loss_f64=off(here, f64), cpu_f64=off(f32, f64), first=f64[0].item(), last=f64[-1].item())
    nearest = min(row["loss"], row["loss_f64"])
    row["good"] = bool(here.isfinite().all()) and nearest <= max(GOOD, 2 * row["cpu_f64"])
    if not row["good"] and here.isfinite().all():
        row["nudged_f64"] = max(off(losses(nudged(drawn(name)[0], seed), x, y), f64) for seed in range(3))
        row["good"] = nearest <= 2 * row["nudged_f64"]
    return row


def check(left, keep, one=one_net):
    rows = {}
    torch_work.numbers("f32")
    for name in A.models or (TINY_NETS if A.tiny else NETS):
        if left() <= 0:
            rows[name] = {"skipped": "no time"}
            continue
        try:
            rows[name] = one(name)
        except Exception as error:
            rows[name] = {"error": f"{type(error).__name__}: {str(error)[:200]}", "good": False}
        torch.ocl.empty_cache()
        say(f"{name:20s}", " ".join(f"{k} {v:.2g}" if isinstance(v, float) else f"{k} {v}" for k, v in rows[name].items()))
        keep(rows)
    say("networks:", sum(r.get("good", False) for r in rows.values()), "of", len(rows), "good")
    return rows


def train(left, keep):
    return check(left, keep, trained)


def speed(left, keep):
    return torch_cells.speed(left, say, keep, A.models or torch_work.MODELS, A.cells, 0.1 if A.tiny else A.seconds, A.tiny)


def main():
    began = time.time()
    result = {"torch": torch.__version__, "devices": ft.devices(), "cuda": torch.cuda.is_available() and torch.cuda.get_device_name()}
    say("devices:", ", ".join(f"ocl:{k} is {d}" for k, d in enumerate(ft.devices())), "beside", result["cuda"] or "the cpu")

    def save():
        if A.out:
            with open(A.out + ".new", "w") as f:
                json.dump(result, f, indent=1)
            os.replace(A.out + ".new", A.out)

    end = began
    for k, part in enumerate(A.parts):
        rest = began + 60 * A.minutes - time.time()
        end = time.time() + rest * SHARES[part] / sum(SHARES[p] for p in A.parts[k:])

        def keep(rows, part=part):
            result[part] = rows
            result["recorder"] = torch.ocl.stats()
            save()
        keep({"check": check, "train": train, "speed": speed, "ops": ops}[part](lambda: end - time.time(), keep))
    say(ft.explain())
    nets = [*result.get("check", {}).items(), *result.get("train", {}).items()]
    bad = A.tiny and [name for name, row in nets if row.get("good") is False]
    bad = bad or A.tiny and [key for key, row in result.get("speed", {}).get("rows", {}).items() if "ocl_error" in row]
    if bad:
        sys.exit(f"torch_device.py: wrong: {', '.join(bad)}")


main()
