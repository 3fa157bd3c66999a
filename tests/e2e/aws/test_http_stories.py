"""Whole lives of nodes on a fake AWS, over HTTP and in real time."""

import time

import pytest

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.model.kinds import DEPLOYMENT, EC2_NODE_CLASS, EVENT, NODE, NODE_CLAIM, NODE_POOL
from karpy.model.labels import CAPACITY_TYPE
from tests.aws.manifests import ec2_node_class, ec2_pool, one_of
from tests.e2e.aws.account import Site, on_aws
from tests.scenarios.manifests import asking, deployment

GPU = "nvidia.com/gpu"
TAINT = {"key": GPU, "effect": "NoSchedule"}
WARNING_SECONDS = 120
"""The time between EC2's interruption notice and the end of a spot instance."""


async def moved_in(site: Site, *capacity_types: str, **spec: object) -> None:
    await site.apply(EC2_NODE_CLASS, ec2_node_class("default", **spec))
    await site.apply(NODE_POOL, ec2_pool("default", one_of(CAPACITY_TYPE, *capacity_types)))
    await site.apply(DEPLOYMENT, deployment(replicas=3))
    await site.until_running("inflate", 3)


async def moved_out(site: Site) -> None:
    await site.delete(DEPLOYMENT, "inflate")
    await site.delete(NODE_POOL, "default")
    await site.delete(EC2_NODE_CLASS, "default")
    await site.until_clean()


@pytest.mark.parametrize("world", ["embedded", "real"])
async def test_pods_get_machines_and_nothing_is_left_of_them(
    world: str, request: pytest.FixtureRequest
) -> None:
    plane: ControlPlane | None = None
    if world == "real":
        plane = request.getfixturevalue("control_plane")
    async with on_aws(plane) as site:
        await moved_in(site, "on-demand")

        [claim], [node], [instance] = (
            await site.all(NODE_CLAIM),
            await site.all(NODE),
            site.fake.instances(),
        )
        assert claim["status"]["providerID"] == node["spec"]["providerID"]
        assert claim["status"]["providerID"] == f"aws:///{instance.zone}/{instance.id}"
        assert node["metadata"]["labels"][CAPACITY_TYPE] == "on-demand"
        assert instance.tags["karpenter.sh/nodepool"] == "default"

        await moved_out(site)


async def test_interrupted_spot_falls_back_to_on_demand_and_everything_goes_with_its_class(
    control_plane: ControlPlane,
) -> None:
    async with on_aws(control_plane) as site:
        await moved_in(site, "spot", "on-demand")
        [before] = site.fake.instances()
        assert await site.labels(CAPACITY_TYPE) == {"spot"}
        site.fake.tables.market.sell_out("spot")
        began = time.monotonic()

        site.fake.interrupt(before.id)

        async def is_replaced() -> bool:
            return await site.labels(CAPACITY_TYPE) == {"on-demand"}

        await site.until(is_replaced)
        await site.until_running("inflate", 3)
        assert time.monotonic() - began < WARNING_SECONDS
        assert before.id not in {each.id for each in site.fake.instances()}

        await site.delete(EC2_NODE_CLASS, "default")

        async def is_waiting() -> bool:
            reasons = {each["reason"] for each in await site.all(EVENT)}
            return "WaitingOnNodeClaimTermination" in reasons

        await site.until(is_waiting)
        assert len(await site.running("inflate")) == 3
        await site.delete(DEPLOYMENT, "inflate")
        await site.delete(NODE_POOL, "default")
        await site.until_clean()


async def test_other_images_roll_nodes_and_gpus_are_for_pods_that_ask_for_them(
    control_plane: ControlPlane,
) -> None:
    async with on_aws(control_plane) as site:
        pinned, latest = ([{"alias": f"al2023@{each}"}] for each in ("v20251201", "latest"))
        gpus = one_of("karpenter.k8s.aws/instance-category", "g")
        await site.apply(NODE_POOL, ec2_pool("gpu", gpus, template={"taints": [TAINT]}))
        asked = {"requests": {"cpu": "1", GPU: "1"}, "limits": {GPU: "1"}}
        pod = asking(asked, tolerations=[{"key": GPU, "operator": "Exists"}])
        await site.apply(DEPLOYMENT, deployment("train", 1, pod=pod))
        await moved_in(site, "on-demand", amiSelectorTerms=pinned)
        await site.until_running("train", 1)
        before = {each["metadata"]["name"]: each for each in await site.all(NODE)}
        images = {each.image for each in site.fake.instances()}
        [training] = await site.running("train")
        where = before[training["spec"]["nodeName"]]["metadata"]["labels"]
        assert where["karpenter.k8s.aws/instance-family"] == "g5"
        general = {each["spec"]["nodeName"] for each in await site.running("inflate")}
        assert training["spec"]["nodeName"] not in general

        await site.change(EC2_NODE_CLASS, "default", {"spec": {"amiSelectorTerms": latest}})

        async def is_rolled() -> bool:
            return before.keys().isdisjoint(
                [each["metadata"]["name"] for each in await site.all(NODE)]
            )

        await site.until(is_rolled)
        await site.until_running("inflate", 3)
        await site.until_running("train", 1)
        assert images.isdisjoint({each.image for each in site.fake.instances()})

        await site.delete(DEPLOYMENT, "train")
        await site.delete(NODE_POOL, "gpu")
        await moved_out(site)
