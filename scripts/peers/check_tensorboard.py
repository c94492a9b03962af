#!/usr/bin/env python3
"""Event files of `facula train --tensorboard`, read back with the real tensorboard package: check_tensorboard.py FACULA.

Trains on a data set of random pictures and compares scalars, histograms, pictures, graph, text and hyperparameters with what is
known from elsewhere: the logs, the saved weights, gradients computed here with NumPy, the pictures themselves.
Needs tensorboard, numpy and pillow.
"""
import glob
import io
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.util import tensor_util

COUNT, EPOCHS = 64, 3
fails = 0


def check(good, what):
    global fails
    if not good:
        fails += 1
        print("FAILED:", what)


def close(a, b, tolerance=1e-5):
    return np.allclose(a, b, rtol=tolerance, atol=tolerance)


def make_data(folder):
    """The four files of MNIST with random pictures in ten classes; the test set is the training set."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 256, (COUNT, 28, 28), np.uint8), np.arange(COUNT, dtype=np.uint8) % 10
    for part in ("train", "t10k"):
        with open(f"{folder}/{part}-images-idx3-ubyte", "wb") as f:
            f.write(struct.pack(">4I", 2051, COUNT, 28, 28) + x.tobytes())
        with open(f"{folder}/{part}-labels-idx1-ubyte", "wb") as f:
            f.write(struct.pack(">2I", 2049, COUNT) + y.tobytes())
    return x, y


def safetensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {name: np.frombuffer(data[8 + n:], np.float32, offset=h["data_offsets"][0],
                                count=int(np.prod(h["shape"]))).reshape(h["shape"])
            for name, h in head.items() if name != "__metadata__"}


def train(facula, data, out, events, *more):
    subprocess.run([facula, "train", "mnist", "--data", data, "--batch", str(COUNT), "--out", out, "--tensorboard", events,
                    "--quiet", "--augment", "none", "--schedule", "constant", *more], check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in open(out + "/log.jsonl")], [json.loads(line) for line in open(out + "/steps.jsonl")]


def read(events):
    a = EventAccumulator(events, {"scalars": 0, "images": 0, "histograms": 0, "compressedHistograms": 0, "tensors": 0})
    a.Reload()
    return a


def scalars(a, tag):
    return [(e.step, e.value) for e in a.Scalars(tag)]


def check_scalars(a, log, steps):
    for column in ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "lr", "images_per_s", "seconds", "step"):
        got = scalars(a, "epoch/" + column)
        check([s for s, _ in got] == [line["epoch"] for line in log], f"epochs of epoch/{column}: {got}")
        check(close([v for _, v in got], [line[column] for line in log]), f"epoch/{column}: {got}")
    for tag, column in (("loss", "train_loss"), ("accuracy", "train_accuracy"), ("lr", "lr")):
        got = scalars(a, "step/" + tag)
        check([s for s, _ in got] == [line["step"] for line in steps], f"steps of step/{tag}")
        check(close([v for _, v in got], [line[column] for line in steps]), f"step/{tag}")


def check_histogram(a, tag, x, exact):
    """30 equal buckets.  What float32 cannot tell from an edge may be on its other side when x was computed here."""
    e = a.Histograms(tag)[-1]
    h, x = e.histogram_value, x.astype(np.float64).ravel()
    check(e.step == EPOCHS, f"{tag}: step {e.step}")
    check(h.num == x.size and close(h.min, x.min()) and close(h.max, x.max()), f"{tag}: {h.num} numbers from {h.min} to {h.max}")
    check(close(h.sum, x.sum(), 1e-4) and close(h.sum_squares, (x * x).sum(), 1e-4), f"{tag}: sums")
    counts, edges = np.histogram(x, bins=30)
    check(close(h.bucket_limit, edges[1:]), f"{tag}: edges")
    check(np.abs(np.array(h.bucket) - counts).sum() <= (0 if exact else 4), f"{tag}: {list(h.bucket)} instead of {list(counts)}")


def mlp_gradients(w, x, y):
    """Cross entropy of four linear layers with relu between them."""
    a, layers = [x.reshape(COUNT, -1)], [1, 2, 3, 4]
    for k in layers:
        z = a[-1] @ w[f"fc{k}.weight"].T.astype(np.float64) + w[f"fc{k}.bias"]
        a.append(np.maximum(z, 0) if k < 4 else z)
    p = np.exp(a[4] - a[4].max(1, keepdims=True))
    d = p / p.sum(1, keepdims=True)
    d[np.arange(COUNT), y] -= 1
    d /= COUNT
    grads = {}
    for k in reversed(layers):
        grads[f"fc{k}.weight"], grads[f"fc{k}.bias"] = d.T @ a[k - 1], d.sum(0)
        d = (d @ w[f"fc{k}.weight"]) * (a[k - 1] > 0)
    return grads


def check_parameters(a, weights, x, y):
    grads = mlp_gradients(weights, x / 255, y)
    for name, w in weights.items():
        check_histogram(a, "weights/" + name, w, True)
        check_histogram(a, "gradients/" + name, grads[name], False)
        check(close(scalars(a, "gradient_norm/" + name)[-1][1], np.linalg.norm(grads[name]), 1e-3), f"norm of {name}")
    total = np.sqrt(sum((g * g).sum() for g in grads.values()))
    check(close(scalars(a, "gradient_norm/all")[-1][1], total, 1e-3), "norm of all gradients")


def check_graph(a, shapes):
    nodes = {n.name: n for n in a.Graph().node}
    check(len(nodes) == len(a.Graph().node), "names of the graph are unique")
    for n in nodes.values():
        for i in n.input:
            check(i.split(":")[0] in nodes, f"{n.name} reads {i}, which is not there")
    for name, shape in shapes.items():
        n = nodes.get(name.replace(".", "/"))
        check(n is not None and n.op == "parameter", f"{name} is no node")
        dims = [d.size for d in n.attr["_output_shapes"].list.shape[0].dim] if n else None
        check(dims == list(shape), f"{name}: shape {dims}")
    check("output/logits" in nodes and nodes["x"].op == "input", "input and output of the graph")
    check([d.size for d in nodes["x"].attr["_output_shapes"].list.shape[0].dim] == [-1, 1, 28, 28], "shape of the input")
    seen, todo = set(), ["output/logits"]
    while todo:
        name = todo.pop()
        seen.add(name)
        todo += [i.split(":")[0] for i in nodes[name].input]
    check(seen == set(nodes), f"the output is made from everything: not from {set(nodes) - seen}")


def tiles(image, side, zoom):
    pixels = np.array(image)
    step = side * zoom + 2
    return [pixels[r + 2:r + step:zoom, c + 2:c + step:zoom] for r in range(0, pixels.shape[0] - 2, step)
            for c in range(0, pixels.shape[1] - 2, step)]


def check_images(a, x, weights):
    shown = Image.open(io.BytesIO(a.Images("samples/first_batch")[0].encoded_image_string)).convert("RGB")
    seen = sorted(t[:, :, 0].tobytes() for t in tiles(shown, 28, 2))
    check(seen == sorted(p.tobytes() for p in x), "the first batch holds the pictures of the data set")
    e = a.Images("filters/conv1.weight")[-1]
    image = Image.open(io.BytesIO(e.encoded_image_string)).convert("RGB")
    w = weights["conv1.weight"]
    check(e.step == EPOCHS and (e.width, e.height) == image.size, "size of the filters")
    want = np.clip(np.floor((w - w.min()) * 255.0 / (w.max() - w.min()) + 0.5), 0, 255)
    got = np.array([t[:, :, 0] for t in tiles(image, w.shape[3], -(-32 // w.shape[3]))][:len(w)], np.float64)
    check(got.shape == want[:, 0].shape and np.abs(got - want[:, 0]).max() <= 1, "the filters are the weights")


def check_settings(a, out):
    run = json.load(open(out + "/run.json"))
    text = tensor_util.make_ndarray(a.Tensors("run.json")[0].tensor_proto)[0].decode()
    check(json.loads(text) == run, "run.json as text")
    data = a.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    got = hparams.parse_session_start_info_plugin_data(data).hparams
    check(got["model"].string_value == run["model"] and got["lr"].number_value == run["lr"], "hyperparameters")
    end = hparams.parse_session_end_info_plugin_data(a.SummaryMetadata("_hparams_/session_end_info").plugin_data.content)
    check(end.status == 1, "the end of the training")


def main():
    facula = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as d:
        x, y = make_data(d)
        log, steps = train(facula, d, d + "/mlp", d + "/events/mlp", "--model", "mlp", "--epochs", str(EPOCHS))
        weights, a = safetensors(d + "/mlp/model.safetensors"), read(d + "/events/mlp")
        check_scalars(a, log, steps)
        check_parameters(a, weights, x, y)
        check_graph(a, {name: w.shape for name, w in weights.items()})
        check_settings(a, d + "/mlp")
        train(facula, d, d + "/cnn", d + "/events/cnn", "--model", "zoo:lenet", "--epochs", str(EPOCHS))
        check_images(read(d + "/events/cnn"), x, safetensors(d + "/cnn/model.safetensors"))
        subprocess.run([facula, "train", "--resume", d + "/mlp", "--epochs", str(EPOCHS + 2), "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        check(len(glob.glob(d + "/events/mlp/*tfevents*")) == 2, "a resumed training opens a file of its own")
        steps = [s for s, _ in scalars(read(d + "/events/mlp"), "epoch/test_loss")]
        check(steps == list(range(1, EPOCHS + 3)), f"epochs of both files: {steps}")
    print("tensorboard: FAILED" if fails else "tensorboard: everything reads back as it was written")
    return fails


if __name__ == "__main__":
    sys.exit(main())
