"""The timeline of a stage: short lines with time, object and change."""

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from karpy.codec.fields import JsonObject
from karpy.model.instances import Catalog
from karpy.model.kinds import EVENTS_EVENT, NODE, NODE_CLAIM, NODE_POOL, POD
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.ports.clock import Clock
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.store import Store
from tests.scenarios.aliases import Aliases

_STEPS: Final = {
    "Launched": "launched",
    "Registered": "registered",
    "Initialized": "initialized",
    "Drifted": "has drifted",
    "Drained": "drained",
    "VolumesDetached": "without volumes",
    "InstanceTerminating": "asks for the end of its machine",
}
_OMITTED: Final = frozenset({"DisruptionBlocked"})
"""Event reasons that are left out, since they occur for most nodes at every pass."""
_STATES: Final = ("pending", "bound", "running", "leaving", "ended")
_MICROS: Final = 1_000_000


class _Place(NamedTuple):
    """The second and the subject of a line: only the last line of both is shown."""

    second: int
    paragraph: int
    about: str


class Timeline:
    """
    Records the changes in a store that a user would see.

    Generated names are replaced by numbers in order of appearance: `default-1` is the first claim
    of NodePool `default`, and also its node.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        catalog: Callable[[], Catalog],
        *,
        has_zones: bool = True,
    ) -> None:
        self._clock = clock
        self._catalog = catalog
        self._has_zones = has_zones
        self._began = clock.now()
        self._aliases = Aliases()
        self._paragraph = 0
        self._lines: dict[_Place, str] = {}
        self._announced: dict[_Place, list[str]] = {}
        self._states: dict[str, tuple[str, str]] = {}
        self._machines: dict[str, str] = {}
        self._price = 0
        store.subscribe(POD, self._on_pod)
        store.subscribe(NODE, self._on_node)
        store.subscribe(NODE_CLAIM, self._on_claim)
        store.subscribe(NODE_POOL, self._on_pool)
        store.subscribe(EVENTS_EVENT, self._on_event)

    def note(self, text: str) -> None:
        """Record an action of a user."""
        self._paragraph += 1
        self._write(f"> {text}")

    def text(self) -> str:
        """Return the timeline so far."""
        events = {
            place: _announcement(place.about, whom) for place, whom in self._announced.items()
        }
        lines = {**self._lines, **events}
        order = {place: number for number, place in enumerate(lines)}
        said: dict[str, str] = {}
        lines_shown = []
        for place in sorted(lines, key=lambda each: (each.second, each.paragraph, order[each])):
            if said.get(place.about) != lines[place]:
                said[place.about] = lines[place]
                lines_shown.append(f"{place.second:>5} s  {self._aliases.applied(lines[place])}")
        return "\n".join(lines_shown)

    def _on_pod(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        pod = event.object
        workload = self._aliases.add_pod(pod)
        key = pod["metadata"]["uid"]
        if event.type is EventType.DELETED:
            self._states.pop(key, None)
        else:
            self._states[key] = workload, _state(pod)
        counts = Counter(state for whose, state in self._states.values() if whose == workload)
        states = ", ".join(f"{counts[each]} {each}" for each in _STATES if counts[each])
        # Show only the counts at the end of each second: pods of a workload change together.
        self._write(f"{workload}: {states or 'no pods'}", f"pods of {workload}")

    def _on_claim(self, event: WatchEvent, before: JsonObject | None) -> None:
        claim, name = event.object, event.object["metadata"]["name"]
        self._aliases.add_claim(claim)
        if event.type is EventType.ADDED:
            self._write(f"claim {name} created")
        elif event.type is EventType.DELETED:
            self._write(f"claim {name} gone")
            self._machines.pop(name, None)
        else:
            if _is_deleting(claim) and not _is_deleting(before or {}):
                self._write(f"claim {name} deleted")
            for type_ in sorted(
                _true_conditions(claim) - _true_conditions(before or {}), key=_turn
            ):
                self._write(f"claim {name} {_STEPS[type_]}{self._bought(claim, type_)}")
        self._write_price()

    def _on_node(self, event: WatchEvent, before: JsonObject | None) -> None:
        node, name = event.object, event.object["metadata"]["name"]
        self._aliases.add_node(node)
        if event.type is EventType.ADDED:
            self._write(f"node {name} joins")
        elif event.type is EventType.DELETED:
            self._write(f"node {name} gone")
        else:
            self._changed_node(name, before or {}, node)

    def _changed_node(self, name: str, before: JsonObject, node: JsonObject) -> None:
        was, now = (_condition(each, "Ready") for each in (before, node))
        if was != now:
            self._write(f"node {name} is {'Ready' if now == 'True' else 'not Ready'}")
        if "karpenter.sh/disrupted" in _taints(node) - _taints(before):
            self._write(f"node {name} takes no more pods")
        if _is_deleting(node) and not _is_deleting(before):
            self._write(f"node {name} deleted")

    def _on_pool(self, event: WatchEvent, before: JsonObject | None) -> None:
        pool, name = event.object, event.object["metadata"]["name"]
        if event.type is EventType.DELETED:
            self._write(f"pool {name} gone")
            return
        was, now = (_condition(each, "Ready") for each in (before or {}, pool))
        if was != now and now in {"True", "False"}:
            text = f"pool {name} is {'Ready' if now == 'True' else 'not Ready'}"
            self._write(text, f"pool {name}")

    def _on_event(self, event: WatchEvent, before: JsonObject | None) -> None:
        said = event.object
        if before is not None or said.get("reportingController") != "karpenter":
            return
        if said["reason"] in _OMITTED:
            return
        about = said.get("regarding") or {}
        name = self._aliases.workload_of(about.get("uid", "")) or about.get("name", "")
        place = self._place(f"{said['reason']}: {said['note']}")
        self._announced.setdefault(place, []).append(f"{about.get('kind', '').lower()} {name}")

    def _bought(self, claim: JsonObject, type_: str) -> str:
        if type_ != "Launched":
            return ""
        labels = claim["metadata"].get("labels") or {}
        machine, zone, capacity = (
            labels.get(each, "?") for each in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE)
        )
        self._machines[claim["metadata"]["name"]] = f"{machine}/{zone}/{capacity}"
        return f": {machine}, {zone}, {capacity}" if self._has_zones else f": {machine}, {capacity}"

    def _write_price(self) -> None:
        prices = {
            f"{type_.name}/{offering.zone}/{offering.capacity_type}": offering.price
            for type_ in self._catalog().types
            for offering in type_.offerings
        }
        price = sum(prices.get(each, 0) for each in self._machines.values())
        if price != self._price:
            self._price = price
            count = len(self._machines)
            text = f"= {count} machine{'' if count == 1 else 's'}, ${price / _MICROS:.4f}/h"
            # Move the price to the end of its second.
            self._lines.pop(self._place("price"), None)
            self._write(text, "price")

    def _place(self, about: str) -> "_Place":
        second = int((self._clock.now() - self._began).total_seconds())
        return _Place(second, self._paragraph, about)

    def _write(self, text: str, about: str = "") -> None:
        self._lines[self._place(about or f"{self._paragraph} {self._clock.now()} {text}")] = text


def _announcement(said: str, whom: list[str]) -> str:
    names = ", ".join(f"{n} x {who}" if n > 1 else who for who, n in Counter(whom).items())
    return f"! {names}: {said}"


def _state(pod: JsonObject) -> str:
    phase = (pod.get("status") or {}).get("phase")
    if _is_deleting(pod):
        return "leaving"
    if phase in {"Succeeded", "Failed"}:
        return "ended"
    if phase == "Running":
        return "running"
    return "bound" if (pod.get("spec") or {}).get("nodeName") else "pending"


def _is_deleting(obj: JsonObject) -> bool:
    return "deletionTimestamp" in (obj.get("metadata") or {})


def _condition(obj: JsonObject, type_: str) -> str:
    found = (obj.get("status") or {}).get("conditions") or ()
    return next((each["status"] for each in found if each["type"] == type_), "")


def _true_conditions(claim: JsonObject) -> set[str]:
    return {each for each in _STEPS if _condition(claim, each) == "True"}


def _turn(type_: str) -> int:
    return list(_STEPS).index(type_)


def _taints(node: JsonObject) -> set[str]:
    taints = (node.get("spec") or {}).get("taints") or ()
    # The gate taint of a node that is about to open has a value: leave it out.
    return {each["key"] for each in taints if "value" not in each}
