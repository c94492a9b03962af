#!/usr/bin/env python3
"""Recordings of birds, in folds by recording: facula, and PyTorch with the same network, clips and recipe.

    python3 bench/birds.py build/facula BIRDS [--seeds 0,1,2] [--folds 3] [--torch-seeds 0] [--epochs N] [--options='...']

BIRDS is a folder of sounds for each class.  Of each class the recordings, in the order of their names, go to the folds in
turns, so a recording is in one fold alone and the classes are even.  Each fold is held out once for each seed; a recording
is judged by the average of its windows.  --options are more of `facula train sound-folder`; PyTorch's side follows those of them
that choose the mels, their norm, masks, smooth labels and the rate.  It reads the clips with soundfile and soxr.  One thread.
"""
import argparse
import csv
import json
import math
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import sound

RATE, SECONDS, MELS, BATCH = 16000, 2, 64, 32
WINDOW, HOP = RATE * SECONDS, RATE * SECONDS // 2
ENDS = {".wav", ".flac", ".ogg", ".opus", ".mp3"}


def recordings(folder, folds):
    """(file, class, fold) of each."""
    rows = []
    for place in sorted(p for p in pathlib.Path(folder).iterdir() if p.is_dir()):
        files = sorted(f for f in place.iterdir() if f.suffix in ENDS)
        rows += [(f.resolve(), place.name, i % folds) for i, f in enumerate(files)]
    return rows


def table(rows, path):
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["file", "label", "group"])
        out.writerows((f, label, f"fold{k}") for f, label, k in rows)


def of_facula(a, data, seed, fold):
    """The share of recordings that are recognized, and CPU seconds of the training."""
    with tempfile.TemporaryDirectory() as out:
        seconds = sound.cpu_seconds(
            [a.facula, "train", "sound-folder", "--data", data, "--hold-out", f"fold{fold}", "--seed", seed, "--model", a.model,
             *(["--epochs", a.epochs] if a.epochs else []), *a.options, "--threads", 1, "--evaluate-every", 10000, "--quiet",
             "--out", out], 1)
        text = subprocess.run([a.facula, "evaluate", out, "--threads", "1", "--json"], capture_output=True, text=True, check=True)
        about = json.loads(pathlib.Path(out, "run.json").read_text())
    return json.loads(text.stdout)["recording_accuracy"], seconds, about


# ---- PyTorch's side ----

def read(path):
    import soundfile
    import soxr
    x, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return soxr.resample(x.mean(1), rate, RATE, "HQ").astype("float32")


def window(x, begin):
    """So long from there on; a shorter recording begins again."""
    return x[begin:begin + WINDOW] if len(x) >= WINDOW else np.resize(x, WINDOW)


def begins(x):
    return [k * HOP for k in range(1 + max(0, len(x) - WINDOW) // HOP)]


def changed(batch, random):
    """A batch rotated in time by up to a tenth, louder or softer by up to 6 dB, with noise."""
    n = len(batch)
    by = random.integers(-WINDOW // 10, WINDOW // 10 + 1, n)
    batch = np.stack([np.roll(x, k) for x, k in zip(batch, by)])
    batch *= 10 ** (random.uniform(-6, 6, (n, 1)) / 20)
    loud = np.sqrt((batch ** 2).mean(1, keepdims=True))
    noise = random.uniform(-math.sqrt(3), math.sqrt(3), batch.shape)
    return (batch + 0.05 * random.uniform(0, 1, (n, 1)) * loud * noise).astype("float32")


def network(a, classes):
    import torch
    torch.manual_seed(a.seed)
    if a.model == "zoo:resnet18":
        import torchvision
        net = torchvision.models.resnet18(num_classes=classes)
        return lambda p: net(p.expand(-1, 3, -1, -1)), net
    widths = [int(w) for w in a.model.partition(":")[2].split(",") if w] or [16, 32, 64]
    net = sound.small_net(MELS, WINDOW // (RATE // 100) + 1, widths, classes)
    return net, net


def of_torch(a):
    """Prints what of_facula gives; the recipe is in a.recipe, as run.json has it."""
    import torch
    torch.set_num_threads(1)
    recipe, random = json.loads(a.recipe), np.random.default_rng(a.seed)
    rows = recordings(a.birds, a.folds)
    names = sorted({label for _, label, _ in rows})
    clips = [(read(f), names.index(label), k == a.fold) for f, label, k in rows]
    picture = sound.front_end(RATE, 512, MELS, recipe.get("low") or 0, recipe.get("high") or RATE / 2,
                              recipe.get("normalize") == "bands")
    run, net = network(a, len(names))
    optimizer = torch.optim.Adam(net.parameters(), recipe["lr"])
    train = [(x, y) for x, y, held in clips if not held for _ in begins(x)]
    steps, epochs = -(-len(train) // BATCH), recipe["epochs"]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe["lr"], total_steps=steps * epochs)
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(epochs):
        order = random.permutation(len(train))
        for i in range(steps):
            some = [train[k] for k in order[BATCH * i:BATCH * (i + 1)]]
            waves = np.stack([window(x, int(random.integers(0, max(1, len(x) - WINDOW + 1)))) for x, _ in some])
            p = sound.mask(picture(torch.from_numpy(changed(waves, random))), recipe["mask"])
            loss = torch.nn.functional.cross_entropy(run(p), torch.tensor([y for _, y in some]),
                                                     label_smoothing=recipe.get("label_smoothing") or 0)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
    after = resource.getrusage(resource.RUSAGE_SELF)
    net.eval()
    right = tests = 0
    with torch.no_grad():
        for x, y, held in clips:
            if held:
                waves = torch.from_numpy(np.stack([window(x, b) for b in begins(x)]))
                right += run(picture(waves)).softmax(1).mean(0).argmax().item() == y
                tests += 1
    print(json.dumps([right / tests, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime]))


def ask_torch(a, about, seed, fold):
    text = subprocess.run([sys.executable, __file__, a.facula, a.birds, "--model", a.model, "--folds", str(a.folds),
                           "--torch-run", json.dumps([seed, fold, about])], capture_output=True, text=True, check=True)
    return json.loads(text.stdout)


# ---- both ----

def tell(who, seed, fold, accuracy, seconds):
    print(f"{who:8s} seed {seed} fold {fold}: {100 * accuracy:5.1f} % of recordings, {seconds:6.1f} s of CPU", flush=True)


def numbers(text):
    return [int(n) for n in text.split(",") if n]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("facula")
    p.add_argument("birds", help="a folder of sounds for each class")
    p.add_argument("--model", default="sound-cnn")
    p.add_argument("--epochs", type=int, default=0)
    p.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    p.add_argument("--torch-seeds", type=numbers, default=[], help="of the seeds, those that PyTorch trains with, too")
    p.add_argument("--folds", type=int, default=3)
    p.add_argument("--only", type=numbers, help="these folds alone")
    p.add_argument("--torch-run", help=argparse.SUPPRESS)
    p.add_argument("--options", type=shlex.split, default=[], help="more of facula train sound-folder")
    a = p.parse_args()
    if a.torch_run:
        a.seed, a.fold, recipe = json.loads(a.torch_run)
        a.recipe = json.dumps(recipe)
        return of_torch(a)
    got = {"facula": [], "torch": []}
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/folds.csv"
        table(recordings(a.birds, a.folds), data)
        for seed in a.seeds:
            for fold in a.only or range(a.folds):
                accuracy, seconds, about = of_facula(a, data, seed, fold)
                got["facula"].append((accuracy, seconds))
                tell("facula", seed, fold, accuracy, seconds)
                if seed in a.torch_seeds:
                    got["torch"].append(ask_torch(a, about, seed, fold))
                    tell("torch", seed, fold, *got["torch"][-1])
    for who, all_ in got.items():
        if all_:
            print(f"{who:8s} mean of {len(all_)}: {100 * statistics.mean(x for x, _ in all_):.1f} %, "
                  f"{statistics.mean(s for _, s in all_):.1f} s of CPU a training")


main()
