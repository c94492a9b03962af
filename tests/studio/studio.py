"""A client of `facula studio` for the tests, with Python's own library alone."""
import json
import http.client
import os
import struct
import subprocess
import threading
import time

SLOW = float(os.environ.get("FACULA_SLOW", "10"))       # 1: the goals, those of an idle machine

class Studio:
    """The command, until the end of the block."""

    def __init__(self, facula, *options, cwd=None):
        self.process = subprocess.Popen([facula, "studio", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, cwd=cwd)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            why = self.process.stderr.read()
            if "libmicrohttpd" not in why:
                raise SystemExit(why)
            print(why, "skipped")
            raise SystemExit(77)
        self.key = self.address.split("#key=")[1]
        self.port = int(self.address.split(":")[2].split("/")[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def request(self, method, path, body=None, headers=None, key=True):
        """Status, headers and bytes of an answer."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        h = {"X-Facula-Key": self.key} if key else {}
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            h["Content-Type"] = "application/json"
        h.update(headers or {})
        c.request(method, path, body, h)
        r = c.getresponse()
        answer = r.status, dict(r.getheaders()), r.read()
        c.close()
        return answer

    def post(self, path, body):
        status, _, text = self.request("POST", path, body)
        j = json.loads(text)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {j['error']['message']}")
        return j

    def ask(self, name, **what):
        return self.post("/api/ask/" + name, what)


class Page:
    """An open page: its frames are read by a thread; the newest of each kind stays."""

    def __init__(self, studio, page, **how):
        self.studio, self.frames, self.counts = studio, {}, {}
        self.id = studio.post("/api/open", {"page": page, **how})["id"]
        self.connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=60)
        self.connection.request("GET", "/api/stream/" + self.id, headers={"X-Facula-Key": studio.key})
        self.stream = self.connection.getresponse()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while True:
                head = self.stream.read(5)
                if len(head) < 5:
                    return
                n, kind = struct.unpack("<IB", head)
                self.frames[kind] = self.stream.read(n)
                self.counts[kind] = self.counts.get(kind, 0) + 1
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return

    def do(self, what, **more):
        return self.studio.post("/api/do/" + self.id, {"do": what, **more})

    def json(self, kind=2):
        return json.loads(self.frames[kind])

    def wait(self, good, seconds=3, kind=2):
        """Until good(newest JSON of a kind), for so many seconds of an idle machine; how long it took."""
        start, seconds = time.monotonic(), seconds * SLOW
        while time.monotonic() - start < seconds:
            if kind in self.frames and good(self.json(kind)):
                return time.monotonic() - start
            time.sleep(0.005)
        raise AssertionError(f"waited {seconds} s; the last frame: {self.frames.get(kind)}")

    def until(self, good, seconds=3):
        """Until good(), of whatever frames: those of one moment come one after the other."""
        start, seconds = time.monotonic(), seconds * SLOW
        while not good():
            assert time.monotonic() - start < seconds, f"waited {seconds} s"
            time.sleep(0.005)

    def file(self, name):
        status, _, text = self.studio.request("GET", f"/api/file/{self.id}/{name}")
        assert status == 200, (name, status, text)
        return text

    def close(self):
        self.studio.post("/api/close/" + self.id, {})
