from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.model.constraints import (
    AffinityTerm,
    NodeTerm,
    SpreadConstraint,
    Toleration,
    WeightedNodeTerm,
    WeightedTerm,
)
from karpy.model.pods import (
    DAEMON_SET,
    NODE,
    STATEFUL_SET,
    DisruptionBudget,
    HostPort,
    Owner,
    Pod,
    PodDisruption,
    PodRules,
    PodVolume,
    daemon_pod_rank,
    daemon_set_of,
    with_requests_of,
)
from karpy.model.requirements import one_of
from tests.builders import daemon, owner, pod
from tests.builders.pods import daemon_pod

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
TERM = AffinityTerm("zone")
POD = Pod("web-1", "shop", "u1", NOON, {}, {"pods": 1}, PodRules())
OLD = replace(daemon_pod("b", on="n1"), phase="Running")
PINNED = NodeTerm((), has_match_fields=True)
LATER = OLD.created + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("mine", "its", "expected"),
    [
        (HostPort(80), HostPort(80), True),
        (HostPort(80), HostPort(81), False),
        (HostPort(80), HostPort(80, "UDP"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.1"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="::"), True),
        (HostPort(80, address="::"), HostPort(80), True),
    ],
)
def test_ports_clash_unless_protocol_or_address_differ(
    mine: HostPort, its: HostPort, *, expected: bool
) -> None:
    """An unspecified address, of either family, takes the port on all of them."""
    assert mine.clashes_with(its) is expected
    assert its.clashes_with(mine) is expected


def test_a_volume_made_for_the_pod_is_named_after_it() -> None:
    assert PodVolume("data").claim_of("web-1") == "web-1-data"
    assert PodVolume("data", "shared").claim_of("web-1") == "shared"


@pytest.mark.parametrize(
    "rules",
    [
        PodRules(spreads=(SpreadConstraint("zone", 1),)),
        PodRules(affinity=(TERM,)),
        PodRules(anti_affinity=(TERM,)),
        PodRules(preferred_affinity=(WeightedTerm(1, TERM),)),
        PodRules(preferred_anti_affinity=(WeightedTerm(1, TERM),)),
    ],
)
def test_rules_about_other_pods_are_topology(rules: PodRules) -> None:
    assert rules.has_topology


def test_rules_about_nodes_alone_are_no_topology() -> None:
    rules = PodRules(
        node_selector=(one_of("zone", "a"),),
        preferred_node_terms=(WeightedNodeTerm(1, NodeTerm()),),
        ports=(HostPort(80),),
        volumes=(PodVolume("data"),),
    )

    assert not rules.has_topology


def test_equal_rules_are_one_key() -> None:
    """Work done per rules is done once for all pods of a workload."""
    mine = PodRules(node_selector=(one_of("zone", "a", "b"),), spreads=(SpreadConstraint("z", 1),))
    its = PodRules(node_selector=(one_of("zone", "b", "a"),), spreads=(SpreadConstraint("z", 1),))

    assert {mine: 1} == {its: 1}


@pytest.mark.parametrize(
    ("phase", "is_deleting", "is_terminal", "is_active"),
    [
        ("", False, False, True),
        ("Pending", False, False, True),
        ("Running", False, False, True),
        ("Running", True, False, False),
        ("Succeeded", False, True, False),
        ("Failed", False, True, False),
        ("Failed", True, True, False),
    ],
)
def test_a_pod_is_active_until_it_ends_or_is_deleting(
    phase: str, *, is_deleting: bool, is_terminal: bool, is_active: bool
) -> None:
    pod = replace(POD, phase=phase, is_deleting=is_deleting)

    assert (pod.is_terminal, pod.is_active) == (is_terminal, is_active)


def test_a_pod_is_known_by_namespace_and_name() -> None:
    assert POD.key == "shop/web-1"


def test_an_owner_counts_by_api_version_and_kind() -> None:
    """A DaemonSet of another API group makes other pods."""
    owned = replace(POD, owners=(Owner("v1", "Node"), Owner("apps/v1", "DaemonSet")))
    other = replace(POD, owners=(Owner("apps.kruise.io/v1alpha1", "DaemonSet"),))

    assert [owned.is_owned_by(kind) for kind in (DAEMON_SET, NODE, STATEFUL_SET)] == [
        True,
        True,
        False,
    ]
    assert not other.is_owned_by(DAEMON_SET)
    assert not POD.is_owned_by(DAEMON_SET)


def _owned(*kinds: tuple[str, str], **changes: object) -> Pod:
    return replace(POD, owners=tuple(Owner(*kind) for kind in kinds), **changes)


def _deleting(seconds: int) -> Pod:
    """Return a pod whose grace period ended some seconds before noon."""
    return replace(POD, is_deleting=True, deleted=NOON - timedelta(seconds=seconds))


def _tolerating(toleration: Toleration) -> Pod:
    return replace(POD, rules=PodRules(tolerations=(toleration,)))


@pytest.mark.parametrize(
    ("pod", "is_drainable", "is_waited_for"),
    [
        (POD, True, True),
        (replace(POD, phase="Succeeded"), True, False),
        (replace(POD, phase="Failed"), True, False),
        (_owned(NODE), False, False),
        (_tolerating(Toleration(operator="Exists")), False, False),
        (_deleting(60), True, True),
        (_deleting(61), False, False),
        (replace(POD, disruption=PodDisruption(do_not_disrupt="true")), True, True),
        (_owned(DAEMON_SET), True, True),
    ],
)
def test_a_node_waits_for_the_pods_that_can_be_drained(
    pod: Pod, *, is_drainable: bool, is_waited_for: bool
) -> None:
    assert pod.is_drainable(NOON) is is_drainable
    assert pod.is_waited_for(NOON) is is_waited_for


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("karpenter.sh/disrupted", "Exists"), True),
        (Toleration("karpenter.sh/disrupted", effect="NoSchedule"), True),
        (Toleration("karpenter.sh/disrupted", "Exists", effect="NoExecute"), False),
        (Toleration("other", "Exists"), False),
    ],
)
def test_a_pod_that_tolerates_the_disrupted_taint_stays_on_its_node(
    toleration: Toleration, *, expected: bool
) -> None:
    assert _tolerating(toleration).tolerates_disruption is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("system-cluster-critical", True),
        ("system-node-critical", True),
        ("important", False),
        ("", False),
    ],
)
def test_two_priority_classes_are_critical(name: str, *, expected: bool) -> None:
    assert PodDisruption(priority_class=name).is_critical is expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (POD, True),
        (replace(POD, phase="Succeeded"), False),
        (replace(POD, is_deleting=True), False),
        (_owned(STATEFUL_SET, is_deleting=True), True),
        (_owned(STATEFUL_SET, phase="Failed"), False),
        (_owned(DAEMON_SET), False),
        (_owned(NODE), False),
        (_owned(STATEFUL_SET, DAEMON_SET), False),
    ],
)
def test_a_pod_needs_another_node_unless_it_belongs_to_its_own(pod: Pod, *, expected: bool) -> None:
    """A StatefulSet creates the next pod only after this one is gone."""
    assert pod.is_reschedulable is expected


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (DisruptionBudget("b", "shop", max_unavailable="0"), True),
        (DisruptionBudget("b", "shop", max_unavailable="0%"), True),
        (DisruptionBudget("b", "shop", min_available="100%"), True),
        (DisruptionBudget("b", "shop", max_unavailable="1"), False),
        (DisruptionBudget("b", "shop", min_available="10"), False),
        (DisruptionBudget("b", "shop", disruptions_allowed=0), False),
    ],
)
def test_a_budget_forbids_all_if_nothing_but_an_edit_lets_a_pod_go(
    budget: DisruptionBudget, *, expected: bool
) -> None:
    assert budget.forbids_all is expected


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (DisruptionBudget("b", "shop", ()), True),
        (DisruptionBudget("b", "shop", (one_of("app", "web"),)), True),
        (DisruptionBudget("b", "shop", (one_of("app", "db"),)), False),
        (DisruptionBudget("b", "shop", None), False),
        (DisruptionBudget("b", "other", ()), False),
    ],
)
def test_a_budget_covers_pods_of_its_namespace_that_it_selects(
    budget: DisruptionBudget, *, expected: bool
) -> None:
    assert budget.covers(replace(POD, labels={"app": "web"})) is expected


@pytest.mark.parametrize(
    "behind",
    [
        replace(OLD, created=OLD.created - timedelta(seconds=1)),
        replace(OLD, name="a"),
        replace(OLD, phase="Pending", created=LATER),
    ],
    ids=["older", "name", "waiting"],
)
def test_the_newest_pod_that_runs_counts(behind: Pod) -> None:
    assert max(behind, OLD, key=daemon_pod_rank) is OLD


def test_of_pods_that_wait_the_newest_counts() -> None:
    old, new = replace(OLD, phase="Pending"), replace(OLD, phase="Pending", created=LATER)

    assert max(new, old, key=daemon_pod_rank) is new


def test_only_the_controller_of_a_pod_is_its_daemon_set() -> None:
    other = owner(("apps/v1", "ReplicaSet"))
    mine = owner(DAEMON_SET, "agent")

    assert daemon_set_of(pod("a", namespace="shop", owners=[other, mine])) == ("shop", "uid-agent")
    assert daemon_set_of(pod("a", owners=[owner(DAEMON_SET, is_controller=False)])) is None


def test_a_daemon_set_takes_what_its_pod_takes_on_the_nodes_of_its_template() -> None:
    template = daemon("agent", cpu="1", terms=[NodeTerm(())])
    there = daemon_pod("agent-x", cpu="2", ports=[HostPort(80)], terms=[PINNED])

    seen = with_requests_of(template, there).pod

    assert seen == replace(
        template.pod,
        requests=there.requests,
        limits=there.limits,
        rules=replace(there.rules, required_node_terms=(NodeTerm(()),)),
    )


def test_a_daemon_set_without_a_pod_is_as_its_template_says() -> None:
    template = daemon("agent", cpu="1")

    assert with_requests_of(template, None) is template
