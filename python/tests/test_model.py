"""Models: from files and the zoo, run by name and by place, photos, errors, threads."""
import os
import pathlib
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import facula as fac


@pytest.fixture
def path(small, tmp_path):
    small.save(tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


def test_ports(small):
    x, = small.inputs
    assert x.name == "x" and x.dtype is fac.float32 and x.shape == ("N", 3, 8, 8)
    assert small.outputs[0].shape == ("N", 5) and "small" in repr(small) and small.get_inputs()[0].name == "x"


def test_run_in_every_way(small, path, rng):
    x = rng.standard_normal((2, 3, 8, 8)).astype("f4")
    want = small.run(x)
    assert isinstance(want, np.ndarray) and want.shape == (2, 5)
    m = fac.load(path)
    for got in (m.run(x), m.run({"x": x}), m.run(x=x), m.run(None, {"x": x})[0], m.run(["y"], {"x": x})[0], np.asarray(m(x)),
                np.asarray(m(fac.tensor(x))), fac.load(path.read_bytes()).run(x), pickle.loads(pickle.dumps(m)).run(x)):
        assert np.allclose(got, want, atol=1e-5)
    assert m.run(x[:1]).shape == (1, 5)                      # another batch size


def test_wrong_inputs_say_what_was_expected(small):
    x = np.zeros((1, 3, 8, 8), "f4")
    for wrong, error, text in (
            (lambda: small.run(x.astype("f8")), fac.DtypeError, "float32, but float64"),
            (lambda: small.run(x[:, :2]), fac.ShapeError, "3, 8, 8"), (lambda: small.run(x[0]), fac.ShapeError, "shape"),
            (lambda: small.run(), fac.ArgumentError, "no value for input 'x'"), (lambda: small.run(x, x), fac.ArgumentError, "2 inputs"),
            (lambda: small.run(z=x), fac.ArgumentError, "no input 'z'"), (lambda: small.run(["q"], {"x": x}), fac.ArgumentError, "output 'q'"),
            (lambda: small.run("photo"), TypeError, "no tensor")):
        with pytest.raises(error, match=text):
            wrong()


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(OSError):
        fac.load(tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"nonsense" * 10)
    with pytest.raises((fac.FormatError, fac.UnsupportedError)):
        fac.load(tmp_path / "bad.onnx")
    with pytest.raises(ValueError, match="zoo"):
        fac.load("zoo:nothing")


def test_the_zoo():
    assert "resnet18" in fac.zoo.names() and "resnet18" in repr(fac.zoo.models()) and "resnet18" in dir(fac.zoo)
    m = fac.zoo.resnet18(seed=3)
    best = m.classify(np.zeros((50, 40, 3), "u1"), top=4)
    assert len(best) == 4 and best[0].probability >= best[1].probability and isinstance(best[0].label, str)
    assert "%" in repr(best) and "<table>" in best._repr_html_()
    with pytest.raises(AttributeError):
        fac.zoo.resnet19


def test_photos(tmp_path):
    pixels = np.arange(12 * 10 * 3, dtype=np.uint8).reshape(12, 10, 3)
    png = fac._facula.png(fac.tensor(pixels))
    (tmp_path / "p.png").write_bytes(png)
    m = fac.zoo.resnet18()
    a, b, c = m.prepare(pixels), m.prepare(png), m.prepare(str(tmp_path / "p.png"))
    assert a.shape == (1, 3, 224, 224) and fac.equal(a, b) and fac.equal(a, c)
    with pytest.raises(ValueError):
        m.prepare(np.zeros((3, 3)))


def test_shapes_may_be_bound(path):
    assert fac.load(path, shapes={"x": (4, 3, 8, 8)}).inputs[0].shape == (4, 3, 8, 8)
    with pytest.raises(TypeError):
        fac.load(path, shapes={"x": "big"})


def test_eight_threads_give_equal_results(small, rng):
    xs = [rng.standard_normal((n % 3 + 1, 3, 8, 8)).astype("f4") for n in range(8)]
    want = [small.run(x) for x in xs]
    wrong = []

    def work(i):
        for _ in range(30):
            if not np.array_equal(small.run(xs[i]), want[i]):
                wrong.append(i)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_opencl(small, rng, opencl):
    m = small.to("opencl")
    x = rng.standard_normal((2, 3, 8, 8)).astype("f4")
    assert np.allclose(m.run(x), small.run(x), atol=1e-4)
    t = fac.tensor(x).to("opencl")
    assert "opencl" in t.device.name and np.allclose((t * 2).cpu().numpy(), x * 2)


def test_against_onnxruntime(path, rng):
    ort = pytest.importorskip("onnxruntime")
    x = rng.standard_normal((2, 3, 8, 8)).astype("f4")
    want = ort.InferenceSession(str(path)).run(None, {"x": x})[0]
    assert np.allclose(fac.load(path).run(x), want, atol=1e-4)


def run_page_program(folder, model, *arguments):
    """net.py of the playground's pages, beside model.onnx: what it prints."""
    source = pathlib.Path(__file__).parents[2] / "src" / "studio" / "pages" / "run.py.in"
    (folder / "net.py").write_text(source.read_text())
    model.save(folder / "model.onnx")
    path = os.pathsep.join([str(pathlib.Path(fac.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "net.py", *arguments], cwd=folder, text=True, capture_output=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_the_program_of_the_pages(tmp_path):
    names = [f"x{k}" for k in range(12)]
    text = "".join(f"input {n} f32[2]\n" for n in names) + "s0 = add(x0, x1)\n"
    text += "".join(f"s{k - 1} = add(s{k - 2}, {n})\n" for k, n in enumerate(names) if k > 1) + "output y = s10\n"
    numbers = " -- ".join(f"{k} {-k}" for k in range(12)).split()
    many = fac.load(fac._facula.read_text(text))
    assert run_page_program(tmp_path, many, *numbers) == "y [ 66. -66.]"
    assert run_page_program(tmp_path, many, "3") == "y [3. 0.]"        # what is not given is 0
    for kind, numbers, want in (("f64", "1.5 2", "[1.5 2. ]"), ("i64", "5 6", "[5 6]"), ("i32", "5 6", "[5 6]"), ("f16", "1.5 2", "[1.5 2. ]"),
                                ("bool", "0 3", "[False  True]")):
        said = run_page_program(tmp_path, fac.load(fac._facula.read_text(f"input x {kind}[2]\ny = identity(x)\noutput y = y\n")), *numbers.split())
        assert said == "y " + want, (kind, said)
    said = run_page_program(tmp_path, fac.load(fac._facula.read_text("input x f32[N,2]\ny = identity(x)\noutput y = y\n")), "1", "2", "3")
    assert said == "y [[1. 2.]\n [3. 0.]]", said
