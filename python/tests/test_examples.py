"""The scripts of examples/python run, learn and draw."""
import os
import pathlib
import subprocess
import sys

import pytest

import facula as fac

folder = pathlib.Path(__file__).parents[2] / "examples" / "python"


def run(tmp_path, name, *args):
    path = os.pathsep.join([str(pathlib.Path(fac.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, str(folder / name), *args], cwd=tmp_path, text=True, capture_output=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_points(tmp_path):
    said = run(tmp_path, "points.py", "p.svg", "40")
    right = {line.split()[0]: float(line.split()[-1].rstrip("%")) for line in said.splitlines()}
    assert len(right) == 6 and min(right[n] for n in ("simple", "diag", "split", "xor")) > 85, said
    assert (tmp_path / "p.svg").read_text().count("<polyline") == 6


def test_lenet(tmp_path):
    data = os.path.join(os.environ.get("FACULA_DATA", "/nowhere"), "mnist")
    if not os.path.isdir(data):
        pytest.skip("MNIST is not here (FACULA_DATA)")
    said = run(tmp_path, "lenet.py", data, "l.svg", "2", "6000")
    assert float(said.split("test_accuracy ")[1].split(",")[0]) > 0.85, said
    assert "<polyline" in (tmp_path / "l.svg").read_text() and (tmp_path / "l.onnx").stat().st_size > 100000


def test_sentiment(tmp_path):
    said = run(tmp_path, "sentiment.py", "made", "s.svg", "4", "2000")
    assert float(said.split("test_accuracy ")[1].split(",")[0]) > 0.9, said
    assert "<polyline" in (tmp_path / "s.svg").read_text() and "good: the film is not very funny" in said


def test_sentiment_of_reviews(tmp_path):
    data = os.path.join(os.environ.get("FACULA_DATA", "/nowhere"), "text", "sst2")
    if not os.path.isdir(data):
        pytest.skip("SST-2 is not here (FACULA_DATA)")
    said = run(tmp_path, "sentiment.py", data, "s.svg", "4", "4000")
    assert float(said.split("test_accuracy ")[1].split(",")[0]) > 0.6, said
