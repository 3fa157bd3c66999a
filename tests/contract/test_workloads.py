"""The observable behaviour of the controllers of workloads."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from karpy.ports.objects import Patch, PatchType, Query
from tests.contract.plain import CONTAINER, budget, deployment, meta, node
from tests.contract.worlds import World, until


def templated(name: str, **spec: object) -> JsonObject:
    """Build a workload whose pods are labelled `app: <name>`."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    return {
        "metadata": meta(name),
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


async def pods(world: World, count: int, app: str) -> list[JsonObject]:
    """Wait until an app has a number of pods that are not deleting."""

    async def look() -> list[JsonObject] | None:
        found = [
            each
            for each in await world.pods(f"app={app}")
            if "deletionTimestamp" not in each["metadata"]
        ]
        return found if len(found) == count else None

    return await until(look) or []


async def none_left(world: World, app: str) -> None:
    async def look() -> bool:
        return not await world.pods(f"app={app}")

    await until(look)


async def status(world: World, kind: Kind, name: str, **wanted: object) -> JsonObject:
    """Wait until a status has the wanted fields."""

    async def look() -> JsonObject | None:
        found: JsonObject = (await world.get(kind, name)).get("status") or {}
        return found if all(found.get(key) == each for key, each in wanted.items()) else None

    found = await until(look)
    assert found is not None
    return found


async def scale(world: World, kind: Kind, name: str, replicas: int) -> None:
    patch = Patch(PatchType.MERGE, {"spec": {"replicas": replicas}})
    await world.objects.patch(kind, name, patch, namespace=world.namespace, subresource="scale")


async def test_a_deployment_makes_a_replica_set_that_makes_pods(world: World) -> None:
    await world.create(DEPLOYMENT, deployment("a", replicas=2))

    made = await pods(world, 2, "a")
    sets = (await world.objects.list(REPLICA_SET, Query(world.namespace))).items

    assert len(sets) == 1
    digest = sets[0]["metadata"]["labels"]["pod-template-hash"]
    assert sets[0]["metadata"]["name"] == f"a-{digest}"
    assert {each["metadata"]["labels"]["pod-template-hash"] for each in made} == {digest}
    owner = made[0]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)


async def test_a_deployment_is_scaled_both_ways(world: World) -> None:
    await world.create(DEPLOYMENT, deployment("a", replicas=3))
    await pods(world, 3, "a")

    await scale(world, DEPLOYMENT, "a", 1)

    assert len(await pods(world, 1, "a")) == 1


async def test_a_pod_that_is_deleted_comes_again(world: World) -> None:
    await world.create(DEPLOYMENT, deployment("a"))
    (first,) = await pods(world, 1, "a")

    await world.objects.delete(POD, first["metadata"]["name"], namespace=world.namespace)

    async def is_another() -> bool:
        left = await world.pods("app=a")
        return bool(left) and left[0]["metadata"]["uid"] != first["metadata"]["uid"]

    assert await until(is_another)


async def test_a_new_template_is_rolled_out(world: World) -> None:
    await world.create(DEPLOYMENT, deployment("a", strategy={"type": "Recreate"}))
    (old,) = await pods(world, 1, "a")
    image = [{"name": "main", "image": "registry.example/app:2"}]
    patch = Patch(PatchType.STRATEGIC, {"spec": {"template": {"spec": {"containers": image}}}})

    await world.objects.patch(DEPLOYMENT, "a", patch, namespace=world.namespace)

    async def is_new() -> bool:
        images = [each["spec"]["containers"][0]["image"] for each in await world.pods("app=a")]
        return images == ["registry.example/app:2"]

    assert await until(is_new)
    sets = (await world.objects.list(REPLICA_SET, Query(world.namespace))).items
    revisions = {
        each["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for each in sets
    }
    assert revisions == {"1", "2"}
    assert old["metadata"]["name"] not in {
        each["metadata"]["name"] for each in await world.pods("app=a")
    }


async def test_a_deployment_reports_what_it_sees(world: World) -> None:
    made = await world.create(DEPLOYMENT, deployment("a", replicas=2))

    seen = await status(world, DEPLOYMENT, "a", replicas=2, observedGeneration=1)

    assert made["metadata"]["generation"] == 1
    assert seen["updatedReplicas"] == 2
    assert seen["unavailableReplicas"] == 2
    conditions = {each["type"]: each["status"] for each in seen["conditions"]}
    assert conditions["Available"] == "False"


async def test_a_paused_deployment_makes_nothing_new(world: World) -> None:
    await world.create(DEPLOYMENT, deployment("a", paused=True))
    await status(world, DEPLOYMENT, "a", observedGeneration=1)

    assert await world.pods("app=a") == []


async def test_a_stateful_set_numbers_its_pods(world: World) -> None:
    made = templated("a", replicas=3, serviceName="a", podManagementPolicy="Parallel")
    await world.create(STATEFUL_SET, made)

    found = await pods(world, 3, "a")

    assert [each["metadata"]["name"] for each in found] == ["a-0", "a-1", "a-2"]
    assert found[1]["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    assert found[1]["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "a-1"


async def test_a_stateful_set_waits_for_each_pod_in_turn(world: World) -> None:
    await world.create(STATEFUL_SET, templated("a", replicas=3, serviceName="a"))

    (first,) = await pods(world, 1, "a")

    assert first["metadata"]["name"] == "a-0"


async def test_a_stateful_set_makes_its_volume_claims(world: World) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    made = templated("a", replicas=1, serviceName="a", volumeClaimTemplates=[claim])
    await world.create(STATEFUL_SET, made)

    (found,) = await pods(world, 1, "a")

    claimed = await world.get(PERSISTENT_VOLUME_CLAIM, "data-a-0")
    volumes = {each["name"]: each for each in found["spec"]["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == "data-a-0"
    assert claimed["spec"]["resources"]["requests"] == {"storage": "1Gi"}


async def test_a_job_runs_as_many_pods_at_once_as_it_may(world: World) -> None:
    template = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
    spec = {"parallelism": 2, "completions": 5, "template": template}
    await world.create(JOB, {"metadata": meta("a"), "spec": spec})

    async def has_two() -> list[JsonObject] | None:
        found = await world.pods("batch.kubernetes.io/job-name=a")
        return found if len(found) == 2 else None

    found = await until(has_two)

    assert found is not None
    assert found[0]["metadata"]["labels"]["job-name"] == "a"


async def test_a_job_ends_when_its_pods_have(world: World) -> None:
    template = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
    await world.create(JOB, {"metadata": meta("a"), "spec": {"template": template}})

    async def has_one() -> list[JsonObject]:
        return await world.pods("batch.kubernetes.io/job-name=a")

    (made,) = await until(has_one)
    await world.objects.patch(
        POD,
        made["metadata"]["name"],
        Patch(PatchType.MERGE, {"status": {"phase": "Succeeded"}}),
        namespace=world.namespace,
        subresource="status",
    )

    async def is_complete() -> bool:
        conditions = (await world.get(JOB, "a"))["status"].get("conditions") or []
        return ("Complete", "True") in {(each["type"], each["status"]) for each in conditions}

    assert await until(is_complete)
    assert (await world.get(JOB, "a"))["status"]["succeeded"] == 1


async def test_a_suspended_cron_job_makes_nothing(world: World) -> None:
    template = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
    spec = {
        "schedule": "* * * * *",
        "suspend": True,
        "jobTemplate": {"spec": {"template": template}},
    }

    made = await world.create(CRON_JOB, {"metadata": meta("a"), "spec": spec})

    assert made["spec"]["concurrencyPolicy"] == "Allow"
    assert (await world.objects.list(JOB, Query(world.namespace))).items == ()


async def test_a_daemon_set_has_a_pod_for_each_node(world: World) -> None:
    await world.create(NODE, node("n1"))
    await world.create(NODE, node("n2"))
    await world.create(DAEMON_SET, templated("a"))

    found = await pods(world, 2, "a")

    tolerated = {each["key"] for each in found[0]["spec"]["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in tolerated
    required = found[0]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    fields = required["nodeSelectorTerms"][0]["matchFields"]
    assert fields[0]["key"] == "metadata.name"
    await status(world, DAEMON_SET, "a", desiredNumberScheduled=2, currentNumberScheduled=2)


async def test_a_daemon_set_passes_by_nodes_with_other_labels(world: World) -> None:
    await world.create(NODE, node("n1", labels={"disk": "ssd"}))
    await world.create(NODE, node("n2"))
    made = templated("a")
    made["spec"]["template"]["spec"] = {
        "containers": [CONTAINER],
        "nodeSelector": {"disk": "ssd"},
    }
    await world.create(DAEMON_SET, made)

    await status(world, DAEMON_SET, "a", desiredNumberScheduled=1)

    assert len(await pods(world, 1, "a")) == 1


async def test_a_daemon_set_follows_new_nodes(world: World) -> None:
    await world.create(DAEMON_SET, templated("a"))
    await status(world, DAEMON_SET, "a", observedGeneration=1)

    await world.create(NODE, node("n1"))

    assert len(await pods(world, 1, "a")) == 1


@pytest.mark.parametrize(
    ("spec", "desired"),
    [
        ({"minAvailable": 1}, 1),
        ({"minAvailable": "50%"}, 2),
        ({"maxUnavailable": 1}, 2),
        ({"maxUnavailable": "34%"}, 1),
    ],
)
async def test_a_budget_counts_what_it_protects(
    world: World, spec: JsonObject, desired: int
) -> None:
    await world.create(DEPLOYMENT, deployment("a", replicas=3))
    await pods(world, 3, "a")

    await world.create(DISRUPTION_BUDGET, budget("b", "a", **spec))

    seen = await status(world, DISRUPTION_BUDGET, "b", expectedPods=3, desiredHealthy=desired)
    assert (seen["currentHealthy"], seen["disruptionsAllowed"]) == (0, 0)
