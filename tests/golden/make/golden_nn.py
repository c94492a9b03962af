#!/usr/bin/env python3
"""Writes tests/golden/nn.txt: independent values (torch in f64, NumPy) for convolution, pooling, products, reductions, softmax
and normalization.  tests/ops/test_golden_nn.c reads it.  Run it again only to add cases; the numbers are checked in.

  op NAME TOLERANCE [ATTRIBUTES]     then its operands in order, then "end"
  in TYPE : NUMBERS                  an input
  host NUMBERS                       an i64 input that steers shapes
  none                               an optional input that is absent
  out TYPE : NUMBERS                 what must come out, within TOLERANCE * max(1, |number|)
"""
import numpy as np
import torch
import torch.nn.functional as F

rng = np.random.default_rng(7)
lines = ["# Written by tests/golden/make/golden_nn.py."]
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "i32": np.int32, "i64": np.int64,
          "u8": np.uint8, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}


def real(*shape, lo=-1.0, hi=1.0, t="f32"):
    return rng.uniform(lo, hi, shape).astype(DTYPES[t])


def whole(*shape, lo=-9, hi=9, t="i32"):
    return rng.integers(lo, hi, shape, endpoint=True, dtype=np.uint64 if hi >= 2**63 else np.int64).astype(DTYPES[t])


class Host(list):
    pass


def text(a):
    a = np.asarray(a)
    kind = a.dtype.kind
    numbers = (f"{float(v):.9g}" if kind == "f" else str(int(v)) for v in a.ravel())
    return f"{NAMES[a.dtype]}[{','.join(map(str, a.shape))}] : {' '.join(numbers)}".rstrip()


def case(op, attrs, inputs, outputs, tolerance=1e-6):
    lines.append(f"op {op} {tolerance:g} {attrs}".rstrip())
    for x in inputs:
        if x is None:
            lines.append("none")
        elif isinstance(x, Host):
            lines.append(("host " + " ".join(map(str, x))).rstrip())
        else:
            lines.append("in " + text(x))
    for y in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
        lines.append("out " + text(y))
    lines.append("end")


def d(x):                                   # torch, in f64
    return None if x is None else torch.tensor(np.asarray(x, dtype=np.float64))


def f32(t):
    return np.asarray(t, dtype=np.float32)


# ---- convolution: asymmetric padding is F.pad first ----
def conv(rank, xs, ws, bias=True, stride=None, pad=None, dilation=None, groups=1, auto=None, t="f32", tolerance=1e-5):
    x, w = real(*xs, t=t), real(*ws, t=t)
    b = real(ws[0], t=t) if bias else None
    s, e, p = stride or [1] * rank, dilation or [1] * rank, pad or [0] * (2 * rank)
    attrs = ""
    if stride: attrs += " stride=" + ",".join(map(str, stride))
    if pad: attrs += " pad=" + ",".join(map(str, pad))
    if dilation: attrs += " dilation=" + ",".join(map(str, dilation))
    if groups != 1: attrs += f" groups={groups}"
    if auto:
        attrs += f" auto_pad={auto}"
        p = [0] * (2 * rank)
        for k in range(rank if auto != "valid" else 0):
            total = max(((xs[2 + k] + s[k] - 1) // s[k] - 1) * s[k] + (ws[2 + k] - 1) * e[k] + 1 - xs[2 + k], 0)
            small, large = total // 2, total - total // 2
            p[k], p[rank + k] = (small, large) if auto == "same_upper" else (large, small)
    flat = [v for k in reversed(range(rank)) for v in (p[k], p[rank + k])]
    f = [F.conv1d, F.conv2d, F.conv3d][rank - 1]
    y = f(F.pad(d(x), flat), d(w), d(b), stride=s, dilation=e, groups=groups)
    case(f"conv{rank}d", attrs.strip(), [x, w, b], np.asarray(y).astype(DTYPES[t]), tolerance)


conv(2, (1, 1, 4, 5), (1, 1, 3, 3), bias=False)
conv(2, (2, 3, 6, 5), (2, 3, 3, 2), stride=[2, 1], pad=[1, 0, 2, 1])
conv(2, (1, 4, 5, 5), (4, 2, 3, 3), pad=[1, 1, 1, 1], groups=2)
conv(2, (1, 3, 7, 6), (3, 1, 3, 3), stride=[2, 2], pad=[1, 1, 1, 1], groups=3)
conv(2, (1, 3, 7, 6), (6, 1, 3, 3), pad=[0, 1, 1, 0], groups=3, bias=False)
conv(2, (1, 2, 9, 8), (2, 2, 3, 2), pad=[2, 0, 1, 3], dilation=[3, 2])
conv(2, (1, 5, 3, 4), (3, 5, 1, 1))
conv(2, (1, 2, 3, 3), (2, 2, 3, 3), pad=[4, 4, 4, 4])
conv(2, (1, 2, 7, 8), (2, 2, 4, 3), stride=[2, 3], auto="same_upper")
conv(2, (1, 2, 7, 8), (2, 2, 4, 3), stride=[2, 3], auto="same_lower")
conv(2, (1, 2, 7, 8), (2, 2, 4, 3), stride=[2, 3], auto="valid")
conv(2, (1, 2, 4, 4), (2, 2, 3, 3), t="f64", tolerance=1e-8)
conv(2, (1, 2, 4, 4), (2, 2, 3, 3), t="f16", tolerance=4e-3)
case("conv2d", "", [np.zeros((0, 2, 4, 4), np.float32), real(3, 2, 3, 3), real(3)], np.zeros((0, 3, 2, 2), np.float32))
case("conv2d", "", [np.zeros((1, 0, 4, 4), np.float32), np.zeros((3, 0, 3, 3), np.float32), np.float32([1, 2, 3])],
     f32(np.broadcast_to(np.reshape([1, 2, 3], (1, 3, 1, 1)), (1, 3, 2, 2))))
conv(1, (2, 3, 9), (4, 3, 3), stride=[2], pad=[1, 2])
conv(1, (1, 4, 11), (2, 2, 3), dilation=[3], groups=2, bias=False)
conv(1, (1, 2, 8), (2, 2, 4), stride=[3], auto="same_lower")
conv(3, (1, 2, 4, 5, 4), (2, 2, 2, 3, 3), stride=[1, 2, 1], pad=[1, 0, 1, 0, 1, 2])
conv(3, (1, 2, 5, 3, 4), (4, 1, 3, 1, 2), dilation=[2, 1, 2], groups=2, bias=False)
conv(3, (1, 1, 3, 4, 5), (1, 1, 2, 2, 2), stride=[2, 2, 2], auto="same_upper")


def conv_transpose(rank, xs, ws, stride, pad=0, output_pad=0, dilation=1, groups=1, bias=True):     # symmetric padding: torch's
    x, w = real(*xs), real(*ws)
    b = real(ws[1] * groups) if bias else None
    f = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1]
    y = f(d(x), d(w), d(b), stride=stride, padding=pad, output_padding=output_pad, dilation=dilation, groups=groups)
    many = lambda v, n=rank: ",".join(map(str, v if isinstance(v, (list, tuple)) else [v] * n))
    attrs = f"stride={many(stride)} pad={many(pad, 2 * rank)} output_pad={many(output_pad)} dilation={many(dilation)} groups={groups}"
    case(f"conv_transpose{rank}d", attrs, [x, w, b], f32(y), 1e-5)
    return x, w, b, f32(y)


conv_transpose(2, (1, 1, 3, 3), (1, 2, 3, 3), 1, bias=False)
conv_transpose(2, (2, 4, 3, 4), (4, 2, 3, 2), [2, 3], 1, [1, 2])
conv_transpose(2, (1, 4, 3, 3), (4, 1, 3, 3), 2, 1, 1, groups=2)
conv_transpose(2, (1, 2, 3, 4), (2, 2, 2, 3), [1, 2], 2, 0, [2, 3])
conv_transpose(1, (2, 3, 4), (3, 2, 4), 3, 1, 2)
conv_transpose(3, (1, 2, 2, 3, 2), (2, 2, 2, 3, 2), [2, 1, 2], 1, [1, 0, 1])
x, w, b, y = conv_transpose(2, (1, 2, 3, 3), (2, 2, 3, 3), 2)                                       # 7 x 7; parts of it:
case("conv_transpose2d", "stride=2,2 pad=1,0,0,2", [x, w, b], y[:, :, 1:, :-2], 1e-5)
case("conv_transpose2d", "stride=2,2 auto_pad=same_upper", [x, w, b], y[:, :, :-1, :-1], 1e-5)
case("conv_transpose2d", "stride=2,2 auto_pad=same_lower", [x, w, b], y[:, :, 1:, 1:], 1e-5)
case("conv_transpose2d", "stride=2,2 output_size=5,4", [x, w, b], y[:, :, 1:-1, 2:-1], 1e-5)
case("conv_transpose2d", "stride=2,2 output_size=8,7", [x, w, b],
     np.concatenate([y, np.broadcast_to(b.reshape(1, 2, 1, 1), (1, 2, 1, 7))], axis=2), 1e-5)


# ---- pooling, by its definition: every tap asked whether it lies inside ----
def pool(kind, x, kernel, stride=None, pad=None, dilation=None, ceil=False, include=False, column=False, auto=None, t="f32"):
    rank = x.ndim - 2
    s, p, e = stride or list(kernel), pad or [0] * (2 * rank), dilation or [1] * rank
    out, where = [], []
    for k in range(rank):
        n, span = x.shape[2 + k], (kernel[k] - 1) * e[k] + 1
        if auto in ("same_upper", "same_lower"):
            o = -(-n // s[k])
            total = max((o - 1) * s[k] + span - n, 0)
            p[k], p[rank + k] = (total // 2, total - total // 2) if auto == "same_upper" else (total - total // 2, total // 2)
        else:
            room = n + p[k] + p[rank + k] - span
            o = (-(-room // s[k]) if ceil else room // s[k]) + 1
            if ceil and (o - 1) * s[k] >= n + p[k]:
                o -= 1
        out.append(o)
    y = np.zeros(x.shape[:2] + tuple(out), np.float64 if kind == "avg" else x.dtype)
    index = np.zeros(y.shape, np.int64)
    space = x.shape[2:]
    for at in np.ndindex(*y.shape):
        plane, values, count = x[at[:2]], [], 0
        for tap in np.ndindex(*kernel):
            pos = [at[2 + k] * s[k] + tap[k] * e[k] - p[k] for k in range(rank)]
            if all(pos[k] < space[k] + p[rank + k] for k in range(rank)):
                count += 1
            if all(0 <= pos[k] < space[k] for k in range(rank)):
                values.append((plane[tuple(pos)], tuple(pos)))
        if kind == "avg":
            y[at] = sum(float(v) for v, _ in values) / (count if include else len(values))
        else:
            y[at] = max(v for v, _ in values)
            first = next(pos for v, pos in values if v == y[at])
            order = "F" if column else "C"
            index[at] = (at[0] * x.shape[1] + at[1]) * int(np.prod(space)) + int(np.ravel_multi_index(first, space, order=order))
    attrs = "kernel=" + ",".join(map(str, kernel))
    for name, v in (("stride", stride), ("pad", None if auto else pad), ("dilation", dilation)):
        if v: attrs += f" {name}=" + ",".join(map(str, v))
    for name, v in (("ceil_mode", ceil), ("count_include_pad", include), ("column_major", column)):
        if v: attrs += " " + name
    if auto: attrs += " auto_pad=" + auto
    if kind == "avg":
        case(f"avg_pool{rank}d", attrs, [x], y.astype(x.dtype))
    else:
        case(f"max_pool{rank}d", attrs, [x], [y, index], 0)


for kind in ("max", "avg"):
    pool(kind, real(1, 2, 6, 5), [2, 2])
    pool(kind, real(2, 2, 6, 5), [3, 3], stride=[2, 2], pad=[1, 1, 1, 1])
    pool(kind, real(1, 2, 7, 6), [3, 2], stride=[2, 3], pad=[1, 0, 0, 1], ceil=True)
    pool(kind, real(1, 1, 4, 4), [1, 1], stride=[3, 3], pad=[0, 0, 0, 0], ceil=True)
    pool(kind, real(1, 1, 5, 5), [2, 2], stride=[2, 2], pad=[1, 1, 1, 1], ceil=True)
    pool(kind, real(1, 2, 8, 7), [2, 3], stride=[1, 1], dilation=[3, 2])
    pool(kind, real(1, 2, 5, 7), [3, 2], stride=[2, 2], auto="same_upper")
    pool(kind, real(1, 2, 5, 7), [2, 4], stride=[2, 1], auto="same_lower")
    pool(kind, real(2, 2, 7), [3], stride=[2], pad=[1, 1])
    pool(kind, real(1, 2, 8), [3], stride=[3], pad=[0, 2], ceil=True)
    pool(kind, real(1, 2, 4, 5, 4), [2, 3, 2], stride=[1, 2, 2], pad=[1, 0, 1, 0, 1, 1])
    pool(kind, real(1, 1, 5, 5, 5), [2, 2, 2], stride=[2, 2, 2], dilation=[2, 1, 3], ceil=True)
pool("avg", real(1, 2, 7, 6), [3, 2], stride=[2, 3], pad=[1, 0, 0, 1], ceil=True, include=True)
pool("avg", real(1, 2, 5, 5), [3, 3], stride=[2, 2], pad=[1, 1, 1, 1], include=True)
pool("avg", real(1, 2, 9), [2], stride=[3], pad=[1, 1], dilation=[3], include=True, ceil=True)
pool("avg", real(1, 1, 4, 4, 4), [3, 3, 3], stride=[2, 2, 2], pad=[1, 1, 1, 1, 1, 1], include=True)
pool("max", real(1, 2, 5, 6), [2, 2], column=True)
pool("max", real(1, 2, 3, 4, 5), [2, 2, 2], column=True)
pool("max", whole(1, 2, 5, 5, lo=0, hi=255, t="u8"), [2, 2], stride=[1, 1])
pool("max", whole(1, 2, 5, 5, lo=-128, hi=-1, t="i8"), [3, 3], stride=[2, 2], pad=[1, 1, 1, 1])
pool("max", real(1, 1, 3, 3) * 0 + 1, [2, 2], stride=[1, 1])

# ---- products ----
for a, b in (((3, 4), (4, 5)), ((2, 1, 3, 4), (3, 4, 2)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((5,), (5,)), ((1, 3, 0), (0, 2)),
             ((0, 3), (3, 2)), ((2, 17), (17, 33))):
    x, y = real(*a), real(*b)
    case("matmul", "", [x, y], f32(np.matmul(x.astype(np.float64), y.astype(np.float64))), 1e-5)
x, y = whole(3, 4, lo=-2**31, hi=2**31 - 1), whole(4, 2, lo=-2**31, hi=2**31 - 1)
case("matmul", "", [x, y], np.matmul(x, y), 0)
x, y = whole(2, 3, lo=0, hi=2**63, t="u64"), whole(3, 2, lo=0, hi=2**63, t="u64")
case("matmul", "", [x, y], np.matmul(x, y), 0)

for ta, tb, alpha, beta, c in ((0, 0, 1, 1, None), (0, 1, 1, 1, (3,)), (1, 0, 0.5, 2, (5, 1)), (1, 1, 1, -1, ()), (0, 0, 2, 1, (1, 3)),
                               (0, 1, 1, 0.25, (5, 3))):
    a, b = real(*((4, 5) if ta else (5, 4))), real(*((3, 4) if tb else (4, 3)))
    cc = None if c is None else real(*c)
    y = alpha * (d(a).T if ta else d(a)) @ (d(b).T if tb else d(b)) + (0 if cc is None else beta * d(cc))
    attrs = " ".join(filter(None, ["trans_a" if ta else "", "trans_b" if tb else "", f"alpha={alpha}" if alpha != 1 else "",
                                   f"beta={beta}" if beta != 1 else ""]))
    case("gemm", attrs, [a, b, cc], f32(y), 1e-5)
a, b, c = whole(3, 4), whole(4, 2), whole(2)
case("gemm", "", [a, b, c], a @ b + c, 0)
case("gemm", "", [np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), np.float32([1, 2, 3])], np.float32([[1, 2, 3]] * 2), 0)

for xs, bias in (((5, 7), True), ((2, 3, 7), True), ((7,), False), ((0, 7), True)):
    x, w, b = real(*xs), real(4, 7), real(4) if bias else None
    case("linear", "", [x, w, b], f32(F.linear(d(x), d(w), d(b))), 1e-5)

# ---- reductions ----
np_ops = {
    "sum": np.sum, "mean": np.mean, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod,
    "reduce_l1": lambda x, **k: np.sum(np.abs(x), **k), "reduce_l2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "reduce_sum_square": lambda x, **k: np.sum(x * x, **k), "reduce_log_sum": lambda x, **k: np.log(np.sum(x, **k)),
    "reduce_log_sum_exp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
}
for op, f in np_ops.items():
    for axes, keep in (([1], True), ([0, -1], False), (None, False), (None, True), ([2], False)):
        x = real(3, 2, 4, lo=0.2 if op == "reduce_log_sum" else -1)
        y = f(x.astype(np.float64), axis=None if axes is None else tuple(axes), keepdims=keep)
        case(op, "keep" if keep else "", [x, None if axes is None else Host(axes)], f32(y), 2e-6)
    x = np.float32(0.7)
    case(op, "", [x, None], f32(f(np.float64(x))), 2e-6)
    x = whole(3, 4, lo=1)
    y = f(x.astype(np.float64), axis=0)
    case(op, "", [x, Host([0])], np.trunc(y).astype(np.int32), 0)
    empty = {"sum": 0, "reduce_max": -np.inf, "reduce_min": np.inf, "reduce_prod": 1, "reduce_l1": 0, "reduce_l2": 0,
             "reduce_sum_square": 0, "reduce_log_sum": -np.inf, "reduce_log_sum_exp": -np.inf, "mean": np.nan}[op]
    case(op, "", [np.zeros((2, 0, 3), np.float32), Host([1])], np.full((2, 3), empty, np.float32), 0)
    case(op, "keep", [np.zeros((0, 3), np.float32), Host([1])], np.zeros((0, 1), np.float32), 0)
x = real(2, 3)
case("sum", "noop_with_empty_axes", [x, None], x, 0)
case("sum", "noop_with_empty_axes keep", [x, Host([])], x, 0)
case("sum", "keep", [x, Host([])], f32(np.sum(x.astype(np.float64), keepdims=True)))
case("reduce_sum_square", "noop_with_empty_axes", [x, None], x * x)
x = whole(3, 4, lo=0, hi=1, t="bool")
case("reduce_max", "", [x, Host([0])], np.max(x, axis=0), 0)
case("reduce_min", "", [x, Host([1])], np.min(x, axis=1), 0)
x = whole(3, 4, lo=0, hi=2**64 - 1, t="u64")
case("reduce_max", "", [x, Host([0])], np.max(x, axis=0), 0)
case("reduce_min", "", [x, Host([0])], np.min(x, axis=0), 0)
x = np.float32([[1, np.nan, 2], [3, 4, np.inf], [-np.inf, -1, -2]])
case("reduce_max", "", [x, Host([1])], np.max(x, axis=1), 0)
case("reduce_min", "", [x, Host([1])], np.min(x, axis=1), 0)
case("reduce_max", "", [np.zeros((2, 0), np.int8), Host([1])], np.int8([-128, -128]), 0)
case("reduce_min", "", [np.zeros((2, 0), np.uint8), Host([1])], np.uint8([255, 255]), 0)
case("reduce_log_sum_exp", "", [np.float32([[1000, 1000.5], [-2000, -2000]]), Host([1])],
     f32(np.logaddexp([1000, -2000.0], [1000.5, -2000.0])), 1e-6)
case("reduce_log_sum_exp", "", [np.float32([[-np.inf, -np.inf], [np.inf, 1]]), Host([1])], np.float32([-np.inf, np.inf]), 0)
for xs, like in (((3, 2, 4), (2, 1)), ((3, 2, 4), (3, 2, 4)), ((3, 2), ()), ((2, 0), (1, 0)), ((0, 3), (3,))):
    x, l = real(*xs), real(*like)
    y = x.astype(np.float64).sum(axis=tuple(range(len(xs) - len(like))))
    y = y.sum(axis=tuple(k for k in range(len(like)) if like[k] == 1), keepdims=True)
    case("sum_like", "", [x, l], f32(y).reshape(like))

for op, f in (("arg_max", np.argmax), ("arg_min", np.argmin)):
    for x, axis in ((real(3, 2, 4), 1), (real(3, 2, 4), -1), (whole(4, 6, lo=0, hi=2), 1), (whole(6, 3, lo=0, hi=2**64 - 1, t="u64"), 0)):
        case(op, f"axis={axis}", [x], f(x, axis=axis), 0)
        case(op, f"axis={axis} keep select_last_index", [x],
             np.expand_dims(x.shape[axis] - 1 - f(np.flip(x, axis), axis=axis), axis), 0)
    x = np.float32([[1, np.nan, 7, np.nan], [-np.inf, 3, np.inf, 2]])
    case(op, "axis=1", [x], f(x, axis=1), 0)

# ---- softmax ----
for axis, shape, lo, hi in ((1, (2, 5), -4, 4), (0, (3, 2, 2), -4, 4), (-1, (2, 7), -90, 90), (1, (2, 3, 2), -1, 1)):
    x = real(*shape, lo=lo, hi=hi)
    case("softmax", f"axis={axis}", [x], f32(torch.softmax(d(x), axis)))
    case("log_softmax", f"axis={axis}", [x], f32(torch.log_softmax(d(x), axis)))
    case("hardmax", f"axis={axis}", [x], f32(np.where(np.arange(x.shape[axis]).reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])
                                                == np.expand_dims(np.argmax(x, axis), axis), 1, 0)), 0)
case("softmax", "axis=0", [np.float32(3)], np.float32(1), 0)
case("softmax", "axis=0", [np.zeros((0, 3), np.float32)], np.zeros((0, 3), np.float32), 0)

# ---- normalization ----
for shape in ((2, 3, 2, 4), (4, 3), (2, 3, 5)):
    x, s, b, m, v = real(*shape), real(3), real(3), real(3), real(3, lo=0.1, hi=2)
    case("batch_norm", "epsilon=1e-05", [x, s, b, m, v], [f32(F.batch_norm(d(x), d(m), d(v), d(s), d(b), eps=1e-5)), m, v], 1e-5)
    rest = tuple(k for k in range(x.ndim) if k != 1)
    xm, xv = x.astype(np.float64).mean(axis=rest), x.astype(np.float64).var(axis=rest)
    case("batch_norm", "epsilon=0.01 momentum=0.8 training_mode", [x, s, b, m, v],
         [f32(F.batch_norm(d(x), d(xm), d(xv), d(s), d(b), eps=1e-2)), f32(m * 0.8 + xm * 0.2), f32(v * 0.8 + xv * 0.2)], 1e-5)
for axis, scale, bias in ((-1, (4,), (4,)), (1, (3, 4), (3, 4)), (0, None, None), (1, (3, 1), (4,)), (2, (), None)):
    x = real(2, 3, 4)
    s, b = (None if t is None else real(*t) for t in (scale, bias))
    shape = x.shape[axis:] if axis >= 0 else x.shape[axis:]
    axes = tuple(range(axis % 3, 3))
    X = x.astype(np.float64)
    m, v = X.mean(axis=axes, keepdims=True), X.var(axis=axes, keepdims=True)
    y = F.layer_norm(d(x), shape, eps=1e-3).numpy() * (1 if s is None else s) + (0 if b is None else b)
    case("layer_norm", f"axis={axis} epsilon=0.001", [x, s, b], [f32(y), f32(m), f32(1 / np.sqrt(v + 1e-3))], 1e-5)
    y = X / np.sqrt((X * X).mean(axis=axes, keepdims=True) + 1e-3) * (1 if s is None else s)
    case("rms_norm", f"axis={axis} epsilon=0.001", [x, s], f32(y), 1e-5)
for groups, per_group in ((3, False), (2, True), (1, False), (6, False)):
    x, s, b = real(2, 6, 2, 3), real(6), real(6)
    if per_group:
        s, b = np.repeat(s[:groups], 6 // groups), np.repeat(b[:groups], 6 // groups)
    y = f32(F.group_norm(d(x), groups, d(s), d(b), eps=1e-3))
    step = 6 // groups if per_group else 1
    case("group_norm", f"groups={groups} epsilon=0.001", [x, s[::step], b[::step]], y, 1e-5)
x = real(2, 4, 5)
case("group_norm", "groups=2 epsilon=0.001", [x, None, None], f32(F.group_norm(d(x), 2, eps=1e-3)), 1e-5)
for shape in ((2, 3, 4, 2), (1, 3, 6)):
    x, s, b = real(*shape), real(3), real(3)
    case("instance_norm", "epsilon=0.001", [x, s, b], f32(F.instance_norm(d(x), None, None, d(s), d(b), eps=1e-3)), 1e-5)
x = real(2, 2, 5)
case("instance_norm", "epsilon=0.001", [x, None, None], f32(F.instance_norm(d(x), eps=1e-3)), 1e-5)
for size, alpha, beta, bias in ((5, 0.5, 0.75, 1.0), (3, 1.0, 0.5, 2.0), (1, 1e-4, 0.75, 1.0), (9, 1.0, 0.75, 1.0)):
    x = real(2, 6, 2, 3, lo=-2, hi=2)
    case("lrn", f"size={size} alpha={alpha} beta={beta} bias={bias}", [x],
         f32(F.local_response_norm(d(x), size, alpha=alpha, beta=beta, k=bias)), 1e-5)
x = np.arange(1, 7, dtype=np.float32).reshape(1, 6)         # an even window reaches one further at the end than at the beginning
padded = np.pad(x.astype(np.float64) ** 2, ((0, 0), (1, 2)))
case("lrn", "size=4 alpha=1 beta=0.5 bias=1", [x], f32(x / np.sqrt(1 + sum(padded[:, k:k + 6] for k in range(4)) / 4)), 1e-6)
x = real(3, 4)
case("dropout", "ratio=0.5", [x], [x, np.ones((3, 4), np.bool_)], 0)


# ---- recurrent layers: ONNX Runtime, with activations, clip and lengths that PyTorch does not have ----
def recurrent(op, gates, directions, attrs, onnx_attrs, sizes, given):
    import onnx.helper as h
    import onnxruntime
    T, B, I, H = sizes
    D = 2 if directions == "bidirectional" else 1
    shapes = {"X": (T, B, I), "W": (D, gates * H, I), "R": (D, gates * H, H), "B": (D, 2 * gates * H), "L": (B,),
              "h0": (D, B, H), "c0": (D, B, H), "P": (D, 3 * H)}
    names = list(shapes)[:8 if op == "LSTM" else 6]
    values = {n: whole(B, lo=1, hi=T) if n == "L" else real(*shapes[n]) for n in names if n in "XWR" or n in given}
    outs = ["Y", "Yh", "Yc"][:3 if op == "LSTM" else 2]
    node = h.make_node(op, [n if n in values else "" for n in names], outs, direction=directions, hidden_size=H, **onnx_attrs)
    graph = h.make_graph([node], "g", [h.make_tensor_value_info(n, 6 if n == "L" else 1, v.shape) for n, v in values.items()],
                         [h.make_tensor_value_info(o, 1, None) for o in outs])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 14)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    case(op.lower(), f"direction={directions} {attrs}".strip(), [values.get(n) for n in names], session.run(None, values), 1e-5)


recurrent("RNN", 1, "forward", "", {}, (3, 2, 4, 3), ("B",))
recurrent("RNN", 1, "bidirectional", 'clip=0.5 activations="Affine:0.5:0.25 LeakyRelu:0.125"',
          dict(clip=0.5, activations=["Affine", "LeakyRelu"], activation_alpha=[0.5, 0.125], activation_beta=[0.25]),
          (4, 3, 2, 3), ("B", "L", "h0"))
recurrent("RNN", 1, "reverse", 'activations="ThresholdedRelu:0.25"',
          dict(activations=["ThresholdedRelu"], activation_alpha=[0.25]), (3, 2, 2, 3), ("L",))
recurrent("GRU", 3, "forward", "", {}, (3, 2, 4, 3), ("h0",))
recurrent("GRU", 3, "reverse", "linear_before_reset clip=0.375", dict(linear_before_reset=1, clip=0.375), (4, 3, 2, 3),
          ("B", "L"))
recurrent("GRU", 3, "bidirectional", 'activations="HardSigmoid:0.25:0.5 Elu:0.5 Sigmoid ScaledTanh:0.75:1.25"',
          dict(activations=["HardSigmoid", "Elu", "Sigmoid", "ScaledTanh"], activation_alpha=[0.25, 0.5, 0.75],
               activation_beta=[0.5, 1.25]), (3, 2, 3, 2), ("B", "L", "h0"))
recurrent("LSTM", 4, "forward", "", {}, (3, 2, 4, 3), ("B", "P"))
recurrent("LSTM", 4, "bidirectional", "input_forget", dict(input_forget=1), (4, 3, 2, 2), ("B", "L", "h0", "c0", "P"))
recurrent("LSTM", 4, "reverse", 'clip=0.25 activations="Sigmoid Softsign Softplus"',
          dict(clip=0.25, activations=["Sigmoid", "Softsign", "Softplus"]), (4, 3, 2, 2), ("B", "L", "c0"))

# ---- attention ----
q, k, v, m = real(2, 4, 3, 5), real(2, 2, 6, 5), real(2, 2, 6, 3), real(3, 6)
y = F.scaled_dot_product_attention(d(q), d(k).repeat_interleave(2, 1), d(v).repeat_interleave(2, 1), d(m), scale=0.5)
case("attention", "scale=0.5", [q, k, v, m, None, None, None], f32(y), 1e-5)
q, k, v = real(2, 4, 6), real(2, 4, 6), real(2, 4, 6)
heads = [d(t).reshape(2, 4, 3, 2).transpose(1, 2) for t in (q, k, v)]
y = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(2, 4, 6)
case("attention", "q_heads=3 kv_heads=3 causal", [q, k, v, None, None, None, None], f32(y), 1e-5)
q, k, v = real(1, 1, 2, 4), real(1, 1, 3, 4), real(1, 1, 3, 2)
m = np.array([[True, False, True], [False, False, False]])         # a query that sees nothing
y = f32(F.scaled_dot_product_attention(d(q), d(k), d(v), torch.tensor(m)))
case("attention", "", [q, k, v, m, None, None, None], np.concatenate([y[:, :, :1], np.zeros((1, 1, 1, 2), np.float32)], 2), 1e-5)

# ---- decompositions; of eigenvectors the largest element is above 0 ----
a = np.array([[[4, 2, 2], [2, 5, 3], [2, 3, 6]], [[9, 3, 0], [3, 5, 4], [0, 4, 7]]], np.float64)
case("cholesky", "", [a], np.linalg.cholesky(a), 1e-8)
b = np.arange(12.0).reshape(2, 3, 2) - 5
case("solve", "", [a, b], np.linalg.solve(a, b), 1e-8)
w, v = np.linalg.eigh(a)
v = v * np.sign(np.take_along_axis(v, np.abs(v).argmax(-2)[:, None], -2))
case("eigh", "", [a], [w, v], 1e-8)
x = np.array([[1, 2, 0], [3, 1, 4], [0, 5, 2], [2, 2, 1]], np.float64)
for t in (x, x.T):
    case("qr", "", [t], list(np.linalg.qr(t)), 1e-8)
    case("qr", "complete", [t], list(np.linalg.qr(t, "complete")), 1e-8)

with open("tests/golden/nn.txt", "w") as f:
    f.write("\n".join(lines) + "\n")
print(sum(1 for l in lines if l.startswith("op ")), "cases")
