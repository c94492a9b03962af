"""Hostile requests to the playground's server: none is served, and it goes on; the headers of every answer; slow bodies, very
many connections, sessions that are left, an end that leaves nothing.  usage: guard.py FACULA"""
import json
import os
import socket
import subprocess
import sys
import threading
import time

from studio import Page, Studio

facula = os.path.abspath(sys.argv[1])


def raw(studio, data, seconds=10):
    """Everything that comes back on a connection of its own; b"" where it is cut."""
    s = socket.create_connection(("127.0.0.1", studio.port), timeout=seconds)
    try:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        whole = b""
        while part := s.recv(65536):
            whole += part
        return whole
    except OSError:
        return b""
    finally:
        s.close()


def hostile(studio):
    host, key = f"127.0.0.1:{studio.port}", studio.key
    good = f"Host: {host}\r\nX-Facula-Key: {key}\r\n"
    as_json = "Content-Type: application/json\r\n"
    body = '{"page":"points"}'

    def post(headers, text=body, path="/api/open", method="POST"):
        return f"{method} {path} HTTP/1.1\r\n{headers}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}"

    def get(path, headers=good, method="GET"):
        return f"{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
    kinds = {
        "no key": post(f"Host: {host}\r\n{as_json}"),
        "an empty key": post(f"Host: {host}\r\nX-Facula-Key:\r\n{as_json}"),
        "another key": post(f"Host: {host}\r\nX-Facula-Key: {'0' * 32}\r\n{as_json}"),
        "half the key": post(f"Host: {host}\r\nX-Facula-Key: {key[:16]}\r\n{as_json}"),
        "the key and more": post(f"Host: {host}\r\nX-Facula-Key: {key}0\r\n{as_json}"),
        "the key in large letters": post(f"Host: {host}\r\nX-Facula-Key: {key.upper()}g\r\n{as_json}"),
        "the key in the path": post(f"Host: {host}\r\n{as_json}", path=f"/api/open?key={key}"),
        "the key as a cookie": post(f"Host: {host}\r\nCookie: key={key}\r\n{as_json}"),
        "two keys": post(f"{good}X-Facula-Key: {key}\r\n{as_json}"),
        "another host": post(f"Host: evil.example\r\nX-Facula-Key: {key}\r\n{as_json}"),
        "a rebound host": post(f"Host: evil.example:{studio.port}\r\nX-Facula-Key: {key}\r\n{as_json}"),
        "another port": post(f"Host: 127.0.0.1:{studio.port + 1}\r\nX-Facula-Key: {key}\r\n{as_json}"),
        "a host of the same beginning": post(f"Host: 127.0.0.1.evil.example:{studio.port}\r\nX-Facula-Key: {key}\r\n{as_json}"),
        "no host": post(f"X-Facula-Key: {key}\r\n{as_json}"),
        "two hosts": post(f"{good}Host: {host}\r\n{as_json}"),
        "another origin": post(f"{good}Origin: http://evil.example\r\n{as_json}"),
        "no origin's origin": post(f"{good}Origin: null\r\n{as_json}"),
        "an origin of another port": post(f"{good}Origin: http://127.0.0.1:1\r\n{as_json}"),
        "an origin with https": post(f"{good}Origin: https://{host}\r\n{as_json}"),
        "a form": post(f"{good}Content-Type: application/x-www-form-urlencoded\r\n"),
        "plain text": post(f"{good}Content-Type: text/plain\r\n"),
        "no content type": post(good),
        "a large body": post(good + as_json, "[" + "1," * 40000 + "1]"),
        "a body of many gigabytes": f"POST /api/open HTTP/1.1\r\n{good}{as_json}Content-Length: 99999999999\r\n\r\n",
        "a negative length": f"POST /api/open HTTP/1.1\r\n{good}{as_json}Content-Length: -1\r\n\r\n",
        "chunks": f"POST /api/open HTTP/1.1\r\n{good}{as_json}Transfer-Encoding: chunked\r\n\r\n11\r\n{body}\r\n0\r\n\r\n",
        "a path upwards": get("/page/../../../etc/passwd"),
        "a path upwards, escaped": get("/page/..%2f..%2fetc%2fpasswd"),
        "a path upwards, twice escaped": get("/page/%252e%252e%252fetc/passwd"),
        "a NUL in the path": get("/page/studio.css%00.js"),
        "another file": get("/etc/passwd"),
        "a module by another name": get("/page/STUDIO.CSS"),
        "a very long path": get("/page/" + "a" * 100000),
        "very many headers": get("/", good + "".join(f"X-{k}: {'y' * 100}\r\n" for k in range(5000))),
        "PUT": post(good + as_json, method="PUT"),
        "DELETE": get("/api/open", method="DELETE"),
        "TRACE": get("/", method="TRACE"),
        "OPTIONS": get("/api/open", f"Host: {host}\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n", "OPTIONS"),
        "CONNECT": get("evil.example:80", method="CONNECT"),
        "no HTTP": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\x00" * 100,
        "nothing": "\r\n\r\n",
        "a stream of nobody": get("/api/stream/" + "0" * 32),
        "a stream without a key": get("/api/stream/" + "0" * 32, f"Host: {host}\r\n"),
        "a session with a long name": post(good + as_json, path="/api/do/" + "a" * 5000),
    }
    for name, data in kinds.items():
        answer = raw(studio, data.encode("latin-1"))
        status = answer.split(b" ", 2)[1] if answer.startswith(b"HTTP/") else b"cut"
        assert status not in (b"200", b"204") and not status.startswith(b"5"), (name, answer[:300])
        assert b"Access-Control" not in answer and b"root:" not in answer and key.encode() not in answer, (name, answer)
    print(len(kinds), "kinds of requests are refused")


def graphs_that_need_much_memory(studio):
    """Text of a few bytes makes no tensors of many: 64 MiB are the most, in all and at once."""
    most = 64 << 20
    wide = {"a parameter": "param w f32[30000,3000]\n", "two of them": "param a f32[3000,3000]\nparam b f32[3000,3000]\n",
            "a state": "state s f32[30000,3000]\n", "a constant": "const c f32[30000,3000]\n", "one byte more": f"param w u8[{most + 1}]\n",
            "a constant of a body": "input x f32[2,3]\ny = fused(x) {add(_, f32[30000,3000])}\noutput y = y\n"}
    for name, text in wide.items():
        for path, more in (("/api/ask/modules", {}), ("/api/make/modules", {"file": "model.onnx"})):
            status, _, said = studio.request("POST", path, {"text": text, **more})
            assert status == 400 and b"at most 64 MiB" in said, (name, path, status, said)
    used = int(next(x for x in open(f"/proc/{studio.process.pid}/status") if x.startswith("VmHWM")).split()[1])
    assert used < 200000 or "FACULA_SANITIZED" in os.environ, used
    studio.ask("modules", text=f"param w u8[{most}]\n")


def headers_of_answers(studio):
    for path in ("/", "/page/studio.css", "/page/app.js", "/page/icon.svg"):
        status, h, text = studio.request("GET", path, key=False)
        assert status == 200 and text, path
        policy = h["Content-Security-Policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert h["X-Content-Type-Options"] == "nosniff" and h["Cache-Control"] == "no-store" and "Set-Cookie" not in h
        assert not any(k.startswith("Access-Control") for k in h)
    page = studio.request("GET", "/", key=False)[2].decode()
    assert "style=" not in page and "onload" not in page and "<script>" not in page and "http" not in page.replace("http-equiv", "")


def others_cannot_connect(studio):
    """It listens on the loopback alone."""
    lines = [x.split() for x in open("/proc/net/tcp").read().splitlines()[1:] + open("/proc/net/tcp6").read().splitlines()[1:]]
    where = [x[1].split(":")[0] for x in lines if x[3] == "0A" and int(x[1].split(":")[1], 16) == studio.port]
    assert where == ["0100007F"], where


def very_many_connections(studio):
    held = []
    for _ in range(1000):       # most wait in the system's queue, or are refused by it
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", studio.port))
        held.append(s)
    time.sleep(.5)
    for s in held:
        s.close()
    time.sleep(.5)
    page = Page(studio, "points")
    page.do("step")
    page.wait(lambda s: s["step"] == 1)
    slow = []
    for _ in range(8):          # bodies that do not come
        s = socket.create_connection(("127.0.0.1", studio.port))
        s.sendall(f"POST /api/open HTTP/1.1\r\nHost: 127.0.0.1:{studio.port}\r\nX-Facula-Key: {studio.key}\r\n"
                  "Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{".encode())
        slow.append(s)
    page.do("step")
    page.wait(lambda s: s["step"] == 2)
    for s in slow:
        s.close()
    page.close()


def streams_that_are_left(studio):
    """Readers that go away, and commands from many at once."""
    for _ in range(20):
        page = Page(studio, "points")
        page.wait(lambda s: s["step"] == 0)
        page.connection.sock.shutdown(socket.SHUT_RDWR)
        page.close()
    page = Page(studio, "points")
    page.do("play")
    wrong = []

    def click():
        for k in range(30):
            try:
                page.do(["step", "epoch", "pause", "play"][k % 4])
            except (RuntimeError, OSError) as e:
                wrong.append(e)
    clicks = [threading.Thread(target=click) for _ in range(4)]
    for t in clicks:
        t.start()
    for t in clicks:
        t.join()
    assert not wrong, wrong
    page.close()


def memory_stays(studio):
    def used():
        return int(next(x for x in open(f"/proc/{studio.process.pid}/status") if x.startswith("VmRSS")).split()[1])
    page = Page(studio, "points", net="16,16,tanh", epochs=1000000)
    page.do("speed", epochs_per_s=100)
    page.do("panels", on=True)
    page.do("play")
    time.sleep(3)
    before = used()
    for _ in range(30):
        page.do("reset")
        page.do("play")
        time.sleep(.1)
    after = used()
    page.close()
    print(f"30 networks after another: {before} kB, then {after} kB")
    assert after < before + 20000 or "FACULA_SANITIZED" in os.environ, (before, after)


with Studio(facula) as studio:
    for test in (hostile, graphs_that_need_much_memory, headers_of_answers, others_cannot_connect, very_many_connections, streams_that_are_left, memory_stays):
        test(studio)
        print("ok", test.__name__, flush=True)
    page = Page(studio, "points")
    page.do("play")
    taken = subprocess.run([facula, "studio", "--port", str(studio.port)], capture_output=True, text=True, timeout=60)
    assert taken.returncode == 1 and str(studio.port) in taken.stderr, taken
said = studio.process.stderr.read()
assert studio.process.returncode == 143 and not said, (studio.process.returncode, said[:3000])
again = socket.socket()
again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
again.bind(("127.0.0.1", studio.port))      # the port is free
for wrong in (["--port", "99999"], ["a", "b"], ["--open", "--no-open"]):
    assert subprocess.run([facula, "studio", *wrong], capture_output=True, timeout=60).returncode == 2, wrong
lost = subprocess.run([facula, "studio", "/nowhere.onnx"], capture_output=True, text=True, timeout=60)
assert lost.returncode == 1 and "/nowhere.onnx" in lost.stderr, lost
print("ok: the end", json.dumps({"port": studio.port}))
