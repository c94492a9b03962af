"""Adaptive and fractional max pools, row by row: windows that are equal, that overlap and have several sizes, ties, images without a batch."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch_rows import Rows

SIZES = {2: ((7, 5), (3, 4), (7, 1), (5, 6)), 3: ((5, 4, 3), (2, 3, 2), (1, 4, 5), (2, 2, 1))}


def pooled(x, size):
    """Every call by torch and by its row; the places are compared, too."""
    x = x.clone().requires_grad_()
    with Rows() as mode:
        y, _ = getattr(F, f"adaptive_max_pool{len(size)}d")(x, size, return_indices=True)
        (y * torch.linspace(1, 2, y.numel(), dtype=y.dtype).reshape(y.shape)).sum().backward()
    assert not mode.wrong and not mode.other, (size, mode.wrong, mode.refused)
    names = (f"adaptive_max_pool{len(size)}d", f"adaptive_max_pool{len(size)}d_backward")
    assert all(mode.native[name] == 1 for name in names), mode.native


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("dims", [2, 3])
def test_windows_of_several_sizes(dims, dtype):
    for size in SIZES[dims]:
        pooled(torch.randn(2, 3, *(7, 6, 5)[:dims]).to(dtype), size)
        pooled(torch.randn(3, *(7, 6, 5)[:dims]).to(dtype), size)


def test_more_windows_than_pixels():
    pooled(torch.randn(1, 2, 3, 2), (5, 7))


def test_the_first_of_equals_gets_the_gradient():
    pooled(torch.randint(0, 2, (2, 2, 9, 7)).float(), (4, 3))
    pooled(torch.zeros(1, 1, 5, 5), (3, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dims, kernel, size", [(2, (2, 3), (4, 3)), (2, (3, 2), (1, 5)), (3, (2, 1, 2), (3, 4, 2)), (3, (3, 3, 2), (2, 1, 4))])
def test_windows_that_random_numbers_place(dims, kernel, size, dtype):
    for lead in ((2, 3), (3,)):
        x = torch.randn(*lead, *(9, 8, 7)[:dims], dtype=dtype, requires_grad=True)
        samples = torch.rand(2 if len(lead) == 2 else 1, 3, dims, dtype=dtype)
        with Rows() as mode:
            y, _ = getattr(F, f"fractional_max_pool{dims}d")(x, kernel, output_size=size, return_indices=True, _random_samples=samples)
            (y * torch.linspace(1, 2, y.numel(), dtype=dtype).reshape(y.shape)).sum().backward()
        assert not mode.wrong and not mode.other, (lead, mode.wrong, mode.refused)
        assert mode.native[f"fractional_max_pool{dims}d"] == mode.native[f"fractional_max_pool{dims}d_backward"] == 1, mode.native
