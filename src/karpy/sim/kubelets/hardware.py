"""The properties of a machine from which its kubelet registers a Node."""

from collections.abc import Mapping

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.resources import Resources


class Hardware(Struct, frozen=True):
    """A machine to be booted: the name, capacity, labels and taints of its Node."""

    name: str
    capacity: Resources
    allocatable: Resources = {}
    """The capacity if empty."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    taints: tuple[JsonObject, ...] = ()
    """The taints with which its kubelet registers."""
    provider_id: str = ""
    volume_limits: Mapping[str, int] = {}
    """Attachable volumes by CSI driver, for its CSINode."""
    boot_seconds: float | None = None
    """None: the boot time of `Timing`."""
    ready_seconds: float | None = None
    is_dud: bool = False
    """Whether the machine boots and never joins."""
