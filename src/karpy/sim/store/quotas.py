"""The admission plugin ResourceQuota: counts usage and refuses what exceeds a quota."""

from collections.abc import Callable, Mapping

from karpy.codec.fields import JsonObject
from karpy.model.kinds import POD, RESOURCE_QUOTA, Kind
from karpy.model.resources import add
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.answers import forbidden
from karpy.sim.store.checks.pods import amount_of
from karpy.sim.store.ledger import Ledger
from karpy.sim.store.paging import key_of
from karpy.sim.store.quantities import amount_text
from karpy.sim.store.quotausage import NEEDED, missing_amounts, scopes_of, usage_of


class _Tally:
    """One quota with its usage."""

    def __init__(self, quota: JsonObject) -> None:
        spec = quota.get("spec") or {}
        self.key = key_of(quota)
        self.name: str = quota["metadata"]["name"]
        self.scopes = scopes_of(spec)
        self.written: Mapping[str, str] = spec.get("hard") or {}
        self.hard = {name: amount_of(value, name) for name, value in self.written.items()}
        self.used = dict.fromkeys(self.hard, 0)

    def share(self, kind: Kind, obj: JsonObject) -> dict[str, int]:
        """Return the usage of an object, for the resources that the quota limits."""
        if self.scopes and (kind != POD or not all(each.matches(obj) for each in self.scopes)):
            return {}
        return {name: each for name, each in usage_of(kind, obj).items() if name in self.hard}

    def count(self, kind: Kind, obj: JsonObject, sign: int) -> None:
        """Add or subtract the usage of an object."""
        for name, amount in self.share(kind, obj).items():
            self.used[name] += sign * amount

    def check(self, kind: Kind, obj: JsonObject) -> None:
        """Raise Forbidden if an object would exceed the quota."""
        asked = self.share(kind, obj)
        name = obj["metadata"]["name"]
        if kind == POD and asked:
            missing = missing_amounts(obj, NEEDED & self.hard.keys())
            if missing:
                raise forbidden(kind, name, f"failed quota: {self.name}: {missing}")
        wanted = add(self.used, asked)
        over = sorted(each for each in asked if asked[each] and wanted[each] > self.hard[each])
        if over:
            parts = (
                f"requested: {_listed({each: amount_text(asked[each], each) for each in over})}",
                f"used: {_listed({each: amount_text(self.used[each], each) for each in over})}",
                f"limited: {_listed({each: self.written[each] for each in over})}",
            )
            raise forbidden(kind, name, f"exceeded quota: {self.name}, {', '.join(parts)}")


class Quotas:
    """The ResourceQuotas of all namespaces with their usage."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._spaces: dict[str, dict[str, _Tally]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._end: Callable[[], None] | None = None
        ledger.subscribe(RESOURCE_QUOTA, self._read)

    def bounds(self, namespace: str) -> bool:
        """Say whether a namespace has a quota."""
        return namespace in self._spaces

    def check(self, kind: Kind, obj: JsonObject) -> None:
        """Raise Forbidden if a new object would exceed a quota of its namespace."""
        tallies = self._spaces.get(obj["metadata"].get("namespace") or "", {})
        for name in sorted(tallies):
            tallies[name].check(kind, obj)

    def used(self, namespace: str, name: str) -> dict[str, str]:
        """Return `status.used` of a quota."""
        tally = self._spaces.get(namespace, {}).get(name)
        return (
            {}
            if tally is None
            else {key: amount_text(each, key) for key, each in tally.used.items()}
        )

    def on_change(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call a listener with the key of each quota whose usage changes."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _read(self, event: WatchEvent, before: JsonObject | None) -> None:
        quota = event.object
        namespace, name = quota["metadata"]["namespace"], quota["metadata"]["name"]
        if event.type is EventType.DELETED:
            tallies = self._spaces.get(namespace, {})
            tallies.pop(name, None)
            if not tallies:
                self._spaces.pop(namespace, None)
        elif before is None or before.get("spec") != quota.get("spec"):
            tally = _Tally(quota)
            for table in self._ledger.tables:
                for obj in table.walk(namespace):
                    tally.count(table.kind, obj, 1)
            self._spaces.setdefault(namespace, {})[name] = tally
        if self._end is None and self._spaces:
            self._end = self._ledger.subscribe_all(self._follow)

    def _follow(self, kind: Kind, event: WatchEvent, before: JsonObject | None) -> None:
        obj = event.object
        tallies = self._spaces.get(obj["metadata"].get("namespace") or "")
        if not tallies or (before is not None and _is_as_before(kind, event, before)):
            return
        for name, tally in tallies.items():
            if kind == RESOURCE_QUOTA and name == obj["metadata"]["name"] and before is None:
                continue
            was = dict(tally.used)
            if before is not None:
                tally.count(kind, before, -1)
            if event.type is not EventType.DELETED:
                tally.count(kind, obj, 1)
            if tally.used != was:
                for listener in tuple(self._listeners):
                    listener(tally.key)


def _is_as_before(kind: Kind, event: WatchEvent, before: JsonObject) -> bool:
    """Say whether the usage of an object is surely unchanged."""
    if event.type is EventType.DELETED:
        return False
    obj = event.object
    had, has = before.get("status") or {}, obj.get("status") or {}
    is_same_phase = kind != POD or had.get("phase") == has.get("phase")
    return is_same_phase and obj.get("spec") == before.get("spec")


def _listed(amounts: Mapping[str, str]) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))
