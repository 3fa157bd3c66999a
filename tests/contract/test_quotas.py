"""Limits of a namespace: LimitRanges and ResourceQuotas."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Forbidden, Invalid
from karpy.model.kinds import (
    CONFIG_MAP,
    LIMIT_RANGE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_QUOTA,
    SERVICE,
)
from tests.contract.plain import CONTAINER, meta
from tests.contract.worlds import World, until

BOUNDS = (
    {
        "type": "Container",
        "min": {"cpu": "100m"},
        "max": {"cpu": "1"},
        "maxLimitRequestRatio": {"cpu": "2"},
    },
    {"type": "Pod", "max": {"cpu": "1500m"}},
    {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}},
)
HARD = {"pods": "1", "requests.cpu": "1", "limits.cpu": "2", "count/configmaps": "2"}


def a_pod(name: str, *resources: JsonObject, **spec: object) -> JsonObject:
    containers = [
        {**CONTAINER, "name": f"c{index}", "resources": each}
        for index, each in enumerate(resources)
    ]
    return {"metadata": meta(name), "spec": {"containers": containers, **spec}}


def asking(requests: str, limits: str) -> JsonObject:
    return {"requests": {"cpu": requests}, "limits": {"cpu": limits}}


def a_claim(storage: str) -> JsonObject:
    resources = {"requests": {"storage": storage}}
    return {
        "metadata": meta("a"),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources},
    }


async def limit(world: World, *items: JsonObject) -> None:
    """Create a LimitRange, and wait until it applies to new pods."""
    await world.create(LIMIT_RANGE, {"metadata": meta("bounds"), "spec": {"limits": list(items)}})

    async def is_in_force() -> bool:
        pod = world.placed(POD, a_pod("probe", asking("50m", "50m")))
        try:
            await world.objects.create(POD, pod, dry_run=True)
        except Forbidden:
            return True
        return False

    assert await until(is_in_force)


async def quota(world: World, name: str = "q", **spec: object) -> None:
    """Create a ResourceQuota, and wait until its status is counted."""
    await world.create(RESOURCE_QUOTA, {"metadata": meta(name), "spec": spec})

    async def is_counted() -> bool:
        made = await world.get(RESOURCE_QUOTA, name)
        return (made.get("status") or {}).get("hard") == spec["hard"]

    assert await until(is_counted)


async def until_used(world: World, used: JsonObject, name: str = "q") -> JsonObject:
    async def is_used() -> JsonObject | None:
        status: JsonObject = (await world.get(RESOURCE_QUOTA, name))["status"]
        return status if status["used"] == used else None

    found = await until(is_used)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        (
            [asking("50m", "50m")],
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            [asking("1500m", "1500m")],
            "maximum cpu usage per Container is 1, but limit is 1500m",
        ),
        (
            [asking("100m", "500m")],
            "cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000",
        ),
        ([{}, {}], "maximum cpu usage per Pod is 1500m, but limit is 2"),
    ],
)
async def test_a_pod_out_of_bounds_is_refused(
    world: World, resources: list[JsonObject], problem: str
) -> None:
    await limit(world, *BOUNDS)

    with pytest.raises(Forbidden) as raised:
        await world.create(POD, a_pod("a", *resources))

    assert f'pods "a" is forbidden: {problem}' in raised.value.message


async def test_a_pod_within_bounds_is_admitted(world: World) -> None:
    await limit(world, *BOUNDS)

    made = await world.create(POD, a_pod("a", asking("300m", "600m")))

    assert made["spec"]["containers"][0]["resources"] == asking("300m", "600m")


@pytest.mark.parametrize(
    ("storage", "problem"),
    [
        ("500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"),
        ("20Gi", "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 20Gi"),
    ],
)
async def test_a_claim_out_of_bounds_is_refused(world: World, storage: str, problem: str) -> None:
    await limit(world, *BOUNDS)

    with pytest.raises(Forbidden) as raised:
        await world.create(PERSISTENT_VOLUME_CLAIM, a_claim(storage))

    assert f'persistentvolumeclaims "a" is forbidden: {problem}' in raised.value.message


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (
            {"type": "Pod", "default": {"cpu": "1"}},
            "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
        ),
        (
            {"type": "PersistentVolumeClaim"},
            (
                "spec.limits[0].limits: Required value: either minimum or maximum storage value is "
                "required, but neither was provided"
            ),
        ),
        (
            {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
            'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        ),
        (
            {"type": "Container", "defaultRequest": {"cpu": "2"}, "default": {"cpu": "1"}},
            (
                'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 '
                "is greater than default limit value 1"
            ),
        ),
        (
            {
                "type": "Container",
                "default": {"cpu": "2"},
                "max": {"cpu": "1"},
                "defaultRequest": {"cpu": "1"},
            },
            (
                'spec.limits[0].default[cpu]: Invalid value: "1": default value 2 is greater than '
                "max value 1"
            ),
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"}},
            (
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is '
                "less than 1"
            ),
        ),
        (
            {
                "type": "Pod",
                "min": {"cpu": "1"},
                "max": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": "3"},
            },
            (
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater '
                "than max/min = 2.000000"
            ),
        ),
        (
            {"type": "Foo"},
            (
                'spec.limits[0].type: Invalid value: "Foo": must be a standard limit type or '
                "fully qualified"
            ),
        ),
    ],
)
async def test_a_limit_range_that_contradicts_itself_is_refused(
    world: World, item: JsonObject, problem: str
) -> None:
    with pytest.raises(Invalid) as raised:
        await world.create(LIMIT_RANGE, {"metadata": meta("x"), "spec": {"limits": [item]}})

    assert f'LimitRange "x" is invalid: {problem}' in raised.value.message


async def test_a_quota_counts_what_is_there_and_what_comes_and_goes(world: World) -> None:
    await world.create(CONFIG_MAP, {"metadata": meta("before")})
    maps = len((await world.objects.list(CONFIG_MAP)).items)
    await quota(world, hard={"pods": "5", "requests.cpu": "4", "requests.memory": "1Gi"})
    memory = {"requests": {"cpu": "500m", "memory": "500Mi"}}

    await world.create(POD, a_pod("a", memory))
    await world.create(POD, a_pod("b", memory))
    both = await until_used(world, {"pods": "2", "requests.cpu": "1", "requests.memory": "1000Mi"})
    await world.objects.delete(POD, "a", namespace=world.namespace)
    one = await until_used(world, {"pods": "1", "requests.cpu": "500m", "requests.memory": "500Mi"})

    assert maps
    assert both["hard"] == one["hard"]


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        ({}, "failed quota: q: must specify limits.cpu for: c0; requests.cpu for: c0"),
        (
            asking("1500m", "3"),
            (
                "exceeded quota: q, requested: limits.cpu=3,requests.cpu=1500m, used: "
                "limits.cpu=1,requests.cpu=500m, limited: limits.cpu=2,requests.cpu=1"
            ),
        ),
        (
            asking("100m", "100m"),
            "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1",
        ),
    ],
)
async def test_more_than_a_quota_gives_is_refused(
    world: World, resources: JsonObject, problem: str
) -> None:
    hard = {**HARD, "pods": "9"} if "3" in str(resources) else HARD
    await quota(world, hard=hard)
    await world.create(POD, a_pod("first", asking("500m", "1")))

    with pytest.raises(Forbidden) as raised:
        await world.create(POD, a_pod("a", resources))

    assert f'pods "a" is forbidden: {problem}' in raised.value.message


async def test_objects_of_any_kind_are_counted(world: World) -> None:
    await quota(world, hard={"count/services": "1", "services.nodeports": "0"})
    port = {"ports": [{"port": 80}]}
    await world.create(SERVICE, {"metadata": meta("a"), "spec": port})

    with pytest.raises(Forbidden) as second:
        await world.create(SERVICE, {"metadata": meta("b"), "spec": port})
    with pytest.raises(Forbidden) as node_port:
        await world.create(SERVICE, {"metadata": meta("b"), "spec": {**port, "type": "NodePort"}})

    assert "exceeded quota: q, requested: count/services=1, used:" in second.value.message
    assert "services.nodeports=1" in node_port.value.message


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ({"scopes": ["BestEffort"]}, ({}, {}), (asking("1", "1"), {})),
        ({"scopes": ["NotTerminating"]}, ({}, {}), ({}, {"activeDeadlineSeconds": 60})),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {
                            "scopeName": "PriorityClass",
                            "operator": "In",
                            "values": ["system-node-critical"],
                        }
                    ]
                }
            },
            ({}, {"priorityClassName": "system-node-critical"}),
            ({}, {"priorityClassName": "system-cluster-critical"}),
        ),
    ],
    ids=["best effort", "not terminating", "priority class"],
)
async def test_a_quota_with_a_scope_counts_the_pods_in_it(
    world: World,
    scope: JsonObject,
    inside: tuple[JsonObject, JsonObject],
    outside: tuple[JsonObject, JsonObject],
) -> None:
    await quota(world, hard={"pods": "0"}, **scope)

    await world.create(POD, a_pod("outside", outside[0], **outside[1]))
    with pytest.raises(Forbidden) as raised:
        await world.create(POD, a_pod("inside", inside[0], **inside[1]))

    problem = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
    assert f'pods "inside" is forbidden: {problem}' in raised.value.message


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"hard": {"cpu": "-1"}},
            'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]},
            'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
        ),
        (
            {"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]},
            'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
        ),
        (
            {"hard": {"services": "1"}, "scopes": ["Terminating"]},
            'spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to resource',
        ),
        (
            {"hard": {"pods": "1"}, "scopes": ["Foo"]},
            'spec.scopes: Invalid value: ["Foo"]: unsupported scope',
        ),
    ],
)
async def test_a_quota_that_means_nothing_is_refused(
    world: World, spec: JsonObject, problem: str
) -> None:
    with pytest.raises(Invalid) as raised:
        await world.create(RESOURCE_QUOTA, {"metadata": meta("x"), "spec": spec})

    assert f'ResourceQuota "x" is invalid: {problem}' in raised.value.message
