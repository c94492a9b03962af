"""The recorder of device "ocl": precision of products, what nobody keeps, plans that are dropped, errors in the middle, long runs."""
from __future__ import annotations

import contextlib
import os
import resource

import pytest
import torch
import torch.nn as nn

import facula.torch as ft
import torch_long

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore:device ocl")]
D = "ocl"


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


# ---- what a program keeps, and somebody else replaces ------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("n", [4, 64, 4000])
def test_a_leaf_that_was_replaced_is_not_taken_from_before(n, at):
    """A later tensor may have the address of the one that is kept, so addresses tell nothing."""
    if at >= torch.ocl.device_count():
        pytest.skip("there is one device")
    for k in (1, 2, 3, 4) * 12:
        torch.ocl.empty_cache()
        x = torch.ones(n, device=f"{D}:{at}")
        for _ in range(4):
            (x * 2 + 1).cpu()
        assert torch.ocl.stats()["kept"] == 1
        for _ in range(k):
            x.add_(1)
            torch.ocl.synchronize()
        assert (x * 2 + 1).cpu().tolist() == [2 * (1 + k) + 1] * n


def test_a_leaf_that_was_seen_as_another_dtype_is_not_taken_from_before():
    for _ in range(12):
        torch.ocl.empty_cache()
        x = torch.ones(64, device=D)
        for _ in range(4):
            (x * 2 + 1).cpu()
        bits = (x.view(torch.int32) + 1).cpu()
        assert bits[0].item() == 0x3f800001
        for value in (5.0, 7.0):
            x.copy_(torch.full((64,), value))
            assert (x * 2 + 1).cpu().tolist() == [2 * value + 1] * 64


def test_a_program_that_could_not_be_made_leaves_the_one_before(monkeypatch):
    """It was given back, so it is not run again."""
    from facula.torch import segment
    factor, first, second = (torch.full((64,), float(v), device=D) for v in (3, 1, 2))
    for _ in range(4):
        (first * factor + 1).cpu()
    assert torch.ocl.stats()["kept"] == 2

    def fail(*_, **__):
        raise KeyboardInterrupt
    monkeypatch.setattr(segment._facula, "Program", fail)
    with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
        (second * factor + 1).cpu()                     # half of the leaves are those of before: their program gives way
    monkeypatch.undo()
    (torch.ones(5, device=D) * 7 - 2).cpu()             # a new program: what was given back is freed
    again = (first * factor + 1).cpu()
    assert torch.ocl.stats()["kept"] == 1 and again.tolist() == [4] * 64        # the factor, by a program of now
    assert (second * factor + 1).cpu().tolist() == [7] * 64


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_training_and_evaluation_in_turn(optimizer):
    """Both keep the parameters; the host, steps, other steps and load_state_dict change them."""
    torch.manual_seed(2)

    def net():
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(32, 5))
    a = net()
    b = net().to(D)
    b.load_state_dict(a.state_dict())
    inputs = [torch.randn(4, 3, 4, 4) for _ in range(2)]
    on_device = [x.to(D) for x in inputs]
    kept = []

    def evaluate():
        a.eval(), b.eval()
        for _ in range(5):
            with torch.no_grad():
                torch.testing.assert_close(b(on_device[0]).cpu(), a(inputs[0]), rtol=1e-3, atol=1e-3)
            kept.append(torch.ocl.stats()["kept"])
        a.train(), b.train()

    opts = [getattr(torch.optim, optimizer)(m.parameters(), lr=0.01, **({"eps": 1e-2} if optimizer == "Adam" else {})) for m in (a, b)]
    for steps in range(5):
        evaluate()
        for k in range(steps):
            for m, opt, xs in ((a, opts[0], inputs), (b, opts[1], on_device)):
                opt.zero_grad()
                m(xs[k % 2]).pow(2).mean().backward()
                opt.step()
        evaluate()
        mean = torch.randn(8)
        for m in (a, b):
            with torch.no_grad():
                m[1].running_mean.copy_(mean)
                m[1].running_var.mul_(1.5)
                m[4].bias[1:3].fill_(steps)
                m[0].weight.mul_(0.9)
        evaluate()
        b.load_state_dict(a.state_dict())
    assert max(kept) >= 8                               # all parameters and the norm's statistics


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


# ---- what is read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [lambda y, x: y.copy_(x), lambda y, x: torch.mul(x, 2, out=y), lambda y, x: y.zero_().add_(x),
                                   lambda y, x: y.fill_(3).mul_(x), lambda y, x: y.t().copy_(x)])
def test_what_is_overwritten_is_no_input(write, monkeypatch):
    """It would be brought to the device in each run."""
    from facula.torch import segment
    leaves, plain = [], segment.Piece.leaf
    monkeypatch.setattr(segment.Piece, "leaf", lambda self, ref, dt: leaves.append(ref["t"]) or plain(self, ref, dt))
    side = 31
    x = torch.randn(side, side)
    there = x.to(D)
    y, want = torch.empty(side, side, device=D), torch.empty(side, side)
    torch.ocl.synchronize()
    leaves.clear()
    write(y, there)
    write(want, x)
    assert torch.equal(y.cpu(), want)
    assert len(set(leaves)) == 1


def test_a_part_that_is_written_keeps_the_rest():
    y = torch.arange(12., device=D).view(3, 4)
    torch.ocl.synchronize()
    y[1].copy_(torch.full((4,), -1., device=D))
    z = y.clone()
    y[:, 2].zero_()
    want = torch.arange(12.).view(3, 4)
    want[1] = -1
    assert torch.equal(z.cpu(), want)
    want[:, 2] = 0
    assert torch.equal(y.cpu(), want)


def test_two_views_of_what_changes_later():
    """Values are those of the time of the call, however late they are asked for."""
    x = torch.arange(6., device=D)
    y = torch.zeros(6, device=D)
    torch.ocl.synchronize()
    y.copy_(x)
    old = x[2:4].clone()
    x.copy_(torch.ones(6, device=D))
    x[0:2].add_(y[4:6])
    assert old.tolist() == [2, 3] and x.tolist() == [5, 6, 1, 1, 1, 1] and y.tolist() == [0, 1, 2, 3, 4, 5]
