"""Edges where a wrong call used to give something, or a right one raised: tensors without dims, without elements, of bools."""
import math
import pickle
import types

import numpy as np
import pytest

import facula as fac


def test_places_between_arrays_and_slices():
    """A single place takes its dim away first, as in PyTorch; to NumPy it is an array, which moves the other arrays' dims."""
    a = np.arange(4 * 3 * 7, dtype="f4").reshape(4, 3, 7)
    x = fac.tensor(a)
    for at in ([1, -6], np.array([1, -6]), fac.tensor([1, -6])):
        for place in (-2, np.int64(2), fac.tensor(2)):
            assert np.array_equal(np.asarray(x[place, :, at]), a[2][:, [1, -6]])
            assert np.array_equal(np.asarray(x[place, ..., at]), a[2][:, [1, -6]])
            assert np.array_equal(np.asarray(x[place, None, :, at]), a[2][None][:, :, [1, -6]])
    assert np.array_equal(np.asarray(x[-2, a[0] > 9]), a[2][a[0] > 9])
    assert np.array_equal(np.asarray(x[[0, 1], :, 3]), a[:2, :, 3])
    y, b = fac.tensor(a), a.copy()
    y[1, :, [0, 2]] = 5.0
    b[1][:, [0, 2]] = 5.0
    assert np.array_equal(np.asarray(y), b)
    w = fac.tensor(a, requires_grad=True)
    w[1, :, [0, 2]].sum().backward()
    want = np.zeros_like(a)
    want[1][:, [0, 2]] = 1
    assert np.array_equal(np.asarray(w.grad), want)


def test_extremes_along_a_dim():
    x = fac.tensor([[True, False], [False, False]])
    for values, places in ((x.max(1), [0, 0]), (x.min(1), [1, 0])):
        assert values[1].tolist() == places and values[0].dtype is fac.bool_
    for one in (fac.tensor(3.0), fac.tensor(True)):
        for keepdim in (False, True):
            for pair in (one.max(0, keepdim), one.min(-1, keepdim), one.median(0, keepdim), one.kthvalue(1, 0, keepdim)):
                assert pair[0].shape == pair[1].shape == () and pair[0].item() == one.item() and pair[1].item() == 0
    with pytest.raises(IndexError):
        fac.tensor(3.0).max(1)


def test_medians_of_nothing():
    assert math.isnan(fac.zeros(0, 3).median().item())
    values, places = fac.zeros(2, 3, 0).median(1)
    assert values.shape == places.shape == (2, 0)
    with pytest.raises(fac.ShapeError, match="over no elements"):
        fac.zeros(2, 0).median(1)


def test_selections_without_dims():
    assert fac.tensor(4.0).index_select(0, fac.tensor([0])).item() == 4.0
    assert fac.tensor(4.0).nonzero().shape == (1, 0) and fac.tensor(0.0).nonzero().shape == (0, 0)
    assert [t.tolist() for t in fac.tensor(4.0).nonzero(as_tuple=True)] == [[0]]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "float32", "float16"])
def test_a_product_of_vectors_keeps_their_type(dtype):
    y = fac.tensor([3, 5, 7], dtype=dtype).dot(fac.tensor([1, 2, 3], dtype=dtype))
    assert y.dtype.name == dtype and y.item() == 34


@pytest.mark.parametrize("call, message", [
    (lambda x: x.flatten(2, 1), "dim 2 comes after dim 1"),
    (lambda x: x.unflatten(1, (2, 2)), r"dim 1 of size 3 cannot become \(2, 2\)"),
    (lambda x: fac.zeros(0, 2).unflatten(1, (2, 2)), r"dim 1 of size 2 cannot become \(2, 2\)"),
    (lambda x: x.unflatten(1, (-1, -1)), "cannot become"),
    (lambda x: x.repeat(2, 2), "repeat: 2 numbers for a tensor of 3 dims"),
    (lambda x: x.diag(), r"a vector or a matrix was expected, not shape \(2, 3, 4\)"),
    (lambda x: fac.tensor(1.0).diag(), "a vector or a matrix was expected"),
])
def test_shapes_that_cannot_be_are_said(call, message):
    with pytest.raises(fac.ShapeError, match=message):
        call(fac.zeros(2, 3, 4))


def test_sizes_of_what_has_no_elements():
    assert fac.zeros(3, 0, 4).unflatten(-1, (1, -1)).shape == (3, 0, 1, 4)
    for dims in ((1, -1), (0, 1)):
        with pytest.raises(IndexError):
            fac.tensor(1.0).flatten(*dims)
    with pytest.raises(IndexError):
        fac.tensor(1.0).unflatten(0, (1, 1))


# ---- words, of errors ----

@pytest.mark.parametrize("call, kind, message", [
    (lambda: fac.ones(2).to("gpu"), TypeError, r"to\('gpu'\): neither a dtype .* nor a device"),
    (lambda: fac.load(fac.nn.Linear(2, 3)), TypeError, "not a Linear: facula.trace"),
    (lambda: fac.load(3), TypeError, "not a int"),
    (lambda: fac.optim.SGD(fac.nn.Linear(2, 3), lr=0.1), TypeError, r"not a Linear: give its parameters\(\)"),
    (lambda: fac.optim.Adam(fac.nn.Linear(2, 3).weight), TypeError, "not a Parameter: give a list of it"),
    (lambda: fac.randint(10), TypeError, "a shape was expected"),
    (lambda: fac.arange(0, 10, 0), ValueError, "the step is 0"),
    (lambda: fac.nn.Sequential(fac.nn.ReLU), TypeError, r"not the class ReLU: make one, ReLU\(...\)"),
    (lambda: fac.nn.ModuleList([3]), TypeError, "a Module was expected, not 3"),
    (lambda: fac.ones(1, requires_grad=True).register_hook(3), TypeError, "something to call, not 3"),
    (lambda: fac.nn.ReLU().register_forward_hook(None), TypeError, "something to call, not None"),
    (lambda: fac.nn.BatchNorm2d(3)(fac.ones(2, 3)), fac.ShapeError, r"BatchNorm2d: an input of shape \(2, 3\), 4 dims"),
    (lambda: fac.nn.BatchNorm1d(3)(fac.ones(2, 3, 4, 5)), fac.ShapeError, "2 or 3 dims were expected"),
    (lambda: [1, 2, 3][fac.tensor([1, 2])], TypeError, "an index only if it has one element"),
])
def test_what_went_wrong_is_said(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_bytes_are_those_of_the_elements():
    assert bytes(fac.tensor([1, 2], dtype="uint8")) == b"\1\2"
    assert [5, 6, 7][fac.tensor([1])] == 6


@pytest.mark.parametrize("name", ["bfloat16", "i4", "u4", "bool", "float16", "uint64"])
def test_every_type_is_printed_and_pickled(name):
    x = fac.ones(2, 4).to(name)
    assert "1" in repr(x) or "True" in repr(x)
    assert np.asarray(x).shape == (2, 4) and np.asarray(x).astype(bool).all()
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype is x.dtype and np.array_equal(np.asarray(y), np.asarray(x))


def test_bits_are_stored_and_not_computed_with():
    x = fac.ones(2, 5)._convert("bit")
    assert x._convert("bool").tolist() == [[True] * 5] * 2 and "True" in repr(x)
    for call in (lambda: fac.ones(2, 4).to("bit"), lambda: x.to("bool"), lambda: x + x, lambda: x.reshape(10), lambda: x.sum()):
        with pytest.raises(fac.DtypeError, match="no op computes with"):
            call()


def test_what_completion_offers_is_for_users():
    offered = dir(fac)
    assert {"tensor", "nn", "optim", "load", "float32", "no_grad"} <= set(offered)
    assert not {"np", "math", "Any", "axis_of", "promote"} & set(offered)


def public(module, seen):
    """(name, object) of what a module, and the modules in it, show."""
    for name in dir(module):
        o = getattr(module, name)
        if name.startswith("_") or id(o) in seen or "facula.torch" in getattr(o, "__name__", ""):
            continue
        if isinstance(o, types.ModuleType) and o.__name__.startswith("facula"):
            seen.add(id(o))
            yield from public(o, seen)
        elif callable(o) and (getattr(o, "__module__", None) or "").startswith("facula"):
            seen.add(id(o))
            yield f"{module.__name__}.{name}", o


def test_everything_public_says_what_it_does():
    """Help of functions, classes and methods; what layers and optimizers override has its base's words."""
    base = {"forward", "extra_repr", "update", "update_all"}
    silent = []
    for name, o in public(fac, set()):
        if not (o.__doc__ or "").strip():
            silent.append(name)
        if isinstance(o, type):
            silent += [f"{name}.{k}" for k, v in vars(o).items()
                       if k[0] != "_" and k not in base and callable(v) and not (getattr(v, "__doc__", "") or "").strip()]
    assert not silent, silent
