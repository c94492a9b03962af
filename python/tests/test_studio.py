"""facula.studio() without a browser: the page of a training that goes on here gets its curves and weights, and can stop it."""
import http.client
import json
import struct
import threading
import time

import numpy as np
import pytest

import facula as fac


@pytest.fixture
def open_studio():
    opened = []

    def make(*args, **options):
        try:
            opened.append(fac.studio(*args, **options))
        except fac.UnsupportedError as e:
            pytest.skip(str(e))
        return opened[-1]
    yield make
    for s in opened:
        s.close()


class Reader:
    """The page Notebook as a browser has it open; the newest frame of each kind."""

    def __init__(self, studio):
        self.port = int(studio.address.split(":")[2].split("/")[0])
        self.key = studio.address.split("#key=")[1].split("&")[0]
        self.frames = {}
        self.id = self.post("/api/open", {"page": "notebook"})["id"]
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self.connection.request("GET", "/api/stream/" + self.id, headers={"X-Facula-Key": self.key})
        self.stream = self.connection.getresponse()
        threading.Thread(target=self.read, daemon=True).start()

    def post(self, path, body):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        c.request("POST", path, json.dumps(body), {"X-Facula-Key": self.key, "Content-Type": "application/json"})
        r = c.getresponse()
        text = r.read()
        assert r.status == 200, text
        return json.loads(text)

    def read(self):
        try:
            while len(head := self.stream.read(5)) == 5:
                n, kind = struct.unpack("<IB", head)
                self.frames[kind] = self.stream.read(n)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return

    def wait(self, kind, good):
        start = time.monotonic()
        while time.monotonic() - start < 20:
            if kind in self.frames and good(json.loads(self.frames[kind])):
                return json.loads(self.frames[kind])
            time.sleep(0.01)
        raise AssertionError(f"the last frame: {self.frames.get(kind)}")


def data(n=400):
    r = np.random.default_rng(1)
    x = r.uniform(-1, 1, (n, 2)).astype("f4")
    return fac.data.TensorDataset(fac.tensor(x), fac.tensor((x[:, 0] > x[:, 1]).astype("i8")))


def test_a_training_is_seen(open_studio):
    net = fac.nn.Sequential(fac.nn.Linear(2, 8), fac.nn.Tanh(), fac.nn.Linear(8, 2))
    s = open_studio(net)
    assert s.address.startswith("http://127.0.0.1:") and "page=notebook" in s.address and s.address in s._repr_html_().replace("&amp;", "&")
    page = Reader(s)
    first = page.wait(6, lambda w: len(w["tensors"]) == 4)
    assert [t["name"] for t in first["tensors"]] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    trainer = fac.Trainer(net, fac.optim.SGD(net.parameters(), lr=0.5), studio=s)
    trainer.fit(data(), data(), epochs=4, batch_size=20, quiet=True)
    s.weights(net)
    seen = page.wait(2, lambda t: {c["name"]: c["count"] for c in t["curves"]}.get("test_loss") == 4)
    curves = {c["name"]: c for c in seen["curves"]}
    assert curves["loss"]["count"] == 80 and len(curves["loss"]["x"]) == 80 and curves["loss"]["x"][:3] == [1, 2, 3]
    assert curves["loss"]["y"][-1] < curves["loss"]["y"][0]
    assert curves["test_accuracy"]["x"][-1] == 80 and abs(curves["test_accuracy"]["y"][-1] - trainer.history["test_accuracy"][-1]) < 1e-6
    weight = np.asarray(net[0].weight.detach())
    now = page.wait(6, lambda w: abs(w["tensors"][0]["norm"] - np.linalg.norm(weight)) < 1e-5)["tensors"][0]
    assert now["shape"] == [8, 2] and sum(now["counts"]) == 16
    for key, value in (("min", weight.min()), ("max", weight.max()), ("mean", weight.mean()), ("std", weight.std())):
        assert abs(now[key] - value) < 1e-5, key
    # the picture: a byte for each number, 127 is 0, 255 the largest size
    start = time.monotonic()
    want = np.floor(127.5 + 127.5 * weight / np.abs(weight).max())
    while True:
        frame = page.frames[7]
        got = np.frombuffer(frame[12:28], "u1").reshape(8, 2)
        if np.abs(got - want).max() <= 1:
            break
        assert time.monotonic() - start < 20, (got, want)
    assert struct.unpack("<HBBHH", frame[4:12]) == (4, 0, 0, 2, 8)


def test_stop(open_studio):
    net = fac.nn.Sequential(fac.nn.Linear(2, 4), fac.nn.ReLU(), fac.nn.Linear(4, 2))
    s = open_studio(net)
    page = Reader(s)
    assert not s.stopped
    threading.Timer(0.3, lambda: page.post("/api/do/" + page.id, {"do": "stop"})).start()
    start = time.monotonic()
    fac.Trainer(net, studio=s).fit(data(), epochs=10**9, batch_size=50, quiet=True)
    assert s.stopped and time.monotonic() - start < 20
    page.wait(2, lambda t: t["stopped"])


def test_curves_of_ones_own(open_studio):
    s = open_studio()
    page = Reader(s)
    for k in range(20000):
        s.log(rate=1 / (k + 1))
    s.log(30000, rate=float("nan"), other=3)
    c = {c["name"]: c for c in page.wait(2, lambda t: len(t["curves"]) == 2)["curves"]}
    x = c["rate"]["x"]
    assert c["rate"]["count"] == 20001 and 250 <= len(x) <= 501 and x[-1] == 30000 and c["rate"]["y"][-1] == "NaN"
    assert all(a < b for a, b in zip(x, x[1:])) and c["other"]["y"][0] == 3
    s.weights({"a": fac.arange(6).reshape(2, 3), "empty": fac.zeros((0, 3)), "one": fac.tensor(2.0), "large": fac.randn(300, 200)})
    t = {t["name"]: t for t in page.wait(6, lambda w: len(w["tensors"]) == 4)["tensors"]}
    assert t["a"]["max"] == 5 and t["one"]["shape"] == [] and sum(t["large"]["counts"]) == 60000 and sum(t["empty"]["counts"]) == 0


def test_wrong_calls(open_studio):
    s = open_studio()
    with pytest.raises(fac.ArgumentError, match="16 curves"):
        s.log(**{f"c{k}": k for k in range(17)})
    with pytest.raises(fac.ArgumentError, match="95 bytes"):
        s.log(**{"x" * 96: 1})
    with pytest.raises((TypeError, ValueError)):
        s.log(loss="much")
    with pytest.raises(AttributeError):
        s.weights({"a": 3})
    with pytest.raises(fac.FileError):
        fac.studio(port=int(s.address.split(":")[2].split("/")[0]))
    s.close()
    s.close()
    assert not s.stopped
    with pytest.raises(ValueError, match="closed"):
        s.log(loss=1)


def test_many_at_once(open_studio):
    """Threads that log, and pages that read."""
    s = open_studio()
    pages = [Reader(s) for _ in range(2)]
    threads = [threading.Thread(target=lambda k=k: [s.log(i, **{f"loss {k}": i}) for i in range(500)]) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for page in pages:
        page.wait(2, lambda t: len(t["curves"]) == 4 and all(c["count"] == 500 for c in t["curves"]))
