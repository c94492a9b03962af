"""Layers and losses beside PyTorch's, values and gradients: bags, CTC, grids, unpooling, norms of windows."""
import numpy as np
import pytest

import facula as fac
from facula import nn

F = nn.functional
torch = pytest.importorskip("torch")


def beside(function, *arrays, atol=1e-5):
    """The same function of both packages: results, and gradients of all float inputs."""
    both = []
    for package in (torch, fac):
        xs = [package.tensor(a, requires_grad=a.dtype.kind == "f") if isinstance(a, np.ndarray) else a for a in arrays]
        y = function(package, *xs)
        # a weight for each element, so that none cancels another
        weight = package.tensor(np.cos(np.arange(int(np.prod(y.shape)), dtype="f4")).reshape(tuple(y.shape)))
        finite = package.where(package.isfinite(y), y, package.zeros_like(y.detach()))
        (finite * weight).sum().backward()
        both.append((y.detach().numpy(), [x.grad.numpy() for x in xs if isinstance(getattr(x, "grad", None), (torch.Tensor, fac.Tensor))]))
    (y, grads), (z, mine) = both
    assert y.shape == z.shape
    np.testing.assert_allclose(z, y, rtol=1e-4, atol=atol)
    assert len(grads) == len(mine)
    for a, b in zip(grads, mine):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=10 * atol)


def floats(rng, *shape):
    return rng.standard_normal(shape).astype("f4")


# ---- CTC ----

CTC = {"plain": ([[1, 2, 3], [2, 2, 1]], [9, 9], [3, 3]), "shorter": ([[1, 2, 0], [3, 1, 3]], [9, 6], [2, 3]), "one after the other": ([1, 2, 3, 3, 1], [9, 8], [2, 3]),
       "nothing to spell": ([[1, 2], [1, 2]], [9, 5], [0, 2]), "too short": ([[1, 1, 1], [1, 2, 3]], [4, 9], [3, 3]), "just long enough": ([[1, 1, 1], [1, 2, 3]], [5, 3], [3, 3])}


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("case", CTC)
def test_ctc(rng, case, zero, reduction):
    targets, times, sizes = CTC[case]
    if case == "too short" and not zero:
        x = fac.tensor(floats(rng, 9, 2, 4), requires_grad=True)
        y = F.ctc_loss(F.log_softmax(x, 2), fac.tensor(targets), times, sizes, reduction=reduction)
        assert np.isinf(y.detach().numpy().reshape(-1)[0])
        y.sum().backward()
        assert np.all(np.isfinite(x.grad.numpy()))          # PyTorch's are NaN
        return

    def loss(package, x):
        return package.nn.functional.ctc_loss(package.nn.functional.log_softmax(x, 2), package.tensor(targets), package.tensor(times), package.tensor(sizes),
                                              reduction=reduction, zero_infinity=zero)
    beside(loss, floats(rng, 9, 2, 4), atol=1e-4)


def test_ctc_of_one_sample_and_another_blank(rng):
    def loss(package, x):
        return package.nn.CTCLoss(blank=2)(package.nn.functional.log_softmax(x, 1), package.tensor([0, 1, 1]), package.tensor(7), package.tensor(3))
    beside(loss, floats(rng, 7, 4), atol=1e-4)


def test_wrong_ctc():
    x, t = fac.zeros(5, 2, 4), fac.tensor([[1, 2], [1, 2]])
    for call, words in ((lambda: F.ctc_loss(x, t, [5, 6], [2, 2]), "input_lengths"), (lambda: F.ctc_loss(x, t, [5, 5], [2, 3]), "target_lengths"),
                        (lambda: F.ctc_loss(x, fac.tensor([[1, 4], [1, 2]]), [5, 5], [2, 2]), "4 classes"), (lambda: F.ctc_loss(x, t, [5, 5], [2, 2], reduction="all"), "reduction"),
                        (lambda: F.ctc_loss(x, fac.tensor([1, 2, 3]), [5, 5], [2, 2]), "3 labels")):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(fac.ShapeError, match="log_probs"):
        F.ctc_loss(fac.zeros(5), t, [5], [2])


# ---- bags ----

@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("ids,offsets", [([[1, 2, 2], [0, 1, 5]], None), ([1, 2, 2, 0, 1, 5], [0, 2, 2, 5]), ([1, 1, 3], [0, 2])])
def test_bags(rng, mode, padding, ids, offsets):
    def bag(package, w):
        given = {} if offsets is None else {"offsets": package.tensor(offsets)}
        return package.nn.functional.embedding_bag(package.tensor(ids), w, mode=mode, padding_idx=padding, **given)
    beside(bag, floats(rng, 6, 4))


def test_bags_with_weights_and_a_last_offset(rng):
    def bag(package, w, share):
        return package.nn.functional.embedding_bag(package.tensor([1, 2, 2, 0, 5]), w, package.tensor([0, 2, 5]), mode="sum", per_sample_weights=share,
                                                   include_last_offset=True)
    beside(bag, floats(rng, 6, 4), floats(rng, 5))
    layer = nn.EmbeddingBag(6, 4, mode="max")
    assert layer(fac.tensor([[0, 1], [2, 3]])).shape == (2, 4) and "mode=max" in repr(layer)
    table = fac.tensor(floats(rng, 6, 4))
    np.testing.assert_allclose(nn.EmbeddingBag.from_pretrained(table, mode="sum")(fac.tensor([[0, 1]])).numpy()[0], (table[0] + table[1]).numpy(), rtol=1e-6)


def test_wrong_bags():
    w = fac.zeros(6, 4)
    for call, words in ((lambda: F.embedding_bag(fac.tensor([1, 2]), w, [1]), "offsets"), (lambda: F.embedding_bag(fac.tensor([1, 2]), w, [0, 3]), "offsets"),
                        (lambda: F.embedding_bag(fac.tensor([[1, 2]]), w, mode="least"), "mode"),
                        (lambda: F.embedding_bag(fac.tensor([[1, 2]]), w, per_sample_weights=fac.ones(1, 2)), "mode sum")):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(fac.ShapeError, match="offsets"):
        F.embedding_bag(fac.tensor([1, 2]), w)


# ---- grids ----

@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_grids(rng, mode, padding, corners):
    theta = floats(rng, 2, 2, 3)         # no place exactly at the edge of a pixel, where rounding would choose

    def sample(package, x, theta):
        f = package.nn.functional
        return f.grid_sample(x, f.affine_grid(theta, (2, 3, 5, 4), align_corners=corners), mode=mode, padding_mode=padding, align_corners=corners)
    beside(sample, floats(rng, 2, 3, 6, 5), theta, atol=2e-4)


def test_wrong_grids():
    with pytest.raises(ValueError, match="padding_mode"):
        F.grid_sample(fac.zeros(1, 1, 2, 2), fac.zeros(1, 2, 2, 2), padding_mode="wrap")


# ---- pools ----

@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("how", [{}, {"stride": 4}, {"padding": 1}])
@pytest.mark.parametrize("sized", [False, True])
def test_unpooling(rng, n, how, sized):
    fits = 11 if "stride" in how else 9 + how.get("padding", 0)         # what the default size is right for
    x = floats(rng, 2, 3, *([11, 10, 9] if sized else [fits] * 3)[:n])

    def there_and_back(package, x):
        f, k = package.nn.functional, 3
        y, at = getattr(f, f"max_pool{n}d")(x, k, **how, return_indices=True)
        again = getattr(package.nn, f"MaxUnpool{n}d")(k, **how)
        return again(y, at, output_size=x.shape) if sized else again(y, at)
    beside(there_and_back, x)


def test_a_maximum_of_two_windows_counts_once():
    x = fac.tensor([[[0.0, 1.0, 5.0, 1.0, 0.0]]], requires_grad=True)
    y, at = F.max_pool1d(x, 3, 1, return_indices=True)
    z = F.max_unpool1d(y, at, 3, 1)
    np.testing.assert_array_equal(z.detach().numpy(), [[[0, 0, 5, 0, 0]]])
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[[0, 0, 1, 0, 0]]])       # PyTorch: 3, once for each window


def test_wrong_unpooling():
    with pytest.raises(fac.ShapeError, match="indices"):
        F.max_unpool2d(fac.zeros(1, 1, 2, 2), fac.zeros(1, 1, 2, 1, dtype="int64"), 2)
    with pytest.raises(ValueError, match="output_size"):
        F.max_unpool1d(fac.zeros(1, 1, 2), fac.zeros(1, 1, 2, dtype="int64"), 2, output_size=(9,))
    with pytest.raises(IndexError):
        F.max_unpool1d(fac.ones(1, 1, 2), fac.tensor([[[0, 4]]]), 2)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_norms_of_windows(rng, n, p):
    x = np.abs(floats(rng, 2, 3, *[9, 8, 7][:n])) + 0.1
    beside(lambda package, x: getattr(package.nn, f"LPPool{n}d")(p, 3, stride=2, ceil_mode=True)(x), x, atol=1e-4)


@pytest.mark.parametrize("size", [1, (2, 3, None), (4, 2, 5)])
@pytest.mark.parametrize("name", ["AdaptiveAvgPool3d", "AdaptiveMaxPool3d"])
def test_adaptive_pools_over_three_dims(rng, name, size):
    beside(lambda package, x: getattr(package.nn, name)(size)(x), floats(rng, 2, 3, 6, 5, 7))


@pytest.mark.parametrize("size", [1, 2, 3, 5, (4, 2), (None, 3), (6, 5), (3, 5), (1, 4)])
def test_adaptive_pools(rng, size):
    """Windows that share elements or not; of equal maxima the first one has the gradient, and its place in the plane."""
    tied = rng.integers(0, 3, (2, 3, 6, 5)).astype("f4")
    line = size if isinstance(size, int) else size[0]
    for x in (floats(rng, 2, 3, 6, 5), tied, tied[0]):
        beside(lambda package, x: package.nn.functional.adaptive_max_pool2d(x, size), x)
        beside(lambda package, x: package.nn.functional.adaptive_avg_pool2d(x, size), x)
        y, at = nn.AdaptiveMaxPool2d(size, return_indices=True)(fac.tensor(x))
        z, places = torch.nn.AdaptiveMaxPool2d(size, return_indices=True)(torch.tensor(x))
        np.testing.assert_array_equal(y.numpy(), z.numpy())
        np.testing.assert_array_equal(at.numpy(), places.numpy())
    if line is not None:
        beside(lambda package, x: package.nn.functional.adaptive_max_pool1d(x, line), tied[0])
        _, at = F.adaptive_max_pool1d(fac.tensor(tied[0]), line, True)
        np.testing.assert_array_equal(at.numpy(), torch.nn.functional.adaptive_max_pool1d(torch.tensor(tied[0]), line, True)[1].numpy())


def test_adaptive_pools_refuse(rng):
    assert F.adaptive_max_pool2d(fac.ones(1, 2, 3, 4), 0).shape == F.adaptive_avg_pool2d(fac.ones(1, 2, 3, 4), 0).shape == (1, 2, 0, 0)
    for call in (lambda: F.adaptive_avg_pool2d(fac.ones(4), 2), lambda: F.adaptive_max_pool2d(fac.ones(1, 2, 3, 4, 5), 2), lambda: F.adaptive_avg_pool1d(fac.ones(1, 2, 0), 2),
                 lambda: F.adaptive_max_pool2d(fac.ones(2, 3, 4), (1, 2, 3)), lambda: F.adaptive_avg_pool2d(fac.ones(1, 2, 3, 4), -1)):
        with pytest.raises(ValueError, match="adaptive_"):
            call()


@pytest.mark.parametrize("name", ["max_pool1d", "avg_pool1d", "max_pool2d", "avg_pool2d", "max_pool3d", "avg_pool3d"])
def test_pools_refuse_windows_of_padding_alone(name):
    n = int(name[-2])
    x = fac.ones(1, 1, *[6] * n)
    assert getattr(F, name)(x, 2, padding=1).shape == (1, 1, *[4] * n)
    for kernel, padding in ((2, 2), (3, 2), ((4,) * n, (1,) * (n - 1) + (3,))):
        with pytest.raises(ValueError, match="half a window"):
            getattr(F, name)(x, kernel, padding=padding)


def test_pools_take_their_options_in_order(rng):
    x = floats(rng, 2, 3, 9, 8)
    beside(lambda package, x: package.nn.MaxPool2d(3, 2, 1, 2, True, True)(x)[0], x)
    beside(lambda package, x: package.nn.AvgPool2d(3, 2, 1, True, False)(x), x)


def test_slopes_by_chance(rng):
    x = fac.tensor(np.full(4000, -1.0, "f4"), requires_grad=True)
    layer = nn.RReLU(0.1, 0.5)
    y = layer(x)
    y.sum().backward()
    slopes = -y.detach().numpy()
    assert 0.1 <= slopes.min() < 0.12 and 0.48 < slopes.max() <= 0.5 and abs(slopes.mean() - 0.3) < 0.01
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-6)
    beside(lambda package, x: package.nn.functional.rrelu(x, 0.1, 0.5), floats(rng, 3, 4))
    with pytest.raises(ValueError, match="slopes"):
        F.rrelu(x, 0.5, 0.1)


def test_layers_are_their_functions(rng):
    sizes = (9, 8, 7)
    pools = [(nn.LPPool1d, F.lp_pool1d), (nn.LPPool2d, F.lp_pool2d), (nn.LPPool3d, F.lp_pool3d)]
    back = [(nn.MaxUnpool1d, F.max_unpool1d, F.max_pool1d), (nn.MaxUnpool2d, F.max_unpool2d, F.max_pool2d), (nn.MaxUnpool3d, F.max_unpool3d, F.max_pool3d)]
    for n, ((layer, function), (unpool, apart, pool)) in enumerate(zip(pools, back), 1):
        x = fac.tensor(floats(rng, 1, 2, *sizes[:n]))
        np.testing.assert_array_equal(layer(2, 3)(x.abs()).numpy(), function(x.abs(), 2, 3).numpy())
        y, at = pool(x, 3, return_indices=True)
        np.testing.assert_array_equal(unpool(3)(y, at, output_size=x.shape).numpy(), apart(y, at, 3, output_size=x.shape).numpy())
        assert "kernel_size=3" in repr(unpool(3)) and "norm_type=2" in repr(layer(2, 3))
    x = fac.tensor(floats(rng, 1, 2, 4, 5, 6))
    np.testing.assert_array_equal(nn.AdaptiveAvgPool3d(2)(x).numpy(), F.adaptive_avg_pool3d(x, 2).numpy())
    np.testing.assert_array_equal(nn.AdaptiveMaxPool3d(2)(x).numpy(), F.adaptive_max_pool3d(x, 2).numpy())


SINGLE = {"constant": lambda s, o: s.ConstantLR(o, 0.1, 4), "linear": lambda s, o: s.LinearLR(o, 0.3, 0.9, 6), "step": lambda s, o: s.StepLR(o, 3, 0.5),
          "milestones": lambda s, o: s.MultiStepLR(o, [2, 5], 0.3), "exponential": lambda s, o: s.ExponentialLR(o, 0.9), "cosine": lambda s, o: s.CosineAnnealingLR(o, 4, 0.01),
          "polynomial": lambda s, o: s.PolynomialLR(o, 7, 1.5), "multiplied": lambda s, o: s.MultiplicativeLR(o, lambda t: 0.9 + 0.01 * t),
          "function": lambda s, o: s.LambdaLR(o, lambda t: 1 / (1 + t)), "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001)}


def rates(makes, chained, steps=14):
    rows = []
    for package, parameter in ((fac, fac.nn.Parameter), (torch, torch.nn.Parameter)):
        o = package.optim.SGD([{"params": [parameter(package.ones(1))]}, {"params": [parameter(package.ones(2))], "lr": 0.4}], lr=0.2)
        s = package.optim.lr_scheduler
        all_ = [make(s, o) for make in makes]
        one = s.ChainedScheduler(all_) if chained else None
        row = []
        for _ in range(steps):
            row.append([g["lr"] for g in o.param_groups])
            if one is not None:
                assert np.allclose(one.get_last_lr(), row[-1])
            o.step()
            for each in [one] if one is not None else all_:
                each.step()
        rows.append(row)
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("first", SINGLE)
@pytest.mark.parametrize("second", [None, *SINGLE])
def test_schedules_of_one_rate(first, second, chained):
    rates([SINGLE[first]] + ([SINGLE[second]] if second else []), chained)


@pytest.mark.filterwarnings("ignore")
def test_a_chain_goes_on():
    o = fac.optim.SGD([fac.nn.Parameter(fac.ones(1))], lr=0.2)
    s = fac.optim.lr_scheduler
    chain = s.ChainedScheduler([s.LinearLR(o, 0.5, total_iters=4), s.ExponentialLR(o, 0.9)], o)
    for _ in range(2):
        chain.step()
    state, lr = chain.state_dict(), chain.get_last_lr()
    rest = [(chain.step(), chain.get_last_lr()[0])[1] for _ in range(4)]
    chain.load_state_dict(state)
    o.param_groups[0]["lr"] = lr[0]
    assert [(chain.step(), chain.get_last_lr()[0])[1] for _ in range(4)] == rest
    other = fac.optim.SGD([fac.nn.Parameter(fac.ones(1))], lr=0.2)
    for schedules, words in (([], "empty"), ([s.StepLR(o, 1), s.StepLR(other, 1)], "more than one optimizer")):
        with pytest.raises(ValueError, match=words):
            s.ChainedScheduler(schedules)


@pytest.mark.parametrize("options", [{}, {"lr": 0.3, "weight_decay": 0.1}, {"eps": (1e-4, 0.1), "d": 2.0, "beta2_decay": -0.5}, {"maximize": True}])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adafactor(rng, options, dtype):
    starts = [rng.standard_normal(s).astype(dtype) for s in ((3, 4), (5,), (2, 3, 2), (1, 1))]
    targets = [rng.standard_normal(a.shape).astype(dtype) for a in starts]
    ends = []
    for package, parameter in ((fac, fac.nn.Parameter), (torch, torch.nn.Parameter)):
        ps = [parameter(package.tensor(a)) for a in starts]
        o = package.optim.Adafactor(ps, **options)
        for _ in range(6):
            o.zero_grad()
            sum(((p - package.tensor(t)) ** 2).sum() for p, t in zip(ps, targets)).backward()
            o.step()
        ends.append([p.detach().numpy() for p in ps])
        if package is fac:
            state = o.state_dict()
            o.load_state_dict(state)
            assert set(state["state"][0]) == {"step", "row_var", "col_var"} and set(state["state"][1]) == {"step", "variance"}
    near = 1e-5 if dtype == "float32" else 1e-12
    for ours, theirs in zip(*ends):
        np.testing.assert_allclose(ours, theirs, rtol=near, atol=near)
    for wrong in ({"d": 0.5}, {"eps": (-1.0, 1e-3)}, {"beta2_decay": 0.5}, {"lr": -1.0}):
        with pytest.raises(ValueError):
            fac.optim.Adafactor([fac.nn.Parameter(fac.ones(1))], **wrong)


@pytest.mark.parametrize("layers, both_ways, bias, first", [(1, False, True, False), (2, True, True, True), (2, False, False, True), (1, True, False, False)])
@pytest.mark.parametrize("batch", ["first", "second", "none"])
def test_projected_lstm(rng, layers, both_ways, bias, first, batch):
    make = {"bidirectional": both_ways, "bias": bias, "num_layers": layers, "batch_first": batch == "first", "proj_size": 3}
    ours, theirs = fac.nn.LSTM(4, 5, **make), torch.nn.LSTM(4, 5, **make)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    theirs.load_state_dict({k: torch.tensor(v.numpy().copy()) for k, v in ours.state_dict().items()})
    n, d = (() if batch == "none" else (2,)), layers * (1 + both_ways)
    a = rng.standard_normal({"first": (2, 6, 4), "second": (6, 2, 4), "none": (6, 4)}[batch]).astype("f4")
    states = [rng.standard_normal((d, *n, k)).astype("f4") for k in (3, 5)] if first else None
    rows = []
    for package, net in ((fac, ours), (torch, theirs)):
        x = package.tensor(a, requires_grad=True)
        y, (h, c) = net(x, tuple(package.tensor(s) for s in states) if states else None)
        (package.sin(y).sum() + (h * h).sum() + (c * c).sum()).backward()
        rows.append([y.detach().numpy(), h.detach().numpy(), c.detach().numpy(), x.grad.numpy(), *(p.grad.numpy() for p in net.parameters())])
    for mine, other in zip(*rows):
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


def test_wrong_projections():
    for kind, size in ((fac.nn.LSTM, 5), (fac.nn.LSTM, 7), (fac.nn.LSTM, -1), (fac.nn.GRU, 2), (fac.nn.RNN, 2)):
        with pytest.raises(ValueError, match="proj_size"):
            kind(4, 5, proj_size=size)
    assert "proj_size=2" in repr(fac.nn.LSTM(4, 5, proj_size=2))


def test_transposes_in_place(rng):
    for a in (rng.standard_normal((2, 3)), rng.standard_normal(4)):
        x, u = fac.tensor(a), torch.tensor(a)
        assert x.t_() is x
        np.testing.assert_array_equal(x.numpy(), u.t_().numpy())
        assert (x * 2).t_().shape == tuple(reversed(x.shape))
    x = fac.tensor(rng.standard_normal((2, 3)), requires_grad=True)
    y = (x * 2).t_()
    (y * fac.arange(6.0).reshape(3, 2)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(6.0).reshape(3, 2).T)
