#!/usr/bin/env python3
"""Runs every network of the zoo with random weights and compares it with torchvision.

    python3 scripts/peers/check_zoo.py build/facula [NETWORK...]        (PyTorch, torchvision, safetensors)

Weights travel in safetensors and in both of PyTorch's containers, one of the three for each network in turn.  Exit code 1
when a logit differs by more than 1e-4 of the largest.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "make"))
from golden_zoo import MODELS, model  # noqa: E402

TOLERANCE = 1e-4


def randomize(net, seed):
    """PyTorch's own first values; statistics and scales of batch norm away from 0 and 1."""
    torch.manual_seed(seed)
    for part in net.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
        if isinstance(part, torch.nn.BatchNorm2d):
            for around_one, around_zero in ((part.weight, part.bias), (part.running_var, part.running_mean)):
                torch.nn.init.uniform_(around_one, .5, 1.5)
                torch.nn.init.uniform_(around_zero, -.5, .5)
    return net.eval()


def save(state, folder, how):
    path = folder / ("weights.safetensors" if how == "safetensors" else "weights.pth")
    if how == "safetensors":
        save_file({k: v.contiguous() for k, v in state.items()}, path)
    else:
        torch.save(state, path, _use_new_zipfile_serialization=how == "zip")
    return path


def check(facula, name, how, folder, seed):
    net = randomize(model(name), seed)
    x = torch.randn((2, 1, 28, 28) if name == "lenet" else (2, 3, 224, 224))
    with torch.no_grad():
        expected = net.double()(x.double()).numpy()
    weights = save(net.float().state_dict(), folder, how)
    np.save(folder / "x.npy", x.numpy())
    run = subprocess.run([facula, "run", f"zoo:{name}", "--weights", weights, "--input", f"x={folder / 'x.npy'}",
                          "--output", f"logits={folder / 'y.npy'}"], capture_output=True, text=True)
    weights.unlink()
    if run.returncode:
        print(f"{name:20} {how:12} {run.stderr.strip()}")
        return False
    found = np.load(folder / "y.npy")
    error = np.abs(found - expected).max() / np.abs(expected).max() if found.shape == expected.shape else np.inf
    print(f"{name:20} {how:12} {error:.1e}{'' if error < TOLERANCE else '  FAILED'}", flush=True)
    return bool(error < TOLERANCE)


def main(facula, *names):
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        for k, name in enumerate(names or ["lenet", *MODELS, "efficientnet_lite0"]):
            passed &= check(facula, name, ("safetensors", "zip", "legacy")[k % 3], pathlib.Path(folder), k)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else print(__doc__) or 2)
