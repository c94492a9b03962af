"""grid_sample and its gradients, row by row: every mode, padding and alignment, places beyond the image, edges and odd sizes."""
from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch_rows import Rows

import facula.torch as ft

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


@pytest.mark.ocl
@pytest.mark.parametrize("image, grid", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("how", ["bilinear", "nearest"])
def test_nothing_goes_to_the_host(image, grid, how):
    """torch expects a gradient of the grid even where only that of the image is asked for."""
    given, got = images(2, torch.float32), []
    for device in ("cpu", "ocl"):
        x, at = (t.clone().to(device).requires_grad_(wanted) for t, wanted in zip(given, (image, grid)))
        F.grid_sample(x, at, how, align_corners=False).square().sum().backward()
        got.append([t.grad.cpu() for t in (x, at) if t.grad is not None])
    torch.testing.assert_close(got[1], got[0], rtol=1e-4, atol=1e-5)
    assert not ft.explain()["device_fallbacks"]
