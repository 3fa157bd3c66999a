"""
Findings on requirements without effect: nothing in the catalog or the input has their label.

Karpenter accepts them silently, and so does the decision: a NodePool that requires GPUs by a label
of EC2 gets any machine from a catalog that has no such label.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from karpy.codec.findings import Finding, finding_of, note
from karpy.codec.providers import (
    PROVIDER_LABELS,
    Provider,
    nearest,
    provider_of_class,
    provider_of_key,
)
from karpy.errors import CatalogMissing, LabelUnknown
from karpy.model.instances import Catalog, columns
from karpy.model.labels import HOSTNAME, INSTANCE_TYPE, NODE_POOL, ZONE
from karpy.model.pods import DAEMON_SET, Pod, PodRules
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.requirements import Requirement
from karpy.model.snapshot import Snapshot

Origins = Mapping[tuple[str, str, str], str]
"""File and document of each object, by kind, namespace and name."""

_POOL_SPEC: Final = "spec.template.spec.requirements"
_OF_CATALOG: Final = frozenset({INSTANCE_TYPE, ZONE})
"""Labels whose values differ from catalog to catalog."""
_OTHER_NAMES: Final = {
    "aarch64": "arm64",
    "ondemand": "on-demand",
    "x86": "amd64",
    "x86_64": "amd64",
}
_VALUES_SHOWN: Final = 3


class Supply(Struct, frozen=True):
    """A catalog, with its name on the command line, and whether the user has chosen it."""

    name: str
    catalog: Catalog
    is_asked_for: bool = True
    is_estimate: bool = False
    """Whether types and prices do not come from the API of the cloud."""
    node_classes: frozenset[tuple[str, str]] = frozenset()
    """Group and kind of the node classes that the catalog has taken into account."""
    findings: tuple[Finding, ...] = ()
    """Findings about the catalog itself."""


class _Located(Struct, frozen=True):
    """One requirement of an object, with its path."""

    requirement: Requirement
    path: str
    is_preference: bool = False


class _Subject(Struct, frozen=True):
    """An object with requirements, and the effect of a requirement whose label nothing has."""

    where: str
    effect: str
    is_pod: bool = False
    is_daemon: bool = False
    is_overlay: bool = False


def find_narrowing(snapshot: Snapshot, supply: Supply, origins: Origins) -> list[Finding]:
    """Return findings on requirements, labels and node classes that the catalog does not cover."""
    check = _Check(snapshot, supply)
    found: list[Finding] = []
    for pool in snapshot.pools:
        found += check.pool(pool, _where(origins, "NodePool", "", pool.name))
    for overlay in snapshot.overlays:
        found += check.overlay(overlay, _where(origins, "NodeOverlay", "", overlay.name))
    for daemon in snapshot.daemons:
        subject = _Subject(
            _where(origins, "DaemonSet", daemon.namespace, daemon.name),
            "it runs on no new node",
            is_pod=True,
            is_daemon=True,
        )
        found += check.pod(subject, daemon.pod.rules, "spec.template.spec")
    waiting = (pod for pod in snapshot.pods if not pod.node_name and not pod.is_terminal)
    return found + list(_of_pods(check, waiting, origins))


class _Check:
    """Checks requirements against the labels of instance types, nodes and NodePools."""

    def __init__(self, snapshot: Snapshot, supply: Supply) -> None:
        self._supply = supply
        self._sold = _sold(snapshot.catalog)
        self._known = {key: set(values) for key, values in self._sold.items()}
        for node in snapshot.nodes:
            for key, value in node.labels.items():
                self._known.setdefault(key, set()).add(value)
        self._pools = frozenset(pool.name for pool in snapshot.pools)
        self._defined = {key for pool in snapshot.pools for key in _defined(pool)}
        self._domains = {key.partition("/")[0] for key in self._sold}
        self._near = PROVIDER_LABELS | self._sold.keys()

    def pool(self, pool: NodePool, where: str) -> Iterator[Finding]:
        """Check a NodePool against the catalog."""
        subject = _Subject(where, "it narrows nothing")
        ref = pool.node_class
        provider = provider_of_class(ref.group, ref.kind)
        if not self._supply.is_asked_for and not self._sells(provider):
            yield self._of_class(pool, provider, where)
        for index, requirement in enumerate(pool.requirements):
            yield from self._of(subject, _Located(requirement, f"{_POOL_SPEC}[{index}]"))
        for key in sorted(pool.labels):
            if key not in self._sold and self._is_missing(key):
                path = f"spec.template.metadata.labels[{key}]"
                yield self._missing(subject, key, path, is_preference=False)

    def overlay(self, overlay: NodeOverlay, where: str) -> Iterator[Finding]:
        """Check a NodeOverlay against the catalog and the NodePools."""
        subject = _Subject(where, "the overlay changes no type", is_overlay=True)
        for index, requirement in enumerate(overlay.requirements):
            yield from self._of(subject, _Located(requirement, f"spec.requirements[{index}]"))

    def pod(self, subject: _Subject, rules: PodRules, spec: str) -> Iterator[Finding]:
        """Check the node requirements of a pod against the catalog, NodePools and nodes."""
        for located in _node_requirements(rules, spec):
            yield from self._of(subject, located)

    def _of(self, subject: _Subject, located: _Located) -> Iterator[Finding]:
        key = located.requirement.key
        if key == NODE_POOL:
            yield from self._of_pools(subject, located)
        elif key in self._sold:
            yield from self._of_values(subject, located)
        elif key == HOSTNAME or (subject.is_pod and key in self._known):
            return
        elif self._is_missing(key):
            if not self._may_pass(subject, located.requirement):
                yield self._missing(subject, key, located.path, is_preference=located.is_preference)
        elif not subject.is_pod and not subject.is_overlay:
            yield from self._own_label(subject, located)
        elif key not in self._defined:
            yield from self._undefined(subject, located)

    def _may_pass(self, subject: _Subject, requirement: Requirement) -> bool:
        """Say whether a requirement on a missing label may be meant to exclude other nodes."""
        provider = provider_of_key(requirement.key)
        is_type_label = provider is not None and requirement.key in provider.labels
        if is_type_label:
            return False
        return subject.is_daemon or (subject.is_pod and requirement.is_negative)

    def _of_pools(self, subject: _Subject, located: _Located) -> Iterator[Finding]:
        wanted = located.requirement
        unknown = sorted(wanted.values - self._pools)
        if not unknown or wanted.complement or not self._pools:
            return
        near = nearest(unknown[0], self._pools)
        hint = f"write `{near}`" if near else "add the NodePool to the input"
        problem = f"is about the NodePool `{unknown[0]}`, which the input does not hold"
        yield self._unknown(subject, located.path, problem, hint)

    def _of_values(self, subject: _Subject, located: _Located) -> Iterator[Finding]:
        wanted = located.requirement
        key = wanted.key
        known = self._known[key] if subject.is_pod else self._sold[key]
        if not known and not wanted.is_negative:
            error = CatalogMissing(
                catalog=self._supply.name, problem=f"asks for nodes with `{key}`"
            )
            yield finding_of(
                error, where=subject.where, path=located.path, is_warning=located.is_preference
            )
            return
        unknown = sorted(wanted.values - known)
        if not unknown:
            return
        is_none = len(unknown) == len(wanted.values)
        what = f"`{key}` {_few(unknown)}"
        problem = f"asks for {what}" if not wanted.complement else f"rules out {what}"
        if key in _OF_CATALOG:
            if not is_none or wanted.complement:
                message = f"{problem}; the catalog `{self._supply.name}` has no such value"
                yield note("VALUE_UNKNOWN", message, where=subject.where, path=located.path)
            else:
                error = CatalogMissing(catalog=self._supply.name, problem=problem)
                yield finding_of(
                    error, where=subject.where, path=located.path, is_warning=located.is_preference
                )
        elif is_none and not wanted.complement:
            near = nearest(unknown[0], known) or _like(unknown[0], known)
            hint = f"write `{near}`" if near else f"use one of: {_few(sorted(known))}"
            yield self._unknown(subject, located.path, f"{problem}, a value that no type has", hint)

    def _own_label(self, subject: _Subject, located: _Located) -> Iterator[Finding]:
        """Report a requirement that defines a label of the NodePool, or likely misspells one."""
        wanted = located.requirement
        key = wanted.key
        near = nearest(key, self._near)
        problem = f"is about `{key}`, a label that no type of the catalog has"
        if near is not None:
            hint = f"write `{near}` if that is meant"
            yield self._unknown(subject, located.path, f"{problem}: {subject.effect}", hint)
        elif wanted.complement or not wanted.values:
            hint = "name the values that nodes shall have, or remove it"
            yield self._unknown(subject, located.path, f"{problem}: {subject.effect}", hint)
        else:
            message = f"{problem}: {subject.effect}, and nodes get it with one of its values"
            yield note("OWN_LABEL", message, where=subject.where, path=located.path)

    def _undefined(self, subject: _Subject, located: _Located) -> Iterator[Finding]:
        key = located.requirement.key
        near = nearest(key, self._near | self._defined)
        is_usual = located.requirement.is_negative or subject.is_daemon or not self._pools
        if near is None and is_usual:
            return
        problem = f"is about `{key}`, a label that no type, NodePool or node of the input has"
        hint = f"write `{near}` if that is meant" if near else f"let a NodePool define `{key}`"
        yield self._unknown(subject, located.path, problem, hint)

    def _missing(self, subject: _Subject, key: str, path: str, *, is_preference: bool) -> Finding:
        provider = provider_of_key(key)
        assert provider is not None
        problem = f"is about `{key}`, a label of {provider.title}"
        effect = "" if subject.is_pod else f" ({subject.effect})"
        near = None if key in provider.labels else nearest(key, provider.labels)
        error = CatalogMissing(catalog=self._supply.name, problem=f"{problem}{effect}")
        if provider.catalog:
            error.hint = f"name a catalog that has them: `--catalog {provider.catalog}:REGION`"
        if near is not None:
            error.hint = f"write `{near}` if that is meant, and {error.hint}"
        return finding_of(error, where=subject.where, path=path, is_warning=is_preference)

    def _unknown(self, subject: _Subject, path: str, problem: str, hint: str) -> Finding:
        error = LabelUnknown(problem=problem, hint=hint)
        return finding_of(error, where=subject.where, path=path, is_warning=True)

    def _of_class(self, pool: NodePool, provider: Provider | None, where: str) -> Finding:
        problem = f"is {pool.node_class.kind}: "
        if provider is None:
            problem += "types and prices of the answer are not of its cloud"
        else:
            problem += f"its nodes are {provider.title} machines"
        error = CatalogMissing(catalog=self._supply.name, problem=problem)
        return finding_of(error, where=where, path="spec.template.spec.nodeClassRef")

    def _sells(self, provider: Provider | None) -> bool:
        return provider is not None and not self._domains.isdisjoint(provider.domains)

    def _is_missing(self, key: str) -> bool:
        """Say whether a label belongs to a provider whose types are not in the catalog."""
        provider = provider_of_key(key)
        return provider is not None and not self._sells(provider)


def _of_pods(check: _Check, pods: Iterable[Pod], origins: Origins) -> Iterator[Finding]:
    """Check pods against the catalog, once for each workload."""
    seen: dict[tuple[str, str, str, int], None] = {}
    for pod in pods:
        if pod.is_owned_by(DAEMON_SET):
            continue
        kind, name = _origin_of(pod, origins)
        key = (kind, pod.namespace, name, id(pod.rules))
        if key in seen:
            continue
        seen[key] = None
        spec = "spec" if kind == "Pod" else "spec.template.spec"
        where = _where(origins, kind, pod.namespace, name)
        yield from check.pod(_Subject(where, "", is_pod=True), pod.rules, spec)


def _origin_of(pod: Pod, origins: Origins) -> tuple[str, str]:
    """Return kind and name of the input object that a pod comes from: its workload, or itself."""
    for owner in pod.owners:
        if (owner.kind, pod.namespace, owner.name) in origins:
            return owner.kind, owner.name
        deployed = owner.name.rpartition("-")[0]
        if owner.kind == "ReplicaSet" and ("Deployment", pod.namespace, deployed) in origins:
            return "Deployment", deployed
    return "Pod", pod.name


def _node_requirements(rules: PodRules, spec: str) -> Iterator[_Located]:
    for each in rules.node_selector:
        yield _Located(each, f"{spec}.nodeSelector[{each.key}]")
    node = f"{spec}.affinity.nodeAffinity"
    hard = f"{node}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    for number, term in enumerate(rules.required_node_terms):
        for place, each in enumerate(term.expressions):
            yield _Located(each, f"{hard}[{number}].matchExpressions[{place}]")
    soft = f"{node}.preferredDuringSchedulingIgnoredDuringExecution"
    for number, preferred in enumerate(rules.preferred_node_terms):
        for place, each in enumerate(preferred.term.expressions):
            path = f"{soft}[{number}].preference.matchExpressions[{place}]"
            yield _Located(each, path, is_preference=True)


def _sold(catalog: Catalog) -> dict[str, set[str]]:
    """Return the labels of all types and offerings, with their values."""
    sold: dict[str, set[str]] = {}
    seen: set[int] = set()
    types = (*catalog.types, *(each for some in catalog.by_pool.values() for each in some))
    for kind in types:
        places, _ = columns(kind.offerings)
        parts = [kind.requirements]
        if id(places) not in seen:
            seen.add(id(places))
            parts += [place.requirements for place in places]
        for requirements in parts:
            for key, requirement in requirements.items():
                sold.setdefault(key, set()).update(requirement.values)
    return sold


def _defined(pool: NodePool) -> Iterator[str]:
    yield from pool.labels
    for each in pool.requirements:
        if each.values and not each.complement:
            yield each.key
    ref = pool.node_class
    yield f"{ref.group}/{ref.kind.lower()}"


def _like(value: str, known: Iterable[str]) -> str | None:
    """Return a value that differs in case only, or has another name in other systems."""
    wanted = _OTHER_NAMES.get(value.lower(), value.lower())
    return next((each for each in sorted(known) if each.lower() == wanted), None)


def _few(values: list[str]) -> str:
    shown = ", ".join(f"`{each}`" for each in values[:_VALUES_SHOWN])
    hidden = len(values) - _VALUES_SHOWN
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def _where(origins: Origins, kind: str, namespace: str, name: str) -> str:
    shown = f"{namespace}/{name}" if namespace else name
    return origins.get((kind, namespace, name), f"{kind} {shown}")
