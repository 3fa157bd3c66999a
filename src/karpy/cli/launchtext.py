"""A new node as text: its zones, its options and the requests of its pods."""

from collections.abc import Sequence
from typing import Final

from karpy.cli.tables import count_of, dollars, few_of, labelled
from karpy.cli.terminal import Line, Span, Style, line
from karpy.model.labels import HOSTNAME, NODE_POOL, ZONE
from karpy.model.pools import NodePool
from karpy.model.requirements import collect, from_labels, merge
from karpy.model.resources import PODS, format_quantity
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch

_ZONES_MAX: Final = 14
_OPTIONS_SHOWN: Final = 5
_LABEL_WIDTH: Final = 13
_NO_LIMIT: Final = 10_000


def by_pool(launches: Sequence[Launch]) -> list[Launch]:
    """Sort launches by NodePool; those of a NodePool keep their order."""
    return sorted(launches, key=lambda launch: launch.pool)


def zones_of(launch: Launch) -> frozenset[str]:
    """Return the zones to which a launch is restricted; empty if it is not."""
    requirement = launch.requirements.get(ZONE)
    return requirement.values if requirement and not requirement.complement else frozenset()


def zone_text(launch: Launch) -> str:
    """Write the zones to which a launch is restricted, or that any zone will do."""
    zones = ", ".join(sorted(zones_of(launch))) or "any"
    return zones if len(zones) <= _ZONES_MAX else count_of(len(zones_of(launch)), "zone")


def where_text(launch: Launch) -> str:
    """Write the zones of a launch as a phrase."""
    zones = zone_text(launch)
    if zones == "any":
        return "any zone"
    return f"one of {zones}" if zones.endswith(" zones") else zones


def request_text(launch: Launch) -> str:
    """Write the sum of the requests of the pods and daemons of a launch."""
    return ", ".join(
        f"{format_quantity(amount, name)} {name}"
        for name, amount in sorted(launch.resources.items())
        if name != PODS and amount
    )


def options_text(launch: Launch, shown: int = _OPTIONS_SHOWN) -> str:
    """Write the cheapest options of a launch, and the number of the others."""
    names = [
        f"{each.instance_type} {dollars(each.price)} {each.capacity_type}"
        for each in launch.options
    ]
    return few_of(names, shown)


def narrowed_text(snapshot: Snapshot, launch: Launch) -> str:
    """Write the requirements of a launch that its NodePool does not have."""
    pool = next((each for each in snapshot.pools if each.name == launch.pool), NodePool("?"))
    own = merge(collect(pool.requirements), from_labels(pool.labels))
    reference = pool.node_class
    hidden = {NODE_POOL, HOSTNAME, f"{reference.group}/{reference.kind.lower()}"}
    return ", ".join(
        str(each)
        for key, each in sorted(launch.requirements.items())
        if key not in hidden and each != own.get(key)
    )


def launch_lines(snapshot: Snapshot, launch: Launch, width: int) -> list[Line]:
    """Write all details of a new node."""
    entries = (
        ("pods", ", ".join(launch.pods)),
        ("requests", request_text(launch)),
        ("pods need", narrowed_text(snapshot, launch) or "nothing beyond the NodePool"),
        ("options", options_text(launch)),
        ("reserved", ", ".join(launch.reservations)),
        ("relaxed", "minValues, to what there is" if launch.is_min_values_relaxed else ""),
    )
    about = f"  NodePool {launch.pool}, {where_text(launch)}, {dollars(launch.price)} an hour"
    lines = [line(Span(launch.name, Style.NAME), about)]
    for label, text in entries:
        if text:
            lines += labelled(
                f"  {label}", text, width, label_width=_LABEL_WIDTH, lines_max=_NO_LIMIT
            )
    return lines
