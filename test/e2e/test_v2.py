"""Control plane §5.3: create and connect of newer SDKs."""

import pytest

from conftest import pause
from helpers import TAG, api, assert_ends_in, assert_error, envd, parse_time, sh


@pytest.mark.item("cp:59")
def test_create(new_box):
    box = new_box(version=2, timeout=None)
    assert box.token
    info = box.get().json()
    assert abs(parse_time(info["endAt"]) - parse_time(info["startedAt"]) - 300) <= 2
    assert sh(box, "echo hi") == "hi\n"


def test_create_with_nothing_but_the_template():
    reply = api("POST", "/v2/sandboxes", {"templateID": "base"})
    assert reply.status == 201
    assert api("DELETE", f"/sandboxes/{reply.json()['sandboxID']}").status == 204


@pytest.mark.item("cp:61")
def test_secure_false_is_ignored():
    reply = api("POST", "/v2/sandboxes", {"templateID": "base", "secure": False, "metadata": TAG})
    assert reply.status == 201 and reply.json()["envdAccessToken"]
    api("DELETE", f"/sandboxes/{reply.json()['sandboxID']}")


@pytest.mark.item("cp:62")
def test_connect_extends(new_box):
    box = new_box(version=2, timeout=30)
    reply = api("POST", f"/v2/sandboxes/{box.id}/connect", {})
    assert reply.status == 200, reply
    assert reply.json()["sandboxID"] == box.id and reply.json()["envdAccessToken"] == box.token
    assert_ends_in(box, 300, 3)


@pytest.mark.item("cp:62")
def test_connect_never_shortens(new_box):
    box = new_box(version=2, timeout=900)
    before = box.get().json()["endAt"]
    assert api("POST", f"/v2/sandboxes/{box.id}/connect", {}).status == 200
    assert box.get().json()["endAt"] == before


@pytest.mark.item("cp:64")
def test_connect_without_a_body(new_box):
    box = new_box(timeout=30)
    assert api("POST", f"/v2/sandboxes/{box.id}/connect").status == 200
    assert_ends_in(box, 300, 3)


@pytest.mark.item("cp:63")
def test_connect_resumes(new_box):
    box = new_box(version=2)
    pause(box)
    assert api("POST", f"/v2/sandboxes/{box.id}/connect", {}).status == 201


@pytest.mark.item("cp:66")
def test_connect_unknown():
    assert_error(api("POST", "/v2/sandboxes/nonexistingsandbox/connect", {}), 404)


def test_connect_v1_needs_a_timeout(new_box):
    box = new_box()
    assert_error(api("POST", f"/sandboxes/{box.id}/connect", {}), 400)
    assert_error(api("POST", f"/sandboxes/{box.id}/connect", {"timeout": -5}), 400)
    assert api("POST", f"/sandboxes/{box.id}/connect", {"timeout": 10}).status == 200


def test_connect_gives_the_same_token(new_box):
    box = new_box()
    again = api("POST", f"/sandboxes/{box.id}/connect", {"timeout": 10}).json()
    assert again["envdAccessToken"] == box.token
    assert envd(box, "GET", "/envs", token=again["envdAccessToken"]).status == 200
