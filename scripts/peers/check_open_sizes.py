#!/usr/bin/env python3
"""ONNX's backend tests with every size of their inputs left open: facula reads, runs and exports them all the same.

    python scripts/peers/check_open_sizes.py build/facula DIR

DIR has backend-test folders.  A model that is refused counts where it runs with its own sizes: the number of elements of a
sequence, or the batch of Scan 8, must be known when a file is read.  Exported models may be refused, not wrong.  Needs onnx.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import onnx

# sizes say how many elements a sequence has, or how often a body of opset 8 is written out
KNOWN = {"test_scan_sum", "test_sequence_model6", "test_sequence_model7", "test_split_to_sequence_1", "test_split_to_sequence_nokeepdims"}


def opened(model):
    """How many sizes of the model are open now."""
    count = 0
    for port in model.graph.input:
        if port.type.WhichOneof("value") != "tensor_type": continue
        for d in port.type.tensor_type.shape.dim:
            d.Clear()
            d.dim_param = f"size{count}"
            count += 1
    for port in model.graph.output:
        if port.type.WhichOneof("value") == "tensor_type": port.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return count


def results(facula, folder, *more):
    ran = subprocess.run([facula, "conformance", folder, *more], capture_output=True, text=True)
    if ran.returncode not in (0, 1): sys.exit(f"{facula} conformance ends with {ran.returncode}: {ran.stderr}")
    return {name: (how, line) for line in ran.stdout.splitlines() for how, name in re.findall(r"^(passed|failed|unsupported) +(\w+)", line)}


def main():
    facula, source = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        for home, _, files in os.walk(source):
            if "model.onnx" not in files: continue
            model = onnx.load(os.path.join(home, "model.onnx"))
            if not opened(model): continue
            place = os.path.join(folder, os.path.basename(home))
            shutil.copytree(home, place)
            onnx.save(model, os.path.join(place, "model.onnx"))
            count += 1
        own = results(facula, source)
        read = results(facula, folder)
        again = results(facula, folder, "--reexport")
    bad = [line for name, (how, line) in read.items() if how != "passed" and own[name][0] == "passed" and name not in KNOWN]
    bad += [f"exported: {line}" for name, (how, line) in again.items() if how == "failed"]
    for line in bad: print(line)
    print(f"{count} models with open sizes, {len(bad)} wrong or refused")
    return len(bad) > 0 or not count


sys.exit(main())
