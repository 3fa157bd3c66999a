"""The objects that are there before anybody asks for them."""

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NAMESPACE, PRIORITY_CLASS, SERVICE_ACCOUNT, Kind
from karpy.sim.store.namespaces import ALWAYS


def founding_objects() -> list[tuple[Kind, JsonObject]]:
    """Return the namespaces and priority classes of an empty cluster."""
    namespaces = [(NAMESPACE, {"metadata": {"name": name}}) for name in ALWAYS]
    critical = [
        (PRIORITY_CLASS, _critical("system-cluster-critical", 2_000_000_000, "cluster")),
        (PRIORITY_CLASS, _critical("system-node-critical", 2_000_001_000, "node")),
    ]
    return [*namespaces, *critical]


def service_account(namespace: str) -> tuple[Kind, JsonObject]:
    """Return the service account that every namespace has."""
    return SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": namespace}}


def _critical(name: str, value: int, scope: str) -> JsonObject:
    return {
        "metadata": {"name": name},
        "value": value,
        "description": f"Used for system critical pods that must run in the {scope}"
        + (", but can be moved to another node if necessary." if scope == "cluster" else "."),
        "preemptionPolicy": "PreemptLowerPriority",
    }
