"""Layers, losses, optimizers and schedules that are asked for less often, against PyTorch."""
import math

import numpy as np
import pytest

import facula as fac

torch = pytest.importorskip("torch")
nn, F = fac.nn, fac.nn.functional

PADS = [(f"{kind}Pad{n}d", n) for kind in ("Zero", "Constant", "Reflection", "Replication", "Circular") for n in (1, 2, 3)]


@pytest.mark.parametrize("name,n", PADS)
def test_pads(name, n, rng):
    args = ([1, 2, 2, 1, 0, 1][:2 * n],) + ((0.5,) if name.startswith("Constant") else ())
    a = rng.standard_normal((2, 3, 4, 5, 6)[:2 + n]).astype("f4")
    ours, theirs = getattr(nn, name)(list(args[0]), *args[1:]), getattr(torch.nn, name)(tuple(args[0]), *args[1:])
    assert np.array_equal(ours(fac.tensor(a)), theirs(torch.tensor(a)))
    assert np.array_equal(getattr(nn, name)(1, *args[1:])(fac.tensor(a)), getattr(torch.nn, name)(1, *args[1:])(torch.tensor(a)))


LAYERS = [("Hardshrink", (), (3, 4)), ("Softshrink", (0.3,), (3, 4)), ("Softmax2d", (), (2, 3, 4, 4)), ("PixelUnshuffle", (2,), (1, 2, 4, 6)), ("ChannelShuffle", (2,), (2, 6, 3, 3)),
          ("Unfold", ((2, 3), 1, 1, 2), (2, 3, 5, 6)), ("Unfold", (3, 2), (1, 2, 7, 8)), ("Fold", ((5, 6), (2, 3), 1, 1, 2), (2, 18, 9)), ("Fold", ((4, 4), 2), (1, 8, 9)),
          ("UpsamplingNearest2d", (None, 2), (1, 2, 3, 4)), ("UpsamplingBilinear2d", (None, 2), (1, 2, 3, 4))]


@pytest.mark.parametrize("name,args,shape", LAYERS)
def test_layers(name, args, shape, rng):
    a = rng.standard_normal(shape).astype("f4")
    x, u = fac.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    y, v = getattr(nn, name)(*args)(x), getattr(torch.nn, name)(*args)(u)
    assert y.shape == tuple(v.shape) and np.allclose(y.detach(), v.detach(), atol=1e-5)
    w = rng.standard_normal(y.shape).astype("f4")
    (y * fac.tensor(w)).sum().backward()
    (v * torch.tensor(w)).sum().backward()
    assert np.allclose(x.grad, u.grad, atol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name, bias, rng):
    ours, theirs = getattr(nn, name)(4, 3, bias), getattr(torch.nn, name)(4, 3, bias)
    theirs.load_state_dict({k: torch.tensor(v.numpy().copy()) for k, v in ours.state_dict().items()})
    state, other = None, None
    for _ in range(3):
        a = rng.standard_normal((5, 4)).astype("f4")
        state, other = ours(fac.tensor(a), state), theirs(torch.tensor(a), other)
    y, v = (state[0] * state[1], other[0] * other[1]) if name == "LSTMCell" else (state, other)
    assert np.allclose(y.detach(), v.detach(), atol=1e-6)
    y.sum().backward()
    v.sum().backward()
    assert all(np.allclose(p.grad, q.grad, atol=1e-5) for p, q in zip(ours.parameters(), theirs.parameters()))


LOSSES = [("MarginRankingLoss", "xys", {"margin": 0.3}), ("SoftMarginLoss", "xs", {}), ("CosineEmbeddingLoss", "xyt", {"margin": 0.1}), ("TripletMarginLoss", "xyz", {}),
          ("TripletMarginLoss", "xyz", {"swap": True, "p": 1.0}), ("MultiMarginLoss", "xl", {}), ("MultiMarginLoss", "xl", {"p": 2, "weight": 4}),
          ("MultiLabelSoftMarginLoss", "xb", {}), ("PoissonNLLLoss", "xc", {"full": True}), ("PoissonNLLLoss", "pc", {"log_input": False}), ("GaussianNLLLoss", "xyp", {}),
          ("GaussianNLLLoss", "xyp", {"full": True})]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name,inputs,options", LOSSES)
def test_losses(name, inputs, options, reduction, rng):
    arrays = {**{k: rng.standard_normal((5, 4)).astype("f4") for k in "xyz"}, "s": rng.choice([-1.0, 1.0], (5, 4)).astype("f4"), "t": rng.choice([-1.0, 1.0], 5).astype("f4"),
              "l": rng.integers(0, 4, 5), "b": rng.choice([0.0, 1.0], (5, 4)).astype("f4"), "c": rng.integers(0, 5, (5, 4)).astype("f4"), "p": rng.random((5, 4)).astype("f4") + 0.1}
    ours, theirs = dict(options), dict(options)
    if "weight" in options:
        w = rng.random(4).astype("f4")
        ours["weight"], theirs["weight"] = fac.tensor(w), torch.tensor(w)
    a, b = [fac.tensor(arrays[k]) for k in inputs], [torch.tensor(arrays[k]) for k in inputs]
    a[0].requires_grad_(), b[0].requires_grad_()
    y, v = getattr(nn, name)(reduction=reduction, **ours)(*a), getattr(torch.nn, name)(reduction=reduction, **theirs)(*b)
    assert y.shape == tuple(v.shape) and np.allclose(y.detach(), v.detach(), atol=1e-5)
    y.sum().backward()
    v.sum().backward()
    assert np.allclose(a[0].grad, b[0].grad, atol=1e-5)


def test_distance(rng):
    a, b = rng.standard_normal((2, 5, 4)).astype("f4")
    assert np.allclose(nn.PairwiseDistance(keepdim=True)(fac.tensor(a), fac.tensor(b)), torch.nn.PairwiseDistance(keepdim=True)(torch.tensor(a), torch.tensor(b)), atol=1e-6)


def test_gumbel_softmax():
    x = fac.tensor([[1.0, 2.0, 0.0]] * 2000, requires_grad=True)
    y = F.gumbel_softmax(x, hard=True)
    assert np.array_equal(np.asarray(y.detach()).sum(1), np.ones(2000))
    assert np.allclose(np.asarray(y.detach()).mean(0), np.exp([1, 2, 0]) / np.exp([1, 2, 0]).sum(), atol=0.05)
    (y * fac.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.abs().sum() > 0


def test_lbfgs_is_that_of_torch(rng):
    a = rng.standard_normal(6).astype("f4")
    p, q = nn.Parameter(fac.tensor(a)), torch.nn.Parameter(torch.tensor(a))
    ours, theirs = fac.optim.LBFGS([p], lr=0.5, history_size=4), torch.optim.LBFGS([q], lr=0.5, history_size=4)

    def closure(optimizer, x):
        def run():
            optimizer.zero_grad()
            loss = ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x) ** 2).sum()
            loss.backward()
            return loss
        return run
    for _ in range(3):
        first, other = ours.step(closure(ours, p)), theirs.step(closure(theirs, q))
        assert math.isclose(float(first), float(other), rel_tol=1e-2, abs_tol=1e-4)
    assert np.allclose(p.detach(), 1, atol=1e-2)
    with pytest.raises(ValueError, match="function"):
        ours.step()


SCHEDULES = [("ConstantLR", ()), ("MultiplicativeLR", (lambda t: 0.9 + 0.01 * t,)), ("CyclicLR", (0.01, 0.1, 3, 2)), ("CyclicLR", (0.01, 0.1, 2, None, "triangular2")),
             ("CyclicLR", (0.01, 0.1, 3, None, "exp_range", 0.9))]


@pytest.mark.parametrize("name,args", SCHEDULES)
def test_schedules(name, args):
    ours, theirs = fac.optim.SGD([nn.Parameter(fac.ones(1))], lr=0.1), torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    extra = {"cycle_momentum": False} if name == "CyclicLR" else {}
    a, b = getattr(fac.optim.lr_scheduler, name)(ours, *args), getattr(torch.optim.lr_scheduler, name)(theirs, *args, **extra)
    for _ in range(14):
        assert math.isclose(a.get_last_lr()[0], b.get_last_lr()[0], rel_tol=1e-6, abs_tol=1e-9)
        theirs.step(), a.step(), b.step()


@pytest.mark.filterwarnings("ignore")
def test_schedules_one_after_the_other():
    rates = []
    for package, parameter in ((fac, nn.Parameter(fac.ones(1))), (torch, torch.nn.Parameter(torch.ones(1)))):
        optimizer = package.optim.SGD([parameter], lr=0.1)
        s = package.optim.lr_scheduler
        s = s.SequentialLR(optimizer, [s.LinearLR(optimizer, 0.1, total_iters=4), s.CosineAnnealingLR(optimizer, 6)], [4])
        row = []
        for _ in range(12):
            row.append(s.get_last_lr()[0])
            optimizer.step(), s.step()
        rates.append(row)
    assert np.allclose(*rates, atol=1e-7)


def test_parameters_by_name():
    d = nn.ParameterDict({"a": fac.ones(2)})
    d["b"] = fac.zeros(1)
    assert list(d) == ["a", "b"] and "a" in d and len(d) == 2 and len(list(d.parameters())) == 2 and d["b"].requires_grad
    assert [n for n, _ in nn.ParameterList([fac.ones(1)]).append(fac.ones(2)).named_parameters()] == ["0", "1"]
    assert list(nn.ModuleDict({"x": nn.ReLU()})) == ["x"]


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformers(norm_first, rng):
    make = lambda n: n.Transformer(8, 2, 2, 2, 16, 0.0, batch_first=True, norm_first=norm_first)      # noqa: E731
    ours, theirs = make(nn), make(torch.nn)
    theirs.load_state_dict({k: torch.tensor(v.numpy().copy()) for k, v in ours.state_dict().items()})
    a, b = rng.standard_normal((3, 5, 8)).astype("f4"), rng.standard_normal((3, 4, 8)).astype("f4")
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    x, u = fac.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    y = ours(x, fac.tensor(b), tgt_mask=ours.generate_square_subsequent_mask(4), src_key_padding_mask=fac.tensor(padding), memory_key_padding_mask=fac.tensor(padding))
    v = theirs(u, torch.tensor(b), tgt_mask=theirs.generate_square_subsequent_mask(4), src_key_padding_mask=torch.tensor(padding), memory_key_padding_mask=torch.tensor(padding))
    assert np.allclose(y.detach(), v.detach(), atol=1e-4)
    (y * y[:, :1]).sum().backward()
    (v * v[:, :1]).sum().backward()
    assert np.allclose(x.grad, u.grad, atol=1e-3)
    assert all(np.allclose(p.grad, q.grad, atol=1e-3) for p, q in zip(ours.parameters(), theirs.parameters()))


CYCLES = [("OneCycleLR", {"max_lr": 0.5, "total_steps": 12}), ("OneCycleLR", {"max_lr": [0.5, 0.2], "epochs": 3, "steps_per_epoch": 4, "anneal_strategy": "linear"}),
          ("OneCycleLR", {"max_lr": 0.5, "total_steps": 12, "three_phase": True, "pct_start": 0.4, "base_momentum": 0.7}),
          ("OneCycleLR", {"max_lr": 0.5, "total_steps": 12, "cycle_momentum": False}), ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3}),
          ("CyclicLR", {"base_lr": [0.01, 0.02], "max_lr": 0.1, "step_size_up": 2, "step_size_down": 4, "mode": "triangular2", "max_momentum": [0.9, 0.8]}),
          ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "scale_fn": lambda k: 1 / k, "base_momentum": 0.5})]


@pytest.mark.parametrize("optimizer,options", [("SGD", {"momentum": 0.9}), ("SGD", {}), ("Adam", {}), ("AdamW", {"betas": (0.8, 0.99)})])
@pytest.mark.parametrize("name,args", CYCLES)
def test_cycles_of_rates_and_momentum(name, args, optimizer, options):
    both = []
    for package, parameter in ((fac, nn.Parameter), (torch, torch.nn.Parameter)):
        a, b = parameter(package.ones(3)), parameter(package.ones(2))
        o = getattr(package.optim, optimizer)([{"params": [a]}, {"params": [b], "lr": 0.3}], lr=0.1, **options)
        s, rows = getattr(package.optim.lr_scheduler, name)(o, **args), []
        for _ in range(11):
            rows.append([(g["lr"], g.get("momentum"), g.get("betas")) for g in o.param_groups])
            o.zero_grad(), (a * a).sum().backward(), (b * b * b).sum().backward(), o.step(), s.step()
        both.append((rows, np.concatenate([a.detach().numpy(), b.detach().numpy()])))
    for ours, theirs in zip(both[0][0], both[1][0]):
        for x, y in zip(ours, theirs):
            assert np.allclose(np.hstack([v for v in x if v is not None]), np.hstack([v for v in y if v is not None]), rtol=1e-6, atol=1e-9)
    assert np.allclose(both[0][1], both[1][1], rtol=1e-4, atol=1e-5)


def test_wrong_cycles():
    o, s = fac.optim.Adagrad([nn.Parameter(fac.ones(1))], lr=0.1), fac.optim.lr_scheduler
    for call, words in ((lambda: s.OneCycleLR(o, 0.5, 10), "cycle_momentum=False"), (lambda: s.CyclicLR(o, 0.1, 0.5), "cycle_momentum=False"),
                        (lambda: s.OneCycleLR(o, 0.5, cycle_momentum=False), "total_steps"), (lambda: s.OneCycleLR(o, [0.5, 0.1], 10, cycle_momentum=False), "2 values for 1 group"),
                        (lambda: s.OneCycleLR(o, 0.5, 10, anneal_strategy="step", cycle_momentum=False), "cos or linear"), (lambda: s.OneCycleLR(o, 0.5, 0, cycle_momentum=False), "0 steps")):
        with pytest.raises(ValueError, match=words):
            call()
    short = s.OneCycleLR(o, 0.5, 2, cycle_momentum=False)
    short.step(), short.step()
    with pytest.raises(ValueError, match="step 3 of 2"):
        short.step()
