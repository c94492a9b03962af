#!/usr/bin/env python3
"""All benchmarks of the CPU against their rivals, as one Markdown table: what `make bench` runs.

    python bench/all.py --facula build/facula [--out build/bench.md] [--only networks,start,gemm@avx2] [--light DIR] [--again]
                        [--models DIR] [--threads 2] [--rounds 4] [--seconds 1.5]

Each part is a script of its own beside this one; in all of them the two programs alternate and medians of rounds count.  The
ratio is the rival's time over ours: above 1 facula is faster.  NAME@avx2 is a part with all programs held to AVX2: facula by
FACULA_ISA, the others by their own switches and, where the system can, by a processor that hides AVX-512 (hold_avx2.c; the table
says where it could not).  A part that is done is kept
beside the table, and an interrupted run goes on after it; --again, or another facula, measures anew.  The numbers are written
as rows for docs/benchmarks, too (bench/record.py says how): bench.rows.json beside bench.md.

The latency of a fork and join says in which state the machine was (a virtual machine may have its cores in one or in two cache
domains): it is measured before and after every part.  Needs onnxruntime, and torch with torchvision.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import record
from timing import AVX2, fork_join_us, peaks

HERE = os.path.dirname(os.path.abspath(__file__))
INFERENCE = {"vgg16": 2.5, "resnet18": 1.8, "alexnet": 1.6, "googlenet": 1.6, "resnet50": 1.35, "mobilenet_v2": 1.3}


def hold(folder):
    """The library that hides AVX-512, or None where that cannot be."""
    library = os.path.join(folder, "hold_avx2.so")
    command = ["cc", "-O2", "-shared", "-fPIC", os.path.join(HERE, "programs", "hold_avx2.c"), "-o", library]
    if subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
        return None
    env = {**os.environ, "LD_PRELOAD": os.path.abspath(library)}
    return None if subprocess.run(["true"], env=env, stderr=subprocess.DEVNULL).returncode else os.path.abspath(library)


def environment(a):
    if not a.isa:
        return dict(os.environ)
    held = {**AVX2, **({"LD_PRELOAD": a.held} if a.held else {})} if a.isa == "avx2" else {}
    return {**os.environ, "FACULA_ISA": a.isa, **held}


def script(a, name, *args):
    """Its output; what it says on the way is seen."""
    command = [sys.executable, os.path.join(HERE, name), "--facula", a.facula, "--threads", a.threads, *args]
    lines = []
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True, env=environment(a)) as p:
        for line in p.stdout:
            lines.append(line)
            print("    " + line.rstrip()[:120], file=sys.stderr, flush=True)
    if p.returncode:
        raise SystemExit(f"{name} failed")
    return "".join(lines)


def row(work, setting, rival, theirs, ours, ratio, goal, notes=""):
    return dict(work=work, setting=setting, rival=rival, theirs=theirs, ours=ours, ratio=ratio, goal=goal, notes=notes)


def networks(a, batch, threads=None, light=False):
    threads = threads or a.threads
    args = ["--models", a.models, "--rounds", a.rounds, "--seconds", a.seconds, "--threads", threads, "--batch", batch, "--json"]
    rows = json.loads(script(a, "cpu_networks.py", *args, *(["--light", a.light] if light else [])))
    setting = ("light models, " if light else "") + f"batch {batch}, {threads} thread{'s' if threads > 1 else ''}"
    for r in rows:
        goal = 1.0 if light else INFERENCE.get(r["network"], "") if batch == 1 and threads > 1 else 1.2
        yield row(r["network"], setting, "ONNX Runtime", r["onnxruntime_ms"], r["facula_ms"], 1 / r["ours_over_theirs"], goal,
                  " ".join(f"{1 / x:.2f}" for x in r["rounds"]))


def start(a):
    rows = json.loads(script(a, "start.py", "--models", a.models, "--rounds", a.rounds, "--json", "resnet50", "vgg16"))
    for r in rows:
        yield row(r["network"], "start to first answer", "ONNX Runtime", r["onnxruntime_ms"], r["facula_ms"], r["ratio"], 2,
                  " ".join(map(str, r["rounds"])))


def table_of(text):
    """Rows of the Markdown table in a script's output, as dictionaries."""
    lines = [[c.strip() for c in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], cells)) for cells in lines[2:]] if len(lines) > 2 else []


def training(a, batch):
    text = script(a, "train_step.py", "--rounds", a.rounds, "--seconds", a.seconds, "--batch", batch, *a.networks)
    for r in table_of(text):
        theirs, ours = float(r["PyTorch ms"]), float(r["facula ms"])
        yield row(r["network"], f"training step, batch {r['batch']}", "PyTorch", theirs, ours, theirs / ours, 1.5, r["rounds"])


def gemm(a):
    args = ["--rounds", a.rounds, "--seconds", min(a.seconds, 0.3), "--json", "gemm", "gpt2", "skinny", "batched", "typed"]
    for line in script(a, "cpu_kernels.py", *args, *(["--isa", a.isa] if a.isa else [])).splitlines():
        r = json.loads(line)
        best = min(x for x in (r["torch_ms"], r["openblas_ms"]) if x)
        peak = f"{100 * r['of_peak']:.0f} % of the FMA peak" if r["of_peak"] else ""
        yield row(r["problem"] + (" *" if r["computed"] else ""), "products (*: both operands computed)",
                  "PyTorch" if best == r["torch_ms"] else "OpenBLAS", best, r["ours_ms"], r["ratio"], 1.7, peak)


def memory(a):
    for r in table_of(script(a, "memory_bound.py", "--rounds", a.rounds, "--seconds", min(a.seconds, 0.1))):
        theirs, ours = float(r["PyTorch ms"]), float(r["facula ms"])
        large = any(w in r["problem"] for w in ("MB", "transpose"))
        share = r.get("% of copy")
        yield row(r["problem"], "64 MB" if large else "attention, lines", "PyTorch", theirs, ours, float(r["PyTorch / facula"]),
                  "85 % of copy" if large else 1.3, f"{share} % of copy" if share else "")


PARTS = {
    "networks": lambda a: networks(a, 1),
    "batch": lambda a: networks(a, 16),
    "one": lambda a: networks(a, 1, threads=1),
    "light": lambda a: networks(a, 1, light=True),
    "start": start,
    "training8": lambda a: training(a, 8),
    "training32": lambda a: training(a, 32),
    "gemm": gemm,
    "memory": memory,
}
USUAL = [*PARTS, "networks@avx2", "gemm@avx2"]


def report(p, done):
    import onnxruntime
    import torch
    lines = [f"{p['device']}; {1e-9 * p['flops']:.0f} GFLOP/s, memory {1e-9 * p['memory_read']:.1f} GB/s read; ONNX Runtime "
             f"{onnxruntime.__version__}, PyTorch {torch.__version__}; {time.strftime('%Y-%m-%d')}.", "",
             "Fork and join (us, before and after each part): "
             + ", ".join(f"{name} {d['state'][0]:.2f} {d['state'][1]:.2f}" for name, d in done.items()) + ".", "",
             "| work | setting | rival | rival ms | facula ms | rival / facula | goal | rounds, shares |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    rows = [r for d in done.values() for r in d["rows"]]
    for r in rows:
        lines.append(f"| {r['work']} | {r['setting']} | {r['rival']} | {r['theirs']:.3g} | {r['ours']:.3g} | {r['ratio']:.2f} | "
                     f"{r['goal']} | {r['notes']} |")
    for setting in dict.fromkeys(r["setting"] for r in rows):
        ratios = [r["ratio"] for r in rows if r["setting"] == setting]
        lines.append(f"| *geometric mean* | {setting} | | | | {statistics.geometric_mean(ratios):.2f} | | |")
    return "\n".join(lines) + "\n"


def rows_of(p, done):
    """The table of docs/benchmarks that all of this is: a row for each setting and rival, a column for what ran."""
    groups = {}
    for name, d in done.items():
        for r in d["rows"]:
            groups.setdefault((name, r["setting"], r["rival"]), []).append(r)
    rows = []
    for (name, setting, rival), found in groups.items():
        wanted = {r["work"]: r["goal"] for r in found if isinstance(r["goal"], (int, float))}
        rows.append(dict(id=f"{name}.{len(rows)}", machine=p["device"], work=setting, peer=rival, date=time.strftime("%Y-%m-%d"),
                         command="python " + " ".join(sys.argv), values={r["work"]: round(r["ratio"], 3) for r in found},
                         **({"goal": wanted} if wanted else {})))
    columns = list(dict.fromkeys(c for r in rows for c in r["values"]))
    return dict(title="All of make bench", page="cpu.md", about="", unit="times as fast", columns=columns, rows=rows)


def measure(a, name):
    part, _, a.isa = name.partition("@")
    a.held = hold(os.path.dirname(os.path.abspath(a.out))) if a.isa == "avx2" else None
    before, rows = fork_join_us(a.facula, a.threads), list(PARTS[part](a))
    if a.isa:
        for r in rows:
            r["setting"] += f", {a.isa}"
            r["rival"] += "" if a.held or r["rival"] != "ONNX Runtime" else " (not held)"
    return dict(key=a.key, state=(before, fork_join_us(a.facula, a.threads)), rows=rows)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--models", default=os.path.expanduser("~/.cache/facula/bench"))
    p.add_argument("--light", metavar="DIR", help="a folder with ONNX's light models, tinydarknet and super_resolution")
    p.add_argument("--out", default="build/bench.md")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--seconds", type=float, default=1.5)
    p.add_argument("--only", help=f"some of {','.join(USUAL)}, or any part @avx2")
    p.add_argument("--networks", nargs="*", default=[], help="of the parts training8 and training32; default: all")
    p.add_argument("--again", action="store_true", help="forget what an earlier run has measured")
    a = p.parse_args()
    wanted = a.only.split(",") if a.only else [n for n in USUAL if n != "light" or a.light]
    for name in wanted:
        if name.partition("@")[0] not in PARTS:
            p.error(f"no part {name}; there are {', '.join(PARTS)}")
        if name.startswith("light") and not a.light:
            p.error("the part light needs --light DIR")
    program = os.stat(a.facula)
    a.key = [a.threads, a.rounds, a.seconds, a.networks, program.st_size, int(program.st_mtime)]
    kept, begun, done = os.path.splitext(a.out)[0] + ".json", time.time(), {}
    os.makedirs(os.path.dirname(os.path.abspath(a.out)), exist_ok=True)
    if os.path.exists(kept) and not a.again:
        with open(kept) as f:
            done = {name: d for name, d in json.load(f).items() if d["key"] == a.key}
    machine, text = peaks(a.facula, a.threads), ""
    for k, name in enumerate(wanted):
        spent = time.strftime("%H:%M:%S", time.gmtime(time.time() - begun))
        print(f"[{k + 1}/{len(wanted)}] {name}{' (kept)' if name in done else ''}, {spent}", file=sys.stderr, flush=True)
        if name not in done:
            done[name] = measure(a, name)
        with open(kept, "w") as f:
            json.dump(done, f)
        text = report(machine, done)
        with open(a.out, "w") as f:
            f.write(text)
        record.save(os.path.splitext(a.out)[0] + ".rows.json", rows_of(machine, done))
    print(text + f"written to {a.out}")


if __name__ == "__main__":
    main()
