"""What Karpy writes into the metadata of objects: finalizer, labels, annotations."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes
from karpy.model.kinds import NODE, NODE_CLAIM, POD
from karpy.model.labels import TERMINATION_FINALIZER
from karpy.model.notices import Subject
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, Identity, NodeClassRef, NodeRecord

FINALIZER: Final = TERMINATION_FINALIZER
_SHOWN_MAX: Final = 5


def with_finalizer(meta: Identity) -> Identity:
    """Add the finalizer; the API server lets no deleting object take a new one."""
    if FINALIZER in meta.finalizers or meta.is_deleting:
        return meta
    return replace(meta, finalizers=(*meta.finalizers, FINALIZER))


def without_finalizer(meta: Identity) -> Identity:
    """Remove the finalizer."""
    return replace(meta, finalizers=tuple(each for each in meta.finalizers if each != FINALIZER))


def with_labels(meta: Identity, labels: Mapping[str, str]) -> Identity:
    """Set labels, over those of the same key."""
    return replace(meta, labels={**meta.labels, **labels})


def with_annotations(meta: Identity, annotations: Mapping[str, str]) -> Identity:
    """Set annotations, over those of the same key."""
    return replace(meta, annotations={**meta.annotations, **annotations})


def class_label(node_class: NodeClassRef) -> str:
    """Return the key of the label that names the node class of a claim or node."""
    return f"{node_class.group}/{node_class.kind.lower()}"


def about_claim(claim: ClaimRecord) -> Subject:
    """Return the subject of an event about a NodeClaim."""
    return Subject(NODE_CLAIM, claim.name, uid=claim.meta.uid)


def about_node(node: NodeRecord) -> Subject:
    """Return the subject of an event about a Node."""
    return Subject(NODE, node.name, uid=node.meta.uid)


def about_pod(pod: Pod) -> Subject:
    """Return the subject of an event about a Pod."""
    return Subject(POD, pod.name, pod.namespace, pod.uid)


def listed(names: tuple[str, ...], most: int = _SHOWN_MAX) -> str:
    """Name the first few and count the rest: `a, b and 3 other(s)`."""
    hidden = len(names) - most
    text = ", ".join(names[:most])
    return f"{text} and {hidden} other(s)" if hidden > 0 else text


def hydrate_claim(claim: ClaimRecord) -> Changes:
    """Set the label of its node class on a claim that an earlier release has made."""
    return Changes(replace(claim, meta=with_labels(claim.meta, _labels(claim))))


def hydrate_node(node: NodeRecord, claim: ClaimRecord) -> Changes:
    """Set the label of its claim's node class on a node."""
    return Changes(node=replace(node, meta=with_labels(node.meta, _labels(claim))))


def _labels(claim: ClaimRecord) -> dict[str, str]:
    ref = claim.node_class
    return {class_label(ref): ref.name} if ref.kind else {}
