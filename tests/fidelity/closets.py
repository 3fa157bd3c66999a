"""Random claims for pods, with their volumes and classes."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.labels import ZONE
from karpy.model.storage import IMMEDIATE, WAIT_FOR_FIRST_CONSUMER
from tests.fidelity.words import DRIVER, TEAM, ZONES
from tests.fuzz.dice import Dice

WAITING: Final = "fidelity-waiting"
ZONAL: Final = "fidelity-zonal"
STATIC: Final = "fidelity-static"
EAGER: Final = "fidelity-eager"
_MODES: Final = ("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod")
_SHARED_MODES: Final = ("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteOncePod")
_API: Final = "storage.k8s.io/v1"
_NOBODY: Final = "kubernetes.io/no-provisioner"


def _storage_class(
    name: str, provisioner: str, mode: str, topologies: list[JsonObject] | None = None
) -> JsonObject:
    storage_class: JsonObject = {
        "apiVersion": _API,
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }
    if topologies:
        storage_class["allowedTopologies"] = topologies
    return storage_class


CLASSES: Final[tuple[JsonObject, ...]] = (
    _storage_class(WAITING, DRIVER, WAIT_FOR_FIRST_CONSUMER),
    _storage_class(
        ZONAL,
        DRIVER,
        WAIT_FOR_FIRST_CONSUMER,
        [{"matchLabelExpressions": [{"key": ZONE, "values": list(ZONES[:2])}]}],
    ),
    _storage_class(STATIC, _NOBODY, WAIT_FOR_FIRST_CONSUMER),
    _storage_class(EAGER, _NOBODY, IMMEDIATE),
)
"""No volumes of the class with immediate binding exist, so that its claims stay unbound."""


class Closet:
    """The claims and volumes of a cluster, created for its pods."""

    def __init__(self, dice: Dice, prefix: str) -> None:
        self.claims: list[JsonObject] = []
        self.volumes: list[JsonObject] = []
        self._dice = dice
        self._prefix = prefix

    def stock_up(self) -> None:
        """Draw a few volumes without a claim."""
        for _ in range(self._dice.number(0, 2)):
            self._volume(STATIC, None)

    def volumes_of_pod(self, namespace: str, *, is_shared: bool = False) -> JsonObject:
        """Throw the part of a pod's spec that is about its volumes."""
        modes = _SHARED_MODES if is_shared else _MODES
        names = [self._claim(namespace, modes) for _ in range(self._dice.one([1, 1, 2]))]
        return {
            "volumes": [
                {"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}}
                for number, name in enumerate(names)
            ]
        }

    def _claim(self, namespace: str, modes: tuple[str, ...]) -> str:
        dice = self._dice
        name = f"{self._prefix}-c{len(self.claims)}"
        if dice.chance(0.02):
            return "nowhere"
        storage_class = dice.one([WAITING, WAITING, ZONAL, ZONAL, STATIC, STATIC])
        if dice.chance(0.03):
            storage_class = EAGER
        spec: JsonObject = {
            "accessModes": [dice.one(modes)],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": dice.one(["1Gi", "5Gi"])}},
        }
        claim: JsonObject = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        if storage_class != EAGER and dice.chance(0.6):
            spec["volumeName"] = self._volume(storage_class, claim)
        self.claims.append(claim)
        return name

    def _volume(self, storage_class: str, claim: JsonObject | None) -> str:
        dice = self._dice
        name = f"{self._prefix}-v{len(self.volumes)}"
        modes = claim["spec"]["accessModes"] if claim else [dice.one(_MODES)]
        spec: JsonObject = {
            "capacity": {"storage": "10Gi" if claim else dice.one(["1Gi", "10Gi"])},
            "accessModes": modes,
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage_class,
            "csi": {"driver": DRIVER, "volumeHandle": name},
        }
        if dice.chance(0.7):
            terms = [_random_place(dice) for _ in range(dice.one([1, 1, 2]))]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        if claim:
            meta = claim["metadata"]
            spec["claimRef"] = {"namespace": meta["namespace"], "name": meta["name"]}
        labels = {ZONE: dice.one(["za", "zb", "za__zb"])} if dice.chance(0.4) else {}
        self.volumes.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
            }
        )
        return name


def _random_place(dice: Dice) -> JsonObject:
    if dice.chance(0.15):
        return {"matchExpressions": [{"key": TEAM, "operator": "Exists"}]}
    zones = dice.some(ZONES, 1, 2)
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]}
