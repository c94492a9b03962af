"""Data that a call refuses: OpenCL devices tell it later than the cpu, the results are the same."""
from __future__ import annotations

import pytest
import torch
import torch.nn as nn

import facula.torch  # noqa: F401

pytestmark = [pytest.mark.ocl, pytest.mark.filterwarnings("ignore:device ocl")]


@pytest.fixture(params=[0, 1])
def there(request):
    """The default device and one more: of facula's own cpu and OpenCL, if there are both."""
    if request.param >= torch.ocl.device_count():
        pytest.skip("there is one device")
    yield f"ocl:{request.param}"
    torch.ocl.set_ahead(0)


REFUSE = {
    "an index": (lambda x: x.index_select(0, torch.tensor([9], device=x.device)), "index 9 is out of range"),
    "a value of a mask": (lambda x: x.clone().index_put_((x > 1,), torch.ones(3, device=x.device)), "shape mismatch"),
    "on the host": (lambda x: x.long().softmax(0), "not implemented for 'Long'"),
}


@pytest.mark.parametrize("earlier", [False, True], ids=["at once", "after a call of the host"])
@pytest.mark.parametrize("name", REFUSE)
def test_a_call_that_refuses_its_data_fails_alone(name, earlier, there):
    call, text = REFUSE[name]
    x, w = torch.arange(4.0, device=there), torch.full((4,), 2.0, device=there)
    (x + w).cpu()
    w.add_(1)
    before = x * 5
    if earlier:
        before = torch.igamma(before + 1, w) * 0 + before       # torch's kernel
    bad = call(x)
    after, on, new = before + w, bad + 1, torch.zeros(3, device=there)
    new.copy_(after[:3])
    w.mul_(2)
    x.add_(bad.sum())
    with pytest.raises((RuntimeError, IndexError), match=text):
        bad.cpu()
    assert before.tolist() == [0, 5, 10, 15] and after.tolist() == [3, 8, 13, 18] and new.tolist() == [3, 8, 13]
    assert w.tolist() == [6.0] * 4 and x.tolist() == [0, 1, 2, 3]
    for lost in (bad, on):
        with pytest.raises(RuntimeError, match="were lost"):
            lost.cpu()
    assert (x + w).tolist() == [6, 7, 8, 9]


def classifier(there):
    """A network with an embedding, its step, and all that steps write."""
    torch.manual_seed(3)
    net = nn.Sequential(nn.Embedding(9, 6), nn.Flatten(), nn.Linear(12, 4)).to(there)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(words, classes):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(words), classes)
        loss.backward()
        opt.step()
        return loss
    return net, step, lambda: [p.detach() for p in net.parameters()]


@pytest.mark.parametrize("wrong", ["words", "classes"])
def test_a_step_that_refuses_its_data_leaves_no_wrong_parameters(wrong, there):
    """The program keeps them by then and writes over them."""
    net, step, written = classifier(there)
    words, classes = torch.tensor([[1, 2], [3, 8]], device=there), torch.tensor([0, 3], device=there)
    for _ in range(6):
        step(words, classes).item()
    before = [p.cpu() for p in written()]
    (words if wrong == "words" else classes)[1] = 77
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        step(words, classes).item()
    for p, q in zip(written(), before):
        try:
            assert torch.equal(p.cpu(), q)
        except RuntimeError as error:
            assert "were lost" in str(error)
    (words if wrong == "words" else classes)[1] = 2
    with torch.no_grad():
        for p, q in zip(net.parameters(), before):
            p.copy_(q)
    again = classifier("cpu")[0]
    again.load_state_dict(net.state_dict())
    torch.testing.assert_close(net(words).detach().cpu(), again(words.cpu()).detach(), rtol=1e-5, atol=1e-5)


def test_a_write_in_place_is_not_done_twice(there):
    """What the refused segment may have written has its old contents, or none."""
    w, x = torch.zeros(40, device=there), torch.arange(40., device=there)
    at = torch.tensor([3, 4], device=there)

    def run():
        w.add_(1)
        return x.index_select(0, at) * w[:2]
    for k in range(6):
        assert run().tolist() == [3.0 * (k + 1), 4.0 * (k + 1)]
    at[1] = 99
    with pytest.raises(IndexError, match="index 99 is out of range"):
        run().cpu()
    try:
        assert w.tolist() in ([6.0] * 40, [7.0] * 40)
    except RuntimeError as error:
        assert "were lost" in str(error)
    w.fill_(2)
    at[1] = 5
    assert run().tolist() == [9.0, 15.0]


def test_segments_that_nothing_waited_for(there):
    """What they wrote is lost if data was wrong, and so is nothing else."""
    torch.ocl.set_ahead(4)
    x, w = torch.arange(4., device=there), torch.ones(4, device=there)
    apart = (w * 3).cpu()
    kept = w * 5
    torch.ocl.synchronize()
    bad = x.index_select(0, torch.tensor([9], device=there))
    with pytest.raises(IndexError, match="index 9 is out of range"):
        for k in range(12):
            bad = bad.sin() + k
        bad.cpu()
    with pytest.raises(RuntimeError, match="were lost"):
        (bad + 1).cpu()
    assert kept.tolist() == [5] * 4 and apart.tolist() == [3] * 4 and (x + w).tolist() == [1, 2, 3, 4]
    many = x
    for k in range(12):
        many = many + w
    assert many.tolist() == [12, 13, 14, 15]


def test_what_reads_a_failed_write_fails_too(there):
    """Else a parameter would be moved by a momentum that lacks its gradient."""
    x, buf, p, q = (torch.arange(k, k + 4.0, device=there) for k in range(4))
    (x + buf + p + q).cpu()
    bad = x.index_select(0, torch.tensor([9], device=there))
    buf.mul_(0.5)
    buf.add_(bad.sum())
    p.add_(buf)
    q.add_(p)
    p.fill_(7)
    x.add_(p)
    with pytest.raises(IndexError, match="index 9 is out of range"):
        bad.cpu()
    assert buf.tolist() == [0.5, 1, 1.5, 2] and q.tolist() == [3, 4, 5, 6] and p.tolist() == [7] * 4 and x.tolist() == [7, 8, 9, 10]


def test_what_was_lost_can_be_written_anew(there):
    x = torch.arange(4., device=there)
    bad = x.index_select(0, torch.tensor([5, 9, 1, 0], device=there))
    with pytest.raises(IndexError):
        bad.cpu()
    bad.fill_(2)
    bad[1] = 7
    assert bad.tolist() == [2, 7, 2, 2]
