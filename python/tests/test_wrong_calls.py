"""Random calls with wrong arguments: one exception each, and the process lives.  FACULA_CALLS says how many."""
import os
import pathlib
import subprocess
import sys

import facula as fac
from facula import tools


def test_wrong_calls(seed, tmp_path):
    count = os.environ.get("FACULA_CALLS", "3000")
    path = os.pathsep.join([str(pathlib.Path(fac.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    if not tools._opencl_survives():
        env["OCL_ICD_VENDORS"] = str(tmp_path)          # a driver that ends the process: no call can answer for it
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).parent / "wrong_calls.py"), count, str(seed)], text=True,
                          capture_output=True, env=env)
    assert done.returncode == 0, f"seed {seed}: {done.returncode}\n{done.stderr[-3000:]}"
