"""torch's own tests for any device on device "ocl", with pass rates and causes of failures.

    PYTORCH_TESTS=/path/to/pytorch/test python python/tests/facula_torch/torch_suites.py [--files test_view_ops test_torch ...] [--match WORDS]
                                        [--share 10] [--minutes 30] [--seconds 60] [--out results.jsonl]

The files are not in torch's wheel: they come from a checkout of PyTorch of the version that is installed.  What is made for the
device is run, one process for a file, begun again after the test that ended it.  --share N takes each Nth test.  A line of --out is
one test: name, outcome, seconds, message; what is there already is not run again.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

FILES = ("test_view_ops", "test_indexing", "test_torch", "test_nn", "test_ops")
# the first that fits a message names the cause
CAUSES = (("took too long", r"^took too long"), ("ended the process", r"^ended the process"), ("sparse tensors", r"[Ss]parse"),
          ("quantized tensors", r"[Qq]uantize|QInt|QUInt"), ("nested tensors", r"[Nn]ested"), ("complex numbers", r"[Cc]omplex"),
          ("Inductor and devices of its own list", r"Inductor|inductor|triton"), ("DLPack", r"[Dd]lpack|DLPack"),
          ("deterministic mode's alerts", r"deterministic"), ("streams and graphs", r"[Ss]tream|CUDAGraph|Graph"),
          ("not the error that was expected", r"did not raise|not raised|does not match|Regex|regex"),
          ("strides or layout", r"[Ss]tride|contiguous|memory format|layout"), ("shapes or dtypes", r"shape|size|dtype"),
          ("other numbers", r"not close|not equal|Mismatched"), ("no kernel", r"[Nn]ot implemented|NotImplemented|Could not run"))


def cause(message: str) -> str:
    return next((name for name, pattern in CAUSES if re.search(pattern, message)), "something else")


# ---- within pytest: this file is its plugin -----------------------------------------------------------------------


class TookTooLong(Exception):
    pass


def _late(*_: object) -> None:
    raise TookTooLong


def _options() -> dict:
    return json.loads(os.environ["FACULA_SUITES"])


def pytest_collection_modifyitems(config, items):
    o = _options()
    done = set(o["done"])
    mine = [i for i in items if i.cls is not None and i.cls.__name__.upper().endswith(("OCL", "PRIVATEUSE1"))]
    if o["match"]:
        mine = [i for i in mine if any(w in i.name for w in o["match"])]
    mine = mine[::o["share"]]
    items[:] = [i for i in mine if i.nodeid.split("::", 1)[1] not in done]


def _write(**line: object) -> None:
    with open(_options()["out"], "a") as f:
        f.write(json.dumps(line) + "\n")


def pytest_runtest_logstart(nodeid, location):
    _write(name=nodeid.split("::", 1)[1], outcome="begun")
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(_options()["seconds"])


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        signal.alarm(0)
        text = ""
        if report.outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            text = "took too long" if "TookTooLong" in str(report.longrepr) else (crash.message if crash else str(report.longrepr))[:500]
        _write(name=report.nodeid.split("::", 1)[1], outcome=report.outcome, seconds=round(report.duration, 2), message=text)


# ---- the processes, and what came of them -------------------------------------------------------------------------


def read(out: pathlib.Path) -> dict[str, dict]:
    """The last line of each test; one that only began ended its process."""
    tests: dict[str, dict] = {}
    for line in out.read_text().splitlines() if out.exists() else []:
        one = json.loads(line)
        tests[one["name"]] = one
    for one in tests.values():
        if one["outcome"] == "begun":
            one.update(outcome="failed", message="ended the process")
    return tests


def run(folder: pathlib.Path, file: str, out: pathlib.Path, a: argparse.Namespace, end: float) -> None:
    here = str(pathlib.Path(__file__).resolve().parent)
    while time.time() < end:
        known = len(read(out))
        options = {"done": list(read(out)), "match": a.match, "share": a.share, "seconds": a.seconds, "out": str(out)}
        env = {**os.environ, "FACULA_SUITES": json.dumps(options), "PYTORCH_TESTING_DEVICE_ONLY_FOR": "privateuse1",
               "PYTHONPATH": os.pathsep.join([here, str(folder), os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, "-c", "import facula.torch, pytest, sys; sys.exit(pytest.main(sys.argv[1:]))", "-q", "-p", "torch_suites",
                   "-p", "no:cacheprovider", "--tb=short", "--disable-warnings", str(folder / f"{file}.py")]
        try:
            done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=end - time.time())
        except subprocess.TimeoutExpired:
            return
        if done.returncode in (0, 1, 5):
            return
        if len(read(out)) == known:
            print(f"{file} does not run: {done.stdout[-1500:]}")
            return


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--files", nargs="*", default=FILES)
    p.add_argument("--match", nargs="*", default=[])
    p.add_argument("--share", type=int, default=1)
    p.add_argument("--minutes", type=float, default=600)
    p.add_argument("--seconds", type=int, default=60, help="for one test")
    p.add_argument("--out", default="torch_suites")
    a = p.parse_args()
    if "PYTORCH_TESTS" not in os.environ:
        sys.exit("torch_suites.py: PYTORCH_TESTS is the folder test/ of a checkout of PyTorch; it is not set")
    folder, end = pathlib.Path(os.environ["PYTORCH_TESTS"]).resolve(), time.time() + 60 * a.minutes
    for file in a.files:
        out = pathlib.Path(f"{a.out}.{file}.jsonl").resolve()
        run(folder, file, out, a, end)
        tests = read(out)
        counts = collections.Counter(t["outcome"] for t in tests.values())
        ran = counts["passed"] + counts["failed"]
        print(f"{file}: {counts['passed']} of {ran} pass ({100 * counts['passed'] / max(ran, 1):.1f} %), {counts['skipped']} skipped", flush=True)
        causes = collections.Counter(cause(t["message"]) for t in tests.values() if t["outcome"] == "failed")
        for name, n in causes.most_common():
            some = [k for k, t in tests.items() if t["outcome"] == "failed" and cause(t["message"]) == name]
            print(f"  {name}: {n}, as {', '.join(some[:3])}")


if __name__ == "__main__":
    main()
