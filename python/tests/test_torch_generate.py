"""What grows by cat on device "ocl": equal to the cpu however it is read, and a language model writes with few programs."""
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import facula.torch as ft  # noqa: E402

if ft.ocl is None:
    pytest.skip("the device's shim was not built", allow_module_level=True)
D = "ocl"


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def planned():
    return torch.ocl.stats()["planned"]


# ---- growing -------------------------------------------------------------------------------------------------------


def attend(device, steps, heads=3, batch=2, width=8, first=5, read=None, added=1):
    """Attention of one query on keys and values that grow; `read` may look at or change them in some steps."""
    torch.manual_seed(1)
    k = v = None
    out = []
    for step in range(steps):
        n = first if k is None else added
        new = [torch.randn(batch, heads, n, width).to(device) for _ in range(2)]
        k, v = new if k is None else [torch.cat([a, b], dim=-2) for a, b in zip((k, v), new)]
        q = torch.randn(batch, heads, 1, width).to(device)
        out.append(F.scaled_dot_product_attention(q, k, v).cpu())
        if read:
            more = read(step, k, v)
            out += [t.cpu() for t in more] if more else []
    return [*out, k.cpu(), v.cpu()]


def by_row(step, k, v):
    return [k[:, :, -1], v[..., -1:, 3:], k[1, :, -1].t() + 1] if step > 2 else None


def as_whole(step, k, v):
    return [k.sum((-1, -2)), v[:, :, 1:3] * 2] if step % 5 == 4 else None


def written(step, k, v):
    if step % 4 == 3:
        k[:, :, -1].mul_(2)
        v.add_(1)
    return None


READS = {"never": None, "what came last": by_row, "all of it": as_whole, "written in place": written}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("added", [1, 3])
def test_growing_keys_and_values(name, added):
    want, got = attend("cpu", 12, read=READS[name], added=added), attend(D, 12, read=READS[name], added=added)
    assert len(want) == len(got)
    for a, b in zip(want, got):
        assert a.shape == b.shape and a.stride() == b.stride()
        torch.testing.assert_close(b, a, rtol=2e-5, atol=2e-5)


def test_growing_past_its_room_plans_little():
    attend(D, 3)
    before = planned()
    got = attend(D, 150)
    assert planned() - before <= 10             # rooms of 64, 128 and 192 rows, and how each is made
    for a, b in zip(attend("cpu", 150), got):
        torch.testing.assert_close(b, a, rtol=2e-5, atol=2e-5)


def test_what_grew_is_not_changed_by_what_it_was_made_of():
    a, b = torch.ones(2, 3, device=D), torch.full((2, 1), 2.0, device=D)
    old = torch.cat([torch.cat([a, b], 1), b], 1)
    new = torch.cat([old, b], 1)
    b.zero_()
    old.fill_(7)
    newer = torch.cat([new, b], 1)
    assert old.tolist() == [[7] * 5] * 2
    assert new.tolist() == [[1, 1, 1, 2, 2, 2]] * 2 and newer.tolist() == [[1, 1, 1, 2, 2, 2, 0]] * 2
    assert newer[:, -1].tolist() == [0, 0] and newer.view(torch.int32)[0, 0].item() == 0x3f800000


def test_gradients_through_what_grows():
    grads = []
    for device in ("cpu", D):
        x = [torch.full((1, 2, 2, 4), float(k), device=device, requires_grad=True) for k in range(4)]
        k = x[0]
        for piece in x[1:]:
            k = torch.cat([k, piece * 2], -2)
        F.scaled_dot_product_attention(x[1].detach(), k, k).square().sum().backward()
        grads.append([t.grad.cpu() for t in x])
    for a, b in zip(*grads):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)


# ---- integers that the host knows ----------------------------------------------------------------------------------


def test_integers_of_growing_size_plan_nothing():
    def ids(device):
        seen, out = torch.ones(1, 4, dtype=torch.long, device=device), []
        for step in range(20):
            seen = torch.cat([seen, seen.new_full((1, 1), step)], -1)
            at = seen.cumsum(-1) - 1
            at.masked_fill_(seen == 0, 1)
            out.append((at.max().item(), bool((seen[:, -2:] > 3).all()), torch.arange(step + 1, device=device).sum().item()))
            seen[0, 1] += 1
        return out, seen.tolist()
    before, fallen = planned(), ft.explain()["device_fallbacks"]
    got = ids(D)
    assert planned() - before == 0 and ft.explain()["device_fallbacks"] == fallen
    assert got == ids("cpu")


def test_integers_keep_their_order_with_what_is_recorded():
    x, n = torch.ones(4, device=D), torch.arange(4, device=D)
    y = x + n                                   # recorded, so n must stay as it is until then
    n.add_(10)
    m = n * 2
    big = (x > 0).long() + n                    # made of what is recorded
    big += 1
    assert y.tolist() == [1, 2, 3, 4] and m.tolist() == [20, 22, 24, 26] and big.tolist() == [12, 13, 14, 15]


# ---- a language model ----------------------------------------------------------------------------------------------


def gpt2():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=101, n_positions=160, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=None)
    torch.manual_seed(4)
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_gpt2_writes_the_same_with_few_plans(cache):
    model, ids = gpt2(), torch.tensor([[5, 17, 29, 3, 80]])
    how = {"max_new_tokens": 64, "do_sample": False, "pad_token_id": 0}
    if cache == "static":
        how["cache_implementation"] = "static"
    want = model.generate(ids, attention_mask=torch.ones_like(ids), **how)
    model.to(D)
    ids = ids.to(D)
    torch.ocl.empty_cache()
    before = torch.ocl.stats()
    got = model.generate(ids, attention_mask=torch.ones_like(ids), **how)
    after = torch.ocl.stats()
    assert torch.equal(got.cpu(), want)
    assert after["segments"] <= 6 and after["planned"] - before["planned"] <= 12
