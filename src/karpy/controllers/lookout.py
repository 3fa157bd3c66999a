"""The cluster as disruption sees it, put together from what is watched and asked for."""

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.disruption import read_policy
from karpy.controllers.context import ControllerContext, only, read
from karpy.controllers.nominations import Nominations
from karpy.controllers.offloading import decide_aside
from karpy.controllers.tenants import Tenants
from karpy.core.disruption.emptiness import find_empty
from karpy.core.lifecycle.conditions import CONSOLIDATABLE
from karpy.errors import AnswerMalformed
from karpy.model.disruption import DisruptionPolicy
from karpy.model.kinds import NODE_POOL
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord
from karpy.model.surroundings import NodeState, Surroundings
from karpy.ports.cluster import Cluster
from karpy.ports.records import Kept

BufferPods = Callable[[str], int]
"""Says how many pods of CapacityBuffers have their place on a node, by its name."""


class Look(Struct, frozen=True):
    """What was seen, and the objects it was read from."""

    surroundings: Surroundings
    claims: Mapping[str, Kept[ClaimRecord]] = {}
    """By name."""
    nodes: Mapping[str, Kept[NodeRecord]] = {}
    """By the name of their claim."""


class Lookout:
    """Looks at nodes: at some of them quickly, or at all of them with their pods."""

    def __init__(
        self,
        context: ControllerContext,
        cluster: Cluster,
        nominations: Nominations,
        *,
        buffer_pods: BufferPods = lambda _: 0,
        reads_deletion_cost: bool = True,
    ) -> None:
        self._context = context
        self._cluster = cluster
        self._nominations = nominations
        self._buffer_pods = buffer_pods
        self._reads_deletion_cost = reads_deletion_cost
        self._tenants = Tenants(context, reads_deletion_cost=reads_deletion_cost)

    def glance(self, names: Iterable[str]) -> Look:
        """See what has become of some claims, and nothing of their pods."""
        claims = (self._context.claim(name) for name in names)
        return self._seen([each for each in claims if each is not None])

    async def look(self, fresh: Collection[str] = ()) -> Look:
        """See everything; the pods on the nodes of `fresh` claims as of this moment."""
        records = self._context.records
        ours = [each for each in records.claims.all() if self._context.is_ours(each.record)]
        look = self._seen(ours)
        managed = {each.record.name for each in look.nodes.values()}
        others = [each.record for each in records.nodes.all() if each.record.name not in managed]
        surroundings = replace(
            look.surroundings,
            nodes=(*look.surroundings.nodes, *(NodeState(node=each) for each in others)),
            catalog=self._cluster.snapshot().catalog,
        )
        return replace(look, surroundings=await self._inhabited(surroundings, fresh))

    def _seen(self, claims: list[Kept[ClaimRecord]]) -> Look:
        nodes = {
            each.record.name: node
            for each in claims
            if (node := only(self._context.nodes_of(each.record))) is not None
        }
        pools, policies = self._pools()
        surroundings = Surroundings(
            now=self._context.clock.now(),
            nodes=tuple(self._state(each.record, nodes.get(each.record.name)) for each in claims),
            pools=pools,
            policies=policies,
            reads_deletion_cost=self._reads_deletion_cost,
        )
        return Look(surroundings, {each.record.name: each for each in claims}, nodes)

    def _state(self, claim: ClaimRecord, node: Kept[NodeRecord] | None) -> NodeState:
        record = None if node is None else node.record
        name = claim.name if record is None else record.name
        return NodeState(
            claim,
            record,
            nominated_until=self._nominations.until(claim.name, name),
            buffer_pods=self._buffer_pods(name),
            unreadable=self._why_unreadable(claim, record),
        )

    def _why_unreadable(self, claim: ClaimRecord, node: NodeRecord | None) -> str:
        """Say why a NodeClaim, its Node or its NodePool cannot be read as it is now."""
        records = self._context.records
        name = claim.node_name if node is None else node.name
        return (
            records.claims.unreadable.get(claim.name)
            or records.nodes.unreadable.get(name)
            or records.pools.unreadable.get(claim.pool, "")
        )

    def _pools(self) -> tuple[dict[str, PoolRecord], dict[str, DisruptionPolicy]]:
        pools: dict[str, PoolRecord] = {}
        policies: dict[str, DisruptionPolicy] = {}
        for kept in self._context.records.pools.all():
            name = kept.record.name
            try:
                policies[name] = read(read_policy, NODE_POOL, kept.obj)
            except AnswerMalformed as error:
                # Nothing is touched in a pool that cannot be understood.
                self._context.on_failure(name, error)
            else:
                pools[name] = kept.record
        return pools, policies

    async def _inhabited(self, surroundings: Surroundings, fresh: Collection[str]) -> Surroundings:
        """Add pods where they decide: on nodes that would go if nobody lived there."""
        quiet = replace(
            surroundings,
            nodes=tuple(
                each
                for each in surroundings.nodes
                if each.claim is not None and each.claim.conditions.is_true(CONSOLIDATABLE)
            ),
        )
        eligible, _ = await decide_aside(lambda: find_empty(quiet))
        urgent = [
            each.node.name
            for each in surroundings.nodes
            if each.claim is not None and each.node is not None and each.claim.name in fresh
        ]
        nodes = dict.fromkeys((*(each.name for each in eligible), *urgent))
        census = await self._tenants.count(list(nodes), urgent)
        return replace(
            surroundings,
            nodes=tuple(
                replace(each, tenants=census.tenants.get(each.name, ()))
                for each in surroundings.nodes
            ),
            pod_budgets=census.budgets,
        )
