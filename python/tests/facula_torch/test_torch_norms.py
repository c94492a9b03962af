"""Norms of bf16 and f16 with parameters of f32, as autocast makes them: on the device, and as exact as its numbers allow."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import facula.torch as ft

pytestmark = pytest.mark.ocl
D = "ocl"
PARAMETERS = {"layer": (5, 7)}


def normed(kind, x, w, b, mean, var, training):
    if kind == "batch":
        return F.batch_norm(x, mean, var, w, b, training)
    if kind == "layer":
        return torch.native_layer_norm(x, (5, 7), w, b, 1e-5)[0]
    if kind == "group":
        return torch.native_group_norm(x, w, b, x.shape[0], x.shape[1], 35, 3, 1e-5)[0]
    return F.instance_norm(x, None, None, w, b)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", ["batch", "layer", "group", "instance"])
@pytest.mark.parametrize("dtype,step", [(torch.bfloat16, 2.0 ** -8), (torch.float16, 2.0 ** -11)])
def test_norms_of_two_dtypes(dtype, step, kind, training):
    torch.manual_seed(0)
    shape = PARAMETERS.get(kind, (6,))
    x = torch.randn(3, 6, 5, 7).to(dtype)
    w, b, mean, var = torch.rand(shape) + 0.5, torch.randn(shape), torch.randn(6), torch.rand(6) + 0.5
    factor = torch.randn(3, 6, 5, 7).to(dtype).float()         # the gradient of the result has its dtype
    results = []
    host = ft.explain()["device_fallbacks"].copy()
    for to in ({"device": D}, {"dtype": torch.float64}):
        xs, ws, bs = [t.detach().clone().to(**to).requires_grad_() for t in (x, w, b)]
        y = normed(kind, xs, ws, bs, mean.clone().to(**to), var.clone().to(**to), training)
        (y * factor.to(y.device)).sum().backward()
        results.append([y, xs.grad, ws.grad, bs.grad])
    assert ft.explain()["device_fallbacks"] == host, "it was computed on the host"
    got, exact = results
    assert [t.dtype for t in got] == [dtype, dtype, torch.float32, torch.float32]
    sums = 1e-3 if kind != "group" else 1      # a group norm's statistics are kept in the dtype of x, as torch says
    for a, e, room in zip(got, exact, (1, 1, sums, 1e-3)):
        assert (a.detach().cpu().double() - e).abs().max() <= room * step * e.abs().max()
