"""What tests share: a seed that is printed when a test fails, and models."""
import os
import sys

import numpy as np
import pytest

import facula as fac

SEED = int(os.environ.get("FACULA_SEED") or int.from_bytes(os.urandom(3), "little"))


def pytest_configure(config):
    config.addinivalue_line("markers", 'ocl: needs device "ocl" of facula.torch')


@pytest.fixture(autouse=True)
def torch_as_it_comes(request):
    """Each test of facula.torch begins with one seed and torch's settings; those that need the device are skipped without it."""
    if not request.module.__name__.startswith("test_torch_"):
        yield
        return
    import torch

    import facula.torch as ft
    if ft.ocl is None and request.node.get_closest_marker("ocl"):
        pytest.skip("the device's shim was not built")
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    torch.manual_seed(0)
    ft.explain(reset=True)
    yield
    ft.strict(False)
    torch.set_float32_matmul_precision("highest")
    if ft.ocl is not None:
        ft.ocl.set_eager(False)
        ft.ocl.set_precision(None)


@pytest.fixture
def rng(request):
    print(f"FACULA_SEED={SEED}")
    fac.manual_seed(SEED)
    return np.random.default_rng(SEED)


@pytest.fixture(scope="session")
def small():
    """A network of a few layers as a Model."""
    fac.manual_seed(1)
    net = fac.nn.Sequential(fac.nn.Conv2d(3, 4, 3), fac.nn.BatchNorm2d(4), fac.nn.ReLU(), fac.nn.MaxPool2d(2), fac.nn.Flatten(),
                            fac.nn.Linear(36, 5)).eval()
    graph, _ = fac._facula.edit("shape", fac.trace(net, (1, 3, 8, 8)), "x", "N,3,8,8")
    return fac.Model(graph, name="small")


@pytest.fixture(scope="session")
def opencl():
    """The name of the first OpenCL device; tests that ask for it are skipped where there is none that can be used."""
    names = [d["name"] for d in fac.devices() if d["name"].startswith("opencl")]
    if not names:
        pytest.skip("no OpenCL device")
    return names[0]
