"""`karpy top` on a real API server that has neither Karpy's definitions nor Karpenter's."""

import asyncio
import json

from textual.widgets import DataTable

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.cli.nodeview.rows import Choice
from karpy.cli.nodeview.screen import Viewer
from karpy.cli.nodeview.sources import live_source
from karpy.cli.options import ClusterAccess, Question
from tests.cli.conftest import Karpy, karpy

__all__ = ["karpy"]
SECONDS = 60


def test_a_cluster_without_definitions_is_printed(
    karpy: Karpy, control_plane: ControlPlane, node: str
) -> None:
    run = karpy("top", "--kubeconfig", str(control_plane.kubeconfig), "--output", "json")

    seen = {each["name"]: each for each in json.loads(run.out)["nodes"]}
    assert (run.code, seen[node]["pool"], seen[node]["pods"]) == (0, "", [])


async def test_a_cluster_without_definitions_is_followed(
    control_plane: ControlPlane, node: str
) -> None:
    source = live_source(ClusterAccess(str(control_plane.kubeconfig)), Question())
    viewer = Viewer(source, Choice(text=node), 0.2)
    async with viewer.run_test(size=(160, 40)) as pilot:
        table = viewer.query_one("#nodes", DataTable)
        async with asyncio.timeout(SECONDS):
            while not table.row_count:
                await pilot.pause(0.1)
        control_plane.kubectl("cordon", node)
        async with asyncio.timeout(SECONDS):
            while "cordoned" not in str(table.get_row_at(0)[-1]):
                await pilot.pause(0.1)

    assert viewer.problem is None
