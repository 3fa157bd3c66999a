"""Shrink a failing cluster: drop one part after the other while it still fails."""

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import fields, replace

from karpy.model.instances import Catalog, InstanceType
from karpy.model.snapshot import Snapshot
from tests.fuzz.judge import Finding, judge

S = TypeVar("S", bound=Struct)

_ROUNDS_MAX = 20
_LISTS = (
    "pods",
    "nodes",
    "pools",
    "daemons",
    "overlays",
    "services",
    "controllers",
    "vain_launches",
)


Fails = Callable[[Snapshot], bool]


def shrink(snapshot: Snapshot, fails: Fails) -> Snapshot:
    """Return a smaller snapshot that still fails."""
    for number in range(_ROUNDS_MAX):
        before = snapshot
        for shrunken in (_with_fewer, _with_simpler_members, _with_smaller_catalog, _plainer):
            snapshot = shrunken(snapshot, fails)
        print(f"shrinking, round {number}: {_size(snapshot)}", file=sys.stderr)
        if snapshot == before:
            break
    return snapshot


def still_finds(finding: Finding) -> Fails:
    """Return a predicate: whether a snapshot breaks the same check, with the same first word."""
    word = finding.text.split()[0]

    def fails(snapshot: Snapshot) -> bool:
        found = judge(snapshot, frozenset({finding.check}))
        return any(each.check is finding.check and each.text.startswith(word) for each in found)

    return fails


def _size(snapshot: Snapshot) -> str:
    counts = [f"{len(getattr(snapshot, name))} {name}" for name in _LISTS]
    return ", ".join([*counts, f"{len(snapshot.catalog.types)} types"])


def _with_fewer(snapshot: Snapshot, fails: Fails) -> Snapshot:
    for name in _LISTS:
        snapshot = _with_fewest(snapshot, name, fails)
    return snapshot


def _with_fewest(whole: S, name: str, fails: Callable[[S], bool]) -> S:
    """Return a value with the fewest items in one of its lists that still fails."""

    def fails_with(items: tuple[Any, ...]) -> bool:
        return fails(replace(whole, **{name: items}))

    return replace(whole, **{name: _fewest(getattr(whole, name), fails_with)})


def _fewest(items: tuple[Any, ...], fails: Callable[[tuple[Any, ...]], bool]) -> tuple[Any, ...]:
    """Drop halves, then quarters, then single items, while the rest still fails."""
    step = max(1, len(items) // 2)
    while items:
        at = 0
        while at < len(items):
            fewer = items[:at] + items[at + step :]
            if fails(fewer):
                items = fewer
            else:
                at += step
        if step == 1:
            break
        step //= 2
    return items


def _with_simpler_members(snapshot: Snapshot, fails: Fails) -> Snapshot:
    for name in ("pods", "nodes", "pools", "daemons", "overlays"):
        for at in range(len(getattr(snapshot, name))):
            snapshot = _with_simpler_member(snapshot, name, at, fails)
    return snapshot


def _with_simpler_member(snapshot: Snapshot, name: str, at: int, fails: Fails) -> Snapshot:
    is_simpler = True
    while is_simpler:
        is_simpler = False
        members = getattr(snapshot, name)
        for simpler in simpler_values(members[at]):
            candidate = replace(snapshot, **{name: (*members[:at], simpler, *members[at + 1 :])})
            if fails(candidate):
                snapshot, is_simpler = candidate, True
                break
    return snapshot


def _with_smaller_catalog(snapshot: Snapshot, fails: Fails) -> Snapshot:
    def fails_with(catalog: Catalog) -> bool:
        return fails(replace(snapshot, catalog=catalog))

    catalog = snapshot.catalog
    if catalog.by_pool and fails_with(shared := replace(catalog, by_pool={})):
        catalog = shared
    catalog = _with_fewest(catalog, "types", fails_with)
    for at in range(len(catalog.types)):
        catalog = _with_fewer_offerings(catalog, at, fails_with)
    return replace(snapshot, catalog=catalog)


def _with_fewer_offerings(catalog: Catalog, at: int, fails: Callable[[Catalog], bool]) -> Catalog:
    def with_type(kind: InstanceType) -> Catalog:
        return replace(catalog, types=(*catalog.types[:at], kind, *catalog.types[at + 1 :]))

    def fails_with(kind: InstanceType) -> bool:
        return fails(with_type(kind))

    return with_type(_with_fewest(catalog.types[at], "offerings", fails_with))


def _plainer(snapshot: Snapshot, fails: Fails) -> Snapshot:
    for settings in simpler_values(snapshot.settings):
        if fails(candidate := replace(snapshot, settings=settings)):
            snapshot = candidate
    if fails(candidate := replace(snapshot, namespaces={})):
        snapshot = candidate
    for name in ("claims", "volumes", "classes"):
        for key in list(getattr(snapshot.storage, name)):
            rest = {k: v for k, v in getattr(snapshot.storage, name).items() if k != key}
            candidate = replace(snapshot, storage=replace(snapshot.storage, **{name: rest}))
            snapshot = candidate if fails(candidate) else snapshot
    return snapshot


def simpler_values(value: Struct) -> Iterator[Any]:
    """Yield copies of a value with one field at its default, or with one item less."""
    for field in fields(value):
        part = getattr(value, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        if not field.required and part != default:
            yield replace(value, **{field.name: default})
        if isinstance(part, tuple) and len(part) > 1:
            for at in range(len(part)):
                yield replace(value, **{field.name: part[:at] + part[at + 1 :]})
        elif isinstance(part, Struct) and type(part).__name__ in {"PodRules", "Pod"}:
            for simpler in simpler_values(part):
                yield replace(value, **{field.name: simpler})
        elif isinstance(part, dict) and field.name in {"labels", "limits"}:
            for key in part:
                rest = {other: each for other, each in part.items() if other != key}
                yield replace(value, **{field.name: rest})
