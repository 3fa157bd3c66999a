"""Which pods each NodeClaim is for, and which nodes pods are expected on."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.core.nominations import settling
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.verdicts import Launch
from karpy.ports.clock import Clock
from karpy.ports.records import Kept, Records

LEAST_WINDOW: Final = timedelta(seconds=10)
_BATCHES: Final = 2


class NodeNominations:
    """
    Remembers which nodes, and NodeClaims in flight, are about to get pods.

    Disruption leaves such a node alone: its pods are not bound yet, but will be.
    """

    def __init__(self, clock: Clock, batch_max: timedelta = timedelta(seconds=10)) -> None:
        self._clock = clock
        self._window = max(_BATCHES * batch_max, LEAST_WINDOW)
        self._until: dict[str, datetime] = {}

    def note(self, name: str) -> None:
        """Take note that pods are expected on a node, from now on for a while."""
        now = self._clock.now()
        # Taken out and put in again: so the first one is always the first to end.
        self._until.pop(name, None)
        self._until[name] = now + self._window
        while self._until[first := next(iter(self._until))] <= now:
            del self._until[first]

    def until(self, *names: str) -> datetime | None:
        """Say until when pods are expected on a node, by its name or that of its NodeClaim."""
        return max((self._until[each] for each in names if each in self._until), default=None)


BINDING_TIME: Final = timedelta(seconds=10)
"""Within that kube-scheduler has tried every pod again after its node is ready."""
STARTING_TIME: Final = timedelta(seconds=20)
"""A pod that does not run by then has reasons of its own."""

_COUNTING_PERIOD: Final = timedelta(seconds=1)
_BEFORE_RUNNING: Final = ("", "Pending")

OnLost = Callable[[str], None]
"""Is told the UID of a pod whose NodeClaim is gone: it needs another one."""


class ClaimNominations:
    """Remembers the pods of a launch for as long as its NodeClaim is there."""

    def __init__(self, records: Records, clock: Clock, on_lost: OnLost = lambda _: None) -> None:
        self._records = records
        self._clock = clock
        self._on_lost = on_lost
        self._pods: dict[str, tuple[str, ...]] = {}
        self._counted, self._is_busy = datetime.min.replace(tzinfo=UTC), False
        records.claims.listen(self._hear_claim)

    def note(self, claim: str, launch: Launch) -> None:
        """Take note of the NodeClaim that a launch has become."""
        self._pods[claim] = launch.pods

    def add(self, claim: str, pods: tuple[str, ...]) -> None:
        """Take note of pods that will find room on a NodeClaim made for others."""
        if claim in self._pods:
            still = (pod.key for pod in self.pods_of(claim) if not pod.node_name)
            self._pods[claim] = tuple(dict.fromkeys((*still, *pods)))

    def pods_of(self, claim: str) -> list[Pod]:
        """Return the pods that a NodeClaim was made for, as they are now."""
        found = (self._records.pods.get(key) for key in self._pods.get(claim, ()))
        return [pod for pod in found if pod is not None]

    def awaits(self, claim: str) -> bool:
        """Say whether pods are on their way to the node of a NodeClaim."""
        is_due = claim in self._pods and self._is_due(claim)
        return is_due and any(not pod.node_name for pod in self.pods_of(claim))

    def is_busy(self) -> bool:
        """Say whether pods are on their way anywhere or start; the answer may be a second old."""
        now = self._clock.now()
        if now >= self._counted + _COUNTING_PERIOD:
            self._counted, self._is_busy = now, any(map(self._is_starting, self._pods))
        return self._is_busy

    def places(self) -> Mapping[str, str]:
        """Say by NodeClaim where pods are about to go: those whose node is not there for long."""
        due = [claim for claim in self._pods if self._is_due(claim)]
        return {pod.key: claim for claim in due for pod in self.pods_of(claim) if not pod.node_name}

    def settling(self) -> frozenset[str]:
        """Return the NodeClaims of which others, made together with them, are about to open."""
        kept = (self._records.claims.get(claim) for claim in self._pods)
        return settling([each.record for each in kept if each is not None], self._clock.now())

    def _is_starting(self, claim: str) -> bool:
        is_due = self._is_due(claim, STARTING_TIME)
        return is_due and any(pod.phase in _BEFORE_RUNNING for pod in self.pods_of(claim))

    def _is_due(self, claim: str, patience: timedelta = BINDING_TIME) -> bool:
        kept = self._records.claims.get(claim)
        if kept is None or kept.record.meta.is_deleting:
            # One that was just made is not told of yet.
            return kept is None
        said = kept.record.conditions.get(INITIALIZED)
        if said is None or not said.is_true:
            return True
        return self._clock.now() < said.changed + patience

    def _hear_claim(
        self, key: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        del before
        if after is None:
            lost = self.pods_of(key)
            self._pods.pop(key, None)
            for pod in lost:
                if pod.is_provisionable:
                    self._on_lost(pod.uid)
