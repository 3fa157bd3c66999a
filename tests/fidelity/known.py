"""Known differences of the core and kube-scheduler; docs/fidelity.md has the whole sentences."""

from collections.abc import Iterator
from enum import Enum

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import selector_of
from karpy.core.check.breaches import Breach, Rule
from karpy.model.labels import HOSTNAME
from tests.fidelity.closets import STATIC
from tests.fidelity.clusters import Cluster
from tests.fidelity.noderules import REQUIRED
from tests.fidelity.stories import key_of
from tests.fidelity.worlds import Answer


class Known(Enum):
    """A difference that is intended or accepted."""

    MATCH_FIELDS = "the core does not evaluate node affinity on the names of nodes"
    FRESH_HOST = "for the core there is always an empty host, for kube-scheduler only if one exists"
    EMPTY_SELECTOR = "kube-scheduler counts no pods for a spread whose selector is empty"
    SPREADS_TOGETHER = "kube-scheduler only counts nodes that have the keys of all hard spreads"
    TERMS_TOGETHER = "for kube-scheduler only a pod that matches all affinity terms counts"
    NEGATIVE_NAMESPACES = (
        "kube-scheduler reads a namespace selector that a namespace without labels"
    )
    ENDING = "kube-scheduler counts pods that are being deleted for an affinity"
    IPV6_ANY = "for the core the host address :: means all addresses"
    SIDECAR_PORTS = "the core does not see the host ports of sidecars"
    SINGLE_POD_CLAIM = "the core does not know that a claim may be for one pod only"
    STATIC_VOLUME = "the core assumes that every StorageClass with `WaitForFirstConsumer`"
    VOLUME_LABELS = "the core does not read the zone labels of volumes"


class Excuses:
    """Says which of the differences in one cluster are known."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pods = [*cluster.bound, *cluster.pods]
        self._by_key = {key_of(each): each for each in self._pods}
        self._terms = [term for each in self._pods for term in _pod_terms(each)]

    def why_breach(self, breach: Breach) -> Known | None:
        """Say why the judge may call this a breach although kube-scheduler does it, or None."""
        pod = self._by_key.get(breach.pod)
        if pod is None:
            return None
        match breach.rule:
            case Rule.NODE_AFFINITY if any("matchFields" in term for term in _node_terms(pod)):
                return Known.MATCH_FIELDS
            case Rule.SPREAD:
                return _why_uneven(breach, pod)
            case Rule.AFFINITY | Rule.AFFINITY_TERMS if any(map(_is_negative, _pod_terms(pod))):
                return Known.NEGATIVE_NAMESPACES
            case Rule.AFFINITY if len(_affinity(pod, "podAffinity")[REQUIRED]) > 1:
                return Known.TERMS_TOGETHER
            case Rule.AFFINITY | Rule.AFFINITY_TERMS if self._cluster.ending:
                return Known.ENDING
            case Rule.HOST_PORT if any(map(_has_ipv6_any, self._pods)):
                return Known.IPV6_ANY
        return None

    def why_missed(self, key: str, answer: Answer) -> Known | None:
        """Say why kube-scheduler may refuse what the core has planned, or None."""
        reasons = answer.why
        for text, is_possible, known in (
            ("ReadWriteOncePod access mode already in-use", True, Known.SINGLE_POD_CLAIM),
            ("had no available volume zone", True, Known.VOLUME_LABELS),
            ("find available persistent volumes", self._is_static(key), Known.STATIC_VOLUME),
            ("have free ports", any(map(_has_sidecar_ports, self._pods)), Known.SIDECAR_PORTS),
            ("affinity rules", any(map(_is_negative, self._terms)), Known.NEGATIVE_NAMESPACES),
            ("spread constraints", self._has_several_spreads(key), Known.SPREADS_TOGETHER),
        ):
            if text in reasons and is_possible:
                return known
        return None

    def _is_static(self, key: str) -> bool:
        volumes = self._by_key[key]["spec"].get("volumes") or ()
        names = {each["persistentVolumeClaim"]["claimName"] for each in volumes}
        return any(
            claim["metadata"]["name"] in names and claim["spec"]["storageClassName"] == STATIC
            for claim in self._cluster.claims
        )

    def _has_several_spreads(self, key: str) -> bool:
        return len(_hard_spreads(self._by_key[key])) > 1


def _why_uneven(breach: Breach, pod: JsonObject) -> Known | None:
    if breach.detail.startswith(HOSTNAME):
        return Known.FRESH_HOST
    spreads = _hard_spreads(pod)
    if any(each.get("labelSelector") == {} for each in spreads):
        return Known.EMPTY_SELECTOR
    return Known.SPREADS_TOGETHER if len(spreads) > 1 else None


def _node_terms(pod: JsonObject) -> list[JsonObject]:
    required = _affinity(pod, "nodeAffinity").get(REQUIRED) or {}
    terms: list[JsonObject] = required.get("nodeSelectorTerms") or []
    return terms


def _pod_terms(pod: JsonObject) -> Iterator[JsonObject]:
    for side in ("podAffinity", "podAntiAffinity"):
        yield from _affinity(pod, side).get(REQUIRED) or ()


def _affinity(pod: JsonObject, side: str) -> JsonObject:
    return (pod["spec"].get("affinity") or {}).get(side) or {}


def _hard_spreads(pod: JsonObject) -> list[JsonObject]:
    spreads = pod["spec"].get("topologySpreadConstraints") or ()
    return [each for each in spreads if each["whenUnsatisfiable"] == "DoNotSchedule"]


def _is_negative(term: JsonObject) -> bool:
    """Say whether a namespace without labels would pass, though something is asked of them."""
    raw = term.get("namespaceSelector")
    selector = selector_of(raw)
    return bool(raw) and selector is not None and selector.matches({})


def _has_ipv6_any(pod: JsonObject) -> bool:
    containers = [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]
    return any(
        port.get("hostIP") == "::" for each in containers for port in each.get("ports") or ()
    )


def _has_sidecar_ports(pod: JsonObject) -> bool:
    return any(
        each.get("restartPolicy") == "Always" and each.get("ports")
        for each in pod["spec"].get("initContainers") or ()
    )
