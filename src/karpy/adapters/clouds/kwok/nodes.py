"""Conversion of KWOK's machines to Nodes and back."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from karpy.adapters.clouds.kwok.naming import node_name, provider_id
from karpy.adapters.clouds.kwok.offers import PricedType
from karpy.codec.fields import JsonObject
from karpy.codec.unreadable import node_record
from karpy.model.constraints import NO_EXECUTE, UNREGISTERED_TAINT
from karpy.model.instances import MICROS_PER_DOLLAR, allocatable
from karpy.model.kinds import NODE
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, OS, ZONE
from karpy.model.records import ClaimRecord
from karpy.model.requirements import Requirements
from karpy.model.resources import Resources, format_quantity
from karpy.ports.cloud import LaunchSpec, Machine

ANIMATED: Final = "kwok.x-k8s.io/node"
"""Label and annotation of a Node whose kubelet KWOK simulates."""
FAKE: Final = "fake"
PARTITION: Final = "kwok-partition"
"""The label that assigns a Node to one of several KWOK controllers; always `a`, as in Karpenter."""
PRICE: Final = "eks-node-viewer/instance-price"
"""The label from which eks-node-viewer reads dollars per hour."""

_ALIASES: Final = (("beta.kubernetes.io/arch", ARCH), ("beta.kubernetes.io/os", OS))


def new_machine(spec: LaunchSpec, offer: PricedType, now: datetime) -> Machine:
    """Return the machine of a launch as an offer."""
    type_, offering = offer.type, offer.offering
    capacity = {**type_.capacity, **offering.capacity_override}
    usable = allocatable(capacity, {**type_.overhead, **offering.overhead_override})
    # Differs: capacity in the status of a NodeClaim on KWOK: Karpenter writes what the claim
    # requests, although the node offers more to pods; Karpy writes the capacity of the node, so
    # that limits of the NodePool count all of it.
    return Machine(
        provider_id=provider_id(node_name(spec.claim, spec.token)),
        claim=spec.claim,
        instance_type=type_.name,
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        created=now,
        labels=_labels(spec, offer),
        annotations={**spec.annotations, ANIMATED: FAKE},
        capacity={**spec.requests, **capacity},
        allocatable={**spec.requests, **usable},
    )


def claimed_machine(claim: ClaimRecord, now: datetime) -> Machine:
    """Return the machine of a launched NodeClaim, from the claim alone."""
    labels = {**claim.meta.labels, HOSTNAME: claim.name, ANIMATED: FAKE}
    return Machine(
        provider_id=claim.provider_id,
        claim=claim.name,
        instance_type=labels.get(INSTANCE_TYPE, ""),
        zone=labels.get(ZONE, ""),
        capacity_type=labels.get(CAPACITY_TYPE, ""),
        created=claim.meta.created or now,
        labels=labels,
        annotations={**claim.meta.annotations, ANIMATED: FAKE},
        capacity=claim.capacity,
        allocatable=claim.allocatable,
    )


def is_machine(obj: JsonObject) -> bool:
    """Say whether a Node is a machine of this provider, by its provider ID."""
    spec, ours = obj.get("spec"), provider_id(obj["metadata"]["name"])
    return isinstance(spec, dict) and bool(spec.get("providerID") == ours)


def read_machine(obj: JsonObject, now: datetime) -> Machine:
    """Read a Node as a machine; a deleting Node is a terminating machine."""
    node = node_record(obj)
    labels = node.meta.labels
    return Machine(
        provider_id=node.provider_id,
        claim=labels.get(HOSTNAME, ""),
        instance_type=labels.get(INSTANCE_TYPE, ""),
        zone=labels.get(ZONE, ""),
        capacity_type=labels.get(CAPACITY_TYPE, ""),
        created=node.meta.created or now,
        labels=labels,
        annotations=node.meta.annotations,
        capacity=node.capacity,
        allocatable=node.allocatable,
        is_terminating=node.meta.is_deleting,
    )


def write_node(name: str, machine: Machine) -> JsonObject:
    """
    Return the Node of a machine, with the unregistered taint.

    It also has the deprecated labels that a kubelet sets; otherwise kube-controller-manager would
    add them with a second write.
    """
    aliases = {old: machine.labels[new] for old, new in _ALIASES if new in machine.labels}
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.name,
        "metadata": {
            "name": name,
            "labels": {**aliases, **machine.labels},
            "annotations": dict(machine.annotations),
        },
        "spec": {
            "providerID": machine.provider_id,
            "taints": [{"key": UNREGISTERED_TAINT, "effect": NO_EXECUTE}],
        },
        "status": {
            "capacity": _quantities(machine.capacity),
            "allocatable": _quantities(machine.allocatable),
            "phase": "Pending",
        },
    }


def _labels(spec: LaunchSpec, offer: PricedType) -> dict[str, str]:
    """Return the labels that follow from launch and offer, and those for KWOK and its viewers."""
    return {
        **spec.labels,
        **_certain(spec.requirements),
        INSTANCE_TYPE: offer.type.name,
        **_certain(offer.type.requirements),
        **_certain(offer.offering.requirements),
        PRICE: _dollars(offer.offering.price),
        PARTITION: "a",
        HOSTNAME: spec.claim,
        ANIMATED: FAKE,
    }


def _certain(requirements: Requirements) -> Mapping[str, str]:
    return {
        key: next(iter(each.values))
        for key, each in requirements.items()
        if not each.complement and len(each.values) == 1
    }


def _dollars(price: int) -> str:
    dollars, micros = divmod(price, MICROS_PER_DOLLAR)
    return f"{dollars}.{micros:06d}"


def _quantities(amounts: Resources) -> dict[str, str]:
    return {name: format_quantity(amount, name) for name, amount in sorted(amounts.items())}
