"""Section 6: where volumes are."""

import pytest

from karpy.model.constraints import NodeTerm
from karpy.model.labels import ARCH, HOSTNAME, ZONE
from karpy.model.storage import IMMEDIATE, PersistentVolume, PersistentVolumeClaim, Storage
from karpy.model.verdicts import Reason, Refusal
from tests.builders import (
    ZONE_A,
    ZONE_B,
    ZONE_C,
    absent,
    is_in,
    node,
    not_in,
    pod,
    snapshot,
    spread,
    storage,
    storage_class,
    term,
    volume,
    volume_claim,
)
from tests.core.scheduling.answers import (
    hosts,
    only_refusal,
    values_launched,
)

IN_A, IN_B, IN_C = (term(is_in(ZONE, zone)) for zone in (ZONE_A, ZONE_B, ZONE_C))


# --- volumes that cannot be used -------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "reason", "detail"),
    [
        (volume_claim("c", is_deleting=True), Reason.VOLUME_CLAIM_DELETING, "default/c"),
        (volume_claim("c", phase="Lost"), Reason.VOLUME_CLAIM_LOST, "default/c"),
        (volume_claim("c", bound_to="nothing"), Reason.VOLUME_MISSING, "nothing"),
        (volume_claim("c", bound_to="dying"), Reason.VOLUME_DELETING, "dying"),
        (
            volume_claim("c", bound_to="fine", is_bind_completed=False),
            Reason.VOLUME_CLAIM_BINDING,
            "default/c",
        ),
        (volume_claim("c", storage_class="eager"), Reason.VOLUME_CLAIM_IMMEDIATE, "default/c"),
        (
            volume_claim("c", storage_class=None),
            Reason.STORAGE_CLASS_MISSING,
            "default/c: none named",
        ),
        (
            volume_claim("c", storage_class="unknown"),
            Reason.STORAGE_CLASS_MISSING,
            "default/c: unknown",
        ),
        (volume_claim("other"), Reason.VOLUME_CLAIM_MISSING, "default/c"),
        (volume_claim("c", namespace="shop"), Reason.VOLUME_CLAIM_MISSING, "default/c"),
    ],
)
def test_each_reason_that_a_volume_gives_has_its_name(
    claim: PersistentVolumeClaim, reason: Reason, detail: str
) -> None:
    stored = storage(
        claim,
        PersistentVolume("dying", is_deleting=True),
        volume("fine"),
        storage_class("eager", binding_mode=IMMEDIATE),
    )

    assert only_refusal(snapshot(pods=[pod("p", claims=["c"])], storage=stored)) == Refusal(
        reason, ("default/p",), detail
    )


def test_the_first_volume_with_a_problem_gives_the_reason() -> None:
    stored = storage(volume_claim("fine"), volume_claim("lost", phase="Lost"))
    torn = pod("p", claims=["fine", "lost", "missing"])

    assert hosts(snapshot(pods=[torn], storage=stored)) == {"p": "VOLUME_CLAIM_LOST"}


def test_a_bound_volume_needs_no_storage_class() -> None:
    stored = storage(volume_claim("c", bound_to="v", storage_class="gone"), volume("v"))

    assert hosts(snapshot(pods=[pod("p", claims=["c"])], storage=stored)) == {"p": "default-0"}


def test_an_ephemeral_volume_is_claimed_under_the_name_of_its_pod() -> None:
    batch = [pod("a", ephemeral=["scratch"]), pod("b", ephemeral=["scratch"])]

    assert hosts(snapshot(pods=batch, storage=storage(volume_claim("a-scratch")))) == {
        "a": "default-0",
        "b": "VOLUME_CLAIM_MISSING",
    }


# --- where they are --------------------------------------------------------------------------


def _bound(*terms: NodeTerm, is_local: bool = False) -> Storage:
    """Make storage with one claim, `c`, bound to a volume that can be used in some places."""
    return storage(volume_claim("c", bound_to="v"), volume("v", *terms, is_local=is_local))


def test_a_pod_goes_where_its_volume_is() -> None:
    cluster = snapshot(
        nodes=[node("a", zone=ZONE_A), node("b", zone=ZONE_B)],
        pods=[pod("p", cpu="5", claims=["c"]), pod("q", claims=["c"])],
        storage=_bound(IN_B),
    )

    assert hosts(cluster) == {"p": "default-0", "q": "b"}
    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_a_pod_goes_where_its_storage_class_makes_volumes() -> None:
    stored = storage(volume_claim("c", storage_class="local"), storage_class("local", IN_C))

    assert values_launched(snapshot(pods=[pod("p", claims=["c"])], storage=stored), ZONE) == [
        [ZONE_C]
    ]


@pytest.mark.parametrize(
    ("selector", "zones"), [({}, [[ZONE_B]]), ({ZONE: ZONE_A}, [[ZONE_A]]), ({ZONE: ZONE_C}, [])]
)
def test_the_first_alternative_that_works_is_taken(
    selector: dict[str, str], zones: list[list[str]]
) -> None:
    cluster = snapshot(pods=[pod("p", claims=["c"], selector=selector)], storage=_bound(IN_B, IN_A))

    assert values_launched(cluster, ZONE) == zones


def test_a_volume_without_terms_is_everywhere() -> None:
    assert values_launched(snapshot(pods=[pod("p", claims=["c"])], storage=_bound()), ZONE) == [[]]


def test_volumes_in_different_zones_leave_no_place() -> None:
    """Karpenter goes on with the empty requirement, which a node without the label may meet."""
    stored = storage(
        volume_claim("x", bound_to="x"),
        volume_claim("y", bound_to="y"),
        volume("x", IN_A),
        volume("y", IN_B),
    )
    unlabelled = node("n", labels={ZONE: ""})

    assert hosts(
        snapshot(nodes=[unlabelled], pods=[pod("p", claims=["x", "y"])], storage=stored)
    ) == {"p": "NO_HOST"}


def test_combinations_of_volumes_that_agree_are_tried_the_first_volume_slowest() -> None:
    stored = storage(
        volume_claim("x", bound_to="x"),
        volume_claim("y", bound_to="y"),
        volume("x", IN_C, IN_B, IN_A),
        volume("y", IN_A, IN_B),
    )

    assert values_launched(snapshot(pods=[pod("p", claims=["x", "y"])], storage=stored), ZONE) == [
        [ZONE_B]
    ]


def test_a_local_volume_does_not_pin_its_old_host() -> None:
    pinned = term(is_in(HOSTNAME, "old"), is_in(ZONE, ZONE_B))
    batch = [pod("p", claims=["c"])]

    assert hosts(snapshot(pods=batch, storage=_bound(pinned))) == {"p": "NO_HOST"}
    assert values_launched(snapshot(pods=batch, storage=_bound(pinned, is_local=True)), ZONE) == [
        [ZONE_B]
    ]


def test_a_volume_that_is_on_one_host_is_used_there() -> None:
    here = term(is_in(HOSTNAME, "b"))
    cluster = snapshot(
        nodes=[node("a"), node("b")], pods=[pod("p", claims=["c"])], storage=_bound(here)
    )

    assert hosts(cluster) == {"p": "b"}


def test_volumes_decide_where_a_pod_goes_but_not_which_domains_its_spread_counts() -> None:
    """The volume does not limit the spread: zone-b and zone-c still count for the minimum."""
    web = {"app": "web"}
    rule = spread(ZONE, web)
    cluster = snapshot(
        nodes=[node("n", zone=ZONE_A, cpu="0")],
        pods=[
            pod("old", labels=web, on="n"),
            pod("p", labels=web, claims=["c"], spreads=[rule]),
        ],
        storage=_bound(IN_A),
    )

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_a_volume_narrows_a_claim_and_a_claim_the_alternatives() -> None:
    cluster = snapshot(
        pods=[pod("first", cpu="1", selector={ZONE: ZONE_A}), pod("p", claims=["c"])],
        storage=_bound(IN_B, IN_A),
    )

    assert hosts(cluster) == {"first": "default-0", "p": "default-0"}


@pytest.mark.parametrize(
    ("where", "host"),
    [
        (term(is_in("rack", "1")), "NO_HOST"),
        (term(not_in("rack", "1")), "default-0"),
        (term(absent("rack")), "default-0"),
        (term(is_in(ARCH, "arm64")), "NO_HOST"),
    ],
)
def test_what_a_volume_asks_of_a_node_must_be_defined_there(where: NodeTerm, host: str) -> None:
    assert hosts(snapshot(pods=[pod("p", claims=["c"])], storage=_bound(where))) == {"p": host}


def test_a_label_that_the_pod_only_excludes_is_not_defined_for_its_volume() -> None:
    """Karpenter would label a new node as if the volume were there."""
    shuns = pod("p", claims=["c"], selector=[not_in("rack", "2")])

    assert hosts(snapshot(pods=[shuns], storage=_bound(term(is_in("rack", "1"))))) == {
        "p": "NO_HOST"
    }
