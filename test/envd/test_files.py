"""GET and POST /files."""

import base64
import gzip
import hashlib
import json
import os
import pwd
import socket
import time
import unittest
import urllib.parse

from harness import Case, Client, in_thread


def q(**fields):
    return "?" + urllib.parse.urlencode(fields)


class Files(Case):
    def test_write_and_read(self):
        for content in (b"Hello", b"", bytes(range(256)), os.urandom(10 * 1024 * 1024)):
            status, body = self.c.upload([("x", content)], q(path=self.path("f")))
            self.assertEqual((status, body), (200, [{"path": self.path("f"), "name": "f", "type": "file"}]))
            status, headers, got = self.c.download(q(path=self.path("f")))
            self.assertEqual(status, 200)
            self.assertEqual(headers["Content-Length"], str(len(content)))
            self.assertTrue(got == content)
        st = os.stat(self.path("f"))
        self.assertEqual(st.st_mode & 0o7777, 0o644)
        self.assertEqual(st.st_uid, 1000)

    def test_overwriting_truncates_and_changes_the_owner(self):
        with open(self.path("f"), "w") as f:
            f.write("a long text")
        self.c.upload([("x", b"short")], q(path=self.path("f")))
        with open(self.path("f")) as f:
            self.assertEqual(f.read(), "short")
        self.assertEqual(os.stat(self.path("f")).st_uid, 1000)

    def test_parents_are_made(self):
        status, _ = self.c.upload([("x", b"1")], q(path=self.path("a/b/c.txt")))
        self.assertEqual(status, 200)
        for name in ("a", "a/b"):
            st = os.stat(self.path(name))
            self.assertEqual((st.st_mode & 0o7777, st.st_uid), (0o755, 1000))
        status, body = self.c.upload([("x", b"1")], q(path=self.path("a/b/c.txt/d")))
        self.assertEqual(status, 400, body)

    def test_directories(self):
        status, body = self.c.upload([("x", b"1")], q(path=self.tmp))
        self.assertEqual((status, body), (400, {"code": 400, "message": "path is a directory: " + self.tmp}))
        status, _, body = self.c.download(q(path=self.tmp))
        self.assertEqual((status, json.loads(body)["message"]), (400, "path '%s' is a directory" % self.tmp))

    def test_missing(self):
        status, headers, body = self.c.download(q(path=self.path("none")))
        self.assertEqual(json.loads(body), {"code": 404, "message": "path '%s' does not exist" % self.path("none")})
        self.assertEqual((status, headers["Content-Type"]), (404, "application/json; charset=utf-8"))
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")

    def test_special_files(self):
        os.mkfifo(self.path("fifo"))
        self.assertEqual(self.c.download(q(path=self.path("fifo")))[0], 400)
        self.assertGreaterEqual(self.c.upload([("x", b"1")], q(path=self.path("fifo")))[0], 400)
        status, headers, body = self.c.download(q(path="/proc/self/status"))
        self.assertEqual(status, 200)
        self.assertIn(b"Name:\tenvd", body)

    def test_several_parts(self):
        files = [(self.path("d/%d ä'.txt" % i), b"content %d" % i) for i in range(3)]
        status, body = self.c.upload(files)
        self.assertEqual(status, 200)
        self.assertEqual([e["path"] for e in body], [name for name, _ in files])
        for name, content in files:
            with open(name, "rb") as f:
                self.assertEqual(f.read(), content)

    def test_the_same_target_twice(self):
        name = self.path("same")
        status, body = self.c.upload([(name, b"first"), (name, b"second")])
        self.assertEqual(status, 400)
        with open(name, "rb") as f:
            self.assertEqual(f.read(), b"first")

    def test_other_parts_are_skipped(self):
        body = (b"--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nno file\r\n"
                b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nyes\r\n--b--\r\n")
        status, _, got = self.c.http("POST", "/files" + q(path=self.path("f")), body,
                                     {"Content-Type": "multipart/form-data; boundary=\"b\""})
        self.assertEqual((status, len(json.loads(got))), (200, 1))
        with open(self.path("f"), "rb") as f:
            self.assertEqual(f.read(), b"yes")

    def test_bad_multipart(self):
        for body, kind in ((b"--b\r\n\r\nx", "multipart/form-data; boundary=b"), (b"x", "multipart/form-data"),
                           (b"x", "text/plain"), (b"x", "")):
            status, _, got = self.c.http("POST", "/files" + q(path=self.path("f")), body, {"Content-Type": kind})
            self.assertEqual((status, json.loads(got)["code"]), (400, 400), kind)

    def test_concurrent_uploads_into_a_new_directory(self):
        done = []
        threads = [in_thread(lambda i=i: done.append(self.c.upload([("x", b"%d" % i)], q(path=self.path("n/e/w%d" % i)))[0]))
                   for i in range(10)]
        for t in threads:
            t.join(20)
        self.assertEqual(done, [200] * 10)

    def test_octet_stream(self):
        h = {"Content-Type": "application/octet-stream"}
        status, _, body = self.c.http("POST", "/files" + q(path=self.path("f")), b"raw", h)
        self.assertEqual((status, json.loads(body)), (200, [{"path": self.path("f"), "name": "f", "type": "file"}]))
        self.assertEqual(self.c.http("POST", "/files", b"raw", h)[0], 400)
        status, _, _ = self.c.http("POST", "/files" + q(path=self.path("empty")), b"", h)
        self.assertEqual((status, os.path.getsize(self.path("empty"))), (200, 0))

    def test_gzip(self):
        h = {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip"}
        content = os.urandom(1000) * 3000
        url = "/files" + q(path=self.path("f"))
        self.assertEqual(self.c.http("POST", url, gzip.compress(content), h)[0], 200)
        with open(self.path("f"), "rb") as f:
            self.assertTrue(f.read() == content)
        self.assertEqual(self.c.http("POST", url, b"garbage", h)[0], 400)
        self.assertEqual(self.c.http("POST", url, gzip.compress(content)[:-4], h)[0], 400)
        h["Content-Encoding"] = "br"
        self.assertEqual(self.c.http("POST", url, b"x", h)[0], 400)

    def test_chunked_upload_in_constant_memory(self):
        def peak():
            with open("/proc/%d/status" % self.server.proc.pid) as f:
                return int([line for line in f if line.startswith("VmRSS")][0].split()[1])

        before, piece, n = peak(), b"x" * 65536, 1600
        conn = self.c.connect()
        conn.request("POST", "/files" + q(path=self.path("big")), iter([piece] * n),
                     {"Content-Type": "application/octet-stream"}, encode_chunked=True)
        r = conn.getresponse()
        self.assertEqual(r.status, 200)
        r.read()
        self.assertEqual(os.path.getsize(self.path("big")), n * len(piece))
        self.assertLess(peak() - before, 20000)
        conn.request("GET", "/files" + q(path=self.path("big")))
        got = conn.getresponse()
        time.sleep(0.3)  # a slow reader
        total = 0
        while True:
            part = got.read(1 << 20)
            if not part:
                break
            total += len(part)
        self.assertEqual(total, n * len(piece))
        self.assertLess(peak() - before, 20000)
        conn.close()

    def test_expect_continue(self):
        s = socket.create_connection(("127.0.0.1", self.server.port), 10)
        head = ("POST /files%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"
                "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        s.sendall((head % q(path=self.path("f"))).encode())
        self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 100 "))
        s.sendall(b"Hello")
        self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 200 "))
        s.close()
        s = socket.create_connection(("127.0.0.1", self.server.port), 10)
        s.sendall((head % q(path=self.path("f"), username="nobody-knows")).encode())
        self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 401 "))
        s.close()

    def test_aborted_transfers(self):
        for _ in range(20):
            s = socket.create_connection(("127.0.0.1", self.server.port), 10)
            s.sendall(("POST /files%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n"
                       "Content-Length: 500000\r\n\r\n" % q(path=self.path("f"))).encode() + b"x" * 1000)
            s.close()
        self.c.upload([("x", b"y" * 3000000)], q(path=self.path("big")))
        for _ in range(20):
            s = socket.create_connection(("127.0.0.1", self.server.port), 10)
            s.sendall(("GET /files%s HTTP/1.1\r\nHost: x\r\n\r\n" % q(path=self.path("big"))).encode())
            s.recv(1000)
            s.close()
        self.assertEqual(self.c.download(q(path=self.path("big")))[0], 200)

    def test_ranges_and_conditions(self):
        self.c.upload([("x", b"0123456789")], q(path=self.path("f")))
        status, headers, body = self.c.download(q(path=self.path("f")), {"Range": "bytes=0-3"})
        self.assertEqual((status, body, headers["Content-Range"], headers["Content-Length"]),
                         (206, b"0123", "bytes 0-3/10", "4"))
        status, headers, body = self.c.download(q(path=self.path("f")), {"Range": "bytes=-2"})
        self.assertEqual((status, body), (206, b"89"))
        status, headers, _ = self.c.download(q(path=self.path("f")), {"Range": "bytes=10-"})
        self.assertEqual((status, headers["Content-Range"]), (416, "bytes */10"))
        status, headers, body = self.c.download(q(path=self.path("f")))
        self.assertEqual((status, headers["Accept-Ranges"]), (200, "bytes"))
        self.assertEqual(self.c.download(q(path=self.path("f")), {"If-Modified-Since": headers["Last-Modified"]})[0], 304)
        self.assertEqual(self.c.download(q(path=self.path("f")), {"Accept-Encoding": "gzip"})[2], b"0123456789")
        self.assertEqual(self.c.download(q(path=self.path("f")), {"Accept-Encoding": "gzip, identity;q=0"})[0], 406)

    def test_names_and_types(self):
        for name, kind, disposition in (("a.json", "application/json", "inline; filename=a.json"),
                                        ("a b", "text/plain; charset=utf-8", 'inline; filename="a b"'),
                                        ("ä", "text/plain; charset=utf-8", "inline; filename*=utf-8''%C3%A4")):
            self.c.upload([("x", b"{}")], q(path=self.path(name)))
            headers = self.c.download(q(path=self.path(name)))[1]
            self.assertEqual((headers["Content-Type"], headers["Content-Disposition"]), (kind, disposition))

    def test_users_and_homes(self):
        name = "envd-test-%d.txt" % os.getpid()
        status, body = self.c.upload([("x", b"r")], q(path=name, username="root"))
        home = pwd.getpwnam("root").pw_dir
        self.assertEqual((status, body[0]["path"]), (200, os.path.join(home, name)))
        self.addCleanup(os.unlink, os.path.join(home, name))
        self.assertEqual(os.stat(os.path.join(home, name)).st_uid, 0)
        self.assertEqual(self.c.download(q(path=name, username="root"))[2], b"r")
        self.assertEqual(self.c.download(q(path="~/" + name, username="root"))[2], b"r")
        # as root, whoever asks
        self.assertEqual(self.c.download(q(path=os.path.join(home, name)))[2], b"r")
        status, _, body = self.c.download(q(path="~bob/x"))
        self.assertEqual(status, 400)
        status, _, body = self.c.download(q(path="x", username="nobody-knows"))
        self.assertEqual(status, 401)
        self.assertIn("error looking up user 'nobody-knows'", json.loads(body)["message"])
        self.assertEqual(self.c.upload([("x", b"r")], q(path="x", username="nobody-knows"))[0], 401)

    def test_bad_queries(self):
        self.assertEqual(self.c.download("?path=%zz")[0], 400)
        self.assertEqual(self.c.download("?path=/etc/passwd%00x")[0], 400)
        self.assertEqual(self.c.download("?path=" + "x" * 5000)[0], 400)
        self.assertEqual(self.c.download("?path=a+b")[0], 404)

    def test_metadata(self):
        h = {"X-Metadata-Foo": "bar", "x-metadata-two": "2"}
        status, body = self.c.upload([("x", b"1")], q(path=self.path("f")), h)
        self.assertEqual(status, 200)
        if "user.e2b.foo" not in os.listxattr(self.path("f")):
            self.skipTest("no extended attributes here")
        self.assertEqual(body[0]["metadata"], {"foo": "bar", "two": "2"})
        self.assertEqual(self.c.fs("Stat", path=self.path("f"))["entry"]["metadata"], {"foo": "bar", "two": "2"})
        status, body = self.c.upload([("x", b"1")], q(path=self.path("f")))
        self.assertNotIn("metadata", body[0])
        self.assertNotIn("metadata", self.c.fs("Stat", path=self.path("f"))["entry"])
        for bad in ({"X-Metadata-" + "k" * 117: "v"}, {}):
            self.assertEqual(self.c.upload([("x", b"1")], q(path=self.path("f")), bad)[0], 200)
        self.assertEqual(self.c.upload([("x", b"1")], q(path=self.path("f")), {"X-Metadata-a": "v" * 4097})[0], 400)

    def test_full_disk(self):
        os.mkdir(self.path("m"))
        if os.system("mount -t tmpfs -o size=64k none %s 2>/dev/null" % self.path("m")) != 0:
            self.skipTest("cannot mount")
        self.addCleanup(os.system, "umount " + self.path("m"))
        status, body = self.c.upload([("x", b"x" * 200000)], q(path=self.path("m/f")))
        self.assertEqual((status, body["code"]), (507, 507))
        self.assertRegex(body["message"], r"^attempted to write \d+ bytes: not enough disk space available$")


class Signed(Case):
    INIT = {"accessToken": "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", "defaultUser": "user"}

    def sign(self, path, op, user="", exp=None):
        text = ":".join([path, op, user, self.INIT["accessToken"]] + ([str(exp)] if exp else []))
        return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")

    def denied(self, got, message, status=401):
        body = got[1] if len(got) == 2 else json.loads(got[2])
        self.assertEqual((got[0], body), (status, {"code": status, "message": message}))

    def test_upload_and_download(self):
        path = self.path("f")
        status, body = self.c.upload([("x", b"signed")], q(path=path, signature=self.sign(path, "write")))
        self.assertEqual(status, 200, body)
        self.assertEqual(self.c.download(q(path=path, signature=self.sign(path, "read")))[2], b"signed")
        exp = int(time.time()) + 120
        got = self.c.download(q(path=path, signature=self.sign(path, "read", exp=exp), signature_expiration=exp))
        self.assertEqual(got[0], 200)
        got = self.c.download(q(path=path, username="root", signature=self.sign(path, "read", "root")))
        self.assertEqual(got[0], 200)

    def test_upload_without_path(self):
        status, body = self.c.upload([(self.path("n"), b"1")], q(signature=self.sign("", "write")))
        self.assertEqual((status, body[0]["path"]), (200, self.path("n")))

    def test_refusals(self):
        path, exp = "/etc/passwd", int(time.time()) - 5
        self.denied(self.c.download(q(path=path)), "missing signature query parameter")
        self.denied(self.c.upload([("x", b"")], q(path=path)), "missing signature query parameter")
        for bad in (self.sign(path, "write"), self.sign("/etc/group", "read"), self.sign(path, "read", "root"), "", "v1_",
                    self.sign(path, "read")[:-1] + "!"):
            self.denied(self.c.download(q(path=path, signature=bad)), "invalid signature")
        self.denied(self.c.download(q(path=path, signature=self.sign(path, "read", exp=exp), signature_expiration=exp)),
                    "signature is already expired")
        # moving the end without signing it again
        self.denied(self.c.download(q(path=path, signature=self.sign(path, "read", exp=exp),
                                      signature_expiration=exp + 1000)), "invalid signature")
        self.assertEqual(self.c.download(q(path=path, signature="x", signature_expiration="soon"))[0], 400)

    def test_header_instead(self):
        good = Client(self.server.port, self.INIT["accessToken"])
        self.assertEqual(good.download(q(path="/etc/passwd"))[0], 200)
        bad = Client(self.server.port, "wrong")
        self.denied(bad.download(q(path="/etc/passwd", signature=self.sign("/etc/passwd", "read"))),
                    "access token present in header but does not match")


if __name__ == "__main__":
    unittest.main()
