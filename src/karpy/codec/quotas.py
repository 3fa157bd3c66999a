"""ResourceQuotas: which pods of an input would not be created, since a quota is used up."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from karpy.codec.fields import Fields
from karpy.codec.findings import Finding, finding_of
from karpy.errors import NotRead, QuotaExceeded
from karpy.model.pods import Pod
from karpy.model.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY, PODS
from karpy.model.resources import format_quantity as shown

_PREFIXES: Final = ("requests.", "limits.")
_COUNTS: Final = frozenset({"pods", "count/pods"})
_NEEDED: Final = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
"""Requests and limits that a pod must set if a quota bounds them."""
_BASIC: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_KNOWN_SCOPES: Final = frozenset({"BestEffort", "NotBestEffort", "PriorityClass"})
_NAMES_SHOWN: Final = 20


class Scope(Struct, frozen=True):
    """One condition on the pods that a quota is about."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def matches(self, pod: Pod) -> bool:
        """Say whether a pod meets it."""
        is_best_effort = not pod.limits and not set(pod.requests) & {CPU, MEMORY}
        if self.name == "BestEffort":
            return is_best_effort
        if self.name == "NotBestEffort":
            return not is_best_effort
        name = pod.disruption.priority_class
        match self.operator:
            case "Exists":
                return bool(name)
            case "DoesNotExist":
                return not name
            case "In":
                return name in self.values
        return name not in self.values


class ResourceQuota(Struct, frozen=True):
    """What the pods of a namespace may ask for together."""

    name: str
    namespace: str
    hard: Mapping[str, int]
    used: Mapping[str, int] = {}
    """The usage in its status."""
    scopes: tuple[Scope, ...] = ()

    @property
    def is_readable(self) -> bool:
        return all(each.name in _KNOWN_SCOPES for each in self.scopes)


def read_quota(fields: Fields) -> ResourceQuota:
    """Read a ResourceQuota."""
    meta, spec = fields.child("metadata"), fields.child("spec")
    scopes = [Scope(each) for each in spec.texts("scopes")]
    scopes += [
        Scope(
            each.needed("scopeName"), each.text("operator") or "Exists", tuple(each.texts("values"))
        )
        for each in spec.child("scopeSelector").children("matchExpressions")
    ]
    return ResourceQuota(
        meta.needed("name"),
        meta.text("namespace") or "default",
        _amounts(spec, "hard"),
        _amounts(fields.child("status"), "used"),
        tuple(scopes),
    )


def created_pods(
    pods: Iterable[Pod],
    quotas: Iterable[ResourceQuota],
    origins: Mapping[tuple[str, str, str], str],
) -> tuple[tuple[Pod, ...], list[Finding]]:
    """
    Return the pods that the quotas admit, in this order, and findings on the refused pods.

    Pods that exist in the cluster already are counted first.
    """
    pods = tuple(pods)
    ledgers: dict[str, list[_Ledger]] = {}
    findings: list[Finding] = []
    for quota in sorted(quotas, key=lambda each: (each.namespace, each.name)):
        where = origins.get(
            ("ResourceQuota", quota.namespace, quota.name),
            f"ResourceQuota {quota.namespace}/{quota.name}",
        )
        if quota.is_readable:
            existing = (each for each in pods if _exists(each))
            ledgers.setdefault(quota.namespace, []).append(_Ledger(quota, existing, where))
        else:
            findings.append(_unread(where))
    kept = tuple(each for each in pods if _admit(each, ledgers.get(each.namespace, [])))
    for some in ledgers.values():
        findings += [each for ledger in some for each in ledger.findings()]
    return kept, findings


class _Ledger:
    """One quota, its usage, and the pods that it refuses."""

    def __init__(self, quota: ResourceQuota, existing: Iterable[Pod], where: str) -> None:
        self._quota = quota
        self._where = where
        self._refused: dict[str, list[str]] = {}
        counted = dict.fromkeys(quota.hard, 0)
        for pod in existing:
            if pod.namespace == quota.namespace and not pod.is_terminal:
                for name, amount in self._share(pod).items():
                    counted[name] += amount
        self._used = {name: max(each, quota.used.get(name, 0)) for name, each in counted.items()}

    def why_not(self, pod: Pod) -> str:
        """Say why the quota refuses a pod; empty if it does not."""
        if not all(each.matches(pod) for each in self._quota.scopes):
            return ""
        share, hard = self._share(pod), self._quota.hard
        missing = sorted((_NEEDED & hard.keys()) - share.keys())
        if missing:
            return f"a pod must say its {missing[0]}"
        for name, amount in sorted(share.items()):
            left = hard[name] - self._used[name]
            if amount > left:
                base = _base(name)
                return (
                    f"{name}: {shown(amount, base)} asked, {shown(max(0, left), base)} left of"
                    f" {shown(hard[name], base)}"
                )
        return ""

    def take(self, pod: Pod) -> None:
        """Count a pod that is created."""
        for name, amount in self._share(pod).items():
            self._used[name] += amount

    def refuse(self, pod: Pod, why: str) -> None:
        """Remember a refused pod with the reason."""
        self._refused.setdefault(why, []).append(pod.key)

    def findings(self) -> Iterator[Finding]:
        """Return a finding for each reason, with the refused pods."""
        for why, names in self._refused.items():
            hidden = len(names) - _NAMES_SHOWN
            more = f" and {hidden} more" if hidden > 0 else ""
            what = "1 pod" if len(names) == 1 else f"{len(names)} pods"
            problem = (
                f"keeps {what} from being created ({', '.join(names[:_NAMES_SHOWN])}{more}): {why}"
            )
            error = QuotaExceeded(problem=problem, hint="raise the quota, or ask for less")
            yield finding_of(error, where=self._where, path="spec.hard", is_warning=True)

    def _share(self, pod: Pod) -> dict[str, int]:
        """Return the amounts of a pod that the quota counts."""
        if not all(each.matches(pod) for each in self._quota.scopes):
            return {}
        share = dict.fromkeys(_COUNTS, 1)
        for name, amount in pod.requests.items():
            if name != PODS:
                share[f"requests.{name}"] = amount
                if name in _BASIC or name.startswith(HUGEPAGES_PREFIX):
                    share[name] = amount
        share |= {f"limits.{name}": amount for name, amount in pod.limits.items()}
        return {name: amount for name, amount in share.items() if name in self._quota.hard}


def _admit(pod: Pod, ledgers: list[_Ledger]) -> bool:
    """Say whether all quotas of its namespace admit a pod, and count it if so."""
    if not ledgers or _exists(pod):
        return True
    for ledger in ledgers:
        why = ledger.why_not(pod)
        if why:
            ledger.refuse(pod, why)
            return False
    for ledger in ledgers:
        ledger.take(pod)
    return True


def _exists(pod: Pod) -> bool:
    return bool(pod.phase or pod.node_name)


def _unread(where: str) -> Finding:
    error = NotRead(
        problem="has a scope that is not read; no pod is held to it",
        hint="leave it out of the input if it does not matter",
    )
    return finding_of(error, where=where, path="spec.scopes", is_warning=True, is_left_out=True)


def _amounts(fields: Fields, key: str) -> dict[str, int]:
    """Read amounts, whose names may have the prefix `requests.` or `limits.`."""
    child = fields.child(key)
    return {
        name: Fields({_base(name): value}, key, fields).quantity(_base(name))
        for name, value in child.obj.items()
    }


def _base(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name
