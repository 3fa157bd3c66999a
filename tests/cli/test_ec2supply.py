"""EC2's catalog for NodePools without an account, and the findings about it."""

import pytest
from msgspec.structs import replace

from karpy.cli.ec2supply import Needs, ec2_supply
from karpy.codec.bystanders import NodeClassFound
from karpy.codec.fields import JsonObject
from karpy.codec.narrowing import Supply
from karpy.errors import ObjectNotFound
from karpy.model.instances import InstanceType
from karpy.model.labels import OS, REGION, ZONE
from karpy.model.pools import NodePool
from karpy.model.records import NodeClassRef
from karpy.model.requirements import Operator, Requirement, one_of, require
from karpy.model.snapshot import Snapshot
from tests.builders.nodes import node
from tests.builders.pods import NOON, pod

EC2 = ("karpenter.k8s.aws", "EC2NodeClass")
AUTO = ("eks.amazonaws.com", "NodeClass")
ZONE_ID = "topology.k8s.aws/zone-id"


def pool(
    name: str = "p", *requirements: Requirement, kind: tuple[str, str] = EC2, of: str = "default"
) -> NodePool:
    return NodePool(name, requirements=requirements, node_class=NodeClassRef(*kind, of))


def found(
    spec: JsonObject, *, kind: tuple[str, str] = EC2, status: JsonObject | None = None
) -> NodeClassFound:
    value = {"metadata": {"name": "default"}, "spec": spec, "status": status or {}}
    return NodeClassFound(*kind, "default", value, "`f` document 1, EC2NodeClass default")


def supply(*pools: NodePool, classes: tuple[NodeClassFound, ...] = (), place: str = "") -> Supply:
    return ec2_supply(place, Needs(Snapshot(now=NOON, pools=pools), classes), pools)


def m5_large(supply: Supply, name: str = "p") -> InstanceType:
    return next(each for each in supply.catalog.types_for(name) if each.name == "m5.large")


def codes(supply: Supply) -> list[str]:
    return [each.code for each in supply.findings]


@pytest.mark.parametrize(
    ("requirement", "name"),
    [
        (one_of(ZONE, "eu-west-1a", "eu-west-1b"), "ec2:eu-west-1"),
        (one_of(ZONE_ID, "apne1-az4"), "ec2:ap-northeast-1"),
        (one_of(REGION, "sa-east-1"), "ec2:sa-east-1"),
    ],
)
def test_the_region_is_the_one_that_a_pool_asks_for(requirement: Requirement, name: str) -> None:
    made = supply(pool("p", requirement))

    assert made.name == name
    assert "REGION_ASSUMED" not in codes(made)


def test_nodes_and_pods_say_the_region_if_no_pool_does() -> None:
    pools = (pool(),)
    there = node("n", labels={ZONE: "eu-north-1a"})
    waiting = pod("a", selector={ZONE: "eu-south-1b"})

    by_node = ec2_supply("", Needs(Snapshot(now=NOON, pools=pools, nodes=(there,))), pools)
    by_pod = ec2_supply("", Needs(Snapshot(now=NOON, pools=pools, pods=(waiting,))), pools)

    assert (by_node.name, by_pod.name) == ("ec2:eu-north-1", "ec2:eu-south-1")


@pytest.mark.parametrize(
    "requirements",
    [(), (one_of(ZONE, "test-zone-a"),), (require(ZONE, Operator.NOT_IN, ["eu-west-1a"]),)],
)
def test_without_a_region_in_the_input_it_is_assumed_with_a_finding(
    requirements: tuple[Requirement, ...],
) -> None:
    made = supply(pool("p", *requirements))

    assert made.name == "ec2:us-east-1"
    assert codes(made) == ["ESTIMATE", "REGION_ASSUMED", "CLASS_MISSING"]


def test_pools_of_two_regions_buy_each_in_its_own() -> None:
    made = supply(
        pool("near", one_of(ZONE, "eu-west-1a")),
        pool("far", one_of(ZONE, "us-west-2a")),
        pool("anywhere"),
    )

    assert made.name == "ec2:eu-west-1, ec2:us-west-2"
    assert m5_large(made, "near").requirements[REGION].values == {"eu-west-1"}
    assert m5_large(made, "far").requirements[REGION].values == {"us-west-2"}
    assert m5_large(made, "anywhere").requirements[REGION].values == {"eu-west-1"}


def test_a_region_that_is_asked_for_holds_for_all_pools() -> None:
    made = supply(pool("p", one_of(ZONE, "eu-west-1a")), place="us-west-2")

    assert made.name == "ec2:us-west-2"


def test_a_region_that_is_not_in_the_table_is_an_error() -> None:
    with pytest.raises(ObjectNotFound) as caught:
        supply(pool(), place="mars-1")

    assert "eu-west-1, eu-west-2" in caught.value.hint


def test_a_node_class_of_the_input_changes_what_fits() -> None:
    spec: JsonObject = {
        "amiSelectorTerms": [{"alias": "bottlerocket@latest"}],
        "kubelet": {"maxPods": 110, "systemReserved": {"cpu": "1"}},
        "blockDeviceMappings": [{"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "100Gi"}}],
    }

    made = supply(pool(), classes=(found(spec),))

    kind = m5_large(made)
    assert kind.capacity["pods"] == 110
    assert kind.capacity["ephemeral-storage"] == 100 * 2**30
    assert kind.overhead["cpu"] == 1070
    assert codes(made) == ["ESTIMATE", "REGION_ASSUMED", "CLASS_ASSUMED"]


def test_subnets_that_a_controller_has_found_say_the_zones() -> None:
    status = {"subnets": [{"id": "subnet-1", "zone": "eu-west-1b", "zoneID": "euw1-az9"}]}

    made = supply(pool(), classes=(found({}, status=status),))

    assert made.name == "ec2:eu-west-1"
    assert m5_large(made).requirements[ZONE].values == {"eu-west-1b"}
    assert m5_large(made).requirements[ZONE_ID].values == {"euw1-az9"}
    assert codes(made) == ["ESTIMATE"]


def test_what_only_aws_knows_is_left_out_with_a_warning() -> None:
    spec: JsonObject = {
        "capacityReservationSelectorTerms": [{"id": "cr-1"}],
        "placementGroupSelector": {"name": "near"},
    }

    made = supply(pool(), classes=(found(spec),))

    (finding,) = [each for each in made.findings if each.code == "KP1023"]
    assert finding.is_left_out
    assert finding.message.startswith(
        "`spec.capacityReservationSelectorTerms` and `spec.placementGroupSelector` take no part"
    )


@pytest.mark.parametrize(("is_refused", "errors"), [(False, ["KP1001"]), (True, [])])
def test_a_node_class_that_cannot_be_read_counts_as_a_usual_one(
    *, is_refused: bool, errors: list[str]
) -> None:
    broken = replace(found({"kubelet": {"maxPods": "many"}}), is_refused=is_refused)

    made = supply(pool(), classes=(broken,))

    assert m5_large(made).capacity["pods"] == 29
    assert [each for each in codes(made) if each.startswith("KP")] == errors


def test_a_pool_for_windows_has_windows_though_its_class_is_not_there() -> None:
    made = supply(pool("p", one_of(OS, "windows")))

    assert m5_large(made).requirements[OS].values == {"windows"}


def test_eks_auto_mode_has_its_labels_and_is_not_run_by_karpy() -> None:
    disk: JsonObject = {"ephemeralStorage": {"size": "200Gi"}}

    bare = supply(pool(kind=AUTO))
    made = supply(pool(kind=AUTO), classes=(found(disk, kind=AUTO),))

    assert m5_large(bare).capacity["ephemeral-storage"] == 80 * 2**30
    assert m5_large(made).capacity["ephemeral-storage"] == 200 * 2**30
    assert m5_large(made).requirements["eks.amazonaws.com/instance-category"].values == {"m"}
    assert "eks.amazonaws.com/instance-category" in made.catalog.well_known
    (said,) = [each for each in made.findings if each.code == "AUTO_MODE"]
    assert "are run by EKS Auto Mode, not by Karpy" in said.message


def test_a_pool_of_another_cloud_has_plain_types_if_the_catalog_was_asked_for() -> None:
    made = supply(pool(kind=("karpenter.kwok.sh", "KWOKNodeClass")), place="eu-west-1")

    assert m5_large(made).capacity["pods"] == 29
    assert codes(made) == ["ESTIMATE"]
