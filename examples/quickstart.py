#!/usr/bin/env python3
"""A first tour of a sandbox, with the vendor's own Python SDK (pip install e2b==2.21.1), unmodified.

Needs three things in the environment, which ./quickstart and the chart's notes print:
  E2B_API_KEY    the key
  E2B_DOMAIN     the domain, with its port where that is not 443 (e.g. sandbox.localhost:10443)
  SSL_CERT_FILE  the private CA, where the certificate is not one that the machine trusts anyway
E2B_API_URL may name the API's base directly (e.g. http://127.0.0.1:10000/e2b/v1).
"""
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

PORT = 8000
PAGE = "Hello from inside the sandbox\n"


def fail(message):
    print(f"quickstart: {message}", file=sys.stderr)
    sys.exit(1)


def step(title, detail=""):
    print(f"  {title:<34} {detail}", flush=True)


def check_environment():
    missing = [name for name in ("E2B_API_KEY", "E2B_DOMAIN") if not os.environ.get(name)]
    if missing:
        fail(f"set {' and '.join(missing)} first; ./quickstart and `helm get notes` print the exact exports")
    ca = os.environ.get("SSL_CERT_FILE")
    if ca and not os.path.isfile(ca):
        fail(f"SSL_CERT_FILE names {ca}, which is not a file")
    try:
        import e2b
    except ImportError:
        fail("the SDK is missing: pip install e2b==2.21.1")
    return e2b


def fetch(url, seconds=20):
    """Body of url; waits up to `seconds` for the server in the sandbox to listen (502 means: not yet)."""
    context = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE"))
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            if e.code != 502 or time.monotonic() > end:
                raise
        time.sleep(0.2)


def tour(e2b):
    start = time.monotonic()
    sandbox = e2b.Sandbox.create(
        "sandbox-base-node",
        timeout=-1,  # no fixed end; reclaimed when idle
        metadata={"idleTimeout": "600"},
        lifecycle={"on_timeout": "pause", "auto_resume": True},
    )
    step("created", f"{sandbox.sandbox_id} in {(time.monotonic() - start) * 1000:.0f} ms")
    try:
        info = sandbox.get_info()
        step("info", f"template {info.template_id}, {info.state.value}, {info.cpu_count} CPU, {info.memory_mb} MB")

        sandbox.files.write("/home/user/site/index.html", PAGE)
        step("wrote", "/home/user/site/index.html")

        server = sandbox.commands.run(
            f"python3 -m http.server {PORT} --bind 0.0.0.0", cwd="/home/user/site", background=True, timeout=0
        )
        step("started python3 -m http.server", f"pid {server.pid}")

        url = f"https://{sandbox.get_host(PORT)}/"
        status, body = fetch(url)
        if body != PAGE:
            fail(f"{url} answered {body!r}")
        step("fetched from outside", f"{url} -> {status}")
        step("", body.strip())

        names = ", ".join(f"{entry.name} ({entry.type.value})" for entry in sandbox.files.list("/home"))
        step("listed /home", names)

        result = sandbox.commands.run("echo $((6 * 7)) from $(whoami) on $(. /etc/os-release; echo $PRETTY_NAME)")
        step("ran a command", result.stdout.strip())
    finally:
        step("killed", str(sandbox.kill()))
    step("still running?", str(sandbox.is_running()))
    print(f"\nDone in {time.monotonic() - start:.1f} s.")


def main():
    e2b = check_environment()
    print(f"Agent-Sandbox at {os.environ.get('E2B_API_URL') or 'https://api.' + os.environ['E2B_DOMAIN']}\n")
    try:
        tour(e2b)
    except e2b.AuthenticationException as e:
        fail(f"the key in E2B_API_KEY was refused: {e}")
    except e2b.SandboxException as e:
        fail(f"{type(e).__name__}: {e}")
    except Exception as e:  # transport errors of the SDK's own HTTP library
        text = str(e)
        if "CERTIFICATE_VERIFY_FAILED" in text:
            fail(f"the certificate is not trusted; set SSL_CERT_FILE to the CA ({text})")
        if "Connection refused" in text or "Name or service not known" in text or "nodename" in text:
            fail(f"nothing answers there: is the system running and the port published? ({text})")
        raise


if __name__ == "__main__":
    main()
