"""The generated parts and the documentation of the charts, checked without Helm."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpy.adapters.controlplane.bundles import CONTROL_PLANE
from karpy.core.doctor import NEWEST, OLDEST
from karpy.wiring.clouds import aws
from karpy.wiring.flags import FLAGS
from tests.charts.helm import CHART, CRD_CHART
from tests.tidy.charts import CHARTS, ROLES, described, moved, rules, value_at
from tests.tidy.repository import ROOT, shown
from tests.wiring.grants import DOCUMENTS

BY_HAND = {
    "KARPENTER_SERVICE": "has no effect",
    "MEMORY_LIMIT": "has no effect",
    "DISABLE_CONTROLLER_WARMUP": "has no effect",
    "BIND_ADDRESS": "a pod has addresses of its own",
    "KUBE_CLIENT_QPS": "rare",
    "KUBE_CLIENT_BURST": "rare",
    "ENABLE_PROFILING": "for a while only",
    "KARPY_PROFILING_PORT": "for a while only",
    "DISABLE_LEADER_ELECTION": "replicas need it",
    "LEADER_ELECTION_NAME": "the role grants the usual one",
    "INSTANCE_TYPES_FILE_PATH": "for tests with KWOK",
    "KARPY_JOURNAL_FILE_BYTES": "rare",
    "KARPY_JOURNAL_FILES": "rare",
}
"""Variables without a value of their own in the chart, and why; `controller.env` sets them."""


def _values(chart: Path = CHART) -> tuple[str, Any]:
    text = (chart / "values.yaml").read_text(encoding="utf-8")
    return text, yaml.safe_load(text)


@pytest.mark.parametrize("path", CHARTS, ids=shown)
def test_a_generated_file_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""

    assert text == CHARTS[path](), "run `make fix` and commit the file"


def test_the_charts_have_the_definitions_of_today_and_no_others() -> None:
    made = {each.name for each in (ROOT / "deploy" / "crds").iterdir()}

    assert {each.name for each in (CHART / "crds").iterdir()} == made
    assert {each.name for each in (CRD_CHART / "templates").glob("*.yaml")} == made


def test_every_role_of_ours_is_one_of_the_chart() -> None:
    named = {(each["kind"], each["metadata"]["name"]) for each in DOCUMENTS if "rules" in each}

    assert named == set(ROLES.values())
    assert yaml.safe_load((CHART / "files" / "roles.yaml").read_text("utf-8")) == rules()


@pytest.mark.parametrize("chart", [CHART, CRD_CHART], ids=lambda each: each.name)
def test_every_value_is_described_and_typed(chart: Path) -> None:
    text, values = _values(chart)
    schema = json.loads((chart / "values.schema.json").read_text("utf-8"))
    paths = dict(described(text))

    assert text.count("# -- ") == len(paths)
    for path in paths:
        at = schema
        for part in path.split("."):
            at = at["properties"][part]
        assert {"type", "enum"} & set(at), path
        value_at(values, path)


def test_no_current_value_is_listed_as_renamed() -> None:
    paths = {path for path, _ in described(_values()[0])}

    assert not {path for path in moved() if path in paths}


def test_renamed_values_exist_in_the_chart() -> None:
    paths = {path for path, _ in described(_values()[0])}
    folders = {path.rpartition(".")[0] for path in paths}
    now = {
        each
        for text in moved().values()
        if text.startswith("is now")
        for each in re.findall("`([^`]+)`", text)
        if not each.startswith("spec.")
    }

    assert now <= paths | folders | {path.partition(".")[0] for path in paths}


def test_every_variable_of_the_operator_is_a_value() -> None:
    used = set(
        re.findall(
            r"\b[A-Z]+(?:_[A-Z]+)+\b",
            "".join(
                (CHART / "templates" / name).read_text(encoding="utf-8")
                for name in ("deployment.yaml", "_helpers.tpl")
            ),
        )
    )
    known = {flag.env for flag in (*FLAGS, *aws.FLAGS) if flag.env}

    assert known - used == set(BY_HAND), "add a value to charts/karpenter, or say why there is none"
    assert used - known == {"SYSTEM_NAMESPACE"}


@pytest.mark.parametrize("chart", [CHART, CRD_CHART], ids=lambda each: each.name)
def test_the_version_is_that_of_the_package(chart: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    meta = yaml.safe_load((chart / "Chart.yaml").read_text("utf-8"))

    assert (meta["version"], meta["appVersion"]) == (project["version"],) * 2


@pytest.mark.parametrize("chart", [CHART, CRD_CHART], ids=lambda each: each.name)
def test_charts_and_doctor_agree_on_the_oldest_cluster(chart: Path) -> None:
    meta = yaml.safe_load((chart / "Chart.yaml").read_text("utf-8"))

    assert meta["kubeVersion"] == f">={'.'.join(map(str, OLDEST))}.0-0"


def test_the_newest_cluster_is_the_one_that_tests_run_on() -> None:
    assert CONTROL_PLANE.version.startswith(f"v{'.'.join(map(str, NEWEST))}.")
