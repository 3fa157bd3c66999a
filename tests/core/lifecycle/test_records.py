from msgspec.structs import replace

from karpy.core.lifecycle.changes import (
    Changes,
    hydrate_claim,
    hydrate_node,
)
from karpy.model.records import NodeClassRef
from tests.core.lifecycle.scenes import CLASS_LABEL, claim, node


def test_claims_and_nodes_name_their_node_class() -> None:
    hydrated, host = hydrate_claim(claim()).claim, hydrate_node(node(), claim()).node

    assert hydrated == claim(labels=CLASS_LABEL)
    assert host == node(labels=CLASS_LABEL)


def test_a_claim_without_a_node_class_is_left_alone() -> None:
    bare = replace(claim(), node_class=NodeClassRef())

    assert hydrate_claim(bare) == Changes(bare)
