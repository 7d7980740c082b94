"""Limits: each has an answer of its own, is counted, and ends when its cause does."""
import json
import resource
import socket
import threading
import unittest

from harness import Case, Peer

PER_SANDBOX = 2000
WAITERS = 1024


class Sink:
    """Accepts and says nothing."""

    def __init__(self):
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.sock.getsockname()[1]
        self.accepted = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                self.accepted.append(self.sock.accept()[0])
            except OSError:
                return

    def stop(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        for s in [self.sock, *self.accepted]:
            s.close()


class Limits(Case):
    @classmethod
    def setUpClass(cls):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 3 * PER_SANDBOX and hard != resource.RLIM_INFINITY:
            raise unittest.SkipTest("too few descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        super().setUpClass()

    def crowd(self, n):
        socks = []
        for _ in range(n):
            s = socket.create_connection(("127.0.0.1", self.gateway.port))
            s.sendall(self.head())
            socks.append(s)
        self.addCleanup(lambda: [s.close() for s in socks])
        return socks

    def in_state(self, state):
        return self.gateway.metrics()[f'agentsandbox_gateway_sessions_count{{state="{state}"}}']

    def test_sessions_of_one_sandbox(self):
        sink = Sink()
        self.addCleanup(sink.stop)
        self.port = sink.port
        self.gateway.set(self.box)
        self.crowd(PER_SANDBOX)
        self.eventually(lambda: self.in_state("stream") == PER_SANDBOX, 20)
        status, _, body = self.ask()
        self.assertEqual(status, 429)
        self.assertEqual(json.loads(body), {
            "sandboxId": self.box, "code": 429, "connectionLimit": PER_SANDBOX,
            "message": f"The sandbox has too many concurrent incoming connections (limit: {PER_SANDBOX})"})
        self.assertEqual(self.gateway.metrics()['agentsandbox_gateway_limits_total{limit="sandbox_sessions"}'], 1)
        # the others are not shut out
        other, self.box = self.box, self.box + "other"
        self.gateway.set(self.box)
        self.assertEqual(self.ask(host=f"1-{self.box}.my.domain")[0], 502)
        self.box = other
        self.gateway.do(f"del {self.box}")
        self.eventually(lambda: self.in_state("stream") == 0, 20)

    def test_waiters(self):
        self.gateway.set(self.box, state="paused", auto=1)
        self.port = 8000
        socks = self.crowd(WAITERS)
        self.eventually(lambda: self.in_state("resume") == WAITERS, 20)
        status, fields, body = self.ask()
        self.assertEqual((status, json.loads(body)["code"]), (503, 503))
        self.assertIn("retry-after", fields)
        self.assertEqual(self.gateway.metrics()['agentsandbox_gateway_limits_total{limit="waiters"}'], 1)
        self.gateway.do(f"wake {self.box} timeout late")
        self.assertTrue(Peer(socks[0]).head()[0].startswith("HTTP/1.1 409"))
        self.eventually(lambda: self.in_state("resume") == 0, 20)


if __name__ == "__main__":
    unittest.main()
