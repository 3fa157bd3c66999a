from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from karpy.adapters.controlplane.building import ensure_programs
from karpy.adapters.controlplane.bundles import CONTROL_PLANE, PEER, TOOLS
from karpy.adapters.controlplane.programs import built_folder
from karpy.errors import ControlPlaneMissing
from tests.controlplane.fakes import fake_go, script


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}


def test_every_program_is_built_and_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    fake_go(tmp_path / "bin")

    folder = ensure_programs(environ, str)

    assert folder == built_folder(environ)
    assert sorted(each.name for each in folder.iterdir()) == sorted(CONTROL_PLANE.packages)
    assert sorted(each.suffix for each in folder.parent.iterdir()) == ["", ".lock", ".log"]


def test_programs_are_stamped_with_their_version(tmp_path: Path, environ: dict[str, str]) -> None:
    """`kubectl version` fails without."""
    fake_go(tmp_path / "bin")

    ensure_programs(environ, str)

    calls = (tmp_path / "bin" / "calls").read_text()
    assert calls.count("-trimpath") == len(CONTROL_PLANE.packages)
    assert calls.count("version.gitVersion=v1.36.3") == len(CONTROL_PLANE.packages)


def test_the_peer_is_built_beside_it(tmp_path: Path, environ: dict[str, str]) -> None:
    fake_go(tmp_path / "bin", "go1.27.0", deed="grep -q ^module.karpy/peer go.mod || exit 1")
    told: list[str] = []

    folder = ensure_programs(environ, told.append, PEER)

    assert [each.name for each in folder.iterdir()] == ["karpenter"]
    assert told[0].startswith("building Karpenter v1.15.0 with ")
    assert told[1] == "1 of 1 karpenter: done after 0 s"
    assert "operator.Version=v1.15.0" in (tmp_path / "bin" / "calls").read_text()


def test_tools_are_built_without_what_is_not_needed(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    fake_go(tmp_path / "bin")

    folder = ensure_programs(environ, str, TOOLS)

    assert sorted(each.name for each in folder.iterdir()) == ["helm", "promtool"]
    assert (tmp_path / "bin" / "calls").read_text().count("-tags remove_all_sd") == 2


def test_go_stands_next_to_its_module_and_fetches_no_other_go(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    fake_go(tmp_path / "bin", deed="test -f go.mod && test -f go.sum || exit 1")

    ensure_programs(environ, str)

    lines = (tmp_path / "bin" / "environ").read_text().splitlines()
    assert {tuple(line.split()[:2]) for line in lines} == {("local", "0")}


def test_what_is_built_is_not_built_again(tmp_path: Path, environ: dict[str, str]) -> None:
    fake_go(tmp_path / "bin")
    ensure_programs(environ, str)
    told: list[str] = []

    ensure_programs(environ, told.append)

    assert told == []
    assert len((tmp_path / "bin" / "calls").read_text().splitlines()) == len(CONTROL_PLANE.packages)


def test_a_build_reports_its_progress(tmp_path: Path, environ: dict[str, str]) -> None:
    go = fake_go(tmp_path / "bin")
    told: list[str] = []

    folder = ensure_programs(environ, told.append)

    assert told[0].startswith(f"building Kubernetes v1.36.3 with {go}; ")
    assert [line.partition(":")[0] for line in told[1:-1]] == [
        f"{number} of 6 {name}" for number, name in enumerate(CONTROL_PLANE.packages, start=1)
    ]
    assert told[-1].endswith(f" s: {folder}")


def test_while_it_takes_long_the_packages_are_counted(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karpy.adapters.controlplane.building._SECONDS_BETWEEN_LINES", 0.3)
    fake_go(tmp_path / "bin", deed='case "$2" in */etcd) sleep 0.9 ;; esac')
    told: list[str] = []

    ensure_programs(environ, told.append)

    assert told[1] == "1 of 6 etcd: 1 packages, 0 s"


def test_a_build_that_fails_shows_what_go_said(tmp_path: Path, environ: dict[str, str]) -> None:
    fake_go(tmp_path / "bin", deed="echo 'dial tcp: no such host' >&2; exit 1")

    with pytest.raises(ControlPlaneMissing) as caught:
        ensure_programs(environ, str)

    log = built_folder(environ).with_suffix(".log")
    assert caught.value.message == (
        f"no control plane: `etcd` cannot be built; the end of {log}:\n"
        "compiled go.etcd.io/etcd/server/v3\n"
        "dial tcp: no such host"
    )
    assert "GOPROXY" in caught.value.hint


def test_a_build_that_fails_leaves_no_half_of_it(tmp_path: Path, environ: dict[str, str]) -> None:
    fake_go(tmp_path / "bin", deed='case "$2" in */kubectl) exit 1 ;; esac')

    with pytest.raises(ControlPlaneMissing):
        ensure_programs(environ, str)

    folder = built_folder(environ)
    assert sorted(each.name for each in folder.parent.iterdir()) == [
        f"{folder.name}.lock",
        f"{folder.name}.log",
    ]


def test_two_builders_build_once(tmp_path: Path, environ: dict[str, str]) -> None:
    fake_go(tmp_path / "bin", deed="sleep 0.1")
    told: list[str] = []
    both = Barrier(2)

    def build() -> Path:
        both.wait()
        return ensure_programs(environ, told.append)

    with ThreadPoolExecutor() as pool:
        folders = {pool.submit(build).result for _ in range(2)}
        found = {result() for result in folders}

    assert found == {built_folder(environ)}
    assert "waiting for another build of Kubernetes to end" in told
    assert len((tmp_path / "bin" / "calls").read_text().splitlines()) == len(CONTROL_PLANE.packages)


def test_a_folder_of_the_users_choice_is_never_built_into(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    script(tmp_path / "assets" / "etcd", "true")

    with pytest.raises(ControlPlaneMissing, match="which has no kube-apiserver"):
        ensure_programs({**environ, "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}, str)

    assert list((tmp_path / "assets").iterdir()) == [tmp_path / "assets" / "etcd"]


def test_a_cache_that_cannot_be_written_is_an_error(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / ".cache").write_text("a file, not a folder")

    with pytest.raises(ControlPlaneMissing, match="cannot build into") as caught:
        ensure_programs(environ, str)

    assert "XDG_CACHE_HOME" in caught.value.hint
