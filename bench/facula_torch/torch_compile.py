#!/usr/bin/env python3
"""torch.compile(backend="facula") against Inductor (freezing) and eager on the CPU, alternating.

    python bench/facula_torch/torch_compile.py [--nets resnet18,resnet50,mobilenet_v2,vgg16,vit_b_16,bert,gpt2] [--batch 1,16] [--train]
                                  [--rounds 5] [--seconds 1] [--threads N] [--out FILE] [--cpu-time]

The ratio is the better of the two rivals' times over ours: above 1 facula is faster.  --train: a training step of batch 8 (forward,
backward, SGD by torch), the model compiled, against eager.  --cpu-time takes the least processor time instead of the median
of the clock: for a machine that others use, with --threads 1.  Needs torch, torchvision, and transformers for bert and gpt2; Inductor needs g++.
"""
import argparse
import copy
import importlib
import json
import statistics
import time
import warnings

import torch
import torch.nn.functional as F

import facula

warnings.filterwarnings("ignore")


def network(name):
    if name == "gpt2":
        import transformers
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0))
    if name == "bert":
        import transformers
        return transformers.BertModel(transformers.BertConfig(attention_probs_dropout_prob=0, hidden_dropout_prob=0))
    import torchvision
    return getattr(torchvision.models, name)(weights=None)


def example(name, batch):
    if name in ("gpt2", "bert"):
        return torch.randint(30000, (batch, 128))
    return torch.randn(batch, 3, 224, 224)


def first(y):
    return y if isinstance(y, torch.Tensor) else y[0]


def inference(name, batch, how):
    torch._dynamo.reset()
    torch.manual_seed(0)
    net, x = network(name).eval(), example(name, batch)
    for p in net.parameters():
        p.requires_grad_(False)
    if how == "facula":
        net = torch.compile(net, backend="facula")
    if how == "inductor":
        torch._inductor.config.freezing = True
        net = torch.compile(net)

    def run():
        with torch.no_grad():
            return first(net(x))
    return run


def training(name, batch, how):
    torch.manual_seed(0)
    net, x = network(name).train(), example(name, batch)
    y, opt = torch.randint(1000, (batch,)), torch.optim.SGD(net.parameters(), lr=1e-3)
    fast = torch.compile(copy.copy(net), backend="facula") if how == "facula" else net

    def run():
        opt.zero_grad()
        loss = F.cross_entropy(first(fast(x)), y)
        loss.backward()
        opt.step()
        return loss.detach()
    return run


def once(run, clock, seconds):
    n, began = 0, clock()
    while n == 0 or clock() - began < seconds:
        run()
        n += 1
    return (clock() - began) / n


def cell(name, batch, a):
    make = training if a.train else inference
    hows = ["facula", "eager"] + ([] if a.train or a.no_inductor else ["inductor"])
    runs, values, clock = {}, {}, time.process_time if a.cpu_time else time.perf_counter
    for how in hows:
        try:
            runs[how] = make(name, batch, how)
            values[how] = runs[how]().float()
            runs[how]()
        except Exception as error:
            runs.pop(how, None)
            print(f"{name} b{batch} {how}: {type(error).__name__}: {str(error)[:160]}")
    took = {how: [] for how in runs}
    for _ in range(a.rounds):
        for how, run in runs.items():
            took[how].append(once(run, clock, a.seconds))
    of = min if a.cpu_time else statistics.median       # what others do to caches only adds processor time
    row = {how: 1e3 * of(t) for how, t in took.items()}
    rivals = [v for how, v in row.items() if how != "facula"]
    if "facula" in row and rivals:
        row["ratio"] = min(rivals) / row["facula"]
        row["difference"] = (values["facula"] - values["eager"]).abs().max().item()
    return row


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--nets", default="resnet18,resnet50,mobilenet_v2,vgg16,vit_b_16,bert,gpt2")
    p.add_argument("--batch")
    p.add_argument("--train", action="store_true")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--threads", type=int)
    p.add_argument("--cpu-time", action="store_true")
    p.add_argument("--no-inductor", action="store_true")
    p.add_argument("--out")
    a = p.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
        facula.set_num_threads(a.threads)   # before the next line uses the processor
    importlib.import_module("facula.torch")
    result = {}
    print("| network | batch | facula ms | eager ms | inductor ms | ratio | largest difference |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in a.nets.split(","):
        for batch in [int(b) for b in (a.batch or ("8" if a.train else "1,16")).split(",")]:
            row = result[f"{name} b{batch}"] = cell(name, batch, a)
            shown = [f"{row[k]:.3g}" if k in row else "-" for k in ("facula", "eager", "inductor", "ratio", "difference")]
            print(f"| {name} | {batch} | " + " | ".join(shown) + " |", flush=True)
    if a.out:
        with open(a.out, "w") as f:
            json.dump(result, f, indent=1)


main()
