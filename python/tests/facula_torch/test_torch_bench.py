"""bench/facula_torch/torch_device.py in its tiny form: the networks of its cells train and infer on the device as on the cpu."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torchvision")
import facula.torch as ft  # noqa: E402

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench" / "facula_torch" / "torch_device.py"
pytestmark = [pytest.mark.ocl, pytest.mark.skipif(not BENCH.exists(), reason="no source tree")]


@pytest.mark.parametrize("device", ["cpu"] + (["opencl"] if os.environ.get("FACULA_ALL") == "1" else []))
def test_tiny(tmp_path, device):
    out = tmp_path / "torch_device.json"
    command = [sys.executable, str(BENCH), "--tiny", "--parts", "speed,check", "--device", device, "--minutes", "14", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    got = json.loads(out.read_text())
    assert all(row["good"] and row["host_calls"] == 0 for row in got["check"].values()) and len(got["check"]) == 3
    rows = got["speed"]["rows"]
    cells = [k for k in rows if "gpt2" not in k or "transformers" in sys.modules or "ratio" in rows[k]]
    assert len(cells) >= 8 and all(rows[k]["off"] < 1e-3 and rows[k]["host_calls"] == 0 for k in cells)
