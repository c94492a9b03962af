#!/usr/bin/env python3
"""facula edit --simplify beside onnxsim and OnnxSlim: nodes left, time, memory, and whether the results stay.

    python scripts/peers/check_simplify.py build/facula [FOLDER|MODEL.onnx ...] [--rivals onnxsim,onnxslim] [--ops] [--check] [--json]
                                     [--cache FOLDER] [--rounds 1]

Folders are searched for .onnx files; without any, the models of FACULA_DATA are taken.  Nodes are counted in subgraphs and
functions too, without Constant (an initializer by another name).  Results are those of ONNX Runtime without optimizations, before
and after, on equal random inputs; open sizes are tried with two numbers.  Time and memory are those of a process that reads,
simplifies and writes; rivals are forked where Python and their packages are loaded already.  --check fails where facula leaves
more nodes than a rival whose result is right, is wrong, slower, or refuses what a rival does.  --cache keeps what rivals wrote.
Needs numpy, onnx, onnxruntime and the rivals.
"""
import argparse
import collections
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

from models import all_models


def onnxsim_work(path, to):
    import onnxsim
    model, _ = onnxsim.simplify(path)
    onnx.save(model, to, save_as_external_data=model.ByteSize() > 2000000000)


def onnxslim_work(path, to):
    import onnxslim
    model = onnxslim.slim(onnx.load(path))
    onnx.save(model, to, save_as_external_data=model.ByteSize() > 2000000000)


RIVALS = {"onnxsim": onnxsim_work, "onnxslim": onnxslim_work}


# ---- running ----

def wait(pid, seconds):
    """(exit status, seconds, peak bytes) of a child; it is ended when it takes too long."""
    start = time.perf_counter()
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        spent = time.perf_counter() - start
        if done:
            return os.waitstatus_to_exitcode(status), spent, usage.ru_maxrss << 10
        if spent > seconds:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.0005)


def forked(work, seconds=600):
    """What a function does in a child of this process, in which everything is imported already: (exit status, seconds, peak
    bytes, what it printed)."""
    with tempfile.TemporaryFile() as out:
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            os.dup2(out.fileno(), 1), os.dup2(out.fileno(), 2)
            code = 1
            try:
                work()
                code = 0
            except BaseException as e:
                print(f"{type(e).__name__}: {e}")
            sys.stdout.flush()
            os._exit(code)
        made = wait(pid, seconds)
        out.seek(0)
        return made + (out.read().decode(errors="replace"),)


# A process remembers the largest memory of the one that it was forked from: commands are started by a small one.
LAUNCHER = """
import json, os, subprocess, sys, time
for line in sys.stdin:
    start = time.perf_counter()
    p = subprocess.Popen(json.loads(line), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = p.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps([p.returncode, time.perf_counter() - start, usage.ru_maxrss << 10, text]), flush=True)
"""


def launcher():
    return subprocess.Popen([sys.executable, "-S", "-c", LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def launched(by, command):
    """A command: (exit status, seconds, peak bytes, what it printed)."""
    by.stdin.write(json.dumps(["timeout", "600"] + list(map(str, command))) + "\n")
    by.stdin.flush()
    return json.loads(by.stdout.readline())


def simplified(tool, a, path, to):
    command = [a.facula, "edit", path, "--simplify", "-o", to]
    code, spent, memory, text = launched(a.launcher, command) if tool == "facula" else forked(lambda: RIVALS[tool](path, to))
    made = dict(seconds=spent, memory=memory)
    if code or not os.path.exists(to):
        lines = [line for line in text.strip().splitlines() if line.strip()]
        made["failed"] = f"exit {code}: {lines[-1][:200] if lines else ''}"
    return made


# ---- counting ----

def nodes_of(graph, ops):
    for n in graph.node:
        if n.op_type != "Constant":
            ops[n.op_type] += 1
        for a in n.attribute:
            for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                nodes_of(g, ops)


def count(path):
    model, ops = onnx.load(path, load_external_data=False), collections.Counter()
    nodes_of(model.graph, ops)
    for f in model.functions:
        nodes_of(f, ops)
    return ops


# ---- results ----

NUMPY = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64", "tensor(int64)": "int64",
         "tensor(int32)": "int32", "tensor(bool)": "bool", "tensor(uint8)": "uint8", "tensor(int8)": "int8"}


def inputs_of(session, size, seed):
    source, made = np.random.default_rng(seed), {}
    for i in session.get_inputs():
        dims = [d if isinstance(d, int) and d >= 0 else size for d in i.shape or []]
        kind = np.dtype(NUMPY[i.type])
        x = source.normal(size=dims) if kind.kind == "f" else source.integers(0, 2 if kind.kind == "b" else 8, dims)
        made[i.name] = np.asarray(x).astype(kind)
    return made


def session_of(path):
    o = onnxruntime.SessionOptions()
    o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads, o.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def results(path, sizes):
    s = session_of(path)
    is_open = any(not isinstance(d, int) for i in s.get_inputs() for d in i.shape or [])
    made = {}
    for size in sizes if is_open else sizes[:1]:
        try:
            made[size] = s.run(None, inputs_of(s, size, size))
        except Exception as e:                                  # a size that this model does not take
            made[size] = str(e).splitlines()[0][:160]
    return made


def distance(a, b):
    """0 for equal bits, else the largest difference by the largest number; inf where anything else differs."""
    worst = 0.0
    if len(a) != len(b):
        return float("inf")
    for x, y in zip(a, b):
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape or x.dtype != y.dtype:
            return float("inf")
        if np.array_equal(x, y, equal_nan=x.dtype.kind == "f") or not x.size:
            continue
        if x.dtype.kind != "f":
            return float("inf")
        x, y = x.astype("float64"), y.astype("float64")
        same = np.isfinite(x) & np.isfinite(y)
        if not np.array_equal(x[~same], y[~same], equal_nan=True):
            return float("inf")
        worst = max(worst, float(np.abs(x - y)[same].max() / max(np.abs(x[same]).max(), 1e-20)))
    return worst


def judge(want, path):
    """None where the results are right, else why not."""
    try:
        got = results(path, list(want))
    except Exception as e:
        return f"ONNX Runtime: {str(e).splitlines()[0][:160]}"
    for size, y in want.items():
        if isinstance(y, str):
            continue
        if isinstance(got.get(size, ""), str):
            return f"size {size}: {got.get(size, 'the open size is gone')}"
        loose = 1e-2 if any(np.asarray(t).dtype == np.float16 for t in y) else 1e-4
        d = distance(y, got[size])
        if d > loose:
            return f"size {size}: results differ by {d:.2g}"
    return None


# ---- one model ----

def ports(path):
    g = onnx.load(path, load_external_data=False).graph
    weights = {t.name for t in g.initializer}

    def shape(v):
        return [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
    return [(v.name, shape(v)) for v in g.input if v.name not in weights], [v.name for v in g.output]


def keep_of(a, tool, path):
    with open(path, "rb") as f:
        name = hashlib.sha256(f.read()).hexdigest()[:20]
    return os.path.join(a.cache, f"{name}.{tool}")


def look(a, path, folder):
    row = dict(model=os.path.relpath(path) if len(os.path.relpath(path)) < len(path) else path, size=os.path.getsize(path),
               before=sum(count(path).values()))
    try:
        want = results(path, [1, 3])
    except Exception as e:
        row["runtime"] = str(e).splitlines()[0][:160]
        want = {}
    for tool in ["facula"] + a.rivals:
        cached = a.cache and tool != "facula"
        stem = keep_of(a, tool, path) if cached else os.path.join(folder, tool)
        if not os.path.exists(stem + ".json"):
            rounds = [simplified(tool, a, path, stem + ".onnx") for _ in range(a.rounds)]
            with open(stem + ".json", "w") as f:
                json.dump(sorted(rounds, key=lambda m: m["seconds"])[len(rounds) // 2], f)
        with open(stem + ".json") as f:
            made = json.load(f)
        if "failed" not in made:
            ops = count(stem + ".onnx")
            made.update(nodes=sum(ops.values()), ops=dict(ops), wrong=judge(want, stem + ".onnx"))
            if ports(stem + ".onnx") != ports(path):
                made["ports"] = "names or shapes of ports changed"
        if not cached:
            for name in (".json", ".onnx", ".onnx.data"):
                if os.path.exists(stem + name):
                    os.remove(stem + name)
        row[tool] = made
    return row


def verdicts(row, rivals):
    """What --check complains of."""
    ours, best = row["facula"], None
    for r in rivals:
        made = row[r]
        if "failed" not in made and not made["wrong"] and (best is None or made["nodes"] < row[best]["nodes"]):
            best = r
    if "failed" in ours:
        return [ours["failed"]] if best else []
    found = [ours["wrong"]] if ours["wrong"] else []
    if best and ours["nodes"] > row[best]["nodes"]:
        more = collections.Counter(ours["ops"])
        more.subtract(row[best]["ops"])
        found.append(f"{ours['nodes']} nodes, {best} {row[best]['nodes']}: "
                     + " ".join(f"{op}{n:+d}" for op, n in sorted(more.items()) if n))
    if best and ours["seconds"] > row[best]["seconds"]:
        found.append(f"{ours['seconds']:.3f} s, {best} {row[best]['seconds']:.3f} s")
    return found


def cell(made):
    if "failed" in made:
        return "failed"
    mark = " wrong" if made["wrong"] else ""
    return f"{made['nodes']}{mark}, {1e3 * made['seconds']:.0f} ms, {made['memory'] / 1e6:.0f} MB"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("facula")
    p.add_argument("paths", nargs="*")
    p.add_argument("--rivals", default=",".join(RIVALS))
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--cache")
    for flag in ("--check", "--ops", "--json"):
        p.add_argument(flag, action="store_true")
    a = p.parse_args()
    a.rivals = [r for r in a.rivals.split(",") if r]
    data = os.environ.get("FACULA_DATA")
    paths = a.paths or ([os.path.join(data, "models")] if data else [])
    if not paths:
        print("simplification beside rivals: skipped, no models and no FACULA_DATA")
        return 0
    if a.cache:
        os.makedirs(a.cache, exist_ok=True)
    rows, bad = [], 0
    models = sorted(set(all_models(paths)))
    a.launcher = launcher()
    for r in a.rivals:
        __import__(r)
    if not a.json:
        print("| model | nodes | " + " | ".join(["facula"] + a.rivals) + " |\n|" + " --- |" * (3 + len(a.rivals)), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for path in models:
            row = look(a, path, folder)
            rows.append(row)
            if not a.json:
                print(f"| {row['model']} | {row['before']} | " + " | ".join(cell(row[t]) for t in ["facula"] + a.rivals) + " |",
                      flush=True)
            found = verdicts(row, a.rivals)
            bad += bool(found)
            for text in found:
                print(f"    {row['model']}: {text}", file=sys.stderr, flush=True)
            if a.ops and not a.json:
                for tool in ["facula"] + a.rivals:
                    print("   ", tool, row[tool].get("failed") or row[tool]["wrong"] or "", row[tool].get("ports", ""),
                          " ".join(f"{op} {n}" for op, n in sorted(row[tool].get("ops", {}).items())))
    if a.json:
        print(json.dumps(rows))
    else:
        print(f"{len(rows)} models, {bad} where facula is behind")
    return 1 if a.check and bad else 0


if __name__ == "__main__":
    sys.exit(main())
