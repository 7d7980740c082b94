"""Control plane §5.2: create, first generation."""
import json
import re
import socket
import struct
import time

import pytest

import e2b
from conftest import pause
from helpers import (KEY, TAG, api, assert_error, connect, eventually, kubectl, listed, parse_time, pods_of, replica_sets,
                     rpc, sh)


@pytest.mark.item("cp:27")
def test_answer_of_create(new_box):
    answer = new_box().answer
    for field in ("sandboxID", "templateID", "clientID", "envdVersion", "envdAccessToken"):
        assert isinstance(answer[field], str) and answer[field], field


@pytest.mark.item("cp:27")
def test_sdk_create():
    made = e2b.Sandbox.create(metadata=TAG)
    try:
        assert made.sandbox_id
    finally:
        assert made.kill()


@pytest.mark.item("cp:28")
def test_first_command_works_at_the_first_try():
    for _ in range(3):
        made = e2b.Sandbox.create(metadata=TAG)
        try:
            assert made.commands.run("echo hi").stdout == "hi\n"
        finally:
            made.kill()


@pytest.mark.item("cp:29", "dp:15")
def test_id(new_box):
    ids = [new_box().id for _ in range(2)] + [s["sandboxID"] for s in listed()]
    for one in ids:
        assert re.fullmatch(r"i[a-z0-9]{20}", one), one
        assert len(f"49983-{one}") < 64
    assert ids[0] != ids[1]


@pytest.mark.item("cp:30")
def test_envd_version(new_box):
    version = new_box().answer["envdVersion"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert tuple(map(int, version.split("."))) >= (0, 4, 0)


def lifetime(box):
    info = box.get().json()
    return parse_time(info["endAt"]) - parse_time(info["startedAt"])


@pytest.mark.item("cp:31")
def test_lifetime(new_box):
    assert abs(lifetime(new_box(timeout=300)) - 300) <= 2


@pytest.mark.item("cp:37")
def test_lifetime_when_none_is_given(new_box):
    assert abs(lifetime(new_box(timeout=None)) - 15) <= 2


@pytest.mark.item("cp:41")
def test_python_timeout_zero_is_the_default():
    made = e2b.Sandbox.create(timeout=0, metadata=TAG)
    try:
        info = made.get_info()
        assert abs((info.end_at - info.started_at).total_seconds() - 300) <= 2
    finally:
        made.kill()


@pytest.mark.item("cp:38")
def test_timeout_zero(new_box):
    assert_error(api("POST", "/sandboxes", {"templateID": "base", "timeout": 0, "metadata": TAG}), 400)


def test_timeout_minus_one_never_ends(new_box):
    """Our own extension: -1 reaches the server unchanged from every SDK."""
    box = new_box(timeout=-1)
    info = box.get().json()
    assert info["state"] == "running" and parse_time(info["endAt"]) > time.time() + 86400
    assert parse_time(next(s for s in listed() if s["sandboxID"] == box.id)["endAt"]) > time.time() + 86400


@pytest.mark.item("cp:32")
def test_metadata(new_box):
    want = {**TAG, "k": "v", "empty": "", "ünï": "c&d=e/é%20 \"quoted\" 'x' {{.Sandbox}} \n line"}
    box = new_box(metadata=want)
    assert box.get().json()["metadata"] == want
    assert next(s for s in listed() if s["sandboxID"] == box.id)["metadata"] == want


@pytest.mark.item("cp:33", "dp:69")
def test_environment(new_box):
    box = new_box(envVars={"A": "b c", "QUOTES": "it's \"so\" $HOME `x`", "LINES": "1\n2"})
    assert sh(box, 'printf %s "$A"') == "b c"
    assert sh(box, 'printf %s "$QUOTES"') == "it's \"so\" $HOME `x`"
    assert sh(box, 'printf %s "$LINES"') == "1\n2"
    assert sh(box, 'printf %s "$A"', envs={"A": "other"}) == "other"
    assert sh(box, 'printf %s "$A"') == "b c"


def test_environment_is_nowhere_readable_in_the_cluster(new_box):
    secret = "s3cr3t-value-0451"
    box = new_box(envVars={"PASSWORD": secret})
    assert secret not in json.dumps(replica_sets()[box.id])
    assert secret not in json.dumps(pods_of(box.id))
    assert secret not in kubectl("get", "events", "-o", "json", "--field-selector", f"involvedObject.name=sbx-{box.id}")
    assert sh(box, "printenv PASSWORD").strip() == secret


@pytest.mark.item("cp:33")
def test_environment_after_a_pause(new_box):
    box = new_box(envVars={"A": "b c"})
    pause(box)
    assert api("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status == 201
    assert sh(box, 'printf %s "$A"') == "b c"


@pytest.mark.item("cp:34")
def test_unknown_template():
    before = set(replica_sets())
    assert_error(api("POST", "/sandboxes", {"templateID": "no-such-template", "metadata": TAG}), 404, "no-such-template")
    with pytest.raises(e2b.SandboxException) as e:
        e2b.Sandbox.create("no-such-template", metadata=TAG)
    assert str(e.value).startswith("404:") and "no-such-template" in str(e.value)
    assert set(replica_sets()) <= before


@pytest.mark.item("cp:35", "dp:65", "dp:66")
def test_secure(new_box):
    box = new_box(secure=True)
    assert box.token
    for token in (None, "wrong", box.token[:-1]):
        assert rpc(box, "filesystem.Filesystem/Stat", {"path": "/"}, token=token).status == 401
    assert rpc(box, "filesystem.Filesystem/Stat", {"path": "/"}).status == 200


@pytest.mark.item("cp:36", "dp:66")
def test_not_secure(new_box):
    box = new_box(secure=False)
    assert "envdAccessToken" not in box.answer
    assert rpc(box, "filesystem.Filesystem/Stat", {"path": "/"}).status == 200
    assert sh(box, "echo open") == "open\n"


@pytest.mark.item("cp:14")
def test_unknown_fields_are_ignored(new_box):
    assert new_box(somethingNew={"a": [1]}).id


@pytest.mark.item("cp:42", "cp:43")
@pytest.mark.parametrize("name", ["BASE", "base:default"])
def test_template_reference(name, new_box):
    assert new_box(templateID=name).id


@pytest.mark.item("cp:44")
def test_unknown_tag():
    assert_error(api("POST", "/sandboxes", {"templateID": "base:nope", "metadata": TAG}), 404)


@pytest.mark.item("cp:45")
def test_bad_template_reference():
    assert_error(api("POST", "/sandboxes", {"templateID": "ba se", "metadata": TAG}), 400)


@pytest.mark.item("cp:49")
def test_no_traffic_token(new_box):
    assert not new_box().answer.get("trafficAccessToken")


def test_domain_in_the_answer(new_box):
    from helpers import DOMAIN
    assert new_box().answer.get("domain") in (None, DOMAIN)


@pytest.mark.item("cp:58")
def test_caller_gone_during_create():
    """The connection is reset right after the request: what was begun for it is removed, long before its end."""
    mark = {**TAG, "gone": "1"}
    body = json.dumps({"templateID": "base", "timeout": 300, "metadata": mark}).encode()
    head = (f"POST /e2b/v1/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    for _ in range(3):
        s = connect()
        s.sendall(head + body)
        time.sleep(0.1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    time.sleep(1)
    eventually(lambda: not [rs for rs in replica_sets().values() if '"gone"' in rs["metadata"]["annotations"]["sandbox-data"]],
               20, 0.5)
