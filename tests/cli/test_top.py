"""`karpy top`: printed once, and live on a cluster with an autoscaler."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from rich.text import Text
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from karpy.cli.examples import CLUSTER as EXAMPLES
from karpy.cli.examples import PENDING, example_documents
from karpy.cli.extras import import_viewer
from karpy.cli.inputs import ClusterInput
from karpy.cli.nodeview.rows import Choice
from karpy.cli.nodeview.screen import Viewer
from karpy.cli.nodeview.sources import Source, files_source, live_source
from karpy.cli.options import ClusterAccess, Question
from karpy.cli.terminal import Span, Style, line
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.manifests import read_manifests
from karpy.errors import OptionInvalid, Unreachable
from karpy.model.kinds import DEPLOYMENT, NODE
from karpy.model.settings import Settings
from karpy.ports.objects import Patch, PatchType
from karpy.sim.world import World
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.resident import BRISK, apply_manifests, autoscaled
from tests.cli.conftest import Karpy
from tests.cli.manifests import stream
from tests.cli.nodemanifests import CLUSTER, NOW, claim
from tests.cli.nodemanifests import node as node_manifest

HUGE: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: huge, namespace: shop, creationTimestamp: 2026-03-02T11:59:00Z}
spec:
  containers: [{name: main, image: main, resources: {requests: {cpu: "4000"}}}]
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
"""
DRIFTED: Final = stream(
    node_manifest("general-5"),
    claim("general-5", said="Drifted DisruptionReason"),
)
STRANGER: Final = """\
apiVersion: v1
kind: Node
metadata:
  name: ip-10-0-0-1
  labels: {eks.amazonaws.com/capacityType: SPOT, node.kubernetes.io/instance-type: m5.large,
    topology.kubernetes.io/zone: us-east-1a}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "29"}, conditions: [
  {type: Ready, status: "True", lastTransitionTime: 2026-03-01T12:00:00Z}]}
"""
OF_EC2: Final = Patch(
    PatchType.MERGE,
    {
        "metadata": {
            "labels": {
                "topology.kubernetes.io/region": "eu-west-1",
                "topology.kubernetes.io/zone": "eu-west-1a",
                "node.kubernetes.io/instance-type": "m5.large",
            }
        },
        "spec": {"providerID": "aws:///eu-west-1a/i-0123456789"},
    },
)
SECONDS: Final = 60
MORE: Final = Patch(PatchType.MERGE, {"spec": {"replicas": 20}})
NOON: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_all_nodes_are_printed_once_with_what_keeps_them(
    karpy: Karpy, snapshot: SnapshotAssertion
) -> None:
    run = karpy("top", "-", *NOW, stdin=stream(CLUSTER, HUGE, DRIFTED))

    assert (run.code, run.err) == (0, "")
    assert run.out == snapshot


def test_equal_pending_pods_share_a_line_with_their_number(karpy: Karpy) -> None:
    pods = [HUGE.replace("name: huge", f"name: huge-{number}") for number in range(30)]
    other = HUGE.replace("name: huge", "name: zone").replace('cpu: "4000"', "memory: 9Pi")

    run = karpy("top", "-", *NOW, stdin=stream(CLUSTER, *pods, other))

    waiting = run.out.partition("31 pending pods\n")[2]
    assert waiting.count("and 29 more pods like it") == 1
    assert [each.split()[0] for each in waiting.splitlines() if each.startswith("  shop/")] == [
        "shop/huge-0",
        "shop/zone",
    ]


def test_nodes_are_chosen_by_label_and_pool_sorted_and_have_more_columns(karpy: Karpy) -> None:
    words = ("--nodepool", "general", "--sort", "price", "-L", "kubernetes.io/arch")
    zone = ("-l", "topology.kubernetes.io/zone in (test-zone-a)")

    run = karpy("top", "-", *NOW, *words, *zone, stdin=CLUSTER)

    rows = [each.split() for each in run.out.splitlines()[6:]]
    assert [each[0] for each in rows] == ["general-1", "general-3", "general-4"]
    assert {each[12] for each in rows} == {"amd64"}
    assert "arch" in run.out.splitlines()[5]


def test_json_has_the_whole_overview(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    words = ("--output", "json", "--nodepool", "batch", "--label-columns", "kubernetes.io/arch")

    run = karpy("top", "-", *NOW, *words, stdin=stream(CLUSTER, HUGE))

    assert json.loads(run.out) == snapshot


def test_a_node_of_no_nodepool_has_the_price_of_the_catalog_that_is_named(karpy: Karpy) -> None:
    run = karpy("top", "-", *NOW, "--catalog", "ec2:us-east-1", "--output", "json", stdin=STRANGER)

    (seen,) = json.loads(run.out)["nodes"]
    assert (seen["capacityType"], seen["pool"]) == ("spot", "")
    assert 0 < seen["dollarsPerHour"] < 0.096


def test_an_invalid_selector_is_an_error(karpy: Karpy) -> None:
    run = karpy("top", "-", "-l", "a in (", stdin=CLUSTER)

    assert run.code == 1
    assert "`--selector` " in run.err


def test_files_and_a_cluster_are_not_both_looked_at(karpy: Karpy) -> None:
    assert karpy("top", "a.yaml", "--context", "b").code == 2


def test_what_to_install_is_said_where_the_viewer_is_not() -> None:
    with pytest.raises(OptionInvalid) as raised:
        import_viewer("karpy.cli.nodeview.not_there")

    assert "pip install 'karpy[tui]'" in raised.value.hint


# --- live ----------------------------------------------------------------------------------------


@asynccontextmanager
async def lived_in(tmp_path: Path) -> AsyncIterator[tuple[World, Source]]:
    """Serve a cluster with an autoscaler, the examples and a pod that fits nowhere."""
    async with (
        embedded_world(BRISK) as world,
        serve(world) as served,
        autoscaled(world, tmp_path / "log"),
    ):
        apply_manifests(world, example_documents(EXAMPLES))
        apply_manifests(world, example_documents(PENDING))
        yield world, live_source(ClusterAccess(str(served.kubeconfig)), Question())


async def until(holds: Callable[[], bool], pilot: Pilot[None]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():
            await pilot.pause(0.05)


def rows(viewer: Viewer) -> list[list[str]]:
    table = viewer.screen_stack[0].query_one("#nodes", DataTable)
    return [[str(each) for each in table.get_row_at(at)] for at in range(table.row_count)]


def page(viewer: Viewer) -> str:
    return str(viewer.screen.query_one("#page", Static).content)


async def test_the_list_follows_a_cluster_and_explains_its_nodes_and_pods(tmp_path: Path) -> None:
    async with lived_in(tmp_path) as (world, source):
        viewer = Viewer(source, Choice(), 0.1)
        async with viewer.run_test(size=(160, 40)) as pilot:
            await until(lambda: any("ready" in row[-1] for row in rows(viewer)), pilot)
            before = len(rows(viewer))
            world.store.patch(DEPLOYMENT, "inflate", MORE, namespace="default")
            await until(lambda: len(rows(viewer)) > before, pilot)

            await pilot.press("enter")
            await until(lambda: "NodePool default" in page(viewer), pilot)
            assert "pods" in page(viewer)
            await pilot.press("escape", "p")
            await until(lambda: "default/trainer" in page(viewer), pilot)
            assert "no NodePool can make one that would" in page(viewer)
            await pilot.press("escape", "q")
        assert viewer.problem is None


async def test_a_page_is_drawn_before_the_next_refresh() -> None:
    reading = read_manifests(
        [("cluster.yaml", CLUSTER)], catalog=kwok_catalog(), settings=Settings(), now=NOON
    )
    viewer = Viewer(files_source(ClusterInput(reading.snapshot), Question()), Choice(), 3600.0)
    async with viewer.run_test(size=(160, 40)) as pilot:
        await until(lambda: len(rows(viewer)) == 6, pilot)
        await pilot.press("enter")
        await until(lambda: "batch-1" in page(viewer), pilot)
        await pilot.press("escape", "p")
        await until(lambda: "pending pod" in page(viewer), pilot)


async def test_keys_sort_filter_and_add_columns() -> None:
    reading = read_manifests(
        [("cluster.yaml", CLUSTER)], catalog=kwok_catalog(), settings=Settings(), now=NOON
    )
    source = files_source(ClusterInput(reading.snapshot), Question())
    viewer = Viewer(source, Choice(), 0.1)
    async with viewer.run_test(size=(160, 40)) as pilot:
        await until(lambda: len(rows(viewer)) == 6, pilot)
        await pilot.press("s", "r")
        assert rows(viewer)[0][1] == "old"
        await pilot.press("slash")
        await pilot.press(*"batch")
        await pilot.press("enter")
        await until(lambda: [row[0] for row in rows(viewer)] == ["batch-1"], pilot)
        await pilot.press("slash")
        await pilot.press(*"a=(", "enter")
        assert [row[0] for row in rows(viewer)] == ["batch-1"]
        await pilot.press("slash")
        await pilot.press(*"karpenter.sh/nodepool=general", "enter")
        await until(lambda: len(rows(viewer)) == 4, pilot)
        await pilot.press("l")
        await pilot.press(*"kubernetes.io/os", "enter")
        await until(lambda: rows(viewer)[0][10] == "linux", pilot)
        await pilot.press("l", "escape")
        assert rows(viewer)[0][10] == "linux"


async def test_a_cluster_that_cannot_be_reached_ends_the_viewer(tmp_path: Path) -> None:
    async with embedded_world() as world, serve(world) as served:
        text = served.kubeconfig.read_text()
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(text)

    viewer = Viewer(live_source(ClusterAccess(str(kubeconfig)), Question()), Choice(), 0.1)
    async with viewer.run_test() as pilot:
        await until(lambda: viewer.problem is not None, pilot)

    assert isinstance(viewer.problem, Unreachable)


async def test_a_cluster_without_nodepools_is_followed_too() -> None:
    async with embedded_world() as world, serve(world) as served:
        world.add_node("byhand")
        source = live_source(ClusterAccess(str(served.kubeconfig)), Question())
        viewer = Viewer(source, Choice(), 0.1, has_colour=False)
        async with viewer.run_test(size=(160, 40)) as pilot:
            await until(lambda: bool(rows(viewer)), pilot)
            world.store.patch(NODE, "byhand", OF_EC2)
            await until(lambda: rows(viewer)[0][5] not in {"?", "0.0000"}, pilot)
            await pilot.press("enter")
            await until(lambda: "byhand" in page(viewer), pilot)

            assert rows(viewer)[0][:2] == ["byhand", "-"]
            assert float(rows(viewer)[0][5]) > 0
            await pilot.press("s", "enter")
            assert (viewer.choice.order, len(viewer.screen_stack)) == ("name", 2)
            assert viewer.text(line(Span("a\x1b[2J", Style.BAD))) == Text("a?[2J")
