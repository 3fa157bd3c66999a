"""Short views of the reference solver's placements, for comparison in tests."""

from karpy.model.snapshot import Snapshot
from tests.reference.solver import Placements, solve


def hosts(snapshot: Snapshot) -> dict[str, str]:
    """
    Return where each considered pod goes, by its name.

    `node-1` is a node, `default#0` the first launch (of the pool `default`), `NO_HOST` a reason.
    """
    return hosts_in(solve(snapshot))


def hosts_in(placements: Placements) -> dict[str, str]:
    """Return where each pod goes according to placements."""
    result = {_name(pod): reason.name for pod, reason in placements.refused.items()}
    for number, launch in enumerate(placements.launches):
        result |= {_name(pod): f"{launch.pool}#{number}" for pod in launch.pods}
    for node, some in placements.nominations.items():
        result |= {_name(pod): node for pod in some}
    return dict(sorted(result.items()))


def types_launched(snapshot: Snapshot) -> list[list[str]]:
    """Return the types of each launch, cheapest first."""
    return [
        [option.instance_type for option in launch.options] for launch in solve(snapshot).launches
    ]


def values_launched(snapshot: Snapshot, key: str) -> list[list[str]]:
    """Return the values each launch still allows for a key."""
    return [
        sorted(launch.requirements[key].values) if key in launch.requirements else []
        for launch in solve(snapshot).launches
    ]


def _name(pod: str) -> str:
    return pod.partition("/")[2]
