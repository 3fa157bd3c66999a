"""CustomResourceDefinitions: the kinds that Karpenter and Karpy bring into a cluster."""

from typing import Annotated, Final

import yaml
from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.schemas.capacitybuffers import CapacityBufferStatus, RuledCapacityBufferSpec
from karpy.codec.schemas.ec2nodeclasses import EC2NodeClassStatus, RuledEC2NodeClassSpec
from karpy.codec.schemas.kwoknodeclasses import KWOKNodeClassSpec, ReadyKWOKNodeClassStatus
from karpy.codec.schemas.nodeclaims import NodeClaimStatus, RuledNodeClaimSpec
from karpy.codec.schemas.nodeoverlays import NodeOverlayStatus, RuledNodeOverlaySpec
from karpy.codec.schemas.nodepools import NodePoolStatus, RuledNodePoolSpec
from karpy.codec.schemas.structural import structural
from karpy.codec.schemas.wire import Wire, about
from karpy.model.kinds import (
    CAPACITY_BUFFER,
    EC2_NODE_CLASS,
    KWOK_NODE_CLASS,
    NODE_CLAIM,
    NODE_OVERLAY,
    NODE_POOL,
    Kind,
)

_WIDTH: Final = 100
_WIDE: Final = 1
"""The priority of columns that only `-o wide` shows."""


class _TypeMeta(Wire, frozen=True):
    """What every object has."""

    api_version: Annotated[
        str | None, about("The API group and version that the object is written in.")
    ] = None
    kind: Annotated[str | None, about("What the object is.")] = None


class Column(Struct, frozen=True):
    """A column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0

    def to_json(self) -> JsonObject:
        made: JsonObject = {"jsonPath": self.path, "name": self.name, "type": self.type}
        return {**made, "priority": self.priority} if self.priority else made


class CustomKind(Struct, frozen=True):
    """A custom kind, with all that its CustomResourceDefinition needs."""

    kind: Kind
    about: str
    spec: object
    """The type of `spec`."""
    status: object
    columns: tuple[Column, ...] = ()
    short_names: tuple[str, ...] = ()
    category: str = "karpenter"
    needs_spec: bool = True
    replicas: tuple[str, str] | None = None
    """Paths of the replicas that `kubectl scale` writes, and of those that it reads."""

    @property
    def name(self) -> str:
        """As the API server calls the definition: `nodepools.karpenter.sh`."""
        return self.kind.resource

    def to_json(self) -> JsonObject:
        """Return the CustomResourceDefinition."""
        kind = self.kind
        names: JsonObject = {
            "categories": [self.category],
            "kind": kind.name,
            "listKind": f"{kind.name}List",
            "plural": kind.plural,
            "singular": kind.name.lower(),
        }
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": kind.group,
                "names": names,
                "scope": "Namespaced" if kind.is_namespaced else "Cluster",
                "versions": [self._version()],
            },
        }

    def to_yaml(self) -> str:
        """Return the CustomResourceDefinition as YAML for `kubectl apply`."""
        return yaml.safe_dump(self.to_json(), width=_WIDTH)

    def _version(self) -> JsonObject:
        subresources: JsonObject = {"status": {}}
        if self.replicas:
            written, read = self.replicas
            subresources["scale"] = {"specReplicasPath": written, "statusReplicasPath": read}
        version: JsonObject = {
            "name": self.kind.version,
            "schema": {"openAPIV3Schema": self.schema()},
            "served": True,
            "storage": True,
            "subresources": subresources,
        }
        if self.columns:
            version["additionalPrinterColumns"] = [each.to_json() for each in self.columns]
        return version

    def schema(self) -> JsonObject:
        """Return the schema of a whole object."""
        made: JsonObject = {
            "description": self.about,
            "properties": {
                **structural(_TypeMeta)["properties"],
                "metadata": {"type": "object"},
                "spec": structural(self.spec),
                "status": structural(self.status),
            },
            "type": "object",
        }
        return {**made, "required": ["spec"]} if self.needs_spec else made


_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")


def _condition(type_: str, priority: int = 0) -> Column:
    return Column(type_, f'.status.conditions[?(@.type=="{type_}")].status', priority=priority)


def _label(name: str, key: str, priority: int = 0) -> Column:
    escaped = key.replace(".", "\\.")
    return Column(name, f".metadata.labels.{escaped}", priority=priority)


CUSTOM_KINDS: Final = (
    CustomKind(
        NODE_POOL,
        "A pool of nodes that grows and shrinks with the pods that need it.",
        RuledNodePoolSpec,
        NodePoolStatus,
        columns=(
            Column("NodeClass", ".spec.template.spec.nodeClassRef.name"),
            Column("Nodes", ".status.nodes"),
            _condition("Ready"),
            _AGE,
            Column("Weight", ".spec.weight", "integer", _WIDE),
            Column("CPU", ".status.resources.cpu", priority=_WIDE),
            Column("Memory", ".status.resources.memory", priority=_WIDE),
        ),
        replicas=(".spec.replicas", ".status.nodes"),
    ),
    CustomKind(
        NODE_CLAIM,
        "A machine that was asked for, from the request until it is gone.",
        RuledNodeClaimSpec,
        NodeClaimStatus,
        columns=(
            _label("Type", "node.kubernetes.io/instance-type"),
            _label("Capacity", "karpenter.sh/capacity-type"),
            _label("Zone", "topology.kubernetes.io/zone"),
            Column("Node", ".status.nodeName"),
            _condition("Ready"),
            _AGE,
            Column("ImageID", ".status.imageID", priority=_WIDE),
            Column("ID", ".status.providerID", priority=_WIDE),
            _label("NodePool", "karpenter.sh/nodepool", _WIDE),
            Column("NodeClass", ".spec.nodeClassRef.name", priority=_WIDE),
            _condition("Drifted", _WIDE),
        ),
    ),
    CustomKind(
        NODE_OVERLAY,
        "Another price or more resources for some instance types than the cloud says.",
        RuledNodeOverlaySpec,
        NodeOverlayStatus,
        columns=(
            _condition("Ready"),
            _AGE,
            Column("Weight", ".spec.weight", "integer", _WIDE),
        ),
        short_names=("overlays",),
    ),
    CustomKind(
        CAPACITY_BUFFER,
        "Room that is kept free, so that pods need not wait for nodes.",
        RuledCapacityBufferSpec,
        CapacityBufferStatus,
        columns=(
            Column("Strategy", ".spec.provisioningStrategy"),
            Column("PodTemplate", ".status.podTemplateRef.name"),
            Column("Replicas", ".status.replicas", "integer"),
            Column("ConditionsType", ".status.conditions[*].type"),
            Column("ConditionsStatus", ".status.conditions[*].status"),
            Column("ConditionsReason", ".status.conditions[*].reason"),
            _AGE,
        ),
        short_names=("cb",),
        category="autoscaling",
    ),
    CustomKind(
        KWOK_NODE_CLASS,
        "How to launch machines that exist only on paper, for tests and simulations.",
        KWOKNodeClassSpec,
        ReadyKWOKNodeClassStatus,
        short_names=("kwoknc", "kwokncs"),
        needs_spec=False,
    ),
    CustomKind(
        EC2_NODE_CLASS,
        "How to launch machines in EC2.",
        RuledEC2NodeClassSpec,
        EC2NodeClassStatus,
        columns=(
            _condition("Ready"),
            _AGE,
            Column("Role", ".spec.role", priority=_WIDE),
        ),
        short_names=("ec2nc", "ec2ncs"),
        needs_spec=False,
    ),
)
"""The kinds that most users write come first."""
