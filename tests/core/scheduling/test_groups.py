"""Counts over domains: masks must give the same answer as a plain loop."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from karpy.core.scheduling.instancetypes import TypeTable, members
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.topologygroups import (
    AvoidedGroup,
    DomainGroup,
    DomainTable,
    GroupKind,
    HostGroup,
)
from karpy.model.constraints import LabelSelector
from karpy.model.requirements import Requirement
from tests.core.scheduling.drawing import CUSTOM, KNOWN, requirements_on

NAMES = ("a", "b", "c", "d")
ALL = LabelSelector()
HERE = frozenset({"default"})

domain_sets = st.frozensets(st.integers(0, len(NAMES) - 1))
pods_in = st.lists(st.integers(0, len(NAMES) - 1), max_size=12)
skews = st.integers(1, 3)


def _table(key: str = CUSTOM) -> DomainTable:
    return DomainTable(key, NAMES, Signatures(TypeTable([], KNOWN)))


def _mask(numbers: frozenset[int]) -> int:
    return sum(1 << number for number in numbers)


def _spread(where: list[int], known: frozenset[int], max_skew: int) -> DomainGroup:
    group = DomainGroup(GroupKind.SPREAD, _table(), HERE, ALL)
    group.known, group.max_skew = _mask(known), max_skew
    for domain in where:
        group.add(1 << domain)
    return group


def _hosts(where: list[int]) -> HostGroup:
    group = HostGroup(GroupKind.SPREAD, "host", HERE, ALL)
    for node in where:
        group.add(node)
    return group


def _avoided(placed: dict[int, frozenset[int]]) -> AvoidedGroup:
    group = AvoidedGroup(GroupKind.ANTI_AFFINITY, _table(), HERE, ALL)
    for node, domains in placed.items():
        group.add(node, _mask(domains))
    return group


@given(
    pods_in,
    domain_sets,
    skews,
    st.tuples(domain_sets, st.integers(0, 1), st.integers(0, 5), st.booleans()),
)
def test_within_the_skew_is_what_a_plain_loop_finds(
    where: list[int],
    known: frozenset[int],
    max_skew: int,
    asked: tuple[frozenset[int], int, int, bool],
) -> None:
    pod_side, is_selected, min_domains, honors_affinity = asked
    group = _spread(where, known, max_skew)
    group.min_domains, group.honors_affinity = min_domains, honors_affinity

    counts = Counter(where)
    considered = known & pod_side if honors_affinity else known
    is_enough = len(considered) >= min_domains
    least = min((counts[each] for each in considered), default=0) if is_enough else 0

    assert list(members(group.within_skew(_mask(pod_side), is_selected))) == [
        each for each in sorted(known) if counts[each] + is_selected - least <= max_skew
    ]


@given(pods_in)
def test_a_group_counts_each_added_pod(where: list[int]) -> None:
    group = _spread(where, frozenset(), 1)
    group.add(0)

    assert group.counts == [where.count(domain) for domain in range(len(NAMES))]
    assert set(members(group.nonzero)) == set(where)


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4))
def test_hosts_with_so_many_pods_are_what_a_count_finds(where: list[int], count: int) -> None:
    group = _hosts(where)

    assert list(members(group.nodes_with(count))) == [
        node for node in range(6) if where.count(node) >= count
    ]


@given(st.lists(st.tuples(st.integers(0, 5), domain_sets), max_size=8), domain_sets)
def test_a_claim_that_is_narrowed_frees_domains_without_other_pods(
    placed: list[tuple[int, frozenset[int]]], left: frozenset[int]
) -> None:
    now = dict(placed)
    group = _avoided(now)

    narrowed = {node: domains & left if node == 0 else domains for node, domains in now.items()}
    group.update_claim(0, lambda node: _mask(narrowed[node]))

    was_settled = len(now.get(0, frozenset())) == 1
    after = now if was_settled else narrowed
    assert set(members(group.nonzero)) == set().union(*after.values())


@given(requirements_on(CUSTOM))
def test_a_requirement_leaves_the_domains_it_contains(requirement: Requirement) -> None:
    table = _table()

    assert list(members(table.allowed_by(requirement))) == [
        number for number, name in enumerate(NAMES) if name in requirement
    ]


def test_domains_are_numbered_by_name() -> None:
    table = DomainTable(CUSTOM, ["b", "a", "b"], Signatures(TypeTable([], KNOWN)))

    assert table.names == ("a", "b")
    assert (table.bit("a"), table.bit("b"), table.bit("z")) == (0b01, 0b10, 0)
