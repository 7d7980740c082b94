"""Control plane §5.1: base path, keys, tenants, the error object."""
import pytest

import e2b
from helpers import API, DOMAIN, KEY, TAG, api, assert_error, gateway, listed, request, sandbox


@pytest.mark.item("cp:1")
def test_base_with_a_path():
    made = e2b.Sandbox.create(api_url=f"{API}/e2b/v1", metadata=TAG)
    try:
        assert api("GET", f"/sandboxes/{made.sandbox_id}").status == 200
    finally:
        assert made.kill()


def test_same_routes_without_the_prefix_on_the_api_host():
    reply = request("GET", "/v2/sandboxes", {"Host": f"api.{DOMAIN}", "X-API-Key": KEY}, tls=True)
    assert reply.status == 200 and isinstance(reply.json(), list)


@pytest.mark.item("cp:2")
def test_a_valid_key_is_accepted(tenants):
    for key in (KEY, *tenants):  # the first of the tenants' keys has no e2b_ prefix
        assert api("GET", "/v2/sandboxes", key=key).status == 200


@pytest.mark.item("cp:2")
def test_sdk_with_a_key_without_prefix(tenants):
    made = e2b.Sandbox.create(api_key=tenants[0], metadata=TAG)
    try:
        assert made.commands.run("echo ok").stdout == "ok\n"
    finally:
        assert made.kill()


def test_bearer_is_accepted():
    assert api("GET", "/v2/sandboxes", key=None, headers={"Authorization": f"Bearer {KEY}"}).status == 200


@pytest.mark.item("cp:3")
def test_no_key():
    assert_error(api("GET", "/v2/sandboxes", key=None), 401)


@pytest.mark.item("cp:3")
def test_no_valid_key_in_the_sdk():
    with pytest.raises(e2b.AuthenticationException):
        e2b.Sandbox.list(api_key="e2b_" + "0" * 40).next_items()


@pytest.mark.item("cp:4")
@pytest.mark.parametrize("key", ["e2b_" + "0" * 40, "nonsense", "x" * 4000, KEY + "x", KEY[:-1]])
def test_unknown_key(key):
    before = len(listed())
    assert_error(api("POST", "/sandboxes", {"templateID": "base", "metadata": TAG}, key=key), 401)
    assert len(listed()) == before


@pytest.fixture(scope="module")
def box_of_a(tenants):
    with sandbox(key=tenants[0]) as box:
        yield box


@pytest.mark.item("cp:5")
@pytest.mark.parametrize("call", [
    ("GET", "", None), ("DELETE", "", None), ("POST", "/pause", {}), ("POST", "/connect", {"timeout": 60}),
    ("POST", "/resume", {"timeout": 60}), ("POST", "/timeout", {"timeout": 60}), ("POST", "/refreshes", {"duration": 60}),
    ("POST", "/fork", {}),
], ids=lambda c: (c[1] or c[0]).strip("/"))
def test_another_tenants_sandbox(tenants, box_of_a, call):
    method, path, body = call
    assert_error(api(method, f"/sandboxes/{box_of_a.id}{path}", body, key=tenants[1]), 404)
    assert box_of_a.get().json()["state"] == "running"


@pytest.mark.item("cp:5")
def test_another_tenants_sandbox_in_lists_and_v2(tenants, box_of_a):
    assert_error(api("POST", f"/v2/sandboxes/{box_of_a.id}/connect", {}, key=tenants[1]), 404)
    assert box_of_a.id in [s["sandboxID"] for s in listed(key=tenants[0])]
    assert box_of_a.id not in [s["sandboxID"] for s in listed(key=tenants[1])]
    assert api("GET", f"/sandboxes/{box_of_a.id}", key=KEY).status == 200  # the system role sees all


@pytest.mark.item("cp:6")
@pytest.mark.parametrize("call,status", [
    (dict(method="GET", path="/sandboxes/nonexistingsandbox"), 404),
    (dict(method="DELETE", path="/sandboxes/nonexistingsandbox"), 404),
    (dict(method="POST", path="/sandboxes/nonexistingsandbox/timeout", body={"timeout": 5}), 404),
    (dict(method="POST", path="/sandboxes/nonexistingsandbox/connect", body={"timeout": 5}), 404),
    (dict(method="POST", path="/v2/sandboxes/nonexistingsandbox/connect", body={}), 404),
    (dict(method="POST", path="/sandboxes", body={"templateID": "no-such-template"}), 404),
    (dict(method="POST", path="/sandboxes", raw=b"{"), 400),
    (dict(method="POST", path="/sandboxes", body={}), 400),
    (dict(method="POST", path="/sandboxes", body=[]), 400),
    (dict(method="POST", path="/v2/sandboxes", body={"templateID": 7}), 400),
    (dict(method="GET", path="/v2/sandboxes", key=None), 401),
    (dict(method="GET", path="/no/such/path"), 404),
], ids=lambda v: f"{v['method']}-{v['path']}" if isinstance(v, dict) else str(v))
def test_errors_have_one_shape(call, status):
    assert_error(api(**call), status)


@pytest.mark.item("cp:6", "cp:10")
def test_wrong_method():
    reply = api("PATCH", "/sandboxes", {})
    assert reply.status in (404, 405)
    assert_error(reply, reply.status)


@pytest.mark.item("cp:7")
def test_errors_of_the_gateway_are_json():
    """The gateway is the ingress: what stands behind a name and is down gives JSON, never a page, to a program."""
    for port in (49983, 8000):
        reply = gateway(f"{port}-i00000000000000000000.{DOMAIN}")
        assert reply.status == 502 and reply.headers.get_content_type() == "application/json"
        assert reply.json()["code"] == 502 and reply.json()["message"]


@pytest.mark.item("cp:8")
@pytest.mark.parametrize("name", ["x-api-key", "X-API-KEY", "X-Api-Key"])
def test_header_in_any_case(name):
    assert api("GET", "/v2/sandboxes", key=None, headers={name: KEY}).status == 200


@pytest.mark.item("cp:22")
def test_health_without_a_key():
    for path in ("/health", "/e2b/v1/health"):
        assert request("GET", path).status == 200, path


def test_healthz_says_the_version():
    reply = request("GET", "/healthz")
    assert reply.status == 200 and reply.json()["status"] == "ok" and reply.json()["version"]


@pytest.mark.item("cp:23")
def test_a_hundred_calls_on_one_connection():
    from helpers import Connection, send
    connection = Connection()
    connection.connect()
    used = connection.sock
    for _ in range(100):
        response = send(connection, "GET", "/e2b/v1/v2/sandboxes?limit=1", {"X-API-Key": KEY})
        assert response.status == 200
        response.read()
        assert connection.sock is used
    connection.close()


@pytest.mark.item("cp:25")
def test_chunked_request_body():
    import json
    data = json.dumps({"templateID": "base", "metadata": TAG}).encode()
    reply = api("POST", "/sandboxes", raw=iter([data[:7], data[7:]]))
    assert reply.status == 201, reply
    assert api("DELETE", f"/sandboxes/{reply.json()['sandboxID']}").status == 204
