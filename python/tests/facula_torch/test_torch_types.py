"""Types that do not go together are refused when the call is made, as the cpu refuses them."""
from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import facula.torch  # noqa: F401

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore")]
HALF, DOUBLE, LONG, INT = torch.half, torch.double, torch.long, torch.int32


def ones(device, *shape, dtype=torch.float):
    return torch.ones(shape, device=device, dtype=dtype)


def _into(d):
    return torch.zeros(3, device=d), ones(d, 3, dtype=LONG) * 0, ones(d, 3, dtype=DOUBLE)


REFUSED = {
    "linear": lambda d: F.linear(ones(d, 2, 4), ones(d, 3, 4, dtype=HALF), ones(d, 3, dtype=HALF)),
    "linear without bias": lambda d: F.linear(ones(d, 2, 4), ones(d, 3, 4, dtype=DOUBLE)),
    "mm": lambda d: ones(d, 2, 4) @ ones(d, 4, 3, dtype=torch.bfloat16),
    "mm of integers": lambda d: ones(d, 2, 4) @ ones(d, 4, 3, dtype=LONG),
    "mv": lambda d: torch.mv(ones(d, 2, 4), ones(d, 4, dtype=DOUBLE)),
    "conv": lambda d: F.conv2d(ones(d, 1, 2, 4, 4), ones(d, 3, 2, 3, 3, dtype=HALF)),
    "conv transposed": lambda d: F.conv_transpose2d(ones(d, 1, 2, 4, 4), ones(d, 2, 3, 3, 3, dtype=DOUBLE)),
    "batch norm": lambda d: F.batch_norm(ones(d, 2, 3, 4, 4), ones(d, 3, dtype=DOUBLE), ones(d, 3, dtype=DOUBLE)),
    "layer norm": lambda d: F.layer_norm(ones(d, 2, 4), (4,), ones(d, 4, dtype=DOUBLE), ones(d, 4, dtype=DOUBLE)),
    "cross entropy": lambda d: F.cross_entropy(ones(d, 2, 3), ones(d, 2, dtype=INT)),
    "nll with weights": lambda d: F.nll_loss(ones(d, 2, 3), ones(d, 2, dtype=LONG), ones(d, 3, dtype=DOUBLE)),
    "nll with too many weights": lambda d: F.nll_loss(ones(d, 2, 3), ones(d, 2, dtype=LONG), ones(d, 4)),
    "bce": lambda d: F.binary_cross_entropy(ones(d, 2, 3), ones(d, 2, 3, dtype=DOUBLE)),
    "scatter": lambda d: (lambda x, at, v: x.scatter_(0, at, v))(*_into(d)),
    "index_add": lambda d: (lambda x, at, v: x.index_add_(0, at, v))(*_into(d)),
    "index_copy": lambda d: (lambda x, at, v: x.index_copy_(0, at, v))(*_into(d)),
    "into integers": lambda d: ones(d, 3, dtype=LONG).add_(ones(d, 3)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_at_the_call(name):
    with pytest.raises(RuntimeError) as cpu:
        REFUSED[name]("cpu")
    with pytest.raises(RuntimeError) as here:           # nothing is read: it is the call that refuses
        REFUSED[name]("ocl")
    assert type(here.value) is type(cpu.value) and str(here.value).split()[:3] == str(cpu.value).split()[:3]


TAKEN = {
    "promotion": lambda d: ones(d, 3) * ones(d, 3, dtype=DOUBLE) + ones(d, 3, dtype=INT),
    "norm of half": lambda d: F.layer_norm(ones(d, 2, 4, dtype=torch.bfloat16), (4,), ones(d, 4), ones(d, 4)),
    "cat": lambda d: torch.cat([ones(d, 3), ones(d, 3, dtype=DOUBLE)]),
    "floor division": lambda d: ones(d, 3, dtype=INT) // ones(d, 3, dtype=LONG),
    "integers by floats": lambda d: ones(d, 3).add_(ones(d, 3, dtype=LONG)),
    "where": lambda d: torch.where(ones(d, 3) > 0, ones(d, 3, dtype=HALF), ones(d, 3)),
    "embedding": lambda d: F.embedding(ones(d, 3, dtype=INT), ones(d, 4, 2)),
    "scalar": lambda d: ones(d, 3) + ones(d, dtype=DOUBLE),
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name):
    want, got = TAKEN[name]("cpu"), TAKEN[name]("ocl")
    assert got.dtype == want.dtype and torch.equal(got.cpu(), want)


def test_a_step_after_a_refusal():
    """The mistake costs its own call and nothing else."""
    x = ones("ocl", 2, 4)
    y = x + 1
    with pytest.raises(RuntimeError, match="dtype"):
        F.linear(y, ones("ocl", 3, 4, dtype=HALF))
    assert torch.equal(F.linear(y, ones("ocl", 3, 4)).cpu(), torch.full((2, 3), 8.0))


def test_warnings_that_are_errors():
    code = "import torch, facula.torch; print(torch.linalg.inv(torch.eye(2, device='ocl')).cpu())"
    done = subprocess.run([sys.executable, "-W", "error:device ocl", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "is computed by torch on the host" in done.stderr.splitlines()[-1], done.stderr[-800:]
    assert "Exception ignored" not in done.stderr
