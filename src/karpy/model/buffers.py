"""CapacityBuffers: room on nodes that is kept free for future pods."""

from typing import Final

from msgspec import Struct

from karpy.model.conditions import Conditions
from karpy.model.kinds import POD_TEMPLATE
from karpy.model.pods import Pod
from karpy.model.records import Identity
from karpy.model.resources import Resources

ACTIVE_CAPACITY: Final = "buffer.x-k8s.io/active-capacity"
"""The provisioning strategy that launches nodes before pods need them."""


class ScalableRef(Struct, frozen=True, gc=False):
    """The workload whose pods a buffer makes room for."""

    kind: str
    name: str
    group: str = ""
    """Empty stands for `apps`."""


class PodSource(Struct, frozen=True, gc=False):
    """What a buffer's pods are made from: a PodTemplate, or a workload."""

    pod: Pod
    """A pod of the template; name and namespace are those of the source."""
    replicas: int = 0
    """The `replicas` of a workload; 0 for a PodTemplate."""
    generation: int = 0


class BufferRecord(Struct, frozen=True, gc=False):
    """A CapacityBuffer in full."""

    meta: Identity
    namespace: str
    strategy: str = ACTIVE_CAPACITY
    pod_template: str = ""
    """Name of a PodTemplate; empty for none."""
    scalable: ScalableRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    """Room for this percentage of the workload's replicas."""
    limits: Resources = {}
    settled_strategy: str = ""
    settled_template: str = ""
    settled_generation: int | None = None
    settled_replicas: int | None = None
    """The fields named `settled_…` are the status: for how many pods of which template."""
    conditions: Conditions = Conditions()

    @property
    def key(self) -> str:
        """Namespace and name: `shop/web`."""
        return f"{self.namespace}/{self.meta.name}"

    @property
    def source(self) -> tuple[str, str]:
        """Kind and key of the object that its pods are made from; empty if none is named."""
        if self.pod_template:
            return POD_TEMPLATE.name, f"{self.namespace}/{self.pod_template}"
        if self.scalable is not None:
            return self.scalable.kind, f"{self.namespace}/{self.scalable.name}"
        return "", ""
