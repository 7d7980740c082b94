"""The TLS listener: certificate, ALPN, versions, and what is not TLS."""
import socket
import ssl

import pytest

from helpers import ADDRESS, DOMAIN, HOST, KEY, TLS_PORT, connect, envd, request, tls_context


def handshake(name, alpn=None, context=None):
    context = context or tls_context()
    if alpn:
        context.set_alpn_protocols(alpn)
    with socket.create_connection((ADDRESS, TLS_PORT), 10) as s, context.wrap_socket(s, server_hostname=name) as t:
        return t.getpeercert(), t.selected_alpn_protocol(), t.version()


@pytest.mark.item("dp:4")
def test_names_of_the_certificate():
    for name in (f"49983-i00000000000000000000.{HOST}", f"api.{HOST}", f"sandbox.{HOST}", HOST, "localhost", "127.0.0.1"):
        certificate, _, _ = handshake(name)
        assert ("DNS", f"*.{HOST}") in certificate["subjectAltName"]


def test_other_names_are_not_covered():
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake("example.org")


@pytest.mark.item("dp:4", "cp:24")
def test_alpn():
    assert handshake(f"api.{HOST}", ["h2", "http/1.1"])[1] == "http/1.1"
    assert handshake(f"api.{HOST}", ["http/1.1"])[1] == "http/1.1"
    assert handshake(f"api.{HOST}")[1] is None


def test_versions():
    assert handshake(f"api.{HOST}")[2] == "TLSv1.3"
    context = tls_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert handshake(f"api.{HOST}", context=context)[2] == "TLSv1.2"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(f"api.{HOST}", context=context)


def test_api_and_gateway_on_the_same_listener(box):
    reply = request("GET", "/v2/sandboxes?limit=1", {"Host": f"api.{DOMAIN}", "X-API-Key": KEY}, tls=True)
    assert reply.status == 200
    reply = request("GET", "/e2b/v1/v2/sandboxes?limit=1", {"Host": f"api.{DOMAIN}", "X-API-Key": KEY}, tls=True)
    assert reply.status == 200
    assert envd(box, "GET", "/health", tls=True).status == 204


def test_one_byte_at_a_time(box):
    s = connect(tls=True, server_name=f"49983-{box.id}.{HOST}")
    for byte in f"GET /health HTTP/1.1\r\nHost: {box.host(49983)}\r\n\r\n".encode():
        s.sendall(bytes([byte]))
    assert s.recv(4096).startswith(b"HTTP/1.1 204")
    s.close()


def test_what_is_not_tls():
    s = socket.create_connection((ADDRESS, TLS_PORT), 10)
    s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    try:
        data = s.recv(4096)
    except ConnectionResetError:
        data = b""
    assert not data.startswith(b"HTTP/1.1 2")
    s.close()
    assert request("GET", "/healthz", tls=True).status == 200


def test_session_resumption():
    context = tls_context()
    with socket.create_connection((ADDRESS, TLS_PORT), 10) as s, context.wrap_socket(s, server_hostname=f"api.{HOST}") as t:
        t.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert t.recv(4096).startswith(b"HTTP/1.1 200")
        session = t.session
    assert session is not None
