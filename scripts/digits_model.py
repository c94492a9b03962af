"""Makes src/studio/images/digits.bin, the network that the playground's page Images knows digits with.

usage: digits_model.py FACULA MNIST [RUN]

FACULA trains LeNet-5 on the four files of MNIST in the folder MNIST; RUN, a folder of such a
training, goes without.  A weight becomes one byte: each output channel (row) of a convolution or a
product has a scale, the largest of its weights is 127 times this.

digits.bin: for each parameter in the order of the network, of more than one dim f32 scale[rows],
i8 weight[rows, ...]; else f32 bias[n].  Numbers are little endian.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

ORDER = ["conv1", "conv2", "fc1", "fc2", "fc3"]


def read(path):
    """Name -> shape, numbers of a safetensors file of f32."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    all_of_them = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            begin, end = (8 + n + x for x in t["data_offsets"])
            assert t["dtype"] == "F32", (name, t)
            all_of_them[name] = t["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return all_of_them


def pack(shape, x):
    if len(shape) == 1:
        return struct.pack(f"<{len(x)}f", *x)
    width = len(x) // shape[0]
    rows = [x[i:i + width] for i in range(0, len(x), width)]
    scales = [max(map(abs, row)) / 127 or 1.0 for row in rows]
    return struct.pack(f"<{len(scales)}f", *scales) + b"".join(struct.pack(f"{width}b", *(round(v / s) for v in row)) for row, s in zip(rows, scales))


def main():
    facula, mnist = sys.argv[1:3]
    run = sys.argv[3] if len(sys.argv) > 3 else os.path.join(tempfile.mkdtemp(), "run")
    if len(sys.argv) <= 3:
        subprocess.run([facula, "train", "mnist", "--data", mnist, "--model", "zoo:lenet", "--augment", "crop=2,rotate=10", "--epochs", "6",
                        "--batch", "64", "--lr", "0.002", "--seed", "1", "--out", run], check=True)
    weights = read(os.path.join(run, "model.safetensors"))
    out = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src", "studio", "images", "digits.bin")
    with open(out, "wb") as f:
        for layer in ORDER:
            for part in ("weight", "bias"):
                f.write(pack(*weights[f"{layer}.{part}"]))
    print(f"{out}: {os.path.getsize(out)} bytes")


main()
