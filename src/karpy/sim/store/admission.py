"""Admission: namespaces, ServiceAccounts, PriorityClasses, RuntimeClasses, LimitRanges, quotas."""

from typing import Final

from karpy.codec.admission import read_runtime_class, with_runtime
from karpy.codec.fields import Fields, JsonObject
from karpy.errors import Forbidden
from karpy.model.constraints import NO_SCHEDULE, NOT_READY_TAINT
from karpy.model.kinds import (
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    SERVICE_ACCOUNT,
    Kind,
)
from karpy.ports.objects import WatchEvent
from karpy.sim.store.answers import bad_request, forbidden, not_found
from karpy.sim.store.ledger import Ledger
from karpy.sim.store.limitranger import LimitRanger
from karpy.sim.store.quotas import Quotas

_PREEMPTION: Final = "PreemptLowerPriority"
_NO_OVERHEAD: Final = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
_OTHER_OVERHEAD: Final = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_BOUNDED: Final = frozenset({POD, PERSISTENT_VOLUME_CLAIM})
_SPECS_MAX: Final = 4096


class Admission:
    """Admits, changes or refuses objects depending on other objects."""

    def __init__(self, ledger: Ledger, quotas: Quotas, *, taints_nodes: bool = False) -> None:
        self._namespaces = ledger.table(NAMESPACE)
        self._accounts = ledger.table(SERVICE_ACCOUNT)
        self._classes = ledger.table(PRIORITY_CLASS)
        self._runtimes = ledger.table(RUNTIME_CLASS)
        self._limit_ranger = LimitRanger(ledger)
        self._quotas = quotas
        self._taints_nodes = taints_nodes
        self._usual: JsonObject | None = None
        self._specs: dict[tuple[int, str], tuple[JsonObject, JsonObject]] = {}
        self.changes = 0
        """Counts the changes of objects on which admission depends."""
        ledger.subscribe(PRIORITY_CLASS, self._forget)
        for kind in (NAMESPACE, SERVICE_ACCOUNT, PRIORITY_CLASS, LIMIT_RANGE, RUNTIME_CLASS):
            ledger.subscribe(kind, self._note)

    def on_create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Return a new object after admission; raise Forbidden or NotFound."""
        self._check_namespace(kind, obj["metadata"])
        if kind == NODE and self._taints_nodes:
            return _with_not_ready(obj)
        if kind != POD:
            return obj
        obj = self._limit_ranger.admitted(obj)
        self._check_account(obj)
        return self._with_runtime(self._with_priority(kind, obj))

    def check_new(self, kind: Kind, obj: JsonObject) -> None:
        """Raise Forbidden for a new object that violates a LimitRange or exceeds a quota."""
        if kind in _BOUNDED:
            self._limit_ranger.check(kind, obj)
        self._quotas.check(kind, obj)

    def counts_pods(self, namespace: str) -> bool:
        """Say whether each new pod of a namespace must be checked: the namespace has a quota."""
        return self._quotas.bounds(namespace)

    def on_change(self, kind: Kind, new: JsonObject, old: JsonObject) -> JsonObject:
        """Return a changed object after admission."""
        if kind == PERSISTENT_VOLUME_CLAIM:
            self._limit_ranger.check(kind, new)
        if kind != POD:
            return new
        # Admission comes before validation: the field may be null.
        spec, before = new.get("spec") or {}, old["spec"]
        missing = {
            field: before[field]
            for field in ("priority", "preemptionPolicy")
            if field in before and spec.get(field) is None
        }
        return {**new, "spec": {**spec, **missing}} if missing else new

    def _check_namespace(self, kind: Kind, meta: JsonObject) -> None:
        namespace = meta.get("namespace")
        if not kind.is_namespaced:
            if namespace:
                raise bad_request("namespace may not be set on a cluster-scoped object")
            return
        if not namespace:
            raise bad_request(
                "an empty namespace may not be set during creation",
                hint="set `metadata.namespace`, for instance to `default`",
            )
        found = self._namespaces.get("", namespace)
        if found is None:
            raise not_found(NAMESPACE, namespace)
        if "deletionTimestamp" in found["metadata"]:
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            raise forbidden(kind, meta.get("name") or "", why)

    def _check_account(self, pod: JsonObject) -> None:
        meta, account = pod["metadata"], (pod.get("spec") or {}).get("serviceAccountName")
        if account and self._accounts.get(meta["namespace"], account) is None:
            why = (
                f"error looking up service account {meta['namespace']}/{account}: "
                f'serviceaccount "{account}" not found'
            )
            raise forbidden(POD, meta.get("name") or "", why)

    def _with_priority(self, kind: Kind, pod: JsonObject) -> JsonObject:
        spec = pod.get("spec") or {}
        name = spec.get("priorityClassName")
        known = self._specs.get((id(spec), name or ""))
        if known is not None and known[0] is spec:
            return {**pod, "spec": known[1]}
        found = self._classes.get("", name) if name else self._usual
        if name and found is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden(kind, pod["metadata"]["name"], why)
        value = found.get("value", 0) if found else 0
        if spec.get("priority") not in {None, value}:
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod "
                f"spec; priority admission controller computed {value} from the given "
                "PriorityClass name"
            )
            raise forbidden(kind, pod["metadata"]["name"], why)
        policy = found.get("preemptionPolicy", _PREEMPTION) if found else _PREEMPTION
        asked = spec.get("preemptionPolicy")
        if asked not in {None, policy}:
            why = (
                f"the string value of PreemptionPolicy ({asked}) must not be provided in pod "
                f"spec; priority admission controller computed {policy} from the given "
                "PriorityClass name"
            )
            raise forbidden(kind, pod["metadata"]["name"], why)
        given = {"priority": value, "preemptionPolicy": policy}
        if found and not name:
            given["priorityClassName"] = found["metadata"]["name"]
        admitted = {**spec, **given}
        if len(self._specs) >= _SPECS_MAX:
            self._specs.clear()
        self._specs[id(spec), name or ""] = (spec, admitted)
        return {**pod, "spec": admitted}

    def _with_runtime(self, pod: JsonObject) -> JsonObject:
        spec, name = pod["spec"], pod["metadata"]["name"]
        if not spec.get("runtimeClassName"):
            if spec.get("overhead"):
                raise _rejected(name, _NO_OVERHEAD)
            return pod
        found = self._runtimes.get("", spec["runtimeClassName"])
        if found is None:
            raise _rejected(name, f'RuntimeClass "{spec["runtimeClassName"]}" not found')
        runtime = read_runtime_class(Fields(found))
        overhead = spec.get("overhead")
        if overhead and overhead != runtime.overhead:
            raise _rejected(name, _OTHER_OVERHEAD if runtime.overhead else _NO_OVERHEAD)
        selector = spec.get("nodeSelector") or {}
        for key, value in runtime.node_selector.items():
            if selector.get(key, value) != value:
                ours = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
                why = f"conflict: {ours}; pod.spec.nodeSelector[{key}] = {selector[key]}"
                raise forbidden(POD, name, why)
        return {**pod, "spec": with_runtime(Fields(spec, "spec"), runtime)}

    def _note(self, _event: WatchEvent, _before: JsonObject | None) -> None:
        self.changes += 1

    def _forget(self, _event: WatchEvent, _before: JsonObject | None) -> None:
        self._specs.clear()
        found = [each for each in self._classes.walk() if each.get("globalDefault")]
        # If several PriorityClasses are the default, the one with the lowest value counts.
        self._usual = min(found, key=lambda each: each.get("value", 0)) if found else None


def _with_not_ready(node: JsonObject) -> JsonObject:
    """Add the not-ready taint that every new Node has until it is Ready."""
    spec = node.get("spec") or {}
    taints = spec.get("taints") or []
    wanted = {"key": NOT_READY_TAINT, "effect": NO_SCHEDULE}
    if any({key: each.get(key) for key in wanted} == wanted for each in taints):
        return node
    return {**node, "spec": {**spec, "taints": [*taints, wanted]}}


def _rejected(name: str, why: str) -> Forbidden:
    return forbidden(POD, name, f"pod rejected: {why}")
