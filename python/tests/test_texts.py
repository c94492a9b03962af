"""Tensors of texts: from lists and arrays, into models and back."""
import numpy as np
import pytest

import facula as fac

WORDS = [["a", "bé"], ["", "facula\n"]]


def arrays():
    yield WORDS
    yield tuple(map(tuple, WORDS))
    yield np.array(WORDS)
    yield np.array(WORDS, dtype=object)
    yield np.array(WORDS).T.copy().T
    yield [np.array(row) for row in WORDS]
    if hasattr(getattr(np, "dtypes", None), "StringDType"):      # of NumPy 2
        yield np.array(WORDS, dtype=np.dtypes.StringDType())


@pytest.mark.parametrize("make", [fac.tensor, fac.Tensor, fac.asarray])
def test_texts_come_and_go(make):
    for given in arrays():
        t = make(given)
        assert t.dtype.name == "text" and t.shape == (2, 2) and t.tolist() == WORDS
        back = np.asarray(t)
        assert back.dtype == object and back.tolist() == WORDS


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0), (1, 1, 4)])
def test_shapes_stay(shape):
    for dtype in ("U3", object):
        given = np.full(shape, "xyz", dtype)
        if dtype is object and not given.size:
            continue                            # of nothing, nothing says that it is text
        t = fac.tensor(given)
        assert t.dtype.name == "text" and t.shape == shape and np.array_equal(np.asarray(t), given)


def test_numbers_are_read_and_written():
    assert fac.tensor(["1.5", "-2"], dtype="float32").tolist() == [1.5, -2]
    assert fac.tensor(np.array(["7"]), dtype="int64").tolist() == [7]
    assert fac.tensor([3, 4], dtype="text").tolist() == ["3", "4"]
    assert fac.tensor("one", dtype="text").item() == "one"


@pytest.mark.parametrize("wrong, error, says", [
    (["a", 1], TypeError, "a text was expected, not 1"), ([1, "a"], TypeError, "a number was expected, not 'a'"),
    (["a\0b"], ValueError, "null character"), ([["a"], "b"], ValueError, "different depths"), (["\ud800"], UnicodeError, "surrogates"),
    (np.array([1, 2], dtype=object), TypeError, "format 'O'"), (np.array(["a", 1], dtype=object), TypeError, "a text was expected"),
    (np.array([b"a"]), TypeError, "format '1s'"), ("abc", TypeError, "no tensor"), (["x", ["y"]], ValueError, "lists of different")])
def test_what_is_no_text(wrong, error, says):
    with pytest.raises(error, match=says):
        fac.tensor(wrong)


def test_numbers_written_in_words_are_refused():
    with pytest.raises(fac.Error):
        fac.tensor(["one"], dtype="float32")


def test_models_read_texts(tmp_path):
    b = fac._facula.Builder()
    x = b.input("x", "text", (2, 2))
    b.output("y", b.apply("string_concat", None, 1, [x, x])[0])
    made = fac.Model(b.finish(), name="twice")
    made.save(tmp_path / "twice.onnx")
    want = [[w + w for w in row] for row in WORDS]
    for m in made, fac.load(tmp_path / "twice.onnx"):
        for given in arrays():
            y = m.run(given)
            assert y.dtype == object and y.tolist() == want
            assert m.run(None, {"x": given})[0].tolist() == want
        with pytest.raises(fac.DtypeError, match="text, but float32"):
            m.run(np.zeros((2, 2), "f4"))
        with pytest.raises(TypeError, match="a text was expected"):
            m.run([["a", 1], ["b", "c"]])


def test_numbers_do_not_take_texts(small):
    with pytest.raises(fac.DtypeError, match="float32, but text"):
        small.run(np.full((1, 3, 8, 8), "a"))
