"""Admission of pods: LimitRanges of the namespace, and RuntimeClasses."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Forbidden, Invalid
from karpy.model.kinds import LIMIT_RANGE, POD, RUNTIME_CLASS
from tests.contract.plain import CONTAINER, meta
from tests.contract.worlds import World, until

USUAL = {"type": "Container", "default": {"cpu": "2"}, "min": {"memory": "4Mi"}}
SANDBOX = {
    "handler": "runsc",
    "overhead": {"podFixed": {"cpu": "0.25"}},
    "scheduling": {
        "nodeSelector": {"sandbox": "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists"}],
    },
}


def a_pod(name: str = "a", **spec: object) -> JsonObject:
    return {"metadata": meta(name), "spec": {"containers": [CONTAINER], **spec}}


def asking(resources: JsonObject) -> JsonObject:
    return {**CONTAINER, "resources": resources}


async def limit(world: World, *items: JsonObject) -> JsonObject:
    """Create a LimitRange, and wait until it applies to new pods."""
    made = await world.create(
        LIMIT_RANGE, {"metadata": meta("usual"), "spec": {"limits": list(items)}}
    )

    async def is_in_force() -> bool:
        pod = world.placed(POD, a_pod("probe"))
        admitted = await world.objects.create(POD, pod, dry_run=True)
        return bool(admitted["spec"]["containers"][0]["resources"])

    assert await until(is_in_force)
    return made


async def test_one_bound_of_a_limit_range_stands_in_for_another(world: World) -> None:
    made = await limit(world, {**USUAL, "max": {"cpu": 4, "memory": "1Gi"}})

    assert made["spec"]["limits"] == [
        {
            "type": "Container",
            "min": {"memory": "4Mi"},
            "max": {"cpu": "4", "memory": "1Gi"},
            "default": {"cpu": "2", "memory": "1Gi"},
            "defaultRequest": {"cpu": "2", "memory": "1Gi"},
        }
    ]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, {"limits": {"cpu": "2"}, "requests": {"cpu": "2", "memory": "4Mi"}}),
        (
            {"requests": {"cpu": "1"}},
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "4Mi"}},
        ),
        (
            {"limits": {"cpu": "1"}},
            {"limits": {"cpu": "1"}, "requests": {"cpu": "1", "memory": "4Mi"}},
        ),
        (
            {"limits": {"memory": "1Gi"}},
            {
                "limits": {"cpu": "2", "memory": "1Gi"},
                "requests": {"cpu": "2", "memory": "1Gi"},
            },
        ),
    ],
)
async def test_containers_get_what_they_leave_open(
    world: World, given: JsonObject, made: JsonObject
) -> None:
    await limit(world, USUAL)

    spec = (await world.create(POD, a_pod(containers=[asking(given)])))["spec"]

    assert spec["containers"][0]["resources"] == made


async def test_a_pod_notes_what_its_containers_were_given(world: World) -> None:
    await limit(world, USUAL)
    first = {**CONTAINER, "name": "first"}

    made = await world.create(POD, a_pod(initContainers=[first]))

    name = CONTAINER["name"]
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        f"LimitRanger plugin set: cpu, memory request for container {name}; cpu limit for "
        f"container {name}; cpu, memory request for init container first; cpu limit for init "
        "container first"
    )


async def test_a_runtime_class_adds_its_overhead_and_its_nodes(world: World) -> None:
    name = world.namespace
    await world.create(RUNTIME_CLASS, {"metadata": {"name": name}, **SANDBOX})

    pod = a_pod(runtimeClassName=name, nodeSelector={"a": "b"})
    spec = (await world.create(POD, pod))["spec"]

    await world.objects.delete(RUNTIME_CLASS, name)
    assert (spec["overhead"], spec["nodeSelector"]) == (
        {"cpu": "250m"},
        {"a": "b", "sandbox": "yes"},
    )
    assert spec["tolerations"][-1] == {"key": "sandbox", "operator": "Exists"}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ],
)
async def test_a_pod_against_its_runtime_class_is_refused(
    world: World, spec: JsonObject, problem: str
) -> None:
    with pytest.raises(Forbidden) as raised:
        await world.create(POD, a_pod(**spec))

    assert problem in raised.value.message


async def test_a_runtime_class_needs_a_handler(world: World) -> None:
    with pytest.raises(Invalid) as raised:
        await world.create(RUNTIME_CLASS, {"metadata": {"name": world.namespace}, "handler": ""})

    assert "handler" in raised.value.message
