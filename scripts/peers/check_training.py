#!/usr/bin/env python3
"""Compares trainings with PyTorch's, element by element: loss, every gradient and every weight after steps 1, 2 and the last.

  scripts/peers/check_training.py BUILD/tests/test_nn_training [--models lenet,resnet18] [--optimizers sgd] [--dtypes f64,f32]
                            [--steps 10] [--exact] [--all]

Same first values, same batch each step.  A number is right within tolerance * max(1, largest magnitude of its tensor), 1e-10 in
f64 and 1e-5 in f32.  Beside each result stands how far PyTorch's own f32 is from its f64: what f32 leaves to chance, such as
the weights that Adam moves where the true gradient is 0, is counted apart when PyTorch misses the tolerance, too.  A deep network
has, after some steps in f32, a ReLU input so near 0 that rounding decides its sign, and with it whole gradients: for resnet18,
f64 shows parity, f32 only the first steps (--exact --steps 2).  --all prints every tensor."""
import argparse
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden", "make"))
from golden_nn_training import MODELS, OPTIMIZERS, tensors, train  # noqa: E402

TOLERANCE = {"f64": 1e-10, "f32": 1e-5}
TYPES = {"f64": torch.float64, "f32": torch.float32}


def reference(model, optimizer, dtype, steps):
    return {f"{part}.{k}{dot}{name}": t.detach().clone()
            for k, loss, module in train(model, optimizer, TYPES[dtype], steps) if k in (1, 2, steps)
            for full, t in tensors(loss, module) for part, dot, name in [full.partition(".")]}


def distance(a, b):
    a, b = a.double().reshape(-1), b.double().reshape(-1)
    return float((a - b).abs().max() / max(1.0, float(b.abs().max())))


def compare(program, model, optimizer, dtype, steps, exact, print_all):
    with tempfile.TemporaryDirectory() as folder:
        file = folder + "/out.safetensors"
        subprocess.run([program, model, optimizer, dtype, str(steps), file] + ["exact"] * exact, check=True)
        ours = load_file(file)
    want = reference(model, optimizer, dtype, steps)
    other = reference(model, optimizer, "f32", steps) if dtype == "f64" else reference(model, optimizer, "f64", steps)
    missing = [name for name in want if name not in ours]
    if missing:
        sys.exit(f"{model}: no {missing[0]}")
    limit, worst, bad, chance = TOLERANCE[dtype], (0.0, ""), [], 0
    for name, t in want.items():
        if ours[name].numel() != t.numel():
            sys.exit(f"{model}: {name} has {ours[name].numel()} elements, PyTorch {t.numel()}")
        d, own = distance(ours[name], t), distance(t, other[name])
        if print_all:
            print(f"  {name:50} {d:.2e}  torch f32 from f64 {own:.2e}")
        if d > limit and dtype == "f32" and own > limit / 3:
            chance += 1
            continue
        worst = max(worst, (d, name))
        if d > limit:
            bad.append(name)
    print(f"{model:12} {optimizer:6} {dtype}{' exact' * exact}: {len(want)} tensors, worst {worst[0]:.1e} ({worst[1]}), "
          f"{chance} left to chance, {'FAILED ' + ', '.join(bad[:4]) if bad else 'ok'}", flush=True)
    return not bad


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("--models", default=",".join(MODELS))
    p.add_argument("--optimizers", default=",".join(OPTIMIZERS))
    p.add_argument("--dtypes", default="f64,f32")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--exact", action="store_true")
    p.add_argument("--all", action="store_true")
    a = p.parse_args()
    good = [compare(a.program, m, o, d, a.steps, a.exact, a.all)
            for m in a.models.split(",") for o in a.optimizers.split(",") for d in a.dtypes.split(",")]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
