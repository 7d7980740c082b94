"""Starts gateway_host and speaks to it byte by byte; stands in for the servers in sandboxes."""
import os
import select
import socket
import struct
import subprocess
import threading
import time
import unittest

HOST = os.environ.get("GATEWAY_HOST", "build/debug/tools/gateway_host")
DOMAIN = "my.domain"
ENVD = 49983
WAIT = 10


class Gateway:
    def __init__(self):
        self.process = subprocess.Popen([HOST, "127.0.0.1:0", DOMAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.errors = []
        self.reader = threading.Thread(target=self._read_errors, daemon=True)
        self.reader.start()
        self.port = int(self.process.stdout.readline().split()[1])
        self.lock = threading.Lock()

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def do(self, command):
        with self.lock:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            return self.process.stdout.readline().strip()

    def set(self, box, **options):
        answer = self.do(f"set {box} " + " ".join(f"{k}={v}" for k, v in options.items()))
        assert answer == "ok", answer

    def metrics(self):
        with self.lock:
            self.process.stdin.write("metrics\n")
            self.process.stdin.flush()
            out = {}
            for line in self.process.stdout:
                if line == ".\n":
                    return out
                if not line.startswith("#") and line.strip():
                    name, value = line.rsplit(" ", 1)
                    out[name] = float(value)

    def rss(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) * 1024

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self):
        self.process.stdin.close()
        status = self.process.wait(WAIT)
        self.process.stdout.close()
        self.reader.join(WAIT)
        self.process.stderr.close()
        return status, "".join(self.errors)


class Peer:
    """A connection with a read buffer."""

    def __init__(self, sock):
        self.sock = sock
        sock.settimeout(WAIT)
        self.buffer = b""

    def send(self, data):
        self.sock.sendall(data)

    def more(self):
        data = self.sock.recv(65536)
        self.buffer += data
        return data

    def take(self, n):
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def exactly(self, n):
        while len(self.buffer) < n:
            if not self.more():
                raise EOFError(self.buffer)
        return self.take(n)

    def until(self, mark):
        while mark not in self.buffer:
            if not self.more():
                raise EOFError(self.buffer)
        return self.take(self.buffer.index(mark) + len(mark))

    def head(self):
        """First line, and fields as a list of (lower-case name, value)."""
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")[:-2]
        fields = [(k.strip().lower(), v.strip()) for k, v in (line.split(":", 1) for line in lines[1:])]
        return lines[0], fields

    def chunk(self):
        n = int(self.until(b"\r\n"), 16)
        data = self.exactly(n)
        assert self.exactly(2) == b"\r\n"
        return data

    def body(self, fields):
        fields = dict(fields)
        if fields.get("transfer-encoding") == "chunked":
            out = []
            while True:
                data = self.chunk()
                if not data:
                    return b"".join(out)
                out.append(data)
        return self.exactly(int(fields.get("content-length", 0)))

    def rest(self):
        """To the clean end; ConnectionResetError when there is none."""
        while self.more():
            pass
        return self.take(len(self.buffer))

    def ended(self, timeout=2):
        """'eof', 'reset' or None."""
        self.sock.settimeout(timeout)
        try:
            while self.sock.recv(65536):
                pass
            return "eof"
        except ConnectionResetError:
            return "reset"
        except TimeoutError:
            return None
        finally:
            self.sock.settimeout(WAIT)

    def finish(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Backend:
    """A server in a sandbox: serve(peer, number of the connection) runs in a thread per connection."""

    def __init__(self, serve, address="127.0.0.1", port=0):
        self.serve = serve
        self.sock = socket.create_server((address, port), backlog=512)
        self.address, self.port = self.sock.getsockname()
        self.connections = 0
        self.failure = None
        self.peers = []
        self.threads = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            peer = Peer(conn)
            self.peers.append(peer)
            thread = threading.Thread(target=self._one, args=(peer, self.connections), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _one(self, peer, number):
        try:
            self.serve(peer, number)
        except (EOFError, ConnectionError):
            pass  # the gateway went away: if it should not have, the client sees it
        except Exception as e:  # shown by the test's clean-up
            self.failure = e
        finally:
            peer.close()

    def stop(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)  # wakes accept, which close does not
        except OSError:
            pass
        self.sock.close()
        for peer in self.peers:
            try:
                peer.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Case(unittest.TestCase):
    gateway = None
    count = 0

    @classmethod
    def setUpClass(cls):
        cls.gateway = Gateway()

    @classmethod
    def tearDownClass(cls):
        gateway, cls.gateway = cls.gateway, None
        status, errors = gateway.stop()
        assert status == 0, f"gateway_host ended with {status}:\n{errors}"

    def setUp(self):
        Case.count += 1
        self.box = f"ibox{Case.count}"
        self.assertIsNone(self.gateway.process.poll(), "".join(self.gateway.errors))

    def backend(self, serve, envd=False, **options):
        """A backend in this test's sandbox."""
        if envd:
            Case.count += 1
            address = f"127.1.{Case.count // 250}.{Case.count % 250 + 1}"
            backend = Backend(serve, address, ENVD)
        else:
            backend = Backend(serve)
        self.gateway.set(self.box, ip=backend.address, **options)

        def stop():
            backend.stop()
            self.assertIsNone(backend.failure)

        self.addCleanup(stop)
        self.port = backend.port
        return backend

    def host(self, port=None):
        return f"{port or self.port}-{self.box}.{DOMAIN}"

    def client(self, rcvbuf=None):
        sock = socket.socket()
        if rcvbuf:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect(("127.0.0.1", self.gateway.port))
        self.addCleanup(sock.close)
        return Peer(sock)

    def head(self, method="GET", target="/", host=None, version="1.1", **fields):
        lines = [f"{method} {target} HTTP/{version}", f"Host: {host or self.host()}"]
        lines += [f"{k.replace('_', '-')}: {v}" for k, v in fields.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def ask(self, method="GET", target="/", body=b"", client=None, **fields):
        """One exchange on a connection of its own (or the given one): status, fields, body."""
        client = client or self.client()
        if body:
            fields["Content_Length"] = len(body)
        client.send(self.head(method, target, **fields) + body)
        line, got = client.head()
        status = int(line.split()[1])
        has_body = method != "HEAD" and status not in (204, 304)
        return status, dict(got), client.body(got) if has_body else b""

    def eventually(self, check, seconds=3):
        end = time.monotonic() + seconds
        while not check():
            self.assertLess(time.monotonic(), end, "did not happen in time")
            time.sleep(0.01)


def ok(body=b"", *fields):
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def echo(peer, number):
    """Keep-alive server: answers with what it got."""
    while True:
        line, fields = peer.head()
        body = peer.body(fields)
        text = line.encode() + b"\n" + b"".join(f"{k}={v}\n".encode() for k, v in fields) + b"\n" + body
        peer.send(ok(text) if not line.startswith("HEAD") else ok(text)[:-len(text)])


def readable(sock, seconds):
    return bool(select.select([sock], [], [], seconds)[0])
