from karpy.codec.fields import JsonObject
from karpy.model.kinds import (
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STATEFUL_SET,
)
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import on_stage, settle, workload

CLAIM: JsonObject = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


def _spec(replicas: int = 3, **spec: object) -> JsonObject:
    return workload("db", replicas, serviceName="db", **spec)


@on_virtual_time
async def test_each_pod_has_claims_of_its_own() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec(2, volumeClaimTemplates=[CLAIM]))
        await settle(5)

        claim = stage.get(PERSISTENT_VOLUME_CLAIM, "data-db-0")
        volumes = stage.get(POD, "db-1")["spec"]["volumes"]
        assert stage.names(PERSISTENT_VOLUME_CLAIM) == ["data-db-0", "data-db-1"]
        assert claim["metadata"]["labels"] == {"app": "db"}
        assert "ownerReferences" not in claim["metadata"]
        assert volumes[0] == {
            "name": "data",
            "persistentVolumeClaim": {"claimName": "data-db-1"},
        }
        assert "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success x1" in (
            stage.events("db")
        )


@on_virtual_time
async def test_claims_are_kept_unless_the_set_says_otherwise() -> None:
    with on_stage() as stage:
        stage.add(STATEFUL_SET, "db", _spec(2, volumeClaimTemplates=[CLAIM]))
        await settle(5)

        stage.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
        await settle(5)
        stage.delete(STATEFUL_SET, "db")
        await settle(5)

        assert stage.names(POD) == []
        assert stage.names(PERSISTENT_VOLUME_CLAIM) == ["data-db-0", "data-db-1"]


@on_virtual_time
async def test_claims_are_deleted_on_scale_down_if_the_policy_says_so() -> None:
    with on_stage() as stage:
        policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
        spec = _spec(2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
        stage.add(STATEFUL_SET, "db", spec)
        await settle(5)

        stage.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
        await settle(5)
        scaled = stage.names(PERSISTENT_VOLUME_CLAIM)
        stage.delete(STATEFUL_SET, "db")
        await settle(5)

        assert scaled == ["data-db-0"]
        assert stage.names(PERSISTENT_VOLUME_CLAIM) == ["data-db-0"]


@on_virtual_time
async def test_claims_are_deleted_with_the_set_if_the_policy_says_so() -> None:
    with on_stage() as stage:
        policy = {"whenScaled": "Retain", "whenDeleted": "Delete"}
        spec = _spec(2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
        stage.add(STATEFUL_SET, "db", spec)
        await settle(5)

        stage.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
        await settle(5)
        scaled = stage.names(PERSISTENT_VOLUME_CLAIM)
        stage.delete(STATEFUL_SET, "db")
        await settle(5)

        assert scaled == ["data-db-0", "data-db-1"]
        assert stage.names(PERSISTENT_VOLUME_CLAIM) == []


@on_virtual_time
async def test_a_pod_does_not_get_a_deleting_claim_of_its_predecessor() -> None:
    with on_stage(stop=10) as stage:
        policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
        spec = _spec(2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
        stage.add(STATEFUL_SET, "db", spec)
        await settle(5)
        before = stage.get(PERSISTENT_VOLUME_CLAIM, "data-db-1")["metadata"]["uid"]

        stage.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
        await settle(5)
        stage.patch(STATEFUL_SET, "db", {"spec": {"replicas": 2}})
        await settle(60)

        assert stage.pod_names() == ["db-0", "db-1"]
        assert stage.get(PERSISTENT_VOLUME_CLAIM, "data-db-1")["metadata"]["uid"] != before
