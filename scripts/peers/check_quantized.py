"""Quantized models against ONNX Runtime, whose quantizer makes them here.

    python3 scripts/peers/check_quantized.py build/facula [MODEL.onnx ...]

Without models small networks of convolutions, products, sums and pools are made. Each is quantized
as QDQ and QOperator with u8 and s8 activations, and dynamically. Needs numpy, onnx and onnxruntime.
QOperator forms of u8 must be equal; others may differ by a unit of their last scale, since ONNX
Runtime leaves some of their operators in floats.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                      quantize_dynamic, quantize_static)

SEED = 5


class Reader(CalibrationDataReader):
    def __init__(self, name, shape):
        self.feeds = iter([{name: draw(shape, k)} for k in range(3)])

    def get_next(self):
        return next(self.feeds, None)


def session_of(path):
    """ONNX Runtime with exact sums: without VNNI its products of u8 and s8 saturate at 16 bits unless this is set."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def draw(shape, k):
    return np.random.RandomState(SEED + k).uniform(-1, 1, shape).astype(np.float32)


def weight(name, *shape):
    scale = 1 / np.sqrt(np.prod(shape[1:]))
    values = np.random.RandomState(len(name) + shape[0]).normal(0, scale, shape)
    return numpy_helper.from_array(values.astype(np.float32), name)


def network(kind):
    """A residual block, a depthwise block, or products, one after another."""
    nodes, inits = [], []

    def conv(x, name, c, k, r, stride=1, group=1, relu=True):
        inits.extend([weight(name + "w", k, c // group, r, r), weight(name + "b", k)])
        y = name + ("c" if relu else "")
        nodes.append(helper.make_node("Conv", [x, name + "w", name + "b"], [y], strides=[stride] * 2,
                                      pads=[r // 2] * 4, group=group))
        if relu:
            nodes.append(helper.make_node("Relu", [y], [name]))
        return name

    if kind == "products":
        inits.extend([weight("w1", 40, 33), weight("w2", 33, 17)])
        nodes.append(helper.make_node("MatMul", ["x", "w1"], ["a"]))
        nodes.append(helper.make_node("Relu", ["a"], ["r"]))
        nodes.append(helper.make_node("MatMul", ["r", "w2"], ["y"]))
        shapes = [2, 5, 40], [2, 5, 17]
    else:
        depth = kind == "depthwise"
        v = conv("x", "stem", 3, 16, 3, 2)
        nodes.append(helper.make_node("MaxPool", [v], ["pool"], kernel_shape=[3, 3], strides=[2, 2],
                                      pads=[1] * 4))
        a = conv("pool", "a", 16, 16, 3, group=16 if depth else 1)
        b = conv(a, "b", 16, 16, 1, relu=False)
        nodes.append(helper.make_node("Add", [b, "pool"], ["sum"]))
        nodes.append(helper.make_node("GlobalAveragePool", ["sum"], ["mean"]))
        nodes.append(helper.make_node("Flatten", ["mean"], ["flat"]))
        inits.extend([weight("fw", 10, 16), weight("fb", 10)])
        nodes.append(helper.make_node("Gemm", ["flat", "fw", "fb"], ["y"], transB=1))
        shapes = [1, 3, 33, 31], [1, 10]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip("xy", shapes)]
    graph = helper.make_graph(nodes, kind, values[:1], values[1:], inits)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def forms(path, folder):
    """(name, file, whether bits must be equal)"""
    i = session_of(path).get_inputs()[0]
    shape = [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
    for form in QuantFormat.QDQ, QuantFormat.QOperator:
        for kind in QuantType.QUInt8, QuantType.QInt8:
            name = "%s-%s" % (form.name, kind.name)
            file = os.path.join(folder, name + ".onnx")
            quantize_static(path, file, Reader(i.name, shape), quant_format=form,
                            activation_type=kind, weight_type=QuantType.QInt8, per_channel=True,
                            reduce_range=True)
            yield name, file, form == QuantFormat.QOperator and kind == QuantType.QUInt8
    file = os.path.join(folder, "dynamic.onnx")
    quantize_dynamic(path, file, weight_type=QuantType.QInt8)
    yield "dynamic", file, False


def unit(path):
    """The scale that the last DequantizeLinear has."""
    model = onnx.load(path)
    inits = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    scales = [inits[n.input[1]] for n in model.graph.node
              if n.op_type == "DequantizeLinear" and inits.get(n.input[1], np.ones(2)).size == 1]
    return float(scales[-1]) if scales else 1e-3


def compare(facula, path, exact):
    s = session_of(path)
    i = s.get_inputs()[0]
    x = draw([d if isinstance(d, int) and d > 0 else 1 for d in i.shape], 77)
    want = s.run(None, {i.name: x})[0]
    with tempfile.TemporaryDirectory() as folder:
        given, got = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
        np.save(given, x)
        command = [facula, "run", path, "--input", "%s=%s" % (i.name, given),
                   "--output", "%s=%s" % (s.get_outputs()[0].name, got)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            return "refused: " + run.stderr.strip()[:200]
        y = np.load(got)
    off = float(np.abs(y - want).max())
    allowed = 0 if exact else 2.01 * unit(path)
    return "" if off <= allowed else "off by %g, allowed is %g" % (off, allowed)


def main():
    facula, models = sys.argv[1], sys.argv[2:]
    bad = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in [] if models else ["residual", "depthwise", "products"]:
            models.append(os.path.join(folder, kind + "-float.onnx"))
            onnx.save(network(kind), models[-1])
        for path in models:
            for name, file, exact in forms(path, folder):
                wrong = compare(facula, file, exact)
                count += 1
                bad += wrong != ""
                print("%-8s %s %s %s" % ("WRONG" if wrong else "equal", os.path.basename(path), name, wrong))
    print("%d of %d as ONNX Runtime gives them" % (count - bad, count))
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
