"""Kubernetes' own kinds from plain objects: namespaces, services, budgets, controllers, nodes."""

from typing import Final

from karpy.codec.constraints import check_label, read_selector
from karpy.codec.fields import Fields
from karpy.codec.uids import derived_uid
from karpy.model.pods import DisruptionBudget, PodController, Service
from karpy.model.requirements import Requirement

APPS: Final = "apps/v1"


def read_namespace(fields: Fields) -> tuple[str, dict[str, str]]:
    """Read the name and labels of a Namespace."""
    meta = fields.child("metadata")
    return meta.needed("name"), meta.labels("labels")


def read_service(fields: Fields) -> Service:
    """Read a Service; without a selector it has None."""
    meta, spec = fields.child("metadata"), fields.child("spec")
    selector = spec.labels("selector") if "selector" in spec else None
    return Service(meta.needed("name"), meta.text("namespace") or "default", selector)


def read_controller(fields: Fields, kind: str) -> PodController:
    """Read the identity and selector of a ReplicaSet, StatefulSet or ReplicationController."""
    meta, spec = fields.child("metadata"), fields.child("spec")
    name, namespace = meta.needed("name"), meta.text("namespace") or "default"
    is_core = kind == "ReplicationController"
    return PodController(
        api_version="v1" if is_core else APPS,
        kind=kind,
        name=name,
        namespace=namespace,
        uid=meta.text("uid") or derived_uid(kind, namespace, name),
        selector=_plain_selector(spec) if is_core else _expressions(spec) or (),
    )


def read_budget(fields: Fields) -> DisruptionBudget:
    """Read a PodDisruptionBudget; without a selector it has None, which selects nothing."""
    meta, spec = fields.child("metadata"), fields.child("spec")
    return DisruptionBudget(
        name=meta.needed("name"),
        namespace=meta.text("namespace") or "default",
        selector=_expressions(spec),
        min_available=_count_or_share(spec, "minAvailable"),
        max_unavailable=_count_or_share(spec, "maxUnavailable"),
        disruptions_allowed=fields.child("status").number("disruptionsAllowed"),
        allows_unready=spec.text("unhealthyPodEvictionPolicy") == "AlwaysAllow",
    )


def _expressions(spec: Fields) -> tuple[Requirement, ...] | None:
    selector = read_selector(spec, "selector")
    return None if selector is None else selector.expressions


def _plain_selector(spec: Fields) -> tuple[Requirement, ...]:
    selector = spec.child("selector")
    return tuple(
        Requirement(key, frozenset({check_label(selector, key)}))
        for key in sorted(spec.labels("selector"))
    )


def _count_or_share(spec: Fields, key: str) -> str | None:
    value = spec.obj.get(key)
    if value is None:
        return None
    text = str(value)
    if isinstance(value, bool) or not text.removesuffix("%").isdecimal():
        spec.fail(key, f"is `{value}`", "write a number of pods or a share such as `25%`")
    return text
