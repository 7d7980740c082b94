"""Control plane §5.5: kill."""
import threading
import time

import pytest

import e2b
from conftest import pause
from helpers import (TAG, api, assert_error, assert_gone, eventually, healthy, pods_of, replica_sets, start)


@pytest.mark.item("cp:99", "cp:100")
def test_kill_and_again(new_box):
    box = new_box()
    first = box.kill()
    assert first.status == 204 and first.body == b""
    assert_error(box.kill(), 404)


@pytest.mark.item("cp:99", "cp:100")
def test_sdk_kill_and_again():
    made = e2b.Sandbox.create(metadata=TAG)
    assert made.kill() is True
    assert made.kill() is False


@pytest.mark.item("cp:101")
def test_kill_unknown():
    assert e2b.Sandbox.kill("nonexistingsandbox") is False
    assert_error(api("DELETE", "/sandboxes/nonexistingsandbox"), 404)


@pytest.mark.item("cp:102")
def test_kill_paused(new_box):
    box = new_box()
    pause(box)
    assert box.kill().status == 204
    assert_gone(box)
    assert_error(api("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}), 404)


@pytest.mark.item("cp:103")
@pytest.mark.parametrize("text", ["ABC", "a-b-c", "a_b", "a%2Fb"])
def test_bad_id(text):
    assert_error(api("DELETE", f"/sandboxes/{text}"), 400)


@pytest.mark.item("cp:104", "dp:16")
def test_id_with_client_id(new_box):
    box = new_box()
    assert api("GET", f"/sandboxes/{box.id}-6532622b").status == 200
    assert api("DELETE", f"/sandboxes/{box.id}-6532622b").status == 204


@pytest.mark.item("cp:105")
def test_two_kills_at_once(new_box):
    box = new_box()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(box.kill().status)) for _ in range(2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert 204 in answers and set(answers) <= {204, 404}


@pytest.mark.item("cp:107", "dp:49")
def test_running_command_during_kill(new_box):
    """The stream breaks (never a clean end), and afterwards the sandbox is not there."""
    box = new_box()
    with start(box, "echo go; sleep 60") as stream:
        events = iter(stream)
        assert "start" in next(events)["event"]
        next(events)
        began = time.monotonic()
        assert box.kill().status == 204
        with pytest.raises(Exception) as e:
            list(events)
        assert not isinstance(e.value, AssertionError), e.value
        assert time.monotonic() - began < 4
    assert healthy(box) == 502


@pytest.mark.item("cp:107")
def test_sdk_running_command_during_kill():
    made = e2b.Sandbox.create(metadata=TAG)
    handle = made.commands.run("sleep 60", background=True)
    threading.Timer(0.5, made.kill).start()
    with pytest.raises(Exception) as e:
        handle.wait()
    assert not isinstance(e.value, e2b.CommandExitException), e.value
    assert not made.is_running()


@pytest.mark.item("cp:108", "dp:18")
def test_not_running_after_kill():
    made = e2b.Sandbox.create(metadata=TAG)
    assert made.is_running() is True
    assert made.kill()
    began = time.monotonic()
    assert made.is_running() is False
    assert time.monotonic() - began < 3


@pytest.mark.item("cp:108", "dp:18")
def test_health_after_kill_on_every_replica(new_box):
    box = new_box()
    assert all(healthy(box) == 204 for _ in range(8))
    assert box.kill().status == 204
    end = time.monotonic() + 1
    last = time.monotonic()
    for _ in range(12):  # each on a new connection, so over all replicas
        if healthy(box) != 502:
            last = time.monotonic()
    assert last < end
    assert healthy(box) == 502


def test_nothing_is_left_in_the_cluster(new_box):
    box = new_box()
    assert len(pods_of(box.id)) == 1 and box.id in replica_sets()
    assert box.kill().status == 204
    eventually(lambda: box.id not in replica_sets() and not pods_of(box.id), 30, 0.5)
