from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.codec.fields import Fields
from karpy.codec.templates import read_template
from karpy.core.nodepool.hash import VERSION, Stamped, hash_template, stamp
from karpy.model.conditions import TRUE, Condition
from karpy.model.constraints import Taint
from karpy.model.labels import NODE_POOL_HASH, NODE_POOL_HASH_VERSION
from karpy.model.pools import PoolTemplate
from tests.builders.pods import NOON
from tests.core.nodepool.golden import GOLDEN
from tests.core.nodepool.records import claim, pool

EMPTY_HASH = "17307646073972311821"
CURRENT = {NODE_POOL_HASH: EMPTY_HASH, NODE_POOL_HASH_VERSION: VERSION}
OLD = {NODE_POOL_HASH: "1", NODE_POOL_HASH_VERSION: "v2"}
words = st.text(max_size=8)
taints = st.builds(Taint, words, words, words)


@pytest.mark.parametrize(("digest", "template"), GOLDEN.values(), ids=list(GOLDEN))
def test_a_template_has_the_hash_that_karpenter_gives_it(
    digest: str, template: dict[str, Any]
) -> None:
    """With another hash, every node of a migrated cluster would drift."""
    read = read_template(Fields({"spec": {"template": template}}))

    assert hash_template(read) == digest


@given(st.lists(taints, max_size=5), st.randoms())
def test_the_order_of_taints_does_not_matter(some: list[Taint], random: Random) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)

    before = hash_template(PoolTemplate(taints=tuple(some)))

    assert hash_template(PoolTemplate(taints=tuple(shuffled))) == before


@given(st.dictionaries(words, words, max_size=5))
def test_the_order_of_labels_does_not_matter(labels: dict[str, str]) -> None:
    turned = dict(reversed(labels.items()))

    assert hash_template(PoolTemplate(labels=labels)) == hash_template(PoolTemplate(labels=turned))


@given(st.dictionaries(words, words, min_size=1, max_size=5))
def test_labels_and_annotations_are_not_the_same(texts: dict[str, str]) -> None:
    as_labels = hash_template(PoolTemplate(labels=texts))

    assert as_labels != hash_template(PoolTemplate(annotations=texts))


def test_a_template_of_nothing_has_a_hash() -> None:
    assert hash_template(PoolTemplate()) == EMPTY_HASH


def test_a_new_pool_gets_its_hash() -> None:
    stamped = stamp(pool(), EMPTY_HASH, ())

    assert stamped == Stamped(pool(annotations=CURRENT))


def test_a_pool_that_has_its_hash_stays_the_same_object() -> None:
    before = pool(annotations={**CURRENT, "note": "x"})

    stamped = stamp(before, EMPTY_HASH, ())

    assert stamped.pool is before


def test_a_changed_template_changes_the_pool_and_no_claim() -> None:
    """Drift is the difference between the hashes of NodePool and NodeClaim."""
    claims = [claim("web-1", annotations=CURRENT)]

    stamped = stamp(pool(annotations=CURRENT), "2", claims)

    assert stamped == Stamped(pool(annotations={**CURRENT, NODE_POOL_HASH: "2"}))


def test_claims_are_hashed_anew_if_the_pool_was_hashed_in_another_way() -> None:
    claims = [
        claim("web-1", annotations=OLD),
        claim("web-2"),
        claim("web-3", annotations={**CURRENT, NODE_POOL_HASH: "3"}),
    ]

    stamped = stamp(pool(annotations=OLD), EMPTY_HASH, claims)

    assert stamped == Stamped(
        pool(annotations=CURRENT),
        (claim("web-1", annotations=CURRENT), claim("web-2", annotations=CURRENT)),
    )


def test_a_claim_that_has_drifted_stays_so() -> None:
    """Only its old hash shows the drift; whether it would still drift is not known."""
    drifted = claim(
        "web-1", annotations=OLD, conditions=[Condition("Drifted", TRUE, NOON, "NodePoolDrifted")]
    )

    stamped = stamp(pool(annotations=OLD), EMPTY_HASH, [drifted])

    kept = {NODE_POOL_HASH: "1", NODE_POOL_HASH_VERSION: VERSION}
    assert stamped.claims == (replace(drifted, meta=replace(drifted.meta, annotations=kept)),)
