"""CapacityBuffers, as they were last seen."""

from collections.abc import Mapping
from typing import Protocol

from karpy.model.buffers import BufferRecord, PodSource
from karpy.model.pods import Pod
from karpy.ports.records import Kept, Watched


class Buffers(Protocol):
    """What is known of CapacityBuffers and of what they refer to."""

    @property
    def buffers(self) -> Watched[Kept[BufferRecord]]:
        """CapacityBuffers, by namespace and name."""

    @property
    def sources(self) -> Mapping[str, Watched[PodSource]]:
        """What their pods can be made from, by kind; each by namespace and name."""

    def room_of(self, key: str) -> tuple[Pod, ...]:
        """Return the virtual pods of a CapacityBuffer: equal ones until something changes."""
