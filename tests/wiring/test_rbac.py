"""What deploy/rbac.yaml allows; tests/e2e shows that it is enough."""

from typing import Any

import pytest
import yaml

from karpy.model import kinds
from karpy.model.kinds import Kind
from karpy.model.options import Options
from tests.tidy.repository import ROOT

DOCUMENTS = list(yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text()))
READ = [
    *(kinds.POD, kinds.NODE, kinds.NODE_CLAIM, kinds.NODE_POOL, kinds.NODE_OVERLAY),
    *(kinds.CSI_NODE, kinds.DAEMON_SET, kinds.DISRUPTION_BUDGET, kinds.NAMESPACE),
    *(kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM, kinds.STORAGE_CLASS),
    *(kinds.SERVICE, kinds.REPLICA_SET, kinds.STATEFUL_SET, kinds.REPLICATION_CONTROLLER),
    *(kinds.VOLUME_ATTACHMENT, kinds.CAPACITY_BUFFER, kinds.KWOK_NODE_CLASS),
    *(kinds.POD_TEMPLATE, kinds.DEPLOYMENT, kinds.LIMIT_RANGE, kinds.RUNTIME_CLASS),
]


def _allowed(kind: str, namespace: str = "") -> set[tuple[str, str, str]]:
    """List group, resource and verb of what roles of a kind allow."""
    return {
        (group, resource, verb)
        for each in DOCUMENTS
        if each["kind"] == kind and each["metadata"].get("namespace", "") == namespace
        for rule in each["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _named(kind: str) -> list[dict[str, Any]]:
    return [each for each in DOCUMENTS if each["kind"] == kind]


@pytest.mark.parametrize("kind", READ, ids=str)
def test_what_is_mirrored_may_be_read(kind: Kind) -> None:
    wanted = {(kind.group, kind.plural, verb) for verb in ("get", "list", "watch")}

    assert wanted <= _allowed("ClusterRole")


def test_what_is_written_is_little() -> None:
    written = {each for each in _allowed("ClusterRole") if each[2] not in {"get", "list", "watch"}}

    assert written == {
        ("", "events", "create"),
        ("", "events", "patch"),
        ("", "nodes", "create"),
        ("", "nodes", "delete"),
        ("", "nodes", "patch"),
        ("", "nodes/status", "patch"),
        ("", "pods", "delete"),
        ("", "pods", "patch"),
        ("", "pods/eviction", "create"),
        ("", "pods/status", "patch"),
        ("autoscaling.x-k8s.io", "capacitybuffers/status", "patch"),
        ("events.k8s.io", "events", "create"),
        ("events.k8s.io", "events", "patch"),
        ("karpenter.sh", "nodeclaims", "create"),
        ("karpenter.sh", "nodeclaims", "delete"),
        ("karpenter.sh", "nodeclaims", "patch"),
        ("karpenter.sh", "nodeclaims/finalizers", "update"),
        ("karpenter.sh", "nodeclaims/status", "patch"),
        ("karpenter.sh", "nodeoverlays/status", "patch"),
        ("karpenter.sh", "nodepools", "patch"),
        ("karpenter.sh", "nodepools/finalizers", "update"),
        ("karpenter.sh", "nodepools/status", "patch"),
    }


def test_nobody_may_do_everything_or_read_secrets() -> None:
    everything = _allowed("ClusterRole") | _allowed("Role", "karpenter")

    assert [each for each in everything if "*" in each or "secrets" in each[1]] == []


def test_only_our_lease_may_be_written() -> None:
    role = next(each for each in _named("Role") if each["metadata"]["namespace"] == "karpenter")

    assert role["rules"][1]["resourceNames"] == [Options().lease_name]
    assert _allowed("Role", "karpenter") == {
        ("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")
    }


def test_every_role_is_bound_to_our_account() -> None:
    account = _named("ServiceAccount")[0]["metadata"]
    roles = {(each["kind"], each["metadata"]["name"]) for each in _named("ClusterRole")}
    roles |= {(each["kind"], each["metadata"]["name"]) for each in _named("Role")}
    bindings = [*_named("ClusterRoleBinding"), *_named("RoleBinding")]

    assert {(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bindings} == roles
    assert [each["subjects"] for each in bindings] == [
        [{"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}]
    ] * len(bindings)
