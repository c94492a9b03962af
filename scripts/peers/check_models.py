#!/usr/bin/env python3
"""Real models against their stored outputs and against ONNX Runtime: logits, top-5, whole networks.

    FACULA_DATA=dir python scripts/peers/check_models.py build/facula

The folder holds models/ and photos/; the script says which file it looks for and skips what is not there.  Tolerances:
1e-4 of the largest |value| for f32 models, 2e-2 for fp16 ones.  Exit code 1 if anything differs; the last line counts.
"""
import glob
import json
import lzma
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime

onnxruntime.set_default_logger_severity(3)
facula, data = sys.argv[1], os.environ.get("FACULA_DATA", "")
counts = {"passed": 0, "failed": 0, "skipped": 0}
room = tempfile.TemporaryDirectory()      # gone with the process
work = room.name


def report(name, ok, detail):
    counts["passed" if ok else "failed"] += 1
    print(f"{'ok    ' if ok else 'FAILED'} {name}: {detail}", flush=True)


def load_pb(path):
    with open(path, "rb") as f:
        return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))


def ours(model, feeds, *more):
    command = [facula, "run", model, "--output-dir", work, "--json", *more]
    for name, x in feeds.items():
        path = os.path.join(work, "in_" + name.replace("/", "_") + ".npy")
        np.save(path, x)
        command += ["--input", f"{name}={path}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    result = json.loads(done.stdout)
    return [np.load(o["file"]) for o in result["outputs"]], result


def compare(name, got, want, tolerance):
    if got.shape != want.shape:
        return report(name, False, f"shape {got.shape}, expected {want.shape}")
    got, want = got.astype("f8"), want.astype("f8")
    error = np.abs(got - want).max() / max(np.abs(want).max(), 1e-30)
    report(name, error <= tolerance, f"largest difference {error:.1e} of the largest value")


def stored(name, model, inputs, outputs, tolerance=1e-4):
    session = onnxruntime.InferenceSession(model)
    feeds = {i.name: x for i, x in zip(session.get_inputs(), inputs)}
    try:
        for got, want in zip(ours(model, feeds)[0], outputs):
            compare(name, got, want, tolerance)
    except RuntimeError as e:
        report(name, False, e)


def against_runtime(name, model, shape, tolerance):
    session = onnxruntime.InferenceSession(model)
    i = session.get_inputs()[0]
    x = np.random.default_rng(1).normal(size=shape).astype("f2" if "float16" in i.type else "f4")
    want = session.run(None, {i.name: x})
    try:
        for got, w in zip(ours(model, {i.name: x})[0], want):
            compare(name, got, w, tolerance)
    except RuntimeError as e:
        report(name, False, e)


def top5(name, model, photo, preset, *more):
    """The same preprocessed photo through both; the five best must agree."""
    done = subprocess.run([facula, "run", model, photo, "--preset", preset, "--json", *more], capture_output=True, text=True)
    if done.returncode:
        return report(name, False, done.stderr.strip())
    mine = [t["index"] for t in json.loads(done.stdout)["top"]]
    session = onnxruntime.InferenceSession(model)
    i = session.get_inputs()[0]
    x = preprocess(photo, preset, i)
    scores = session.run(None, {i.name: x})[0].ravel()
    theirs = list(np.argsort(-scores.astype("f8"), kind="stable")[:5])
    report(name, mine == theirs, f"{mine} and {[int(t) for t in theirs]}")


def preprocess(photo, preset, i):
    """With Pillow, so that the photo's way is independent too."""
    from PIL import Image, ImageOps
    image = ImageOps.exif_transpose(Image.open(photo)).convert("RGB")
    size = [d for d in i.shape if isinstance(d, int) and d > 3][0]
    side = (224 if preset == "darknet" else 256) * size // 224
    how = Image.BILINEAR
    short = min(image.size)
    w, h = (max(1, int(side * s / short)) if s != short else side for s in image.size)
    image = image.resize((w, h), how)
    left, top = (w - size) // 2, (h - size) // 2
    if (w - size) % 2:
        left = int(round((w - size) / 2.0))
    if (h - size) % 2:
        top = int(round((h - size) / 2.0))
    x = np.asarray(image.crop((left, top, left + size, top + size)), "f4")
    if preset == "imagenet":
        x = (x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    elif preset == "tf":
        x = x / 127.5 - 1
    elif preset == "darknet":
        x = x / 255
    elif preset == "caffe":
        x = x[:, :, ::-1] - [104, 117, 123]
    return np.ascontiguousarray(x.transpose(2, 0, 1)[None]).astype("f2" if "float16" in i.type else "f4")


def main():
    m = os.path.join(data, "models")
    if not data or not os.path.isdir(m):
        print("no FACULA_DATA/models: skipped")
        counts["skipped"] += 1
    else:
        for k in range(3):
            io = os.path.join(m, "mnist-8-io", f"set{k}.")
            stored(f"mnist-8 set {k}", os.path.join(m, "mnist-8.onnx"), [load_pb(io + "input_0.pb")], [load_pb(io + "output_0.pb")])
        sr = os.path.join(m, "super_resolution_10")
        stored("super_resolution_10", os.path.join(sr, "model.onnx"), [load_pb(os.path.join(sr, "input_0.pb"))], [load_pb(os.path.join(sr, "output_0.pb"))])
        x = (np.arange(3 * 224 * 224, dtype="f4") / (3 * 224 * 224)).reshape(1, 3, 224, 224)
        for path in sorted(glob.glob(os.path.join(m, "light", "*.onnx"))):
            stored(os.path.basename(path)[:-5], path, [x], [load_pb(path[:-5] + "_output_0.pb")], 2e-3 if "densenet" in path else 1e-3)
        photos = sorted(glob.glob(os.path.join(data, "photos", "*")))
        real = [("squeezenet1.1_fp16.onnx", "caffe", 2e-2), ("mobilenet_v2_imagenet1001.onnx.xz", "tf", 1e-4),
                ("mobilenet_v2_inat_birds.onnx.xz", "tf", 1e-4), ("tinydarknet.onnx", "darknet", 1e-4)]
        for file, preset, tolerance in real:
            path = os.path.join(m, file)
            if path.endswith(".xz"):
                with lzma.open(path) as a, open(os.path.join(work, file[:-3]), "wb") as b:
                    b.write(a.read())
                path = os.path.join(work, file[:-3])
            shape = [d if isinstance(d, int) else 1 for d in onnxruntime.InferenceSession(path).get_inputs()[0].shape]
            against_runtime(file.split(".onnx")[0] + " logits", path, shape, tolerance)
            for photo in photos:
                top5(f"{file.split('.onnx')[0]} {os.path.basename(photo)}", path, photo, preset)
        against_runtime("cifar10_resnet20 logits", os.path.join(m, "cifar10_resnet20.onnx"), (1, 3, 32, 32), 1e-4)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
