"""What people's scripts do, in small: the same losses on device "ocl" as on the cpu, with nothing computed by the host and no warning."""
from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import facula.torch as ft

pytestmark = pytest.mark.ocl


def digits(d):
    """PyTorch's MNIST example with AdamW, a schedule, mixed precision, a scaler, clipping, and its test loop."""
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(288, 10),
                        nn.LogSoftmax(1)).to(d)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule, scaler = torch.optim.lr_scheduler.OneCycleLR(opt, 5e-3, total_steps=4), torch.amp.GradScaler(d)
    loader = DataLoader(TensorDataset(torch.rand(32, 1, 16, 16), torch.randint(0, 10, (32,))), 8, pin_memory=d == "ocl")
    out = []
    for x, y in loader:
        x, y = x.to(d, non_blocking=True), y.to(d, non_blocking=True)
        opt.zero_grad()
        with torch.autocast(d, torch.bfloat16):
            loss = F.nll_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        schedule.step()
        out.append(loss.item())
    with torch.no_grad():
        net.eval()
        out.append(sum(F.nll_loss(net(x.to(d)), y.to(d), reduction="sum").item() for x, y in loader) / 32)
        right = [net(x.to(d)).argmax(1, keepdim=True).eq(y.to(d).view(-1, 1)).sum().item() for x, y in loader]
    assert 0 <= sum(right) <= 32
    return out


class Block(nn.Module):
    def __init__(self, n, heads, room):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(n, 3 * n, bias=False), nn.Linear(n, n)
        self.one, self.two = nn.LayerNorm(n), nn.LayerNorm(n)
        self.ff = nn.Sequential(nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n))
        self.register_buffer("tril", torch.tril(torch.ones(room, room)))

    def forward(self, x):
        b, t, n = x.shape
        q, k, v = [s.view(b, t, self.heads, n // self.heads).transpose(1, 2) for s in self.qkv(self.one(x)).split(n, dim=2)]
        w = (q @ k.transpose(-2, -1) * (n // self.heads) ** -0.5).masked_fill(self.tril[:t, :t] == 0, float("-inf"))
        x = x + self.out((F.softmax(w, -1) @ v).transpose(1, 2).contiguous().view(b, t, n))
        return x + self.ff(self.two(x))


class Characters(nn.Module):
    def __init__(self, n=16, room=8):
        super().__init__()
        self.room, self.tokens, self.places = room, nn.Embedding(30, n), nn.Embedding(room, n)
        self.blocks, self.norm, self.head = nn.Sequential(Block(n, 2, room), Block(n, 2, room)), nn.LayerNorm(n), nn.Linear(n, 30)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def generate(self, ids, count):
        for _ in range(count):
            logits = self(ids[:, -self.room:])[:, -1] / 0.8
            top, _ = torch.topk(logits, 5)
            logits[logits < top[:, [-1]]] = -float("inf")
            ids = torch.cat((ids, F.softmax(logits, -1).argmax(-1, keepdim=True)), 1)
        return ids[0].tolist()


def characters(d):
    """A small GPT: tied weights, groups of parameters, accumulated gradients, a learning rate by hand, text from it."""
    net, text = Characters().to(d), torch.randint(0, 30, (200,))
    wide, rest = [p for p in net.parameters() if p.dim() > 1], [p for p in net.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW([{"params": wide, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], betas=(0.9, 0.95))
    out = []
    for step in range(3):
        for group in opt.param_groups:
            group["lr"] = 1e-3 * (step + 1)
        for _ in range(2):
            at = torch.randint(190, (4,))
            x, y = torch.stack([text[i:i + 8] for i in at]).to(d), torch.stack([text[i + 1:i + 9] for i in at]).to(d)
            loss = F.cross_entropy(net(x).view(-1, 30), y.view(-1))
            (loss / 2).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        out.append(loss.item())
    return out + net.generate(torch.zeros((1, 1), dtype=torch.long, device=d), 4)


def adversaries(d):
    """DCGAN's loop: two networks, two optimizers, labels that are filled anew, fakes with and without a gradient."""
    g = nn.Sequential(nn.ConvTranspose2d(4, 8, 4, bias=False), nn.BatchNorm2d(8), nn.ReLU(True), nn.ConvTranspose2d(8, 3, 4, 2, 1),
                      nn.Tanh())
    c = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(8, 1, 4, bias=False), nn.Sigmoid())
    for m in (*g, *c):
        if isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.weight.data, 1.0, 0.02)
        elif hasattr(m, "weight"):
            nn.init.normal_(m.weight.data, 0.0, 0.02)
    g, c, bce, out = g.to(d), c.to(d), nn.BCELoss(), []
    of_c, of_g = (torch.optim.Adam(m.parameters(), lr=2e-3, betas=(0.5, 0.999)) for m in (c, g))
    for _ in range(3):
        real, noise = torch.randn(4, 3, 8, 8).to(d), torch.randn(4, 4, 1, 1).to(d)
        c.zero_grad()
        label = torch.full((4,), 1.0, device=d)
        bce(c(real).view(-1), label).backward()
        fake = g(noise)
        label.fill_(0.0)
        bce(c(fake.detach()).view(-1), label).backward()
        of_c.step()
        g.zero_grad()
        label.fill_(1.0)
        loss = bce(c(fake).view(-1), label)
        loss.backward()
        of_g.step()
        out.append(loss.item())
    return out


def actions(d):
    """Deep Q-learning: a mask that is written with, gathered values, a target network that follows by its state dict."""
    one, two = (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(d) for _ in range(2))
    two.load_state_dict(one.state_dict())
    opt, out = torch.optim.AdamW(one.parameters(), lr=1e-3, amsgrad=True), []
    for _ in range(3):
        s, a, r, after, done = torch.randn(8, 4), torch.randint(0, 2, (8, 1)), torch.randn(8), torch.randn(8, 4), torch.rand(8) < 0.3
        values = torch.zeros(8, device=d)
        with torch.no_grad():
            values[(~done).to(d)] = two(after[~done].to(d)).max(1).values
        loss = F.smooth_l1_loss(one(s.to(d)).gather(1, a.to(d)), (values * 0.99 + r.to(d)).unsqueeze(1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(one.parameters(), 100)
        opt.step()
        mine, theirs = one.state_dict(), two.state_dict()
        two.load_state_dict({k: mine[k] * 0.1 + theirs[k] * 0.9 for k in mine})
        out.append(loss.item())
    return out


@pytest.mark.parametrize("script", [digits, characters, adversaries, actions])
def test_scripts(script):
    results = []
    for d in ("cpu", "ocl"):
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="device ocl")
            results.append(script(d))
    rounding = 2e-2 if script is digits else 1e-4
    assert results[1] == pytest.approx(results[0], rel=rounding, abs=rounding)
    assert not ft.explain()["device_fallbacks"]


def test_shared_parameters_stay_shared():
    net = Characters()
    for d in ("ocl", "cpu"):
        net.to(d)
        assert net.head.weight is net.tokens.weight and net.head.weight.device.type == d
    assert len({id(p) for p in net.parameters()}) == len(list(net.parameters()))
