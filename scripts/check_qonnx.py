"""Random quantizers of QONNX against the qonnx package's own execution: check_qonnx.py FACULA [--seed S].

Needs onnx and qonnx.  Each model has one BipolarQuant, Quant, IntQuant, MultiThreshold or Trunc; numbers lie on and
beside the places where they jump.
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
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

DOMAIN = "qonnx.custom_op.general"
CASES = 60


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


def main():
    args = argparse.ArgumentParser()
    args.add_argument("facula")
    args.add_argument("--seed", type=int, default=1)
    args = args.parse_args()
    rng = np.random.default_rng(args.seed)
    wrong = 0
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
    sys.exit(wrong != 0)


main()
