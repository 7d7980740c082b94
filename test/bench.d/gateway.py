"""The gateway against nginx with one worker, in front of the same backend (another nginx), driven by wrk.

nginx gets what helps it: kept connections to the backend, no log, and buffers as large as our reads (without them the
streaming figures would flatter us).
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

BOX = "i0123456789abcdefghij"
BOXES = 10000

COMMON = """
daemon off; worker_processes 1; pid {dir}/{name}.pid; error_log {dir}/{name}.log crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; tcp_nodelay on; sendfile on;
  client_body_temp_path {dir}/{name}-body; proxy_temp_path {dir}/{name}-proxy; fastcgi_temp_path {dir}/{name}-f;
  uwsgi_temp_path {dir}/{name}-u; scgi_temp_path {dir}/{name}-s; client_max_body_size 0;
  {http}
}}
"""

BACKEND = """
  server {{
    listen 127.0.0.1:{port} backlog=1024 reuseport;
    location = /small {{ return 200 "ok\\n"; }}
    location = /post {{ return 200 "ok\\n"; }}
    location / {{ root {dir}/files; }}
  }}
"""

PROXY = """
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 512; keepalive_requests 1000000000; keepalive_timeout 600s; }}
  proxy_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 128k; proxy_max_temp_file_size 0;
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{
      proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr; proxy_request_buffering off;
    }}
  }}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on {port}")


def worker_of(pid):
    """nginx's worker."""
    for _ in range(100):
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if text:
            return int(text[0])
        time.sleep(0.05)
    raise SystemExit("nginx has no worker")


def cpu(pid):
    """Seconds on a CPU, user and system, to the ns."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def rss(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1])


def unsent(port):
    """KiB that the kernel holds for the clients of a port."""
    total = 0
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].split(":")[1], 16) == port:
            total += int(fields[4].split(":")[0], 16)
    return total / 1024


class Stage:
    def __init__(self, bench, directory):
        self.bench, self.dir = bench, directory
        self.processes = []
        files = directory / "files"
        files.mkdir()
        directory.chmod(0o755)
        (files / "64k").write_bytes(os.urandom(65536))
        (files / "10m").write_bytes(os.urandom(10 << 20))
        (directory / "post.lua").write_text('wrk.method = "POST"\nwrk.body = string.rep("x", 4096)\n')
        self.backend_port = free_port()
        self.nginx("backend", BACKEND.format(port=self.backend_port, dir=directory))
        port = free_port()
        self.proxy = worker_of(self.nginx("proxy", PROXY.format(port=port, backend=self.backend_port)).pid)
        self.gateway = self.start([str(bench.program("gateway_host")), "127.0.0.1:0", "bench.test"], True)
        self.ports = {"nginx": port, "ours": int(self.gateway.stdout.readline().split()[1])}
        self.pids = {"nginx": self.proxy, "ours": self.gateway.pid}
        self.gateway.stdin.write("".join(f"set ibench{i}\n" for i in range(BOXES)) + f"set {BOX}\n")
        self.gateway.stdin.flush()
        for _ in range(BOXES + 1):
            assert self.gateway.stdout.readline() == "ok\n"
        for port in self.ports.values():
            wait_port(port)

    def start(self, command, pipes=False):
        pipe = subprocess.PIPE if pipes else None
        p = subprocess.Popen(command, stdin=pipe or subprocess.DEVNULL, stdout=pipe or subprocess.DEVNULL, text=True)
        self.processes.append(p)
        return p

    def nginx(self, name, http):
        conf = self.dir / f"{name}.conf"
        conf.write_text(COMMON.format(dir=self.dir, name=name, http=http))
        return self.start(["nginx", "-p", str(self.dir), "-c", str(conf)])

    def stop(self):
        for p in self.processes:
            p.terminate()
        for p in self.processes:
            p.wait()

    def wrk(self, subject, connections, path, seconds, script=None):
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-H",
                   f"Host: {self.backend_port}-{BOX}.bench.test"]
        if script:
            command += ["-s", str(self.dir / script)]
        before = cpu(self.pids[subject])
        text = subprocess.run([*command, f"http://127.0.0.1:{self.ports[subject]}{path}"], check=True,
                              capture_output=True, text=True).stdout
        used = cpu(self.pids[subject]) - before
        if "Non-2xx" in text or "Socket errors" in text:
            raise SystemExit(f"{subject}: {text}")
        count, took = re.search(r"(\d+) requests in ([\d.]+)s", text).groups()
        p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
        return {"rps": int(count) / float(took), "cpu": used / max(int(count), 1) * 1e6, "n": int(count),
                "p99": float(p99[1]) * {"us": 1e-3, "ms": 1, "s": 1e3}[p99[2]]}

    def compare(self, name, connections, path, targets, script=None):
        seconds = max(1, round(self.bench.seconds))
        got = self.bench.interleave(["ours", "nginx"],
                                    lambda s: self.wrk(s, connections, path, seconds, script))
        for key, unit, at_least in (("rps", "requests/s", True), ("cpu", "us/request", False), ("p99", "ms", False)):
            pairs = [(a[key], b[key]) for a, b in zip(got["ours"], got["nginx"])]
            self.bench.compare(f"gateway_{name}_{key}", unit, targets.get(key), at_least, "nginx", pairs)

    def stalled(self, subject, clients=50):
        """KiB per client that asked for 10 MiB and does not read: the process's, the kernel's."""
        before, socks = rss(self.pids[subject]), []
        for _ in range(clients):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", self.ports[subject]))
            s.sendall(f"GET /10m HTTP/1.1\r\nHost: {self.backend_port}-{BOX}.bench.test\r\n\r\n".encode())
            socks.append(s)
        time.sleep(1.5)
        out = (rss(self.pids[subject]) - before) / clients, unsent(self.ports[subject]) / clients
        for s in socks:
            s.close()
        time.sleep(0.5)
        return out

    def syscalls(self, subject, connections):
        seconds = max(1, round(self.bench.seconds))
        out = self.dir / f"strace-{subject}"
        self.wrk(subject, connections, "/small", 1)
        tracer = subprocess.Popen(["strace", "-c", "-o", str(out), "-p", str(self.pids[subject])],
                                  stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        got = self.wrk(subject, connections, "/small", seconds)
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        calls = {line.split()[-1]: int(line.split()[3]) for line in out.read_text().splitlines()[2:]
                 if line and not line.startswith("---")}
        total = calls.pop("total")
        return total / got["n"], {k: round(v / got["n"], 3) for k, v in calls.items() if v / got["n"] > 0.001}


def run(bench):
    bench.need(nginx="nginx-light", wrk="wrk", strace="strace")
    os.environ["PATH"] += ":/usr/sbin"
    with tempfile.TemporaryDirectory(prefix="bench-gateway-") as directory:
        stage = Stage(bench, pathlib.Path(directory))
        try:
            ours, theirs = stage.stalled("ours"), stage.stalled("nginx")
            bench.emit("gateway_stalled_memory", ours[0], "KiB/stream", 40, False)
            bench.emit("gateway_stalled_kernel", ours[1], "KiB/stream", 200, False)
            bench.emit("gateway_stalled_memory_nginx", theirs[0], "KiB/stream", None, False)
            bench.emit("gateway_stalled_kernel_nginx", theirs[1], "KiB/stream", None, False)
            for n in (10, 50, 200):
                # A fast proxy makes its peers slower on a machine of few cores, and p99 spreads by a factor of two
                # between equal runs: hence the tolerances. The CPU per request is what is steady.
                stage.compare(f"small_{n}", n, "/small", {"rps": 0.95, "cpu": 0.95, "p99": 1.5})
            stage.compare("post4k_50", 50, "/post", {"rps": 0.95, "cpu": 0.95}, "post.lua")
            stage.compare("body64k_50", 50, "/64k", {"rps": 0.9, "cpu": 1.15})
            stage.compare("body10m_10", 10, "/10m", {"rps": 0.9, "cpu": 0.8})
            ours, calls = stage.syscalls("ours", 50)
            theirs, _ = stage.syscalls("nginx", 50)
            bench.emit("gateway_syscalls_50", ours, "calls/request", 4.3, False)
            bench.emit("gateway_syscalls_50_nginx", theirs, "calls/request", None, False)
        finally:
            stage.stop()
    return calls
