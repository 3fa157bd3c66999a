from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.nominations import (
    NODES_MIN,
    NOMINATED_MAX,
    PATIENCE,
    is_in_vain,
    pods_to_nominate,
    without_node,
)
from karpy.core.scheduling.decide import decide
from karpy.model.instances import Catalog
from karpy.model.pods import Pod
from karpy.model.settings import PodNomination
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from tests.builders.clouds import WELL_KNOWN_HERE, instance_type
from tests.builders.clusters import snapshot
from tests.builders.pods import NOON, pod
from tests.core.lifecycle.scenes import claim

LONG = PATIENCE
SHORT = PATIENCE - timedelta(seconds=1)
SLIM = instance_type("slim", cpu="16", memory="32Gi", dollars=0.43)
ROOMY = instance_type("roomy", cpu="16", memory="64Gi", dollars=0.47)


def crowd(name: str, count: int, cpu: str, memory: str) -> list[Pod]:
    pods = (pod(f"{name}-{each}", cpu=cpu, memory=memory) for each in range(count))
    return [replace(each, uid=f"{hash_of(each.name):03}") for each in pods]


def hash_of(name: str) -> int:
    """Return a number that looks like chance and is none."""
    number: int = sum(ord(letter) * 31**place for place, letter in enumerate(name))
    return number % 997


def decided(*crowds: list[Pod]) -> tuple[Snapshot, Verdict]:
    pods = [each for some in crowds for each in some]
    asked = snapshot(pods=pods, catalog=Catalog((SLIM, ROOMY), well_known=WELL_KNOWN_HERE))
    return asked, decide(asked)


def told_of(asked: Snapshot, verdict: Verdict) -> frozenset[str]:
    """Return whom to tell, on which both who can wait and who cannot agree."""
    told = {
        pods_to_nominate(asked, verdict, which)
        for which in (PodNomination.FEW, PodNomination.ALWAYS)
    }
    assert len(told) == 1
    return told.pop()


def names(told: frozenset[str]) -> set[str]:
    return {key.partition("/")[2].partition("-")[0] for key in told}


def test_where_one_size_has_nodes_of_its_own_all_others_are_told() -> None:
    large, small = crowd("large", 60, "3800m", "7500Mi"), crowd("small", 48, "950m", "3900Mi")

    asked, verdict = decided(large, small)

    assert {each.options[0].instance_type for each in verdict.launches} == {"slim", "roomy"}
    assert told_of(asked, verdict) == {each.key for each in small}


def test_a_few_pods_of_that_size_may_be_among_others() -> None:
    large, small = crowd("large", 62, "3800m", "7500Mi"), crowd("small", 50, "950m", "3900Mi")

    assert told_of(*decided(large, small)) == {each.key for each in small}


def test_where_pods_mix_the_largest_are_told_and_most_if_there_is_time() -> None:
    huge, large = crowd("huge", 14, "7", "8Gi"), crowd("large", 38, "3500m", "3Gi")
    small = crowd("small", 50, "100m", "100Mi")

    mixed = decided(huge, large, small)

    assert names(pods_to_nominate(*mixed, PodNomination.ALWAYS)) == {"huge", "large"}
    assert names(pods_to_nominate(*mixed, PodNomination.FEW)) == {"huge"}


def test_if_the_largest_are_most_nobody_is_told_for_want_of_time() -> None:
    large, small = crowd("large", 60, "3500m", "3Gi"), crowd("small", 50, "100m", "100Mi")

    mixed = decided(large, small)

    assert names(pods_to_nominate(*mixed, PodNomination.ALWAYS)) == {"large"}
    assert not pods_to_nominate(*mixed, PodNomination.FEW)


def test_if_the_others_are_more_than_the_large_ones_these_are_told() -> None:
    huge, large = crowd("huge", 4, "15800m", "8Gi"), crowd("large", 38, "3500m", "3Gi")
    small = crowd("small", 60, "100m", "100Mi")

    mixed = decided(huge, large, small)

    assert names(told_of(*mixed)) == {"huge", "large"}


def test_with_few_nodes_there_is_little_to_save() -> None:
    large, small = crowd("large", 12, "3800m", "7500Mi"), crowd("small", 16, "950m", "3900Mi")

    asked, verdict = decided(large, small)

    assert 1 < len(verdict.launches) < NODES_MIN
    assert not told_of(asked, verdict)


def test_too_many_pods_are_not_told() -> None:
    asked, verdict = decided(
        crowd("large", 4000, "3500m", "3Gi"), crowd("small", 2000, "900m", "1Gi")
    )

    assert len(asked.pods) > NOMINATED_MAX
    assert not told_of(asked, verdict)


def test_pods_that_are_alike_can_go_anywhere() -> None:
    asked, verdict = decided(crowd("web", 240, "900m", "1Gi"))

    assert len(verdict.launches) > NODES_MIN
    assert not told_of(asked, verdict)


@pytest.mark.parametrize("verdict", [Verdict(), decided(crowd("web", 1, "1", "1Gi"))[1]])
def test_without_pods_or_a_choice_nobody_needs_a_seat(verdict: Verdict) -> None:
    assert not told_of(snapshot(), verdict)


def test_who_waits_and_knows_of_no_node_is_told() -> None:
    waits, goes = pod("a"), replace(pod("b"), is_deleting=True)
    knows, runs = replace(pod("c"), nominated_node="n1"), replace(pod("d"), node_name="n1")

    assert without_node([waits, goes, knows, runs]) == [waits]


@pytest.mark.parametrize(
    ("since", "is_emptying", "expected"),
    [(LONG, False, True), (SHORT, False, False), (LONG, True, False)],
)
def test_a_pod_waits_for_its_node_for_a_while(
    since: timedelta, *, is_emptying: bool, expected: bool
) -> None:
    made = claim(said={"Initialized": since})

    assert is_in_vain(made, is_emptying=is_emptying, now=NOON) is expected


def test_a_pod_waits_until_its_node_is_ready() -> None:
    assert not is_in_vain(claim(), is_emptying=False, now=NOON)


def test_nobody_waits_for_a_node_that_is_not_there() -> None:
    assert is_in_vain(None, is_emptying=False, now=NOON)
