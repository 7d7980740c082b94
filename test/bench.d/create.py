"""From a create request to a usable sandbox, against kubectl until it sees the same pod Ready (image present)."""
import json
import time

from _system import System

TEMPLATE = "base"


def ours(system):
    start = time.monotonic()
    status, box = system.api("POST", "/sandboxes", {"templateID": TEMPLATE, "timeout": 300, "secure": True})
    took = time.monotonic() - start
    assert status == 201, box
    status, _ = system.api("DELETE", f"/sandboxes/{box['sandboxID']}")
    assert status == 204
    return took


def same_pod(system):
    """The pod that a sandbox gets, as a manifest of its own."""
    status, box = system.api("POST", "/sandboxes", {"templateID": TEMPLATE, "timeout": 300, "secure": True})
    assert status == 201, box
    rs = json.loads(system.kubectl("get", "replicaset", "-l", f"sbx-id={box['sandboxID']}", "-o", "json"))["items"][0]
    system.api("DELETE", f"/sandboxes/{box['sandboxID']}")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "bench-"},
            "spec": rs["spec"]["template"]["spec"]}


def reference(system, manifest):
    start = time.monotonic()
    name = system.kubectl("create", "-f", "-", "-o", "name", input=json.dumps(manifest)).strip()
    system.kubectl("wait", "--for=condition=Ready", name, "--timeout=60s")
    took = time.monotonic() - start
    system.kubectl("delete", name, "--wait=false")
    return took


def run(bench):
    system = System(bench.root)
    manifest = same_pod(system)

    def measure(who):
        time.sleep(1)  # the one before has ended by then
        return ours(system) if who == "ours" else reference(system, manifest)

    times = bench.interleave(["ours", "kubectl"], measure)
    bench.compare("create_usable", "s", 1.5, False, "kubectl sees the same pod Ready",
                  list(zip(times["ours"], times["kubectl"])))
