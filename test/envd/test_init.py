"""Before and at /init: the gate, tokens, generations, start and ready commands. Also CORS and routing."""

import json
import os
import time
import unittest

from harness import BIN, Case, Client, Server, eventually, in_thread


class Gate(Case):
    ENV = {"ENVD_REQUIRE_INIT": "1"}
    INIT = None

    def test_closed_until_init(self):
        status, headers, _ = self.c.http("GET", "/health")
        self.assertEqual((status, headers["Cache-Control"]), (204, "no-store"))
        for method, path in (("GET", "/envs"), ("GET", "/files?path=/etc/passwd"), ("GET", "/nothing"),
                             ("POST", "/process.Process/List"), ("GET", "/metrics")):
            status, headers, body = self.c.http(method, path, headers={"Content-Type": "application/json"})
            self.assertEqual((status, headers["X-Envd-State"]), (425, "new"), path)
            self.assertEqual(json.loads(body)["code"], 425)
        status, headers, body = self.c.http("POST", "/init", "")
        self.assertEqual((status, body, headers["Cache-Control"]), (204, b"", "no-store"))
        self.assertRegex(headers["X-Envd-Version"], r"^\d+\.\d+\.\d+$")
        self.assertEqual(self.c.http("GET", "/envs")[0], 200)


class Init(Case):
    INIT = None

    def post(self, **fields):
        status, _, body = self.c.http("POST", "/init", json.dumps(fields))
        return status, body

    def test_before_init_the_default_user_is_root(self):
        self.assertEqual(self.root.run("id -un").stdout, "root\n")

    def test_bad_bodies(self):
        for body in ("{", "[]", '{"a":1,"a":2}', "\xff"):
            self.assertEqual(self.c.http("POST", "/init", body.encode("latin-1"))[0], 400, body)
        self.assertEqual(self.post(envVars={"A": 1})[0], 400)
        self.assertEqual(self.post(accessToken="")[0], 400)
        self.assertEqual(self.post(defaultUser=5)[0], 400)
        self.assertEqual(self.post(timestamp="now")[0], 400)

    def test_generations(self):
        self.assertEqual(self.post(generation=3)[0], 204)
        self.assertEqual(self.post(generation=3)[0], 204)
        self.assertEqual(self.post(generation=2)[0], 409)
        self.assertEqual(self.post()[0], 204)

    def test_variables(self):
        self.post(envVars={"FOO": "bar", "E2B_SANDBOX_ID": "forged"}, sandboxID="iabc", templateID="base")
        envs = json.loads(self.c.http("GET", "/envs")[2])
        self.assertEqual(envs, {"FOO": "bar", "E2B_SANDBOX": "true", "E2B_SANDBOX_ID": "iabc",
                                "E2B_TEMPLATE_ID": "base"})
        self.assertEqual(self.c.run("echo $FOO $E2B_SANDBOX $E2B_SANDBOX_ID").stdout, "bar true iabc\n")
        self.post(envVars={})
        self.assertNotIn("FOO", json.loads(self.c.http("GET", "/envs")[2]))

    def test_default_user_and_workdir(self):
        self.post(defaultUser="user", defaultWorkdir=self.tmp)
        self.assertEqual(self.c.run("pwd; id -u").stdout, self.tmp + "\n1000\n")
        self.post(defaultUser="nobody-knows")
        self.assertIn("invalid default user", self.rpc_fails("unauthenticated", self.c.run, "true").message)
        self.post(defaultUser="root", defaultWorkdir="/")

    def test_cors(self):
        status, headers, _ = self.c.http("OPTIONS", "/files", headers={
            "Origin": "https://a.example", "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "x-access-token"})
        self.assertEqual(status, 204)
        self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
        self.assertEqual(headers["Access-Control-Allow-Methods"], "POST")
        self.assertEqual(headers["Access-Control-Allow-Headers"], "x-access-token")
        self.assertEqual(headers["Access-Control-Max-Age"], "7200")
        headers = self.c.http("GET", "/health", headers={"Origin": "https://a.example"})[1]
        self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
        self.assertIn("Location", headers["Access-Control-Expose-Headers"])
        self.assertIsNone(self.c.http("GET", "/health")[1]["Access-Control-Allow-Origin"])

    def test_routing(self):
        self.assertEqual(self.c.http("GET", "/nothing")[0], 404)
        self.assertEqual(self.c.http("POST", "/process.Process/Nothing", "{}")[0], 404)
        self.assertEqual(self.c.http("GET", "/init")[0], 405)
        status, headers, _ = self.c.http("GET", "/process.Process/List")
        self.assertEqual((status, headers["Allow"]), (405, "POST"))
        status, _, _ = self.c.http("POST", "/process.Process/List", "{}", {"Content-Type": "text/plain"})
        self.assertEqual(status, 415)
        status, _, _ = self.c.http("POST", "/process.Process/Start", "{}", {"Content-Type": "application/json"})
        self.assertEqual(status, 415)

    def test_metrics(self):
        status, headers, body = self.c.http("GET", "/metrics")
        self.assertEqual((status, headers["Cache-Control"]), (200, "no-store"))
        m = json.loads(body)
        self.assertEqual(set(m), {"ts", "cpu_count", "cpu_used_pct", "mem_total_mib", "mem_used_mib",
                                  "mem_total", "mem_used", "mem_cache", "disk_used", "disk_total"})
        self.assertTrue(0 < m["mem_used"] < m["mem_total"] and m["disk_total"] > 0, m)
        self.assertLess(abs(m["ts"] - time.time()), 5)


class Token(Case):
    INIT = {"accessToken": "s3cret", "defaultUser": "root"}
    TOKEN = "s3cret"
    DENIED = ("unauthorized access, please provide a valid access token or method signing if supported")

    def test_calls_need_it(self):
        for other in (Client(self.server.port), Client(self.server.port, "s3creT"), Client(self.server.port, "s")):
            for method, path in (("GET", "/envs"), ("POST", "/process.Process/List"), ("HEAD", "/health"),
                                 ("GET", "/nothing"), ("GET", "/metrics")):
                status, _, body = other.http(method, path, headers={"Content-Type": "application/json"})
                self.assertEqual(status, 401, path)
                if method != "HEAD":
                    self.assertEqual(json.loads(body), {"code": 401, "message": self.DENIED})
            self.assertEqual(other.http("GET", "/health")[0], 204)
        self.assertEqual(self.c.list(), [])
        self.assertEqual(self.c.http("GET", "/envs")[0], 200)

    def test_streams_need_it(self):
        e = self.rpc_fails("401", Client(self.server.port).start, "true")
        self.assertEqual((e.status, e.message), (401, self.DENIED))

    def test_init_again(self):
        for fields, want in (({"accessToken": "s3cret"}, 204), ({"accessToken": "other"}, 401), ({}, 401)):
            self.assertEqual(self.c.http("POST", "/init", json.dumps(fields))[0], want, fields)


class Startup(unittest.TestCase):
    def setUp(self):
        if os.getuid() != 0:
            self.skipTest("needs root")
        self.server = Server({"ENVD_REQUIRE_INIT": "1"})
        self.addCleanup(self.server.stop)
        self.c = Client(self.server.port)

    def init(self, **fields):
        begin = time.time()
        status, _, body = self.c.http("POST", "/init", json.dumps({"defaultUser": "root", **fields}))
        return status, time.time() - begin, body

    def test_start_command_runs_once_and_is_listed(self):
        self.assertEqual(self.init(startCmd="exec sleep 1000")[0], 204)
        self.assertEqual(self.init(startCmd="exec sleep 1000")[0], 204)
        found = self.c.list()
        self.assertEqual([p["config"]["args"] for p in found], [["-l", "-c", "exec sleep 1000"]])

    def test_ready_command_is_waited_for(self):
        flag = "/tmp/envd-ready-%d" % os.getpid()
        cmd = dict(startCmd="sleep 0.7; touch %s; sleep 1000" % flag, readyCmd="test -e " + flag)
        others = []
        t = in_thread(lambda: others.append(self.init(**cmd)[0]))
        try:
            status, took, body = self.init(**cmd)
            self.assertEqual(status, 204, body)
            self.assertGreater(took, 0.5)
            t.join(10)
            self.assertEqual(others, [204])
            self.assertEqual(len(self.c.list()), 1)
            status, took, _ = self.init(**cmd)
            self.assertEqual(status, 204)
        finally:
            os.unlink(flag)

    def test_not_ready_in_time(self):
        status, took, body = self.init(readyCmd="false", readyTimeoutMs=600)
        self.assertEqual((status, json.loads(body)["code"]), (504, 504))
        self.assertTrue(0.5 < took < 5, took)
        # a ready command that hangs does not change that
        status, took, _ = self.init(readyCmd="sleep 100", readyTimeoutMs=600)
        self.assertEqual(status, 504)
        self.assertTrue(0.5 < took < 5, took)
        self.assertEqual(self.init(readyCmd="true")[0], 204)

    def test_caller_that_leaves(self):
        conn = self.c.connect()
        conn.request("POST", "/init", json.dumps({"defaultUser": "root", "readyCmd": "false",
                                                  "readyTimeoutMs": 500, "startCmd": "sleep 1000"}))
        eventually(lambda: len([p for p in self.c_list()]) == 1)
        conn.close()
        time.sleep(0.7)
        self.assertEqual(self.init(readyCmd="true")[0], 204)

    def c_list(self):
        try:
            return self.c.list()
        except Exception:  # not initialised yet
            return []


class CommandLine(unittest.TestCase):
    def test_install(self):
        import subprocess
        import tempfile
        with tempfile.TemporaryDirectory() as tmp:
            dest = os.path.join(tmp, "envd")
            os.umask(0o077)
            subprocess.run([BIN, "--install", dest], check=True)
            os.umask(0o022)
            self.assertEqual(os.stat(dest).st_mode & 0o7777, 0o755)
            self.assertEqual(os.listdir(tmp), ["envd"])
            with open(dest, "rb") as a, open(BIN, "rb") as b:
                self.assertEqual(a.read(), b.read())
            self.assertNotEqual(subprocess.run([BIN, "--install", tmp + "/no/envd"], stderr=subprocess.DEVNULL).returncode, 0)

    def test_version_and_bad_flags(self):
        import subprocess
        out = subprocess.run([BIN, "--version"], check=True, capture_output=True, text=True).stdout
        self.assertRegex(out, r"^envd \d+\.\d+")
        self.assertEqual(subprocess.run([BIN, "--what"], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
