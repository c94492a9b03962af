#!/usr/bin/env python3
"""Operators that no backend test has: facula against ONNX Runtime, or against the formula where that has none.

    python scripts/peers/check_rare.py build/facula [--keep DIR]

Operators that ONNX has given up, random ones whose outcome is certain, maps of ai.onnx.ml, images in blocks of channels as
ONNX Runtime's optimizer saves them, and QONNX's quantizers (check_qonnx.py compares these with the qonnx package).  Each
model is run, and once more after facula has written it.  --keep: folders for `facula conformance`.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from onnx_case import initializer, write

rng = np.random.default_rng(1)
MS, ML = "com.microsoft", "ai.onnx.ml"
QONNX = ("qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas")


def real(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def number(x):
    return np.array(x, np.float32)


def runtime(model, outputs, feeds):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(outputs, feeds)


def answers(facula, folder):
    """Whether `facula run` gives what the case says: conformance looks only at types and shapes of what is drawn."""
    data = os.path.join(folder, "test_data_set_0")
    with tempfile.TemporaryDirectory() as room:
        words = [facula, "run", os.path.join(folder, "model.onnx"), "--output", f"y={room}/y.npy"]
        for file in os.listdir(data):
            if file.startswith("input_"): words += ["--input", f"x{file[6:-3]}={data}/{file}"]
        done = subprocess.run(words, capture_output=True, text=True)
        with open(os.path.join(data, "output_0.pb"), "rb") as f:
            want = numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))
        have = None if done.returncode else np.load(f"{room}/y.npy")
    if have is not None and have.dtype == want.dtype and np.allclose(have, want, rtol=1e-5): return True
    print(f"{folder}: {done.stderr.strip() or have}, expected {want}")
    return False


class Cases:
    """Folders of models with their inputs and results."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0

    def place(self, name):
        self.count += 1
        return os.path.join(self.folder, f"rare-{name}-{self.count}")

    def node(self, kind, inputs, results=None, opset=17, domain="", version=1, to=TensorProto.FLOAT, **attributes):
        """One node; an array is given when it runs, a tuple of one is an initializer.  results: None, as ONNX Runtime says."""
        names = [f"x{k}" for k in range(len(inputs))]
        feeds = {n: x for n, x in zip(names, inputs) if isinstance(x, np.ndarray)}
        weights = [initializer(n, x[0]) for n, x in zip(names, inputs) if isinstance(x, tuple)]
        ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()]
        node = helper.make_node(kind, names, ["y"], domain=domain, **attributes)
        graph = helper.make_graph([node], "g", ports, [helper.make_tensor_value_info("y", to, None)], weights)
        opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, version)] if domain else [])
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        write(self.place(kind), model, feeds, results or runtime(model, ["y"], feeds))


def given_up(cases):
    """Operators of opset 1 that ONNX removed."""
    x = real(2, 3, 5, 6)
    cases.node("Affine", [x], opset=1, alpha=0.5, beta=-0.25)
    cases.node("Crop", [x], opset=1, border=[1, 0, 2, 1])
    cases.node("Crop", [x], opset=1, border=[1, 1, 0, 0], scale=[3, 4])
    cases.node("ImageScaler", [x], opset=1, scale=1.5, bias=[0.1, 0.2, -0.3])
    cases.node("ParametricSoftplus", [x], opset=1, alpha=0.75, beta=2.0)
    cases.node("Scale", [x], [x * number(0.3)], opset=1, scale=0.3)
    cases.node("ScaledTanh", [x], opset=1, alpha=1.5, beta=0.5)


def pools(cases):
    x = real(2, 3, 8, 9)
    for p in 1, 2, 3:
        cases.node("GlobalLpPool", [x], p=p)
    rois = number([[0, 0, 0, 4, 4], [1, 2, 1, 8, 7], [0, 3, 3, 3, 3]])
    cases.node("MaxRoiPool", [x, rois], pooled_shape=[2, 3])
    cases.node("MaxRoiPool", [x, rois], pooled_shape=[3, 1], spatial_scale=0.5)


def certain(cases):
    """Random operators that have no choice."""
    x = real(3, 4)
    cases.node("RandomNormal", [], mean=1.25, scale=1e-30, shape=[2, 3])
    cases.node("RandomNormalLike", [x], mean=-0.5, scale=1e-30)
    cases.node("RandomUniform", [], low=0.75, high=0.750001, shape=[4])
    weights = np.full((2, 5), -1e4, np.float32)
    weights[0, 3] = weights[1, 0] = 0
    cases.node("Multinomial", [weights], to=TensorProto.INT32, sample_size=6)


def maps(cases):
    """A map is its keys and its numbers; a list of maps is a table."""
    def model(nodes, ports, to):
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
        graph = helper.make_graph(nodes, "g", ports, [to])
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def store(name, m, given, results):
        """Files of maps have forms of their own."""
        folder = cases.place(name)
        bare = onnx.ModelProto()
        bare.CopyFrom(m)
        del bare.graph.input[:]
        write(folder, bare, {}, [])
        onnx.save(m, os.path.join(folder, "model.onnx"))
        for file, message in (("input_0.pb", given), ("output_0.pb", results)):
            with open(os.path.join(folder, "test_data_set_0", file), "wb") as f: f.write(message.SerializeToString())

    def pairs_of(keys, values):
        m = onnx.MapProto(values=numpy_helper.from_list([np.asarray(v) for v in values]))
        m.key_type = TensorProto.STRING if isinstance(keys[0], str) else TensorProto.INT64
        (m.string_keys if isinstance(keys[0], str) else m.keys).extend(k.encode() if isinstance(k, str) else k for k in keys)
        return m

    def port(key, value):
        kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
        return helper.make_value_info("x", kind)

    keys, numbers = [0, 2, 5], real(3)
    pairs = dict(zip(keys, numbers.tolist()))
    table = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    for more in {"map_form": "DENSE"}, {"map_form": "SPARSE", "max_map": 7}:
        m = model([helper.make_node("CastMap", ["x"], ["y"], domain=ML, cast_to="TO_FLOAT", **more)],
                  [port(TensorProto.INT64, TensorProto.FLOAT)], table)
        store("CastMap", m, pairs_of(keys, numbers), initializer("y", runtime(m, ["y"], {"x": pairs})[0]))
    words = ["a", "c", "d"]
    m = model([helper.make_node("DictVectorizer", ["x"], ["y"], domain=ML, string_vocabulary=["d", "b", "a", "c"])],
              [port(TensorProto.STRING, TensorProto.FLOAT)], table)
    want = runtime(m, ["y"], {"x": dict(zip(words, numbers.tolist()))})[0]
    store("DictVectorizer", m, pairs_of(words, numbers), initializer("y", want))
    x = real(2, 3)
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64,
                                                                      helper.make_tensor_type_proto(TensorProto.FLOAT, [])))
    m = model([helper.make_node("ZipMap", ["x"], ["y"], domain=ML, classlabels_int64s=[1, 4, 9])],
              [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)], helper.make_value_info("y", kind))
    rows = onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP)
    for row in runtime(m, ["y"], {"x": x})[0]:
        rows.map_values.append(pairs_of(list(row), map(np.float32, row.values())))
    store("ZipMap", m, initializer("x", x), rows)


def norms(cases):
    x, gamma = real(2, 5, 8), real(8)
    mean = np.mean(x.astype("f8") ** 2, -1, keepdims=True)
    cases.node("SimplifiedLayerNormalization", [x, (gamma,)], [(x / np.sqrt(mean + 1e-4) * gamma).astype("f4")], domain=MS,
               epsilon=1e-4)


def in_blocks(cases):
    """What ONNX Runtime's optimizer makes of a network of images for processors with AVX."""
    x = real(1, 3, 20, 20)
    weights = {"w0": real(32, 3, 3, 3), "w1": real(32, 32, 1, 1), "w2": real(32, 1, 3, 3), "b": real(32)}
    nodes = [helper.make_node("Conv", ["x", "w0", "b"], ["c0"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c0"], ["r0"]),
             helper.make_node("MaxPool", ["r0"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Conv", ["m", "w2", "b"], ["c1"], group=32, pads=[1, 1, 1, 1]),
             helper.make_node("AveragePool", ["c1"], ["a"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Conv", ["a", "w1"], ["c2"]),
             helper.make_node("Resize", ["c2", "", "scales"], ["u"], mode="nearest", coordinate_transformation_mode="asymmetric",
                              nearest_mode="floor"),
             helper.make_node("Conv", ["u", "w1"], ["c3"]),
             helper.make_node("GlobalAveragePool", ["c3"], ["y0"]), helper.make_node("GlobalMaxPool", ["c3"], ["y1"]),
             helper.make_node("Identity", ["c3"], ["y2"])]
    weights["scales"] = number([1, 1, 2, 2])
    blocked(cases, nodes, weights, x, 3)
    x = real(1, 32, 6, 6)
    blocked(cases, [helper.make_node("Conv", ["x", "w1"], ["y0"])], {"w1": real(32, 32, 1, 1)}, x, 1)


def blocked(cases, nodes, weights, x, count):
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    outs = [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, None) for k in range(count)]
    graph = helper.make_graph(nodes, "g", ports, outs, [initializer(n, w) for n, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = os.path.join(folder, "blocked.onnx")
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = session.run(None, {"x": x})
        write(cases.place("nchwc"), onnx.load(options.optimized_model_filepath), {"x": x}, results)


def quantizers(cases):
    """Definitions of the qonnx package, numbers in and out."""
    x = (rng.integers(-40, 40, (2, 3, 4)) / 8).astype(np.float32)
    scale = number(0.5)
    signs = np.where(x >= 0, scale, -scale).astype("f4")
    whole = (np.clip(np.rint(x / scale), -8, 7) * scale).astype("f4")
    cut = (np.floor(np.rint(x / scale) / 16) * scale).astype("f4")
    thresholds = np.sort(rng.integers(-16, 16, (3, 5)) / 4, axis=1).astype("f4")
    above = (x[:, :, :, None] >= thresholds[None, :, None, :]).sum(-1).astype("f4")
    rounding = {"rounding_mode": "ROUND"}
    for domain in QONNX:
        cases.node("BipolarQuant", [x, (scale,)], [signs], domain=domain)
        cases.node("Quant", [x, (scale,), (number(0),), (number(4),)], [whole], domain=domain, signed=1, narrow=0, **rounding)
        cases.node("Trunc", [x, (scale,), (number(0),), (number(8),), (number(4),)], [cut], domain=domain, rounding_mode="FLOOR")
        if domain != "onnx.brevitas":
            cases.node("MultiThreshold", [x, (thresholds,)], [above * 2 - 1], domain=domain, out_scale=2.0, out_bias=-1.0)
    cases.node("IntQuant", [x, (scale,), (number(0),), (number(4),)], [whole], domain=QONNX[0], signed=1, narrow=0, **rounding)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("facula")
    p.add_argument("--keep", help="folder for the cases, as `facula conformance` reads them")
    a = p.parse_args()
    onnxruntime.set_default_logger_severity(4)
    wrong = 0
    with tempfile.TemporaryDirectory() as room:
        folder = a.keep or room
        for make in given_up, pools, certain, maps, norms, in_blocks, quantizers:
            make(Cases(os.path.join(folder, make.__name__)))
        for more in [], ["--reexport"]:
            command = [a.facula, "conformance", folder, "--quiet", "--rtol", "1e-5", "--atol", "1e-5"]
            wrong += subprocess.run(command + more).returncode
        random = os.path.join(folder, certain.__name__)
        wrong += sum(not answers(a.facula, os.path.join(random, case)) for case in sorted(os.listdir(random)))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
