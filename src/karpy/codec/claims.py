"""Launches written as NodeClaims."""

from collections.abc import Iterable, Mapping
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.instances import Catalog
from karpy.model.kinds import NODE_CLAIM, NODE_POOL
from karpy.model.labels import (
    CAPACITY_OVERLAID,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    MIN_VALUES_RELAXED,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    PRICE_OVERLAID,
    TERMINATION_FINALIZER,
    is_restricted,
)
from karpy.model.labels import NODE_POOL as NODE_POOL_LABEL
from karpy.model.requirements import Operator, Requirement, Requirements, why_incompatible
from karpy.model.resources import CPU, Resources
from karpy.model.verdicts import Launch

_COPIED: Final = (
    "taints",
    "startupTaints",
    "nodeClassRef",
    "expireAfter",
    "terminationGracePeriod",
)


def write_node_claim(launch: Launch, pool: JsonObject, catalog: Catalog) -> JsonObject:
    """
    Write the NodeClaim of a launch for the current version of its NodePool.

    Without launch options, the requirements alone limit the choice of the cloud.
    """
    template = (pool.get("spec") or {}).get("template") or {}
    template_meta, inner = template.get("metadata") or {}, template.get("spec") or {}
    requirements = {**launch.requirements, **_chosen(launch, catalog)}
    written = [
        part
        for key in sorted(requirements)
        if key != HOSTNAME
        for part in write_requirement(requirements[key])
    ]
    spec = {key: inner[key] for key in _COPIED if inner.get(key) is not None}
    requests = write_resources(launch.resources)
    return {
        "apiVersion": NODE_CLAIM.api_version,
        "kind": NODE_CLAIM.name,
        "metadata": {
            "generateName": f"{launch.pool}-",
            # Differs: the termination finalizer of a NodeClaim: Karpenter adds it by a second
            # write; Karpy creates the NodeClaim with it, so that no deletion can come between.
            "finalizers": [TERMINATION_FINALIZER],
            "labels": {
                **(template_meta.get("labels") or {}),
                NODE_POOL_LABEL: launch.pool,
                **_class_label(inner.get("nodeClassRef") or {}),
                **_custom_labels(launch.requirements, catalog.well_known),
            },
            "annotations": {
                **(template_meta.get("annotations") or {}),
                **_stamps(pool),
                **_relaxation(launch),
                **_overlaid(launch, catalog),
            },
            "ownerReferences": [_owner(pool)],
        },
        "spec": {
            **spec,
            "requirements": written,
            **({"resources": {"requests": requests}} if requests else {}),
        },
    }


def write_requirement(requirement: Requirement) -> list[JsonObject]:
    """Write a requirement as NodePools and NodeClaims have it: one entry for each operator."""
    parts: list[tuple[str, tuple[str, ...]]] = []
    is_bounded = requirement.gte is not None or requirement.lte is not None
    if not is_bounded or requirement.values:
        parts.append((requirement.operator.value, tuple(sorted(requirement.values))))
    if requirement.gte is not None:
        parts.append((Operator.GTE.value, (str(requirement.gte),)))
    if requirement.lte is not None:
        parts.append((Operator.LTE.value, (str(requirement.lte),)))
    if requirement.is_needed:
        parts.append((Operator.EXISTS.value, ()))
    return [_entry(requirement, operator, values) for operator, values in parts]


def write_resources(amounts: Resources) -> dict[str, str]:
    """Write amounts as quantities: thousandths of cores, whole numbers of everything else."""
    return {
        name: f"{amount}m" if name == CPU and amount % 1000 else str(_whole(name, amount))
        for name, amount in sorted(amounts.items())
    }


def _whole(name: str, amount: int) -> int:
    return amount // 1000 if name == CPU else amount


def _entry(requirement: Requirement, operator: str, values: tuple[str, ...]) -> JsonObject:
    entry: JsonObject = {"key": requirement.key, "operator": operator}
    if values:
        entry["values"] = list(values)
    if requirement.min_values is not None:
        entry["minValues"] = requirement.min_values
    return entry


def _chosen(launch: Launch, catalog: Catalog) -> dict[str, Requirement]:
    """Return requirements on the instance types and capacity types of the launch options."""
    if not launch.options:
        return {}
    names = tuple(option.instance_type for option in launch.options)
    sold = _capacity_types(launch, catalog)
    return {
        INSTANCE_TYPE: _narrowed(INSTANCE_TYPE, names, launch.requirements),
        CAPACITY_TYPE: _narrowed(CAPACITY_TYPE, sold, launch.requirements),
    }


def _relaxation(launch: Launch) -> dict[str, str]:
    """Return the annotation that says whether minValues was relaxed; none without options."""
    if not launch.options:
        return {}
    return {MIN_VALUES_RELAXED: "true" if launch.is_min_values_relaxed else "false"}


def _overlaid(launch: Launch, catalog: Catalog) -> dict[str, str]:
    """Return annotations that say whether NodeOverlays changed prices or capacities."""
    names = {option.instance_type for option in launch.options}
    types = [each for each in catalog.types_for(launch.pool) if each.name in names]
    marks = {
        PRICE_OVERLAID: any(each.is_price_overlaid for each in types),
        CAPACITY_OVERLAID: any(each.is_capacity_overlaid for each in types),
    }
    return {key: "true" for key, is_marked in marks.items() if is_marked}


def _narrowed(key: str, values: Iterable[str], requirements: Requirements) -> Requirement:
    """Return a requirement on these values, with the minValues of the original requirement."""
    present = requirements.get(key)
    least = None if present is None else present.min_values
    return Requirement(key, frozenset(values), min_values=least)


def _capacity_types(launch: Launch, catalog: Catalog) -> set[str]:
    """Return the capacity types in which an instance type of the launch can be launched."""
    names = {option.instance_type for option in launch.options}
    places = {
        id(offering.requirements): offering
        for each in catalog.types_for(launch.pool)
        if each.name in names
        for offering in each.offerings
        if offering.is_launchable
    }
    # Types share the requirements of their offerings: compare each object once.
    return {
        place.capacity_type
        for place in places.values()
        if why_incompatible(launch.requirements, place.requirements, catalog.well_known) is None
    }


def _class_label(ref: Mapping[str, str]) -> dict[str, str]:
    if not (ref.get("group") and ref.get("kind") and ref.get("name")):
        return {}
    return {f"{ref['group']}/{ref['kind'].lower()}": ref["name"]}


def _custom_labels(requirements: Requirements, well_known: frozenset[str]) -> dict[str, str]:
    """Choose one value for each label that is neither well-known nor restricted."""
    return {
        key: min(requirement.values)
        for key, requirement in sorted(requirements.items())
        if key not in well_known
        and not is_restricted(key, well_known)
        and not requirement.complement
        and requirement.values
    }


def _stamps(pool: JsonObject) -> dict[str, str]:
    annotations = pool["metadata"].get("annotations") or {}
    return {
        key: annotations[key]
        for key in (NODE_POOL_HASH, NODE_POOL_HASH_VERSION)
        if key in annotations
    }


def _owner(pool: JsonObject) -> JsonObject:
    return {
        "apiVersion": NODE_POOL.api_version,
        "kind": NODE_POOL.name,
        "name": pool["metadata"]["name"],
        "uid": pool["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
