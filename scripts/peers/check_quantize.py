"""Models that `facula quantize` writes, in ONNX Runtime.

    python3 scripts/peers/check_quantize.py build/facula [MODEL.onnx ...]

Without models the small networks of check_quantized.py are quantized. Each scheme, calibration and
type of activations is tried; ONNX Runtime must load the file and give what facula gives: equal but
for two units of the last scale, where either leaves an operator in floats. Of the small networks
integers must also stay near the floats: the signal to error of the outputs is at least 10 dB.
Inputs are noise, which real models were not made for. Needs numpy, onnx and onnxruntime.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

from check_quantized import draw, network, session_of, unit

WAYS = [
    ("int8:static",), ("int8:static", "--calibrate", "percentile"),
    ("int8:static", "--calibrate", "entropy"), ("int8:static", "--activations", "i8"),
    ("int8:static", "--per-tensor"), ("int8:static", "--reduce-range"), ("int8:dynamic",),
    ("int8:dynamic", "--per-tensor"), ("int4:block32",),
]


def run_facula(facula, path, feeds, output, folder):
    got = os.path.join(folder, "y.npy")
    command = [facula, "run", path, "--output", "%s=%s" % (output, got)]
    for k, (name, x) in enumerate(feeds.items()):
        given = os.path.join(folder, "x%d.npy" % k)
        np.save(given, x)
        command += ["--input", "%s=%s" % (name, given)]
    subprocess.run(command, check=True, capture_output=True)
    return np.load(got)


def drawn(i, k):
    kind = np.float16 if "float16" in i.type else np.float32
    return draw(shape_of(i), k).astype(kind)


def shape_of(i):
    return [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]


def samples(session, folder, count=6):
    os.makedirs(folder, exist_ok=True)
    for k in range(count):
        arrays = {i.name: drawn(i, k) for i in session.get_inputs()}
        if len(arrays) == 1:
            np.save(os.path.join(folder, "%d.npy" % k), list(arrays.values())[0])
        else:
            np.savez(os.path.join(folder, "%d.npz" % k), **arrays)


def decibels(x, y):
    x, y = x.astype(np.float64), y.astype(np.float64)
    error = float(((x - y) ** 2).sum())
    return 10 * np.log10(float((x ** 2).sum()) / error) if error else np.inf


def check(facula, path, way, folder, least):
    """None, or what is wrong; and the signal to error."""
    floats = session_of(path)
    data, out = os.path.join(folder, "data"), os.path.join(folder, "quantized.onnx")
    samples(floats, data)
    command = [facula, "quantize", path, "--scheme", way[0], "--data", data, "-o", out, "--json"]
    made = subprocess.run(command + list(way[1:]), capture_output=True, text=True)
    if made.returncode:
        if way[0] == "int4:block32" and "nothing to quantize" in made.stderr:
            return None, np.inf
        return "refused: " + made.stderr.strip()[:200], 0
    if not any(not layer["float"] for layer in json.loads(made.stdout)["layers"]):
        return "no layer in integers", 0
    onnx.checker.check_model(out)
    session = session_of(out)
    feeds = {i.name: drawn(i, 77) for i in session.get_inputs()}
    first = session.get_outputs()[0].name
    want = session.run([first], feeds)[0]
    have = run_facula(facula, out, feeds, first, folder)
    exact = floats.run([first], feeds)[0]
    off = float(np.abs(have.astype(np.float64) - want).max())
    allowed = 2.01 * unit(out) if way[0] == "int8:static" else 2e-3 * float(np.abs(want).max())
    if not off <= allowed:
        return "off by %g, allowed is %g" % (off, allowed), decibels(exact, have)
    near = decibels(exact, have)
    return (None if near >= least else "only %.1f dB" % near), near


def main():
    facula, models = sys.argv[1], sys.argv[2:]
    count = bad = 0
    least = -np.inf if models else 10
    with tempfile.TemporaryDirectory() as folder:
        for kind in [] if models else ["residual", "depthwise", "products"]:
            models.append(os.path.join(folder, kind + "-float.onnx"))
            onnx.save(network(kind), models[-1])
        for path in models:
            for way in WAYS:
                with tempfile.TemporaryDirectory() as here:
                    wrong, near = check(facula, path, way, here, least)
                count += 1
                bad += wrong is not None
                print("%-6s %s %s %.1f dB %s" % ("WRONG" if wrong else "equal", os.path.basename(path),
                                                 " ".join(way), near, wrong or ""))
    print("%d of %d as ONNX Runtime gives them" % (count - bad, count))
    return bad != 0 or not count


if __name__ == "__main__":
    sys.exit(main())
