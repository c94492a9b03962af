"""What the command does, as objects."""
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import facula as fac


def test_summary(small):
    s = fac.summary(small)
    assert s.totals.params == 3 * 4 * 9 + 4 + 8 + 36 * 5 + 5 and s.totals.macs > 0
    assert "Total params: 305" in repr(s) and "<table>" in s._repr_html_() and len(s.layers) >= 4
    net = fac.nn.Sequential(fac.nn.Linear(3, 4), fac.nn.ReLU(), fac.nn.Linear(4, 2))
    assert fac.summary(net, (1, 3)).totals.params == 26
    assert fac.summary(net, (1, 3), convention="thop").totals["count"] > 0
    with pytest.raises(ValueError, match="convention"):
        fac.summary(net, (1, 3), convention="mine")
    with pytest.raises(ValueError, match="shape"):
        fac.summary(net)


class Twice(fac.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = fac.nn.Sequential(fac.nn.Linear(6, 6), fac.nn.ReLU())
        self.head = fac.nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.body(self.body(x)) + x)


def test_summary_of_a_module_lists_its_modules():
    text = repr(fac.summary(Twice(), (1, 6)))
    assert text.split("\n")[3].startswith("Twice ")
    for row in ("Sequential: 1-1", "Linear: 2-1", "ReLU: 2-2", "(recursive)", "Linear: 1-"):
        assert row in text, text
    graph = fac.trace(Twice(), (1, 6))
    assert "@body.0" in graph.text() and "param body.0.weight f32[6,6]" in graph.text()


class Broken(fac.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = fac.nn.Linear(2, 2)

    def forward(self, x):
        self.part(x)
        raise ZeroDivisionError


def test_a_trace_that_fails_leaves_nothing():
    with pytest.raises(ZeroDivisionError):
        fac.trace(Broken(), (1, 2))
    assert not fac.nn.module.traced and not fac._facula.is_tracing()
    assert fac._facula.set_scope(None) is None


def test_inspect_and_tables(small):
    r = fac.inspect(small)
    assert {row["op"] for row in r.ops} >= {"conv2d", "linear"} and r.inputs[0]["name"] == "x"
    assert r.layers.where(op="conv2d")[0]["macs"] == r.layers.sorted("macs")[0]["macs"]
    assert "conv2d" in repr(r.ops) and "<td>" in r.ops._repr_html_() and list(r.ops["op"])
    assert r.totals.macs == sum(r.layers["macs"])


def test_profile(small):
    p = fac.profile(small, batch=2, runs=2)
    assert p.ms > 0 and p.steps and abs(sum(p.steps["share"]) - 1) < 1e-6 and p.arena > 0


def test_verify(small):
    same = fac.verify(small, small)
    assert same and same.same == "same"
    w = small.parameters["0.weight"].numpy() * 2
    other = fac.edit(small).tensor("0.weight", w)
    different = fac.verify(small, other.graph, mode="data")
    assert not different and different.same == "different" and different.why
    with pytest.raises(ValueError, match="mode"):
        fac.verify(small, small, mode="guess")


def test_diff(small):
    other = fac.edit(small).insert("y", "relu").graph
    d = fac.diff(small, other)
    assert not d.same and any(c["kind"] == "added" for c in d.changes) and fac.diff(small, small).same


def test_edits(small, tmp_path, rng):
    x = rng.standard_normal((1, 3, 8, 8)).astype("f4")
    e = fac.edit(small).rename("x", "image").simplify()
    assert e.model().inputs[0].name == "image"
    e.save(tmp_path / "e.onnx")
    assert np.allclose(fac.load(tmp_path / "e.onnx").run(x), small.run(x), atol=1e-5)
    r = fac.edit(small).replace("op:relu", "clip(x0, 0, 0.5)")
    assert r.count == 1 and "clip" in r.text()
    assert fac.edit(small).bind("N", 2).model().inputs[0].shape[0] == 2
    half = fac.edit(small).floats("float16", keep_ports=True)
    assert half.report.tensors > 0 and np.allclose(half.run(x), small.run(x), atol=0.05)
    part = fac.edit(small).extract(outputs=["y"])
    assert np.allclose(part.run(x), small.run(x), atol=1e-6)
    done = fac.edit(small).note("author", "me")
    assert done.graph.notes()["author"] == "me" and "author" not in small.graph.notes()
    with pytest.raises(fac.ArgumentError):
        fac.edit(small).remove("nothing")


def test_rules(small, rng):
    e = fac.edit(small).rules("rule six\nmatch\n  y = relu(x)\nreplace\n  y = clip(x, 0, 6)\nend\n")
    assert e.count == 1 and e.report[0]["matches"] == 1


def test_tile(small):
    t = fac.tile(small, 4, 4, 4)
    assert t.model is not None and any(r["tiles"] > 1 for r in t.rows)
    assert fac.verify(fac.edit(small).batch(1).graph, t.model, mode="data").same != "different"
    assert fac.tile(small, 4, 4, 4, count_only=True).model is None


def test_activations(small, rng):
    x = rng.standard_normal((2, 3, 8, 8)).astype("f4")
    a = fac.activations(small, x, keep=True)
    assert len(a.rows) > 4 and a.rows[0]["op"] == "input" and abs(a.rows[0]["mean"] - x.mean()) < 1e-5
    assert any(t.shape == (2, 4, 6, 6) for t in a.tensors.values())
    assert len(fac.activations(small, [{"x": x}, {"x": x}]).rows) == len(a.rows)


def test_devices():
    d = fac.devices()
    assert d[0]["name"].startswith("cpu") and fac.Device().memory()["now"] >= 0


def test_the_command_comes_along():
    import os
    command = os.path.join(os.path.dirname(sys.executable), "facula")
    if not os.path.exists(command):
        pytest.skip("the package was not installed")
    assert b"facula" in subprocess.run([command, "version"], capture_output=True, check=True).stdout


def test_report(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")                          # no other program is asked
    net = fac.nn.Sequential(fac.nn.Conv2d(1, 4, 3), fac.nn.ReLU())
    net.export(tmp_path / "m.onnx", (1, 1, 8, 8))
    text = fac.report(tmp_path / "m.onnx", tmp_path / "a.html")
    assert text == (tmp_path / "a.html").read_text(encoding="utf-8") and "<svg" in text and 'id="measured"' not in text
    assert text == fac.report(tmp_path / "m.onnx")
    fac.report(fac.load(tmp_path / "m.onnx"), tmp_path / "b.html", batch=2, profile=True, seconds=0.01, date=True)
    measured = (tmp_path / "b.html").read_text(encoding="utf-8")
    assert 'id="measured"' in measured and "The slowest steps" in measured and "this machine, as measured" in measured
    seen = fac.report(net, None, (1, 1, 8, 8), target="2T,50G", name="<b>mine")
    assert "arithmetic 2000 GFLOP/s" in seen and "ridge 40" in seen and "<h1>&lt;b&gt;mine</h1>" in seen


def test_report_refuses(tmp_path):
    net = fac.zoo.lenet()
    with pytest.raises(TypeError, match="colour"):
        fac.report(net, colour=1)
    with pytest.raises(ValueError, match="350G,20G"):
        fac.report(net, target="fast")
    for batch in (0, -3):
        with pytest.raises(ValueError, match=f"batch of {batch}, expected 1 or more"):
            fac.report(net, batch=batch)
    with pytest.raises(fac.ArgumentError, match="batch of -3, expected 0 or more"):
        fac.summary(net, batch=-3)
    with pytest.raises(fac.ArgumentError, match="say its shape"):
        fac.report(fac.nn.ReLU())
    with pytest.raises(FileNotFoundError):
        fac.report(net, tmp_path / "no" / "page.html")


def test_report_is_the_command_s(tmp_path):
    """Without measuring, the command and the function write one page, in any locale."""
    import locale
    built = pathlib.Path(fac.__file__).parents[2] / "facula"
    command = str(built) if built.is_file() else shutil.which("facula")
    if not command:
        pytest.skip("the command is not there")
    fac.zoo.lenet().save(tmp_path / "m.onnx")
    subprocess.run([command, "report", "m.onnx", "-o", "a.html"], cwd=tmp_path, check=True, capture_output=True)
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("C", "de_DE.UTF-8"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
        except locale.Error:
            continue
        try:
            assert fac.report(tmp_path / "m.onnx", name="m.onnx") == (tmp_path / "a.html").read_text(encoding="utf-8")
        finally:
            locale.setlocale(locale.LC_NUMERIC, before)


def test_devices_outlive_their_driver(tmp_path):
    """A driver that ends the process that opens it costs the devices, not the process."""
    compiler = shutil.which("cc")
    if not compiler or not any(d["name"].startswith("opencl") for d in fac.devices()):
        pytest.skip("needs a C compiler and a loader of OpenCL")
    source = tmp_path / "ends.c"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n")
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(tmp_path / "ends.so")], check=True)
    (tmp_path / "ends.icd").write_text(f"{tmp_path / 'ends.so'}\n")
    env = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path), "OCL_ICD_FILENAMES": "", "FACULA_CACHE": str(tmp_path / "cache")}
    code = "import facula as fac; print([d['name'] for d in fac.devices()])"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == "['cpu']" and "ends the process" in done.stderr
