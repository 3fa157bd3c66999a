"""Labels that claims and nodes of earlier releases do not have yet."""

from msgspec.structs import replace

from karpy.core.lifecycle.identities import class_label, with_labels
from karpy.core.lifecycle.outcomes import Outcome
from karpy.model.records import ClaimRecord, NodeRecord


def hydrate_claim(claim: ClaimRecord) -> Outcome:
    """Write on a claim of which node class it is."""
    return Outcome(replace(claim, meta=with_labels(claim.meta, _labels(claim))))


def hydrate_node(node: NodeRecord, claim: ClaimRecord) -> Outcome:
    """Write on a node of which node class its claim is."""
    return Outcome(node=replace(node, meta=with_labels(node.meta, _labels(claim))))


def _labels(claim: ClaimRecord) -> dict[str, str]:
    ref = claim.node_class
    return {class_label(ref): ref.name} if ref.kind else {}
