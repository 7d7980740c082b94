"""What breaks around us: the Kubernetes API away, programs killed. Runs last, since it disturbs everybody."""
import concurrent.futures
import contextlib
import json
import random
import threading
import time

import pytest

import helpers
from helpers import (RUN, TAG, api, assert_error, create, eventually, healthy, kubectl, listed, node_pids, objects, on_node,
                     parse_time, pods_of, replica_sets, request, run, sandbox)

pytestmark = pytest.mark.timeout(240)


@contextlib.contextmanager
def kubernetes_api_away():
    """Ends kube-apiserver on the node and holds back what would restart it, until the block is left."""
    pid, = node_pids("kube-apiserver")
    parent = int(on_node("cat", f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[1])
    assert parent > 1, "kube-apiserver has no supervisor of its own"
    on_node("kill", "-STOP", str(parent))
    try:
        on_node("kill", "-KILL", str(pid))
        yield
    finally:
        on_node("kill", "-CONT", str(parent))
        eventually(lambda: kubectl("get", "--raw", "/readyz", check=False).strip() == "ok", 90, 0.5)
        eventually(all_ready, 60, 0.5, "/readyz is 200 again")


def all_ready():
    """/readyz on enough new connections to have met every replica."""
    return all(request("GET", "/readyz").status == 200 for _ in range(8))


def scheduling():
    """Kubernetes' own programs have recovered too: a pod that is not ours becomes Running."""
    name = f"e2e-probe-{int(time.monotonic() * 1000)}"
    kubectl("run", name, "--image=localhost/pause:1", "--restart=Never", "--labels=e2e=probe", check=False)
    try:
        eventually(lambda: kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}", check=False) == "Running", 5, 0.3)
        return True
    except AssertionError:
        return False
    finally:
        kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false", check=False)


def fresh_pods(component):
    """New pods, so that restarts of earlier tests do not count: the kubelet waits longer after each."""
    selector = f"app.kubernetes.io/component={component}"
    eventually(scheduling, 60, 1, "pods start")
    old = {p["metadata"]["uid"] for p in objects("pods", selector)}
    kubectl("delete", "pods", "-l", selector, "--grace-period=1", "--wait=false")
    eventually(lambda: not old & {p["metadata"]["uid"] for p in objects("pods", selector)}, 90, 0.5, "the old pods are gone")
    settled()


class Killer:
    """kill -9 of one program's processes, now this replica, now that, at random moments."""

    def __init__(self, program, every, most):
        self.program, self.every, self.most, self.killed = program, every, most, 0
        self.stop = threading.Event()
        self.random = random.Random(RUN + program)
        self.thread = threading.Thread(target=self.work, daemon=True)

    def work(self):
        while self.killed < self.most and not self.stop.wait(self.random.uniform(*self.every)):
            pids = node_pids(self.program)
            if pids:
                on_node("kill", "-KILL", str(self.random.choice(pids)), check=False)
                self.killed += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def creates(mark, seconds, most=20):
    """Creates from four callers for this long: (ids answered 201, other outcomes)."""
    answered, other = [], []
    lock = threading.Lock()
    end = time.monotonic() + seconds

    def work():
        while time.monotonic() < end and len(answered) < most:
            try:
                reply = api("POST", "/sandboxes", {"templateID": "base", "timeout": 120, "secure": True,
                                                   "metadata": {**TAG, **mark}}, timeout=70)
                outcome = (answered, reply.json()["sandboxID"]) if reply.status == 201 else (other, reply.status)
            except Exception as e:  # a broken connection is an outcome like any other
                outcome = (other, type(e).__name__)
            with lock:
                outcome[0].append(outcome[1])
            time.sleep(0.5 if outcome[0] is other else 0.2)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return answered, other


def settled():
    eventually(lambda: len(node_pids("apiserver")) == 2 and len(node_pids("controller")) == 2, 90, 0.5)
    eventually(lambda: all(_ready(p) for c in ("apiserver", "controller") for p in objects("pods", f"app.kubernetes.io/component={c}")),
               90, 0.5, "all pods ready")
    eventually(all_ready, 60, 0.5)


def _ready(pod):
    return all(c["ready"] for c in pod["status"].get("containerStatuses", [{"ready": False}]))


def judge(component, answered, mark):
    """Every id that was answered exists once, is usable, and belongs to its owner; nothing else is left in the end."""
    fresh_pods(component)  # rather than the kubelet's ever longer waits before it restarts what was killed
    assert len(set(answered)) == len(answered), "an id was given out twice"
    there = {s["sandboxID"] for s in listed() if s["metadata"].get("kill") == mark["kill"]}
    assert set(answered) <= there, f"lost: {set(answered) - there}"
    sets, pods = replica_sets(), objects("pods", "owner=agent-sandbox")
    for one in answered:
        living = [p for p in pods if p["metadata"]["labels"]["sbx-id"] == one and not p["metadata"].get("deletionTimestamp")]
        assert one in sets and len(living) == 1, (one, len(living))

    def usable(one):
        box = helpers.Box({"sandboxID": one, **api("POST", f"/sandboxes/{one}/connect", {"timeout": 30}).json()})
        return run(box, "echo $E2B_SANDBOX_ID").stdout.decode().strip() == one

    def killed(one):
        return api("DELETE", f"/sandboxes/{one}").status in (204, 404)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(usable, answered))
        assert all(pool.map(killed, there))
    eventually(lambda: not [i for i, rs in replica_sets().items() if mark["kill"] in json.dumps(rs["metadata"]["annotations"])],
               130, 1, "leaked sandboxes")


def test_apiserver_killed_during_creates():
    mark = {"kill": f"apiserver-{RUN}"}
    fresh_pods("apiserver")
    with Killer("apiserver", (1, 5), most=3) as killer:
        answered, other = creates(mark, 15)
    assert killer.killed >= 1, killer.killed  # a fast machine is through with its creates early
    judge("apiserver", answered, mark)
    assert answered, other


def test_controller_killed_during_creates():
    """Ends come in time all the same: the other replica leads after the lease has run out."""
    mark = {"kill": f"controller-{RUN}"}
    fresh_pods("controller")
    short = create(timeout=25)
    with Killer("controller", (0.3, 3), most=3) as killer:
        answered, other = creates(mark, 10, most=15)
    assert killer.killed >= 1 and not other, (killer.killed, other)
    judge("controller", answered, mark)
    end = short.get()
    late = parse_time(end.json()["endAt"]) if end.status == 200 else time.time()
    eventually(lambda: short.id not in replica_sets(), max(0, late - time.time()) + 25, 0.5)


def test_gateway_after_an_apiserver_died():
    """Server restart between create and the next call: same sandbox, same token, still works."""
    fresh_pods("apiserver")
    with sandbox(timeout=300) as box:
        for pid in node_pids("apiserver"):
            on_node("kill", "-KILL", str(pid), check=False)

        def works():
            try:
                return run(box, "echo still").stdout == b"still\n"
            except Exception:
                return False
        eventually(works, 40, 0.5)
        assert box.get().json()["envdAccessToken"] == box.token


def test_replaced_pod_serves_again():
    """A sandbox's pod vanishes: its ReplicaSet makes another, which gets the same token and environment again."""
    with sandbox(timeout=300, envVars={"KEPT": "yes"}) as box:
        old = pods_of(box.id)[0]["metadata"]["uid"]
        kubectl("delete", "pod", pods_of(box.id)[0]["metadata"]["name"], "--grace-period=0", "--force")

        def again():
            if [p["metadata"]["uid"] for p in pods_of(box.id)] in ([], [old]):
                return False
            try:
                return run(box, "printenv KEPT").stdout == b"yes\n"
            except Exception:
                return False
        eventually(again, 40, 0.5)


# The Kubernetes API last: its own programs take a while to find back to it.


@pytest.mark.item("cp:7", "cp:18")
def test_kubernetes_api_away():
    before = set(replica_sets())
    with sandbox(timeout=600) as box, sandbox(timeout=600) as other:
        with kubernetes_api_away():
            eventually(lambda: request("GET", "/readyz").status == 503, 30, 0.2, "/readyz says 503")
            assert request("GET", "/healthz").status == 200
            for method, path, body in (("POST", "/sandboxes", {"templateID": "base", "metadata": TAG}),
                                       ("DELETE", f"/sandboxes/{other.id}", None),
                                       ("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 900})):
                reply = api(method, path, body, timeout=70)
                assert_error(reply, 503)
                assert reply.headers["Retry-After"].isdigit(), dict(reply.headers)
            # What runs goes on: traffic needs no Kubernetes.
            assert healthy(box) == 204 and run(box, "echo on").stdout == b"on\n"
        eventually(scheduling, 60, 1, "pods start again")
        made = create()  # by itself, without a restart of ours
        assert run(made, "echo back").stdout == b"back\n"
        assert made.kill().status == 204
        for one in (box, other):
            assert one.get().json()["state"] == "running" and healthy(one) == 204
        assert api("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 900}).status == 204
    eventually(lambda: set(replica_sets()) <= before, 30, 0.5, "nothing half-made is left")


def test_ends_that_fell_due_meanwhile():
    """A sandbox whose end passes while the API is away ends soon after it is back."""
    eventually(scheduling, 60, 1, "pods start again")
    box = create(timeout=60)
    assert api("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 5}).status == 204
    with kubernetes_api_away():
        time.sleep(6)
    eventually(lambda: box.id not in replica_sets(), 40, 0.5)
    eventually(lambda: box.get().status == 404, 20, 0.5)


def test_nothing_of_this_run_is_left():
    """Only what the run itself still holds: sandboxes of the cluster that nobody lists would be leaks."""
    known = {s["sandboxID"] for s in listed()}
    mine = {i for i, rs in replica_sets().items() if RUN in json.dumps(rs["metadata"].get("annotations", {}))
            and not rs["metadata"].get("deletionTimestamp")}
    assert mine <= known, mine - known
