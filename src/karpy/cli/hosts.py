"""A new or an existing node with its pods, its nominated pods and its options."""

from typing import Any

from msgspec import Struct

from karpy.codec.verdicts import amounts_to_dict, verdict_to_dict
from karpy.model.nodes import Node
from karpy.model.resources import CPU, MEMORY, add, format_quantity
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict


class ExplainedHost(Struct, frozen=True):
    """A launch, or a node with its bound pods and the pods that the plan adds."""

    name: str
    launch: Launch | None = None
    node: Node | None = None
    bound: tuple[str, ...] = ()
    coming: tuple[str, ...] = ()
    requested: dict[str, int] = {}
    """The sum of the requests of all its pods."""


def explain_host(snapshot: Snapshot, verdict: Verdict, name: str) -> ExplainedHost | None:
    """Return a launch or a node by name, with its part of the plan; None if there is none."""
    for launch in verdict.launches:
        if launch.name == name:
            return ExplainedHost(name, launch=launch)
    node = next((node for node in snapshot.nodes if node.name == name), None)
    if node is None:
        return None
    coming = tuple(pod for each in verdict.nominations if each.node == name for pod in each.pods)
    bound = [pod for pod in snapshot.pods if pod.node_name == name and pod.is_active]
    expected = frozenset(coming)
    arriving = [pod for pod in snapshot.pods if pod.key in expected]
    return ExplainedHost(
        name,
        node=node,
        bound=tuple(pod.key for pod in bound),
        coming=coming,
        requested=add(*(pod.requests for pod in [*bound, *arriving])),
    )


def room_text(host: ExplainedHost) -> str:
    """Write how much of a node's allocatable resources its pods and nominated pods request."""
    assert host.node is not None
    return ", ".join(
        f"{format_quantity(host.requested.get(name, 0), name)} of"
        f" {format_quantity(host.node.allocatable.get(name, 0), name)} {name}"
        for name in (CPU, MEMORY)
    )


def host_answer(host: ExplainedHost) -> dict[str, Any]:
    """Write a node as JSON."""
    launches = (host.launch,) if host.launch else ()
    return {
        "name": host.name,
        "launch": next(iter(verdict_to_dict(Verdict(launches=launches))["launches"]), None),
        "node": host.node.name if host.node else None,
        "bound": list(host.bound),
        "coming": list(host.coming),
        "requested": amounts_to_dict(host.requested),
    }
