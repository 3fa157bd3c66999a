"""Deletion costs are written on pods, on virtual time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.adapters.telemetry.metrics import Metrics
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.controllers.clusterstate import ClusterState, Commands, Promises
from karpy.controllers.context import ControllerContext
from karpy.controllers.evictionqueue import EvictionQueue
from karpy.controllers.nodeclaimlifecycle import LifecycleController
from karpy.controllers.nodetermination import TerminationController
from karpy.controllers.nominations import ClaimNominations, NodeNominations
from karpy.controllers.poddeletioncost import (
    PERIOD,
    PodDeletionCostController,
    PodDeletionCostQueue,
)
from karpy.controllers.writer import Writer
from karpy.errors import ClusterError, Conflict, Forbidden, NotFound, ServerFault
from karpy.model.kinds import NAMESPACE, NODE, NODE_CLAIM, NODE_POOL, POD, Kind
from karpy.model.labels import POD_DELETION_COST
from karpy.model.settings import Settings
from karpy.ports.objects import Patch, PatchType
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.world import World
from tests.controllers.operators import NODE_CLASS, Heard, claim, is_ready, node_of, until
from tests.controllers.poolwriters import running
from tests.sim.stories import on_virtual_time

MINUTE = PERIOD.total_seconds()
PENDING = "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes"
WRITES = "pod_deletion_cost_pod_annotation_writes_total"
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web-1",
    "uid": "uid-web",
    "controller": True,
}


class Doorman(EmbeddedObjects):
    """An API server that notes the requests for single pods, and lets a test refuse them."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self.used: Counter[str] = Counter()
        self.before_patch: Callable[[str, str], ClusterError | None] = lambda *_: None
        """Takes namespace and name of a pod that is about to be patched."""
        self.seconds_to_patch = 0.0

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        self.used[f"get {kind.plural}"] += 1
        return await super().get(kind, name, namespace)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        self.used[f"patch {kind.plural}{subresource}"] += 1
        await asyncio.sleep(self.seconds_to_patch)
        refusal = self.before_patch(namespace, name)
        if refusal is not None:
            raise refusal
        return await super().patch(
            kind, name, patch, namespace=namespace, subresource=subresource, dry_run=dry_run
        )


class Stage(Struct):
    """What a story has at hand."""

    world: World
    heard: Heard
    doorman: Doorman
    metrics: Metrics
    controller: PodDeletionCostController
    mirror: Mirror

    def costs(self) -> dict[str, str | None]:
        """Return what pods cost, by name."""
        return {
            each["metadata"]["name"]: (each["metadata"].get("annotations") or {}).get(
                POD_DELETION_COST
            )
            for each in self.world.store.list(POD)
        }

    def add_pods(self, node: str, *names: str, namespace: str = "default", **meta: object) -> None:
        for name in names:
            self.world.store.create(
                POD, pod(name, node_of(self.world, node), namespace=namespace, **meta)
            )

    def pending(self) -> dict[str, float]:
        """Return how many nodes have pods to write, by series."""
        lines = self.metrics.render().decode().splitlines()
        pairs = (each.rsplit(" ", 1) for each in lines if each.startswith(PENDING))
        return {series: float(value) for series, value in pairs}

    def results(self) -> dict[str, float]:
        """Return how often pods were written, by outcome."""
        counts = Counter[str]()
        for each in self.heard.counts:
            if each.metric == WRITES:
                counts[each.labels["result"]] += int(each.value)
        return dict(counts)


@asynccontextmanager
async def stage(*claims: str) -> AsyncIterator[Stage]:
    """Run the controllers of deletion costs on a world with ready nodes and pods."""
    world, heard, metrics = World(parts=()), Heard(), Metrics()
    world.start()
    world.store.create(NAMESPACE, {"metadata": {"name": "shop"}})
    world.store.create(NODE_POOL, pool())
    doorman = Doorman(world)
    settings = Settings(manages_deletion_cost=True)
    mirror = Mirror(world.objects, world.clock, kwok_catalog, settings)
    async with running(mirror):
        await mirror.wait_until_listed()
        writer = Writer(world.objects, heard, heard)
        context = ControllerContext(
            mirror.records, world.objects, world.cloud, writer, world.clock, on_failure=heard.fail
        )
        claim_nominations = ClaimNominations(mirror.records, world.clock)
        state = ClusterState(
            MirroredCluster(mirror, world.objects),
            Promises(Commands(), NodeNominations(world.clock), claim_nominations),
        )
        own = ControllerContext(
            mirror.records, doorman, world.cloud, writer, world.clock, on_failure=heard.fail
        )
        queue = PodDeletionCostQueue(own)
        controller = PodDeletionCostController(
            own, state, queue, lambda: mirror.consolidation_version, metrics
        )
        evictions = EvictionQueue(context)
        keeping = (LifecycleController(context), TerminationController(context, evictions))
        async with running(*keeping, evictions, queue, controller):
            for name in claims:
                world.store.create(NODE_CLAIM, claim(name))
            await until(lambda: all(is_ready(world, name) for name in claims))
            yield Stage(world, heard, doorman, metrics, controller, mirror)
    world.stop()


def pool(**disruption: object) -> JsonObject:
    template = {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS}}
    disruption = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}], **disruption}
    return {
        "metadata": {"name": "web"},
        "spec": {"template": template, "disruption": disruption},
    }


def pod(name: str, node: str, *, namespace: str = "default", **meta: object) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [OWNER], **meta},
        "spec": {"containers": [container], "nodeName": node},
    }


@on_virtual_time
async def test_pods_on_the_nodes_that_go_next_cost_least() -> None:
    async with stage("web-1", "web-2") as scene:
        scene.add_pods("web-1", "a", "b")
        scene.add_pods("web-2", "c")
        await asyncio.sleep(MINUTE + 1)

        assert scene.costs() == {"a": "-1", "b": "-1", "c": "-2"}
        assert scene.results() == {"updated": 3}
        assert scene.doorman.used == {"get pods": 3, "patch pods": 3}
        assert [each.event for each in scene.heard.remarks if "cost" in each.event] == [
            "writing deletion costs of pods"
        ]


@on_virtual_time
async def test_what_has_its_cost_is_not_written_again() -> None:
    async with stage("web-1", "web-2") as scene:
        scene.add_pods("web-1", "a", "b")
        await asyncio.sleep(MINUTE + 1)
        used = scene.doorman.used.copy()
        await asyncio.sleep(3600)

        assert scene.doorman.used == used
        assert scene.heard.failures == []


@on_virtual_time
async def test_costs_that_are_written_are_no_news_for_consolidation() -> None:
    async with stage("web-1", "web-2") as scene:
        scene.doorman.seconds_to_patch = MINUTE
        scene.add_pods("web-1", "a", "b")
        await asyncio.sleep(30)
        before = scene.mirror.consolidation_version, scene.costs()
        await asyncio.sleep(2 * MINUTE)

        assert before == (scene.mirror.consolidation_version, {"a": None, "b": None})
        assert scene.costs() == {"a": "-1", "b": "-1"}


@on_virtual_time
async def test_costs_follow_the_pods_within_a_minute() -> None:
    async with stage("web-1", "web-2") as scene:
        scene.add_pods("web-1", "a", "b")
        scene.add_pods("web-2", "c")
        await asyncio.sleep(2 * MINUTE)
        scene.add_pods("web-2", "d", "e")
        await asyncio.sleep(MINUTE + 1)

        assert scene.costs() == {"a": "-2", "b": "-2", "c": "-1", "d": "-1", "e": "-1"}


@on_virtual_time
async def test_pods_whose_node_goes_away_cost_least_of_all() -> None:
    async with stage("web-1", "web-2") as scene:
        scene.add_pods("web-1", "a")
        scene.add_pods("web-2", "b", annotations={"karpenter.sh/do-not-disrupt": "true"})
        taint = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
        name = node_of(scene.world)
        patch = Patch(PatchType.MERGE, {"spec": {"taints": taint}})
        await scene.world.objects.patch(NODE, name, patch)
        await asyncio.sleep(MINUTE + 1)

        assert scene.costs() == {"a": "-2147483648", "b": None}


@on_virtual_time
async def test_a_users_own_cost_stays_and_an_old_one_of_ours_goes() -> None:
    async with stage("web-1", "web-2") as scene:
        scene.add_pods("web-1", "mine", annotations={POD_DELETION_COST: "100"})
        forbids = {"karpenter.sh/do-not-disrupt": "true"}
        scene.add_pods("web-2", "old", annotations={POD_DELETION_COST: "-7", **forbids})
        await asyncio.sleep(MINUTE + 1)

        assert scene.costs() == {"mine": "100", "old": None}


@on_virtual_time
async def test_a_cost_that_a_user_sets_in_between_stays() -> None:
    async with stage("web-1") as scene:

        def set_cost(namespace: str, name: str) -> None:
            body = {"metadata": {"annotations": {POD_DELETION_COST: "9"}}}
            scene.world.store.patch(POD, name, Patch(PatchType.MERGE, body), namespace=namespace)

        scene.doorman.before_patch = set_cost
        scene.add_pods("web-1", "a")
        await asyncio.sleep(3 * MINUTE)

        assert scene.costs() == {"a": "9"}
        assert scene.results() == {"skipped_conflict": 1}


@on_virtual_time
async def test_a_pod_that_changes_while_it_is_written_is_left_to_the_next_minute() -> None:
    """Nothing that consolidation asks for changes in between."""
    async with stage("web-1") as scene:
        refusals: list[ClusterError] = [Conflict("pods `a` has changed", status=409)]
        scene.doorman.before_patch = lambda *_: refusals.pop() if refusals else None
        scene.add_pods("web-1", "a")
        await asyncio.sleep(MINUTE + 1)
        first = scene.costs()
        await asyncio.sleep(MINUTE)

        assert (first, scene.costs()) == ({"a": None}, {"a": "-1"})
        assert scene.results() == {"skipped_conflict": 1, "updated": 1}
        assert scene.heard.failures == []


@on_virtual_time
async def test_a_pod_that_is_gone_is_no_failure() -> None:
    async with stage("web-1") as scene:
        scene.doorman.before_patch = lambda *_: NotFound("pods `a` not found", status=404)
        scene.add_pods("web-1", "a")
        await asyncio.sleep(MINUTE + 1)

        assert scene.results() == {"skipped_notfound": 1}
        assert scene.heard.failures == []


@on_virtual_time
async def test_a_server_that_fails_is_asked_again() -> None:
    async with stage("web-1") as scene:
        refusals: list[ClusterError] = [ServerFault("no", status=500)] * 2
        scene.doorman.before_patch = lambda *_: refusals.pop() if refusals else None
        scene.add_pods("web-1", "a")
        await asyncio.sleep(MINUTE + 5)

        assert scene.costs() == {"a": "-1"}
        assert scene.results() == {"error": 2, "updated": 1}
        assert len(scene.heard.failures) == 2


@on_virtual_time
async def test_a_cost_that_is_decided_on_during_a_write_is_written_after_it() -> None:
    """Karpenter loses it until the next change."""
    async with stage("web-1", "web-2") as scene:
        scene.doorman.seconds_to_patch = MINUTE + 2
        scene.add_pods("web-2", "b", "c")
        scene.add_pods("web-1", "a")
        await asyncio.sleep(MINUTE - 1)
        scene.add_pods("web-1", "d", "e")
        await asyncio.sleep(10 * MINUTE)

        assert scene.costs() == {"a": "-1", "b": "-2", "c": "-2", "d": "-1", "e": "-1"}


@on_virtual_time
async def test_rights_that_are_missing_are_named_once_and_hardly_asked_for() -> None:
    async with stage("web-1") as scene:
        refusal = Forbidden("pods is forbidden: cannot patch resource pods", status=403)
        scene.doorman.before_patch = lambda *_: refusal
        scene.add_pods("web-1", *(f"p{number}" for number in range(20)))
        await asyncio.sleep(MINUTE + 1)
        at_first = scene.doorman.used["patch pods"]
        await asyncio.sleep(10 * MINUTE)
        later = scene.doorman.used["patch pods"]

        (remark,) = [each for each in scene.heard.remarks if each.is_error]
        assert remark.event == "deletion costs of pods may not be written"
        assert remark.fields["rule"] == 'apiGroups: [""], resources: [pods], verbs: [patch]'
        assert "karpy-pod-deletion-cost" in remark.fields["hint"]
        assert (at_first <= 20, later - at_first) == (True, 10)
        assert scene.heard.failures == []

        scene.doorman.before_patch = lambda *_: None
        await asyncio.sleep(2 * MINUTE)

        assert set(scene.costs().values()) == {"-1"}


@on_virtual_time
async def test_a_namespace_without_rights_holds_up_no_other() -> None:
    async with stage("web-1") as scene:
        refusal = Forbidden("pods is forbidden", status=403)
        scene.doorman.before_patch = lambda namespace, _: refusal if namespace == "shop" else None
        scene.add_pods("web-1", "a", "b")
        scene.add_pods("web-1", "x", "y", namespace="shop")
        await asyncio.sleep(MINUTE + 1)

        assert scene.costs() == {"a": "-1", "b": "-1", "x": None, "y": None}


@on_virtual_time
async def test_the_nodes_with_pods_to_write_are_shown_until_these_are_written() -> None:
    async with stage("web-1", "web-2") as scene:
        scene.doorman.seconds_to_patch = 5
        scene.add_pods("web-1", "a")
        scene.add_pods("web-2", "b")
        await asyncio.sleep(MINUTE)
        during = scene.pending()
        await asyncio.sleep(2 * MINUTE)

        assert during == {f'{PENDING}{{nodepool="web"}}': 2}
        assert sum(scene.pending().values()) == 0


@on_virtual_time
async def test_a_budget_that_time_opens_counts_within_five_minutes() -> None:
    """The budget begins on a Monday, without any watch event."""
    async with stage("web-1") as scene:
        closed = {"nodes": "0", "schedule": "0 0 * * *", "duration": "30m"}
        body = {"spec": {"disruption": {"budgets": [closed]}}}
        scene.world.store.patch(NODE_POOL, "web", Patch(PatchType.MERGE, body))
        scene.add_pods("web-1", "a")
        await asyncio.sleep(10 * MINUTE)
        before = scene.costs()
        await asyncio.sleep(25 * MINUTE)

        assert (before, scene.costs()) == ({"a": None}, {"a": "-1"})


@on_virtual_time
async def test_nothing_is_decided_before_all_machines_are_known() -> None:
    async with stage() as scene:
        before = await scene.controller.reconcile()
        scene.world.store.create(NODE_CLAIM, claim("late"))
        await asyncio.sleep(0.01)

        assert (before, await scene.controller.reconcile()) == (MINUTE, 1)
