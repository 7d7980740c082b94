"""Minutes of silence. Started in the background when the run begins (conftest.long_waits), looked at here."""
import time

import pytest

import test_bad_input
import test_config

from helpers import Connection, Result, assert_error, send, serve, start

QUIET = r'''
import socket, threading, time
def one(s):
    s.recv(65536)
    s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
    time.sleep(97)
    s.sendall(b"4\r\nlast\r\n0\r\n\r\n")
    s.close()
l = socket.create_server(("0.0.0.0", 8090))
while True:
    c, _ = l.accept()
    threading.Thread(target=one, args=(c,), daemon=True).start()
'''


def silent_answer(box):
    serve(box, QUIET, 8090)
    connection = Connection(timeout=150)
    began = time.monotonic()
    body = send(connection, "GET", "/", {"Host": box.host(8090)}).read()
    return body, time.monotonic() - began


def long_command(box):
    """As the SDK with timeout=0: no deadline, and its keepalive interval of 50 s."""
    began = time.monotonic()
    with start(box, "sleep 65; echo done", headers={"Keepalive-Ping-Interval": "50"}, timeout=150) as stream:
        return Result(stream), time.monotonic() - began


def long_sdk_command(box):
    import e2b
    sandbox = e2b.Sandbox.connect(box.id)
    return sandbox.commands.run("sleep 65; echo done", timeout=0)


def default_keepalive(box):
    """Without the header a message comes after 90 s."""
    with start(box, "sleep 92; echo done", timeout=150) as stream:
        return Result(stream)


def half_a_head(box):
    return test_bad_input.half_a_head()


def missing_image(box):
    return test_config.missing_image()


def kept_connection(box):
    """A client connection is still good after 60 s of idleness, or was closed cleanly."""
    connection = Connection(timeout=150)
    connection.connect()
    statuses = []
    for wait in (0, 62):
        time.sleep(wait)
        response = send(connection, "GET", "/health", {"Host": box.host(49983)})
        response.read()
        statuses.append(response.status)
    return statuses


WAITS = {f.__name__: f for f in (silent_answer, long_command, long_sdk_command, default_keepalive, half_a_head,
                                   missing_image, kept_connection)}


@pytest.mark.item("dp:50", "cp:180")
def test_silent_answer(long_waits):
    """A stream that is silent for 97 s is not cut."""
    body, took = long_waits["silent_answer"].result(160)
    assert body == b"firstlast" and took > 95


@pytest.mark.item("dp:107", "dp:133")
def test_long_command(long_waits):
    result, took = long_waits["long_command"].result(160)
    assert result.code == 0 and result.stdout == b"done\n" and took > 64
    assert {"keepalive": {}} in result.events


@pytest.mark.item("dp:107")
def test_long_sdk_command(long_waits):
    result = long_waits["long_sdk_command"].result(160)
    assert result.exit_code == 0 and result.stdout == "done\n"


@pytest.mark.item("dp:50", "dp:133")
def test_default_keepalive(long_waits):
    result = long_waits["default_keepalive"].result(160)
    assert result.stdout == b"done\n" and {"keepalive": {}} in result.events


def test_half_a_head(long_waits):
    """A client that stops in the middle of a head is sent away within a minute."""
    assert long_waits["half_a_head"].result(100) in ([], [400], [408])


def test_missing_image(long_waits):
    """An image that does not exist: a typed error with the reason, within the time that callers wait, and nothing left."""
    reply, took = long_waits["missing_image"].result(100)
    assert reply.status in (400, 500, 503, 504) and took < 60, (reply, took)
    assert "no-such-image" in assert_error(reply, reply.status)["message"]


@pytest.mark.item("dp:56")
def test_kept_connection(long_waits):
    assert long_waits["kept_connection"].result(160) == [204, 204]
