#!/usr/bin/env python3
"""What facula exports and edits, in the hands of others: every case of every op, networks of the zoo, and models out of models.

    python scripts/peers/check_export.py build/facula [--zoo NAME,...] [--verbose] [OP...]

Each file is checked by onnx.checker (full_check: shapes and types too) and run on the same inputs by facula, by ONNX Runtime,
and, where ONNX Runtime has no kernel, by onnx.reference.  Tolerances: 1e-4 relative for f32 and f64 (attributes are f32 in
ONNX), 1e-2 for f16, 5e-2 for bf16, of numbers above 1; integers and flags are equal.  What neither runs counts apart, by
reason, as does what facula refuses to write.  Exit code 1 if anything differs; the last line counts.
"""
import argparse
import collections
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
import onnx.checker
import onnx.reference
import onnxruntime

onnxruntime.set_default_logger_severity(4)
room = tempfile.TemporaryDirectory()      # gone with the process
work = room.name
ZOO = ["lenet", "squeezenet1_1", "mobilenet_v2", "efficientnet_lite0", "resnet18", "resnet50"]
# Types that NumPy does not have itself: ONNX Runtime cannot be fed them.
INTS = [np.dtype(t) for t in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2)]

# Where another is wrong itself.
WRONG = {
    ("ONNX Runtime", "dft(f64[5,3,2], i64{7}, i64{0}) inverse onesided"): "a spectrum of 5 is not cut to the 4 that 7 samples have",
    ("ONNX Runtime", "signal_window(i64{1}) symmetric dtype=f16"): "divides 0 by 0 in a window of one",
    ("onnx.reference", "signal_window(i64{1}) symmetric dtype=f16"): "divides 0 by 0 in a window of one",
    ("ONNX Runtime", "to_text(f16[2,3])"): "writes more digits than f16 has",
    ("ONNX Runtime", "to_text(bool[])"): "writes 0 and 1 for False and True",
    ("ONNX Runtime", 'string_split(text{"a,,b",""}) delimiter=","'): "says that an empty text has no part",
}


class Differs(Exception):
    pass


def call(*command):
    done = subprocess.run([FACULA, *command], capture_output=True, text=True)
    if done.returncode < 0 or not done.stderr and done.returncode:
        sys.exit(f"{' '.join(command)}: ends with {done.returncode} and no message")
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def cases():
    """(op, problem, lowest, highest) of every descriptor."""
    for line in call("op", "--cases").splitlines():
        op, low, high, problem = line.split("\t")
        yield op, problem, float(low), float(high)


def shape_of(value, batch):
    return [d.dim_value if d.HasField("dim_value") else batch for d in value.type.tensor_type.shape.dim]


def feeds_for(model, low, high, rng, batch=2):
    feeds = {}
    for i in model.graph.input:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type))
        shape = shape_of(i, batch)
        if dtype == bool:
            x = rng.integers(0, 2, shape).astype(bool)
        elif dtype.kind in "iu" or dtype in INTS:
            x = rng.integers(int(low), int(high) + 1, shape)
            x = (np.abs(x) if dtype.kind == "u" else x).astype(dtype)
        else:
            x = rng.uniform(low, max(high, low), shape).astype(dtype)
        feeds[i.name] = np.asarray(x)
    return feeds


def raw(x):
    """What .npy has no name for travels as ONNX has it."""
    return onnx.numpy_helper.from_array(x, "x").SerializeToString()


def ours(path, model, feeds):
    command = ["run", path, "--json"]
    for k, (name, x) in enumerate(feeds.items()):
        file = os.path.join(work, f"in{k}.pb")
        with open(file, "wb") as f:
            f.write(raw(x))
        command += ["--input", f"{name}={file}"]
    files = [os.path.join(work, f"out{k}.pb") for k in range(len(model.graph.output))]
    for o, file in zip(model.graph.output, files):
        command += ["--output", f"{o.name}={file}"]
    call(*command)
    results = []
    for file in files:
        with open(file, "rb") as f:
            results.append(onnx.numpy_helper.to_array(onnx.TensorProto.FromString(f.read())))
    return results


def lacks_kernel(e):
    text = str(e)
    return any(s in text for s in ("NOT_IMPLEMENTED", "Could not find an implementation", "is not a registered function/op",
                                   "Unsupported type", "unsupported", "does not support"))


def alone(how, *args):
    """In a process of its own: ONNX Runtime has kernels that crash."""
    here, there = os.pipe()
    child = os.fork()
    if not child:
        try:
            result = how(*args)
        except BaseException as e:
            result = RuntimeError(f"{type(e).__name__}: {e}")
        with os.fdopen(there, "wb") as f:
            pickle.dump(result, f)
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as f:
        result = f.read()
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("NOT_IMPLEMENTED: the process crashed")
    result = pickle.loads(result)
    if isinstance(result, Exception):
        raise result
    return result


def runtime(path, model, feeds):
    o = onnxruntime.SessionOptions()
    o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, o)
    for x in feeds.values():
        if x.dtype.isbuiltin != 1:
            raise NotImplementedError(f"NOT_IMPLEMENTED: {x.dtype} feeds")
    results = session.run(None, feeds)
    for k, o in enumerate(model.graph.output):              # floats of 8 bits come as bytes
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(o.type.tensor_type.elem_type))
        if results[k].dtype == np.uint8 and dtype.isbuiltin != 1 and "float8" in dtype.name:
            results[k] = results[k].view(dtype)
    return results


def reference(path, model, feeds):
    if any(n.op_type == "LRN" for n in model.graph.node):
        raise NotImplementedError("its LRN walks the samples instead of the channels (onnx 1.23)")
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)


def same_texts(got, want):
    """The same texts, or the same f32 in other digits: ONNX does not say how many are written."""
    if np.array_equal(got, want):
        return True
    try:
        return got.shape == want.shape and np.array_equal(got.astype(np.float32), want.astype(np.float32), equal_nan=True)
    except ValueError:
        return False


def compare(name, got, want):
    want = np.asarray(want)
    texts = got.dtype.kind in "OSU" and want.dtype.kind in "OSU"
    if got.shape != want.shape or got.dtype != want.dtype and not texts:
        raise Differs(f"{name}: {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}")
    if texts:
        if not same_texts(got.astype(str), want.astype(str)):
            raise Differs(f"{name}: {got.ravel()[:4]}, expected {want.ravel()[:4]}")
        return
    if got.dtype.kind in "iub" or got.dtype in INTS:
        if not np.array_equal(got, want):
            raise Differs(f"{name}: integers differ, such as {got.ravel()[:4]} and {want.ravel()[:4]}")
        return
    tolerance = 5e-2 if got.dtype == ml_dtypes.bfloat16 else 1e-2 if got.dtype == np.float16 else 1e-4
    a, b = got.astype("f8"), want.astype("f8")
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b)))
    if not same.all():
        raise Differs(f"{name}: {a[~same][0]:.9g}, expected {b[~same][0]:.9g}")


def check(what, path, low, high, seed, counts, reasons, verbose):
    model = onnx.load(path)
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as e:
        counts["failed"] += 1
        print(f"FAILED {what}: checker: {str(e).strip().splitlines()[0]}")
        return
    counts["checked"] += 1
    feeds = feeds_for(model, low, high, np.random.default_rng(seed))
    by, missing = None, []
    for name, how in (("ONNX Runtime", runtime), ("onnx.reference", reference)):
        if (name, what) in WRONG:
            missing.append(f"{name}: {WRONG[name, what]}")
            continue
        try:
            want = alone(how, path, model, feeds)
            by = name
            break
        except Exception as e:
            missing.append(f"{name}: {str(e).strip().splitlines()[0][:120] if str(e).strip() else type(e).__name__}")
            if name == "ONNX Runtime" and not lacks_kernel(e):
                reasons["ONNX Runtime fails: " + re.sub(r"'[^']*'|/tmp\S*|\d+", "..", str(e).strip().splitlines()[0])[:110]].append(what)
    if by is None:
        counts["not run by others"] += 1
        reasons["nobody runs it: " + re.sub(r"'[^']*'|/tmp\S*|\d+", "..", missing[-1])].append(what)
        return
    try:
        for o, got, w in zip(model.graph.output, ours(path, model, feeds), want):
            compare(o.name, got, w)
    except (Differs, RuntimeError) as e:
        counts["failed"] += 1
        print(f"FAILED {what}: against {by}: {e}")
        return
    counts[f"equal to {by}"] += 1
    if verbose:
        print(f"ok     {what}: {by}")


RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "rules")
# What is edited, and how.
EDITS = [
    ("zoo:lenet", ["--insert", "clip(_, 0, 6)@%2->pool1", "--replace", "relu4=gelu", "--add-output", "%8=features", "--rename", "x=photo"]),
    ("zoo:lenet", ["--remove", "op:relu", "--set", "conv1 stride=1,1", "--bind", "N=3", "--meta", "author=me", "--doc", "edited"]),
    ("zoo:lenet", ["--part", "%2->%8"]),
    ("zoo:lenet", ["--strip", "100"]),
    ("zoo:lenet", ["--dtype", "f16", "--keep", "op:linear", "--keep-ports"]),
    ("zoo:lenet", ["--input-shape", "x=5x1x28x28", "--opset", "21"]),
    ("zoo:resnet18", ["--rules", os.path.join(RULES, "conv_bn.rules"), "--bake", "--simplify"]),
    ("zoo:mobilenet_v2", ["--rules", os.path.join(RULES, "identity.rules"), "--simplify", "--reorder"]),
]


def edits(path, counts, reasons):
    """Edited models by the checker and ONNX Runtime; those whose function must not change against the model itself too."""
    before, half = os.path.join(work, "before.onnx"), os.path.join(work, "half.onnx")
    for name, steps in EDITS:
        what = f"edit {name} {' '.join(steps)}"
        call("edit", name, "-o", path, *steps)
        check(what, path, -1, 1, 1, counts, reasons, True)
    call("export", "zoo:lenet", "--seed", "4", "-o", before)
    call("edit", before, "-o", half, "--strip", "100")
    call("edit", half, "-o", path, "--restore", before)
    model, rng = onnx.load(path), np.random.default_rng(5)
    feeds = feeds_for(model, -1, 1, rng)
    for got, want in zip(runtime(path, model, feeds), runtime(before, model, feeds)):
        if not np.array_equal(got, want):
            counts["failed"] += 1
            print("FAILED strip and restore: other results")
    call("edit", before, "-o", half, "--meta", "author=me", "--producer", "mine", "--doc", "a note", "--name", "net")
    call("edit", half, "-o", path, "--simplify")
    model = onnx.load(path)
    props = [(p.key, p.value) for p in model.metadata_props if p.key != "facula.preset"]
    said = (model.producer_name, model.doc_string, model.graph.name, props)
    if said != ("mine", "a note", "net", [("author", "me")]):
        counts["failed"] += 1
        print(f"FAILED metadata: {said}")


def main():
    np.seterr(all="ignore")
    counts, reasons = collections.Counter(), collections.defaultdict(list)
    path = os.path.join(work, "m.onnx")
    for seed, (op, problem, low, high) in enumerate(cases()):
        if ARGS.op and op not in ARGS.op:
            continue
        for opset in ARGS.opsets:
            what = f"{problem}" + (f" at {opset}" if opset else "")
            try:
                call("export", "--problem", problem, "--seed", str(seed), "-o", path, *(["--opset", str(opset)] if opset else []))
            except RuntimeError as e:
                counts["refused"] += 1
                reasons["refused: " + str(e).split("onnx: ")[-1]].append(what)
                continue
            check(what, path, low, high, seed, counts, reasons, ARGS.verbose)
    for name in ARGS.zoo if not ARGS.op else []:
        for more in ([], ["--batch", "3"]):
            print(call("export", f"zoo:{name}", "-o", path, *more).strip())
            model = onnx.load(path)
            check(f"zoo:{name} {' '.join(more)}", path, -1, 1, 1, counts, reasons, True)
    if not ARGS.op:
        edits(path, counts, reasons)
    for reason, what in sorted(reasons.items(), key=lambda r: -len(r[1])):
        print(f"{len(what):5d} {reason} ({what[0]}{', ...' if len(what) > 1 else ''})")
    order = ["checked", "equal to ONNX Runtime", "equal to onnx.reference", "not run by others", "refused", "failed"]
    print(", ".join(f"{counts[k]} {k}" for k in order))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("facula")
    parser.add_argument("op", nargs="*")
    parser.add_argument("--zoo", type=lambda s: s.split(",") if s else [], default=ZOO)
    parser.add_argument("--opsets", type=lambda s: [int(x) for x in s.split(",")], default=[0])
    parser.add_argument("--verbose", action="store_true")
    ARGS = parser.parse_args()
    FACULA = ARGS.facula
    sys.exit(main())
