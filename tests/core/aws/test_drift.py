"""How machines differ from their EC2NodeClass; hashes are those of Karpenter v1.14.1."""

from typing import Any, Final

import pytest
from msgspec.structs import replace

from karpy.core.aws.drift import (
    NODE_CLASS_HASH,
    NODE_CLASS_HASH_VERSION,
    VERSION,
    DriftUnknown,
    Observed,
    find_image_drift,
    find_machine_drift,
    find_static_drift,
    hash_node_class,
)
from karpy.model.ec2 import Instance
from karpy.model.ec2nodeclass import FoundReservation
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.records import ClaimRecord, Identity
from tests.builders.ec2 import C6G_LARGE, M5_LARGE
from tests.builders.ec2classes import ARM64, STATUS, node_class, types_of

TYPES = types_of(M5_LARGE, C6G_LARGE)
MACHINE = Instance("i-1", "m5.large", "eu-west-1a", subnet="subnet-a", security_groups=("sg-1",))
BASE: Final[dict[str, Any]] = {
    "role": "role-1",
    "tags": {"keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2"},
    "context": "context-1",
    "detailedMonitoring": False,
    "associatePublicIPAddress": False,
    "amiFamily": "AL2023",
    "metadataOptions": {
        "httpEndpoint": "disabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "optional",
    },
    "blockDeviceMappings": [
        {
            "deviceName": "map-1",
            "ebs": {
                "deleteOnTermination": False,
                "encrypted": False,
                "iops": 0,
                "kmsKeyID": "key",
                "snapshotID": "snap",
                "throughput": 0,
                "volumeSize": "2G",
                "volumeType": "standard",
            },
        },
        {"deviceName": "map-2"},
    ],
    "userData": "data-1",
}
GOLDEN: Final[tuple[tuple[str, dict[str, Any], str, str], ...]] = (
    ("base", BASE, "AL2023", "6651508725807966804"),
    ("user data", {**BASE, "userData": "data-2"}, "AL2023", "12672452800230976480"),
    ("other tags", {**BASE, "tags": {"a": "b"}}, "AL2023", "8919663931617669182"),
    ("no tags", {**BASE, "tags": {}}, "AL2023", "1336140291676707441"),
    ("detailed monitoring", {**BASE, "detailedMonitoring": True}, "AL2023", "13940615326163706414"),
    ("instance store", {**BASE, "instanceStorePolicy": "RAID0"}, "AL2023", "8964013047983564579"),
    (
        "an alias of AL2023",
        {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}]},
        "AL2023",
        "2898637819372767213",
    ),
    (
        "an alias of Bottlerocket",
        {"instanceProfile": "p", "amiSelectorTerms": [{"alias": "bottlerocket@v1.20.0"}]},
        "Bottlerocket",
        "13651638332384650463",
    ),
    (
        "kubelet",
        {
            **BASE,
            "kubelet": {
                "maxPods": 42,
                "podsPerCore": 0,
                "clusterDNS": ["10.0.1.100", "10.0.1.101"],
                "systemReserved": {"cpu": "100m", "memory": "100Mi"},
                "kubeReserved": {"cpu": "200m"},
                "evictionHard": {"memory.available": "5%"},
                "evictionSoft": {"memory.available": "500Mi"},
                "evictionSoftGracePeriod": {"memory.available": "1m30s", "nodefs.available": "0s"},
                "evictionMaxPodGracePeriod": 60,
                "imageGCHighThresholdPercent": 85,
                "imageGCLowThresholdPercent": 80,
                "cpuCFSQuota": True,
            },
        },
        "AL2023",
        "10423629497136055645",
    ),
    (
        "network interfaces",
        {
            **BASE,
            "networkInterfaces": [
                {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
                {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
            ],
        },
        "AL2023",
        "9435458261608811013",
    ),
    (
        "connection tracking",
        {
            **BASE,
            "connectionTracking": {
                "tcpEstablishedTimeout": 60,
                "udpStreamTimeout": 60,
                "udpTimeout": 30,
            },
        },
        "AL2023",
        "9030892491842937201",
    ),
    (
        "nested virtualization",
        {**BASE, "cpuOptions": {"nestedVirtualization": "enabled"}},
        "AL2023",
        "16178253283203434003",
    ),
    (
        "placement group by name",
        {**BASE, "placementGroupSelector": {"name": "pg"}},
        "AL2023",
        "16297885550491261734",
    ),
    (
        "placement group by id",
        {**BASE, "placementGroupSelector": {"id": "pg-1"}},
        "AL2023",
        "9233980643652258018",
    ),
    (
        "root volume",
        {
            **BASE,
            "blockDeviceMappings": [
                {
                    "deviceName": "/dev/xvda",
                    "rootVolume": True,
                    "ebs": {
                        "volumeSize": "1024Mi",
                        "volumeType": "gp3",
                        "encrypted": True,
                        "volumeInitializationRate": 100,
                        "snapshotID": "s",
                    },
                }
            ],
        },
        "AL2023",
        "13527094207524974031",
    ),
    (
        "volume in Gi",
        {**BASE, "blockDeviceMappings": [{"ebs": {"volumeSize": "100Gi"}}]},
        "AL2023",
        "8678877400154148664",
    ),
    (
        "volume in Mi",
        {**BASE, "blockDeviceMappings": [{"ebs": {"volumeSize": "1500Mi"}}]},
        "AL2023",
        "11195053862388907832",
    ),
    (
        "volume in G",
        {**BASE, "blockDeviceMappings": [{"ebs": {"volumeSize": "2000G"}}]},
        "AL2023",
        "8725598828064821445",
    ),
    ("prefix count", {**BASE, "ipPrefixCount": 3}, "AL2023", "6651508725807966804"),
    ("empty context", {**BASE, "context": ""}, "AL2023", "3141240983504611709"),
    (
        "subnet terms",
        {**BASE, "subnetSelectorTerms": [{"id": "subnet-1"}]},
        "AL2023",
        "6651508725807966804",
    ),
)


def claim(type_: str = "m5.large", image: str = "ami-amd", **labels: str) -> ClaimRecord:
    return ClaimRecord(Identity("web-1", labels={INSTANCE_TYPE: type_, **labels}), image_id=image)


def observed(of: ClaimRecord, **status: object) -> Observed:
    return Observed(of, node_class(status=replace(STATUS, **status)), TYPES)


def stamped(digest: str, version: str) -> dict[str, str]:
    return {NODE_CLASS_HASH: digest, NODE_CLASS_HASH_VERSION: version}


@pytest.mark.parametrize(
    ("mine", "its", "expected"),
    [
        (stamped("1", "v5"), stamped("1", "v5"), ""),
        (stamped("1", "v5"), stamped("2", "v5"), "NodeClassDrift"),
        (stamped("1", "v4"), stamped("2", "v5"), ""),
        ({}, stamped("2", "v5"), ""),
        (stamped("1", "v5"), {}, ""),
        ({NODE_CLASS_HASH: "1"}, stamped("2", "v5"), ""),
    ],
)
def test_hashes_of_one_version_are_compared(
    mine: dict[str, str], its: dict[str, str], expected: str
) -> None:
    of = ClaimRecord(Identity("web-1", annotations=mine))

    assert find_static_drift(of, node_class(annotations=its)) == expected


def test_a_machine_boots_the_image_for_its_type() -> None:
    assert find_image_drift(observed(claim())) == ""
    assert find_image_drift(observed(claim("c6g.large", "ami-arm"))) == ""
    assert find_image_drift(observed(claim(image="ami-old"))) == "AMIDrift"
    assert find_image_drift(observed(claim("c6g.large", "ami-amd"))) == "AMIDrift"
    assert find_image_drift(observed(claim(), images=(ARM64,))) == "AMIDrift"


@pytest.mark.parametrize(
    ("of", "status"),
    [(claim("z9.large"), {}), (claim(image=""), {}), (claim(), {"images": ()})],
)
def test_what_is_not_known_does_not_drift(of: ClaimRecord, status: dict[str, object]) -> None:
    with pytest.raises(DriftUnknown):
        find_image_drift(observed(of, **status))


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (MACHINE, ""),
        (replace(MACHINE, security_groups=("sg-1", "sg-mine")), "SecurityGroupDrift"),
        (replace(MACHINE, subnet="subnet-x"), "SubnetDrift"),
        (
            replace(MACHINE, subnet="subnet-x", security_groups=("sg-2",)),
            "SecurityGroupDrift",
        ),
        (
            replace(MACHINE, capacity_type="reserved", reservation="cr-9"),
            "CapacityReservationDrift",
        ),
        (replace(MACHINE, capacity_type="reserved", reservation="cr-1"), ""),
    ],
)
def test_the_first_difference_of_a_machine_counts(machine: Instance, expected: str) -> None:
    reservations = (FoundReservation("cr-1", "m5.large", "eu-west-1a"),)

    assert find_machine_drift(observed(claim(), reservations=reservations), machine) == expected


def test_another_placement_group_is_drift() -> None:
    label = {"karpenter.k8s.aws/placement-group-id": "pg-1"}
    selected = replace(observed(claim()), placement_group="pg-1")

    assert find_machine_drift(selected, MACHINE) == "PlacementGroupDrift"
    assert find_machine_drift(observed(claim(**label)), MACHINE) == "PlacementGroupDrift"
    assert find_machine_drift(replace(selected, claim=claim(**label)), MACHINE) == ""


@pytest.mark.parametrize("status", [{"security_groups": ()}, {"subnets": ()}])
def test_a_class_without_a_network_tells_nothing(status: dict[str, object]) -> None:
    with pytest.raises(DriftUnknown):
        find_machine_drift(observed(claim(), **status), MACHINE)


@pytest.mark.parametrize(
    ("spec", "family", "expected"), [each[1:] for each in GOLDEN], ids=[each[0] for each in GOLDEN]
)
def test_hashes_are_those_of_karpenter(spec: dict[str, Any], family: str, expected: str) -> None:
    assert hash_node_class(spec, family) == expected


def test_fields_that_select_what_changes_by_itself_are_not_hashed() -> None:
    more = {**BASE, "ipPrefixCount": 3, "securityGroupSelectorTerms": [{"id": "sg-1"}]}

    assert hash_node_class(more, "AL2023") == hash_node_class(BASE, "AL2023")


def test_the_family_as_resolved_and_the_ca_bundle_are_hashed() -> None:
    assert hash_node_class(BASE, "AL2") != hash_node_class(BASE, "AL2023")
    assert hash_node_class(BASE, "AL2023", "ca") != hash_node_class(BASE, "AL2023")
    assert VERSION == "v5"
