#!/usr/bin/env python3
"""Models that others' exporters write here, run by facula and by ONNX Runtime.

    python scripts/peers/check_exporters.py build/facula [MODEL...] [--from NAME,...] [--cache DIR] [--list]

The sources: networks of PyTorch, torchvision, transformers and diffusers by both of PyTorch's exporters,
models that skl2onnx converts, and networks as TensorFlow's converters, ONNX Runtime's quantizer and
its optimizer write them. All are small and have random weights. Numbers may differ by 1e-4 of the
largest of an output, or by two units of the last scale where bytes are computed; integers, flags
and texts must be equal. Where bytes are computed, ONNX Runtime without its optimizations counts
too. What an exporter refuses, or ONNX Runtime, is told and counts nowhere.
--cache DIR keeps the files and takes those that are there. Exit code 1 where facula refuses a model
or gives another answer. Needs onnx and onnxruntime, and of torch, torchvision, transformers,
diffusers, onnxscript and skl2onnx what is to be tried.
"""
import argparse
import collections
import importlib
import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime

SOURCES = ["torch", "torchvision", "transformers", "vision", "scenes", "diffusers",
           "others"]
TOLERANCE = 1e-4


def session_of(path, plain=False):
    """ONNX Runtime with exact sums of bytes; plain: each operator as the file has it."""
    options = onnxruntime.SessionOptions()
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def ours(facula, path, feeds, outputs, folder):
    """What facula makes of the inputs; an error says what it refused."""
    command = [facula, "run", path, "--json", "--threads", "1"]
    for k, (name, x) in enumerate(feeds.items()):
        file = os.path.join(folder, f"in{k}.pb")
        with open(file, "wb") as f:
            f.write(onnx.numpy_helper.from_array(x).SerializeToString())
        command += ["--input", f"{name}={file}"]
    files = [os.path.join(folder, f"out{k}.pb") for k in range(len(outputs))]
    for name, file in zip(outputs, files):
        command += ["--output", f"{name}={file}"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip() or f"ends with {ran.returncode}")
    results = []
    for file in files:
        with open(file, "rb") as f:
            results.append(onnx.numpy_helper.to_array(onnx.TensorProto.FromString(f.read())))
    return results


def differs(name, got, want, allowed):
    """What is wrong with an output, or an empty text."""
    if isinstance(want, list) and want and isinstance(want[0], dict):      # what ZipMap makes
        want = [list(row.values()) for row in want]
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype.kind != want.dtype.kind:
        return f"{name} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        wrong = int((got != want).sum())
        return f"{name}: {wrong} of {want.size} differ" if wrong else ""
    got, want = got.astype("f8"), want.astype("f8")
    same = np.isfinite(want) & np.isfinite(got)
    if not np.array_equal(got[~same], want[~same], equal_nan=True):
        return f"{name}: infinities or NaN differ"
    if not same.any():
        return ""
    off = np.abs(got[same] - want[same]).max()
    most = allowed or TOLERANCE * max(np.abs(want[same]).max(), 1e-30)
    return f"{name} is off by {off:.3g}, allowed is {most:.3g}" if off > most else ""


def wrongs(outputs, results, expected, allowed):
    pairs = zip(outputs, results, expected)
    return list(filter(None, (differs(n, g, w, allowed) for n, g, w in pairs)))


def made(case, cache):
    """The file and its inputs, one dict a run; made unless the cache has them."""
    base = os.path.join(cache, f"{case.source}-{case.name}-{case.exporter}".replace("/", "_"))
    path, stored = base + ".onnx", base + ".feeds.npz"
    if not os.path.exists(stored):
        runs = case.write(path)
        np.savez(stored, **{f"{k}/{n}": x for k, r in enumerate(runs) for n, x in r.items()})
    with np.load(stored, allow_pickle=True) as z:
        runs = collections.defaultdict(dict)
        for key in z.files:
            k, name = key.split("/", 1)
            runs[int(k)][name] = z[key]
    return path, [runs[k] for k in sorted(runs)] or [{}]


def compare(facula, case, cache):
    """(verdict, detail): equal, WRONG, REFUSED; not exported, not run."""
    try:
        path, runs = made(case, cache)
    except Exception as e:
        return "not exported", str(e)
    try:
        session = session_of(path)
    except Exception as e:
        return "not run", str(e)
    wanted = {i.name for i in session.get_inputs()}
    outputs = list(dict.fromkeys(o.name for o in session.get_outputs()))
    faults = []
    for k, feeds in enumerate(runs):
        feeds = {n: x for n, x in feeds.items() if n in wanted}
        try:
            expected = session.run(outputs, feeds)
        except Exception as e:
            if k: break      # a file may be good for the sizes alone that it was made with
            return "not run", str(e)
        with tempfile.TemporaryDirectory() as folder:
            try:
                results = ours(facula, path, feeds, outputs, folder)
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                return "REFUSED", str(e)
        allowed = case.allowed(path) if case.allowed else 0
        wrong = wrongs(outputs, results, expected, allowed)
        if wrong and allowed:      # ONNX Runtime's own operators on bytes may round otherwise
            expected = session_of(path, True).run(outputs, feeds)
            wrong = wrongs(outputs, results, expected, allowed)
        faults += wrong
    return ("WRONG", "; ".join(faults)) if faults else ("equal", "")


def cases_of(sources, names):
    for source in sources:
        try:
            module = importlib.import_module("exported_" + source)
        except ImportError as e:
            print(f"skipped: {source}: {e}")
            continue
        yield from (c for c in module.cases()
                    if not names or c.name in names or f"{c.name}-{c.exporter}" in names)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("facula")
    p.add_argument("models", nargs="*", help="by name, or NAME-EXPORTER; default: all")
    p.add_argument("--from", dest="sources", default=",".join(SOURCES))
    p.add_argument("--cache")
    p.add_argument("--list", action="store_true", help="only say which models there are")
    a = p.parse_intermixed_args()
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as room:
        cache = a.cache or room
        os.makedirs(cache, exist_ok=True)
        for case in cases_of(a.sources.split(","), a.models):
            if a.list:
                print(case.source, case.name, case.exporter)
                continue
            verdict, detail = compare(a.facula, case, cache)
            counts[verdict] += 1
            said = " ".join(detail.split())[:300]
            print(f"{verdict:<12} {case.source} {case.name} {case.exporter} {said}", flush=True)
    compared = counts["equal"] + counts["WRONG"] + counts["REFUSED"]
    print(json.dumps(counts))
    print(f"{counts['equal']} of {compared} models as ONNX Runtime gives them")
    return counts["equal"] != compared


if __name__ == "__main__":
    sys.exit(main())
