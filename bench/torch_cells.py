"""Speed of device "ocl" beside eager cuda: the networks, their work, and the time of a cell.  Used by bench/torch_device.py.

A cell is NETWORK/infer or train/BATCH/NUMBERS: resnet50/infer/b16/tf32.  Both devices run the same code with the same weights; a
result is held until the device is done, since device ocl computes nothing that nobody keeps.
"""
import copy
import fnmatch
import math
import statistics
import time

import torch
import torch.nn.functional as F

import facula.torch as ft

MODELS = ("resnet50", "vgg16", "mobilenet_v2", "vit_b_16", "gpt2")
NUMBERS = ("f32", "tf32", "bf16")
TOKENS = 128
WARM = 12           # runs until nothing is planned anew, at most


def gpt2(tiny):
    import transformers
    size = {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 101, "bos_token_id": None, "eos_token_id": None} if tiny else {}
    config = transformers.GPT2Config(attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, use_cache=False, **size)
    return transformers.GPT2LMHeadModel(config)


def small(name):
    """The same layers in a size that a laptop runs at once."""
    from torchvision import models
    if name == "resnet50":
        return models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10)
    if name == "vgg16":
        layers = models.vgg.make_layers([8, 8, "M", 16, "M", 16, "M"])
        return torch.nn.Sequential(layers, torch.nn.Flatten(), torch.nn.Linear(1024, 32), torch.nn.ReLU(True), torch.nn.Linear(32, 10))
    if name == "mobilenet_v2":
        return models.MobileNetV2(num_classes=10, width_mult=0.25)
    return models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)


def still(net):
    """Without what draws random numbers, which differ between devices, and without heads of zeros."""
    for m in net.modules():
        if isinstance(m, torch.nn.Linear) and not m.weight.any():
            torch.nn.init.normal_(m.weight, std=0.02)
        if isinstance(m, torch.nn.Dropout) or "StochasticDepth" in type(m).__name__:
            m.p = 0.0
    return net


def network(name, classes=1000, tiny=False):
    if name == "gpt2":
        return gpt2(tiny)
    if tiny and name in MODELS:
        return still(small(name))
    import torchvision
    how = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return still(getattr(torchvision.models, name)(weights=None, num_classes=classes, **how))


def wait(device):
    {"ocl": torch.ocl, "cuda": torch.cuda, "cpu": torch.cpu}[device].synchronize()


def numbers(how):
    """Both devices compute f32 as the cell says."""
    exact = how == "f32"
    torch.set_float32_matmul_precision("highest" if exact else "high")
    torch.backends.cudnn.allow_tf32 = not exact


class Work:
    """A network on a device and what a cell does with it; called, it does it once and gives the result.  Two inputs take
    turns: what is computed of an input that never changes could be kept."""

    def __init__(self, name, plain, device, batch, train, how, tiny):
        self.text, self.device, self.train = name == "gpt2", device, train
        self.net = copy.deepcopy(plain).to(device).train(train)
        g = torch.Generator().manual_seed(1)
        size, classes = (32 if name == "vit_b_16" else 64, 10) if tiny else (224, 1000)
        tokens, words = (16, 101) if tiny else (TOKENS, 50257)
        def drawn():
            return torch.randint(words, (batch, tokens), generator=g) if self.text else torch.randn(batch, 3, size, size, generator=g)
        self.inputs, self.calls = [drawn().to(device) for _ in range(2)], 0
        self.y = torch.randint(classes, (batch,), generator=g).to(device)
        self.bf16 = how == "bf16"
        self.opt = torch.optim.SGD(self.net.parameters(), lr=1e-3, momentum=0.9) if train else None

    def forward(self):
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.bf16):
            if self.text and self.train:
                return self.net(self.x, labels=self.x).loss
            return self.net(self.x, logits_to_keep=1).logits[:, -1] if self.text else self.net(self.x)

    def __call__(self):
        self.x = self.inputs[self.calls % 2]
        self.calls += 1
        if not self.train:
            with torch.no_grad():
                return self.forward()
        self.opt.zero_grad()
        loss = self.forward() if self.text else F.cross_entropy(self.forward().float(), self.y)
        loss.backward()
        self.opt.step()
        return loss


def once(work):
    t = time.perf_counter()
    held = work()
    wait(work.device)
    return time.perf_counter() - t, held


def host_calls():
    return sum(n for n, _ in ft.explain()["device_fallbacks"].values())


def warm_up(work):
    """Runs it until nothing is planned or compiled anew; the first result and what it took."""
    began, planned, still_same, first = time.time(), -1, 0, None
    for _ in range(WARM):
        _, held = once(work)
        if first is None:
            first = held.detach().float().cpu()
        now = torch.ocl.stats()["planned"] if work.device == "ocl" else 0
        still_same = still_same + 1 if now == planned else 0
        planned = now
        if still_same == 3:
            break
    return first, round(time.time() - began, 2)


def measured(works, seconds):
    """Medians in ms, the devices in turns."""
    took = {d: [] for d in works}
    for _ in range(3):
        for d, work in works.items():
            began, n = time.time(), 0
            while n < 3 or time.time() - began < seconds / 3 and n < 100:
                took[d].append(once(work)[0])
                n += 1
    return {d: round(1e3 * statistics.median(t), 4) for d, t in took.items()}


def off(a, b):
    """The largest difference over the largest value."""
    return float((a - b).abs().max() / b.abs().max().clamp_min(1e-30))


def cell(plain, name, train, batch, how, devices, seconds, tiny):
    """{device: ms, ratio: the rival's time over ours, off: of the results, ...}"""
    numbers(how)
    row, works, results = {}, {}, {}
    planned, host = torch.ocl.stats()["planned"], host_calls()
    for d in devices:
        try:
            work = Work(name, plain, d, batch, train, how, tiny)
            results[d], row[f"{d}_warm_s"] = warm_up(work)
            works[d] = work
        except Exception as error:
            row[f"{d}_error"] = f"{type(error).__name__}: {str(error)[:200]}"
    row.update(measured(works, seconds))
    row["planned"], row["host_calls"] = torch.ocl.stats()["planned"] - planned, host_calls() - host
    if len(works) == 2:
        mine, rival = devices
        row["ratio"], row["off"] = round(row[rival] / row[mine], 3), off(results[mine], results[rival])
    return row


def plan(models, tiny):
    """All cells, so that each prefix of the list says something of every network."""
    rounds = [(False, 1), (False, 16), (False, 64), (True, 64)]
    turns = [((train, batch), how) for shift in range(3) for k, (train, batch) in enumerate(rounds) for how in [NUMBERS[(k + shift) % 3]]]
    cells = [(name, train, batch, how) for (train, batch), how in turns for name in models]
    if tiny:
        cells = [(name, train, 2 if batch > 1 else 1, how) for name, train, batch, how in cells if how == "f32" and (train or batch == 1)]
    return cells


def key_of(name, train, batch, how):
    return f"{name}/{'train' if train else 'infer'}/b{batch}/{how}"


def wanted(key, patterns):
    return not patterns or any(fnmatch.fnmatch(key, p) for p in patterns)


def shown(row):
    words = [f"{k} {v}" for k, v in row.items() if k not in ("off", "ratio") and not k.endswith("_warm_s")]
    words += [f"ratio {row['ratio']}", f"off {row['off']:.1e}"] if "ratio" in row else []
    return " ".join(words)


def summary(rows):
    """{mean, geometric mean, least, cells, at least 1} of the ratios."""
    r = [row["ratio"] for row in rows.values() if "ratio" in row]
    if not r:
        return {}
    return {"mean": round(statistics.mean(r), 3), "geomean": round(math.exp(statistics.mean(map(math.log, r))), 3), "least": min(r),
            "cells": len(r), "at_least_1": sum(x >= 1 for x in r)}


def speed(left, say, keep, models, patterns, seconds, tiny):
    """Cells until no time is left(); keep(rows) after each."""
    rival = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    rows, nets = {}, {}
    for name, train, batch, how in plan(models, tiny):
        key = key_of(name, train, batch, how)
        if not wanted(key, patterns) or key in rows:
            continue
        if left() <= 0:
            rows[key] = {"skipped": "no time"}
            continue
        if name not in nets:
            torch.manual_seed(0)
            nets[name] = network(name, tiny=tiny)
        rows[key] = cell(nets[name], name, train, batch, how, ("ocl", rival), seconds, tiny)
        if rival == "cuda":
            torch.cuda.empty_cache()
        torch.ocl.empty_cache()
        say(f"{key:28s} {shown(rows[key])}")
        keep({"rows": rows, "ratios": summary(rows), "rival": rival})
    numbers("f32")
    say("ratios:", summary(rows))
    return {"rows": rows, "ratios": summary(rows), "rival": rival}
