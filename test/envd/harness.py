"""Starts an envd and speaks its protocol: plain HTTP, Connect JSON unary and streams. Stdlib only.

ENVD_BIN names the program (default build/debug/envd). The tests need root. Every server is stopped with
SIGTERM at the end; it must exit with 0 and have said nothing that looks like a sanitizer's report.
"""

import base64
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("ENVD_BIN", os.path.join(ROOT, "build", "debug", "envd"))
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REPORT = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error|UndefinedBehavior|BUG")


class Server:
    """One envd on a port of its own. wrap: a command line in front of the program."""

    def __init__(self, env=None, wrap=()):
        self.log = tempfile.TemporaryFile("w+")
        base = {"PATH": PATH, "SECRET_OF_THE_POD": "x"}
        base.update(env or {})
        self.proc = subprocess.Popen(
            [*wrap, BIN, "--port", "0"], env=base, stderr=self.log, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, start_new_session=True)
        deadline = time.time() + 20
        while True:
            found = re.search(r'"msg":"listening","port":(\d+)', self.text())
            if found:
                break
            if self.proc.poll() is not None or time.time() > deadline:
                raise RuntimeError("envd does not start: " + self.text())
            time.sleep(0.02)
        self.port = int(found.group(1))

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        try:
            code = self.proc.wait(15)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            raise AssertionError("envd does not stop: " + self.text())
        text = self.text()
        self.log.close()
        if code != 0 or REPORT.search(text):
            raise AssertionError("envd ended with %s: %s" % (code, text))


class RpcError(Exception):
    def __init__(self, code, message, status):
        super().__init__("%s: %s" % (code, message))
        self.code, self.message, self.status = code, message, status


def envelope(message, flags=0):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", flags, len(body)) + body


class Stream:
    """The answer of a server stream: iterate over messages; ends with RpcError or StopIteration."""

    def __init__(self, conn, response):
        self.conn, self.response = conn, response
        self.sock = conn.sock
        self.ended = False
        self.trailer = None

    def read(self, n):
        data = b""
        while len(data) < n:
            part = self.response.read(n - len(data))
            if not part:
                raise EOFError("stream was cut")
            data += part
        return data

    def __iter__(self):
        return self

    def __next__(self):
        if self.ended:
            raise StopIteration
        flags, n = struct.unpack(">BI", self.read(5))
        body = json.loads(self.read(n))
        if flags & 2:
            self.ended = True
            self.trailer = body
            assert self.response.read() == b"", "bytes behind the end of the stream"
            self.conn.close()
            if "error" in body:
                raise RpcError(body["error"]["code"], body["error"].get("message", ""), 200)
            raise StopIteration
        assert flags == 0
        return body

    def close(self):
        # http.client keeps the descriptor in the response as well
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.response.close()
        self.conn.close()


class Client:
    def __init__(self, port, token=None, user=None, timeout=20):
        self.port, self.token, self.user, self.timeout = port, token, user, timeout

    def headers(self, extra=None):
        h = {}
        if self.token:
            h["X-Access-Token"] = self.token
        if self.user:
            h["Authorization"] = "Basic " + base64.b64encode((self.user + ":").encode()).decode()
        h.update(extra or {})
        return h

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)

    def http(self, method, path, body=None, headers=None):
        """(status, headers, body)"""
        conn = self.connect()
        try:
            conn.request(method, path, body, self.headers(headers))
            r = conn.getresponse()
            return r.status, r.headers, r.read()
        finally:
            conn.close()

    def call(self, method, message, headers=None):
        h = {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        h.update(headers or {})
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        status, got, data = self.http("POST", "/" + method, body, h)
        if status == 200:
            assert got["Content-Type"] == "application/json", got["Content-Type"]
            return json.loads(data)
        assert got["Content-Type"] and got["Content-Type"].startswith("application/json"), (status, data)
        e = json.loads(data)
        raise RpcError(e["code"], e["message"], status)

    def stream(self, method, message, headers=None, raw=None):
        h = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}
        h.update(headers or {})
        conn = self.connect()
        body = raw if raw is not None else envelope(message)
        conn.request("POST", "/" + method, body, self.headers(h))
        r = conn.getresponse()
        if r.status != 200:
            data = r.read()
            conn.close()
            raise RpcError(str(json.loads(data)["code"]), json.loads(data)["message"], r.status)
        assert r.headers["Content-Type"] == "application/connect+json"
        return Stream(conn, r)

    # --- processes ---

    def start(self, command, args=None, headers=None, **more):
        """Starts `bash -l -c command`, or command with args."""
        process = {"cmd": "/bin/bash", "args": ["-l", "-c", command]} if args is None else {
            "cmd": command, "args": args}
        for key in ("envs", "cwd"):
            if key in more:
                process[key] = more.pop(key)
        message = {"process": process, "stdin": more.pop("stdin", False)}
        message.update(more)
        return Process(self.stream("process.Process/Start", message, headers))

    def run(self, command, **more):
        return self.start(command, **more).wait()

    def connect_process(self, pid, headers=None):
        return Process(self.stream("process.Process/Connect", {"process": {"pid": pid}}, headers))

    def signal(self, pid, name="SIGNAL_SIGKILL"):
        return self.call("process.Process/SendSignal", {"process": {"pid": pid}, "signal": name})

    def send(self, pid, data, kind="stdin"):
        text = base64.b64encode(data).decode()
        return self.call("process.Process/SendInput", {"process": {"pid": pid}, "input": {kind: text}})

    def list(self):
        return self.call("process.Process/List", {}).get("processes", [])

    # --- files ---

    def fs(self, method, **fields):
        return self.call("filesystem.Filesystem/" + method, fields)

    def upload(self, files, query="", headers=None):
        body, boundary = b"", "bOuNdArY"
        for name, content in files:
            body += ("--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n"
                     "Content-Type: application/octet-stream\r\n\r\n" % (boundary, name)).encode()
            body += content + b"\r\n"
        body += ("--%s--\r\n" % boundary).encode()
        h = {"Content-Type": "multipart/form-data; boundary=" + boundary}
        h.update(headers or {})
        status, _, data = self.http("POST", "/files" + query, body, h)
        return status, json.loads(data)

    def download(self, query, headers=None):
        return self.http("GET", "/files" + query, headers=headers)


class Process:
    """A started process, read event by event."""

    def __init__(self, stream):
        self.stream = stream
        self.out = {"stdout": b"", "stderr": b"", "pty": b""}
        self.end = None
        self.keepalives = 0
        first = self.event()
        assert list(first) == ["start"], first
        self.pid = first["start"]["pid"]

    def event(self):
        return next(self.stream)["event"]

    def step(self):
        """Takes one event in; False at the end."""
        try:
            event = self.event()
        except StopIteration:
            return False
        for key, value in event.get("data", {}).items():
            self.out[key] += base64.b64decode(value)
        self.keepalives += "keepalive" in event
        self.end = event.get("end", self.end)
        return True

    def wait(self):
        while self.step():
            pass
        assert self.end is not None
        return self

    def until(self, text, kind="stdout"):
        while text not in self.out[kind]:
            assert self.step(), self.out
        return self

    @property
    def code(self):
        return self.end.get("exitCode", 0)

    @property
    def stdout(self):
        return self.out["stdout"].decode()

    @property
    def stderr(self):
        return self.out["stderr"].decode()

    def close(self):
        self.stream.close()


def eventually(fn, seconds=5):
    """Waits until fn() is true."""
    deadline = time.time() + seconds
    while time.time() < deadline:
        if fn():
            return
        time.sleep(0.02)
    raise AssertionError("did not happen within %s s" % seconds)


def in_thread(fn, *args):
    t = threading.Thread(target=fn, args=args, daemon=True)
    t.start()
    return t


class Case(unittest.TestCase):
    """One server for all tests of a class; INIT is posted first unless it is None."""

    ENV = {}
    INIT = {"defaultUser": "user", "envVars": {"GLOBAL": "yes"}}
    TOKEN = None

    @classmethod
    def setUpClass(cls):
        if os.getuid() != 0:
            raise unittest.SkipTest("needs root")
        cls.server = Server(cls.ENV)
        cls.c = Client(cls.server.port, cls.TOKEN)
        cls.root = Client(cls.server.port, cls.TOKEN, user="root")
        if cls.INIT is not None:
            status, _, body = Client(cls.server.port).http("POST", "/init", json.dumps(cls.INIT))
            assert status == 204, (status, body)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        tmp = tempfile.TemporaryDirectory(prefix="envd-test-")
        self.addCleanup(tmp.cleanup)
        self.tmp = tmp.name
        os.chmod(self.tmp, 0o777)

    def path(self, *names):
        return os.path.join(self.tmp, *names)

    def rpc_fails(self, code, fn, *args, **more):
        with self.assertRaises(RpcError) as caught:
            r = fn(*args, **more)
            if isinstance(r, Process):
                r.wait()
            elif isinstance(r, Stream):
                list(r)
        self.assertEqual(caught.exception.code, code, caught.exception.message)
        return caught.exception
