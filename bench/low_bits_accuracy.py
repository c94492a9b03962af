"""What few bits cost on MNIST: low_bits_accuracy.py FACULA --data DIR [--seeds 0 1 2]
[--epochs N] [--device cpu] [--augment TEXT] [--jobs N] [--only NAME] [--out DIR].

LeNet-5 (20 and 50 filters of 5 x 5, 500 hidden units, batch norms) in floats, then from these
weights in few bits, the first and the last layer in floats; and an MLP of three times 256 hidden
units in which every weight, every activation and every pixel is a sign.  One line for each network:
the accuracy on the 10,000 test images after the last epoch, the mean of all seeds and each of them,
beside what is wanted.  DIR of --data has MNIST's four files.  Needs Python's facula
(PYTHONPATH=build/python).  First the trainings in floats run side by side, one for each seed, then
all others, --jobs of them at a time; they share the processor's cores.  --out keeps the trainings;
the exit status is 1 where a mean is below what is wanted.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import facula as fac
import facula.export

# name, network, scheme, wanted %; the slowest of each network first
ROWS = [
    ("LeNet-5 floats", "lenet", None, None),
    ("LeNet-5 LQ W2A2", "lenet", "lq:w2a2", 99.5),
    ("LeNet-5 LQ W1A2", "lenet", "lq:w1a2", 99.5),
    ("LeNet-5 XNOR W1A1", "lenet", "xnor", 99.2),
    ("MLP 3x256 W1A1", "mlp", "*=bnn", 97.8),
]


class LeNet(fac.nn.Module):
    def __init__(self):
        super().__init__()
        nn = fac.nn
        self.conv1, self.bn1 = nn.Conv2d(1, 20, 5), nn.BatchNorm2d(20)
        self.conv2, self.bn2 = nn.Conv2d(20, 50, 5), nn.BatchNorm2d(50)
        self.fc1, self.bn3 = nn.Linear(50 * 4 * 4, 500), nn.BatchNorm1d(500)
        self.fc2 = nn.Linear(500, 10)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = fac.relu(self.bn1(self.pool(self.conv1(x))))
        x = fac.relu(self.bn2(self.pool(self.conv2(x))))
        return self.fc2(fac.relu(self.bn3(self.fc1(fac.flatten(x, 1)))))


class MLP(fac.nn.Module):
    """A norm before each sign; the last one scales the logits."""

    def __init__(self):
        super().__init__()
        nn, widths = fac.nn, [784, 256, 256, 256, 10]
        pairs = zip(widths, widths[1:])
        self.layers = nn.ModuleList([nn.Linear(a, b, bias=False) for a, b in pairs])
        self.norms = nn.ModuleList([nn.BatchNorm1d(b) for b in widths[1:]])

    def forward(self, x):
        x = fac.flatten(x, 1)
        for layer, norm in zip(self.layers, self.norms):
            x = norm(layer(x))
        return x


def train(args, threads, seed, name, model, more):
    """A training, and its accuracy in %."""
    out = args.folder / f"{name.replace(' ', '_')}_{seed}"
    command = [args.facula, "train", "mnist", "--data", str(args.data), "--model", str(model),
               "--epochs", str(args.epochs), "--seed", str(seed), "--threads", str(threads),
               "--device", args.device, "--augment", args.augment, "--out", str(out), "--overwrite", "--json"] + more
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    found = 100 * json.loads(done.stdout.splitlines()[-1])["test_accuracy"]
    print(f"seed {seed}: {name} {found:.2f} %", file=sys.stderr, flush=True)
    return out, found


def first_weights(args):
    """Files of both networks for each seed."""
    files = {}
    for seed in args.seeds:
        for name, network in (("lenet", LeNet), ("mlp", MLP)):
            fac.manual_seed(seed)
            files[name, seed] = args.folder / f"{name}_{seed}.onnx"
            facula.export.export(network(), files[name, seed], fac.zeros(1, 1, 28, 28))
    return files


def all_trainings(args):
    """Accuracies by name and seed."""
    cores = len(os.sched_getaffinity(0))
    files = first_weights(args)

    def in_floats(seed):
        threads = max(1, cores // min(args.jobs, len(args.seeds)))
        return train(args, threads, seed, ROWS[0][0], files["lenet", seed], [])

    def in_bits(job):
        name, network, scheme, _ = job[0]
        model, more = files[network, job[1]], ["--quantize", scheme]
        if network == "lenet":
            model, more = floats[job[1]][0] / "model.onnx", more + ["--lr", "0.005"]
        return train(args, max(1, cores // args.jobs), job[1], name, model, more)[1]

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        floats = dict(zip(args.seeds, pool.map(in_floats, args.seeds)))
        rows = [row for row in ROWS[1:] if args.only in row[0]]
        jobs = [(row, seed) for row in rows for seed in args.seeds]
        found = dict(zip([(row[0], seed) for row, seed in jobs], pool.map(in_bits, jobs)))
    return {(ROWS[0][0], seed): floats[seed][1] for seed in args.seeds} | found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("facula")
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--device", default="cpu", help="of the trainings: cpu, opencl ...")
    parser.add_argument("--augment", default="none", help="as of facula train: crop=2,rotate=10")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        args.folder = args.out or pathlib.Path(temporary)
        args.folder.mkdir(parents=True, exist_ok=True)
        found = all_trainings(args)
    print(f"| MNIST, {args.epochs} epochs | wanted % | mean of {len(args.seeds)} | each |")
    print("| --- | --- | --- | --- |")
    short = False
    for name, _, _, wanted in ROWS:
        each = [found[name, seed] for seed in args.seeds if (name, seed) in found]
        if not each:
            continue
        mean = sum(each) / len(each)
        short |= wanted is not None and mean < wanted
        texts = ", ".join(f"{x:.2f}" for x in each)
        print(f"| {name} | {wanted or '-'} | {mean:.2f} | {texts} |")
    return short


if __name__ == "__main__":
    sys.exit(main())
