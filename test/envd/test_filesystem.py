"""filesystem.Filesystem but the watchers."""

import datetime
import json
import os
import pwd
import time
import unittest

from harness import Case, in_thread


class Filesystem(Case):
    def test_stat_of_a_file(self):
        self.c.upload([("x", b"12345")], "?path=" + self.path("f"))
        e = self.c.fs("Stat", path=self.path("f"))["entry"]
        when = datetime.datetime.fromisoformat(e.pop("modifiedTime").replace("Z", "+00:00")[:19] + "+00:00")
        self.assertLess(abs(when.timestamp() - time.time()), 10)
        owner = self.c.run("stat -c %U -- " + self.path("f")).stdout.strip().replace("UNKNOWN", "user")
        self.assertIn(e.pop("owner"), (owner, "user"))
        self.assertTrue(e.pop("group"))
        self.assertEqual(e, {"name": "f", "type": "FILE_TYPE_FILE", "path": self.path("f"), "size": "5",
                             "mode": 0o644, "permissions": "-rw-r--r--"})

    def test_stat_of_others(self):
        os.mkdir(self.path("d"), 0o755)
        e = self.c.fs("Stat", path=self.path("d") + "/")["entry"]
        self.assertEqual((e["type"], e["mode"], e["permissions"], e["path"]),
                         ("FILE_TYPE_DIRECTORY", 0o755, "drwxr-xr-x", self.path("d")))
        os.symlink("d", self.path("l"))
        e = self.c.fs("Stat", path=self.path("l"))["entry"]
        self.assertEqual((e["type"], e["name"], e["symlinkTarget"], e["permissions"]),
                         ("FILE_TYPE_DIRECTORY", "l", self.path("d"), "Lrwxrwxrwx"))
        os.symlink("nowhere", self.path("broken"))
        self.assertNotIn("type", self.c.fs("Stat", path=self.path("broken"))["entry"])
        e = self.rpc_fails("not_found", self.c.fs, "Stat", path=self.path("none"))
        self.assertEqual(e.status, 404)
        self.assertTrue(e.message.startswith("file not found: "))
        self.rpc_fails("not_found", self.c.fs, "Stat", path="/etc/passwd/x")
        self.assertEqual(self.c.fs("Stat", path="/")["entry"]["path"], "/")

    def test_make_dir(self):
        e = self.c.fs("MakeDir", path=self.path("a/b"))["entry"]
        self.assertEqual((e["type"], e["permissions"]), ("FILE_TYPE_DIRECTORY", "drwxr-xr-x"))
        self.assertEqual(os.stat(self.path("a")).st_uid, 1000)
        self.assertEqual(self.rpc_fails("already_exists", self.c.fs, "MakeDir", path=self.path("a/b")).status, 409)
        with open(self.path("f"), "w"):
            pass
        self.rpc_fails("invalid_argument", self.c.fs, "MakeDir", path=self.path("f"))
        self.rpc_fails("invalid_argument", self.c.fs, "MakeDir", path=self.path("f/x"))

    def test_move(self):
        with open(self.path("f"), "w") as f:
            f.write("x")
        e = self.c.fs("Move", source=self.path("f"), destination=self.path("new/dir/g"))["entry"]
        self.assertEqual((e["name"], e["path"]), ("g", self.path("new/dir/g")))
        self.assertFalse(os.path.exists(self.path("f")))
        self.rpc_fails("not_found", self.c.fs, "Move", source=self.path("f"), destination=self.path("h"))
        os.makedirs(self.path("full/x"))
        os.mkdir(self.path("dir"))
        self.rpc_fails("internal", self.c.fs, "Move", source=self.path("dir"), destination=self.path("full"))

    def test_move_across_file_systems(self):
        os.mkdir(self.path("m"))
        if os.system("mount -t tmpfs none %s 2>/dev/null" % self.path("m")) != 0:
            self.skipTest("cannot mount")
        self.addCleanup(os.system, "umount " + self.path("m"))
        os.makedirs(self.path("tree/sub"))
        with open(self.path("tree/sub/f"), "w") as f:
            f.write("content")
        os.chmod(self.path("tree/sub/f"), 0o640)
        os.symlink("sub/f", self.path("tree/l"))
        e = self.c.fs("Move", source=self.path("tree"), destination=self.path("m/t"))["entry"]
        self.assertEqual(e["path"], self.path("m/t"))
        with open(self.path("m/t/l")) as f:
            self.assertEqual(f.read(), "content")
        self.assertEqual(os.stat(self.path("m/t/sub/f")).st_mode & 0o777, 0o640)
        self.assertFalse(os.path.exists(self.path("tree")))
        self.c.fs("Move", source=self.path("m/t/sub/f"), destination=self.path("back"))
        self.assertTrue(os.path.exists(self.path("back")))

    def tree(self):
        for name in ("one/deep/deeper", "two", "b"):
            os.makedirs(self.path("t", name))
        for name in ("one/f", "one/deep/g", "Z"):
            with open(self.path("t", name), "w"):
                pass
        os.symlink("one", self.path("t/link"))

    def list(self, path, depth=1):
        entries = self.c.fs("ListDir", path=path, depth=depth).get("entries", [])
        return [e["path"][len(path) + 1:] for e in entries]

    def test_list(self):
        self.tree()
        t = self.path("t")
        self.assertEqual(self.list(t), ["Z", "b", "link", "one", "two"])
        self.assertEqual(self.list(t, 0), self.list(t, 1))
        self.assertEqual(self.list(t, 2), ["Z", "b", "link", "one", "one/deep", "one/f", "two"])
        self.assertEqual(self.list(t, 10), ["Z", "b", "link", "one", "one/deep", "one/deep/deeper", "one/deep/g",
                                            "one/f", "two"])
        # a link is followed only where the listing begins
        self.assertEqual(self.list(self.path("t/link")), ["deep", "f"])
        self.assertEqual(self.list(self.path("t/b")), [])
        self.rpc_fails("not_found", self.c.fs, "ListDir", path=self.path("none"), depth=1)
        self.rpc_fails("invalid_argument", self.c.fs, "ListDir", path=self.path("t/Z"), depth=1)
        os.symlink("loop", self.path("loop"))
        self.rpc_fails("failed_precondition", self.c.fs, "ListDir", path=self.path("loop"), depth=1)

    def test_list_many(self):
        os.mkdir(self.path("many"))
        for i in range(3000):
            with open(self.path("many", "%05d" % i), "w"):
                pass
        self.assertEqual(self.list(self.path("many")), ["%05d" % i for i in range(3000)])

    def test_a_long_answer_to_a_slow_client(self):
        os.mkdir(self.path("many"))
        for i in range(20000):
            with open(self.path("many", "%05d" % i), "w"):
                pass
        conn = self.c.connect()
        conn.request("POST", "/filesystem.Filesystem/ListDir", json.dumps({"path": self.path("many")}),
                     {"Content-Type": "application/json"})
        time.sleep(0.5)
        r = conn.getresponse()
        self.assertEqual(len(json.loads(r.read())["entries"]), 20000)
        for _ in range(3):  # and ones that leave in the middle
            conn.request("POST", "/filesystem.Filesystem/ListDir", json.dumps({"path": self.path("many")}),
                         {"Content-Type": "application/json"})
            conn.getresponse().read(1000)
            conn.close()
        self.assertEqual(self.c.http("GET", "/health")[0], 204)

    def test_odd_names(self):
        os.mkdir(self.path("odd"))
        with open(os.path.join(self.path("odd").encode(), b"bad\xff\nname"), "w"):
            pass
        with open(self.path("odd/ä \"q\""), "w"):
            pass
        names = [e["name"] for e in self.c.fs("ListDir", path=self.path("odd"), depth=1)["entries"]]
        self.assertEqual(names, ["bad\ufffd\nname", "ä \"q\""])

    def test_remove(self):
        self.tree()
        with open(self.path("keep"), "w"):
            pass
        os.symlink(self.path("keep"), self.path("t/one/out"))
        for path in (self.path("t/Z"), self.path("t/link"), self.path("t/two"), self.path("t"), self.path("t"),
                     self.path("keep/x"), self.path("none")):
            self.assertEqual(self.c.fs("Remove", path=path), {})
            self.assertFalse(os.path.lexists(path))
        self.assertTrue(os.path.exists(self.path("keep")))
        self.rpc_fails("invalid_argument", self.c.fs, "Remove", path="/")

    def test_a_large_removal_does_not_stop_others(self):
        for i in range(60):
            os.makedirs(self.path("big/%d" % i))
            for k in range(100):
                with open(self.path("big/%d/%d" % (i, k)), "w"):
                    pass
        t = in_thread(lambda: self.c.fs("Remove", path=self.path("big")))
        worst = 0
        while t.is_alive():
            begin = time.time()
            self.assertEqual(self.c.http("GET", "/health")[0], 204)
            worst = max(worst, time.time() - begin)
        self.assertFalse(os.path.exists(self.path("big")))
        self.assertLess(worst, 2)

    def test_homes(self):
        home = pwd.getpwnam("root").pw_dir
        self.assertEqual(self.root.fs("Stat", path="")["entry"]["path"], home)
        self.assertEqual(self.c.fs("Stat", path="")["entry"]["path"], "/home/user")
        self.assertEqual(self.c.fs("Stat", path="~/..")["entry"]["path"], "/home")
        self.c.fs("ListDir", path=home, depth=1)  # a user may list what root may
        self.rpc_fails("invalid_argument", self.c.fs, "Stat", path="~bob")
        self.rpc_fails("invalid_argument", self.c.fs, "Stat", path="x" * 5000)


if __name__ == "__main__":
    unittest.main()
