"""Checks of disruption: budgets, places for the pods that must move, and the price."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, TypeVar

from msgspec.structs import replace

from karpy.codec.fields import JsonObject
from karpy.core.scheduling.decide import decide
from karpy.model.commands import Command, DisruptionVerdict
from karpy.model.instances import Catalog
from karpy.model.kinds import NODE, NODE_CLAIM, NODE_POOL
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.model.labels import NODE_POOL as POOL_LABEL
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import NodeQuestion, PoolQuestion, Snapshot, ValidationQuestion
from karpy.model.verdicts import PoolVerdict, Verdict
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.conditions import condition_of
from karpy.sim.world import World
from tests.swarm.findings import Law
from tests.swarm.witnesses import Report

_T = TypeVar("_T")
SnapshotOf = Callable[[], Snapshot | None]
"""Returns the snapshot of the acting operator; None while none acts."""

_LATE: Final = timedelta(seconds=40)
"""Longest time between the choice of a node and its taint, which includes the validation."""
_REASON: Final = "DisruptionReason"
_GENTLE: Final = frozenset(
    {
        DisruptionReason.UNDERUTILIZED.value,
        DisruptionReason.EMPTY.value,
        DisruptionReason.DRIFTED.value,
    }
)


class Budgets:
    """
    Compares the nodes of a NodePool that are disrupted at once with its budgets.

    The highest number allowed since the oldest of these nodes was chosen counts.
    """

    def __init__(self, world: World, report: Report) -> None:
        self._world = world
        self._report = report
        self._said: dict[str, list[tuple[datetime, list[JsonObject]]]] = {}
        self._sizes: dict[str, list[tuple[datetime, int]]] = {}
        self.disrupted: set[str] = set()
        """Names of claims that an operator deleted for a voluntary disruption."""
        world.store.subscribe(NODE_POOL, self._on_pool)
        world.store.subscribe(NODE_CLAIM, self._on_claim)

    def note(self, claim: JsonObject) -> None:
        """Check a claim that an operator is about to delete."""
        if reason_of(claim) not in _GENTLE or _has_deleted_node(self._world, claim):
            return
        self.disrupted.add(claim["metadata"]["name"])
        pool = _pool_of(claim)
        deleting = [claim, *(each for each in self._claims(pool) if self._counts(each, claim))]
        allowed = self._allowed(pool, reason_of(claim), min(map(_marked, deleting)) - _LATE)
        if len(deleting) > allowed:
            names = ", ".join(sorted(each["metadata"]["name"] for each in deleting))
            self._report(Law.DISRUPTION, f"{pool}: {names} go at once, {allowed} may")

    def _counts(self, each: JsonObject, claim: JsonObject) -> bool:
        name = each["metadata"]["name"]
        return (
            name in self.disrupted
            and name != claim["metadata"]["name"]
            and "deletionTimestamp" in each["metadata"]
            and not _is_true(each, "InstanceTerminating")
        )

    def _claims(self, pool: str) -> list[JsonObject]:
        return [each for each in self._world.store.list(NODE_CLAIM) if _pool_of(each) == pool]

    def _allowed(self, pool: str, reason: str, since: datetime) -> int:
        size = max(_lately(self._sizes.get(pool, []), since), default=0)
        said = _lately(self._said.get(pool, []), since)
        return max((_least(budgets, reason, size) for budgets in said), default=size)

    def _on_pool(self, event: WatchEvent, _: JsonObject | None) -> None:
        budgets = (event.object["spec"].get("disruption") or {}).get("budgets")
        said = self._said.setdefault(event.object["metadata"]["name"], [])
        said.append((self._world.clock.now(), [{"nodes": "10%"}] if budgets is None else budgets))

    def _on_claim(self, event: WatchEvent, before: JsonObject | None) -> None:
        if before is None or event.type is EventType.DELETED:
            pool = _pool_of(event.object)
            sizes = self._sizes.setdefault(pool, [])
            sizes.append((self._world.clock.now(), len(self._claims(pool))))


class Moves:
    """
    Sees that pods of a node that is disrupted have a place on nodes that are initialized.

    Pods that have come since the node was chosen do not count: nothing keeps kube-scheduler from
    giving them the room. Neither does a moment in which other nodes go, too, nor a node of a static
    NodePool: it is replaced from the template, wherever its pods go.
    """

    def __init__(self, world: World, report: Report, snapshot_of: SnapshotOf) -> None:
        self._world = world
        self._report = report
        self._snapshot_of = snapshot_of

    def note(self, claim: JsonObject) -> None:
        """Check a claim that an operator is about to delete."""
        snapshot = self._snapshot_of()
        is_asked_for = reason_of(claim) in _GENTLE and not _has_deleted_node(self._world, claim)
        if not is_asked_for or snapshot is None:
            return
        nodes = {each.claim: each for each in snapshot.nodes}
        node = nodes.pop(claim["metadata"]["name"], None)
        static = {each.name for each in snapshot.pools if each.is_static}
        if node is None or node.is_deleting or node.pool in static:
            return
        if any(each.is_deleting for each in nodes.values()):
            return
        left = homeless(node, snapshot, _marked(claim) - _LATE)
        if left:
            self._report(Law.PLACE, f"{node.name} goes: {', '.join(left)}")


def homeless(node: Node, snapshot: Snapshot, since: datetime) -> list[str]:
    """Name the pods of a node that have no place elsewhere; those that came later do not count."""
    nodes = [
        replace(each, is_deleting=True) if each.claim == node.claim else each
        for each in snapshot.nodes
        if each.is_initialized or each.claim == node.claim
    ]
    early = [
        pod
        for pod in snapshot.pods
        if pod.node_name and (pod.bound is None or pod.bound < since or pod.is_daemon)
    ]
    # Without NodePools no pod prefers a new node to one that is there.
    verdict = decide(replace(snapshot, nodes=tuple(nodes), pods=tuple(early), pools=()))
    placed = {pod for each in verdict.nominations for pod in each.pods}
    movers = [
        pod.key
        for pod in early
        if pod.node_name == node.name
        and pod.is_reschedulable
        and not pod.is_deleting
        and not _is_overridden(pod, node, snapshot)
    ]
    return sorted(pod for pod in movers if pod not in placed)


def _is_overridden(pod: Pod, node: Node, snapshot: Snapshot) -> bool:
    """Say whether a pod may not go, and its node goes all the same: its drain has an end."""
    if node.claim_record is None or node.claim_record.grace_period is None:
        return False
    is_budgeted = any(each.name == pod.labels.get("app") for each in snapshot.budgets)
    return is_budgeted or pod.disruption.do_not_disrupt is not None


class Ledger:
    """A journal that compares the price of what goes with the price of what replaces it."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Record one decision and its snapshot."""

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        """Record one decision about the size of a NodePool, and its question."""

    def record_disruption(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        """Record one decision about the disruption of nodes, and its question."""
        if not isinstance(question, ValidationQuestion):
            return
        for command in verdict.commands:
            if command.reason is DisruptionReason.UNDERUTILIZED:
                before, after = _prices(command, question.snapshot)
                if after >= before:
                    self._report(Law.DEARER, f"{command} costs {after}, not {before}")


def _prices(command: Command, snapshot: Snapshot) -> tuple[int, int]:
    """Return what the nodes of a command cost, and what the dearest launch would."""
    claims = {each.claim for each in command.nodes}
    nodes = [each for each in snapshot.nodes if each.claim in claims]
    now = sum(_price(snapshot.catalog, each) for each in nodes)
    then = sum(
        max((option.price for option in each.launch.options), default=0)
        for each in command.replacements
    )
    return now, then


def _price(catalog: Catalog, node: Node) -> int:
    place = (node.labels.get(ZONE), node.labels.get(CAPACITY_TYPE))
    return next(
        (
            offering.price
            for each in catalog.types
            for offering in each.offerings
            if each.name == node.labels.get(INSTANCE_TYPE)
            and (offering.zone, offering.capacity_type) == place
        ),
        0,
    )


def reason_of(claim: JsonObject) -> str:
    """Return why a claim is disrupted; empty if it is not."""
    found = condition_of(claim, _REASON)
    return found["reason"] if found is not None and found["status"] == "True" else ""


def _marked(claim: JsonObject) -> datetime:
    found = condition_of(claim, _REASON)
    assert found is not None
    return datetime.fromisoformat(found["lastTransitionTime"])


def _is_true(claim: JsonObject, type_: str) -> bool:
    found = condition_of(claim, type_)
    return found is not None and found["status"] == "True"


def _has_deleted_node(world: World, claim: JsonObject) -> bool:
    """Say whether people have deleted the node of a claim, so that the claim follows."""
    node = world.store.find(NODE, (claim.get("status") or {}).get("nodeName", ""))
    return node is not None and "deletionTimestamp" in node["metadata"]


def _pool_of(claim: JsonObject) -> str:
    return str((claim["metadata"].get("labels") or {}).get(POOL_LABEL, ""))


def _lately(said: list[tuple[datetime, _T]], since: datetime) -> list[_T]:
    """Return what was said and held at some moment since then."""
    ended = [moment for moment, _ in said[1:]] + [None]
    return [each for (_, each), end in zip(said, ended, strict=True) if end is None or end > since]


def _least(budgets: list[JsonObject], reason: str, nodes: int) -> int:
    """Return how many of some nodes all budgets about a reason let go."""
    about = [each for each in budgets if reason in (each.get("reasons") or [reason])]
    return min((_value(each["nodes"], nodes) for each in about), default=nodes)


def _value(text: str, nodes: int) -> int:
    return -(-nodes * int(text[:-1]) // 100) if text.endswith("%") else int(text)
