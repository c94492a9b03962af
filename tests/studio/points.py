"""The page of points without a browser: the same weights as `facula train`, byte by byte; commands are answered at once;
frames; files; what is refused.  usage: points.py FACULA"""
import importlib.util
import json
import os
import random
import shlex
import struct
import subprocess
import sys
import tempfile
import time

from studio import SLOW, Page, Studio

facula = os.path.abspath(sys.argv[1])
where = tempfile.mkdtemp()


def same_as_train(studio, epochs, **how):
    page = Page(studio, "points", epochs=epochs, **how)
    page.do("speed", epochs_per_s=0)
    page.do("play")
    page.wait(lambda s: s["step"] == epochs * s["in_epoch"] and not s["playing"])
    for name in ("points.csv", "model.safetensors", "model.onnx", "command.txt", "net.py", "net.c"):
        with open(os.path.join(where, name), "wb") as f:
            f.write(page.file(name))
    line = open(os.path.join(where, "command.txt")).read()
    assert line.count("\n") == 1, line
    args = [facula, *shlex.split(line)[1:], "--overwrite", "--quiet"]
    subprocess.run(args, cwd=where, check=True, stdout=subprocess.DEVNULL)
    for name in ("model.safetensors", "model.onnx"):
        one, two = (open(os.path.join(where, d, name), "rb").read() for d in (".", "run"))
        assert one == two, f"{name} is not that of: {line}"
    page.close()


def all_the_same(studio):
    """Settings are drawn, but each set, optimizer and activation comes."""
    seed = int(os.environ.get("FACULA_SEED", "1"))
    draw = random.Random(seed)
    sets = ["simple", "diag", "split", "xor", "circle", "spiral", "own"]
    optimizers = ["sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "adam"]
    activations = ["relu", "tanh", "sigmoid", "gelu", "linear", "tanh", "relu"]
    nets = ["16,16", "2", "", "5,4,3", "100", "8,8,8,8,8,8,8,8", "16"]
    for i, name in enumerate(sets):
        how = {"set": name, "optimizer": optimizers[i], "net": ",".join(filter(None, [nets[i], activations[i]])),
               "count": 2 * draw.randint(5, 60), "seed": draw.randint(0, 1000), "batch": draw.randint(1, 20),
               "lr": draw.choice([0.001, 0.013, 0.05]), "noise": draw.choice([0, 0.05]),
               "test_part": draw.choice([0, 0.3]), "decay": draw.choice([0, 0.001])}
        if name == "own":
            how["points"] = [[draw.random(), draw.random(), draw.randint(0, 1)] for _ in range(31)]
        same_as_train(studio, draw.randint(3, 40), **how)
    print(f"seed {seed}: {len(sets)} trainings are those of facula train, byte by byte")


def a_click_is_answered(studio):
    page = Page(studio, "points", net="100,100,tanh", count=500, batch=50, epochs=1000000)
    page.do("speed", epochs_per_s=0)
    page.do("play")
    page.wait(lambda s: s["step"] > 0)
    times = []
    for _ in range(20):
        start = time.monotonic()
        page.do("setup", lr=random.choice([0.001, 0.002]))
        times.append(time.monotonic() - start)
        time.sleep(0.01)
    times.sort()
    before, since = page.counts.get(3, 0), time.monotonic()
    time.sleep(2)
    rate = (page.counts[3] - before) / (time.monotonic() - since)
    page.close()
    print(f"a click while 2-100-100-2 trains: median {1000 * times[10]:.1f} ms, most {1000 * times[-1]:.1f}; "
          f"{rate:.0f} boundaries a second")
    assert times[10] < 0.05 * SLOW, times
    assert rate > 30 / SLOW, rate


def xor_is_learned(studio):
    page = Page(studio, "points", net="16,16,tanh", lr=0.05, batch=50, epochs=100000)
    page.do("speed", epochs_per_s=0)
    page.do("play")
    took = page.wait(lambda s: s["accuracy"] == 1)
    page.do("pause")
    start = time.monotonic()
    page.do("reset")
    boundary = None
    while not boundary or struct.unpack("<I", boundary[:4])[0] != page.json(1)["generation"] or page.json(1)["generation"] < 2:
        boundary = page.frames.get(3)
        assert time.monotonic() - start < 30
        time.sleep(0.002)
    first = time.monotonic() - start
    assert len(boundary) == 8 + 10000 + 50
    print(f"xor: all of 50 after {took:.2f} s; first boundary {1000 * first:.0f} ms after reset")
    assert took < 2 * SLOW and first < 0.1 * SLOW
    page.close()


def frames_say_what_they_should(studio):
    page = Page(studio, "points", set="diag", net="3,relu", count=20, test_part=0.25)
    page.wait(lambda s: s["step"] == 0)
    setup = page.json(1)
    assert len(setup["points"]) == 20 and sum(p[3] for p in setup["points"]) == 5
    assert [p["name"] for p in setup["params"]] == ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    for label in (0, 1):        # the labels are those of the set
        assert all((p[0] + p[1] < 0.5) == (label == 1) for p in setup["points"] if p[2] == label)
    page.do("weight", param="fc1.bias", index=2, value=3.5)
    page.do("panels", on=True)
    page.do("step", n=3)
    page.wait(lambda s: s["step"] == 3 and s["touched"])
    page.wait(lambda m: len(m["tensors"]) == 4, kind=6)
    time.sleep(.3)
    state = page.json()
    right = state["confusion"][0][0] + state["confusion"][1][1]
    assert abs(right / 15 - state["accuracy"]) < 1e-6 and sum(map(sum, state["test_confusion"])) == 5
    weights = struct.unpack("<17f", page.frames[5][4:])     # 6 + 3 + 6 + 2
    assert abs(weights[8] - 3.5) < 0.2
    layers, shown = page.frames[4][4], struct.unpack("<H", page.frames[4][5:7])[0]
    assert (layers, shown) == (1, 3) and len(page.frames[4]) == 7 + 3 * 2504
    counts = page.json(6)["tensors"][0]["weights"]["counts"]
    assert sum(counts) == 6, counts
    before = page.json(1)["generation"]
    page.do("setup", net="3,4,relu", keep=True)
    page.wait(lambda s: s["generation"] > before and struct.unpack("<I", page.frames[5][:4])[0] > before)
    after = struct.unpack("<35f", page.frames[5][4:])        # 6 + 3 + 12 + 4 + 8 + 2
    assert after[:9] == struct.unpack("<17f", struct.pack("<17f", *weights))[:9], "fc1 stays what it was"
    page.close()


def runs_in_torch(path):
    """The same training in PyTorch, where there is one: it learns."""
    text = open(path).read()
    compile(text, "torch.py", "exec")
    assert "nn.Linear(2, 4), nn.GELU(), nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 2)" in text, text
    if importlib.util.find_spec("torch"):
        os.rename(path, os.path.join(where, "in_torch.py"))     # "import torch" would find it
        out = subprocess.run([sys.executable, "in_torch.py"], cwd=where, check=True, capture_output=True, text=True).stdout
        losses = [float(line.split("loss ")[1].split(",")[0]) for line in out.splitlines()]
        assert losses[-1] < losses[0] and "us a step" in out, out


def files_can_be_used(studio):
    """The code of the network compiles and says what the page says."""
    page = Page(studio, "points", net="4,3,gelu")
    page.do("step", n=200)
    page.wait(lambda s: s["step"] == 200)
    for name in ("net.c", "net.py", "torch.py", "points.csv", "model.safetensors"):
        with open(os.path.join(where, name), "wb") as f:
            f.write(page.file(name))
    compile(open(os.path.join(where, "net.py")).read(), "net.py", "exec")
    runs_in_torch(os.path.join(where, "torch.py"))
    row, column = 25, 75        # a pixel of the boundary, its middle
    x, y = (column + 0.5) / 100, 1 - (row + 0.5) / 100
    page.wait(lambda s: s["step"] == 200)
    time.sleep(0.2)
    said = page.frames[3][8 + 100 * row + column] / 255
    root = os.environ.get("FACULA_BUILD")
    if root:
        source = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "include")
        subprocess.run(["cc", os.path.join(where, "net.c"), "-I", source, "-I", os.path.join(root, "gen"), "-L", root,
                        "-lfacula", "-Wl,-rpath," + root, "-o", os.path.join(where, "net")], check=True)
        out = subprocess.run([os.path.join(where, "net"), str(x), str(y)], cwd=where, check=True, capture_output=True, text=True)
        p = float(out.stdout.split()[1])
        assert abs(p - said) < 0.004, (p, said)
    page.close()


def wrong_words_are_refused(studio):
    page = Page(studio, "points")
    page.do("step")
    wrong = [{"do": "setup", "net": "16,banana"}, {"do": "setup", "net": "600"}, {"do": "setup", "net": "1," * 9 + "relu"},
             {"do": "setup", "count": 0}, {"do": "setup", "count": 501}, {"do": "setup", "count": 2.5}, {"do": "setup", "count": "9"},
             {"do": "setup", "lr": -1}, {"do": "setup", "lr": 1e999}, {"do": "setup", "lr": None}, {"do": "setup", "set": "../etc"},
             {"do": "setup", "set": "own", "points": []}, {"do": "setup", "points": [[1, 2]]}, {"do": "setup", "points": [[0, 0, 7]]},
             {"do": "setup", "points": [[0, 0, 0]] * 501}, {"do": "setup", "optimizer": "x" * 10000}, {"do": "setup", "set": "spiral", "count": 5},
             {"do": "setup", "keep": 1}, {"do": "weight"}, {"do": "weight", "param": "fc1.bias", "index": 99, "value": 1},
             {"do": "weight", "param": "fc1.bias", "index": 0}, {"do": "weight", "param": "nobody", "index": 0, "value": 1},
             {"do": "step", "n": 0}, {"do": "step", "n": 10 ** 9}, {"do": "speed", "epochs_per_s": -1}, {"do": "fly"}, {"do": 7}, {},
             {"do": "setup", "device": "cpu; rm"}, {"do": "setup", "batch": 0}]
    for body in wrong:
        status, _, text = studio.request("POST", "/api/do/" + page.id, json.dumps(body).replace("Infinity", "1e999"),
                                         {"Content-Type": "application/json"})
        assert status == 400 and json.loads(text)["error"]["message"], (body, status, text)
    assert page.do("step")["step"] == 2, "nothing was lost"
    for text in ("", "[]", "3", "{", "{\"do\":", "\0", "nul", "[" * 5000, "{\"do\":\"step\"} x"):
        status = studio.request("POST", "/api/do/" + page.id, text, {"Content-Type": "application/json"})[0]
        assert status == 400 or text.endswith(" x"), (text[:20], status)
    for name in ("", "model", "../points.csv", "model.onnx/", "%2e%2e/x", "command.txt%00"):
        status = studio.request("GET", f"/api/file/{page.id}/{name}")[0]
        assert status in (400, 404), (name, status)
    page.close()
    draw = random.Random(int(os.environ.get("FACULA_SEED", "1")))
    page = Page(studio, "points")
    seeds = [json.dumps(b) for b in wrong] + ['{"do":"reset","net":"4,tanh","lr":0.1}', '{"do":"play"}', '{"do":"epoch"}']
    for _ in range(300):        # fuzz: bytes of commands are changed; it answers, and goes on
        b = bytearray(draw.choice(seeds).encode())
        for _ in range(draw.randint(1, 4)):
            b[draw.randrange(len(b))] = draw.randrange(256)
        status = studio.request("POST", "/api/do/" + page.id, bytes(b), {"Content-Type": "application/json"})[0]
        assert status in (200, 400), (bytes(b), status)
    page.close()


def sessions_are_few(studio):
    pages = [Page(studio, "points") for _ in range(4)]
    status, _, text = studio.request("POST", "/api/open", {"page": "points"})
    assert status == 400 and b"most" in text, text
    pages[0].close()
    time.sleep(0.1)
    Page(studio, "points").close()
    assert studio.request("POST", "/api/do/" + pages[0].id, {"do": "step"})[0] == 404
    for p in pages[1:]:
        p.close()
    assert studio.request("POST", "/api/open", {"page": "nothing"})[0] == 400


def learning_that_breaks_says_so(studio):
    page = Page(studio, "points", optimizer="sgd", lr=1000, batch=50, net="16,16,relu")
    page.do("speed", epochs_per_s=0)
    page.do("play")
    page.wait(lambda s: "stopped" in s or s["step"] >= 500)
    if "stopped" in page.json():
        assert "learning rate" in page.json()["stopped"], page.json()
    page.close()


def resident(studio):
    with open(f"/proc/{studio.process.pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def memory_stays(studio):
    """A training with everything open, as fast as it goes: after a beginning, nothing grows.  FACULA_MINUTES: for how long."""
    if "FACULA_SANITIZED" in os.environ:
        return
    page = Page(studio, "points", set="spiral", net="16,16,tanh", count=200, batch=20, epochs=100000)
    page.do("speed", epochs_per_s=0)
    page.do("panels", on=True)
    page.do("play")
    minutes = float(os.environ.get("FACULA_MINUTES", "0"))
    seen, start = [], time.monotonic()
    while len(seen) < 5 or time.monotonic() - start < 60 * minutes:
        time.sleep(max(2, 6 * minutes))
        seen.append(resident(studio))
        if not page.json()["playing"]:
            page.do("play")     # all its epochs are over: as many again
    page.wait(lambda s: s["playing"])
    state = page.json()
    assert page.counts[3] > 5, (state, page.counts)
    print(f"memory: {seen} kB over {time.monotonic() - start:.0f} s, {state['step']} steps, {page.counts[3]} boundaries")
    assert min(seen[-3:]) - seen[1] <= 256, seen
    page.close()


with Studio(facula) as studio:
    for test in (all_the_same, frames_say_what_they_should, files_can_be_used, wrong_words_are_refused, sessions_are_few,
                 learning_that_breaks_says_so, xor_is_learned, a_click_is_answered, memory_stays):
        test(studio)
        print("ok", test.__name__, flush=True)
assert studio.process.returncode == 143, studio.process.returncode
for device in ("abacus", "a machine of a name that is long"):
    with Studio(facula, "--device", device) as studio:      # where the page begins
        status, _, text = studio.request("POST", "/api/open", {"page": "points"})
        assert status == 400 and device in json.loads(text)["error"]["message"], (device, text)
print("ok: the end")
