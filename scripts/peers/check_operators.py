#!/usr/bin/env python3
"""Random models of one operator each against ONNX Runtime: every opset since it changed, every type that its schema allows.

    python scripts/peers/check_operators.py build/facula [OP...] [--seed N] [--rounds N] [--keep DIR]

Attributes, shapes with sizes 0 and 1, broadcasting, negative axes, absent inputs, whether an input is an initializer, and
whether the model leaves its sizes open are drawn.  `facula conformance` runs them.  A model that ONNX Runtime refuses is not
judged.  What it answers otherwise than the standard says is not drawn: Slice backwards to INT_MAX, casts of floats to text.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, defs, helper

from onnx_case import initializer, write

TYPES = {"float": "f4", "double": "f8", "float16": "f2", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1",
         "uint16": "u2", "uint32": "u4", "uint64": "u8", "bool": "?", "string": "O"}
WORDS = ["", "a", "b", "ab", "B c", "zz"]
MAKERS, STEERS = {}, {}


class Draw:
    """What a maker draws from."""

    def __init__(self, rng, schema, opset):
        self.rng, self.schema, self.opset, self.drawn = rng, schema, opset, {}
        self.allowed = {c.type_param_str: [TYPES[t[7:-1]] for t in c.allowed_type_strs if t[7:-1] in TYPES]
                        for c in schema.type_constraints}

    def one(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def often(self, chance=0.5):
        return self.rng.random() < chance

    def size(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def type(self, k):
        """The dtype of input k: inputs of one type variable have one."""
        name = self.schema.inputs[k].type_str
        if name not in self.allowed: return np.dtype(TYPES[name[7:-1]])
        if name not in self.drawn: self.drawn[name] = np.dtype(self.one(*self.allowed[name]))
        return self.drawn[name]

    def shape(self, low=0, high=4, empty=True):
        dims = [self.size(1, 5) for _ in range(self.size(low, high))]
        if dims and self.often(0.3): dims[self.rng.integers(len(dims))] = self.size(0 if empty else 1, 1)
        return dims

    def axis(self, rank, negative=11):
        axis = self.size(0, rank - 1)
        return axis - rank if self.opset >= negative and self.often(0.4) else axis

    def array(self, k, shape, low=-4, high=4):
        dtype = self.type(k)
        if dtype.kind == "O": return np.array([self.one(*WORDS) for _ in range(int(np.prod(shape)))], object).reshape(shape)
        if dtype.kind == "b": return np.asarray(self.rng.random(shape) < 0.5)
        if dtype.kind == "f": return np.asarray(self.rng.uniform(low, high, shape)).astype(dtype)
        return np.asarray(self.rng.integers(0 if dtype.kind == "u" else int(low), int(high) + 1, shape)).astype(dtype)

    def broadcast(self, count):
        whole = self.shape()
        return [[1 if self.often(0.2) else n for n in whole[self.one(0, 0, self.size(0, len(whole))):]] for _ in range(count)]

    def some(self, **attributes):
        """Some of the attributes."""
        return {k: v for k, v in attributes.items() if self.often(0.6)}


def of(*names, steers=()):
    def keep(maker):
        for name in names: MAKERS[name], STEERS[name] = maker, steers
        return maker
    return keep


def longs(numbers):
    return np.array(numbers, np.int64)


@of("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Identity", "IsInf", "IsNaN", "Neg", "Not", "Round", "Sigmoid", "Sign", "Sin", "Tanh",
    "Softplus", "Softsign", "Relu", "HardSwish", "Mish", "Size", "BitwiseNot", "Shape", "Elu", "LeakyRelu", "Selu", "Celu", "Gelu",
    "ThresholdedRelu", "HardSigmoid", "Shrink", "Transpose")
def unary(d, name):
    x = d.array(0, d.shape())
    known = {a for a in d.schema.attributes if a in ("alpha", "beta", "gamma", "lambd", "bias")}
    more = d.some(**{a: d.one(0.25, 0.5, 1.5) for a in sorted(known)})
    if name == "Gelu": more = d.some(approximate=d.one("none", "tanh"))
    if name == "Transpose" and x.ndim: more = d.some(perm=[int(k) for k in d.rng.permutation(x.ndim)])
    if name == "Shape" and d.opset >= 15: more = d.some(start=d.size(-5, 5), end=d.size(-5, 5))
    return [x], more, 1


@of("Add", "Sub", "Mul", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "Max", "Min", "Div", "Mod")
def binary(d, name):
    a, b = d.broadcast(2) if d.opset >= 8 else [d.shape(1)] * 2
    x = d.array(0, a)
    y = d.array(0, b, 1, 4) if name in ("Div", "Mod") else d.array(0, b)
    if name in ("Div", "Mod") and y.dtype.kind in "iu": y = np.maximum(y, 1).astype(y.dtype)
    return [x, y], dict(fmod=1) if name == "Mod" and x.dtype.kind == "f" else {}, 1


@of("Where")
def where(d, name):
    a, b, c = d.broadcast(3)
    return [d.array(0, a), d.array(1, b), d.array(1, c)], {}, 1


@of("Cast")
def cast(d, name):
    to = d.one(*[t for t in d.allowed["T2"] if t != "O"])
    x = d.array(0, d.shape(), 0 if np.dtype(to).kind == "u" else -9, 9)
    if x.dtype.kind == "O": x = np.array([d.one("1", "3", "0") for _ in range(x.size)], object).reshape(x.shape)
    if np.dtype(to).kind == "b" and x.dtype.kind == "O": to = "f4"
    if x.dtype.kind in "iu" and d.opset >= 9 and d.often(0.2): return [x], dict(to=TensorProto.STRING), 1
    return [x], dict(to=helper.np_dtype_to_tensor_dtype(np.dtype(to))), 1


@of("Clip", steers=(1, 2))
def clip(d, name):
    x = d.array(0, d.shape())
    if d.opset < 11: return [x], d.some(min=-1.0, max=2.0), 1
    return [x, d.one(None, d.array(0, [], -2, 0)), d.one(None, d.array(0, [], 1, 3))], {}, 1


@of("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", steers=(1,))
def reduced(d, name):
    x = d.array(0, d.shape(1, empty=False), -2, 2)
    axes = [int(k) - x.ndim * int(d.opset >= 11 and d.often(0.3)) for k in d.rng.permutation(x.ndim)[:d.size(1, x.ndim)]]
    more = d.some(keepdims=d.size(0, 1))
    if d.opset < (13 if name == "ReduceSum" else 18): return [x], dict(more, **d.some(axes=axes)), 1
    return [x, d.one(None, longs(axes), longs([]))], dict(more, **d.some(noop_with_empty_axes=d.size(0, 1))), 1


@of("ArgMax", "ArgMin")
def arg(d, name):
    x = d.array(0, d.shape(1, empty=False))
    more = d.some(select_last_index=d.size(0, 1)) if d.opset >= 12 else {}
    return [x], dict(d.some(axis=d.axis(x.ndim), keepdims=d.size(0, 1)), **more), 1


@of("Softmax", "LogSoftmax", "Hardmax", "LpNormalization")
def along(d, name):
    x = d.array(0, d.shape(1, empty=False))
    return [x], dict(axis=d.axis(x.ndim)), 1


@of("CumSum", steers=(1,))
def sums(d, name):
    x = d.array(0, d.shape(1))
    return [x, np.asarray(d.axis(x.ndim), d.type(1))], d.some(exclusive=d.size(0, 1), reverse=d.size(0, 1)), 1


@of("Concat")
def concat(d, name):
    dims = d.shape(1)
    axis = d.axis(len(dims))
    parts = [d.array(0, [d.size(0, 3) if k == axis % len(dims) else n for k, n in enumerate(dims)]) for _ in range(d.size(1, 3))]
    return parts, dict(axis=axis), 1


@of("Gather")
def gather(d, name):
    x = d.array(0, d.shape(1, empty=False))
    axis = d.axis(x.ndim)
    if x.dtype.kind == "O": axis = 0 if x.ndim > 1 else axis
    low = -x.shape[axis] if d.opset >= 11 else 0
    if x.dtype.kind == "O" and x.ndim > 1: x = x.reshape(-1)
    return [x, d.rng.integers(low if x.ndim > 1 else 0, x.shape[axis if x.ndim > 1 else 0], d.shape(0, 2)).astype(d.type(1))], \
        dict(axis=axis if x.ndim > 1 else 0), 1


@of("ScatterElements", "Scatter", "GatherElements")
def elements(d, name):
    x = d.array(0, d.shape(1, empty=False))
    axis = d.axis(x.ndim)
    index = np.argsort(d.rng.random(x.shape), axis=axis)[tuple(slice(d.size(1, n)) for n in x.shape)].astype(d.type(1))
    if name == "GatherElements": return [x, index], dict(axis=axis), 1
    how = d.one("add", "mul") if name == "ScatterElements" and d.opset >= 16 and x.dtype.kind in "fi" and d.often() else None
    return [x, index, d.array(0, index.shape)], dict(dict(axis=axis), **(dict(reduction=how) if how else {})), 1


@of("ScatterND")
def scatter(d, name):
    x = d.array(0, d.shape(1, empty=False))
    depth = d.size(1, x.ndim)
    places = int(np.prod(x.shape[:depth]))
    flat = d.rng.permutation(places)[:d.size(1, places)]
    index = np.stack(np.unravel_index(flat, x.shape[:depth]), -1)
    return [x, longs(index), d.array(0, [len(flat), *x.shape[depth:]])], {}, 1


@of("Slice", steers=(1, 2, 3, 4))
def sliced(d, name):
    x = d.array(0, d.shape(1))
    axes = [int(k) for k in d.rng.permutation(x.ndim)[:d.size(1, x.ndim)]]
    first = [d.size(-x.shape[k] - 2, x.shape[k] + 1) for k in axes]
    last = [d.size(-x.shape[k] - 1, x.shape[k] + 1) for k in axes]
    if d.opset < 10: return [x], dict(starts=first, ends=last, axes=axes), 1
    steps = [d.one(1, 1, 2, -1, -2) for _ in axes]
    return [x, *[np.array(v, d.type(1)) for v in (first, last, axes, steps)]], {}, 1


@of("Split", steers=(1,))
def split(d, name):
    x = d.array(0, d.shape(1, empty=False))
    axis = d.axis(x.ndim)
    parts = d.one(1, 2, 3, 9 if d.opset >= 13 else 20)
    sizes = [d.size(0, 2) for _ in range(parts)]
    x = d.array(0, [sum(sizes) if k == axis % x.ndim else n for k, n in enumerate(x.shape)])
    if d.opset < 13: return [x], dict(axis=axis, split=sizes), parts
    return [x, longs(sizes)], dict(axis=axis), parts


@of("Reshape", "Expand", "Tile", steers=(1,))
def reshaped(d, name):
    x = d.array(0, d.shape(0, 3))
    if name == "Tile": return [x, longs([d.size(0, 3) for _ in x.shape])], {}, 1
    if name == "Expand": return [x, longs([*d.shape(0, 2), *(d.one(n, 1) for n in x.shape)])], {}, 1
    return [x, longs(d.one([-1], [*x.shape, 1], [1, *x.shape]) if x.size else [*x.shape, 1])], {}, 1


@of("Squeeze", "Unsqueeze", steers=(1,))
def of_ones(d, name):
    x = d.array(0, d.shape(1, 3))
    axes = sorted(int(k) for k in d.rng.permutation(x.ndim)[:d.size(1, x.ndim)])
    if name == "Squeeze": x = d.array(0, [1 if k in axes else n for k, n in enumerate(x.shape)])
    return ([x], dict(axes=axes), 1) if d.opset < 13 else ([x, longs(axes)], {}, 1)


@of("TopK", steers=(1,))
def top(d, name):
    dims = d.shape(1, empty=False)
    axis = d.axis(len(dims))
    x = d.rng.permutation(int(np.prod(dims))).reshape(dims).astype(d.type(0))
    k = d.size(0, dims[axis])
    if d.opset < 10: return [x], dict(axis=axis, k=max(k, 1)), 2
    return [x, longs([k])], dict(d.some(largest=d.size(0, 1)) if d.opset >= 11 else {}, axis=axis), 2


@of("ConstantOfShape", "Range", "Trilu", "OneHot", "GatherND", "Compress", steers=(0, 1, 2))
def made(d, name):
    if name == "ConstantOfShape": return [longs(d.shape(0, 3))], {}, 1
    if name == "Range": return [np.asarray(v, d.type(0)) for v in (d.size(0, 3), d.size(2, 9), d.size(1, 3))], {}, 1
    x = d.array(0, d.shape(2, empty=False))
    if name == "Trilu": return [x, np.asarray(d.size(-3, 3), np.int64)], d.some(upper=d.size(0, 1)), 1
    if name == "OneHot": return [np.abs(x), np.asarray(d.size(1, 6), d.type(1)), d.array(2, [2])], dict(axis=d.size(-1, x.ndim)), 1
    if name == "Compress": return [x, np.asarray(d.rng.random(x.shape[0]) < 0.5)], dict(axis=0), 1
    depth = d.size(1, x.ndim)
    return [x, longs(np.stack([d.rng.integers(-n, n, [2, 3]) for n in x.shape[:depth]], -1))], {}, 1


@of("Pad", steers=(1, 2))
def padded(d, name):
    x = d.array(0, d.shape(1, empty=False))
    mode = d.one("constant", "edge", "reflect")
    room = [min(n - 1, 3) if mode == "reflect" else 3 for n in x.shape]
    pads = [d.size(0, n) for n in room + room]
    if d.opset < 11: return [x], dict(mode=mode, pads=pads), 1
    return [x, longs(pads), d.one(None, d.array(0, []))], dict(mode=mode), 1


@of("Conv", "ConvInteger", "MaxPool", "AveragePool")
def windowed(d, name):
    rank, groups = d.size(1, 3), d.one(1, 1, 2)
    taps = [d.size(1, 3) for _ in range(rank)]
    x = d.array(0, [d.size(1, 2), groups * d.size(1, 3), *[d.size(3, 6) for _ in range(rank)]], 0, 9)
    more = dict(kernel_shape=taps, **d.some(strides=[d.size(1, 2) for _ in taps], pads=[d.size(0, n - 1) for n in taps + taps]))
    if "Pool" in name: return [x], more, 1
    w = d.array(1, [groups * d.size(1, 3), x.shape[1] // groups, *taps])
    rest = [d.one(None, d.array(1, w.shape[:1]))] if name == "Conv" else [d.one(None, d.array(0, [], 0, 9))]
    return [x, w, *rest], dict(more, group=groups), 1


@of("MatMul", "MatMulInteger", "Gemm")
def product(d, name):
    m, k, n = (d.size(1, 6) for _ in range(3))
    lead = d.shape(0, 2, empty=False) if name != "Gemm" else []
    more = dict(alpha=0.5, beta=2.0) if name == "Gemm" else {}
    return [d.array(0, [*lead, m, k]), d.array(1, [k, n]), *([d.array(2, [n])] if name == "Gemm" else [])], more, 1


@of("DequantizeLinear", "QuantizeLinear")
def quantized(d, name):
    x = d.array(0, d.shape(1, empty=False), -90, 90)
    scale = d.rng.uniform(0.25, 1, []).astype(d.type(1))
    zero = d.array(0 if name[0] == "D" else 2, [], 0, 9)
    return [x, np.asarray(scale), np.zeros_like(zero) if zero.dtype == np.int32 else zero], {}, 1


def model_of(rng, name, schema, opset):
    """A model and what is fed to it."""
    inputs, attributes, outputs = MAKERS[name](Draw(rng, schema, opset), name)
    given, constants, feeds = [], [], {}
    for k, x in enumerate(inputs):
        if x is None: continue
        if rng.random() < (0.7 if k in STEERS[name] else 0.2):
            constants.append(initializer(f"x{k}", np.asarray(x)))
            continue
        dtype = TensorProto.STRING if x.dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(x.dtype)
        dims = [f"d{k}_{i}" for i in range(x.ndim)] if rng.random() < 0.3 else x.shape
        given.append(helper.make_tensor_value_info(f"x{k}", dtype, dims))
        feeds[f"x{k}"] = x
    results = [onnx.ValueInfoProto(name=f"y{k}") for k in range(outputs)]
    node = helper.make_node(name, ["" if x is None else f"x{k}" for k, x in enumerate(inputs)], [y.name for y in results], **attributes)
    graph = helper.make_graph([node], "g", given, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 21 else 10)
    return onnx.shape_inference.infer_shapes(model), feeds


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("binary")
    p.add_argument("ops", nargs="*")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--keep", help="folder for the cases")
    a = p.parse_args()
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    versions = collections.defaultdict(list)
    for s in defs.get_all_schemas_with_history():
        if s.domain == "" and s.name in MAKERS and not s.deprecated: versions[s.name].append(s)
    room = tempfile.TemporaryDirectory()
    folder = a.keep or room.name
    made = collections.defaultdict(list)
    unjudged = 0
    for name in sorted(a.ops or versions):
        schemas = sorted(versions[name], key=lambda s: s.since_version)
        for at, schema in enumerate(schemas):
            last = schemas[at + 1].since_version - 1 if at + 1 < len(schemas) else max(24, schema.since_version)
            for k in range(a.rounds):
                rng = np.random.default_rng([a.seed, k, at, *name.encode()])
                try:
                    model, feeds = model_of(rng, name, schema, int(rng.integers(schema.since_version, last + 1)))
                    results = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
                except Exception:  # ONNX Runtime has not every opset and type
                    unjudged += 1
                    continue
                half = any(np.asarray(x).dtype == np.float16 for x in [*feeds.values(), *results])
                case = os.path.join(folder, f"{name}-{schema.since_version}-{k}")
                write(case, model, feeds, results)
                made[half].append(case)
    failed = 0
    for half, cases in made.items():
        for at in range(0, len(cases), 100):
            bounds = ["--rtol", "2e-2", "--atol", "2e-2"] if half else ["--rtol", "1e-4", "--atol", "1e-5"]
            run = subprocess.run([a.binary, "conformance", *cases[at:at + 100], *bounds], capture_output=True, text=True)
            bad = re.findall(r"^(?:failed|unsupported) .*", run.stdout, re.M)
            if run.returncode not in (0, 1): bad.append(f"{a.binary} ended with {run.returncode}: {run.stderr.strip()}")
            failed += len(bad)
            for line in bad: print(line.replace(folder + os.sep, ""))
    total = sum(map(len, made.values()))
    print(f"{total - failed} of {total} models of {len(versions)} operators are equal, {unjudged} are not judged")
    return failed > 0


sys.exit(main())
