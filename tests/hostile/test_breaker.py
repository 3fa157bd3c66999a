"""Whatever keeps a pod from its node, launches for it do not run away and hold nothing else up."""

import asyncio
from pathlib import Path

from karpy.adapters.journal import JournalFiles
from karpy.codec.fields import JsonObject
from karpy.core.explain import PodOutcome, explain_pod
from karpy.core.lifecycle.changes import Count
from karpy.model.kinds import DEPLOYMENT, POD
from karpy.model.verdicts import Reason
from karpy.ports.objects import Patch, PatchType
from tests.cli.conftest import Karpy, Run
from tests.hostile.breakers import (
    VETO,
    Witness,
    cluster,
    end_nodes,
    push_out,
    running,
)
from tests.scenarios.manifests import deployment, pod_spec
from tests.sim.stories import on_virtual_time
from tests.swarm.troubles import CLOSED, close_nodes

HOUR = 3600
IN_THE_FIRST_HOUR = 20
"""One launch, and one after each pause: 1, 2, 4 … 256 seconds are nine, 511 in all; ten of 300."""
TOLERANT: JsonObject = {"key": CLOSED["key"], "operator": "Exists"}


def bare_pod(name: str, **annotations: str) -> JsonObject:
    meta = {"name": name, "namespace": "default", "annotations": annotations}
    return {"metadata": meta, "spec": pod_spec("3")}


@on_virtual_time
async def test_a_pod_that_is_kept_off_every_node_is_launched_for_ever_more_rarely() -> None:
    seen = Witness()
    async with cluster(seen) as world:
        close_nodes(world)
        world.store.create(POD, bare_pod("unlucky"))
        await asyncio.sleep(HOUR)

    pauses = seen.pauses_for("unlucky")
    assert 10 < len(seen.launches_for("unlucky")) <= IN_THE_FIRST_HOUR
    assert pauses[4:9] == sorted(pauses[4:9])
    assert min(pauses[9:]) >= 300
    assert seen.counts.count(Count("karpy_launches_in_vain_total", {"why": "LEFT_OUT"})) > 10


@on_virtual_time
async def test_a_pod_that_is_pushed_out_again_and_again_is_launched_for_ever_more_rarely() -> None:
    seen = Witness()
    async with cluster(seen) as world:
        push_out(world, "victim", 3.0)
        world.store.create(DEPLOYMENT, deployment("victim", 1, pod=pod_spec("3")))
        await asyncio.sleep(HOUR)

    assert 10 < len(seen.launches_for("victim")) <= IN_THE_FIRST_HOUR
    assert seen.counts.count(Count("karpy_launches_in_vain_total", {"why": "PUSHED_OUT"})) > 10


@on_virtual_time
async def test_a_pod_whose_nodes_all_end_early_is_launched_for_ever_more_rarely() -> None:
    seen = Witness()
    async with cluster(seen) as world:
        end_nodes(world)
        world.store.create(POD, bare_pod("unlucky"))
        await asyncio.sleep(HOUR)

    assert 10 < len(seen.launches_for("unlucky")) <= IN_THE_FIRST_HOUR
    assert seen.counts.count(Count("karpy_launches_in_vain_total", {"why": "NODE_GONE"})) > 10


@on_virtual_time
async def test_others_are_launched_for_as_ever() -> None:
    seen = Witness()
    async with cluster(seen) as world:
        close_nodes(world)
        world.store.create(POD, bare_pod("unlucky"))
        await asyncio.sleep(HOUR / 2)
        tolerant = pod_spec("3", tolerations=[TOLERANT])
        world.store.create(DEPLOYMENT, deployment("web", 5, pod=tolerant))
        await asyncio.sleep(30)

        assert running(world, "web") == 5


@on_virtual_time
async def test_a_scale_up_in_waves_is_never_held_back() -> None:
    seen, apps = Witness(), ("one", "two", "three")
    async with cluster(seen) as world:
        for number, app in enumerate(apps):
            spec = pod_spec(f"{700 + 300 * number}m", "1500Mi")
            world.store.create(DEPLOYMENT, deployment(app, 0, pod=spec))
        for wave in range(1, 6):
            for app in apps:
                scale = Patch(PatchType.MERGE, {"spec": {"replicas": wave * 34}})
                world.store.patch(DEPLOYMENT, app, scale, namespace="default")
            await asyncio.sleep(7)
        await asyncio.sleep(60)
        found = [running(world, app) for app in apps]

    assert (found, seen.refusals()) == ([170, 170, 170], [])


@on_virtual_time
async def test_a_pod_that_kube_scheduler_refuses_for_ever_gets_one_node() -> None:
    """The node has room for it: Karpy goes on to expect it there, and buys no other."""
    seen = Witness()
    async with cluster(seen) as world:
        world.store.create(POD, bare_pod("refused", **{VETO: "node(s) had a bad day"}))
        await asyncio.sleep(HOUR)

    assert len(seen.launches_for("refused")) <= 2


@on_virtual_time
async def test_the_refusal_names_both_sides() -> None:
    seen = Witness()
    async with cluster(seen) as world:
        close_nodes(world)
        world.store.create(POD, bare_pod("unlucky"))
        await asyncio.sleep(120)

    notices = [each for each in seen.notices if each.reason == "LaunchedInVain"]
    lines = [each for each in seen.remarks if each.event == "launched nodes in vain"]
    said = "kube-scheduler left it out: 0/1 nodes are available: 1 node(s) had untolerated taint(s)"
    assert seen.refusals()[0].startswith("1 launch in vain, the next not before ")
    assert said in seen.refusals()[0]
    assert any(each.startswith("3 launches in vain") for each in seen.refusals())
    assert (notices[0].subject.name, notices[0].is_warning) == ("unlucky", True)
    assert said in notices[0].note
    assert (lines[0].fields["group"], lines[0].fields["launches"]) == ("default/unlucky", "1")


@on_virtual_time
async def test_journal_and_explanation_show_it(tmp_path: Path) -> None:
    seen = Witness()
    journal = JournalFiles(tmp_path, file_bytes=10**9, files=1)
    async with cluster(seen) as world:
        close_nodes(world)
        world.store.create(POD, bare_pod("unlucky"))
        await asyncio.sleep(190)
    for snapshot, verdict in seen.decisions:
        journal.record(snapshot, verdict)
    journal.close()
    withheld = [each for each in seen.decisions if each[0].vain_launches]
    explained = explain_pod(*withheld[0], "default/unlucky")
    count = len(seen.decisions)

    assert Karpy()("replay", str(tmp_path)) == Run(
        0, f"{count} decisions replayed: {count} the same.\n", ""
    )
    found = Karpy()("explain", "unlucky", str(tmp_path))
    assert found.code == 3
    assert "7 launches in vain" in " ".join(found.out.split())
    assert explained.outcome is PodOutcome.REFUSED
    assert explained.refusal is not None
    assert explained.refusal.reason is Reason.LAUNCHED_IN_VAIN
    assert "1 launch in vain" in explained.sentence
    assert "kubectl describe pod" in explained.fixes[0].text
