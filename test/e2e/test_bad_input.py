"""Malformed HTTP, bad JSON, wrong types, sizes: the right status and body, and nothing created."""
import json
import time

import pytest

from helpers import (DOMAIN, ENVD_PORT, KEY, TAG, api, assert_error, connect, gateway, healthy, replica_sets, request, run)

HEAD = f"POST /e2b/v1/sandboxes HTTP/1.1\r\nHost: api.{DOMAIN}\r\nX-API-Key: {KEY}\r\nContent-Type: application/json\r\n"
BODY = json.dumps({"templateID": "base", "metadata": {"e2e-bad": "1"}, "timeout": 30})
GOOD = f"Content-Length: {len(BODY)}\r\n\r\n{BODY}"


def chunked(data=BODY, size=None, end="\r\n", last="0\r\n\r\n"):
    return f"{size or format(len(data), 'x')}{end}{data}\r\n{last}"


# Each of these, after a head without framing, must be refused: no second reading of where a body ends.
SMUGGLING = {
    "te-space-colon": f"Transfer-Encoding : chunked\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}",
    "length-plus": f"Content-Length: +{len(BODY)}\r\n\r\n{BODY}",
    "length-minus": "Content-Length: -1\r\n\r\n",
    "length-twice": f"Content-Length: {len(BODY)}\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}",
    "length-two-values": f"Content-Length: {len(BODY)}\r\nContent-Length: 0\r\n\r\n{BODY}",
    "length-list": f"Content-Length: {len(BODY)}, {len(BODY)}\r\n\r\n{BODY}",
    "length-23-digits": "Content-Length: 99999999999999999999999\r\n\r\n",
    "length-hex": "Content-Length: 0x10\r\n\r\n",
    "length-and-chunked": f"Content-Length: {len(BODY)}\r\nTransfer-Encoding: chunked\r\n\r\n{chunked()}",
    "chunked-and-length": f"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n{chunked()}",
    "chunked-identity": f"Transfer-Encoding: chunked, identity\r\n\r\n{chunked()}",
    "xchunked": f"Transfer-Encoding: xchunked\r\n\r\n{chunked()}",
    "gzip-chunked": f"Transfer-Encoding: gzip, chunked\r\n\r\n{chunked()}",
    "chunked-twice": f"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n{chunked()}",
    "chunked-quoted": f"Transfer-Encoding: \"chunked\"\r\n\r\n{chunked()}",
    "chunk-0x": f"Transfer-Encoding: chunked\r\n\r\n{chunked(size=hex(len(BODY)))}",
    "chunk-huge": f"Transfer-Encoding: chunked\r\n\r\n{chunked(size='ffffffffffffffffff')}",
    "chunk-negative": f"Transfer-Encoding: chunked\r\n\r\n{chunked(size='-1')}",
    "chunk-bare-lf": f"Transfer-Encoding: chunked\r\n\r\n{chunked(end=chr(10))}",
    "chunk-extension-lf": f"Transfer-Encoding: chunked\r\n\r\n{format(len(BODY), 'x')};a=b\n{BODY}\r\n0\r\n\r\n",
    "chunk-without-crlf": f"Transfer-Encoding: chunked\r\n\r\n{format(len(BODY), 'x')}\r\n{BODY}0\r\n\r\n",
    "bare-lf-header": f"X-A: 1\nX-B: 2\r\n{GOOD}",
    "nul-in-value": f"X-A: a\0b\r\n{GOOD}",
    "cr-in-value": f"X-A: a\rb\r\n{GOOD}",
    "folded": f"X-A: a\r\n b\r\n{GOOD}",
    "folded-te": f"Transfer-Encoding:\r\n chunked\r\n\r\n{chunked()}",
    "name-with-space": f"X A: 1\r\n{GOOD}",
    "no-colon": f"nonsense\r\n{GOOD}",
    "empty-name": f": x\r\n{GOOD}",
    "two-hosts": f"Host: other\r\n{GOOD}",
}
# Whole requests.
BROKEN = {
    "no-host": f"POST /e2b/v1/sandboxes HTTP/1.1\r\nX-API-Key: {KEY}\r\n{GOOD}",
    "te-in-1.0": f"POST /e2b/v1/sandboxes HTTP/1.0\r\nHost: x\r\nX-API-Key: {KEY}\r\nTransfer-Encoding: chunked\r\n\r\n{chunked()}",
    "version-1.2": HEAD.replace("HTTP/1.1", "HTTP/1.2") + GOOD,
    "version-2.0": HEAD.replace("HTTP/1.1", "HTTP/2.0") + GOOD,
    "version-0.9": "GET /\r\n\r\n",
    "lower-case-version": HEAD.replace("HTTP/1.1", "http/1.1") + GOOD,
    "control-in-target": HEAD.replace("/e2b/v1/sandboxes", "/e2b/v1/sandboxes\x01") + GOOD,
    "space-in-target": HEAD.replace("/e2b/v1/sandboxes", "/e2b/v1/sand boxes") + GOOD,
    "leading-space": HEAD.replace("\r\nHost", "\r\n Host", 1) + GOOD,
    "bare-lf-line": HEAD.replace("HTTP/1.1\r\n", "HTTP/1.1\n", 1) + GOOD,
    "bad-method": HEAD.replace("POST", "PO(ST", 1) + GOOD,
    "binary": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\0" * 200,
    "http2-preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


def raw(text, host=None, seconds=8):
    """Sends bytes; returns everything until the connection closes, and whether it did."""
    s = connect(timeout=seconds)
    data = b""
    try:
        s.sendall(text.encode("latin-1"))
        while True:
            piece = s.recv(65536)
            if not piece:
                return data, True
            data += piece
    except ConnectionResetError:
        return data, True
    except TimeoutError:
        return data, False
    finally:
        s.close()


def statuses(data):
    return [int(line.split()[1]) for line in data.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


def refused(data, closed):
    """One 4xx/5xx answer at most, nothing after it, and the connection closed."""
    seen = statuses(data)
    assert all(s >= 400 for s in seen) and len(seen) <= 1, data
    assert closed, "the connection stays open after a broken request"
    if seen:
        head, _, body = data.partition(b"\r\n\r\n")
        assert b"connection: close" in head.lower(), head
        if b"application/json" in head.lower():
            answer = json.loads(body)
            assert answer["code"] == seen[0] and answer["message"], answer
    return seen


@pytest.fixture(scope="module")
def nothing_created():
    before = set(replica_sets())
    yield
    time.sleep(0.5)
    made = {k: v for k, v in replica_sets().items() if k not in before}
    bad = [k for k, v in made.items() if "e2e-bad" in json.dumps(v)]
    assert not bad, bad


@pytest.mark.usefixtures("nothing_created")
class TestBrokenHttpAtTheApi:
    def test_the_form_itself_is_good(self):
        """What the broken ones are made from is accepted, so they fail for their own reason."""
        reply = api("POST", "/sandboxes", raw=json.dumps({"templateID": "base", "metadata": TAG}).encode())
        assert reply.status == 201
        assert api("DELETE", f"/sandboxes/{reply.json()['sandboxID']}").status == 204

    @pytest.mark.parametrize("name", SMUGGLING)
    def test_framing(self, name):
        refused(*raw(HEAD + SMUGGLING[name]))

    @pytest.mark.parametrize("name", BROKEN)
    def test_request(self, name):
        refused(*raw(BROKEN[name]))

    def test_a_request_hidden_behind_a_refused_one_is_not_read(self):
        hidden = f"DELETE /e2b/v1/sandboxes/x HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\n\r\n"
        assert len(refused(*raw(HEAD + SMUGGLING["length-and-chunked"] + hidden))) <= 1

    @pytest.mark.item("dp:54")
    def test_head_too_large(self):
        seen = refused(*raw(HEAD + "X-Big: " + "x" * (1 << 20) + "\r\n" + GOOD))
        assert not seen or seen[0] in (400, 431)

    def test_too_many_headers(self):
        seen = refused(*raw(HEAD + "".join(f"X-{i}: 1\r\n" for i in range(5000)) + GOOD))
        assert not seen or seen[0] in (400, 431)

    def test_request_line_too_long(self):
        seen = refused(*raw("GET /" + "a" * (1 << 20) + " HTTP/1.1\r\nHost: x\r\n\r\n"))
        assert not seen or seen[0] in (400, 414, 431)


@pytest.mark.usefixtures("nothing_created")
class TestBrokenHttpAtTheGateway:
    """The same shapes towards a sandbox: refused by the gateway, and the sandbox is as before. Bodies are streamed, so what
    breaks in the middle of a body leaves a part of a file, as a broken connection would; a broken head leaves nothing."""

    @pytest.mark.item("dp:61")
    @pytest.mark.parametrize("name", SMUGGLING)
    def test_framing(self, box, name):
        where = "/tmp/partial" if name.startswith("chunk-") else "/tmp/smuggled"
        head = (f"POST /files?path={where} HTTP/1.1\r\nHost: {box.host(ENVD_PORT)}\r\nX-Access-Token: {box.token}\r\n"
                "Content-Type: application/octet-stream\r\n")
        refused(*raw(head + SMUGGLING[name]))

    def test_no_byte_of_them_arrived(self, box):
        assert run(box, "ls /tmp/smuggled").code != 0
        assert healthy(box) == 204

    @pytest.mark.item("dp:54")
    def test_large_heads(self, box):
        """60 KiB of header pass; a mebibyte is refused, at once and with a status."""
        reply = gateway(box.host(ENVD_PORT), path="/health", headers={f"X-{i}": "v" * 6000 for i in range(10)})
        assert reply.status == 204
        seen = refused(*raw(f"GET /health HTTP/1.1\r\nHost: {box.host(ENVD_PORT)}\r\nX: {'x' * (1 << 20)}\r\n\r\n"))
        assert not seen or seen[0] in (400, 431)


class TestBrokenHttpAtEnvd:
    """Past the gateway, from inside the sandbox, straight at the daemon."""

    def test_shapes(self, box):
        head = ("POST /files?path=/tmp/{} HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"
                f"X-Access-Token: {box.token}\r\n")
        shapes = {**{k: head.format("partial" if k.startswith("chunk-") else "direct") + v for k, v in SMUGGLING.items()},
                  **{k: v.replace("/e2b/v1/sandboxes", "/files?path=/tmp/direct") for k, v in BROKEN.items()}}
        program = r'''
import json, socket, sys
answers = {}
for name, text in json.load(open("/tmp/shapes.json")).items():
    s = socket.create_connection(("127.0.0.1", 49983), 5); s.settimeout(6)
    data, closed = b"", False
    try:
        s.sendall(text.encode("latin-1"))
        while True:
            d = s.recv(65536)
            if not d: closed = True; break
            data += d
    except ConnectionError: closed = True
    except TimeoutError: pass
    answers[name] = [data.decode("latin-1"), closed]
print(json.dumps(answers))
'''
        from helpers import write_file
        assert write_file(box, "/tmp/shapes.json", json.dumps(shapes).encode()).status == 200
        assert write_file(box, "/tmp/shapes.py", program.encode()).status == 200
        out = run(box, "python3 /tmp/shapes.py")
        assert out.code == 0, out.stderr
        bad = {}
        for name, (text, closed) in json.loads(out.stdout).items():
            try:
                refused(text.encode("latin-1"), closed)
            except AssertionError as e:
                bad[name] = str(e)
        assert not bad
        assert run(box, "ls /tmp/direct").code != 0
        assert healthy(box) == 204


@pytest.mark.usefixtures("nothing_created")
class TestBadRequests:
    """Well-formed HTTP with a bad request in it."""

    BAD = {"e2e-bad": "1"}

    @pytest.mark.item("cp:11")
    @pytest.mark.parametrize("text", [
        b"", b"not json", b"{", b"[]", b"null", b"1", b'"x"', b'{"templateID":"base"', b'{"templateID":"base",}',
        b'{"templateID":"base"} x', b'{"templateID":"base","templateID":"base"}', b"\xff\xfe{}", b'{"templateID":"\xff"}',
        b'{"templateID":"ba\\u0000se"}', b"[" * 100000, b'{"a":' * 50000,
    ], ids=["empty", "text", "open", "array", "null", "number", "string", "cut", "comma", "rest", "twice", "utf16", "utf8",
            "nul", "deep-array", "deep-object"])
    @pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes"])
    def test_json(self, path, text):
        assert_error(api("POST", path, raw=text), 400)

    @pytest.mark.item("cp:12")
    @pytest.mark.parametrize("field,value", [
        ("templateID", 7), ("templateID", None), ("templateID", ""), ("templateID", ["base"]), ("templateID", "x" * 5000),
        ("templateID", "../../etc"), ("templateID", "ba\nse"),
        ("timeout", "abc"), ("timeout", 1.5), ("timeout", True), ("timeout", -2), ("timeout", 2 ** 31), ("timeout", 10 ** 30),
        ("metadata", "x"), ("metadata", []), ("metadata", {"a": 1}), ("metadata", {"a": None}), ("metadata", {"a": {}}),
        ("envVars", "x"), ("envVars", {"A": 1}), ("envVars", ["A=1"]), ("envVars", {"A=B": "x"}), ("envVars", {"": "x"}),
        ("secure", "yes"), ("secure", 1), ("autoPause", "true"), ("autoResume", True), ("autoResume", {"enabled": "x"}),
        ("allow_internet_access", "no"), ("network", []), ("network", {"allowOut": "x"}), ("volumeMounts", {}),
        ("volumeMounts", [{"name": "no-such", "path": "/x"}]),
    ], ids=lambda v: str(v)[:24])
    def test_field(self, field, value):
        body = {"templateID": "base", "timeout": 30, "metadata": self.BAD, field: value}
        if field == "metadata" and isinstance(value, dict):
            body["metadata"] = {**self.BAD, **value}
        reply = api("POST", "/sandboxes", body)
        if field == "templateID" and reply.status == 404:
            return
        assert_error(reply, 400)

    @pytest.mark.item("cp:13")
    def test_body_too_large(self):
        """Refused by its length before the body was sent, and on the way when chunked."""
        big = json.dumps({"templateID": "base", "metadata": {**self.BAD, "x": "y" * (17 << 20)}}).encode()
        s = connect(timeout=15)
        s.sendall((HEAD + f"Content-Length: {len(big)}\r\n\r\n").encode())
        data = s.recv(65536)
        assert statuses(data) and statuses(data)[0] in (400, 413), data
        s.close()
        s = connect(timeout=15)
        s.sendall((HEAD + "Transfer-Encoding: chunked\r\n\r\n").encode())
        data = b""
        try:
            for i in range(0, len(big), 65536):
                piece = big[i:i + 65536]
                s.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
            data = s.recv(65536)
        except (ConnectionError, TimeoutError):
            try:
                data = s.recv(65536)
            except (ConnectionError, TimeoutError):
                data = b""
        assert not data or statuses(data)[0] in (400, 413), data
        s.close()

    def test_large_metadata_and_environment_have_limits(self):
        for field in ("metadata", "envVars"):
            body = {"templateID": "base", "timeout": 30, "metadata": self.BAD}
            body[field] = {**(self.BAD if field == "metadata" else {}), **{f"K{i}": "v" * 1000 for i in range(700)}}
            reply = api("POST", "/sandboxes", body)
            assert reply.status in (400, 413), reply
            assert_error(reply, reply.status)

    def test_values_cannot_change_what_is_deployed(self, new_box):
        """Template syntax, YAML and label characters in a caller's values stay values."""
        evil = {"x": "{{.Namespace}}", "y": "a\n  hostNetwork: true", "z": "{{range .}}", "sbx-id": "other", "---": "---",
                "name": "Not A Valid Name!"}
        evil.pop("name")
        box = new_box(metadata=evil, envVars={"E": "{{.Sandbox.ID}}\nprivileged: true"})
        spec = replica_sets()[box.id]["spec"]["template"]["spec"]
        assert not spec.get("hostNetwork") and spec["automountServiceAccountToken"] is False
        assert not any((c.get("securityContext") or {}).get("privileged") for c in spec["containers"])
        assert box.get().json()["metadata"] == {**evil, **TAG}
        assert run(box, "printenv E").stdout == b"{{.Sandbox.ID}}\nprivileged: true\n"

    @pytest.mark.parametrize("path", [
        "/sandboxes/../sandboxes", "/sandboxes/%2e%2e", "/sandboxes/%00", "/sandboxes/%", "/sandboxes/%zz", "/%2e%2e/%2e%2e/etc/passwd",
        "/sandboxes/" + "a" * 3000, "/sandboxes//", "/v2/sandboxes?limit=%", "/v2/sandboxes?metadata=%", "/v2/sandboxes?metadata=a%3Db%26",
    ])
    def test_odd_paths_are_answered(self, path):
        reply = api("GET", path)
        assert reply.status in (200, 400, 404, 414), reply
        if reply.status >= 400:
            assert_error(reply, reply.status)

    @pytest.mark.item("cp:22")
    def test_alive_afterwards(self):
        assert request("GET", "/healthz").status == 200
        assert request("GET", "/readyz").status == 200


def test_silent_clients_do_no_harm():
    """Connections that say nothing, or stop in the middle of a head, keep nobody else waiting."""
    silent = [connect(timeout=1) for _ in range(50)]
    for s in silent[:25]:
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    began = time.monotonic()
    assert request("GET", "/healthz").status == 200
    assert time.monotonic() - began < 2
    for s in silent:
        s.close()


def half_a_head():
    """Run in the background by test_long.py: what the server says to a client that stops in the middle of a head."""
    s = connect(timeout=60)
    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    data = b""
    try:
        while piece := s.recv(4096):
            data += piece
    except ConnectionResetError:
        pass
    return statuses(data)
