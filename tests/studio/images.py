"""The page of images: a drawing becomes an image as MNIST's, LeNet learns what facula train would, pictures are complete, wrong
words are refused.  Debian's Fashion-MNIST, else skipped (77).  usage: images.py FACULA"""
import json
import os
import shlex
import struct
import subprocess
import sys
import tempfile

from studio import Page, Studio

facula = os.path.abspath(sys.argv[1])
CLOTHES = "/usr/share/datasets/fashion-mnist"
if not os.path.exists(CLOTHES):
    print("no dataset-fashion-mnist: skipped")
    raise SystemExit(77)


def pictures(page, kind=7):
    """(group, label, width, height, bytes) of a frame."""
    data, all_of_them = page.frames[kind], []
    at, n = 6, struct.unpack("<H", data[4:6])[0]
    for _ in range(n):
        group, label, w, h = struct.unpack("<BBHH", data[at:at + 6])
        all_of_them.append((group, label, w, h, data[at + 6:at + 6 + w * h]))
        at += 6 + w * h
    assert at == len(data), (at, len(data))
    return all_of_them


DIGITS = {0: [[.5, .2, .32, .35, .3, .5, .35, .7, .5, .8, .65, .7, .7, .5, .66, .35, .5, .2]], 1: [[.5, .2, .5, .8]],
          2: [[.3, .35, .36, .24, .5, .2, .64, .26, .66, .38, .58, .52, .42, .66, .3, .8, .5, .79, .72, .78]],
          3: [[.33, .25, .5, .2, .63, .26, .64, .38, .5, .48, .65, .56, .67, .69, .55, .79, .42, .79, .32, .72]],
          4: [[.35, .2, .33, .35, .32, .52, .5, .54, .68, .52], [.66, .2, .65, .5, .63, .82]],
          5: [[.68, .2, .36, .2, .34, .46, .5, .42, .64, .5, .66, .66, .56, .78, .42, .79, .32, .72]],
          6: [[.58, .2, .44, .34, .36, .52, .35, .68, .44, .79, .56, .78, .64, .68, .6, .56, .48, .53, .37, .62]],
          7: [[.25, .25, .75, .25, .45, .8]],
          8: [[.6, .28, .5, .2, .39, .26, .4, .38, .5, .47, .6, .58, .62, .7, .5, .8, .38, .71, .39, .59, .5, .47, .6, .37, .6, .28]],
          9: [[.63, .35, .55, .23, .43, .24, .36, .36, .41, .48, .53, .49, .62, .4, .63, .3, .62, .5, .58, .8]]}


def digits_are_known(studio):
    """At once, without any data: each digit that is drawn is read; Play begins another network, that learns."""
    page = Page(studio, "images")
    page.wait(lambda s: s["known"] and s["classes"] == [str(k) for k in range(10)], kind=1)
    page.wait(lambda s: s["drawn"] and s["truth"] == -1 and s["step"] == 0)
    for digit, strokes in DIGITS.items():
        before = page.counts[2]
        page.do("draw", strokes=strokes)
        page.until(lambda b=before: page.counts[2] > b)
        page.wait(lambda s, d=digit: max(range(10), key=lambda k: s["chances"][k]) == d and s["chances"][d] > .5)
    page.until(lambda: 7 in page.frames)
    assert [(p[0], p[2]) for p in pictures(page)[2:]] == [(2, 28)] * 6 + [(3, 10)] * 16
    page.do("image", index=3)
    page.wait(lambda s: not s["drawn"] and s["truth"] == -1 and s["test_accuracy"] == "NaN")
    assert page.file("command.txt").startswith(b"facula evaluate model.onnx mnist")
    with open(os.path.join(tempfile.mkdtemp(), "model.onnx"), "wb") as f:
        f.write(page.file("model.onnx"))
    mnist = os.path.join(os.environ.get("FACULA_DATA", "/nowhere"), "mnist")
    if os.path.exists(mnist):
        said = subprocess.run([facula, "evaluate", f.name, "mnist", "--data", mnist, "--json"], check=True, capture_output=True, text=True).stdout
        accuracy = json.loads(said)["accuracy"]
        print(f"the network that comes with the source: {100 * accuracy:.2f} % of MNIST's test images")
        assert accuracy > .985, accuracy
    page.do("step", n=2)
    page.wait(lambda s: not s["known"] and s["classes"][9] == "ankle boot", kind=1)
    page.wait(lambda s: s["step"] == 2)
    page.do("reset", known=True)
    page.wait(lambda s: s["known"], kind=1)
    page.wait(lambda s: s["step"] == 0)
    page.close()


def what_is_seen(studio):
    page = Page(studio, "images", known=False)
    page.wait(lambda s: s["step"] == 0 and "chances" in s)
    page.wait(lambda s: s["digits"] is False and s["all"] == 60000 and len(s["classes"]) == 10, kind=1)
    chances = page.json()["chances"]
    assert abs(sum(chances) - 1) < 1e-4
    page.until(lambda: 7 in page.frames)
    seen = pictures(page)
    assert [p[2:4] for p in seen[:2]] == [(28, 28), (28, 28)] and max(seen[1][4]) == 255
    assert [(p[0], p[2]) for p in seen[2:]] == [(2, 28)] * 6 + [(3, 10)] * 16, [(p[0], p[2]) for p in seen]
    before = page.counts[7]
    page.do("image", index=7)
    page.wait(lambda s: s["index"] == 7 and page.counts[7] > before)
    page.do("step", n=20)
    page.wait(lambda s: s["step"] == 20)
    page.do("play")
    page.wait(lambda s: s["step"] > 40 and s["playing"], 6)
    took = page.wait(lambda s: s["test_accuracy"] > 0.6, 12)
    page.do("pause")
    page.wait(lambda s: not s["playing"])
    page.until(lambda: 8 in page.frames)
    wrong = pictures(page, 8)
    assert 0 < len(wrong) <= 24 and all(p[0] == 100 and p[1] >> 4 != p[1] & 15 for p in wrong)
    print(f"60 % of the test images after {took:.1f} s on 1,000 images")
    page.do("setup", samples=10, batch=256, epochs=1)       # an epoch is a step
    page.do("step", n=7)
    page.wait(lambda s: s["step"] == 7 and s["epochs"] == 7)
    page.close()


def a_drawing(studio):
    """A bar of ink on the left becomes 20 high, its mass in the middle."""
    page = Page(studio, "images")
    page.wait(lambda s: "chances" in s)
    page.do("draw", strokes=[[0.1, 0.2, 0.1, 0.7]])
    page.wait(lambda s: s["truth"] == -1)

    def inked():
        return [(i % 28, i // 28, v) for i, v in enumerate(pictures(page)[0][4]) if v]
    page.until(lambda: len({y for _, y, _ in inked()}) == 20)
    ink = inked()
    mass = sum(v for *_, v in ink)
    middle = [sum((c[k] + .5) * c[2] for c in ink) / mass for k in (0, 1)]
    assert all(abs(m - 14) <= .75 for m in middle), middle
    page.do("draw", strokes=[])
    page.until(lambda: not inked())
    wrong = [{"do": "draw"}, {"do": "draw", "strokes": 3}, {"do": "draw", "strokes": [["a", 1]]}, {"do": "draw", "strokes": [[1e9, 1e9]]},
             {"do": "draw", "strokes": [[0.1] * 5000]}, {"do": "draw", "strokes": [[]] * 101}, {"do": "image", "index": -1}, {"do": "image", "index": 10000},
             {"do": "setup", "samples": 9}, {"do": "setup", "samples": 60001}, {"do": "setup", "lr": 0}, {"do": "step", "n": 101}, {"do": "x"}, {}]
    for body in wrong:
        status, _, text = studio.request("POST", "/api/do/" + page.id, body)
        assert status == 400 and json.loads(text)["error"]["message"], (body, text)
    page.do("draw", strokes=[[0.5], [], [0.3, 0.3]])
    page.close()


def same_as_train(studio):
    """All images, one epoch of large batches: the weights are those of the command line."""
    if "FACULA_SANITIZED" in os.environ:
        return
    where = tempfile.mkdtemp()
    page = Page(studio, "images", samples=60000, batch=1024, epochs=1, seed=3)
    page.do("play")
    page.wait(lambda s: s["step"] == s["in_epoch"] == 59, 30)
    line = page.file("command.txt").decode()
    subprocess.run([facula, *shlex.split(line)[1:], "--quiet"], cwd=where, check=True, stdout=subprocess.DEVNULL)
    assert page.file("model.safetensors") == open(os.path.join(where, "run", "model.safetensors"), "rb").read(), line
    assert page.file("model.onnx")[:1] == b"\x08"
    page.close()


with Studio(facula) as studio:
    for test in (digits_are_known, what_is_seen, a_drawing, same_as_train):
        test(studio)
        print("ok", test.__name__, flush=True)
with Studio(facula, "--data", "/nowhere") as studio:
    status, _, text = studio.request("POST", "/api/open", {"page": "images"})
    assert status == 400 and b"/nowhere" in text, text
with Studio(facula, "--data", tempfile.mkdtemp()) as studio:
    Page(studio, "images").wait(lambda s: s["digits"] is False, kind=1)
mnist = os.path.join(os.environ.get("FACULA_DATA", "/nowhere"), "mnist")
if os.path.exists(mnist):
    with Studio(facula, "--data", os.path.dirname(mnist)) as studio:
        page = Page(studio, "images", samples=10000, batch=32, epochs=3)
        page.wait(lambda s: s["digits"], kind=1)
        page.do("play")
        page.wait(lambda s: s["step"] == 3 * s["in_epoch"] and not s["playing"], 30)
        for digit in (7, 1, 0):
            page.do("draw", strokes=DIGITS[digit])
            page.wait(lambda s: s["truth"] == -1)
            page.wait(lambda s, d=digit: max(range(10), key=lambda k: s["chances"][k]) == d)
            print(f"a drawn {digit}: {page.json()['chances'][digit]:.3f}")
else:
    print("drawn digits: skipped, no FACULA_DATA")
