"""Order, shared sandboxes, second tenant, cleaning up, and what the compatibility page is made from."""
import base64
import hashlib
import json
import os
import secrets
import threading
import time
import uuid

import pytest

import helpers
from helpers import RUN, api, create, kubectl

# Files in the order in which they run. Long waits start in the background before everything else and are joined
# before the faults, which disturb everybody.
ORDER = ["transport", "create", "v2", "list", "kill", "timeout", "gateway", "envd_http", "process", "filesystem",
         "product", "sdk", "js", "bad_input", "tls", "events", "config", "load", "long", "faults"]


def pytest_configure(config):
    config.addinivalue_line("markers", "item(id, …): checklist items, cp:N of the control plane or dp:N of the data plane")
    config.addinivalue_line("markers", "any_sdk: runs with any version of the Python SDK, so also with the newest")
    config.addinivalue_line("markers", "next(what): needs something that is not built yet; skipped while the server says so")
    missing = [n for n in ("E2B_API_KEY", "E2B_DOMAIN") if not os.environ.get(n)]
    if missing and not config.option.collectonly:
        raise pytest.UsageError(f"set {', '.join(missing)} (see test/e2e/README.md)")


def pytest_collection_modifyitems(items):
    def rank(item):
        name = item.path.stem.removeprefix("test_")
        return ORDER.index(name) if name in ORDER else len(ORDER) - 2
    items.sort(key=rank)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Items go into the junit file as properties; compat.py reads them there."""
    yield
    if call.when == "setup" and not any(k == "item" for k, _ in item.user_properties):
        for mark in item.iter_markers("item"):
            item.user_properties += [("item", i) for i in mark.args]


@pytest.fixture(scope="session", autouse=True)
def clean_up():
    """Nothing of this run stays behind; whatever a test forgot or could not end is ended here."""
    yield
    for found in helpers.listed():
        api("DELETE", f"/sandboxes/{found['sandboxID']}")


@pytest.fixture(scope="module")
def box():
    """A sandbox that the tests of one file share; they may not harm it."""
    box = create(timeout=900)
    yield box
    box.kill()


@pytest.fixture
def new_box():
    """Makes sandboxes that end with the test."""
    made = []

    def make(**fields):
        made.append(create(**fields))
        return made[-1]
    yield make
    for one in made:
        one.kill()


class Keys:
    """More API keys, put beside the existing ones into the Secret that the servers watch."""

    def __init__(self):
        self.before = kubectl("get", "secret", "agent-sandbox-keys", "-o", "jsonpath={.data.keys\\.json}")
        self.now = json.loads(base64.b64decode(self.before))

    def _write(self, encoded):
        kubectl("patch", "secret", "agent-sandbox-keys", "--type=merge", "-p", json.dumps({"data": {"keys.json": encoded}}))

    def add(self, text, tenant):
        self.now.append({"id": f"e2e-{uuid.uuid4().hex[:8]}", "tenant": tenant, "role": "user",
                         "hash": hashlib.sha256(text.encode()).hexdigest(), "createdAt": "2026-01-01T00:00:00Z"})
        self._write(base64.b64encode(json.dumps(self.now).encode()).decode())
        # Both replicas must have seen it: several answers in a row, each on a new connection.
        ok = 0
        end = time.monotonic() + 30
        while ok < 8:
            assert time.monotonic() < end, "a key in the Secret is not accepted after 30 s"
            ok = ok + 1 if api("GET", "/v2/sandboxes?limit=1", key=text).status == 200 else 0
            if ok == 0:
                time.sleep(0.2)
        return text

    def restore(self):
        self._write(self.before)


@pytest.fixture(scope="session")
def tenants():
    """Keys of two tenants with the role user; the first has the form of the older system's keys."""
    keys = Keys()
    try:
        a = keys.add(f"e2ea-{uuid.uuid4()}", f"e2e-a-{RUN}")
        b = keys.add("e2b_" + secrets.token_hex(20), f"e2e-b-{RUN}")
        yield a, b
        for key in (a, b):
            for found in helpers.listed(key=key):
                api("DELETE", f"/sandboxes/{found['sandboxID']}", key=key)
    finally:
        keys.restore()


def pause(box):
    reply = api("POST", f"/sandboxes/{box.id}/pause", key=box.key)
    assert reply.status == 204, reply


class Background:
    """A function that runs beside the tests; result() waits and raises what it raised."""

    def __init__(self, function):
        self.function, self.value, self.error = function, None, None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            self.value = self.function()
        except BaseException as e:  # handed to the test that asks
            self.error = e

    def result(self, timeout):
        self.thread.join(timeout)
        assert not self.thread.is_alive(), f"still running after {timeout} s"
        if self.error:
            raise self.error
        return self.value


@pytest.fixture(scope="session", autouse=True)
def long_waits(request):
    """Started at the beginning of a run that includes test_long.py, so that minutes of silence cost no time."""
    wanted = any(i.path.stem == "test_long" for i in request.session.items)
    if not wanted:
        yield {}
        return
    import test_long
    box = create(timeout=1200)
    names = {i.originalname for i in request.session.items if i.path.stem == "test_long"}
    yield {name: Background(lambda f=f: f(box)) for name, f in test_long.WAITS.items() if f"test_{name}" in names}
    box.kill()
