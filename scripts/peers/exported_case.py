"""A model for check_exporters.py, and how both of PyTorch's exporters write one."""
import contextlib
import dataclasses
import io
import logging
from collections.abc import Callable

import numpy as np

OPSETS = {"script": 20, "dynamo": 20}


@dataclasses.dataclass
class Case:
    """One file: write(path) makes it and returns its inputs, one dict of arrays for each run."""
    source: str
    name: str
    exporter: str
    write: Callable
    allowed: Callable = None      # of a path: how far numbers may be off, where bytes are computed


def randomize(module, seed=1):
    """Weights that let every part of a network count: first values are often small or equal."""
    import torch
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in module.named_parameters():
            if p.dim() > 1 and p.is_floating_point():
                p.normal_(0, (p[0].numel() if p[0].numel() else 1) ** -0.5)
            elif p.is_floating_point():
                p.add_(torch.randn_like(p) * 0.1)
        for name, b in module.named_buffers():
            if name.endswith("running_mean"):
                b.normal_(0, 0.1)
            elif name.endswith("running_var"):
                b.uniform_(0.5, 1.5)
    return module.eval()


def tensors(results, kept):
    """The tensors of what a model returns, in order; caches count if kept is true."""
    import torch
    if isinstance(results, torch.Tensor):
        return [results]
    if isinstance(results, dict):
        results = list(results.values())
    if isinstance(results, (list, tuple)):
        return [t for r in results for t in tensors(r, kept)]
    layers = getattr(results, "layers", None) if kept else None
    return [t for layer in layers or [] for t in (layer.keys, layer.values)]


def flat(module, names, prepare=None, kept=False):
    """The module with positional tensors by name, and a flat tuple of results."""
    import torch

    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, *given):
            fed = dict(zip(names, given))
            return tuple(tensors(module(**(prepare(fed) if prepare else fed)), kept))

    return Flat().eval()


def arrays(inputs):
    return {n: t.detach().numpy().copy() for n, t in inputs.items()}


def write_torch(exporter, build, inputs, other, dynamic, prepare, kept, path):
    """Exports what build() makes; inputs and other are tensors by name, or functions to them."""
    import torch
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)      # it has an operator of its own
    for name in "torch.onnx", "onnxscript", "transformers", "onnx_ir":
        logging.getLogger(name).setLevel(logging.CRITICAL)
    module = randomize(build())
    torch.manual_seed(2)
    given = inputs()
    runs = [arrays(given)] + ([arrays(other())] if other else [])
    model = flat(module, list(given), prepare, kept)
    more = {"input_names": list(given), "opset_version": OPSETS[exporter]}
    if exporter == "dynamo":
        more["dynamo"] = True
        more["external_data"] = False
        if dynamic:
            dims = {n: {k: torch.export.Dim.DYNAMIC for k in dynamic.get(n, {})} for n in given}
            more["dynamic_shapes"] = (tuple(dims.values()),)
    else:
        more["dynamo"] = False
        if dynamic:
            more["dynamic_axes"] = dynamic
    silent = io.StringIO()
    with torch.no_grad(), contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        torch.onnx.export(model, tuple(given.values()), path, **more)
    return runs


def torch_cases(source, name, build, inputs, other=None, dynamic=None, prepare=None, kept=False,
                exporters=("script", "dynamo")):
    """One case for each exporter."""
    for exporter in exporters:
        yield Case(source, name, exporter,
                   lambda path, e=exporter: write_torch(e, build, inputs, other, dynamic, prepare,
                                                        kept, path))


def numbers(shape, seed=0, low=-1, high=1):
    return np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32)
