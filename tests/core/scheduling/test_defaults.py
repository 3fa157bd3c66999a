"""Section 1: default spread constraints, for pods without spread constraints."""

import pytest

from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.pods import STATEFUL_SET, Pod, PodController, Service
from karpy.model.settings import PreferencePolicy, Settings
from karpy.model.snapshot import Snapshot
from tests.builders import (
    ZONE_A,
    ZONE_B,
    controller,
    node,
    owner,
    pod,
    pods,
    service,
    snapshot,
    spread,
)
from tests.core.scheduling.answers import hosts, pods_launched, values_launched

REPLICA_SET = ("apps/v1", "ReplicaSet")
REPLICATION_CONTROLLER = ("v1", "ReplicationController")
JOB = ("batch/v1", "Job")
BY_HOST = Settings(default_spreads=(spread(HOSTNAME, None),))
WEB = {"app": "web"}


def _cluster(
    batch: list[Pod],
    *,
    services: tuple[Service, ...] = (),
    controllers: tuple[PodController, ...] = (),
    settings: Settings = BY_HOST,
) -> Snapshot:
    return snapshot(pods=batch, services=services, controllers=controllers, settings=settings)


def _is_spread(cluster: Snapshot) -> bool:
    """Say whether two pods got a host each."""
    return len(pods_launched(cluster)) == 2


@pytest.mark.parametrize(
    ("selected_by", "is_spread"),
    [
        (service("s", WEB), True),
        (service("s", {"app": "db"}), False),
        (service("s", {}), False),
        (service("s", None), False),
        (service("s", WEB, namespace="other"), False),
        (service("s", WEB | {"track": "stable"}), False),
    ],
)
def test_pods_of_a_service_are_spread(selected_by: Service, *, is_spread: bool) -> None:
    cluster = _cluster(pods("web", 2, labels=WEB), services=(selected_by,))

    assert _is_spread(cluster) is is_spread


@pytest.mark.parametrize(
    ("kind", "is_spread"),
    [(REPLICA_SET, True), (STATEFUL_SET, True), (REPLICATION_CONTROLLER, True), (JOB, False)],
)
def test_pods_of_a_controller_are_spread(kind: tuple[str, str], *, is_spread: bool) -> None:
    batch = pods("web", 2, labels=WEB, owners=[owner(kind, "web")])

    assert _is_spread(_cluster(batch, controllers=(controller(kind, "web", WEB),))) is is_spread


@pytest.mark.parametrize(
    "known",
    [
        controller(REPLICA_SET, "other", WEB),
        controller(STATEFUL_SET, "web", WEB),
        controller(REPLICA_SET, "web", WEB, namespace="other"),
        controller(REPLICA_SET, "web", {}),
    ],
)
def test_another_controller_gives_no_selector(known: PodController) -> None:
    batch = pods("web", 2, labels=WEB, owners=[owner(REPLICA_SET, "web")])

    assert not _is_spread(_cluster(batch, controllers=(known,)))


def test_an_owner_that_is_not_the_controller_gives_no_selector() -> None:
    batch = pods("web", 2, labels=WEB, owners=[owner(REPLICA_SET, "web", is_controller=False)])

    assert not _is_spread(_cluster(batch, controllers=(controller(REPLICA_SET, "web", WEB),)))


def test_bare_pods_are_left_alone() -> None:
    assert not _is_spread(_cluster(pods("web", 2, labels=WEB)))


def test_revisions_of_a_deployment_are_spread_apart_from_each_other() -> None:
    """The hash of the template is in the selector of each ReplicaSet."""
    one, two = WEB | {"hash": "1"}, WEB | {"hash": "2"}
    batch = [
        pod("a", labels=one, owners=[owner(REPLICA_SET, "web-1")]),
        pod("b", labels=two, owners=[owner(REPLICA_SET, "web-2")]),
    ]
    sets = (controller(REPLICA_SET, "web-1", one), controller(REPLICA_SET, "web-2", two))

    assert not _is_spread(_cluster(batch, controllers=sets, services=(service("s", WEB),)))


def test_services_add_up() -> None:
    """Of two Services that select different labels, both labels count."""
    stable = WEB | {"track": "stable"}
    batch = [pod("a", labels=stable), pod("b", labels=stable | {"x": "1"})]
    services = (service("s", WEB), service("t", {"track": "stable"}))
    running = pod("old", labels=WEB, on="n")

    both = snapshot(nodes=[node("n")], pods=[running, *batch], services=services, settings=BY_HOST)

    assert hosts(both) == {"a": "n", "b": "default-0"}


def test_a_replication_controller_overwrites_what_services_say() -> None:
    """The selector need not select the pod; then the pods are not counted together."""
    batch = pods("web", 2, labels=WEB, owners=[owner(REPLICATION_CONTROLLER, "rc")])
    told = controller(REPLICATION_CONTROLLER, "rc", {"app": "other"})

    assert not _is_spread(_cluster(batch, services=(service("s", WEB),), controllers=(told,)))


def test_a_pod_with_a_spread_of_its_own_gets_no_defaults() -> None:
    batch = pods("web", 2, labels=WEB, spreads=[spread(HOSTNAME, WEB, max_skew=2)])

    assert not _is_spread(_cluster(batch, services=(service("s", WEB),)))


def test_a_pod_gets_all_defaults_or_none() -> None:
    both = Settings(default_spreads=(spread(HOSTNAME, None), spread(ZONE, None)))
    cluster = _cluster(pods("web", 2, labels=WEB), services=(service("s", WEB),), settings=both)

    assert values_launched(cluster, ZONE) == [[ZONE_A], [ZONE_B]]


def test_soft_defaults_are_dropped_like_other_preferences() -> None:
    soft = spread("rack", None, soft=True)
    respected = Settings(default_spreads=(soft,))
    by_host = spread(HOSTNAME, None, soft=True)
    ignored = Settings(default_spreads=(by_host,), preference_policy=PreferencePolicy.IGNORE)
    services = (service("s", WEB),)
    batch = pods("web", 2, labels=WEB)

    assert hosts(_cluster(batch, services=services, settings=respected)) == {
        "web-0": "default-0",
        "web-1": "default-0",
    }
    assert not _is_spread(_cluster(batch, services=services, settings=ignored))
    assert _is_spread(
        _cluster(batch, services=services, settings=Settings(default_spreads=(by_host,)))
    )


def test_policies_of_a_default_go_along() -> None:
    wide = Settings(default_spreads=(spread(HOSTNAME, None, max_skew=2),))

    assert not _is_spread(
        _cluster(pods("web", 2, labels=WEB), services=(service("s", WEB),), settings=wide)
    )
