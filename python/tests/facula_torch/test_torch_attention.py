"""Attention on device "ocl": one recorded call and one for its gradient, equal to the cpu's; otherwise torch's decomposition."""
from __future__ import annotations

import copy

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import facula.torch as ft

pytestmark = pytest.mark.ocl
D = "ocl"


def recorded():
    return torch.ocl.stats()["recorded"]


def on_host():
    return sum(n for n, _ in ft.explain()["device_fallbacks"].values())


def random_mask(*shape):
    return torch.rand(shape) > 0.3


BIAS = torch.randn(2, 4, 5, 7)
DARK = torch.ones(5, 7, dtype=torch.bool)
DARK[2] = False                                 # a query that sees no key
CASES = {
    "plain": ((2, 4, 5, 8), (2, 4, 7, 8), {}), "scale": ((2, 4, 5, 8), (2, 4, 7, 8), {"scale": 0.3}),
    "causal": ((2, 4, 7, 8), (2, 4, 7, 8), {"is_causal": True}), "causal, more keys": ((2, 4, 5, 8), (2, 4, 7, 8), {"is_causal": True}),
    "causal, fewer keys": ((2, 4, 7, 8), (2, 4, 5, 8), {"is_causal": True}),
    "mask": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": random_mask(5, 7)}),
    "mask of each head": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": random_mask(2, 4, 5, 7)}),
    "mask of keys": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": random_mask(2, 1, 1, 7)}),
    "mask of queries": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": torch.randn(2, 1, 5, 1)}),
    "bias": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": BIAS}), "a dark query": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": DARK}),
    "one query": ((1, 2, 1, 16), (1, 2, 9, 16), {}), "shared keys": ((2, 4, 5, 8), (2, 2, 7, 8), {"enable_gqa": True}),
    "one key head": ((2, 4, 5, 8), (2, 1, 5, 8), {"enable_gqa": True, "is_causal": True}),
}


def both(q_shape, k_shape, how, dtype=torch.float32, views=False):
    """Result and gradients of q, k, v on the cpu in f32, then on the device in dtype, and how many calls the latter was."""
    given = [torch.randn(s).to(dtype) for s in (q_shape, k_shape, k_shape)]
    out, calls = [], []
    for device, dt in (("cpu", torch.float32), (D, dtype)):
        xs = [(x.transpose(1, 2).contiguous() if views else x).detach().to(device, dt).requires_grad_() for x in given]
        kw = {k: v.to(device, dt if v.is_floating_point() else v.dtype) if isinstance(v, torch.Tensor) else v for k, v in how.items()}
        torch.ocl.synchronize()
        before = recorded()
        y = F.scaled_dot_product_attention(*[x.transpose(1, 2) for x in xs] if views else xs, **kw)
        calls.append(recorded() - before)
        (y * torch.arange(y.shape[-1], device=device)).sum().backward()
        out.append([y.detach().cpu().float(), *[x.grad.cpu().float() for x in xs]])
    return out[0], out[1], calls[1]


@pytest.mark.parametrize("dtype,tol", [(torch.float32, 2e-5), (torch.bfloat16, 4e-2)])
@pytest.mark.parametrize("name", CASES)
def test_one_call_equals_the_cpu(name, dtype, tol):
    host = on_host()
    want, got, calls = both(*CASES[name], dtype)
    masked = CASES[name][2].get("attn_mask")
    assert calls <= (1 if masked is None or masked.dtype != torch.bool else 4)     # a mask of bools becomes numbers first
    for a, b in zip(want, got):
        assert (a - b).abs().max() <= tol * max(1, a.abs().max())
    assert on_host() == host


def test_heads_that_are_views():
    want, got, calls = both((2, 4, 6, 8), (2, 4, 6, 8), {"is_causal": True}, views=True)
    assert calls == 1
    for a, b in zip(want, got):
        torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-5)


def penalized(q_shape, k_shape, how, device, dtype):
    """The gradient of a penalty on gradients, for q, k, v and what the output's gradient is."""
    torch.manual_seed(3)
    xs = [torch.randn(s).to(device, dtype).requires_grad_() for s in (q_shape, k_shape, k_shape)]
    kw = {k: v.to(device, dtype if v.is_floating_point() else v.dtype) if isinstance(v, torch.Tensor) else v
          for k, v in how.items()}
    y = F.scaled_dot_product_attention(*xs, **kw)
    weight = torch.randn(y.shape).to(device, dtype).requires_grad_()
    first = torch.autograd.grad((y * weight).sum(), xs, create_graph=True)
    penalty = sum((g * g * torch.arange(g.shape[-1], device=device)).sum() for g in first)
    second = torch.autograd.grad(penalty, [*xs, weight], create_graph=True)
    third = torch.autograd.grad(sum((g * g).sum() for g in second), [*xs, weight])
    return [g.detach().cpu().double() for g in (*first, *second, *third)]


@pytest.mark.parametrize("name", CASES)
def test_differentiated_three_times(name):
    host = on_host()
    got = penalized(*CASES[name], D, torch.float32)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        want = penalized(*CASES[name], "cpu", torch.float64)
    assert on_host() == host and len(got) == len(want) == 11
    for a, b in zip(got, want):
        assert (a - b).abs().max() <= 1e-4 * max(1, b.abs().max())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_differentiated_twice_in_half_precision(dtype):
    got = penalized(*CASES["causal"], D, dtype)[:7]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        want = penalized(*CASES["causal"], "cpu", torch.float64)[:7]
    for a, b in zip(got, want):
        assert (a - b).abs().max() <= 5e-2 * max(1, b.abs().max())


def test_only_a_gradient_that_is_differentiated_is_decomposed():
    q = torch.randn(1, 2, 4, 8, device=D, requires_grad=True)
    calls = []
    for again in (False, True):
        y = F.scaled_dot_product_attention(q, q, q).sum()
        before = recorded()
        torch.autograd.grad(y, q, create_graph=again)
        calls.append(recorded() - before)
    assert calls[0] <= 6 and calls[1] > calls[0]


def one(**how):
    q = torch.randn(1, 2, 4, 8, device=D, dtype=how.pop("dtype", torch.float32), requires_grad=True)
    before = recorded()
    y = F.scaled_dot_product_attention(q, q, q, **how)
    return y, recorded() - before


def test_what_it_does_not_fit_is_decomposed():
    assert one()[1] == 1
    y, calls = one(dropout_p=0.5)
    assert calls > 1 and y.shape == (1, 2, 4, 8) and torch.isfinite(y.cpu()).all()
    assert one(dtype=torch.float64)[1] > 1
    bias = torch.randn(4, 4, device=D, requires_grad=True)
    y, calls = one(attn_mask=bias)
    y.sum().backward()
    assert calls > 1 and bias.grad.shape == (4, 4)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert one()[1] > 1
    x = torch.randn(3, 4, 8)
    torch.testing.assert_close(F.scaled_dot_product_attention(*[x.to(D)] * 3).cpu(), F.scaled_dot_product_attention(x, x, x), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("mask", [None, "src", "padding"])
@pytest.mark.parametrize("training", [True, False])
def test_multihead_attention(mask, training):
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).train(training), torch.randn(3, 5, 8)
    how = {"attn_mask": torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)} if mask == "src" else {}
    if mask == "padding":
        how = {"key_padding_mask": torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1]], dtype=torch.bool)}
    host = on_host()
    for weights in (True, False):
        with torch.no_grad():
            want = layer(x, x, x, need_weights=weights, **how)
            mine = copy.deepcopy(layer).to(D)
            got = mine(*[x.to(D)] * 3, need_weights=weights, **{k: v.to(D) for k, v in how.items()})
        torch.testing.assert_close(got[0].cpu(), want[0], rtol=2e-5, atol=2e-5)
        if weights:
            torch.testing.assert_close(got[1].cpu(), want[1], rtol=2e-5, atol=2e-5)
    assert on_host() == host


@pytest.mark.parametrize("how", [{}, {"norm_first": True}, {"activation": "gelu"}])
def test_encoder_layers(how):
    layer, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **how).eval(), torch.randn(3, 5, 8)
    host = on_host()
    with torch.no_grad():
        torch.testing.assert_close(copy.deepcopy(layer).to(D)(x.to(D)).cpu(), layer(x), rtol=2e-5, atol=2e-5)
    assert on_host() == host
