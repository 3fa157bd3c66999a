"""Section 1: which pods a decision places, and why the others are refused."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.model.constraints import NodeTerm
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INITIALIZED, NODE_POOL, SPOT
from karpy.model.pods import (
    DAEMON_SET,
    NODE,
    STATEFUL_SET,
    DisruptionBudget,
    Pod,
    PodDisruption,
)
from karpy.model.requirements import Requirement
from karpy.model.settings import PreferencePolicy, Settings
from karpy.model.verdicts import Constraint, Exclusion, PoolNotice, Reason, Refusal, Verdict
from tests.builders import (
    FAMILY,
    absent,
    below,
    exists,
    is_in,
    min_values,
    node,
    owner,
    pod,
    pool,
    snapshot,
    term,
)
from tests.core.scheduling.answers import decide_checked, hosts, only_refusal

ANY_TERM = term(exists(ARCH))
FORBIDDING = DisruptionBudget("all", "default", (), max_unavailable="0", disruptions_allowed=0)


def test_an_idle_cluster_gives_an_empty_verdict() -> None:
    assert decide_checked(snapshot()) == Verdict()


def test_only_pods_that_kube_scheduler_gave_up_on_are_placed() -> None:
    cluster = snapshot(
        pods=[
            pod("ready"),
            pod("early", unschedulable=False),
            pod("preempting", nominated="n1"),
            pod("leaving", deleting=True),
            pod("done", phase="Succeeded"),
            pod("failed", phase="Failed"),
            pod("daemon", owners=[owner(DAEMON_SET)]),
            pod("mirror", owners=[owner(NODE)]),
            pod("running", on="gone"),
        ]
    )

    assert hosts(cluster) == {
        "early": "NOT_YET_UNSCHEDULABLE",
        "preempting": "PREEMPTING",
        "ready": "default-0",
    }


def test_a_pod_that_waits_for_two_things_says_the_first() -> None:
    torn = pod("torn", unschedulable=False, nominated="n1", devices=True)

    assert only_refusal(snapshot(pods=[torn])) == Refusal(
        Reason.NOT_YET_UNSCHEDULABLE, ("default/torn",)
    )


def test_any_owner_of_the_kind_counts_not_only_the_controller() -> None:
    daemon = pod("daemon", owners=[owner(DAEMON_SET, is_controller=False)])
    other = pod("other", owners=[owner(("extensions/v1beta1", "DaemonSet"))])

    assert hosts(snapshot(pods=[daemon, other])) == {"other": "default-0"}


def test_pods_of_a_deleting_node_are_placed_as_if_pending() -> None:
    cluster = snapshot(
        nodes=[node("old", deleting=True), node("new")],
        pods=[
            pod("plain", on="old"),
            pod("leaving", on="old", deleting=True),
            pod("leaving-set", on="old", deleting=True, owners=[owner(STATEFUL_SET)]),
            pod("daemon", on="old", owners=[owner(DAEMON_SET)]),
            pod("mirror", on="old", owners=[owner(NODE)]),
            pod("done", on="old", phase="Failed"),
            pod("stays", on="new"),
        ],
    )

    assert hosts(cluster) == {"leaving-set": "new", "plain": "new"}


@pytest.mark.parametrize(
    ("refused", "reason", "detail"),
    [
        (pod("p", devices=True), Reason.DEVICE_CLAIMS, ""),
        (pod("p", selector=[absent(NODE_POOL)]), Reason.OPTED_OUT, ""),
        (pod("p", terms=[term(absent(NODE_POOL)), ANY_TERM]), Reason.OPTED_OUT, ""),
        (pod("p", prefers=[(1, ANY_TERM), (2, term(absent(NODE_POOL)))]), Reason.OPTED_OUT, ""),
        (pod("p", selector={HOSTNAME: "n1"}), Reason.RESTRICTED_LABEL, HOSTNAME),
        (pod("p", selector={INITIALIZED: "true"}), Reason.RESTRICTED_LABEL, INITIALIZED),
        (
            pod("p", terms=[ANY_TERM, term(exists("x.karpenter.sh/y"))]),
            Reason.RESTRICTED_LABEL,
            "x.karpenter.sh/y",
        ),
        (pod("p", terms=[ANY_TERM, NodeTerm(has_match_fields=True)]), Reason.MATCH_FIELDS, ""),
        (
            pod("p", selector={CAPACITY_TYPE: "cheap"}),
            Reason.BAD_REQUIREMENT,
            f"{CAPACITY_TYPE} In [cheap]",
        ),
        (
            pod("p", terms=[ANY_TERM, term(Requirement("tier", complement=True, gte=-1))]),
            Reason.BAD_REQUIREMENT,
            "tier Exists >=-1",
        ),
        (pod("p", selector=[below("tier", -1)]), Reason.BAD_REQUIREMENT, "tier Exists <=-2"),
    ],
)
def test_what_can_never_be_placed_is_refused_at_once(
    refused: Pod, reason: Reason, detail: str
) -> None:
    assert only_refusal(snapshot(pods=[refused])) == Refusal(reason, ("default/p",), detail)


@pytest.mark.parametrize(
    "accepted",
    [
        pod("p", terms=[ANY_TERM, term(absent(NODE_POOL))]),
        pod("p", prefers=[(2, ANY_TERM), (1, term(absent(NODE_POOL)))]),
        pod("p", prefers=[(1, term(is_in(HOSTNAME, "n1")))]),
        pod("p", prefers=[(1, NodeTerm(has_match_fields=True))]),
        pod("p", selector=[is_in(CAPACITY_TYPE, "cheap", SPOT)]),
        pod("p", prefers=[(1, term(is_in(CAPACITY_TYPE, "cheap")))]),
        pod("p", prefers=[(1, term(below("tier", -1)))]),
    ],
)
def test_a_preference_or_one_of_several_terms_refuses_no_pod(accepted: Pod) -> None:
    assert hosts(snapshot(pods=[accepted])) == {"p": "default-0"}


@pytest.mark.parametrize(
    ("said", "budget", "place"),
    [
        (None, None, "default-0"),
        ("true", None, None),
        ("2h", None, None),
        ("30m", None, "default-0"),
        ("soon", None, "default-0"),
        (None, FORBIDDING, None),
        (None, replace(FORBIDDING, max_unavailable="1"), "default-0"),
        (None, replace(FORBIDDING, namespace="other"), "default-0"),
    ],
)
def test_a_pod_that_no_drain_evicts_gets_no_other_place_yet(
    said: str | None, budget: DisruptionBudget | None, place: str | None
) -> None:
    bound = pod("held", on="old", age=timedelta(hours=1))
    held = replace(bound, disruption=PodDisruption(do_not_disrupt=said), started=bound.created)
    cluster = snapshot(nodes=[node("old", deleting=True)], pods=[held])
    cluster = replace(cluster, budgets=() if budget is None else (budget,))

    assert hosts(cluster) == ({} if place is None else {"held": place})


def test_a_pod_opts_out_by_a_preference_though_preferences_are_ignored() -> None:
    """Parity: Karpenter checks for it before it reads the preference policy."""
    cluster = snapshot(
        pods=[pod("p", prefers=[(1, term(absent(NODE_POOL)))])],
        settings=Settings(preference_policy=PreferencePolicy.IGNORE),
    )

    assert hosts(cluster) == {"p": "OPTED_OUT"}


def test_a_bound_below_zero_by_lt_is_not_malformed() -> None:
    """`Lt 0` leaves no label value, but it is a bound that Kubernetes accepts."""
    assert hosts(snapshot(pods=[pod("p", selector=[below("tier", 0)])])) == {"p": "NO_HOST"}


def test_device_claims_are_no_reason_if_they_are_not_ignored() -> None:
    settings = Settings(ignore_device_claims=False)

    assert hosts(snapshot(pods=[pod("p", devices=True)], settings=settings)) == {"p": "default-0"}


def test_pods_refused_for_the_same_reason_and_detail_share_a_refusal() -> None:
    cluster = snapshot(
        pods=[
            pod("b", selector={HOSTNAME: "n1"}),
            pod("early", unschedulable=False),
            pod("a", selector={HOSTNAME: "n2"}),
            pod("c", selector={INITIALIZED: "true"}),
        ]
    )

    assert decide_checked(cluster).refusals == (
        Refusal(Reason.RESTRICTED_LABEL, ("default/b", "default/a"), HOSTNAME),
        Refusal(Reason.NOT_YET_UNSCHEDULABLE, ("default/early",)),
        Refusal(Reason.RESTRICTED_LABEL, ("default/c",), INITIALIZED),
    )


def test_pools_that_take_no_part_are_named_with_the_reason() -> None:
    verdict = decide_checked(
        snapshot(
            pods=[pod("p")],
            pools=[
                pool("static", static=True),
                pool("unready", ready=False),
                pool("leaving", deleting=True),
                pool("empty", requirements=[is_in(FAMILY, "nothing")]),
                pool("uniform", requirements=[min_values(exists(FAMILY), 4)]),
                pool("works"),
            ],
        )
    )

    assert {notice.pool: notice.why for notice in verdict.pools} == {
        "static": Exclusion(Constraint.POOL_STATIC, "static", 0),
        "unready": Exclusion(
            Constraint.POOL_NOT_READY, "see `kubectl describe nodepool unready`", 0
        ),
        "leaving": Exclusion(Constraint.POOL_DELETING, "leaving", 0),
        "empty": Exclusion(Constraint.POOL_EMPTY, f"{FAMILY} In [nothing]", 12),
        "uniform": Exclusion(Constraint.MIN_VALUES, f"{FAMILY}: 3 values on offer", 12),
    }
    assert [launch.pool for launch in verdict.launches] == ["works"]


def test_pools_are_named_even_if_no_pod_waits() -> None:
    assert decide_checked(snapshot(pools=[pool("static", static=True)])) == Verdict(
        pools=(PoolNotice("static", Exclusion(Constraint.POOL_STATIC, "static", 0)),)
    )


def test_without_any_pool_in_use_the_reason_is_that() -> None:
    cluster = snapshot(pods=[pod("p")], pools=[pool("static", static=True)])

    assert hosts(cluster) == {"p": "NO_POOL"}
    assert hosts(snapshot(pods=[pod("p")], pools=[])) == {"p": "NO_POOL"}
