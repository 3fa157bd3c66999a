import asyncio

import pytest

from karpy.errors import MachineNotFound
from karpy.model.kinds import CSI_NODE, LEASE, NODE, POD
from karpy.sim.kubelets.hardware import Hardware
from karpy.sim.kubelets.nodes import Health
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.world import WorldSettings
from tests.sim.stories import bare_world, bind, condition, get_pod, on_virtual_time, pod, taints

SIZE = {"cpu": 4000, "memory": 2**34, "pods": 110}
DISK_FULL = Health("DiskPressure", "True", "KubeletHasDiskPressure", "the disk is full")
BAD_GPU = Health("AcceleratedHardwareReady", "False", "NvidiaXid", "the GPU fell off the bus")


@on_virtual_time
async def test_a_machine_joins_after_its_boot_and_gets_ready_after_a_while() -> None:
    with bare_world() as world:
        world.kubelets.boot(Hardware("n1", SIZE))
        await asyncio.sleep(29)
        before = world.store.find(NODE, "n1")
        await asyncio.sleep(2)
        joined = condition(world, "Ready", node="n1"), taints(world, "n1")
        await asyncio.sleep(10)

        assert before is None
        assert joined == ("False", ["not-ready:NoExecute", "not-ready:NoSchedule"])
        assert (condition(world, "Ready", node="n1"), taints(world, "n1")) == ("True", [])


@on_virtual_time
async def test_a_node_reports_the_properties_of_its_machine() -> None:
    hardware = Hardware(
        "n1",
        SIZE,
        {"cpu": 3900, "memory": 2**33, "pods": 110},
        labels={"topology.kubernetes.io/zone": "a", "kubernetes.io/arch": "arm64"},
        taints=({"key": "gpu", "effect": "NoSchedule", "value": "yes"},),
        provider_id="sim:///a/i-1",
        boot_seconds=0,
        ready_seconds=0,
    )
    with bare_world() as world:
        world.kubelets.boot(hardware)
        await asyncio.sleep(1)

        node = world.store.get(NODE, "n1")
        assert node["metadata"]["labels"] == {
            "beta.kubernetes.io/arch": "arm64",
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "arm64",
            "kubernetes.io/hostname": "n1",
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/zone": "a",
        }
        assert node["spec"] == {
            "providerID": "sim:///a/i-1",
            "taints": [{"key": "gpu", "effect": "NoSchedule", "value": "yes"}],
        }
        assert node["status"]["capacity"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}
        assert node["status"]["allocatable"] == {"cpu": "3900m", "memory": "8Gi", "pods": "110"}
        assert node["status"]["addresses"] == [
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "Hostname", "address": "n1"},
        ]
        assert node["status"]["nodeInfo"]["architecture"] == "arm64"


@on_virtual_time
async def test_a_node_has_a_lease_and_a_csi_node_of_its_own() -> None:
    with bare_world() as world:
        world.kubelets.boot(Hardware("n1", SIZE, volume_limits={"ebs.csi.aws.com": 27}))
        await asyncio.sleep(60)

        uid = world.store.get(NODE, "n1")["metadata"]["uid"]
        lease = world.store.get(LEASE, "n1", "kube-node-lease")
        assert lease["metadata"]["ownerReferences"][0]["uid"] == uid
        assert lease["spec"]["renewTime"] == "2026-01-05T00:00:40.000000Z"
        assert world.store.get(CSI_NODE, "n1")["spec"]["drivers"] == [
            {
                "name": "ebs.csi.aws.com",
                "nodeID": "n1",
                "topologyKeys": [],
                "allocatable": {"count": 27},
            }
        ]


@on_virtual_time
async def test_a_lease_is_renewed_as_often_as_asked_for() -> None:
    with bare_world(WorldSettings(timing=KubeletTiming(beat_seconds=10))) as world:
        world.add_node("n1")
        await asyncio.sleep(65)

        lease = world.store.get(LEASE, "n1", "kube-node-lease")
        assert lease["spec"]["renewTime"] == "2026-01-05T00:01:00.000000Z"


@on_virtual_time
async def test_a_kubelet_posts_its_conditions_every_five_minutes() -> None:
    with bare_world(WorldSettings(timing=KubeletTiming(beat_seconds=10))) as world:
        world.add_node("n1")
        await asyncio.sleep(605)

        ready = world.store.get(NODE, "n1")["status"]["conditions"][-1]
        assert ready["lastHeartbeatTime"] == "2026-01-05T00:10:00Z"
        assert ready["lastTransitionTime"] == "2026-01-05T00:00:00Z"


@on_virtual_time
async def test_a_dud_never_joins() -> None:
    with bare_world() as world:
        world.kubelets.boot(Hardware("n1", SIZE, is_dud=True))
        await asyncio.sleep(3600)

        assert world.store.list(NODE) == []


@pytest.mark.parametrize("annotation", ["sim.karpy.dev/kubelet", "kwok.x-k8s.io/node"])
@on_virtual_time
async def test_a_node_of_another_writer_gets_a_kubelet_if_it_asks_for_one(annotation: str) -> None:
    node = {
        "metadata": {"name": "n1", "annotations": {annotation: "fake"}},
        "status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}},
    }
    with bare_world() as world:
        world.store.create(NODE, node)
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(30)

        assert condition(world, "Ready", node="n1") == "True"
        assert condition(world, "Ready", pod="web") == "True"


@on_virtual_time
async def test_any_other_node_is_left_alone() -> None:
    with bare_world() as world:
        world.store.create(NODE, {"metadata": {"name": "n1"}})
        await asyncio.sleep(30)

        assert "conditions" not in world.store.get(NODE, "n1").get("status", {})


@on_virtual_time
async def test_an_adopted_kubelet_ends_with_its_node() -> None:
    node = {"metadata": {"name": "n1", "annotations": {"kwok.x-k8s.io/node": "fake"}}}
    with bare_world() as world:
        world.store.create(NODE, node)
        await asyncio.sleep(30)

        world.store.delete(NODE, "n1")

        assert world.kubelets.living() == []


@on_virtual_time
async def test_a_condition_of_a_kubelet_in_trouble_shows_until_it_is_healed() -> None:
    with bare_world() as world:
        world.add_node("n1")
        await asyncio.sleep(1)

        world.kubelets.trouble("n1", DISK_FULL)
        await asyncio.sleep(1)
        in_trouble = condition(world, "DiskPressure", node="n1"), taints(world, "n1")
        world.kubelets.heal("n1")
        await asyncio.sleep(1)

        assert in_trouble == ("True", ["disk-pressure:NoSchedule"])
        assert condition(world, "DiskPressure", node="n1") == "False"
        assert taints(world, "n1") == []


@on_virtual_time
async def test_an_agent_on_the_machine_may_report_conditions_of_its_own() -> None:
    with bare_world() as world:
        world.add_node("n1")
        await asyncio.sleep(1)

        world.kubelets.trouble("n1", BAD_GPU)

        assert condition(world, "AcceleratedHardwareReady", node="n1") == "False"
        assert condition(world, "Ready", node="n1") == "True"


@on_virtual_time
async def test_a_reboot_keeps_the_node_and_starts_its_containers_anew() -> None:
    with bare_world() as world:
        world.kubelets.boot(Hardware("n1", SIZE))
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(60)
        before = world.store.get(NODE, "n1")

        world.kubelets.reboot("n1")
        await asyncio.sleep(35)
        rebooted = condition(world, "Ready", node="n1")
        await asyncio.sleep(60)

        node = world.store.get(NODE, "n1")
        assert rebooted == "False"
        assert condition(world, "Ready", node="n1") == "True"
        assert node["metadata"]["uid"] == before["metadata"]["uid"]
        assert node["status"]["nodeInfo"]["bootID"] != before["status"]["nodeInfo"]["bootID"]
        assert get_pod(world, "web")["status"]["containerStatuses"][0]["restartCount"] == 1
        assert condition(world, "Ready", pod="web") == "True"


@on_virtual_time
async def test_a_kubelet_that_is_lost_while_it_boots_joins_when_it_is_back() -> None:
    with bare_world() as world:
        world.kubelets.boot(Hardware("n1", SIZE))
        await asyncio.sleep(10)

        world.kubelets.lose("n1")
        await asyncio.sleep(100)
        absent = world.store.find(NODE, "n1")
        world.kubelets.recover("n1")
        await asyncio.sleep(20)

        assert absent is None
        assert condition(world, "Ready", node="n1") == "True"


@on_virtual_time
async def test_a_machine_that_was_halted_is_not_there_to_be_recovered() -> None:
    with bare_world() as world:
        world.add_node("n1")
        await asyncio.sleep(1)
        world.kubelets.halt("n1")

        with pytest.raises(MachineNotFound):
            world.kubelets.recover("n1")

        assert world.store.find(NODE, "n1") is not None


@on_virtual_time
async def test_machines_boot_at_different_speeds_by_seed() -> None:
    timing = KubeletTiming(jitter_percent=50)
    with bare_world(WorldSettings(timing=timing), seed=1) as world:
        world.kubelets.boot(Hardware("n1", SIZE))
        world.kubelets.boot(Hardware("n2", SIZE))
        await asyncio.sleep(100)

        joined = {node["metadata"]["creationTimestamp"] for node in world.store.list(NODE)}
        assert len(joined) == 2
