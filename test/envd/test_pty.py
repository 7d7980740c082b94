"""Terminals."""

import unittest

from harness import Case


class Pty(Case):
    def terminal(self, cols=80, rows=24, **envs):
        envs = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PS1": "$ ", **envs}
        return self.c.start("/bin/bash", args=["-i", "-l"], envs=envs, pty={"size": {"cols": cols, "rows": rows}})

    def type(self, p, text):
        self.c.send(p.pid, text.encode(), "pty")

    def test_shell(self):
        p = self.terminal(FOO="a-value")
        self.type(p, "echo <$FOO>\n".replace("<", "\\<").replace(">", "\\>"))
        p.until(b"<a-value>\r\n", "pty")
        self.type(p, "tty; test -t 0 && echo on''tty; echo $TERM\n")
        p.until(b"ontty\r\nxterm-256color", "pty")
        self.assertIn(b"/dev/pts/", p.out["pty"])
        self.type(p, "exit 6\n")
        self.assertEqual(p.wait().code, 6)
        self.assertNotIn(b"job control", p.out["pty"])
        self.assertEqual((p.stdout, p.stderr), ("", ""))

    def test_size(self):
        p = self.terminal()
        self.type(p, "stty size\n")
        p.until(b"24 80\r\n", "pty")
        self.c.call("process.Process/Update", {"process": {"pid": p.pid}, "pty": {"size": {"cols": 100, "rows": 30}}})
        self.type(p, "stty size\n")
        p.until(b"30 100\r\n", "pty")
        self.c.signal(p.pid)
        self.assertEqual(p.wait().code, -1)

    def test_job_control_and_interrupt(self):
        p = self.terminal()
        self.type(p, "sleep 100 & echo start''ed; fg\n")
        p.until(b"started\r\n", "pty")
        p.until(b"sleep 100\r\n", "pty")
        self.type(p, "\x03")
        self.type(p, "echo inter''rupted\n")
        p.until(b"interrupted\r\n", "pty")
        self.type(p, "\x04")
        p.wait()

    def test_the_user_owns_it(self):
        p = self.terminal()
        self.type(p, "stat -c %u $(tty)\n")
        p.until(b"1000\r\n", "pty")
        self.type(p, "exit\n")
        p.wait()

    def test_wrong_kind_of_input(self):
        p = self.terminal()
        self.rpc_fails("internal", self.c.send, p.pid, b"x", "stdin")
        e = self.rpc_fails("unknown", self.c.call, "process.Process/CloseStdin", {"process": {"pid": p.pid}})
        self.assertEqual(e.status, 500)
        self.c.signal(p.pid)
        p.wait()

    def test_much_output(self):
        p = self.terminal()
        self.type(p, "head -c 300000 /dev/zero | tr '\\0' y; echo e''nd\n")
        p.until(b"end\r\n", "pty")
        self.assertGreaterEqual(p.out["pty"].count(b"y"), 300000)
        self.type(p, "exit\n")
        p.wait()

    def test_reconnect(self):
        p = self.terminal()
        self.type(p, "echo fir''st\n")
        p.until(b"first", "pty")
        p.close()
        two = self.c.connect_process(p.pid)
        self.type(two, "echo sec''ond\n")
        two.until(b"second", "pty")
        self.assertNotIn(b"first", two.out["pty"])
        self.type(two, "exit\n")
        two.wait()


if __name__ == "__main__":
    unittest.main()
