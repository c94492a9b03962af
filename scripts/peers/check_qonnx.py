"""QONNX in and out against the qonnx package's own execution: check_qonnx.py FACULA [--seed S] [--models FILE...].

Needs onnx and qonnx.  In: each model has one BipolarQuant, Quant, IntQuant, MultiThreshold or Trunc; numbers lie on and
beside the places where they jump.  Out: networks of each scheme, trained or made from samples, are exported with --qonnx
and run by qonnx, and as plain ONNX by ONNX Runtime where that is there; the answers are those of `facula run`.
--models: files, such as those of the QONNX model zoo, of random inputs, and nothing else.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from qonnx.core.modelwrapper import ModelWrapper
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

DOMAIN = "qonnx.custom_op.general"
CASES = 60
SCHEMES = ["lq:w1a1", "lq:w1a2", "lq:w2a2", "lq:w3a3", "dorefa:w1a2", "dorefa:w2a2", "lsq:w2a2", "abc:w2a2", "bnn", "xnor",
           "bwn", "bireal", "reactnet"]
SAMPLES = 64


def quantizer(rng):
    """The node's type, its inputs after x, its attributes and the shape of x."""
    kind = rng.choice(["BipolarQuant", "Quant", "IntQuant", "MultiThreshold", "Trunc"])
    shape = [2, int(rng.integers(1, 5))] + [3, 4] * int(rng.integers(0, 2))
    scale = np.array(rng.choice([0.25, 0.5, 1.5, 0.3]), np.float32)
    number = lambda x: np.array(x, np.float32)
    if kind == "BipolarQuant":
        return kind, [scale], {}, shape
    if kind == "MultiThreshold":
        t = np.sort(rng.integers(-8, 8, (shape[1], int(rng.choice([1, 3, 15, 20])))) / 4, axis=1).astype(np.float32)
        return kind, [t], {"out_scale": float(rng.choice([1, 0.5])), "out_bias": float(rng.choice([0, -2])),
                           "out_dtype": "FLOAT32", "data_layout": "NC" if len(shape) == 2 else "NCHW"}, shape
    if kind == "Trunc" and rng.integers(0, 2):
        attrs = {"rounding_mode": str(rng.choice(["FLOOR", "ROUND"])), "signed": 1, "narrow": int(rng.integers(0, 2))}
        return kind, [scale, number(0), number(8), scale * 4, number(4)], attrs, shape
    if kind == "Trunc":
        return kind, [scale, number(0), number(8), number(4)], {"rounding_mode": str(rng.choice(["FLOOR", "ROUND"]))}, shape
    signed = int(rng.integers(0, 2))
    attrs = {"signed": signed, "narrow": int(rng.integers(0, 2)),
             "rounding_mode": str(rng.choice(["ROUND", "CEIL", "FLOOR", "HALF_EVEN", "UP", "DOWN", "HALF_UP", "HALF_DOWN"]))}
    return kind, [scale, number(0 if signed else rng.choice([0, 1])), number(rng.integers(1, 9))], attrs, shape


def model_of(kind, others, attrs, shape):
    names = [f"p{k}" for k in range(len(others))]
    node = helper.make_node(kind, ["x"] + names, ["y"], domain=DOMAIN, **attrs)
    graph = helper.make_graph([node], "q", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(v, n) for n, v in zip(names, others)])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(DOMAIN, 2 if len(others) == 5 else 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def facula(args, *words):
    """Standard output; SystemExit where the command fails."""
    done = subprocess.run([args.facula, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def fixed(path, batch):
    """The model with a batch of this size, which qonnx wants to know."""
    model = onnx.load(path)
    for port in list(model.graph.input) + list(model.graph.output):
        port.type.tensor_type.shape.dim[0].dim_value = batch
    del model.graph.value_info[:]
    return model


def same(name, want, got):
    """Whether all answers are equal; a number beside a threshold may fall on its other side: one sample in 32."""
    off = np.abs(want - got).reshape(len(want), -1).max(axis=1) > 1e-4 * (1 + np.abs(want).max())
    if off.sum() <= len(want) // 32:
        return True
    print(f"{name}: {off.sum()} of {len(want)} answers differ, by {np.abs(want - got).max()}")
    return False


def check_exported(args, folder, name, plain, x):
    """How many of both forms are wrong: with QONNX's operators by qonnx, with ONNX's own by ONNX Runtime."""
    np.save(folder / "x.npy", x)
    facula(args, "export", plain, "-o", folder / "q.onnx", "--qonnx")
    model = fixed(folder / "q.onnx", len(x))
    put, get = model.graph.input[0].name, model.graph.output[0].name
    facula(args, "run", plain, "--input", f"{put}={folder / 'x.npy'}", "--output", f"{get}={folder / 'y.npy'}")
    want = np.load(folder / "y.npy")
    if not any(node.domain == DOMAIN for node in model.graph.node):
        print(f"{name}: no operator of {DOMAIN}")
        return 1
    shaped = ModelWrapper(model).transform(InferShapes())
    wrong = not same(f"{name}, qonnx", want, execute_onnx(shaped, {put: x})[get])
    facula(args, "run", folder / "q.onnx", "--input", f"{put}={folder / 'x.npy'}", "--output", f"{get}={folder / 'y.npy'}")
    wrong += not same(f"{name}, read again", want, np.load(folder / "y.npy"))
    if onnxruntime:
        session = onnxruntime.InferenceSession(str(plain), providers=["CPUExecutionProvider"])
        wrong += not same(f"{name}, ONNX Runtime", want, session.run([get], {put: x})[0])
    return wrong


def check_exports(args, rng, folder):
    wrong = 0
    points = rng.random((SAMPLES, 2), np.float32)
    for scheme in SCHEMES:
        run = folder / scheme.replace(":", "-")
        facula(args, "train", "toy:circle", "--points", 200, "--model", "mlp:16,16,16", "--epochs", 5, "--seed", args.seed,
               "--quantize", scheme, "--out", run)
        wrong += check_exported(args, folder, scheme, run / "model.onnx", points)
    for scheme in ["lq:w1a2", "lq:w2a2", "lq:w2a32"]:
        made = folder / "made.onnx"
        facula(args, "quantize", "zoo:lenet", "--seed", args.seed, "--random", "--scheme", scheme, "-o", made)
        images = rng.standard_normal((8, 1, 28, 28)).astype(np.float32)
        wrong += check_exported(args, folder, f"lenet {scheme}", made, images)
    print(f"exported: {len(SCHEMES) + 3} networks, {wrong} wrong")
    return wrong


def check_file(args, rng, folder, path):
    """Whether a file gives what qonnx computes, for five random inputs: to 1e-5 of the largest number."""
    model = ModelWrapper(str(path)).transform(InferShapes())
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [port for port in graph.input if port.name not in weights]
    worst = 0
    for _ in range(5):
        words, feed = [], {}
        for k, port in enumerate(inputs):
            shape = [dim.dim_value or 1 for dim in port.type.tensor_type.shape.dim]
            kind = model.get_tensor_datatype(port.name)
            if kind.name == "BIPOLAR":
                feed[port.name] = rng.choice([-1, 1], shape).astype(np.float32)
            else:
                feed[port.name] = (rng.integers(-256, 256, shape) / 128).astype(np.float32)
            np.save(folder / f"x{k}.npy", feed[port.name])
            words += ["--input", f"{port.name}={folder / f'x{k}.npy'}"]
        for k, port in enumerate(graph.output):
            words += ["--output", f"{port.name}={folder / f'y{k}.npy'}"]
        facula(args, "run", path, *words)
        answers = execute_onnx(model, feed)
        for k, port in enumerate(graph.output):
            want = answers[port.name]
            off = np.abs(np.load(folder / f"y{k}.npy") - want).max() / max(1, np.abs(want).max())
            worst = max(worst, float(off))
    print(f"{path}: differs by {worst:.1e}")
    return worst > 1e-5


def main():
    args = argparse.ArgumentParser()
    args.add_argument("facula")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--models", nargs="+", type=pathlib.Path)
    args = args.parse_args()
    rng = np.random.default_rng(args.seed)
    wrong = 0
    if args.models:
        with tempfile.TemporaryDirectory() as folder:
            wrong = sum(check_file(args, rng, pathlib.Path(folder), path) for path in args.models)
        sys.exit(wrong != 0)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for case in range(CASES):
            kind, others, attrs, shape = quantizer(rng)
            model = model_of(kind, others, attrs, shape)
            x = (rng.integers(-40, 40, shape) / 8).astype(np.float32)
            want = execute_onnx(ModelWrapper(model), {"x": x})["y"]
            onnx.save(model, folder / "q.onnx")
            np.save(folder / "x.npy", x)
            command = [args.facula, "run", folder / "q.onnx", "--input", f"x={folder / 'x.npy'}",
                       "--output", f"y={folder / 'y.npy'}"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                wrong += 1
                print(f"{kind} {attrs}: {done.stderr.strip()}")
                continue
            worst = np.abs(np.load(folder / "y.npy") - want).max()
            if worst > 1e-5:
                wrong += 1
                print(f"case {case}: {kind} {attrs} {[o.tolist() for o in others]}: differs by {worst}")
        print(f"qonnx: {CASES} models, {wrong} wrong")
        wrong += check_exports(args, rng, folder)
    sys.exit(wrong != 0)


main()
