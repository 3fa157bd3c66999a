"""Joins the machines of a fake EC2 to a cluster through its API; the cluster runs their pods."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from karpy.errors import ClusterError, KarpyError, NotFound
from karpy.model.kinds import NODE
from karpy.ports.clock import Clock
from karpy.ports.objects import Objects, Patch, PatchType
from karpy.sim.kubelets.hardware import Hardware
from karpy.sim.kubelets.nodes import node_object

_ADOPTED: Final = {"kwok.x-k8s.io/node": "fake"}
"""The annotation by which KWOK, or the embedded cluster, plays the kubelet of a Node."""
_ADDRESS: Final = "10.0.0.1"
_AGAIN_SECONDS: Final = 2.0

OnTrouble = Callable[[str, KarpyError], None]
"""Called with a Node that could not be created or deleted, and the error; it is retried."""


class JoiningMachines:
    """Creates a Node for each machine that boots, and deletes it when the machine is gone."""

    def __init__(
        self, objects: Objects, clock: Clock, on_trouble: OnTrouble = lambda *_: None
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._on_trouble = on_trouble
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def boot(self, hardware: Hardware) -> None:
        """Create the Node of a machine after its boot."""
        self._do(hardware.name, lambda: self._join(hardware))

    def halt(self, name: str) -> None:
        """Delete a Node, as the cloud controller manager does once its machine is gone."""
        joining = self._tasks.pop(name, None)
        if joining is not None:
            joining.cancel()
        self._do(name, lambda: self._leave(name))

    def close(self) -> None:
        """Cancel all work."""
        for task in self._tasks.values():
            task.cancel()

    def _do(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def retry() -> None:
            while True:
                try:
                    await work()
                except ClusterError as error:
                    self._on_trouble(name, error)
                    await asyncio.sleep(_AGAIN_SECONDS)
                else:
                    return

        self._tasks[name] = asyncio.get_running_loop().create_task(retry(), name=name)

    async def _join(self, hardware: Hardware) -> None:
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        node = node_object(hardware, _ADDRESS, hardware.name, now)
        meta = {**node["metadata"], "annotations": _ADOPTED}
        whole = {"apiVersion": NODE.api_version, "kind": NODE.name, **node, "metadata": meta}
        await self._objects.create(NODE, whole)
        amounts = {key: node["status"][key] for key in ("capacity", "allocatable")}
        patch = Patch(PatchType.MERGE, {"status": amounts})
        await self._objects.patch(NODE, hardware.name, patch, subresource="status")

    async def _leave(self, name: str) -> None:
        with suppress(NotFound):
            await self._objects.delete(NODE, name)
