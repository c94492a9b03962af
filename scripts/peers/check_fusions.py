#!/usr/bin/env python3
"""Operators of com.microsoft, Resize, and types that ONNX's node tests lack, on random data: facula against ONNX Runtime.

    python scripts/peers/check_fusions.py build/facula [--keep DIR]

Each is exported and compared again.  Needs onnx, onnxruntime and numpy.  FACULA_SEED says where random numbers begin.  --keep: folders for `facula conformance`.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from onnx_case import write

facula, folder = sys.argv[1], tempfile.mkdtemp()
keep = sys.argv[3] if sys.argv[2:3] == ["--keep"] else os.path.join(folder, "kept")
rng = np.random.default_rng(int(os.environ.get("FACULA_SEED", "1")))
failed = compared = 0
onnxruntime.set_default_logger_severity(4)
MS = "com.microsoft"


def real(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def check(name, kind, inputs, outputs=1, tolerance=2e-5, domain=MS, types=(), left_out=(), **attributes):
    """One node; an input is an array (given when it runs), a tuple of one array (an initializer) or None."""
    global failed, compared
    names = ["" if x is None else f"x{k}" for k, x in enumerate(inputs)]
    weights = [onnx.numpy_helper.from_array(x[0], n) for n, x in zip(names, inputs) if isinstance(x, tuple)]
    given = {n: x for n, x in zip(names, inputs) if isinstance(x, np.ndarray)}
    results = ["" if k in left_out else f"y{k}" for k in range(outputs)]
    ys = [y for y in results if y]
    node = helper.make_node(kind, names, results, domain=domain, **attributes)
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()]
    graph = helper.make_graph([node], "g", ports, [helper.make_tensor_value_info(y, types[k] if k < len(types) else TensorProto.FLOAT, None)
                                               for k, y in enumerate(ys)],
                              initializer=weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)], ir_version=9)
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    options = onnxruntime.SessionOptions()      # with exact sums: without VNNI its products of u8 and s8 saturate at 16 bits
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        expected = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(ys, given)
    except Exception as e:
        print(f"skipped {name}: ONNX Runtime refuses it: {str(e)[:160]}")
        return
    write(os.path.join(keep, f"{kind}-{compared}"), model, given, expected)
    command = [facula, "run", path]
    for n, x in given.items():
        np.save(os.path.join(folder, n + ".npy"), x)
        command += ["--input", f"{n}={folder}/{n}.npy"]
    for y in ys: command += ["--output", f"{y}={folder}/{y}.npy"]
    ran = subprocess.run(command, capture_output=True, text=True)
    compared += 1
    why = ran.stderr.strip() if ran.returncode else ""
    for y, want in zip(ys, expected):
        if why: break
        have = np.load(os.path.join(folder, y + ".npy"))
        if have.shape != want.shape or have.dtype != want.dtype:
            why = f"{y} is {have.dtype}{have.shape}, not {want.dtype}{want.shape}"
        elif not np.allclose(have, want, rtol=tolerance, atol=tolerance):
            why = f"{y} is off by {np.abs(have.astype(np.float64) - want).max():.3g}"
    if why:
        failed += 1
        print(f"FAILED {name}: {kind}: {why}")


for activation, params in (("", {}), ("Relu", {}), ("Clip", {"activation_params": [-0.5, 0.75]}), ("Tanh", {}),
                           ("HardSigmoid", {"activation_params": [0.3, 0.4]}), ("LeakyRelu", {"activation_params": [0.2]})):
    if activation:
        check(f"conv {activation}", "FusedConv", [real(2, 3, 7, 6), (real(4, 3, 3, 3),), (real(4),)], activation=activation,
              pads=[1, 0, 1, 2], strides=[2, 1], **params)
    if activation in ("Relu", "Tanh", "Sigmoid"):
        check(f"gemm {activation}", "FusedGemm", [real(5, 7), (real(7, 3),), (real(3),)], activation=activation, alpha=0.5)
check("conv with an addend", "FusedConv", [real(1, 3, 5, 5), (real(4, 3, 1, 1),), (real(4),), real(1, 4, 5, 5)], activation="Relu")
for k in range(8):
    ta, tb = k & 1, k >> 1 & 1
    a, b = real(2, 3, 4, 5), real(2, 3, 5, 6)
    check(f"matmul {k}", "FusedMatMul", [a.swapaxes(-1, -2).copy() if ta else a, b.swapaxes(-1, -2).copy() if tb else b],
          transA=ta, transB=tb, alpha=0.7 if k > 3 else 1.0)
check("matmul, batch after", "FusedMatMul", [real(4, 2, 3, 5), real(2, 3, 5, 6)], transBatchA=1)
check("gelu", "Gelu", [real(3, 9)])
check("bias gelu", "BiasGelu", [real(3, 9), (real(9),)])
check("fast gelu", "FastGelu", [real(3, 9)])
check("fast gelu, bias", "FastGelu", [real(3, 9), (real(9),)])
check("quick gelu", "QuickGelu", [real(3, 9)])
check("quick gelu, alpha", "QuickGelu", [real(3, 9)], alpha=1.25)
x, skip, gamma, beta, bias = real(2, 5, 8), real(2, 5, 8), (real(8),), (real(8),), (real(8),)
check("skip norm", "SkipLayerNormalization", [x, skip, gamma, beta])
check("skip norm, one skip", "SkipLayerNormalization", [x, real(5, 8), gamma, None, bias], epsilon=1e-3)
check("skip rms norm", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias])
check("skip norm, sum", "SkipLayerNormalization", [x, skip, gamma, beta, bias], outputs=4, left_out=(1, 2))
check("skip rms norm, sum", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], outputs=4, left_out=(1, 2))
check("rms norm", "SimplifiedLayerNormalization", [x, gamma], domain="", epsilon=1e-4)
ids, segments = rng.integers(0, 9, (2, 5)).astype(np.int32), rng.integers(0, 2, (2, 5)).astype(np.int32)
mask = (rng.uniform(size=(2, 5)) < 0.7).astype(np.int32)
EMBEDDING = (TensorProto.FLOAT, TensorProto.INT32)
tables = [(real(9, 8),), (real(6, 8),), (real(2, 8),), gamma, beta]
check("embedding", "EmbedLayerNormalization", [ids, segments, *tables, mask], outputs=2, types=EMBEDDING)
check("embedding, no segments", "EmbedLayerNormalization", [ids, None, tables[0], tables[1], None, gamma, beta], outputs=2, types=EMBEDDING)
for width in (0, 4):
    for interleaved in (0, 1):
        columns = (width or 6) // 2
        cos, sin = (real(9, columns),), (real(9, columns),)
        more = dict(interleaved=interleaved)
        if width: more.update(rotary_embedding_dim=width, num_heads=2)
        check("rotary", "RotaryEmbedding", [real(2, 2, 5, 6), rng.integers(0, 9, (2, 5)), cos, sin], **more)
        check("rotary, offset", "RotaryEmbedding", [real(2, 2, 5, 6), np.array([3], np.int64), cos, sin], **more)
W, b = (real(8, 24),), (real(24),)
b_of_qkv = b
check("attention", "Attention", [x, W, b], num_heads=2)
for name, m in (("lengths", np.array([3, 5], np.int32)), ("ends and starts", np.array([4, 5, 1, 0], np.int32)),
                ("keys", mask), ("pairs", (rng.uniform(size=(2, 5, 5)) < 0.7).astype(np.int32))):
    check(f"attention, {name}", "Attention", [x, W, b, m], num_heads=2, tolerance=2e-3)
check("attention, causal", "Attention", [x, W, b], num_heads=2, unidirectional=1)
check("attention, past", "Attention", [x, W, b, None, real(2, 2, 2, 3, 4)], num_heads=2, outputs=2)
check("attention, past and causal", "Attention", [x, W, b, None, real(2, 2, 2, 3, 4)], num_heads=2, outputs=2, unidirectional=1)
check("attention, sizes", "Attention", [x, (real(8, 20),), (real(20),)], num_heads=2, qkv_hidden_sizes=[8, 8, 4])
k, v = real(2, 7, 8), real(2, 7, 8)
check("heads", "MultiHeadAttention", [x, k, v], num_heads=2)
check("heads, bias", "MultiHeadAttention", [x, k, v, b], num_heads=4, scale=0.3)
check("heads, mask", "MultiHeadAttention", [x, k, v, None, (rng.uniform(size=(2, 7)) < 0.7).astype(np.int32)], num_heads=2,
      tolerance=2e-3)
check("heads, scores", "MultiHeadAttention", [x, k, v, None, None, real(2, 2, 5, 7)], num_heads=2)
check("heads, cross", "MultiHeadAttention", [x, real(2, 2, 7, 4), real(2, 2, 7, 4)], num_heads=2)
check("heads, past", "MultiHeadAttention", [x, real(2, 5, 8), real(2, 5, 8), None, None, None, real(2, 2, 3, 4), real(2, 2, 3, 4)],
      num_heads=2, outputs=3)

for k in range(24):             # a first call, then later ones, each row of the batch after its own past
    first, packed, rotated = k % 3 == 0, k % 4 == 1, k % 2 == 0
    rows = 4 if first else 1 + k % 2 * (k % 5 == 0)
    batch = 1 if rows > 1 and not first else 3
    have = np.zeros(batch, np.int32) if first else rng.integers(1, 6, batch).astype(np.int32)
    room = 0 if first else [int(have.max()), 12][k % 2]
    total = int(have.max()) + rows
    past = [real(batch, 2, room, 16), real(batch, 2, room, 16)]
    for p in past:
        for row, n in enumerate(have): p[row, :, n:] = 0
    qkv = [real(batch, rows, 128), None, None] if packed else [real(batch, rows, 64), real(batch, rows, 32), real(batch, rows, 32)]
    turns = [(real(20, 8),), (real(20, 8),)] if rotated else [None, None]
    bias = real(1, 4, rows, total) if k % 5 == 2 else None
    sink = real(4) if k % 6 == 5 else None
    more = dict(do_rotary=int(rotated), rotary_interleaved=int(k % 8 == 2))
    if k % 7 == 3: more.update(local_window_size=3)
    if k % 7 == 4: more.update(softcap=2.0)
    if k % 11 == 7: more.update(smooth_softmax=1)
    check(f"grouped queries {k}", "GroupQueryAttention",
          [*qkv, *past, have + np.int32(rows - 1), np.array([total], np.int32), *turns, None, bias, sink], outputs=3,
          num_heads=4, kv_num_heads=2, **more)
for k in range(9):              # caches of the last rows, which are full: what is after them is not specified
    room, rows = 5, 1 + k // 3
    batch = 1 if rows > 1 else 2
    have = rng.integers(room, 12, batch).astype(np.int32)
    past = [real(batch, 2, room, 16), real(batch, 2, room, 16)]
    turns = [(real(20, 8),), (real(20, 8),)] if k % 2 else [None, None]
    sink = real(4) if k % 3 == 2 else None
    check(f"last rows {k}", "GroupQueryAttention",
          [real(batch, rows, 64), real(batch, rows, 32), real(batch, rows, 32), *past, have + np.int32(rows - 1),
           np.array([have.max() + rows], np.int32), *turns, None, None, sink], outputs=3, num_heads=4, kv_num_heads=2,
          do_rotary=k % 2, local_window_size=room, sliding_window_cache=1)
codes = rng.integers(0, 256, (7, 16)).astype(np.uint8)
rows = rng.integers(0, 7, (2, 3))
check("table of 4 bits", "GatherBlockQuantized", [codes, rows, real(7, 2)], bits=4, block_size=16, quantize_axis=1)
check("table of 4 bits, zero points", "GatherBlockQuantized", [codes, rows, real(7, 2), codes[:, :1].copy()], bits=4, block_size=16,
      quantize_axis=1)
for kind in (0, 1):
    check(f"bnb4 {kind}", "MatMulBnb4", [real(2, 32), (rng.integers(0, 256, 64).astype(np.uint8),), (abs(real(8)),)], K=32, N=4,
          block_size=16, quant_type=kind)
for metric in ("euclidean", "sqeuclidean"):
    check(metric, "CDist", [real(3, 5), real(4, 5)], metric=metric)
check("expanded dims", "ExpandDims", [real(2, 3), (np.array(-1, np.int32),)])
check("kept triangle", "Trilu", [real(3, 4), (np.array(1, np.int64),)], upper=0)
check("padded", "Pad", [real(3, 4), (np.array([1, 0, 2, 1], np.int64),)], mode="constant")
check("picked", "GatherND", [real(3, 4), np.array([[2], [0]], np.int64)])
check("sampled", "GridSample", [real(1, 2, 4, 4), real(1, 3, 3, 2)])
INT = TensorProto.INT32
volume, taps = rng.integers(0, 256, (1, 2, 4, 5, 6)).astype(np.uint8), rng.integers(-128, 128, (4, 1, 2, 3, 2)).astype(np.int8)
zero, shift = np.array(131, np.uint8), np.array(-5, np.int8)
check("volume", "ConvInteger", [volume, (taps,), zero, shift], domain="", types=(INT,), tolerance=0, group=2, pads=[1, 0, 1, 0, 2, 1],
      strides=[1, 2, 1])
scale = [np.float32(0.02), rng.uniform(0.01, 0.1, 4).astype(np.float32), np.float32(0.9)]
check("volume of bytes", "QLinearConv",
      [volume, np.array(scale[0]), zero, (taps,), (scale[1],), (np.zeros(4, np.int8),), np.array(scale[2]), zero,
       (np.array([5, -900, 30, 7], np.int32),)], domain="", types=(TensorProto.UINT8,), tolerance=0, group=2)
for k in range(12):             # means in the middle of two numbers: what is added before rounding decides
    kind, port = ((np.uint8, TensorProto.UINT8), (np.int8, TensorProto.INT8))[k % 2]
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    image = rng.integers(low, high + 1, (1, 2, 6, 7) if k % 3 else (1, 6, 7, 2)).astype(kind)
    zeros = [np.array(rng.integers(low, high + 1), kind) for _ in range(2)]
    scales = [np.array(rng.choice([0.25, 0.5, 1]), np.float32) for _ in range(2)]
    check(f"pool of bytes {k}", "QLinearAveragePool", [image, (scales[0],), (zeros[0],), (scales[1],), (zeros[1],)], types=(port,),
          tolerance=0, kernel_shape=[2, 2], pads=[0, 1, 1, 0], count_include_pad=k // 2 % 2, channels_last=int(k % 3 == 0))
for k in range(4):
    check(f"inverse {k}", "Inverse", [real(2, k + 1, k + 1) + 2 * np.eye(k + 1, dtype=np.float32)])
for k in range(12):
    boxes = rng.uniform(-0.3, 1.3, (5, 4)).astype(np.float32)
    boxes[0] = [0, 0, 1, 1]
    check(f"crop {k}", "CropAndResize", [real(2, 3, 6, 7), boxes, np.array([0, 1, 1, 0, 1], np.int32),
                                         (np.array([[3, 4], [1, 5], [7, 6]][k % 3], np.int32),)],
          mode=["bilinear", "nearest"][k % 2], extrapolation_value=float(k % 4))
BYTE = TensorProto.UINT8
a, b, c = (rng.integers(0, 256, (2, 3, 4)).astype(np.uint8) for _ in range(3))
at = [(np.array(0.05, np.float32),), (np.array(120, np.uint8),)]
to = [(np.array(0.03, np.float32),), (np.array(131, np.uint8),)]
check("sum of bytes", "QLinearAdd", [a, *at, b, *to, *at], types=(BYTE,), tolerance=0)
check("product of bytes", "QLinearMul", [a, *at, b, *to, *at], types=(BYTE,), tolerance=0)
check("joined bytes", "QLinearConcat", [*at, a, *at, b, *to], types=(BYTE,), tolerance=0, axis=1)
check("sigmoid of bytes", "QLinearSigmoid", [a, *at, (np.array(1 / 256, np.float32),), (np.array(0, np.uint8),)], types=(BYTE,), tolerance=0)
check("leaky relu of bytes", "QLinearLeakyRelu", [a, *at, *to], types=(BYTE,), tolerance=0, alpha=0.2)
check("softmax of bytes", "QLinearSoftmax", [a, *at, (np.array(1 / 256, np.float32),), (np.array(0, np.uint8),)], types=(BYTE,),
      tolerance=0, axis=-1, opset=13)
check("mean of bytes", "QLinearGlobalAveragePool", [a[..., None], *at, *to], types=(BYTE,), tolerance=0)
check("chosen bytes", "QLinearWhere", [c > 99, a, *at, b, *to, *at], types=(BYTE,), tolerance=0)
q = (rng.integers(-64, 64, (4, 5)).astype(np.int8),)
check("gemm of bytes", "QGemm", [a[0], *at, q, (np.array(0.02, np.float32),), (np.array(0, np.int8),), (np.arange(5, dtype=np.int32),), *to],
      types=(BYTE,), tolerance=0, transB=0)
check("products of bytes", "MatMulIntegerToFloat", [a[0], q, at[0], (np.array(0.02, np.float32),), at[1], None, (real(5),)])
check("products of bytes, quantized here", "DynamicQuantizeMatMul", [real(3, 4), q, (np.array(0.02, np.float32),), None, (real(5),)])
codes, by = (rng.integers(0, 256, (5, 2, 8)).astype(np.uint8),), (abs(real(10)),)
check("products of 4 bits", "MatMulNBits", [real(3, 32), codes, by], K=32, N=5, bits=4, block_size=16)
scales = [(np.array(0.02, np.float32),), (np.array(0.01, np.float32),)]
check("attention of bytes", "QAttention",
      [rng.integers(0, 256, (2, 5, 8)).astype(np.uint8), (rng.integers(-64, 64, (8, 24)).astype(np.int8),), b_of_qkv, *scales, None,
       (np.array(120, np.uint8),), (np.array(0, np.int8),)], num_heads=2)
gates = [(rng.integers(-64, 64, (1, n, 12)).astype(np.int8),) for n in (4, 3)]
check("lstm of bytes", "DynamicQuantizeLSTM",
      [real(6, 2, 4), *gates, (real(1, 24),), None, None, None, None, (np.array([0.01], np.float32),), (np.array([0], np.int8),),
       (np.array([0.01], np.float32),), (np.array([0], np.int8),)], outputs=3, tolerance=2e-3, hidden_size=3)
check("bytes of numbers", "QuantizeLinear", [real(2, 3) * 4, *at], types=(BYTE,), tolerance=0)
check("numbers of bytes", "DequantizeLinear", [a, *at])
check("range", "Range", [np.array(1, np.int64), np.array(9, np.int64), np.array(3, np.int64)], types=(TensorProto.INT64,))
check("transposed product", "TransposeMatMul", [real(3, 4), real(5, 4)], transB=1)
check("shrunk integers", "Shrink", [np.arange(-4, 5)], domain="", types=(TensorProto.INT64,), tolerance=0, bias=0.5, lambd=1.0)

for k in range(60):             # sizes that do not lie on borders between neighbours
    mode = ["nearest", "linear", "cubic"][k % 3]
    place = str(rng.choice(["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]))
    # of a fractional length ONNX and ONNX Runtime align different corners; the standard's reference decides here
    if place == "align_corners" and k % 2 == 0: place = "half_pixel"
    shape = [1, 2, int(rng.integers(3, 12)), int(rng.integers(3, 12))]
    sizes = [1, 2, int(rng.integers(2, 25)), int(rng.integers(2, 25))]
    more = dict(mode=mode, coordinate_transformation_mode=place)
    if mode == "nearest": more.update(nearest_mode=str(rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])))
    if mode == "cubic": more.update(cubic_coeff_a=-0.5, exclude_outside=int(rng.integers(2)))
    by = [None, None, (np.array(sizes, np.int64),)] if k % 2 else \
        [None, (np.array([1, 1, rng.choice([0.5, 2, 3, 1.5]), rng.choice([0.5, 2, 4])], np.float32),), None]
    check(f"resize {k}: {shape} {sizes if k % 2 else by[1]} {more}", "Resize", [real(*shape), *by], domain="", **more)

# what `facula export` makes of them
again = subprocess.run([facula, "conformance", keep, "--reexport", "--atol", "2e-3"], capture_output=True, text=True)
for line in again.stdout.splitlines():
    if not line.startswith("passed"): print(line.replace(keep + os.sep, ""))
print(f"{compared - failed} passed, {failed} failed")
failed += again.returncode
sys.exit(failed > 0)
