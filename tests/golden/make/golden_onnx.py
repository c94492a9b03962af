#!/usr/bin/env python3
"""Writes tests/golden/onnx.txt: values of operators that came with ONNX models, from ONNX's reference evaluator, in the form
that tests/golden/make/golden_nn.py describes.  Needs onnx and numpy.  Add cases at the end: numbers are drawn in order.
"""
import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(30)
lines = ["# Written by tests/golden/make/golden_onnx.py."]
NAMES = {np.dtype(np.float32): "f32", np.dtype(np.int64): "i64", np.dtype(np.uint8): "u8", np.dtype(np.int32): "i32"}
TYPES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64, "u8": TensorProto.UINT8, "i32": TensorProto.INT32}


class Host(list):
    pass


def text(a):
    numbers = (f"{float(v):.9g}" if a.dtype.kind == "f" else str(int(v)) for v in a.ravel())
    return f"{NAMES[a.dtype]}[{','.join(map(str, a.shape))}] : {' '.join(numbers)}".rstrip()


def case(op, attrs, inputs, outputs, tolerance):
    lines.append(f"op {op} {tolerance:g} {attrs}".rstrip())
    for x in inputs:
        if x is None: lines.append("none")
        elif isinstance(x, Host): lines.append("host " + " ".join(map(str, x)))
        else: lines.append("in " + text(x))
    for y in outputs: lines.append("out " + text(y))
    lines.append("end")


def evaluate(kind, inputs, attributes, opset=19):
    """One node; inputs: arrays, or None where there is none."""
    names = [f"x{k}" if x is not None else "" for k, x in enumerate(inputs)]
    node = helper.make_node(kind, names, ["y"], **attributes)
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
             for n, x in zip(names, inputs) if n]
    graph = helper.make_graph([node], "g", ports, [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, {n: x for n, x in zip(names, inputs) if n})


# ---- Resize ----
PLACES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric", "tf_crop_and_resize"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def resize(shape, axes, sizes=None, scales=None, mode="linear", **more):
    place = more.get("coordinate_transformation_mode", "half_pixel")
    dtype = np.float32 if mode != "nearest" else rng.choice([np.float32, np.int32, np.uint8])
    x = rng.uniform(-3, 3, shape).astype(np.float32) if dtype == np.float32 else rng.integers(0, 99, shape).astype(dtype)
    roi = more.pop("roi", None)
    inputs = [x, None if roi is None else np.array(roi, np.float32), None if scales is None else np.array(scales, np.float32),
              None if sizes is None else np.array(sizes, np.int64)]
    y = evaluate("Resize", inputs, dict(mode=mode, axes=axes, **more))[0].astype(dtype)
    moves = mode == "nearest" and place != "tf_crop_and_resize"
    attrs = f"mode={mode} coordinates={place} axes={','.join(map(str, axes))}"
    for ours, onnx in (("rounding", "nearest_mode"), ("aspect", "keep_aspect_ratio_policy")):
        if onnx in more: attrs += f" {ours}={more[onnx]}"
    for ours, onnx in (("cubic_a", "cubic_coeff_a"), ("extrapolation", "extrapolation_value")):
        if onnx in more: attrs += f" {ours}={more[onnx]:.9g}"
    for flag in ("exclude_outside", "antialias"):
        if more.get(flag): attrs += f" {flag}"
    if scales is not None: attrs += " scales=" + ",".join(f"{np.float32(s):.9g}" for s in scales)
    if roi is not None: attrs += " roi=" + ",".join(f"{np.float32(v):.9g}" for v in roi)
    case("interpolate_nearest" if moves else "interpolate", attrs, [x, None if sizes is None else Host(sizes)], [y],
         0 if moves else 2e-5)


for place in PLACES[:5]:
    for sizes in ([7, 4], [3, 9], [1, 1]):
        if place == "pytorch_half_pixel" and sizes == [1, 1]: continue          # the standard's text differs from its code
        resize((1, 2, 5, 6), [2, 3], sizes=sizes, coordinate_transformation_mode=place)
        resize((2, 4, 6), [1, 2], sizes=sizes, mode="cubic", cubic_coeff_a=-0.5, coordinate_transformation_mode=place,
               exclude_outside=int(rng.integers(2)))
        for rounding in ROUNDINGS:
            resize((1, 2, 4, 3), [2, 3], sizes=sizes, mode="nearest", nearest_mode=rounding, coordinate_transformation_mode=place)
for mode in ("linear", "cubic"):
    for sizes in ([2, 3], [3, 2], [4, 9]):
        resize((1, 1, 8, 7), [2, 3], sizes=sizes, mode=mode, antialias=1)
        resize((1, 1, 8, 7), [3, 2], sizes=sizes, mode=mode, antialias=1, exclude_outside=1)
    for policy in ("not_larger", "not_smaller"):
        resize((1, 1, 4, 6), [2, 3], sizes=[7, 8], mode=mode, keep_aspect_ratio_policy=policy)
    resize((1, 2, 5, 4), [2, 3], scales=[0.8, 1.6], mode=mode)
    resize((3, 4, 5), [0, 1, 2], scales=[2, 0.5, 1.2], mode=mode, coordinate_transformation_mode="asymmetric")
for mode in ("nearest", "linear", "cubic"):
    resize((1, 1, 6, 5), [2, 3], sizes=[4, 4], mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
           roi=[0.1, -0.2, 0.9, 1.3], extrapolation_value=7.5)
resize((2, 3, 4), [1, 2], scales=[2, 3], mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")

with open("tests/golden/onnx.txt", "w") as f:
    f.write("\n".join(lines) + "\n")
print(sum(1 for l in lines if l.startswith("op ")), "cases")
