"""One node of the plan, or one that exists: who is on it, who comes, what it may become."""

from typing import Any, Final

from msgspec import Struct

from karpy.cli.launchtext import launch_lines
from karpy.cli.plans import BLANK
from karpy.cli.tables import few_of, labelled
from karpy.cli.terminal import Line, Span, Style, line
from karpy.codec.verdicts import amounts_to_dict, verdict_to_dict
from karpy.model.nodes import Node
from karpy.model.resources import CPU, MEMORY, add, format_quantity
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict

_LABEL_WIDTH: Final = 12
_PODS_SHOWN: Final = 8


class Host(Struct, frozen=True):
    """A launch, or a node with the pods bound to it and those the plan adds."""

    name: str
    launch: Launch | None = None
    node: Node | None = None
    bound: tuple[str, ...] = ()
    coming: tuple[str, ...] = ()
    requested: dict[str, int] = {}
    """What the bound and the coming pods ask for together."""


def explain_host(snapshot: Snapshot, verdict: Verdict, name: str) -> Host | None:
    """Find a launch or a node by name and gather what the plan says of it."""
    for launch in verdict.launches:
        if launch.name == name:
            return Host(name, launch=launch)
    node = next((node for node in snapshot.nodes if node.name == name), None)
    if node is None:
        return None
    coming = tuple(pod for each in verdict.nominations if each.node == name for pod in each.pods)
    bound = [pod for pod in snapshot.pods if pod.node_name == name and pod.is_active]
    expected = frozenset(coming)
    arriving = [pod for pod in snapshot.pods if pod.key in expected]
    return Host(
        name,
        node=node,
        bound=tuple(pod.key for pod in bound),
        coming=coming,
        requested=add(*(pod.requests for pod in [*bound, *arriving])),
    )


def host_lines(snapshot: Snapshot, host: Host, width: int) -> list[Line]:
    """Write a node for a person."""
    if host.launch is not None:
        return launch_lines(snapshot, host.launch, width)
    node = host.node
    assert node is not None
    room = ", ".join(
        f"{format_quantity(host.requested.get(name, 0), name)} of"
        f" {format_quantity(node.allocatable.get(name, 0), name)} {name}"
        for name in (CPU, MEMORY)
    )
    state = "on its way" if not node.is_initialized else "initialized"
    entries = (
        ("is", f"{'being deleted' if node.is_deleting else state}, NodePool {node.pool or 'none'}"),
        ("taints", ", ".join(str(taint) for taint in node.taints) or "none"),
        ("requested", room),
        ("runs", few_of(host.bound, _PODS_SHOWN) or "nothing yet"),
        ("will get", few_of(host.coming, _PODS_SHOWN) or "nothing more"),
    )
    lines = [line(Span(host.name, Style.STRONG)), BLANK]
    for label, text in entries:
        lines += labelled(label, text, width, label_width=_LABEL_WIDTH, lines_max=3)
    return lines


def host_answer(host: Host) -> dict[str, Any]:
    """Write a node for a machine."""
    launches = (host.launch,) if host.launch else ()
    return {
        "name": host.name,
        "launch": next(iter(verdict_to_dict(Verdict(launches=launches))["launches"]), None),
        "node": host.node.name if host.node else None,
        "bound": list(host.bound),
        "coming": list(host.coming),
        "requested": amounts_to_dict(host.requested),
    }
