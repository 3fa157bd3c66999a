"""How far a Deployment is rolled out."""

from karpy.codec.fields import JsonObject
from karpy.model.kinds import REPLICA_SET
from tests.sim.workloads.stage import Stage

REVISION = "deployment.kubernetes.io/revision"
ROLLED_OUT = {
    "Available": ("True", "MinimumReplicasAvailable"),
    "Progressing": ("True", "NewReplicaSetAvailable"),
}


def sizes(stage: Stage) -> dict[str, int]:
    """Return the sizes of the ReplicaSets by their revision."""
    return {
        each["metadata"]["annotations"][REVISION]: each["spec"]["replicas"]
        for each in sorted(stage.all(REPLICA_SET), key=lambda each: str(each["metadata"]))
    }


def rolling(surge: int | str, unavailable: int | str) -> JsonObject:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": rolling}
