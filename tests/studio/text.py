"""The page of texts without a browser: it learns what facula train would, byte by byte; words that decide have their share; the
answer is what `facula predict` says; without data it says what it needs; wrong words are refused.
usage: text.py FACULA"""
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile

import sentences
from studio import Page, Studio

facula = os.path.abspath(sys.argv[1])


def learns(studio):
    page = Page(studio, "text", epochs=6, batch=20, lr=0.005)
    page.wait(lambda s: s["all"] == 600 and s["test"] == 100 and s["net"] == "64,3-4-5,0.5" and "lacks" not in s, kind=1)
    page.wait(lambda s: s["step"] == 0 and s["test_accuracy"] != "NaN" and 0 <= s["test_accuracy"] <= 1)
    page.do("step", n=5)
    page.wait(lambda s: s["step"] == 5 and not s["playing"])
    page.do("play")
    took = page.wait(lambda s: s["test_accuracy"] > 0.97, 12)
    page.wait(lambda s: not s["playing"] and s["step"] == 180, 12)
    print(f"97 % of made-up sentences after {took:.1f} s")
    return page


def words(page):
    """Good words speak for good, bad ones for bad; the answer is what `facula predict` says of the same weights."""
    def seen(text):
        page.do("text", text=text)
        page.wait(lambda s: s["text"] == text, kind=6)
        return page.json(6)
    good, bad = seen("the plot is brilliant , they said"), seen("The plot is BORING, they said.")
    assert good["chance"] > 0.9 and bad["chance"] < 0.1 and good["margin"] > 0 > bad["margin"]
    assert [w["word"] for w in bad["words"]] == ["the", "plot", "is", "boring", ",", "they", "said", "."]
    assert [w["known"] for w in bad["words"]] == [True] * 7 + [False]
    share = {w["word"]: w["share"] for w in good["words"]}
    assert share["brilliant"] > 0.5, share
    assert next(w["share"] for w in bad["words"] if w["word"] == "boring") < -0.5, bad
    for s in (good, bad):
        assert abs(s["chance"] - 1 / (1 + math.exp(-s["margin"]))) < 1e-4
    assert seen("")["words"] == [] and len(seen("so " * 600)["words"]) == 256
    assert seen("<img src=x onerror=alert(1)> \u00e9\U0001f600 \"quoted\"")["words"]
    near = page.do("near", word="Brilliant")
    assert near["word"] == "brilliant" and len(near["near"]) == 12
    angles = [n["cosine"] for n in near["near"]]
    assert angles == sorted(angles, reverse=True) and -1 <= angles[-1] <= angles[0] <= 1 and angles[0] > 0.3
    assert "brilliant" not in [n["word"] for n in near["near"]]


def table(page):
    page.until(lambda: 8 in page.frames)
    page.do("rows", order="file")
    page.until(lambda: page.json(8)["rows"][0]["text"] == sentences.sentence(sentences.random.Random(2))[0])
    page.do("rows", order="wrong")

    def error(r):
        return r["chance"] if r["label"] else 1 - r["chance"]
    page.until(lambda: [error(r) for r in page.json(8)["rows"]] == sorted(error(r) for r in page.json(8)["rows"]))
    page.do("rows", order="sure")
    page.until(lambda: error(page.json(8)["rows"][0]) > error(page.json(8)["rows"][-1]))
    assert len(page.json(8)["rows"]) == 40


def files(page, data):
    """The command line gives the same weights, byte by byte; ONNX the same answer; the code runs."""
    line = page.file("command.txt").decode()
    assert "--model text-cnn:64,3-4-5,0.5 " in line and "#" not in line, line
    where = tempfile.mkdtemp()
    subprocess.run([facula, *shlex.split(line.replace("DIR", data))[1:], "--quiet"], cwd=where, check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(where, "run", "model.safetensors"), "rb") as f:
        assert f.read() == page.file("model.safetensors"), "other weights than those of " + line
    text = "the cast is not good , they said"
    page.do("text", text=text)
    page.wait(lambda s: s["text"] == text, kind=6)
    said = json.loads(subprocess.run([facula, "predict", os.path.join(where, "run"), "--json", text], check=True, capture_output=True, text=True).stdout)
    chance = page.json(6)["chance"]
    assert abs((chance if said["class"] == "positive" else 1 - chance) - said["probability"]) < 1e-5, (said, chance)
    known = page.file("words.txt").decode().split("\n")
    ids = [known.index(w) for w in text.split()]
    with open(os.path.join(where, "model.onnx"), "wb") as f:
        f.write(page.file("model.onnx"))
    with open(os.path.join(where, "net.c"), "wb") as f:
        f.write(page.file("net.c"))
    build = os.environ.get("FACULA_BUILD")
    if build:
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        subprocess.run(["cc", "net.c", f"-I{root}/include", f"-I{build}/gen", f"-L{build}", f"-Wl,-rpath,{build}", "-lfacula", "-o", "net"],
                       cwd=where, check=True)
        out = subprocess.run(["./net", *map(str, ids)], cwd=where, check=True, capture_output=True, text=True).stdout
        bad, good = map(float, out.split()[1:3])
        assert abs(good - bad - page.json(6)["margin"]) < 1e-3, (out, page.json(6)["margin"])
    compile(page.file("net.py"), "net.py", "exec")


def refused(studio, page):
    wrong = [{"do": "text"}, {"do": "text", "text": "x" * 2001}, {"do": "text", "text": 3}, {"do": "near"}, {"do": "near", "word": "xyzzy"},
             {"do": "near", "word": ""}, {"do": "near", "word": "two words"}, {"do": "rows"}, {"do": "rows", "order": "x"}, {"do": "setup", "samples": 9},
             {"do": "setup", "samples": 601}, {"do": "setup", "net": "0"}, {"do": "setup", "net": "1,17"}, {"do": "setup", "net": "1,3,1"},
             {"do": "setup", "net": "1,3-3"}, {"do": "setup", "net": "1,3,.5,4"}, {"do": "setup", "net": "9" * 500}, {"do": "setup", "net": "513"},
             {"do": "setup", "net": "4,1-2-3-4-5-6-7-8-9"}, {"do": "setup", "net": "4,"}, {"do": "setup", "lr": 0}, {"do": "step", "n": 101}, {"do": "x"}, {}]
    for body in wrong:
        status, _, text = studio.request("POST", "/api/do/" + page.id, body)
        assert status == 400 and json.loads(text)["error"]["message"], (body, text)
    assert studio.request("GET", f"/api/file/{page.id}/x.onnx")[0] == 400
    page.do("setup", net="5,2,0", samples=100)
    page.wait(lambda s: s["net"] == "5,2,0" and s["samples"] == 100, kind=1)
    assert "# The page trains on the first 100" in page.file("command.txt").decode()
    page.do("setup", samples=10, batch=256, epochs=1)       # an epoch is a step
    page.do("step", n=7)
    page.wait(lambda s: s["step"] == 7 and s["epochs"] == 7)
    page.close()


def lacking(*options, says):
    with Studio(facula, *options) as studio:
        page = Page(studio, "text")
        page.wait(lambda s: says in s["lacks"], kind=1)
        status, _, text = studio.request("POST", "/api/do/" + page.id, {"do": "play"})
        assert status == 400 and says in json.loads(text)["error"]["message"], text
        assert studio.request("GET", f"/api/file/{page.id}/model.onnx")[0] == 400
        page.close()


root = tempfile.mkdtemp()
lacking(says="train.tsv and dev.tsv in DIR")
lacking("--data", root, says="SST-2")
data = os.path.join(root, "text", "sst2")
sentences.write(data)
with Studio(facula, "--data", root) as studio:
    page = learns(studio)
    words(page)
    table(page)
    files(page, data)
    refused(studio, page)
with open(os.path.join(data, "dev.tsv"), "w") as f:
    f.write("fine\t1\nbroken\n")
lacking("--data", data, says="dev.tsv:2")
print("ok: words, table, files")
