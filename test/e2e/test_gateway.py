"""Data plane §8.1 A, B, C: addressing, failures, transport."""
import hashlib
import http.client
import json
import os
import statistics
import threading
import time

import pytest

from conftest import pause
from helpers import (DOMAIN, ENVD_PORT, HOST, TAG, Connection, api, assert_ends_in, assert_error, connect, envd, eventually,
                     gateway, healthy, node_pids, read_file, request, rpc, rss_kib, send, serve, sh, start, write_file)

UNKNOWN = "i" + "0" * 20
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36"
# Growth of a gateway process that a body of any size may cause.
EXTRA_MIB = float(os.environ.get("E2E_GATEWAY_EXTRA_MIB", 8))

ECHO = r'''
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def any(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        out = json.dumps({"method": self.command, "path": self.path, "headers": [[k, v] for k, v in self.headers.items()],
                          "body": body.decode("latin-1"), "peer": self.client_address[0]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(out)))
        self.send_header("X-From", "app")
        self.send_header("Location", "http://localhost:8000/x")
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(out)
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_HEAD = do_BREW = any
ThreadingHTTPServer(("0.0.0.0", 8000), H).serve_forever()
'''

# Raw behaviour by path: /ticks streams chunks with the time of their writing; /slow reads nothing for 3 s and counts
# then; /early answers after the first 5 bytes of a body; /hold streams one chunk, then notes when its peer is gone;
# /cut promises more than it sends; /ws upgrades and echoes bytes; /late sends its head after a second.
RAW = r'''
import base64, hashlib, socket, threading, time
def head(f):
    line = f.readline().decode().split()
    headers = {}
    while True:
        h = f.readline().strip()
        if not h: return line, headers
        k, _, v = h.decode("latin-1").partition(":")
        headers[k.lower()] = v.strip()
def body(f, headers):
    if headers.get("transfer-encoding") == "chunked":
        while True:
            n = int(f.readline(), 16)
            while n:
                d = f.read1(min(n, 1 << 16)); n -= len(d); yield d
            if f.readline().strip() != b"": raise SystemExit("bad chunk")
            if not d: return
    else:
        n = int(headers.get("content-length", 0))
        while n:
            d = f.read1(min(n, 1 << 16)); n -= len(d); yield d
def one(s):
    f = s.makefile("rb")
    line, headers = head(f)
    p = line[1]
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    def chunk(d): s.sendall(b"%x\r\n" % len(d) + d + b"\r\n")
    if p == "/ticks":
        s.sendall(chunked)
        for _ in range(20):
            chunk(b"%.6f" % time.time()); time.sleep(0.1)
        s.sendall(b"0\r\n\r\n")
    elif p == "/slow":
        time.sleep(3)
        n = sum(len(d) for d in body(f, headers))
        t = b"%d" % n
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(t) + t)
    elif p == "/early":
        if headers.get("transfer-encoding") == "chunked": f.readline()
        t = f.read(5)
        s.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(t) + t)
    elif p == "/hold":
        open("/tmp/closed", "w").close()
        s.sendall(chunked); chunk(b"held")
        s.recv(1)
        open("/tmp/closed", "w").write("yes")
    elif p == "/cut":
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 10)
    elif p == "/cutchunked":
        s.sendall(chunked); chunk(b"x" * 10)
    elif p == "/close":
        s.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end")
    elif p == "/late":
        time.sleep(1)
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
    elif p == "/ws":
        k = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        a = base64.b64encode(hashlib.sha1(k.encode()).digest())
        s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
                  + a + b"\r\nX-Origin: " + headers.get("origin", "").encode() + b"\r\n\r\nhello")
        while True:
            d = s.recv(65536)
            if not d: break
            s.sendall(d)
    s.close()
l = socket.create_server(("0.0.0.0", 8001), backlog=64)
while True:
    c, _ = l.accept()
    threading.Thread(target=one, args=(c,), daemon=True).start()
'''


@pytest.fixture(scope="module")
def app(box):
    serve(box, ECHO, 8000)
    serve(box, RAW, 8001)
    return box


def echoed(reply):
    assert reply.status == 200, reply
    answer = reply.json()
    answer["headers"] = {k.lower(): v for k, v in answer["headers"]}
    return answer


# --- A. addressing and routing -----------------------------------------------------------------------------------


@pytest.mark.item("dp:1", "cp:175")
def test_health(box):
    reply = envd(box, "GET", "/health", token=None)
    assert reply.status == 204 and reply.body == b""


@pytest.mark.item("dp:2", "cp:170")
def test_port_of_the_pod(app):
    answer = echoed(gateway(app.host(8000), path="/a/b?c=d%20e"))
    assert answer["path"] == "/a/b?c=d%20e" and answer["headers"]["host"] == app.host(8000)


@pytest.mark.item("dp:3")
@pytest.mark.parametrize("port", ["", ":8443", ":10443"])
def test_host_with_any_port(app, port):
    assert gateway(f"{ENVD_PORT}-{app.id}.{HOST}{port}", path="/health").status == 204
    assert echoed(gateway(f"8000-{app.id}.{HOST}{port}"))["headers"]["host"] == f"8000-{app.id}.{HOST}{port}"


@pytest.mark.item("dp:4")
def test_through_tls(app):
    assert envd(app, "GET", "/health", token=None, tls=True).status == 204
    assert echoed(gateway(app.host(8000), tls=True))["method"] == "GET"


@pytest.mark.item("dp:5")
def test_legacy_suffix(app):
    assert gateway(f"{ENVD_PORT}-{app.id}-00000000.{DOMAIN}", path="/health").status == 204


@pytest.mark.item("dp:193")
def test_any_domain(app):
    assert gateway(f"{ENVD_PORT}-{app.id}-00000000.sandbox.example.org", path="/health").status == 204


def by_headers(box, port=ENVD_PORT):
    return {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": str(port)}


@pytest.mark.item("dp:6")
def test_sandbox_host_with_headers(app):
    assert gateway(f"sandbox.{HOST}", path="/health", headers=by_headers(app)).status == 204
    assert echoed(gateway(f"sandbox.{HOST}", headers=by_headers(app, 8000)))["headers"]["host"].startswith(f"8000-{app.id}.")


@pytest.mark.item("dp:7", "cp:176")
@pytest.mark.parametrize("host", ["127.0.0.1:10000", "localhost:10000", "127.0.0.1", "[::1]:10000"])
def test_address_with_headers(app, host):
    assert gateway(host, path="/health", headers=by_headers(app)).status == 204


@pytest.mark.item("dp:8")
def test_the_host_beats_the_headers(app, new_box):
    other = new_box()
    assert echoed(gateway(app.host(8000), headers=by_headers(other, 8000)))["method"] == "GET"


@pytest.mark.item("dp:9")
@pytest.mark.parametrize("left", ["E2b-Sandbox-Id", "E2b-Sandbox-Port"])
def test_one_header_missing(app, left):
    headers = {k: v for k, v in by_headers(app).items() if k == left}
    reply = gateway(f"sandbox.{HOST}", path="/health", headers=headers)
    assert reply.status == 400 and "missing header" in reply.text


def test_router_path(app):
    reply = request("GET", f"/sandboxes/router/{app.id}/8000/x/y?z=1")
    assert echoed(reply)["path"] == "/x/y?z=1"
    assert request("GET", f"/sandboxes/router/{app.id}/{ENVD_PORT}/health").status == 204


@pytest.mark.item("dp:12")
@pytest.mark.parametrize("label", ["49983-AB_c", "49983-i$x"])
def test_bad_id(label):
    assert gateway(f"{label}.{DOMAIN}", path="/health").status == 400


@pytest.mark.item("dp:13", "dp:14")
@pytest.mark.parametrize("port", ["abc", "0", "70000", "-1", "4998399999999999999999", "", "+80", "0x50"])
def test_bad_port(app, port):
    reply = gateway(f"{port}-{app.id}.{HOST}", path="/health")
    assert 400 <= reply.status < 600 and reply.status != 502 or "not open" not in reply.text, reply
    assert reply.status != 204


@pytest.mark.item("dp:194")
def test_the_apis_own_host(app):
    assert request("GET", "/health", {"Host": f"api.{DOMAIN}"}).status == 200
    assert request("GET", "/sandboxes", {"Host": f"api.{DOMAIN}"}).status == 401


# --- B. failures -------------------------------------------------------------------------------------------------


def assert_gateway_error(reply, status, box_id, message, **more):
    assert reply.status == status, reply
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    assert reply.json() == {"sandboxId": box_id, "message": message, "code": status, **more}


@pytest.mark.item("dp:17", "cp:172")
def test_unknown_sandbox():
    for port in (ENVD_PORT, 8000):
        assert_gateway_error(gateway(f"{port}-{UNKNOWN}.{DOMAIN}", path="/health"), 502, UNKNOWN, "The sandbox was not found")


@pytest.mark.item("dp:18")
def test_killed_sandbox(new_box):
    box = new_box()
    assert healthy(box) == 204
    assert box.kill().status == 204
    time.sleep(1)
    for _ in range(6):
        assert_gateway_error(envd(box, "GET", "/health"), 502, box.id, "The sandbox was not found")


@pytest.mark.item("dp:19")
def test_paused_sandbox(new_box):
    box = new_box()
    pause(box)
    assert_gateway_error(envd(box, "GET", "/health"), 502, box.id, "The sandbox was not found")


@pytest.mark.item("dp:20", "cp:171")
def test_closed_port(box):
    began = time.monotonic()
    reply = gateway(box.host(9999))
    assert_gateway_error(reply, 502, box.id, "The sandbox is running but port is not open", port=9999)
    assert time.monotonic() - began < 5


@pytest.mark.item("dp:21")
def test_server_that_starts_a_moment_later(box):
    """The program is up and waits half a second before it listens; the request comes in between and is tried again."""
    code = ("import http.server, time; s = http.server.HTTPServer(('0.0.0.0', 8055), http.server.SimpleHTTPRequestHandler, False); "
            "open('/tmp/up', 'w').close(); time.sleep(0.5); s.server_bind(); s.server_activate(); s.serve_forever()")
    sh(box, f"nohup python3 -c \"{code}\" >/dev/null 2>&1 & while [ ! -e /tmp/up ]; do sleep 0.02; done")
    assert gateway(box.host(8055)).status == 200


@pytest.mark.item("dp:22", "dp:26", "cp:173")
def test_page_for_browsers(box):
    reply = gateway(f"8000-{UNKNOWN}.{DOMAIN}", headers={"User-Agent": CHROME})
    assert reply.status == 502 and reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert reply.text.startswith("<html") and reply.text.rstrip("\n").endswith("</html>")
    assert UNKNOWN in reply.text and "Sandbox Not Found" in reply.text
    closed = gateway(box.host(9998), headers={"User-Agent": CHROME}).text
    assert "no service running on port" in closed and "9998" in closed


@pytest.mark.item("dp:23", "dp:24", "dp:25", "cp:174")
@pytest.mark.parametrize("headers,kind", [
    ({"Accept": "application/json"}, "application/json"),
    ({"Sec-Fetch-Mode": "cors"}, "application/json"),
    ({"X-Requested-With": "XMLHttpRequest"}, "application/json"),
    ({"X-Requested-With": "XMLHttpRequest", "Sec-Fetch-Mode": "navigate"}, "text/html"),
    ({"Accept": "text/html,application/json"}, "text/html"),
])
def test_browser_but_not_a_page(headers, kind):
    reply = gateway(f"8000-{UNKNOWN}.{DOMAIN}", headers={"User-Agent": CHROME, **headers})
    assert reply.status == 502 and reply.headers.get_content_type() == kind


@pytest.mark.item("dp:27", "cp:181")
@pytest.mark.parametrize("method", ["POST", "GET", "PUT", "OPTIONS"])
def test_init_from_outside(box, method):
    reply = envd(box, method, "/init", {"Content-Type": "application/json"}, b"{}")
    assert reply.status == 404
    body = reply.json()
    assert body["code"] == 404 and body["path"] and body["message"] and "sandboxId" not in body


@pytest.mark.item("dp:28", "dp:29")
@pytest.mark.parametrize("path", [
    "//init", "/init/", "/files/../init", "/./init", "/%69nit", "/init?x=1", "///init//", "/a/b/../../init", "/%2e/init",
    "/files/%2e%2e/init", "/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/upgrade", "//freeze/",
])
def test_internal_paths_from_outside(box, path):
    reply = envd(box, "POST", path, {"Content-Type": "application/json"}, b"{}")
    assert reply.status == 404 and reply.json()["code"] == 404


@pytest.mark.item("dp:27")
def test_init_from_outside_by_every_way_of_addressing(box):
    for reply in (gateway(f"sandbox.{HOST}", "POST", "/init", by_headers(box), b"{}"),
                  gateway("127.0.0.1:10000", "POST", "/init", by_headers(box), b"{}"),
                  request("POST", f"/sandboxes/router/{box.id}/{ENVD_PORT}/init", {}, b"{}"),
                  request("POST", f"/sandboxes/router/{box.id}/{ENVD_PORT}//init", {}, b"{}")):
        assert reply.status == 404, reply


@pytest.mark.item("dp:30")
def test_the_same_paths_on_another_port(app):
    for path in ("/init", "/freeze", "/init/", "/files/../init"):
        assert echoed(gateway(app.host(8000), "POST", path, body=b"{}"))["path"] == path


def private(new_box):
    box = new_box(network={"allowPublicTraffic": False})
    assert box.answer["trafficAccessToken"]
    serve(box, ECHO, 8000)
    return box


@pytest.mark.item("dp:31", "dp:32", "dp:33", "cp:48")
def test_private_ingress(new_box):
    box = private(new_box)
    reply = gateway(box.host(8000))
    assert reply.status == 403 and reply.json()["message"].endswith("Token header 'e2b-traffic-access-token' is missing")
    reply = gateway(box.host(8000), headers={"e2b-traffic-access-token": "wrong"})
    assert reply.status == 403 and reply.json()["message"].endswith("is invalid")
    for name in ("e2b-traffic-access-token", "E2B-Traffic-Access-Token"):
        assert gateway(box.host(8000), headers={name: box.answer["trafficAccessToken"]}).status == 200
    assert healthy(box) == 204


@pytest.mark.item("dp:34", "dp:35")
def test_private_ingress_for_browsers(new_box):
    box = private(new_box)
    page = gateway(box.host(8000), headers={"User-Agent": CHROME})
    assert page.status == 403 and "Missing Traffic Access Token" in page.text and page.text.startswith("<html")
    page = gateway(box.host(8000), headers={"User-Agent": CHROME, "e2b-traffic-access-token": "x"})
    assert page.status == 403 and "Invalid Traffic Access Token" in page.text
    assert gateway(box.host(8000), "OPTIONS").status == 403


@pytest.mark.item("dp:36", "cp:178")
def test_masked_host(new_box):
    box = new_box(network={"maskRequestHost": "localhost:${PORT}"})
    serve(box, ECHO, 8000)
    headers = echoed(gateway(box.host(8000)))["headers"]
    assert headers["host"] == "localhost:8000" and headers["x-forwarded-host"] == box.host(8000)
    assert healthy(box) == 204


@pytest.mark.item("dp:37", "cp:50")
@pytest.mark.parametrize("mask", ["-https://abcd", "foo bar", "exämple.org", "a\r\nb"])
def test_mask_that_cannot_be_used(mask):
    assert_error(api("POST", "/sandboxes", {"templateID": "base", "metadata": TAG, "network": {"maskRequestHost": mask}}), 400)


@pytest.mark.item("dp:39", "cp:146", "cp:150")
@pytest.mark.next("auto-resume")
def test_traffic_resumes(new_box):
    """A paused sandbox with auto-resume: refused without the right token, and it stays paused; one call with it wakes it."""
    box = new_box(autoPause=True, autoResume={"enabled": True}, timeout=420)
    pause(box)
    for token in (None, "wrong"):
        reply = rpc(box, "process.Process/List", {}, token=token)
        if reply.status == 502:
            pytest.skip("next: waking a paused sandbox by traffic")
        assert reply.status == 403 and reply.json()["code"] == 403, reply
    assert box.get().json()["state"] == "paused"
    assert rpc(box, "process.Process/List", {}).status == 200
    assert_ends_in(box, 420, 5)
    assert box.get().json()["state"] == "running"


# --- C. transport ------------------------------------------------------------------------------------------------


@pytest.mark.item("dp:44")
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_chunks_arrive_as_they_are_written(app, tls):
    host = app.host(8001)
    connection = Connection(tls, host.partition(":")[0])
    response = send(connection, "GET", "/ticks", {"Host": host})
    late = []
    while True:
        data = response.read1(4096)
        if not data:
            break
        late.append(time.time() - float(data[-17:]))
    connection.close()
    assert len(late) >= 15
    assert statistics.median(late) < 0.05 and max(late) < 1, late


def gateway_pids():
    return node_pids("apiserver")


class Growth:
    """Highest growth of any gateway process's resident memory while the block runs, sampled."""

    def __enter__(self):
        self.before = {p: rss_kib(p) for p in gateway_pids()}
        assert self.before, "no apiserver process found on the node"
        self.peak, self.stop = dict(self.before), threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()
        return self

    def sample(self):
        while not self.stop.wait(0.3):
            for pid in self.before:
                self.peak[pid] = max(self.peak[pid], rss_kib(pid))

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    @property
    def mib(self):
        return max(self.peak[p] - self.before[p] for p in self.before) / 1024


@pytest.mark.item("dp:45", "cp:182")
@pytest.mark.timeout(300)
def test_a_gibibyte_up_and_down(new_box):
    box = new_box()
    block, count = os.urandom(1 << 20), 1024
    want = hashlib.sha256()
    for _ in range(count):
        want.update(block)
    host = box.host(ENVD_PORT)
    with Growth() as growth:
        connection = Connection(tls=True, server_name=host.partition(":")[0], timeout=240)
        response = send(connection, "POST", "/files?path=/tmp/big", {
            "Host": host, "X-Access-Token": box.token, "Content-Type": "application/octet-stream",
            "Content-Length": str(count << 20)}, (block for _ in range(count)))
        assert response.status == 200, response.read()
        response.read()
        connection.close()
        connection = Connection(tls=True, server_name=host.partition(":")[0], timeout=240)
        response = send(connection, "GET", "/files?path=/tmp/big", {
            "Host": host, "X-Access-Token": box.token, "Accept-Encoding": "identity"})
        assert response.status == 200
        got, size = hashlib.sha256(), 0
        while True:
            data = response.read1(1 << 18)
            if not data:
                break
            got.update(data)
            size += len(data)
        connection.close()
    assert size == count << 20 and got.digest() == want.digest()
    assert growth.mib < EXTRA_MIB, f"{growth.mib:.1f} MiB"


@pytest.mark.item("dp:46")
def test_slow_reader_throttles_the_client(app):
    """Nothing is read for 3 s: the client stalls after what kernels hold, and the gateway keeps next to nothing."""
    total, block = 256 << 20, b"x" * (1 << 16)
    host = app.host(8001)
    with Growth() as growth:
        s = connect()
        s.sendall(f"POST /slow HTTP/1.1\r\nHost: {host}\r\nContent-Length: {total}\r\n\r\n".encode())
        s.settimeout(1)
        sent, stalled_at = 0, None
        began = time.monotonic()
        view = memoryview(block)
        while sent < total:
            try:
                sent += s.send(view[:min(len(block), total - sent)])
            except TimeoutError:
                stalled_at = stalled_at or sent
                assert time.monotonic() - began < 60
        assert stalled_at is not None, "256 MiB were taken from the client although nobody read them"
        assert stalled_at < 100 << 20, stalled_at
        s.settimeout(60)
        response = http.client.HTTPResponse(s)
        response.begin()
        assert int(response.read()) == total
        s.close()
    assert growth.mib < EXTRA_MIB, f"{growth.mib:.1f} MiB"


@pytest.mark.item("dp:47")
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_body_is_forwarded_before_its_end(app, chunked):
    """The first five bytes reach the server, which answers them, while the body is still open."""
    s = connect(timeout=10)
    framing = "Transfer-Encoding: chunked" if chunked else "Content-Length: 1000"
    first = b"5\r\nhello\r\n" if chunked else b"hello"
    s.sendall(f"POST /early HTTP/1.1\r\nHost: {app.host(8001)}\r\n{framing}\r\n\r\n".encode() + first)
    response = http.client.HTTPResponse(s)
    response.begin()
    assert response.status == 200 and response.read() == b"hello"
    s.close()


@pytest.mark.item("dp:47")
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_upload_to_envd(box, chunked):
    data = os.urandom(300_000)
    body = iter([data[i:i + 7001] for i in range(0, len(data), 7001)]) if chunked else data
    assert write_file(box, "/tmp/up", body).status == 200
    assert read_file(box, "/tmp/up").body == data


@pytest.mark.item("dp:48")
def test_client_gone_closes_the_upstream(app):
    host = app.host(8001)
    connection = Connection()
    response = send(connection, "GET", "/hold", {"Host": host})
    assert response.read1(100) == b"held"
    assert sh(app, "cat /tmp/closed") == ""
    response.close()
    connection.close()
    began = time.monotonic()
    eventually(lambda: sh(app, "cat /tmp/closed") == "yes", 3)
    assert time.monotonic() - began < 2


@pytest.mark.item("dp:48")
def test_client_gone_before_the_answer(app):
    """Seen while the gateway waits for a head: the connection to the pod is closed too."""
    before = sh(app, "ss -Htn state established sport = :8001 | wc -l")
    s = connect()
    s.sendall(f"GET /late HTTP/1.1\r\nHost: {app.host(8001)}\r\n\r\n".encode())
    time.sleep(0.2)
    s.close()
    eventually(lambda: sh(app, "ss -Htn state established sport = :8001 | wc -l") == before, 3)


@pytest.mark.item("dp:49")
def test_pod_deleted_in_a_stream(new_box):
    from helpers import kubectl, pods_of
    box = new_box()
    with start(box, "echo go; sleep 60") as stream:
        events = iter(stream)
        next(events)
        next(events)
        kubectl("delete", "pod", pods_of(box.id)[0]["metadata"]["name"], "--grace-period=0", "--force", "--wait=false")
        began = time.monotonic()
        with pytest.raises(Exception) as e:
            list(events)
        assert not isinstance(e.value, AssertionError), e.value
        assert time.monotonic() - began < 5


@pytest.mark.item("dp:49")
@pytest.mark.parametrize("path", ["/cut", "/cutchunked"])
def test_cut_answer_stays_cut(app, path):
    """An upstream that breaks off mid-body: never a clean end towards the client."""
    connection = Connection()
    response = send(connection, "GET", path, {"Host": app.host(8001)})
    assert response.status == 200
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        response.read()
    connection.close()


def test_answer_that_ends_with_the_connection(app):
    assert gateway(app.host(8001), path="/close").body == b"until the end"


@pytest.mark.item("dp:51", "cp:179")
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_websocket(app, tls):
    host = app.host(8001)
    s = connect(tls, host.partition(":")[0])
    s.sendall((f"GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
               "Origin: https://example.org\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode())
    data = b""
    while b"\r\n\r\nhello" not in data:
        piece = s.recv(4096)
        assert piece, data
        data += piece
    head = data.split(b"\r\n\r\n")[0].decode().lower()
    assert head.startswith("http/1.1 101") and "upgrade: websocket" in head
    assert "s3pplmbitxaq9kygzzhzrbk+xoo=" in head and "x-origin: https://example.org" in head
    for size in (1, 1000, 300_000):
        sent = os.urandom(size)
        threading.Thread(target=s.sendall, args=(sent,)).start()
        got = b""
        while len(got) < size:
            got += s.recv(65536)
        assert got == sent
    s.close()


@pytest.mark.item("dp:53")
def test_encodings_pass_untouched(app):
    answer = echoed(gateway(app.host(8000), headers={"Accept-Encoding": "br, zstd"}))
    assert answer["headers"]["accept-encoding"] == "br, zstd"
    assert "accept-encoding" not in echoed(gateway(app.host(8000)))["headers"]


@pytest.mark.item("dp:57")
def test_expect_continue(app):
    s = connect(timeout=10)
    s.sendall(f"POST / HTTP/1.1\r\nHost: {app.host(8000)}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n".encode())
    assert s.recv(4096).startswith(b"HTTP/1.1 100")
    s.sendall(b"hello")
    response = http.client.HTTPResponse(s)
    response.begin()
    assert json.loads(response.read())["body"] == "hello"
    s.close()


@pytest.mark.item("dp:58")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods(app, method):
    assert echoed(gateway(app.host(8000), method, body=b"x"))["method"] == method


@pytest.mark.item("dp:58")
def test_head_has_no_body_and_the_connection_goes_on(app):
    connection = Connection()
    for _ in range(3):
        response = send(connection, "HEAD", "/", {"Host": app.host(8000)})
        assert response.status == 200 and int(response.headers["Content-Length"]) > 0 and response.read() == b""
    response = send(connection, "GET", "/", {"Host": app.host(8000)})
    assert response.status == 200 and json.loads(response.read())["method"] == "GET"
    connection.close()


@pytest.mark.item("dp:59", "dp:60")
def test_headers_towards_the_sandbox(app):
    answer = echoed(gateway(app.host(8000), headers={
        "Connection": "close, X-Hop", "X-Hop": "1", "Keep-Alive": "5", "TE": "trailers", "Proxy-Authorization": "x",
        "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "evil", "Forwarded": "for=1.2.3.4", "X-End": "kept"}))
    for gone in ("x-hop", "keep-alive", "proxy-authorization", "x-forwarded-for", "x-forwarded-host", "forwarded"):
        assert gone not in answer["headers"], gone
    assert answer["headers"]["x-end"] == "kept"


@pytest.mark.item("dp:62")
def test_headers_from_the_sandbox(app):
    reply = gateway(app.host(8000))
    assert reply.headers["X-From"] == "app" and reply.headers["Location"] == "http://localhost:8000/x"


def test_pipelined_requests(app):
    s = connect(timeout=10)
    one = f"GET /%d HTTP/1.1\r\nHost: {app.host(8000)}\r\n\r\n"
    s.sendall("".join(one % i for i in range(5)).encode())
    f = s.makefile("rb")
    for i in range(5):
        assert f.readline().startswith(b"HTTP/1.1 200")
        size = 0
        while True:
            line = f.readline().strip().lower()
            if not line:
                break
            if line.startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        assert json.loads(f.read(size))["path"] == f"/{i}"
    s.close()


def test_one_connection_for_several_sandboxes(app, new_box):
    other = new_box()
    connection = Connection()
    for box in (app, other, app, other):
        response = send(connection, "GET", "/files?path=/etc/hostname",
                        {"Host": box.host(ENVD_PORT), "X-Access-Token": box.token})
        assert response.status == 200
        response.read()
    connection.close()


@pytest.mark.item("dp:63")
@pytest.mark.parametrize("address", ["0.0.0.0", "::", "127.0.0.1", "localhost", "::1"])
@pytest.mark.next("loopback servers")
def test_addresses_that_a_server_binds(box, address):
    port = 8100 + ["0.0.0.0", "::", "127.0.0.1", "localhost", "::1"].index(address)
    family = "AF_INET6" if ":" in address else "AF_INET"
    serve(box, f"""
import http.server, socket
class S(http.server.ThreadingHTTPServer): address_family = socket.{family}
S(("{address}", {port}), http.server.SimpleHTTPRequestHandler).serve_forever()
""", port)
    def answers():
        return gateway(box.host(port)).status == 200
    if address in ("127.0.0.1", "localhost", "::1") and not _within(answers, 2):
        pytest.skip("next: servers on loopback alone")
    eventually(answers, 5)


def _within(check, seconds):
    try:
        return eventually(check, seconds)
    except AssertionError:
        return False
