#!/usr/bin/env python3
"""summary and inspect on every model there is: they end well, or say in one line what is not known.

    python scripts/peers/check_analysis.py build/facula [FOLDER|MODEL.onnx ...] [--seconds 60] [--jobs N]

Folders are searched for .onnx files; without any, FACULA_DATA is (its models, and ONNX's node tests unpacked in build/nodes).  A run
that ends by a signal, takes too long, prints nothing, prints JSON that is none, or fails with anything but one line is an error.
Beside these, broken files are made here: cut short, with bytes exchanged, with a cycle, with sizes that do not fit in memory.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile

from models import all_models

VERBS = [["summary"], ["summary", "--json"], ["inspect", "--json"]]


def run(facula, verb, path, seconds):
    """(outcome, words): outcome is fine, unknown or wrong."""
    command = [facula, verb[0], path] + verb[1:]
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "wrong", f"more than {seconds} s"
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode == 0:
        if not out.strip():
            return "wrong", "printed nothing"
        if "--json" in verb:
            try:
                json.loads(out)
            except ValueError as e:
                return "wrong", f"JSON: {e}"
        return "fine", ""
    if done.returncode != 1 or err.count("\n") != 1 or not err.startswith("facula:"):
        return "wrong", f"exit {done.returncode}: {err.strip()[:300] or out[-200:]}"
    return "unknown", err.strip()


# ---- broken models ----

def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def text(field, s):
    s = s.encode() if isinstance(s, str) else s
    return varint(field << 3 | 2) + varint(len(s)) + s


def number(field, n):
    return varint(field << 3) + varint(n)


def model(nodes, dims=(1, 4)):
    shape = b"".join(text(1, text(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    port = text(2, text(1, number(1, 1) + text(2, shape)))
    graph = b"".join(text(1, b"".join(text(1, i) for i in ins) + text(2, out) + text(4, op)) for op, ins, out in nodes)
    graph += text(2, "broken") + text(11, text(1, "x") + port) + text(12, text(1, "y") + port)
    return number(1, 8) + text(8, number(2, 17)) + text(7, graph)


def broken(folder, some):
    cases = {
        "cycle": model([("Add", ["x", "b"], "a"), ("Relu", ["a"], "b"), ("Relu", ["b"], "y")]),
        "itself": model([("Add", ["x", "y"], "y")]),
        "undefined": model([("Add", ["x", "nowhere"], "y")]),
        "unknown_op": model([("Frobnicate", ["x"], "y")]),
        "huge": model([("Mul", ["x", "x"], "a"), ("Relu", ["a"], "y")], (1 << 31, 1 << 31)),
        "too_huge": model([("Relu", ["x"], "y")], (1 << 40, 1 << 40)),
        "open": model([("Relu", ["x"], "a"), ("Sigmoid", ["a"], "y")], ("N", "T")),
        "twice": model([("Relu", ["x"], "y"), ("Relu", ["x"], "y")]),
        "nothing": b"", "noise": bytes(range(256)) * 8, "no_nodes": model([]),
    }
    source = random.Random(7)
    for path in some:
        with open(path, "rb") as f:
            data = f.read(1 << 20)
        for k in range(12):
            spoiled = bytearray(data[:source.randrange(len(data))] if k % 2 else data)
            for _ in range(source.randrange(1, 9) if k % 2 == 0 else 0):
                spoiled[source.randrange(len(spoiled))] = source.randrange(256)
            cases[f"{os.path.basename(os.path.dirname(path))}_{os.path.basename(path)}_{k}"] = bytes(spoiled)
    for name, data in cases.items():
        path = os.path.join(folder, name + ".onnx")
        with open(path, "wb") as f:
            f.write(data)
        yield path


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("facula")
    p.add_argument("paths", nargs="*")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_args()
    data = os.environ.get("FACULA_DATA")
    paths = a.paths or [f for f in ("build/nodes", data and os.path.join(data, "models")) if f and os.path.isdir(f)]
    if not paths:
        print("analysis of all models: skipped, no FACULA_DATA")
        return 0
    models, counts, reasons, wrong = sorted(set(all_models(paths))), collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        small = [m for m in models if os.path.getsize(m) < 20000]
        bad = list(broken(folder, small[::max(1, len(small) // 8)]))
        asked = [(m, v) for m in models + bad for v in VERBS]
        for (path, verb), (outcome, words) in zip(asked, pool.map(lambda q: run(a.facula, q[1], q[0], a.seconds), asked)):
            counts[outcome] += 1
            if outcome == "wrong":
                wrong.append(f"{verb[0]} {path}: {words}")
            elif outcome == "unknown" and path in models:
                reasons[words.split(": ", 2)[-1][:100]] += 1
    for words in wrong[:20]:
        print(words)
    for words, n in reasons.most_common(12):
        print(f"{n:5d}  {words}")
    print(f"{len(models)} models and {len(bad)} broken ones, {len(VERBS)} questions each: {counts['fine']} answered, "
          f"{counts['unknown']} said what is not known, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
