"""What the cluster shows of a sandbox: objects, labels, Events."""
import json
import os

from helpers import KEY, NAMESPACE, eventually, kubectl, node_pids, objects, pods_of, replica_sets, rss_kib


def test_objects_of_a_sandbox(new_box):
    box = new_box(metadata={"k": "v"})
    rs = replica_sets()[box.id]
    labels = rs["metadata"]["labels"]
    assert labels["owner"] == "agent-sandbox" and labels["sandbox"] == rs["metadata"]["name"] == f"sbx-{box.id}"
    assert labels["sbx-template"] == "base" and labels["sbx-pool"] == "false" and labels["sbx-user"]
    assert rs["spec"]["selector"]["matchLabels"] == {"sbx-id": box.id} and rs["spec"]["replicas"] == 1
    assert json.loads(rs["metadata"]["annotations"]["sandbox-data"])["metadata"]["k"] == "v"
    pod, = pods_of(box.id)
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False
    assert [c["name"] for c in spec["containers"]] == ["sandbox"]
    resources = spec["containers"][0]["resources"]
    assert all(resources[a][b] for a in ("requests", "limits") for b in ("cpu", "memory"))


def test_no_secret_in_labels_or_annotations(new_box):
    box = new_box()
    text = json.dumps([replica_sets()[box.id], pods_of(box.id)])
    assert box.token not in text and KEY not in text


def test_events_of_a_life(new_box):
    """On the ReplicaSet, besides Kubernetes' own: that it was made, and, by the controller, that it ended."""
    box = new_box(timeout=2)

    def reasons():
        events = json.loads(kubectl("get", "events", "-o", "json", "--field-selector", f"involvedObject.name=sbx-{box.id}"))["items"]
        return {e["reason"] for e in events if e["source"].get("component", "").startswith("agent-sandbox")}
    eventually(lambda: len(reasons()) >= 2, 40, 1)


def test_rights_are_namespaced_and_narrow():
    def can(account, verb, what, namespace=None):
        args = ["auth", "can-i", verb, what, f"--as=system:serviceaccount:{NAMESPACE}:agent-sandbox-{account}"]
        return kubectl(*args, *(["-n", namespace] if namespace else []), check=False).strip() == "yes"
    for account in ("apiserver", "controller"):
        assert can(account, "list", "replicasets.apps") and can(account, "watch", "pods")
        assert not can(account, "get", "secrets/agent-sandbox-admin") and not can(account, "get", "secrets/agent-sandbox-ca")
        assert not can(account, "list", "secrets") and not can(account, "create", "pods") and not can(account, "get", "nodes")
        assert not can(account, "list", "replicasets.apps", "kube-system")
    assert can("apiserver", "create", "replicasets.apps") and not can("controller", "create", "replicasets.apps")
    assert can("controller", "update", "leases.coordination.k8s.io/agent-sandbox-leader")
    assert not can("apiserver", "update", "leases.coordination.k8s.io/agent-sandbox-leader")


def test_one_controller_leads():
    lease, = [o for o in objects("leases.coordination.k8s.io") if o["metadata"]["name"] == "agent-sandbox-leader"]
    pods = [p["metadata"]["name"] for p in objects("pods", "app.kubernetes.io/component=controller")]
    assert any(lease["spec"]["holderIdentity"].startswith(p) for p in pods), (lease["spec"], pods)
    assert lease["spec"]["leaseDurationSeconds"] == 15


def test_programs_run_confined():
    for component in ("apiserver", "controller"):
        pods = objects("pods", f"app.kubernetes.io/component={component}")
        assert len(pods) == 2
        for pod in pods:
            assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
            security = pod["spec"]["containers"][0]["securityContext"]
            assert security["readOnlyRootFilesystem"] is True and security["capabilities"]["drop"] == ["ALL"]
            assert security["allowPrivilegeEscalation"] is False
            assert pod["status"]["containerStatuses"][0]["ready"]


def test_memory_does_not_grow():
    """A bound on what is left after a whole suite, against leaks; the memory of an idle program is a benchmark's matter."""
    bound = float(os.environ.get("E2E_RSS_MIB", 24))
    for program in ("apiserver", "controller"):
        pids = node_pids(program)
        assert len(pids) == 2, (program, pids)
        for pid in pids:
            assert rss_kib(pid) / 1024 < bound, f"{program}: {rss_kib(pid) / 1024:.1f} MiB"
