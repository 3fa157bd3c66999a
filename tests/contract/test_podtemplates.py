"""PodTemplates, which other objects refer to."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Invalid
from karpy.model.kinds import POD_TEMPLATE
from karpy.ports.objects import Patch, PatchType
from tests.contract.plain import CONTAINER, meta
from tests.contract.worlds import World


def template(**spec: object) -> JsonObject:
    labels = {"app": "a"}
    spec = {"containers": [CONTAINER], **spec}
    return {"metadata": meta("a"), "template": {"metadata": {"labels": labels}, "spec": spec}}


async def test_a_pod_template_is_filled_in_like_a_workload(world: World) -> None:
    made = await world.create(POD_TEMPLATE, template())

    spec = made["template"]["spec"]
    assert (spec["restartPolicy"], spec["schedulerName"]) == ("Always", "default-scheduler")
    assert "status" not in made


async def test_a_generation_counts_changes_of_a_pod_template(world: World) -> None:
    made = await world.create(POD_TEMPLATE, template())
    label = Patch(PatchType.MERGE, {"metadata": {"labels": {"x": "y"}}})
    container = {"template": {"spec": {"containers": [{**CONTAINER, "name": "b"}]}}}
    more = Patch(PatchType.STRATEGIC, container)

    labelled = await world.objects.patch(POD_TEMPLATE, "a", label, namespace=world.namespace)
    grown = await world.objects.patch(POD_TEMPLATE, "a", more, namespace=world.namespace)

    found = (made, labelled, grown)
    assert [each["metadata"]["generation"] for each in found] == [1, 1, 2]
    assert len(grown["template"]["spec"]["containers"]) == 2


async def test_a_pod_template_needs_a_container(world: World) -> None:
    with pytest.raises(Invalid) as raised:
        await world.create(POD_TEMPLATE, template(containers=[]))

    assert "template.spec.containers: Required value" in raised.value.message
