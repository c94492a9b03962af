"""Tensors: making them, memory that is shared (DLPack too), operators, indexing, printing, pickling."""
import copy
import operator
import pickle

import numpy as np
import pytest

import facula as fac

DTYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


def array(rng, shape, dtype):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return rng.integers(0 if dtype[0] == "u" else -9, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (2, 0, 3), (1, 2, 3, 4, 5)])
def test_arrays_go_in_and_come_out(rng, dtype, shape):
    a = array(rng, shape, dtype)
    for t in (fac.tensor(a), fac.from_numpy(a), fac.Tensor(a)):
        assert t.shape == shape and t.dtype == dtype and t.ndim == len(shape)
        assert np.array_equal(np.asarray(t), a) and np.asarray(t).dtype == a.dtype
        assert t.tolist() == a.tolist()


def test_from_numpy_shares_memory_and_tensor_copies():
    a = np.arange(6.0)
    shared, own = fac.from_numpy(a), fac.tensor(a)
    assert np.shares_memory(shared.numpy(), a) and not np.shares_memory(own.numpy(), a)
    a[0] = 7
    assert shared[0].item() == 7 and own[0].item() == 0


def test_the_memory_of_a_tensor_is_shown_without_a_copy():
    t = fac.tensor([1.0, 2.0, 3.0])
    a, b = np.asarray(t), np.asarray(memoryview(t))
    assert np.shares_memory(a, b)
    t += 1                                              # who looks at the memory sees writes
    assert a.tolist() == [2, 3, 4]


def test_strided_and_reversed_arrays(rng):
    a = rng.standard_normal((4, 6))
    for view in (a[::2, 1::3], a.T, a[::-1], a[:, ::-1], np.broadcast_to(a[:1], (3, 6))):
        assert np.array_equal(np.asarray(fac.from_numpy(view)), view)


def test_nested_lists():
    assert fac.tensor([[1, 2], [3, 4]]).dtype is fac.int64
    assert fac.tensor([1, 2.5]).dtype is fac.float32
    assert fac.tensor([True, False]).dtype is fac.bool_
    assert fac.tensor([]).shape == (0,)
    assert fac.tensor([[1.0], [2.0]], dtype=fac.float64).shape == (2, 1)
    for wrong in ([[1], [1, 2]], [1, [2]], ["a", 1], [b"a"], [object()]):
        with pytest.raises((ValueError, TypeError)):
            fac.tensor(wrong)
    with pytest.raises(OverflowError):
        fac.tensor([2 ** 70])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "mod", "floordiv", "pow", "lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float32", "int64"), ("int32", "int8"), ("float64", "float32")])
def test_operators_as_numpy(rng, name, dtypes):
    a, b = array(rng, (3, 1, 4), dtypes[0]), array(rng, (2, 1), dtypes[1])
    b = np.where(b == 0, b.dtype.type(3), b)
    if name == "pow":
        a, b = np.abs(a), np.abs(b)
    got = getattr(operator, name)(fac.tensor(a), fac.tensor(b))
    want = getattr(operator, name)(a, b)
    assert got.shape == want.shape
    assert np.allclose(np.asarray(got).astype(float), want.astype(float), rtol=1e-4, atol=1e-5)


def test_numbers_are_weak():
    for dtype in DTYPES[:-1]:
        t = fac.ones(2, dtype=dtype)
        assert (t + 1).dtype == dtype and (1 - t).dtype == dtype
        assert (t * 1.5).dtype == (dtype if dtype.startswith("float") else "float32")
    assert (fac.tensor([1, 2]) / 2).tolist() == [0.5, 1.0]
    assert (2 ** fac.tensor([1.0, 3.0])).tolist() == [2, 8]
    assert (7 // fac.tensor([2, -2])).tolist() == [3, -4]


def test_arrays_beside_tensors():
    t = fac.tensor([1.0, 2.0])
    assert isinstance(np.ones(2, "f4") + t, fac.Tensor) and isinstance(t * np.float32(2), fac.Tensor)


@pytest.mark.parametrize("key", [0, -1, slice(1, 3), slice(None, None, -1), slice(3, 0, -2), (slice(None), 2), (..., 1), (None, 1),
                                 (0, slice(1, 2), -1), ([2, 0],), ([0, 1], slice(None), [1, 2]), slice(2, 2), (slice(0, 4, 3), ..., None)])
def test_index_as_numpy(rng, key):
    a = rng.standard_normal((4, 3, 5))
    assert np.array_equal(np.asarray(fac.tensor(a)[key]), a[key])
    b, t = a.copy(), fac.tensor(a)
    b[key] = 9
    t[key] = 9
    assert np.array_equal(np.asarray(t), b)


def test_masks(rng):
    a = rng.standard_normal((4, 5))
    t = fac.tensor(a)
    assert np.array_equal(np.asarray(t[t > 0]), a[a > 0])
    t[t > 0] = 0.0
    assert (np.asarray(t) <= 0).all()
    for wrong in (7, (0, 0, 0), slice(0, 1), 1.5, "a"):
        if isinstance(wrong, slice):
            continue
        with pytest.raises((IndexError, TypeError)):
            t[wrong]


def test_truth_length_iteration():
    t = fac.tensor([[1, 2], [3, 4]])
    assert len(t) == 2 and [r.tolist() for r in t] == [[1, 2], [3, 4]] and 3 in t and 9 not in t
    assert bool(fac.tensor(1)) and not fac.tensor([0.0]) and float(fac.tensor(2.5)) == 2.5 and int(fac.tensor(3)) == 3
    assert [10, 20, 30][fac.tensor(1)] == 20
    with pytest.raises(ValueError):
        bool(t)
    with pytest.raises(TypeError):
        len(fac.tensor(1))


def test_repr_as_torch_prints():
    assert repr(fac.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(fac.tensor([1, 2], dtype="int32")) == "tensor([1, 2], dtype=facula.int32)"
    assert "requires_grad=True" in repr(fac.tensor([1.0], requires_grad=True))
    assert f"{fac.tensor(2.5):.2f}" == "2.50"


@pytest.mark.parametrize("dtype", DTYPES + ["bfloat16"])
def test_pickle_and_deepcopy(dtype):
    t = fac.tensor([[1, 0], [0, 1]]).to(dtype)
    for other in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t)):
        assert other.dtype is t.dtype and fac.equal(other, t)
    p = fac.nn.Parameter(fac.tensor([1.0]))
    assert isinstance(pickle.loads(pickle.dumps(p)), fac.nn.Parameter) and copy.deepcopy(p).requires_grad


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "var", "std"])
@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keep", [False, True])
def test_reductions(rng, name, dim, keep):
    a = rng.standard_normal((3, 4, 5))
    want = {"amax": np.max, "amin": np.min}.get(name) or getattr(np, name)
    more = {"ddof": 1} if name in ("var", "std") else {}
    assert np.allclose(np.asarray(getattr(fac, name)(fac.tensor(a), dim, keepdim=keep)), want(a, axis=dim, keepdims=keep, **more))


def test_shapes(rng):
    a = rng.standard_normal((2, 3, 4))
    t = fac.tensor(a)
    pairs = [(t.reshape(4, -1), a.reshape(4, -1)), (t.permute(2, 0, 1), a.transpose(2, 0, 1)), (t.transpose(0, 2), a.swapaxes(0, 2)),
             (t.T, a.T), (t.unsqueeze(1).squeeze(1), a), (t.flatten(1), a.reshape(2, 12)), (fac.cat([t, t], 1), np.concatenate([a, a], 1)),
             (fac.stack([t, t], -1), np.stack([a, a], -1)), (t.flip(1), a[:, ::-1]), (t.roll(2, 2), np.roll(a, 2, 2)),
             (t.repeat(2, 1, 1), np.tile(a, (2, 1, 1))), (fac.pad(t, (1, 2)), np.pad(a, ((0, 0), (0, 0), (1, 2)))),
             (t.expand(5, 2, 3, 4), np.broadcast_to(a, (5, 2, 3, 4))), (t.movedim(0, 2), np.moveaxis(a, 0, 2)),
             (t.repeat_interleave(2, 1), np.repeat(a, 2, 1)), (fac.tril(t), np.tril(a)), (t.cumsum(1), a.cumsum(1))]
    for got, want in pairs:
        assert got.shape == want.shape and np.allclose(np.asarray(got), want)
    assert [c.shape for c in t.chunk(2, 2)] == [(2, 3, 2)] * 2 and len(t.unbind(1)) == 3
    for wrong in (lambda: t.reshape(5, 5), lambda: t.expand(2, 2), lambda: t.permute(0, 1), lambda: fac.cat([t, t[0]]), lambda: t.sum(3)):
        with pytest.raises((fac.ShapeError, ValueError, IndexError)):
            wrong()


def test_sorting_and_searching(rng):
    a = rng.integers(0, 5, (4, 7)).astype("f4")
    t = fac.tensor(a)
    assert np.array_equal(np.asarray(t.sort(1)[0]), np.sort(a, 1)) and np.array_equal(np.asarray(t.argsort(1)), np.argsort(a, 1, kind="stable"))
    values, at = t.topk(3, 1)
    assert np.array_equal(np.asarray(values), -np.sort(-a, 1)[:, :3]) and fac.equal(t.gather(1, at), values)
    assert np.array_equal(np.asarray(t.argmax(1)), a.argmax(1)) and fac.unique(t).tolist() == np.unique(a).tolist()
    assert np.array_equal(np.asarray(fac.nonzero(t)), np.argwhere(a))
    best = t.max(1)
    assert fac.equal(best.values, t.amax(1)) and best.indices.tolist() == a.argmax(1).tolist()


def test_many_tensors_at_once():
    parts = [fac.tensor([float(i)]) for i in range(200)]
    assert fac.cat(parts).tolist() == list(range(200)) and fac.stack(parts).shape == (200, 1)


def test_errors_carry_the_message():
    with pytest.raises(fac.ShapeError, match="matmul") as e:
        fac.ones(2, 3) @ fac.ones(2, 3)
    assert isinstance(e.value, ValueError) and isinstance(e.value, fac.Error)
    with pytest.raises(fac.DtypeError):
        fac.ops.relu(fac.tensor([True]))
    with pytest.raises(TypeError, match="no attribute"):
        fac.ops.softmax(fac.ones(2), axes=1)
    with pytest.raises(AttributeError, match="no operator"):
        fac.ops.no_such_op


def test_every_operator_has_a_signature_and_a_doc():
    import inspect
    assert len(fac.ops.names()) > 150
    for name in fac.ops.names():
        f = getattr(fac.ops, name)
        assert f.__doc__ and inspect.signature(f).parameters


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
def test_all_and_any_of_nothing(dim, keepdim):
    a = np.zeros((0, 3), bool)
    for ours, numpys in ((fac.all, np.all), (fac.any, np.any)):
        got, want = np.asarray(ours(fac.tensor(a), dim, keepdim)), numpys(a, axis=dim, keepdims=keepdim)
        assert got.shape == np.shape(want) and np.array_equal(got, want)


@pytest.mark.skipif(not hasattr(object, "__buffer__") and not hasattr(bytes, "__buffer__"), reason="before CPython 3.12")
def test_bytes_without_a_shape():
    view = fac.ones(2, 3).__buffer__(0)
    assert view.nbytes == 24 and view.ndim == 1


def test_dlpack_with_numpy():
    t = fac.tensor([[1.0, 2.0], [3.0, 4.0]])
    a = np.from_dlpack(t)
    assert a.tolist() == t.tolist()
    b = np.arange(6, dtype="i4").reshape(2, 3)
    s = fac.from_dlpack(b)
    assert s.dtype is fac.int32 and np.shares_memory(s.numpy(), b)
    c = s.detach()
    del s
    assert c.tolist() == b.tolist()


def test_a_dlpack_capsule_is_taken_once():
    capsule = fac.tensor([1.0]).__dlpack__()
    assert fac.from_dlpack(capsule).tolist() == [1]
    with pytest.raises(TypeError):
        fac.from_dlpack(capsule)
    with pytest.raises(BufferError):
        fac.tensor([1.0], requires_grad=True).__dlpack__()
    assert fac.tensor([1.0]).__dlpack_device__() == (1, 0)


def test_dlpack_with_torch():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool):
        a = torch.tensor([[1, 0, 2], [0, 1, 3]]).to(dtype)
        t = fac.from_dlpack(a)
        back = torch.from_dlpack(t)
        assert back.dtype == dtype and torch.equal(back, a) and back.data_ptr() == a.data_ptr()
    strided = torch.arange(12.0).reshape(3, 4).t()
    assert fac.from_dlpack(strided).tolist() == strided.tolist()
