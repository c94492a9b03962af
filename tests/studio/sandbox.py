"""The sandboxes' questions: functions against Python's own, derivatives against central differences, gradients of graphs, views
of tensors against index arithmetic, broadcasting, modules; wrong and hostile words are refused.  usage: sandbox.py FACULA"""
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile

from studio import Studio

facula = os.path.abspath(sys.argv[1])
seed = int(os.environ.get("FACULA_SEED", "1"))
draw = random.Random(seed)
NAMES = {"sigmoid": lambda x: 1 / (1 + math.exp(-x)), "relu": lambda x: max(x, 0.0), "exp": math.exp, "tanh": math.tanh,
         "sin": math.sin, "cos": math.cos, "atan": math.atan, "softplus": lambda x: math.log1p(math.exp(x)), "neg": lambda x: -x}


def near(a, b, most=1e-6):
    return isinstance(a, float | int) and abs(a - b) <= most * max(1, abs(b))


def functions(studio):
    listed = studio.ask("functions")["functions"]
    names = {f["name"] for f in listed}
    assert set(NAMES) <= names and {"add", "mul", "less", "max", "pow"} <= names and len(listed) > 60, len(listed)
    assert all(f["doc"] and f["text"] for f in listed)
    for f in listed:        # each can be drawn
        text = f["name"] + ("(x)" if f["inputs"] == 1 else "(x, y)")
        got = studio.ask("curve", text=text, vars=f["inputs"], low=-3, high=4)
        assert len(got["f"]) == len(got["dx"]) == got["side"] ** f["inputs"], f
    for name, of in NAMES.items():
        got = studio.ask("curve", text=f"{name}(x)", low=-5, high=5)
        step = 10 / (got["side"] - 1)
        for i in range(0, got["side"], 7):
            x, h = -5 + i * step, 1e-5
            assert near(got["f"][i], of(x), 1e-8), (name, x, got["f"][i], of(x))
            if abs(x) > 1e-3:
                assert near(got["dx"][i], (of(x + h) - of(x - h)) / (2 * h), 1e-5), (name, x)
    two = studio.ask("curve", text="x*x*y - y/2", vars=2, low=-2, high=2)
    for i in range(0, two["side"] ** 2, 37):
        x, y = (-2 + 4 * k / (two["side"] - 1) for k in (i % two["side"], i // two["side"]))
        assert near(two["f"][i], x * x * y - y / 2) and near(two["dx"][i], 2 * x * y) and near(two["dy"][i], x * x - .5)
    assert set(studio.ask("curve", text="7")["f"]) == {7}
    print(len(listed), "functions")


def expression(depth):
    """A random expression, and the same as a function in Python."""
    if depth == 0 or draw.random() < .15:
        if draw.random() < .3:
            c = round(draw.uniform(-3, 3), 2)
            return f"({c})", lambda v: c
        name = draw.choice("xyz")
        return name, lambda v: v[name]
    kind = draw.choice(["+", "-", "*", "call", "point", "neg"])
    a, fa = expression(depth - 1)
    if kind == "neg":
        return f"-({a})", lambda v: -fa(v)
    if kind in ("call", "point"):
        name = draw.choice(["tanh", "sigmoid", "sin", "atan"])
        return (f"{name}({a})" if kind == "call" else f"({a}).{name}()"), lambda v: NAMES[name](fa(v))
    b, fb = expression(depth - 1)
    return f"({a}{kind}{b})", {"+": lambda v: fa(v) + fb(v), "-": lambda v: fa(v) - fb(v), "*": lambda v: fa(v) * fb(v)}[kind]


def gradients(studio):
    got = studio.ask("graph", text="(x*x)*y + 10.0*x", values={"x": {"values": [2]}, "y": {"values": [3]}})
    steps = {s["name"]: s for s in got["steps"]}
    assert got["steps"][got["result"]]["value"] == [32] and steps["x"]["gradient"] == [22] and steps["y"]["gradient"] == [4]
    for _ in range(60):
        text, of = expression(4)
        v = {k: round(draw.uniform(-2, 2), 3) for k in "xyz"}
        got = studio.ask("graph", text=text, values={k: {"values": [x]} for k, x in v.items()})
        assert near(got["steps"][got["result"]]["value"][0], of(v)), (text, v)
        for s in got["steps"][:3]:
            h = 1e-5
            up, down = ({**v, s["name"]: v[s["name"]] + d} for d in (h, -h))
            assert near(s["gradient"][0], (of(up) - of(down)) / (2 * h), 1e-4), (text, v, s)
    got = studio.ask("graph", text="((x - y)**2).sum()", values={"x": {"shape": [2, 3], "values": [1, 2, 3, 4, 5, 6]}, "y": {"shape": [3], "values": [1, 1, 2]}})
    assert got["steps"][1]["gradient"] == [-2 * (0 + 3), -2 * (1 + 4), -2 * (1 + 4)], got["steps"][1]
    assert got["steps"][got["result"]]["value"] == [0 + 1 + 1 + 9 + 16 + 16]
    for text, value, slope in (("prod(x)", 30, [15, 10, 6]), ("x.max()", 5, [0, 0, 1]), ("min(x)", 2, [1, 0, 0]), ("mean(x)", 10 / 3, [1 / 3] * 3)):
        got = studio.ask("graph", text=text, values={"x": {"shape": [3], "values": [2, 3, 5]}})
        assert near(got["steps"][got["result"]]["value"][0], value) and all(map(near, got["steps"][0]["gradient"], slope)), (text, got)
    got = studio.ask("graph", text="relu(x)", values={"x": {"shape": [3], "values": [-1, 2, 3]}})
    assert got["steps"][0]["gradient"] == [0, 1, 1]


def layouts(studio):
    for _ in range(60):
        rank = draw.randint(1, 4)
        shape = [draw.randint(1, 4) for _ in range(rank)]
        order = draw.sample(range(rank), rank)
        what = {"shape": shape, "order": order}
        strides = [math.prod(shape[k + 1:]) for k in range(rank)]
        if draw.random() < .4:
            strides = [draw.choice([0, s, 2 * s]) for s in strides]
            what["strides"] = strides
        dims, by, offset = [shape[k] for k in order], [strides[k] for k in order], 0
        if draw.random() < .5:
            k = draw.randrange(rank)
            start, end, step = (lambda a, b: (min(a, b), max(a, b), draw.randint(1, 3)))(draw.randint(0, dims[k]), draw.randint(0, dims[k]))
            what["slice"] = [k, start, end, step]
            offset, dims[k], by[k] = (start * by[k] if start < dims[k] else 0), len(range(start, end, step)), by[k] * step
        got = studio.ask("layout", **what)
        assert (got["shape"], got["strides"]) == (dims, by), (what, got)
        want = [offset + sum(i * s for i, s in zip(index, by)) for index in itertools.product(*map(range, dims))]
        assert got["positions"] == want, (what, got["positions"], want)
        assert all(p < got["storage"] for p in got["positions"])
    for _ in range(40):
        a, b = ([draw.choice([1, 2, 3]) for _ in range(draw.randint(0, 4))] for _ in range(2))
        n = max(len(a), len(b))
        pairs = list(zip([1] * (n - len(a)) + a, [1] * (n - len(b)) + b))
        fits = all(x == y or 1 in (x, y) for x, y in pairs)
        status, _, text = studio.request("POST", "/api/ask/broadcast", {"a": a, "b": b})
        assert status == (200 if fits else 400), (a, b, text)
        if fits:
            assert json.loads(text)["shape"] == [max(p) for p in pairs], (a, b)


def modules(studio):
    got = studio.ask("modules", layers="5,3,relu", inputs=4, outputs=7)
    assert [(p["name"], p["shape"]) for p in got["params"]] == [
        ("fc1.weight", [5, 4]), ("fc1.bias", [5]), ("fc2.weight", [3, 5]), ("fc2.bias", [3]), ("fc3.weight", [7, 3]), ("fc3.bias", [7])]
    again = studio.ask("modules", text=got["text"])
    assert again["params"] == got["params"] and again["text"] == got["text"]


def make(studio, name, file, **what):
    status, _, text = studio.request("POST", "/api/make/" + name, {**what, "file": file})
    assert status == 200, (name, file, status, text)
    return text


def all_near(have, want, most=1e-5):
    assert len(have) == len(want) and all(near(a, b, most) for a, b in zip(have, want)), (have, want)


def run_code(folder, *arguments):
    """What net.c says of the inputs, by the name of the output; net.py is read only."""
    compile(open(os.path.join(folder, "net.py")).read(), "net.py", "exec")
    root = os.environ.get("FACULA_BUILD")
    if not root:
        return None
    source = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "include")
    subprocess.run(["cc", os.path.join(folder, "net.c"), "-I", source, "-I", os.path.join(root, "gen"), "-L", root, "-lfacula", "-Wl,-rpath," + root,
                    "-o", os.path.join(folder, "net")], check=True)
    said = subprocess.run([os.path.join(folder, "net"), *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout
    return {line.split(":")[0]: [float(x) for x in line.split(":")[1].split()] for line in said.splitlines()}


def files(studio):
    """An expression and a network leave the page: the files say what the page says."""
    every = ["command.txt", "graph.txt", "model.onnx", "net.c", "net.py"]
    cases = {"curve": {"text": "sin(x) * y + x ** 2", "vars": 2},
             "graph": {"text": "(x * z).relu().mean()", "values": {"x": {"shape": [4], "values": [-1, 2, -3, 4]}, "y": {"values": [7]}, "z": {"values": [2]}}},
             "repeated": {"text": "(x*y).sum() + z", "values": {"x": {"shape": [2, 2], "values": [3]}, "y": {"shape": [2], "values": [1, 2]}}},
             "modules": {"layers": "5,3,relu", "inputs": 4, "outputs": 7}}
    for name, what in cases.items():
        folder = tempfile.mkdtemp()
        question = "graph" if name == "repeated" else name
        for file in every + (["model.safetensors"] if name == "modules" else []):
            with open(os.path.join(folder, file), "wb") as f:
                f.write(make(studio, question, file, **what))
        subprocess.run([facula, "show", "model.onnx"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        commands = open(os.path.join(folder, "command.txt")).read()
        for line in commands.splitlines():
            if line.startswith("facula run"):
                subprocess.run([facula, *line.split()[1:]], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        if name == "curve":
            said = run_code(folder, "2", "0.5", "--", "3", "-1")
            if said:
                all_near(said["f"], [math.sin(2) * 3 + 4, math.sin(.5) * -1 + .25])
                all_near(said["dx"], [math.cos(2) * 3 + 4, math.cos(.5) * -1 + 1])
                all_near(said["dy"], [math.sin(2), math.sin(.5)])
        if name == "graph":
            line = commands.splitlines()[-1]
            assert line == "python net.py -1 2 -3 4 -- 2", line
            said = run_code(folder, *line.split()[2:])
            if said:
                assert set(said) == {"value", "dx", "dz"}, said
                all_near(said["value"], [3])
                all_near(said["dx"], [0, .5, 0, .5])
                all_near(said["dz"], [1.5])
        if name == "repeated":
            line = commands.splitlines()[-1]
            assert line == "python net.py 3 3 3 3 -- 1 2 -- 3", line
            page = studio.ask("graph", **what)
            value = page["steps"][page["result"]]["value"]
            assert value == [21], value
            said = run_code(folder, *line.split()[2:])
            if said:
                all_near(said["value"], value)
                all_near(said["dx"], [1, 2, 1, 2])
                all_near(said["dy"], [6, 6])
        if name == "modules":
            said = run_code(folder, "1", "2", "3", "4")
            assert said is None or len(said["y"]) == 7
    assert make(studio, "modules", "command.txt", layers="8,tanh").startswith(b"facula train toy:xor --model mlp:8,tanh --out run\n")
    assert b"train" not in make(studio, "modules", "command.txt", layers="8,tanh", inputs=3)
    again = studio.ask("modules", text=make(studio, "modules", "graph.txt", layers="8,tanh").decode())
    assert [p["name"] for p in again["params"]] == ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    status, _, text = studio.request("POST", "/api/make/curve", {"text": "erfinv(x)", "file": "model.onnx"})
    assert status == 400 and json.loads(text)["error"]["message"].startswith("ONNX opset "), text
    for name, what in [("curve", {}), ("curve", {"text": "x"}), ("curve", {"text": "x +", "file": "model.onnx"}), ("curve", {"text": "x", "file": "../x"}),
                       ("graph", {"text": "w", "file": "net.c"}), ("modules", {"file": "net.c"}), ("layout", {"file": "net.c"}), ("", {"file": "net.c"}),
                       ("modules", {"text": "no graph", "file": "model.onnx"}), ("curve", {"text": "x", "file": 3})]:
        status, _, text = studio.request("POST", "/api/make/" + name, what)
        assert status in (400, 404) and json.loads(text)["error"]["message"], (name, what, status, text)


def wrong(studio):
    bad = {"curve": [{}, {"text": 3}, {"text": ""}, {"text": "x +"}, {"text": "(x"}, {"text": "x)"}, {"text": "nobody(x)"}, {"text": "q"},
                     {"text": "tanh(x, x)"}, {"text": "x" * 501}, {"text": "(" * 200 + "x" + ")" * 200}, {"text": "-" * 300 + "x"}, {"text": "x**" * 100 + "x"},
                     {"text": "+".join("x" * 200)}, {"text": "x.__class__"}, {"text": "system(x)"}, {"text": "x;y"}, {"text": "y"}, {"text": "\u0000"},
                     {"text": "x", "low": 3, "high": 1}, {"text": "x", "low": "a"}, {"text": "x", "vars": 3}, {"text": "read('/etc/passwd')"}],
           "graph": [{}, {"text": "w"}, {"text": "x*y", "values": {"x": {"shape": [2], "values": [1, 2]}, "y": {"shape": [3], "values": [1]}}},
                     {"text": "x", "values": {"x": {"shape": [9, 9], "values": [1]}}}, {"text": "x", "values": {"x": {"values": []}}},
                     {"text": "x", "values": {"x": {"values": ["a"]}}}, {"text": "x", "values": {"x": {"values": [10**400]}}}, {"text": "x", "values": {"x": {"shape": [1, 1, 1, 1, 1], "values": [1]}}}],
           "layout": [{"shape": [0]}, {"shape": [17]}, {"shape": [16, 16, 16]}, {"shape": [2.5]}, {"shape": "2"}, {"shape": [2, 3], "order": [0, 0]},
                      {"shape": [2, 3], "order": [0]}, {"shape": [2, 3], "order": [0, 2]}, {"shape": [2], "strides": [1, 1]}, {"shape": [4], "strides": [512]},
                      {"shape": [2, 3], "slice": [0, 1]}, {"shape": [2, 3], "slice": [5, 0, 1, 1]}, {"shape": [2, 3], "slice": [0, 2, 1, 1]},
                      {"shape": [2, 3], "slice": [0, 0, 9, 1]}, {"shape": [2, 3], "slice": [0, 0, 1, 0]}],
           "broadcast": [{"a": [2], "b": [3]}, {"a": [-1]}, {"a": [1, 2, 3, 4, 5]}, {"a": [16, 1, 16, 1], "b": [1, 16, 1, 16]}],
           "modules": [{}, {"layers": "banana"}, {"layers": "600"}, {"text": "no graph"}, {"text": "x" * 40000}, {"layers": "4", "inputs": 0}]}
    for name, all_of_them in bad.items():
        for what in all_of_them:
            status, _, text = studio.request("POST", "/api/ask/" + name, what)
            assert status == 400 and json.loads(text)["error"]["message"], (name, str(what)[:80], status, text)
    assert studio.request("POST", "/api/ask/nothing", {})[0] == 404
    parts = list("xyz0123456789.+-*/()<>=^, ") + ["tanh(", ".sum()", "**", "exp", "1e999", "mean", "\u00e9", "\u0000"]
    for _ in range(400):
        text = "".join(draw.choice(parts) for _ in range(draw.randint(1, 30)))
        status = studio.request("POST", "/api/ask/" + draw.choice(["curve", "graph"]), {"text": text})[0]
        assert status in (200, 400), (text, status)


with Studio(facula) as studio:
    for test in (functions, gradients, layouts, modules, files, wrong):
        test(studio)
        print("ok", test.__name__, flush=True)
print("seed", seed)
