"""Metrics of nodes: resources, requests of pods, age, and the utilization of the cluster."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from karpy.adapters.telemetry.metrics import GaugeValues, Metrics, Values
from karpy.adapters.telemetry.specs import label_name
from karpy.core.nodepool.usage import (
    NodeSums,
    find_utilization,
    in_units,
    resource_label,
    sum_up,
)
from karpy.model.labels import WELL_KNOWN
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.ports.records import Kept, Records

_AMOUNTS: Final = {
    "nodes_allocatable": "allocatable",
    "nodes_total_pod_requests": "requests",
    "nodes_total_pod_limits": "limits",
    "nodes_total_daemon_requests": "daemon_requests",
    "nodes_total_daemon_limits": "daemon_limits",
    "nodes_system_overhead": "overhead",
}
"""Metrics, and the fields of NodeSums that they report."""
_LIFETIME: Final = "nodes_current_lifetime_seconds"
_UTILIZATION: Final = "cluster_utilization_percent"
_PHASE: Final = ""
"""The label `phase` is always empty: Kubernetes no longer sets the phase of nodes."""


class NodeMetrics:
    """Collects the gauges of nodes; `well_known` are the labels that the specs were made with."""

    def __init__(
        self, metrics: Metrics, records: Records, well_known: Iterable[str] = WELL_KNOWN
    ) -> None:
        self._records = records
        self._keys = _keys(well_known)
        metrics.add_source(self._collect)

    def _collect(self) -> Callable[[], GaugeValues]:
        records = self._records
        return partial(
            node_gauges,
            tuple(records.nodes.all()),
            tuple(records.claims.all()),
            tuple(records.pods.all()),
            self._keys,
        )


def node_gauges(
    nodes: Iterable[Kept[NodeRecord]],
    claims: Iterable[Kept[ClaimRecord]],
    pods: Iterable[Pod],
    keys: Sequence[str],
) -> GaugeValues:
    """Return the gauges of nodes; `keys` are the node labels that become labels of metrics."""
    claim_of = {kept.record.provider_id: kept.record for kept in claims if kept.record.provider_id}
    pods_of = _by_node(pods)
    gauges: dict[str, dict[Values, float]] = {metric: {} for metric in (*_AMOUNTS, _LIFETIME)}
    sums: list[NodeSums] = []
    for kept in nodes:
        node = kept.record
        claim = claim_of.get(node.provider_id) if node.provider_id else None
        each = sum_up(node, claim, pods_of.get(node.name, ()))
        sums.append(each)
        values = _values(node, keys, is_managed=claim is not None)
        for metric, field in _AMOUNTS.items():
            series = gauges[metric]
            for resource, amount in in_units(getattr(each, field)).items():
                series[*values, resource] = amount
        if node.meta.created is not None:
            gauges[_LIFETIME][values] = node.meta.created.timestamp()
    return {**gauges, _UTILIZATION: _utilization(sums)}


def _utilization(sums: Iterable[NodeSums]) -> dict[Values, float]:
    return {(resource_label(name),): value for name, value in find_utilization(sums).items()}


def _by_node(pods: Iterable[Pod]) -> Mapping[str, list[Pod]]:
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node_name:
            by_node.setdefault(pod.node_name, []).append(pod)
    return by_node


def _keys(well_known: Iterable[str]) -> tuple[str, ...]:
    """Return keys in the order of their metric labels; of two for one label, the well-known one."""
    well_known_last = sorted(well_known, key=lambda key: (key in WELL_KNOWN, key))
    by_label = {label_name(key): key for key in well_known_last}
    return tuple(by_label[label] for label in sorted(by_label))


def _values(node: NodeRecord, keys: Sequence[str], *, is_managed: bool) -> Values:
    labels = node.meta.labels
    managed = "true" if is_managed else "false"
    return (*[labels.get(key, "") for key in keys], node.name, _PHASE, managed)
