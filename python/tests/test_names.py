"""Names and spellings that programs for PyTorch use, beside PyTorch: results and gradients."""
import numpy as np
import pytest

import facula as fac
from facula import nn

torch = pytest.importorskip("torch")


def floats(rng, *shape):
    return rng.standard_normal(shape).astype("f4")


def beside(function, *arrays):
    """The same function of both packages: results, and gradients of all float inputs."""
    both = []
    for package in (torch, fac):
        xs = [package.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        y = function(package, *xs)
        ys = y if isinstance(y, (tuple, list)) else [y]
        total = sum((v * package.tensor(np.cos(np.arange(int(np.prod(v.shape)), dtype="f4")).reshape(tuple(v.shape)))).sum()
                    for v in ys if v.requires_grad)
        if isinstance(total, (torch.Tensor, fac.Tensor)):
            total.backward()
        both.append(([np.asarray(v.detach()) for v in ys], [np.asarray(x.grad) for x in xs if x.grad is not None]))
    (ys, grads), (zs, mine) = both
    assert len(ys) == len(zs) and len(grads) == len(mine)
    for y, z in zip(ys, zs):
        assert y.shape == z.shape
        np.testing.assert_allclose(z, y, rtol=1e-5, atol=1e-6)
    for a, b in zip(grads, mine):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


# ---- NumPy's spelling ----

@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "all", "any", "var", "std", "logsumexp",
                                  "median", "nanmedian", "nansum", "nanmean", "mode", "quantile", "count_nonzero"])
@pytest.mark.parametrize("keep", [None, False, True])
def test_axis_and_keepdims(rng, name, keep):
    if name == "count_nonzero" and keep is not None:
        return                                              # has no keepdim
    more = {} if keep is None else {"keepdims": keep}
    if name == "quantile":
        more["q"] = 0.3
    x = floats(rng, 3, 4, 5)
    beside(lambda p, x: getattr(p, name)(x, axis=1, **more), x)
    beside(lambda p, x: getattr(x, name)(axis=-1, **more), x)


@pytest.mark.parametrize("call", [
    lambda p, x: p.cat([x, x * 2], axis=1), lambda p, x: p.stack([x, x * 2], axis=1), lambda p, x: x.softmax(axis=1), lambda p, x: x.cumsum(axis=2),
    lambda p, x: x.unsqueeze(axis=1), lambda p, x: x.sort(axis=1)[0], lambda p, x: x.split(2, dim=1)[1], lambda p, x: p.squeeze(x[:, :1], axis=1)])
def test_axis_elsewhere(rng, call):
    beside(call, floats(rng, 3, 4, 5))


def test_both_spellings_at_once():
    with pytest.raises(TypeError, match="same argument"):
        fac.zeros(2, 3).amax(dim=1, axis=1)


def test_arange_of_the_other_direction():
    for start, end, step in ((5, 0, 1), (0, 5, -1), (0.0, 1.0, -0.5)):
        with pytest.raises(RuntimeError):
            torch.arange(start, end, step)
        with pytest.raises(fac.ArgumentError, match="do not lead from"):
            fac.arange(start, end, step)
        assert fac.array_api.arange(start, end, step).shape == (0,)
    assert fac.arange(3, 3).shape == (0,)


# ---- parts of tensors, order ----

@pytest.mark.parametrize("dim, start, end, step", [(0, None, None, 1), (1, 1, 3, 1), (-1, -4, None, 2), (2, 0, 5, 3), (1, 2, 2, 1), (0, 1, 100, 1)])
def test_slice_scatter(rng, dim, start, end, step):
    x = floats(rng, 3, 4, 5)
    key = [slice(None)] * 3
    key[dim] = slice(start, end, step)
    beside(lambda p, x, y: p.slice_scatter(x, y, dim, start, end, step), x, floats(rng, *x[tuple(key)].shape))
    with pytest.raises(fac.ShapeError):
        fac.slice_scatter(fac.tensor(x), fac.zeros(7), dim, start, end, step)


@pytest.mark.parametrize("dim, index", [(0, 0), (1, -1), (-1, 2)])
def test_select_scatter(rng, dim, index):
    x = floats(rng, 3, 4, 5)
    beside(lambda p, x, y: x.select_scatter(y, dim, index), x, floats(rng, *np.take(x, 0, dim).shape))
    with pytest.raises(IndexError):
        fac.select_scatter(fac.tensor(x), fac.zeros(4, 5), 0, 3)


def test_nanmedian_and_nanquantile(rng):
    x = floats(rng, 5, 6)
    x[rng.random(x.shape) < 0.3] = np.nan
    x[2, 0] = 1.0
    x[0, :] = floats(rng, 6)
    for dim in (0, 1, -1):
        for keep in (False, True):
            beside(lambda p, x: p.nanmedian(x, dim, keep)[0], x)
            for how in ("linear", "lower", "higher", "midpoint", "nearest"):
                beside(lambda p, x: p.nanquantile(x, p.tensor([0.0, 0.35, 1.0]), dim, keep, interpolation=how), x)
    beside(lambda p, x: p.nanmedian(x), x)
    beside(lambda p, x: x.nanquantile(0.4), x)
    a, b = torch.tensor(x).nanmedian(0), fac.tensor(x).nanmedian(0)
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(b[1])[None], 0)[0], a[0].numpy())
    assert int(fac.tensor([3, 1, 2]).nanmedian()) == 2
    x[2] = np.nan
    assert np.isnan(fac.tensor(x).nanmedian(1)[0].numpy()).tolist() == [False, False, True, False, False]
    assert np.isnan(fac.tensor(x).nanquantile(0.3, 1).numpy()).tolist() == [False, False, True, False, False]


# ---- layers and losses ----

@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multilabel_margin_loss(rng, reduction):
    x, y = floats(rng, 3, 5), np.array([[3, 0, -1, 1, 2], [-1, 0, 1, 2, 3], [4, 3, 2, 1, 0]])
    beside(lambda p, x, y: p.nn.MultiLabelMarginLoss(reduction=reduction)(x, y), x, y)
    beside(lambda p, x, y: p.nn.functional.multilabel_margin_loss(x, y, reduction=reduction), x[0], y[0])
    with pytest.raises(fac.ShapeError):
        nn.functional.multilabel_margin_loss(fac.zeros(2, 3), fac.zeros(2, 2, dtype="int64"))


@pytest.mark.parametrize("swap", [False, True])
def test_triplets_by_another_distance(rng, swap):
    def loss(p, a, b, c):
        return p.nn.TripletMarginWithDistanceLoss(distance_function=lambda u, v: (u - v).abs().amax(-1), margin=0.7, swap=swap)(a, b, c)
    beside(loss, *(floats(rng, 4, 6) for _ in range(3)))
    beside(lambda p, a, b, c: p.nn.functional.triplet_margin_with_distance_loss(a, b, c), *(floats(rng, 4, 6) for _ in range(3)))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_alpha_dropout(rng, p):
    fac.manual_seed(3)
    x = floats(rng, 200, 100)
    layer = nn.AlphaDropout(p)
    t = fac.tensor(x, requires_grad=True)
    y = layer(t)
    y.sum().backward()
    out, g = np.asarray(y.detach()), np.asarray(t.grad)
    assert abs(out.mean()) < 0.05 and abs(out.std() - 1) < 0.05
    kept = g > 0
    assert abs(kept.mean() - (1 - p)) < 0.02
    a = ((1.7580993408473766 ** 2 * p + 1) * (1 - p)) ** -0.5
    np.testing.assert_allclose(g[kept], a, rtol=1e-5)
    np.testing.assert_allclose(out, np.where(kept, x, -1.7580993408473766) * a + a * 1.7580993408473766 * p, rtol=1e-4, atol=1e-5)
    assert layer.eval()(t) is t
    planes = np.asarray(nn.FeatureAlphaDropout(p)(fac.tensor(floats(rng, 40, 8, 3, 3))))
    same = np.ptp(planes.reshape(40, 8, -1), axis=2) == 0
    assert abs(same.mean() - p) < 0.15
    with pytest.raises(ValueError):
        nn.AlphaDropout(1.5)
    assert not np.asarray(nn.functional.alpha_dropout(fac.ones(3), 1.0, True)).any()


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("side", ["right", "left"])
def test_pad_sequence(rng, first, side):
    def padded(p, *xs):
        return p.nn.utils.rnn.pad_sequence(list(xs), first, -1.5, side)
    xs = [floats(rng, n, 3) for n in (2, 5, 3)]
    beside(padded, *xs)
    beside(padded, *(floats(rng, n) for n in (4, 1)))
    from facula.nn.utils.rnn import pad_sequence, unpad_sequence
    back = unpad_sequence(pad_sequence([fac.tensor(x) for x in xs], first), [2, 5, 3], first)
    for x, y in zip(xs, back):
        np.testing.assert_array_equal(np.asarray(y), x)
    with pytest.raises(ValueError):
        pad_sequence([])
    with pytest.raises(fac.ShapeError):
        pad_sequence([fac.zeros(2, 3), fac.zeros(2, 4)])


# ---- averages of weights ----

def twins(rng):
    ours = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    theirs.load_state_dict({k: torch.tensor(np.asarray(v.detach())) for k, v in ours.state_dict().items()})
    return ours, theirs


@pytest.mark.parametrize("how", ["mean", "ema", "ema of all", "buffers"])
def test_averaged_model(rng, how):
    results = []
    models = twins(rng)
    batches = [floats(rng, 8, 3) for _ in range(4)]
    for package, model in zip((fac, torch), models):
        swa = __import__(f"{'facula' if package is fac else 'torch'}.optim.swa_utils", fromlist=["x"])
        more = {"ema": {"avg_fn": swa.get_ema_avg_fn(0.7)}, "ema of all": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
                "buffers": {"use_buffers": True}}.get(how, {})
        average = swa.AveragedModel(model, **more)
        opt = package.optim.SGD(model.parameters(), lr=0.1)
        for x in batches:
            opt.zero_grad()
            (model(package.tensor(x)) ** 2).mean().backward()
            opt.step()
            average.update_parameters(model)
        before = {k: np.asarray(v.detach()).copy() for k, v in average.state_dict().items()}
        swa.update_bn([package.tensor(x) for x in batches], average)
        after = {k: np.asarray(v.detach()) for k, v in average.state_dict().items()}
        results.append((before, after, np.asarray(average.eval()(package.tensor(batches[0])).detach())))
    for mine, want in zip(results[0], results[1]):
        if isinstance(mine, dict):
            assert list(mine) == list(want)
            for k in want:
                np.testing.assert_allclose(mine[k], want[k], rtol=1e-4, atol=1e-5, err_msg=k)
        else:
            np.testing.assert_allclose(mine, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 5])
def test_swalr(strategy, epochs):
    rates = []
    for package in (fac, torch):
        p = [package.nn.Linear(2, 2), package.nn.Linear(2, 2)]
        opt = package.optim.SGD([{"params": list(p[0].parameters())}, {"params": list(p[1].parameters()), "lr": 0.3}], lr=0.1)
        swa = __import__(f"{'facula' if package is fac else 'torch'}.optim.swa_utils", fromlist=["x"])
        schedule = swa.SWALR(opt, swa_lr=[0.02, 0.5], anneal_epochs=epochs, anneal_strategy=strategy)
        seen = []
        for _ in range(8):
            seen.append([g["lr"] for g in opt.param_groups])
            opt.step()
            schedule.step()
        rates.append(seen)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-6)


# ---- autograd ----

def test_setup_context(rng):
    def function(package):
        class Scaled(package.autograd.Function):
            @staticmethod
            def forward(x, by):
                return x * by, x + 1

            @staticmethod
            def setup_context(ctx, inputs, output):
                x, ctx.by = inputs
                ctx.save_for_backward(x, output[0])

            @staticmethod
            def backward(ctx, g, h):
                x, y = ctx.saved_tensors
                return g * ctx.by + h * y + x, None
        return Scaled.apply
    beside(lambda p, x: function(p)(x, 3.0), floats(rng, 3, 4))


def test_hook_after_gradients_are_added():
    """A parameter is moved inside backward(), and its gradient dropped."""
    moved = []
    for package in (torch, fac):
        w = package.tensor([1.0, 2.0], requires_grad=True)
        seen = []

        def step(p):
            seen.append(np.asarray(p.grad).copy())
            with package.no_grad():
                p.sub_(p.grad, alpha=0.5)
            p.grad = None
        handle = w.register_post_accumulate_grad_hook(step)
        w.register_hook(lambda g: g * 2)
        for _ in range(2):
            (w * w).sum().backward()
        assert w.grad is None
        handle.remove()
        (w * w).sum().backward()
        assert len(seen) == 2 and w.grad is not None
        moved.append((seen, np.asarray(w.detach()), np.asarray(w.grad)))
    np.testing.assert_allclose(moved[0][0], moved[1][0])
    np.testing.assert_allclose(moved[0][1], moved[1][1])
    np.testing.assert_allclose(moved[0][2], moved[1][2])
    with pytest.raises(RuntimeError):
        (fac.ones(2, requires_grad=True) * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError):
        fac.ones(2, requires_grad=True).register_post_accumulate_grad_hook(3)


# ---- samplers ----

def test_samplers():
    data = fac.data.TensorDataset(fac.arange(10), fac.arange(10) * 2)
    D = fac.data

    def places(**more):
        return [np.asarray(b[0]).tolist() for b in D.DataLoader(data, **more)]
    assert places(batch_size=4, sampler=D.SequentialSampler(data)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert places(batch_size=3, sampler=[7, 1, 1, 5], drop_last=True) == [[7, 1, 1]]
    assert places(batch_sampler=[[1, 2], [9]]) == [[1, 2], [9]]
    assert sorted(sum(places(sampler=D.RandomSampler(data)), [])) == list(range(10))
    assert len(D.DataLoader(data, batch_size=4, sampler=D.RandomSampler(data, True, 25))) == 7
    assert sorted(sum(places(batch_size=2, sampler=D.SubsetRandomSampler([2, 4, 6])), [])) == [2, 4, 6]
    weighted = D.WeightedRandomSampler([0, 0, 1, 3, *[0] * 6], 400)
    drawn = sum(places(batch_size=50, sampler=weighted), [])
    assert set(drawn) == {2, 3} and 0.65 < drawn.count(3) / 400 < 0.85
    assert sorted(D.WeightedRandomSampler([1, 2, 0], 2, False)) == [0, 1]
    for wrong in ({"sampler": [1], "shuffle": True}, {"batch_sampler": [[1]], "batch_size": 3}, {"batch_sampler": [[1]], "sampler": [1]}):
        with pytest.raises(ValueError):
            D.DataLoader(data, **wrong)
    with pytest.raises(ValueError):
        D.WeightedRandomSampler([1.0, -1.0], 2)
    with pytest.raises(ValueError):
        D.RandomSampler(data, num_samples=0)
