"""The controller `nodeclaim.tagging`: tags machines with the names of their node and NodeClaim."""

import asyncio
from typing import Final

from karpy.adapters.clouds.aws.machines import Machines
from karpy.adapters.clouds.aws.reports import OnFailure, Working
from karpy.core.aws.tags import CLUSTER_NAME, NAME, NODE_CLAIM
from karpy.errors import MachineNotFound
from karpy.model.kinds import NODE_CLAIM as NODE_CLAIM_KIND
from karpy.model.records import ClaimRecord
from karpy.ports.objects import Objects, Patch, PatchType
from karpy.ports.observers import Observer
from karpy.ports.records import Records

TAGGED: Final = "karpenter.k8s.aws/tagged"
CLUSTER_TAGGED: Final = "compatibility.karpenter.k8s.aws/cluster-name-tagged"
_PERIOD: Final = 10.0
_PAUSE: Final = 1.0
"""EC2 does not throttle one CreateTags a second."""
_YES: Final = "true"


class TaggingController:
    """Tags a machine once its node is known."""

    def __init__(
        self,
        records: Records,
        objects: Objects,
        machines: Machines,
        cluster: str,
        on_failure: OnFailure,
        observer: Observer,
    ) -> None:
        self._records = records
        self._objects = objects
        self._machines = machines
        self._cluster = cluster
        self._on_failure = on_failure
        self._observer = observer

    async def run(self) -> None:
        """Tag machines, until cancelled."""
        self._observer.set_workers(1)
        while True:
            for kept in list(self._records.claims.all()):
                claim = kept.record
                if is_untagged(claim):
                    with Working(self._observer, claim.name, self._on_failure):
                        await self.tag(claim)
                    await asyncio.sleep(_PAUSE)
            await asyncio.sleep(_PERIOD)

    async def tag(self, claim: ClaimRecord) -> None:
        """Write the tags that a machine lacks, then annotate its NodeClaim as tagged."""
        id_ = claim.provider_id.rpartition("/")[2]
        wanted = {
            NAME: claim.node_name,
            NODE_CLAIM: claim.name,
            CLUSTER_NAME: self._cluster,
        }
        try:
            found = await self._machines.find(id_, is_fresh=True)
            missing = {key: value for key, value in wanted.items() if key not in found.tags}
            if missing:
                await self._machines.tag(id_, missing)
        except MachineNotFound:
            return
        body = {"metadata": {"annotations": {TAGGED: _YES, CLUSTER_TAGGED: _YES}}}
        await self._objects.patch(NODE_CLAIM_KIND, claim.name, Patch(PatchType.MERGE, body))


def is_untagged(claim: ClaimRecord) -> bool:
    """Say whether a claim has a node, and no annotation that its machine is tagged."""
    if claim.meta.is_deleting or not claim.node_name or not claim.provider_id:
        return False
    annotations = claim.meta.annotations
    return {annotations.get(TAGGED), annotations.get(CLUSTER_TAGGED)} != {_YES}
