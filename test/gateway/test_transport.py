"""The relay: kinds of exchanges, crossed with fast and slow, present and absent peers."""
import hashlib
import os
import threading
import time
import unittest

from harness import Backend, Case, Peer, echo, ok

MIB = 1024 * 1024
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SANITIZED = "release" not in os.environ.get("GATEWAY_HOST", "debug")


def chunk(data):
    return b"%x\r\n" % len(data) + data + b"\r\n"


class Exchanges(Case):
    def test_get_keeps_both_connections(self):
        backend = self.backend(echo)
        client = self.client()
        for i in range(50):
            status, _, body = self.ask(target=f"/{i}", client=client)
            self.assertEqual((status, body.split(b"\n")[0]), (200, b"GET /%d HTTP/1.1" % i))
        self.assertEqual(backend.connections, 1)

    def test_post_with_length(self):
        self.backend(echo)
        for size in (1, 1000, 65536, 300000):
            data = os.urandom(size)
            _, _, body = self.ask("POST", body=data)
            head, _, got = body.partition(b"\n\n")
            self.assertIn(b"content-length=%d" % size, head)
            self.assertEqual(got, data)

    def test_post_chunked(self):
        self.backend(echo)
        client = self.client()
        for _ in range(2):
            pieces = [os.urandom(n) for n in (1, 3000, 70000, 15)]
            client.send(self.head("POST", Transfer_Encoding="chunked") + b"".join(map(chunk, pieces)) + b"0\r\n\r\n")
            _, fields = client.head()
            head, _, got = client.body(fields).partition(b"\n\n")
            self.assertIn(b"transfer-encoding=chunked", head)
            self.assertEqual(got, b"".join(pieces))

    def test_post_in_drops(self):
        self.backend(echo)
        client = self.client()
        message = self.head("POST", Transfer_Encoding="chunked") + chunk(b"hello") + chunk(b"world") + b"0\r\n\r\n"
        for i in range(len(message)):
            client.send(message[i:i + 1])
            time.sleep(0.0005)
        _, fields = client.head()
        self.assertTrue(client.body(fields).endswith(b"helloworld"))

    def test_answer_in_drops(self):
        answer = CHUNKED + chunk(b"hello") + chunk(b"world") + b"0\r\n\r\n"

        def serve(peer, number):
            while True:
                peer.head()
                for i in range(len(answer)):
                    peer.send(answer[i:i + 1])
                    time.sleep(0.0005)

        backend = self.backend(serve)
        client = self.client()
        for _ in range(2):
            self.assertEqual(self.ask(client=client)[2], b"helloworld")
        self.assertEqual(backend.connections, 1)

    def test_many_small_chunks_in_one_read(self):
        data = [b"%d," % i for i in range(3000)]

        def serve(peer, number):
            while True:
                peer.head()
                peer.send(CHUNKED + b"".join(map(chunk, data)) + b"0\r\n\r\n")

        self.backend(serve)
        client = self.client()
        for _ in range(3):
            self.assertEqual(self.ask(client=client)[2], b"".join(data))

    def test_head_and_bodiless(self):
        def serve(peer, number):
            while True:
                line, _ = peer.head()
                path = line.split()[1]
                if line.startswith("HEAD"):
                    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
                else:
                    peer.send({"/204": b"HTTP/1.1 204 No Content\r\n\r\n", "/0": ok(),
                               "/304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"}[path])

        backend = self.backend(serve)
        client = self.client()
        for method, path, status, length in (("HEAD", "/", 200, "5000"), ("GET", "/204", 204, None),
                                             ("GET", "/304", 304, "5"), ("GET", "/0", 200, "0"),
                                             ("HEAD", "/", 200, "5000"), ("GET", "/0", 200, "0")):
            got, fields, _ = self.ask(method, path, client=client)
            self.assertEqual((got, fields.get("content-length")), (status, length))
        self.assertEqual(backend.connections, 1)

    def test_methods(self):
        self.backend(echo)
        for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "TRACE"):
            self.assertTrue(self.ask(method)[2].startswith(method.encode()))

    def test_pipelining(self):
        self.backend(echo)
        client = self.client()
        client.send(b"".join(self.head(target=f"/{i}") for i in range(20)))
        for i in range(20):
            _, fields = client.head()
            self.assertTrue(client.body(fields).startswith(b"GET /%d " % i))

    def test_pipelining_over_sandboxes(self):
        self.backend(echo)
        first = self.host()
        self.box += "other"
        self.backend(echo)
        client = self.client()
        client.send(self.head("POST", host=first, Content_Length=5) + b"hello" + self.head() + self.head(host=first))
        for host in (first, self.host(), first):
            _, fields = client.head()
            self.assertIn(f"host={host}\n".encode(), client.body(fields))

    def test_old_client(self):
        def serve(peer, number):
            while True:
                peer.head()
                peer.send(CHUNKED + chunk(b"hello") + chunk(b"world") + b"0\r\n\r\n")

        self.backend(serve)
        client = self.client()
        client.send(self.head(version="1.0", Connection="keep-alive"))
        _, fields = client.head()
        fields = dict(fields)
        self.assertNotIn("transfer-encoding", fields)
        self.assertEqual(fields["connection"], "close")
        self.assertEqual(client.rest(), b"helloworld")

    def test_old_client_keeps_alive(self):
        self.backend(echo)
        client = self.client()
        for _ in range(2):
            client.send(self.head(version="1.0", Connection="keep-alive"))
            _, fields = client.head()
            self.assertEqual(dict(fields)["connection"], "keep-alive")
            client.body(fields)

    def test_old_server(self):
        def serve(peer, number):
            peer.head()
            peer.send(b"HTTP/1.0 200 OK\r\n\r\nuntil ")
            time.sleep(0.1)
            peer.send(b"the end")

        backend = self.backend(serve)
        client = self.client()
        for _ in range(2):
            status, fields, body = self.ask(client=client)
            self.assertEqual((status, body), (200, b"until the end"))
        self.assertEqual(backend.connections, 2)

    def test_client_that_wants_the_end(self):
        self.backend(echo)
        client = self.client()
        client.send(self.head(Connection="close"))
        _, fields = client.head()
        self.assertEqual(dict(fields)["connection"], "close")
        client.body(fields)
        self.assertEqual(client.ended(), "eof")

    def test_interim_answers(self):
        def serve(peer, number):
            peer.head()
            peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok(b"x"))

        self.backend(serve)
        client = self.client()
        client.send(self.head())
        line, fields = client.head()
        self.assertEqual((line, dict(fields)), ("HTTP/1.1 103 Early Hints", {"link": "</a>"}))
        self.assertTrue(client.head()[0].startswith("HTTP/1.1 200"))

    def test_events_arrive_as_they_are_written(self):
        late = []

        def serve(peer, number):
            peer.head()
            peer.send(CHUNKED)
            for _ in range(20):
                peer.send(chunk(b"data: %.6f\n\n" % time.monotonic()))
                time.sleep(0.02)
            peer.send(b"0\r\n\r\n")

        self.backend(serve)
        client = self.client()
        client.send(self.head())
        client.head()
        while data := client.chunk():
            late.append(time.monotonic() - float(data[6:-2]))
        self.assertEqual(len(late), 20)
        self.assertLess(sorted(late)[10], 0.02)

    def test_both_ways_at_once(self):
        """The answer begins before the request ends, and goes on piece by piece."""
        def serve(peer, number):
            peer.head()
            peer.send(CHUNKED)
            while data := peer.chunk():
                peer.send(chunk(data.upper()))
            peer.send(b"0\r\n\r\n")

        self.backend(serve)
        client = self.client()
        client.send(self.head("POST", Transfer_Encoding="chunked"))
        client.head()
        for word in (b"one", b"two", b"three"):
            client.send(chunk(word))
            self.assertEqual(client.chunk(), word.upper())
        client.send(b"0\r\n\r\n")
        self.assertEqual(client.chunk(), b"")


    def test_silence_in_the_request(self):
        """The server's own limit on silent bodies (here 1 s) is not for sandbox traffic."""
        self.backend(echo)
        client = self.client()
        client.send(self.head("POST", Content_Length=10) + b"hello")
        time.sleep(4)
        client.send(b"world")
        _, fields = client.head()
        self.assertTrue(client.body(fields).endswith(b"helloworld"))


class Continue(Case):
    def serve(self, peer, number):
        _, fields = peer.head()
        self.assertEqual(dict(fields).get("expect"), "100-continue")
        if self.answer == "refuse":
            peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            peer.rest()
        elif self.answer == "late":
            time.sleep(0.3)
        if self.answer != "ignore":
            self.assertFalse(peer.buffer)
            peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        peer.send(ok(peer.body(fields)))

    def start(self, answer):
        self.answer = answer
        self.backend(self.serve)
        client = self.client()
        client.send(self.head("POST", Content_Length=5, Expect="100-continue"))
        return client

    def finish(self, client):
        self.assertEqual(client.head()[0], "HTTP/1.1 100 Continue")
        client.send(b"hello")
        _, fields = client.head()
        self.assertEqual(client.body(fields), b"hello")

    def test_passed_on(self):
        self.finish(self.start("at once"))

    def test_server_takes_its_time(self):
        began = time.monotonic()
        client = self.start("late")
        self.finish(client)
        self.assertGreater(time.monotonic() - began, 0.3)

    def test_server_that_does_not_know(self):
        began = time.monotonic()
        self.finish(self.start("ignore"))
        self.assertLess(time.monotonic() - began, 2)

    def test_refused(self):
        client = self.start("refuse")
        line, fields = client.head()
        self.assertTrue(line.startswith("HTTP/1.1 413"))
        self.assertEqual(dict(fields).get("connection"), "close")

    def test_client_does_not_wait(self):
        self.answer = "at once"

        def serve(peer, number):
            _, fields = peer.head()
            peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            peer.send(ok(peer.body(fields)))

        self.backend(serve)
        client = self.client()
        client.send(self.head("POST", Content_Length=5, Expect="100-continue") + b"hello")
        line, fields = client.head()
        if line.startswith("HTTP/1.1 100"):
            line, fields = client.head()
        self.assertEqual(client.body(fields), b"hello")


class Slow(Case):
    SIZE = 48 * MIB

    def pieces(self):
        block = os.urandom(MIB)
        for i in range(self.SIZE // MIB):
            yield block[i:] + block[:i]

    def grown(self, before):
        return self.gateway.rss() - before

    def assert_small(self, before):
        if not SANITIZED:
            self.assertLess(self.grown(before), 8 * MIB)
        else:
            self.assertLess(self.grown(before), 24 * MIB)

    def download(self, head, frame, tail, read):
        want = hashlib.sha256()

        def serve(peer, number):
            peer.head()
            peer.send(head)
            for piece in self.pieces():
                want.update(piece)
                peer.send(frame(piece))
            peer.send(tail)

        self.backend(serve)
        client = self.client(rcvbuf=65536)
        before = self.gateway.rss()
        client.send(self.head())
        _, fields = client.head()
        time.sleep(0.5)  # everything is full now
        got = hashlib.sha256()
        read(client, got)
        self.assertEqual(got.hexdigest(), want.hexdigest())
        self.assert_small(before)

    def read_length(self, client, got):
        left = self.SIZE
        while left:
            piece = client.exactly(min(left, 65536))
            got.update(piece)
            left -= len(piece)

    def test_client_with_length(self):
        self.download(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.SIZE, lambda p: p, b"", self.read_length)

    def test_client_with_chunks(self):
        def read(client, got):
            while piece := client.chunk():
                got.update(piece)
        self.download(CHUNKED, chunk, b"0\r\n\r\n", read)

    def test_client_until_close(self):
        def read(client, got):
            while piece := client.chunk():
                got.update(piece)
        self.download(b"HTTP/1.1 200 OK\r\n\r\n", lambda p: p, b"", read)

    def upload(self, length):
        got, want = hashlib.sha256(), hashlib.sha256()

        def serve(peer, number):
            _, fields = peer.head()
            time.sleep(0.5)
            if length:
                self.read_length(peer, got)
            else:
                while piece := peer.chunk():
                    got.update(piece)
            peer.send(ok(b"got it"))

        self.backend(serve)
        client = self.client()
        before = self.gateway.rss()
        if length:
            client.send(self.head("POST", Content_Length=self.SIZE))
        else:
            client.send(self.head("POST", Transfer_Encoding="chunked"))
        for piece in self.pieces():
            want.update(piece)
            client.send(piece if length else chunk(piece))
        if not length:
            client.send(b"0\r\n\r\n")
        _, fields = client.head()
        self.assertEqual(client.body(fields), b"got it")
        self.assertEqual(got.hexdigest(), want.hexdigest())
        self.assert_small(before)

    def test_upstream_with_length(self):
        self.upload(True)

    def test_upstream_with_chunks(self):
        self.upload(False)

    def test_stalled_download_does_not_stop_others(self):
        def serve(peer, number):
            try:
                while True:
                    line, _ = peer.head()
                    peer.send(ok(b"x" * 30 * MIB if "/big" in line else b"small"))
            except OSError:
                pass

        self.backend(serve)
        stalled = self.client(rcvbuf=4096)
        stalled.send(self.head(target="/big"))
        stalled.head()
        time.sleep(0.2)
        for _ in range(20):
            self.assertEqual(self.ask()[2], b"small")

    def test_stalled_client_costs_little(self):
        def serve(peer, number):
            peer.head()
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (100 * MIB))
            try:
                while True:
                    peer.send(b"x" * MIB)
            except OSError:
                pass

        self.backend(serve)
        before = self.gateway.rss()
        clients = []
        for _ in range(20):
            clients.append(self.client(rcvbuf=4096))
            clients[-1].send(self.head())
            clients[-1].head()
        time.sleep(0.5)
        self.assertLess(self.grown(before), 20 * 200 * 1024 if SANITIZED else 20 * 100 * 1024)


class Gone(Case):
    def hold(self, first=CHUNKED + chunk(b"held")):
        """A server that begins an answer and then notes how its peer ended."""
        self.ends = []

        def serve(peer, number):
            peer.head()
            peer.send(first)
            self.ends.append(peer.ended(WAIT_GONE))

        return self.backend(serve)

    def test_client_gone_in_the_answer(self):
        for leave in (Peer.close, Peer.reset):
            self.box += "x"
            self.hold()
            client = self.client()
            client.send(self.head())
            client.head()
            client.chunk()
            leave(client)
            self.eventually(lambda: self.ends, 1)
            self.assertIsNotNone(self.ends[0])

    def test_client_gone_before_the_answer(self):
        for leave in (Peer.close, Peer.reset):
            self.box += "x"
            backend = self.hold(b"")
            client = self.client()
            client.send(self.head())
            self.eventually(lambda: backend.connections)
            time.sleep(0.05)
            leave(client)
            self.eventually(lambda: self.ends, 1)
            self.assertIsNotNone(self.ends[0])

    def test_client_gone_in_the_request(self):
        for leave in (Peer.close, Peer.reset):
            self.box += "x"
            backend = self.hold(b"")
            client = self.client()
            client.send(self.head("POST", Content_Length=1000) + b"half")
            self.eventually(lambda: backend.connections)
            time.sleep(0.05)
            leave(client)
            self.eventually(lambda: self.ends, 1)
            self.assertIsNotNone(self.ends[0])

    def test_client_gone_while_the_sandbox_keeps_writing(self):
        stopped = []

        def serve(peer, number):
            peer.head()
            peer.send(CHUNKED)
            try:
                while True:
                    peer.send(chunk(b"x" * 1000))
                    time.sleep(0.001)
            except OSError:
                stopped.append(True)

        self.backend(serve)
        client = self.client()
        client.send(self.head())
        client.head()
        client.close()
        self.eventually(lambda: stopped, 1)

    def test_client_half_closes_and_still_reads(self):
        def serve(peer, number):
            peer.head()
            self.assertEqual(peer.rest(), b"")  # the same FIN
            time.sleep(0.1)
            peer.send(ok(b"after the end"))

        self.backend(serve)
        client = self.client()
        client.send(self.head())
        client.finish()
        _, fields = client.head()
        self.assertEqual(client.body(fields), b"after the end")
        self.assertEqual(client.ended(), "eof")

    def upstream(self, answer, reset=False):
        def serve(peer, number):
            peer.head()
            peer.send(answer)
            if reset:
                time.sleep(0.1)
                peer.reset()

        self.backend(serve)
        client = self.client()
        client.send(self.head())
        return client

    def test_upstream_gone_in_the_answer(self):
        for reset in (False, True):
            for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 10, CHUNKED + chunk(b"x" * 10),
                           CHUNKED + b"ff\r\nxxx"):
                self.box += "x"
                client = self.upstream(answer, reset)
                client.head()
                self.assertEqual(client.ended(), "reset")

    def test_upstream_reset_until_close(self):
        client = self.upstream(b"HTTP/1.1 200 OK\r\n\r\npart", reset=True)
        client.head()
        self.assertEqual(client.ended(), "reset")

    def test_upstream_gone_before_the_answer(self):
        for reset in (False, True):
            for answer in (b"", b"HTTP/1.1 200 OK\r\nConte", b"garbage\r\n\r\n",
                           b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n"):
                self.box += "x"
                client = self.upstream(answer, reset)
                line, fields = client.head()
                self.assertTrue(line.startswith("HTTP/1.1 502"), line)
                self.assertIn(b"port is not open", client.body(fields))

    def test_malformed_chunks_cut_the_answer(self):
        def serve(peer, number):
            peer.head()
            peer.send(CHUNKED + chunk(b"good"))
            time.sleep(0.1)
            peer.send(b"zz\r\nbad")
            peer.rest()

        self.backend(serve)
        client = self.client()
        client.send(self.head())
        client.head()
        self.assertEqual(client.chunk(), b"good")
        self.assertEqual(client.ended(), "reset")

    def test_a_second_answer_is_not_taken(self):
        """Bytes behind an answer put the connection out of step."""
        def serve(peer, number):
            peer.head()
            peer.send(ok(b"good") + ok(b"smuggled"))
            peer.rest()

        backend = self.backend(serve)
        client = self.client()
        for _ in range(3):
            self.assertEqual(self.ask(client=client)[2], b"good")
        self.assertEqual(backend.connections, 3)

    def test_killed_in_the_answer(self):
        self.hold()
        client = self.client()
        client.send(self.head())
        client.head()
        client.chunk()
        self.gateway.do(f"del {self.box}")
        self.assertEqual(client.ended(), "reset")
        self.eventually(lambda: self.ends, 1)
        self.assertEqual(self.ask()[0], 502)

    def test_killed_before_the_answer(self):
        backend = self.hold(b"")
        client = self.client()
        client.send(self.head())
        self.eventually(lambda: backend.connections)
        self.gateway.do(f"del {self.box}")
        line, fields = client.head()
        self.assertTrue(line.startswith("HTTP/1.1 502"))
        self.assertIn(b"was not found", client.body(fields))

    def test_killed_in_an_upload(self):
        backend = self.backend(lambda peer, number: (peer.head(), time.sleep(3)))
        client = self.client()
        client.send(self.head("POST", Content_Length=50 * MIB))
        sender = threading.Thread(target=self.send_quietly, args=(client, b"x" * 50 * MIB))
        sender.start()
        self.eventually(lambda: backend.connections)
        time.sleep(0.2)
        self.gateway.do(f"del {self.box}")
        try:
            self.assertTrue(client.head()[0].startswith("HTTP/1.1 502"))
        except ConnectionResetError:
            pass  # the rest of the body was too long to be read
        sender.join()

    def send_quietly(self, client, data):
        try:
            client.send(data)
        except OSError:
            pass

    def test_paused_in_the_answer(self):
        self.hold()
        client = self.client()
        client.send(self.head())
        client.head()
        self.gateway.set(self.box, state="pausing")
        self.assertEqual(client.ended(), "reset")

    def test_another_pod(self):
        backend = self.hold()
        client = self.client()
        client.send(self.head())
        client.head()
        self.gateway.set(self.box, uid="uid-2")
        self.assertEqual(client.ended(), "reset")
        client = self.client()
        client.send(self.head())
        self.assertTrue(client.head()[0].startswith("HTTP/1.1 200"))
        self.assertEqual(backend.connections, 2)

    def test_changes_that_mean_nothing_do_nothing(self):
        self.hold()
        client = self.client()
        client.send(self.head())
        client.head()
        client.chunk()
        for state in ("creating", "running", "restarting", "running"):
            self.gateway.set(self.box, state=state)
        self.assertIsNone(client.ended(0.3))


class Early(Case):
    """The sandbox answers before it has read the request."""

    def run_early(self, answer, size, after=None):
        def serve(peer, number):
            peer.head()
            peer.exactly(5)
            peer.send(answer)
            if after:
                after(peer)

        self.backend(serve)
        client = self.client()
        client.send(self.head("POST", Content_Length=size) + b"hello")
        line, fields = client.head()
        return client, int(line.split()[1]), dict(fields), client.body(fields)

    def test_and_closes(self):
        client, status, fields, body = self.run_early(
            b"HTTP/1.1 413 Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig", 100000)
        self.assertEqual((status, body), (413, b"big"))
        # the rest of a bounded body is read, and the connection goes on
        client.send(b"x" * 99995)
        client.send(self.head(host="8000-inone.my.domain"))
        self.assertTrue(client.head()[0].startswith("HTTP/1.1 502"))

    def test_and_reads_on(self):
        read = []

        def after(peer):
            read.append(peer.exactly(995))
            line, _ = peer.head()
            peer.send(ok(line.encode()))

        client, status, _, body = self.run_early(ok(b"early"), 1000, after)
        self.assertEqual((status, body), (200, b"early"))
        client.send(b"y" * 995)
        self.assertEqual(self.ask(client=client, target="/next")[2], b"GET /next HTTP/1.1")
        self.assertEqual(read, [b"y" * 995])

    def test_and_the_client_sends_no_more(self):
        client, status, _, body = self.run_early(ok(b"early"), 1000, Peer.rest)
        self.assertEqual((status, body), (200, b"early"))
        self.eventually(lambda: self.gateway.metrics()['agentsandbox_gateway_sessions_count{state="stream"}'] == 0, 4)

    def test_in_a_flood(self):
        """Upload at full speed into a server that answers and closes: the answer comes through."""
        def serve(peer, number):
            peer.head()
            peer.exactly(1000)
            peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")

        self.backend(serve)
        for _ in range(20):
            client = self.client()
            sender = threading.Thread(target=self.flood, args=(client,))
            sender.start()
            line, fields = client.head()
            self.assertTrue(line.startswith("HTTP/1.1 200"), line)
            self.assertEqual(client.body(fields), b"ok")
            sender.join()

    def flood(self, client):
        try:
            client.send(self.head("POST", Content_Length=8 * MIB) + b"x" * 8 * MIB)
        except OSError:
            pass


class Reuse(Case):
    def test_stale_connection(self):
        """The server closes on the second request without a byte: only what is harmless is sent again."""
        seen = []

        def serve(peer, number):
            line, fields = peer.head()
            peer.send(ok(b"first", b"X-Number: %d" % number))
            line, fields = peer.head()
            seen.append(line.split()[0])
            if number > 1:
                peer.send(ok(b"again"))

        self.backend(serve)
        self.ask()
        self.assertEqual(self.ask()[2], b"first")  # on connection 2
        self.assertEqual(seen, ["GET"])
        self.box += "x"
        seen.clear()
        self.backend(serve)
        self.ask()
        status, _, _ = self.ask("POST", body=b"once")
        self.assertEqual((status, seen), (502, ["POST"]))

    def test_only_once(self):
        count = []

        def serve(peer, number):
            peer.head()
            if number == 1:
                peer.send(ok())
                peer.head()
            count.append(number)

        self.backend(serve)
        self.ask()
        self.assertEqual(self.ask()[0], 502)
        self.assertEqual(count, [1, 2])

    def test_closed_between_requests(self):
        """The server's FIN is there before the next request: no request is lost, whatever its method."""
        def serve(peer, number):
            _, fields = peer.head()
            peer.send(ok(peer.body(fields)))

        self.backend(serve)
        client = self.client()
        for i in range(30):
            self.assertEqual(self.ask("POST", body=b"%d" % i, client=client)[2], b"%d" % i)
            time.sleep(0.01)

    def test_idle_limit(self):
        backend = self.backend(echo)
        self.ask()
        time.sleep(0.3)
        self.ask()
        self.assertEqual(backend.connections, 1)
        time.sleep(1.1)
        self.ask()
        self.assertEqual(backend.connections, 2)
        self.eventually(lambda: self.gateway.metrics()['agentsandbox_gateway_upstream_connections_count{use="idle"}']
                        == 0, 4)

    def test_not_after_close(self):
        def serve(peer, number):
            while True:
                peer.head()
                peer.send(ok(b"x", b"Connection: close"))

        backend = self.backend(serve)
        client = self.client()
        for _ in range(3):
            self.ask(client=client)
        self.assertEqual(backend.connections, 3)

    def test_not_for_another_pod(self):
        backend = self.backend(echo)
        self.ask()
        self.gateway.set(self.box, uid="uid-2")
        self.ask()
        self.assertEqual(backend.connections, 2)

    def test_parallel(self):
        self.backend(echo)
        failures = []

        def many():
            client = self.client()
            for i in range(50):
                data = os.urandom(i * 300)
                _, _, body = self.ask("POST", body=data, client=client)
                if body.split(b"\n\n", 1)[1] != data:
                    failures.append(i)

        threads = [threading.Thread(target=many) for _ in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])


class Tunnels(Case):
    SWITCH = (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")

    def open(self, serve, **options):
        self.seen = []

        def switch(peer, number):
            self.seen.append(peer.head())
            serve(peer)

        self.backend(switch, **options)
        client = self.client()
        client.send(self.head(Connection="Upgrade", Upgrade="websocket", Origin="https://example.org",
                              Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==", Sec_WebSocket_Version="13"))
        return client

    def echo(self, peer):
        peer.send(self.SWITCH + b"hello")
        while data := (peer.take(len(peer.buffer)) or peer.sock.recv(65536)):
            peer.send(data)

    def test_websocket(self):
        client = self.open(self.echo)
        line, fields = client.head()
        fields = dict(fields)
        self.assertEqual(line, "HTTP/1.1 101 Switching Protocols")
        self.assertEqual((fields["upgrade"], fields["connection"].lower()), ("websocket", "upgrade"))
        self.assertEqual(fields["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        seen = dict(self.seen[0][1])
        self.assertEqual((seen["origin"], seen["upgrade"], seen["connection"].lower()),
                         ("https://example.org", "websocket", "upgrade"))
        self.assertEqual(client.exactly(5), b"hello")
        for size in (1, 1000, 300_000):
            data = os.urandom(size)
            sender = threading.Thread(target=client.send, args=(data,))
            sender.start()
            self.assertEqual(client.exactly(size), data)
            sender.join()

    def test_bytes_with_the_request(self):
        client = self.client()
        self.backend(lambda peer, number: (peer.head(), self.echo(peer)))
        client.send(self.head(Connection="Upgrade", Upgrade="x") + b"too early")
        client.head()
        self.assertEqual(client.exactly(14), b"hellotoo early")

    def test_client_half_closes(self):
        def serve(peer):
            peer.send(self.SWITCH)
            peer.send(b"got " + peer.rest())
            time.sleep(0.1)
            peer.send(b", bye")

        client = self.open(serve)
        client.head()
        client.send(b"all")
        client.finish()
        self.assertEqual(client.rest(), b"got all, bye")

    def test_upstream_half_closes(self):
        got = []

        def serve(peer):
            peer.send(self.SWITCH + b"bye")
            peer.finish()
            got.append(peer.rest())

        client = self.open(serve)
        client.head()
        self.assertEqual(client.rest(), b"bye")
        time.sleep(0.1)
        client.send(b"still here")
        client.finish()
        self.eventually(lambda: got)
        self.assertEqual(got, [b"still here"])

    def test_client_resets(self):
        ends = []
        client = self.open(lambda peer: (peer.send(self.SWITCH), ends.append(peer.ended())))
        client.head()
        client.reset()
        self.eventually(lambda: ends, 1)

    def test_client_resets_after_the_upstreams_end(self):
        ends = []

        def serve(peer):
            peer.send(self.SWITCH)
            peer.finish()
            ends.append(peer.ended())

        client = self.open(serve)
        client.head()
        self.assertEqual(client.rest(), b"")
        time.sleep(0.1)
        client.reset()
        self.eventually(lambda: ends, 4)
        self.eventually(lambda: self.gateway.metrics()['agentsandbox_gateway_sessions_count{state="tunnel"}'] == 0, 4)

    def test_upstream_resets(self):
        def serve(peer):
            peer.send(self.SWITCH)
            time.sleep(0.1)
            peer.reset()

        client = self.open(serve)
        client.head()
        self.assertEqual(client.ended(), "reset")

    def test_killed(self):
        client = self.open(self.echo)
        client.head()
        self.gateway.do(f"del {self.box}")
        self.assertEqual(client.ended(), "reset")

    def test_slow_sides(self):
        data = os.urandom(16 * MIB)

        def serve(peer):
            peer.send(self.SWITCH)
            time.sleep(0.3)
            got = peer.exactly(len(data))
            peer.send(got)
            peer.rest()

        client = self.open(serve)
        client.head()
        before = self.gateway.rss()
        client.send(data)
        time.sleep(0.3)
        self.assertEqual(client.exactly(len(data)), data)
        self.assertLess(self.gateway.rss() - before, 8 * MIB)

    def test_refused(self):
        client = self.open(lambda peer: (peer.send(ok(b"no")), peer.rest()))
        line, fields = client.head()
        self.assertEqual((line, client.body(fields)), ("HTTP/1.1 200 OK", b"no"))
        client.send(self.head(host="8000-inone.my.domain"))
        self.assertTrue(client.head()[0].startswith("HTTP/1.1 502"))

    def test_unasked(self):
        self.backend(lambda peer, number: (peer.head(), peer.send(self.SWITCH)))
        self.assertEqual(self.ask()[0], 502)

    def test_not_to_envd(self):
        """A tunnel to envd would get round the paths that are closed."""
        client = self.open(lambda peer: peer.send(ok(b"plain")), envd=True)
        line, fields = client.head()
        self.assertEqual(client.body(fields), b"plain")
        self.assertNotIn("upgrade", dict(self.seen[0][1]))


class Leaks(Case):
    def test_no_descriptor_stays(self):
        self.backend(echo)
        self.ask()
        time.sleep(2.2)
        before = self.gateway.fds()
        for i in range(100):
            client = self.client()
            self.ask(client=client, target=f"/{i}")
            if i % 3:
                client.send(self.head("POST", Content_Length=100) + b"x")
            client.sock.close()
        self.eventually(lambda: self.gateway.fds() <= before, 5)


WAIT_GONE = 5

if __name__ == "__main__":
    unittest.main()
