"""torch.compile(backend="facula"): rows of the table against torch, networks forward and backward, what falls back."""
from __future__ import annotations

import copy
import os
import random

import pytest
import torch
import torch.nn.functional as F

import facula
import facula.torch as ft

ALL = os.environ.get("FACULA_ALL") == "1"


def compiled(f, **kw):
    return torch.compile(f, backend="facula", **kw)


# ---- the table -------------------------------------------------------------------------------------------------


def sample_of_ops():
    """All entries of torch's op_db, or some of them that change with FACULA_SEED."""
    pytest.importorskip("expecttest")
    from torch.testing._internal.common_methods_invocations import op_db
    ops = list(op_db)
    if ALL:
        return ops
    return random.Random(int(os.environ.get("FACULA_SEED", "27"))).sample(ops, 90)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_rows_of_the_table_equal_torch(dtype):
    import warnings

    from torch_rows import over_opinfo
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entries, mode = over_opinfo((getattr(torch, dtype),), samples=3, ops=sample_of_ops())
    assert not mode.wrong, mode.wrong[:5]
    assert sum(e[0] == "native" for e in entries.values()) > len(entries) * 0.55
    if ALL and dtype == "float32":
        assert sum(e[0] == "native" for e in entries.values()) >= 400


def test_the_harness_finds_a_wrong_row():
    from torch_rows import Rows

    from facula.torch.aten import rows
    right = rows["sigmoid"]
    rows["sigmoid"] = lambda g, x: g.op("tanh", x)
    try:
        with Rows() as mode:
            torch.sigmoid(torch.randn(5))
    finally:
        rows["sigmoid"] = right
    assert [w[0] for w in mode.wrong] == ["sigmoid"]


@pytest.mark.parametrize("name", ["relu", "relu6", "hardtanh", "hardswish", "leaky_relu", "elu", "selu", "sign", "abs"])
def test_no_number_has_torchs_slope(name):
    """NaN passes activations, and gradients pass where it did."""
    f = getattr(F, name, None) or getattr(torch, name)
    at = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 6.0, 3.0, -3.0]
    xs = [torch.tensor(at, requires_grad=True) for _ in range(2)]
    for x, g in zip(xs, (f, compiled(lambda x: f(x) * 1.0))):
        g(x).backward(torch.full((len(at),), 2.0))
    torch.testing.assert_close(xs[1].grad, xs[0].grad, equal_nan=True)
    torch.testing.assert_close(compiled(f)(xs[1].detach()), f(xs[0].detach()), equal_nan=True)


# ---- networks --------------------------------------------------------------------------------------------------


def still(model):
    for m in model.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0
        if "StochasticDepth" in type(m).__name__:
            m.p = 0.0
    return model


def vision(name):
    models = pytest.importorskip("torchvision").models
    if name == "vit":
        net = models.VisionTransformer(32, 8, 2, 2, 64, 128, num_classes=10)
        torch.nn.init.normal_(net.heads.head.weight)
        return still(net), 32
    return still(getattr(models, name)(weights=None, num_classes=10)), 96


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "vit"])
def test_networks_equal_eager_forward_and_backward(name):
    """Rounding may be as large as eager's own, seen from float64: small batch norms make it large."""
    plain, size = vision(name)
    mine, truth = copy.deepcopy(plain), copy.deepcopy(plain).double()
    fast = compiled(mine)
    x, y = torch.randn(2, 3, size, size), torch.tensor([1, 2])
    for net, given in ((plain, x), (fast, x), (truth, x.double())):
        F.cross_entropy(net(given), y).backward()
    top = max(p.grad.abs().max().item() for p in truth.parameters())

    def off(net):
        return max(((p.grad.double() - q.grad).abs().max() / top).item() for p, q in zip(net.parameters(), truth.parameters()))
    assert off(mine) <= 2 * off(plain) + 1e-5
    for a, b in zip(plain.buffers(), mine.buffers()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    plain.eval(), mine.eval()
    with torch.no_grad():
        torch.testing.assert_close(fast(x), plain(x), rtol=1e-4, atol=1e-4)
    assert not ft.explain()["fallbacks"]


def test_gpt2_equals_eager():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=32, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0)
    plain = transformers.GPT2LMHeadModel(config)
    mine = copy.deepcopy(plain)
    fast = compiled(mine)
    ids = torch.randint(100, (2, 12))
    a, b = plain(ids, labels=ids).loss, fast(ids, labels=ids).loss
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    a.backward(), b.backward()
    for p, q in zip(plain.parameters(), mine.parameters()):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-5)


def small():
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.GELU(), torch.nn.Linear(16, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_twenty_steps_of_training_equal_eager(dtype):
    plain = small().to(dtype)
    mine = copy.deepcopy(plain)
    fast = compiled(mine)
    a, b = torch.optim.Adam(plain.parameters(), lr=0.01), torch.optim.Adam(mine.parameters(), lr=0.01)
    losses = []
    for step in range(20):
        x, y = torch.randn(8, 6).to(dtype), torch.randint(3, (8,))
        pair = []
        for net, opt in ((plain, a), (fast, b)):
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            pair.append(loss.item())
        losses.append(pair)
    tol = {torch.float64: 1e-9, torch.float32: 1e-3, torch.bfloat16: 0.15}[dtype]
    assert max(abs(p - q) for p, q in losses) < tol


# ---- weights, memory, sizes ------------------------------------------------------------------------------------


def test_weights_written_in_place_are_seen():
    conv = torch.nn.Conv2d(3, 16, 3, padding=1).eval()
    fast, x = compiled(conv), torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        for _ in range(5):
            torch.testing.assert_close(fast(x), conv(x), rtol=1e-4, atol=1e-5)
            conv.weight.mul_(1.5)
            conv.bias.add_(0.25)


def test_weights_that_are_exchanged_are_seen():
    net = torch.nn.Linear(4, 4)
    fast, x = compiled(net), torch.randn(2, 4)
    with torch.no_grad():
        fast(x)
        net.load_state_dict({"weight": torch.zeros(4, 4), "bias": torch.ones(4)}, assign=True)
        assert torch.equal(fast(x), torch.ones(2, 4))


def test_results_are_torchs_own_memory():
    fast = compiled(lambda x: x * 2)
    x = torch.ones(3)
    y = fast(x)
    x.zero_()
    y.add_(1)
    assert torch.equal(y, torch.full((3,), 3.0)) and torch.equal(fast(torch.ones(3)), torch.full((3,), 2.0))


@pytest.mark.parametrize("change", ["transposed", "channels_last", "slice", "expanded"])
def test_strided_inputs(change):
    x = torch.randn(2, 4, 6, 6)
    x = {"transposed": lambda: x.transpose(2, 3), "channels_last": lambda: x.to(memory_format=torch.channels_last),
         "slice": lambda: x[:, 1:3, ::2], "expanded": lambda: x[:1].expand(3, 4, 6, 6)}[change]()

    def f(v):
        return (v.relu() + 1).sum((2, 3))
    torch.testing.assert_close(compiled(f)(x), f(x))


def test_sizes_that_change():
    def f(x, w):
        return torch.softmax(x @ w, -1).reshape(-1, w.shape[1] // 2)
    fast = compiled(f, dynamic=True)
    for n in (3, 5, 8, 5, 1):
        x, w = torch.randn(n, 4), torch.randn(4, 6)
        torch.testing.assert_close(fast(x, w), f(x, w))


def test_views_and_mutation():
    def f(x):
        y = x.clone()
        y[:, 1:] += 1
        y.t()[0].mul_(3)
        x.add_(y.sum())
        return y, x[0]
    a, b = torch.randn(3, 4), None
    b = a.clone()
    for p, q in zip(f(a), compiled(f)(b)):
        torch.testing.assert_close(p, q)
    torch.testing.assert_close(a, b)


def test_empty_tensors_and_scalars():
    def f(x, y):
        return torch.cat([x, y]) * 2, x.sum(), y.shape[0]
    for p, q in zip(f(torch.randn(0, 3), torch.randn(2, 3)), compiled(f)(torch.randn(0, 3), torch.ones(2, 3))):
        assert type(p) is type(q)


# ---- what falls back -------------------------------------------------------------------------------------------


def test_a_call_without_a_row_runs_in_torch_and_is_counted():
    def f(x):
        return torch.linalg.inv(x @ x.t() + 5 * torch.eye(4)).relu() + 1
    x = torch.randn(4, 4)
    torch.testing.assert_close(compiled(f)(x), f(x), rtol=1e-4, atol=1e-5)
    said = ft.explain()
    assert said["parts"] == 2 and "no row" in said["fallbacks"]["linalg_inv_ex"][1]
    assert "linalg_inv_ex" in str(said)


def test_strict_mode_raises():
    ft.strict()
    with pytest.raises(Exception, match="linalg_inv_ex.*not computed by facula"):
        compiled(torch.linalg.inv)(torch.eye(3))


def test_dropout_draws_torchs_numbers():
    net = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Dropout(0.5))
    fast, x = compiled(net), torch.randn(4, 8)
    torch.manual_seed(5)
    a = fast(x)
    torch.manual_seed(5)
    assert torch.equal(a, fast(x))
    assert 0.3 < (a == 0).float().mean() < 0.7


def test_an_unknown_option_is_named():
    with pytest.raises(Exception, match="no option 'speed'|no option speed"):
        compiled(lambda x: x + 1, options={"speed": 1})(torch.ones(2))


def test_on_opencl():
    if not any(d["name"].startswith("opencl") for d in facula.devices()):
        pytest.skip("no OpenCL device")
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 3))
    fast, x = compiled(net, options={"device": "opencl"}), torch.randn(2, 2, 8, 8)
    torch.testing.assert_close(fast(x), net(x), rtol=1e-4, atol=1e-4)
