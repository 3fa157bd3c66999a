"""CapacityBuffers: room that is kept free for pods to come."""

from msgspec import Struct

from karpy.model.conditions import Conditions
from karpy.model.records import Identity
from karpy.model.resources import Resources


class ScalableRef(Struct, frozen=True, gc=False):
    """The workload whose pods a buffer makes room for."""

    kind: str
    name: str
    group: str = ""
    """Empty stands for `apps`."""


class BufferRecord(Struct, frozen=True, gc=False):
    """A CapacityBuffer in full."""

    meta: Identity
    namespace: str
    strategy: str = "buffer.x-k8s.io/active-capacity"
    pod_template: str = ""
    """Name of a PodTemplate; empty for none."""
    scalable: ScalableRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    """Of the workload's replicas."""
    limits: Resources = {}
    settled_strategy: str = ""
    settled_template: str = ""
    settled_generation: int | None = None
    settled_replicas: int | None = None
    """What its status says: how many pods it makes room for, of which template."""
    conditions: Conditions = Conditions()

    @property
    def key(self) -> str:
        """Namespace and name, as users write it."""
        return f"{self.namespace}/{self.meta.name}"
