#!/usr/bin/env python3
"""All benchmarks against their rivals, as one Markdown table: what `make bench` runs.

    python bench/all.py --facula build/facula [--out build/bench.md] [--models DIR] [--threads 2] [--rounds 4] [--seconds 1.5]
                        [--only networks,batch,one,avx2,start,training,kernels]

Each part is a script of its own beside this one; in all of them the two programs alternate and medians of rounds count.  The
ratio is the rival's time over ours: above 1 facula is faster.  The latency of a fork and join says in which state the machine
was (a virtual machine may have its cores in one or in two cache domains): it is measured before and after every part.
Needs onnxruntime, and torch with torchvision.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INFERENCE = {"vgg16": 2.5, "resnet18": 1.8, "alexnet": 1.6, "googlenet": 1.6, "resnet50": 1.35, "mobilenet_v2": 1.3}


def python(script, *args):
    command = [sys.executable, os.path.join(HERE, script), *map(str, args)]
    print("$", " ".join(command), file=sys.stderr, flush=True)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def peaks(facula, threads):
    out = subprocess.run([facula, "peaks", "--json", "--threads", str(threads)], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["peaks"]


def state(a):
    """Fork and join in microseconds, now."""
    return 1e6 * statistics.median(peaks(a.facula, a.threads)[0]["fork_join_s"] for _ in range(3))


def row(work, setting, rival, theirs, ours, ratio, goal, rounds=""):
    return dict(work=work, setting=setting, rival=rival, theirs=theirs, ours=ours, ratio=ratio, goal=goal, rounds=rounds)


def networks(a, threads, batch, isa=None, goals=None):
    args = ["--facula", a.facula, "--models", a.models, "--rounds", a.rounds, "--seconds", a.seconds, "--threads", threads,
            "--batch", batch, "--json"]
    rows = json.loads(python("cpu_networks.py", *args, *(["--isa", isa] if isa else [])))
    setting = f"batch {batch}, {threads} thread{'s' if threads > 1 else ''}" + (f", facula held to {isa}" if isa else "")
    for r in rows:
        ratios = [1 / x for x in r["rounds"]]
        yield row(r["network"], setting, "ONNX Runtime", r["onnxruntime_ms"], r["facula_ms"], 1 / r["ours_over_theirs"],
                  (goals or {}).get(r["network"], "" if isa else 1.2), " ".join(f"{x:.2f}" for x in ratios))


def start(a):
    rows = json.loads(python("start.py", "--facula", a.facula, "--models", a.models, "--rounds", a.rounds + 1, "--threads",
                             a.threads, "--json"))
    for r in rows:
        yield row(r["network"], "start to first answer", "ONNX Runtime", r["onnxruntime_ms"], r["facula_ms"], r["ratio"], 2,
                  " ".join(map(str, r["rounds"])))


def table_of(text):
    """Rows of the Markdown table in a script's output, as dictionaries."""
    lines = [[c.strip() for c in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], cells)) for cells in lines[2:]] if len(lines) > 2 else []


def training(a):
    text = python("train_step.py", "--facula", a.facula, "--rounds", a.rounds, "--seconds", a.seconds, "--threads", a.threads)
    for r in table_of(text):
        theirs, ours = float(r["PyTorch ms"]), float(r["facula ms"])
        yield row(r["network"], f"training step, batch {r['batch']}", "PyTorch", theirs, ours, theirs / ours, 1.5,
                  " ".join(f"{1 / float(x):.2f}" for x in r["rounds"].split()))


def kernels(a):
    """Any table with a column of a rival's time and one of ours."""
    if not os.path.exists(os.path.join(HERE, "cpu_kernels.py")):
        return
    for r in table_of(python("cpu_kernels.py", "--facula", a.facula, "--threads", a.threads)):
        columns = list(r)
        ours = next((c for c in columns if c.startswith("facula") and "/" not in c), None)
        for c in columns:
            if ours and c != ours and "/" not in c and c.split()[-1] in ("ms", "us") and c.split()[-1] == ours.split()[-1]:
                scale = 1e-3 if c.endswith("us") else 1
                theirs, mine = float(r[c]) * scale, float(r[ours]) * scale
                yield row(r[columns[0]], "kernel", c.rsplit(" ", 1)[0], theirs, mine, theirs / mine, "")


PARTS = {
    "networks": lambda a: networks(a, a.threads, 1, goals=INFERENCE),
    "batch": lambda a: networks(a, a.threads, 16),
    "one": lambda a: networks(a, 1, 1),
    "avx2": lambda a: networks(a, a.threads, 1, isa="avx2"),
    "start": start,
    "training": training,
    "kernels": kernels,
}


def report(a, rows, states):
    import onnxruntime
    import torch
    p = peaks(a.facula, a.threads)[0]
    lines = [f"{p['device']}; {1e-9 * p['flops']:.0f} GFLOP/s, memory {1e-9 * p['memory_read']:.1f} GB/s read; ONNX Runtime "
             f"{onnxruntime.__version__}, PyTorch {torch.__version__}; {time.strftime('%Y-%m-%d')}.", "",
             "Fork and join (us, before and after each part): "
             + ", ".join(f"{name} {x:.2f} {y:.2f}" for name, (x, y) in states.items()) + ".", "",
             "| work | setting | rival | rival ms | facula ms | rival / facula | goal | rounds |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for r in rows:
        lines.append(f"| {r['work']} | {r['setting']} | {r['rival']} | {r['theirs']:.3g} | {r['ours']:.3g} | {r['ratio']:.2f} | "
                     f"{r['goal']} | {r['rounds']} |")
    for setting in dict.fromkeys(r["setting"] for r in rows):
        ratios = [r["ratio"] for r in rows if r["setting"] == setting]
        lines.append(f"| *geometric mean* | {setting} | | | | {statistics.geometric_mean(ratios):.2f} | | |")
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--models", default=os.path.expanduser("~/.cache/facula/bench"))
    p.add_argument("--out", default="build/bench.md")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--seconds", type=float, default=1.5)
    p.add_argument("--only", default=",".join(PARTS))
    a = p.parse_args()
    rows, states = [], {}
    for part in a.only.split(","):
        if part not in PARTS:
            p.error(f"no part {part}; there are {', '.join(PARTS)}")
        before = state(a)
        rows += PARTS[part](a)
        states[part] = (before, state(a))
    text = report(a, rows, states)
    os.makedirs(os.path.dirname(os.path.abspath(a.out)), exist_ok=True)
    with open(a.out, "w") as f:
        f.write(text)
    print(text + f"written to {a.out}")


if __name__ == "__main__":
    main()
