"""Arguments by PyTorch's names and in PyTorch's order: the same call means the same in both packages."""
import inspect
import re

import numpy as np
import pytest

import facula as fac
from facula import nn

torch = pytest.importorskip("torch")
F = nn.functional

# n: the package, F: its functions of networks; x, y [3,4], b [2,3,4], i: places; j: integers; m: a mask
CALLS = """n.add(input=x, other=y, alpha=2) | n.sub(x, other=y) | n.mul(input=x, other=y) | n.div(input=x, other=y, rounding_mode='trunc') | n.pow(input=x.abs(), exponent=2) | x.pow(exponent=2) | n.maximum(x, other=y)
n.fmod(x, other=2.0) | n.where(condition=m, input=x, other=y) | n.clamp(input=x, min=-0.5, max=0.5) | n.matmul(input=x, other=y.T) | n.mm(input=x, mat2=y.T) | n.bmm(input=b, mat2=b.mT) | n.mv(input=x, vec=y[0])
n.dot(input=x[0], tensor=y[0]) | n.outer(input=x[0], vec2=y[1]) | n.inner(input=x, other=y) | n.kron(input=x, other=y) | n.addmm(input=x[:, :3], mat1=x, mat2=y.T, beta=2, alpha=3) | n.addmv(input=x[:, 0], mat=x, vec=y[0])
n.addr(input=x, vec1=x[:, 0], vec2=y[0]) | n.baddbmm(input=b[:, :, :3], batch1=b, batch2=b.mT) | n.cross(input=x[:, :3], other=y[:, :3], dim=1) | n.dist(input=x, other=y, p=1) | n.cdist(x1=x, x2=y) | n.isclose(input=x, other=y)
n.allclose(input=x, other=x) | n.equal(input=x, other=y) | n.atan2(input=x, other=y) | n.hypot(input=x, other=y) | n.copysign(input=x, other=y) | n.logaddexp(input=x, other=y) | n.xlogy(input=x, other=y.abs()) | n.gcd(input=j, other=j + 1)
n.logical_and(input=x, other=y) | n.bitwise_and(input=j, other=j) | n.eq(input=x, other=y) | n.exp(input=x) | n.abs(input=x) | n.sum(input=x, dim=1, keepdim=True) | n.mean(input=x, dim=0) | n.max(input=x, dim=1) | n.argmax(input=x, dim=1)
n.softmax(input=x, dim=1) | n.cumsum(input=x, dim=1) | n.norm(input=x, p=2, dim=1) | n.sort(input=x, dim=1, descending=True) | n.topk(input=x, k=2, dim=1, largest=True, sorted=True) | n.gather(input=x, dim=1, index=i)
n.scatter(input=x, dim=1, index=i, src=y) | n.scatter(x, 1, i, value=3.0) | x.scatter(dim=1, index=i, value=2.0) | n.take_along_dim(input=x, indices=i, dim=1) | n.index_select(input=x, dim=0, index=i[0]) | n.masked_fill(input=x, mask=m, value=1.0)
n.split(tensor=x, split_size_or_sections=2, dim=1) | n.chunk(input=x, chunks=2, dim=1) | n.transpose(input=x, dim0=0, dim1=1) | n.flatten(input=b, start_dim=1)
n.squeeze(input=b[:1], dim=0) | n.unsqueeze(input=x, dim=1) | n.flip(input=x, dims=(1,)) | n.roll(input=x, shifts=1, dims=1) | n.tril(input=x, diagonal=1) | n.diagonal(input=x, offset=1) | n.Tensor.diff(x, 1, 1, prepend=y, append=x)
x.diff(n=2, dim=0, append=y) | n.unique(input=j, sorted=True, return_counts=True) | n.unique(j, True, True) | n.isin(elements=j, test_elements=j[0], assume_unique=False) | n.searchsorted(x.sort(1)[0], y, side='right') | n.searchsorted(sorted_sequence=x[0].sort()[0], input=y, right=True)
n.var(x, 0, False) | n.var(x, 0, True, True) | n.var(x, False) | n.std(x, 1, False) | n.std(x, unbiased=False) | n.var_mean(x, 1, False) | n.std_mean(x, 0, True, True) | x.var(1, False, True) | x.std(False) | n.var(input=x, dim=1, correction=0, keepdim=True)
F.relu(x, inplace=False) | F.relu(input=x) | F.leaky_relu(input=x, negative_slope=0.2, inplace=False) | F.elu(x, 0.5, False) | F.gelu(input=x, approximate='tanh') | F.silu(x, inplace=False) | F.dropout(input=x, p=0.3, training=False, inplace=True)
F.hardtanh(input=x, min_val=-0.3, max_val=0.4) | F.threshold(input=x, threshold=0.1, value=2.0) | F.softmax(input=x, dim=1) | F.mse_loss(input=x, target=y) | F.l1_loss(input=x, target=y) | F.cross_entropy(input=x, target=i[:, 0])
F.nll_loss(input=x, target=i[:, 0]) | F.binary_cross_entropy(input=x.sigmoid(), target=y.sigmoid()) | F.kl_div(input=x, target=y.abs(), reduction='batchmean') | F.smooth_l1_loss(input=x, target=y, beta=0.5) | F.huber_loss(input=x, target=y, delta=0.5)
F.cosine_similarity(x1=x, x2=y, dim=1) | F.pairwise_distance(x1=x, x2=y) | F.margin_ranking_loss(input1=x[0], input2=y[0], target=y[1].sign()) | F.cosine_embedding_loss(input1=x, input2=y, target=y[:, 0].sign()) | F.layer_norm(input=x, normalized_shape=(4,))
F.normalize(input=x, p=2.0, dim=1) | F.linear(input=x, weight=y) | F.embedding(input=i, weight=x) | F.embedding(i, x, None, None, 2.0, False, False) | F.interpolate(input=b, scale_factor=1.7, recompute_scale_factor=True) | F.pad(input=x, pad=(1, 2), value=1.0)
F.max_pool1d(input=b, kernel_size=2) | F.one_hot(i, num_classes=5) | F.unfold(input=b.unsqueeze(0), kernel_size=2) | F.group_norm(input=b, num_groups=3) | F.glu(input=x, dim=1) | F.gumbel_softmax(x, 1.0, False, 1e-10, 1).sum(1)"""
CALLS = [c.strip() for line in CALLS.split("\n") for c in line.split(" | ")]


def given(package, rng):
    x, y, b = (rng.standard_normal(s).astype("f4") for s in ((3, 4), (3, 4), (2, 3, 4)))
    arrays = {"x": x, "y": y, "b": b, "i": rng.integers(0, 3, (3, 4)), "j": rng.integers(1, 9, (3, 4)), "m": x > 0}
    return {"n": package, "F": package.nn.functional, **{k: package.tensor(a) for k, a in arrays.items()}}


def parts(y):
    return [p for one in y for p in parts(one)] if isinstance(y, (tuple, list)) else [np.asarray(y.detach().numpy() if hasattr(y, "detach") else y)]


@pytest.mark.parametrize("call", CALLS)
def test_calls_by_name(call):
    ours, theirs = (parts(eval(call, given(p, np.random.default_rng(3)))) for p in (fac, torch))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def names_of(function):
    """The names of PyTorch's arguments by position, from the signature or the first line of the documentation."""
    try:
        return [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        found = re.search(r"^\s*(?:\.\. function:: )?(?:\w+\.)*\w+\(([^()*\[\]]*)", function.__doc__ or "", re.M)
        return [re.split("[:=]", a)[0].strip() for a in found.group(1).split(",")] if found else []


def test_the_first_argument_is_input():
    """What the first argument of a function is called, wherever torch's documentation says it."""
    other = {}
    for ours, theirs in ((fac, torch), (F, torch.nn.functional)):
        for name in dir(ours):
            function, known = getattr(ours, name), getattr(theirs, name, None)
            if name[0] == "_" or isinstance(function, type) or not callable(function) or not callable(known):
                continue
            try:
                have = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD][:1]
            except ValueError:              # one of C's
                continue
            want = names_of(known)[:1]
            if have in (["x"], ["a"]) or (want and have and want[0] in ("input", "x1", "input1") and have != want):
                other[name] = have[0], want
    # some are of models here, some have the names of linalg
    assert set(other) <= {"diff", "tile", "dequantize", "trace", "pinverse", "logdet", "slogdet", "tensordot"}, sorted(other.items())


@pytest.mark.parametrize("name, options", [("relu", ()), ("leaky_relu", (0.2,)), ("elu", (0.7,)), ("celu", (0.7,)), ("selu", ()), ("hardtanh", (-0.3, 0.4)), ("threshold", (0.1, 2.0)), ("relu6", ()), ("silu", ()),
                                           ("mish", ()), ("hardswish", ()), ("hardsigmoid", ()), ("rrelu", (0.1, 0.3, False)), ("dropout", (0.0, True))])
def test_results_in_place(rng, name, options):
    a = rng.standard_normal((3, 4)).astype("f4")
    results = []
    for package in (torch, fac):
        leaf = package.tensor(a, requires_grad=True)
        x = leaf * 2
        y = getattr(package.nn.functional, name)(x, *options, inplace=True)
        assert y is x
        (x * x).sum().backward()
        results.append((x.detach().numpy(), leaf.grad.numpy()))
    for ours, theirs in zip(*results[::-1]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    for function in ("relu_", "elu_", "celu_", "selu_", "leaky_relu_", "hardtanh_", "rrelu_"):
        x = fac.tensor(a)
        assert getattr(F, function)(x) is x


@pytest.mark.parametrize("layer", [lambda p: p.nn.ReLU(inplace=True), lambda p: p.nn.LeakyReLU(0.2, inplace=True), lambda p: p.nn.Hardtanh(-0.2, 0.3, inplace=True), lambda p: p.nn.Threshold(0.1, 2.0, True),
                                   lambda p: p.nn.SiLU(True), lambda p: p.nn.ELU(0.5, True), lambda p: p.nn.Dropout(0.3, inplace=True).eval(), lambda p: p.nn.RReLU(0.1, 0.2, True).eval()])
def test_layers_in_place(rng, layer):
    """What is read after the layer is what the layer wrote, as in networks whose shortcut starts before an activation."""
    a = rng.standard_normal((3, 4)).astype("f4")
    ours, theirs = ((layer(p)(x) + x).numpy() for p, x in ((fac, fac.tensor(a)), (torch, torch.tensor(a))))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_random_fills_by_name():
    x = fac.zeros(4000)
    assert abs(x.normal_(mean=3.0, std=0.5).mean().item() - 3) < 0.1 and abs(x.std().item() - 0.5) < 0.1
    assert x.uniform_(**{"from": 2.0, "to": 3.0}).min().item() >= 2 and abs(x.exponential_(lambd=2.0).mean().item() - 0.5) < 0.1
    assert abs(x.bernoulli_(p=0.25).mean().item() - 0.25) < 0.1 and x.random_(to=5).max().item() == 4
    y = fac.zeros(3)
    assert y.copy_(fac.ones(3), non_blocking=True).tolist() == [1, 1, 1] and y.to("cpu", non_blocking=True).tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="middle"):
        x.normal_(middle=0.0)
    with pytest.raises(TypeError, match="src or value"):
        fac.scatter(fac.ones(2, 2), 0, fac.tensor([[0]]))


LAYERS = [lambda **o: nn.Linear(3, 2, **o), lambda **o: nn.Conv2d(1, 2, 3, bias=False, **o), lambda **o: nn.BatchNorm2d(3, **o), lambda **o: nn.LayerNorm(4, **o), lambda **o: nn.Embedding(5, 3, **o), lambda **o: nn.LSTM(3, 2, **o),
          lambda **o: nn.GRUCell(3, 2, **o), lambda **o: nn.MultiheadAttention(4, 2, **o), lambda **o: nn.PReLU(**o), lambda **o: nn.TransformerEncoderLayer(4, 2, **o)]


@pytest.mark.parametrize("make", LAYERS)
def test_layers_take_device_and_dtype(make):
    layer = make(device="cpu", dtype=fac.float64)
    assert all(p.dtype is fac.float64 and isinstance(p, nn.Parameter) and p.requires_grad for p in layer.parameters())
    assert all(p.dtype is fac.float32 for p in make(device=None, dtype=None).parameters())


def test_a_network_of_another_type_has_the_same_parameters(rng):
    """Optimizers know parameters by what they are; counters stay integers."""
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    before = list(net.parameters())
    opt = fac.optim.SGD(net.parameters(), lr=0.1)
    net(fac.ones(2, 3)).sum().backward()
    for cast, dtype in ((net.double, fac.float64), (lambda: net.to("float16"), fac.float16), (lambda: net.to(dtype=fac.float32), fac.float32)):
        cast()
        assert all(a is b for a, b in zip(before, net.parameters())) and all(p.dtype is p.grad.dtype is dtype for p in before)
        assert net[1].num_batches_tracked.dtype is fac.int64 and net[1].running_mean.dtype is dtype
    was = net[1].weight.detach().clone()
    (net(fac.tensor(rng.standard_normal((5, 3)).astype("f4"))) ** 3).sum().backward()
    opt.step()
    assert not fac.equal(was, net[1].weight)


def test_rows_that_are_read_are_made_shorter(rng):
    table, ids = rng.standard_normal((6, 3)).astype("f4") * 3, np.array([[0, 2], [2, 5]])
    made = []
    for package in (torch, fac):
        layer = package.nn.Embedding(6, 3, max_norm=1.0, norm_type=1.0)
        layer.weight.data = package.tensor(table)
        y = layer(package.tensor(ids))
        y.sum().backward()
        made.append((y.detach().numpy(), layer.weight.detach().numpy(), layer.weight.grad.numpy()))
    for ours, theirs in zip(*made[::-1]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    for call in (lambda: F.embedding(fac.tensor(ids), fac.tensor(table), scale_grad_by_freq=True), lambda: F.interpolate(fac.ones(1, 1, 4, 4), 2, mode="bilinear", antialias=True)):
        with pytest.raises(fac.UnsupportedError):
            call()
