"""The cache of the node classes that NodePools and NodeClaims refer to."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from karpy.barriers import Barrier
from karpy.codec.nodeclasses import ClassReader
from karpy.controllers.queue import OnFailure
from karpy.model.kinds import Kind
from karpy.model.records import ClaimRecord, ClassState, NodeClassRef, PoolRecord
from karpy.ports.objects import Feed, Follow, Synced
from karpy.ports.records import Kept, Watched

OnClass = Callable[[NodeClassRef], None]
"""Called with a changed node class; a reference without a name stands for all of its kind."""


class NodeClasses:
    """Watches the kinds of node class that our cloud serves."""

    def __init__(
        self, feed: Feed, kinds: Iterable[Kind], on_failure: OnFailure = lambda *_: None
    ) -> None:
        self._feed = feed
        self._on_failure = on_failure
        self._kinds = {_any_of(kind): kind for kind in kinds}
        self._listed: set[NodeClassRef] = set()
        self._states: dict[NodeClassRef, ClassState] = {}
        self._listeners: list[OnClass] = []

    async def run(self) -> None:
        """Watch every kind, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name, follow in self.follows():
                tasks.create_task(follow(), name=name)

    def follows(self) -> Iterator[tuple[str, Follow]]:
        """Return the watch of each kind with its name; each may fail and be started again."""
        for kind in self._kinds.values():
            yield f"nodeclasses.{kind.name.lower()}", partial(self._follow, kind)

    def listen(self, listener: OnClass) -> None:
        """Call a listener for every change from now on."""
        self._listeners.append(listener)

    def served(self) -> list[str]:
        """Return the kinds that our cloud serves, such as `EC2NodeClass.karpenter.k8s.aws`."""
        return sorted(f"{kind.name}.{kind.group}" for kind in self._kinds.values())

    def knows(self, ref: NodeClassRef) -> bool:
        """Say whether a reference is to a kind that our cloud serves."""
        return _unnamed(ref) in self._kinds

    def is_ours(self, claim: ClaimRecord) -> bool:
        """Say whether the node class of a NodeClaim is of a kind that our cloud serves."""
        return self.knows(claim.node_class)

    def is_our_pool(self, pool: PoolRecord) -> bool:
        """Say whether the node class of a NodePool is of a kind that our cloud serves."""
        return self.knows(pool.node_class)

    def is_listed(self, ref: NodeClassRef) -> bool:
        """Say whether all node classes of the kind of a reference were listed once."""
        return _unnamed(ref) in self._listed

    def find(self, ref: NodeClassRef) -> ClassState | None:
        """Return a node class, or None if it does not exist or was not delivered yet."""
        return self._states.get(ref)

    def generation_of(self, pool: PoolRecord) -> int | None:
        """Return the generation of a pool's node class; None if it is gone or not ours."""
        ref = pool.node_class
        if self.knows(ref) and not self.is_listed(ref):
            # Before the first list, the generation on the pool must not count as outdated.
            return pool.class_generation
        found = self.find(ref)
        return None if found is None else found.generation

    async def _follow(self, kind: Kind) -> None:
        # A feed reports deletions that happen while it runs, not earlier ones: whatever the first
        # list lacks is gone.
        left = {ref for ref in self._states if _unnamed(ref) == _any_of(kind)}
        async for change in self._feed.follow(kind, ClassReader()):
            if isinstance(change, Synced):
                for ref in left:
                    self._put(ref, None)
                left.clear()
                self._listed.add(_any_of(kind))
                self._notify(_any_of(kind))
            else:
                ref = NodeClassRef(kind.group, kind.name, change.key)
                left.discard(ref)
                if change.unreadable is None:
                    # An unreadable node class keeps its last readable state.
                    self._put(ref, change.value)

    def _put(self, ref: NodeClassRef, state: ClassState | None) -> None:
        if state is None:
            self._states.pop(ref, None)
        elif self._states.get(ref) == state:
            return
        else:
            self._states[ref] = state
        if self.is_listed(ref):
            self._notify(ref)

    def _notify(self, ref: NodeClassRef) -> None:
        barrier = Barrier(partial(self._on_failure, ref.name))
        for listener in self._listeners:
            with barrier:
                listener(ref)


def users_of(ref: NodeClassRef, pools: Watched[Kept[PoolRecord]]) -> Iterator[str]:
    """Return the names of the NodePools that refer to a node class."""
    for kept in pools.all():
        used = kept.record.node_class
        if ref in (used, _unnamed(used)):
            yield kept.record.name


def _any_of(kind: Kind) -> NodeClassRef:
    return NodeClassRef(kind.group, kind.name)


def _unnamed(ref: NodeClassRef) -> NodeClassRef:
    return NodeClassRef(ref.group, ref.kind)
