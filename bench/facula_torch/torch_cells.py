"""Speed of device "ocl" beside eager cuda, cell by cell.  Used by bench/facula_torch/torch_device.py.

A cell is NETWORK/infer or train/BATCH/NUMBERS: resnet50/infer/b16/tf32.  Both devices run the same code (torch_work.py) with the
same weights; the rival is a process of its own (torch_rival.py).
"""
import fnmatch
import math
import statistics

import torch

import facula.torch as ft
from torch_rival import Rival
from torch_work import MODELS, NUMBERS, Work, network, numbers, turn, warm_up


def host_calls():
    return sum(n for n, _ in ft.explain()["device_fallbacks"].values())


def off(a, b):
    """The largest difference over the largest value."""
    return float((a - b).abs().max() / b.abs().max().clamp_min(1e-30))


def mine(plain, name, train, batch, how, tiny):
    """Our work, its first result, what warming up took."""
    work = Work(name, plain, "ocl", batch, train, how, tiny)
    return work, *warm_up(work, lambda: torch.ocl.stats()["planned"])


def cell(plain, rival, name, train, batch, how, seconds, tiny):
    """{device: ms, ratio: the rival's time over ours, off: of the results, ...}; the devices take turns"""
    numbers(how)
    row, took, work = {}, {"ocl": [], rival.device: []}, None
    planned, host = torch.ocl.stats()["planned"], host_calls()
    try:
        work, result, row["ocl_warm_s"] = mine(plain, name, train, batch, how, tiny)
    except Exception as error:
        row["ocl_error"] = f"{type(error).__name__}: {str(error)[:200]}"
    answer = rival.ask(warm=[name, train, batch, how, tiny])
    row.update({f"{rival.device}_{k}": v for k, v in answer.items() if k != "result"})
    for _ in range(3):
        if work:
            took["ocl"] += turn(work, seconds / 3)
        if "error" not in answer:
            took[rival.device] += rival.ask(turn=seconds / 3)["took"]
    row.update({d: round(1e3 * statistics.median(t), 4) for d, t in took.items() if t})
    row["planned"], row["host_calls"] = torch.ocl.stats()["planned"] - planned, host_calls() - host
    if work and "error" not in answer:
        row["ratio"], row["off"] = round(row[rival.device] / row["ocl"], 3), off(result, torch.load(answer["result"]))
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
    rows, nets = {}, {}
    with Rival(rival) as other:
        cells_of(left, say, keep, models, patterns, seconds, tiny, other, rows, nets)
    numbers("f32")
    say("ratios:", summary(rows))
    return {"rows": rows, "ratios": summary(rows), "rival": rival}


def cells_of(left, say, keep, models, patterns, seconds, tiny, rival, rows, nets):
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
        rows[key] = cell(nets[name], rival, name, train, batch, how, seconds, tiny)
        torch.ocl.empty_cache()
        say(f"{key:28s} {shown(rows[key])}")
        keep({"rows": rows, "ratios": summary(rows), "rival": rival.device})
