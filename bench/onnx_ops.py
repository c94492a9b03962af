#!/usr/bin/env python3
"""Times operators that real ONNX files have against ONNX Runtime, in turns: onnx_ops.py build/facula [--threads N] [--rounds N].

Transposed convolutions of 2 x 2 and stride 2, three-dimensional convolutions, bidirectional LSTMs, a chain of many small
operators on small tensors, and elementwise operators, casts and running sums of whole numbers."""
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import timing

RANDOM = np.random.default_rng(1)


def drawn(*shape):
    return (RANDOM.normal(size=shape) * 0.1).astype("f")


def saved(folder, name, nodes, shape, result, weights):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)]
    constants = [numpy_helper.from_array(v, k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "ops", inputs, outputs, constants)
    path = os.path.join(folder, name.replace(" ", "_") + ".onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return name, lambda: (path, {"x": drawn(*shape)})


def transposed(folder, C, K, size):
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    return saved(folder, "ConvTranspose %d to %d, %d" % (C, K, size), [node], [1, C, size, size], "y",
                 {"w": drawn(C, K, 2, 2), "b": drawn(K)})


def cubes(folder, C, K, depth, size):
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], kernel_shape=[3, 3, 3], pads=[1] * 6)
    return saved(folder, "Conv3d %d to %d, %d x %d" % (C, K, depth, size), [node], [1, C, depth, size, size], "y",
                 {"w": drawn(K, C, 3, 3, 3), "b": drawn(K)})


def lstm(folder, length, batch, width, hidden):
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], direction="bidirectional", hidden_size=hidden)
    weights = {"w": drawn(2, 4 * hidden, width), "r": drawn(2, 4 * hidden, hidden), "b": drawn(2, 8 * hidden)}
    return saved(folder, "LSTM %d x %d, %d" % (length, batch, hidden), [node], [length, batch, width], "y", weights)


def chain(folder, times, width=32):
    nodes, weights, at = [], {}, "x"
    for k in range(times):
        w, g, b = ("%s%d" % (n, k) for n in "wgb")
        weights.update({w: drawn(width, width), g: drawn(width), b: drawn(width)})
        for op, more, to, options in (("MatMul", [w], "m", {}), ("LayerNormalization", [g, b], "n", {}), ("Sigmoid", [], "s", {}),
                                      ("Transpose", [], "t", {"perm": [1, 0]}), ("Softmax", [], "p", {}),
                                      ("Transpose", [], "u", {"perm": [1, 0]})):
            nodes.append(helper.make_node(op, [at, *more], ["%s_%d" % (to, k)], **options))
            at = "%s_%d" % (to, k)
    return saved(folder, "%d small ops" % len(nodes), nodes, [16, width], at, weights)


def numbers(dtype, shape):
    if np.dtype(dtype).kind == "f":
        return (RANDOM.normal(size=shape) * 50).astype(dtype)
    low, high = {"b": (0, 2), "u": (1, 100)}.get(np.dtype(dtype).kind, (-100, 100))
    drawn = RANDOM.integers(low, high, shape)
    return (drawn if low == 0 else np.where(drawn == 0, 7, drawn)).astype(dtype)  # ONNX Runtime refuses to divide by 0


def whole(folder, op, dtypes, result, shapes=([64, 256, 56],), axis=None, **options):
    """One operator; the operands after the last shape have that one."""
    names = "abc"[:len(dtypes)]
    shapes = [shapes[min(k, len(shapes) - 1)] for k in range(len(dtypes))]
    kinds = {k: helper.np_dtype_to_tensor_dtype(np.dtype(t)) for k, t in zip((*names, "y"), (*dtypes, result))}
    if op == "Cast":
        options["to"] = kinds["y"]
    inputs = [helper.make_tensor_value_info(k, kinds[k], s) for k, s in zip(names, shapes)]
    outputs = [helper.make_tensor_value_info("y", kinds["y"], None)]
    constants = [] if axis is None else [numpy_helper.from_array(np.array(axis), "axis")]
    node = helper.make_node(op, [*names, *(c.name for c in constants)], ["y"], **options)
    graph = helper.make_graph([node], "ops", inputs, outputs, constants)
    name = " ".join([op, *dtypes[-1:], *(["to " + result] if op == "Cast" else []), *("x".join(map(str, s)) for s in shapes[1:] if s != shapes[0]),
                     *([] if axis is None else ["%s along %d" % ("x".join(map(str, shapes[0])), axis)])])
    path = os.path.join(folder, name.replace(" ", "_") + ".onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return name, lambda: (path, {k: numbers(t, s) for k, t, s in zip(names, dtypes, shapes)})


def integers(folder):
    for op, dtype in (("Greater", "int32"), ("Greater", "uint8"), ("Greater", "int64"), ("Less", "float32"), ("Equal", "int64"), ("Equal", "bool"),
                      ("And", "bool")):
        yield whole(folder, op, [dtype] * 2, "bool")
    for op, dtype in (("Max", "int32"), ("Max", "int8"), ("Min", "uint8"), ("Min", "int64"), ("Add", "int32"), ("Add", "int8"), ("Add", "int64"),
                      ("Mul", "int32"), ("Div", "int32"), ("Mod", "int32"), ("BitwiseAnd", "int32")):
        yield whole(folder, op, [dtype] * 2, dtype)
    yield whole(folder, "Not", ["bool"], "bool")
    yield whole(folder, "Abs", ["int32"], "int32")
    for dtype in ("int32", "uint8", "int64", "float32"):
        yield whole(folder, "Where", ["bool", dtype, dtype], dtype)
    yield whole(folder, "Add", ["int32"] * 2, "int32", ([64, 256, 56], [256, 1]))
    yield whole(folder, "Max", ["uint8"] * 2, "uint8", ([64, 256, 56], [256, 1]))
    yield whole(folder, "Greater", ["int32"] * 2, "bool", ([64, 256, 56], [1]))
    yield whole(folder, "Equal", ["int64"] * 2, "bool", ([1024, 1], [1, 1024]))
    for a, b in (("int32", "int64"), ("int64", "int32"), ("int32", "float32"), ("float32", "int32"), ("float32", "uint8"), ("uint8", "float32"),
                 ("int64", "float32"), ("float32", "int64"), ("bool", "float32"), ("int32", "bool")):
        yield whole(folder, "Cast", [a], b)
    for dtype, shape, axis in (("int32", [256, 3584], 1), ("int64", [256, 3584], 1), ("float32", [256, 3584], 1), ("float32", [64, 256, 56], 1),
                               ("int32", [64, 256, 56], 0)):
        yield whole(folder, "CumSum", [dtype], dtype, (shape,), axis)


def main():
    a = timing.in_turns(__doc__, 0.5, 5).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        timing.against_onnxruntime([transposed(folder, 64, 32, 56), transposed(folder, 256, 128, 28), transposed(folder, 32, 16, 112),
                                    cubes(folder, 16, 32, 8, 28), cubes(folder, 32, 32, 16, 28), cubes(folder, 3, 16, 16, 56),
                                    lstm(folder, 64, 1, 128, 128), lstm(folder, 50, 4, 128, 256), chain(folder, 60), *integers(folder)], a)


main()
