"""Data plane §8.1 E: processes and terminals, in raw Connect JSON through the gateway."""
import base64
import threading
import time

import pytest

from helpers import Result, Stream, assert_rpc_error, envd, eventually, rpc, run, sh, start

SELECTOR_OF_NOBODY = {"pid": 4194303}


def b64(text):
    return base64.b64encode(text.encode()).decode()


def alive(box, pid):
    return run(box, f"kill -0 {pid}", user="root").code == 0


def kill(box, pid, signal="SIGNAL_SIGKILL"):
    return rpc(box, "process.Process/SendSignal", {"process": {"pid": pid}, "signal": signal})


class Live:
    """A started process whose events are read on request."""

    def __init__(self, box, command, **more):
        self.box, self.stream = box, start(box, command, **more)
        self.events = iter(self.stream)
        self.pid = next(self.events)["event"]["start"]["pid"]

    def data(self, kind="stdout"):
        for message in self.events:
            if kind in message["event"].get("data", {}):
                return base64.b64decode(message["event"]["data"][kind])
        raise AssertionError(f"the stream ended without {kind}: {self.stream.end}")

    def until(self, text, kind="stdout"):
        got = b""
        while text.encode() not in got:
            got += self.data(kind)
        return got.decode("utf-8", "replace")

    def result(self):
        """What is left of the stream."""
        rest = Result.__new__(Result)
        rest.events = [m["event"] for m in self.events]
        rest.end_of_stream = self.stream.end
        rest.end = next((e["end"] for e in rest.events if "end" in e), None)
        rest.error = (self.stream.end or {}).get("error")
        rest.stdout = rest._data("stdout")
        return rest

    def __enter__(self):
        return self

    def __exit__(self, *_):
        kill(self.box, self.pid)
        self.stream.connection.close()


# --- commands ----------------------------------------------------------------------------------------------------


@pytest.mark.item("dp:99")
def test_echo(box):
    result = run(box, 'echo "Hello, World!"')
    assert (result.stdout, result.stderr) == (b"Hello, World!\n", b"")
    assert result.end.get("exitCode", 0) == 0 and result.end["exited"] is True and result.end["status"] == "exit status 0"
    assert "error" not in result.end


@pytest.mark.item("dp:100")
def test_exit_code(box):
    result = run(box, "echo out; echo err >&2; exit 1")
    assert result.end["exitCode"] == 1 and result.end["exited"] is True
    assert result.end["error"] == "exit status 1" and result.end["status"] == "exit status 1"
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")


@pytest.mark.item("dp:101")
def test_command_not_found(box):
    result = run(box, "no-such-program-here")
    assert result.code == 127 and b"no-such-program-here" in result.stderr


@pytest.mark.item("dp:102")
def test_output_is_separated(box):
    result = run(box, "echo a; echo b >&2")
    assert (result.stdout, result.stderr) == (b"a\n", b"b\n")


@pytest.mark.item("dp:103")
def test_start_is_first_and_listed(box):
    with Live(box, "sleep 30") as process:
        listed = rpc(box, "process.Process/List", {}).json()["processes"]
        mine = next(p for p in listed if p["pid"] == process.pid)
        assert mine["config"]["cmd"] == "/bin/bash" and mine["config"]["args"] == ["-l", "-c", "sleep 30"]
    eventually(lambda: process.pid not in [p["pid"] for p in rpc(box, "process.Process/List", {}).json().get("processes", [])], 3)


@pytest.mark.item("dp:104")
def test_much_output(box):
    result = run(box, "head -c 1048576 /dev/zero | tr '\\0' x; printf '%s' 'ünï \"q\" `b` $\\\\'\necho; printf 'a\\nb\\n'")
    assert result.code == 0
    assert result.stdout == b"x" * 1048576 + 'ünï "q" `b` $\\\\\na\nb\n'.encode()


@pytest.mark.item("dp:105")
def test_cut_character(box):
    """A lone byte of a longer character passes as it is."""
    result = run(box, "head -c 8191 /dev/zero | tr '\\0' a; printf '\\342'")
    assert result.stdout == b"a" * 8191 + b"\xe2"
    assert result.stdout.decode("utf-8", "replace") == "a" * 8191 + "\ufffd"


@pytest.mark.item("dp:106")
def test_deadline(box):
    began = time.monotonic()
    result = run(box, "exec sleep 10", headers={"Connect-Timeout-Ms": "1000"})
    assert 0.9 < time.monotonic() - began < 3
    assert result.error["code"] == "deadline_exceeded"
    eventually(lambda: not alive(box, result.pid), 2)


@pytest.mark.item("dp:136")
def test_deadline_of_too_many_digits(box):
    result = run(box, "true", headers={"Connect-Timeout-Ms": "99999999999"})
    assert result.error["code"] == "invalid_argument"


@pytest.mark.item("dp:108", "dp:109", "dp:110")
def test_kill(box):
    with Live(box, "exec sleep 100") as process:
        assert kill(box, process.pid).status == 200
        result = process.result()
        assert result.end["exitCode"] == -1 and not result.end.get("exited", False)
        assert result.end["status"] == "signal: killed" and result.end["error"] == "signal: killed"
        assert not alive(box, process.pid)
        assert_rpc_error(kill(box, process.pid), 404, "not_found")


@pytest.mark.item("dp:110")
def test_signal_to_nobody(box):
    assert_rpc_error(kill(box, SELECTOR_OF_NOBODY["pid"]), 404, "not_found")


@pytest.mark.item("dp:111")
def test_other_signals(box):
    with Live(box, "exec sleep 100") as process:
        assert_rpc_error(kill(box, process.pid, "SIGNAL_UNSPECIFIED"), 501, "unimplemented")
        assert kill(box, process.pid, "SIGNAL_SIGTERM").status == 200
        assert process.result().end["status"] == "signal: terminated"


def connect(box, pid, **more):
    return Stream(box, "process.Process/Connect", {"process": {"pid": pid}}, **more)


@pytest.mark.item("dp:112")
def test_connect(box):
    with Live(box, "echo one; read x; echo got $x; exit 3", stdin=True) as process:
        process.until("one\n")
        with connect(box, process.pid) as second:
            events = iter(second)
            assert next(events)["event"]["start"]["pid"] == process.pid
            send_input(box, process.pid, "two\n")
            rest = [m["event"] for m in events]
        assert b"".join(base64.b64decode(e["data"]["stdout"]) for e in rest if "data" in e) == b"got two\n"
        assert rest[-1]["end"]["exitCode"] == 3
        assert process.result().stdout == b"got two\n"


@pytest.mark.item("dp:112")
def test_connect_to_nobody(box):
    with connect(box, SELECTOR_OF_NOBODY["pid"]) as stream:
        assert stream.response.status == 200
        assert list(stream) == []
        assert stream.end["error"]["code"] == "not_found"


@pytest.mark.item("dp:113")
def test_client_of_start_gone(box):
    process = Live(box, "sleep 1.5; echo after; exit 7")
    process.stream.connection.close()
    with connect(box, process.pid) as stream:
        result = Result(stream)
    assert result.stdout == b"after\n" and result.code == 7


@pytest.mark.item("dp:114")
def test_connect_after_the_end(box):
    pid = run(box, "exit 5").pid
    with connect(box, pid) as stream:
        result = Result(stream)
    assert result.pid == pid and result.code == 5


@pytest.mark.item("dp:115")
def test_output_without_a_subscriber(box):
    process = Live(box, "head -c 3000000 /dev/zero; echo done > /tmp/unread; sleep 30")
    process.stream.connection.close()
    eventually(lambda: run(box, "cat /tmp/unread").stdout == b"done\n", 10)
    kill(box, process.pid)


def send_input(box, pid, text, kind="stdin"):
    reply = rpc(box, "process.Process/SendInput", {"process": {"pid": pid}, "input": {kind: b64(text)}})
    assert reply.status == 200, reply
    assert reply.json() == {}


@pytest.mark.item("dp:117")
def test_stdin(box):
    with Live(box, "cat", stdin=True) as process:
        send_input(box, process.pid, "Hello")
        assert process.until("Hello") == "Hello"
        reply = rpc(box, "process.Process/CloseStdin", {"process": {"pid": process.pid}})
        assert reply.status == 200, reply
        assert process.result().end.get("exitCode", 0) == 0


@pytest.mark.item("dp:118")
def test_no_stdin(box):
    began = time.monotonic()
    result = run(box, 'read -p "x" v')
    assert result.code == 1 and time.monotonic() - began < 5


@pytest.mark.item("dp:119")
def test_input_that_nobody_takes(box):
    reply = rpc(box, "process.Process/SendInput", {"process": SELECTOR_OF_NOBODY, "input": {"stdin": b64("x")}})
    assert_rpc_error(reply, 404, "not_found")
    with Live(box, "sleep 30") as process:
        reply = rpc(box, "process.Process/SendInput", {"process": {"pid": process.pid}, "input": {"stdin": b64("x")}})
        assert reply.status >= 400 and reply.json()["code"]


@pytest.mark.item("dp:120")
def test_users(box):
    assert sh(box, "whoami; pwd", user="root") == "root\n/home/user\n"
    assert sh(box, "whoami", user="user") == "user\n"
    result = run(box, "whoami", user="nobody-here")
    assert result.end is None and result.error["code"] == "unauthenticated"
    assert "invalid username: 'nobody-here'" in result.error["message"]
    reply = rpc(box, "process.Process/List", {}, {"Authorization": "Basic " + b64("nobody-here:")})
    assert_rpc_error(reply, 401, "unauthenticated")


@pytest.mark.item("dp:121")
def test_cwd(box):
    assert sh(box, "pwd", cwd="/tmp") == "/tmp\n"
    sh(box, "mkdir -p sub")
    assert sh(box, "pwd", cwd="sub") == "/home/user/sub\n"
    result = run(box, "pwd", cwd="/no/such/folder")
    assert result.error["code"] == "invalid_argument" and result.error["message"].endswith(
        "cwd '/no/such/folder' does not exist")
    sh(box, "mkdir -p /closed && chmod 700 /closed", user="root")
    result = run(box, "pwd", cwd="/closed")
    assert result.error or result.code != 0


@pytest.mark.item("dp:122")
def test_folder_deleted_by_its_user(new_box):
    box = new_box()
    sh(box, "mv /home/user /home/gone", user="root", cwd="/")
    result = run(box, "echo hi")
    assert result.error or result.code != 0
    assert sh(box, "echo alive", cwd="/tmp") == "alive\n"


@pytest.mark.item("dp:123")
def test_sudo(box):
    assert sh(box, "sudo id -u") == "0\n"


@pytest.mark.item("dp:124")
def test_environment(box):
    lines = sh(box, "env").splitlines()
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    assert env["HOME"] == "/home/user" and env["USER"] == "user" and env["LOGNAME"] == "user" and env["PATH"]
    assert not [k for k in env if k.startswith(("KUBERNETES", "AGENT_SANDBOX"))], env
    assert set(env) <= {"HOME", "USER", "LOGNAME", "PATH", "PWD", "SHLVL", "_", "OLDPWD", "E2B_SANDBOX", "E2B_SANDBOX_ID",
                        "E2B_TEMPLATE_ID", "LANG", "MAIL", "SHELL"}, env


@pytest.mark.item("dp:125")
def test_child_that_keeps_the_output_open(box):
    with Live(box, "sleep 100 & echo begun") as process:
        process.until("begun\n")
        ended = []
        thread = threading.Thread(target=lambda: ended.append(process.result()), daemon=True)
        thread.start()
        thread.join(1.5)
        assert not ended, "the stream ended although a child holds its output"
        assert process.pid in [p["pid"] for p in rpc(box, "process.Process/List", {}).json()["processes"]]
        sh(box, "pkill -f '[s]leep 100'")
        thread.join(5)
        assert ended and ended[0].end.get("exitCode", 0) == 0


@pytest.mark.item("dp:126")
def test_detached_child(box):
    began = time.monotonic()
    sh(box, "nohup sleep 101 >/dev/null 2>&1 &")
    assert time.monotonic() - began < 5
    assert sh(box, "pgrep -f '^sleep 101'").strip()
    sh(box, "pkill -f '^[s]leep 101'")


@pytest.mark.item("dp:127")
def test_kill_of_a_shell_with_a_child(box):
    with Live(box, "sh -c 'sleep 102 && echo x'; true") as process:
        time.sleep(0.3)
        assert kill(box, process.pid).status == 200
        assert process.result().end["exitCode"] == -1
    sh(box, "pkill -f '[s]leep 102' || true")


@pytest.mark.item("dp:141")
def test_orphans_are_reaped(box):
    for _ in range(10):
        sh(box, "(sleep 0.05 &) ; (true &)")
    time.sleep(0.5)
    assert eventually(lambda: sh(box, "ps -eo stat= | grep -c '^Z' || true").strip() == "0", 3)


@pytest.mark.item("dp:140")
def test_many_short_commands(box):
    def descriptors():
        return int(sh(box, "ls /proc/1/fd | wc -l", user="root"))
    before = descriptors()
    for i in range(100):
        assert run(box, f"echo {i}").stdout == b"%d\n" % i
    assert descriptors() <= before + 3


@pytest.mark.item("dp:55")
def test_parallel_commands(box):
    answers = {}

    def one(i):
        answers[i] = run(box, f"sleep 0.5; echo {i}").stdout
    threads = [threading.Thread(target=one, args=(i,)) for i in range(30)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert answers == {i: b"%d\n" % i for i in range(30)}


# --- terminals ---------------------------------------------------------------------------------------------------


def terminal(box, cols=80, rows=24, **more):
    envs = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **more.pop("envs", {})}
    return Live(box, "", pty={"size": {"cols": cols, "rows": rows}}, envs=envs, **more)


@pytest.mark.item("dp:128")
def test_terminal(box):
    with terminal(box, envs={"FOO": "the value"}) as pty:
        send_input(box, pty.pid, "echo [$FOO]\n", "pty")
        assert "[the value]" in pty.until("[the value]", "pty")
        send_input(box, pty.pid, "exit\n", "pty")
        assert pty.result().end.get("exitCode", 0) == 0


@pytest.mark.item("dp:129")
def test_terminal_size(box):
    with terminal(box, cols=80) as pty:
        send_input(box, pty.pid, "echo [$(tput cols)x$(tput lines)]\n", "pty")
        pty.until("[80x24]", "pty")
        reply = rpc(box, "process.Process/Update", {"process": {"pid": pty.pid}, "pty": {"size": {"cols": 100, "rows": 30}}})
        assert reply.status == 200, reply
        send_input(box, pty.pid, "echo [$(tput cols)x$(tput lines)]\n", "pty")
        pty.until("[100x30]", "pty")


@pytest.mark.item("dp:130")
def test_terminal_is_a_login_shell_with_job_control(box):
    with terminal(box) as pty:
        send_input(box, pty.pid, "shopt -q login_shell && echo [login$((1+1))]; echo [$TERM]; "
                                 "[[ $- == *i* && $- == *m* ]] && echo [jobs$((1+1))]\n", "pty")
        text = pty.until("[jobs2]", "pty")
        assert "[login2]" in text and "[xterm-256color]" in text and "no job control" not in text
        send_input(box, pty.pid, "tty\n", "pty")
        pty.until("/dev/pts/", "pty")


@pytest.mark.item("dp:131")
def test_kill_a_terminal(box):
    with terminal(box) as pty:
        assert kill(box, pty.pid).status == 200
        assert pty.result().end["exitCode"] == -1
        assert_rpc_error(kill(box, pty.pid), 404, "not_found")


@pytest.mark.item("dp:132")
def test_what_a_terminal_does_not_take(box):
    with terminal(box) as pty:
        assert_rpc_error(rpc(box, "process.Process/CloseStdin", {"process": {"pid": pty.pid}}), 500, "unknown")
        reply = rpc(box, "process.Process/SendInput", {"process": {"pid": pty.pid}, "input": {"stdin": b64("x")}})
        assert_rpc_error(reply, 500, "internal")
        with Live(box, "sleep 30") as plain:
            reply = rpc(box, "process.Process/Update", {"process": {"pid": plain.pid}, "pty": {"size": {"cols": 9, "rows": 9}}})
            assert_rpc_error(reply, 500, "internal")


# --- framing -----------------------------------------------------------------------------------------------------


@pytest.mark.item("dp:133")
def test_keepalive_at_the_asked_interval(box):
    """Header says 1 s here; the real interval of 50 s is waited for in test_long.py."""
    result = run(box, "sleep 3.5", headers={"Keepalive-Ping-Interval": "1"})
    assert 2 <= sum(1 for e in result.events if e == {"keepalive": {}}) <= 4


@pytest.mark.item("dp:134")
def test_end_of_stream(box):
    for stream in (start(box, "true"), start(box, "exit 9"), start(box, "x", cwd="/none"), connect(box, 4194302)):
        with stream:
            assert stream.response.headers["Content-Type"] == "application/connect+json"
            list(stream)
            assert isinstance(stream.end, dict)


@pytest.mark.item("dp:135")
def test_unary_errors(box):
    assert_rpc_error(rpc(box, "filesystem.Filesystem/Stat", {"path": "/none"}), 404, "not_found")


@pytest.mark.item("dp:137")
def test_wrong_shape_of_call(box):
    assert envd(box, "GET", "/process.Process/List").status == 405
    assert envd(box, "POST", "/process.Process/List", {"Content-Type": "text/plain"}, b"{}").status == 415
    assert rpc(box, "process.Process/NoSuch", {}).status == 404
    reply = envd(box, "POST", "/process.Process/List", {"Content-Type": "application/json"}, b"{")
    assert_rpc_error(reply, 400, "invalid_argument")


@pytest.mark.item("dp:138")
def test_unknown_fields_and_snake_case(box):
    reply = rpc(box, "process.Process/List", {"newField": 1})
    assert reply.status == 200
    # the file system calls have no two-word inputs that matter here, so the terminal size goes in unknown company
    with Stream(box, "process.Process/Start", {"process": {"cmd": "/bin/echo", "args": ["x"], "new_field": {}}, "extra": []}) as s:
        assert Result(s).stdout == b"x\n"


@pytest.mark.item("dp:134")
@pytest.mark.parametrize("frame", [
    b"", b"\x00\x00\x00", b"\x00\x00\x00\x00\x05{}", b"\x01\x00\x00\x00\x02{}", b"\x00\xff\xff\xff\xff{}",
    b"\x00\x00\x00\x00\x01{", b"\x00\x00\x00\x00\x02[]",
], ids=["empty", "short-head", "short-body", "compressed", "huge", "bad-json", "not-an-object"])
def test_broken_frames(box, frame):
    """An error in the shape of a stream, quickly, and the daemon lives on."""
    head = {"Content-Type": "application/connect+json"}
    reply = envd(box, "POST", "/process.Process/Start", head, frame, timeout=15)
    assert reply.status in (200, 400, 413)
    if reply.status == 200:
        assert reply.body[0] & 2
        assert b'"error"' in reply.body
    assert run(box, "echo ok").stdout == b"ok\n"


@pytest.mark.item("dp:65")
def test_stream_without_a_token(box):
    with start(box, "true", token=None) as stream:
        assert stream.response.status == 401
        import json
        assert json.loads(stream.response.read())["code"] == 401
