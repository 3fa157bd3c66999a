"""A run is fair, and its result line says what the format says."""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.consolidating import TITLE as CONSOLIDATION
from benchmarks.nominations import TITLE as NOMINATIONS
from benchmarks.peer.section import TITLE as BESIDE
from benchmarks.sections import section_of
from karpy.bench.consolidation import Consolidated
from karpy.bench.files import write_bytes
from karpy.bench.harness import measure
from karpy.bench.results import Result
from karpy.bench.workloads import FAMILIES, PROVISION, encode_workload, find_recipe
from karpy.errors import FileUnreadable, WorkloadInvalid
from karpy.model.labels import CAPACITY_TYPE, ZONE
from tests.tidy.repository import ROOT

HEAD = ["harness", "workload", "run", "instance_types", "pods", "scheduled"]
HEAD += ["scheduled_on_existing", "failed", "nodes", "total_price", "wall_s", "setup_s", "solve_s"]
HEAD += ["finish_s", "pods_per_s", "classes", "peak_rss_mb"]
ODD_PRICE = 0.31474836480000005
"""More digits than a whole number of micro-dollars has."""


def _file(folder: Path, workload: dict[str, Any]) -> Path:
    return write_bytes(folder / "w.json", encode_workload(workload), is_gzipped=False)


def _made(name: str) -> dict[str, Any]:
    return find_recipe(name).make()


def _result(path: Path, *, has_detail: bool = False, is_checked: bool = True) -> Result:
    (measured,) = measure(path, has_detail=has_detail, is_checked=is_checked)
    assert isinstance(measured.result, Result)
    return measured.result


def _line(result: Result | Consolidated) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(msgspec.json.encode(result))
    return line


def _plan(line: dict[str, Any]) -> dict[str, Any]:
    """Leave out what differs from run to run: times and memory."""
    varying = {"wall_s", "setup_s", "solve_s", "pods_per_s", "peak_rss_mb", "run"}
    return {key: value for key, value in line.items() if key not in varying}


def test_a_result_line_has_the_fields_of_the_format_in_order(tmp_path: Path) -> None:
    result = _result(_file(tmp_path, _made("diverse-20x10")), is_checked=False)

    assert list(_line(result)) == HEAD


def test_checking_adds_the_number_of_breaches(tmp_path: Path) -> None:
    result = _result(_file(tmp_path, _made("diverse-20x10")))

    assert list(_line(result)) == [*HEAD, "breaches"]


def test_detail_names_every_pod_once(tmp_path: Path) -> None:
    path = _file(tmp_path, _made("mixed-5x60"))

    line = _line(_result(path, has_detail=True, is_checked=False))

    assert list(line) == [*HEAD, "node_detail", "existing_detail"]
    keys = ["type", "zone", "capacity_type", "price", "nodepool", "pods", "options", "zones"]
    assert all(list(node) == [*keys, "pod_names"] for node in line["node_detail"])
    assert all(list(node) == ["name", "pods", "pod_names"] for node in line["existing_detail"])
    details = [*line["node_detail"], *line["existing_detail"]]
    names = [name for detail in details for name in detail["pod_names"]]
    assert len(names) == len(set(names)) == line["scheduled"]
    assert [detail["pods"] for detail in details] == [len(each["pod_names"]) for each in details]


def test_the_parts_add_up(tmp_path: Path) -> None:
    result = _result(_file(tmp_path, _made("adv-unschedulable-40x30")))

    assert (result.pods, result.scheduled, result.failed) == (40, 20, 20)
    assert result.wall_s == result.setup_s + result.solve_s + result.finish_s
    assert result.pods_per_s == result.pods / result.wall_s
    assert result.harness == "karpy"
    assert result.instance_types == 30


def test_prices_are_those_of_the_file_to_the_last_digit(tmp_path: Path) -> None:
    """The model counts in micro-dollars; the result must not show it."""
    workload = _made("adv-hostanti-3x1")
    offerings = workload["instanceTypes"][0]["offerings"]
    workload["instanceTypes"][0]["offerings"] = [{**each, "price": ODD_PRICE} for each in offerings]

    line = _line(_result(_file(tmp_path, workload), has_detail=True))

    assert [node["price"] for node in line["node_detail"]] == [ODD_PRICE] * 3
    assert line["total_price"] == pytest.approx(3 * ODD_PRICE, rel=1e-15)


def test_what_is_sold_out_has_no_price_and_no_zone(tmp_path: Path) -> None:
    workload = _made("adv-hostanti-1x1")
    only = {"labels": {ZONE: "zone-3", CAPACITY_TYPE: "on-demand"}, "price": 0.5, "available": True}
    sold_out = {"labels": {ZONE: "zone-1", CAPACITY_TYPE: "spot"}, "price": 0.1, "available": False}
    workload["instanceTypes"][0]["offerings"] = [sold_out, only]

    (node,) = _line(_result(_file(tmp_path, workload), has_detail=True))["node_detail"]

    assert (node["zone"], node["capacity_type"], node["price"]) == ("zone-3", "on-demand", 0.5)
    assert node["zones"] == ["zone-3"]


@pytest.mark.parametrize(
    ("selector", "zones"),
    [
        ({}, ["zone-1", "zone-2", "zone-3"]),
        ({ZONE: "zone-2"}, ["zone-2"]),
        ({CAPACITY_TYPE: "spot"}, ["zone-1", "zone-2"]),
    ],
)
def test_zones_are_those_the_launch_may_still_pick(
    tmp_path: Path, selector: dict[str, str], zones: list[str]
) -> None:
    workload = _made("adv-distinct-1x20")
    workload["pods"][0]["spec"]["nodeSelector"] = selector

    (node,) = _line(_result(_file(tmp_path, workload), has_detail=True))["node_detail"]

    assert node["zones"] == zones


def test_every_run_has_fresh_objects_and_the_same_plan(tmp_path: Path) -> None:
    path = _file(tmp_path, _made("diverse-40x20"))

    runs = [_line(measured.result) for measured in measure(path, runs=3)]

    assert [run["run"] for run in runs] == [0, 1, 2]
    assert _plan(runs[0]) == _plan(runs[1]) == _plan(runs[2])


@pytest.mark.parametrize("name", ["w.json.gz", "w.json"])
def test_gzipped_files_are_read_whatever_their_name(tmp_path: Path, name: str) -> None:
    data = encode_workload(_made("diverse-20x10"))
    plain, packed = tmp_path / "plain.json", tmp_path / name
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))

    assert _plan(_line(_result(packed))) == _plan(_line(_result(plain)))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "as JSON"),
        (b"{", "as JSON"),
        (b"\xff\xfe\x00", "as JSON"),
        (b"[" * 100_000, "as JSON"),
        (b"[]", "no JSON object"),
        (b"{}", "`format` is missing"),
        (b'{"format": "karpbench/v9"}', '`format` is `"karpbench/v9"`'),
        (b'{"format": "karpbench/v1", "kind": "drift"}', '`kind` is `"drift"`'),
        (b'{"format": "karpbench/v1", "pods": 5}', "is `5`, not a list"),
        (gzip.compress(b"{}", mtime=0)[:-3], "gzip"),
        (
            (
                b'{"format": "karpbench/v1", "nodePools": [{"metadata": {"name": "a"}, "spec": '
                b'{"template": {"spec": {}}, "weight": 500, "x": 1}}]}'
            ),
            (
                "`nodePools[0].spec.x` is not known here (remove it, or write one of: disruption, "
                "limits, replicas, template, weight); `nodePools[0].spec.weight` is `500`"
            ),
        ),
    ],
)
def test_a_file_that_is_no_workload_is_refused_with_a_hint(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    path = tmp_path / "w.json"
    path.write_bytes(data)

    with pytest.raises(WorkloadInvalid) as caught:
        list(measure(path))

    assert problem in caught.value.message
    assert str(path) in caught.value.message
    assert "karpy workload" in caught.value.hint


def test_a_missing_file_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(FileUnreadable, match="nothing"):
        list(measure(tmp_path / "nothing.json"))


@pytest.mark.parametrize(
    "family", [name for name, each in FAMILIES.items() if each.kind == PROVISION]
)
def test_plans_for_every_family_are_sound(tmp_path: Path, family: str) -> None:
    result = _result(_file(tmp_path, _made(f"{family}-60x40")))

    assert result.breaches == 0
    assert result.scheduled > 0
    assert result.scheduled + result.failed == result.pods


@pytest.mark.parametrize("family", ["idle", "full"])
def test_commands_for_nodes_in_use_are_sound(tmp_path: Path, family: str) -> None:
    (measured,) = measure(_file(tmp_path, _made(f"{family}-60")))

    assert isinstance(measured.result, Consolidated)
    assert measured.breaches == ()


def test_overlays_change_the_price_of_a_plan_and_break_no_rule(tmp_path: Path) -> None:
    """The checker applies the overlays of the file by itself."""
    usual = _made("diverse-20x10")
    halved = {
        **usual,
        "nodeOverlays": [
            {
                "metadata": {"name": "half"},
                "spec": {"requirements": [], "priceAdjustment": "-50%"},
            }
        ],
    }

    lines = [_line(_result(_file(tmp_path, each))) for each in (usual, halved)]

    assert lines[1]["total_price"] == pytest.approx(lines[0]["total_price"] / 2, abs=1e-5)
    assert lines[1]["breaches"] == 0


@pytest.mark.parametrize("title", [CONSOLIDATION, BESIDE, NOMINATIONS])
def test_the_page_has_what_is_measured_apart(title: str) -> None:
    assert section_of((ROOT / "docs/benchmarks.md").read_text(), title)
