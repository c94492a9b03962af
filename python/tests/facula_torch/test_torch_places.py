"""x[i], x[mask] and what is written there on device "ocl": equal to the cpu, computed on the device, refused where the cpu refuses."""
from __future__ import annotations

import pytest
import torch
import facula.torch as ft

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore")]
D = "ocl"
T = torch.tensor
torch.manual_seed(5)
X = torch.randn(4, 5, 6)
DARK = torch.rand(4, 5) > 0.5
NONE = torch.zeros(4, 5, dtype=torch.bool)


def host_calls():
    return {name: n for name, (n, _) in ft.explain()["device_fallbacks"].items()}


def on(device, x):
    return tuple(on(device, v) for v in x) if isinstance(x, tuple) else x.to(device) if isinstance(x, torch.Tensor) else x


WHOLE = {
    "one": T([2, 0, 3]), "negative": T([-1, -4]), "of two dims": T([[0, 1], [3, -2]]), "int32": T([1, 2], dtype=torch.int32), "none": T([], dtype=torch.long),
    "without dims": (T(2), T(1)), "two": (T([0, 1, 2]), T([3, -1, 0])), "broadcast": (T([[0], [1]]), T([2, 3, 4])),
    "slice between": (T([0, 1]), slice(1, 4), T([2, -3])), "slices around": (slice(None), T([0, 4]), slice(2, 5)),
    "steps": (slice(None, None, 2), T([[1, 2]])), "last": (..., T([5, 0])), "all three": (T([0, 1]), T([1]), T([[2], [-1]])),
    "new axis": (None, T([1, 1])), "a number between": (T([0, 3]), 2, T([1, 4])), "a number and a slice": (1, slice(None), T([0, 5])),
}
MASKS = {
    "mask": DARK, "mask of all": X > 0, "mask of one dim": (slice(None), T([True, False, True, True, False])), "mask of nothing": NONE,
    "mask and index": (DARK[:, 0], T([2])), "index and mask": (T([1, 2]), slice(None), T([True, False, False, True, False, False])),
    "bytes": DARK.to(torch.uint8), "a slice, then a mask": (slice(1, 3), DARK[0]), "of the last": (..., X[0, 0] > 0),
}


@pytest.mark.parametrize("name", [*WHOLE, *MASKS])
def test_read(name):
    at = {**WHOLE, **MASKS}[name]
    x, y = X.clone().requires_grad_(), X.to(D).requires_grad_()
    want, got = x[at] * 2, y[on(D, at)] * 2
    assert got.shape == want.shape
    torch.testing.assert_close(got.cpu(), want)
    (dx,), (dy,) = torch.autograd.grad(want.square().sum(), x), torch.autograd.grad(got.square().sum(), y)
    torch.testing.assert_close(dy.cpu(), dx)
    assert set(host_calls()) <= (set() if name in WHOLE else {"nonzero"})


@pytest.mark.parametrize("grown", [False, True], ids=["written", "added"])
@pytest.mark.parametrize("name", [*WHOLE, *MASKS])
@pytest.mark.parametrize("values", ["one", "a row", "all"])
def test_written(name, values, grown):
    at = {**WHOLE, **MASKS}[name]
    if name == "bytes" and values == "one":
        return                                      # torch's cpu has no such fill
    picked = X[at]
    v = {"one": T(2.5), "a row": picked[:1].clone() if picked.dim() else picked.clone(), "all": torch.randn(picked.shape)}[values]
    if grown:
        bare = tuple(at) if isinstance(at, tuple) else (at,)
        if not all(isinstance(i, torch.Tensor) for i in bare):
            return

    def write(device):
        x, w = X.to(device).clone(), v.to(device).requires_grad_()
        if grown:
            x = x.index_put(on(device, bare), w, accumulate=True)
        else:
            x = x.clone()
            x[on(device, at)] = w
        return x.detach().cpu(), torch.autograd.grad(x.square().sum(), w)[0].cpu()
    want = write("cpu")
    ft.explain(reset=True)
    for a, b in zip(write(D), want):
        torch.testing.assert_close(a, b)
    fallen = set(host_calls()) - {"nonzero"}
    assert not fallen or not picked.numel()


def test_a_mask_that_writes_asks_the_host_nothing():
    x, n = X.to(D), int(DARK.sum())
    flushes = torch.ocl.stats()["flushes"]
    for v in (T(1.0), T([2.0]), torch.randn(n, 6), torch.randn(6), torch.randn(n, 1)):
        x[DARK.to(D)] = v.to(D)
    assert torch.ocl.stats()["flushes"] == flushes and not host_calls()
    torch.ocl.synchronize()
    assert not host_calls()


def test_indices_are_data():
    """The same lines with other indices are the same program."""
    def step(seed):
        torch.manual_seed(seed)
        at, to = torch.randint(4, (7,)), torch.randint(5, (7,))
        y = X.to(D)[at.to(D), to.to(D)].sum()
        torch.testing.assert_close(y.cpu(), X[at, to].sum())
    step(0), step(1), step(2)
    before = torch.ocl.stats()["planned"]
    for seed in range(3, 9):
        step(seed)
    assert torch.ocl.stats()["planned"] == before


def test_masked_select():
    for x, mask in [(X, X > 0), (X, DARK[..., None]), (X[0, 0], T(True)), (T(3.0), T(False)), (X, NONE[..., None])]:
        x, y = x.clone().requires_grad_(), x.to(D).requires_grad_()
        want, got = x.masked_select(mask), y.masked_select(mask.to(D))
        torch.testing.assert_close(got.cpu(), want)
        torch.testing.assert_close(torch.autograd.grad(got.sum(), y)[0].cpu(), torch.autograd.grad(want.sum(), x)[0])
    assert set(host_calls()) <= {"nonzero"}


def test_integers_that_the_host_knows_are_indexed_there():
    ids = torch.arange(12, device=D).reshape(3, 4)
    assert ids[ids % 3 == 0].tolist() == [0, 3, 6, 9] and ids[T([2], device=D), T([-1], device=D)].tolist() == [11]
    assert torch.unique(ids // 5).tolist() == [0, 1, 2] and not host_calls()


@pytest.mark.parametrize("call,kind,text", [
    (lambda x: x[T([4]).to(D)], IndexError, "index 4 is out of"),
    (lambda x: x[T([-5]).to(D)], IndexError, "index -5 is out of"),
    (lambda x: x[T([0]).to(D), T([1, 5]).to(D)], IndexError, "index 5 is out of"),
    (lambda x: x[T([0, 1]).to(D), T([0, 1, 2]).to(D)], IndexError, "shape mismatch"),
    (lambda x: x[torch.ones(3, dtype=torch.bool).to(D)], IndexError, "shape of the mask"),
    (lambda x: x[torch.ones(4, 5, 6, dtype=torch.bool).to(D), T([0]).to(D)], IndexError, "too many indices"),
    (lambda x: x[T([0.5]).to(D)], IndexError, "tensors used as indices"),
    (lambda x: x.index_put_((DARK.to(D),), torch.zeros(int(DARK.sum()) + 1, 6).to(D)), RuntimeError, "shape mismatch"),
    (lambda x: x.index_put_((DARK.to(D),), torch.zeros(2, 6).to(D)), RuntimeError, "shape mismatch"),
    (lambda x: x.index_put_((NONE.to(D),), torch.zeros(2, 6).to(D)), RuntimeError, "shape mismatch"),
])
def test_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call(X.to(D)).cpu()
    assert X.to(D)[T([1]).to(D)].shape == (1, 5, 6)


def test_as_many_places_of_a_mask_as_of_other_indices():
    x, mask = torch.zeros(3, 4, device=D), torch.tensor([True, False, True], device=D)
    with pytest.raises(IndexError, match=r"could not be broadcast together with shapes \[2\], \[3\]"):
        x[mask, torch.tensor([1, 2, 3], device=D)]
    with pytest.raises(IndexError, match=r"could not be broadcast together with shapes \[2\], \[3\]"):
        x[mask, torch.tensor([1, 2, 3], device=D)] = 1.0
    assert x[mask, torch.tensor([1, 2], device=D)].shape == (2,)


@pytest.mark.parametrize("at,value", [
    ((), T([1.])), ((T([0, 1]),), torch.ones(1, 2, 5, 6)), ((T([0, 1]),), torch.ones(3, 5, 6)), ((T([0]), None, T([1])), torch.ones(1, 6)),
    ((None, T([0, 1]), T([2])), torch.ones(4, 6)), ((T([0, 1]), T([2, 3])), torch.ones(2, 5))])
def test_values_that_do_not_fit_are_refused_when_the_call_is_made(at, value):
    x, put = X if at else T(2.), torch.ops.aten.index_put_
    with pytest.raises(RuntimeError) as want:
        put(x.clone(), at, value)
    y = x.to(D)
    with pytest.raises(RuntimeError) as got:
        put(y, on(D, at), value.to(D))
    if at:                                          # else torch's cpu takes another road, and says something else
        assert str(got.value).splitlines()[0] == str(want.value).splitlines()[0]
    assert torch.equal(y.cpu(), x)


def test_masks_of_bytes_warn():
    y, mask = X.to(D), DARK.to(D, torch.uint8)
    for use in (lambda: y[mask], lambda: y.index_put_((mask,), T(2.).to(D)), lambda: y[:, :, 0].index_put_((mask,), T(2.).to(D), True)):
        with pytest.warns(UserWarning, match="torch.uint8 is now deprecated"):
            use()


@pytest.mark.parametrize("at,value", [
    (T(True), torch.ones(5, 1, 4, 5, 6)), (DARK, torch.ones(2, 5)), (DARK[:, 0], torch.ones(2, 1, 1, 6)), (X > 0, torch.ones(1, 7)),
    (torch.ones(1, 1, 1, 1, dtype=torch.bool), T(1.))])
def test_values_that_no_mask_of_these_dims_takes_are_refused_when_the_call_is_made(at, value):
    with pytest.raises((RuntimeError, IndexError)) as want:
        X.clone().index_put_((at,), value)
    with pytest.raises(type(want.value)) as got:
        X.to(D).index_put_((at.to(D),), value.to(D))
    assert str(got.value).splitlines()[0] == str(want.value).splitlines()[0]


def test_values_and_indices_of_another_device_are_refused():
    for at in (T([0, 1]), DARK):
        with pytest.raises(RuntimeError, match="at least two devices, ocl:0 and cpu"):
            X.to(D).index_put_((at.to(D),), X[:2] if at is not DARK else X[DARK])
    with pytest.raises(RuntimeError, match="on the same device as the indexed tensor \\(cpu\\)"):
        X[T([0]).to(D)]
