"""What is known of a machine before its kubelet speaks."""

from collections.abc import Mapping

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.resources import Resources


class Hardware(Struct, frozen=True):
    """A machine to be: its Node's name, and what the Node will say of it."""

    name: str
    capacity: Resources
    allocatable: Resources = {}
    """As much as the capacity if not given."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    taints: tuple[JsonObject, ...] = ()
    """What its kubelet registers with."""
    provider_id: str = ""
    volume_limits: Mapping[str, int] = {}
    """Attachable volumes by CSI driver; they become its CSINode."""
    boot_seconds: float | None = None
    """None is as usual."""
    ready_seconds: float | None = None
    is_dud: bool = False
    """Boots and never joins."""
