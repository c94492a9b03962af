"""Device "ocl": everything is done on it and on the cpu, and must come out equal; views, writes, training, files, devices."""
from __future__ import annotations

import copy
import io
import math
import os

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import facula.torch as ft

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore:device ocl")]
D = "ocl"


@pytest.fixture(autouse=True, params=["lazy", "each call"] if os.environ.get("FACULA_ALL") == "1" else ["lazy"])
def recorded(torch_as_it_comes, request):
    torch.ocl.set_eager(request.param == "each call")


def equal(f, *operands, grad=False, tol=1e-5):
    """f gives the same on both devices: values, shapes, strides, dtypes, gradients."""
    here = [torch.randn(o) if isinstance(o, tuple) else o for o in operands]
    there = [x.detach().clone().to(D) for x in here]
    here = [x.detach().clone() for x in here]
    if grad:
        for x in here + there:
            x.requires_grad_(x.is_floating_point())
    results = []
    for xs in (here, there):
        y = f(*xs)
        ys = y if isinstance(y, (tuple, list)) else [y]
        if grad:
            sum(v.sum() for v in ys if isinstance(v, torch.Tensor) and v.is_floating_point()).backward()
        results.append(ys)
    for a, b in zip(*results):
        if not isinstance(a, torch.Tensor):
            assert a == b
            continue
        assert a.stride() == b.stride() and b.device.type == D
        torch.testing.assert_close(b.detach().cpu(), a.detach(), rtol=tol, atol=tol, equal_nan=True)
    if grad:
        for a, b in zip(here, there):
            assert (a.grad is None) == (b.grad is None)
            if a.grad is not None:
                torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=1e-4, atol=1e-4)


def written(f):
    """f writes to its operand, which is what counts."""
    def g(x):
        f(x)
        return x
    return g


VIEWS_AND_WRITES = {
    "base": lambda x: [v := x.view(-1), x.add_(1), v * 2][2],
    "view": written(lambda x: x[:, 1].mul_(3)),
    "transposed": written(lambda x: x.t()[1:].zero_()),
    "assigned": written(lambda x: x.__setitem__((slice(None), slice(0, 2)), 7.0)),
    "strided": written(lambda x: x[::2, ::2].add_(1)),
    "expanded": lambda x: x[:1].expand(4, -1) + x[:1],
    "diagonal": written(lambda x: x[:3, :3].diagonal().fill_(5)),
    "unfolded": lambda x: x.unfold(1, 2, 1).sum(-1),
    "chain of views": written(lambda x: [a := x[1:], b := a[:, 1:], b.add_(1), a.mul_(2)]),
    "detached": written(lambda x: x.detach().add_(1)),
    "bits": lambda x: x.view(torch.int32) & 255,
    "permuted": lambda x: x.t().contiguous(),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 4)) + 1,
    "mask": lambda x: x[x > 0],
    "mask written": written(lambda x: x.__setitem__(x > 0, 0.5)),
    "exchange": written(lambda x: [t := x[0].clone(), x[0].copy_(x[1]), x[1].copy_(t)]),
    "out": lambda x: [o := torch.empty(0, device=x.device), torch.add(x, x, out=o)][1],
    "out is a view": lambda x: [o := torch.zeros(5, 6, device=x.device), torch.mul(x, x, out=o[:4, :4]), o][2],
    "resized": lambda x: x.clone().resize_(2, 2),
    "resized up": lambda x: x.clone().resize_(8, 4)[:4],
    "broadcast copy": written(lambda x: x.copy_(x[0].clone())),
    "converting copy": lambda x: torch.empty(4, 4, dtype=torch.int64, device=x.device).copy_(x * 10),
}


@pytest.mark.parametrize("name", VIEWS_AND_WRITES)
def test_views_and_writes(name):
    equal(VIEWS_AND_WRITES[name], (4, 4))


CALLS = {
    "cat of chunks": lambda x: torch.cat([c * 2 for c in x.chunk(2, 1)], 1), "stack": lambda x: torch.stack(x.unbind(0), 1),
    "masked_fill": lambda x: x.masked_fill(x > 0, -1.0), "nonzero": lambda x: (x > 0).nonzero(), "sort": lambda x: x.sort(-1),
    "topk": lambda x: x.topk(2), "cumsum": lambda x: x.cumsum(0), "argmax": lambda x: x.argmax(1), "item": lambda x: round(x.sum().item(), 3),
    "bool": lambda x: bool((x * x >= 0).all()), "host scalar": lambda x: x * torch.tensor(2.5) + torch.tensor(1),
    "bool and int": lambda x: (x > 0) + 1, "int and float": lambda x: (x > 0).long() * 1.5, "casts": lambda x: x.to(torch.float64).half().float(),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x) * 2), "var_mean": lambda x: torch.var_mean(x, 1), "norm": lambda x: x.norm(),
    "softmax": lambda x: x.softmax(-1), "logsumexp": lambda x: x.logsumexp(1), "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "addmm": lambda x: torch.addmm(x[0, :3], x[:3], x.t()[:, :3]), "where": lambda x: torch.where(x > 0, x, -x),
    "gather": lambda x: x.gather(1, x.argsort(1)), "index of the host": lambda x: x[torch.tensor([0, 2])], "tril": lambda x: x.tril(),
    "index_put": lambda x: x.index_put((torch.tensor([0, 0], device=x.device),), torch.ones(2, 4, device=x.device), accumulate=True),
    "scatter_add": lambda x: x.scatter_add(0, torch.zeros(1, 4, dtype=torch.long, device=x.device), x[:1]), "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0), "repeat": lambda x: x.repeat(2, 1), "pad": lambda x: F.pad(x, (1, 1)), "clamp": lambda x: x.clamp(-.5, .5),
    "arange": lambda x: torch.arange(5, device=x.device) * 2, "linspace": lambda x: torch.linspace(0, 1, 5, device=x.device),
    "eye": lambda x: torch.eye(3, device=x.device), "likes": lambda x: torch.ones_like(x) + torch.full_like(x, 3),
    "equal": lambda x: torch.equal(x, x.clone()), "isin": lambda x: torch.isin((x > 0).long(), torch.tensor([1], device=x.device)),
    "unique": lambda x: (x > 0).unique(), "inverse": lambda x: torch.linalg.inv(x @ x.t() + 5 * torch.eye(4, device=x.device)),
    "foreach": lambda x: torch._foreach_add([x, x], 1.0), "lerp": lambda x: x.lerp(x * 2, .3), "outer": lambda x: torch.outer(x[0], x[1]),
    "addcdiv": lambda x: x.addcdiv(x, x.abs() + 1, value=.1), "bincount": lambda x: torch.bincount((x > 0).long().flatten()),
    "cdist": lambda x: torch.cdist(x, x), "fft": lambda x: torch.fft.rfft(x).abs(), "tensor_split": lambda x: x.tensor_split(3, 1)[1],
    "min or max alone": lambda x: [torch.clamp(x, min=x.t()), torch.clamp(x, max=x.t())],
    "ldexp": lambda x: torch.ldexp(x * 1e-30, torch.tensor([100, 98, 130, 99], device=x.device)),
    "places of nan": lambda x: [torch.searchsorted(x[0].sort()[0], x.sqrt(), right=r) for r in (False, True)],
    "place of 2.5": lambda x: torch.searchsorted(torch.tensor([1, 2, 3], device=x.device), 2.5),
    "logaddexp2 of infinities": lambda x: torch.logaddexp2(x / 0, (x / 0).roll(1, 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    equal(CALLS[name], (4, 4))


LABELS = torch.tensor([0, 1, 2, 1])
GRADIENTS = {
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), (2, 3, 8, 8), (4, 3, 3, 3), (4,)),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), (2, 3, 5, 5), (3, 4, 3, 3)),
    "conv1d": (F.conv1d, (2, 3, 9), (4, 3, 3)), "grouped": (lambda x, w: F.conv2d(x, w, groups=4), (1, 4, 6, 6), (4, 1, 3, 3)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (4, 3, 5, 5), (3,), (3,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), (4, 6), (6,), (6,)), "layer_norm, weight only": (lambda x, w: F.layer_norm(x, (6,), w), (4, 6), (6,)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3, 3), (4,), (4,)), "max_pool": (lambda x: F.max_pool2d(x, 2), (2, 3, 8, 8)),
    "avg_pool": (lambda x: F.avg_pool2d(x, 2), (2, 3, 8, 8)), "adaptive": (lambda x: F.adaptive_avg_pool2d(x, 3), (2, 3, 8, 8)),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (1, 2, 4, 4)), "gelu": (F.gelu, (4, 4)), "silu": (F.silu, (4, 4)),
    "hardswish": (F.hardswish, (4, 4)), "elu": (F.elu, (4, 4)), "softplus": (F.softplus, (4, 4)),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8)),
    "embedding": (lambda w: F.embedding(torch.tensor([0, 2, 2], device=w.device), w), (4, 3)),
    "cross_entropy": (lambda x: F.cross_entropy(x, LABELS.to(x.device)), (4, 3)), "mse": (F.mse_loss, (4, 3), (4, 3)),
    "bce": (lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x)), (4, 3)), "slices": (lambda x: x[:, 1:] * x[:, :-1], (3, 5)),
    "relu_": (lambda x: F.relu_(x * 1), (3, 5)), "bmm": (torch.bmm, (2, 3, 4), (2, 4, 5)), "prod": (lambda x: x.prod(1), (3, 4)),
    "max": (lambda x: x.max(1)[0], (3, 4)), "index": (lambda x: x[torch.tensor([0, 0, 1], device=x.device)], (3, 4)),
    "log_softmax": (lambda x: F.log_softmax(x, 1), (3, 4)), "write in a view": (lambda x: [y := x * 1, y[0].mul_(2), y][2], (3, 4)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    f, *shapes = GRADIENTS[name]
    equal(f, *shapes, grad=True, tol=1e-4)


def test_channels_last_stays():
    equal(lambda x, w: F.conv2d(x, w), torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last), (4, 3, 3, 3))
    equal(lambda x: x.to(memory_format=torch.channels_last) * 2, (2, 3, 4, 4))


@pytest.mark.parametrize("make,shape", [(lambda: nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True), (3, 7, 5)), (lambda: nn.GRU(5, 6), (3, 7, 5))])
def test_recurrent_layers(make, shape):
    m, x = make(), torch.randn(shape)
    torch.testing.assert_close(copy.deepcopy(m).to(D)(x.to(D))[0].cpu(), m(x)[0], rtol=1e-5, atol=1e-5)


# ---- training --------------------------------------------------------------------------------------------------


def small():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 80, bias=False), nn.BatchNorm1d(80), nn.ReLU(), nn.Linear(80, 2))


STEPS = {"sgd": (torch.optim.SGD, {"lr": .1, "momentum": .9}), "sgd fused": (torch.optim.SGD, {"lr": .1, "momentum": .9, "fused": True}),
         "adam": (torch.optim.Adam, {"lr": .01}), "adam plain": (torch.optim.Adam, {"lr": .01, "foreach": False}),
         "adam fused": (torch.optim.Adam, {"lr": .01, "fused": True}), "adamw": (torch.optim.AdamW, {"lr": .01}),
         "adamw fused": (torch.optim.AdamW, {"lr": .01, "fused": True}), "rmsprop": (torch.optim.RMSprop, {"lr": .01})}


@pytest.mark.parametrize("name", STEPS)
def test_twenty_steps_equal_those_of_the_cpu(name):
    make, how = STEPS[name]
    plain, mine = small(), small().to(D)
    a, b = make(plain.parameters(), **{k: v for k, v in how.items() if k not in ("fused", "foreach")}), make(mine.parameters(), **how)
    for step in range(20):
        x = torch.randn(6, 4)
        losses = []
        for net, opt, given in ((plain, a, x), (mine, b, x.to(D))):
            opt.zero_grad()
            loss = net(given).pow(2).mean()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        assert abs(losses[0] - losses[1]) < 1e-4 * max(1, abs(losses[0]))
    for p, q in zip(plain.parameters(), mine.parameters()):
        torch.testing.assert_close(q.detach().cpu(), p.detach(), rtol=1e-3, atol=1e-4)


def test_a_loop_is_planned_once_and_found_again():
    net = small().to(D)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 30)
    planned = []
    for step in range(30):
        opt.zero_grad()
        net(torch.ones(6, 4, device=D)).pow(2).mean().backward()
        opt.step()
        schedule.step()
        torch.ocl.synchronize()
        planned.append(torch.ocl.stats()["planned"])
    if not torch.ops.ocl.stats()[6] and planned[-1] - planned[0] < 30:
        assert planned[-1] == planned[9] and planned[-1] - planned[0] <= 8


def test_small_parameters_stay_on_the_device():
    """Not only large ones: a norm's numbers fold into the convolution before it, and no run brings them again."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 4))
    plain, net = copy.deepcopy(net).eval(), net.to(D).eval()
    for step in range(6):
        x = torch.randn(2, 3, 8, 8)
        with torch.no_grad():
            y = net(x.to(D))
            torch.ocl.synchronize()
            kept = torch.ocl.stats()["kept"]
            torch.testing.assert_close(y.cpu(), plain(x), rtol=1e-4, atol=1e-5)
    assert kept == 8                                    # weights, biases, the norm's four; not x
    with torch.no_grad():
        net[1].bias += 1
        plain[1].bias += 1
        torch.testing.assert_close(net(x.to(D)).cpu(), plain(x), rtol=1e-4, atol=1e-5)


def test_many_steps_do_not_grow():
    net = small().to(D)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    sizes = []
    for step in range(200):
        opt.zero_grad()
        loss = net(torch.randn(6, 4, device=D)).pow(2).mean()
        loss.backward()
        opt.step()
        if step % 50 == 49:
            assert math.isfinite(loss.item())
            sizes.append((torch.ocl.memory_allocated(), torch.ocl.memory_stats()["storages"]))
    assert sizes[1] == sizes[2] == sizes[3]


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_networks(name):
    models = pytest.importorskip("torchvision").models
    plain = getattr(models, name)(weights=None, num_classes=10)
    for m in plain.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    mine, truth = copy.deepcopy(plain).to(D), copy.deepcopy(plain).double()
    x, y = torch.randn(2, 3, 64, 64), torch.tensor([1, 2])
    for net, given, labels in ((plain, x, y), (mine, x.to(D), y.to(D)), (truth, x.double(), y)):
        F.cross_entropy(net(given), labels).backward()
    top = max(p.grad.abs().max().item() for p in truth.parameters())

    def off(net):
        return max(((p.grad.cpu().double() - q.grad).abs().max() / top).item() for p, q in zip(net.parameters(), truth.parameters()))
    assert off(mine) <= 2 * off(plain) + 1e-5
    plain.eval(), mine.eval()
    with torch.no_grad():
        torch.testing.assert_close(mine(x.to(D)).cpu(), plain(x), rtol=1e-4, atol=1e-4)


# ---- files, random numbers, tools of torch -----------------------------------------------------------------------


@pytest.mark.parametrize("where", [None, "cpu", D])
def test_saved_and_loaded(where):
    net, file = small().to(D), io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    got = torch.load(file, map_location=where, weights_only=True)
    assert got["0.weight"].device.type == (where or D)
    assert all(torch.equal(got[k].cpu(), v.cpu()) for k, v in net.state_dict().items())


def test_a_file_of_the_cpu_and_safetensors(tmp_path):
    file = io.BytesIO()
    torch.save(small().state_dict(), file)
    file.seek(0)
    assert torch.load(file, map_location=D)["0.weight"].device.type == D
    st = pytest.importorskip("safetensors.torch")
    st.save_file({"w": torch.arange(4.0, device=D)}, str(tmp_path / "a.safetensors"))
    assert st.load_file(str(tmp_path / "a.safetensors"))["w"].tolist() == [0, 1, 2, 3]


def test_random_numbers_follow_the_seed():
    torch.manual_seed(3)
    a = torch.randn(4, device=D).cpu()
    torch.manual_seed(3)
    b, c = torch.randn(4, device=D).cpu(), torch.randn(4, device=D).cpu()
    assert torch.equal(a, b) and not torch.equal(b, c)
    state = torch.ocl.get_rng_state()
    a = torch.rand(3, device=D)
    torch.ocl.set_rng_state(state)
    assert torch.equal(a, torch.rand(3, device=D))
    g = torch.Generator(D).manual_seed(5)
    a = torch.rand(3, device=D, generator=g)
    assert torch.equal(a, torch.rand(3, device=D, generator=g.manual_seed(5)))


def test_dropout_and_distributions():
    x = torch.ones(2000, device=D, requires_grad=True)
    y = F.dropout(x, .5)
    y.sum().backward()
    assert torch.equal(y.detach(), x.grad) and 800 < (y > 0).sum().item() < 1200
    assert sorted(torch.randperm(9, device=D).tolist()) == list(range(9))
    n = torch.randn(20000, device=D)
    assert abs(n.mean().item()) < 0.05 and abs(n.std().item() - 1) < 0.05
    u = torch.empty(20000, device=D).uniform_(2, 3)
    assert 2 <= u.min().item() and u.max().item() < 3 and abs(u.mean().item() - 2.5) < 0.02


def test_tools_of_torch():
    net = small().to(D)
    assert torch.equal(copy.deepcopy(net)[0].weight.cpu(), net[0].weight.cpu())
    x = torch.ones(3, 4, device=D, requires_grad=True)
    torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).sum().backward()
    assert x.grad is not None and nn.utils.clip_grad_norm_(net.parameters(), 1.0).item() >= 0
    with torch.autocast(D, dtype=torch.bfloat16):
        assert (torch.ones(2, 2, device=D) @ torch.ones(2, 2, device=D)).dtype == torch.bfloat16
    assert torch.amp.GradScaler(D).scale(torch.ones(1, device=D)).item() > 0
    assert torch.allclose(torch.func.grad(lambda v: (v ** 2).sum())(torch.ones(3, device=D)).cpu(), torch.full((3,), 2.))
    assert torch.vmap(lambda v: v * 2)(torch.ones(3, device=D)).sum().item() == 6
    assert torch.autograd.gradcheck(lambda v: (v * v.exp()).sum(), torch.randn(3, dtype=torch.float64, device=D, requires_grad=True))
    v = torch.randn(3, device=D, requires_grad=True)
    g = torch.autograd.grad((v ** 3).sum(), v, create_graph=True)[0]
    assert torch.allclose(torch.autograd.grad(g.sum(), v)[0].cpu(), 6 * v.detach().cpu(), rtol=1e-4)
    with torch.device(D):
        assert torch.ones(2).device.type == D
    assert "ocl:0" in str(torch.arange(3, device=D)) and "ocl:0" in str(torch.rand(2, 2, device=D))
    hits = []
    net[0].register_forward_hook(lambda *a: hits.append(1))
    net(torch.ones(3, 4, device=D))
    assert hits


def test_pinned_memory_and_loaders():
    from torch.utils.data import DataLoader, TensorDataset
    data = TensorDataset(torch.ones(8, 2))
    assert [b[0].is_pinned() and b[0].to(D, non_blocking=True).sum().item() for b in DataLoader(data, 4, pin_memory=True)] == [8.0, 8.0]


def test_dlpack_by_the_host():
    x = torch.arange(4.0, device=D)
    y = torch.ocl.from_dlpack(torch.ocl.to_dlpack(x))
    assert y.device.type == D and torch.equal(x.cpu(), y.cpu())


def test_threads():
    import threading
    wrong = []

    def work():
        for _ in range(20):
            if torch.ones(8).to(D).add_(1).sum().item() != 16:
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong


# ---- devices, memory, errors -------------------------------------------------------------------------------------


def test_two_devices():
    if torch.ocl.device_count() < 2:
        pytest.skip("one device")
    x = torch.arange(4.0, device="ocl:0")
    y = x.to("ocl:1")
    assert y.device.index == 1 and torch.equal((y + 1).cpu(), (x + 1).cpu())
    with pytest.raises(RuntimeError, match="same device"):
        (x + y).cpu()


def test_memory_is_counted():
    before = torch.ocl.memory_allocated()
    x = torch.ones(1 << 20, device=D)
    x.sum().item()
    assert torch.ocl.memory_allocated() >= before + (1 << 22) and torch.ocl.max_memory_allocated() >= torch.ocl.memory_allocated()
    del x
    torch.ocl.empty_cache()
    assert torch.ocl.memory_allocated() <= before + (1 << 16)


def test_errors_leave_the_device_usable():
    with pytest.raises(RuntimeError):
        torch.ones(2, 3, device=D) @ torch.ones(2, 3, device=D)
    with pytest.raises(Exception, match="cholesky|positive"):
        torch.linalg.cholesky(-torch.ones(3, 3, device=D)).sum().item()
    with pytest.raises(IndexError):
        torch.ones(3, device=D)[7]
    assert torch.ones(3, device=D).sum().item() == 3


def test_fallbacks_are_counted_and_explained():
    torch.linalg.inv(torch.eye(3, device=D)).cpu()
    n, why = ft.explain()["device_fallbacks"]["linalg_inv_ex"]
    assert n >= 1 and why and "linalg_inv_ex" in str(ft.explain())


def test_strict_mode_raises():
    ft.strict()
    with pytest.raises(RuntimeError, match="FallbackError.*linalg_eigh|_linalg_eigh"):
        torch.linalg.eigvalsh(torch.eye(3, device=D)).cpu()
    ft.strict(False)
    assert torch.ones(2, device=D).sum().item() == 2


# ---- several processes -------------------------------------------------------------------------------------------


def test_two_processes_learn_what_one_does(tmp_path):
    import ast
    import subprocess
    import sys
    pytest.importorskip("torch.distributed")
    if not torch.distributed.is_gloo_available():
        pytest.skip("torch without gloo")
    import torch_ddp
    script = os.path.join(os.path.dirname(__file__), "torch_ddp.py")
    command = [sys.executable, "-W", "ignore", script]
    other = subprocess.Popen([*command, "1", "2", str(tmp_path / "meet")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    first = subprocess.run([*command, "0", "2", str(tmp_path / "meet")], capture_output=True, text=True, timeout=300)
    other.wait(timeout=60)
    assert first.returncode == 0 and other.returncode == 0, first.stderr[-2000:]
    total, learned = ast.literal_eval(first.stdout.strip().splitlines()[-1])
    assert total == 3.0
    for a, b in zip(learned, torch_ddp.train(torch_ddp.net().to(D), slice(None))):
        torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-5, atol=1e-6)
