"""What the tests share: raw HTTP to the API and the gateway, Connect framing, kubectl, waiting.

The SDKs are the product's users; this module is for everything that they cannot show: exact statuses, bodies,
bytes on the wire, and what the cluster holds.
"""
import base64
import contextlib
import http.client
import json
import os
import shlex
import socket
import ssl
import struct
import subprocess
import time
import urllib.parse
import uuid

KEY = os.environ.get("E2B_API_KEY", "")
DOMAIN = os.environ.get("E2B_DOMAIN", "sandbox.localhost:10443")
HOST, _, _port = DOMAIN.partition(":")
TLS_PORT = int(_port or 443)
API = os.environ.get("AGENT_SANDBOX_API", "http://127.0.0.1:10000").rstrip("/")
# Where the gateway's listeners are reached, so that no test depends on DNS for names under the domain.
ADDRESS = urllib.parse.urlsplit(API).hostname
PLAIN_PORT = urllib.parse.urlsplit(API).port or 80
CA = os.environ.get("SSL_CERT_FILE") or os.environ.get("NODE_EXTRA_CA_CERTS")
KUBECTL = shlex.split(os.environ.get("KUBECTL", "kubectl"))
NAMESPACE = os.environ.get("SANDBOX_NAMESPACE", "agent-sandbox")


def _node_exec():
    """Runs a command where the node's processes are visible; follows from KUBECTL="…/local/cluster [exec] kubectl"."""
    if "E2E_NODE_EXEC" in os.environ:
        return shlex.split(os.environ["E2E_NODE_EXEC"])
    if len(KUBECTL) < 2 or KUBECTL[-1] != "kubectl":
        return None
    return KUBECTL[:-1] if KUBECTL[-2] == "exec" else KUBECTL[:-1] + ["exec"]


NODE = _node_exec()
ENVD_PORT = 49983
RUN = uuid.uuid4().hex[:10]  # metadata of every sandbox that this run makes
TAG = {"e2e": RUN}


class Reply:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.version = response.version
        self.body = body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.text[:300]!r}>"


def tls_context():
    return ssl.create_default_context(cafile=CA)


def connect(tls=False, server_name=None, timeout=60):
    """A socket to the plain or the TLS listener."""
    s = socket.create_connection((ADDRESS, TLS_PORT if tls else PLAIN_PORT), timeout=timeout)
    if tls:
        s = tls_context().wrap_socket(s, server_hostname=server_name or f"api.{HOST}")
    return s


class Connection(http.client.HTTPConnection):
    """http.client on a socket of ours, so that Host and SNI are free of the address."""

    def __init__(self, tls=False, server_name=None, timeout=60):
        super().__init__(ADDRESS, TLS_PORT if tls else PLAIN_PORT, timeout=timeout)
        self.tls, self.server_name = tls, server_name

    def connect(self):
        self.sock = connect(self.tls, self.server_name, self.timeout)


def send(connection, method, path, headers=None, body=None):
    """One request with exactly these headers (Host among them, if given) and Content-Length as needed."""
    headers = dict(headers or {})
    connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
    chunked = hasattr(body, "__next__") and "Content-Length" not in headers
    if body is not None and "Content-Length" not in headers:
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = str(len(body))
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(body, encode_chunked=chunked)
    return connection.getresponse()


def request(method, path, headers=None, body=None, tls=False, server_name=None, timeout=60):
    connection = Connection(tls, server_name, timeout)
    try:
        response = send(connection, method, path, headers, body)
        return Reply(response, response.read())
    finally:
        connection.close()


# --- the API ---------------------------------------------------------------------------------------------------


def api(method, path, body=None, key=KEY, headers=None, raw=None, timeout=90):
    """A call under the API's base. body: JSON value; raw: bytes sent as they are; key None: no key."""
    headers = dict(headers or {})
    if key is not None:
        headers.setdefault("X-API-Key", key)
    data = raw
    if body is not None:
        data = json.dumps(body).encode()
    if data is not None:
        headers.setdefault("Content-Type", "application/json")
    elif method in ("POST", "PUT", "PATCH"):
        data = b""
    prefix = urllib.parse.urlsplit(API).path + "/e2b/v1"
    return request(method, prefix + path, headers, data, timeout=timeout)


def assert_error(reply, status, text=None):
    """The API's error shape: JSON with code equal to the status, and a message."""
    assert reply.status == status, reply
    assert reply.headers.get_content_type() == "application/json", dict(reply.headers)
    body = reply.json()
    assert body["code"] == status and isinstance(body["code"], int), body
    assert isinstance(body["message"], str) and body["message"], body
    if text is not None:
        assert text in body["message"], body
    return body


class Box:
    """A sandbox made by raw calls."""

    def __init__(self, answer, key=KEY):
        self.answer, self.key = answer, key
        self.id = answer["sandboxID"]
        self.token = answer.get("envdAccessToken")

    def host(self, port):
        return f"{port}-{self.id}.{DOMAIN}"

    def get(self):
        return api("GET", f"/sandboxes/{self.id}", key=self.key)

    def kill(self):
        return api("DELETE", f"/sandboxes/{self.id}", key=self.key)


def create(version=1, key=KEY, **fields):
    """Raw create that must succeed. Fields as in the contract; templateID base and this run's metadata by default."""
    body = {"templateID": "base", "secure": True, "timeout": 300, **fields}
    if version == 2:
        body.pop("secure")
    body = {k: v for k, v in body.items() if v is not None}
    body["metadata"] = {**TAG, **body.get("metadata", {})}
    reply = api("POST", "/v2/sandboxes" if version == 2 else "/sandboxes", body, key=key)
    assert reply.status == 201, reply
    return Box(reply.json(), key)


@contextlib.contextmanager
def sandbox(**fields):
    box = create(**fields)
    try:
        yield box
    finally:
        box.kill()


def listed(query="", key=KEY):
    """All sandboxes of this run with a given query, over all pages."""
    mark = urllib.parse.quote(urllib.parse.urlencode({"e2e": RUN}))
    found, token = [], None
    while True:
        more = f"&nextToken={urllib.parse.quote(token)}" if token else ""
        reply = api("GET", f"/v2/sandboxes?metadata={mark}{query}{more}", key=key)
        assert reply.status == 200, reply
        found += reply.json()
        token = reply.headers.get("x-next-token")
        if not token:
            return found


# --- the gateway and envd --------------------------------------------------------------------------------------


def gateway(host, method="GET", path="/", headers=None, body=None, tls=False, timeout=60):
    headers = {"Host": host, **(headers or {})}
    return request(method, path, headers, body, tls=tls, server_name=host.partition(":")[0], timeout=timeout)


def envd(box, method, path, headers=None, body=None, token=True, **more):
    """A call to envd through the gateway, as the SDK makes it. token: True = the sandbox's, None = none, else the text."""
    headers = dict(headers or {})
    value = box.token if token is True else token
    if value:
        headers["X-Access-Token"] = value
    return gateway(box.host(ENVD_PORT), method, path, headers, body, **more)


def rpc(box, method, message, headers=None, token=True, **more):
    """Unary Connect call, e.g. rpc(box, "filesystem.Filesystem/Stat", {"path": "/"})."""
    headers = {"Content-Type": "application/json", "Connect-Protocol-Version": "1", **(headers or {})}
    return envd(box, "POST", f"/{method}", headers, json.dumps(message).encode(), token, **more)


def assert_rpc_error(reply, status, code):
    assert reply.status == status, reply
    assert reply.headers.get_content_type() == "application/json", dict(reply.headers)
    assert reply.json()["code"] == code, reply
    return reply.json().get("message", "")


def read_exact(response, count):
    data = b""
    while len(data) < count:
        piece = response.read(count - len(data))
        if not piece:
            raise EOFError(f"stream ended after {len(data)} of {count} bytes")
        data += piece
    return data


class Stream:
    """Server stream: iterate over (flags, message); .end holds the end-of-stream message."""

    def __init__(self, box, method, message, headers=None, timeout=120, tls=False, token=True):
        host = box.host(ENVD_PORT)
        self.connection = Connection(tls, host.partition(":")[0], timeout)
        payload = json.dumps(message).encode()
        head = {"Host": host, "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1",
                **(headers or {})}
        value = box.token if token is True else token
        if value:
            head["X-Access-Token"] = value
        self.response = send(self.connection, "POST", f"/{method}", head, struct.pack(">BI", 0, len(payload)) + payload)
        self.end = None

    def __iter__(self):
        while True:
            flags, size = struct.unpack(">BI", read_exact(self.response, 5))
            message = json.loads(read_exact(self.response, size))
            if flags & 2:
                self.end = message
                rest = self.response.read()
                assert rest == b"", f"bytes after the end of the stream: {rest!r}"
                return
            assert flags == 0, flags
            yield message

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def start(box, command, user=None, **more):
    """Stream of a shell command, in the form that the SDKs use."""
    fields = {k: more.pop(k) for k in ("cwd", "envs") if k in more}
    message = {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command], **fields}, "stdin": more.pop("stdin", False)}
    if "pty" in more:
        message["process"]["args"] = ["-i", "-l"]
        message["pty"] = more.pop("pty")
        del message["stdin"]
    headers = more.pop("headers", {})
    if user:
        headers = {**headers, **basic(user)}
    return Stream(box, "process.Process/Start", message, headers, **more)


def basic(user):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode()}


class Result:
    """All of a process stream."""

    def __init__(self, stream):
        self.events = [m["event"] for m in stream]
        self.end_of_stream = stream.end
        self.pid = next((e["start"]["pid"] for e in self.events if "start" in e), None)
        self.stdout = self._data("stdout")
        self.stderr = self._data("stderr")
        self.end = next((e["end"] for e in self.events if "end" in e), None)
        self.error = (stream.end or {}).get("error")

    def _data(self, kind):
        return b"".join(base64.b64decode(e["data"][kind]) for e in self.events if kind in e.get("data", {}))

    @property
    def code(self):
        assert self.end is not None, (self.events, self.end_of_stream)
        return self.end.get("exitCode", 0)


def run(box, command, **more):
    with start(box, command, **more) as stream:
        assert stream.response.status == 200, (stream.response.status, stream.response.read())
        return Result(stream)


def sh(box, command, **more):
    """stdout of a command that must succeed."""
    result = run(box, command, **more)
    assert result.end is not None and result.code == 0, (result.end, result.error, result.stdout, result.stderr)
    return result.stdout.decode()


def serve(box, code, port, wait=15):
    """Starts a Python program in the sandbox that listens on port, detached, and waits until it does."""
    encoded = base64.b64encode(code.encode()).decode()
    sh(box, f"echo {encoded} | base64 -d > /tmp/serve{port}.py; "
            f"nohup python3 /tmp/serve{port}.py > /tmp/serve{port}.log 2>&1 & ")
    probe = (f"for i in $(seq {wait * 10}); do [ -n \"$(ss -Htln sport = :{port})\" ] && exit 0; sleep 0.1; done; "
             f"cat /tmp/serve{port}.log >&2; exit 1")
    sh(box, probe)


# --- files -----------------------------------------------------------------------------------------------------


def write_file(box, path, data, query=None, **more):
    """Raw octet-stream upload."""
    q = urllib.parse.urlencode({"path": path, **(query or {})})
    return envd(box, "POST", f"/files?{q}", {"Content-Type": "application/octet-stream"}, data, **more)


def multipart(files, field="file"):
    """files: [(file name as sent, bytes)] → (headers, body)."""
    mark = uuid.uuid4().hex
    body = b""
    for name, data in files:
        body += (f'--{mark}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
                 f"Content-Type: application/octet-stream\r\n\r\n").encode() + data + b"\r\n"
    return {"Content-Type": f"multipart/form-data; boundary={mark}"}, body + f"--{mark}--\r\n".encode()


def read_file(box, path, query=None, **more):
    q = urllib.parse.urlencode({"path": path, **(query or {})})
    return envd(box, "GET", f"/files?{q}", **more)


# --- the cluster -----------------------------------------------------------------------------------------------


def kubectl(*args, check=True, stdin=None, timeout=60):
    done = subprocess.run([*KUBECTL, "-n", NAMESPACE, *args], input=stdin, capture_output=True, text=True, timeout=timeout)
    if check:
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
    return done.stdout


def objects(kind, selector=None):
    args = ["get", kind, "-o", "json"] + (["-l", selector] if selector else [])
    return json.loads(kubectl(*args))["items"]


def replica_sets():
    """ReplicaSets of sandboxes by sandbox id."""
    return {o["metadata"]["labels"]["sbx-id"]: o for o in objects("replicasets", "owner=agent-sandbox")}


def pods_of(sandbox_id):
    return objects("pods", f"sbx-id={sandbox_id}")


def on_node(*args, check=True, timeout=60):
    if NODE is None:
        import pytest
        pytest.skip("needs the processes of the node (KUBECTL=…/local/cluster kubectl, or E2E_NODE_EXEC)")
    done = subprocess.run([*NODE, *args], capture_output=True, text=True, timeout=timeout)
    if check:
        assert done.returncode == 0, f"{args}: {done.stderr}"
    return done.stdout


def node_pids(program):
    """Pids, in the node's own PID namespace, of processes whose executable has exactly this name."""
    out = on_node("sh", "-c", "for p in /proc/[0-9]*; do printf '%s %s\\n' ${p#/proc/} \"$(readlink $p/exe 2>/dev/null)\"; done")
    rows = [line.split(" ", 1) for line in out.splitlines()]
    return [int(pid) for pid, exe in rows if os.path.basename(exe.strip().removesuffix(" (deleted)")) == program]


def rss_kib(pid, field="VmRSS"):
    for line in on_node("cat", f"/proc/{pid}/status").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise AssertionError(f"no {field} of {pid}")


# --- waiting ---------------------------------------------------------------------------------------------------


def eventually(check, seconds, every=0.1, message=""):
    """First truthy result of check() within the time."""
    end = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {message or getattr(check, '__name__', check)}, last {value!r}")
        time.sleep(every)


def healthy(box):
    return envd(box, "GET", "/health", token=None).status


# Replicas learn of each other's changes by their watches: what one answered, another may not know for a moment.
LAG = 1


def assert_gone(box):
    """Not there any more, whichever replica is asked."""
    eventually(lambda: all(box.get().status == 404 for _ in range(4)), LAG, message=f"{box.id} answers 404")
    assert_error(box.get(), 404, box.id)


def assert_ends_in(box, seconds, tolerance=2):
    def close():
        return abs(parse_time(box.get().json()["endAt"]) - (time.time() + seconds)) <= tolerance
    eventually(close, LAG, message=f"endAt is in {seconds} s")


def parse_time(text):
    """RFC 3339 → seconds since the epoch."""
    from datetime import datetime
    head, dot, rest = text.replace("Z", "+00:00").partition(".")
    if dot:
        digits = len(rest) - len(rest.lstrip("0123456789"))
        text = f"{head}.{rest[:digits][:6].ljust(6, '0')}{rest[digits:]}"
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
