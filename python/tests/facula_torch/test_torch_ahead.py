"""Segments that end before a result is read, so that a device computes while further calls are recorded."""
from __future__ import annotations

import copy

import pytest
import torch
import torch.nn as nn

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore:device ocl")]
D = "ocl"


@pytest.fixture(params=[8, 20])
def ahead(request):
    torch.ocl.set_ahead(request.param)
    yield request.param
    torch.ocl.set_ahead(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        seen = torch.softmax(x @ x.transpose(-1, -2) + mask, -1) @ x
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm(seen))))


class Tower(nn.Module):
    """Equal blocks on parameters of their own, and a mask that all of them share."""

    def __init__(self, width=24, blocks=6):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.register_buffer("mask", torch.full((7, 7), -3.0).triu(1))

    def forward(self, x):
        for block in self.blocks:
            x = block(x, self.mask)
        return x.mean(1)


def difference(before):
    now = torch.ocl.stats()
    return {k: now[k] - before[k] for k in ("flushes", "planned", "found")}


def test_equal_blocks_keep_their_own_parameters(ahead):
    torch.manual_seed(1)
    net = Tower().eval()
    there = copy.deepcopy(net).to(D)
    with torch.no_grad():
        for k in range(8):
            x = torch.randn(3, 7, 24)
            want = net(x)
            before = torch.ocl.stats()
            got = there(x.to(D)).cpu()
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
            last = difference(before)
    assert last["planned"] == 0 and last["found"] == last["flushes"] >= 3
    assert torch.ocl.stats()["kept"]                    # parameters, by the program of the last segment


def test_equal_blocks_share_one_plan():
    torch.manual_seed(2)
    few, many = Tower(blocks=4).eval().to(D), Tower(blocks=24).eval().to(D)
    torch.ocl.set_ahead(8)
    planned = []
    with torch.no_grad():
        for net in (few, many):
            torch.ocl.empty_cache()
            before = torch.ocl.stats()
            net(torch.randn(3, 7, 24, device=D)).cpu()
            planned.append(difference(before)["planned"])
    torch.ocl.set_ahead(0)
    assert planned[1] <= planned[0] + 4                 # not one for each block


def test_inputs_that_take_turns_share_a_program(ahead):
    torch.manual_seed(3)
    net = Tower().eval()
    there, inputs = copy.deepcopy(net).to(D), [torch.randn(3, 7, 24) for _ in range(5)]
    on_device = [x.to(D) for x in inputs]
    with torch.no_grad():
        for k in range(25):
            before = torch.ocl.stats()
            got = there(on_device[k % 5]).cpu()
            torch.testing.assert_close(got, net(inputs[k % 5]), rtol=1e-5, atol=1e-5)
            if k >= 10:
                assert difference(before)["planned"] == 0


def test_training_is_as_on_the_cpu(ahead):
    torch.manual_seed(4)
    nets = [Tower(blocks=3)]
    nets.append(copy.deepcopy(nets[0]).to(D))
    opts = [torch.optim.Adam(net.parameters(), 1e-2) for net in nets]
    for step in range(14):
        x, y = torch.randn(4, 7, 24), torch.randn(4, 24)
        before, losses = torch.ocl.stats(), []
        for net, opt, device in zip(nets, opts, ("cpu", D)):
            loss = (net(x.to(device)) - y.to(device)).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        assert abs(losses[0] - losses[1]) < 1e-4 * losses[0], step
        if step >= 12:
            assert difference(before)["planned"] == 0
    for mine, want in zip(nets[1].parameters(), nets[0].parameters()):
        torch.testing.assert_close(mine.detach().cpu(), want.detach(), rtol=1e-3, atol=1e-3)


def test_a_parameter_that_is_changed_is_seen(ahead):
    torch.manual_seed(5)
    net = Tower().eval()
    there, x = copy.deepcopy(net).to(D), torch.randn(3, 7, 24)
    with torch.no_grad():
        for k in range(12):
            if k % 4 == 3:
                for each in (net, there):
                    each.blocks[k % 6].wide.weight.mul_(1.5)
                    each.blocks[1].narrow = copy.deepcopy(each.blocks[2].narrow)
            torch.testing.assert_close(there(x.to(D)).cpu(), net(x), rtol=1e-5, atol=1e-5)


def test_less_than_no_call_is_refused():
    with pytest.raises(ValueError, match="0 or more, not -1"):
        torch.ocl.set_ahead(-1)
