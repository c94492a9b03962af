#!/usr/bin/env python3
"""Trainings on sounds against PyTorch with the same network, by CPU seconds, in turns.

    python3 bench/sound.py digits build/facula RECORDINGS [--threads 1] [--rounds 3]
    python3 bench/sound.py resnet build/facula [--threads 1] [--rounds 3]
    python3 bench/sound.py resnet build/facula --device opencl [--rounds 3]

digits: an epoch of `facula train spoken-digits` (2,700 recordings of 1 s at 8 kHz, shifted, with noise and masks), the
front end in each step on both sides.  resnet: a step of ResNet-50 after a spectrogram, 16 sounds of 2 s at 16 kHz, 64 mels,
132 classes, Adam; and what part of it the front end takes.  Each side runs with few and with more steps, and the difference
counts, so neither loading nor planning does.  With --device it is a GPU's step, in milliseconds of the clock, f32 on both
sides, beside PyTorch on cuda.  Needs torch; resnet needs torchvision.
"""
import argparse
import json
import math
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import wave

import numpy as np

BATCH, CLASSES = 16, 132


def cpu_seconds(command, threads):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# ---- PyTorch's side, a process of its own ----

def mel_weights(rate, n, mels, low, high):
    def to_mel(f):
        return 2595 * math.log10(1 + f / 700)
    points = 700 * (10 ** (np.linspace(to_mel(low), to_mel(high), mels + 2) / 2595) - 1)
    f = np.arange(n // 2 + 1) * rate / n
    up = (f - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]
    down = (points[2:, None] - f) / (points[2:] - points[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)).astype("float32")


def front_end(rate, n, mels, low=0, high=None, bands=False, device="cpu"):
    import torch
    weights = torch.from_numpy(mel_weights(rate, n, mels, low, high or rate / 2)).to(device)
    window, hop, part = torch.hann_window(n, device=device), rate // 100, 2 if bands else (1, 2)

    def picture(x):
        s = torch.view_as_real(torch.stft(x, n, hop, window=window, center=True, pad_mode="reflect", return_complex=True))
        y = torch.log(weights @ s.square().sum(-1) + 1e-6)
        y = y - y.mean(part, keepdim=True)
        return (y / (y.square().mean((1, 2), keepdim=True).sqrt() + 1e-5)).unsqueeze(1)
    return picture


def mask(p, part):
    """A stretch of time and a band of frequencies of each picture become its mean, which is 0."""
    import torch
    for dim in (2, 3):
        size = p.shape[dim]
        length = torch.rand(len(p)) * part * size
        first = torch.rand(len(p)) * (size - length)
        place = torch.arange(size)
        inside = (place >= first[:, None]) & (place < (first + length)[:, None])
        shape = [len(p), 1, 1, 1]
        shape[dim] = size
        p = p.masked_fill(inside.view(shape), 0)
    return p


def small_net(mels, frames, widths=(16, 32, 64), classes=10):
    from torch import nn
    layers, channels, time = [], 1, frames
    for k, width in enumerate(widths):
        across = 2 if k else 4
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                   nn.MaxPool2d((2, across))]
        channels, mels, time = width, mels // 2, time // across
    if time > 3:
        layers.append(nn.AvgPool2d((1, time // 3)))
        time //= time // 3
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3), nn.Linear(channels * mels * time, classes))


def torch_digits(folder, epochs):
    import torch
    torch.manual_seed(0)
    waves, labels = [], []
    for path in sorted(pathlib.Path(folder).glob("*.wav")):
        if int(path.stem.split("_")[2]) < 5:
            continue
        with wave.open(str(path)) as w:
            x = np.frombuffer(w.readframes(w.getnframes()), "<i2")[:8000] / np.float32(32768)
        waves.append(np.pad(x, (0, 8000 - len(x))))
        labels.append(int(path.stem[0]))
    x, y = torch.from_numpy(np.stack(waves).astype("float32")), torch.tensor(labels)
    picture, net = front_end(8000, 256, 40), small_net(40, 101)
    optimizer = torch.optim.Adam(net.parameters(), 2.5e-3)
    steps = len(x) // 64
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2.5e-3, total_steps=steps * epochs)
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for i in range(steps):
            batch = x[order[64 * i:64 * i + 64]]
            places = (torch.arange(8000) + torch.randint(-800, 801, (64, 1))) % 8000
            batch = batch.gather(1, places)
            loud = batch.square().mean(1, keepdim=True).sqrt()
            batch = batch + torch.randn_like(batch) * loud * 0.05 * torch.rand(64, 1)
            loss = torch.nn.functional.cross_entropy(net(mask(picture(batch), 0.1)), y[order[64 * i:64 * i + 64]])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()


def resnet_step(device):
    """A step of training on random sounds that lie on the device."""
    import torch
    import torchvision
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    picture = front_end(16000, 512, 64, device=device)
    net = torchvision.models.resnet50(num_classes=CLASSES).train().to(device)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, foreach=True)
    x, y = torch.randn(BATCH, 32000, device=device), torch.randint(0, CLASSES, (BATCH,), device=device)

    def step():
        loss = torch.nn.functional.cross_entropy(net(picture(x).expand(-1, 3, -1, -1)), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return step


def torch_resnet(steps):
    step = resnet_step("cpu")
    for _ in range(steps):
        step()


def torch_gpu(seconds):
    """Milliseconds of a step on cuda: the median."""
    import torch
    step, times = resnet_step("cuda"), []
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    end = time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    print(statistics.median(times))


# ---- both in turns ----

def each(command, few, many, threads):
    """CPU seconds of one more epoch or step; command(n) is the command of n of them."""
    return (cpu_seconds(command(many), threads) - cpu_seconds(command(few), threads)) / (many - few)


def digits(a):
    def facula(n):
        return [a.facula, "train", "spoken-digits", "--data", a.data, "--epochs", n, "--threads", a.threads,
                "--evaluate-every", 1000, "--quiet"]

    def rival(n):
        return [sys.executable, __file__, "torch-digits", a.data, n]
    compare(a, "an epoch of spoken digits", facula, rival, 1, 4)


def birds(folder):
    """Two sounds of each class: what is heard does not matter here."""
    noise = np.random.default_rng(0)
    for k in range(CLASSES):
        place = pathlib.Path(folder, "data", f"class{k:03d}")
        place.mkdir(parents=True)
        for i in range(2):
            with wave.open(str(place / f"{i}.wav"), "wb") as w:
                w.setnchannels(1)
                w.setsampwidth(2)
                w.setframerate(16000)
                w.writeframes((noise.standard_normal(32000) * 3000).astype("<i2").tobytes())


def resnet(a):
    with tempfile.TemporaryDirectory() as folder:
        birds(folder)
        model = f"{folder}/out/model.onnx"
        cpu_seconds([a.facula, "train", "sound-folder", "--data", f"{folder}/data", "--model", "zoo:resnet50", "--epochs", 1,
                     "--batch", BATCH, "--test-part", 0.9, "--threads", a.threads, "--quiet", "--out", f"{folder}/out"],
                    a.threads)

        if a.device:
            return on_gpu(a, model)

        def facula(n):
            return [a.facula, "bench", model, "--train", "--batch", BATCH, "--runs", n, "--threads", a.threads, "--json"]

        def rival(n):
            return [sys.executable, __file__, "torch-resnet", "-", n]
        whole = compare(a, "a step of spectrogram and ResNet-50", facula, rival, 2, 5)
        shares(a, model, whole)


def front_of(a, model):
    """The model up to the picture, whose name is that of the node that makes channels."""
    shown = subprocess.run([a.facula, "show", model], capture_output=True, text=True, check=True).stdout
    picture = re.search(r"^(\S+) = unsqueeze\(", shown, re.M).group(1)
    front = model.replace("model.onnx", "front.onnx")
    subprocess.run([a.facula, "edit", model, "--part", f"wave->{picture}", "-o", front], check=True, capture_output=True)
    return front


def shares(a, model, whole):
    """What the front end takes alone."""
    front = front_of(a, model)

    def run(n):
        return [a.facula, "bench", front, "--batch", BATCH, "--runs", n, "--threads", a.threads, "--json"]
    alone = min(each(run, 20, 220, a.threads) for _ in range(a.rounds))
    print(f"front end: {1e3 * alone:.2f} ms of CPU, {100 * alone / whole:.2f} % of the step")


def on_gpu(a, model):
    """Steps on a GPU, both sides in turns, and the front end alone."""
    def ours(path, *options):
        command = [a.facula, "bench", path, "--batch", str(BATCH), "--device", a.device, "--seconds", "1", "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["median_ms"]

    def theirs():
        return float(subprocess.run([sys.executable, __file__, "torch-gpu", "-", "1"], capture_output=True, text=True, check=True).stdout)
    front, took = front_of(a, model), []
    for k in range(a.rounds):
        took.append((ours(model, "--train"), theirs(), ours(front)))
        print("round %d: facula %.2f ms, torch %.2f ms, the front end alone %.3f ms" % (k + 1, *took[-1]), flush=True)
    whole, rival, alone = (statistics.median(t) for t in zip(*took))
    print(f"a step of spectrogram and ResNet-50 on {a.device}: {whole:.2f} ms, torch on cuda {rival:.2f} ms: "
          f"{statistics.median(t / f for f, t, _ in took):.2f} times as long; the front end alone {alone:.3f} ms, {100 * alone / whole:.2f} % of the step")


def compare(a, what, facula, rival, few, many):
    cost = {"facula": [], "torch": []}
    for k in range(a.rounds):
        for name, command in (("facula", facula), ("torch", rival)):
            cost[name].append(each(command, few, many, a.threads))
            print(f"round {k + 1}: {name} {1e3 * cost[name][-1]:.1f} ms", file=sys.stderr, flush=True)
    for name, all_ in cost.items():
        print(f"{name:8s} {what}: {1e3 * statistics.median(all_):8.1f} ms of CPU ({1e3 * min(all_):.1f} .. {1e3 * max(all_):.1f})")
    ratios = [t / f for f, t in zip(cost["facula"], cost["torch"])]
    print(f"torch / facula, paired: {statistics.median(ratios):.2f}; of the least: {min(cost['torch']) / min(cost['facula']):.2f}")
    return min(cost["facula"])


def main():
    if sys.argv[1:2] == ["torch-digits"]:
        return torch_digits(sys.argv[2], int(sys.argv[3]))
    if sys.argv[1:2] == ["torch-resnet"]:
        return torch_resnet(int(sys.argv[3]))
    if sys.argv[1:2] == ["torch-gpu"]:
        return torch_gpu(float(sys.argv[3]))
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("what", choices=["digits", "resnet"])
    p.add_argument("facula")
    p.add_argument("data", nargs="?", help="digits: the folder of CLASS_SPEAKER_INDEX.wav")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--device", help="resnet: a GPU, as facula names it")
    a = p.parse_args()
    if a.what == "digits" and not a.data:
        p.error("digits needs the folder of recordings")
    return digits(a) if a.what == "digits" else resnet(a)


if __name__ == "__main__":
    main()
