"""What tests share: a seed that is printed when a test fails, and models."""
import os

import numpy as np
import pytest

import facula as fac

SEED = int(os.environ.get("FACULA_SEED") or int.from_bytes(os.urandom(3), "little"))


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
