"""What torch's cpu refuses, device "ocl" refuses, and what it takes comes out equal."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import facula
import facula.torch as ft

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore")]
T = torch.tensor
torch.manual_seed(0)
x = torch.randn(3, 4)
CASES = {
    "gather": lambda d: x.to(d).gather(1, T([[-1]]).to(d)),
    "gather far": lambda d: x.to(d).gather(1, T([[9]]).to(d)),
    "gather 0-d": lambda d: T(1.).to(d).gather(0, T([-1]).to(d)),
    "scatter": lambda d: x.to(d).scatter(1, T([[-1]]).to(d), x[:1,:1].to(d)),
    "scatter value": lambda d: x.to(d).scatter(1, T([[-1]]).to(d), 2.),
    "scatter value reduce": lambda d: x.to(d).scatter(1, T([[-1]]).to(d), 2., reduce="add"),
    "scatter reduce": lambda d: x.to(d).scatter(1, T([[-1]]).to(d), x[:1,:1].to(d), reduce="multiply"),
    "scatter_add": lambda d: x.to(d).scatter_add(1, T([[-1]]).to(d), x[:1,:1].to(d)),
    "scatter_reduce": lambda d: x.to(d).scatter_reduce(1, T([[-1]]).to(d), x[:1,:1].to(d), "amax"),
    "scatter_reduce mean": lambda d: x.to(d).scatter_reduce(1, T([[-1]]).to(d), x[:1,:1].to(d), "mean"),
    "index_select": lambda d: x.to(d).index_select(1, T([-1]).to(d)),
    "index_select far": lambda d: x.to(d).index_select(1, T([4]).to(d)),
    "index_select 2-d": lambda d: x.to(d).index_select(1, T([[0]]).to(d)),
    "index_select 0-d": lambda d: T(1.).to(d).index_select(0, T([0,0]).to(d)),
    "index_select 0-d far": lambda d: T(1.).to(d).index_select(0, T([1]).to(d)),
    "index_select 0-d ok": lambda d: T(1.).to(d).index_select(0, T([0]).to(d)),
    "index_add": lambda d: x.to(d).index_add(0, T([-1]).to(d), x[:1].to(d)),
    "index_add far": lambda d: x.to(d).index_add(0, T([3]).to(d), x[:1].to(d)),
    "index_add sizes": lambda d: x.to(d).index_add(0, T([0,1]).to(d), x[:2,:1].to(d)),
    "index_add rank": lambda d: x.to(d).index_add(0, T([0,1]).to(d), x[:2,0].to(d)),
    "index_add 2-d index": lambda d: x.to(d).index_add(0, T([[0],[1]]).to(d), x[:2].to(d)),
    "index_add count": lambda d: x.to(d).index_add(0, T([0]).to(d), x[:2].to(d)),
    "index_add dtype": lambda d: x.to(d).index_add(0, T([0]).to(d), x[:1].double().to(d)),
    "index_add 0-d": lambda d: T(1.).to(d).index_add(0, T([0,0]).to(d), T([1.,2.]).to(d)),
    "index_copy": lambda d: x.to(d).index_copy(0, T([-1]).to(d), x[:1].to(d)),
    "index_copy sizes": lambda d: x.to(d).index_copy(0, T([0,1]).to(d), x[:2,:1].to(d)),
    "index_copy rank": lambda d: x.to(d).index_copy(0, T([0,1]).to(d), x[:2,0].to(d)),
    "index_copy count": lambda d: x.to(d).index_copy(0, T([0]).to(d), x[:2].to(d)),
    "index_copy dtype": lambda d: x.to(d).index_copy(0, T([0]).to(d), x[:1].double().to(d)),
    "index_fill neg ok": lambda d: x.to(d).index_fill(0, T([-1]).to(d), 2.),
    "index_fill far": lambda d: x.to(d).index_fill(0, T([3]).to(d), 2.),
    "index_fill 1-d value": lambda d: x.to(d).index_fill(0, T([1]).to(d), T([2.]).to(d)),
    "index_reduce": lambda d: x.to(d).index_reduce(0, T([-1]).to(d), x[:1].to(d), "prod"),
    "index_reduce sizes": lambda d: x.to(d).index_reduce(0, T([0,1]).to(d), x[:2,:1].to(d), "prod"),
    "index_reduce count": lambda d: x.to(d).index_reduce(0, T([0]).to(d), x[:2].to(d), "prod"),
    "take neg ok": lambda d: x.to(d).take(T([-1]).to(d)),
    "take far": lambda d: x.to(d).take(T([12]).to(d)),
    "put far": lambda d: x.to(d).put(T([12]).to(d), T([1.]).to(d)),
    "put count": lambda d: x.to(d).put(T([1,2]).to(d), T([1.]).to(d)),
    "put dtype": lambda d: x.to(d).put(T([1]).to(d), T([1.]).double().to(d)),
    "index neg ok": lambda d: x.to(d)[T([-1]).to(d)],
    "index far": lambda d: x.to(d)[T([-4]).to(d)],
    "index shapes": lambda d: x.to(d)[T([0,1]).to(d), T([0,1,2]).to(d)],
    "index_put far": lambda d: x.to(d).index_put((T([3]).to(d),), T(1.).to(d)),
    "index_put shapes": lambda d: x.to(d).index_put((T([1,2]).to(d),), T([1.,2.,3.]).to(d)),
    "index_put dtype": lambda d: x.to(d).index_put((T([1]).to(d),), T([1.]).double().to(d)),
    "index_put mask shape": lambda d: x.to(d).index_put((T([True,False]).to(d),), T(1.).to(d)),
    "embedding": lambda d: F.embedding(T([-1]).to(d), x.to(d)),
    "embedding far": lambda d: F.embedding(T([3]).to(d), x.to(d)),
    "embedding float": lambda d: F.embedding(T([1.]).to(d), x.to(d)),
    "nll": lambda d: F.nll_loss(x.to(d), T([0,-1,2]).to(d)),
    "nll far": lambda d: F.nll_loss(x.to(d), T([0,4,2]).to(d)),
    "nll ignored ok": lambda d: F.nll_loss(x.to(d), T([0,-100,2]).to(d)),
    "nll2d": lambda d: F.nll_loss(torch.zeros(1,3,2,2).to(d), -torch.ones(1,2,2).long().to(d)),
    "nll2d far": lambda d: F.nll_loss(torch.zeros(1,3,2,2).to(d), 3*torch.ones(1,2,2).long().to(d)),
    "nll sizes": lambda d: F.nll_loss(x.to(d), T([0,1]).to(d)),
    "nll weight size": lambda d: F.nll_loss(x.to(d), T([0,1,2]).to(d), torch.ones(3).to(d)),
    "cross": lambda d: F.cross_entropy(x.to(d), T([0,-1,2]).to(d)),
    "cross far": lambda d: F.cross_entropy(x.to(d), T([0,7,2]).to(d)),
    "multi_margin far": lambda d: F.multi_margin_loss(x.to(d), T([0,4,2]).to(d)),
    "masked_scatter few": lambda d: x.to(d).masked_scatter((x>-9).to(d), torch.ones(3).to(d)),
    "masked_scatter none": lambda d: x.to(d).masked_scatter((x>-9).to(d), torch.ones(0).to(d)),
    "masked_scatter just ok": lambda d: x.to(d).masked_scatter(T([True,False,False,True]).to(d), torch.ones(6).to(d)),
    "masked_scatter dtype": lambda d: x.to(d).masked_scatter((x>0).to(d), torch.ones(30).double().to(d)),
    "masked_scatter int mask": lambda d: x.to(d).masked_scatter((x>0).long().to(d), torch.ones(30).to(d)),
    "masked_fill value 1-d": lambda d: x.to(d).masked_fill((x>0).to(d), T([1.]).to(d)),
    "masked_fill int mask": lambda d: x.to(d).masked_fill((x>0).long().to(d), 1.),
    "unpool1 neg": lambda d: F.max_unpool1d(torch.ones(1,1,2).to(d), T([[[-1,1]]]).to(d), 2),
    "unpool2 neg": lambda d: F.max_unpool2d(torch.ones(1,1,1,2).to(d), T([[[[-1,1]]]]).to(d), 2),
    "unpool2 far": lambda d: F.max_unpool2d(torch.ones(1,1,1,2).to(d), T([[[[0,8]]]]).to(d), 2),
    "unpool3 neg": lambda d: F.max_unpool3d(torch.ones(1,1,1,1,2).to(d), T([[[[[-1,1]]]]]).to(d), 2),
    "unpool3 far": lambda d: F.max_unpool3d(torch.ones(1,1,1,1,2).to(d), T([[[[[0,16]]]]]).to(d), 2),
    "unpool sizes": lambda d: F.max_unpool2d(torch.ones(1,1,1,2).to(d), T([[[[0]]]]).to(d), 2),
    "unpool index dtype": lambda d: F.max_unpool2d(torch.ones(1,1,1,2).to(d), T([[[[0,1]]]]).int().to(d), 2),
    "bucketize 2-d": lambda d: torch.bucketize(x.to(d), x.sort()[0].to(d)),
    "searchsorted shapes": lambda d: torch.searchsorted(x.sort()[0].to(d), torch.ones(2,2).to(d)),
    "searchsorted dtype": lambda d: torch.searchsorted(x.sort()[0].to(d), torch.ones(3,2).double().to(d)),
    "searchsorted scalar 2-d": lambda d: torch.searchsorted(x.sort()[0].to(d), 1.),
    "searchsorted side": lambda d: torch.searchsorted(x[0].sort()[0].to(d), x.to(d), right=True, side="left"),
    "renorm f16": lambda d: x.half().to(d).renorm(2, 0, 1.),
    "renorm bf16": lambda d: x.bfloat16().to(d).renorm(2, 0, 1.),
    "renorm 1-d": lambda d: x[0].to(d).renorm(2, 0, 1.),
    "renorm p": lambda d: x.to(d).renorm(-1, 0, 1.),
    "renorm max": lambda d: x.to(d).renorm(2, 0, -1.),
    "histc f16": lambda d: x.half().to(d).histc(4),
    "histc bf16": lambda d: x.bfloat16().to(d).histc(4),
    "histc int": lambda d: x.long().to(d).histc(4),
    "histc bins": lambda d: x.to(d).histc(0),
    "histc min max": lambda d: x.to(d).histc(3, 2, 1),
    "histc nan": lambda d: (x/0*0).to(d).histc(3),
    "histc inf": lambda d: (x/0).to(d).histc(3),
    "median empty": lambda d: torch.zeros(3,0).to(d).median(1),
    "max empty": lambda d: torch.zeros(3,0).to(d).max(1),
    "argmax empty": lambda d: torch.zeros(3,0).to(d).argmax(1),
    "max all empty": lambda d: torch.zeros(0).to(d).max(),
    "argmax all empty": lambda d: torch.zeros(0).to(d).argmax(),
    "int pow neg": lambda d: T([2]).to(d) ** -1,
    "bernoulli_ p": lambda d: x.to(d).clone().bernoulli_(2.),
    "normal_ std": lambda d: x.to(d).clone().normal_(0, -1),
    "uniform_ range": lambda d: x.to(d).clone().uniform_(1, 0),
    "add_ expanded": lambda d: x[:1].to(d).expand(3,4).add_(1),
    "fill_ expanded ok": lambda d: x[:1].to(d).clone().expand(3,4).fill_(1),
    "copy_ expanded": lambda d: x[:1].to(d).expand(3,4).copy_(x.to(d)),
    "mul out expanded": lambda d: torch.mul(x.to(d), 2, out=x[:1].to(d).expand(3,4)),
    "add overlap": lambda d: [y:=x.to(d).clone().view(-1), y[1:].add_(y[:-1])],
    "scatter_ expanded": lambda d: x[:1].to(d).expand(3,4).scatter_(0, T([[0]]).to(d), 1.),
    "index_copy_ expanded": lambda d: x[:1].to(d).expand(3,4).index_copy_(0, T([0]).to(d), x[:1].to(d)),
    "two indices, one far": lambda d: x.to(d)[T([0, 1]).to(d), T([0, 5]).to(d)],
    "two indices, one far below": lambda d: x.to(d)[T([0, -4]).to(d), T([0, 1]).to(d)],
    "two indices": lambda d: x.to(d)[T([0, -3]).to(d), T([-1, 3]).to(d)],
    "two indices written, one far": lambda d: x.to(d).index_put((T([0, 1]).to(d), T([0, 5]).to(d)), T(1.).to(d)),
    "index_put far below": lambda d: x.to(d).index_put((T([-4]).to(d),), T(1.).to(d)),
    "renorm of large f16": lambda d: (x * 300).half().to(d).renorm(2, 0, 1000.),
    "gather out is expanded": lambda d: torch.gather(x.to(d), 0, T([[0]]).to(d), out=torch.zeros(1, 1).to(d).expand(1, 1)),
    "take out overlaps": lambda d: [y := x.to(d).clone().view(-1), torch.take(y, T([2, 1, 0]).to(d), out=y[:3])],
    "cat out overlaps": lambda d: [y := torch.zeros(4, 2).to(d), torch.cat([y[:2], y[2:]], out=y)],
}


def outcome(f, device):
    try:
        y = f(device)
        return [t.cpu() for t in (y if isinstance(y, (list, tuple)) else [y]) if isinstance(t, torch.Tensor)]
    except Exception as error:                      # noqa: BLE001: which one is what is compared
        return error


@pytest.mark.parametrize("name", CASES)
def test_refused_where_the_cpu_refuses(name):
    want, got = outcome(CASES[name], "cpu"), outcome(CASES[name], "ocl")
    assert isinstance(got, Exception) == isinstance(want, Exception), f"cpu: {want!r}, ocl: {got!r}"
    if isinstance(want, Exception):
        return
    for a, b in zip(want, got):
        assert a.dtype == b.dtype and a.shape == b.shape
        torch.testing.assert_close(b, a, rtol=2e-2, atol=2e-2, equal_nan=True)


@pytest.mark.parametrize("call,kind,text", [
    (lambda: F.embedding(T([-1]).to("ocl"), x.to("ocl")), IndexError, "index -1 is out of range"),
    (lambda: F.embedding(T([-5]).int().to("ocl"), x.to("ocl")), IndexError, "index -5 is out of range"),
    (lambda: x.to("ocl").index_select(0, T([7]).to("ocl")), IndexError, "index 7 is out of range"),
    (lambda: x.to("ocl")[T([5]).to("ocl")], IndexError, "index 5 is out of"),
    (lambda: x.to("ocl")[T([0]).to("ocl"), T([-9]).to("ocl")], IndexError, "index -9 is out of"),
    (lambda: x.to("ocl").index_put((T([0]).to("ocl"), T([-9]).to("ocl")), T(1.).to("ocl")), IndexError, "index -9 is out of range"),
    (lambda: x.to("ocl").index_put((T([1]).to("ocl"), T([6]).to("ocl")), T(1.).to("ocl")), IndexError, "index 6 is out of range"),
    (lambda: x.to("ocl").gather(1, T([[-2]]).to("ocl")), RuntimeError, "index -2 is out of range"),
    (lambda: x.to("ocl").masked_scatter((x > -9).to("ocl"), torch.ones(3).to("ocl")), RuntimeError, "Number of elements of source"),
    (lambda: (x / 0).to("ocl").histc(3), RuntimeError, "histc: the range"),
    (lambda: T([1, 2]).to("ocl").softmax(0), NotImplementedError, "not implemented for 'Long'"),
    (lambda: x.to("ocl").long().softmax(0), NotImplementedError, "recorded aten::_softmax"),
])
def test_errors_say_what_and_are_of_torchs_type(call, kind, text):
    with pytest.raises(kind, match=text):
        call().cpu()


def test_histc_counts_more_than_its_type_can_add_one_to():
    for dtype in (torch.half, torch.bfloat16):
        assert torch.full((5000,), 1.0, dtype=dtype).to("ocl").histc(2, 0, 2).tolist()[1] == T(5000.).to(dtype).item()


@pytest.mark.parametrize("f,inside,text", [
    (lambda w, at: w.index_select(0, at), [2], "index -5 is out of range"),
    (lambda w, at: w.gather(0, at[:, None]), [1], "index -5 is out of range"),
    (lambda w, at: w.index_add(0, at, w[:1]), [0], "index -5 is out of range"),
])
def test_a_compiled_call_names_the_index_too(f, inside, text):
    fast = torch.compile(f, backend="facula")
    torch.testing.assert_close(fast(x, T(inside)), f(x, T(inside)))
    with pytest.raises(facula.Error, match=text):
        fast(x, T([-5]))


def test_shapes_of_what_is_written_are_checked_at_once():
    for write in (lambda y: y.add_(torch.ones(2, 3, 4).to("ocl")), lambda y: y.mul_(torch.ones(4, 4).to("ocl")),
                  lambda y: y.addcmul_(y, torch.ones(2, 3, 4).to("ocl")), lambda y: y.copy_(torch.ones(2, 4).to("ocl"))):
        y = x.to("ocl")
        with pytest.raises(RuntimeError, match="size|shape"):
            write(y)
        torch.testing.assert_close(y.cpu(), x)


def test_results_given_to_calls_get_the_sizes_that_data_tells():
    y, some, places = x.to("ocl"), torch.empty(0, device="ocl"), torch.empty(7, dtype=torch.long, device="ocl")[:0]
    assert torch.masked_select(y, y > 0, out=some) is some and torch.equal(some.cpu(), x[x > 0])
    torch.nonzero(y > 0, out=places)
    assert torch.equal(places.cpu(), (x > 0).nonzero())


def test_empty_tensors_are_filled_in_deterministic_mode():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3, device="ocl").isnan().all() and torch.empty_like(T([1, 2]).to("ocl")).tolist() == [2 ** 63 - 1] * 2
        assert torch.empty(2, dtype=torch.bool, device="ocl").all()
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_part_of_a_storage_is_an_error_and_no_crash():
    storage = x.to("ocl").untyped_storage()
    assert bytes(storage.cpu()[4:8]) == bytes(x.untyped_storage()[4:8])
    with pytest.raises(NotImplementedError, match="part of a storage"):
        torch.empty(0, dtype=torch.uint8, device="ocl").set_(storage[4:8]).cpu()


@pytest.mark.parametrize("draw,text", [
    (lambda y: y.exponential_(0), "lambda > 0"), (lambda y: y.cauchy_(0, -1), "sigma > 0"), (lambda y: y.log_normal_(0, 0), "std > 0"),
    (lambda y: y.geometric_(1), "in \\(0, 1\\)"), (lambda y: y.random_(4, 4), "from"), (lambda y: y.random_(0), "from")])
def test_parameters_of_random_numbers(draw, text):
    with pytest.raises(RuntimeError, match=text):
        draw(x.to("ocl"))
