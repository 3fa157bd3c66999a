"""Custom resources: schemas and CEL rules, and definitions that are created and deleted."""

from contextlib import suppress

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Invalid, NotFound
from karpy.model.kinds import CUSTOM_RESOURCE, NODE_POOL, Kind
from karpy.ports.objects import Patch, PatchType
from tests.contract.crdcases.cases import CrdCase, read_cases, read_definitions
from tests.contract.plain import node_pool
from tests.contract.worlds import World

THING = Kind("example.com", "v1", "Thing", "things")


async def submit(world: World, case: CrdCase, obj: JsonObject) -> None:
    """Create or change the object of a case, and clean up."""
    obj, before = world.placed(case.kind, obj), case.before
    meta = obj["metadata"]
    try:
        if before is None:
            await world.objects.create(case.kind, obj)
            return
        made = await world.objects.create(case.kind, world.placed(case.kind, before))
        await world.objects.replace(
            case.kind,
            {**obj, "metadata": {**made["metadata"], **meta}},
            subresource=case.subresource,
        )
    finally:
        with suppress(NotFound):
            await world.objects.delete(case.kind, meta["name"], namespace=meta.get("namespace", ""))


async def disagreement(world: World, case: CrdCase) -> str:
    """Return how a world differs from a case; empty if it does not."""
    try:
        await submit(world, case, case.accepted)
    except Invalid as error:
        return f"{case.claim}: refused what it should take: {error.message}"
    try:
        await submit(world, case, case.rejected)
    except Invalid as error:
        is_named = case.path in error.message and case.says in error.message
        return "" if is_named else f"{case.claim}: said something else: {error.message}"
    return f"{case.claim}: took what it should refuse"


@pytest.mark.parametrize("kind", read_definitions(), ids=str)
async def test_every_rule_of_a_definition_holds(world: World, kind: Kind) -> None:
    """Allowed objects are accepted, and forbidden ones are refused with the name of the field."""
    await world.define(read_definitions()[kind])
    cases = [case for case in read_cases() if case.kind == kind]

    found = [await disagreement(world, case) for case in cases]

    assert len(cases) >= 3
    assert [each for each in found if each] == []


async def test_defaults_are_filled_in(world: World) -> None:
    made = await world.create(NODE_POOL, node_pool())

    assert made["spec"]["disruption"] == {
        "budgets": [{"nodes": "10%"}],
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
    }
    assert made["spec"]["template"]["spec"]["expireAfter"] == "720h"


async def test_unknown_fields_are_dropped(world: World) -> None:
    made = await world.create(NODE_POOL, node_pool(nonsense=True))

    assert "nonsense" not in made["spec"]


async def test_a_definition_serves_its_kind_and_takes_it_along(world: World) -> None:
    await world.define({"apiVersion": "apiextensions.k8s.io/v1", **thing()})
    await world.create(THING, {"metadata": {"name": "a"}, "spec": {"size": 3}})
    patch = Patch(PatchType.MERGE, {"spec": {"size": 5}})
    changed = await world.objects.patch(THING, "a", patch, namespace=world.namespace)

    await world.objects.delete(CUSTOM_RESOURCE, "things.example.com")
    await world.until_gone(CUSTOM_RESOURCE, "things.example.com")

    assert changed["spec"] == {"size": 5, "colour": "red"}


def thing() -> JsonObject:
    """Build the definition of an unknown kind."""
    spec = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "colour": {"type": "string", "default": "red"},
        },
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
