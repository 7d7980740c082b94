"""Control plane §5.6: the end of a sandbox's time."""
import time

import pytest

import e2b
from helpers import (TAG, api, assert_ends_in, assert_error, assert_gone, eventually, healthy, listed, parse_time, pods_of, replica_sets)


def set_timeout(box, seconds):
    return api("POST", f"/sandboxes/{box.id}/timeout", {"timeout": seconds})


@pytest.mark.item("cp:109", "dp:184")
def test_ends_after_its_timeout():
    made = e2b.Sandbox.create(metadata=TAG)
    made.set_timeout(5)
    time.sleep(6)
    assert made.is_running() is False
    with pytest.raises(e2b.TimeoutException):
        made.commands.run("echo hi")


@pytest.mark.item("cp:110")
def test_the_last_timeout_counts(new_box):
    box = new_box()
    assert set_timeout(box, 5).status == 204
    time.sleep(1)
    assert set_timeout(box, 10).status == 204
    time.sleep(6)
    assert healthy(box) == 204
    assert box.get().json()["state"] == "running"


@pytest.mark.item("cp:119")
def test_extend(new_box):
    box = new_box(timeout=60)
    reply = set_timeout(box, 600)
    assert reply.status == 204 and reply.body == b""
    assert_ends_in(box, 600)


def test_shorten(new_box):
    box = new_box(timeout=600)
    assert set_timeout(box, 30).status == 204
    assert_ends_in(box, 30)


@pytest.mark.item("cp:111")
def test_zero_ends_at_once(new_box):
    box = new_box()
    assert set_timeout(box, 0).status == 204
    eventually(lambda: healthy(box) == 502, 2)
    assert_gone(box)


@pytest.mark.item("cp:112")
@pytest.mark.parametrize("body", [{"timeout": -1}, {"timeout": "5"}, {"timeout": 1.5}, {}, {"timeout": None}, []])
def test_bad_timeout(box, body):
    before = box.get().json()["endAt"]
    assert_error(api("POST", f"/sandboxes/{box.id}/timeout", body), 400)
    assert box.get().json()["endAt"] == before


@pytest.mark.item("cp:115")
def test_unknown():
    assert_error(api("POST", "/sandboxes/nonexistingsandbox/timeout", {"timeout": 5}), 404)


@pytest.mark.item("cp:118")
def test_refreshes(new_box):
    box = new_box(timeout=60)
    before = box.get().json()["endAt"]
    reply = api("POST", f"/sandboxes/{box.id}/refreshes", {"duration": 1})
    if reply.status == 404:
        pytest.skip("next: refreshes")
    assert reply.status == 204
    assert box.get().json()["endAt"] == before


@pytest.mark.parametrize("seconds", [3, 6])
def test_absolute_end_within_a_second(new_box, seconds):
    """Gone, for callers and in the cluster, at the moment that endAt names, ±1 s."""
    box = new_box(timeout=seconds)
    end = parse_time(box.get().json()["endAt"])
    gone = []

    def is_gone():
        rs = replica_sets().get(box.id)
        return rs is None or rs["metadata"].get("deletionTimestamp")
    time.sleep(max(0, end - time.time() - 1.5))
    while time.time() < end + 3 and not gone:
        if healthy(box) != 204:
            gone.append(time.time())
        time.sleep(0.05)
    assert gone, "still answering 3 s after its end"
    assert abs(gone[0] - end) <= 1, gone[0] - end
    eventually(is_gone, 3, 0.2)
    eventually(lambda: not pods_of(box.id), 20, 0.5)


def test_several_ends_at_once(new_box):
    boxes = [new_box(timeout=120) for _ in range(5)]
    for box in boxes:
        assert set_timeout(box, 4).status == 204
    time.sleep(4 + 1)
    alive = {s["sandboxID"] for s in listed()}
    assert not [b.id for b in boxes if b.id in alive]
    eventually(lambda: not [b.id for b in boxes if b.id in replica_sets()], 20, 0.5)
