"""Data plane §8.1 D: envd's HTTP side, through the gateway."""
import base64
import gzip
import hashlib
import os
import threading
import time
import urllib.parse

import pytest

from conftest import pause
from helpers import (api, envd, multipart, read_file, rpc, sh, write_file)

ALL_BYTES = bytes(range(256))


def signature(path, operation, user, token, expiration=None):
    """As the SDKs compute it."""
    text = f"{path}:{operation}:{user}:{token}" + (f":{expiration}" if expiration is not None else "")
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def error(reply, status, text):
    assert reply.status == status, reply
    body = reply.json()
    assert body["code"] == status and text in body["message"], body
    return body


def owner(box, path):
    return sh(box, f"stat -c '%U %G %a' '{path}'").strip()


# --- health, tokens, environment ---------------------------------------------------------------------------------


@pytest.mark.item("dp:64")
def test_health_needs_no_token(box):
    for token in (None, "wrong", True):
        reply = envd(box, "GET", "/health", token=token)
        assert reply.status == 204 and reply.headers["Cache-Control"] == "no-store"


@pytest.mark.item("dp:65", "cp:35")
def test_no_token(box):
    reply = rpc(box, "process.Process/List", {}, token=None)
    assert reply.status == 401
    assert reply.json() == {"code": 401, "message": "unauthorized access, please provide a valid access token or method "
                                                    "signing if supported"}


@pytest.mark.item("dp:66")
def test_right_token(box):
    assert rpc(box, "process.Process/List", {}).status == 200


@pytest.mark.item("dp:67")
def test_token_after_a_pause(new_box):
    box = new_box()
    write_file(box, "f.txt", b"x")
    sig = signature("f.txt", "read", "", box.token)
    pause(box)
    assert api("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status == 201
    assert rpc(box, "process.Process/List", {}).status == 200
    assert envd(box, "GET", f"/files?path=f.txt&signature={urllib.parse.quote(sig, safe='')}", token=None).status in (200, 404)


@pytest.mark.item("dp:68")
def test_envs(new_box):
    box = new_box(envVars={"FOO": "bar"})
    assert envd(box, "GET", "/envs", token=None).status == 401
    reply = envd(box, "GET", "/envs")
    assert reply.status == 200
    got = reply.json()
    assert got["FOO"] == "bar" and got["E2B_SANDBOX"] == "true" and got["E2B_SANDBOX_ID"] == box.id
    assert got["E2B_TEMPLATE_ID"]


@pytest.mark.item("dp:69")
def test_create_environment_in_commands(new_box):
    box = new_box(envVars={"FOO": "bar"})
    assert sh(box, "echo $FOO") == "bar\n"
    assert sh(box, "echo $FOO", envs={"FOO": "other", "MORE": "x"}) == "other\n"
    assert sh(box, "echo $FOO$MORE") == "bar\n"
    assert sh(box, "echo $FOO", user="root") == "bar\n"


@pytest.mark.item("dp:70")
def test_default_user_and_folder(box):
    assert sh(box, "whoami; pwd") == "user\n/home/user\n"


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.item("dp:71")
def test_write(box):
    headers, body = multipart([("test.txt", b"Hello")])
    reply = envd(box, "POST", "/files?path=test.txt", headers, body)
    assert reply.status == 200
    assert reply.json() == [{"name": "test.txt", "path": "/home/user/test.txt", "type": "file"}]
    assert read_file(box, "test.txt").body == b"Hello"


@pytest.mark.item("dp:72")
@pytest.mark.parametrize("data", ["text äöü\n".encode(), ALL_BYTES, b"", os.urandom(10 << 20), b"\r\n--x\r\n" * 1000],
                         ids=["text", "binary", "empty", "10MiB", "boundaries"])
@pytest.mark.parametrize("form", ["multipart", "octet"])
def test_read_back(box, data, form):
    if form == "multipart":
        headers, body = multipart([("x", data)])
        assert envd(box, "POST", "/files?path=/tmp/back", headers, body).status == 200
    else:
        assert write_file(box, "/tmp/back", data).status == 200
    reply = read_file(box, "/tmp/back")
    assert reply.status == 200 and reply.body == data
    assert int(reply.headers["Content-Length"]) == len(data)


@pytest.mark.item("dp:73")
def test_read_missing(box):
    error(read_file(box, "/home/user/nothing"), 404, "does not exist")


@pytest.mark.item("dp:74")
def test_read_folder(box):
    error(read_file(box, "/home/user"), 400, "is a directory")


@pytest.mark.item("dp:75")
def test_missing_parents(box):
    assert write_file(box, "/home/user/p1/p2/f.txt", b"x").status == 200
    assert owner(box, "/home/user/p1/p2/f.txt") == "user user 644"
    assert owner(box, "/home/user/p1/p2") == "user user 755" and owner(box, "/home/user/p1") == "user user 755"


@pytest.mark.item("dp:76")
def test_overwrite(box):
    assert write_file(box, "over", b"a long content").status == 200
    assert write_file(box, "over", b"short").status == 200
    assert read_file(box, "over").body == b"short"


@pytest.mark.item("dp:77")
def test_write_to_a_folder(box):
    error(write_file(box, "/home/user", b"x"), 400, "path is a directory: ")


@pytest.mark.item("dp:78")
def test_several_files(box):
    names = ["/home/user/m/one.txt", "/home/user/m/deep/er/two.txt", "three ü.txt"]
    headers, body = multipart([(n, n.encode()) for n in names])
    reply = envd(box, "POST", "/files", headers, body)
    assert reply.status == 200
    assert [f["path"] for f in reply.json()] == [names[0], names[1], "/home/user/three ü.txt"]
    for name in names:
        assert read_file(box, name).body == name.encode()


@pytest.mark.item("dp:79")
def test_one_target_twice(box):
    headers, body = multipart([("/tmp/same", b"first"), ("/tmp/same", b"second")])
    assert envd(box, "POST", "/files", headers, body).status == 400
    assert read_file(box, "/tmp/same").body == b"first"


@pytest.mark.item("dp:80")
def test_parallel_uploads_into_a_new_folder(box):
    answers = []
    threads = [threading.Thread(target=lambda i=i: answers.append(write_file(box, f"/home/user/fresh/x/{i}", b"%d" % i).status))
               for i in range(12)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert answers == [200] * 12
    assert sh(box, "ls /home/user/fresh/x | wc -l").strip() == "12"


@pytest.mark.item("dp:81")
def test_octet_stream(box):
    assert write_file(box, "/tmp/octet", b"abc").status == 200
    error(envd(box, "POST", "/files", {"Content-Type": "application/octet-stream"}, b"abc"), 400, "")


def test_other_content_type(box):
    error(envd(box, "POST", "/files?path=/tmp/x", {"Content-Type": "text/plain"}, b"abc"), 400, "unsupported content type")


@pytest.mark.item("dp:82")
def test_compressed_upload(box):
    head = {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip"}
    reply = envd(box, "POST", "/files?path=/tmp/gz", head, gzip.compress(ALL_BYTES * 100))
    assert reply.status == 200 and read_file(box, "/tmp/gz").body == ALL_BYTES * 100
    assert envd(box, "POST", "/files?path=/tmp/gz2", head, b"garbage").status == 400
    assert envd(box, "POST", "/files?path=/tmp/gz2", {**head, "Content-Encoding": "odd"}, b"x").status == 400


@pytest.mark.item("dp:83")
def test_download_forms(box):
    write_file(box, "/tmp/range", b"0123456789")
    reply = read_file(box, "/tmp/range", headers={"Accept-Encoding": "gzip"})
    body = gzip.decompress(reply.body) if reply.headers.get("Content-Encoding") == "gzip" else reply.body
    assert reply.status == 200 and body == b"0123456789"
    part = read_file(box, "/tmp/range", headers={"Range": "bytes=0-3"})
    assert part.status == 206 and part.body == b"0123"


@pytest.mark.item("dp:84")
def test_as_root(box):
    headers, body = multipart([("hello.txt", b"root's")])
    reply = envd(box, "POST", "/files?path=hello.txt&username=root", headers, body)
    assert reply.status == 200 and reply.json()[0]["path"] == "/root/hello.txt"
    assert sh(box, "stat -c %U /root/hello.txt", user="root") == "root\n"
    assert read_file(box, "hello.txt", {"username": "root"}).body == b"root's"


@pytest.mark.item("dp:85")
def test_unknown_user(box):
    error(read_file(box, "x", {"username": "nobody-here"}), 401, "error looking up user 'nobody-here'")
    error(write_file(box, "x", b"", {"username": "nobody-here"}), 401, "error looking up user 'nobody-here'")


@pytest.mark.item("dp:86")
def test_tilde(box):
    assert write_file(box, "~/a.txt", b"tilde").json()[0]["path"] == "/home/user/a.txt"
    assert write_file(box, "~bob/x", b"x").status == 400


# --- signed links ------------------------------------------------------------------------------------------------


def link(path, operation, token, user=None, expiration=None, **change):
    query = {"path": path, "signature": signature(path, operation, user or "", token, expiration)}
    if user:
        query["username"] = user
    if expiration is not None:
        query["signature_expiration"] = expiration
    query.update(change)
    return "/files?" + urllib.parse.urlencode(query)


@pytest.mark.item("dp:87")
def test_signed_links(box):
    headers, body = multipart([("anything", b"by link")])
    assert envd(box, "POST", link("linked.txt", "write", box.token), headers, body, token=None).status == 200
    reply = envd(box, "GET", link("linked.txt", "read", box.token), token=None)
    assert reply.status == 200 and reply.body == b"by link"
    reply = envd(box, "GET", link("/home/user/linked.txt", "read", box.token, user="root"), token=None)
    assert reply.status == 200


@pytest.mark.item("dp:88")
def test_links_that_expire(box):
    write_file(box, "expire.txt", b"x")
    now = int(time.time())
    assert envd(box, "GET", link("expire.txt", "read", box.token, expiration=now + 120), token=None).status == 200
    reply = envd(box, "GET", link("expire.txt", "read", box.token, expiration=now - 10), token=None)
    assert reply.status == 401 and reply.json() == {"code": 401, "message": "signature is already expired"}
    assert envd(box, "GET", link("expire.txt", "read", box.token, signature_expiration="soon"), token=None).status == 400


@pytest.mark.item("dp:89")
def test_bad_signatures(box):
    write_file(box, "sig.txt", b"x")
    error(envd(box, "GET", "/files?path=sig.txt", token=None), 401, "missing signature query parameter")
    error(envd(box, "GET", "/files?path=sig.txt", token="wrong"), 401, "access token present in header but does not match")
    good = link("sig.txt", "read", box.token)
    for bad in (good.replace("sig.txt", "test.txt"), good[:-1] + ("A" if good[-1] != "A" else "B"),
                link("sig.txt", "write", box.token), link("sig.txt", "read", "other"),
                link("sig.txt", "read", box.token, username="root"), "/files?path=sig.txt&signature=",
                link("sig.txt", "read", box.token, expiration=int(time.time()) + 60, signature_expiration=2 ** 40)):
        reply = envd(box, "GET", bad, token=None)
        assert reply.status == 401, (bad, reply)
    error(envd(box, "GET", link("sig.txt", "write", box.token), token=None), 401, "invalid signature")


@pytest.mark.item("dp:90")
def test_signature_vector():
    assert signature("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0") == \
        "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"


@pytest.mark.item("dp:91")
def test_link_without_a_path(box):
    headers, body = multipart([("named-by-part.txt", b"p")])
    query = urllib.parse.urlencode({"signature": signature("", "write", "", box.token)})
    reply = envd(box, "POST", f"/files?{query}", headers, body, token=None)
    assert reply.status == 200 and reply.json()[0]["path"] == "/home/user/named-by-part.txt"


@pytest.mark.item("dp:95")
def test_preflight(box):
    reply = envd(box, "OPTIONS", "/files", {"Origin": "https://example.org", "Access-Control-Request-Method": "POST",
                                            "Access-Control-Request-Headers": "x-access-token"}, token=None)
    assert reply.status in (200, 204) and reply.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.item("dp:96")
def test_metrics(box):
    reply = envd(box, "GET", "/metrics")
    for field in ("ts", "cpu_count", "cpu_used_pct", "mem_total_mib", "mem_used_mib", "mem_total", "mem_used", "mem_cache",
                  "disk_used", "disk_total"):
        assert field in reply.json(), field


@pytest.mark.item("dp:97")
def test_init_from_the_inside(new_box):
    """/init is closed at the gateway; from inside the sandbox it is reachable and holds to its token."""
    box = new_box()

    def init(body):
        return sh(box, f"curl -s -o /dev/null -w '%{{http_code}}' -X POST -H 'Content-Type: application/json' "
                       f"-d '{body}' http://127.0.0.1:49983/init")
    assert init('{"accessToken":"other"}') == "401"
    assert init("{}") == "401"
    assert init('{"accessToken":""}') == "400"
    assert rpc(box, "process.Process/List", {}).status == 200


def test_unknown_paths_and_methods(box):
    assert envd(box, "GET", "/no/such").status == 404
    assert envd(box, "DELETE", "/files?path=x").status == 405
    assert envd(box, "POST", "/health", body=b"").status in (401, 405)


@pytest.mark.item("dp:68")
def test_head_of_health_is_not_exempt(box):
    assert envd(box, "HEAD", "/health", token=None).status in (401, 405)
