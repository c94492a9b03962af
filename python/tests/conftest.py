"""What tests share: a seed that is printed when a test fails, and models."""
import importlib.util
import os

import numpy as np
import pytest

import facula as fac

SEED = int(os.environ.get("FACULA_SEED") or int.from_bytes(os.urandom(3), "little"))


def pytest_configure(config):
    config.addinivalue_line("markers", 'ocl: needs device "ocl" of facula.torch')


def pytest_report_header():
    """What is not collected (facula_torch/conftest.py) is said."""
    return [] if importlib.util.find_spec("torch") else "torch is not there: tests of facula.torch are left out"


@pytest.fixture(scope="session")
def seed():
    return SEED


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
