"""The page of sounds without a browser: columns are those of the textbook's sum (a sine lies where it should, as loud as it
is), blocks of a microphone give the same columns as a file, a model hears what `facula run` hears, hostile sounds are
refused.  usage: sound.py FACULA"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

from studio import Page, Studio

facula = os.path.abspath(sys.argv[1])
RATE = 8000


def wav(samples, rate=RATE):
    data = b"".join(struct.pack("<h", max(-32768, min(32767, round(32768 * x)))) for x in samples)
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16) +
            b"data" + struct.pack("<I", len(data)) + data)


def tone(hertz, seconds, amplitude=0.5, rate=RATE):
    return [amplitude * math.sin(2 * math.pi * hertz * i / rate) for i in range(int(seconds * rate))]


def put(studio, page, name, data, good=True):
    status, _, text = studio.request("POST", f"/api/put/{page.id}/{name}", data)
    assert (status == 200) == good, (name, status, text)
    return json.loads(text)


def columns(page):
    """Of the newest frame: generation, number of the first, columns as bytes."""
    data = page.frames[9]
    generation, first, count, rows = struct.unpack("<IIHH", data[:12])
    assert len(data) == 12 + count * rows
    return generation, first, [data[12 + c * rows:12 + (c + 1) * rows] for c in range(count)]


class Collector:
    """All columns that come, by their numbers; frames are looked at while they pass."""

    def __init__(self, page):
        self.page, self.seen = page, {}
        page.frames = self

    # the thread of the page puts frames here
    def __setitem__(self, kind, data):
        self.seen.setdefault(kind, []).append(data)

    def __getitem__(self, kind):
        return self.seen[kind][-1]

    def __contains__(self, kind):
        return kind in self.seen

    def get(self, kind, usual=None):
        return self.seen[kind][-1] if kind in self.seen else usual

    def columns(self, generation):
        out = {}
        for data in list(self.seen.get(9, [])):
            g, first, count, rows = struct.unpack("<IIHH", data[:12])
            for c in range(count if g == generation else 0):
                out[first + c] = data[12 + c * rows:12 + (c + 1) * rows]
        return out


def spectrum(samples, length):
    """Steps of half a decibel of one frame, 255 full scale: a periodic Hann window and the textbook's sum."""
    out = []
    hann = [0.5 - 0.5 * math.cos(2 * math.pi * i / length) for i in range(length)]
    x = [a * b for a, b in zip(samples, hann)]
    for k in range(length // 2 + 1):
        re = sum(v * math.cos(2 * math.pi * k * i / length) for i, v in enumerate(x))
        im = sum(v * math.sin(2 * math.pi * k * i / length) for i, v in enumerate(x))
        power = re * re + im * im
        out.append(255 + 20 * math.log10(max(power, 1e-30) / (length * length / 16)))
    return out


def a_file(studio):
    page = Page(studio, "sound", length=128, part=2, speed=0)
    seen = Collector(page)
    r = random.Random(1)
    samples = [a + 0.1 * r.uniform(-1, 1) for a in tone(1000, 1)]
    samples = [round(32768 * x) / 32768 for x in samples]
    put(studio, page, "wav", wav(samples))
    page.wait(lambda s: s["source"] == "file" and s["rate"] == RATE and s["hop"] == 64 and s["bins"] == 65 and s["seconds"] == 1, kind=1)
    generation = page.json(1)["generation"]
    page.wait(lambda s: s["at"] == 1 and not s["playing"] and s["columns"] >= 120)
    n = page.json()["columns"]
    page.until(lambda: len(seen.columns(generation)) == n)
    got = seen.columns(generation)
    for c in (0, 1, 57, n - 1):
        want = spectrum(samples[64 * c:64 * c + 128], 128)
        assert all(abs(max(0, w) - g) <= 1.01 for w, g in zip(want, got[c])), (c, want, list(got[c]))
        assert max(range(65), key=lambda k: got[c][k]) == 16, "1000 Hz"
        assert abs(got[c][16] - (255 + 40 * math.log10(0.5))) < 6, "half of full scale"
    # at its own speed half a second takes half a second; another scale begins the picture anew
    page.do("setup", mels=32, length=512, speed=4)
    page.wait(lambda s: s["bins"] == 32 and s["generation"] > generation, kind=1)
    generation = page.do("play")["generation"]
    took = page.wait(lambda s: s["generation"] == generation and s["at"] == 1 and not s["playing"], 3)
    assert took > 0.15, took
    page.do("seek", seconds=0.5)
    page.wait(lambda s: s["at"] == 0.5)
    page.do("setup", speed=1)
    page.do("play")
    page.do("pause")
    page.wait(lambda s: 0.5 <= s["at"] < 1 and not s["playing"])
    page.close()
    return samples, got


def a_microphone(studio, samples, got):
    """Blocks of odd sizes give the columns of the file."""
    page = Page(studio, "sound", length=128, part=2)
    seen = Collector(page)
    page.do("microphone", rate=RATE)
    page.wait(lambda s: s["source"] == "microphone", kind=1)
    generation = page.json(1)["generation"]
    at = 0
    while at < len(samples):
        n = min(len(samples) - at, 1 + 977 * at % 1500)
        put(studio, page, "block", struct.pack(f"<{n}f", *samples[at:at + n]))
        at += n
    page.wait(lambda s: s["at"] == 1 and s["columns"] == len(got))
    page.until(lambda: len(seen.columns(generation)) == len(got))
    assert seen.columns(generation) == got, "a microphone sees what a file shows"
    page.do("pause")
    put(studio, page, "block", struct.pack("<100f", *samples[:100]))
    page.wait(lambda s: s["at"] == 1 and not s["playing"])
    # hours of it: what is kept is bounded
    page.do("play")
    for _ in range(40):
        put(studio, page, "block", struct.pack(f"<{2 * RATE}f", *(samples * 2)))
    page.wait(lambda s: s["at"] == 81, 6)
    page.close()


def hostile(studio):
    page = Page(studio, "sound")
    good = wav(tone(440, 0.1))
    bad = {"nothing": b"", "no sound": b"hello", "a page": b"<html>", "cut": good[:30], "no samples": wav([]), "no rate": wav(tone(440, .1), 0),
           "a slow rate": wav(tone(440, .1), 10), "a wild rate": wav(tone(440, .1), 500000),
           "not a number": good[:20] + struct.pack("<HHIIHH", 3, 1, RATE, 4 * RATE, 4, 32) + b"data" + struct.pack("<I", 8) + struct.pack("<2f", 1, math.nan),
           "infinity": good[:20] + struct.pack("<HHIIHH", 3, 1, RATE, 4 * RATE, 4, 32) + b"data" + struct.pack("<I", 4) + struct.pack("<f", math.inf),
           "no channels": good[:22] + struct.pack("<H", 0) + good[24:], "very many channels": good[:22] + struct.pack("<H", 65535) + good[24:],
           "no bits": good[:34] + struct.pack("<H", 0) + good[36:], "a header that lies": good[:16] + struct.pack("<I", 0xfffffff0) + good[20:]}
    r = random.Random(5)
    for name, data in bad.items():
        answer = put(studio, page, "wav", data, good=False)
        assert answer["error"]["message"], name
    for _ in range(300):            # anything may be in it: an answer, whatever it says
        data = bytearray(good)
        for _ in range(r.randint(1, 8)):
            data[r.randrange(44)] = r.randrange(256)
        status, _, text = studio.request("POST", f"/api/put/{page.id}/wav", bytes(data))
        assert status in (200, 400), (status, text, data[:44])
    put(studio, page, "wav", good)
    put(studio, page, "block", b"\0" * 4, good=False)       # no microphone
    page.do("microphone", rate=RATE)
    for name, data in {"odd": b"\0" * 5, "empty": b"", "nan": struct.pack("<f", math.nan), "long": b"\0" * (4 * 2 * RATE + 4)}.items():
        put(studio, page, "block", data, good=False)
    put(studio, page, "block", struct.pack("<2000f", *[3e38, -3e38] * 1000))      # loud, but numbers
    page.wait(lambda s: s["columns"] > 0)
    put(studio, page, "x", good, good=False)
    assert studio.request("POST", f"/api/put/{'0' * 32}/wav", good)[0] == 404
    assert studio.request("POST", f"/api/put/{page.id}/wav", good, key=False)[0] == 401
    assert studio.request("POST", f"/api/put/{page.id}/wav", good, headers={"Origin": "http://evil.example"})[0] == 403
    wrong = [{"do": "setup", "length": 100}, {"do": "setup", "length": 8192}, {"do": "setup", "part": 0}, {"do": "setup", "length": 64, "mels": 200},
             {"do": "setup", "speed": -1}, {"do": "seek", "seconds": 1}, {"do": "microphone"}, {"do": "microphone", "rate": 10}, {"do": "x"}, {}]
    for body in wrong:
        status, _, text = studio.request("POST", "/api/do/" + page.id, body)
        assert status == 400 and json.loads(text)["error"]["message"], (body, text)
    page.wait(lambda s: s["length"] == 512 and s["mels"] == 0, kind=1)
    assert "facula studio model.onnx" in page.json(1)["deaf"]
    assert studio.request("GET", f"/api/file/{page.id}/model.onnx")[0] == 400
    page.close()
    other = Page(studio, "points")
    assert studio.request("POST", f"/api/put/{other.id}/wav", good)[0] == 400
    other.close()


def a_model(where):
    """Two pitches, learned in a few epochs."""
    for name, base in (("low", 200), ("high", 1500)):
        os.makedirs(os.path.join(where, "tones", name))
        for k in range(8):
            with open(os.path.join(where, "tones", name, f"{k}.wav"), "wb") as f:
                f.write(wav(tone(base + 20 * k, 0.5)))
    subprocess.run([facula, "train", "sound-folder", "--data", "tones", "--rate", str(RATE), "--seconds", "0.5", "--mels", "24", "--epochs", "12",
                    "--batch", "4", "--augment", "none", "--threads", "1", "--out", "run", "--quiet"], cwd=where, check=True, stdout=subprocess.DEVNULL)
    return os.path.join(where, "run", "model.onnx")


def heard(model, where):
    with Studio(facula, model) as studio:
        page = Page(studio, "sound", speed=0)
        page.wait(lambda s: s["model_rate"] == RATE and s["window"] == RATE // 2 and "deaf" not in s, kind=1)
        for name, hertz, rate in (("low", 250, RATE), ("high", 1550, RATE), ("low", 250, 44100)):
            samples = wav(tone(hertz, 0.5, rate=rate), rate)
            before = page.json()["generation"]
            put(studio, page, "wav", samples)
            page.wait(lambda s, b=before: s["generation"] > b and s["heard"] == 0.5 and s["at"] == 0.5)
            page.wait(lambda s, n=name: s["classes"][0]["name"] == n and len(s["classes"]) == 2)
            classes = page.json()["classes"]
            assert abs(sum(c["p"] for c in classes) - 1) < 1e-4
            path = os.path.join(where, "one.wav")
            with open(path, "wb") as f:
                f.write(samples)
            said = json.loads(subprocess.run([facula, "run", model, path, "--json"], check=True, capture_output=True, text=True).stdout)
            top = said["sounds"][0]["windows"][0]["top"][0] if "sounds" in said else said["windows"][0]["top"][0]
            assert abs(top.get("probability", top.get("p")) - classes[0]["p"]) < 1e-3, (said, classes)
        assert b"facula run" in page.file("command.txt") and page.file("model.onnx")[:1] == b"\x08" and b"fac_onnx_load" in page.file("net.c")
        page.close()


with Studio(facula) as studio:
    a_microphone(studio, *a_file(studio))
    hostile(studio)
with tempfile.TemporaryDirectory() as where:
    heard(a_model(where), where)
with Studio(facula, "zoo:lenet") as studio:
    page = Page(studio, "sound")
    page.wait(lambda s: "a model for sounds" in s["deaf"], kind=1)
print("ok: columns, microphone, hostile sounds, a model")
