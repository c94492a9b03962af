#!/usr/bin/env python3
"""Times tree ensembles against ONNX Runtime, in turns: trees.py build/facula [--threads N] [--seconds S].

Complete trees of 20 features, 100 to 1,000 of them, one row and 1,000 rows; both engines use the same number of threads.
Printed are milliseconds a call (medians) and how many times as fast facula is."""
import argparse
import os
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import timing


def ensemble(trees, depth, rows, seed):
    r = np.random.default_rng(seed)
    inner, n = 2 ** depth - 1, 2 ** (depth + 1) - 1
    ids = np.arange(n)
    yes = np.where(ids < inner, 2 * ids + 1, 0)
    no = np.where(ids < inner, 2 * ids + 2, 0)
    leaves = ids[inner:]
    many = lambda one: [int(v) for v in np.tile(one, trees)]
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[int(v) for v in np.repeat(np.arange(trees), n)], nodes_nodeids=many(ids),
        nodes_featureids=[int(v) for v in r.integers(20, size=trees * n)], nodes_truenodeids=many(yes), nodes_falsenodeids=many(no),
        nodes_modes=(["BRANCH_LEQ"] * inner + ["LEAF"] * len(leaves)) * trees,
        nodes_values=[float(v) for v in r.normal(size=trees * n)],
        target_treeids=[int(v) for v in np.repeat(np.arange(trees), len(leaves))], target_nodeids=many(leaves),
        target_ids=[0] * (trees * len(leaves)), target_weights=[float(v) for v in r.normal(size=trees * len(leaves))])
    graph = helper.make_graph([node], "trees", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 20])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 1])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("binary")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1)
    a = p.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = a.threads
    print("trees depth  rows      ORT ms   facula ms   ratio")
    with tempfile.TemporaryDirectory() as folder:
        for trees in (100, 500, 1000):
            for depth in (6, 10):
                for rows in (1, 1000):
                    path = os.path.join(folder, "m.onnx")
                    onnx.save(ensemble(trees, depth, rows, 1), path)
                    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
                    x = np.random.default_rng(2).normal(size=(rows, 20)).astype("f")
                    theirs = timing.rival_ms(lambda: session.run(None, {"x": x}), a.seconds)
                    ours = timing.facula_json(a.binary, "bench", path, "cpu", a.seconds, "--threads", str(a.threads))["median_ms"]
                    print("%5d %5d %5d %11.4f %11.4f %7.2f" % (trees, depth, rows, theirs, ours, theirs / ours), flush=True)


main()
