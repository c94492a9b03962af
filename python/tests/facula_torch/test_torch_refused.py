"""What device "ocl" refuses when a call is made: nothing of it is recorded, so nothing else is lost."""
from __future__ import annotations

import pytest
import torch
import facula.torch  # noqa: F401

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore")]
D = "ocl"


def part(x, to):
    """A view all of whose elements are one place."""
    return x[:1].expand(to)


OVERLAPS = {
    "abs_": lambda x: part(x, 3).abs_(), "neg_": lambda x: part(x, 3).neg_(), "eq_": lambda x: part(x, 3).eq_(x[3:6]),
    "gt_": lambda x: part(x, 3).gt_(1.0), "copysign_": lambda x: part(x, 3).copysign_(x[3:6]), "heaviside_": lambda x: part(x, 3).heaviside_(x[3:6]),
    "relu6": lambda x: torch.nn.functional.relu6(part(x, 3), inplace=True),
    "mish": lambda x: torch.nn.functional.mish(part(x, 3), inplace=True), "gelu_": lambda x: torch.ops.aten.gelu_(part(x, 3)),
    "abs out": lambda x: torch.abs(x[3:6], out=part(x, 3)), "abs out, a part": lambda x: torch.abs(x[3:6], out=x[4:7]),
    "lt out": lambda x: torch.lt(x[3:6], 1, out=part(x, 3)),
    "bernoulli_": lambda x: part(x, 3).bernoulli_(0.5), "bernoulli_ of a tensor": lambda x: part(x, 3).bernoulli_(torch.full_like(x[:3], 0.5)),
    "bernoulli out": lambda x: torch.bernoulli(torch.full_like(x[:3], 0.5), out=part(x, 3)),
    "normal_": lambda x: part(x, 3).normal_(), "uniform_": lambda x: part(x, 3).uniform_(), "random_": lambda x: part(x, 3).random_(),
    "exponential_": lambda x: part(x, 3).exponential_(), "geometric_": lambda x: part(x, 3).geometric_(0.5),
}
SHAPES = {name: (lambda x, name=name: getattr(x[:3], name)(x[3:9].view(2, 3)))
          for name in ("eq_", "ne_", "lt_", "le_", "gt_", "ge_", "xlogy_", "copysign_", "heaviside_", "fmod_")}
SHAPES["lerp_"] = lambda x: x[:3].lerp_(x[3:9].view(2, 3), 0.5)
SHAPES["masked_fill_"] = lambda x: x[:3].masked_fill_(x[3:9].view(2, 3) > 0, 1.0)
SHAPES["masked_scatter_"] = lambda x: x[:3].masked_scatter_(x[3:9].view(2, 3) > 0, x)
CASES = {**OVERLAPS, **{f"{name}, shapes": f for name, f in SHAPES.items()}}


@pytest.mark.parametrize("name", CASES)
def test_refused_at_once(name):
    with pytest.raises(RuntimeError):
        CASES[name](torch.arange(12.0) - 5)
    x = (torch.arange(12.0) - 5).to(D)
    other = x * 2
    with pytest.raises(RuntimeError, match="unsupported operation" if name in OVERLAPS else "shape|size|expand"):
        CASES[name](x)
    assert torch.equal(x.cpu(), torch.arange(12.0) - 5) and torch.equal(other.cpu(), x.cpu() * 2)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32])
def test_bernoulli_of_any_type(dtype):
    for p in (torch.rand(6, device=D).expand(4, 6), torch.rand(4, 6, device=D, dtype=torch.float64)):
        t = torch.full((4, 6), 2, device=D).to(dtype)
        for draw in (lambda: t.bernoulli_(0.5), lambda: t.bernoulli_(p), lambda: torch.bernoulli(p, out=t)):
            t.fill_(2)
            draw()
            assert set(t.float().flatten().tolist()) <= ({0.0, 1.0})
    t = torch.empty(0, dtype=dtype, device=D)
    assert torch.bernoulli(torch.ones(2, 3, device=D), out=t) is t and t.float().tolist() == [[1.0] * 3] * 2


LAZY = {
    "mm": lambda x: torch.mm(x, x.mH), "mm, both": lambda x: torch.mm(x.conj(), x.mH), "bmm": lambda x: torch.bmm(x[None], x.mH[None]),
    "addmm": lambda x: torch.addmm(x[:, :2].conj(), x, x.mH), "dot": lambda x: torch.dot(x[0].conj(), x[1]), "vdot": lambda x: torch.vdot(x[0], x[1]),
    "linear": lambda x: torch.nn.functional.linear(x, x.conj()), "einsum": lambda x: torch.einsum("ij,kj->ik", x, x.conj()),
    "cov": torch.cov, "corrcoef": torch.corrcoef, "cat": lambda x: torch.cat([x, x.conj()]), "imag": lambda x: x.conj().imag @ x.real.mT,
    "out": lambda x: torch.mm(x, x.mH, out=torch.empty(2, 2, dtype=x.dtype, device=x.device)),
}


@pytest.mark.parametrize("name", LAZY)
def test_lazy_conjugates_and_signs(name):
    x = torch.complex(torch.arange(6.0).view(2, 3), torch.tensor([[1.0, -2, 0.5], [3, 1, -1]]))
    torch.testing.assert_close(LAZY[name](x.to(D)).cpu().resolve_conj(), LAZY[name](x).resolve_conj())
