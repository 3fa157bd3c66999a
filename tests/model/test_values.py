"""What holds for every value of the model, and the few words small modules have of their own."""

from datetime import UTC, datetime
from inspect import getmembers, isclass

import msgspec
import pytest

from karpy.model import (
    constraints,
    instances,
    nodes,
    pods,
    pools,
    requirements,
    settings,
    snapshot,
    storage,
    verdicts,
)
from karpy.model.instances import Catalog
from karpy.model.settings import (
    MinValuesPolicy,
    Packing,
    PreferencePolicy,
    ReservedMode,
    Settings,
)
from karpy.model.snapshot import Snapshot
from karpy.model.storage import PersistentVolumeClaim, Storage
from karpy.model.verdicts import Constraint, Launch, LaunchOption, Reason, Verdict

MODULES = (
    constraints,
    instances,
    nodes,
    pods,
    pools,
    requirements,
    settings,
    snapshot,
    storage,
    verdicts,
)
VALUES = [
    kind
    for module in MODULES
    for _, kind in getmembers(module, isclass)
    if issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__
]
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_frozen(kind: type[msgspec.Struct]) -> None:
    """A snapshot is shared by all that read it, and never changed."""
    assert kind.__struct_config__.frozen


@pytest.mark.parametrize("kind", VALUES)
def test_values_stay_out_of_the_garbage_collector(kind: type[msgspec.Struct]) -> None:
    """They form no cycles, and a million of them would make each collection slow."""
    assert not kind.__struct_config__.gc


@pytest.mark.parametrize("names", [Reason, Constraint])
def test_a_refusal_reads_as_part_of_a_sentence(names: type[Reason] | type[Constraint]) -> None:
    """Surfaces write `web-1: <sentence>`; a capital or a full stop would stand in the middle."""
    offending = [
        each.name
        for each in names
        if each.value != each.value.strip().rstrip(".") or each.value.split()[0].istitle()
    ]

    assert offending == []
    assert [each.name for each in names] == [each.name.upper() for each in names]


def test_settings_default_to_karpenters() -> None:
    assert Settings() == Settings(
        preference_policy=PreferencePolicy.RESPECT,
        min_values_policy=MinValuesPolicy.STRICT,
        reserved_capacity=True,
        reserved_mode=ReservedMode.STRICT,
        node_overlay=False,
        ignore_device_claims=True,
        default_spreads=(),
        packing=Packing.KARPENTER,
    )


def test_an_empty_cluster_is_a_snapshot_too() -> None:
    empty = Snapshot(NOON)

    assert (empty.pods, empty.nodes, empty.pools) == ((), (), ())
    assert (empty.catalog, empty.storage, empty.settings) == (Catalog(), Storage(), Settings())


def test_a_volume_claim_is_known_by_namespace_and_name() -> None:
    assert PersistentVolumeClaim("data", "shop").key == "shop/data"


def test_a_verdict_costs_what_its_cheapest_options_cost() -> None:
    options = (
        LaunchOption("small", 100, "a", "spot"),
        LaunchOption("large", 900, "a", "on-demand"),
    )
    launches = tuple(Launch(name, "web", (), {}, {}, options) for name in ("new-1", "new-2"))

    assert Verdict(launches).price == 200
    assert Verdict().price == 0
