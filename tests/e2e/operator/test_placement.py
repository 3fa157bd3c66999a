"""Pending pods get the nodes they ask for, on a real control plane."""

from karpy.model.kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    NODE_POOL,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
)
from karpy.model.labels import ZONE
from tests.e2e.operator.stage import Stage
from tests.scenarios.manifests import daemon_set, deployment, one_of, pod_spec, pool

SMALL = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")


def zones(stage: Stage) -> list[str]:
    return sorted(each["metadata"]["labels"][ZONE] for each in stage.all("nodes"))


def test_getting_started(stage: Stage) -> None:
    """Create a NodePool, deploy `inflate`, scale it, delete it: nodes come and go."""
    stage.apply(NODE_POOL, pool(disruption={"consolidateAfter": "0s"}))
    stage.apply(DEPLOYMENT, deployment("inflate"))

    stage.scale("inflate", 5)
    stage.wait_for_pods("inflate", 5)
    grown = stage.all("nodeclaims")
    stage.plane.kubectl("delete", "deployment", "inflate")
    stage.wait_for_nodes(0)

    assert [each["metadata"]["labels"]["karpenter.sh/nodepool"] for each in grown] == ["default"]
    assert any("nodeclaim/default-" in note for note in stage.events("Nominated"))
    assert "Disrupting Node: Empty" in stage.events("DisruptionTerminating")


def test_limits_are_kept_and_the_pod_gets_an_event(stage: Stage) -> None:
    stage.apply(NODE_POOL, pool(requirements=[SMALL], limits={"cpu": "8"}))
    stage.apply(DEPLOYMENT, deployment("inflate", 9))

    stage.wait_for_pods("inflate", 6)
    stage.wait(lambda: any("limit" in note for note in stage.events("FailedScheduling")))

    assert len(stage.all("nodes")) == 2


def test_only_pods_that_tolerate_a_taint_get_its_nodes(stage: Stage) -> None:
    taint = {"key": "team", "value": "shop", "effect": "NoSchedule"}
    stage.apply(NODE_POOL, pool("shop", template={"taints": [taint]}))
    tolerant = pod_spec(tolerations=[{"key": "team", "operator": "Exists"}])
    stage.apply(DEPLOYMENT, deployment("mine", 2, pod=tolerant))
    stage.apply(DEPLOYMENT, deployment("other", 1))

    stage.wait_for_pods("mine", 2)
    stage.wait(lambda: stage.events("FailedScheduling"))

    assert stage.running("other") == []
    assert [each["spec"]["taints"] for each in stage.all("nodes")] == [[taint]]


def test_pods_spread_over_zones(stage: Stage) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    stage.apply(NODE_POOL, pool())
    stage.apply(DEPLOYMENT, deployment("web", 4, pod=pod_spec(topologySpreadConstraints=[spread])))

    stage.wait_for_pods("web", 4)

    assert zones(stage) == ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"]


def test_pods_that_shun_each_other_get_a_node_each(stage: Stage) -> None:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "db"}},
    }
    shun = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    stage.apply(NODE_POOL, pool())
    stage.apply(DEPLOYMENT, deployment("db", 3, pod=pod_spec(affinity=shun)))

    stage.wait_for_pods("db", 3)

    nodes = {each["spec"]["nodeName"] for each in stage.running("db")}
    assert len(nodes) == 3


def test_a_pod_follows_its_volume(stage: Stage) -> None:
    terms = [{"matchExpressions": [one_of(ZONE, "test-zone-c")]}]
    volume = {
        "metadata": {"name": "disk"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "csi": {"driver": "example.com", "volumeHandle": "disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            "claimRef": {"namespace": "default", "name": "data"},
        },
    }
    claim = {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "volumeName": "disk",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    stage.apply(NODE_POOL, pool())
    stage.apply(PERSISTENT_VOLUME, volume)
    stage.apply(PERSISTENT_VOLUME_CLAIM, claim)
    stage.apply(DEPLOYMENT, deployment("db", 1, pod=pod_spec(volumes=volumes)))

    stage.wait_for_pods("db", 1)

    assert zones(stage) == ["test-zone-c"]


def test_room_is_left_for_daemons(stage: Stage) -> None:
    """Without them three pods would fit onto a node of four CPUs."""
    stage.apply(NODE_POOL, pool(requirements=[SMALL]))
    stage.apply(DAEMON_SET, daemon_set("agent", pod_spec(cpu="1")))
    stage.apply(DEPLOYMENT, deployment("web", 4))

    # kube-scheduler chooses the order; there is room for all pods.
    stage.wait_for_pods("web", 4)

    assert len(stage.all("nodes")) == 2


def test_a_node_is_ready_for_pods_once_its_startup_taint_is_gone(stage: Stage) -> None:
    taint = {"key": "example.com/starting", "effect": "NoSchedule"}
    stage.apply(NODE_POOL, pool(template={"startupTaints": [taint]}))
    stage.apply(DEPLOYMENT, deployment("web", 1))
    stage.wait(lambda: _said(stage, "Initialized") == ["StartupTaintsExist"])
    before = stage.running("web")

    node = stage.all("nodes")[0]["metadata"]["name"]
    stage.plane.kubectl("taint", "node", node, "example.com/starting-")
    stage.wait_for_pods("web", 1)
    stage.wait(lambda: _said(stage, "Initialized") == ["Initialized"])

    assert before == []
    assert len(stage.all("nodes")) == 1


def _said(stage: Stage, condition: str) -> list[str]:
    """Return the reasons of a condition of all NodeClaims."""
    return [
        one["reason"]
        for claim in stage.all("nodeclaims")
        for one in claim.get("status", {}).get("conditions", [])
        if one["type"] == condition
    ]
