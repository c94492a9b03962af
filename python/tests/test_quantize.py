"""Models of few bits from Python: integers, quantizers, packed files."""
import numpy as np
import pytest

import facula as fac


@pytest.fixture(scope="module")
def net():
    fac.manual_seed(4)
    net = fac.nn.Sequential(fac.nn.Conv2d(3, 16, 3, padding=1), fac.nn.ReLU(), fac.nn.Conv2d(16, 16, 3), fac.nn.ReLU(), fac.nn.Flatten(),
                            fac.nn.Linear(16 * 36, 32), fac.nn.ReLU(), fac.nn.Linear(32, 5)).eval()
    return fac.Model(fac.trace(net, (1, 3, 8, 8)), name="net")


def sqnr(y, want):
    return 10 * np.log10((want ** 2).sum() / ((y - want) ** 2).sum())


@pytest.mark.parametrize("scheme", ["int8:static", "int8:dynamic", "int4:block32"])
def test_integers(net, scheme, rng, tmp_path):
    xs = [rng.standard_normal((1, 3, 8, 8)).astype("f4") for _ in range(6)]
    q = fac.quantize(net, scheme, samples=xs)
    assert isinstance(q, fac.Quantized) and "layers in integers" in repr(q)
    done = [row for row in q.layers if not row["kept"]]
    assert done and all(row["bytes"] < row["bytes_before"] / 2 for row in done)
    x = rng.standard_normal((1, 3, 8, 8)).astype("f4")
    many = [rng.standard_normal((1, 3, 8, 8)).astype("f4") for _ in range(20)]
    error = sqnr(np.array([q.run(v) for v in many]), np.array([net.run(v) for v in many]))
    assert error > (8 if "int4" in scheme else 16), error
    q.save(tmp_path / "q.onnx")
    again = fac.load(tmp_path / "q.onnx").run(x)
    np.testing.assert_allclose(again, q.run(x), rtol=1e-4, atol=1e-4)


def test_what_stays(net, rng):
    x = rng.standard_normal((1, 3, 8, 8)).astype("f4")
    first = fac.quantize(net, "int8:dynamic").layers.rows[0]["name"]
    q = fac.quantize(net, "int8:static", samples=[{net.inputs[0].name: x}], keep=[first], calibration="entropy")
    assert [row["kept"] for row in q.layers][0] and not all(row["kept"] for row in q.layers)


def test_wrong(net):
    x = np.zeros((1, 3, 8, 8), "f4")
    for wrong in (lambda: fac.quantize(net, "int8:static"), lambda: fac.quantize(net, "int9"), lambda: fac.quantize(net, "lq:w9a9"),
                  lambda: fac.quantize(net, "int8:static", samples=[x], calibration="guess"),
                  lambda: fac.quantize(net, "int8:static", samples=[x], keep=["nowhere"]),
                  lambda: fac.quantize(net, "int8:static", samples=[x[:, :1]])):
        with pytest.raises(ValueError):
            wrong()


def test_bits(net, rng, tmp_path):
    q = fac.quantize(net, "lq:w1a2")
    x = rng.standard_normal((2, 3, 8, 8)).astype("f4")[:1]
    flat = fac.dequantize(q)
    np.testing.assert_allclose(flat.run(x), q.run(x), rtol=1e-4, atol=1e-4)
    said = fac.pack(q, tmp_path / "bits.safetensors")
    assert said.layers >= 1 and said.bytes < said.bytes_before
    np.testing.assert_allclose(fac.unpack(tmp_path / "bits.safetensors").run(x), q.run(x), rtol=1e-4, atol=1e-4)
    with pytest.raises(fac.Error):
        fac.pack(net, tmp_path / "none.safetensors")


def test_a_module(rng):
    net = fac.nn.Sequential(fac.nn.Linear(64, 32), fac.nn.ReLU(), fac.nn.Linear(32, 4)).eval()
    q = fac.quantize(net, "int8:dynamic", example=(1, 64))
    assert len(q.layers) == 2


def test_a_wrong_scheme_names_those_there_are():
    with pytest.raises(ValueError, match="lq:wWaA.*int8:static"):
        fac.quantize(fac.zoo.lenet(), "int3:foo")
