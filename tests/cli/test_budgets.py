import asyncio
import json
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.cli.timezones import GREENWICH, Zone, find_zone
from karpy.errors import OptionInvalid
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.resident import apply_manifests
from tests.cli.conftest import Karpy
from tests.cli.manifests import stream
from tests.cli.nodemanifests import CLUSTER, NOW, WINDOW, claim, node, pool

BERLIN = ("--timezone", "Europe/Berlin")
SUMMER_TIME = ("--now", "2026-03-26T10:20:00Z")
"""Clocks in Berlin go forward on the 29th."""
WIDTH = 100


def test_a_week_is_a_grid_of_days_and_hours(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("budgets", "batch", "-", *NOW, *BERLIN, stdin=CLUSTER)

    assert (run.code, run.err) == (0, "")
    assert run.out == snapshot


def test_hours_that_the_clock_skips_are_left_out(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy(
        "budgets",
        "batch",
        "-",
        *SUMMER_TIME,
        *BERLIN,
        "--nodes",
        "40",
        stdin=pool("batch", WINDOW),
    )

    assert run.out == snapshot


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_many_nodes_have_wider_cells(karpy: Karpy, zone: str, snapshot: SnapshotAssertion) -> None:
    words = ("budgets", "batch", "-", *NOW, "--timezone", zone, "--nodes", "4000")

    run = karpy(*words, stdin=pool("batch", WINDOW))

    assert max(map(len, run.out.splitlines())) <= WIDTH
    assert run.out == snapshot


def test_json_has_the_minutes_by_both_clocks(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    words = ("budgets", "batch", "-", *NOW, *BERLIN, "--output", "json")

    assert json.loads(karpy(*words, stdin=CLUSTER).out) == snapshot


def test_a_pool_without_budgets_lets_all_go(karpy: Karpy) -> None:
    run = karpy("budgets", "free", "-", *NOW, "--nodes", "3", stdin=pool("free", "[]"))

    assert run.code == 0
    assert "at any time: all" in run.out
    assert "It has no budgets" in run.out


def test_a_pool_that_lets_none_go_is_a_no(karpy: Karpy) -> None:
    run = karpy("budgets", "shut", "-", *NOW, "--nodes", "3", stdin=pool("shut", '[{nodes: "0"}]'))

    assert run.code == 3
    assert "at any time: none" in run.out


def test_nodes_on_their_way_out_are_counted(karpy: Karpy) -> None:
    going = claim("batch-2", owner="batch").replace(
        "metadata:\n",
        "metadata:\n  deletionTimestamp: 2026-03-02T11:59:00Z\n  finalizers: [karpenter.sh/x]\n",
    )
    two = stream(CLUSTER, node("batch-2", owner="batch"), going)

    run = karpy("budgets", "batch", "-", *NOW, *BERLIN, stdin=two)

    assert "of its 2 nodes" in run.out
    assert "1 of them taken now by nodes on their way out or not ready" in run.out


# --- what is wrong -------------------------------------------------------------------------------


def test_an_invalid_schedule_is_an_error_with_a_hint(karpy: Karpy) -> None:
    odd = pool("batch", WINDOW.replace("mon-fri", "fri-mon"))

    text = karpy("budgets", "batch", "-", *NOW, "--nodes", "3", stdin=odd)
    plain = karpy("budgets", "batch", "-", *NOW, "--nodes", "3", "--output", "json", stdin=odd)

    assert (text.code, text.out) == (1, "")
    assert "`spec.disruption.budgets[1].schedule` `0 6 * * fri-mon` is no schedule" in text.err
    assert "hint: write minute, hour, day of month, month and day of week in UTC" in text.err
    (finding,) = json.loads(plain.out)["findings"]
    assert finding["path"] == "spec.disruption.budgets[1].schedule"


def test_a_pool_that_breaks_its_schema_is_an_error(karpy: Karpy) -> None:
    run = karpy("budgets", "odd", "-", *NOW, stdin=pool("odd", "[{nodes: ten}]"))

    assert (run.code, run.out) == (1, "")
    assert "NodePool odd: `spec.disruption.budgets[0].nodes` is `ten`" in run.err


def test_a_pool_without_nodes_asks_for_their_number(karpy: Karpy) -> None:
    run = karpy("budgets", "batch", "-", *NOW, stdin=pool("batch", WINDOW))

    assert (run.code, run.out) == (1, "")
    assert "hint: write --nodes 10" in run.err


def test_an_unknown_name_is_an_error_with_the_nearest_names(karpy: Karpy) -> None:
    run = karpy("budgets", "btach", "-", *NOW, stdin=CLUSTER)

    assert (run.code, run.out) == (1, "")
    assert "hint: name one of: batch, general" in run.err


async def test_a_live_cluster_is_asked_without_files(karpy: Karpy, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    words = ("budgets", "batch", *NOW, "--nodes", "5", "--kubeconfig", str(kubeconfig))

    async with embedded_world() as world:
        apply_manifests(world, [("pool", pool("batch", WINDOW))])
        async with serve(world, kubeconfig=kubeconfig):
            run = await asyncio.to_thread(karpy, *words)

    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("batch: how many of its 5 nodes may go at once")


# --- time zones ----------------------------------------------------------------------------------


def test_a_zone_is_found_by_name_or_is_that_of_the_environment() -> None:
    berlin = Zone("Europe/Berlin", ZoneInfo("Europe/Berlin"))

    assert find_zone("Europe/Berlin", {}) == berlin
    assert find_zone(None, {"TZ": ":Europe/Berlin"}) == berlin
    assert find_zone("UTC", {"TZ": "Europe/Berlin"}) == GREENWICH == Zone("UTC", UTC)


@pytest.mark.parametrize("name", ["Europe/Berln", "../../etc/passwd", "/etc/passwd"])
def test_a_zone_that_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(OptionInvalid, match="is no time zone known here"):
        find_zone(name, {})
