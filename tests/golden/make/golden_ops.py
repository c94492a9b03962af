#!/usr/bin/env python3
"""Writes tests/golden/ops.txt: independent values (NumPy and torch in f64, ONNX's reference evaluator) for elementwise ops,
comparisons, casts and the ops that move data, in the form that tests/golden/make/golden_nn.py describes.  Run it again only to add
cases; the numbers are checked in.
"""
import math

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(11)
lines = ["# Written by tests/golden/make/golden_ops.py."]
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "i16": np.int16, "i32": np.int32,
          "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}
FLOATS, INTS = ("f32", "f64", "f16"), ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
TOLERANCE = {"f32": 3e-6, "f64": 1e-12, "f16": 1e-3}
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 1e-30, -1e-30, 88.0, -88.0, 1e30, -1e30, 2.5, -2.5, 3.5]
FEW = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.5, -2.5]


class Host(list):
    pass


def text(a):
    a = np.asarray(a)
    numbers = (f"{float(v):.17g}" if a.dtype == np.float64 else f"{float(v):.9g}" if a.dtype.kind == "f" else str(int(v))
               for v in a.ravel())
    return f"{NAMES[a.dtype]}[{','.join(map(str, a.shape))}] : {' '.join(numbers)}".rstrip()


def case(op, attrs, inputs, outputs, tolerance=0.0):
    lines.append(f"op {op} {tolerance:g} {attrs}".rstrip())
    for x in inputs:
        if x is None: lines.append("none")
        elif isinstance(x, Host): lines.append(("host " + " ".join(map(str, x))).rstrip())
        else: lines.append("in " + text(x))
    for y in outputs if isinstance(outputs, (list, tuple)) else [outputs]: lines.append("out " + text(y))
    lines.append("end")


def real(shape, lo=-4.0, hi=4.0, t="f32"):
    return rng.uniform(lo, hi, shape).astype(DTYPES[t])


def whole(shape, t="i32", lo=None, hi=None):
    i = np.iinfo(DTYPES[t])
    lo, hi = max(i.min, -9 if lo is None else lo), min(i.max, 9 if hi is None else hi)
    return rng.integers(lo, hi, shape, endpoint=True, dtype=DTYPES[t])


def extremes(t):
    i = np.iinfo(DTYPES[t])
    return np.array([i.min, i.max, i.max - 1, 0, 1, 3, i.max // 3], DTYPES[t])


# ---- one operand ----
def unary(op, f, lo, hi, attrs="", edges=EDGES):
    for t in FLOATS:
        with np.errstate(all="ignore"):
            for x in (real((3, 7), lo, hi, t), real((), lo, hi, t), np.array(edges, np.float64).astype(DTYPES[t])):
                case(op, attrs, [x], np.asarray(f(x.astype(np.float64))).astype(DTYPES[t]), TOLERANCE[t])


def torched(f):
    return lambda x: f(torch.tensor(np.asarray(x))).numpy()


def elu(x, a):
    return np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x)


erf = torched(torch.erf)
SAFE = [v for v in EDGES if not (isinstance(v, float) and math.isinf(v))]
for op, f, lo, hi in (("exp", np.exp, -9, 9), ("log", np.log, 0.01, 50), ("sqrt", np.sqrt, 0, 50), ("tanh", np.tanh, -5, 5),
                      ("erf", erf, -4, 4), ("floor", np.floor, -9, 9), ("ceil", np.ceil, -9, 9), ("round", np.round, -9, 9),
                      ("sin", np.sin, -9, 9), ("cos", np.cos, -9, 9), ("asin", np.arcsin, -1, 1), ("acos", np.arccos, -1, 1),
                      ("atan", np.arctan, -9, 9), ("sinh", np.sinh, -5, 5), ("cosh", np.cosh, -5, 5),
                      ("asinh", np.arcsinh, -9, 9),
                      ("acosh", np.arccosh, 1, 9), ("atanh", np.arctanh, -0.9, 0.9), ("reciprocal", lambda x: 1 / x, 0.1, 4),
                      ("sigmoid", torched(torch.sigmoid), -9, 9), ("abs", np.abs, -4, 4), ("neg", np.negative, -4, 4),
                      ("relu", torched(torch.relu), -4, 4), ("softsign", lambda x: x / (1 + np.abs(x)), -9, 9)):
    bad = {"sin": [0.0, -0.0, 0.5, 100.0], "cos": [0.0, 0.5, 100.0], "softsign": SAFE}
    unary(op, f, lo, hi, edges=bad.get(op, EDGES))
unary("tan", np.tan, -1.4, 1.4, edges=[0.0, 1.0, -1.0])
unary("sign", np.sign, -4, 4)
unary("softplus", torched(torch.nn.functional.softplus), -15, 15, edges=[0.0, 1.0, -1.0, 88.0, math.inf, -math.inf])
unary("mish", torched(torch.nn.functional.mish), -9, 9, edges=[0.0, 1.0, -1.0, 50.0])
unary("silu", torched(torch.nn.functional.silu), -9, 9, edges=[0.0, 1.0, -1.0, 50.0])
unary("gelu", torched(torch.nn.functional.gelu), -5, 5, edges=[0.0, 1.0, -1.0, 50.0, -50.0])
unary("gelu_tanh", torched(lambda x: torch.nn.functional.gelu(x, approximate="tanh")), -5, 5, edges=[0.0, 1.0, -1.0, 30.0])
unary("hard_swish", torched(torch.nn.functional.hardswish), -5, 5, edges=[0.0, 3.0, -3.0, 50.0])
unary("hard_sigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1), -5, 5, "slope=0.2 offset=0.5", [0.0, 9.0, -9.0, math.inf])
unary("leaky_relu", lambda x: np.where(x < 0, 0.1 * x, x), -4, 4, "slope=0.1", SAFE)
unary("elu", lambda x: elu(x, 1.5), -4, 4, "alpha=1.5")
unary("celu", torched(lambda x: torch.nn.functional.celu(x, 2.0)), -4, 4, "alpha=2")
unary("selu", lambda x: 1.05 * elu(x, 1.67), -4, 4, "alpha=1.67 gamma=1.05")
unary("thresholded_relu", lambda x: np.where(x > 1, x, 0), -4, 4, "threshold=1", [0.0, 1.0, 1.5, math.inf])
for t in FLOATS:
    e = np.array(EDGES, np.float64).astype(DTYPES[t])
    case("isnan", "", [e], np.isnan(e))
    case("isinf", "positive=1 negative=1", [e], np.isinf(e))
    case("isinf", "positive=1", [e], np.isposinf(e))
    case("isinf", "negative=1", [e], np.isneginf(e))
for t in INTS:
    x = np.concatenate([whole(9, t), extremes(t)])
    with np.errstate(all="ignore"):
        for op, f in (("abs", np.abs), ("neg", np.negative), ("sign", np.sign), ("relu", lambda v: np.maximum(v, 0)),
                      ("bitwise_not", np.invert)):
            case(op, "", [x], f(x).astype(DTYPES[t]))
b = rng.random(9) < 0.5
case("not", "", [b], ~b)
for op in ("identity", "stop"):
    x = real((2, 3))
    case(op, "", [x], x)

# ---- two operands, broadcasting ----
SHAPES = (((2, 3), (3,)), ((4, 1), (2, 1, 3)), ((), (2, 2)), ((2, 0), (1,)), ((5,), (5,)))


def trunc_div(x, y):
    out = [0 if int(q) == 0 else int(abs(int(p)) // abs(int(q))) * (1 if (int(p) < 0) == (int(q) < 0) else -1)
           for p, q in zip(x.ravel(), y.ravel())]
    return wrapped(out, x.dtype).reshape(x.shape)


def by_int(f):
    def g(x, y):
        return wrapped([f(int(p), int(q)) for p, q in zip(x.ravel(), y.ravel())], x.dtype).reshape(x.shape)
    return g


def wrapped(values, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    v = [k & ((1 << bits) - 1) for k in values]
    if np.dtype(dtype).kind == "i": v = [k - (1 << bits) if k >> (bits - 1) else k for k in v]
    return np.array(v, dtype)


def binary(op, f, types, lo=-4, hi=4, out=None, exact=False, pairs=True):
    for t in types:
        for a, c in SHAPES:
            make = (lambda s: real(s, lo, hi, t)) if t in FLOATS else (lambda s: whole(s, t, lo, hi))
            x, y = make(a), make(c)
            bx, by = np.broadcast_arrays(x, y)
            with np.errstate(all="ignore"):
                z = f(bx.astype(np.float64), by.astype(np.float64)) if t in FLOATS and not exact else f(bx, by)
            case(op, "", [x, y], np.asarray(z).astype(out or DTYPES[t]), 0 if exact or out or t in INTS else TOLERANCE[t])
        if t in INTS and pairs:
            e = extremes(t)
            x, y = (np.ascontiguousarray(v).ravel() for v in np.meshgrid(e, e))
            with np.errstate(all="ignore"):
                case(op, "", [x, y], np.asarray(f(x, y)).astype(out or DTYPES[t]))


ALL = FLOATS + INTS
binary("add", np.add, ALL)
binary("sub", np.subtract, ALL)
binary("mul", np.multiply, ALL)
binary("div", np.divide, FLOATS, 0.5, 4)
binary("div", trunc_div, INTS, -9, 9)
binary("max", np.maximum, ALL, exact=True)
binary("min", np.minimum, ALL, exact=True)
binary("mod", by_int(lambda a, c: a % c if c else 0), INTS, -9, 9)
binary("mod", np.mod, ("f64",), 0.5, 9)
binary("fmod", np.fmod, ("f64",), 0.5, 9)
binary("fmod", by_int(lambda a, c: int(math.copysign(1, a)) * (abs(a) % abs(c)) if c else 0), INTS, -9, 9)
binary("pow", np.power, FLOATS, 0.1, 3)
binary("pow", by_int(lambda a, c: a ** c if c >= 0 else (1 if a == 1 else (-1) ** (c & 1) if a == -1 else 0)), INTS, -3, 5,
       pairs=False)
for op, f in (("equal", np.equal), ("less", np.less), ("less_or_equal", np.less_equal), ("greater", np.greater),
              ("greater_or_equal", np.greater_equal)):
    binary(op, f, ALL, -3, 3, out=np.bool_)
    e = np.array(FEW, np.float32)
    x, y = (np.ascontiguousarray(v).ravel() for v in np.meshgrid(e, e))
    case(op, "", [x, y], f(x, y))
for op, f in (("max", np.maximum), ("min", np.minimum), ("add", np.add), ("mul", np.multiply)):
    e = np.array(FEW, np.float32)
    x, y = (np.ascontiguousarray(v).ravel() for v in np.meshgrid(e, e))
    with np.errstate(all="ignore"): case(op, "", [x, y], f(x, y), 1e-6)
for op, f in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)):
    binary(op, f, INTS, -99, 99)
for op, f in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
    p, q = np.array([[0], [1]], bool), np.array([0, 1], bool)
    case(op, "", [p, q], f(p, q))
case("equal", "", [b, ~b], b == ~b)
for t in INTS:
    bits = np.iinfo(DTYPES[t]).bits
    x = np.tile(np.concatenate([whole(5, t, 0, 99), extremes(t)]), 3)
    y = rng.integers(0, bits, x.shape).astype(DTYPES[t])
    case("shift_left", "", [x, y], by_int(lambda a, c: a << c)(x, y))
    case("shift_right", "", [x, y], by_int(lambda a, c: a >> c)(x, y))
x = np.array([1, 2 ** 63, 2 ** 64 - 1], np.uint64)
case("shift_left", "", [x, np.array(64, np.uint64)], x * 0)
case("shift_right", "", [x, np.array(99, np.uint64)], x * 0)
for shape, slope in (((2, 3, 4), (3, 1)), ((5,), (1,)), ((2, 2), (2, 2))):
    x, y = real(shape), real(slope)
    case("prelu", "", [x, y], np.where(x < 0, x * y, x).astype(np.float32), 1e-6)

# ---- three operands ----
for t in ALL:
    make = (lambda s: real(s, t=t)) if t in FLOATS else (lambda s: whole(s, t))
    c = rng.random((3, 1)) < 0.5
    x, y = make((4,)), make((2, 3, 4))
    case("where", "", [c, x, y], np.where(c, x, y))
    x, lo, hi = make((3, 5)), np.array(1, DTYPES[t]), np.array(3, DTYPES[t])
    case("clip", "", [x, lo, hi], np.clip(x, lo, hi))
    case("clip", "", [x, hi, lo], np.minimum(np.maximum(x, hi), lo))
e = np.array(EDGES, np.float32)
case("clip", "", [e, np.array(-1, np.float32), np.array(2, np.float32)], np.clip(e, -1, 2))
case("where", "", [b, b, ~b], np.where(b, b, ~b))

# ---- casts: all pairs, inside and outside of the range of the result ----
for s in ALL + ("bool",):
    for t in ALL + ("bool",):
        if s == "bool": x = b
        elif s in FLOATS:
            below = [-0.5, -1, -1.5, -99.9] if t not in INTS or t[0] == "i" else []
            x = np.array([0, 0.4, 0.6, 1, 1.5, 2.5, 99.9] + below, DTYPES[s])
        else: x = np.concatenate([whole(5, s), extremes(s)])
        with np.errstate(all="ignore"): case("cast", f"to={t}", [x], x.astype(DTYPES[t]))


# ---- what moves data; through ONNX's own evaluator where NumPy has no such function ----
def onnx_run(kind, inputs, outputs=1, opset=18, **attrs):
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    node = helper.make_node(kind, names, [f"y{k}" for k in range(outputs)], **attrs)
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, inputs) if n]
    out = [helper.make_tensor_value_info(f"y{k}", TensorProto.UNDEFINED, None) for k in range(outputs)]
    model = helper.make_model(helper.make_graph([node], "g", info, out), opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, {n: x for n, x in zip(names, inputs) if n})


def i64(*v):
    return np.array(v, np.int64)


def moved(shape, t="f32"):
    return real(shape, t=t) if t in FLOATS else whole(shape, t, 0, 99) if t != "bool" else rng.random(shape) < 0.5


for t in ("f32", "f16", "i64", "u8", "bool", "f64"):
    x = moved((2, 3, 4), t)
    for s in ((4, 6), (0, -1), (2, 0, 2, -1), (-1,), (1, 24, 1), (2, 3, 2, 2)):
        case("reshape", "", [x, Host(s)], onnx_run("Reshape", [x, i64(*s)])[0])
    for axis in (0, 1, 2, 3, -1): case("flatten", f"axis={axis}", [x], onnx_run("Flatten", [x], axis=axis)[0])
    for perm in ((0, 2, 1), (2, 1, 0), (1, 2, 0)): case("transpose", f"perm={','.join(map(str, perm))}", [x], x.transpose(perm))
    case("transpose", "", [x], x.T)
    case("unsqueeze", "", [x, Host((0, -1))], x[None, ..., None])
    case("unsqueeze", "", [x, Host((2,))], x[:, :, None])
    y = moved((1, 3, 1, 2), t)
    case("squeeze", "", [y, Host((0, -2))], y.reshape(3, 2))
    case("squeeze", "", [y, Host((2,))], y.reshape(1, 3, 2))
    case("squeeze", "", [y], y.squeeze())
    for s in ((2, 3, 4), (5, 2, 3, 4), (1, 1), (3, 1)):
        case("expand", "", [x, Host(s)], np.broadcast_to(x, np.broadcast_shapes(x.shape, s)))
    case("expand", "", [y, Host((2, 1, 4, 1))], np.broadcast_to(y, (2, 3, 4, 2)))
    case("concat", "axis=1", [x, moved((2, 0, 4), t), x[:, :1]], np.concatenate([x, x[:, :1]], 1))
    case("concat", "axis=-1", [x, x], np.concatenate([x, x], -1))
    case("concat", "", [x], x)
    case("split", "axis=2", [x, Host((1, 0, 3))], [x[..., :1], x[..., 1:1], x[..., 1:]])
    case("split", "axis=-1 parts=2", [x], np.split(x, 2, -1))
    case("split", "axis=2 parts=3", [x], onnx_run("Split", [x, None], 3, axis=2, num_outputs=3))
    case("tile", "", [x, Host((2, 1, 3))], np.tile(x, (2, 1, 3)))
    case("shape", "", [x], i64(2, 3, 4))
    case("shape", "start=1 without=1", [x], i64(3))
    case("size", "", [x], np.array(24))
    for axis in (0, 1, 2):
        n = x.shape[axis]
        for k in (i64(0, -1, 1), np.array([[0, 1], [-n, n - 1]], np.int32), np.array(-1), np.zeros((0, 2), np.int64)):
            case("gather", f"axis={axis}", [x, k], np.take(x, k, axis))
    big = moved((5, 6), t)
    for a in (((1,), (4,), (0,)), ((0, 5), (5, 0), (0, 1), (2, -2)), ((-3,), (-1,), (1,)), ((99,), (-99,), (0,), (-1,)),
              ((3,), (1,)), ((0, 1), (2 ** 63 - 1, -1)), ((-1,), (-2 ** 63,), (1,), (-1,)), ((4, 0), (99, 3), (1, 0), (3, 1)),
              ((5,), (9,), (0,))):
        case("slice", "", [big] + [Host(v) for v in a], onnx_run("Slice", [big] + [i64(*v) for v in a])[0])
for t in ("f32", "i64"):
    x = moved((3, 4), t)
    for mode in ("constant", "reflect", "edge", "wrap"):
        for pads in ((1, 2, 0, 3), (0, 1, 2, 0), (2, 3, 2, 3)):
            case("pad", f"mode={mode}", [x, Host(pads)], onnx_run("Pad", [x, i64(*pads)], mode=mode, opset=19)[0])
        case("pad", f"mode={mode}", [x, Host((2, 1)), None, Host((-1,))],
             onnx_run("Pad", [x, i64(2, 1), None, i64(-1)], mode=mode, opset=19)[0])
    v = np.array(7, x.dtype)
    case("pad", "", [x, Host((1, 0, 1, 2)), v], np.pad(x, ((1, 1), (0, 2)), constant_values=7))
    case("pad", "", [x, Host((-1, 1, 0, -2)), v], np.pad(x[1:, :2], ((0, 0), (1, 0)), constant_values=7))
    case("pad", "mode=reflect", [x, Host((7, 9, 5, 8))], np.pad(x, ((7, 5), (9, 8)), mode="reflect"))
for a in ((2, 11, 3), (5, -1, -2), (3, 3, 1), (0, 40, 1), (9, 0, 1)): case("range", "", [Host([k]) for k in a], np.arange(*a))
for t in ("f32", "i64"):
    x = moved((3, 4), t)
    for axis in (0, 1):
        k = rng.integers(-x.shape[axis], x.shape[axis], (2, 3))
        picked = torch.gather(torch.tensor(x), axis, torch.tensor(k % x.shape[axis])).numpy()
        case("gather_elements", f"axis={axis}", [x, k], picked)
        k = np.array([[0, -1, 2], [1, 0, 0]])
        for how in ("none", "add", "mul", "min", "max"):
            u = moved((2, 3), t)
            case("scatter_elements", f"axis={axis} reduction={how}", [x, k, u],
                 onnx_run("ScatterElements", [x, k, u], axis=axis, reduction=how)[0], 1e-6)
    y = moved((2, 3, 4), t)
    for k, batch in ((np.array([[0, 1], [1, -1]]), 0), (np.array([[[0, 1, 2]], [[1, 2, 3]]]), 0), (np.array([[1], [0]]), 1)):
        case("gather_nd", f"batch_dims={batch}", [y, k], onnx_run("GatherND", [y, k], batch_dims=batch)[0])
    for how in ("none", "add", "mul", "min", "max"):
        k, u = np.array([[0, 1], [1, 2], [0, 1]]), moved((3, 4), t)
        case("scatter_nd", f"reduction={how}", [y, k, u], onnx_run("ScatterND", [y, k, u], reduction=how)[0], 1e-6)
    for k in (-1, 0, 2):
        case("trilu", "", [y, Host([k])], np.triu(y, k))
        case("trilu", "lower", [y, Host([k])], np.tril(y, k))
    for axis in (0, 1, -1):
        for a in ("", "exclusive", "reverse", "exclusive reverse"):
            z = onnx_run("CumSum", [y, np.array(axis)], exclusive=int("ex" in a), reverse=int("rev" in a))[0]
            case("cum_sum", a, [y, Host([axis])], z, 1e-5)
    for k in (-1, 0, 1): case("eye_like", f"k={k} dtype=f64", [x], np.eye(3, 4, k))
    k, v = np.array([[0, 2], [-1, 9]]), np.array([3, 7], x.dtype)
    for axis in (0, 1, -1):
        hot = np.moveaxis(np.where((k % 4 == np.arange(4).reshape(4, 1, 1)) & (k < 4), v[1], v[0]), 0, axis)
        case("one_hot", f"axis={axis}", [k, Host([4]), v], hot)
    y = moved((1, 8, 2, 3), t)
    case("depth_to_space", "block=2", [y], onnx_run("DepthToSpace", [y], blocksize=2, mode="DCR")[0])
    case("depth_to_space", "block=2 channels_first", [y], onnx_run("DepthToSpace", [y], blocksize=2, mode="CRD")[0])
    y = moved((1, 2, 4, 6), t)
    case("space_to_depth", "block=2", [y], onnx_run("SpaceToDepth", [y], blocksize=2)[0])
    z = torch.nn.functional.pixel_unshuffle(torch.tensor(y), 2).numpy()
    case("space_to_depth", "block=2 channels_first", [y], z)

# ---- special functions, signs, windows: a generator of their own, so that what stands above stays as it is ----

rng = np.random.default_rng(23)
NEAR = [v for v in EDGES if abs(v) not in (1e30, 88.0)]
for op, f, lo, hi, edges in (
        ("log1p", np.log1p, -0.9, 9, SAFE), ("expm1", np.expm1, -4, 4, SAFE), ("log2", np.log2, 0.01, 50, EDGES),
        ("log10", np.log10, 0.01, 50, EDGES), ("exp2", np.exp2, -9, 9, NEAR), ("trunc", np.trunc, -9, 9, EDGES),
        ("erfc", torched(torch.special.erfc), -4, 4, NEAR), ("erfinv", torched(torch.special.erfinv), -0.99, 0.99, NEAR),
        ("lgamma", torched(torch.special.gammaln), 0.1, 20, [0.0, 0.5, 1.0, 2.0, -0.5, -2.5, math.inf, math.nan]),
        ("digamma", torched(torch.special.digamma), 0.1, 20, [0.5, 2.0, -0.5, -2.5, math.inf, math.nan])):
    unary(op, f, lo, hi, edges=edges)
for op, f in (("atan2", np.arctan2), ("hypot", np.hypot), ("copysign", np.copysign)):
    binary(op, f, FLOATS, exact=op == "copysign")
for t in ("f32", "f64"):
    for x, y in ((real((3, 7), t=t), real((3, 7), t=t)), (np.array(FEW, DTYPES[t]), np.array(FEW[::-1], DTYPES[t]))):
        case("nextafter", "", [x, y], np.nextafter(x, y))
for t in FLOATS:
    x = np.array(EDGES, np.float64).astype(DTYPES[t])
    case("signbit", "", [x], np.signbit(x))
for t in ("f32", "i64"):
    x = moved((4, 5), t)
    lines_of = np.lib.stride_tricks.as_strided
    for sizes, strides, offset in (((3, 2), (5, 2), 1), ((4, 3), (2, 1), 0), ((2, 2), (0, 3), 7), ((5, 4), (1, 5), 0)):
        flat = np.ascontiguousarray(x).ravel()[offset:]
        y = lines_of(flat, sizes, [k * x.itemsize for k in strides]).copy()
        said = f"sizes={sizes[0]},{sizes[1]} strides={strides[0]},{strides[1]} offset={offset}"
        case("as_strided", said, [x], y)
    new = moved((3, 2), t)
    z = x.copy()
    lines_of(z.ravel()[1:], (3, 2), [5 * x.itemsize, 2 * x.itemsize])[:] = new
    case("as_strided_assign", "sizes=3,2 strides=5,2 offset=1", [x, new], z)
    for dims in ((7,), (5, 5), (2, 2, 5), (0,)):
        case("resize", "", [x, Host(dims)], np.resize(np.concatenate([x.ravel(), np.zeros(9, x.dtype)]), dims))
for mode, its in (("linear", "bilinear"), ("nearest", "nearest"), ("cubic", "bicubic")):
    for padding in ("zeros", "border", "reflection"):
        for align in (False, True):
            x, grid = real((1, 2, 5, 6), t="f64"), real((1, 4, 3, 2), -1.7, 1.7, "f64")
            y = torch.nn.functional.grid_sample(torch.from_numpy(x), torch.from_numpy(grid), its, padding, align)
            said = f"mode={mode} padding={padding}" + " align_corners" * align
            case("grid_sample", said, [x, grid], y.numpy(), 1e-9)

with open("tests/golden/ops.txt", "w") as f: f.write("\n".join(lines) + "\n")
print(sum(k.startswith("op ") for k in lines), "cases")
