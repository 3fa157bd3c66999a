"""Where the core and kube-scheduler part on purpose; docs/fidelity.md has the whole sentences."""

from collections.abc import Iterator
from enum import Enum

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import selector_of
from karpy.core.check.breaches import Breach, Rule
from karpy.model.labels import HOSTNAME
from tests.fidelity.closets import STATIC
from tests.fidelity.noderules import REQUIRED
from tests.fidelity.worlds import Answer


class Known(Enum):
    """A difference that is wanted, or put up with."""

    MATCH_FIELDS = "the core does not judge node affinity by names"
    FRESH_HOST = "for the core there is always an empty host, for kube-scheduler only those there"
    EMPTY_SELECTOR = "kube-scheduler counts nobody for a spread whose selector is empty"
    NEGATIVE_NAMESPACES = "kube-scheduler takes some namespace selectors to mean all namespaces"
    IPV6_ANY = "the core takes the host address :: to mean all addresses"
    SINGLE_POD_CLAIM = "the core does not know that a claim may be for one pod only"
    STATIC_VOLUME = "the core takes any class that waits for a pod to make volumes on demand"


def why_known(breach: Breach, pods: dict[str, JsonObject]) -> Known | None:
    """Say why the judge may call this a breach although kube-scheduler does it, or None."""
    pod = pods.get(breach.pod)
    if pod is None:
        return None
    match breach.rule:
        case Rule.NODE_AFFINITY if any("matchFields" in term for term in _node_terms(pod)):
            return Known.MATCH_FIELDS
        case Rule.SPREAD if breach.detail.startswith(HOSTNAME):
            return Known.FRESH_HOST
        case Rule.SPREAD if any(_is_empty(each) for each in _spreads(pod)):
            return Known.EMPTY_SELECTOR
        case Rule.AFFINITY | Rule.AFFINITY_TERMS if any(map(_is_negative, _pod_terms(pod))):
            return Known.NEGATIVE_NAMESPACES
        case Rule.HOST_PORT if any(map(_has_ipv6_any, pods.values())):
            return Known.IPV6_ANY
    return None


def why_missed(
    answer: Answer, pod: JsonObject, everyone: list[JsonObject], claims: list[JsonObject]
) -> Known | None:
    """Say why kube-scheduler may refuse what the core has planned, or None."""
    names = {
        each["persistentVolumeClaim"]["claimName"]
        for each in pod["spec"].get("volumes") or ()
        if "persistentVolumeClaim" in each
    }
    classes = {
        each["spec"]["storageClassName"] for each in claims if each["metadata"]["name"] in names
    }
    if "ReadWriteOncePod access mode already in-use" in answer.why:
        return Known.SINGLE_POD_CLAIM
    if "didn't find available persistent volumes" in answer.why and STATIC in classes:
        return Known.STATIC_VOLUME
    is_apart = "anti-affinity rules" in answer.why or "pod affinity rules" in answer.why
    if is_apart and any(_is_negative(term) for each in everyone for term in _pod_terms(each)):
        return Known.NEGATIVE_NAMESPACES
    return None


def _node_terms(pod: JsonObject) -> list[JsonObject]:
    required = _affinity(pod, "nodeAffinity").get(REQUIRED) or {}
    terms: list[JsonObject] = required.get("nodeSelectorTerms") or []
    return terms


def _pod_terms(pod: JsonObject) -> Iterator[JsonObject]:
    for side in ("podAffinity", "podAntiAffinity"):
        yield from _affinity(pod, side).get(REQUIRED) or ()


def _affinity(pod: JsonObject, side: str) -> JsonObject:
    return (pod["spec"].get("affinity") or {}).get(side) or {}


def _spreads(pod: JsonObject) -> list[JsonObject]:
    spreads: list[JsonObject] = pod["spec"].get("topologySpreadConstraints") or []
    return spreads


def _is_empty(spread: JsonObject) -> bool:
    return spread.get("labelSelector") == {}


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
