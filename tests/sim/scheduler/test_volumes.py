"""Claims, volumes, zones, attach limits."""

from karpy.codec.fields import JsonObject
from karpy.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from karpy.model.labels import ZONE
from tests.sim.scheduler.stage import JsonValue, Stage, expression, node, placed, play, pod

DRIVER = "disk.example.com"
NOT_ASKED = ". not found"


def _class(name: str, mode: str, **parts: JsonValue) -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": DRIVER,
        "volumeBindingMode": mode,
        **parts,
    }


LATER = _class("later", "WaitForFirstConsumer")
AT_ONCE = _class("at-once", "Immediate")


def _claim(name: str, class_name: str | None = "later", **spec: JsonValue) -> JsonObject:
    modes = spec.pop("accessModes", ["ReadWriteOnce"])
    asked = {"accessModes": modes, "resources": {"requests": {"storage": "1Gi"}}, **spec}
    if class_name is not None:
        asked["storageClassName"] = class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": asked,
    }


def _volume(name: str, *, zone: str = "", labels: JsonObject | None = None) -> JsonObject:
    rule = expression(ZONE, "In", zone)
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "later",
            "csi": {"driver": DRIVER, "volumeHandle": name},
            **({"nodeAffinity": affinity} if zone else {}),
        },
    }


def _uses(*claims: str) -> list[JsonObject]:
    return [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]


def _limit(name: str, count: int) -> JsonObject:
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [], "allocatable": {"count": count}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def _claim_of(stage: Stage, name: str) -> JsonObject:
    return stage.store.get(PERSISTENT_VOLUME_CLAIM, name, "default")


def test_a_missing_claim_is_named() -> None:
    stage = play(node("n1"), pod("a", volumes=_uses("data")))

    assert stage.message("a") == (
        '0/1 nodes are available: persistentvolumeclaim "data" not found' + NOT_ASKED
    )


def test_a_claim_that_should_have_been_bound_is_waited_for() -> None:
    stage = play(AT_ONCE, node("n1"), _claim("data", "at-once"), pod("a", volumes=_uses("data")))

    assert stage.message("a") == (
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims" + NOT_ASKED
    )


def test_an_immediate_claim_gets_a_volume_at_once() -> None:
    stage = play(
        AT_ONCE,
        node("n1"),
        _claim("data", "at-once"),
        pod("a", volumes=_uses("data")),
        has_provisioner=True,
        seconds=15,
    )

    assert stage.node_of("a") == "n1"
    assert _claim_of(stage, "data")["status"]["phase"] == "Bound"


def test_a_waiting_volume_claim_is_annotated_with_the_node() -> None:
    stage = play(LATER, node("n1"), _claim("data"), pod("a", volumes=_uses("data")))

    annotations = _claim_of(stage, "data")["metadata"]["annotations"]
    assert annotations["volume.kubernetes.io/selected-node"] == "n1"
    assert stage.node_of("a") is None
    assert stage.pod("a")["status"]["nominatedNodeName"] == "n1"


def test_a_pod_is_bound_once_its_volume_is_there() -> None:
    stage = play(
        LATER,
        node("n1", zone="b"),
        _claim("data"),
        pod("a", volumes=_uses("data")),
        has_provisioner=True,
    )

    volume = stage.store.list(PERSISTENT_VOLUME)[0]
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert stage.node_of("a") == "n1"
    assert terms == [{"matchExpressions": [expression(ZONE, "In", "b")]}]
    assert "nominatedNodeName" not in stage.pod("a")["status"]


def test_a_pod_waits_ten_minutes_for_its_volumes() -> None:
    stage = play(LATER, node("n1"), _claim("data"), pod("a", volumes=_uses("data")), seconds=600.1)

    assert stage.message("a") == (
        'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    )


def test_room_is_kept_while_a_pod_waits_for_its_volumes() -> None:
    waits = pod("a", cpu="3", volumes=_uses("data"))

    stage = play(LATER, node("n1", cpu="4"), _claim("data"), waits, 0.1, pod("b", cpu="3"))

    assert stage.message("b").startswith("0/1 nodes are available: 1 Insufficient cpu. ")


def test_a_bound_volume_holds_its_pod_in_its_zone() -> None:
    stage = play(
        LATER,
        node("n1", zone="a", cpu="16"),
        node("n2", zone="b"),
        _volume("vol", zone="b"),
        _claim("data", volumeName="vol"),
        0.1,
        pod("a", volumes=_uses("data")),
        has_provisioner=True,
    )

    assert stage.node_of("a") == "n2"


def test_a_volume_elsewhere_is_out_of_reach() -> None:
    stage = play(
        LATER,
        node("n1", zone="a"),
        _volume("vol", zone="b"),
        _claim("data", volumeName="vol"),
        0.1,
        pod("a", volumes=_uses("data")),
        has_provisioner=True,
    )

    assert stage.message("a").startswith(
        "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity. "
    )


def test_a_volume_may_name_its_zone_by_a_label() -> None:
    stage = play(
        LATER,
        node("n1", zone="a"),
        _volume("vol", labels={ZONE: "b__c"}),
        _claim("data", volumeName="vol"),
        0.1,
        pod("a", volumes=_uses("data")),
        has_provisioner=True,
    )

    assert stage.message("a").startswith(
        "0/1 nodes are available: 1 node(s) had no available volume zone. "
    )


def test_a_free_volume_is_taken_before_one_is_made() -> None:
    stage = play(
        LATER,
        node("n1", zone="a", cpu="16"),
        _volume("vol", zone="a"),
        _claim("data"),
        0.1,
        pod("a", volumes=_uses("data")),
        has_provisioner=True,
    )

    assert stage.node_of("a") == "n1"
    assert _claim_of(stage, "data")["spec"]["volumeName"] == "vol"


def test_without_a_provisioner_only_free_volumes_count() -> None:
    stage = play(
        {**LATER, "provisioner": "kubernetes.io/no-provisioner"},
        node("n1", zone="a"),
        _volume("vol", zone="b"),
        _claim("data"),
        0.1,
        pod("a", volumes=_uses("data")),
        has_provisioner=True,
    )

    assert stage.message("a").startswith(
        "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind. "
    )


def test_a_class_may_be_for_some_zones_only() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]

    stage = play(
        {**LATER, "allowedTopologies": allowed},
        node("n1", zone="a", cpu="16"),
        node("n2", zone="b"),
        _claim("data"),
        pod("a", volumes=_uses("data")),
        has_provisioner=True,
    )

    assert stage.node_of("a") == "n2"


def test_a_node_attaches_so_many_volumes_and_no_more() -> None:
    stage = play(
        LATER,
        node("n1"),
        _limit("n1", 1),
        _claim("one"),
        _claim("two"),
        placed("first", "n1", volumes=_uses("one")),
        pod("second", volumes=_uses("two")),
    )

    assert stage.message("second").startswith(
        "0/1 nodes are available: 1 node(s) exceed max volume count. "
    )


def test_a_volume_that_is_there_already_is_not_counted_twice() -> None:
    stage = play(
        LATER,
        node("n1"),
        _limit("n1", 1),
        _volume("vol"),
        _claim("one", volumeName="vol"),
        0.1,
        placed("first", "n1", volumes=_uses("one")),
        pod("second", volumes=_uses("one")),
        has_provisioner=True,
    )

    assert stage.node_of("second") == "n1"


def test_an_exclusive_claim_is_used_by_one_pod() -> None:
    stage = play(
        LATER,
        node("n1"),
        _claim("data", accessModes=["ReadWriteOncePod"]),
        placed("first", "n1", volumes=_uses("data")),
        pod("second", volumes=_uses("data")),
    )

    assert stage.message("second").startswith(
        "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with "
        "ReadWriteOncePod access mode already in-use by another pod. "
    )


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    default = _class("usual", "WaitForFirstConsumer")
    default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}

    stage = play(
        default,
        node("n1"),
        _claim("data", None),
        pod("a", volumes=_uses("data")),
        has_provisioner=True,
        seconds=15,
    )

    assert _claim_of(stage, "data")["spec"]["storageClassName"] == "usual"
    assert stage.node_of("a") == "n1"


def test_an_ephemeral_volume_gets_a_claim_of_its_own() -> None:
    template = {"spec": _claim("any")["spec"]}
    volumes: list[JsonObject] = [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}]

    stage = play(LATER, node("n1"), pod("a", volumes=volumes), has_provisioner=True, seconds=15)

    assert stage.node_of("a") == "n1"
    assert _claim_of(stage, "a-tmp")["metadata"]["ownerReferences"][0]["name"] == "a"


def test_a_volume_that_was_made_goes_with_its_claim() -> None:
    def delete(stage: Stage) -> None:
        stage.store.delete(PERSISTENT_VOLUME_CLAIM, "data", namespace="default")

    stage = play(AT_ONCE, _claim("data", "at-once"), 1.0, delete, has_provisioner=True)

    assert stage.store.list(PERSISTENT_VOLUME) == []
