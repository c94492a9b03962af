#!/usr/bin/env python3
"""Models cut into tiles, in the hands of others: products counted in the written file, results by ONNX Runtime, and our proofs.

    python scripts/peers/check_tile.py build/facula build/tests/make_network [--large] [CASE...]

For each case a network is written, tiled, and the tiled file is read with onnx: every Gemm, in functions and in loops as often as
they run, is within the limits, no other product is left but depthwise convolutions, and there are as many as were told.  ONNX
Runtime runs both files on the same input and finds the same best five; `facula verify` says same (bounds: no difference).  Limits along M and N alone
keep every bit where its kernels add up in the same order for all sizes, as they do for LeNet: its files are compared bit by bit.  --large adds networks that take minutes.  Exit code 1 if anything
differs; the last line counts.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnx.inliner
import onnx.shape_inference
import onnxruntime

onnxruntime.set_default_logger_severity(4)
room = tempfile.TemporaryDirectory()      # gone with the process
work = room.name
ALL = ["--max-m", "64", "--max-n", "64", "--max-k", "64"]
counts = {"passed": 0, "failed": 0}

# name: network, its size, tile options, products (None: as told), how `verify` proves it, whether ONNX Runtime gives equal bits
CASES = {
    "alexnet": ("alexnet", "224", ALL, 17090, ["exact", "bound"], False),
    "alexnet loop": ("alexnet", "224", [*ALL, "--mode", "loop"], 17090, [], False),
    "lenet bits": ("lenet", "28", ["--max-m", "16", "--max-n", "64"], None, ["exact"], True),
    "resnet50": ("resnet50", "64", ALL, None, ["exact", "bound"], False),
    "mobilenet_v2": ("mobilenet_v2", "64", ALL, None, ["exact", "bound"], False),
    "encoder": ("encoder", "1", ALL, 312, ["exact", "bound"], False),
    "encoder loop": ("encoder", "1", [*ALL, "--mode", "loop"], 312, ["exact", "bound"], False),
    "minilm": ("minilm", "1", ALL, 960, ["exact", "bound"], False),
    "minilm of 2": ("minilm", "2", ALL, 1920, ["exact", "bound"], False),
    "lenet function": ("lenet", "28", [*ALL, "--mode", "function", "--sum", "tree"], None, ["exact", "bound"], False),
    "lenet taps": ("lenet", "28", [*ALL, "--conv", "taps", "--pad"], None, ["exact"], False),
}
LARGE = {
    "vgg16": ("vgg16", "224", ALL, 91904, ["exact", "bound"], False),
    "resnet50 at 224": ("resnet50", "224", ALL, 19016, ["exact", "bound"], False),
    "mobilenet_v2 at 224": ("mobilenet_v2", "224", ALL, None, ["exact", "bound"], False),
    "minilm of 6": ("minilm", "6", ALL, 5760, ["exact", "bound"], False),
    "alexnet function": ("alexnet", "224", [*ALL, "--mode", "function"], 17090, ["exact", "bound"], False),
    "alexnet loop, proved": ("alexnet", "224", [*ALL, "--mode", "loop"], 17090, ["exact", "bound"], False),
}


def call(*command, codes=(0,)):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


# ---- products of a file ----

def light(model):
    """Without the bytes of weights, whose sizes are all that counts."""
    for t in model.graph.initializer:
        if len(t.raw_data) > 4096:
            t.ClearField("raw_data")
    return model


def dims_of(graph, known):
    """Sizes of the values of a graph, those of the graphs around it too."""
    sizes = dict(known)
    for t in graph.initializer:
        sizes[t.name] = list(t.dims)
    for v in [*graph.input, *graph.value_info, *graph.output]:
        sizes[v.name] = [d.dim_value for d in v.type.tensor_type.shape.dim]
    return sizes


def number(graph, name, outer):
    for t in graph.initializer:
        if t.name == name:
            return int(onnx.numpy_helper.to_array(t))
    for n in graph.node:
        if name in n.output and n.op_type == "Constant":
            return int(onnx.helper.get_attribute_value(n.attribute[0]) if n.attribute[0].type == onnx.AttributeProto.INT
                       else onnx.numpy_helper.to_array(n.attribute[0].t))
    if outer is None:
        raise AssertionError(f"{name} is no constant")
    return number(outer[0], name, outer[1])


def products(graph, limits, known=None, outer=None):
    """How many products run; AssertionError for one that is larger or of another kind."""
    sizes, n = dims_of(graph, known or {}), 0
    for node in graph.node:
        attrs = {a.name: a for a in node.attribute}
        if node.op_type == "Gemm":
            ta, tb = (bool(attrs[k].i) if k in attrs else False for k in ("transA", "transB"))
            a, b = sizes[node.input[0]], sizes[node.input[1]]
            size = (a[ta], b[1 - tb], a[1 - ta])
            assert all(x > 0 for x in size), f"{node.name}: sizes are not known"
            assert all(x <= y for x, y in zip(size, limits)), f"{node.name}: a product of {size}"
            n += 1
        elif node.op_type == "Loop":
            n += number(graph, node.input[0], outer) * products(attrs["body"].g, limits, sizes, (graph, outer))
        elif node.op_type == "Conv":
            assert attrs["group"].i == sizes[node.input[1]][0], f"{node.name}: a convolution is left"
        else:
            assert node.op_type not in ("MatMul", "ConvTranspose", "Attention"), f"{node.name}: {node.op_type} is left"
    return n


# ---- one case ----

# What ONNX Runtime does before it runs a file grows with the square of the nodes, whatever its options (20,000: 8 s, 21,000 with many
# slices of one value: minutes).  So it gets large files in pieces, each fed with what those before it made: the same nodes.
PIECE = 2000


def session(model, plain):
    o = onnxruntime.SessionOptions()
    if plain:
        o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, o)


def port(name, value):
    shape = None if value is None else value.shape
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def run_pieces(model, values, plain):
    """The output, from values: name -> array, which grows and shrinks."""
    graph, weights = model.graph, {t.name: t for t in model.graph.initializer}
    last = {name: k for k, n in enumerate(graph.node) for name in n.input}
    last[graph.output[0].name] = len(graph.node)
    for first in range(0, len(graph.node), PIECE):
        nodes = graph.node[first:first + PIECE]
        made = [name for n in nodes for name in n.output]
        reads = dict.fromkeys(name for n in nodes for name in n.input if name)
        given = [name for name in reads if name in values]
        wanted = [name for name in made if last.get(name, 0) >= first + len(nodes)]
        part = onnx.helper.make_graph(nodes, "part", [port(name, values[name]) for name in given],
                                      [port(name, None) for name in wanted],
                                      [weights[name] for name in reads if name in weights])
        part = onnx.helper.make_model(part, opset_imports=model.opset_import, ir_version=model.ir_version)
        part.functions.extend(model.functions)
        values.update(zip(wanted, session(part.SerializeToString(), plain).run(wanted, {name: values[name] for name in given})))
        for name in [name for name in values if last.get(name, 0) < first + len(nodes)]:
            del values[name]
    return values[graph.output[0].name]


def runtime(path, x, plain):
    model = onnx.load(path)
    nests = any(a.type == onnx.AttributeProto.GRAPH for n in model.graph.node for a in n.attribute)     # reads what is around it
    if len(model.graph.node) > 2 * PIECE and not nests:
        return run_pieces(model, {model.graph.input[0].name: x}, plain)
    return session(path, plain).run(None, {"x": x})[0]


def check(name, network, size, options, want, modes, bits):
    a, b = os.path.join(work, "a.onnx"), os.path.join(work, "b.onnx")
    call(ARGS.make_network, network, size, a)
    told = json.loads(call(ARGS.facula, "tile", a, "-o", b, "--json", *options))
    tiles = sum(r["tiles"] for r in told["products"] if "kept" not in r)
    flat = onnx.inliner.inline_local_functions(light(onnx.load(b)))
    limits = [int(options[options.index(f"--max-{d}") + 1]) if f"--max-{d}" in options else 1 << 60 for d in "mnk"]
    found = products(onnx.shape_inference.infer_shapes(flat).graph, limits)
    assert found == tiles and want in (None, found), f"{found} products, {tiles} were told, {want} expected"
    x = np.random.default_rng(1).standard_normal(
        [d.dim_value for d in onnx.load(a, load_external_data=False).graph.input[0].type.tensor_type.shape.dim]).astype("f4")
    y, z = runtime(a, x, bits), runtime(b, x, True)
    error = np.abs(y - z).max() / np.abs(y).max()
    assert error < 1e-4, f"ONNX Runtime: {error:.1e} of the largest value"
    assert (np.argsort(-y.ravel())[:5] == np.argsort(-z.ravel())[:5]).all(), "ONNX Runtime: not the same best five"
    assert not bits or np.array_equal(y, z), f"ONNX Runtime: other bits, {error:.1e} of the largest value"
    for mode in modes:
        call(ARGS.facula, "verify", a, b, "--mode", mode, "--rounds", "1", codes=(4 if mode == "bound" else 0,))
    done = [f"{found} products", f"{told['file']['nodes']} nodes", f"ONNX Runtime {error:.0e}"] + ["equal bits"] * bits + modes
    return ", ".join(done + ([f"{told['kept']} kept"] if told["kept"] else []))


def main():
    cases = {**CASES, **(LARGE if ARGS.large else {})}
    for name, case in cases.items():
        if ARGS.case and name not in ARGS.case:
            continue
        started = time.time()
        try:
            result = check(name, *case)
            counts["passed"] += 1
            print(f"ok     {name}: {result} ({time.time() - started:.0f} s)", flush=True)
        except (AssertionError, RuntimeError) as e:
            counts["failed"] += 1
            print(f"FAILED {name}: {e}", flush=True)
    print(f"tiles: {counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("facula")
    parser.add_argument("make_network")
    parser.add_argument("case", nargs="*")
    parser.add_argument("--large", action="store_true")
    ARGS = parser.parse_args()
    sys.exit(main())
