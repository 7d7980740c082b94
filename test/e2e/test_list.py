"""Control plane §5.4: get and list."""
import time
import urllib.parse
import uuid

import pytest

import e2b
from conftest import pause
from helpers import LAG, api, assert_error, assert_gone, create, eventually, listed, parse_time

REQUIRED = ["templateID", "sandboxID", "clientID", "startedAt", "endAt", "cpuCount", "memoryMB", "diskSizeMB", "state",
            "envdVersion"]


@pytest.fixture(scope="module")
def two():
    """Two sandboxes, made one after the other, that share one metadata value of their own."""
    mark = {"pair": uuid.uuid4().hex}
    a = create(metadata=mark)
    time.sleep(0.05)
    b = create(metadata=mark)
    yield a, b, mark
    a.kill()
    b.kill()


def query(mark, more=""):
    return f"/v2/sandboxes?metadata={urllib.parse.quote(urllib.parse.urlencode(mark))}{more}"


def ids(reply):
    assert reply.status == 200, reply
    return [s["sandboxID"] for s in reply.json()]


@pytest.mark.item("cp:69")
def test_get(two):
    now = time.time()
    info = two[0].get().json()
    for field in REQUIRED:
        assert field in info, field
    assert info["state"] == "running"
    assert isinstance(info["cpuCount"], int) and info["cpuCount"] >= 1
    assert all(isinstance(info[f], int) for f in ("memoryMB", "diskSizeMB"))
    assert parse_time(info["startedAt"]) <= now + 1 and now < parse_time(info["endAt"])
    assert info["envdAccessToken"] == two[0].token


@pytest.mark.item("cp:69")
def test_sdk_get_info(two):
    info = e2b.Sandbox.get_info(two[0].id)
    assert info.state == e2b.SandboxState.RUNNING and info.sandbox_id == two[0].id


@pytest.mark.item("cp:75")
def test_what_was_not_set_is_absent(two):
    info = two[0].get().json()
    assert "network" not in info
    assert info.get("allowInternetAccess") is None
    assert info["lifecycle"]["onTimeout"] == "kill" and info["lifecycle"]["autoResume"] is False


@pytest.mark.item("cp:74")
def test_lifecycle_as_given(new_box):
    box = new_box(autoPause=True, autoResume={"enabled": True})
    assert box.get().json()["lifecycle"] == {"onTimeout": "pause", "autoResume": True}


@pytest.mark.item("cp:70")
def test_get_killed(new_box):
    box = new_box()
    assert box.kill().status == 204
    assert_gone(box)
    with pytest.raises(e2b.SandboxNotFoundException):
        e2b.Sandbox.get_info(box.id)


@pytest.mark.item("cp:71")
def test_get_paused(new_box):
    box = new_box()
    pause(box)
    info = box.get().json()
    assert info["state"] == "paused" and info["envdAccessToken"] == box.token


@pytest.mark.item("cp:76")
def test_times_do_not_move(two):
    first = two[0].get().json()
    for _ in range(10):  # over all replicas
        again = two[0].get().json()
        assert (again["endAt"], again["startedAt"]) == (first["endAt"], first["startedAt"])
    row = next(s for s in listed() if s["sandboxID"] == two[0].id)
    assert (row["endAt"], row["startedAt"]) == (first["endAt"], first["startedAt"])


@pytest.mark.item("cp:77")
def test_filter(new_box):
    mark = {"unique_id": str(uuid.uuid4())}
    box = new_box(metadata=mark)
    assert ids(api("GET", query(mark))) == [box.id]
    rows = api("GET", query(mark)).json()
    assert all(f in rows[0] for f in REQUIRED)
    found = e2b.Sandbox.list(query=e2b.SandboxQuery(metadata=mark)).next_items()
    assert [s.sandbox_id for s in found] == [box.id]


ODD = ["a b", "a&b", "a=b", "a/b", "é", "100%", "a+b", "%20", "c&d=e/é 100%"]


@pytest.fixture(scope="module")
def odd():
    """One sandbox whose metadata has every odd text as a key and as a value."""
    unique = uuid.uuid4().hex
    box = create(metadata={"u": unique, **{f"k {v}": v for v in ODD}})
    yield box.id, unique
    box.kill()


@pytest.mark.item("cp:78")
@pytest.mark.parametrize("value", ODD)
def test_filter_with_special_characters(odd, value):
    box_id, unique = odd
    found = e2b.Sandbox.list(query=e2b.SandboxQuery(metadata={f"k {value}": value, "u": unique})).next_items()
    assert [s.sandbox_id for s in found] == [box_id]
    assert e2b.Sandbox.list(query=e2b.SandboxQuery(metadata={f"k {value}": value + "x", "u": unique})).next_items() == []


@pytest.mark.item("cp:78")
def test_filter_as_javascript_sends_it(new_box):
    """Key "a b", value "c&d=e/é": encoded, joined, encoded again as a value, and once more in the URL."""
    box = new_box(metadata={"a b": "c&d=e/é", "u2": "1"})
    reply = api("GET", "/v2/sandboxes?metadata=a%252520b%3Dc%252526d%25253De%25252F%2525C3%2525A9")
    assert box.id in ids(reply)


@pytest.mark.item("cp:79")
def test_filter_with_one_wrong_pair(two):
    assert ids(api("GET", query({**two[2], "e2e": "wrong"}))) == []


@pytest.mark.item("cp:80")
def test_filter_without_equals():
    assert_error(api("GET", "/v2/sandboxes?metadata=abc"), 400)


@pytest.mark.item("cp:81", "cp:82")
def test_states(two, new_box):
    mark = {"states": uuid.uuid4().hex}
    running, paused = new_box(metadata=mark), new_box(metadata=mark)
    pause(paused)
    assert set(ids(api("GET", query(mark)))) == {running.id, paused.id}
    assert ids(api("GET", query(mark, "&state=running"))) == [running.id]
    assert ids(api("GET", query(mark, "&state=paused"))) == [paused.id]


@pytest.mark.item("cp:82", "cp:83")
def test_states_of_running_ones(two):
    a, b, mark = two
    assert set(ids(api("GET", query(mark)))) == {a.id, b.id}
    assert set(ids(api("GET", query(mark, "&state=running")))) == {a.id, b.id}
    assert set(ids(api("GET", query(mark, "&state=running,paused")))) == {a.id, b.id}
    assert set(ids(api("GET", query(mark, "&state=running%2Cpaused")))) == {a.id, b.id}
    assert ids(api("GET", query(mark, "&state=paused"))) == []


@pytest.mark.item("cp:84")
def test_unknown_state():
    assert_error(api("GET", "/v2/sandboxes?state=foo"), 400)


@pytest.mark.item("cp:85")
def test_newest_first(two):
    a, b, mark = two
    assert ids(api("GET", query(mark))) == [b.id, a.id]


@pytest.mark.item("cp:85")
def test_newest_first_also_when_paused(new_box):
    mark = {"order": uuid.uuid4().hex}
    a, b = new_box(metadata=mark), new_box(metadata=mark)
    pause(b)
    assert ids(api("GET", query(mark))) == [b.id, a.id]


@pytest.mark.item("cp:86")
def test_pages(two):
    a, b, mark = two
    first = api("GET", query(mark, "&limit=1"))
    assert ids(first) == [b.id]
    token = first.headers["x-next-token"]
    assert token
    second = api("GET", query(mark, f"&limit=1&nextToken={urllib.parse.quote(token)}"))
    assert ids(second) == [a.id]
    assert not second.headers.get("x-next-token")


@pytest.mark.item("cp:86")
def test_sdk_pages(two):
    a, b, mark = two
    pages = e2b.Sandbox.list(query=e2b.SandboxQuery(metadata=mark), limit=1)
    assert [s.sandbox_id for s in pages.next_items()] == [b.id] and pages.has_next
    assert [s.sandbox_id for s in pages.next_items()] == [a.id] and not pages.has_next


@pytest.mark.item("cp:88")
@pytest.mark.parametrize("limit", ["0", "101", "-1", "x"])
def test_limit_out_of_range(limit):
    assert_error(api("GET", f"/v2/sandboxes?limit={limit}"), 400)


@pytest.mark.item("cp:89")
def test_bad_token():
    assert_error(api("GET", "/v2/sandboxes?nextToken=garbage"), 400)


@pytest.mark.item("cp:90")
def test_kill_between_pages(new_box):
    mark = {"between": uuid.uuid4().hex}
    a, b, c = new_box(metadata=mark), new_box(metadata=mark), new_box(metadata=mark)
    first = api("GET", query(mark, "&limit=1"))
    assert ids(first) == [c.id]
    assert c.kill().status == 204
    rest = api("GET", query(mark, f"&limit=100&nextToken={urllib.parse.quote(first.headers['x-next-token'])}"))
    assert ids(rest) == [b.id, a.id]


@pytest.mark.item("cp:91")
def test_ascending(two):
    a, b, mark = two
    assert ids(api("GET", query(mark, "&order=asc"))) == [a.id, b.id]


@pytest.mark.item("cp:92")
def test_started_after(two):
    a, b, mark = two
    started = b.get().json()["startedAt"]
    assert b.id in ids(api("GET", query(mark, f"&startedAfter={urllib.parse.quote(started)}")))


@pytest.mark.item("cp:95")
def test_killed_is_absent(new_box):
    mark = {"absent": uuid.uuid4().hex}
    box = new_box(metadata=mark)
    assert box.kill().status == 204
    eventually(lambda: all(ids(api("GET", query(mark))) == [] for _ in range(6)), LAG)


@pytest.mark.item("cp:97")
def test_v1_list(two):
    a, b, mark = two
    quoted = urllib.parse.quote(urllib.parse.urlencode(mark))
    assert ids(api("GET", f"/sandboxes?metadata={quoted}")) == [b.id, a.id]
