"""The controller `providers.instancetype.capacity`: nodes tell how much memory machines have."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final

from karpy.controllers.context import ControllerContext
from karpy.controllers.rounds import observed
from karpy.core.aws.discoveredmemory import memory_by_type
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.kinds import EC2_NODE_CLASS

_PERIOD: Final = timedelta(seconds=30)

OnMemory = Callable[[str, tuple[str, ...], Mapping[str, int]], None]
"""Hears of a node class its images, and the bytes that their nodes report by instance type."""


class CapacityController:
    """Learns from registered nodes how much memory machines of their type have."""

    def __init__(
        self,
        context: ControllerContext,
        classes: Callable[[], Iterable[Ec2NodeClass]],
        on_memory: OnMemory,
    ) -> None:
        self._context = context
        self._classes = classes
        self._on_memory = on_memory

    async def run(self) -> None:
        """Look at nodes now and then, until cancelled."""
        await observed(_PERIOD, self.look, self._context)

    async def look(self) -> None:
        """Look at all nodes once; what types that have none any more had stays known."""
        claims = [each.record for each in self._context.records.claims.all()]
        for each in self._classes():
            pairs = (
                (claim, kept.record)
                for claim in claims
                if (claim.node_class.kind, claim.node_class.name)
                == (EC2_NODE_CLASS.name, each.name)
                for kept in self._context.nodes_of(claim)
            )
            images = tuple(sorted(image.id for image in each.status.images))
            self._on_memory(each.name, images, memory_by_type(each, pairs))
