"""Random claims, volumes and classes for the pods of a cluster."""

from collections.abc import Sequence
from typing import Final

from karpy.model.constraints import NodeTerm
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, ZONE
from karpy.model.storage import (
    IMMEDIATE,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageClass,
)
from tests.builders import ZONES, is_in, storage, storage_class, term, volume, volume_claim
from tests.builders.clusters import VolumeClaimFields
from tests.fuzz.dice import Dice, Feature
from tests.fuzz.words import TEAM

OTHER_DRIVER = "efs.csi.example.com"
_CLASSES = (
    "standard",
    "standard",
    "standard",
    "zonal",
    "zonal",
    "choosy",
    "shared",
    "eager",
    "none",
)
_ODD: Final[Sequence[VolumeClaimFields]] = (
    {"is_deleting": True},
    {"phase": "Lost"},
    {"is_bind_completed": False},
)


class Closet:
    """The claims and volumes of a cluster, created for its pods."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._objects: list[PersistentVolumeClaim | PersistentVolume | StorageClass] = [
            storage_class("zonal", term(is_in(ZONE, *ZONES[:2]))),
            storage_class("choosy", _place(dice), term(is_in(ZONE, ZONES[1]))),
            storage_class("shared", provisioner=OTHER_DRIVER),
            storage_class("eager", binding_mode=IMMEDIATE),
        ]
        self._count = 0

    def claims_for(self, namespace: str, pod: str) -> tuple[list[str], list[str]]:
        """Create claims for one pod; return the names of claims, and of ephemeral volumes."""
        dice = self._dice
        names = [self.claim(namespace) for _ in range(dice.one([0, 1, 1, 2, 3]))]
        ephemeral = []
        if dice.chance(0.2):
            ephemeral.append("scratch")
            if dice.chance(0.95):
                self.claim(namespace, f"{pod}-scratch")
        return names, ephemeral

    def claim(self, namespace: str, name: str = "") -> str:
        """Create one claim of some kind, usually a valid one."""
        dice = self._dice
        self._count += 1
        name = name or f"claim-{self._count}"
        if dice.chance(0.02):
            return name
        bound_to = self._volume() if dice.chance(0.5) else ""
        odd: VolumeClaimFields = dice.one(_ODD) if dice.chance(0.04) else {}
        kind = dice.one(_CLASSES) if dice.chance(0.3) else dice.one(["standard", "zonal"])
        self._objects.append(
            volume_claim(
                name,
                bound_to=bound_to,
                storage_class=None if dice.chance(0.01) else kind,
                namespace=namespace,
                **odd,
            )
        )
        return name

    def _volume(self) -> str:
        dice = self._dice
        name = f"volume-{self._count}"
        if dice.chance(0.02):
            return name
        is_local = dice.chance(0.15)
        terms = [_place(dice) for _ in range(dice.one([0, 1, 1, 1, 2, 3]))]
        if is_local:
            terms = [_on_its_host(dice, each) for each in terms]
        made = (
            volume(name, *terms, is_local=is_local, driver=None)
            if is_local
            else volume(name, *terms)
        )
        if dice.chance(0.02):
            made = PersistentVolume(made.name, made.driver, made.terms, is_deleting=True)
        self._objects.append(made)
        return name

    def storage(self) -> Storage:
        return storage(*self._objects)


def _on_its_host(dice: Dice, place: NodeTerm) -> NodeTerm:
    host = is_in(HOSTNAME, "node-1")
    return NodeTerm((host,) if dice.chance(0.5) else (host, *place.expressions))


def _place(dice: Dice) -> NodeTerm:
    if dice.chance(0.1):
        return dice.one([term(is_in(CAPACITY_TYPE, ON_DEMAND)), term(is_in(TEAM, "red"))])
    return term(is_in(ZONE, *dice.some(ZONES, 1, 2)))


def wants_volumes(dice: Dice) -> bool:
    """Draw whether the pods of a workload have volumes."""
    return dice.has(Feature.VOLUMES, 0.5)
