from pathlib import Path

import pytest

from karpy.adapters.controlplane.bundles import CONTROL_PLANE, PEER, TOOLS, Bundle
from karpy.adapters.controlplane.programs import (
    built_folder,
    find_program,
    missing_programs,
    require_programs,
)
from karpy.errors import ControlPlaneMissing
from tests.controlplane.fakes import script


def fill(folder: Path, *names: str) -> Path:
    """Put programs into a folder."""
    assert [script(folder / name, "true") for name in names]
    return folder


def test_the_folder_of_built_programs_is_named_after_their_versions() -> None:
    folder = built_folder({"HOME": "/home/ada"})

    assert folder.parent == Path("/home/ada/.cache/karpy/controlplane")
    assert len(folder.name) == 16


def test_the_cache_goes_where_the_user_keeps_caches() -> None:
    folder = built_folder({"HOME": "/home/ada", "XDG_CACHE_HOME": "/var/cache"})

    assert folder.parent == Path("/var/cache/karpy/controlplane")


@pytest.mark.parametrize("bundle", [CONTROL_PLANE, PEER, TOOLS], ids=lambda each: each.name)
def test_every_program_is_a_tool_of_its_module(bundle: Bundle) -> None:
    words = bundle.source("go.mod").split()

    assert [package for package in bundle.packages.values() if package not in words] == []


@pytest.mark.parametrize("bundle", [CONTROL_PLANE, PEER, TOOLS], ids=lambda each: each.name)
def test_go_is_installed_new_enough(bundle: Bundle) -> None:
    series = tuple(int(part) for part in bundle.go_series.split("."))

    assert series >= bundle.needed_go[:2]


def test_the_staging_modules_have_the_version_of_kubernetes() -> None:
    """A release v1.X.Y comes with modules v0.X.Y; mixed ones do not compile, or worse, do."""
    minor = CONTROL_PLANE.version.removeprefix("v1.")
    _, _, replaced = CONTROL_PLANE.source("go.mod").partition("replace (\n")

    versions = {line.split()[-1] for line in replaced.splitlines() if "=>" in line}

    assert versions == {f"v0.{minor}"}


def test_the_peer_is_the_version_we_follow() -> None:
    assert PEER.version == "v1.15.0"


def test_programs_that_were_built_are_found(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = fill(built_folder(environ), *CONTROL_PLANE.packages)

    assert require_programs(environ) == folder


def test_a_folder_of_the_users_choice_comes_first(tmp_path: Path) -> None:
    folder = fill(tmp_path / "assets", *CONTROL_PLANE.packages)
    environ = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(folder)}
    fill(built_folder(environ), *CONTROL_PLANE.packages)

    assert require_programs(environ) == folder


def test_etcd_may_go_by_the_name_of_its_package(tmp_path: Path) -> None:
    fill(tmp_path, "server")

    assert find_program(tmp_path, "etcd") == tmp_path / "server"


def test_a_file_that_cannot_be_run_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_text("")
    fill(tmp_path, "etcd")

    assert missing_programs(tmp_path, ["etcd", "kubectl"]) == ["kubectl"]


def test_what_is_missing_in_a_chosen_folder_is_named(tmp_path: Path) -> None:
    """The usual assets of envtest hold three programs of the six."""
    fill(tmp_path, "etcd", "kube-apiserver", "kubectl")

    with pytest.raises(ControlPlaneMissing) as caught:
        require_programs({"KUBEBUILDER_ASSETS": str(tmp_path)})

    assert caught.value.message == (
        f"no control plane: KUBEBUILDER_ASSETS is `{tmp_path}`, which has no "
        "kube-controller-manager, kube-scheduler, kwok"
    )


def test_programs_that_are_not_built_yet_can_be(tmp_path: Path) -> None:
    with pytest.raises(ControlPlaneMissing, match=r"are not in .* yet") as caught:
        require_programs({"XDG_CACHE_HOME": str(tmp_path)})

    assert "karpy controlplane build" in caught.value.hint


def test_a_single_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ControlPlaneMissing, match="no program `kwok`"):
        find_program(tmp_path, "kwok")


def test_the_peer_has_a_folder_of_its_own_that_cannot_be_chosen(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}
    folder = fill(built_folder(environ, PEER), "karpenter")

    assert folder.parent == tmp_path / "karpy" / "peer"
    assert require_programs(environ, PEER) == folder


def test_a_peer_that_is_not_built_yet_can_be(tmp_path: Path) -> None:
    with pytest.raises(ControlPlaneMissing, match="no Karpenter: its programs are not") as caught:
        require_programs({"XDG_CACHE_HOME": str(tmp_path)}, PEER)

    assert caught.value.hint == "run `karpy controlplane build --peer` (five minutes, once)"
