"""Where kube-scheduler binds pods, and why it leaves pods pending."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    STORAGE_CLASS,
)
from karpy.ports.objects import Patch, PatchType
from tests.contract.plain import CONTAINER, meta, node, pod
from tests.contract.worlds import World, until

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


async def add_node(world: World, name: str, **spec: object) -> None:
    """Create a node that accepts pods, with `labels` and `taints`."""
    labels = spec.pop("labels", None)
    made = node(name, labels=labels if isinstance(labels, dict) else None)
    await world.create(NODE, {**made, "spec": spec})

    async def is_open() -> bool:
        taints = (await world.get(NODE, name))["spec"].get("taints") or []
        return all(each["key"] != "node.kubernetes.io/not-ready" for each in taints)

    await until(is_open)


async def test_a_new_node_is_tainted_until_it_is_ready(world: World) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    silent = {"type": "Ready", "status": "Unknown", "reason": "Booting"}
    own = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}

    made = await world.create(NODE, {**node("n1", conditions=[silent]), "spec": {"taints": [own]}})
    ready = Patch(PatchType.STRATEGIC, {"status": node("n1")["status"]})
    await world.objects.patch(NODE, "n1", ready, subresource="status")

    async def is_open() -> bool:
        return bool((await world.get(NODE, "n1"))["spec"]["taints"] == [own])

    assert made["spec"]["taints"] == [own, taint]
    assert await until(is_open)


async def test_the_not_ready_taint_is_given_once(world: World) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

    made = await world.create(NODE, {**node("n1"), "spec": {"taints": [taint]}})

    assert made["spec"]["taints"] == [taint]


def asking(name: str, labels: dict[str, str] | None = None, **spec: object) -> JsonObject:
    """Build a pod for the default scheduler that asks for one core."""
    sized = {**CONTAINER, "resources": {"requests": {"cpu": "1"}}}
    return pod(
        name,
        labels=labels,
        **{"schedulerName": "default-scheduler", "containers": [sized], **spec},
    )


async def place_of(world: World, name: str) -> str:
    """Wait until a pod is bound; return its node."""

    async def look() -> str:
        node_name: str = (await world.get(POD, name))["spec"].get("nodeName", "")
        return node_name

    return await until(look)


async def refusal_of(world: World, name: str) -> tuple[str, str]:
    """Wait until a pod is unschedulable; return reason and message."""

    async def look() -> tuple[str, str] | None:
        for each in (await world.get(POD, name)).get("status", {}).get("conditions") or ():
            if each["type"] == "PodScheduled" and each["status"] == "False":
                return each["reason"], each.get("message", "")
        return None

    found = await until(look)
    assert found is not None
    return found


async def test_a_pod_goes_where_there_is_room(world: World) -> None:
    await add_node(world, "n1")
    await world.create(POD, asking("a"))

    assert await place_of(world, "a") == "n1"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (
            {"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "5"}}}]},
            "1 Insufficient cpu",
        ),
        (
            {"containers": [{**CONTAINER, "resources": {"limits": {"example.com/gpu": "1"}}}]},
            "1 Insufficient example.com/gpu",
        ),
        ({"nodeSelector": {"disk": "ssd"}}, "1 node(s) didn't match Pod's node affinity/selector"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": ZONE, "operator": "In", "values": ["b"]}
                                    ]
                                }
                            ]
                        }
                    }
                }
            },
            "1 node(s) didn't match Pod's node affinity/selector",
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]},
            'persistentvolumeclaim "none" not found',
        ),
        (
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "rack",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {},
                    }
                ]
            },
            "1 node(s) didn't match pod topology spread constraints (missing required label)",
        ),
        (
            {
                "affinity": {
                    "podAffinity": {
                        REQUIRED: [
                            {
                                "topologyKey": ZONE,
                                "labelSelector": {"matchLabels": {"app": "nobody"}},
                            }
                        ]
                    }
                }
            },
            "1 node(s) didn't match pod affinity rules",
        ),
    ],
)
async def test_a_pod_that_fits_nowhere_gets_the_reason(
    world: World, spec: JsonObject, reason: str
) -> None:
    await add_node(world, "n1", labels={ZONE: "a"})
    await world.create(POD, asking("a", **spec))

    condition_reason, message = await refusal_of(world, "a")

    assert condition_reason == "Unschedulable"
    assert message.startswith("0/1 nodes are available: ")
    assert reason in message


async def test_without_nodes_nothing_can_be_placed(world: World) -> None:
    await world.create(POD, asking("a"))

    reason, message = await refusal_of(world, "a")

    assert (reason, message) == ("Unschedulable", "no nodes available to schedule pods")


async def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(world: World) -> None:
    taint = {"key": "team", "value": "red", "effect": "NoSchedule"}
    await add_node(world, "n1", taints=[taint])
    toleration = {"key": "team", "operator": "Exists"}
    await world.create(POD, asking("a"))
    await world.create(POD, asking("b", tolerations=[toleration]))

    _, message = await refusal_of(world, "a")

    assert "untolerated taint" in message
    assert await place_of(world, "b") == "n1"


async def test_a_cordoned_node_takes_nothing(world: World) -> None:
    await add_node(world, "n1", unschedulable=True)
    await world.create(POD, asking("a"))

    _, message = await refusal_of(world, "a")

    assert "1 node(s) were unschedulable" in message


async def test_a_host_port_is_taken_once(world: World) -> None:
    ports = [{"containerPort": 80, "hostPort": 8080}]
    await add_node(world, "n1")
    await world.create(POD, asking("a", containers=[{**CONTAINER, "ports": ports}]))
    await place_of(world, "a")

    await world.create(POD, asking("b", containers=[{**CONTAINER, "ports": ports}]))
    _, message = await refusal_of(world, "b")

    assert "1 node(s) didn't have free ports for the requested pod ports" in message


async def test_pods_are_spread_over_zones(world: World) -> None:
    await add_node(world, "n1", labels={ZONE: "a"})
    await add_node(world, "n2", labels={ZONE: "b"})
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    for name in ("a1", "a2"):
        await world.create(POD, asking(name, {"app": "a"}, topologySpreadConstraints=[spread]))

    places = {await place_of(world, name) for name in ("a1", "a2")}

    assert places == {"n1", "n2"}


async def test_pods_that_must_be_apart_are_apart(world: World) -> None:
    await add_node(world, "n1")
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "a"}}}
    apart = {"podAntiAffinity": {REQUIRED: [term]}}
    await world.create(POD, asking("a1", {"app": "a"}, affinity=apart))
    await place_of(world, "a1")

    await world.create(POD, asking("a2", {"app": "a"}, affinity=apart))
    _, message = await refusal_of(world, "a2")

    assert "1 node(s) didn't match pod anti-affinity rules" in message


async def test_a_pod_that_must_not_be_met_keeps_others_away(world: World) -> None:
    await add_node(world, "n1")
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "b"}}}
    await world.create(POD, asking("a", affinity={"podAntiAffinity": {REQUIRED: [term]}}))
    await place_of(world, "a")

    await world.create(POD, asking("b", {"app": "b"}))
    _, message = await refusal_of(world, "b")

    assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in message


async def test_the_first_of_those_who_must_be_together_goes_anywhere(world: World) -> None:
    await add_node(world, "n1", labels={ZONE: "a"})
    await add_node(world, "n2", labels={ZONE: "b"})
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}}
    together = {"podAffinity": {REQUIRED: [term]}}
    await world.create(POD, asking("a1", {"app": "a"}, affinity=together))
    first = await place_of(world, "a1")

    await world.create(POD, asking("a2", {"app": "a"}, affinity=together))

    assert await place_of(world, "a2") == first


async def test_a_claim_that_is_bound_at_once_must_be(world: World) -> None:
    await add_node(world, "n1")
    slow = {"provisioner": "example.com/nobody", "volumeBindingMode": "Immediate"}
    await world.create(STORAGE_CLASS, {"metadata": meta(world.namespace), **slow})
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": world.namespace,
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": "no-such-volume",
    }
    await world.create(PERSISTENT_VOLUME_CLAIM, {"metadata": meta("c"), "spec": claim})
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    await world.create(POD, asking("a", volumes=[volume]))

    _, message = await refusal_of(world, "a")
    await world.objects.delete(STORAGE_CLASS, world.namespace)

    assert "unbound immediate PersistentVolumeClaims" in message


async def test_a_gated_pod_waits_for_its_gate(world: World) -> None:
    await add_node(world, "n1")
    await world.create(POD, asking("a", schedulingGates=[{"name": "example.com/wait"}]))
    reason, _ = await refusal_of(world, "a")

    patch = Patch(PatchType.MERGE, {"spec": {"schedulingGates": None}})
    await world.objects.patch(POD, "a", patch, namespace=world.namespace)

    assert reason == "SchedulingGated"
    assert await place_of(world, "a") == "n1"


async def test_a_pod_is_placed_once_there_is_room(world: World) -> None:
    await world.create(POD, asking("a"))
    await refusal_of(world, "a")

    await add_node(world, "n1")

    assert await place_of(world, "a") == "n1"


async def test_an_important_pod_drives_another_out(world: World) -> None:
    await add_node(world, "n1")
    await world.create(PRIORITY_CLASS, {"metadata": meta(world.namespace), "value": 1000})
    big = [{**CONTAINER, "resources": {"requests": {"cpu": "3"}}}]
    await world.create(POD, asking("low", containers=big, terminationGracePeriodSeconds=0))
    await place_of(world, "low")

    await world.create(POD, asking("high", containers=big, priorityClassName=world.namespace))

    async def is_leaving() -> bool:
        found = await world.objects.list(POD)
        left = [each for each in found.items if each["metadata"]["name"] == "low"]
        return all("deletionTimestamp" in each["metadata"] for each in left)

    assert await until(is_leaving)
    await world.objects.delete(PRIORITY_CLASS, world.namespace)


async def test_the_scheduler_of_another_name_is_left_alone(world: World) -> None:
    await add_node(world, "n1")
    await world.create(POD, asking("theirs", schedulerName="somebody"))
    await world.create(POD, asking("ours"))

    await place_of(world, "ours")

    theirs = await world.get(POD, "theirs")
    assert "nodeName" not in theirs["spec"]
    assert "conditions" not in theirs["status"]
