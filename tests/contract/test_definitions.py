"""Custom resources: every schema rule and CEL rule, and definitions that come and go."""

from contextlib import suppress

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Invalid, NotFound
from karpy.model.kinds import CUSTOM_RESOURCE, NODE_POOL, Kind
from karpy.ports.objects import Patch, PatchType
from tests.contract.crdcases.cases import CrdCase, read_cases
from tests.contract.plain import node_pool
from tests.contract.worlds import World, until

THING = Kind("example.com", "v1", "Thing", "things")


async def submit(world: World, case: CrdCase, obj: JsonObject) -> None:
    """Do what a case is about: create an object, or change one; leave nothing behind."""
    name = obj["metadata"]["name"]
    namespace = world.namespace if case.kind.is_namespaced else ""
    try:
        if case.before is None:
            await world.create(case.kind, obj)
            return
        made = await world.create(case.kind, case.before)
        meta = {**made["metadata"], **obj["metadata"]}
        await world.objects.replace(
            case.kind, {**obj, "metadata": meta}, subresource=case.subresource
        )
    finally:
        with suppress(NotFound):
            await world.objects.delete(case.kind, name, namespace=namespace)


@pytest.mark.parametrize("case", read_cases(), ids=lambda case: case.id)
async def test_a_rule_lets_pass_what_it_should_and_nothing_else(
    world: World, case: CrdCase
) -> None:
    await submit(world, case, case.accepted)
    with pytest.raises(Invalid) as raised:
        await submit(world, case, case.rejected)

    assert case.path in raised.value.message
    assert case.says in raised.value.message


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
    await world.create(CUSTOM_RESOURCE, thing())

    async def is_served() -> bool:
        try:
            await world.objects.list(THING)
        except NotFound:
            return False
        return True

    await until(is_served)
    await world.create(THING, {"metadata": {"name": "a"}, "spec": {"size": 3}})
    patch = Patch(PatchType.MERGE, {"spec": {"size": 5}})
    changed = await world.objects.patch(THING, "a", patch, namespace=world.namespace)
    await world.objects.delete(CUSTOM_RESOURCE, "things.example.com")
    await world.until_gone(CUSTOM_RESOURCE, "things.example.com")

    assert changed["spec"] == {"size": 5, "colour": "red"}


def thing() -> JsonObject:
    """Build the definition of a kind that nobody knows."""
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
