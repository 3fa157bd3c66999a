"""The ordinals of a StatefulSet's pods."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.sim.workloads.pods import RUNNING, is_ready, phase_of
from karpy.sim.workloads.revisions import REVISION_HASH
from karpy.sim.workloads.templates import pod_of
from karpy.sim.workloads.volumeclaims import claim_name

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"


def wanted(stateful_set: JsonObject) -> int:
    """Return the replicas."""
    replicas = stateful_set["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def ordinals(stateful_set: JsonObject) -> range:
    """Return the ordinals that a StatefulSet should have."""
    start = (stateful_set["spec"].get("ordinals") or {}).get("start", 0)
    return range(start, start + wanted(stateful_set))


def partition(stateful_set: JsonObject) -> int:
    """Return the ordinal below which pods are not updated."""
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    return int((strategy.get("rollingUpdate") or {}).get("partition") or 0)


def parent_of(pod: JsonObject) -> str:
    """Return the name of the StatefulSet in a pod's name."""
    parent, _, number = pod["metadata"]["name"].rpartition("-")
    return parent if number.isdecimal() else ""


def ordinal_of(pod: JsonObject) -> int:
    """Return the ordinal of a pod, -1 if it has none."""
    number = pod["metadata"]["name"].rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def revision_of(pod: JsonObject) -> str:
    """Return the name of the revision of a pod."""
    name: str = (pod["metadata"].get("labels") or {}).get(REVISION_HASH, "")
    return name


def is_running_and_ready(pod: JsonObject) -> bool:
    """Say whether a pod is Running and Ready."""
    return phase_of(pod) == RUNNING and is_ready(pod)


def numbered_pod(
    stateful_set: JsonObject,
    template: JsonObject,
    ordinal: int,
    revision: str,
    reference: JsonObject,
) -> JsonObject:
    """Return the pod of an ordinal, with its name, host name and volumes."""
    meta = stateful_set["metadata"]
    pod = pod_of(template, meta["namespace"], reference)
    name = f"{meta['name']}-{ordinal}"
    labels = {
        **(pod["metadata"].get("labels") or {}),
        REVISION_HASH: revision,
        POD_NAME: name,
        POD_INDEX: str(ordinal),
    }
    spec = {
        **pod["spec"],
        "hostname": name,
        "volumes": _volumes(stateful_set, pod["spec"], ordinal),
    }
    if service := stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = service
    if not spec["volumes"]:
        del spec["volumes"]
    return {**pod, "metadata": {**pod["metadata"], "name": name, "labels": labels}, "spec": spec}


def has_identity(pod: JsonObject) -> bool:
    """Say whether a pod has the identity labels of its name and ordinal."""
    labels = pod["metadata"].get("labels") or {}
    return bool(labels.get(POD_NAME) == pod["metadata"]["name"])


def with_identity(pod: JsonObject) -> JsonObject:
    """Return a pod with the identity labels of its name and ordinal."""
    meta = pod["metadata"]
    labels = {
        **(meta.get("labels") or {}),
        POD_NAME: meta["name"],
        POD_INDEX: str(ordinal_of(pod)),
    }
    return {**pod, "metadata": {**meta, "labels": labels}}


def _volumes(stateful_set: JsonObject, spec: JsonObject, ordinal: int) -> list[JsonObject]:
    templates = stateful_set["spec"].get("volumeClaimTemplates") or ()
    claimed = [
        {
            "name": each["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(stateful_set, each, ordinal)},
        }
        for each in templates
    ]
    names = {each["name"] for each in claimed}
    return [*claimed, *(each for each in spec.get("volumes") or () if each["name"] not in names)]
