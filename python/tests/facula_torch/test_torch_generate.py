"""What grows by cat on device "ocl": equal to the cpu however it is read, and a language model writes with few programs."""
from __future__ import annotations

import copy
import io

import pytest
import torch
import torch.nn.functional as F

import facula.torch as ft

pytestmark = pytest.mark.ocl
D = "ocl"


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
            out += [t.cpu().contiguous() for t in more] if more else []
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


def saved(t):
    file = io.BytesIO()
    torch.save({"all": t, "last": t[..., -1:, :]}, file)
    file.seek(0)
    return torch.load(file, map_location="cpu")["all"]


def attended(t, **how):
    return F.scaled_dot_product_attention(t[:, :, :2] + 1, t, t, **how)


READERS = {
    "printed": lambda t: list(str(t).replace(", device='ocl:0'", "").encode()),
    "listed": lambda t: t.tolist(),
    "saved": saved,
    "deepcopy": copy.deepcopy,
    "storage": lambda t: (t.untyped_storage().nbytes(), t.untyped_storage().cpu().tolist()),
    "one": lambda t: t[0, 0, 5, 1].item(),
    "bits": lambda t: t.view(torch.int32),
    "bits of the last": lambda t: t.view(torch.int32)[:, :, -1] + 1,
    "more bits": lambda t: torch.cat([t.view(torch.int32), t.view(torch.int32)[:, :, -1:]], 2),
    "strided": lambda t: t.as_strided((3, 5), (7, 2), 11) * 2,
    "strided over rows": lambda t: t.as_strided((4, 2), (1, 52), 44) * 2,
    "flat": lambda t: t.view(-1)[-9:] + 1,
    "longer": lambda t: t.clone().resize_(2, 2, 7, 4)[:, :, -1],
    "resized": lambda t: t.resize_(4),
    "set": lambda t: torch.empty(0, device=t.device).set_(t)[1],
    "out": lambda t: torch.add(t, 1, out=t),
    "filled": lambda t: t[:, :, -1].fill_(3) + t.sum(),
    "data": lambda t: t.data.mul_(2) + t,
    "second of cat": lambda t: torch.cat([t[:, :1], t], 1),
    "another axis": lambda t: torch.cat([t, t[:, :1]], 1),
    "reduced": lambda t: [t.mean(), t.max(), t.numel()],
    "transposed": lambda t: t.transpose(1, 2).contiguous(),
    "listed for an op": lambda t: torch.stack([t, t]),
    "picked": lambda t: t[:, :, torch.tensor([0, 5], device=t.device)],
    "on the host": lambda t: torch.linalg.svdvals(t),
    "foreach": lambda t: torch._foreach_add([t], 1),
    "causal": lambda t: attended(t, is_causal=True),
    "masked": lambda t: attended(t, attn_mask=torch.arange(t.size(2), device=t.device).float()[None]),
    "keys only": lambda t: F.scaled_dot_product_attention(t[:, :, :2] + 1, t, t.clone()),
    "both": attended,
}


@pytest.mark.parametrize("name", READERS)
def test_no_reader_sees_room(name):
    def plain(y):
        return [plain(t) for t in y] if isinstance(y, (list, tuple)) else y.cpu().contiguous() if isinstance(y, torch.Tensor) else y

    def read(device):
        torch.manual_seed(3)
        t = torch.randn(2, 2, 4, 4).to(device)
        for _ in range(9):
            t = torch.cat([t, torch.randn(2, 2, 1, 4).to(device)], 2)
        y = plain(READERS[name](t))
        more = torch.cat([t.view(2, 2, -1, 4), torch.ones(2, 2, 1, 4, device=device)], 2) if t.dim() == 4 else t
        return [y, plain(more), plain(t)]
    torch.testing.assert_close(read(D), read("cpu"), rtol=1e-5, atol=1e-5)


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


def gpt2(last):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=101, n_positions=160, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=last)
    torch.manual_seed(4)
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.mark.parametrize("last", [None, 100], ids=["unread", "read in each step"])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_gpt2_writes_the_same_with_few_plans(cache, last):
    model, ids = gpt2(last), torch.tensor([[5, 17, 29, 3, 80]])
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
    assert got.shape == (1, 69) and torch.equal(got.cpu(), want)
    if last is not None:
        assert after["flushes"] - before["flushes"] >= 64
    assert after["segments"] <= 6 and after["planned"] - before["planned"] <= 12


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_prompts_of_several_lengths_write_the_same_with_few_plans(cache):
    """Their mask is booleans that the host has: it grows to the room of keys and values with them."""
    model, ids = gpt2(None), torch.tensor([[5, 17, 29, 3, 80], [0, 0, 11, 64, 9], [0, 2, 40, 41, 42]])
    how = {"max_new_tokens": 64, "do_sample": False, "pad_token_id": 0}
    if cache == "static":
        how["cache_implementation"] = "static"
    want = model.generate(ids, attention_mask=(ids > 0).long(), **how)
    model.to(D)
    torch.ocl.empty_cache()
    before = torch.ocl.stats()
    got = model.generate(ids.to(D), attention_mask=(ids > 0).long().to(D), **how)
    after = torch.ocl.stats()
    assert got.shape == (3, 69) and torch.equal(got.cpu(), want)
    assert after["segments"] <= 6 and after["planned"] - before["planned"] <= 12
    assert not ft.explain()["device_fallbacks"]


@pytest.mark.parametrize("shape", ["whole", "keys", "one key", "queries"])
def test_masks_over_what_grows(shape):
    def run(device):
        torch.manual_seed(2)
        k = torch.randn(2, 3, 5, 8).to(device)
        out = []
        for step in range(70):
            k = torch.cat([k, torch.randn(2, 3, 1, 8).to(device)], 2)
            n = k.size(2)
            full = {"whole": (2, 3, 2, n), "keys": (1, n), "one key": (2, 1, 2, 1), "queries": (2, n)}[shape]
            seen = torch.arange(full[-2] * full[-1]).reshape(full[-2:]).expand(full) % 3 != step % 3
            out.append(F.scaled_dot_product_attention(torch.randn(2, 3, 2, 8).to(device), k, k, attn_mask=seen.to(device)).cpu())
        return out
    before = planned()
    got = run(D)
    assert planned() - before <= 16
    for a, b in zip(run("cpu"), got):
        torch.testing.assert_close(b, a, rtol=2e-5, atol=2e-5, equal_nan=True)
