"""AWS over HTTP, in real time: few stories, but whole."""

import pytest

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.model.kinds import DEPLOYMENT, EC2_NODE_CLASS, NODE, NODE_CLAIM, NODE_POOL
from karpy.model.labels import CAPACITY_TYPE
from tests.aws.manifests import ec2_node_class, ec2_pool, one_of
from tests.e2e.aws.account import Site, on_aws
from tests.scenarios.manifests import deployment


async def moved_in(site: Site, *capacity_types: str) -> None:
    await site.apply(EC2_NODE_CLASS, ec2_node_class())
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


async def test_a_spot_interruption_is_heard_and_the_machine_replaced() -> None:
    async with on_aws() as site:
        await moved_in(site, "spot", "on-demand")
        [before] = site.fake.instances()

        site.fake.interrupt(before.id)

        async def is_replaced() -> bool:
            return before.id not in {each.id for each in site.fake.instances()}

        await site.until(is_replaced)
        await site.until_running("inflate", 3)

        await moved_out(site)


async def test_where_spot_is_sold_out_on_demand_is_launched() -> None:
    async with on_aws() as site:
        site.fake.tables.market.sell_out("spot")

        await moved_in(site, "spot", "on-demand")

        [node] = await site.all(NODE)
        assert node["metadata"]["labels"][CAPACITY_TYPE] == "on-demand"

        await moved_out(site)
