"""
Pods from plain objects, fast: the common parts of a workload's pods are read once.

A pod is mostly a copy of its workload's template. The bytes of each part of the template are the
key of its value, so that a pod with known parts costs a few look-ups, and shares its rules, labels
and requests with other pods.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from typing import Final, TypeAlias

from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.fingerprints import fingerprint
from karpy.codec.memos import AnyMemo, memo
from karpy.codec.podrules import read_ports, read_rules
from karpy.codec.requests import effective_limits, effective_requests, plain_requests
from karpy.model.labels import DISRUPTION_COST, DO_NOT_DISRUPT, POD_DELETION_COST
from karpy.model.pods import (
    DEFAULT_GRACE,
    USUAL_DISRUPTION,
    HostPort,
    Owner,
    Pod,
    PodDisruption,
    PodRules,
)
from karpy.model.resources import Resources
from karpy.model.times import parse_moment, span

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_LABELS: Final[Mapping[str, str]] = {}
_RULES: Final = frozenset(
    {
        "affinity",
        "nodeSelector",
        "resourceClaims",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
    }
)
NO_RULES: Final = PodRules()
_NOTHING: Final[JsonObject] = {}
RARE: Final = frozenset({"initContainers", "overhead", "resources", "hostNetwork"})
SPECIAL: Final = _RULES | RARE
DISRUPTION_ANNOTATIONS: Final = (DO_NOT_DISRUPT, DISRUPTION_COST, POD_DELETION_COST)
MESSAGE_MAX: Final = 500
"""Longest part of kube-scheduler's message that is kept, in characters."""
UNREADABLE: Final = (AttributeError, KeyError, TypeError, ValueError)

_Ports: TypeAlias = tuple[HostPort, ...]
_Needs: TypeAlias = tuple[Resources, _Ports, Resources]
"""Requests, ports and limits."""
_Moments: TypeAlias = tuple[datetime | None, datetime | None]
"""When a pod got its node, and since when it is ready."""
NEVER: Final[_Moments] = (None, None)
_NO_LIMITS: Final[Resources] = {}
_Picker: TypeAlias = tuple[Callable[[Resources], object], tuple[str, ...]]
"""A function that returns amounts in the order of the names, and the names."""
MOST: Final = 2048
"""Number of workloads that a long-lived reader caches at least; other pods are read in full."""
_MOMENTS_MOST: Final = 16384
_USUAL_BYTES: Final = 4096
"""Larger rules are shared only if they were read from equal bytes."""


_DISRUPTION_FIELDS: Final = frozenset(
    {"terminationGracePeriodSeconds", "priority", "priorityClassName"}
)


class PodReader:
    """
    Reads pods, and caches the parts that they share.

    Pods keep parts of the given objects without a copy: do not change these afterwards.
    """

    def __init__(
        self,
        *,
        created: datetime = EPOCH,
        is_pending_unschedulable: bool = False,
        most: int | None = MOST,
    ) -> None:
        """
        Take the creation time of pods without one, and whether every pending pod is unschedulable.

        The caches hold the parts of at least `most` workloads, or of all if it is None.
        """
        self._default_created = created
        self._is_pending_unschedulable = is_pending_unschedulable
        self._latest = created
        self._labels: AnyMemo[bytes, Mapping[str, str]] = memo(most)
        self._created: AnyMemo[str, datetime] = memo(most)
        self._owners: AnyMemo[bytes, tuple[Owner, ...]] = memo(most)
        self._needs: AnyMemo[bytes, _Needs] = memo(most)
        self._rules: AnyMemo[bytes | tuple[bytes, _Ports], PodRules] = memo(most)
        self._equal_amounts: AnyMemo[tuple[tuple[str, ...], object], Resources] = memo(most)
        """Equal amounts as one object, by sorted names and the amounts in that order."""
        self._pickers: AnyMemo[tuple[str, ...], _Picker] = memo(most)
        """The key functions for `_equal_amounts`, by names in the order they are written."""
        self._equal_rules: AnyMemo[PodRules, PodRules] = memo(most)
        self._disruptions: AnyMemo[PodDisruption, PodDisruption] = memo(most)

    @property
    def latest(self) -> datetime:
        """When the youngest pod read so far was created."""
        return self._latest

    def read(self, obj: JsonObject) -> Pod:
        """Read one pod; raise FieldInvalid with the path of what is wrong."""
        try:
            return self._read(obj)
        except FieldInvalid:
            raise
        except (*UNREADABLE, IndexError) as error:
            _find_fault(obj)
            hint = "compare it with a pod that works"
            raise FieldInvalid("", f"cannot be read: {error!r}", hint) from error

    def _read(self, obj: JsonObject) -> Pod:
        meta: JsonObject = obj["metadata"]
        spec: JsonObject = obj["spec"]
        status: JsonObject | None = obj.get("status")
        node_name = spec.get("nodeName") or ""
        phase = nominated = ""
        # A pod without a status was written by hand: it is pending unless it has a gate.
        is_unschedulable = not node_name and bool(status or not spec.get("schedulingGates"))
        if status:
            phase = status.get("phase") or ""
            nominated = status.get("nominatedNodeName") or ""
            if is_unschedulable and not self._is_pending_unschedulable:
                is_unschedulable = was_given_up(status)
        name = meta["name"]
        if type(name) is not str or not name:
            Fields(meta, "metadata").needed("name")
        namespace = meta.get("namespace") or "default"
        owners = meta.get("ownerReferences")
        requests, ports, limits = self._needs_of(spec, status)
        bound, ready = moments_of(status) if node_name and status else NEVER
        deleted = meta.get("deletionTimestamp")
        return Pod(
            name,
            namespace,
            meta.get("uid") or f"{namespace}/{name}",
            self._created_of(meta),
            self._shared_labels(meta),
            requests,
            self._rules_of(spec, ports),
            node_name,
            nominated,
            phase,
            is_unschedulable,
            deleted is not None,
            self._shared_owners(meta) if owners else (),
            limits=limits,
            bound=bound,
            ready=ready,
            disruption=self._disruption_of(meta, spec),
            started=started_at(status) if node_name and status else None,
            deleted=None if deleted is None else Fields(meta, "metadata").time("deletionTimestamp"),
            is_unready=is_unready(status) if node_name and status else False,
            scheduler_message=_scheduler_message(status) if is_unschedulable and status else "",
        )

    def _created_of(self, meta: JsonObject) -> datetime:
        written = meta.get("creationTimestamp")
        if written is None:
            return self._default_created
        created = self._created.get(written)
        if created is None:
            read = Fields(meta, "metadata").time("creationTimestamp") or self._default_created
            created = self._created.put(written, read)
            self._latest = max(self._latest, created)
        return created

    def _shared_labels(self, meta: JsonObject) -> Mapping[str, str]:
        raw = meta.get("labels")
        if not raw:
            return _NO_LABELS
        key = fingerprint(raw)
        labels = self._labels.get(key)
        if labels is None:
            labels = self._labels.put(key, read_labels(meta))
        return labels

    def _shared_owners(self, meta: JsonObject) -> tuple[Owner, ...]:
        key = fingerprint(meta["ownerReferences"])
        owners = self._owners.get(key)
        if owners is None:
            owners = self._owners.put(key, read_owners(Fields(meta, "metadata")))
        return owners

    def _needs_of(self, spec: JsonObject, status: JsonObject | None) -> _Needs:
        containers: list[JsonObject] = spec["containers"]
        resized = _resize_status(status) if status and "containerStatuses" in status else None
        is_plain = len(spec) == 1 or RARE.isdisjoint(spec)
        if len(containers) == 1 and resized is None and is_plain:
            container = containers[0]
            resources = container.get("resources")
            key = fingerprint((resources, container.get("ports")))
            plain = None if "ports" in container else resources
        else:
            key = _needs_key(spec, resized)
            plain = None
        needs = self._needs.get(key)
        if needs is None:
            requests = plain_requests(plain)
            needs = (requests, (), _NO_LIMITS) if requests else read_needs(spec, resized)
            needs = self._needs.put(key, self._shared_needs(*needs))
        return needs

    def _shared_needs(self, requests: Resources, ports: _Ports, limits: Resources) -> _Needs:
        return self._shared_amounts(requests), ports, self._shared_amounts(limits)

    def _shared_amounts(self, amounts: Resources) -> Resources:
        """Return one shared object for equal amounts, in whatever order they are written."""
        if not amounts:
            return _NO_LIMITS
        names = tuple(amounts)
        known = self._pickers.get(names)
        if known is None:
            ordered = tuple(sorted(names))
            known = self._pickers.put(names, (itemgetter(*ordered), ordered))
        pick, ordered = known
        return self._equal_amounts.share((ordered, pick(amounts)), amounts)

    def _disruption_of(self, meta: JsonObject, spec: JsonObject) -> PodDisruption:
        annotations = meta.get("annotations") or _NOTHING
        if not annotations and _DISRUPTION_FIELDS.isdisjoint(spec):
            return USUAL_DISRUPTION
        values = [annotations.get(key) for key in DISRUPTION_ANNOTATIONS]
        if any(type(each) is not str and each is not None for each in values):
            Fields(meta, "metadata").labels("annotations")
        grace, priority = spec.get("terminationGracePeriodSeconds"), spec.get("priority")
        if not (type(grace) is int or grace is None) or not (
            type(priority) is int or priority is None
        ):
            grace, priority = read_grace_and_priority(Fields(spec, "spec"))
        return self.share_disruption(
            values[0], values[1], values[2], priority, spec.get("priorityClassName"), grace
        )

    def share_disruption(
        self,
        do_not_disrupt: str | None,
        disruption_cost: str | None,
        deletion_cost: str | None,
        priority: int | None,
        priority_class: str | None,
        grace: int | None,
    ) -> PodDisruption:
        """Return one shared object for equal settings of disruption."""
        disruption = PodDisruption(
            do_not_disrupt,
            disruption_cost,
            deletion_cost,
            priority or 0,
            priority_class or "",
            DEFAULT_GRACE if grace is None else span(grace),
        )
        return (
            USUAL_DISRUPTION
            if disruption == USUAL_DISRUPTION
            else self._disruptions.share(disruption, disruption)
        )

    def _rules_of(self, spec: JsonObject, ports: _Ports) -> PodRules:
        if not ports and (len(spec) == 1 or _RULES.isdisjoint(spec)):
            return NO_RULES
        return self._shared_rules(spec, ports)

    def _shared_rules(self, spec: JsonObject, ports: _Ports) -> PodRules:
        raw = fingerprint(rule_parts(spec))
        key = (raw, ports) if ports else raw
        rules = self._rules.get(key)
        if rules is None:
            rules = read_rules(Fields(spec, "spec"), ports)
            if rules == NO_RULES:
                rules = NO_RULES
            elif len(raw) <= _USUAL_BYTES:
                rules = self._equal_rules.share(rules, rules)
            self._rules.put(key, rules)
        return rules


def read_owners(meta: Fields) -> tuple[Owner, ...]:
    """Read the owner references of an object."""
    return tuple(
        Owner(
            each.text("apiVersion"),
            each.needed("kind"),
            each.text("name"),
            each.text("uid"),
            each.flag("controller"),
        )
        for each in meta.children("ownerReferences")
    )


def read_needs(spec: JsonObject, resized: JsonObject | None) -> _Needs:
    """Read the requests, ports and limits of a pod from its whole spec."""
    fields = Fields(spec, "spec")
    if not fields.items("containers"):
        fields.fail("containers", "is empty", "add a container")
    requests = effective_requests(fields, Fields(resized or {}, "status"))
    return requests, read_ports(fields), effective_limits(fields)


@lru_cache(maxsize=_MOMENTS_MOST)
def shared_moment(text: str) -> datetime | None:
    """Read a moment that many pods share; None if the text is no moment."""
    return parse_moment(text)


def read_labels(meta: JsonObject) -> Mapping[str, str]:
    """Return the labels of an object; raise FieldInvalid if one is no text."""
    labels: Mapping[str, str] = meta.get("labels") or _NO_LABELS
    for value in labels.values():
        if type(value) is not str:
            Fields(meta, "metadata").labels("labels")
    return labels


def moments_of(status: JsonObject) -> _Moments:
    """Return when a pod got its node, and since when it is ready."""
    bound = ready = None
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True":
            kind = condition.get("type")
            if kind == "PodScheduled":
                bound = shared_moment(condition.get("lastTransitionTime") or "")
            elif kind == "Ready":
                ready = shared_moment(condition.get("lastTransitionTime") or "")
    return bound, ready


def read_grace_and_priority(spec: Fields) -> tuple[int | None, int | None]:
    """Read `terminationGracePeriodSeconds` and `priority`."""
    return spec.number("terminationGracePeriodSeconds"), spec.number("priority")


def started_at(status: JsonObject) -> datetime | None:
    """Return when a kubelet started a pod: `startTime`."""
    written = status.get("startTime")
    return shared_moment(written) if type(written) is str else None


def is_unready(status: JsonObject) -> bool:
    """Say whether the condition Ready of a pod is False."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "False")
    return False


def was_given_up(status: JsonObject) -> bool:
    """Say whether kube-scheduler has marked a pod as unschedulable."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            return bool(condition.get("reason") == "Unschedulable")
    return False


def _scheduler_message(status: JsonObject) -> str:
    """Return why kube-scheduler has found no node for a pod."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            message = condition.get("message")
            return message[:MESSAGE_MAX] if type(message) is str else ""
    return ""


def _resize_status(status: JsonObject) -> JsonObject | None:
    """Return the part of a status that requests depend on; None if it has no such part."""
    kept: JsonObject = {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        entries = [
            {part: each.get(part) for part in ("name", "resources", "allocatedResources")}
            for each in status.get(kind) or ()
            if each.get("resources")
        ]
        if entries:
            kept[kind] = entries
    if not kept:
        return None
    pending = [
        each for each in status.get("conditions") or () if each.get("type") == "PodResizePending"
    ]
    return {**kept, "conditions": [{k: c.get(k) for k in ("type", "reason")} for c in pending]}


def _needs_key(spec: JsonObject, resized: JsonObject | None) -> bytes:
    return fingerprint(
        (
            [(c.get("name"), c.get("resources"), c.get("ports")) for c in spec["containers"]],
            [
                (c.get("name"), c.get("resources"), c.get("restartPolicy"))
                for c in spec.get("initContainers") or ()
            ],
            spec.get("overhead"),
            spec.get("resources"),
            spec.get("hostNetwork"),
            resized,
        )
    )


def rule_parts(spec: JsonObject) -> tuple[object, ...]:
    """Return the parts of a spec that the rules of a pod depend on."""
    volumes = spec.get("volumes")
    return (
        spec.get("nodeSelector"),
        spec.get("affinity"),
        spec.get("tolerations"),
        spec.get("topologySpreadConstraints"),
        spec.get("resourceClaims"),
        _claim_volumes(volumes) if volumes else None,
    )


def _claim_volumes(volumes: list[JsonObject]) -> list[tuple[object, object]] | None:
    """Return the volumes with claims; most pods also have one with a random name."""
    kept = [
        (each.get("name"), each.get("persistentVolumeClaim"))
        for each in volumes
        if each.get("persistentVolumeClaim") is not None or each.get("ephemeral") is not None
    ]
    return kept or None


def _find_fault(obj: JsonObject) -> None:
    """Read a pod with all checks, to raise FieldInvalid for the wrong field."""
    root = Fields(obj)
    meta, spec, status = root.child("metadata"), root.child("spec"), root.child("status")
    meta.needed("name")
    for key in ("namespace", "uid", "creationTimestamp", "deletionTimestamp"):
        meta.text(key)
    meta.labels("labels")
    read_owners(meta)
    spec.text("nodeName")
    if not spec.items("containers"):
        spec.fail("containers", "is missing", "add a container")
    effective_requests(spec, status)
    read_ports(spec)
    read_rules(spec)
    for condition in status.children("conditions"):
        condition.text("type")
