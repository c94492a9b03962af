"""Faults that random calls beside PyTorch's found (test_beside_torch.py), one by one, and names that no other test calls."""
import glob
import math
import os
import re

import numpy as np
import pytest

import facula as fac

nn, F = fac.nn, fac.nn.functional
NAN, INF = math.nan, math.inf


def near(x, want):
    assert np.allclose(np.asarray(x.detach()), want, atol=1e-6, equal_nan=True), (x, want)


def slope(function, at):
    x = fac.tensor(at, requires_grad=True)
    function(x).sum().backward()
    return np.asarray(x.grad)


# ---- slopes where there is a choice ----

@pytest.mark.parametrize("function", [lambda x: x.norm(), lambda x: x.norm(3), lambda x: x.norm(2, 0), lambda x: x.norm(0.5), lambda x: x.std(0), lambda x: fac.std_mean(x, 0)[0],
                                      lambda x: fac.cdist(x.unsqueeze(0), x.unsqueeze(0)), lambda x: F.normalize(x, 2.0, 0) * 0])
def test_norms_of_zeros_have_a_slope(function):
    assert np.array_equal(slope(function, [0.0, 0.0, 0.0]), [0, 0, 0])


def test_slopes_at_the_bounds_of_clamp():
    assert np.array_equal(slope(lambda x: x.clamp(-1, 1), [1.0, -1.0, 0.5, 3.0]), [1, 1, 1, 0])
    assert np.array_equal(slope(lambda x: x.clamp_min(1), [1.0, 2.0, 0.5]), [1, 1, 0])
    assert np.array_equal(slope(lambda x: x.clamp_max(fac.tensor([1.0, 1.0, 0.0])), [1.0, 2.0, -1.0]), [1, 0, 1])
    assert fac.tensor([1, 5]).clamp(0.5, 2.5).tolist() == [1.0, 2.5] and fac.tensor([1, 5]).clamp(2, 3).tolist() == [2, 3]


def test_what_selects_nothing_has_a_history():
    x = fac.ones(2, 3, requires_grad=True)
    (x[x > 2].sum() + x.masked_select(x > 5).sum()).backward()
    assert np.array_equal(np.asarray(x.grad), np.zeros((2, 3)))


def test_slope_of_x_ln_y():
    assert np.allclose(slope(lambda x: fac.xlogy(x, 3.0), [0.0, 2.0]), math.log(3))
    near(fac.xlogy(fac.tensor([0.0, 0.0, 0.0]), fac.tensor([0.0, INF, NAN])), [0, 0, NAN])


# ---- values ----

def test_norms_of_any_order():
    x = fac.tensor([[3.0, -4.0, 0.0]])
    for p, want in ((0, 2), (INF, 4), (-INF, 0), (1, 7), (2, 5), (-1, 0)):
        near(x.norm(p, 1), [want])
    with pytest.raises(ValueError, match="'nuc'"):
        x.norm("nuc")


def test_unsigned_beside_negative():
    x = fac.tensor([1, 2], dtype="uint8")
    near(x.copysign(-1), [-1, -2])
    near(x.atan2(-1), np.arctan2([1, 2], -1))
    near(x.hypot(-2), np.hypot([1, 2], 2))
    near(fac.logaddexp(x, -1), np.logaddexp([1, 2], -1))
    near(F.soft_margin_loss(fac.tensor([1.0]), fac.tensor([1], dtype="uint8")), math.log1p(math.exp(-1)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_how_often_a_number_goes_into_another(dtype):
    a, b = np.meshgrid(np.array([1, -1, 0.3, 7.5, -7.5, 0, 6, 1e6], dtype), np.array([0.1, -0.1, 0.3, 2, -2, 1e-3], dtype))
    got = fac.tensor(a) // fac.tensor(b)
    assert np.array_equal(got.numpy(), a // b) and got.tolist() == fac.div(fac.tensor(a), fac.tensor(b), rounding_mode="floor").tolist()
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.array_equal((fac.tensor([1.0, -1.0, 0.0]) // 0.0).numpy(), [INF, -INF, NAN], equal_nan=True)


def test_numbers_far_apart_are_added_as_logarithms():
    x = fac.tensor([-1000.0, 0.0, -INF, 1000.0], dtype="float64")
    near(fac.logcumsumexp(x, 0), [-1000, 0, 0, 1000])
    assert np.isfinite(slope(lambda v: fac.logcumsumexp(v, 0)[1:3], [-1000.0, 0.0, -INF, 5.0])).all()
    near(fac.logaddexp(fac.tensor([INF, -INF, INF]), fac.tensor([INF, -INF, -INF])), [INF, -INF, INF])
    assert np.array_equal(slope(lambda v: fac.logaddexp(v, fac.tensor([1.0, -INF])), [1.0, -INF]), [0.5, 0.5])
    assert fac.logcumsumexp(fac.zeros(0, 3), 0).shape == (0, 3)


def test_rounding_with_decimals_and_other_keywords():
    near(fac.round(fac.tensor([1.25, -2.47]), decimals=1), [1.2, -2.5])
    near(fac.round(fac.tensor([1251.0]), decimals=-2), [1300])
    near(fac.add(fac.tensor([1.0]), fac.tensor([2.0]), alpha=3), [7])
    near(fac.sub(1.0, fac.tensor([2.0]), alpha=3), [-5])
    assert fac.div(fac.tensor([-7]), 2, rounding_mode="trunc").tolist() == [-3]
    with pytest.raises(ValueError, match="'up'"):
        fac.div(fac.ones(1), 2, rounding_mode="up")
    with pytest.raises(ValueError, match="min, max or both"):
        fac.clamp(fac.ones(1))
    with pytest.raises(TypeError, match="numbers or tensors"):
        fac.clamp(fac.ones(1), "a")


def test_one_row_has_one_covariance():
    x = fac.tensor([[1.0, 2.0, 4.0]])
    assert fac.cov(x).shape == fac.corrcoef(x).shape == () and math.isclose(fac.cov(x).item(), np.cov([1, 2, 4]), rel_tol=1e-6)
    assert fac.cov(fac.zeros(0)).isnan().item() and fac.zeros(2, 0, 4).is_contiguous()
    assert fac.tensor([3.0]).var().isnan().item() and fac.tensor([1.0, 3.0]).var(correction=3).item() == INF


def test_types_stay():
    x = fac.tensor([1.0, 1.0, 2.0], dtype="bfloat16")
    assert fac.unique(x).dtype is fac.unique_consecutive(x).dtype is fac.bfloat16
    assert fac.nan_to_num(fac.tensor([INF], dtype="bfloat16")).isfinite().item()
    assert fac.unique(fac.tensor([[1, 2], [1, 2], [0, 5]]), return_inverse=True, dim=0)[0].tolist() == [[0, 5], [1, 2]]


def test_losses_of_what_does_not_count():
    log_p = fac.tensor([[-INF, 0.0], [0.0, -INF]])
    assert F.nll_loss(log_p, fac.tensor([1, -100])).item() == 0                  # 0 times infinity
    x, w = fac.tensor([[1.0, 2.0, 0.5], [0.3, 0.2, 0.1]]), fac.tensor([1.0, 2.0, 3.0])
    a = F.cross_entropy(x, fac.tensor([1, -100]), w, label_smoothing=0.2).item()
    assert math.isclose(a, F.cross_entropy(x[:1], fac.tensor([1]), w, label_smoothing=0.2).item(), rel_tol=1e-6)
    assert math.isnan(F.kl_div(fac.tensor([0.0]), fac.tensor([-1.0])).item())
    with pytest.raises(fac.ShapeError, match="labels of shape"):
        F.nll_loss(log_p, fac.tensor([1]))


def test_cosines_of_what_is_broadcast():
    a, b = fac.tensor([[3.0, 4.0]]), fac.tensor([[1.0]])
    near(F.cosine_similarity(a, b), [7 / 5 / math.sqrt(2)])


def test_thresholds():
    x = fac.tensor([0.3, 2.0, NAN])
    near(F.softplus(x, 1.0, 1.0), [math.log1p(math.exp(0.3)), 2, NAN])
    for y in (F.hardshrink(x), F.threshold(x, 0.5, 0.0)):
        near(y, [0, 2, NAN])


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_neighbours_are_copies(mode):
    """Of any type; what is infinite or no number stays where it is."""
    x = np.array([[[INF, 1.0, NAN, 3.0]]], "f4")
    got = F.interpolate(fac.tensor(x), size=8, mode=mode).numpy()
    assert np.array_equal(got[0, 0], np.repeat(x[0, 0], 2), equal_nan=True)
    assert F.interpolate(fac.tensor([[[1, 2]]]), size=4, mode=mode).tolist() == [[[1, 1, 2, 2]]]
    with pytest.raises(ValueError, match="either size or scale_factor"):
        F.interpolate(fac.tensor(x))


@pytest.mark.parametrize("shape, modes", [((2, 3, 5), ["nearest", "nearest-exact", "linear"]), ((2, 3, 5, 7), ["nearest", "nearest-exact", "bilinear", "bicubic"]), ((1, 2, 3, 4, 5), ["trilinear"])])
@pytest.mark.parametrize("how", [{"scale_factor": 1.5}, {"scale_factor": 2}, {"scale_factor": 0.6}, {"size": 4}, {"scale_factor": [1.3, 2.1, 0.7]}, {"size": [3, 9, 2]}])
def test_places_between(rng, shape, modes, how):
    torch = pytest.importorskip("torch")
    how = {k: v[:len(shape) - 2] if isinstance(v, list) else v for k, v in how.items()}
    for mode in modes:
        for corners in (None,) if "nearest" in mode else (None, False, True):
            a = rng.standard_normal(shape)
            x, y = fac.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
            p = F.interpolate(x, mode=mode, align_corners=corners, **how)
            q = torch.nn.functional.interpolate(y, mode=mode, align_corners=corners, **how)
            (p * p).sum().backward()
            (q * q).sum().backward()
            near(p, q.detach().numpy())
            assert np.allclose(np.asarray(x.grad), y.grad.numpy(), atol=2e-5), (mode, corners)


def test_windows_of_an_even_number_of_channels(rng):
    torch = pytest.importorskip("torch")
    a = rng.standard_normal((2, 5, 3)).astype("f4")
    for size in (1, 2, 3, 4):
        near(F.local_response_norm(fac.tensor(a), size, 0.5), torch.nn.functional.local_response_norm(torch.tensor(a), size, 0.5).numpy())


def test_fewer_dims():
    """A matrix without a head, one image, a number."""
    q = fac.randn(2, 5, 4)
    near(F.scaled_dot_product_attention(q[0], q[0], q[0]), F.scaled_dot_product_attention(q, q, q)[0].numpy())
    mask = fac.randn(2, 5, 5)
    near(F.scaled_dot_product_attention(q, q, q, mask)[1], F.scaled_dot_product_attention(q[1], q[1], q[1], mask[1]).numpy())
    x = fac.randn(4, 6, 6)
    assert np.array_equal(F.pixel_shuffle(x, 2).numpy(), F.pixel_shuffle(x.unsqueeze(0), 2)[0].numpy()) and F.pixel_unshuffle(x, 2).shape == (16, 3, 3)
    columns = F.unfold(x, 2)
    assert np.array_equal(columns.numpy(), F.unfold(x.unsqueeze(0), 2)[0].numpy())
    assert np.array_equal(F.fold(columns, 6, 2).numpy(), F.fold(columns.unsqueeze(0), 6, 2)[0].numpy())
    one, at = fac.tensor(2.0), fac.tensor(0)
    assert one.gather(0, at).item() == 2 and one.scatter(0, at, 5.0).item() == 5 and one.scatter_add(0, at, one).item() == 4 and one.index_fill(0, at, 7.0).item() == 7
    assert F.bilinear(fac.ones(2, 3, 4), fac.ones(2, 3, 5), fac.ones(6, 4, 5)).shape == (2, 3, 6)
    assert fac.diag_embed(fac.ones(3, 0), 2).shape == (3, 2, 2)
    assert [t.shape for t in fac.zeros(0, 2).chunk(3)] == [(0, 2)] * 3


# ---- what is refused ----

@pytest.mark.parametrize("call, kind, message", [
    (lambda: fac.ones(3).index_select(0, fac.tensor([3])), IndexError, "index 3 is out of range for a dim of size 3"),
    (lambda: fac.ones(3).gather(0, fac.tensor([-1])), IndexError, "index -1"),
    (lambda: fac.ones(3).gather(0, fac.tensor([[1]])), fac.ShapeError, "an index of shape"),
    (lambda: fac.ones(3).scatter(0, fac.tensor([4]), 1.0), IndexError, "index 4"),
    (lambda: fac.ones(3).index_add(0, fac.tensor([5]), fac.ones(1)), IndexError, "index 5"),
    (lambda: fac.ones(3).take(fac.tensor([-4])), IndexError, "take: index -1"),
    (lambda: F.embedding(fac.tensor([2, -1]), fac.ones(3, 2)), IndexError, "index -1"),
    (lambda: F.embedding(fac.tensor([2.0]), fac.ones(3, 2)), fac.DtypeError, "ids are integers"),
    (lambda: F.one_hot(fac.tensor([3]), 3), IndexError, "index 3"),
    (lambda: F.one_hot(fac.tensor([0.5])), fac.DtypeError, "integers were expected"),
    (lambda: F.one_hot(fac.zeros(0, dtype="int64")), fac.ShapeError, "num_classes is not known"),
    (lambda: fac.ones(3).scatter(0, fac.tensor([0]), 1.0, reduce="most"), ValueError, "'most'"),
    (lambda: fac.outer(fac.ones(2, 2), fac.ones(2)), fac.ShapeError, "two vectors"),
    (lambda: fac.dot(fac.ones(3), fac.ones(1)), fac.ShapeError, "vectors of 3 and 1"),
    (lambda: fac.tensordot(fac.ones(2, 3), fac.ones(2, 3), 1), fac.ShapeError, "sizes of dims"),
    (lambda: fac.tensordot(fac.ones(2, 3), fac.ones(2, 3), 3), fac.ShapeError, "over 3 dims"),
    (lambda: fac.cartesian_prod(fac.ones(2, 2)), fac.ShapeError, "vectors were expected"),
    (lambda: fac.meshgrid(fac.ones(2, 2)), fac.ShapeError, "vectors were expected"),
    (lambda: fac.rot90(fac.ones(2, 2), 1, (0, -2)), fac.ShapeError, "are the same"),
    (lambda: fac.ones(4).chunk(0), ValueError, "0 pieces"),
    (lambda: F.pad(fac.ones(3), (1, 1, 2, 2)), fac.ShapeError, "4 numbers for a tensor of 1 dims"),
    (lambda: F.glu(fac.ones(3)), fac.ShapeError, "no halves"),
    (lambda: F.layer_norm(fac.ones(2, 3), (4,)), fac.ShapeError, r"the last dims of shape \(2, 3\) are not \(4,\)"),
    (lambda: F.rms_norm(fac.ones(2, 3), (3,), fac.ones(2)), fac.ShapeError, "weight and bias have shape"),
    (lambda: F.bilinear(fac.ones(2, 3), fac.ones(3, 3), fac.ones(1, 3, 3)), fac.ShapeError, "bilinear of shapes"),
    (lambda: F.pixel_shuffle(fac.ones(4, 4), 2), fac.ShapeError, "three dims at least"),
    (lambda: F.unfold(fac.ones(4, 4), 2), fac.ShapeError, "three or four dims"),
    (lambda: F.fold(fac.ones(1, 5, 4), 3, 2), fac.ShapeError, "columns of 4 numbers"),
    (lambda: F.interpolate(fac.ones(4, 4), size=2), fac.ShapeError, "three dims at least"),
    (lambda: fac.cov(fac.ones(2, 2, 2)), fac.ShapeError, "two dims at most"),
])
def test_what_cannot_be_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_a_bias_without_a_weight(rng):
    x, b = fac.tensor(rng.standard_normal((2, 4, 3, 3)).astype("f4")), fac.tensor([1.0, 2.0, 3.0, 4.0])
    for function in (lambda **o: F.group_norm(x, 2, **o), lambda **o: F.instance_norm(x, **o)):
        near(function(bias=b), (function() + b.reshape(1, 4, 1, 1)).numpy())


# ---- names ----

ARGUMENTS = {"lerp": (0.4, 0.3), "addcmul": (0.4, 0.3), "addcdiv": (0.4, 0.3), "clamp": (-0.5, 0.5), "clip": (-0.5, 0.5), "cumsum": (0,), "cumprod": (0,), "logit": (0.2,)}


def test_every_method_that_writes_in_place():
    """name_() leaves in x what name() gives, as x's type."""
    from facula import in_place
    a = np.array([[0.9, 0.2], [0.4, 0.7]], "f4")
    square, vectors, places = fac.tensor([[1.0, 2.0], [3.0, 4.0]]), fac.tensor([0.5, 2.0]), fac.tensor([[1, 0], [0, 1]])
    matrices = fac.stack([square, square])
    special = {"addmm": (square, square), "addmv": (square, vectors), "addr": (vectors, vectors), "baddbmm": (matrices, matrices), "addbmm": (matrices, matrices), "tril": (), "triu": (),
               "masked_fill": (square > 2, 7.0), "masked_scatter": (square > 2, square), "scatter": (0, places, square), "scatter_add": (0, places, square), "scatter_reduce": (0, places, square, "sum"),
               "index_add": (0, fac.tensor([0]), square[:1]), "index_copy": (0, fac.tensor([0]), square[:1]), "index_fill": (0, fac.tensor([0]), 3.0), "index_put": ((fac.tensor([0]),), vectors),
               "heaviside": (square,), "nextafter": (square,), "squeeze": (), "unsqueeze": (0,), "transpose": (0, 1), "swapaxes": (0, 1), "swapdims": (0, 1)}
    whole = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift"}
    one = set(fac.functional.__dict__) - set()
    for name in (in_place._same_shape + " " + in_place._other_shapes).split():
        assert name in one
        start = a * 3 if name not in whole else (a * 9).astype("i8")
        start = start + 1 if name == "acosh" or name == "arccosh" else start
        start = start / 4 if name in ("asin", "acos", "atanh", "arcsin", "arccos", "arctanh", "erfinv", "logit") else start
        x = fac.tensor(matrices.numpy() if name == "baddbmm" else start)
        for args in (special.get(name, ARGUMENTS.get(name, ())), (2,), (fac.tensor(2),)):
            try:
                want = getattr(fac.functional, name)(x, *args)
                break
            except TypeError:
                continue
        y = x.clone()
        assert getattr(y, f"{name}_")(*args) is y
        assert y.dtype is x.dtype and np.array_equal(y.numpy(), np.asarray(want.to(x.dtype)), equal_nan=True), name


def test_random_numbers_in_place():
    x = fac.zeros(2000)
    for name, args, low, high, mean in (("uniform_", (2, 3), 2, 3, 2.5), ("normal_", (1, 2), -20, 20, 1), ("bernoulli_", (0.25,), 0, 1, 0.25), ("random_", (0, 5), 0, 4, 2), ("exponential_", (2,), 0, 20, 0.5)):
        assert getattr(x, name)(*args) is x
        assert low <= x.amin().item() and x.amax().item() <= high and abs(x.mean().item() - mean) < 0.3
    assert fac.bernoulli(fac.ones(3)).tolist() == [1, 1, 1] and fac.tensor([0.0, 1.0]).bernoulli().tolist() == [0, 1]
    assert fac.tensor([0.0, 1.0]).multinomial(3, True).tolist() == [1, 1, 1] and fac.multinomial(fac.tensor([0.0, 1.0]), 1).tolist() == [1]
    assert fac.normal(0, 1, (3,)).shape == fac.rand_like(fac.ones(3)).shape == (3,) and fac.zeros(3).apply_(lambda v: v + 1).tolist() == [1, 1, 1]
    assert not fac.ones(2, requires_grad=True).mul(2).detach_().requires_grad and fac.ones(2).to_device("cpu").tolist() == [1, 1]


PADS = [getattr(nn, f"{kind}Pad{n}d") for kind in ("Zero", "Constant", "Reflection", "Replication", "Circular") for n in (1, 2, 3)]


@pytest.mark.parametrize("layer", PADS, ids=lambda c: c.__name__)
def test_pads(rng, layer):
    torch = pytest.importorskip("torch")
    a = rng.standard_normal((2, 3, 4, 5, 6)[:2 + int(layer.__name__[-2])])
    more = (1.5,) if "Constant" in layer.__name__ else ()
    near(layer(2, *more)(fac.tensor(a)), getattr(torch.nn, layer.__name__)(2, *more)(torch.tensor(a)).numpy())


LAYERS = {"AdaptiveAvgPool1d": (3,), "AdaptiveMaxPool1d": (3,), "AvgPool1d": (2,), "AvgPool3d": (2,), "MaxPool1d": (2,), "MaxPool3d": (2,), "BatchNorm3d": (3,), "InstanceNorm1d": (3,), "InstanceNorm3d": (3,), "RMSNorm": (6,),
          "Threshold": (0.1, 2.0), "Unflatten": (-1, (2, 3)), "Identity": (), "ConvTranspose3d": (3, 2, 2), "Dropout1d": (0.0,), "Dropout2d": (0.0,), "Dropout3d": (0.0,), "Softmax2d": (), "Softmin": (1,)}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(rng, name):
    torch = pytest.importorskip("torch")
    dims = {"1": 3, "2": 4, "3": 5}.get(name[-2], 3) if name.endswith("d") else 3
    a = rng.standard_normal((2, 3, 4, 5, 6)[:dims - 1] + (6,)).astype("f4")
    ours, theirs = getattr(nn, name)(*LAYERS[name]), getattr(torch.nn, name)(*LAYERS[name])
    ours.load_state_dict({k: fac.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x, y = fac.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    p, q = ours(x), theirs(y)
    near(p / 8, q.detach().numpy() / 8)
    (p * p).sum().backward()
    (q * q).sum().backward()
    assert np.allclose(np.asarray(x.grad), y.grad.numpy(), atol=1e-3)


FUNCTIONS = [("adaptive_avg_pool2d(x, (2, 3))", (1, 2, 5, 7)), ("adaptive_max_pool2d(x, (2, 3))", (1, 2, 5, 7)), ("avg_pool3d(x, 2)", (1, 2, 4, 5, 6)), ("max_pool3d(x, 2, 1, 1)", (1, 2, 4, 5, 6)),
             ("channel_shuffle(x, 2)", (1, 4, 3, 3)), ("conv_transpose1d(x, n.ones(2, 3, 3), stride=2, padding=1, output_padding=1)", (2, 2, 5)), ("conv_transpose1d(x, n.ones(2, 3, 3))", (2, 5)),
             ("conv_transpose2d(x, n.ones(4, 3, 2, 2), groups=2)", (4, 3, 3)), ("conv_transpose3d(x, n.ones(2, 3, 2, 2, 2), dilation=2)", (1, 2, 3, 3, 3)), ("conv2d(x, n.ones(4, 2, 3, 3), groups=2, padding='same')", (4, 3, 3)),
             ("max_pool2d(x, 3, 2, 1, 1, True)", (1, 2, 6, 6)), ("avg_pool2d(x, 3, 2, 1, True, False)", (1, 2, 6, 6)), ("bilinear(x, x, n.ones(4, 3, 3))", (2, 5, 3))]


@pytest.mark.parametrize("call, shape", FUNCTIONS)
def test_functions_of_images(rng, call, shape):
    torch = pytest.importorskip("torch")
    a = rng.standard_normal(shape).astype("f4")
    x, y = fac.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    p = eval(f"F.{call}", {"F": F, "n": fac, "x": x})
    q = eval(f"F.{call}", {"F": torch.nn.functional, "n": torch, "x": y})
    near(p / 16, q.detach().numpy() / 16)
    (p * p).sum().backward()
    (q * q).sum().backward()
    assert np.allclose(np.asarray(x.grad), y.grad.numpy(), rtol=1e-4, atol=1e-3)


BLOCKS = {"MultiheadAttention": lambda p: (p.MultiheadAttention(8, 2, batch_first=True), 3), "Bilinear": lambda p: (p.Bilinear(8, 8, 3), 2),
          "TransformerEncoder": lambda p: (p.TransformerEncoder(p.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), 1),
          "TransformerDecoder": lambda p: (p.TransformerDecoder(p.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2), 2)}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(rng, name):
    torch = pytest.importorskip("torch")
    (ours, n), (theirs, _) = BLOCKS[name](nn), BLOCKS[name](torch.nn)
    ours.load_state_dict({k: fac.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    ours.eval(), theirs.eval()
    arrays = [rng.standard_normal((2, 5, 8)).astype("f4") for _ in range(n)]
    y, z = ours(*map(fac.tensor, arrays)), theirs(*map(torch.tensor, arrays))
    for a, b in zip(y, z) if isinstance(y, tuple) else [(y, z)]:
        assert np.allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-5)


def test_lion():
    """Each step moves by the rate, against the sign of an average, and shrinks by the decay."""
    w = nn.Parameter(fac.tensor([1.0, -2.0]))
    opt = fac.optim.Lion([w], lr=0.1, betas=(0.9, 0.99), weight_decay=0.5)
    a, m = np.array([1.0, -2.0]), np.zeros(2)
    for g in ([1.0, -3.0], [-20.0, 0.5], [1.0, 0.0]):
        w.grad = fac.tensor(g)
        opt.step()
        a = a * (1 - 0.1 * 0.5) - 0.1 * np.sign(0.9 * m + 0.1 * np.array(g))
        m = 0.99 * m + 0.01 * np.array(g)
        near(w, a)


def test_the_usual_type():
    before = fac.get_default_dtype()
    try:
        fac.set_default_dtype(fac.float64)
        assert fac.tensor([1.5]).dtype is fac.ones(1).dtype is fac.tensor([1]).sqrt().dtype is fac.float64
    finally:
        fac.set_default_dtype(before)
    assert fac.ones(1).new_empty(2).shape == (2,) and fac.ones(1).dtype is fac.float32
    with fac.inference_mode():
        assert not fac.ones(1, requires_grad=True).mul(2).requires_grad
    draw = fac.Generator(7)
    assert fac.rand(3, generator=draw).tolist() == fac.rand(3, generator=fac.Generator(7)).tolist()
    assert nn.init.fans(fac.ones(2, 3, 5)) == (15, 10)


LOSSES = {"MSELoss": 0, "L1Loss": 0, "SmoothL1Loss": 0, "HuberLoss": 0, "KLDivLoss": 0, "BCEWithLogitsLoss": 1, "BCELoss": 2, "CrossEntropyLoss": 3, "NLLLoss": 3, "HingeEmbeddingLoss": 4, "CosineSimilarity": 0}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(rng, name):
    torch = pytest.importorskip("torch")
    a, b = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    x, y = [(a, b), (a, b > 0), (1 / (1 + np.exp(-a)), b > 0), (a, [0, 2, 1, 1]), (a, np.sign(b))][LOSSES[name]]
    y = np.asarray(y, "i8" if LOSSES[name] == 3 else "f8")
    near(getattr(nn, name)()(fac.tensor(x), fac.tensor(y)), getattr(torch.nn, name)()(torch.tensor(x), torch.tensor(y)).numpy())


def test_first_values(rng):
    w = fac.zeros(64, 48)
    for name, args, mean, std in (("constant_", (3.0,), 3, 0), ("ones_", (), 1, 0), ("zeros_", (), 0, 0), ("uniform_", (0, 2), 1, 0.577), ("normal_", (1, 2), 1, 2), ("trunc_normal_", (0, 1), 0, 0.88),
                                  ("kaiming_uniform_", (1,), 0, (1 / 48) ** 0.5), ("xavier_normal_", (), 0, (2 / 112) ** 0.5)):
        a = getattr(nn.init, name)(w, *args).numpy()
        assert abs(a.mean() - mean) < 0.2 and abs(a.std() - std) < 0.1, name
    assert np.array_equal(nn.init.eye_(w).numpy(), np.eye(64, 48)) and nn.init.calculate_gain("relu") == math.sqrt(2)


def test_every_public_name_is_in_a_test():
    """A function, method or layer that no test calls has no promise."""
    folder = os.path.dirname(__file__)
    text = "\n".join(open(f, encoding="utf-8").read() for f in glob.glob(f"{folder}/*.py") + glob.glob(f"{folder}/../facula/in_place.py"))
    known = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", text)) | {f"{n}_" for n in re.findall(r"[a-z_0-9]+", text)} | {c.__name__ for c in PADS}
    known |= {"DeviceError", "OutOfMemoryError", "InternalError"}           # of drivers and of machines without memory
    known |= {"Studio", "set_lazy", "Optimizer"}                            # made by studio(), by lazy(), a base
    missing = [f"{where}.{name}" for where, module in (("fac", fac), ("Tensor", fac.Tensor), ("nn", nn), ("F", F), ("optim", fac.optim), ("init", nn.init))
               for name in dir(module) if name[0] != "_" and callable(getattr(module, name)) and name not in known]
    assert not missing, missing


def test_orders_of_less_than_nothing():
    assert fac.randperm(0).tolist() == []
    with pytest.raises(ValueError, match="randperm"):
        fac.randperm(-1)
