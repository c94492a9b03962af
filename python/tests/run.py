"""Runs the tests on a package that was built in a folder: run.py FOLDER.  77: pytest or NumPy is not there."""
import os
import subprocess
import sys

try:
    import numpy  # noqa: F401
    import pytest  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

here = os.path.dirname(os.path.abspath(__file__))
env = {**os.environ, "PYTHONPATH": os.path.abspath(sys.argv[1])}
sys.exit(subprocess.call([sys.executable, "-m", "pytest", "-q", here, *sys.argv[2:]], env=env))
