#!/usr/bin/env python3
"""Times quantized models against ONNX Runtime, in turns: quantized.py build/facula [--threads N] [--seconds S].

ResNet-50, ResNet-18 and MobileNetV2 of facula's zoo, one image, made integers by ONNX Runtime's static quantizer (QDQ, u8 by s8, a scale a
channel); products of one row and of 16 with weights of 4 bits (MatMulNBits).  Both engines use the same number of threads.
Printed are milliseconds a call (medians) and how many times as fast facula is."""
import argparse
import os
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import timing

WIDTHS = ((4096, 4096), (4096, 11008))


class Noise(CalibrationDataReader):
    """A few images of noise: what ranges are does not matter to time."""

    def __init__(self, name):
        r = np.random.default_rng(1)
        self.left = [{name: r.normal(size=(1, 3, 224, 224)).astype("f")} for _ in range(4)]

    def get_next(self):
        return self.left.pop() if self.left else None


def network(binary, name, folder):
    plain, ready, path = (os.path.join(folder, name + s) for s in (".onnx", ".ready.onnx", ".int8.onnx"))
    subprocess.run([binary, "export", "zoo:" + name, "--batch", "1", "-o", plain], check=True, stdout=subprocess.DEVNULL)
    quant_pre_process(plain, ready, skip_symbolic_shape=True)
    reader = Noise(onnx.load(ready).graph.input[0].name)
    quantize_static(ready, path, reader, quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8)
    return path, (1, 3, 224, 224)


def product(rows, depth, width, folder):
    r = np.random.default_rng(1)
    path, blocks = os.path.join(folder, "nbits.onnx"), depth // 32
    codes = r.integers(256, size=(width, blocks, 16)).astype(np.uint8)
    scale = r.uniform(0.01, 0.02, size=width * blocks).astype("f")
    node = helper.make_node("MatMulNBits", ["x", "w", "scale"], ["y"], domain="com.microsoft", K=depth, N=width, bits=4,
                            block_size=32)
    graph = helper.make_graph([node], "nbits", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, depth])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, width])],
                              [numpy_helper.from_array(codes, "w"), numpy_helper.from_array(scale, "scale")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path, (rows, depth)


def compare(what, path, shape, a):
    session = timing.onnxruntime_session(path, a.threads)
    feed = {session.get_inputs()[0].name: np.random.default_rng(2).normal(size=shape).astype("f")}
    theirs, ours = [], []
    for _ in range(a.rounds):
        theirs.append(timing.rival_ms(lambda: session.run(None, feed), a.seconds))
        ours.append(timing.facula_json(a.binary, "bench", path, "cpu", a.seconds, "--threads", str(a.threads))["median_ms"])
    x, y = np.median(theirs), np.median(ours)
    print("%-32s %10.3f %11.3f %7.2f" % (what, x, y, x / y), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("binary")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    print("%-32s %10s %11s %7s" % ("", "ORT ms", "facula ms", "ratio"))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("resnet50", "resnet18", "mobilenet_v2"):
            compare(name + " int8", *network(a.binary, name, folder), a)
        for depth, width in WIDTHS:
            for rows in (1, 16):
                compare("MatMulNBits %d x %d x %d" % (rows, depth, width), *product(rows, depth, width, folder), a)


main()
