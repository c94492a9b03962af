"""Views, sizes and storages of device "ocl": what torch's cpu gives, and what it refuses with its words."""
from __future__ import annotations

import warnings

import pytest
import torch
import facula.torch  # noqa: F401

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore")]


def x(d):
    return (torch.arange(24.) - 7).to(d)


CASES = {
    "view_as_complex": lambda d: torch.view_as_complex(x(d).view(3, 4, 2)),
    "view_as_complex, part": lambda d: torch.view_as_complex(x(d)[2:10].view(4, 2)),
    "view_as_complex, nothing": lambda d: torch.view_as_complex(x(d)[:0].view(0, 2)),
    "view_as_complex, last dim": lambda d: torch.view_as_complex(x(d).view(8, 3)),
    "view_as_complex, 0-d": lambda d: torch.view_as_complex(x(d)[0]),
    "view_as_complex, last stride": lambda d: torch.view_as_complex(x(d).view(2, 12).t()),
    "view_as_complex, odd stride": lambda d: torch.view_as_complex(x(d).as_strided((2, 2), (1, 1))),
    "view_as_complex, odd offset": lambda d: torch.view_as_complex(x(d)[1:9].view(4, 2)),
    "view_as_complex, integers": lambda d: torch.view_as_complex(x(d).long().view(12, 2)),
    "view_as_real": lambda d: torch.view_as_real(torch.view_as_complex(x(d).view(12, 2)).t()),
    "view_as_real, real": lambda d: torch.view_as_real(x(d)),
    "view": lambda d: x(d).view(2, -1),
    "view, number": lambda d: x(d).view(5, 5),
    "view, strides": lambda d: x(d).view(4, 6).t().view(24),
    "view, two unknown": lambda d: x(d).view(-1, -1),
    "view, dtype": lambda d: x(d).view(torch.int32),
    "view, wider dtype": lambda d: x(d)[:3].view(torch.float64),
    "unfold": lambda d: x(d).view(4, 6).unfold(1, 3, 2),
    "unfold, 0-d": lambda d: x(d)[3].unfold(0, 1, 1),
    "unfold, step": lambda d: x(d).unfold(0, 2, 0),
    "unfold, size": lambda d: x(d).unfold(0, 25, 1),
    "unfold, below zero": lambda d: x(d).unfold(0, -1, 1),
    "as_strided": lambda d: x(d).as_strided((3, 3), (1, 1), 4),
    "as_strided, too far": lambda d: x(d).as_strided((5, 5), (5, 1)),
    "as_strided, below zero": lambda d: x(d).as_strided((2,), (-1,)),
    "as_strided, offset": lambda d: x(d).as_strided((2,), (1,), -1),
    "as_strided, lengths": lambda d: x(d).as_strided((2, 2), (1,)),
    "empty, below zero": lambda d: torch.empty(-1, device=d),
    "empty_strided, lengths": lambda d: torch.empty_strided((2, 2), (1,), device=d),
    "empty_strided, below zero": lambda d: torch.empty_strided((2,), (-1,), device=d),
    "zeros, below zero": lambda d: torch.zeros(2, -3, device=d),
    "resize_": lambda d: x(d).resize_(2, 3),
    "resize_, a format of four dims": lambda d: x(d).resize_((2, 3), memory_format=torch.channels_last),
    "set_": lambda d: torch.empty(0, device=d).set_(x(d).untyped_storage(), 2, (3, 2), (1, 4)),
    "set_, nothing": lambda d: x(d).set_(),
    "set_, longer": lambda d: torch.empty(0, device=d).set_(x(d), 20, (9,)).shape,
    "set_, offset": lambda d: torch.empty(0, device=d).set_(x(d).untyped_storage(), -2, (3,)),
    "set_, lengths": lambda d: torch.empty(0, device=d).set_(x(d).untyped_storage(), 0, (3, 2), (1,)),
    "set_, dtype": lambda d: torch.empty(0, device=d).set_(x(d).double()),
    "the same expanded view": lambda d: x(d)[:1].expand(3).copy_(x(d)[:1].expand(3)),
    "an expanded view, to itself": lambda d: [y := x(d), y[:1].expand(3).copy_(y[:1].expand(3))][0],
    "an expanded view, from the host": lambda d: x(d)[:1].expand(3).copy_(torch.ones(3)),
    "a transposed view, to itself": lambda d: [y := x(d)[:9].view(3, 3), y.t().copy_(y.t())][0],
}


def outcome(f, device):
    try:
        return f(device)
    except Exception as error:                      # noqa: BLE001: which one is what is compared
        return error


@pytest.mark.parametrize("name", CASES)
def test_as_on_the_cpu(name):
    want, got = outcome(CASES[name], "cpu"), outcome(CASES[name], "ocl")
    if isinstance(want, Exception):
        assert type(got) is type(want) and str(got).splitlines()[0] == str(want).splitlines()[0], f"cpu: {want!r}, ocl: {got!r}"
    elif isinstance(want, torch.Tensor):
        assert got.stride() == want.stride() and got.storage_offset() == want.storage_offset() and torch.equal(got.cpu(), want)
    else:
        assert got == want


def test_a_storage_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match="different device"):
        x("ocl").set_(x("cpu").untyped_storage())
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(2, device="ocl", pin_memory=True)


def test_a_size_below_zero_changes_nothing():
    y = x("ocl")
    with pytest.raises(RuntimeError, match="negative dimension -2"):
        y.resize_(-2)
    assert torch.equal(y.cpu(), x("cpu"))


def test_a_result_of_another_size_warns():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        out = torch.empty(3, device="ocl")
        torch.add(x("ocl"), 1, out=out)
    assert any("An output with one or more elements was resized" in str(w.message) for w in told)
    assert torch.equal(out.cpu(), x("cpu") + 1)
