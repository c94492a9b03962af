"""Calls with random shapes (also of size 0 and 1, broadcast, without dims), dtypes, dims and numbers beside PyTorch's: shapes, dtypes,
values, gradients, and whether the call is refused.  And faults that such calls found, one by one."""
import math

import numpy as np
import pytest

import facula as fac

torch = pytest.importorskip("torch")
F, G = fac.nn.functional, torch.nn.functional
TURNS = 4

# n: the package, F: its functions of networks; x, y: tensors, y broadcasts with x or has its shape; d, e: dims, 15 of 100 out of range;
# k: 0 to 3, s: a number, i: places along d in the shape of x, j: a vector of places, c: a mask
FLOATS = """n.abs(x) | n.exp(x) | n.log(x.abs() + 1) | n.sqrt(x.abs() + 1) | n.rsqrt(x.abs() + 1) | n.square(x) | n.sin(x) | n.erf(x) | n.erfc(x) | n.exp2(x) | n.lgamma(x.abs() + 1)
n.digamma(x.abs() + 1) | n.erfinv(x.tanh() * 0.9) | n.sigmoid(x) | n.reciprocal(x.abs() + 1) | n.absolute(x) | x.neg() | n.add(x, y, alpha=s) | n.sub(x, y, alpha=2) | n.div(x, y.abs() + 1) | n.mul(x, y)
n.add(x, s) | x - y | s * x | x / 3 | 2 ** x | x.abs() ** s | n.fmod(x, 2.0) | n.maximum(x, y) | n.minimum(x, y) | n.atan2(x, y) | n.hypot(x, y) | n.copysign(x, y) | n.logaddexp(x, y) | n.xlogy(x, y.abs() + 1)
n.lerp(x, y, 0.3) | n.lerp(x, y, x) | n.true_divide(x, 2) | n.sum(x) | n.sum(x, d) | n.sum(x, (d, e), True) | n.mean(x) | n.mean(x, d, True) | n.prod(x, d) | n.amax(x, d) | n.amin(x, (d, e)) | n.var(x) | n.var(x, d)
n.std(x, d, correction=0) | n.var(x, d, unbiased=False) | n.logsumexp(x, d) | n.norm(x) | n.norm(x, p) | n.norm(x, p, d, True) | n.max(x, d) | n.min(x, d, True) | n.median(x, d) | n.cumsum(x, d) | n.cumprod(x, d)
n.logcumsumexp(x, d) | n.cummax(x, d) | n.softmax(x, dim=d) | n.log_softmax(x, dim=d) | n.kthvalue(x, k, d) | n.topk(x, k, d) | n.sort(x, d, True) | n.msort(x) | n.aminmax(x, dim=d) | n.quantile(x, 0.3, d)
x.reshape(-1) | n.flatten(x, d, e) | n.squeeze(x) | n.squeeze(x, (d, e)) | n.unsqueeze(x, d) | n.transpose(x, d, e) | n.swapaxes(x, d, e) | n.movedim(x, d, e) | x.mT | x.expand(2, *x.shape) | x.tile(2)
x.tile((2, 1, 1, 2)) | n.repeat_interleave(x, 2, d) | n.split(x, k + 1, d) | n.chunk(x, k, d) | n.tensor_split(x, k + 1, d) | n.roll(x, k, d) | n.flip(x, (d, e)) | n.rot90(x, k, (d, e)) | n.tril(x, k) | n.diag(x, k)
n.diagonal(x, k, d, e) | n.diag_embed(x, k) | n.diagflat(x, -k) | n.narrow(x, d, 0, k) | n.select(x, d, k) | n.cat([x, x], d) | n.stack([x, x], d) | n.hstack([x, x]) | n.column_stack([x, x]) | n.unbind(x, d)
n.where(c, x, y) | n.where(c, x, s) | n.masked_fill(x, c, 2.0) | n.clamp(x, -0.5) | n.clamp(x, max=s) | n.clamp(x, -1, 1) | n.clamp(x, y, y + 1) | n.clamp_min(x, 0.3) | n.addcmul(x, y, y, value=0.3)
n.addcdiv(x, y, y.abs() + 1, value=2) | n.cdist(x, x * 2 + 1) | n.dist(x, y, p) | n.cov(x) | n.gather(x, d, i) | n.scatter_add(x, d, i, x) | n.take_along_dim(x, i, d) | n.index_select(x, d, j) | n.take(x, j)
n.index_add(x, d, j, x.index_select(d, j)) | n.index_fill(x, d, j, 3.0) | n.scatter_reduce(x, d, i, x, 'sum') | n.scatter_reduce(x, d, i, x, 'mean') | n.bmm(x, x.mT) | n.matmul(x, y) | n.mv(x, y) | n.dot(x, x) | n.outer(x, x)
n.inner(x, x) | n.kron(x, x) | x[..., 0] | x[1:] | x[:, None] | x[c] | x[::2] | x[None] | x[j] | x[k] | x[:k, ..., -k:] | n.masked_select(x, c) | x.unflatten(d, (1, -1)) | x.view_as(x) | x.expand_as(x) | n.vstack([x, x])
n.broadcast_tensors(x, y) | n.ravel(x) | n.sinc(x) | n.logit(x.sigmoid(), 0.1) | n.nan_to_num(x, 1.0) | n.std_mean(x) | n.var_mean(x, d) | x.diff(1, d) | n.rad2deg(x) | n.deg2rad(x) | n.fmax(x, y) | n.frac(x)
F.relu(x) | F.relu6(x) | F.leaky_relu(x, 0.2) | F.elu(x, 0.7) | F.celu(x, 0.7) | F.selu(x) | F.gelu(x) | F.gelu(x, approximate='tanh') | F.silu(x) | F.mish(x) | F.softplus(x, 2.0, 1.0) | F.softplus(x, 1.0, 0.5)
F.softsign(x) | F.hardswish(x) | F.hardsigmoid(x) | F.hardtanh(x, -0.5, 0.5) | F.hardshrink(x) | F.softshrink(x) | F.tanhshrink(x) | F.threshold(x, 0.1, 7.0) | F.logsigmoid(x) | F.softmin(x, d) | F.glu(x, d)
F.normalize(x, 2.0, d) | F.pad(x, (1, 2)) | F.pad(x, (1, 0, 2, 1)) | F.pad(x, (1, 1), value=2.5) | F.mse_loss(x, y) | F.l1_loss(x, y, reduction='none') | F.smooth_l1_loss(x, y, beta=0.4)
F.huber_loss(x, y, delta=0.5) | F.kl_div(x, y) | F.kl_div(x, y.abs(), reduction='sum') | F.kl_div(x, y, log_target=True) | F.binary_cross_entropy_with_logits(x, x.sigmoid()) | F.binary_cross_entropy(x.sigmoid(), x.sigmoid())
F.poisson_nll_loss(x, y) | F.hinge_embedding_loss(x, y) | F.hinge_embedding_loss(x, y.sign()) | F.soft_margin_loss(x, y.detach()) | F.cosine_similarity(x, y, d) | F.pairwise_distance(x, y, p) | F.gaussian_nll_loss(x, x * 2, x.abs() + 1)
F.margin_ranking_loss(x, y, y) | F.triplet_margin_loss(x, x + 1, x * 3) | F.multilabel_soft_margin_loss(x, x.sigmoid()) | F.cosine_embedding_loss(x, x * 2 + 1, x[..., 0].sign()) | F.layer_norm(x, x.shape[-1:])
F.rms_norm(x, x.shape[-1:]) | F.max_pool1d(x, 2) | F.avg_pool1d(x, 2, 1, 1) | F.adaptive_avg_pool1d(x, 2) | F.adaptive_max_pool1d(x, 2) | F.interpolate(x, scale_factor=1.5) | F.pixel_shuffle(x, 1) | F.pixel_unshuffle(x, 1)
F.unfold(x, 2) | F.scaled_dot_product_attention(x, x, x) | F.scaled_dot_product_attention(x, x, x, is_causal=True) | F.multi_margin_loss(x, i[:, 0], reduction='none') | F.nll_loss(x, i[:, 0]) | F.cross_entropy(x, i[:, 0])"""
WHOLE = """x + y | x - y | x * s | x / y | x // (y * 2 + 1) | x % (y * 2 + 1) | x == y | x < s | x & 3 | ~x | n.bitwise_and(x, y) | n.bitwise_or(x, y) | n.bitwise_xor(x, y) | n.bitwise_not(x) | n.sum(x) | n.sum(x, d)
n.prod(x, d) | n.amax(x, d) | n.cumsum(x, d) | n.sign(x) | n.abs(x) | n.maximum(x, y) | n.floor_divide(x, 3) | n.remainder(x, 3) | n.fmod(x, 3) | n.div(x, y * 2 + 1, rounding_mode='trunc') | n.div(x, 2, rounding_mode='floor')
n.sqrt(x.abs()) | n.atan2(x, y) | n.copysign(x, -2) | n.logical_and(x, y) | n.logical_or(x, y) | n.logical_xor(x, y) | n.logical_not(x) | n.all(x, d) | n.any(x) | n.argmax(x) | n.argmin(x, d)
n.count_nonzero(x, d) | n.unique(x) | n.unique(x, return_inverse=True, return_counts=True) | n.unique_consecutive(x) | n.unique(x, dim=0) | n.bincount(x.abs().flatten()) | n.nonzero(x) | n.argwhere(x) | x.nonzero(as_tuple=True)
n.isin(x, y) | n.eq(x, y) | n.ne(x, y) | n.where(c, x, y) | n.clamp(x, 0, 2) | n.clamp(x, 0.5) | n.pow(x.abs(), 2) | n.float_power(x.abs() + 1, 2) | n.masked_fill(x, c, 1) | n.zeros_like(x) | n.ones_like(x) | n.full_like(x, 3)
n.isnan(x) | n.isfinite(x) | n.mode(x, d) | n.median(x, d) | n.sort(x, d) | n.argsort(x, dim=d, stable=True) | n.tril(x, k) | x.T if x.ndim == 2 else x | x.float() | x.double() | x.half() | x.long() | x.bool() | x.short() | x.byte() | x.char()
x.to(n.int16) | x.new_zeros(2) | x.new_ones(2) | x.new_full((2,), 3) | x.new_tensor([1, 2]) | x.element_size() | x.is_contiguous() | x.is_leaf | x.outer(x) | x.mm(y) | x.scatter(d, i, x) | x.scatter(d, i, 2) | n.result_type(x, 1.5)
n.promote_types(x.dtype, n.float16) | n.broadcast_shapes(x.shape, y.shape) | F.one_hot(x.abs(), 9) | F.one_hot(x, 9) | F.embedding(x.abs(), n.ones(9, 2)) | F.embedding(x, n.ones(9, 2)) | n.meshgrid(x, y, indexing='ij')
n.cartesian_prod(x, y) | n.addmm(x, x, y) | n.baddbmm(x, x, y) | n.tensordot(x, x, 0) | n.linspace(0, 1, k) | n.empty_like(x).shape | n.randn_like(x.float()).shape | n.rand_like(x.float()).shape | n.randperm(k).shape | x.view_as(y) | x.expand_as(y)"""


def words(text):
    return [c.strip() for line in text.split("\n") for c in line.split(" | ")]


CALLS = words(FLOATS), [*words(WHOLE), "x | 1", "x | y"]     # " | " is between calls


def parts(y):
    if isinstance(y, (tuple, list)) and not isinstance(y, torch.Size) and not all(isinstance(v, int) for v in y):
        return [p for one in y for p in parts(one)]
    return [y]


def word(dtype):
    return str(dtype).replace("torch.", "").replace("facula.", "")


def sizes(rng):
    return tuple(int(n) for n in rng.choice([0, 1, 2, 3, 4], rng.choice(5, p=[0.1, 0.2, 0.35, 0.25, 0.1]), p=[0.08, 0.17, 0.25, 0.3, 0.2]))


def drawn(rng, whole):
    """Arrays and numbers of a call."""
    shape = sizes(rng)
    n = len(shape)
    other = shape if rng.random() < 0.5 else tuple(1 if rng.random() < 0.3 else m for m in shape)[rng.integers(0, n + 1) if rng.random() < 0.4 else 0:]
    d = int(rng.integers(-n - 1, n + 1)) if rng.random() < 0.15 else int(rng.integers(-n, n)) if n else int(rng.integers(-1, 1))
    dtype = str(rng.choice(["int64", "int32", "int8", "uint8"] if whole else ["float32", "float64"]))

    def values(of):
        return np.asarray(rng.integers(0 if dtype[0] == "u" else -3, 5, of) if whole else rng.standard_normal(of) * 2).astype(dtype)
    at = rng.integers(0, max(1, shape[d] if -n <= d < n else 1), shape)
    if rng.random() < 0.1:
        at = rng.integers(0, 6, shape)
    arrays = {"x": values(shape), "y": values(other), "i": at, "j": rng.integers(0, 3, int(rng.integers(0, 4))), "c": rng.random(shape) < 0.5}
    numbers = {"d": d, "e": int(rng.integers(-n, n)) if n else 0, "k": int(rng.integers(0, 4)), "s": (2, -1, 3)[rng.integers(3)] if whole else (1.5, 2, -1, 0.25)[rng.integers(4)],
               "p": (1, 2, 0, 3.0, math.inf, -math.inf)[rng.integers(6)]}
    return arrays, numbers


def given(package, arrays, numbers, grad):
    env = {"n": package, "F": package.nn.functional, **numbers, **{k: package.tensor(a) for k, a in arrays.items()}}
    for name in "xy" if grad else "":
        env[name].requires_grad_(True)
    return env


def called(call, env):
    """The result, with its contents there, or the error."""
    try:
        y = eval(call, env)
        for p in parts(y):
            if isinstance(p, fac.Tensor):
                np.asarray(p.detach())
        return y, None
    except Exception as error:
        return None, error


# what facula takes and PyTorch does not, or the other way round (docs/python/pytorch.md), and where a gradient is a matter of taste
MORE = {"F.margin_ranking_loss(x, y, y)", "F.triplet_margin_loss(x, x + 1, x * 3)", "F.kl_div(x, y)", "n.cdist(x, x * 2 + 1)", "n.mean(x, d, True)", "n.quantile(x, 0.3, d)", "x.mT", "F.layer_norm(x, x.shape[-1:])",
        "F.adaptive_avg_pool1d(x, 2)", "F.adaptive_max_pool1d(x, 2)", "F.max_pool1d(x, 2)", "F.avg_pool1d(x, 2, 1, 1)", "n.addmm(x, x, y)", "n.baddbmm(x, x, y)", "F.embedding(x.abs(), n.ones(9, 2))",
        "F.multi_margin_loss(x, i[:, 0], reduction='none')", "F.scaled_dot_product_attention(x, x, x)", "F.scaled_dot_product_attention(x, x, x, is_causal=True)", "F.interpolate(x, scale_factor=1.5)", "x[j]", "x.outer(x)",
        "n.lerp(x, y, x)", "F.multilabel_soft_margin_loss(x, x.sigmoid())", "F.cosine_embedding_loss(x, x * 2 + 1, x[..., 0].sign())", "F.pixel_shuffle(x, 1)", "F.pixel_unshuffle(x, 1)", "n.inner(x, x)", "F.unfold(x, 2)",
        "F.one_hot(x.abs(), 9)", "F.embedding(x, n.ones(9, 2))", "F.one_hot(x, 9)", "n.matmul(x, y)", "x.mm(y)", "x / y", "F.gaussian_nll_loss(x, x * 2, x.abs() + 1)", "n.diag_embed(x, k)", "n.unique(x, dim=0)", "n.take_along_dim(x, i, d)", "n.roll(x, k, d)"}
TASTE = {"n.norm(x, p)", "n.norm(x, p, d, True)", "n.dist(x, y, p)", "F.pairwise_distance(x, y, p)", "x.expand_as(x)", "n.frac(x)", "n.diag_embed(x, k)", "n.diagflat(x, -k)", "n.diag(x, k)"}


@pytest.mark.parametrize("whole, call", [(w, c) for w in (False, True) for c in CALLS[w]])
@pytest.mark.filterwarnings("ignore")
def test_calls(rng, whole, call):
    for _ in range(TURNS):
        arrays, numbers = drawn(rng, whole)
        about = f"{call} {({k: a.shape for k, a in arrays.items()})} {arrays['x'].dtype} {numbers}"
        ours, theirs = given(fac, arrays, numbers, not whole), given(torch, arrays, numbers, not whole)
        (y, error), (z, refused) = called(call, ours), called(call, theirs)
        assert not isinstance(error, (AttributeError, KeyError, AssertionError, ZeroDivisionError, fac.InternalError)), f"{about}: {error!r}"
        if refused or error:
            assert call in MORE or bool(refused) == bool(error), f"{about}: {error!r}, {refused!r}"
            continue
        p, q = parts(y), parts(z)
        assert len(p) == len(q), about
        for a, b in zip(p, q):
            if not isinstance(b, torch.Tensor):
                assert word(a) == word(b) if isinstance(b, torch.dtype) else a == (tuple(b) if isinstance(b, torch.Size) else b), about
                continue
            assert a.shape == tuple(b.shape), f"{about}: {a.shape}, {tuple(b.shape)}"
            assert word(a.dtype) == word(b.dtype) or (word(b.dtype) == "uint8" and a.dtype is fac.bool_), f"{about}: {a.dtype}, {b.dtype}"
            assert np.allclose(np.asarray(a.detach()).astype("f8"), b.detach().numpy().astype("f8"), rtol=1e-4, atol=1e-4, equal_nan=True), f"{about} of {arrays['x'].tolist()}, {arrays['y'].tolist()}"
        check_gradients(call, about, ours, theirs, p, q)


def check_gradients(call, about, ours, theirs, p, q):
    pairs = [(a, b) for a, b in zip(p, q) if isinstance(b, torch.Tensor) and b.requires_grad and b.numel()]
    if not pairs or call in TASTE:
        return
    assert all(a.requires_grad for a, _ in pairs), about
    sum((a * a).sum() for a, _ in pairs).backward()
    sum((b * b).sum() for _, b in pairs).backward()
    for name in "xy":
        a, b = ours[name].grad, theirs[name].grad
        a = np.zeros(ours[name].shape) if a is None else np.asarray(a)
        b = np.zeros(ours[name].shape) if b is None else b.numpy()
        assert np.allclose(a, b, rtol=2e-3, atol=2e-3, equal_nan=True), f"{about} by {name}: {a.tolist()}, {b.tolist()} at {np.asarray(ours['x'].detach()).tolist()}"
