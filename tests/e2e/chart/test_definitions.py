"""Install, upgrade, rollback and removal of the definitions by Helm, on a separate API server."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Final

import pytest

from karpy.adapters.controlplane.plane import ControlPlane
from tests.charts.helm import CHART, CRD_CHART, Helm, HelmFailed
from tests.e2e.chart.conftest import restricted_namespace

KWOK: Final = ("--set", "settings.provider=kwok")
KEEP: Final = ("--set-string", r"additionalAnnotations.helm\.sh/resource-policy=keep")
FIELD: Final = "nodeRegistrationDelay"
CRD: Final = "karpenter-crd"


@pytest.fixture
def fresh(programs: Path, tmp_path: Path) -> Iterator[ControlPlane]:
    home = tmp_path / "plane"
    home.mkdir()
    with ControlPlane(programs, home, has_kwok=False) as plane:
        yield plane


def _there(plane: ControlPlane) -> dict[str, str]:
    """Return the definitions that are not deleting, with their UIDs."""
    items = json.loads(plane.kubectl("get", "crd", "-o", "json"))["items"]
    metas = [each["metadata"] for each in items]
    return {each["name"]: each["uid"] for each in metas if "deletionTimestamp" not in each}


def _knows_field(plane: ControlPlane) -> bool:
    name = "kwoknodeclasses.karpenter.kwok.sh"
    return FIELD in plane.kubectl("get", "crd", name, "-o", "jsonpath={.spec.versions[0].schema}")


def _older(folder: Path) -> Path:
    """Copy the chart with another name for a field, as an older version."""
    old = copytree(CRD_CHART, folder / CRD)
    path = old / "templates" / "karpenter.kwok.sh_kwoknodeclasses.yaml"
    path.write_text(path.read_text("utf-8").replace(FIELD, "delayOfOld"), encoding="utf-8")
    return old


def test_definitions_come_are_upgraded_stay_and_go(
    fresh: ControlPlane, tools: Path, tmp_path: Path
) -> None:
    """All steps are in one test, since an API server deletes definitions slowly."""
    helm = Helm(tools / "helm", tmp_path, fresh.kubeconfig)
    place = ("--namespace", restricted_namespace(fresh))

    # The operator's chart installs the definitions and keeps them, as Karpenter's chart does.
    helm("install", "karpenter", CHART, *place, *KWOK)
    brought = _there(fresh)
    assert len(brought) == len(list((CHART / "crds").iterdir()))
    helm("uninstall", "karpenter", *place)
    assert _there(fresh) == brought

    # The chart of the definitions adopts them, and is upgraded and rolled back.
    with pytest.raises(HelmFailed):
        helm("install", CRD, CRD_CHART, *place)
    helm("install", CRD, _older(tmp_path), *place, "--take-ownership")
    assert not _knows_field(fresh)
    helm("upgrade", CRD, CRD_CHART, *place)
    assert _knows_field(fresh)
    helm("rollback", CRD, *place)
    assert not _knows_field(fresh)

    # The definitions outlive their release with `keep`, and are deleted without.
    helm("upgrade", CRD, CRD_CHART, *place, *KEEP)
    helm("uninstall", CRD, *place)
    assert _there(fresh) == brought
    helm("install", CRD, CRD_CHART, *place, "--take-ownership")
    helm("uninstall", CRD, *place)
    assert _there(fresh) == {}
