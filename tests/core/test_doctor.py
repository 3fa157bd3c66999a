from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from karpy.core.doctor import (
    CheckedNodeClass,
    CheckedWorkload,
    CheckResult,
    CloudAccount,
    Definition,
    Facts,
    Judgement,
    LeaseHolder,
    OtherAutoscaler,
    Pool,
    RefusedCall,
    Replica,
    Unseen,
    examine,
    is_fit,
)
from karpy.core.rights import Right

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LEADER = LeaseHolder("karpenter", "karpenter-1_uuid", 2.0, "registry/karpy:0.1.0")
KARPENTER = LeaseHolder(
    "kube-system", "karpenter-9_uuid", 2.0, "public.ecr.aws/karpenter/controller:1"
)
HANDLER = OtherAutoscaler("Node Termination Handler", "Deployment kube-system/nth", "shop")
WELL = Facts(
    namespace="karpenter",
    provider="aws",
    version="v1.34.2-eks-1",
    local_time=NOON,
    server_time=NOON,
    definitions=(Definition("nodepools.karpenter.sh"),),
    account_name="system:serviceaccount:karpenter:karpenter",
    holders=(LEADER,),
    is_installed=True,
    replicas=(Replica("a", "n1", is_ready=True), Replica("b", "n2", is_ready=True)),
    workloads=(CheckedWorkload("Deployment shop/web", 3, has_budget=True, lacks_requests=False),),
    pools=(Pool("general", has_limits=True, node_class="EC2NodeClass default"),),
    node_classes=(CheckedNodeClass("EC2NodeClass default"),),
    cloud=CloudAccount(
        "arn:aws:iam::1:role/karpenter", "eu-west-1", (), "shop", is_queue_there=True
    ),
    queue="shop",
)


def test_a_fit_cluster_is_green_in_every_check() -> None:
    judgements = examine(WELL)

    assert {each.health for each in judgements} == {CheckResult.GREEN}
    assert is_fit(judgements)


CASES: dict[str, tuple[dict[str, Any], str, CheckResult, str]] = {
    "old": ({"version": "v1.28.1"}, "Kubernetes", CheckResult.RED, "v1.28.1 is too old"),
    "new": ({"version": "v1.99.0"}, "Kubernetes", CheckResult.YELLOW, "is newer than"),
    "mute": ({"version": ""}, "Kubernetes", CheckResult.YELLOW, "does not say its version"),
    "late": ({"local_time": NOON - timedelta(minutes=2)}, "clock", CheckResult.RED, "120 s behind"),
    "early": (
        {"local_time": NOON + timedelta(seconds=9)},
        "clock",
        CheckResult.YELLOW,
        "9 s ahead",
    ),
    "no time": ({"server_time": None}, "clock", CheckResult.YELLOW, "does not say its time"),
    "gone": (
        {"definitions": (Definition("x", is_there=False),)},
        "definitions",
        CheckResult.RED,
        "are missing",
    ),
    "version": (
        {"definitions": (Definition("x", is_served=False),)},
        "definitions",
        CheckResult.RED,
        "are not served",
    ),
    "stale": (
        {"definitions": (Definition("x", missing=("spec.weight",)),)},
        "definitions",
        CheckResult.YELLOW,
        "are older than Karpy",
    ),
    "denied": ({"denied": (Right("list", "", "pods"),)}, "rights", CheckResult.RED, "lacks 1"),
    "unasked": (
        {"has_checked_rights": False},
        "rights",
        CheckResult.YELLOW,
        "could not be asked about",
    ),
    "two lead": ({"holders": (LEADER, KARPENTER)}, "leader", CheckResult.RED, "several operators"),
    "karpenter": ({"holders": (KARPENTER,)}, "leader", CheckResult.YELLOW, "another operator"),
    "elsewhere": (
        {"holders": (replace(LEADER, namespace="kube-system"),)},
        "leader",
        CheckResult.YELLOW,
        "another namespace",
    ),
    "dead": (
        {"holders": (replace(LEADER, age_seconds=999.0),)},
        "leader",
        CheckResult.RED,
        "there is none",
    ),
    "handler": (
        {"others": (HANDLER,)},
        "other autoscalers",
        CheckResult.RED,
        "the same queue `shop`",
    ),
    "autoscaler": (
        {"others": (OtherAutoscaler("Cluster Autoscaler", "Deployment kube-system/ca"),)},
        "other autoscalers",
        CheckResult.YELLOW,
        "run",
    ),
    "own node": (
        {"replicas": (Replica("a", "n1", is_ready=True, is_on_own_node=True),)},
        "replicas",
        CheckResult.RED,
        "may remove",
    ),
    "unready": ({"replicas": (Replica("a", "n1"),)}, "replicas", CheckResult.RED, "none is ready"),
    "single": (
        {"replicas": (Replica("a", "n1", is_ready=True),)},
        "replicas",
        CheckResult.YELLOW,
        "one is ready",
    ),
    "together": (
        {"replicas": (Replica("a", "n1", is_ready=True), Replica("b", "n1", is_ready=True))},
        "replicas",
        CheckResult.YELLOW,
        "on the same node",
    ),
    "no pool": ({"pools": ()}, "NodePools", CheckResult.YELLOW, "there is none"),
    "no limits": (
        {"pools": (Pool("general", has_limits=False, node_class="EC2NodeClass default"),)},
        "NodePools",
        CheckResult.YELLOW,
        "have no limits",
    ),
    "pool unready": (
        {"pools": (replace(WELL.pools[0], unready="Ready: no"),)},
        "NodePools",
        CheckResult.RED,
        "are not ready",
    ),
    "class gone": ({"node_classes": ()}, "node classes", CheckResult.RED, "are not there"),
    "class unready": (
        {
            "node_classes": (
                CheckedNodeClass("EC2NodeClass default", ("SubnetsReady: none match",)),
            )
        },
        "node classes",
        CheckResult.RED,
        "are not ready",
    ),
    "class unused": (
        {
            "node_classes": (
                CheckedNodeClass("EC2NodeClass default"),
                CheckedNodeClass("EC2NodeClass old", ("SubnetsReady: none match",)),
            )
        },
        "node classes",
        CheckResult.YELLOW,
        "are not ready",
    ),
    "class silent": (
        {"node_classes": (CheckedNodeClass("EC2NodeClass default", is_known=False),)},
        "node classes",
        CheckResult.YELLOW,
        "no conditions yet",
    ),
    "no budget": (
        {
            "workloads": (
                CheckedWorkload("Deployment a/b", 2, has_budget=False, lacks_requests=False),
            )
        },
        "workloads",
        CheckResult.YELLOW,
        "no PodDisruptionBudget",
    ),
    "no requests": (
        {
            "workloads": (
                CheckedWorkload("Deployment a/b", 1, has_budget=False, lacks_requests=True),
            )
        },
        "workloads",
        CheckResult.YELLOW,
        "ask for no CPU or no memory",
    ),
    "refused": (
        {
            "cloud": CloudAccount(
                "arn", "eu-west-1", (RefusedCall("ec2:DescribeSubnets", "no", "allow it"),)
            )
        },
        "AWS ec2:DescribeSubnets",
        CheckResult.RED,
        "no",
    ),
    "no queue": (
        {"cloud": CloudAccount("arn", "x")},
        "AWS queue",
        CheckResult.YELLOW,
        "none is set",
    ),
    "unseen": (
        {"unseen": (Unseen("nodes", "no"),)},
        "left out",
        CheckResult.YELLOW,
        "could not be read",
    ),
}


VERBS: Final = frozenset(
    (
        "allow",
        "apply",
        "correct",
        "give",
        "have",
        "install",
        "keep",
        "look",
        "remove",
        "run",
        "scale",
        "see",
        "set",
        "spread",
        "stop",
        "upgrade",
    )
)


def _said(facts: Facts, check: str) -> list[Judgement]:
    return [each for each in examine(facts) if each.check == check]


@pytest.mark.parametrize(("change", "check", "health", "text"), CASES.values(), ids=CASES)
def test_each_problem_has_a_judgement_with_a_hint(
    change: dict[str, Any], check: str, health: CheckResult, text: str
) -> None:
    found = _said(replace(WELL, **change), check)

    (judged,) = [each for each in found if each.health is not CheckResult.GREEN]
    assert (judged.health, text in judged.text) == (health, True)
    assert judged.hint.split()[0] in VERBS
    assert is_fit(examine(replace(WELL, **change))) == (health is not CheckResult.RED)


def test_a_handler_of_another_queue_is_not_red() -> None:
    (judged,) = _said(replace(WELL, others=(replace(HANDLER, queue="other"),)), "other autoscalers")

    assert (judged.health, judged.text) == (CheckResult.YELLOW, "drain nodes")
    assert "start nodes" not in judged.hint


def test_without_an_identity_no_queue_is_missed() -> None:
    account = CloudAccount(
        refused=(RefusedCall("region", "AWS_REGION is not set", "set AWS_REGION"),)
    )

    assert _said(replace(WELL, cloud=account), "AWS queue") == []


def test_before_karpy_is_installed_no_leader_is_required() -> None:
    facts = replace(WELL, is_installed=False, holders=(), replicas=())

    assert [each.health for each in _said(facts, "leader")] == [CheckResult.GREEN]
    assert is_fit(examine(facts))


@pytest.mark.parametrize(
    ("what", "check"),
    [
        ("leases.coordination.k8s.io", "leader"),
        ("customresourcedefinitions.apiextensions.k8s.io", "definitions"),
        ("pods", "replicas"),
        ("nodepools.karpenter.sh", "NodePools"),
        ("statefulsets.apps", "workloads"),
    ],
)
def test_a_check_is_left_out_if_its_resource_is_unreadable(what: str, check: str) -> None:
    facts = replace(WELL, holders=(), unseen=(Unseen(what, "forbidden"),))

    assert _said(facts, check) == []
    assert _said(facts, "left out")[0].objects == (f"{what}: forbidden",)


def test_a_single_replica_needs_no_budget() -> None:
    one = CheckedWorkload("Deployment a/b", 1, has_budget=False, lacks_requests=False)

    assert [each.health for each in _said(replace(WELL, workloads=(one,)), "workloads")] == [
        CheckResult.GREEN
    ]
