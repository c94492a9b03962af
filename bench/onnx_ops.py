#!/usr/bin/env python3
"""Times operators that real ONNX files have against ONNX Runtime, in turns: onnx_ops.py build/facula [--threads N] [--rounds N].

Transposed convolutions of 2 x 2 and stride 2, three-dimensional convolutions, bidirectional LSTMs, and a chain of many small
operators on small tensors."""
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


def main():
    a = timing.in_turns(__doc__, 0.5, 5).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        timing.against_onnxruntime([transposed(folder, 64, 32, 56), transposed(folder, 256, 128, 28), transposed(folder, 32, 16, 112),
                                    cubes(folder, 16, 32, 8, 28), cubes(folder, 32, 32, 16, 28), cubes(folder, 3, 16, 16, 56),
                                    lstm(folder, 64, 1, 128, 128), lstm(folder, 50, 4, 128, 256), chain(folder, 60)], a)


main()
