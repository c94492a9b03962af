"""Headless Chromium over its debugging port, with Python's own library alone: RFC 6455 as far as a client on this machine
needs it, and the few messages of the protocol (https://chromedevtools.github.io/devtools-protocol/)."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

from studio import SLOW

SKIPPED = 77


class Socket:
    def __init__(self, address):
        host, path = address.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self.s = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.f = self.s.makefile("rb")
        assert b" 101 " in self.f.readline()
        while self.f.readline().strip():
            pass

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        n = len(data)
        size = struct.pack("!B", 0x80 | n) if n < 126 else struct.pack("!BH", 0x80 | 126, n) if n < 65536 else struct.pack("!BQ", 0x80 | 127, n)
        self.s.sendall(b"\x81" + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        whole = b""
        while True:
            head, size = self.f.read(2)
            n = size & 127
            if n == 126:
                n = struct.unpack("!H", self.f.read(2))[0]
            elif n == 127:
                n = struct.unpack("!Q", self.f.read(8))[0]
            data = self.f.read(n)
            if head & 15 in (0, 1):
                whole += data
                if head & 128:
                    return whole.decode()


class Browser:
    """One tab.  `complaints`: errors of the console, violations of the policy, requests to other hosts."""

    def __init__(self, width=1300, height=1000, dark=False):
        program = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
        if not program:
            print("no chromium: skipped")
            raise SystemExit(SKIPPED)
        self.profile = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--use-fake-device-for-media-stream",
             "--use-fake-ui-for-media-stream", f"--user-data-dir={self.profile}",
             f"--window-size={width},{height}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        where = os.path.join(self.profile, "DevToolsActivePort")
        for _ in range(600):
            if os.path.exists(where) and open(where).read().count("\n"):
                break
            time.sleep(0.05)
        port = open(where).read().split()[0]
        tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
        self.socket = Socket(next(t for t in tabs if t["type"] == "page")["webSocketDebuggerUrl"])
        self.number, self.complaints, self.requests, self.home = 0, [], 0, None
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.profile, ignore_errors=True)

    def hear(self, m):
        what, p = m.get("method"), m.get("params", {})
        if what == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.complaints.append(d.get("exception", {}).get("description") or d["text"])
        elif what == "Log.entryAdded" and p["entry"]["level"] == "error":
            self.complaints.append(p["entry"]["text"] + " " + p["entry"].get("url", ""))
        elif what == "Runtime.consoleAPICalled" and p["type"] in ("error", "assert", "warning"):
            self.complaints.append(str(p["args"]))
        elif what == "Network.requestWillBeSent":
            url = p["request"]["url"]
            self.requests += 1
            if self.home and not url.startswith((self.home, "blob:" + self.home)):
                self.complaints.append("a foreign request: " + url)

    def call(self, method, **params):
        self.number += 1
        mine = self.number
        self.socket.send(json.dumps({"id": mine, "method": method, "params": params}))
        while True:
            m = json.loads(self.socket.receive())
            if m.get("id") == mine:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']}")
                return m["result"]
            self.hear(m)

    def open(self, address):
        self.home = "/".join(address.split("/")[:3])
        self.requests = 0
        self.call("Page.navigate", url=address)

    def js(self, expression):
        """The value of an expression, which may wait."""
        r = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in r:
            raise RuntimeError(f"{expression}: {r['exceptionDetails'].get('exception', {}).get('description')}")
        return r["result"].get("value")

    def wait(self, expression, seconds=3):
        """Waits until an expression is true, for so many seconds of an idle machine; how long that took."""
        start, seconds = time.monotonic(), seconds * SLOW
        while time.monotonic() - start < seconds:
            if self.js(f"!!({expression})"):
                return time.monotonic() - start
            time.sleep(0.02)
        raise AssertionError(f"waited {seconds} s for {expression}; {self.complaints}")

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def pixels(self, selector, places):
        """Colours of a canvas at places given as shares of its width and height."""
        return self.js(f"""(() => {{ const c = document.querySelector({selector!r}), x = c.getContext("2d");
            return {json.dumps(places)}.map(([u, v]) => [...x.getImageData(u * c.width | 0, v * c.height | 0, 1, 1).data]) }})()""")
