"""The objects of a new cluster."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NAMESPACE, PRIORITY_CLASS, SERVICE_ACCOUNT, Kind
from karpy.sim.store.namespaces import ALWAYS

_MOVABLE: Final = "run in the cluster, but can be moved to another node if necessary"
_FIXED: Final = "not be moved from their current node"


def founding_objects() -> list[tuple[Kind, JsonObject]]:
    """Return the namespaces and priority classes of an empty cluster."""
    namespaces = [(NAMESPACE, {"metadata": {"name": name}}) for name in ALWAYS]
    critical = [
        (PRIORITY_CLASS, _critical("system-cluster-critical", 2_000_000_000, _MOVABLE)),
        (PRIORITY_CLASS, _critical("system-node-critical", 2_000_001_000, _FIXED)),
    ]
    return [*namespaces, *critical]


def service_account(namespace: str) -> tuple[Kind, JsonObject]:
    """Return the ServiceAccount `default` of a namespace."""
    return SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": namespace}}


def _critical(name: str, value: int, what: str) -> JsonObject:
    return {
        "metadata": {"name": name},
        "value": value,
        "description": f"Used for system critical pods that must {what}.",
        "preemptionPolicy": "PreemptLowerPriority",
    }
