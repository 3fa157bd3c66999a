"""The resources of nodes, and what their pods request of them."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from karpy.model.labels import INITIALIZED
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.resources import CPU, PODS, Resources

_MILLI: Final = 1000


class NodeSums(Struct, frozen=True, gc=False):
    """The resources of one node; terminal pods do not count."""

    allocatable: Resources = {}
    overhead: Resources = {}
    """Capacity less allocatable."""
    requests: Resources = {}
    limits: Resources = {}
    daemon_requests: Resources = {}
    daemon_limits: Resources = {}
    expected: Resources = {}
    """Allocatable, from the NodeClaim until the node reports it."""


def sum_up(node: NodeRecord, claim: ClaimRecord | None, pods: Iterable[Pod]) -> NodeSums:
    """Sum up one node."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    daemon_requests: dict[str, int] = {}
    daemon_limits: dict[str, int] = {}
    for pod in pods:
        if pod.is_terminal:
            continue
        _add(requests, pod.requests)
        _add(limits, pod.limits)
        _add(limits, _ITSELF)
        if pod.owners and pod.is_owned_by(DAEMON_SET):
            _add(daemon_requests, pod.requests)
            _add(daemon_limits, pod.limits)
            _add(daemon_limits, _ITSELF)
    allocatable = node.allocatable
    overhead = {name: amount - allocatable.get(name, 0) for name, amount in node.capacity.items()}
    expected = allocatable
    if claim is not None and node.meta.labels.get(INITIALIZED) != "true":
        expected = {
            **claim.allocatable,
            **{name: each for name, each in allocatable.items() if each},
        }
    return NodeSums(
        allocatable, overhead, requests, limits, daemon_requests, daemon_limits, expected
    )


def find_utilization(nodes: Iterable[NodeSums]) -> dict[str, float]:
    """Return the share of resources that pods request, in percent by resource."""
    expected: dict[str, int] = {}
    requests: dict[str, int] = {}
    for each in nodes:
        _add(expected, each.expected)
        _add(requests, each.requests)
    return {
        name: 100 * requests.get(name, 0) / amount for name, amount in expected.items() if amount
    }


def in_units(resources: Resources) -> dict[str, float]:
    """Convert resources for metrics: CPU in cores, names in lower case with underscores."""
    return {resource_label(name): _in_units(name, each) for name, each in resources.items()}


def resource_label(name: str) -> str:
    """Write the name of a resource as metrics do: `ephemeral_storage`."""
    return name.lower().replace("-", "_")


def _in_units(name: str, amount: int) -> float:
    if name == CPU:
        return amount / _MILLI
    # Resources such as `requests.cpu` count in thousandths, too, but are reported in whole cores.
    return float(-(-amount // _MILLI)) if name.endswith(".cpu") else float(amount)


_ITSELF: Final[Mapping[str, int]] = {PODS: 1}


def _add(total: dict[str, int], more: Resources) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
