#!/usr/bin/env python3
"""Transformers on an OpenCL GPU against PyTorch on the same card, eager and compiled: the programs take turns.

    python bench/gpu_transformers.py --facula build/facula [NAME...] [--batch 1,16] [--train 16]
                                     [--precision high,bf16] [--rounds 3] [--budget SECONDS] [--json FILE] [--before OTHER]

Networks: vit_b_16, convnext_tiny, swin_t of torchvision; bert_base (128 tokens), bert_base_512, gpt2 (128 tokens) and
gpt2_1024 of transformers, the last two with the logits of the last position.  Weights are random.  Each is exported to ONNX
here, and facula reads the file.  --train: steps of such batches, cross entropy of random labels and Adam (fused in PyTorch),
without dropout; BERT's classes are the means of what it makes of the tokens.  Precisions:
    highest   f32, TF32 off           facula --precision highest
    high      f32, TF32 on            facula --precision high
    bf16      autocast to bf16        facula --precision bf16
Times are medians of --rounds turns of --seconds each, in milliseconds, of inputs and results that stay on the card;
compiled is torch.compile(mode="reduce-overhead"), with CUDA graphs; --before is another build of facula, which takes
turns, too.  Errors are the largest difference of the result from
PyTorch's in f64, relative to the largest value.  When --budget is used up what is not measured is named, and the table
ends cleanly.  Needs torch and torchvision with CUDA, and transformers for BERT and GPT-2.
"""

import argparse
import contextlib
import datetime
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import torch
import torchvision

from gpu_networks import arithmetic, error_of, training_step
from timing import Facula, rival_ms

TOKENS = {"bert_base": 128, "bert_base_512": 512, "gpt2": 128, "gpt2_1024": 1024}
NETWORKS = [
    "vit_b_16",
    "bert_base",
    "convnext_tiny",
    "swin_t",
    "gpt2",
    "bert_base_512",
    "gpt2_1024",
]


class Hidden(torch.nn.Module):
    """What BERT makes of tokens, without the pooler; its means to train with."""

    def __init__(self, means):
        super().__init__()
        from transformers import BertConfig, BertModel

        config = BertConfig(attn_implementation="sdpa", hidden_dropout_prob=0, attention_probs_dropout_prob=0)
        self.m, self.means = BertModel(config, add_pooling_layer=False), means

    def forward(self, tokens):
        y = self.m(tokens).last_hidden_state
        return y.mean(1) if self.means else y


class Next(torch.nn.Module):
    """GPT-2's logits of the token after the last one."""

    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(attn_implementation="sdpa", use_cache=False, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
        self.m = GPT2LMHeadModel(config)

    def forward(self, tokens):
        return self.m(tokens, use_cache=False, logits_to_keep=1).logits[:, -1]


def model_of(name, train=False):
    torch.manual_seed(0)
    if name.startswith("bert"):
        return Hidden(train).eval()
    if name.startswith("gpt2"):
        return Next().eval()
    model = getattr(torchvision.models, name)(weights=None).eval()
    for m in model.modules():  # torchvision begins heads with zeros, and results would be zero
        if isinstance(m, torch.nn.Linear) and m.out_features == 1000:
            torch.nn.init.normal_(m.weight, std=0.02)
    return model


def input_of(name, batch):
    g = torch.Generator().manual_seed(batch)
    if name in TOKENS:
        return torch.randint(0, 30000, (batch, TOKENS[name]), generator=g)
    return torch.rand(batch, 3, 224, 224, generator=g) * 2 - 1


def export(name, model, x, path):
    new = name.startswith("gpt2")  # which the older exporter cannot write
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, (x,), path, input_names=["x"], output_names=["y"], opset_version=18, dynamo=new
        )


def inference(model, x, precision):
    def step():
        with torch.inference_mode(), arithmetic(precision):
            return model(x)

    return step


def training(model, x, precision):
    labels = torch.randint(0, 768, (len(x),), device="cuda")
    return training_step(model, x, labels, precision, lr=1e-5)


def cell(a, name, batch, precision, train, model, x, facula, before, exact, folder):
    """One line: times of eager, compiled and facula in turns, and errors of what is inferred."""
    mode, step_of = ("train", training) if train else ("infer", inference)
    torch._dynamo.reset()
    eager = step_of(model, x, precision)
    steps = {"eager": eager}
    if not a.no_compile:
        compiled = step_of(torch.compile(model, mode="reduce-overhead"), x, precision)
        for _ in range(3):
            compiled()
        steps["compiled"] = compiled
    line = {"network": name, "mode": mode, "batch": batch, "precision": precision}
    if not train:
        there = os.path.join(folder, "y.npy")
        facula.ask(batch, precision, mode, 0, os.path.join(folder, "x.npy"), there)
        line["facula_error"] = error_of(torch.from_numpy(numpy.load(there)).cuda(), exact)
        line["pytorch_error"] = error_of(eager(), exact)
    times = {k: [] for k in [*steps, "facula"] + (["before"] if before else [])}
    for _ in range(a.rounds):
        for k, step in steps.items():
            times[k].append(rival_ms(step, a.seconds, torch.cuda.synchronize, 2))
        for k, program in (("facula", facula), ("before", before)):
            if program:
                times[k].append(program.ask(batch, precision, mode, a.seconds)["median_ms"])
    for k, t in times.items():
        line[k + "_ms"] = statistics.median(t)
    for k in times:
        line[k + "_ratio"] = statistics.median(r / f for r, f in zip(times[k], times["facula"]))
    line["rounds"] = times
    return line


def text(line):
    compiled = (
        f"{line['compiled_ms']:.3f} | **{line['compiled_ratio']:.2f}**"
        if "compiled_ms" in line
        else " | "
    )
    before = f" {line['before_ms']:.3f} |" if "before_ms" in line else ""
    errors = f"{line['facula_error']:.1e} / {line['pytorch_error']:.1e}" if "facula_error" in line else ""
    return (
        f"| {line['network']} | {line['mode']} {line['batch']} | {line['precision']} | {line['eager_ms']:.3f} | {compiled} | "
        f"{line['facula_ms']:.3f} | {line['eager_ratio']:.2f} | {errors} |{before}"
    )


def network(a, name, batch, train, left, lines, skipped):
    work = a.precision.split(",")
    if left() < 0:
        skipped += [(name, batch, p) for p in work]
        return
    model, x = model_of(name, train), input_of(name, batch)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".onnx")
        export(name, model, x, path)
        numpy.save(os.path.join(folder, "x.npy"), x.numpy())
        model, x, exact = model.cuda(), x.cuda(), None
        if not train:
            with torch.inference_mode():
                wide = model_of(name).double().cuda()
                exact = wide(x if name in TOKENS else x.double())
                del wide
        facula, before = Facula(a.facula, a.device, path), (
            Facula(a.before, a.device, path) if a.before else None
        )
        for precision in work:
            if left() < 0:
                skipped.append((name, batch, precision))
                continue
            try:
                lines.append(
                    cell(a, name, batch, precision, train, model, x, facula, before, exact, folder)
                )
                print(text(lines[-1]), flush=True)
            except (RuntimeError, OSError) as e:
                print(
                    f"| {name} | {batch} | {precision} | {str(e).splitlines()[0]} | | | | | |",
                    flush=True,
                )
                if facula.process.poll() is not None:
                    facula = Facula(a.facula, a.device, path)
            if a.json:
                with open(a.json, "w") as f:
                    json.dump(lines, f, indent=1)
        facula.close()
        if before:
            before.close()
    torch.cuda.empty_cache()


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", default=NETWORKS)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--before", metavar="OTHER", help="another build of facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--batch", default="1,16")
    p.add_argument("--train", default="", help="batches to train with, too")
    p.add_argument("--precision", default="high,bf16")
    p.add_argument("--seconds", type=float, default=0.2, help="of each turn")
    p.add_argument("--no-compile", action="store_true", help="eager PyTorch alone")
    p.add_argument("--json", help="where all times go, too")
    p.add_argument(
        "--budget", type=float, default=1e9, help="seconds after which no new line is begun"
    )
    a = p.parse_args()
    start, lines, skipped = time.perf_counter(), [], []
    version = subprocess.run(
        [a.facula, "--version"], capture_output=True, text=True
    ).stdout.splitlines()[0]
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
    )
    print(
        f"{datetime.date.today()}, {torch.cuda.get_device_name()}, driver {driver.stdout.split()[0]}, "
        f"PyTorch {torch.__version__}, {version}\n"
    )
    print(
        "| network | work | precision | eager ms | compiled ms | compiled / facula | facula ms | eager / facula | "
        "error facula / PyTorch |"
        + (" before ms |" if a.before else "")
        + "\n"
        + "| --- " * (10 if a.before else 9)
        + "|",
        flush=True,
    )
    for name in a.names:
        batches = [(int(b), False) for b in a.batch.split(",") if b]
        batches += [(int(b), True) for b in a.train.split(",") if b]
        for batch, train in batches:
            network(
                a,
                name,
                batch,
                train,
                lambda: a.budget - (time.perf_counter() - start),
                lines,
                skipped,
            )
    if skipped:
        print(
            f"\nnot measured, the budget of {a.budget:g} s is used up: "
            + ", ".join(f"{n} b{b} {p}" for n, b, p in skipped)
        )


if __name__ == "__main__":
    sys.exit(main())
