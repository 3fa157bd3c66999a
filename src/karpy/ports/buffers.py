"""The cache of CapacityBuffers and the objects that they refer to."""

from collections.abc import Mapping
from typing import Protocol

from karpy.model.buffers import BufferRecord, PodSource
from karpy.model.pods import Pod
from karpy.ports.records import Kept, Watched


class Buffers(Protocol):
    """The cached CapacityBuffers and the objects that they refer to."""

    @property
    def buffers(self) -> Watched[Kept[BufferRecord]]:
        """CapacityBuffers, by namespace and name."""

    @property
    def sources(self) -> Mapping[str, Watched[PodSource]]:
        """PodTemplates and workloads that buffers refer to, by kind, then by namespace and name."""

    def room_of(self, key: str) -> tuple[Pod, ...]:
        """Return the virtual pods of a CapacityBuffer: equal ones until something changes."""

    def allowed_of(self, key: str) -> int:
        """Say for how many pods a CapacityBuffer keeps room at most, beside all others."""
