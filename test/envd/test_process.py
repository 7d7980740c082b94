"""process.Process without terminals."""

import base64
import json
import os
import pwd
import socket
import time
import unittest

from harness import PATH, Case, Client, Process, envelope, eventually, in_thread


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


class Run(Case):
    def test_output_and_exit(self):
        p = self.c.run("echo Hello, World!")
        self.assertEqual((p.stdout, p.stderr), ("Hello, World!\n", ""))
        self.assertEqual(p.end, {"exited": True, "status": "exit status 0"})
        self.assertEqual(p.stream.trailer, {})

    def test_failure(self):
        p = self.c.run("echo a; echo b >&2; exit 3")
        self.assertEqual((p.stdout, p.stderr), ("a\n", "b\n"))
        self.assertEqual(p.end, {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"})

    def test_not_found(self):
        p = self.c.run("no-such-command-here")
        self.assertEqual(p.code, 127)
        self.assertIn("no-such-command-here", p.stderr)
        for cmd, code in (("/no/such", 127), ("no-such", 127), ("/etc/passwd", 126), ("/tmp", 126), ("", 127)):
            p = self.c.run(cmd, args=[])
            self.assertEqual((p.code, p.end["exited"]), (code, True), cmd)
            self.assertNotEqual(p.stderr, "")

    def test_script_without_interpreter_line(self):
        with open(self.path("s"), "w") as f:
            f.write("echo script $1\n")
        os.chmod(self.path("s"), 0o755)
        self.assertEqual(self.c.run(self.path("s"), args=["arg"]).stdout, "script arg\n")

    def test_large_output_and_odd_bytes(self):
        p = self.c.run("head -c 1048576 /dev/zero | tr '\\0' x; printf '\\377\\000\\n' >&2")
        self.assertEqual(p.stdout, "x" * 1048576)
        self.assertEqual(p.out["stderr"], b"\xff\0\n")
        text = "multi\nline 'quotes' \"and\" $dollar \\ back ä€😀"
        self.assertEqual(self.c.run('printf %s "$T"', envs={"T": text}).stdout, text)

    def test_who_and_where(self):
        self.assertEqual(self.c.run("id -u; id -g; pwd").stdout, "1000\n1000\n/home/user\n")
        self.assertEqual(self.root.run("id -u").stdout, "0\n")
        self.assertEqual(self.c.run("pwd", cwd="/tmp").stdout, "/tmp\n")
        self.assertEqual(self.c.run("pwd", cwd="~").stdout, "/home/user\n")
        e = self.rpc_fails("invalid_argument", self.c.run, "pwd", cwd="/no/such/dir")
        self.assertEqual(e.message, "cwd '/no/such/dir' does not exist")
        os.mkdir(self.path("locked"), 0o700)
        self.rpc_fails("invalid_argument", self.c.run, "pwd", cwd=self.path("locked"))
        self.assertEqual(self.root.run("pwd", cwd=self.path("locked")).code, 0)
        nobody = Client(self.server.port, user="nobody-knows")
        e = self.rpc_fails("unauthenticated", nobody.run, "id")
        self.assertEqual((e.message, e.status), ("invalid username: 'nobody-knows'", 200))
        e = self.rpc_fails("unauthenticated", nobody.list)
        self.assertEqual(e.status, 401)

    def test_a_user_without_home(self):
        missing = [u.pw_name for u in pwd.getpwall() if not os.path.exists(u.pw_dir)]
        if not missing:
            self.skipTest("all users have a home")
        other = Client(self.server.port, user=missing[0])
        self.assertEqual(other.run("pwd").stdout, "/\n")
        self.rpc_fails("invalid_argument", other.run, "pwd", cwd="~")

    def test_environment(self):
        p = self.c.run("/usr/bin/env", args=["-0"], envs={"GLOBAL": "mine", "EMPTY": ""})
        env = dict(v.split("=", 1) for v in p.stdout.split("\0") if v)
        self.assertEqual(env.pop("PATH"), PATH)
        self.assertEqual(env, {"HOME": "/home/user", "USER": "user", "LOGNAME": "user", "E2B_SANDBOX": "true",
                               "GLOBAL": "mine", "EMPTY": ""})
        self.assertEqual(self.c.run("echo $GLOBAL").stdout, "yes\n")
        with open(self.path("tool"), "w") as f:
            f.write("#!/bin/sh\necho found\n")
        os.chmod(self.path("tool"), 0o755)
        self.assertEqual(self.c.run("tool", args=[], envs={"PATH": self.tmp + ":/bin"}).stdout, "found\n")

    def test_descriptors_and_signals_of_the_child(self):
        p = self.root.run("ls /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status; umask")
        lines = p.stdout.split()
        self.assertEqual(lines[:4], ["0", "1", "2", "3"])  # 3: ls reading the directory
        self.assertEqual(lines[4:], ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16, "0022"])

    def test_stdout_can_be_opened(self):
        self.assertEqual(self.c.run("echo x > /dev/stdout; echo y > /dev/stderr").code, 0)

    def test_stdin(self):
        self.assertEqual(self.c.run("read -p x v").code, 1)
        p = self.c.start("cat", stdin=True)
        self.c.send(p.pid, b"Hello")
        p.until(b"Hello")
        self.c.send(p.pid, b"")
        big = os.urandom(300000)
        in_thread(self.c.send, p.pid, big)
        p.until(big)
        self.assertEqual(self.c.call("process.Process/CloseStdin", {"process": {"pid": p.pid}}), {})
        self.assertEqual(p.wait().code, 0)
        # without the field there is one
        p = Process(self.c.stream("process.Process/Start", {"process": {"cmd": "cat"}}))
        self.c.send(p.pid, b"x")
        p.until(b"x")
        self.c.call("process.Process/CloseStdin", {"process": {"pid": p.pid}})
        p.wait()
        p = self.c.start("sleep 100", stdin=True)
        for _ in range(2):
            self.assertEqual(self.c.call("process.Process/CloseStdin", {"process": {"pid": p.pid}}), {})
        self.rpc_fails("internal", self.c.send, p.pid, b"x")
        self.c.signal(p.pid)
        p.wait()

    def test_bad_input(self):
        self.rpc_fails("not_found", self.c.send, 999999999, b"x")
        p = self.c.start("sleep 100")
        self.rpc_fails("internal", self.c.send, p.pid, b"x")
        self.rpc_fails("internal", self.c.send, p.pid, b"x", "pty")
        self.rpc_fails("unimplemented", self.c.call, "process.Process/SendInput",
                       {"process": {"pid": p.pid}, "input": {}})
        self.rpc_fails("invalid_argument", self.c.call, "process.Process/SendInput",
                       {"process": {"pid": p.pid}, "input": {"stdin": "!"}})
        self.rpc_fails("internal", self.c.call, "process.Process/Update",
                       {"process": {"pid": p.pid}, "pty": {"size": {"cols": 1, "rows": 1}}})
        self.c.signal(p.pid)
        p.wait()

    def test_input_waits_for_the_process(self):
        p = self.c.start("sleep 1; wc -c", stdin=True)
        begin = time.time()
        self.c.send(p.pid, b"x" * 200000)
        self.assertGreater(time.time() - begin, 0.5)
        self.c.call("process.Process/CloseStdin", {"process": {"pid": p.pid}})
        self.assertEqual(p.wait().stdout.strip(), "200000")
        # the process ends instead
        p = self.c.start("sleep 0.5", stdin=True)
        self.rpc_fails("internal", self.c.send, p.pid, b"x" * 200000)
        p.wait()

    def test_stream_input(self):
        p = self.c.start("cat", stdin=True)
        messages = [{"start": {"process": {"pid": p.pid}}}, {"keepalive": {}}]
        messages += [{"data": {"input": {"stdin": base64.b64encode(b"%d " % i).decode()}}} for i in range(50)]
        raw = b"".join(envelope(m) for m in messages)
        self.assertEqual(list(self.c.stream("process.Process/StreamInput", None, raw=raw)), [{}])
        p.until(b" 49 ")
        self.assertEqual(p.stdout, "".join("%d " % i for i in range(50)))
        self.rpc_fails("not_found", self.c.stream, "process.Process/StreamInput", None,
                       raw=envelope({"start": {"process": {"pid": 999999999}}}))
        self.rpc_fails("invalid_argument", self.c.stream, "process.Process/StreamInput", None,
                       raw=envelope({"data": {"input": {"stdin": "aGk="}}}))
        self.rpc_fails("invalid_argument", self.c.stream, "process.Process/StreamInput", None, raw=b"\0\0\0\0\5{}")
        self.c.signal(p.pid)
        p.wait()

    def test_background_children(self):
        begin = time.time()
        p = self.c.run("sleep 1 & echo $!")
        self.assertGreater(time.time() - begin, 0.9)  # it holds stdout
        p = self.c.run("nohup sleep 100 >/dev/null 2>&1 & echo $!")
        self.assertTrue(alive(int(p.stdout)))
        os.kill(int(p.stdout), 9)

    def test_kill_does_not_wait_for_children(self):
        p = self.c.start("echo before; sleep 100 && echo x")
        p.until(b"before")
        self.c.signal(p.pid)
        p.wait()
        self.assertEqual(p.end, {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"})
        # the process has gone already, its child holds the output
        p = self.c.start("sleep 100 & echo $!; exit 5")
        p.until(b"\n")
        eventually(lambda: not alive(p.pid))
        self.assertIn(p.pid, [x["pid"] for x in self.c.list()])
        self.c.signal(p.pid)
        self.assertEqual(p.wait().code, 5)
        os.kill(int(p.stdout), 9)

    def test_output_written_before_a_kill_arrives(self):
        p = self.c.start("head -c 60000 /dev/zero; echo done >&2; sleep 100")
        p.until(b"done", "stderr")
        self.c.signal(p.pid, "SIGNAL_SIGTERM")
        p.wait()
        self.assertEqual(len(p.out["stdout"]), 60000)
        self.assertEqual(p.end["status"], "signal: terminated")

    def test_signals(self):
        p = self.c.start("sleep 100")
        self.rpc_fails("unimplemented", self.c.signal, p.pid, "SIGNAL_UNSPECIFIED")
        self.rpc_fails("unimplemented", self.c.signal, p.pid, 2)
        self.c.signal(p.pid, 15)
        self.assertEqual(p.wait().code, -1)
        self.assertFalse(alive(p.pid))
        e = self.rpc_fails("not_found", self.c.signal, p.pid)
        self.assertEqual((e.status, e.message), (404, "process with pid %d not found" % p.pid))
        self.rpc_fails("not_found", self.c.call, "process.Process/SendSignal",
                       {"process": {"tag": "none"}, "signal": "SIGNAL_SIGKILL"})

    def test_timeout(self):
        begin = time.time()
        p = self.c.start("sleep 100", headers={"Connect-Timeout-Ms": "700"})
        self.rpc_fails("deadline_exceeded", p.wait)
        self.assertTrue(0.6 < time.time() - begin < 3)
        eventually(lambda: not alive(p.pid))
        self.assertEqual(self.c.run("sleep 0.2", headers={"Connect-Timeout-Ms": "0"}).code, 0)
        self.rpc_fails("invalid_argument", self.c.start, "true", headers={"Connect-Timeout-Ms": "99999999999"})
        # also when the starter is not there any more
        p = self.c.start("sleep 100", headers={"Connect-Timeout-Ms": "700"})
        p.close()
        eventually(lambda: not alive(p.pid), 3)

    def test_list(self):
        self.assertEqual(self.c.list(), [])
        p = self.c.start("sleep 100", envs={"A": "b"}, cwd="/tmp", tag="my tag")
        self.assertEqual(self.c.list(), [{"config": {"cmd": "/bin/bash", "args": ["-l", "-c", "sleep 100"],
                                                     "envs": {"A": "b"}, "cwd": "/tmp"},
                                          "pid": p.pid, "tag": "my tag"}])
        self.c.call("process.Process/SendSignal", {"process": {"tag": "my tag"}, "signal": "SIGNAL_SIGKILL"})
        p.wait()
        self.assertEqual(self.c.list(), [])

    def test_keepalive(self):
        p = self.c.run("sleep 2.5", headers={"Keepalive-Ping-Interval": "1"})
        self.assertEqual(p.keepalives, 2)


class Connect(Case):
    def test_connect(self):
        p = self.c.start("echo early; read v; echo got $v; exit 4", stdin=True)
        p.until(b"early")
        two = self.c.connect_process(p.pid)
        self.assertEqual(two.pid, p.pid)
        self.c.send(p.pid, b"line\n")
        for x in (p, two):
            x.wait()
            self.assertEqual(x.code, 4)
            self.assertIn("got line", x.stdout)
        self.assertNotIn("early", two.stdout)
        late = self.c.connect_process(p.pid).wait()
        self.assertEqual((late.code, late.stdout), (4, ""))
        e = self.rpc_fails("not_found", self.c.connect_process, 999999999)
        self.assertEqual((e.status, e.message), (200, "process with pid 999999999 not found"))

    def test_disconnected_process_goes_on(self):
        p = self.c.start("for i in $(seq 1 200); do head -c 10000 /dev/zero; done; echo marker; sleep 0.5; echo last; exit 7")
        p.close()
        two = self.c.connect_process(p.pid)
        two.wait()
        self.assertEqual(two.code, 7)
        self.assertIn("last", two.stdout.replace("\0", ""))

    def test_timeout_of_connect_ends_only_the_stream(self):
        p = self.c.start("sleep 1.5; exit 2")
        two = self.c.connect_process(p.pid, {"Connect-Timeout-Ms": "300"})
        self.rpc_fails("deadline_exceeded", two.wait)
        self.assertEqual(p.wait().code, 2)

    def test_slow_reader_slows_the_process(self):
        p = self.c.start("i=0; while [ $i -lt 200 ]; do head -c 200000 /dev/zero; i=$((i+1)); echo $i >> %s; done" %
                         self.path("progress"))

        def lines():
            with open(self.path("progress")) as f:
                return f.read().count("\n")

        eventually(lambda: os.path.exists(self.path("progress")))
        before = -1
        while lines() != before:
            before = lines()
            time.sleep(1.5)
        self.assertLess(before, 190)
        with open("/proc/%d/status" % self.server.proc.pid) as f:
            rss = [line for line in f if line.startswith("VmRSS")][0]
        self.assertLess(int(rss.split()[1]), 200000)
        p.wait()
        self.assertEqual(len(p.out["stdout"]), 40000000)

    def test_a_stuck_reader_that_leaves_frees_the_process(self):
        p = self.c.start("head -c 20000000 /dev/zero; echo $? > %s" % self.path("done"))
        time.sleep(0.5)
        self.assertFalse(os.path.exists(self.path("done")))
        p.close()
        eventually(lambda: os.path.exists(self.path("done")), 10)

    def test_half_closed_client_is_gone(self):
        p = self.c.start("sleep 100", tag="half")
        p.stream.sock.shutdown(socket.SHUT_WR)
        with self.assertRaises(Exception):
            p.wait()
        self.c.call("process.Process/SendSignal", {"process": {"tag": "half"}, "signal": "SIGNAL_SIGKILL"})


class Protocol(Case):
    def raw(self, data, path="/process.Process/Start", kind="application/connect+json", **more):
        h = {"Content-Type": kind}
        h.update(more)
        return self.c.http("POST", path, data, h)

    def end(self, data, **more):
        status, _, body = self.raw(data, **more)
        self.assertEqual((status, body[0]), (200, 2))
        return json.loads(body[5:])["error"]

    def test_bad_envelopes(self):
        self.assertEqual(self.end(b"")["code"], "unimplemented")
        self.assertEqual(self.end(b"\0\0")["code"], "invalid_argument")
        self.assertEqual(self.end(b"\0\0\0\0\5{}")["code"], "invalid_argument")
        self.assertEqual(self.end(envelope({}) + envelope({}))["code"], "unimplemented")
        self.assertEqual(self.end(envelope({}, 1))["code"], "internal")
        self.assertEqual(self.end(envelope(b"nonsense"))["code"], "invalid_argument")
        self.assertEqual(self.end(envelope(b""))["code"], "invalid_argument")
        self.assertEqual(self.end(b"\0\xff\xff\xff\xff")["code"], "resource_exhausted")
        self.assertEqual(self.end(envelope({}), **{"Connect-Content-Encoding": "gzip"})["code"], "unimplemented")
        self.assertEqual(self.end(envelope({}), **{"Connect-Protocol-Version": "2"})["code"], "invalid_argument")

    def test_unary_errors(self):
        for body in (b"", b"nonsense", b"[]", b'{"process":5}', b'{"a":1,"a":2}', b"[" * 1000):
            e = self.rpc_fails("invalid_argument", self.c.call, "process.Process/SendSignal", body)
            self.assertEqual(e.status, 400)
        self.rpc_fails("unimplemented", self.c.call, "process.Process/List", {}, {"Content-Encoding": "gzip"})
        self.c.call("process.Process/List", {}, {"Content-Encoding": "identity"})
        self.c.call("process.Process/List", {}, {"Content-Type": "application/json; charset=utf-8"})

    def test_lenient_json(self):
        self.assertEqual(self.c.call("process.Process/List", b'\n {\n "future": {"a": [1]} }\n'), {})
        self.c.fs("Stat", path="/tmp", unknown=1)
        p = self.c.start("sleep 100", unknownField={"x": 1}, pty=None)
        self.c.call("process.Process/SendSignal", {"process": {"pid": str(p.pid)}, "signal": 9})
        p.wait()

    def test_keep_alive_and_pipelining(self):
        s = socket.create_connection(("127.0.0.1", self.server.port), 10)
        one = (b"POST /process.Process/List HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
               b"Content-Length: 2\r\n\r\n{}")
        s.sendall(one * 20)
        got = b""
        while got.count(b"HTTP/1.1 200 OK") < 20 or not got.endswith(b"{}"):
            part = s.recv(65536)
            self.assertTrue(part)
            got += part
        s.close()

    def test_many_at_once(self):
        procs = [self.c.start("sleep 5; echo %d" % i) for i in range(50)]
        self.assertEqual(len(self.c.list()), 50)
        for i, p in enumerate(procs):
            self.assertEqual(p.wait().stdout, "%d\n" % i)

    def test_nothing_leaks(self):
        def fds():
            return len(os.listdir("/proc/%d/fd" % self.server.proc.pid))

        def children():
            with open("/proc/%d/task/%d/children" % (self.server.proc.pid, self.server.proc.pid)) as f:
                return f.read().split()

        self.c.run("true")
        before = fds()
        for i in range(100):
            self.assertEqual(self.c.run("/bin/true", args=[], stdin=i % 2 == 0).code, 0)
        for _ in range(20):
            self.c.run("(setsid sh -c 'sleep 0.1 & sleep 0.2' >/dev/null 2>&1 &)")
        self.c.start("true").close()
        eventually(lambda: fds() <= before and children() == [], 5)


if __name__ == "__main__":
    unittest.main()
