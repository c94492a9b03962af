"""What few bits cost: low_bits_accuracy.py FACULA --data DIR [--set mnist|fashion-mnist]
[--seeds 0 1 2] [--epochs N] [--float-epochs N] [--device cpu] [--augment TEXT] [--lr X] [--batch N]
[--jobs N] [--only NAME] [--out DIR].

Networks in floats, then from their weights in few bits, the first and the last layer in floats.
mnist: LeNet-5 (20 and 50 filters of 5 x 5, 500 hidden units, batch norms), and an MLP of three
times 256 hidden units in which every weight, every activation and every pixel is a sign.
fashion-mnist: ResNet-20, and for signs the same with a shortcut for each convolution (Bi-Real).

One line for each: the accuracy on the 10,000 test images after the last epoch, the mean of all
seeds and each of them, beside what is wanted: on fashion-mnist, points below its network in floats.
DIR of --data has the set's four files.  Needs Python's facula (PYTHONPATH=build/python).  First the
trainings in floats run side by side, then all others, --jobs of them at a time; they share the
processor's cores.  --out keeps the trainings; the exit status is 1 where a mean is below what is
wanted.
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


class Shortcuts20(fac.nn.Module):
    """ResNet-20 with a shortcut for each convolution (Liu et al. 2018).  What is not quantized has
    a relu where the other has a sign."""

    def __init__(self):
        super().__init__()
        nn, widths = fac.nn, [16] * 7 + [32] * 6 + [64] * 6
        self.stem, self.norm = nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        pairs = list(zip(widths, widths[1:]))
        self.convs = nn.ModuleList([nn.Conv2d(a, b, 3, b // a, 1, bias=False) for a, b in pairs])
        self.norms = nn.ModuleList([nn.BatchNorm2d(b) for _, b in pairs])
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = self.norm(self.stem(x))
        for conv, norm in zip(self.convs, self.norms):
            y = norm(conv(fac.relu(x)))
            if y.shape != x.shape:
                half = fac.nn.functional.avg_pool2d(x, 2)
                x = fac.cat([half, half], 1)
            x = x + y
        return self.fc(fac.mean(fac.relu(x), (2, 3)))


MODULES = {"lenet": LeNet, "mlp": MLP, "shortcuts20": Shortcuts20}
# name, network, scheme, and the accuracy that is wanted or, below 0, its distance to that of the
# network in floats; in each set floats first, the slowest network before others
ROWS = {
    "mnist": [
        ("LeNet-5 floats", "lenet", None, None),
        ("LeNet-5 LQ W2A2", "lenet", "lq:w2a2", 99.5),
        ("LeNet-5 LQ W1A2", "lenet", "lq:w1a2", 99.5),
        ("LeNet-5 XNOR W1A1", "lenet", "xnor", 99.2),
        ("MLP 3x256 W1A1", "mlp", "*=bnn", 97.8),
    ],
    "fashion-mnist": [
        ("ResNet-20 floats", "resnet20", None, None),
        ("Shortcuts-20 floats", "shortcuts20", None, None),
        ("ResNet-20 ABC W5A5", "resnet20", "abc:w5a5", None),
        ("ResNet-20 ABC W3A3", "resnet20", "abc:w3a3", None),
        ("ResNet-20 ABC W1A1", "resnet20", "abc:w1a1", None),
        ("ResNet-20 LQ W2A2", "resnet20", "lq:w2a2", -1),
        ("ResNet-20 LQ W1A2", "resnet20", "lq:w1a2", -1.5),
        ("Shortcuts-20 Bi-Real W1A1", "shortcuts20", "bireal", -3),
        ("Shortcuts-20 ReActNet W1A1", "shortcuts20", "reactnet", -3),
    ],
}
FLOATS = {"lenet", "resnet20", "shortcuts20"}       # networks whose weights begin in floats


def train(args, threads, seed, name, model, epochs, more):
    """A training, and its accuracy in %."""
    out = args.folder / f"{name.replace(' ', '_')}_{seed}"
    command = [args.facula, "train", args.set, "--data", str(args.data), "--model", str(model),
               "--epochs", str(epochs), "--seed", str(seed), "--threads", str(threads),
               "--batch", str(args.batch), "--device", args.device, "--augment", args.augment,
               "--out", str(out), "--overwrite", "--json"] + more
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    found = 100 * json.loads(done.stdout.splitlines()[-1])["test_accuracy"]
    print(f"seed {seed}: {name} {found:.2f} %", file=sys.stderr, flush=True)
    return out, found


def first_weights(args):
    """Where each network of each seed begins: a file, or a name of the command's own."""
    inputs, files = fac.zeros(1, 1, 28, 28), {}
    for seed in args.seeds:
        for network in {row[1] for row in ROWS[args.set]}:
            files[network, seed] = network
            if network in MODULES:
                fac.manual_seed(seed)
                files[network, seed] = args.folder / f"{network}_{seed}.onnx"
                facula.export.export(MODULES[network](), files[network, seed], inputs)
    return files


def side_by_side(args, one, jobs):
    """{job: one(job, threads)}."""
    at_once = max(1, min(args.jobs, len(jobs)))
    threads = max(1, len(os.sched_getaffinity(0)) // at_once)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return dict(zip(jobs, pool.map(lambda job: one(job, threads), jobs)))


def all_trainings(args):
    """Accuracies by name and seed."""
    files = first_weights(args)
    rows = [row for row in ROWS[args.set] if args.only in row[0]]
    needed = {row[1] for row in rows} & FLOATS
    jobs = [(row, seed) for row in ROWS[args.set] for seed in args.seeds if not row[2]]

    def in_floats(job, threads):
        (name, network, _, _), seed = job
        return train(args, threads, seed, name, files[network, seed], args.float_epochs, [])

    def in_bits(job, threads):
        (name, network, scheme, _), seed = job
        model, more = files[network, seed], ["--quantize", scheme]
        if network in FLOATS:
            folder = begun[network, seed][0]
            more += ["--lr", str(args.lr)]
            more += ["--weights", str(folder)] if model == network else []
            model = model if model == network else folder / "model.onnx"
        return train(args, threads, seed, name, model, args.epochs, more)[1]

    floats = side_by_side(args, in_floats, [job for job in jobs if job[0][1] in needed])
    begun = {(row[1], seed): result for (row, seed), result in floats.items()}
    bits = side_by_side(args, in_bits, [(row, seed) for row in rows if row[2] for seed in args.seeds])
    found = {(row[0], seed): result[1] for (row, seed), result in floats.items()}
    return found | {(row[0], seed): result for (row, seed), result in bits.items()}


def wanted_of(row, found, args):
    """The accuracy that a row has to reach; None: none is wanted."""
    _, network, _, wanted = row
    if wanted is None or wanted > 0:
        return wanted
    floats = next(r[0] for r in ROWS[args.set] if r[1] == network and not r[2])
    return sum(found[floats, seed] for seed in args.seeds) / len(args.seeds) + wanted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("facula")
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--set", choices=ROWS, default="mnist")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--float-epochs", type=int, help="as many as --epochs")
    parser.add_argument("--device", default="cpu", help="of the trainings: cpu, opencl ...")
    parser.add_argument("--augment", default="none", help="as of facula train: crop=2,rotate=10")
    parser.add_argument("--lr", type=float, default=0.005, help="after floats")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    args.float_epochs = args.float_epochs or args.epochs
    with tempfile.TemporaryDirectory() as temporary:
        args.folder = args.out or pathlib.Path(temporary)
        args.folder.mkdir(parents=True, exist_ok=True)
        found = all_trainings(args)
    print(f"| {args.set}, {args.epochs} epochs | wanted % | mean of {len(args.seeds)} | each |")
    print("| --- | --- | --- | --- |")
    short = False
    for row in ROWS[args.set]:
        each = [found[row[0], seed] for seed in args.seeds if (row[0], seed) in found]
        if not each:
            continue
        wanted, mean = wanted_of(row, found, args), sum(each) / len(each)
        short |= wanted is not None and mean < wanted
        texts = ", ".join(f"{x:.2f}" for x in each)
        print(f"| {row[0]} | {f'{wanted:.2f}' if wanted else '-'} | {mean:.2f} | {texts} |")
    return short


if __name__ == "__main__":
    sys.exit(main())
