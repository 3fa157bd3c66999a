"""Default topology spread constraints."""

from typing import Final

from karpy.codec.labelselectors import LabelRule, Selector, equal, selector_of
from karpy.model.kinds import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    Kind,
)
from karpy.model.labels import HOSTNAME, ZONE
from karpy.ports.objects import Query
from karpy.sim.scheduler.terms import Spread
from karpy.sim.scheduler.wants import Wants
from karpy.sim.store.store import Store

_OWNERS: Final[dict[str, Kind]] = {
    f"{kind.api_version}/{kind.name}": kind
    for kind in (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)
}
_HOST_SKEW: Final = 3
_ZONE_SKEW: Final = 5


def default_spreads(store: Store, wants: Wants) -> tuple[Spread, ...]:
    """Return soft constraints over hosts and zones for the pods of the same services and owner."""
    rules = [*_service_rules(store, wants), *_owner_rules(store, wants)]
    if not rules:
        return ()
    selector = Selector(tuple(dict.fromkeys(rules)))
    return (
        Spread(HOSTNAME, _HOST_SKEW, selector, is_soft=True),
        Spread(ZONE, _ZONE_SKEW, selector, is_soft=True),
    )


def _service_rules(store: Store, wants: Wants) -> list[LabelRule]:
    kin, rules = wants.kin, []
    for service in store.list(SERVICE, Query(kin.namespace)):
        selector = (service.get("spec") or {}).get("selector")
        if selector and all(kin.labels.get(key) == value for key, value in selector.items()):
            rules += [equal(*each) for each in selector.items()]
    return rules


def _owner_rules(store: Store, wants: Wants) -> tuple[LabelRule, ...]:
    kind = _OWNERS.get(wants.owner[0]) if wants.owner else None
    if kind is None or wants.owner is None:
        return ()
    owner = store.find(kind, wants.owner[1], wants.kin.namespace)
    raw = ((owner or {}).get("spec") or {}).get("selector")
    if not raw:
        return ()
    if kind == REPLICATION_CONTROLLER:
        return tuple(equal(*each) for each in raw.items())
    selector = selector_of(raw)
    return selector.rules if selector is not None else ()
