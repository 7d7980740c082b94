#!/usr/bin/env python3
"""Forwards TCP from the machine into the node's network namespace.

Usage: publish.py NODE_PID PIDFILE LISTEN TARGET [LISTEN TARGET]...

The listening sockets are opened in the machine's own network; then this process enters the node's, where from then on
all its outgoing connections are made. Half-closed connections stay half-closed, and a slow reader slows its writer.
PIDFILE ("PID START", START from /proc/PID/stat) is written once everything listens. Ends with SIGTERM, or with the node.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys

CLONE_NEWNET = 0x40000000
CHUNK = 64 * 1024
BACKLOG = 1024


def listeners(text):
    """PORT listens on both loopback addresses (*.localhost resolves to ::1 first), ADDRESS:PORT on one."""
    host, _, port = text.rpartition(":")
    hosts = [host.strip("[]")] if host else ["127.0.0.1", "::1"]
    for h in hosts:
        try:
            s = socket.socket(socket.AF_INET6 if ":" in h else socket.AF_INET)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if s.family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.bind((h, int(port)))
            s.listen(BACKLOG)
        except OSError as e:
            if h == "::1" and not host:  # a machine without IPv6
                continue
            sys.exit(f"cannot listen on {h} port {port}: {e.strerror}")
        s.setblocking(False)
        yield s


def enter_network(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if libc.setns(fd, CLONE_NEWNET) != 0:
        sys.exit(f"cannot enter the node's network: {os.strerror(ctypes.get_errno())}")
    os.close(fd)


async def pump(reader, writer):
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def relay(reader, writer, target):
    host, _, port = target.rpartition(":")
    upstream = None
    try:
        up_reader, upstream = await asyncio.open_connection(host.strip("[]"), int(port), limit=CHUNK)
        await asyncio.gather(pump(reader, upstream), pump(up_reader, writer))
    except Exception:  # either side is gone: tell the other at once, by a reset where data was lost
        for w in (writer, upstream):
            if w:
                w.transport.abort()
    finally:
        for w in (writer, upstream):
            if w:
                w.close()
                with contextlib.suppress(Exception):
                    await w.wait_closed()


def start_time():
    with open("/proc/self/stat", encoding="ascii", errors="replace") as f:
        return f.read().rpartition(") ")[2].split()[19]


async def serve(node, pidfile, servers):
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sig, stop.set)
    loop.add_reader(node, stop.set)
    for s, target in servers:
        await asyncio.start_server(lambda r, w, t=target: relay(r, w, t), sock=s, limit=CHUNK, backlog=BACKLOG)
    with open(pidfile + ".new", "w", encoding="ascii") as f:
        f.write(f"{os.getpid()} {start_time()}\n")
    os.rename(pidfile + ".new", pidfile)
    await stop.wait()
    os._exit(0)  # open connections end with us


def main():
    if len(sys.argv) < 5 or len(sys.argv) % 2 == 0:
        sys.exit(__doc__)
    pid, pidfile, pairs = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    node = os.pidfd_open(pid)  # readable once the node has ended
    servers = [(s, target) for text, target in zip(pairs[::2], pairs[1::2]) for s in listeners(text)]
    enter_network(pid)
    asyncio.run(serve(node, pidfile, servers))


if __name__ == "__main__":
    main()
