from collections import Counter
from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.nominations import (
    NOMINATED_MAX,
    PATIENCE,
    is_in_vain,
    pods_to_nominate,
    without_node,
)
from karpy.core.scheduling.decide import decide
from karpy.model.instances import Catalog
from karpy.model.pods import Pod
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


def names(told: frozenset[str]) -> Counter[str]:
    """Count the pods of each crowd."""
    return Counter(key.partition("/")[2].partition("-")[0] for key in told)


def test_pods_of_several_sizes_that_need_several_nodes_are_nominated() -> None:
    few = decided(crowd("large", 4, "3800m", "7500Mi"), crowd("small", 3, "950m", "3900Mi"))

    assert len(few[1].launches) == 2
    assert names(pods_to_nominate(*few)) == {"large": 4, "small": 3}


def test_pods_of_one_node_need_no_nomination() -> None:
    one = decided(crowd("large", 2, "3800m", "7500Mi"), crowd("small", 1, "950m", "3900Mi"))

    assert len(one[1].launches) == 1
    assert not pods_to_nominate(*one)


def test_pods_that_are_alike_can_go_anywhere() -> None:
    asked, verdict = decided(crowd("web", 240, "900m", "1Gi"))

    assert len(verdict.launches) > 1
    assert not pods_to_nominate(asked, verdict)


def test_of_very_many_pods_the_largest_are_nominated() -> None:
    many = decided(
        crowd("huge", 40, "7", "3Gi"),
        crowd("small", NOMINATED_MAX, "900m", "1Gi"),
        crowd("stout", 60, "1", "28Gi"),
    )

    told = names(pods_to_nominate(*many))

    assert told == {"huge": 40, "stout": 60, "small": NOMINATED_MAX - 100}


@pytest.mark.parametrize("verdict", [Verdict(), decided(crowd("web", 1, "1", "1Gi"))[1]])
def test_pods_that_are_not_there_are_not_nominated(verdict: Verdict) -> None:
    assert not pods_to_nominate(snapshot(), verdict)


def test_only_waiting_pods_without_a_nomination_are_nominated() -> None:
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


def test_a_nomination_to_a_missing_node_is_in_vain() -> None:
    assert is_in_vain(None, is_emptying=False, now=NOON)
