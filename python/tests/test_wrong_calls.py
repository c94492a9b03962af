"""Random calls with wrong arguments: one exception each, and the process lives.  FACULA_CALLS says how many."""
import os
import pathlib
import subprocess
import sys

import facula as fac


def test_wrong_calls(seed):
    count = os.environ.get("FACULA_CALLS", "3000")
    path = os.pathsep.join([str(pathlib.Path(fac.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).parent / "wrong_calls.py"), count, str(seed)], text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, f"seed {seed}: {done.returncode}\n{done.stderr[-3000:]}"
