"""Data plane §8.1 F: the file system calls, without watchers."""
import time

import pytest

from helpers import assert_rpc_error, parse_time, rpc, sh, write_file


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


@pytest.mark.item("dp:154", "dp:155", "dp:156", "dp:157", "dp:158")
@pytest.mark.next("watchers")
def test_watch(box):
    """The watching calls come with the rest of the daemon's protocol."""
    reply = fs(box, "CreateWatcher", path="/home/user/tree", recursive=False)
    if reply.status in (404, 501):
        pytest.skip("next: watchers")
    watcher = ok(reply)["watcherId"]
    write_file(box, "/home/user/tree/seen", b"x")
    events = ok(fs(box, "GetWatcherEvents", watcherId=watcher))["events"]
    assert [(e["name"], e["type"]) for e in events] == [
        ("seen", "EVENT_TYPE_CREATE"), ("seen", "EVENT_TYPE_CHMOD"), ("seen", "EVENT_TYPE_WRITE")]
    ok(fs(box, "RemoveWatcher", watcherId=watcher))
    assert_rpc_error(fs(box, "GetWatcherEvents", watcherId=watcher), 404, "not_found")
    assert_rpc_error(fs(box, "CreateWatcher", path="/home/user/none"), 404, "not_found")
