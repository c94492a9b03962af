#!/usr/bin/env python3
"""Models of 1,000 to 100,000 nodes: seconds and bytes per node of every verb that reads a model.

    python bench/scale.py --facula build/facula [--nodes 1000,10000,100000] [--shape chain,fan,...] [--verbs summary,...]
                          [--folder DIR] [--check]

Four shapes of models, written here byte by byte (no package is needed): a chain of Relu; one value that all read and
one Sum of all; a chain of Add with a small parameter each; residual blocks MatMul, Add, Relu, Add.  Seconds are processor time of
the process and its children; bytes are its largest resident memory, less that of `facula version`.  What is linear has the
same numbers per node in every column; --check fails where a verb needs more than four times as much a node at the largest size
as at the smallest, and more than 20 microseconds or 20 kB.
"""
import argparse
import os
import resource
import struct
import subprocess
import sys
import tempfile

SHAPES = ["chain", "fan", "parameters", "residual"]
WIDTH = 4


# ---- protobuf ----

def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def text(field, s):
    s = s.encode() if isinstance(s, str) else s
    return varint(field << 3 | 2) + varint(len(s)) + s


def node(op, inputs, output):
    body = b"".join(text(1, i) for i in inputs) + text(2, output) + text(3, "/" + output) + text(4, op)
    return text(1, body)


def tensor(name, dims, values):
    body = b"".join(number(1, d) for d in dims) + number(2, 1) + text(8, name)
    return text(5, body + text(9, struct.pack(f"<{len(values)}f", *values)))


def port(field, name):
    shape = text(2, text(1, number(1, 1)) + text(1, number(1, WIDTH)))
    return text(field, text(1, name) + text(2, text(1, number(1, 1) + shape)))


def model(nodes, tensors):
    graph = b"".join(nodes) + text(2, "scale") + b"".join(tensors) + port(11, "x") + port(12, "y")
    return number(1, 8) + text(8, number(2, 17)) + text(7, graph)


# ---- models of n nodes ----

def chain(n):
    names = ["x"] + [f"b{k // 100}.r{k}" for k in range(n - 1)] + ["y"]
    return [node("Relu", [names[k]], names[k + 1]) for k in range(n)], []


def fan(n):
    made = [f"f{k}" for k in range(n - 1)]
    return [node("Abs", ["x"], name) for name in made] + [node("Sum", made, "y")], []


def parameters(n):
    names = ["x"] + [f"a{k}" for k in range(n - 1)] + ["y"]
    return ([node("Add", [names[k], f"w{k}"], names[k + 1]) for k in range(n)],
            [tensor(f"w{k}", [WIDTH], [0.001 * (k % 7)] * WIDTH) for k in range(n)])


def residual(n):
    nodes, tensors, x = [], [], "x"
    for k in range(n // 4):
        y = "y" if k == n // 4 - 1 else f"block{k}"
        tensors += [tensor(f"block{k}.w", [WIDTH, WIDTH], [0.01 * (i % 5) for i in range(WIDTH * WIDTH)]),
                    tensor(f"block{k}.b", [WIDTH], [0.1] * WIDTH)]
        nodes += [node("MatMul", [x, f"block{k}.w"], f"block{k}.m"), node("Add", [f"block{k}.m", f"block{k}.b"], f"block{k}.a"),
                  node("Relu", [f"block{k}.a"], f"block{k}.r"), node("Add", [f"block{k}.r", x], y)]
        x = y
    return nodes, tensors


# ---- measuring ----

def verbs(path, n, folder):
    out = os.path.join(folder, "out.onnx")
    commands = {
        "summary": ["summary", path], "inspect": ["inspect", path, "--json"], "show": ["show", path],
        "save": ["export", path, "-o", out], "edit": ["edit", path, "-o", out, "--rename", "y=z"],
        "simplify": ["edit", path, "-o", out, "--simplify"],
        "diff": ["diff", path, path], "verify": ["verify", path, path, "--rounds", "1"],
        "bound": ["verify", path, path, "--rounds", "1", "--mode", "bound"],
        "tile": ["tile", path, "-o", out, "--max-k", "3"],
    }
    return commands


def measure(facula, command):
    """Seconds of processor time, bytes at the peak, exit status; the child is the only one there is."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        done = subprocess.run([facula] + command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        answer = f"{used.ru_utime + used.ru_stime} {used.ru_maxrss * 1024} {done.returncode} ".encode() + done.stderr[:300]
        os.write(write, answer)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        answer = f.read()
    os.waitpid(child, 0)
    seconds, peak, code, message = answer.split(b" ", 3)
    return float(seconds), float(peak), int(code), message.decode(errors="replace").strip()


def there(facula, verb):
    return subprocess.run([facula, "help", verb], capture_output=True).returncode == 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--facula", required=True)
    p.add_argument("--nodes", default="1000,10000,100000")
    p.add_argument("--shape", default=",".join(SHAPES))
    p.add_argument("--verbs", default="")
    p.add_argument("--folder")
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    sizes, bad = [int(n) for n in a.nodes.split(",")], 0
    _, empty, _, _ = measure(a.facula, ["version"])
    with tempfile.TemporaryDirectory(dir=a.folder) as folder:
        for shape in a.shape.split(","):
            print(f"\n{shape:12}" + "".join(f"{n:>12,d} nodes         " for n in sizes))
            paths = []
            for n in sizes:
                paths.append(os.path.join(folder, f"{shape}{n}.onnx"))
                with open(paths[-1], "wb") as f:
                    f.write(model(*globals()[shape](n)))
            for verb in verbs("", 0, folder):
                if (a.verbs and verb not in a.verbs.split(",")) or not there(a.facula, verbs("", 0, folder)[verb][0]):
                    continue
                row, cells = [], ""
                for n, path in zip(sizes, paths):
                    seconds, peak, code, message = measure(a.facula, verbs(path, n, folder)[verb])
                    if code:
                        cells += f"  failed: {message[:60]}"
                        bad += 1
                        continue
                    row.append((1e6 * seconds / n, (peak - empty) / n))
                    cells += f"{seconds:9.2f} s {row[-1][0]:6.1f} us {row[-1][1] / 1e3:6.2f} kB"
                steep = len(row) > 1 and any(row[-1][i] > 4 * row[0][i] and row[-1][i] > least for i, least in ((0, 20), (1, 20e3)))
                bad += steep
                print(f"{verb:12}{cells}{'   grows' if steep else ''}", flush=True)
    return 1 if a.check and bad else 0


if __name__ == "__main__":
    sys.exit(main())
