"""Writing in place ends what a tensor was computed from: its gradient is 0 there, and that of what is written goes on."""
import numpy as np
import pytest

import facula as fac

CONSTANT = {"fill_": (2.0,), "zero_": (), "uniform_": (), "normal_": (), "bernoulli_": (), "exponential_": (), "copy_": (np.ones((2, 3), "f4"),),
            "eq_": (2.0,), "logical_not_": ()}


@pytest.fixture(params=["eager", "lazy"], autouse=True)
def mode(request):
    if request.param == "eager":
        yield
        return
    with fac.lazy():
        yield


def leaf():
    return fac.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)


@pytest.mark.parametrize("name", CONSTANT)
def test_a_constant_takes_the_place_of_a_result(name):
    x = leaf()
    y = x * 3
    assert getattr(y, name)(*CONSTANT[name]) is y
    assert y.requires_grad and not y.is_leaf
    (y * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())       # of the product alone


@pytest.mark.parametrize("name", CONSTANT)
def test_a_leaf_is_written_without_gradients_alone(name):
    x = leaf()
    before = x.detach().numpy().copy()
    with pytest.raises(RuntimeError, match="no_grad"):
        getattr(x, name)(*CONSTANT[name])
    np.testing.assert_array_equal(x.detach().numpy(), before)
    with fac.no_grad():
        getattr(x, name)(*CONSTANT[name])
    assert x.requires_grad and x.is_leaf


@pytest.mark.parametrize("result", [False, True])
def test_a_copy_has_the_gradient_of_its_source(result):
    x, z = leaf(), fac.ones(2, 3, requires_grad=True)
    y = z * 2 if result else fac.zeros(2, 3)
    y.copy_(x)
    assert y.requires_grad and not y.is_leaf
    (y * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * x.detach().numpy())
    assert not result or z.grad is None or not np.any(z.grad.numpy())


def test_what_was_there_does_not_matter():
    x = leaf()
    y = (x - x) / (x - x)
    y.fill_(1.0)
    np.testing.assert_array_equal(y.detach().numpy(), np.ones((2, 3)))


def test_a_gradient_has_the_shape_of_its_tensor():
    x = leaf()
    for wrong in (fac.ones(1), fac.ones(3), fac.ones(2, 3, 1), fac.ones(3, 2)):
        with pytest.raises(RuntimeError, match=r"shape \(2, 3\)"):
            x.grad = wrong
    assert x.grad is None
    x.grad = fac.ones(2, 3)
    x.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 2.0))
