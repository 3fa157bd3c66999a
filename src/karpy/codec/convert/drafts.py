"""An object of the input during its conversion to objects of today."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.convert.conversion import Note, Product
from karpy.codec.convert.moves import Moves, placed
from karpy.codec.convert.objects import Found
from karpy.codec.convert.oldfields import OldFields
from karpy.codec.fields import JsonObject
from karpy.errors import ManifestInvalid

CORE: Final = "karpenter.sh/v1"
AWS_GROUP: Final = "karpenter.k8s.aws"
AWS: Final = f"{AWS_GROUP}/v1"
EC2_CLASS: Final = "EC2NodeClass"


class NamedCluster(Struct, frozen=True):
    """The name of a cluster, and the tags of its subnets and security groups."""

    name: str = ""
    subnet_tags: Mapping[str, str] = {}
    security_group_tags: Mapping[str, str] = {}


NO_CLUSTER: Final = NamedCluster()


class ConversionContext(Struct, frozen=True):
    """The options of a call, and what its other documents define."""

    role: str = ""
    """The IAM role for classes that name neither role nor instance profile."""
    profile: str = ""
    """The default instance profile of the old version's global settings."""
    classes: Mapping[str, tuple[str, str]] = {}
    """Group and kind of node classes by name."""
    cluster: NamedCluster = NO_CLUSTER
    """The cluster of pools that are converted from a source without a cluster name."""
    expiries: Mapping[str, str] = {}
    """`expireAfter` of NodePools, by name."""


class Converted(Struct, frozen=True):
    """Objects of today for one old object, and kubelet settings for their node class."""

    objects: tuple[JsonObject, ...]
    kubelet: JsonObject | None = None
    kubelet_path: str = ""


class Source(Struct, frozen=True):
    """A part of the input, and how it becomes objects of today."""

    found: Found
    change: Callable[[OldFields, ConversionContext], Converted]
    moves: Moves = {}
    """The new paths of its fields."""

    @property
    def where(self) -> str:
        return self.found.where


class ObjectDraft(Struct, frozen=True):
    """What one object of the input becomes."""

    file: str
    where: str
    objects: tuple[JsonObject, ...]
    notes: tuple[Note, ...] = ()
    is_converted: bool = False
    kubelet: JsonObject | None = None
    """Kubelet settings of a pool, which today belong to its node class."""
    kubelet_path: str = ""
    problems: tuple[ManifestInvalid, ...] = ()
    """What is wrong with it, whether or not there are objects."""
    is_refused: bool = False
    """Whether its objects are left out, since an API server would refuse one of them."""
    is_filled_in: bool = True
    """Whether no placeholder of a template is left in its objects."""
    source: Found | None = None
    """The object of the input; None if it cannot be read."""
    moves: Moves = {}

    @property
    def name(self) -> str:
        meta = self.objects[0].get("metadata") if self.objects else None
        if not isinstance(meta, dict):
            return ""
        return str(meta.get("name") or str(meta.get("generateName") or "").rstrip("-"))

    @property
    def is_ec2_class(self) -> bool:
        head = self.objects[0] if len(self.objects) == 1 else {}
        is_one = (head.get("apiVersion"), head.get("kind")) == (AWS, EC2_CLASS)
        return is_one and isinstance(head.get("spec"), dict)

    @property
    def class_name(self) -> str:
        """The EC2NodeClass that a pool or claim refers to in other documents, or nothing."""
        ref = self._class_ref()
        if (ref.get("group"), ref.get("kind")) != (AWS_GROUP, EC2_CLASS):
            return ""
        return str(ref.get("name") or "")

    @property
    def products(self) -> list[Product]:
        """The objects, with the source text or the comments of their author."""
        source = self.source
        if source is None:
            return [Product(each) for each in self.objects]
        if source.text and not self.is_converted:
            return [Product(each, source.text) for each in self.objects]
        if not source.comments or not self.objects:
            return [Product(each) for each in self.objects]
        comments = placed(source, self.moves, self.objects)
        pairs = zip(self.objects, comments, strict=True)
        return [Product(each, comments=tuple(about)) for each, about in pairs]

    def with_notes(self, *notes: Note) -> "ObjectDraft":
        return replace(self, notes=(*self.notes, *notes))

    def with_objects(self, objects: tuple[JsonObject, ...], *, is_changed: bool) -> "ObjectDraft":
        return replace(self, objects=objects, is_converted=self.is_converted or is_changed)

    def with_class(self, name: str) -> "ObjectDraft":
        """Return the same pool or claim with another node class."""
        head = self.objects[0]
        ref = {**self._class_ref(), "name": name}
        spec = head["spec"]
        if head["kind"] == "NodePool":
            inner = {**spec["template"]["spec"], "nodeClassRef": ref}
            spec = {**spec, "template": {**spec["template"], "spec": inner}}
        else:
            spec = {**spec, "nodeClassRef": ref}
        return self.with_objects(({**head, "spec": spec},), is_changed=True)

    def _class_ref(self) -> JsonObject:
        if len(self.objects) != 1 or self.objects[0].get("apiVersion") != CORE:
            return {}
        head = self.objects[0]
        paths = {
            "NodePool": ("spec", "template", "spec", "nodeClassRef"),
            "NodeClaim": ("spec", "nodeClassRef"),
        }
        found: object = head
        for key in paths.get(str(head.get("kind")), ("",)):
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}
