"""Models with inputs and results, in folders as `facula conformance` reads them."""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def initializer(name, x):
    if x.dtype.kind != "O": return numpy_helper.from_array(x, name)
    return helper.make_tensor(name, TensorProto.STRING, x.shape, [str(w).encode() for w in x.ravel()])


def write(folder, model, feeds, results):
    """A case as `facula conformance` reads it."""
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, arrays in (("input", [feeds[i.name] for i in model.graph.input]), ("output", results)):
        for k, x in enumerate(arrays):
            with open(os.path.join(data, f"{kind}_{k}.pb"), "wb") as f: f.write(initializer("t", np.asarray(x)).SerializeToString())
