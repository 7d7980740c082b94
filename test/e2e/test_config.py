"""Templates and blueprint read live from the ConfigMap; an image that has no daemon of its own."""
import contextlib
import json
import time

import pytest

from helpers import RUN, TAG, Box, api, assert_error, eventually, kubectl, pods_of, run

NAME = f"e2e-{RUN}"
ANY_IMAGE = "localhost/busybox:1"  # in the node already; knows neither envd nor bash nor a user


@contextlib.contextmanager
def config(**changes):
    """The ConfigMap with some of its keys replaced; put back afterwards."""
    before = json.loads(kubectl("get", "configmap", "agent-sandbox", "-o", "json"))["data"]
    try:
        patch(changes)
        yield before
    finally:
        patch({k: before[k] for k in changes})


def patch(data):
    kubectl("patch", "configmap", "agent-sandbox", "--type=merge", "-p", json.dumps({"data": data}))


def templates():
    return json.loads(json.loads(kubectl("get", "configmap", "agent-sandbox", "-o", "json"))["data"]["config-templates"])


def create_named(name, **fields):
    return api("POST", "/sandboxes", {"templateID": name, "timeout": 120, "secure": True, "metadata": TAG, **fields})


def timed(name):
    began = time.monotonic()
    return create_named(name), time.monotonic() - began


def test_a_new_template_with_any_image():
    new = {"name": NAME, "image": ANY_IMAGE, "description": "for a test", "user": "user", "workdir": "/home/user",
           "envVars": {"FROM": "template"}}
    assert_error(create_named(NAME), 404, NAME)
    with config(**{"config-templates": json.dumps(templates() + [new])}):
        reply = eventually(lambda: (r := create_named(NAME)).status == 201 and r, 20, 0.5)
        box = Box(reply.json())
        try:
            pod, = pods_of(box.id)
            assert pod["spec"]["initContainers"][0]["command"][:2] == ["/envd", "--install"]
            assert pod["spec"]["containers"][0]["image"] == ANY_IMAGE
            result = run(box, "echo $FROM; pwd; id -u")
            assert result.code == 0 and result.stdout == b"template\n/home/user\n1000\n", (result.stdout, result.stderr, result.error)
        finally:
            box.kill()
    eventually(lambda: all(create_named(NAME).status == 404 for _ in range(4)), 20, 0.5)


@pytest.mark.parametrize("key,text", [
    ("config-templates", "not json"), ("config-templates", "{}"), ("config-templates", '[{"name": "x"}]'),
    ("config-sandbox-template", "kind: {{"), ("config-sandbox-template", "- a\n- b\n"),
], ids=["not-json", "not-a-list", "no-image", "broken-template", "not-an-object"])
def test_what_cannot_be_read_changes_nothing(key, text):
    """The last good version stays in use."""
    with config(**{key: text}):
        time.sleep(2)
        reply = create_named("base")
        assert reply.status == 201, reply
        assert api("DELETE", f"/sandboxes/{reply.json()['sandboxID']}").status == 204
    reply = eventually(lambda: (r := create_named("base")).status == 201 and r, 20, 0.5)
    assert api("DELETE", f"/sandboxes/{reply.json()['sandboxID']}").status == 204


def test_a_changed_blueprint_is_used():
    before = json.loads(kubectl("get", "configmap", "agent-sandbox", "-o", "json"))["data"]["config-sandbox-template"]
    changed = before.replace("    spec:\n      automountServiceAccountToken", "      annotations:\n        e2e: \"{{index .Sandbox.Metadata \"e2e\"}}\"\n"
                             "    spec:\n      automountServiceAccountToken", 1)
    assert changed != before
    with config(**{"config-sandbox-template": changed}):
        def used():
            reply = create_named("base")
            assert reply.status == 201, reply
            pods = pods_of(reply.json()["sandboxID"])
            api("DELETE", f"/sandboxes/{reply.json()['sandboxID']}")
            return pods[0]["metadata"].get("annotations", {}).get("e2e") == RUN
        eventually(used, 20, 0.5)


def missing_image():
    """Run in the background by test_long.py, since the kubelet tries for half a minute."""
    name = NAME + "-none"
    new = {"name": name, "image": "localhost/no-such-image:1", "description": "for a test", "envd": "image"}
    with config(**{"config-templates": json.dumps(templates() + [new])}):
        reply, took = eventually(lambda: (r := timed(name))[0].status != 404 and r, 70, 0.5)
    eventually(lambda: name not in kubectl("get", "replicasets", "-l", f"sbx-template={name}", "-o", "name"), 20, 0.5)
    return reply, took
