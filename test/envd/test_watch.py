"""Watching directories: as a stream and by asking."""

import os
import shutil
import time
import unittest

from harness import Case, eventually


def short(events):
    return [(e["type"].replace("EVENT_TYPE_", ""), e["name"]) for e in events]


class Ask(Case):
    def watch(self, path=None, **more):
        w = self.c.fs("CreateWatcher", path=path or self.tmp, **more)["watcherId"]
        self.assertRegex(w, r"^w[a-z0-9]{20}$")
        self.addCleanup(lambda: self.forget(w))
        return w

    def forget(self, w):
        try:
            self.c.fs("RemoveWatcher", watcherId=w)
        except Exception:
            pass

    def events(self, w):
        return self.c.fs("GetWatcherEvents", watcherId=w).get("events", [])

    def upload(self, name, content=b"Hello"):
        self.assertEqual(self.c.upload([("x", content)], "?path=" + self.path(name))[0], 200)

    def test_a_new_file_is_three_events(self):
        w = self.watch()
        self.upload("new.txt")
        self.assertEqual(short(self.events(w)), [("CREATE", "new.txt"), ("CHMOD", "new.txt"), ("WRITE", "new.txt")])
        self.assertEqual(self.events(w), [])
        self.upload("new.txt", b"again")
        self.assertIn(("WRITE", "new.txt"), short(self.events(w)))

    def test_kinds(self):
        w = self.watch()
        with open(self.path("a"), "w"):
            pass
        os.rename(self.path("a"), self.path("b"))
        os.unlink(self.path("b"))
        os.mkdir(self.path("d"))
        with open(self.path("d/inside"), "w"):
            pass
        self.assertEqual(short(self.events(w)), [("CREATE", "a"), ("RENAME", "a"), ("CREATE", "b"), ("REMOVE", "b"),
                                                 ("CREATE", "d")])

    def test_entries(self):
        w = self.watch(includeEntry=True)
        self.upload("f")
        os.unlink(self.path("f"))
        self.upload("g")
        events = self.events(w)
        for e in events:
            if e["name"] == "g":
                self.assertEqual(e["entry"]["path"], self.path("g"))
                self.assertEqual(e["entry"]["type"], "FILE_TYPE_FILE")
            if e["type"] == "EVENT_TYPE_REMOVE":
                self.assertNotIn("entry", e)

    def test_recursive(self):
        os.makedirs(self.path("sub/deep"))
        w = self.watch(recursive=True)
        self.upload("sub/deep/f")
        self.assertEqual(short(self.events(w)), [(k, "sub/deep/f") for k in ("CREATE", "CHMOD", "WRITE")])
        os.mkdir(self.path("later"))
        self.assertEqual(short(self.events(w)), [("CREATE", "later")])
        self.upload("later/g")
        self.assertEqual(short(self.events(w)), [(k, "later/g") for k in ("CREATE", "CHMOD", "WRITE")])
        # all at once: each name is created once
        os.makedirs(self.path("x/y/z"))
        for i in range(20):
            with open(self.path("x/y/z/%d" % i), "w"):
                pass
        created = [n for k, n in short(self.events(w)) if k == "CREATE"]
        self.assertEqual(sorted(created), sorted(["x", "x/y", "x/y/z"] + ["x/y/z/%d" % i for i in range(20)]))

    def test_recursive_while_it_grows(self):
        w = self.watch(recursive=True)
        want, created = set(), []
        for i in range(40):
            os.makedirs(self.path("d%d/e/f" % i))
            with open(self.path("d%d/e/f/g" % i), "w"):
                pass
            want |= {"d%d" % i, "d%d/e" % i, "d%d/e/f" % i, "d%d/e/f/g" % i}
            if i % 7 == 0:
                created += [n for k, n in short(self.events(w)) if k == "CREATE"]
        created += [n for k, n in short(self.events(w)) if k == "CREATE"]
        self.assertEqual(sorted(created), sorted(want))

    def test_moved_directories(self):
        os.makedirs(self.path("a/sub"))
        w = self.watch(recursive=True)
        os.rename(self.path("a"), self.path("b"))
        self.assertEqual(short(self.events(w))[:2], [("RENAME", "a"), ("CREATE", "b")])
        self.upload("b/sub/f")
        self.assertIn(("CREATE", "b/sub/f"), short(self.events(w)))
        outside = self.tmp + "-outside"
        os.rename(self.path("b"), outside)
        self.addCleanup(shutil.rmtree, outside)
        self.events(w)
        with open(outside + "/sub/unseen", "w"):
            pass
        self.assertEqual(self.events(w), [])

    def test_removed_and_made_again(self):
        os.mkdir(self.path("d"))
        w = self.watch(recursive=True)
        os.rmdir(self.path("d"))
        os.mkdir(self.path("d"))
        with open(self.path("d/f"), "w"):
            pass
        got = short(self.events(w))
        self.assertEqual([e for e in got if e[1] == "d"], [("REMOVE", "d"), ("CREATE", "d")])
        self.assertIn(("CREATE", "d/f"), got)

    def test_two_watchers_of_one_directory(self):
        os.mkdir(self.path("d"))
        a, b = self.watch(recursive=True), self.watch(self.path("d"))
        self.upload("d/f")
        self.assertEqual(short(self.events(b))[0], ("CREATE", "f"))
        self.assertEqual(short(self.events(a))[0], ("CREATE", "d/f"))
        self.c.fs("RemoveWatcher", watcherId=b)
        self.upload("d/g")
        self.assertEqual(short(self.events(a))[0], ("CREATE", "d/g"))

    def test_the_directory_itself(self):
        os.mkdir(self.path("d"))
        w = self.watch(self.path("d"))
        os.rmdir(self.path("d"))
        self.assertIn(("REMOVE", "."), short(self.events(w)))

    def test_refusals(self):
        self.rpc_fails("not_found", self.c.fs, "CreateWatcher", path=self.path("none"))
        self.upload("f")
        self.rpc_fails("invalid_argument", self.c.fs, "CreateWatcher", path=self.path("f"))
        self.rpc_fails("not_found", self.c.fs, "GetWatcherEvents", watcherId="wnone")
        self.rpc_fails("not_found", self.c.fs, "RemoveWatcher", watcherId="wnone")
        w = self.watch()
        self.assertEqual(self.c.fs("RemoveWatcher", watcherId=w), {})
        self.rpc_fails("not_found", self.c.fs, "GetWatcherEvents", watcherId=w)

    def test_a_large_tree(self):
        for i in range(50):
            for k in range(40):
                os.makedirs(self.path("t/%d/%d" % (i, k)))
        w = self.watch(recursive=True)
        self.upload("t/49/39/f")
        self.assertIn(("CREATE", "t/49/39/f"), short(self.events(w)))


class Stream(Case):
    def watch(self, path=None, headers=None, **more):
        s = self.c.stream("filesystem.Filesystem/WatchDir", {"path": path or self.tmp, **more}, headers)
        self.assertEqual(next(s), {"start": {}})
        return s

    def test_events(self):
        s = self.watch(recursive=True)
        self.c.upload([("x", b"1")], "?path=" + self.path("f"))
        got = [next(s)["filesystem"] for _ in range(3)]
        self.assertEqual(short(got), [(k, "f") for k in ("CREATE", "CHMOD", "WRITE")])
        s.close()

    def test_timeout_and_keepalive(self):
        s = self.watch(headers={"Connect-Timeout-Ms": "1600", "Keepalive-Ping-Interval": "1"})
        self.assertEqual(next(s), {"keepalive": {}})
        self.rpc_fails("deadline_exceeded", lambda: list(s))

    def test_refusals(self):
        e = self.rpc_fails("not_found", self.c.stream, "filesystem.Filesystem/WatchDir", {"path": self.path("none")})
        self.assertEqual(e.status, 200)
        self.rpc_fails("invalid_argument", self.c.stream, "filesystem.Filesystem/WatchDir", {"path": "/etc/passwd"})

    def test_a_client_that_leaves_is_forgotten(self):
        def watches():
            fds = "/proc/%d/fd/" % self.server.proc.pid
            for fd in os.listdir(fds):
                if os.readlink(fds + fd) == "anon_inode:inotify":
                    with open(fds.replace("fd/", "fdinfo/") + fd) as f:
                        return f.read().count("inotify wd")
            return 0

        os.makedirs(self.path("a/b"))
        streams = [self.watch(recursive=True) for _ in range(5)]
        self.assertEqual(watches(), 3)
        for s in streams:
            s.close()
        eventually(lambda: watches() == 0)

    def test_a_burst(self):
        s = self.watch()
        for i in range(3000):
            with open(self.path("%d" % i), "w"):
                pass
        time.sleep(0.5)  # the client is slow
        created = [next(s)["filesystem"]["name"] for _ in range(3000)]
        self.assertEqual(created, ["%d" % i for i in range(3000)])
        s.close()


if __name__ == "__main__":
    unittest.main()
