"""envd as PID 1 of a PID namespace, and its end."""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from harness import BIN, Client, Server, eventually, in_thread

UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def can_unshare():
    return os.getuid() == 0 and shutil.which("unshare") and subprocess.run(
        [*UNSHARE, "true"], capture_output=True).returncode == 0


@unittest.skipUnless(can_unshare(), "cannot make a PID namespace")
class Pid1(unittest.TestCase):
    def setUp(self):
        self.server = Server(wrap=UNSHARE)
        self.c = Client(self.server.port)
        kids = "/proc/%d/task/%d/children" % (self.server.proc.pid, self.server.proc.pid)
        with open(kids) as f:
            self.pid = int(f.read().split()[0])
        self.addCleanup(self.end)

    def end(self):
        if self.server.proc.poll() is None:
            self.stop()

    def stop(self):
        """SIGTERM from outside, as a container runtime sends it."""
        os.kill(self.pid, signal.SIGTERM)
        self.assertEqual(self.server.proc.wait(10), 0, self.server.text())
        self.assertNotRegex(self.server.text(), "Sanitizer|runtime error")

    def test_reaps_orphans(self):
        self.assertEqual(self.c.run("cat /proc/1/comm").stdout, "envd\n")
        for _ in range(5):
            self.c.run("(setsid sh -c 'sleep 0.1 & sleep 0.2' >/dev/null 2>&1 &)")
        eventually(lambda: self.c.run("cat /proc/[0-9]*/stat | grep -c ' Z '; ls -d /proc/[0-9]* | wc -l"
                                      ).stdout.split()[0] == "0", 10)

    def test_signals_from_inside_do_not_end_it(self):
        self.c.run("kill -TERM 1; kill -INT 1; kill -HUP 1; kill -KILL 1")
        self.c.run("trap '' TERM; kill 0")
        time.sleep(0.3)
        self.assertEqual(self.c.http("GET", "/health")[0], 204)

    def test_end_is_quick_and_asks_first(self):
        flag = "/tmp/envd-pid1-%d" % os.getpid()
        self.c.start("trap 'echo asked > %s; exit' TERM; echo up; while :; do sleep 0.05; done" % flag).until(b"up")
        begin = time.time()
        self.stop()
        self.assertLess(time.time() - begin, 1)
        self.assertTrue(os.path.exists(flag))
        os.unlink(flag)

    def test_end_kills_what_does_not_listen(self):
        p = self.c.start("trap '' TERM; echo up; while :; do sleep 0.05; done")
        p.until(b"up")
        broken = []

        def read():
            try:
                p.wait()
            except Exception as e:
                broken.append(e)

        t = in_thread(read)
        begin = time.time()
        self.stop()
        self.assertTrue(0.9 < time.time() - begin < 4)
        t.join(5)
        self.assertEqual(len(broken), 1)  # cut, not ended

    def test_signal_from_outside_when_idle(self):
        begin = time.time()
        self.stop()
        self.assertLess(time.time() - begin, 1)


class Startless(unittest.TestCase):
    @unittest.skipUnless(os.getuid() == 0, "needs root")
    def test_port_in_use(self):
        server = Server()
        self.addCleanup(server.stop)
        r = subprocess.run([BIN, "--port", str(server.port)], capture_output=True, text=True, timeout=10)
        self.assertEqual(r.returncode, 1)
        self.assertIn("cannot start", r.stderr)


if __name__ == "__main__":
    unittest.main()
