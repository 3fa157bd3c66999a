"""Requirement sets as numbers: joining numbers must be joining sets."""

from hypothesis import given
from hypothesis import strategies as st

from karpy.core.scheduling.instancetypes import TypeTable, members
from karpy.core.scheduling.signatures import NEVER, Signatures
from karpy.model.instances import InstanceType
from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.requirements import Requirements, merge, why_disjoint, why_incompatible
from tests.builders import is_in, not_in
from tests.core.scheduling.drawing import KEYS, KNOWN, catalogs, requirement_sets, values

sets = requirement_sets(*KEYS)
several = st.lists(sets, min_size=1, max_size=5)
labels = st.dictionaries(st.sampled_from(KEYS), values)


def _signatures(types: list[InstanceType] | None = None) -> Signatures:
    return Signatures(TypeTable(types or [], KNOWN))


@given(sets, sets)
def test_joining_is_merging_if_compatible(have: Requirements, wanted: Requirements) -> None:
    signatures = _signatures()
    signature, required = signatures.intern(have), signatures.pod_requirements(wanted)

    joined = signatures.join(signature, required)

    is_compatible = why_incompatible(have, wanted, KNOWN) is None
    assert (joined != NEVER) == is_compatible
    assert joined == (signatures.intern(merge(have, wanted)) if is_compatible else NEVER)
    assert signatures.join(signature, required) == joined, "remembered"


@given(sets, sets)
def test_joining_twice_changes_nothing(have: Requirements, wanted: Requirements) -> None:
    signatures = _signatures()
    required = signatures.pod_requirements(wanted)
    joined = signatures.join(signatures.intern(have), required)

    again = joined if joined == NEVER else signatures.join(joined, required)

    assert again == joined


@given(several, sets)
def test_what_can_be_joined_is_never_missed(
    known: list[Requirements], wanted: Requirements
) -> None:
    """A signature too many costs time; one too few makes a pod stay pending."""
    signatures = _signatures()
    numbers = [signatures.intern(each) for each in known]
    required = signatures.pod_requirements(wanted)

    maybe = set(members(signatures.joinable(required)))

    assert {each for each in numbers if signatures.join(each, required) != NEVER} <= maybe


@given(several)
def test_equal_sets_have_one_number(known: list[Requirements]) -> None:
    signatures = _signatures()
    numbers = [signatures.intern(each) for each in known]

    assert [signatures.requirements[number] for number in numbers] == known
    assert [signatures.intern(dict(each)) for each in known] == numbers


@given(catalogs, sets)
def test_a_mask_holds_the_types_that_suit_and_are_sold(
    types: list[InstanceType], wanted: Requirements
) -> None:
    signatures = _signatures(types)

    mask = signatures.masks[signatures.intern(wanted)]

    assert list(members(mask)) == [
        bit
        for bit, each in enumerate(signatures.table.types)
        if why_disjoint(wanted, each.requirements) is None
        and any(
            offering.is_available and why_incompatible(wanted, offering.requirements, KNOWN) is None
            for offering in each.offerings
        )
    ]


@given(labels, sets)
def test_labels_fit_as_an_existing_node_would(have: dict[str, str], wanted: Requirements) -> None:
    signatures = _signatures()
    required = signatures.pod_requirements(wanted)
    node = {key: is_in(key, value) for key, value in have.items()}

    expected = why_incompatible(node, wanted) is None

    assert signatures.label_fits(have, 0, required) == expected
    assert signatures.label_fits(have, 0, required) == expected, "remembered"


@given(sets, st.sets(st.sampled_from(["a", "b", "1"])))
def test_narrowing_leaves_the_chosen_domains(have: Requirements, chosen: set[str]) -> None:
    names = ("1", "a", "b")
    domains = sum(1 << bit for bit, name in enumerate(names) if name in chosen)
    signatures = _signatures()

    narrowed = signatures.narrow(signatures.intern(have), ZONE, names, domains)

    assert signatures.requirements[narrowed] == merge(have, {ZONE: is_in(ZONE, *chosen)})


def test_a_claim_has_no_hostname_that_a_pod_could_require() -> None:
    signatures = _signatures()
    empty = signatures.intern({})

    named = signatures.pod_requirements({HOSTNAME: is_in(HOSTNAME, "n1")})
    unnamed = signatures.pod_requirements({HOSTNAME: not_in(HOSTNAME, "n1")})

    assert (signatures.join(empty, named), signatures.joinable(named)) == (NEVER, 0)
    assert signatures.join(empty, unnamed) == empty
    assert list(members(signatures.joinable(unnamed))) == [empty]
