"""Whole stories on EC2 in memory: from an EC2NodeClass to pods that run, and back to nothing."""

import asyncio
from typing import Final

import pytest

from karpy.model.kinds import DEPLOYMENT, EC2_NODE_CLASS, NODE_POOL
from karpy.model.labels import ARCH, CAPACITY_TYPE
from karpy.sim.kubelets.timing import HOUR
from tests.aws.manifests import ec2_node_class, ec2_pool, one_of
from tests.aws.stage import AwsStage, aws_stage, condition
from tests.scenarios.manifests import asking, deployment, pod_spec
from tests.sim.stories import on_virtual_time

STANDARD_IMAGE: Final = (
    "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
)
MINUTE: Final = 60.0
CONDITIONS: Final = (
    "AMIsReady",
    "SubnetsReady",
    "SecurityGroupsReady",
    "InstanceProfileReady",
    "ValidationSucceeded",
    "Ready",
)


async def moved_out(stage: AwsStage, *apps: str) -> None:
    """Have everything deleted, and wait until nothing is left in cluster and account."""
    for app in apps:
        stage.delete(DEPLOYMENT, app)
    for pool in stage.store.list(NODE_POOL):
        stage.delete(NODE_POOL, pool["metadata"]["name"])
    for node_class in stage.store.list(EC2_NODE_CLASS):
        stage.delete(EC2_NODE_CLASS, node_class["metadata"]["name"])
    await stage.until_clean()
    assert stage.store.list(EC2_NODE_CLASS) == []


@on_virtual_time
async def test_pods_get_machines_and_everything_goes_with_its_node_class() -> None:
    async with aws_stage() as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=5))
        await stage.until_running("inflate", 5)

        said = {each: condition(stage.node_class(), each) for each in CONDITIONS}
        assert said == dict.fromkeys(CONDITIONS, "True")
        assert stage.labels("karpenter.k8s.aws/instance-hypervisor") == {"nitro"}
        assert stage.labels(CAPACITY_TYPE) == {"spot"}

        await moved_out(stage, "inflate")


@on_virtual_time
async def test_spot_falls_back_to_on_demand_where_it_is_sold_out() -> None:
    async with aws_stage() as stage:
        stage.tables.market.sell_out("spot")
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool("default", one_of(CAPACITY_TYPE, "spot", "on-demand")))
        stage.apply(DEPLOYMENT, deployment(replicas=3))
        await stage.until_running("inflate", 3)

        assert stage.labels(CAPACITY_TYPE) == {"on-demand"}
        assert all("SpotInstanceRequestId" not in each for each in stage.ec2.alive())

        await moved_out(stage, "inflate")


@on_virtual_time
async def test_each_architecture_boots_its_own_image() -> None:
    async with aws_stage() as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool("default", one_of(ARCH, "amd64", "arm64")))
        for arch in ("amd64", "arm64"):
            pod = pod_spec(nodeSelector={ARCH: arch})
            stage.apply(DEPLOYMENT, deployment(arch, replicas=2, pod=pod))
        await stage.until_running("amd64", 2)
        await stage.until_running("arm64", 2)

        booted = {
            stage.ec2.images[each["ImageId"]]["Architecture"]: each["InstanceType"].split(".")[0]
            for each in stage.ec2.alive()
        }
        assert booted.keys() == {"x86_64", "arm64"}
        assert booted["arm64"] == "c7g"

        await moved_out(stage, "amd64", "arm64")


@on_virtual_time
@pytest.mark.parametrize(
    ("resource", "family"), [("nvidia.com/gpu", {"g5"}), ("amd.com/gpu", {"g4ad"})]
)
async def test_gpus_are_for_pods_that_ask_for_them(resource: str, family: set[str]) -> None:
    taint = {"key": resource, "value": "true", "effect": "NoSchedule"}
    gpus = one_of("karpenter.k8s.aws/instance-category", "g")
    terms = [{"name": "amazon-eks-node-al2023-x86_64-standard-*"}]
    async with aws_stage() as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        # The image for NVIDIA is of no use on AMD: a node class that names one serves all.
        stage.ec2.get_parameter({"Name": STANDARD_IMAGE})
        plain = ec2_node_class("any", amiSelectorTerms=terms, amiFamily="AL2023")
        stage.apply(EC2_NODE_CLASS, plain)
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(
            NODE_POOL, ec2_pool("gpu", gpus, node_class="any", template={"taints": [taint]})
        )
        asked = asking({"requests": {"cpu": "1"}, "limits": {resource: "1"}})
        pod = {**asked, "tolerations": [{"key": resource, "operator": "Exists"}]}
        stage.apply(DEPLOYMENT, deployment("train", replicas=1, pod=pod))
        stage.apply(DEPLOYMENT, deployment("web", replicas=1))
        await stage.until_running("train", 1)
        await stage.until_running("web", 1)

        by_name = {each["metadata"]["name"]: each for each in stage.nodes}
        node = by_name[stage.pods("train")[0]["spec"]["nodeName"]]
        web = by_name[stage.pods("web")[0]["spec"]["nodeName"]]
        assert {node["metadata"]["labels"]["karpenter.k8s.aws/instance-family"]} == family
        assert taint in node["spec"]["taints"]
        assert web["metadata"]["labels"]["karpenter.k8s.aws/instance-category"] in {"c", "m"}

        await moved_out(stage, "train", "web")


@on_virtual_time
async def test_a_spot_interruption_drains_and_replaces_within_two_minutes() -> None:
    async with aws_stage() as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool("default", one_of(CAPACITY_TYPE, "spot")))
        stage.apply(DEPLOYMENT, deployment(replicas=3))
        await stage.until_running("inflate", 3)
        before = stage.instance_of(stage.nodes[0])
        place = stage.ec2.instances[before]

        stage.ec2.interrupt(before)
        await stage.until(lambda: before not in running(stage), 120)
        await stage.until_running("inflate", 3)

        after = stage.ec2.alive()
        assert [each["InstanceId"] for each in after] != [before]
        assert not stage.ec2.messages
        # Where EC2 takes machines back, none is asked for: for a while.
        sold = {(each["InstanceType"], each["Placement"]["AvailabilityZone"]) for each in after}
        assert (place["InstanceType"], place["Placement"]["AvailabilityZone"]) not in sold

        await moved_out(stage, "inflate")


@on_virtual_time
async def test_a_new_release_of_images_replaces_machines() -> None:
    terms = [{"name": "amazon-eks-node-al2023-x86_64-standard-*"}]
    async with aws_stage() as stage:
        stage.ec2.get_parameter({"Name": STANDARD_IMAGE})
        stage.apply(EC2_NODE_CLASS, ec2_node_class(amiSelectorTerms=terms, amiFamily="AL2023"))
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=2))
        await stage.until_running("inflate", 2)
        [before] = images(stage)

        stage.tables.release = "v20260301"
        stage.ec2.get_parameter({"Name": STANDARD_IMAGE})
        await stage.until(lambda: before not in images(stage), 4 * MINUTE)
        await stage.until_running("inflate", 2)

        assert stage.ec2.images[images(stage).pop()]["Name"].endswith("v20260301")
        assert len(stage.ec2.alive()) == 1

        await moved_out(stage, "inflate")


@on_virtual_time
async def test_an_image_that_is_deprecated_has_its_alias_asked_for_anew() -> None:
    async with aws_stage() as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=2))
        await stage.until_running("inflate", 2)
        [before] = images(stage)

        stage.tables.release = "v20260301"
        stage.ec2.images[before]["DeprecationTime"] = "2026-01-05T00:00:00.000Z"
        await stage.until(lambda: before not in images(stage), 40 * MINUTE)
        await stage.until_running("inflate", 2)

        assert stage.ec2.images[images(stage).pop()]["Name"].endswith("v20260301")

        await moved_out(stage, "inflate")


@on_virtual_time
async def test_an_upgrade_of_the_control_plane_moves_the_alias() -> None:
    async with aws_stage(eks_control_plane=True) as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=2))
        await stage.until_running("inflate", 2)
        [before] = images(stage)

        stage.ec2.kubernetes = "1.35"
        await stage.until(lambda: before not in images(stage), HOUR)
        await stage.until_running("inflate", 2)

        assert "-1.35-" in stage.ec2.images[images(stage).pop()]["Name"]

        await moved_out(stage, "inflate")


@on_virtual_time
@pytest.mark.parametrize("alias", ["al2@latest", "al2023@latest", "bottlerocket@latest"])
async def test_images_of_every_family_join(alias: str) -> None:
    taint = {"key": "example.com/team", "value": "shop", "effect": "NoSchedule"}
    async with aws_stage() as stage:
        stage.ec2.kubernetes = "1.32"
        stage.apply(EC2_NODE_CLASS, ec2_node_class(amiSelectorTerms=[{"alias": alias}]))
        pool = ec2_pool(template={"taints": [taint]})
        pool["spec"]["template"]["metadata"] = {"labels": {"example.com/team": "shop"}}
        stage.apply(NODE_POOL, pool)
        pod = pod_spec(tolerations=[{"key": "example.com/team", "operator": "Exists"}])
        stage.apply(DEPLOYMENT, deployment(replicas=2, pod=pod))
        await stage.until_running("inflate", 2)

        assert stage.labels("example.com/team") == {"shop"}
        assert all(taint in each["spec"]["taints"] for each in stage.nodes)

        await moved_out(stage, "inflate")


@on_virtual_time
async def test_a_machine_that_a_person_ends_is_replaced_and_its_node_goes() -> None:
    async with aws_stage() as stage:
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=2))
        await stage.until_running("inflate", 2)
        before = stage.instance_of(stage.nodes[0])

        stage.ec2.end(before)
        await stage.until(lambda: before not in map(stage.instance_of, stage.nodes))
        await stage.until_running("inflate", 2)

        await moved_out(stage, "inflate")


@on_virtual_time
async def test_a_node_class_says_what_it_does_not_find() -> None:
    async with aws_stage() as stage:
        nothing = [{"tags": {"karpenter.sh/discovery": "another"}}]
        stage.apply(EC2_NODE_CLASS, ec2_node_class("subnets", subnetSelectorTerms=nothing))
        stage.apply(EC2_NODE_CLASS, ec2_node_class("groups", securityGroupSelectorTerms=nothing))
        stage.apply(
            EC2_NODE_CLASS,
            ec2_node_class("images", amiSelectorTerms=[{"id": "ami-0"}], amiFamily="AL2023"),
        )
        stage.apply(EC2_NODE_CLASS, ec2_node_class("role", role="nobody"))
        bottlerocket = [{"alias": "bottlerocket@latest"}]
        stage.apply(
            EC2_NODE_CLASS,
            ec2_node_class("data", amiSelectorTerms=bottlerocket, userData="not [ toml"),
        )
        stage.apply(NODE_POOL, ec2_pool(node_class="subnets"))
        stage.apply(DEPLOYMENT, deployment(replicas=1))
        await asyncio.sleep(120)

        said = {
            name: condition(stage.node_class(name), type_)
            for name, type_ in (
                ("subnets", "SubnetsReady"),
                ("groups", "SecurityGroupsReady"),
                ("images", "AMIsReady"),
                ("role", "InstanceProfileReady"),
                ("data", "ValidationSucceeded"),
            )
        }
        assert said["subnets"] == said["groups"] == said["images"] == "False"
        assert said["data"] == "False"
        assert said["role"] == "Unknown"
        conditions = stage.node_class("role")["status"]["conditions"]
        profile = next(each for each in conditions if each["type"] == "InstanceProfileReady")
        assert profile["reason"] == "RoleNotFound"
        assert "nobody" in profile["message"]
        assert condition(stage.store.get(NODE_POOL, "default"), "Ready") == "False"
        assert (stage.claims, stage.ec2.launched) == ([], 0)

        await moved_out(stage, "inflate")


@on_virtual_time
async def test_refusals_of_aws_only_cost_time() -> None:
    async with aws_stage(has_operator=False) as stage:
        for call in (
            "CreateFleet",
            "DescribeSubnets",
            "CreateLaunchTemplate",
            "TerminateInstances",
        ):
            stage.tables.refuse(call, times=3)
        stage.hire()
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=3))
        await stage.until_running("inflate", 3)

        assert stage.ec2.launched == len(stage.nodes)

        await moved_out(stage, "inflate")


def running(stage: AwsStage) -> set[str]:
    """Return the instances that pods run on."""
    nodes = {each["metadata"]["name"]: each for each in stage.nodes}
    names = {each["spec"].get("nodeName", "") for each in stage.pods("inflate")}
    return {stage.instance_of(nodes[each]) for each in names if each in nodes}


def images(stage: AwsStage) -> set[str]:
    return {each["ImageId"] for each in stage.ec2.alive()}
