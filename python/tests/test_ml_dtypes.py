"""Arrays of ml_dtypes, whose elements NumPy itself does not have: in, out, and through models."""
import numpy as np
import pytest

import facula as fac

ml = pytest.importorskip("ml_dtypes")

# its name -> facula's
KNOWN = {"bfloat16": "bfloat16", "float8_e4m3fn": "f8e4m3", "float8_e4m3fnuz": "f8e4m3uz", "float8_e5m2": "f8e5m2", "float8_e5m2fnuz": "f8e5m2uz",
         "float8_e8m0fnu": "f8e8m0", "float4_e2m1fn": "f4e2m1", "int4": "int4", "uint4": "uint4", "int2": "int2", "uint2": "uint2"}
BITS = {"bfloat16": 16, "float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def every(name):
    """Every value of a type."""
    kind, bits = getattr(ml, name), BITS.get(name, 8)
    if name[:3] in ("int", "uin"):
        low = -(1 << (bits - 1)) if name[0] == "i" else 0
        return np.arange(low, low + (1 << bits)).astype(kind)
    return np.arange(1 << bits).astype("uint16" if bits == 16 else "uint8").view(kind)


@pytest.mark.parametrize("name", KNOWN)
def test_every_value_goes_in_and_comes_back(name):
    a = every(name)
    x = fac.tensor(a)
    assert x.dtype is fac.dtypes.find(KNOWN[name]) is fac.dtypes.find(a.dtype) is fac.dtypes.find(getattr(ml, name))
    assert x.dtype == a.dtype and x.shape == a.shape
    assert np.array_equal(np.asarray(x).astype("f4"), a.astype("f4"), equal_nan=True)
    back = np.asarray(x, dtype=a.dtype)
    assert back.dtype == a.dtype and np.array_equal(back.astype("f4"), a.astype("f4"), equal_nan=True)
    with pytest.raises((TypeError, ValueError)):
        np.asarray(x, dtype=a.dtype, copy=False)


@pytest.mark.parametrize("name", KNOWN)
def test_numbers_are_rounded_as_there(name):
    a = np.array([0.0, 1.0, 2.0, 1.0, 3.0], "f4") if "int" in name or "e8" in name else np.array([0.3, -1.7, 0.013, 2.6, -0.0, 5.1], "f4")
    if name == "float8_e8m0fnu":
        a = a[1:3]
    if name in ("int2", "int4"):
        a = np.array([1.0, -1.0, 0.0], "f4")
    got = fac.tensor(a).to(getattr(ml, name))
    assert np.array_equal(np.asarray(got).astype("f4"), a.astype(getattr(ml, name)).astype("f4"))


def test_strides_lists_and_scalars():
    a = np.arange(24).reshape(4, 6).astype(ml.bfloat16)
    for part in (a.T, a[::2, 1::3], a[:, ::-1], a[1], a[:0]):
        assert np.array_equal(np.asarray(fac.tensor(part)), part.astype("f4"))
    assert np.array_equal(np.asarray(fac.tensor(a.astype(ml.int4).T)), a.astype(ml.int4).T.astype("i1"))
    x = fac.tensor([a[0], a[1]])
    assert x.dtype is fac.bfloat16 and x.shape == (2, 6)
    one = fac.tensor(ml.bfloat16(1.5))
    assert one.dtype is fac.bfloat16 and one.item() == 1.5 and one.shape == ()
    assert (fac.tensor([1.0], dtype="bfloat16") + np.array([2.0], ml.bfloat16)).dtype is fac.bfloat16
    assert fac.tensor(a, dtype="float32").dtype is fac.float32


def test_memory_is_shared_where_it_can_be():
    a = np.array([1.0, 2.0], ml.bfloat16)
    x = fac.from_numpy(a)
    a[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    copied = fac.tensor(a)
    a[1] = 7.0
    assert copied.tolist() == [5.0, 2.0]


def test_types_that_facula_has_not():
    for name in ("float8_e3m4", "float8_e4m3b11fnuz", "int1"):
        if hasattr(ml, name):
            with pytest.raises(TypeError, match=f"{name}, which is no dtype"):
                fac.tensor(np.zeros(2, getattr(ml, name)))
    with pytest.raises(TypeError):
        fac.tensor(np.zeros(2, "complex64"))


def test_models_give_back_what_they_are_given():
    net = fac.trace(lambda x: (x * 2, x.to("float32")), fac.ones(2, 3).to("bfloat16"))
    model = fac.Model(net)
    given = np.array([[1, 2, 3], [4, 5, 6]], ml.bfloat16)
    for twice, wide in (model.run(given), model.run(None, {"x": given}), model.run({"x": given})):
        assert twice.dtype == ml.bfloat16 and wide.dtype == np.float32
        assert np.array_equal(twice.astype("f4"), given.astype("f4") * 2) and np.array_equal(wide, given.astype("f4"))
    assert model.run(fac.tensor(given))[0].dtype == np.float32           # of a Tensor: what NumPy has itself
