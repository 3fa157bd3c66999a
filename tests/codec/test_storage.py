import pytest

from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.storage import (
    EBS_DRIVER,
    gather_storage,
    read_attach_limits,
    read_attachment,
    read_claim,
    read_class,
    read_volume,
)
from karpy.model.constraints import NodeTerm
from karpy.model.labels import ZONE
from karpy.model.requirements import one_of
from karpy.model.storage import (
    IMMEDIATE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageClass,
    VolumeAttachment,
)
from tests.codec.plain import Json, Value, wants

EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def named(name: str, **fields: Value) -> Json:
    meta = fields.pop("meta", {})
    return {"metadata": {"name": name, **meta}, **fields}


def test_a_bound_claim_is_read_whole() -> None:
    obj = named(
        "data",
        meta={
            "namespace": "shop",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        spec={"volumeName": "pv-1", "storageClassName": "fast"},
        status={"phase": "Bound"},
    )

    assert read_claim(Fields(obj)) == PersistentVolumeClaim(
        "data", "shop", "pv-1", "fast", "Bound", True, True
    )


@pytest.mark.parametrize(("phase", "expected"), [({}, True), ({"phase": "Pending"}, False)])
def test_a_claim_that_was_written_by_hand_will_be_bound(phase: Json, *, expected: bool) -> None:
    claim = read_claim(Fields(named("data", spec={"volumeName": "pv-1"}, status=phase)))

    assert claim.is_bind_completed is expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (named("a", spec={}), None),
        (named("a", spec={"storageClassName": ""}), ""),
        (named("a", spec={"storageClassName": "fast"}), "fast"),
        (
            named("a", meta={"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}),
            "old",
        ),
    ],
)
def test_no_class_differs_from_the_class_of_no_name(obj: Json, expected: str | None) -> None:
    assert read_claim(Fields(obj)).storage_class == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"csi": {"driver": "d"}}, PersistentVolume("pv", "d")),
        ({"awsElasticBlockStore": {}}, PersistentVolume("pv", EBS_DRIVER)),
        ({"nfs": {}}, PersistentVolume("pv")),
        ({"local": {}}, PersistentVolume("pv", is_local=True)),
        ({"hostPath": {}}, PersistentVolume("pv", is_local=True)),
        (
            {
                "csi": {"driver": "d"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [wants(EBS_ZONE, "In", "a")]},
                            {"matchExpressions": [wants(ZONE, "In", "b")]},
                        ]
                    }
                },
            },
            PersistentVolume(
                "pv", "d", (NodeTerm((one_of(ZONE, "a"),)), NodeTerm((one_of(ZONE, "b"),)))
            ),
        ),
    ],
)
def test_volumes_know_their_driver_and_where_they_are(
    spec: Json, expected: PersistentVolume
) -> None:
    """Drivers have topology keys of their own for the zone; new nodes lack these labels."""
    assert read_volume(Fields(named("pv", spec=spec))) == expected


def test_a_deleting_volume_is_known() -> None:
    obj = named("pv", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}, spec={})

    assert read_volume(Fields(obj)) == PersistentVolume("pv", is_deleting=True)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (named("c", provisioner="p"), StorageClass("c", "p", IMMEDIATE)),
        (
            named("c", provisioner="kubernetes.io/aws-ebs", volumeBindingMode="Immediate"),
            StorageClass("c", EBS_DRIVER, IMMEDIATE),
        ),
        (
            named(
                "c",
                meta={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                provisioner="p",
                volumeBindingMode="WaitForFirstConsumer",
                allowedTopologies=[
                    {"matchLabelExpressions": [{"key": EBS_ZONE, "values": ["a", "b"]}]}
                ],
            ),
            StorageClass(
                "c",
                "p",
                WAIT_FOR_FIRST_CONSUMER,
                (NodeTerm((one_of(ZONE, "a", "b"),)),),
                True,
            ),
        ),
    ],
)
def test_classes_are_read_whole(obj: Json, expected: StorageClass) -> None:
    assert read_class(Fields(obj)) == expected


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"provisioner": ""}, "provisioner"),
        ({"volumeBindingMode": "Later"}, "volumeBindingMode"),
        (
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "a"}]}]},
            "allowedTopologies[0].matchLabelExpressions[0].values",
        ),
    ],
)
def test_a_bad_class_is_named(change: Json, path: str) -> None:
    with pytest.raises(FieldInvalid) as raised:
        read_class(Fields({**named("c", provisioner="p"), **change}))

    assert raised.value.path == path


def test_a_driver_without_a_count_has_no_limit() -> None:
    drivers = [
        {"name": "a", "allocatable": {"count": 25}},
        {"name": "b", "allocatable": {}},
        {"name": "c"},
    ]

    assert read_attach_limits(Fields(named("n", spec={"drivers": drivers}))) == {
        "a": 25,
        "b": None,
        "c": None,
    }


def test_a_negative_count_is_refused() -> None:
    obj = named("n", spec={"drivers": [{"name": "a", "allocatable": {"count": -1}}]})

    with pytest.raises(FieldInvalid, match=r"spec\.drivers\[0\]\.allocatable\.count` is -1"):
        read_attach_limits(Fields(obj))


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    default = StorageClass("z-default", "p", is_default=True)
    other = StorageClass("a", "p")
    claims = [
        PersistentVolumeClaim("bare", "ns"),
        PersistentVolumeClaim("none", "ns", storage_class=""),
        PersistentVolumeClaim("bound", "ns", volume_name="pv"),
    ]
    volume = PersistentVolume("pv")

    assert gather_storage(claims, [volume], [default, other]) == Storage(
        claims={
            "ns/bare": PersistentVolumeClaim("bare", "ns", storage_class="z-default"),
            "ns/none": claims[1],
            "ns/bound": claims[2],
        },
        volumes={"pv": volume},
        classes={"z-default": default, "a": other},
    )


def test_without_a_default_class_a_claim_stays_as_it_is() -> None:
    claim = PersistentVolumeClaim("bare", "ns")

    assert gather_storage([claim], [], []) == Storage(claims={"ns/bare": claim})


def test_an_attachment_names_its_node_and_volume() -> None:
    spec = {"nodeName": "n1", "source": {"persistentVolumeName": "pv-1"}}
    obj = {"metadata": {"name": "va-1"}, "spec": spec}

    assert read_attachment(Fields(obj)) == VolumeAttachment("va-1", "n1", "pv-1")


def test_an_inline_volume_has_no_name() -> None:
    obj = {"metadata": {"name": "va-1"}, "spec": {"nodeName": "n1", "source": {}}}

    assert read_attachment(Fields(obj)) == VolumeAttachment("va-1", "n1")
