"""The catalog of EC2 without AWS, for the regions and node classes of an input."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.clouds.aws.builtin import (
    DEFAULT_REGION,
    builtin_region,
    builtin_region_of,
    builtin_regions,
)
from karpy.cli.tables import few_of
from karpy.codec.aws.automode import read_auto_mode_spec
from karpy.codec.aws.nodeclasses import read_node_class
from karpy.codec.bystanders import NodeClassFound
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.findings import Finding, finding_of, note, of_problem
from karpy.codec.narrowing import Supply
from karpy.core.aws.catalog import CatalogMaker
from karpy.core.aws.instancetypes import settings_of, zones_of
from karpy.errors import ManifestInvalid, NotRead, ObjectNotFound
from karpy.model.ec2 import AUTO_MODE_DOMAIN, ZONE_ID, AmiFamily, InstanceSettings
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.instances import Catalog
from karpy.model.labels import OS, REGION, ZONE
from karpy.model.pools import NodePool
from karpy.model.requirements import Requirement
from karpy.model.snapshot import Snapshot

EC2: Final = "ec2"
EC2_NODE_CLASS: Final = ("karpenter.k8s.aws", "EC2NodeClass")
AUTO_MODE_NODE_CLASS: Final = ("eks.amazonaws.com", "NodeClass")
EC2_CLASSES: Final = frozenset({EC2_NODE_CLASS, AUTO_MODE_NODE_CLASS})
_NAMES_SHOWN: Final = 3
_WINDOWS: Final = "windows"
_PLACES: Final = frozenset({REGION, ZONE, ZONE_ID})
_REGION_HINT: Final = "name another region: `--catalog ec2:eu-west-1`"
_PRICE_HINT: Final = "for the prices of an account name a catalog of your own: `--catalog FILE`"
_CLASS_HINT: Final = "add it to the input"
_LOOKED_UP_HINT: Final = "make a catalog that has their effect, and name it with `--catalog FILE`"


class Needs(Struct, frozen=True):
    """The parts of an input that decide which catalog it needs."""

    snapshot: Snapshot
    node_classes: tuple[NodeClassFound, ...] = ()

    @property
    def pools(self) -> tuple[NodePool, ...]:
        return self.snapshot.pools


class _Class(Struct, frozen=True):
    """The node class of a NodePool, as far as it is known."""

    settings: InstanceSettings = InstanceSettings()
    findings: tuple[Finding, ...] = ()
    assumed: str = ""
    """Kind and name, if subnets and images are not known."""
    missing: str = ""
    """Kind and name, if the input does not contain the node class."""


def ec2_supply(place: str, needs: Needs, pools: Sequence[NodePool]) -> Supply:
    """
    Return EC2's catalog for NodePools, in the region `place` or in the regions of the input.

    Raises ObjectNotFound if Karpy's table does not have the region.
    """
    if place and place not in builtin_regions():
        raise ObjectNotFound(kind="region", name=place, known=", ".join(builtin_regions()))
    common = place or _most_common(_regions_of(needs))
    usual = common or DEFAULT_REGION
    regions = {each.name: place or _region_of(each) or usual for each in pools}
    classes = {each.name: _class_of(each, needs.node_classes) for each in pools}
    names = sorted({*regions.values()}) or [usual]
    parts = {name: _catalog(name, regions, classes) for name in names}
    catalog = Catalog(
        types=parts[names[0]].types,
        by_pool={pool: parts[region].by_pool[pool] for pool, region in regions.items()},
        well_known=frozenset().union(*(each.well_known for each in parts.values())),
        reservation_label=parts[names[0]].reservation_label,
    )
    assumed = [] if common or DEFAULT_REGION not in names else [_assumed_region()]
    return Supply(
        ", ".join(f"{EC2}:{name}" for name in names),
        catalog,
        is_estimate=True,
        node_classes=EC2_CLASSES,
        findings=(_estimate(names), *assumed, *_of_classes(classes.values()), *_auto_mode(pools)),
    )


def _catalog(region: str, regions: Mapping[str, str], classes: Mapping[str, _Class]) -> Catalog:
    settings = {pool: classes[pool].settings for pool, name in regions.items() if name == region}
    return CatalogMaker().make(builtin_region(region), settings, usual=InstanceSettings())


# --- regions -----------------------------------------------------------------------------------


def _region_of(pool: NodePool) -> str:
    return _most_common(_regions_in(pool.requirements, pool.labels))


def _regions_of(needs: Needs) -> Iterator[str]:
    """Yield the regions that NodePools, nodes, node classes and pods of the input name."""
    for pool in needs.pools:
        yield from _regions_in(pool.requirements, pool.labels)
    for node in needs.snapshot.nodes:
        yield from _regions_in((), node.labels)
    for found in needs.node_classes:
        yield from map(builtin_region_of, _zones_of(found))
    for rules in {id(each.rules): each.rules for each in needs.snapshot.pods}.values():
        expressions = [each for term in rules.required_node_terms for each in term.expressions]
        yield from _regions_in((*rules.node_selector, *expressions), {})


def _regions_in(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> Iterator[str]:
    for each in requirements:
        if each.key in _PLACES and not each.complement:
            yield from map(builtin_region_of, sorted(each.values))
    yield from (builtin_region_of(labels[key]) for key in sorted(_PLACES & labels.keys()))


def _most_common(regions: Iterable[str]) -> str:
    counted = Counter(each for each in regions if each)
    return min(counted, key=lambda each: (-counted[each], each), default="")


# --- node classes ------------------------------------------------------------------------------


def _class_of(pool: NodePool, found: Iterable[NodeClassFound]) -> _Class:
    ref = pool.node_class
    kind = (ref.group, ref.kind)
    if kind not in EC2_CLASSES:
        return _Class()
    same = [each for each in found if (each.group, each.kind, each.name) == (*kind, ref.name)]
    if same:
        return _read_class(same[-1])
    usual = _usual_settings(kind)
    if kind == EC2_NODE_CLASS and _is_for_windows(pool):
        usual = InstanceSettings(AmiFamily.WINDOWS_2022)
    return _Class(usual, missing=f"{ref.kind} {ref.name}".strip())


def _is_for_windows(pool: NodePool) -> bool:
    systems = [each.values for each in pool.requirements if each.key == OS and each.values]
    return bool(systems) and all(each == {_WINDOWS} for each in systems)


def _read_class(found: NodeClassFound) -> _Class:
    name = f"{found.kind} {found.name}"
    fields = Fields(found.value)
    try:
        if found.kind == AUTO_MODE_NODE_CLASS[1]:
            return _Class(_auto_mode_settings(fields), assumed=name)
        node_class = read_node_class(fields)
    except FieldInvalid as error:
        usual = _Class(_usual_settings((found.group, found.kind)), assumed=name)
        return usual if found.is_refused else replace(usual, findings=(_invalid(found, error),))
    zones = zones_of(node_class.status)
    settings = replace(settings_of(node_class.spec), zones=zones or None)
    return _Class(settings, tuple(_left_out(found, node_class)), "" if zones else name)


def _usual_settings(kind: tuple[str, str]) -> InstanceSettings:
    return _auto_mode_settings(Fields({})) if kind == AUTO_MODE_NODE_CLASS else InstanceSettings()


def _auto_mode_settings(fields: Fields) -> InstanceSettings:
    return replace(settings_of(read_auto_mode_spec(fields)), label_domain=AUTO_MODE_DOMAIN)


def _zones_of(found: NodeClassFound) -> list[str]:
    """Return the zones of the subnets in the status of a node class."""
    try:
        return sorted(zones_of(read_node_class(Fields(found.value)).status))
    except FieldInvalid:
        return []


def _invalid(found: NodeClassFound, error: FieldInvalid) -> Finding:
    return of_problem(
        ManifestInvalid(where=found.where, path=error.path, problem=error.problem, hint=error.hint)
    )


def _left_out(found: NodeClassFound, node_class: Ec2NodeClass) -> Iterator[Finding]:
    """Yield a finding for the fields whose effect only AWS can tell."""
    spec = node_class.spec
    fields = []
    if spec.reservation_terms:
        fields.append("`spec.capacityReservationSelectorTerms`")
    if spec.placement_group is not None:
        fields.append("`spec.placementGroupSelector`")
    if fields:
        takes = "takes" if len(fields) == 1 else "take"
        problem = f"{' and '.join(fields)} {takes} no part: what is selected is known to AWS alone"
        error = NotRead(problem=problem, hint=_LOOKED_UP_HINT)
        yield finding_of(error, where=found.where, is_warning=True, is_left_out=True)


# --- findings ----------------------------------------------------------------------------------


def _estimate(regions: Sequence[str]) -> Finding:
    message = (
        f"instance types and prices of {', '.join(regions)} are those of a table that comes with"
        " Karpy: prices are estimates, those of spot most of all"
    )
    return note("ESTIMATE", message, hint=_PRICE_HINT)


def _assumed_region() -> Finding:
    message = f"nothing in the input says in which region its nodes are: {DEFAULT_REGION} is taken"
    return note("REGION_ASSUMED", message, hint=_REGION_HINT)


def _of_classes(classes: Iterable[_Class]) -> Iterator[Finding]:
    """Yield the findings about node classes that are missing or assumed."""
    distinct = {(each.assumed, each.missing): each for each in classes}.values()
    for each in distinct:
        yield from each.findings
    assumed = sorted({each.assumed for each in distinct if each.assumed})
    if assumed:
        message = (
            f"{few_of(assumed, _NAMES_SHOWN)}: subnets and images are not looked up; every zone of"
            " the region counts, and an image for every architecture"
        )
        yield note("CLASS_ASSUMED", message)
    missing = sorted({each.missing for each in distinct if each.missing})
    if missing:
        message = (
            f"{few_of(missing, _NAMES_SHOWN)} is not in the input: images, disks and kubelet"
            " settings of its nodes count as the usual ones"
        )
        yield note("CLASS_MISSING", message, hint=_CLASS_HINT)


def _auto_mode(pools: Sequence[NodePool]) -> Iterator[Finding]:
    names = [
        each.name
        for each in pools
        if (each.node_class.group, each.node_class.kind) == AUTO_MODE_NODE_CLASS
    ]
    if names:
        message = (
            f"nodes of NodePool {few_of(names, _NAMES_SHOWN)} are run by EKS Auto Mode, not by"
            " Karpy: the answer says what such a NodePool would buy, without the fee of Auto Mode"
        )
        yield note("AUTO_MODE", message)
