"""Calls of device "ocl" over lists and of several types: what torch's cpu gives."""
from __future__ import annotations

import pytest
import torch
import facula.torch as ft

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore:device ocl")]


def same(function):
    """The function of a device gives the same tensors on both."""
    for want, got in zip(function("cpu"), function("ocl"), strict=True):
        assert want.dtype == got.dtype
        torch.testing.assert_close(got.cpu(), want)


@pytest.fixture(autouse=True, params=["lazy", "eager"])
def mode(request):
    ft.ocl.set_eager(request.param == "eager")


# ---- products of other types than the result's


@pytest.mark.parametrize("dtype,most", [(torch.int8, 100), (torch.int32, 70000), (torch.int64, 2 ** 40), (torch.float16, 1e4)])
def test_products_are_made_in_the_type_of_the_result(dtype, most):
    def call(device):
        x = torch.tensor([1.0, 2.0, 3.0], device=device)
        a = torch.tensor([most, most, 3], dtype=dtype, device=device)
        y, z = x.clone(), x.clone()
        torch._foreach_addcmul_([z], [a], [a])
        return torch.addcmul(x, a, a), torch.addcmul(x, a, a, value=3), y.addcmul_(a, a), z
    same(call)


def test_quotients_are_made_in_the_type_of_the_result():
    def call(device):
        x = torch.tensor([1.0, 2.0, 3.0], device=device)
        a = torch.tensor([6e4, 1.0, 3.0], dtype=torch.float16, device=device)
        b = torch.tensor([1e-3, 3.0, 7.0], dtype=torch.float16, device=device)
        return torch.addcdiv(x, a, b), torch._foreach_addcdiv([x], [a], [b])[0]
    same(call)


# ---- lists in which one memory stands at several places


@pytest.mark.parametrize("name", ["same twice", "views that share", "one reads what another writes", "copies in turn", "disjoint"])
def test_lists_are_written_in_turn(name):
    def call(device):
        a, b = torch.arange(1.0, 7.0, device=device), torch.arange(11.0, 17.0, device=device)
        if name == "same twice":
            torch._foreach_mul_([a, a, b], 3.0)
        elif name == "views that share":
            torch._foreach_add_([a[:4], b, a[2:]], 1.0)
        elif name == "one reads what another writes":
            torch._foreach_add_([a, b], [b, a])
        elif name == "copies in turn":
            torch._foreach_copy_([a, b], [b, a])
        else:
            torch._foreach_add_([a[:3], b, a[3:]], [a[:3], b, a[3:]])
        return a, b
    same(call)


def test_parts_of_one_memory_that_do_not_overlap_stay_on_the_device():
    flat = torch.ones(6, device="ocl")
    torch._foreach_mul_([flat[:3], flat[3:]], 2.0)
    assert flat.sum().item() == 12
    assert "overlap" not in str(ft.explain())
    torch._foreach_mul_([flat[:4], flat[3:]], 2.0)
    assert flat.sum().item() == 28
    assert "overlap" in str(ft.explain())


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan"), 2.0])
def test_gradient_scalers_find_infinities_and_stay_finite(bad):
    for device in ("cpu", "ocl"):
        g, found = torch.tensor([1.0, bad, 3.0]).to(device), torch.zeros(1).to(device)
        torch._amp_foreach_non_finite_check_and_unscale_([g], found, torch.full((1,), 0.5).to(device))
        assert found.item() == (bad != 2.0)
        scale, steps = torch.full((1,), 3e38).to(device), torch.zeros(1, dtype=torch.int32).to(device)
        torch._amp_update_scale_(scale, steps, found, 2.0, 0.5, 1)
        assert scale.item() == pytest.approx(1.5e38 if bad != 2.0 else 3e38) and steps.item() == 0
