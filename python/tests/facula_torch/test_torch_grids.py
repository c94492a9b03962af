"""grid_sample and its gradients, row by row: every mode, padding and alignment, places beyond the image, edges and odd sizes."""
from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch_rows import Rows

ROWS = ("grid_sampler_2d", "grid_sampler_2d_backward", "grid_sampler_3d", "grid_sampler_3d_backward")


def sampled(x, grid, *how):
    """Every call by torch and by its row."""
    x, grid = x.clone().requires_grad_(), grid.clone().requires_grad_()
    with Rows() as mode:
        y = F.grid_sample(x, grid, *how)
        (y * torch.linspace(-1, 2, y.numel(), dtype=y.dtype).reshape(y.shape)).sum().backward()
    return mode


def images(dims, dtype, sizes=(3, 4, 5)):
    x = torch.randn(2, 3, *sizes[:dims], dtype=dtype)
    grid = torch.rand(2, *(6, 3, 2)[:dims], dims, dtype=dtype) * 3.2 - 1.6
    return x, grid


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dims", [2, 3])
def test_modes_and_paddings(dims, dtype):
    x, grid = images(dims, dtype)
    modes = ("bilinear", "nearest", "bicubic")[:3 if dims == 2 else 2]
    for how in itertools.product(modes, ("zeros", "border", "reflection"), (False, True)):
        mode = sampled(x, grid, *how)
        assert not mode.wrong and not mode.other, (how, mode.wrong, mode.refused)
        assert sum(mode.native[r] for r in ROWS) == 2, mode.native


def test_one_pixel_and_far_places():
    """An axis of one pixel has no middle to mirror at; places far outside are many turns away."""
    for padding, align in itertools.product(("zeros", "border", "reflection"), (False, True)):
        x, grid = images(2, torch.float64, (1, 7))
        mode = sampled(x, grid * 9, "bilinear", padding, align)
        assert not mode.wrong and not mode.other, (padding, align, mode.wrong, mode.refused)


def test_corners_are_read_exactly():
    """At -1 and 1 the outermost pixels' centers lie, where a step outwards changes nothing with "border"."""
    x = torch.randn(1, 2, 4, 4, dtype=torch.float64)
    grid = torch.tensor([[[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]]], dtype=torch.float64)[None]
    for padding in ("zeros", "border", "reflection"):
        mode = sampled(x, grid, "bilinear", padding, True)
        assert not mode.wrong and not mode.other, (padding, mode.wrong)


def test_only_what_is_asked_for():
    """Without a gradient of the image, or of the grid."""
    x, grid = images(2, torch.float32)
    for a, b in ((True, False), (False, True)):
        xs, gs = x.clone().requires_grad_(a), grid.clone().requires_grad_(b)
        with Rows() as mode:
            F.grid_sample(xs, gs, align_corners=False).sum().backward()
        assert not mode.wrong and not mode.other, (mode.wrong, mode.refused)
