"""The stubs are those that scripts/python_stubs.py writes, and the package is well typed."""
import os
import pathlib
import subprocess
import sys

import pytest

import facula as fac

root = pathlib.Path(__file__).parents[2]


def test_stubs_are_as_they_are_written():
    done = subprocess.run([sys.executable, str(root / "scripts" / "python_stubs.py"), "--check"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(pathlib.Path(fac.__file__).parents[1])})
    assert done.returncode == 0, done.stderr


def test_types():
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_users_see_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text("import facula as fac\nx: fac.Tensor = fac.ones(2) + 1\nreveal_type(x.sum())\ny: int = x.sum()\n")
    package = pathlib.Path(fac.__file__).parents[1]
    found = {"PATH": ""}                    # mypy finds an installed package by itself, and refuses to be told
    if package.name != "site-packages":
        found["MYPYPATH"] = str(package)
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "use.py"], cwd=tmp_path, capture_output=True,
                          text=True, env=found)
    assert 'use.py:3: note: Revealed type is "facula._facula.Tensor"' in done.stdout, done.stdout
    assert "use.py:4: error" in done.stdout
