"""Which sandbox a request reaches, what the sandbox sees of it, and failures before it gets there."""
import json
import threading
import time
import unittest

from harness import Backend, Case, DOMAIN, ENVD, Peer, echo, ok

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120.0 Safari/537.36"


class Routing(Case):
    def seen(self, answer):
        status, _, body = answer
        self.assertEqual(status, 200, body)
        head = body.decode().split("\n\n")[0].split("\n")
        return head[0], dict(line.split("=", 1) for line in head[1:])

    def test_label(self):
        self.backend(echo)
        line, fields = self.seen(self.ask(target="/a/b?c=d%20e"))
        self.assertEqual(line, "GET /a/b?c=d%20e HTTP/1.1")
        self.assertEqual(fields["host"], self.host())
        for host in (self.host() + ":8443", f"{self.port}-{self.box}-00000000.{DOMAIN}",
                     f"{self.port}-{self.box}.elsewhere.example.org"):
            self.assertEqual(self.seen(self.ask(host=host))[1]["host"], host)

    def test_made_by_another_replica_a_moment_ago(self):
        """A miss in the view is settled by one look before "not found" is said."""
        backend = Backend(echo)
        self.addCleanup(backend.stop)
        self.port = backend.port
        self.gateway.do("hold 1")
        self.addCleanup(self.gateway.do, "hold 0")
        for found in (True, False):
            Case.count += 1
            self.box = f"ilate{Case.count}"
            client = self.client()
            client.send(self.head("POST", "/late", Content_Length=5) + b"hello")
            self.eventually(lambda: self.gateway.do(f"looking {self.box}") == "1")
            if found:
                self.gateway.set(self.box, ip=backend.address)
            self.gateway.do(f"looked {self.box}")
            line, fields = client.head()
            body = client.body(dict(fields)).decode()
            if found:
                self.assertIn(" 200 ", line)
                self.assertTrue(body.startswith("POST /late HTTP/1.1\n"), body)
                self.assertTrue(body.endswith("hello"), body)
            else:
                self.assertIn(" 502 ", line)
                self.assertEqual(json.loads(body)["message"], "The sandbox was not found")

    def test_client_leaves_while_it_is_looked_for(self):
        self.port = 8000
        self.gateway.do("hold 1")
        self.addCleanup(self.gateway.do, "hold 0")
        Case.count += 1
        self.box = f"ilate{Case.count}"
        client = self.client()
        client.send(self.head())
        self.eventually(lambda: self.gateway.do(f"looking {self.box}") == "1")
        client.reset()
        self.eventually(lambda: self.gateway.do(f"looking {self.box}") == "0")

    def test_headers(self):
        self.backend(echo)
        by = {"E2b_Sandbox_Id": self.box, "E2b_Sandbox_Port": self.port}
        self.assertEqual(self.seen(self.ask(host="localhost:1", **by))[1]["host"], "localhost:1")
        self.assertEqual(self.seen(self.ask(host="sandbox.my.domain:8080", **by))[1]["host"],
                         f"{self.port}-{self.box}.my.domain:8080")
        # the label wins
        status, _, body = self.ask(host=f"{self.port}-inobody.my.domain", **by)
        self.assertEqual((status, json.loads(body)["sandboxId"]), (502, "inobody"))
        status, fields, body = self.ask(host="sandbox.my.domain", E2b_Sandbox_Id=self.box)
        self.assertEqual((status, body), (400, b"missing header"))
        self.assertTrue(fields["content-type"].startswith("text/plain"))

    def test_path_by_id(self):
        self.backend(echo)
        line, fields = self.seen(self.ask(host="any", target=f"/sandboxes/router/{self.box}/{self.port}/x/y?z=1"))
        self.assertEqual(line, "GET /x/y?z=1 HTTP/1.1")
        self.assertEqual(fields["host"], "any")
        self.assertEqual(fields["x-forwarded-prefix"], f"/sandboxes/router/{self.box}/{self.port}")

    def test_path_by_name(self):
        backend = self.backend(echo, name="my-box")
        self.gateway.set(self.box, data=f'{{"port":{backend.port}}}')
        line, _ = self.seen(self.ask(host="any", target="/sandbox/my-box/x?q=1"))
        self.assertEqual(line, "GET /x?q=1 HTTP/1.1")
        other = Backend(echo)
        self.addCleanup(other.stop)
        line, _ = self.seen(self.ask(host="any", target=f"/sandbox/my-box/x?a=1&port={other.port}&b"))
        self.assertEqual(line, "GET /x?a=1&b HTTP/1.1")
        self.assertEqual(other.connections, 1)
        status, _, body = self.ask(host="any", target="/sandbox/nobody/")
        self.assertEqual((status, json.loads(body)["sandboxId"]), (502, "nobody"))
        self.gateway.set(self.box, data='{}')
        self.assertEqual(self.ask(host="any", target="/sandbox/my-box/")[0], 400)
        # by whatever name: envd's inner paths stay closed
        self.gateway.set(self.box, data=f'{{"port":{ENVD}}}')
        self.assertEqual(self.ask("POST", host="any", target="/sandbox/my-box/init")[0], 404)

    def test_not_ours(self):
        self.backend(echo)
        self.assertEqual(self.ask(host="my.domain")[2], b"not sandbox traffic")
        self.assertEqual(self.ask(host="127.0.0.1:99")[2], b"not sandbox traffic")
        status, _, body = self.ask("POST", f"/e2b/v1/sandboxes/{self.box}/connect", host="localhost",
                                   E2b_Sandbox_Id=self.box, E2b_Sandbox_Port=ENVD)
        self.assertEqual(body, b"not sandbox traffic")

    def test_mask(self):
        self.backend(echo, mask="localhost:${PORT}")
        _, fields = self.seen(self.ask())
        self.assertEqual(fields["host"], f"localhost:{self.port}")
        self.assertEqual(fields["x-forwarded-host"], self.host())
        self.box += "e"
        self.backend(echo, envd=True, mask="localhost:${PORT}")
        _, fields = self.seen(self.ask())
        self.assertEqual(fields["host"], self.host())
        self.assertNotIn("x-forwarded-host", fields)

    def test_fields(self):
        self.backend(echo)
        _, fields = self.seen(self.ask(Connection="X-Hop", X_Hop="1", TE="trailers", X_Forwarded_For="1.2.3.4",
                                       Forwarded="for=1", Proxy_Authorization="x", X_End="kept", Accept_Encoding="br",
                                       E2b_Traffic_Access_Token="t"))
        self.assertEqual(set(fields), {"host", "x-end", "accept-encoding"})

    def test_reserved_paths(self):
        self.backend(echo, envd=True)
        for path in ("/init", "//init", "/%69nit", "/files/../init", "/init/", "/freeze", "/upgrade?x"):
            status, fields, body = self.ask("POST", path)
            self.assertEqual(status, 404, path)
            self.assertEqual(list(json.loads(body)), ["message", "path", "code"])
        self.assertEqual(self.ask("POST", "/%zz")[0], 400)
        self.assertEqual(self.ask("POST", "/initial")[0], 200)

    def test_reserved_paths_on_other_ports(self):
        self.backend(echo)
        self.assertEqual(self.ask("POST", "/init")[0], 200)

    def test_private_ingress(self):
        self.backend(echo, private=1)
        envd, traffic = self.gateway.do(f"tokens {self.box}").split()
        name = "e2b-traffic-access-token"
        status, _, body = self.ask()
        self.assertEqual(status, 403)
        self.assertTrue(json.loads(body)["message"].endswith(f"Token header '{name}' is missing"))
        for wrong in ("wrong", envd, traffic[:-1], traffic + "0"):
            status, _, body = self.ask(**{name: wrong})
            self.assertEqual(status, 403)
            self.assertTrue(json.loads(body)["message"].endswith("is invalid"))
        for spelt in (name, "E2B-Traffic-Access-Token"):
            _, fields = self.seen(self.ask(**{spelt: traffic}))
            self.assertNotIn(name, fields)
        self.assertEqual(self.ask("OPTIONS")[0], 403)
        self.assertIn(b"Missing Traffic Access Token", self.ask(User_Agent=CHROME)[2])

    def test_private_ingress_leaves_envd_alone(self):
        self.backend(echo, envd=True, private=1)
        self.assertEqual(self.ask()[0], 200)

    def test_unknown(self):
        self.backend(echo)
        status, fields, body = self.ask(host="8000-i00000000000000000000.my.domain")
        self.assertEqual(status, 502)
        self.assertEqual(fields["content-type"], "application/json; charset=utf-8")
        self.assertEqual(body, b'{"sandboxId":"i00000000000000000000","message":"The sandbox was not found",'
                         b'"code":502}')
        status, fields, body = self.ask(host="8000-inone.my.domain", User_Agent=CHROME)
        self.assertEqual(fields["content-type"], "text/html; charset=utf-8")
        self.assertTrue(body.startswith(b"<html") and body.endswith(b"</html>") and b"inone" in body)

    def test_unknown_before_the_view_is_complete(self):
        self.gateway.do("synced 0")
        self.addCleanup(self.gateway.do, "synced 1")
        status, fields, _ = self.ask(host="8000-inone.my.domain")
        self.assertEqual(status, 503)
        self.assertIn("retry-after", fields)

    def test_states(self):
        self.backend(echo)
        for state, status in (("running", 200), ("deleting", 502), ("failed", 502), ("warm", 502), ("warming", 502),
                              ("paused", 502), ("pausing", 502), ("creating", 200), ("resuming", 200),
                              ("restarting", 200)):
            self.gateway.set(self.box, state=state)
            self.assertEqual(self.ask()[0], status, state)
        self.gateway.do(f"del {self.box}")
        self.assertEqual(self.ask()[0], 502)

    def test_closed_port(self):
        backend = self.backend(echo)
        backend.stop()
        began = time.monotonic()
        status, _, body = self.ask()
        took = time.monotonic() - began
        self.assertEqual(json.loads(body), {"sandboxId": self.box, "code": 502, "port": self.port,
                                            "message": "The sandbox is running but port is not open"})
        self.assertTrue(0.9 < took < 2, took)
        body = self.ask(User_Agent=CHROME)[2]
        self.assertIn(f"no service running on port {self.port}".encode(), body)
        status, fields, body = self.ask("HEAD")
        self.assertEqual((status, body), (502, b""))

    def test_server_that_starts_a_moment_later(self):
        backend = self.backend(echo)
        backend.stop()
        late = []
        timer = threading.Timer(0.5, lambda: late.append(Backend(echo, port=backend.port)))
        timer.start()
        self.assertEqual(self.ask()[0], 200)
        late[0].stop()

    def test_bad_requests(self):
        self.backend(echo)
        for head in (self.head(Content_Length="5", Transfer_Encoding="chunked"),
                     b"GET / HTTP/1.1\r\nHost: " + self.host().encode() + b"\r\nContent-Length: 1\r\n"
                     b"Content-Length: 2\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost : x\r\n\r\n"):
            client = self.client()
            client.send(head)
            self.assertEqual(client.head()[0].split()[1], "400")
        self.assertEqual(self.ask("CONNECT", host=self.host(), target=self.host() + ":1")[0], 405)

    def test_large_head(self):
        self.backend(echo)
        fields = {f"X_{i}": "v" * 1000 for i in range(58)}
        _, seen = self.seen(self.ask(**fields))
        self.assertEqual(len(seen), 59)
        self.assertEqual(self.ask(X_Large="v" * 70000)[0], 431)

    def test_activity(self):
        self.backend(echo)
        self.assertEqual(self.gateway.do(f"activity {self.box}"), "0")
        for _ in range(20):
            self.ask()
        self.assertIn(self.gateway.do(f"activity {self.box}"), ("1", "2"))


class Waking(Case):
    def begin(self, **fields):
        client = self.client()
        client.send(self.head(**fields))
        return client

    def is_waking(self):
        return self.gateway.do(f"waking {self.box}") == "1"

    def status(self, client):
        line, fields = client.head()
        return int(line.split()[1]), dict(fields), client.body(fields)

    def asleep(self, **options):
        return self.backend(echo, state="paused", auto=1, **options)

    def test_held_and_forwarded(self):
        self.asleep()
        clients = [self.begin() for _ in range(5)]
        self.eventually(self.is_waking)
        self.eventually(
            lambda: self.gateway.metrics()['agentsandbox_gateway_sessions_count{state="resume"}'] == 5)
        self.gateway.set(self.box, state="resuming", ip="")
        self.gateway.set(self.box, state="running", ip="127.0.0.1")
        self.gateway.do(f"wake {self.box} ok")
        for client in clients:
            self.assertEqual(self.status(client)[0], 200)

    def test_the_view_comes_after_the_wake(self):
        self.asleep()
        client = self.begin()
        self.eventually(self.is_waking)
        self.assertEqual(self.gateway.do(f"wake {self.box} ok"), "ok")
        time.sleep(0.05)
        self.assertFalse(self.is_waking(), "woken twice")
        self.gateway.set(self.box, state="running")
        self.assertEqual(self.status(client)[0], 200)

    def test_body_waits(self):
        self.asleep()
        client = self.client()
        client.send(self.head("POST", Content_Length=300000))
        data = bytes(range(256)) * 1200
        sender = threading.Thread(target=client.send, args=(data[:300000],))
        sender.start()
        self.eventually(self.is_waking)
        time.sleep(0.1)
        self.gateway.set(self.box, state="running")
        self.gateway.do(f"wake {self.box} ok")
        status, _, body = self.status(client)
        self.assertEqual(body.split(b"\n\n", 1)[1], data[:300000])
        sender.join()

    def test_errors(self):
        self.asleep()
        for code, status in (("limit", 429), ("timeout", 409), ("conflict", 409), ("not_found", 502),
                             ("unavailable", 503), ("internal", 503)):
            client = self.begin()
            self.eventually(self.is_waking)
            self.assertEqual(self.gateway.do(f"wake {self.box} {code} because"), "ok")
            got, fields, body = self.status(client)
            self.assertEqual(got, status, code)
            self.assertEqual(json.loads(body)["code"], status)
            if status == 503:
                self.assertIn("retry-after", fields)
            if code == "limit":
                self.assertEqual(json.loads(body)["message"], "because")

    def test_credentials(self):
        self.asleep(private=1)
        _, traffic = self.gateway.do(f"tokens {self.box}").split()
        for fields in ({}, {"e2b-traffic-access-token": "x"}):
            status, _, body = self.ask(**fields)
            self.assertEqual(status, 403)
            self.assertIn("can't be resumed", json.loads(body)["message"])
        self.assertFalse(self.is_waking())
        client = self.begin(**{"e2b-traffic-access-token": traffic})
        self.eventually(self.is_waking)
        client.close()

    def test_credentials_of_envd(self):
        self.backend(echo, envd=True, state="paused", auto=1, secure=1)
        envd, _ = self.gateway.do(f"tokens {self.box}").split()
        for fields in ({}, {"X_Access_Token": "x"}):
            self.assertEqual(self.ask(**fields)[0], 403)
        self.assertFalse(self.is_waking())
        client = self.begin(X_Access_Token=envd)
        self.eventually(self.is_waking)
        self.gateway.set(self.box, state="running")
        self.gateway.do(f"wake {self.box} ok")
        self.assertEqual(self.status(client)[0], 200)

    def test_client_gone_while_waiting(self):
        self.asleep()
        one, two = self.begin(), self.begin()
        self.eventually(self.is_waking)
        one.close()
        time.sleep(0.2)
        self.assertTrue(self.is_waking(), "somebody still waits")
        two.reset()
        self.eventually(lambda: not self.is_waking())

    def test_client_with_a_body_gone_while_waiting(self):
        self.asleep()
        client = self.client()
        client.send(self.head("POST", Content_Length=1000000) + b"x" * 10000)
        self.eventually(self.is_waking)
        client.close()
        self.eventually(lambda: not self.is_waking(), 4)

    def test_killed_while_waiting(self):
        self.asleep()
        client = self.begin()
        self.eventually(self.is_waking)
        self.gateway.do(f"wake {self.box} not_found gone")
        self.gateway.do(f"del {self.box}")
        self.assertEqual(self.status(client)[0], 502)

    def test_starting_without_a_pod(self):
        self.backend(echo)
        self.gateway.set(self.box, state="creating", ip="")
        client = self.begin()
        time.sleep(0.1)
        self.gateway.set(self.box, state="running", ip="127.0.0.1")
        self.assertEqual(self.status(client)[0], 200)

    def test_starting_then_gone(self):
        self.backend(echo)
        self.gateway.set(self.box, state="creating", ip="")
        client = self.begin()
        time.sleep(0.1)
        self.gateway.set(self.box, state="failed")
        self.assertEqual(self.status(client)[0], 502)

    def test_port_opens_while_the_sandbox_starts(self):
        backend = self.backend(echo, state="creating")
        backend.stop()
        client = self.begin()
        time.sleep(1.5)  # all tries are over
        again = Backend(echo, port=backend.port)
        self.addCleanup(again.stop)
        self.gateway.set(self.box, state="running")
        self.assertEqual(self.status(client)[0], 200)


class NotReady(Case):
    """envd that has not taken its settings answers 425 with X-Envd-State: new."""

    def serve(self, peer, number):
        while True:
            line, fields = peer.head()
            body = peer.body(fields)
            self.bodies.append(body)
            if not self.ready:
                peer.send(b"HTTP/1.1 425 Too Early\r\nX-Envd-State: new\r\nContent-Length: 2\r\n\r\nno")
            else:
                peer.send(ok(line.encode()))

    def start(self, state):
        self.bodies, self.ready = [], False
        self.backend(self.serve, envd=True, state=state)
        return self.client()

    def status(self, client):
        line, fields = client.head()
        return int(line.split()[1]), client.body(fields)

    def test_get(self):
        client = self.start("creating")
        client.send(self.head())
        self.eventually(lambda: self.bodies)
        time.sleep(0.1)
        self.assertEqual(len(self.bodies), 1)
        self.ready = True
        self.gateway.set(self.box, state="running")
        self.assertEqual(self.status(client), (200, b"GET / HTTP/1.1"))

    def test_body_is_sent_again(self):
        client = self.start("creating")
        client.send(self.head("POST", Content_Length=20000) + b"ab" * 10000)
        self.eventually(lambda: self.bodies)
        self.ready = True
        self.gateway.set(self.box, state="running")
        self.assertEqual(self.status(client)[0], 200)
        self.assertEqual(self.bodies, [b"ab" * 10000] * 2)

    def test_chunked_body_is_sent_again(self):
        client = self.start("creating")
        client.send(self.head("POST", Transfer_Encoding="chunked") + b"3\r\nabc\r\n")
        time.sleep(0.05)
        client.send(b"2\r\nde\r\n0\r\n\r\n")
        self.eventually(lambda: self.bodies)
        self.ready = True
        self.gateway.set(self.box, state="running")
        self.assertEqual(self.status(client)[0], 200)
        self.assertEqual(self.bodies, [b"abcde"] * 2)

    def test_large_body_is_not(self):
        client = self.start("creating")
        client.send(self.head("POST", Content_Length=100000) + b"x" * 100000)
        self.assertEqual(self.status(client)[0], 503)

    def test_view_says_running(self):
        client = self.start("running")
        client.send(self.head())
        self.eventually(lambda: len(self.bodies) >= 2)
        self.ready = True
        self.assertEqual(self.status(client)[0], 200)

    def test_425_of_others_passes(self):
        self.backend(lambda peer, n: (peer.head(), peer.send(b"HTTP/1.1 425 Too Early\r\nX-Envd-State: new\r\n"
                                                             b"Content-Length: 0\r\n\r\n")))
        self.assertEqual(self.ask()[0], 425)


if __name__ == "__main__":
    unittest.main()
