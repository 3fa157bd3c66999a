"""What a control plane does when its programs fail; tests/e2e shows the real ones at work."""

from pathlib import Path

import pytest

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.errors import ControlPlaneMissing
from tests.controlplane.fakes import script


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """An etcd that runs, and a kube-apiserver that does not."""
    script(tmp_path / "etcd", 'mkdir -p "${1#--data-dir=}"; sleep 600')
    script(tmp_path / "kube-apiserver", "echo 'flag provided but not defined' >&2; exit 3")
    return tmp_path


def test_a_program_that_ends_at_once_is_named_with_its_log(programs: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"

    with pytest.raises(ControlPlaneMissing) as caught, ControlPlane(programs, home):
        pass

    log = home / "kube-apiserver.log"
    assert caught.value.message == (
        f"no control plane: kube-apiserver ended with code 3; the end of {log}:\n"
        "flag provided but not defined"
    )
    assert str(home) in caught.value.hint
    assert log.exists()
    assert not (home / "etcd").exists()


def test_a_program_that_never_gets_ready_is_given_up(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karpy.adapters.controlplane.plane._SECONDS_TO_START", 0.3)
    script(programs / "kube-apiserver", "sleep 600")

    with (
        pytest.raises(ControlPlaneMissing, match="kube-apiserver is not ready after 0 s"),
        ControlPlane(programs, tmp_path / "home"),
    ):
        pass


def test_a_program_that_is_missing_is_named(programs: Path, tmp_path: Path) -> None:
    (programs / "kube-apiserver").unlink()

    with (
        pytest.raises(ControlPlaneMissing, match="no program `kube-apiserver`"),
        ControlPlane(programs, tmp_path / "home"),
    ):
        pass


def test_the_folder_of_a_plane_that_did_not_start_is_kept_for_its_logs(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))

    with pytest.raises(ControlPlaneMissing), ControlPlane(programs):
        pass

    (home,) = (tmp_path / "tmp").iterdir()
    assert (home / "kube-apiserver.log").read_text() == "flag provided but not defined\n"


def test_secrets_are_for_the_owner_alone(programs: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"

    with pytest.raises(ControlPlaneMissing), ControlPlane(programs, home):
        pass

    modes = {path.name: path.stat().st_mode & 0o777 for path in home.iterdir()}
    assert modes["tokens.csv"] == modes["service-accounts.key"] == 0o600
