"""What deploy/rbac.yaml grants, and what an operator has used of it."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

import yaml

from tests.tidy.repository import ROOT

DOCUMENTS: Final[list[Any]] = list(
    yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text(encoding="utf-8"))
)
ASKED_FOR_OTHERWISE: Final = {
    ("update", "karpenter.sh", "nodeclaims/finalizers"): "the admission plugin"
    " OwnerReferencesPermissionEnforcement asks for it when an owner blocks its deletion",
    ("update", "karpenter.sh", "nodepools/finalizers"): "the same",
    ("get", "karpenter.sh", "nodeclaims"): "only a watch that is ten seconds late makes us ask",
    ("patch", "", "pods"): "only a gate that most leave closed; see test_poddeletioncost",
}
"""Grants that no request of a healthy cluster uses, with the reason."""
BY_CHOICE: Final = frozenset({"karpy-pod-deletion-cost"})
"""Roles that nothing binds: users do, if they need them."""
OF_CLOUDS: Final = {"karpy-kwok": "kwok", "karpy-aws": "aws"}
"""The provider that alone needs a role."""
_ONE: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Use(NamedTuple):
    """One request, as RBAC sees it."""

    verb: str
    group: str
    resource: str
    """With its subresource: `pods/eviction`."""
    namespace: str = ""
    name: str = ""


class Grant(NamedTuple):
    """One verb for one resource; an empty namespace or name stands for all."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    role: str

    def covers(self, use: Use) -> bool:
        return (
            self[:3] == use[:3]
            and self.namespace in {"", use.namespace}
            and self.name in {"", use.name}
        )


def grants(documents: Iterable[Any] = DOCUMENTS) -> Iterator[Grant]:
    """Give every verb of every role."""
    for document in documents:
        meta = document["metadata"]
        for rule in document.get("rules", ()):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        for name in rule.get("resourceNames", [""]):
                            namespace = meta.get("namespace", "")
                            yield Grant(verb, group, resource, namespace, name, meta["name"])


def ungranted(uses: Collection[Use], known: Collection[Grant] = ()) -> list[Use]:
    """List requests that no role allows."""
    known = known or list(grants())
    return sorted({use for use in uses if not any(each.covers(use) for each in known)})


def unused(
    uses: Collection[Use], provider: str = "kwok", known: Iterable[Grant] | None = None
) -> list[Grant]:
    """List grants that no request with a provider needs, but for those asked for otherwise."""
    return [
        grant
        for grant in (grants() if known is None else known)
        if OF_CLOUDS.get(grant.role, provider) == provider
        and grant[:3] not in ASKED_FOR_OTHERWISE
        and not any(map(grant.covers, uses))
    ]


def explained() -> Iterator[tuple[str, str, str]]:
    """Give role, verb and resource of every row of the tables in docs/security.md."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    for section in re.split("^##+ ", page, flags=re.MULTILINE):
        title, *lines = section.splitlines()
        for cells in (line.split("|") for line in lines if title.partition("Role ")[1]):
            verbs, resources = (re.findall("`(.+?)`", each) for each in [*cells, "", ""][1:3])
            yield from product([title.split()[1]], verbs, resources)


def use_of(method: str, path: str, query: Mapping[str, str]) -> Use:
    """Read a request to an API server."""
    root, *parts = path.strip("/").split("/")
    group = parts.pop(0) if root == "apis" else ""
    parts.pop(0)
    namespace = ""
    if parts[0] == "namespaces" and parts[2:]:
        _, namespace, *parts = parts
    resource, name, subresource, *_ = [*parts, "", ""]
    whole = f"{resource}/{subresource}" if subresource else resource
    return Use(_verb(method, name, query), group, whole, namespace, name)


def _verb(method: str, name: str, query: Mapping[str, str]) -> str:
    if method in _ONE:
        return _ONE[method]
    if name:
        return "get"
    return "watch" if query.get("watch") == "true" else "list"
