"""Numbers that are arguments: a loop that gives another one in each turn plans a few times and not in each turn, and gives what the
number alone gives.  Every function with such an argument is in CALLS, or in PART_OF_A_PLAN with the reason."""
import inspect

import numpy as np
import pytest

import facula as fac
from facula import changing

nn, F = fac.nn, fac.nn.functional
TURNS = 26


def base(rng):
    def floats(*shape):
        return fac.tensor(rng.standard_normal(shape).astype("f4"))
    return {"x4": floats(2, 4, 5, 6), "x": floats(3, 4), "y": floats(3, 4), "s4": floats(4, 4), "v": floats(4), "b": floats(2, 3, 4),
            "q": floats(2, 2, 5, 4), "w": floats(4), "labels": fac.tensor([0, 3, 1]), "signs": fac.tensor([1.0, -1.0, 1.0]),
            "fac": fac, "F": F, "nn": nn, "zeros": fac.zeros(3, 4)}


# name of the function -> calls; s: the number that changes, from 0.1 to 0.6
CALLS = {
    "batch_norm": ["F.batch_norm(x4, fac.zeros(4), fac.ones(4), w, w * 2, True, 0.1, s)", "F.batch_norm(x4, w, w.abs(), w, None, False, 0.1, s)",
                   "F.batch_norm(x4, None, None, None, w, True, 0.1, s)", "F.batch_norm(x, w, w.abs(), None, w, False, 0.1, s)",
                   "F.batch_norm(x4, fac.zeros(4), fac.ones(4), None, None, True, s)"],
    "layer_norm": ["F.layer_norm(x, (4,), w, w * 2, s)", "F.layer_norm(x4, (5, 6), None, None, s)", "F.layer_norm(x, (4,), None, w, s)"],
    "rms_norm": ["F.rms_norm(x, (4,), w, s)", "F.rms_norm(x4, (5, 6), None, s)"],
    "group_norm": ["F.group_norm(x4, 2, w, w * 2, s)", "F.group_norm(x4, 4, None, w, s)", "F.group_norm(x, 2, None, None, s)"],
    "instance_norm": ["F.instance_norm(x4, None, None, w, w * 2, eps=s)", "F.instance_norm(b, eps=s)"],
    "local_response_norm": ["F.local_response_norm(x4, 3, s)", "F.local_response_norm(x4, 2, 0.1, s)", "F.local_response_norm(x4, 4, 0.1, 0.75, s)"],
    "scaled_dot_product_attention": ["F.scaled_dot_product_attention(q, q * 2, q, scale=s)", "F.scaled_dot_product_attention(q, q * 2, q, is_causal=True, scale=-s)"],
    "matmul_scores": ["F.matmul_scores(q, q, None, False, s)"],
    "leaky_relu": ["F.leaky_relu(x, s)"], "elu": ["F.elu(x, s)"], "celu": ["F.celu(x, s)"], "hardtanh": ["F.hardtanh(x, -s, s * 2)"],
    "hardshrink": ["F.hardshrink(x, s)"], "softshrink": ["F.softshrink(x, s)"], "softplus": ["F.softplus(x, 1 + s)", "F.softplus(x, 1 + s, s)"],
    "threshold": ["F.threshold(x, s, -s)"], "normalize": ["F.normalize(x, eps=s)", "F.normalize(x, 2 + s)"],
    "cross_entropy": ["F.cross_entropy(x, labels, label_smoothing=s)", "F.cross_entropy(x, labels, w.abs(), label_smoothing=s)"],
    "huber_loss": ["F.huber_loss(x, y, delta=s)"], "smooth_l1_loss": ["F.smooth_l1_loss(x, y, beta=s)"],
    "cosine_embedding_loss": ["F.cosine_embedding_loss(x, y, signs, s)"], "cosine_similarity": ["F.cosine_similarity(x, y, eps=s)"],
    "gaussian_nll_loss": ["F.gaussian_nll_loss(x, y, y.abs(), eps=s)"], "hinge_embedding_loss": ["F.hinge_embedding_loss(x, y.sign(), s)"],
    "margin_ranking_loss": ["F.margin_ranking_loss(v, w, w.sign(), s)"], "multi_margin_loss": ["F.multi_margin_loss(x, labels, 1, s)", "F.multi_margin_loss(x, labels, 1 + s)"],
    "pairwise_distance": ["F.pairwise_distance(x, y, 2 + s)", "F.pairwise_distance(x, y, 2.0, s)"],
    "poisson_nll_loss": ["F.poisson_nll_loss(x.abs(), y, False, False, s)"],
    "triplet_margin_loss": ["F.triplet_margin_loss(x, y, y * 2, s)", "F.triplet_margin_loss(x, y, y * 2, 1.0, 2 + s)", "F.triplet_margin_loss(x, y, y * 2, eps=s)"],
    "triplet_margin_with_distance_loss": ["F.triplet_margin_with_distance_loss(x, y, y * 2, margin=s)"],
    "add": ["fac.add(x, y, alpha=s)"], "sub": ["fac.sub(x, y, alpha=s)"], "subtract": ["fac.subtract(x, y, alpha=s)"],
    "pad": ["F.pad(x, (1, 2), value=s)"], "addmm": ["fac.addmm(x, x, s4, beta=s, alpha=s * 2)"], "addmv": ["fac.addmv(v, s4, v, beta=s, alpha=s * 2)"],
    "addr": ["fac.addr(s4, v, v, beta=s, alpha=s * 2)"], "baddbmm": ["fac.baddbmm(b @ b.mT, b, b.mT, beta=s, alpha=s * 2)"],
    "addbmm": ["fac.addbmm(s4, b.mT, b, beta=s, alpha=s * 2)"], "addcmul": ["fac.addcmul(x, y, y, value=s)"], "addcdiv": ["fac.addcdiv(x, y, y.abs() + 1, value=s)"],
    "clamp": ["fac.clamp(x, -s, s)"], "clip": ["x.clip(-s, s)"], "clamp_min": ["x.clamp_min(s)"], "clamp_max": ["x.clamp_max(s)"],
    "cdist": ["fac.cdist(x, y, 2 + s)"], "dist": ["fac.dist(x, y, 2 + s)"], "norm": ["x.norm(2 + s)", "x.norm(2 + s, 1)"],
    "full": ["x + fac.full((3, 4), s)"], "full_like": ["x + fac.full_like(y, s)"], "linspace": ["x + fac.linspace(s, 2.0, 4)"],
    "index_add": ["fac.index_add(x, 0, fac.tensor([0]), y[:1], alpha=s)"], "index_fill": ["fac.index_fill(x, 0, fac.tensor([1]), s)"],
    "isclose": ["x * fac.isclose(x, y, s, s * 2)"], "ldexp": ["fac.ldexp(x, s)"], "lerp": ["fac.lerp(x, y, s)"], "logit": ["fac.logit(x.sigmoid(), s / 2)"],
    "masked_fill": ["x.masked_fill(y > 0, s)"], "nan_to_num": ["fac.nan_to_num(x / zeros, s, 1 + s, -s)"], "copy_": ["x + fac.zeros(3, 4).copy_(s)"],
    "fill_": ["x + fac.zeros(3, 4).fill_(s)"], "std": ["x.std(1, correction=s)"], "var": ["x.var(1, correction=s)"],
    "std_mean": ["fac.std_mean(x, 1, correction=s)[0]"], "var_mean": ["fac.var_mean(x, 1, correction=s)[0]"], "where": ["x.where(y > 0, s)"],
    "histc": ["x + fac.histc(y, 4, -s - 2, s + 2)"], "logspace": ["x + fac.logspace(s, 0.7, 4)"], "renorm": ["fac.renorm(x, 2 + s, 0, s)"],
    "trapezoid": ["fac.trapezoid(x, dx=s)"], "trapz": ["fac.trapz(x, dx=s)"], "cumulative_trapezoid": ["fac.cumulative_trapezoid(x, dx=s)"],
    "pinverse": ["fac.pinverse(x, rtol=s / 1000)"], "lp_pool1d": ["F.lp_pool1d(b.abs() + 1, 2 + s, 2)"], "lp_pool2d": ["F.lp_pool2d(x4.abs() + 1, 2 + s, 2)"],
    "lp_pool3d": ["F.lp_pool3d(x4.abs().unsqueeze(0) + 1, 2 + s, 2)"], "rrelu": ["F.rrelu(x, s / 2, s)"],
}
CALLS.update({name: [f"fac.{name}(x, s)"] for name in ("arctan2", "atan2", "copysign", "div", "divide", "true_divide", "fmax", "fmin", "fmod", "hypot", "logaddexp", "logaddexp2", "maximum", "minimum", "mul", "multiply",
                                                       "remainder")})
CALLS.update({name: [f"x * fac.{name}(y, s)"] for name in ("eq", "ne", "not_equal", "lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "floor_divide", "nextafter")})
CALLS["xlogy"], CALLS["scatter"] = ["fac.xlogy(x, 1 + s)"], ["fac.scatter(x, 0, fac.tensor([[0, 1]]), value=s)"]
CHANCE = {"dropout": "F.dropout(x, s)", "dropout1d": "F.dropout1d(b, s)", "dropout2d": "F.dropout2d(x4, s)", "dropout3d": "F.dropout3d(x4.unsqueeze(0), s)",
          "alpha_dropout": "F.alpha_dropout(x, s, True)", "feature_alpha_dropout": "F.feature_alpha_dropout(x4, s, True)",
          "gumbel_softmax": "F.gumbel_softmax(x, 1 + s)", "normal": "x + fac.normal(s, s, (3, 4))"}
PART_OF_A_PLAN = {
    "allclose": "says True or False", "many": "a size", "binary_cross_entropy": "a tensor", "bernoulli": "a tensor", "multinomial": "a tensor",
    "binary_cross_entropy_with_logits": "a tensor", "multilabel_soft_margin_loss": "a tensor", "nll_loss": "a tensor", "prelu": "a tensor",
    "embedding": "a tensor", "embedding_bag": "a tensor", "linear": "a tensor", "bilinear": "a tensor", "promote_types": "a dtype", "quantize": "of a model", "report": "of a model",
    "verify": "of models", **{f"conv{t}{n}d": "a tensor" for t in ("", "_transpose") for n in (1, 2, 3)},
    **{name: "integers" for name in ("gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")},
    **{name: "a tensor" for name in ("cross", "inner", "kron", "vdot", "matmul", "equal")},
    "expand_as": "a shape", "is_same_size": "a shape", "reshape_as": "a shape", "view_as": "a shape", "type_as": "a dtype"}
NUMBERS = {"value", "other", "weight", "alpha", "beta", "p", "eps", "min", "max", "scale", "fill_value"}


def planned(lazily):
    return fac.lazy_stats()["planned"] if lazily else fac._facula.cache_info()["made"]


def taken(call, values, t):
    """The result and the gradient by x or another one that the call reads, with the number of this turn."""
    env = {**values, "s": 0.1 + t / 60 + t * t / 9000}
    leaf = next(name for name in ("x4", "x", "q", "b", "v") if f"{name}." in call or f"{name}," in call or f"{name} " in call or f"{name})" in call)
    env[leaf] = values[leaf].detach().clone().requires_grad_(True)
    y = eval(call, env)
    (y * y).sum().backward()
    return np.asarray(y.detach()), np.asarray(env[leaf].grad)


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("call", [c for calls in CALLS.values() for c in calls])
@pytest.mark.filterwarnings("ignore")
def test_one_plan_and_the_same_values(rng, call, lazily):
    values = base(rng)
    changing._forms.clear()
    at, got = [], []
    with fac.lazy(lazily):
        for t in range(TURNS):
            got.append(taken(call, values, t))
            at.append(planned(lazily))
    assert at[-1] - at[changing.MOST + 4] <= 1, "plans in the last turns"
    for t in (changing.MOST - 4, TURNS - 1):                # alone, nothing is known to change
        changing._forms.clear()
        want = taken(call, values, t)
        for a, b in zip(got[t], want):
            assert a.dtype == b.dtype and np.allclose(a, b, rtol=2e-5, atol=2e-5, equal_nan=True)


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("call", CHANCE.values(), ids=CHANCE)
def test_one_plan_of_what_is_drawn(rng, call, lazily):
    values = base(rng)
    changing._forms.clear()
    at = []
    with fac.lazy(lazily):
        for t in range(TURNS):
            assert np.isfinite(taken(call, values, t)[0]).all()
            at.append(planned(lazily))
    assert at[-1] - at[changing.MOST + 4] <= 1


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_other_types_of_norms(rng, dtype):
    """Half floats are wide inside, whichever way is taken."""
    values = {k: v.to(dtype) if isinstance(v, fac.Tensor) and v.dtype is fac.float32 else v for k, v in base(rng).items()}
    near = {"float64": 1e-12, "float16": 2e-3, "bfloat16": 1.6e-2}[dtype]
    for call in ("F.layer_norm(x, (4,), w, w * 2, s)", "F.rms_norm(x, (4,), w, s)", "F.group_norm(x4, 2, w, w * 2, s)", "F.instance_norm(x4, None, None, w, w * 2, eps=s)",
                 "F.batch_norm(x4, w, w.abs(), w, w * 2, False, 0.1, s)", "F.local_response_norm(x4, 3, s)"):
        changing._forms.clear()
        want = eval(call, {**values, "s": 0.37})
        for t in range(changing.MOST + 2):
            eval(call, {**values, "s": 0.38 + t / 100})
        got = eval(call, {**values, "s": 0.37})
        assert got.dtype is want.dtype is fac.dtypes.find(dtype)
        a, b = (np.asarray(v.to("float64")) for v in (got, want))
        assert np.allclose(a, b, rtol=near, atol=near), call


def test_a_scale_of_nothing():
    """0 is a scale, not a wish for the usual one."""
    q = fac.tensor(np.arange(24.0).reshape(1, 2, 3, 4))
    for y in (F.scaled_dot_product_attention(q, q, q, scale=0.0), F.softmax(F.matmul_scores(q, q, None, False, 0.0), -1) @ q):
        assert np.allclose(y.numpy(), np.broadcast_to(q.numpy().mean(2, keepdims=True), (1, 2, 3, 4)))


def test_every_function_with_a_number_is_looked_at():
    missing = []
    for module in (fac, F, fac.Tensor):
        for name in dir(module):
            function = getattr(module, name)
            if name[0] == "_" or isinstance(function, type) or not callable(function):
                continue
            try:
                given = inspect.signature(function).parameters.values()
            except (TypeError, ValueError):
                continue
            if any(isinstance(p.default, float) or "float" in str(p.annotation) or p.name in NUMBERS for p in given):
                if name not in CALLS and name not in CHANCE and name not in PART_OF_A_PLAN:
                    missing.append(name)
    assert not missing, missing
