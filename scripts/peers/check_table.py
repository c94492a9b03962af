#!/usr/bin/env python3
"""The table of `facula summary --table` for files of PyTorch's exporters, against torchinfo's own (tests/golden/tables).

    python3 scripts/peers/check_table.py build/facula [NETWORK...]     # needs torch, torchvision, onnx, onnxscript

Each network is exported twice, by the exporter of TorchScript and by that of torch.export, batch norms kept (by default both fold
them into the convolutions before them, and then a file has neither their rows nor their numbers).  Every row must have torchinfo's
depth, shape and parameters, in its order, and all totals and sizes must be torchinfo's; for torch.export also the classes, but that
what the exporter left out (Dropout) is its number in brackets.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import torch
import torchvision

TABLES = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "tables"
NETWORKS = ["alexnet", "vgg16", "resnet18", "resnet34", "resnet50", "squeezenet1_0", "squeezenet1_1", "mobilenet_v2", "googlenet"]
ROW = re.compile(r"^(.*?)(\S+)(?:: (\d+)-\d+)?  +(\[.*?\]) +(\S+)$")
TOTAL = re.compile(r"^(?:Total|Trainable|Non-trainable|Input|Forward|Params size \(MB|Estimated)")


def export(name, path, new):
    options = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    model = getattr(torchvision.models, name)(weights=None, **options).eval()
    x = torch.zeros(1, 3, 224, 224)
    if new:
        torch.onnx.export(model, (x,), path, dynamo=True, external_data=False, optimize=False, verbose=False)
    else:
        torch.onnx.export(model, (x,), path, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)


def parts(lines, classes):
    """Rows as (depth, shape, parameters and, if asked for, class), then the totals."""
    for line in lines:
        row = ROW.match(line)
        if row:
            kind = re.sub(r"^[├└│─ ]*", "", row[2])
            yield row[3], row[4], row[5], "left out" if kind == "Dropout" or kind.startswith("(") else kind if classes else ""
        elif TOTAL.match(line):
            yield line


def main():
    facula, names = sys.argv[1], sys.argv[2:] or NETWORKS
    warnings.simplefilter("ignore")
    wrong = 0
    for name in names:
        golden = (TABLES / f"{name}.txt").read_text().split("\n")
        for new in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/{name}.onnx"
                export(name, path, new)
                shown = subprocess.run([facula, "summary", path, "--table", "--depth", "4"], capture_output=True, text=True, check=True)
            want, have = list(parts(golden, new)), list(parts(shown.stdout.split("\n"), new))
            if not new:
                want, have = ([(*p[:3], "") if isinstance(p, tuple) else p for p in side] for side in (want, have))
            apart = [(w, h) for w, h in zip(want, have) if w != h]
            good = not apart and len(want) == len(have) and len(want) > 20
            wrong += not good
            print(f"{'ok    ' if good else 'FAILED'} {name}, {'torch.export' if new else 'TorchScript'}: {len(have)} of {len(want)} lines",
                  *apart[:1], flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
