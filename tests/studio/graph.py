"""The page of graphs without a browser: layers and costs are those of `facula inspect`, numbers those of a run, steps are fewer than
layers; a model of the command line; wrong names.  usage: graph.py FACULA"""
import json
import os
import subprocess
import sys
import tempfile

from studio import Page, Studio

facula = os.path.abspath(sys.argv[1])


def as_inspect_says(page, model):
    page.wait(lambda s: s["layers"], kind=1)
    setup = page.json(1)
    said = json.loads(subprocess.run([facula, "inspect", model, "--json"], check=True, capture_output=True, text=True).stdout)
    layers = said["layers"]
    assert [x["name"] for x in setup["layers"]] == [x["name"] for x in layers]
    for a, b in zip(setup["layers"], layers):
        assert abs(a["macs"] - b["macs"]) <= 1e-8 * b["macs"] and all(r < setup["layers"].index(a) for r in a["reads"]), (a, b)
    return setup


def numbers_and_steps(page, setup):
    got = page.do("values", seed=5)["tensors"]
    names = {t["name"] for t in got}
    assert sum(x["name"] in names for x in setup["layers"]) > 0.9 * len(setup["layers"])
    for t in got:
        assert t["min"] <= t["mean"] <= t["max"] and len(t["counts"]) == 24, t
        assert abs(t["mean"]) <= max(abs(t["min"]), abs(t["max"])) and 0 <= t["zeros"] <= 1
    relus = [t for t in got if "relu" in t["name"]]
    assert relus and all(t["min"] == 0 for t in relus)
    assert page.do("values", seed=5)["tensors"] == got != page.do("values", seed=6)["tensors"]
    steps = page.do("plan")["steps"]
    assert 0 < len(steps) < len(setup["layers"]) and all(s["seconds"] > 0 for s in steps if s["op"] == "conv2d")
    assert abs(sum(s["macs"] for s in steps) / setup["macs"] - 1) < 0.02


def with_gradients(page, plain):
    """The same layers, then those of the loss and of a gradient for each parameter; the plan is that of a training."""
    before = len(page.do("plan")["steps"])
    page.do("load", model="lenet", gradients=True)
    page.wait(lambda s: s["gradients"], kind=1)
    setup = page.json(1)
    n = setup["forward"]
    assert n == len(plain["layers"])        # names end in a number of the graph's own
    for a, b in zip(setup["layers"], plain["layers"]):
        assert a["name"].rsplit("_", 1)[0] == b["name"].rsplit("_", 1)[0] and a["reads"] == b["reads"], (a, b)
    backward = setup["layers"][n:]
    assert len(backward) >= 5 and {"conv2d_grad_w", "conv2d_grad_x"} <= {x["op"] for x in backward}, [x["op"] for x in backward]
    assert setup["macs"] > 2.5 * plain["macs"] and all(r < k + n for k, x in enumerate(backward) for r in x["reads"])
    values = {t["name"]: t for t in page.do("values", seed=5)["tensors"]}
    assert sum(x["name"] in values for x in backward) > 0.5 * len(backward)
    assert len(page.do("plan")["steps"]) > before
    page.do("load", model="lenet", gradients=False)
    page.wait(lambda s: not s["gradients"] and s["forward"] == len(s["layers"]), kind=1)


def files(page):
    """What is taken along runs, and gives what the model gives."""
    assert page.file("command.txt").decode().startswith("facula inspect 'zoo:lenet'")
    where = tempfile.mkdtemp()
    for name in ("model.onnx", "net.c", "net.py"):
        with open(os.path.join(where, name), "wb") as f:
            f.write(page.file(name))
    build = os.environ.get("FACULA_BUILD")
    if build:
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        subprocess.run(["cc", "net.c", f"-I{root}/include", f"-I{build}/gen", f"-L{build}", f"-Wl,-rpath,{build}", "-lfacula", "-o", "net"],
                       cwd=where, check=True)
        out = subprocess.run(["./net", "1", "0.5"], cwd=where, check=True, capture_output=True, text=True).stdout
        assert len(out.split()) == 11 and all(abs(float(x)) < 1e3 for x in out.split()[1:]), out
        env = {**os.environ, "PYTHONPATH": os.path.join(build, "python")}
        if os.path.exists(os.path.join(build, "python", "facula", "_facula.abi3.so")) and subprocess.run(
                [sys.executable, "-c", "import numpy, facula"], env=env, capture_output=True).returncode == 0:
            said = subprocess.run([sys.executable, "net.py", "1", "0.5"], cwd=where, env=env, check=True, capture_output=True, text=True).stdout
            got = [float(x) for x in said.replace("[", " ").replace("]", " ").split()[1:11]]
            assert all(abs(a - float(b)) < 1e-4 for a, b in zip(got, out.split()[1:])), (said, out)


with Studio(facula) as studio:
    page = Page(studio, "graph")
    setup = as_inspect_says(page, "zoo:lenet")
    numbers_and_steps(page, setup)
    assert "resnet18" in setup["models"] and "given" not in setup["models"]
    with_gradients(page, setup)
    files(page)
    page.do("load", model="squeezenet1_1")
    page.wait(lambda s: s["model"] == "squeezenet1_1", kind=1)
    numbers_and_steps(page, as_inspect_says(page, "zoo:squeezenet1_1"))
    for wrong in ("", "given", "vgg16", "/etc/passwd", "../x.onnx", "x" * 1000, "zoo:lenet"):
        assert studio.request("POST", "/api/do/" + page.id, {"do": "load", "model": wrong})[0] == 400, wrong
    assert page.json(1)["model"] == "squeezenet1_1" and page.do("values")["tensors"], "what was there stays"
    page.close()
where = os.path.join(tempfile.mkdtemp(), "<i>net.onnx")
subprocess.run([facula, "export", "zoo:lenet", "-o", where], check=True, stdout=subprocess.DEVNULL)
with Studio(facula, where) as studio:
    page = Page(studio, "graph")
    setup = as_inspect_says(page, where)
    assert setup["given"] == where and setup["model"] == "given" and len(page.do("plan")["steps"]) > 3
print("ok: layers, numbers, steps")
