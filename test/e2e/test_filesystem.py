"""Data plane §8.1 F: the file system calls."""
import time

import pytest

from helpers import Stream, assert_rpc_error, parse_time, rpc, sh, write_file


def fs(box, method, **message):
    return rpc(box, f"filesystem.Filesystem/{method}", message)


def ok(reply):
    assert reply.status == 200, reply
    return reply.json()


def stat(box, path):
    return ok(fs(box, "Stat", path=path))["entry"]


@pytest.fixture(scope="module")
def tree(box):
    sh(box, "mkdir -p tree/a/x tree/b && touch tree/a/1 tree/a/x/2 tree/b/3 tree/f && ln -s f tree/link && "
            "ln -s a tree/dirlink && ln -s nowhere tree/broken")
    return "/home/user/tree"


@pytest.mark.item("dp:143")
def test_exists(box, tree):
    assert stat(box, f"{tree}/f")["name"] == "f"
    message = assert_rpc_error(fs(box, "Stat", path=f"{tree}/none"), 404, "not_found")
    assert f"{tree}/none" in message


@pytest.mark.item("dp:144")
def test_info_of_a_file(box):
    write_file(box, "info.txt", b"12345")
    entry = stat(box, "/home/user/info.txt")
    assert entry["type"] == "FILE_TYPE_FILE" and entry["path"] == "/home/user/info.txt" and entry["name"] == "info.txt"
    assert entry["size"] == "5" and entry["mode"] == 0o644 and entry["permissions"] == "-rw-r--r--"
    assert entry["owner"] == "user" and entry["group"] == "user"
    assert entry["modifiedTime"].endswith("Z") and abs(parse_time(entry["modifiedTime"]) - time.time()) < 60
    assert "symlinkTarget" not in entry


@pytest.mark.item("dp:145")
def test_info_of_a_folder(box, tree):
    entry = stat(box, tree)
    assert entry["type"] == "FILE_TYPE_DIRECTORY" and entry["mode"] == 0o755 and entry["permissions"] == "drwxr-xr-x"


@pytest.mark.item("dp:146")
def test_links(box, tree):
    link = stat(box, f"{tree}/link")
    assert link["type"] == "FILE_TYPE_FILE" and link["symlinkTarget"] == f"{tree}/f" and link["name"] == "link"
    assert link["permissions"].startswith("L")
    folder = stat(box, f"{tree}/dirlink")
    assert folder["type"] == "FILE_TYPE_DIRECTORY" and folder["symlinkTarget"] == f"{tree}/a"
    broken = stat(box, f"{tree}/broken")
    assert broken.get("type", "FILE_TYPE_UNSPECIFIED") == "FILE_TYPE_UNSPECIFIED" and broken["name"] == "broken"


@pytest.mark.item("dp:147")
def test_make_folder(box):
    entry = ok(fs(box, "MakeDir", path="/home/user/made/deep/er"))["entry"]
    assert entry["type"] == "FILE_TYPE_DIRECTORY" and entry["path"] == "/home/user/made/deep/er"
    assert sh(box, "stat -c '%U %a' made made/deep made/deep/er") == "user 755\n" * 3
    assert_rpc_error(fs(box, "MakeDir", path="/home/user/made/deep/er"), 409, "already_exists")
    write_file(box, "plain", b"")
    assert_rpc_error(fs(box, "MakeDir", path="/home/user/plain"), 400, "invalid_argument")


@pytest.mark.item("dp:148")
def test_list(box, tree):
    def names(**more):
        return [e["path"][len(tree) + 1:] for e in ok(fs(box, "ListDir", path=tree, **more)).get("entries", [])]
    top = ["a", "b", "broken", "dirlink", "f", "link"]
    assert names(depth=1) == top and names() == top and names(depth=0) == top
    assert names(depth=2) == ["a", "a/1", "a/x", "b", "b/3", "broken", "dirlink", "f", "link"]
    assert "a/x/2" in names(depth=3)


@pytest.mark.item("dp:148")
def test_list_as_the_sdk_tests_do(box):
    sh(box, "mkdir -p t7/d1/s1 t7/d1/s2 t7/d2/s1 t7/d2/s2 && touch t7/f && rm -rf t7/d1/x")
    assert len(ok(fs(box, "ListDir", path="t7", depth=1))["entries"]) == 3
    entries = ok(fs(box, "ListDir", path="t7", depth=2))["entries"]
    assert [e["path"].removeprefix("/home/user/t7/") for e in entries] == ["d1", "d1/s1", "d1/s2", "d2", "d2/s1", "d2/s2", "f"]


@pytest.mark.item("dp:149")
def test_list_what_is_not_a_folder(box, tree):
    assert_rpc_error(fs(box, "ListDir", path=f"{tree}/none", depth=1), 404, "not_found")
    assert_rpc_error(fs(box, "ListDir", path=f"{tree}/f", depth=1), 400, "invalid_argument")


@pytest.mark.item("dp:150")
def test_move(box):
    write_file(box, "move-me", b"content")
    entry = ok(fs(box, "Move", source="/home/user/move-me", destination="/home/user/new/parent/moved"))["entry"]
    assert entry["path"] == "/home/user/new/parent/moved"
    assert sh(box, "cat new/parent/moved; ls move-me 2>&1 || true").startswith("content")
    assert_rpc_error(fs(box, "Move", source="/home/user/move-me", destination="/home/user/x"), 404, "not_found")


@pytest.mark.item("dp:150")
def test_move_across_mounts(box):
    sh(box, "mkdir -p across/sub && echo 1 > across/sub/f && ln -s f across/sub/l")
    ok(fs(box, "Move", source="/home/user/across", destination="/dev/shm/across"))
    assert sh(box, "cat /dev/shm/across/sub/f; readlink /dev/shm/across/sub/l; ls across 2>/dev/null || echo gone") == "1\nf\ngone\n"


@pytest.mark.item("dp:151")
def test_remove(box):
    sh(box, "mkdir -p rm/a/b && touch rm/a/b/c rm/file && ln -s /etc rm/link")
    assert ok(fs(box, "Remove", path="/home/user/rm/file")) == {}
    assert ok(fs(box, "Remove", path="/home/user/rm")) == {}
    assert ok(fs(box, "Remove", path="/home/user/rm")) == {}
    assert sh(box, "ls rm 2>/dev/null || echo gone; ls /etc/passwd") == "gone\n/etc/passwd\n"


@pytest.mark.item("dp:152")
def test_relative_and_empty_paths(box):
    write_file(box, "relative.txt", b"r")
    assert stat(box, "relative.txt")["path"] == "/home/user/relative.txt"
    assert stat(box, "")["path"] == "/home/user" and stat(box, "~/relative.txt")["name"] == "relative.txt"
    assert "relative.txt" in [e["name"] for e in ok(fs(box, "ListDir", path="", depth=1))["entries"]]


@pytest.mark.item("dp:153")
def test_roots_home_is_listed_for_all(box):
    from helpers import basic
    for user in ("root", "user"):
        reply = rpc(box, "filesystem.Filesystem/ListDir", {"path": "/root", "depth": 1}, basic(user))
        assert reply.status == 200, reply


# --- watching ----------------------------------------------------------------------------------------------------


class Watcher:
    """As Python's synchronous SDK watches: made, asked, removed."""

    def __init__(self, box, path, **more):
        self.box, self.id = box, ok(fs(box, "CreateWatcher", path=path, **more))["watcherId"]

    def events(self):
        found = ok(fs(self.box, "GetWatcherEvents", watcherId=self.id)).get("events", [])
        return [(e["name"], e["type"].removeprefix("EVENT_TYPE_")) for e in found]

    def remove(self):
        return fs(self.box, "RemoveWatcher", watcherId=self.id)


@pytest.fixture
def watched(box):
    sh(box, "rm -rf watched && mkdir -p watched/nested")
    return "/home/user/watched"


@pytest.mark.item("dp:154")
def test_watch_a_new_file(box, watched):
    """Exactly these three, and at once: no time passes between the write's answer and the question."""
    watcher = Watcher(box, watched)
    write_file(box, f"{watched}/new", b"x")
    assert watcher.events() == [("new", "CREATE"), ("new", "CHMOD"), ("new", "WRITE")]
    assert watcher.events() == []
    watcher.remove()


@pytest.mark.item("dp:155")
def test_watch_overwriting_and_the_rest(box, watched):
    write_file(box, f"{watched}/old", b"x")
    watcher = Watcher(box, watched)
    write_file(box, f"{watched}/old", b"y")
    assert ("old", "WRITE") in watcher.events()
    sh(box, "mv watched/old watched/moved && rm watched/moved")
    events = watcher.events()
    assert ("old", "RENAME") in events and ("moved", "CREATE") in events and ("moved", "REMOVE") in events
    watcher.remove()


@pytest.mark.item("dp:156")
def test_watch_recursively(box, watched):
    watcher = Watcher(box, watched, recursive=True)
    write_file(box, f"{watched}/nested/file", b"x")
    assert ("nested/file", "CREATE") in watcher.events()
    sh(box, "mkdir -p watched/late/er && sleep 0.3 && touch watched/late/er/f")
    assert ("late/er/f", "CREATE") in watcher.events()
    watcher.remove()


@pytest.mark.item("dp:157")
def test_watch_what_cannot_be_watched(box, watched):
    write_file(box, f"{watched}/file", b"x")
    assert_rpc_error(fs(box, "CreateWatcher", path=f"{watched}/none"), 404, "not_found")
    assert_rpc_error(fs(box, "CreateWatcher", path=f"{watched}/file"), 400, "invalid_argument")
    with Stream(box, "filesystem.Filesystem/WatchDir", {"path": f"{watched}/none"}) as stream:
        assert list(stream) == [] and stream.end["error"]["code"] == "not_found"


@pytest.mark.item("dp:158")
def test_watch_by_a_stream(box, watched):
    with Stream(box, "filesystem.Filesystem/WatchDir", {"path": watched}, {"Connect-Timeout-Ms": "3000"}) as stream:
        events = iter(stream)
        assert next(events) == {"start": {}}
        write_file(box, f"{watched}/streamed", b"x")
        found = [next(events)["filesystem"] for _ in range(3)]
        assert [(e["name"], e["type"]) for e in found] == [
            ("streamed", "EVENT_TYPE_CREATE"), ("streamed", "EVENT_TYPE_CHMOD"), ("streamed", "EVENT_TYPE_WRITE")]
        began = time.monotonic()
        assert list(events) == []
        assert stream.end["error"]["code"] == "deadline_exceeded" and time.monotonic() - began < 5


@pytest.mark.item("dp:159")
def test_watch_with_entries(box, watched):
    watcher = Watcher(box, watched, includeEntry=True)
    write_file(box, f"{watched}/entry", b"x")
    events = ok(fs(box, "GetWatcherEvents", watcherId=watcher.id))["events"]
    assert all(e["entry"]["path"] == f"{watched}/entry" for e in events) and len(events) == 3
    sh(box, "rm watched/entry")
    events = ok(fs(box, "GetWatcherEvents", watcherId=watcher.id))["events"]
    assert events and all("entry" not in e for e in events if e["type"] == "EVENT_TYPE_REMOVE")
    watcher.remove()


@pytest.mark.item("dp:160")
def test_watcher_that_was_removed(box, watched):
    watcher = Watcher(box, watched)
    assert watcher.remove().status == 200
    assert_rpc_error(fs(box, "GetWatcherEvents", watcherId=watcher.id), 404, "not_found")
    assert_rpc_error(watcher.remove(), 404, "not_found")
