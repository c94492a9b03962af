#!/usr/bin/env python3
"""Times quantized models against ONNX Runtime, in turns: quantized.py build/facula [--threads N] [--seconds S].

ResNet-50, ResNet-18 and MobileNetV2 of facula's zoo, one image, and a transformer like BERT, made integers by ONNX Runtime's
static quantizer (QDQ, u8 or s8 by s8, a scale a channel); products of one row and of 16 with weights of 4 bits (MatMulNBits), in
floats and with rows of 8 bits (accuracy_level 4)."""
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
LAYERS, TOKENS, WIDTH, HEADS = 4, 128, 256, 4
RANDOM = np.random.default_rng(1)


def drawn(*shape, size=1.0):
    return (RANDOM.normal(size=shape) * size).astype("f")


class Noise(CalibrationDataReader):
    """A few samples of noise: what ranges are does not matter to time."""

    def __init__(self, name, shape):
        self.left = [{name: drawn(*shape)} for _ in range(4)]

    def get_next(self):
        return self.left.pop() if self.left else None


def saved(folder, name, graph, *domains):
    path = os.path.join(folder, name + ".onnx")
    opsets = [helper.make_opsetid("", 18), *(helper.make_opsetid(d, 1) for d in domains)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def graph_of(nodes, shape, result, result_shape, weights):
    return helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                             [helper.make_tensor_value_info(result, TensorProto.FLOAT, result_shape)],
                             [numpy_helper.from_array(v, k) for k, v in weights.items()])


class Transformer:
    """The encoder's layers of BERT, as exporters write them."""

    def __init__(self):
        each = WIDTH // HEADS
        self.nodes, self.count = [], 0
        self.weights = {"half": np.float32(0.5), "one": np.float32(1), "root2": np.float32(2 ** 0.5),
                        "scale": np.float32(each ** 0.5), "heads": np.int64([1, TOKENS, HEADS, each]),
                        "joined": np.int64([1, TOKENS, WIDTH])}

    def put(self, op, *ins, **options):
        self.count += 1
        name = "v%d" % self.count
        self.nodes.append(helper.make_node(op, list(ins), [name], **options))
        return name

    def weight(self, *shape, size=0.05):
        name = "w%d" % len(self.weights)
        self.weights[name] = drawn(*shape, size=size)
        return name

    def linear(self, x, depth, width):
        return self.put("Add", self.put("MatMul", x, self.weight(depth, width)), self.weight(width))

    def norm(self, x):
        self.weights.setdefault("gamma", np.ones(WIDTH, "f"))
        self.weights.setdefault("beta", np.zeros(WIDTH, "f"))
        return self.put("LayerNormalization", x, "gamma", "beta", axis=-1)

    def split(self, x, perm):
        return self.put("Transpose", self.put("Reshape", self.linear(x, WIDTH, WIDTH), "heads"), perm=perm)

    def layer(self, x):
        q, k, v = self.split(x, [0, 2, 1, 3]), self.split(x, [0, 2, 3, 1]), self.split(x, [0, 2, 1, 3])
        p = self.put("Softmax", self.put("Div", self.put("MatMul", q, k), "scale"), axis=-1)
        y = self.put("Transpose", self.put("MatMul", p, v), perm=[0, 2, 1, 3])
        x = self.norm(self.put("Add", self.linear(self.put("Reshape", y, "joined"), WIDTH, WIDTH), x))
        h = self.linear(x, WIDTH, 4 * WIDTH)
        g = self.put("Add", self.put("Erf", self.put("Div", h, "root2")), "one")
        g = self.put("Mul", self.put("Mul", h, g), "half")
        return self.norm(self.put("Add", self.linear(g, 4 * WIDTH, WIDTH), x))

    def saved(self, folder):
        x = "x"
        for _ in range(LAYERS):
            x = self.layer(x)
        shape = [1, TOKENS, WIDTH]
        return saved(folder, "bert", graph_of(self.nodes, shape, x, shape, self.weights)), shape


def network(binary, name, folder):
    path = os.path.join(folder, name + ".onnx")
    subprocess.run([binary, "export", "zoo:" + name, "--batch", "1", "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path, [1, 3, 224, 224]


def quantized(plain, shape, kind):
    ready, path = plain + ".ready", plain + "." + kind
    quant_pre_process(plain, ready, skip_symbolic_shape=True)
    name = onnx.load(ready).graph.input[0].name
    activations = QuantType.QUInt8 if kind == "u8s8" else QuantType.QInt8
    quantize_static(ready, path, Noise(name, shape), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=activations, weight_type=QuantType.QInt8)
    return path, {name: drawn(*shape)}


def product(rows, depth, width, level, folder):
    blocks = depth // 32
    weights = {"w": RANDOM.integers(256, size=(width, blocks, 16)).astype(np.uint8),
               "scale": RANDOM.uniform(0.01, 0.02, size=width * blocks).astype("f")}
    node = helper.make_node("MatMulNBits", ["x", "w", "scale"], ["y"], domain="com.microsoft", K=depth, N=width, bits=4,
                            block_size=32, accuracy_level=level)
    graph = graph_of([node], [rows, depth], "y", [rows, width], weights)
    return saved(folder, "nbits", graph, "com.microsoft"), {"x": drawn(rows, depth)}


def models(binary, folder):
    for kind in ("u8s8", "s8s8"):
        for name in ("resnet50", "resnet18", "mobilenet_v2"):
            yield f"{name} {kind}", lambda: quantized(*network(binary, name, folder), kind)
        yield f"bert {kind}", lambda: quantized(*Transformer().saved(folder), kind)
    for level, what in ((0, "floats"), (4, "int8")):
        for depth, width in WIDTHS:
            for rows in (1, 16):
                yield (f"MatMulNBits {what} {rows} x {depth} x {width}", lambda: product(rows, depth, width, level, folder))


def main():
    a = timing.in_turns(__doc__, 1, 3).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        timing.against_onnxruntime(models(a.binary, folder), a)


main()
