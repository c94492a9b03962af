#!/usr/bin/env python3
"""How far every precision is from the truth on a model with trained weights.

    python bench/errors.py --facula build/facula [--device opencl] [--precision highest,high,bf16] MODEL.onnx [INPUT.npy...]

The truth is the same file with all f32 made f64, on the cpu device; an error is the largest difference of an output, relative
to its largest element.  A softmax at the end is left out, since it hides what went wrong before it.  Inputs without a file are
random numbers between -1 and 1.  ONNX Runtime's error, in f32 on the CPU, stands beside ours where it is installed: it vouches
for the truth, too.  (onnx's own reference implementation does not: of some files its answer is like nobody else's.)
Needs onnx and numpy.
"""
import argparse
import os
import subprocess
import tempfile

import numpy
import onnx
from onnx import TensorProto, numpy_helper


def without_softmax(model):
    """The model without the softmax nodes that make its outputs."""
    graph = model.graph
    for node in [n for n in graph.node if n.op_type == "Softmax"]:
        for value in graph.output:
            if value.name == node.output[0]:
                value.name = node.input[0]
                graph.node.remove(node)
    return model


def doubled(model):
    """A copy in which f64 stands for f32."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    constants = [a.t for n in copy.graph.node for a in n.attribute if a.name == "value"]
    for t in list(copy.graph.initializer) + constants:
        if t.data_type == TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(numpy.float64), t.name))
    for value in list(copy.graph.input) + list(copy.graph.output) + list(copy.graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in copy.graph.node:
        for a in node.attribute:
            if node.op_type == "Cast" and a.name == "to" and a.i == TensorProto.FLOAT:
                a.i = TensorProto.DOUBLE
    return copy


def error(outputs, exact):
    return max(abs(y.astype(numpy.float64) - t).max() / abs(t).max() for y, t in zip(outputs, exact))


def run(a, folder, path, device, precision, inputs, names):
    """Outputs of facula, in the order of their names."""
    command = [a.facula, "run", path, "--device", device, "--precision", precision]
    for k, (name, x) in enumerate(inputs.items()):
        numpy.save(os.path.join(folder, f"in{k}.npy"), x)
        command += ["--input", f"{name}={folder}/in{k}.npy"]
    for k, name in enumerate(names):
        command += ["--output", f"{name}={folder}/out{k}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return [numpy.load(os.path.join(folder, f"out{k}.npy")) for k in range(len(names))]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("inputs", nargs="*", help=".npy files, in the order of the model's inputs")
    p.add_argument("--facula", default="build/facula")
    p.add_argument("--device", default="opencl")
    p.add_argument("--precision", default="highest,high,medium,bf16")
    a = p.parse_args()
    model = without_softmax(onnx.load(a.model))
    given = {t.name for t in model.graph.initializer}
    asked, names = [v for v in model.graph.input if v.name not in given], [v.name for v in model.graph.output]
    random, values = numpy.random.default_rng(0), {}
    for k, v in enumerate(asked):
        dims = [d.dim_value or 1 for d in v.type.tensor_type.shape.dim]
        values[v.name] = numpy.load(a.inputs[k]) if k < len(a.inputs) else random.uniform(-1, 1, dims).astype(numpy.float32)
    with tempfile.TemporaryDirectory() as folder:
        path, exact_path = os.path.join(folder, "model.onnx"), os.path.join(folder, "exact.onnx")
        onnx.save(model, path)
        onnx.save(doubled(model), exact_path)
        wide = {n: x.astype(numpy.float64) if x.dtype == numpy.float32 else x for n, x in values.items()}
        exact = run(a, folder, exact_path, "cpu", "highest", wide, names)
        print("| precision | error |\n| --- | --- |")
        for precision in a.precision.split(","):
            print(f"| {precision} | {error(run(a, folder, path, a.device, precision, values, names), exact):.1e} |", flush=True)
        try:
            import onnxruntime
        except ImportError:
            return
        theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, values)
        print(f"| ONNX Runtime {onnxruntime.__version__}, cpu | {error(theirs, exact):.1e} |")


if __name__ == "__main__":
    main()
