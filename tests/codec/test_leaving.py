from datetime import UTC, datetime, timedelta

from karpy.codec.fields import Fields
from karpy.codec.leaving import read_leaving_pod
from karpy.model.constraints import Toleration
from karpy.model.leaving import LeavingPod

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_pod_is_read_with_all_a_drain_asks_for() -> None:
    obj = {
        "metadata": {
            "name": "web-1",
            "namespace": "shop",
            "uid": "u1",
            "deletionTimestamp": "2026-01-01T12:00:00Z",
            "annotations": {"karpenter.sh/do-not-disrupt": "4h"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}],
        },
        "spec": {
            "nodeName": "n1",
            "priorityClassName": "system-node-critical",
            "terminationGracePeriodSeconds": 120,
            "tolerations": [{"operator": "Exists"}],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "db"}},
                {"name": "tmp", "ephemeral": {}},
                {"name": "config", "configMap": {"name": "c"}},
            ],
        },
        "status": {"phase": "Running", "startTime": "2026-01-01T12:00:00Z"},
    }

    assert read_leaving_pod(Fields(obj)) == LeavingPod(
        name="web-1",
        namespace="shop",
        uid="u1",
        node_name="n1",
        phase="Running",
        started=NOON,
        deleted=NOON,
        grace=timedelta(minutes=2),
        priority_class="system-node-critical",
        do_not_disrupt="4h",
        tolerations=(Toleration(operator="Exists"),),
        is_daemon=True,
        volume_claims=("db", "web-1-tmp"),
    )


def test_a_pod_that_says_little_has_kubernetes_defaults() -> None:
    pod = read_leaving_pod(Fields({"metadata": {"name": "web-1"}}))

    assert pod == LeavingPod("web-1", "default", "", grace=timedelta(seconds=30))


def test_no_grace_at_all_is_not_the_default() -> None:
    obj = {"metadata": {"name": "web-1"}, "spec": {"terminationGracePeriodSeconds": 0}}

    assert read_leaving_pod(Fields(obj)).grace == timedelta()


def test_a_pod_of_the_kubelet_is_static() -> None:
    owners = [{"apiVersion": "v1", "kind": "Node", "name": "n1"}]
    pod = read_leaving_pod(Fields({"metadata": {"name": "p", "ownerReferences": owners}}))

    assert (pod.is_static, pod.is_daemon) == (True, False)
