"""Section 1: which pods, in which order."""

from datetime import timedelta

from karpy.model.constraints import NodeTerm
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, NODE_POOL
from karpy.model.pods import DAEMON_SET, NODE, STATEFUL_SET
from karpy.model.requirements import Requirement
from karpy.model.settings import PreferencePolicy, Settings
from tests.builders import (
    ZONE_A,
    absent,
    controller,
    is_in,
    node,
    owner,
    pod,
    selecting,
    service,
    snapshot,
    spread,
    term,
)
from tests.reference.answers import hosts
from tests.reference.batch import REPLICA_SET, REPLICATION_CONTROLLER, deduced_selector, select


def test_only_pods_that_kube_scheduler_gave_up_on_are_placed() -> None:
    cluster = snapshot(
        pods=[
            pod("ready"),
            pod("early", unschedulable=False),
            pod("preempting", nominated="n1"),
            pod("leaving", deleting=True),
            pod("done", phase="Succeeded"),
            pod("daemon", owners=[owner(DAEMON_SET)]),
            pod("mirror", owners=[owner(NODE)]),
        ]
    )

    assert hosts(cluster) == {
        "early": "NOT_YET_UNSCHEDULABLE",
        "preempting": "PREEMPTING",
        "ready": "default#0",
    }


def test_pods_of_a_deleting_node_are_placed_as_if_pending() -> None:
    cluster = snapshot(
        nodes=[node("old", deleting=True), node("new")],
        pods=[
            pod("plain", on="old"),
            pod("leaving", on="old", deleting=True),
            pod("leaving-set", on="old", deleting=True, owners=[owner(STATEFUL_SET)]),
            pod("daemon", on="old", owners=[owner(DAEMON_SET)]),
            pod("done", on="old", phase="Failed"),
            pod("stays", on="new"),
        ],
    )

    assert hosts(cluster) == {"plain": "new", "leaving-set": "new"}


def test_what_can_never_be_placed_is_refused_at_once() -> None:
    cluster = snapshot(
        pods=[
            pod("devices", devices=True),
            pod("opted-out", selector=[absent(NODE_POOL)]),
            pod("restricted", selector={HOSTNAME: "n1"}),
            pod("restricted-term", terms=[term(), term(is_in("karpenter.sh/x", "y"))]),
            pod("fields", terms=[NodeTerm(has_match_fields=True)]),
            pod("capacity", terms=[term(), term(is_in(CAPACITY_TYPE, "cheap"))]),
            pod("negative", selector=[Requirement("tier", complement=True, gte=-1)]),
            pod("wish", prefers=[(1, term(is_in(HOSTNAME, "n1")))]),
        ]
    )

    assert hosts(cluster) == {
        "capacity": "BAD_REQUIREMENT",
        "devices": "DEVICE_CLAIMS",
        "fields": "MATCH_FIELDS",
        "negative": "BAD_REQUIREMENT",
        "opted-out": "OPTED_OUT",
        "restricted": "RESTRICTED_LABEL",
        "restricted-term": "RESTRICTED_LABEL",
        "wish": "default#0",
    }


def test_large_pods_come_first_then_old_ones_then_by_uid() -> None:
    cluster = snapshot(
        pods=[
            pod("b", uid="2"),
            pod("a", uid="1"),
            pod("old", age=timedelta(hours=1)),
            pod("memory", memory="2Gi"),
            pod("cpu", cpu="2", memory="1Mi"),
        ]
    )

    batch, _ = select(cluster)

    assert [each.name for each in batch] == ["cpu", "memory", "old", "a", "b"]


def test_a_default_spread_selects_what_services_and_the_controller_select() -> None:
    web = pod("web", labels={"app": "web", "hash": "1"}, owners=[owner(REPLICA_SET, "web-1")])
    cluster = snapshot(
        pods=[web],
        services=[
            service("matches", {"app": "web"}),
            service("elsewhere", {"app": "web"}, namespace="other"),
            service("headless", None),
            service("everything", {}),
            service("others", {"app": "db"}),
        ],
        controllers=[controller(REPLICA_SET, "web-1", {"app": "web", "hash": "1"})],
    )

    expected = selecting({"app": "web"}, is_in("app", "web"), is_in("hash", "1"))
    assert deduced_selector(web, cluster) == expected


def test_a_replication_controller_overwrites_what_services_say() -> None:
    old = pod("old", labels={"app": "x"}, owners=[owner(REPLICATION_CONTROLLER, "rc")])
    cluster = snapshot(
        services=[service("s", {"app": "x"})],
        controllers=[controller(REPLICATION_CONTROLLER, "rc", {"app": "y"})],
    )

    assert deduced_selector(old, cluster) == selecting({"app": "y"})


def test_pods_that_nothing_selects_and_pods_with_spreads_get_no_defaults() -> None:
    own = spread(HOSTNAME, {"app": "b"})
    cluster = snapshot(
        pods=[pod("bare"), pod("own", labels={"app": "b"}, spreads=[own])],
        services=[service("s", {"app": "b"})],
        settings=Settings(default_spreads=(spread(HOSTNAME, None),)),
    )

    batch, _ = select(cluster)

    assert {each.name: each.rules.spreads for each in batch} == {"bare": (), "own": (own,)}


def test_ignored_preferences_are_as_if_never_written() -> None:
    soft, hard = spread(HOSTNAME, {}, soft=True), spread(HOSTNAME, {})
    picky = pod("picky", spreads=[soft, hard], prefers=[(1, term(is_in("x", ZONE_A)))])
    settings = Settings(preference_policy=PreferencePolicy.IGNORE)

    batch, _ = select(snapshot(pods=[picky], settings=settings))

    assert batch[0].rules == pod("plain", spreads=[hard]).rules
