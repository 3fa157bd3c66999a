"""Workloads by name: `family-N`, or `family-NxT` to limit the instance types to T."""

import json
import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from karpy.bench import mixes
from karpy.bench.draws import Draws
from karpy.bench.objects import Json
from karpy.bench.occupied import full, idle, mixed
from karpy.bench.realistic import real
from karpy.errors import ObjectNotFound

FORMAT: Final = "karpbench/v1"
PROVISION: Final = "provision"
CONSOLIDATE: Final = "consolidate"
SEED: Final = 42
_NAME: Final = re.compile(
    r"(?P<family>[a-z-]+)-(?P<count>[1-9][0-9]{0,6})(?:x(?P<types>[1-9][0-9]{0,3}))?", re.ASCII
)


class WorkloadFamily(Struct, frozen=True):
    """A family of workloads of any size."""

    about: str
    """One line of description; `N` stands for the number in the name."""
    make: Callable[[Draws, int, int | None], Json]
    kind: str = PROVISION


FAMILIES: Final = {
    "diverse": WorkloadFamily("Karpenter's benchmark mix: N pods in five parts", mixes.diverse),
    "preference": WorkloadFamily(
        "Karpenter's preference benchmark: N equal pods", mixes.preference
    ),
    "real": WorkloadFamily(
        "a company's deployments: about N pods, 4 NodePools, 5 DaemonSets", real
    ),
    "mixed": WorkloadFamily("N running nodes at about 70 %, 10 N pending pods", mixed),
    "idle": WorkloadFamily("N running nodes at about 40 %: many can go", idle, CONSOLIDATE),
    "full": WorkloadFamily("N full nodes of one family: nothing to gain", full, CONSOLIDATE),
    "adv-distinct": WorkloadFamily(
        "N pods, no two of them equal", mixes.adversarial(mixes.distinct)
    ),
    "adv-hostanti": WorkloadFamily(
        "N pods that need a node each (anti-affinity)", mixes.adversarial(mixes.host_averse)
    ),
    "adv-zonespread": WorkloadFamily(
        "N pods in N/20 deployments spread over zones", mixes.zone_spread
    ),
    "adv-prefs": WorkloadFamily(
        "N pods with six preferences to drop", mixes.adversarial(mixes.preferring)
    ),
    "adv-unschedulable": WorkloadFamily(
        "N pods, every other one impossible", mixes.adversarial(mixes.unschedulable)
    ),
    "adv-selectors": WorkloadFamily("N pods, each pinned to one instance type", mixes.selectors),
}


class Recipe(Struct, frozen=True):
    """A parsed workload name."""

    name: str
    family: WorkloadFamily
    count: int
    types: int | None

    def make(self, seed: int = SEED) -> Json:
        """Generate the workload."""
        head = {"format": FORMAT, "name": self.name, "kind": self.family.kind, "seed": seed}
        made = self.family.make(Draws(self.name, seed), self.count, self.types)
        return {**head, "options": {}, "daemonSets": [], "pdbs": [], "nodes": [], **made}


def find_recipe(name: str) -> Recipe:
    """Parse a workload name; raise ObjectNotFound if there is no such family."""
    match = _NAME.fullmatch(name)
    family = FAMILIES.get(match["family"]) if match else None
    if match is None or family is None:
        raise ObjectNotFound(
            kind="workload", name=name, known=", ".join(f"{known}-N" for known in FAMILIES)
        )
    return Recipe(
        name, family, int(match["count"]), int(match["types"]) if match["types"] else None
    )


def encode_workload(workload: Json) -> bytes:
    """Encode a workload as compact JSON; equal workloads give equal bytes."""
    return json.dumps(workload, separators=(",", ":")).encode()
