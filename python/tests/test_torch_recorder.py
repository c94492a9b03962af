"""The recorder of device "ocl": precision of products, what nobody keeps, plans that are dropped, errors in the middle, long runs."""
from __future__ import annotations

import contextlib
import os
import resource

import pytest

torch = pytest.importorskip("torch")
import torch.nn as nn  # noqa: E402

import facula.torch as ft  # noqa: E402

if ft.ocl is None:
    pytest.skip("the device's shim was not built", allow_module_level=True)
import torch_long  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:device ocl")
D = "ocl"


@pytest.fixture(autouse=True)
def as_before():
    yield
    torch.set_float32_matmul_precision("highest")
    torch.ocl.set_precision(None)


# ---- precision -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("switch,mine", [("highest", "default"), ("high", "high"), ("medium", "medium")])
def test_torchs_switch_is_ours(switch, mine):
    torch.set_float32_matmul_precision(switch)
    assert torch.ocl.get_precision() == mine
    torch.ocl.set_precision("highest")
    assert torch.ocl.get_precision() == "highest"


def test_another_precision_is_refused():
    with pytest.raises(ValueError, match="precision is None, default, .*'tf32'"):
        torch.ocl.set_precision("tf32")


def test_allow_tf32_is_the_same_switch():
    torch.backends.cuda.matmul.allow_tf32 = True
    assert torch.ocl.get_precision() == "high"
    torch.backends.cuda.matmul.allow_tf32 = False
    assert torch.ocl.get_precision() == "default"


def precisions(monkeypatch):
    """Of the programs that are made from now on."""
    from facula.torch import segment
    seen, make = [], segment._facula.Program

    def note(graph, device, precision=None):
        seen.append(precision)
        return make(graph, device, precision=precision)
    monkeypatch.setattr(segment._facula, "Program", note)
    return seen


def test_a_segment_has_the_precision_of_its_products(monkeypatch):
    seen = precisions(monkeypatch)
    x, w = torch.randn(3, 17, device=D), torch.randn(17, 5, device=D)
    torch.ocl.synchronize()
    seen.clear()
    torch.set_float32_matmul_precision("high")
    y = x @ w
    torch.set_float32_matmul_precision("medium")        # changed before anything was computed: two segments
    z = torch.nn.functional.conv2d(y.view(1, 1, 3, 5), torch.ones(1, 1, 2, 2, device=D))
    torch.set_float32_matmul_precision("highest")
    z.cpu()
    assert seen == ["high", "medium"]
    again = x @ w
    torch.testing.assert_close(again.cpu(), x.cpu() @ w.cpu(), rtol=1e-5, atol=1e-5)
    assert seen[2:] == ["default"]


def test_what_is_no_product_does_not_ask(monkeypatch):
    x = torch.randn(3, 19, device=D)
    torch.ocl.synchronize()
    before = torch.ocl.stats()["planned"]
    for switch in ("highest", "high", "medium"):
        torch.set_float32_matmul_precision(switch)
        (x.exp() + 1).cpu()
    assert torch.ocl.stats()["planned"] - before <= 2   # the second run may keep x


# ---- what nobody keeps -------------------------------------------------------------------------------------------


def host(op):
    return ft.explain()["device_fallbacks"].get(op, (0, ""))[0]


def test_what_nobody_keeps_is_not_planned():
    x = torch.ones(4, 23, device=D)
    torch.ocl.synchronize()
    before, on_host = torch.ocl.stats(), sum(n for n, _ in ft.explain()["device_fallbacks"].values())
    (x * 2 + 1).sum()
    nn.Linear(23, 2).to(D)
    x.sin().cos_()
    torch.ocl.synchronize()
    after = torch.ocl.stats()
    assert after["recorded"] > before["recorded"] and after["planned"] == before["planned"] and after["pending"] == 0
    assert sum(n for n, _ in ft.explain()["device_fallbacks"].values()) == on_host


def test_only_what_is_kept_is_computed():
    x = torch.eye(29, device=D)
    torch.ocl.synchronize()
    before = host("linalg_inv_ex")
    kept = x * 3
    torch.linalg.inv_ex(x)                              # the host would compute it
    more = kept + 1
    assert more[0, 0].item() == 4 and host("linalg_inv_ex") == before
    y = torch.linalg.inv_ex(x + kept)[0]                      # its result is read, so its operands count
    del kept
    assert y[0, 0].item() == 0.25 and host("linalg_inv_ex") == before + 1


def test_writes_to_what_is_kept_count():
    x = torch.zeros(31, device=D)
    x[3:5].add_(2)
    (x + 1).sum()
    x.mul_(2)
    assert x.sum().item() == 8


# ---- plans, errors, long runs ------------------------------------------------------------------------------------


def test_empty_cache_drops_plans():
    x = torch.ones(7, 37, device=D)
    first = (x * 5).sum().item()
    assert torch.ocl.stats()["segments"] > 0
    pending = x * 7                                     # recorded, computed before plans are dropped
    torch.ocl.empty_cache()
    stats = torch.ocl.stats()
    assert stats["segments"] == 0 and stats["pending"] == 0
    assert (x * 5).sum().item() == first and pending[0, 0].item() == 7
    assert torch.ocl.stats()["planned"] > stats["planned"]


def test_an_exception_in_the_middle_of_a_step():
    net = torch_long.small().to(D)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    before = [p.detach().cpu() for p in net.parameters()]
    loss = net(torch.ones(6, 4, device=D)).pow(2).mean()

    class Stop(Exception):
        pass

    def stop(grad):
        raise Stop
    hook = net[0].weight.register_hook(stop)
    with pytest.raises(Stop):
        loss.backward()
    hook.remove()
    for p, q in zip(net.parameters(), before):
        assert torch.equal(p.detach().cpu(), q)
    losses = [torch_long.step(net, opt, torch.ones(6, 4, device=D)).item() for _ in range(5)]
    assert losses[-1] < losses[0] <= loss.item() * 1.01


@contextlib.contextmanager
def little_memory(more=256 << 20):
    """Within, the process gets no more than these bytes."""
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_out_of_memory_leaves_the_device_usable():
    x, w = torch.ones(64, device=D), torch.full((8,), 2.0, device=D)
    (x + w.sum()).cpu()
    with little_memory():
        w.add_(1)                                       # of the segment that fails: w stays as it was
        huge = torch.zeros(1 << 30, device=D)           # nothing is allocated yet
        with pytest.raises(torch.OutOfMemoryError, match="ocl: out of memory: 4294967296 bytes were asked for"):
            huge[0].item()
        with pytest.raises(RuntimeError, match="were lost"):
            huge[1].item()
        assert (x + 1).sum().item() == 128 and w.tolist() == [2.0] * 8
    del huge
    assert (torch.zeros(1 << 20, device=D) + 1).sum().item() == 1 << 20 and torch.ocl.stats()["pending"] == 0


@pytest.mark.skipif(os.environ.get("FACULA_ALL") != "1", reason="half a minute: FACULA_ALL=1")
def test_ten_thousand_steps():
    torch_long.main(10000)


def test_a_thousand_steps_do_not_grow():
    torch_long.main(1000)
