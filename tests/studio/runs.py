"""The page of runs: trainings of other processes are followed line by line, half lines wait, a log that begins anew is read
anew, and a training can be stopped.  usage: runs.py FACULA"""
import json
import os
import subprocess
import sys
import tempfile
import time

from studio import SLOW, Page, Studio

facula = os.path.abspath(sys.argv[1])
where = tempfile.mkdtemp()


def run_of(page, name):
    for index, run in enumerate(page.json()["runs"]):
        if run["name"] == name:
            return index, run
    return None, None


def train(name, *options):
    return subprocess.Popen([facula, "train", "toy:spiral", "--model", "mlp:32,32,tanh", "--quiet", "--threads", "1", "--out",
                             os.path.join(where, name), *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def a_finished_one(studio):
    assert train("first", "--epochs", "30").wait() == 0
    page = Page(studio, "runs")
    page.wait(lambda s: any(r["name"] == "first" and r["done"] and r["epochs"] == 30 for r in s["runs"]))
    index, run = run_of(page, "first")
    rows = page.do("rows", run=index, **{"from": 0})["rows"]
    lines = [json.loads(x) for x in open(os.path.join(where, "first", "log.jsonl"))]
    assert len(rows) == len(lines) == 30
    names = ["epoch", "step", "lr", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "images_per_s", "seconds"]
    for row, line in zip(rows, lines):
        for name, x in zip(names, row):
            assert x == "NaN" or abs(x - line[name]) <= 1e-8 * abs(line[name]), (name, x, line)
    assert page.do("rows", run=index, **{"from": 28})["rows"] == rows[28:]
    about = page.do("about", run=index)
    assert about["about"]["set"] == "toy:spiral" and about["confusion"]["counts"]
    page.close()


def one_that_is_written(studio):
    """Lines of a log come as they are written: how late the page knows of them."""
    folder = os.path.join(where, "written")
    os.makedirs(folder)
    open(os.path.join(folder, "run.json"), "w").write('{"set": "<img src=x onerror=alert(1)>", "model": "mlp"}')
    page, late = Page(studio, "runs"), []
    with open(os.path.join(folder, "log.jsonl"), "w") as log:
        page.wait(lambda s: any(r["name"] == "written" for r in s["runs"]))
        for k in range(1, 21):
            log.write(f'{{"epoch":{k},"step":{k},"train_')
            log.flush()
            time.sleep(0.06)
            assert (run_of(page, "written")[1] or {}).get("epochs", 0) == k - 1, "half a line is none"
            log.write(f'loss":{1 / k}}}\n')
            log.flush()
            late.append(page.wait(lambda s, k=k: any(r["name"] == "written" and r["epochs"] == k for r in s["runs"])))
        log.write('no JSON\n{"epoch":1}\n[]\n' + "x" * 9000 + '\n{"epoch":21,"step":21}\n')
        log.flush()
        page.wait(lambda s: any(r["name"] == "written" and r["epochs"] == 21 for r in s["runs"]))
    turn = run_of(page, "written")[1]["epochs_turn"]
    with open(os.path.join(folder, "new"), "w") as log:
        log.write('{"epoch":1,"step":5,"train_loss":2}\n')
    os.replace(os.path.join(folder, "new"), os.path.join(folder, "log.jsonl"))
    page.wait(lambda s: any(r["name"] == "written" and r["epochs"] == 1 and r["epochs_turn"] > turn for r in s["runs"]))
    late.sort()
    print(f"a line is known after {1000 * late[10]:.0f} ms (median), {1000 * late[-1]:.0f} ms at most")
    assert late[10] < 0.2 * SLOW
    for wrong in ({"do": "rows"}, {"do": "rows", "run": 99}, {"do": "rows", "run": -1}, {"do": "rows", "run": 0, "from": 10 ** 9},
                  {"do": "stop", "run": "../x"}, {"do": "about", "run": 1.5}, {"do": "delete", "run": 0}):
        assert studio.request("POST", "/api/do/" + page.id, wrong)[0] == 400, wrong
    page.close()


def files(studio):
    page = Page(studio, "runs")
    page.wait(lambda s: any(r["name"] == "first" and r["done"] for r in s["runs"]))
    k = run_of(page, "first")[0]
    for name in ("model.onnx", "model.safetensors"):
        with open(os.path.join(where, "first", name), "rb") as f:
            assert page.file(f"{k}.{name}") == f.read(), name
    assert f"facula train --resume '{where}/first'" in page.file(f"{k}.command.txt").decode()
    assert b"fac_onnx_load" in page.file(f"{k}.net.c") and b"fac.load" in page.file(f"{k}.net.py")
    for wrong in ("model.onnx", f"{k}", f"{k}.", f"{k}.run.json", f"{k}.../model.onnx", "99.model.onnx", "-1.model.onnx", "x.net.c"):
        assert studio.request("GET", f"/api/file/{page.id}/{wrong}")[0] == 400, wrong
    page.close()


def one_that_is_stopped(studio):
    long = train("long", "--epochs", "10000000")
    page = Page(studio, "runs")
    page.wait(lambda s: any(r["name"] == "long" and r["epochs"] > 0 for r in s["runs"]), 6)
    page.do("stop", run=run_of(page, "long")[0])
    code, said = long.wait(60), long.stderr.read()
    assert code == 130 and "--resume" in said, (code, said)
    assert not os.path.exists(os.path.join(where, "long", "stop"))
    open(os.path.join(where, "first", "stop"), "w").close()
    again = train("first", "--epochs", "5", "--overwrite")
    assert again.wait(60) == 0, "a wish of another time stops nothing"
    page.close()


def seconds_of(pid):
    """The processor time of a process."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def what_watching_costs(studio):
    """An open page follows a training: the command's processor time beside that of the training."""
    page, run = Page(studio, "runs"), train("watched", "--epochs", "10000000", "--points", "500")
    page.wait(lambda s: any(r["name"] == "watched" and r["epochs"] > 0 for r in s["runs"]), 6)
    before = seconds_of(studio.process.pid), seconds_of(run.pid)
    time.sleep(3)
    watching, training = (seconds_of(p) - b for p, b in zip((studio.process.pid, run.pid), before))
    page.do("stop", run=run_of(page, "watched")[0])
    run.communicate(timeout=60)
    print(f"watching took {1000 * watching:.0f} ms of {training:.2f} s of training")
    page.close()


with Studio(facula, "--watch", where) as studio:
    for test in (a_finished_one, one_that_is_written, files, one_that_is_stopped, what_watching_costs):
        test(studio)
        print("ok", test.__name__, flush=True)
wrong = subprocess.run([facula, "train", "toy:xor", "--epochs", "1", "--quiet"], capture_output=True)
assert wrong.returncode == 0
with Studio(facula, "--watch", "/nowhere/at/all") as studio:
    status, _, text = studio.request("POST", "/api/open", {"page": "runs"})
    assert status == 400 and b"/nowhere/at/all" in text
with Studio(facula) as studio:
    page = Page(studio, "runs")
    page.wait(lambda s: s["folder"] == "" and s["runs"] == [])
