"""The script of the demo: the changes that a user makes, and the results to wait for."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from karpy.cli.examples import CLUSTER, PENDING, example_documents
from karpy.cli.show.chronicle import Chronicle
from karpy.cli.terminal import Style
from karpy.model.kinds import DEPLOYMENT, EC2_NODE_CLASS, NODE_POOL, POD
from karpy.ports.objects import Patch, PatchType, Removal
from karpy.sim.world import World
from karpy.wiring.resident import apply_manifests

PATIENCE: Final = 150.0
"""Seconds after which the story ends, complete or not, unless the caller allows more."""
_GLANCE: Final = 0.2
_QUIET: Final = 16.0
"""Seconds without a change after which the cluster counts as settled; a validation takes 15."""
_REST_MAX: Final = 42.0
_WORKLOAD: Final = "inflate"
_NAMESPACE: Final = "default"
_MOST: Final = 20
_FEW: Final = 3
_IMPOSSIBLE: Final = "trainer"
_POOL: Final = "default"
_LABEL: Final = {"team": "shop"}

Documents = Sequence[tuple[str, str]]


class Scene(Struct, frozen=True):
    """A part of the story."""

    title: str
    play: Callable[[], Awaitable[None]]


class Story:
    """A shop moves in, `inflate` grows and shrinks, and nodes follow."""

    def __init__(
        self,
        world: World,
        chronicle: Chronicle,
        patience: float = PATIENCE,
        documents: Documents | None = None,
    ) -> None:
        """Use `documents` as the first manifests; by default those for KWOK."""
        self._documents = example_documents(CLUSTER) if documents is None else documents
        self._world = world
        self._patience = patience
        self._chronicle = chronicle
        self._board = chronicle.board
        self.scenes: Final = (
            Scene("a web shop moves in", self._move_in),
            Scene(f"{_WORKLOAD} grows from 0 to {_MOST} pods", self._grow),
            Scene(f"{_WORKLOAD} shrinks from {_MOST} to {_FEW} pods", self._shrink),
            Scene("a pod comes that no machine can hold", self._ask_too_much),
            Scene("empty nodes go, and pods move closer together", self._tidy),
            Scene("the NodePool changes, and its nodes are replaced", self._drift),
            Scene("pods move closer together on the new nodes", self._rest),
        )
        self.place = 0
        """Number of finished scenes."""

    @property
    def is_over(self) -> bool:
        return self.place == len(self.scenes)

    async def play(self) -> None:
        """Play the scenes until the last one or the timeout."""
        try:
            async with asyncio.timeout(self._patience):
                for scene in self.scenes:
                    await scene.play()
                    self.place += 1
        except TimeoutError:
            what = self.scenes[self.place].title
            self._chronicle.add_line("late", f"no time is left while {what}", Style.BAD)

    async def _move_in(self) -> None:
        for name, text in self._documents:
            made = apply_manifests(self._world, [(name, text)])
            what = ", ".join(f"{each['kind']} {each['metadata']['name']}" for each in made)
            self._do("apply", f"{name.rpartition('/')[2]}: {what}")
            if any(each["kind"] == EC2_NODE_CLASS.name for each in made):
                await self._until_open()
        await self._until_settled()
        await asyncio.sleep(1.5)

    async def _grow(self) -> None:
        self._scale(0, _MOST)
        await self._until_settled(_MOST)
        await asyncio.sleep(3)

    async def _shrink(self) -> None:
        self._scale(_MOST, _FEW)
        await self._until(lambda: len(self._pods()) == _FEW)
        await asyncio.sleep(3)

    async def _ask_too_much(self) -> None:
        apply_manifests(self._world, example_documents(PENDING))
        key = f"{_NAMESPACE}/{_IMPOSSIBLE}"
        self._do("apply", f"pod {key}, which asks for 400 cores")
        await self._until(lambda: key in self._chronicle.refused)
        await asyncio.sleep(2.5)
        self._world.store.delete(
            POD, _IMPOSSIBLE, namespace=_NAMESPACE, removal=Removal(grace_seconds=0)
        )
        self._do("delete", f"pod {key}")

    async def _tidy(self) -> None:
        await self._until(lambda: not self._idle())
        await asyncio.sleep(3)

    async def _drift(self) -> None:
        before = set(self._board.nodes)
        patch = Patch(PatchType.MERGE, {"spec": {"template": {"metadata": {"labels": _LABEL}}}})
        self._world.store.patch(NODE_POOL, _POOL, patch)
        self._do("change", f"NodePool {_POOL}: its nodes get the label team=shop")
        await self._until(lambda: before.isdisjoint(self._board.nodes))
        await self._until_settled(_FEW)

    async def _rest(self) -> None:
        """Wait until the cluster is settled, up to a limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_MAX):
                await self._until_quiet()
        await self._until_settled(_FEW)
        await asyncio.sleep(2)

    def _scale(self, before: int, after: int) -> None:
        patch = Patch(PatchType.MERGE, {"spec": {"replicas": after}})
        self._world.store.patch(DEPLOYMENT, _WORKLOAD, patch, namespace=_NAMESPACE)
        self._do("scale", f"{_WORKLOAD} from {before} to {after}")

    def _do(self, word: str, text: str) -> None:
        self._chronicle.add_line(word, text, Style.NAME)

    async def _until_open(self) -> None:
        """Wait until the NodePool is ready; on AWS that takes requests for images and subnets."""
        while True:
            if self._is_open():
                return
            await asyncio.sleep(_GLANCE)

    def _is_open(self) -> bool:
        """Say whether the condition Ready of the NodePool is true."""
        status = self._world.store.get(NODE_POOL, _POOL).get("status") or {}
        conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        return conditions.get("Ready") == "True"

    def _pods(self) -> list[str]:
        """Return the pods of `inflate`, including deleting ones."""
        return [key for key, pod in self._board.pods.items() if pod.workload == _WORKLOAD]

    def _idle(self) -> list[str]:
        """Return the nodes that have become empty."""
        return [name for name, card in self._board.nodes.items() if card.empty is not None]

    async def _until_settled(self, inflated: int = 0) -> None:
        """Wait until all pods run, `inflated` of them of `inflate`."""

        def is_settled() -> bool:
            wanted = self._board.lasting_pods()
            return (
                len(self._pods()) == inflated
                and len(wanted) > inflated
                and all(each.running is not None for each in wanted)
            )

        await self._until(is_settled)

    async def _until_quiet(self) -> None:
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(_QUIET):
                    await self._chronicle.wait()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._chronicle.wait()
