"""Code that people write, unchanged on device "ocl": equal to the cpu, and computed on the device."""
from __future__ import annotations

import io
import pickle

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import facula.torch as ft

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore")]
D = "ocl"


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *xs):
        return self.f(*xs)


class Bag(nn.Module):
    def __init__(self, weighted=False, **how):
        super().__init__()
        self.bag, self.weighted = nn.EmbeddingBag(20, 8, **how), weighted

    def forward(self, at):
        starts = [0, 3, 3, 5, 9] if self.bag.include_last_offset else [0, 3, 3, 5]
        weights = torch.linspace(-1, 1, len(at), device=at.device) if self.weighted else None
        return self.bag(at, torch.tensor(starts, device=at.device), per_sample_weights=weights)


class Padded(nn.Module):
    """An encoder of sequences with padding at their end: torch's fast path would make nested tensors."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), 2)

    def forward(self, x):
        padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2], device=x.device)
        return self.encoder(x, src_key_padding_mask=padding) * padding.logical_not()[..., None]


IMAGE, IDS = torch.randn(2, 4, 7, 6), torch.tensor([3, 7, 7, 0, 19, 3, 2, 2, 5])
MODELS = {
    **{f"bag {mode}": (lambda mode=mode: Bag(mode=mode), IDS) for mode in ("sum", "mean", "max")},
    **{f"bag {mode} without 2": (lambda mode=mode: Bag(mode=mode, padding_idx=2), IDS) for mode in ("sum", "mean", "max")},
    "bag weighted": (lambda: Bag(weighted=True, mode="sum"), IDS),
    "bag by count": (lambda: Bag(mode="sum", scale_grad_by_freq=True), IDS),
    "bag with its end": (lambda: Bag(mode="mean", include_last_offset=True), IDS),
    "padded sequences": (Padded, torch.randn(2, 5, 16)),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), torch.randn(4, 3)),
    "adaptive max pool": (lambda: nn.AdaptiveMaxPool2d((1, 3)), torch.randn(2, 4, 8, 6)),
    "adaptive max pool of volumes": (lambda: nn.AdaptiveMaxPool3d(2), torch.randn(2, 3, 4, 6, 2)),
    "unfold": (lambda: nn.Unfold((3, 2), dilation=(1, 2), padding=1, stride=2), IMAGE),
    "fold": (lambda: nn.Fold((5, 6), (2, 3), padding=1), torch.randn(2, 12, 36)),
    "log sigmoid": (lambda: nn.LogSigmoid(), IMAGE),
    **{f"interpolate {k}": (lambda how=how: Calls(lambda x: F.interpolate(x, **how)), IMAGE) for k, how in enumerate((
        {"scale_factor": 2, "mode": "bicubic"}, {"size": (11, 4), "mode": "bicubic", "align_corners": True},
        {"size": (3, 9), "mode": "bilinear", "antialias": True}, {"scale_factor": 0.6, "mode": "bicubic", "antialias": True},
        {"size": (7, 6), "mode": "bicubic"}, {"scale_factor": (1, 1.7), "mode": "bilinear", "antialias": True}))},
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("training", [True, False], ids=["training", "eval"])
def test_models(name, training):
    make, x = MODELS[name]
    results = []
    for device in ("cpu", D):
        torch.manual_seed(1)
        net = make().to(device).train(training)
        at = x.detach().clone().to(device).requires_grad_(training and x.is_floating_point())
        with torch.set_grad_enabled(training):
            y = net(at)
        grads = []
        if training:
            y.square().mean().backward()
            grads = [p.grad for p in [*net.parameters(), at] if p.grad is not None]
        results.append([t.detach().cpu() for t in [y, *grads]])
    for a, b in zip(*results):
        torch.testing.assert_close(b, a, rtol=2e-4, atol=2e-5)
    assert not ft.explain()["device_fallbacks"]


def test_a_gradient_scaler_asks_the_host_nothing():
    def train(device):
        torch.manual_seed(3)
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 4)).to(device)
        opt, scaler = torch.optim.SGD(net.parameters(), lr=0.05), torch.amp.GradScaler(device, init_scale=2.0 ** 40, growth_interval=3)
        x, y = torch.randn(4, 3, 6, 6).to(device), torch.arange(4, device=device)
        scales = []
        for _ in range(9):
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            scaler.scale(loss.half().float() if len(scales) < 2 else loss).backward()
            scaler.step(opt)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales, [p.detach().cpu() for p in net.parameters()]
    (want, a), (got, b) = train("cpu"), train(D)
    assert got == want and len(set(got)) > 1
    for one, two in zip(a, b):
        torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-5)
    assert not ft.explain()["device_fallbacks"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, 4, 2), nn.GroupNorm(2, 4)).to(D)
    x = torch.randn(2, 3, 6, 6, device=D)
    with torch.autocast(D, dtype):
        for layer, after in zip(net, (dtype, dtype, dtype, dtype, torch.float32)):
            x = layer(x)
            assert x.dtype == after, layer
        assert x.softmax(1).dtype == torch.float32 and (x.to(dtype) @ x).dtype == dtype and x.to(dtype).sum().dtype == torch.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(x.sigmoid(), x.sigmoid())
    x.square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    assert net[1].running_mean.dtype == torch.float32 and not ft.explain()["device_fallbacks"]


def test_random_numbers_are_drawn_on_the_device():
    draws = {
        "randint": lambda: torch.randint(-3, 4, (5000,), device=D), "randperm": lambda: torch.randperm(50, device=D),
        "random_": lambda: torch.empty(5000, dtype=torch.uint8, device=D).random_(), "random_ of floats": lambda: torch.empty(50, device=D).random_(7),
        "bernoulli of": lambda: torch.empty(5000, device=D).bernoulli_(torch.linspace(0, 1, 5000, device=D)),
        "exponential": lambda: torch.empty(5000, device=D).exponential_(2.0), "geometric": lambda: torch.empty(5000, device=D).geometric_(0.25),
        "cauchy": lambda: torch.empty(5000, device=D).cauchy_(3.0), "log normal": lambda: torch.empty(5000, device=D).log_normal_(0.0, 0.5),
        "multinomial": lambda: torch.multinomial(torch.tensor([0.1, 0.0, 0.6, 0.3], device=D), 5000, True),
        "one of": lambda: torch.multinomial(torch.tensor([[0.0, 1.0], [1.0, 0.0]], device=D), 1),
        "without again": lambda: torch.multinomial(torch.tensor([1.0, 2.0, 0.0, 3.0], device=D), 3)}
    got = {}
    for name, draw in draws.items():
        torch.manual_seed(5)
        got[name] = draw().cpu()
        torch.manual_seed(5)
        assert torch.equal(draw().cpu(), got[name])
        assert not torch.equal(draw().cpu(), got[name]) or name in ("one of", "without again"), name
    assert not ft.explain()["device_fallbacks"]
    mean = {name: x.double().mean().item() for name, x in got.items()}
    assert set(got["randint"].tolist()) == set(range(-3, 4)) and abs(mean["randint"]) < 0.15
    assert sorted(got["randperm"].tolist()) == list(range(50))
    assert 120 < mean["random_"] < 135 and got["random_ of floats"].max() < 7
    assert abs(mean["bernoulli of"] - 0.5) < 0.05 and abs(mean["exponential"] - 0.5) < 0.05 and abs(mean["geometric"] - 4) < 0.4
    assert abs(got["cauchy"].median().item() - 3) < 0.2 and abs(mean["log normal"] - 1.133) < 0.1
    shares = got["multinomial"].bincount(minlength=4) / 5000
    torch.testing.assert_close(shares, torch.tensor([0.1, 0.0, 0.6, 0.3]), atol=0.04, rtol=0)
    assert got["one of"].tolist() == [[1], [0]] and sorted(got["without again"].tolist()) == [0, 1, 3]


@pytest.mark.parametrize("call", [
    lambda x, y: x + y, lambda x, y: y * x, lambda x, y: x @ y, lambda x, y: F.linear(x, y), lambda x, y: torch.cat([x, y]),
    lambda x, y: torch.where(x > 0, x, y), lambda x, y: x.add_(y), lambda x, y: x.gather(0, y.long()), lambda x, y: nn.Linear(3, 3).to(D)(y)])
def test_tensors_of_two_devices_are_refused(call):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        call(torch.ones(3, 3, device=D), torch.ones(3, 3))


def test_numbers_and_indices_of_the_host_are_taken():
    x = torch.arange(6.0, device=D).reshape(2, 3)
    x.copy_(torch.ones(2, 3))
    assert (x * torch.tensor(2.0))[torch.tensor([1])].tolist() == [[2, 2, 2]]
    x[torch.tensor([0])] = torch.tensor(5.0)
    assert x.sum().item() == 18


# ---- pickles, and ops whose results' sizes depend on data ------------------------------------------------------------


def test_pickles_of_tensors_and_modules():
    x = torch.arange(6.0, device=D).view(2, 3)
    again = pickle.loads(pickle.dumps({"all": x, "row": x[1], "layer": nn.Linear(3, 2).to(D)}))
    assert again["all"].device.type == D and again["row"].tolist() == [3, 4, 5] and again["layer"](x).shape == (2, 2)


@pytest.mark.parametrize("to", [None, "cpu", D])
def test_the_older_form_of_files(to):
    file, x = io.BytesIO(), torch.arange(6.0, device=D).view(2, 3)
    torch.save([x, x[1]], file, _use_new_zipfile_serialization=False)
    file.seek(0)
    whole, row = torch.load(file, map_location=to)
    assert whole.device.type == (to or D) and whole.tolist() == [[0, 1, 2], [3, 4, 5]]
    whole[1, 0] = 7
    assert row.tolist() == [7, 4, 5]                    # they share their memory still


def test_an_op_of_others_whose_size_depends_on_data():
    """Its kernel for meta tensors is Python's, and fails."""
    boxes = pytest.importorskip("torchvision.ops")
    at = torch.tensor([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30.0]])
    scores = torch.tensor([0.9, 0.8, 0.7])
    assert boxes.nms(at.to(D), scores.to(D) * 1, 0.5).tolist() == [0, 2]
    assert (boxes.box_iou(at.to(D), at.to(D)).cpu() - boxes.box_iou(at, at)).abs().max() < 1e-6
