"""What a user of the Python SDK does, written for every version: the pinned one and the newest run this same file."""
import os
import time
import urllib.request
import uuid

import pytest

import e2b
from helpers import TAG, tls_context

pytestmark = pytest.mark.any_sdk


@pytest.fixture(scope="module")
def sandbox():
    made = e2b.Sandbox.create(metadata=TAG, timeout=600)
    yield made
    made.kill()


@pytest.mark.item("cp:246", "dp:99")
def test_quick_start():
    made = e2b.Sandbox.create(metadata=TAG)
    try:
        result = made.commands.run('echo "Hello, World!"')
        assert result.stdout == "Hello, World!\n" and result.stderr == "" and result.exit_code == 0
        made.files.write("hello.txt", "Hello")
        assert made.files.read("hello.txt") == "Hello"
        assert "hello.txt" in [e.name for e in made.files.list("/home/user")]
        assert made.is_running() is True
    finally:
        assert made.kill() is True
    assert made.is_running() is False


@pytest.mark.item("cp:27", "cp:69")
def test_info(sandbox):
    info = sandbox.get_info()
    assert info.sandbox_id == sandbox.sandbox_id and info.template_id == "base" and info.state.value == "running"
    assert 590 <= (info.end_at - info.started_at).total_seconds() <= 610
    assert info.metadata == TAG


def test_default_lifetime():
    made = e2b.Sandbox.create(metadata=TAG)
    try:
        info = made.get_info()
        assert abs((info.end_at - info.started_at).total_seconds() - 300) <= 2
    finally:
        made.kill()


@pytest.mark.item("cp:77", "cp:78", "cp:86")
def test_list_with_filter():
    mark = {"sdk list": f"{uuid.uuid4()} &=/é%"}
    two = [e2b.Sandbox.create(metadata={**TAG, **mark}) for _ in range(2)]
    try:
        pages = e2b.Sandbox.list(query=e2b.SandboxQuery(metadata=mark), limit=1)
        assert [s.sandbox_id for s in pages.next_items()] == [two[1].sandbox_id] and pages.has_next
        assert [s.sandbox_id for s in pages.next_items()] == [two[0].sandbox_id] and not pages.has_next
    finally:
        for one in two:
            one.kill()


@pytest.mark.item("cp:99", "cp:100", "cp:101")
def test_kill():
    made = e2b.Sandbox.create(metadata=TAG)
    assert e2b.Sandbox.kill(made.sandbox_id) is True
    assert e2b.Sandbox.kill(made.sandbox_id) is False
    assert e2b.Sandbox.kill("nonexistingsandbox") is False
    time.sleep(0.5)  # until every replica knows
    with pytest.raises(e2b.NotFoundException):
        e2b.Sandbox.get_info(made.sandbox_id)


@pytest.mark.item("cp:34")
def test_unknown_template():
    with pytest.raises(e2b.SandboxException) as e:
        e2b.Sandbox.create("no-such-template", metadata=TAG)
    assert "404" in str(e.value) and "no-such-template" in str(e.value)


@pytest.mark.item("cp:3")
def test_bad_key():
    with pytest.raises(e2b.AuthenticationException):
        e2b.Sandbox.create(api_key="e2b_" + "0" * 40, metadata=TAG)


@pytest.mark.item("dp:182")
def test_connect(sandbox):
    sandbox.files.write("connect.txt", "x")
    other = e2b.Sandbox.connect(sandbox.sandbox_id, timeout=10)
    assert other.files.read("connect.txt") == "x"
    assert other.commands.run("whoami").stdout == "user\n"


@pytest.mark.item("cp:119")
def test_set_timeout():
    made = e2b.Sandbox.create(metadata=TAG, timeout=60)
    try:
        made.set_timeout(500)
        time.sleep(0.5)  # until every replica knows
        left = made.get_info().end_at.timestamp() - time.time()
        assert 494 <= left <= 502
    finally:
        made.kill()


# --- commands ----------------------------------------------------------------------------------------------------


@pytest.mark.item("dp:100")
def test_exit_code(sandbox):
    with pytest.raises(e2b.CommandExitException) as e:
        sandbox.commands.run("echo out; echo err >&2; exit 1")
    assert (e.value.exit_code, e.value.stdout, e.value.stderr, e.value.error) == (1, "out\n", "err\n", "exit status 1")


@pytest.mark.item("dp:101")
def test_command_not_found(sandbox):
    with pytest.raises(e2b.CommandExitException) as e:
        sandbox.commands.run("no-such-program-here")
    assert e.value.exit_code == 127 and e.value.stderr


@pytest.mark.item("dp:102", "dp:104")
def test_output_callbacks(sandbox):
    out, err = [], []
    result = sandbox.commands.run("for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.1; done",
                                  on_stdout=out.append, on_stderr=err.append)
    assert "".join(out) == result.stdout == "1\n2\n3\n" and "".join(err) == result.stderr == "e1\ne2\ne3\n"


@pytest.mark.item("dp:105")
def test_cut_character(sandbox):
    out = sandbox.commands.run("head -c 8191 /dev/zero | tr '\\0' a; printf '\\342'").stdout
    assert out == "a" * 8191 + "\ufffd"


@pytest.mark.item("dp:106")
def test_timeout(sandbox):
    began = time.monotonic()
    with pytest.raises(e2b.TimeoutException):
        # the output keeps the client's own read timeout, which is as long, from racing with the server's answer
        sandbox.commands.run("sleep 0.5; echo x; sleep 10", timeout=1)
    assert time.monotonic() - began < 5


@pytest.mark.item("dp:108", "dp:110")
def test_background_and_kill(sandbox):
    handle = sandbox.commands.run("sleep 100", background=True)
    assert handle.pid in [p.pid for p in sandbox.commands.list()]
    assert handle.kill() is True
    assert sandbox.commands.kill(handle.pid) is False
    with pytest.raises(e2b.CommandExitException):
        sandbox.commands.run(f"kill -0 {handle.pid}")


@pytest.mark.item("dp:103")
def test_process_list(sandbox):
    handle = sandbox.commands.run("sleep 100", background=True, envs={"K": "v"}, cwd="/tmp")
    mine = next(p for p in sandbox.commands.list() if p.pid == handle.pid)
    assert mine.cmd == "/bin/bash" and list(mine.args) == ["-l", "-c", "sleep 100"]
    assert dict(mine.envs) == {"K": "v"} and mine.cwd == "/tmp"
    handle.kill()


@pytest.mark.item("dp:112")
def test_connect_to_a_command(sandbox):
    handle = sandbox.commands.run("sleep 1; echo late; exit 4", background=True)
    handle.disconnect()
    with pytest.raises(e2b.CommandExitException) as e:
        sandbox.commands.connect(handle.pid).wait()
    assert e.value.exit_code == 4 and e.value.stdout == "late\n"
    with pytest.raises(e2b.NotFoundException):
        sandbox.commands.connect(4194303)


@pytest.mark.item("dp:117")
def test_stdin(sandbox):
    handle = sandbox.commands.run("read x; echo got $x", background=True, stdin=True)
    sandbox.commands.send_stdin(handle.pid, "a line\n")
    assert handle.wait().stdout == "got a line\n"


@pytest.mark.item("dp:118")
def test_no_stdin(sandbox):
    with pytest.raises(e2b.CommandExitException) as e:
        sandbox.commands.run('read -p "x" v')
    assert e.value.exit_code == 1


@pytest.mark.item("dp:69")
def test_environment():
    made = e2b.Sandbox.create(metadata=TAG, envs={"FOO": "bar"})
    try:
        assert made.commands.run("echo $FOO").stdout == "bar\n"
        assert made.commands.run("echo $FOO", envs={"FOO": "baz"}).stdout == "baz\n"
        assert made.commands.run("echo $FOO").stdout == "bar\n"
    finally:
        made.kill()


@pytest.mark.item("dp:120", "dp:121")
def test_user_and_cwd(sandbox):
    assert sandbox.commands.run("whoami; pwd", user="root").stdout == "root\n/home/user\n"
    assert sandbox.commands.run("pwd", cwd="/tmp").stdout == "/tmp\n"
    with pytest.raises(e2b.AuthenticationException):
        sandbox.commands.run("whoami", user="nobody-here")
    with pytest.raises(e2b.SandboxException):
        sandbox.commands.run("pwd", cwd="/no/such/folder")


# --- terminals ---------------------------------------------------------------------------------------------------


@pytest.mark.item("dp:128", "dp:129")
def test_terminal(sandbox):
    seen = []
    pty = sandbox.pty.create(e2b.PtySize(rows=24, cols=80), envs={"FOO": "the value"})
    sandbox.pty.send_stdin(pty.pid, b"echo [$FOO] [$(tput cols)]\n")
    stream = iter(pty)

    def until(text):
        while text not in b"".join(seen).decode("utf-8", "replace"):
            seen.append(next(stream)[2] or b"")
    until("[the value] [80]")
    sandbox.pty.resize(pty.pid, e2b.PtySize(rows=30, cols=100))
    sandbox.pty.send_stdin(pty.pid, b"echo [$(tput cols)]\n")
    until("[100]")
    sandbox.pty.send_stdin(pty.pid, b"exit\n")
    for _ in stream:
        pass
    assert pty.wait().exit_code == 0


@pytest.mark.item("dp:131")
def test_kill_a_terminal(sandbox):
    pty = sandbox.pty.create(e2b.PtySize(rows=24, cols=80))
    assert sandbox.pty.kill(pty.pid) is True
    assert sandbox.pty.kill(pty.pid) is False


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.item("dp:71", "dp:72", "dp:76")
def test_write_and_read(sandbox):
    info = sandbox.files.write("test.txt", "Hello")
    assert (info.name, info.path) == ("test.txt", "/home/user/test.txt")
    assert sandbox.files.read("test.txt") == "Hello"
    data = bytes(range(256)) * 100
    sandbox.files.write("/tmp/bin", data)
    assert bytes(sandbox.files.read("/tmp/bin", format="bytes")) == data
    sandbox.files.write("/tmp/bin", b"")
    assert sandbox.files.read("/tmp/bin") == ""
    assert b"".join(sandbox.files.read("test.txt", format="stream")) == b"Hello"


@pytest.mark.item("dp:72")
def test_ten_mebibytes(sandbox):
    data = os.urandom(10 << 20)
    sandbox.files.write("/tmp/ten", data)
    assert bytes(sandbox.files.read("/tmp/ten", format="bytes")) == data


@pytest.mark.item("dp:78")
def test_write_several(sandbox):
    infos = sandbox.files.write_files([{"path": f"/home/user/several/{i}", "data": str(i)} for i in range(3)])
    assert [i.path for i in infos] == [f"/home/user/several/{i}" for i in range(3)]
    assert sandbox.files.read("several/2") == "2"


@pytest.mark.item("dp:73", "dp:74")
def test_read_errors(sandbox):
    with pytest.raises(e2b.NotFoundException) as e:
        sandbox.files.read("/home/user/nothing")
    assert "does not exist" in str(e.value)
    with pytest.raises(e2b.InvalidArgumentException):
        sandbox.files.read("/home/user")


@pytest.mark.item("dp:84", "dp:85")
def test_as_root(sandbox):
    sandbox.files.write("r.txt", "x", user="root")
    assert sandbox.files.read("/root/r.txt", user="root") == "x"
    with pytest.raises(e2b.AuthenticationException):
        sandbox.files.read("x", user="nobody-here")


@pytest.mark.item("dp:143", "dp:144", "dp:145")
def test_get_info(sandbox):
    sandbox.files.write("info.txt", "12345")
    assert sandbox.files.exists("info.txt") is True and sandbox.files.exists("none.txt") is False
    info = sandbox.files.get_info("info.txt")
    assert info.type.value == "file" and info.size == 5 and info.mode == 0o644 and info.permissions == "-rw-r--r--"
    assert info.owner == "user" and info.group == "user"
    assert abs(info.modified_time.timestamp() - time.time()) < 60
    sandbox.files.make_dir("infodir")
    info = sandbox.files.get_info("infodir")
    assert info.type.value == "dir" and info.mode == 0o755 and info.permissions == "drwxr-xr-x"


@pytest.mark.item("dp:147")
def test_make_dir(sandbox):
    assert sandbox.files.make_dir("md/a/b") is True
    assert sandbox.files.make_dir("md/a/b") is False


@pytest.mark.item("dp:148", "dp:149")
def test_list(sandbox):
    sandbox.commands.run("mkdir -p ls/b/x ls/a && touch ls/c")
    assert [e.name for e in sandbox.files.list("/home/user/ls")] == ["a", "b", "c"]
    assert [e.path for e in sandbox.files.list("/home/user/ls", depth=2)] == [
        f"/home/user/ls/{p}" for p in ("a", "b", "b/x", "c")]
    with pytest.raises(e2b.NotFoundException):
        sandbox.files.list("/no/such/folder")


@pytest.mark.item("dp:150", "dp:151")
def test_rename_and_remove(sandbox):
    sandbox.files.write("old.txt", "x")
    assert sandbox.files.rename("old.txt", "deep/new.txt").path == "/home/user/deep/new.txt"
    assert not sandbox.files.exists("old.txt") and sandbox.files.read("deep/new.txt") == "x"
    with pytest.raises(e2b.NotFoundException):
        sandbox.files.rename("old.txt", "x")
    sandbox.files.remove("deep")
    sandbox.files.remove("deep")
    assert not sandbox.files.exists("deep")


@pytest.mark.item("dp:154", "dp:156", "dp:157")
def test_watch(sandbox):
    sandbox.files.make_dir("watch/nested")
    handle = sandbox.files.watch_dir("watch", recursive=True)
    sandbox.files.write("watch/nested/f", "x")
    events = handle.get_new_events()
    assert [(e.name, e.type.value) for e in events] == [("nested/f", "create"), ("nested/f", "chmod"), ("nested/f", "write")]
    handle.stop()
    with pytest.raises(e2b.NotFoundException):
        sandbox.files.watch_dir("no-such-folder")


@pytest.mark.item("dp:87", "dp:88")
def test_links(sandbox):
    sandbox.files.write("by-link.txt", "linked")
    context = tls_context()
    url = sandbox.download_url("by-link.txt")
    assert urllib.request.urlopen(url, context=context, timeout=30).read() == b"linked"
    url = sandbox.download_url("by-link.txt", use_signature_expiration=120)
    assert urllib.request.urlopen(url, context=context, timeout=30).read() == b"linked"
    mark = uuid.uuid4().hex
    body = (f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nup\r\n--{mark}--\r\n').encode()
    request = urllib.request.Request(sandbox.upload_url("up.txt"), body, method="POST",
                                     headers={"Content-Type": f"multipart/form-data; boundary={mark}"})
    assert urllib.request.urlopen(request, context=context, timeout=30).status == 200
    assert sandbox.files.read("up.txt") == "up"


@pytest.mark.item("dp:183", "cp:170")
def test_get_host(sandbox):
    sandbox.commands.run("nohup python3 -m http.server 8123 --bind 0.0.0.0 >/dev/null 2>&1 & "
                         "for i in $(seq 100); do ss -Htln sport = :8123 | grep -q . && exit 0; sleep 0.1; done; exit 1")
    with urllib.request.urlopen(f"https://{sandbox.get_host(8123)}/", context=tls_context(), timeout=30) as answer:
        assert answer.status == 200
