"""Modules, losses, optimizers and schedules: against PyTorch where it is there, else by what they promise."""
import math
import pickle

import numpy as np
import pytest

import facula as fac

nn, F = fac.nn, fac.nn.functional


def test_parts_of_a_module():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 3)
            self.b = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.BatchNorm1d(3)])
            self.w = nn.Parameter(fac.ones(2))
            self.register_buffer("t", fac.zeros(1))

        def forward(self, x):
            return self.b[1](self.b[0](self.a(x)))
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["w", "a.weight", "a.bias", "b.0.weight", "b.1.weight", "b.1.bias"]
    assert list(net.state_dict()) == ["w", "t", "a.weight", "a.bias", "b.0.weight", "b.1.weight", "b.1.bias", "b.1.running_mean",
                                      "b.1.running_var", "b.1.num_batches_tracked"]
    assert net.get_submodule("b.0") is net.b[0] and "Linear" in repr(net) and "<table>" in net._repr_html_()
    net.eval()
    assert not net.b[1].training
    with pytest.raises(AttributeError):
        net.nothing
    with pytest.raises(NotImplementedError):
        nn.Module()()

    class Forgot(nn.Module):
        def __init__(self):
            self.a = 1
    with pytest.raises(AttributeError, match="super"):
        Forgot()


def test_state_goes_out_and_in(tmp_path):
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    a.save(tmp_path / "w.safetensors")
    b.load(tmp_path / "w.safetensors")
    assert fac.equal(a.weight, b.weight)
    assert fac.equal(pickle.loads(pickle.dumps(a)).weight, a.weight)
    with pytest.raises(fac.ArgumentError, match="missing: bias"):
        b.load_state_dict({"weight": a.weight})
    with pytest.raises(fac.ArgumentError, match="instead of"):
        b.load_state_dict({"weight": fac.ones(1), "bias": a.bias})
    assert b.load_state_dict({"weight": a.weight, "x": a.bias}, strict=False) == (["bias"], ["x"])


def test_hooks_of_modules(rng):
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    seen = []
    handle = net[0].register_forward_hook(lambda m, args, y: seen.append(y.shape))
    net[1].register_forward_pre_hook(lambda m, args: (args[0] * 0,))
    assert net(fac.ones(4, 2)).sum().item() == 0 and seen == [(4, 3)]
    handle.remove()
    net(fac.ones(4, 2))
    assert len(seen) == 1


def torch_pair(make):
    torch = pytest.importorskip("torch")
    ours, theirs = make(nn), make(torch.nn)
    theirs.load_state_dict({k: torch.tensor(v.numpy().copy()) for k, v in ours.state_dict().items()})
    return torch, ours, theirs


LAYERS = [
    ("linear", lambda n: n.Linear(5, 3), (4, 5)), ("conv1d", lambda n: n.Conv1d(4, 6, 3, 2, 1, groups=2), (2, 4, 9)),
    ("conv2d", lambda n: n.Conv2d(3, 4, (3, 2), padding=1), (2, 3, 6, 5)), ("same", lambda n: n.Conv2d(3, 4, 3, padding="same"), (2, 3, 6, 5)),
    ("conv3d", lambda n: n.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)), ("reflect", lambda n: n.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), (2, 3, 5, 5)),
    ("convt1d", lambda n: n.ConvTranspose1d(3, 4, 3, 2, 1, 1), (2, 3, 5)), ("convt2d", lambda n: n.ConvTranspose2d(4, 6, 3, 2, 1, groups=2), (2, 4, 5, 4)),
    ("bn1d", lambda n: n.BatchNorm1d(5), (6, 5)), ("bn2d", lambda n: n.BatchNorm2d(3), (4, 3, 5, 5)), ("ln", lambda n: n.LayerNorm((4, 5)), (3, 4, 5)),
    ("gn", lambda n: n.GroupNorm(2, 4), (3, 4, 5)), ("in", lambda n: n.InstanceNorm2d(3, affine=True), (2, 3, 4, 4)),
    ("lrn", lambda n: n.LocalResponseNorm(3), (2, 5, 4, 4)), ("prelu", lambda n: n.PReLU(3), (2, 3, 4)),
    ("maxpool", lambda n: n.MaxPool2d(3, 2, 1), (2, 3, 7, 7)), ("avgpool", lambda n: n.AvgPool2d(2, 2, 1), (2, 3, 7, 7)),
    ("adaptive", lambda n: n.AdaptiveAvgPool2d((3, 2)), (2, 3, 7, 5)), ("adaptivemax", lambda n: n.AdaptiveMaxPool2d(2), (2, 3, 7, 5)),
    ("upsample", lambda n: n.Upsample(scale_factor=2, mode="bilinear", align_corners=False), (1, 2, 4, 5)),
    ("nearest", lambda n: n.Upsample(scale_factor=2), (1, 2, 4, 5)), ("shuffle", lambda n: n.PixelShuffle(2), (1, 8, 3, 3)),
    ("rnn", lambda n: n.RNN(4, 5, 2), (6, 3, 4)), ("lstm", lambda n: n.LSTM(4, 5, 2, bidirectional=True), (6, 3, 4)),
    ("gru", lambda n: n.GRU(4, 5, batch_first=True), (3, 6, 4)), ("flatten", lambda n: n.Flatten(), (2, 3, 4)),
    ("encoder", lambda n: n.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (2, 5, 8)),
] + [(k, (lambda k: lambda n: getattr(n, k)())(k), (3, 7)) for k in (
    "ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Sigmoid", "Tanh", "Softplus", "Softsign", "Hardtanh",
    "Hardswish", "Hardsigmoid", "LogSigmoid", "Tanhshrink")] + [(k, (lambda k: lambda n: getattr(n, k)(dim=1))(k), (3, 6)) for k in (
        "Softmax", "LogSoftmax", "Softmin", "GLU")]


@pytest.mark.parametrize("name,make,shape", LAYERS, ids=[c[0] for c in LAYERS])
def test_layers_are_those_of_torch(rng, name, make, shape):
    torch, ours, theirs = torch_pair(make)
    a = rng.standard_normal(shape).astype("f4")
    x, u = fac.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    for _ in range(2):                                  # running statistics, too
        y, v = ours(x), theirs(u)
    y, v = (y[0], v[0]) if isinstance(y, tuple) else (y, v)
    assert y.shape == tuple(v.shape) and np.allclose(y.detach(), v.detach(), atol=2e-5)
    w = rng.standard_normal(y.shape).astype("f4")
    (y * fac.tensor(w)).sum().backward()
    (v * torch.tensor(w)).sum().backward()
    assert np.allclose(x.grad, u.grad, atol=1e-4)
    for (n, p), q in zip(ours.named_parameters(), theirs.parameters()):
        assert np.allclose(p.grad, q.grad, atol=1e-3), n
    for (n, b), c in zip(ours.named_buffers(), theirs.buffers()):
        assert np.allclose(b, c, atol=1e-5), n


LOSSES = [("cross_entropy", (5, 4), "labels", {}), ("cross_entropy", (5, 4), "labels", {"label_smoothing": 0.1}), ("cross_entropy", (5, 4, 3), "labels", {}),
          ("cross_entropy", (5, 4), "labels", {"reduction": "none"}), ("cross_entropy", (5, 4), "soft", {}), ("cross_entropy", (5, 4), "labels", {"weight": 4}),
          ("nll_loss", (5, 4), "labels", {}), ("nll_loss", (5, 4), "labels", {"weight": 4}), ("mse_loss", (5, 4), "floats", {}), ("l1_loss", (5, 4), "floats", {"reduction": "sum"}),
          ("smooth_l1_loss", (5, 4), "floats", {"beta": 0.5}), ("huber_loss", (5, 4), "floats", {}),
          ("binary_cross_entropy_with_logits", (5, 4), "soft", {}), ("kl_div", (5, 4), "soft", {"reduction": "batchmean"})]


@pytest.mark.parametrize("name,shape,kind,options", LOSSES)
def test_losses_are_those_of_torch(rng, name, shape, kind, options):
    torch = pytest.importorskip("torch")
    a = rng.standard_normal(shape).astype("f4")
    if kind == "labels":
        t = rng.integers(0, shape[1], (shape[0],) + shape[2:])
        t.reshape(-1)[0] = -100 if name == "cross_entropy" and "label_smoothing" not in options else t.reshape(-1)[0]
    else:
        t = rng.standard_normal(shape).astype("f4")
        t = t if kind == "floats" else np.exp(t) / np.exp(t).sum(1, keepdims=True)
    ours, theirs = dict(options), dict(options)
    if "weight" in options:
        w = rng.random(options["weight"]).astype("f4") + 0.5
        ours["weight"], theirs["weight"] = fac.tensor(w), torch.tensor(w)
    x, u = fac.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    y = getattr(F, name)(x, fac.tensor(t), **ours)
    v = getattr(torch.nn.functional, name)(u, torch.tensor(t), **theirs)
    assert np.allclose(y.detach(), v.detach(), atol=1e-5)
    y.sum().backward()
    v.sum().backward()
    assert np.allclose(x.grad, u.grad, atol=1e-5)


OPTIMIZERS = [("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}), ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
              ("Adam", {}), ("Adam", {"weight_decay": 0.1, "amsgrad": True}), ("AdamW", {"lr": 0.01}), ("RMSprop", {}),
              ("RMSprop", {"momentum": 0.9, "centered": True}), ("Adagrad", {"lr_decay": 0.1})]
MORE_OPTIMIZERS = [("Adadelta", {}), ("Adadelta", {"weight_decay": 0.1}), ("Adamax", {}), ("Adamax", {"weight_decay": 0.1}), ("NAdam", {}), ("RAdam", {}), ("RAdam", {"lr": 0.1}),
                   ("Rprop", {}), ("ASGD", {"t0": 2, "lr": 0.05}), ("ASGD", {"weight_decay": 0.1})]


@pytest.mark.parametrize("name,options,steps,atol", [(*o, 6, 1e-5) for o in OPTIMIZERS] + [(*o, 12, 2e-5) for o in MORE_OPTIMIZERS])
def test_optimizers_are_those_of_torch(rng, name, options, steps, atol):
    torch = pytest.importorskip("torch")
    a = rng.standard_normal((4, 3)).astype("f4")
    p, q = nn.Parameter(fac.tensor(a)), torch.nn.Parameter(torch.tensor(a))
    ours, theirs = getattr(fac.optim, name)([p], **options), getattr(torch.optim, name)([q], **options)
    for step in range(steps):
        w = rng.standard_normal((4, 3)).astype("f4")
        for optimizer, x, t in ((ours, p, fac.tensor(w)), (theirs, q, torch.tensor(w))):
            optimizer.zero_grad()
            ((x - t) ** 2).sum().backward()
            optimizer.step()
        if step == 2:
            again = getattr(fac.optim, name)([p], **options)
            again.load_state_dict(pickle.loads(pickle.dumps(ours.state_dict())))
            ours = again
        assert np.allclose(p.detach(), q.detach(), atol=atol), step


SCHEDULES = [("StepLR", (3, 0.5)), ("MultiStepLR", ([2, 5],)), ("ExponentialLR", (0.9,)), ("CosineAnnealingLR", (8,)), ("LinearLR", ()),
             ("PolynomialLR", (6, 2.0)), ("CosineAnnealingWarmRestarts", (3, 2)), ("OneCycleLR", (0.5, 20))]


@pytest.mark.parametrize("name,args", SCHEDULES)
def test_schedules_are_those_of_torch(name, args):
    torch = pytest.importorskip("torch")
    ours = fac.optim.SGD([nn.Parameter(fac.ones(1))], lr=0.1)
    theirs = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    a, b = getattr(fac.optim.lr_scheduler, name)(ours, *args), getattr(torch.optim.lr_scheduler, name)(theirs, *args)
    for _ in range(12):
        assert math.isclose(a.get_last_lr()[0], b.get_last_lr()[0], rel_tol=1e-6, abs_tol=1e-9)
        theirs.step()
        a.step()
        b.step()


def test_plateau():
    o = fac.optim.SGD([nn.Parameter(fac.ones(1))], lr=1.0)
    s = fac.optim.lr_scheduler.ReduceLROnPlateau(o, patience=1)
    for x in (1.0, 1.0, 1.0):
        s.step(x)
    assert math.isclose(o.param_groups[0]["lr"], 0.1)


def test_clipping(rng):
    p = nn.Parameter(fac.tensor(rng.standard_normal(5)))
    p.grad = fac.tensor(rng.standard_normal(5)) * 100
    before = nn.clip_grad_norm_([p], 1.0)
    assert before > 1 and math.isclose(float(p.grad.norm()), 1, rel_tol=1e-3)
    nn.clip_grad_value_([p], 0.1)
    assert float(p.grad.abs().amax()) <= 0.1 + 1e-6


def test_dropout(rng):
    x = fac.ones(1000)
    y = F.dropout(x, 0.25)
    kept = float((y > 0).float().mean())
    assert 0.65 < kept < 0.85 and np.allclose(np.asarray(y)[np.asarray(y) > 0], 4 / 3)
    assert fac.equal(nn.Dropout(0.5).eval()(x), x) and not fac.equal(F.dropout(x, 0.5), F.dropout(x, 0.5))
    with pytest.raises(ValueError):
        nn.Dropout(2)


def test_inits(rng):
    t = fac.zeros(200, 100)
    nn.init.kaiming_normal_(t, nonlinearity="relu")
    assert abs(float(t.std()) - math.sqrt(2 / 100)) < 0.01
    nn.init.orthogonal_(t)
    assert np.allclose((t.T @ t).numpy(), np.eye(100), atol=1e-4)
    nn.init.xavier_uniform_(t)
    assert float(t.abs().amax()) <= math.sqrt(6 / 300)


def test_training_learns(rng):
    fac.manual_seed(1)
    data = fac.data.points("circle", 300, seed=1)
    net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 2))
    trainer = fac.Trainer(net, fac.optim.Adam(net.parameters(), 0.01))
    history = trainer.fit(data, data, epochs=60, batch_size=30, quiet=True)
    assert history["test_accuracy"][-1] > 0.93 and history["loss"][-1] < history["loss"][0] / 2
    assert "polyline" in history._repr_html_() and "epochs" in repr(history)


def test_batches(rng):
    d = fac.data.points("xor", 25)
    sizes = [len(y) for _, y in d.batches(10)]
    assert sizes == [10, 10, 5] and len(d.batches(10, drop_last=True)) == 2
    first, second = d.split(0.2)
    assert len(first) == 20 and len(second) == 5
    t = fac.data.TensorDataset(np.arange(6), np.arange(6) * 2)
    got = [x.tolist() for x, _ in fac.data.DataLoader(t, 4, shuffle=True)]
    assert sorted(sum(got, [])) == list(range(6))
    with pytest.raises(OSError):
        fac.data.mnist("/no/such/folder")


def test_export(tmp_path, rng):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.out = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)

        def forward(self, x):
            return self.out(F.relu(self.norm(self.conv(x))).mean((2, 3)))
    net = Net()
    x = fac.tensor(rng.standard_normal((5, 1, 8, 8)).astype("f4"))
    net(x)
    net.export(tmp_path / "net.onnx")                          # the sizes of what it saw last
    net.eval()
    m = fac.load(tmp_path / "net.onnx")
    assert m.inputs[0].shape == ("N", 1, 8, 8) and set(m.parameters) >= {"conv.weight", "norm.running_mean", "out.bias"}
    assert np.allclose(m.run(x[:2].numpy()), net(x[:2]).detach(), atol=1e-5)
    assert not fac.set_grad_enabled(True) is None and net(x).requires_grad
    with pytest.raises(fac.ArgumentError):
        Net().export(tmp_path / "x.onnx")
