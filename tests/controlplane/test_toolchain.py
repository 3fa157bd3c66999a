import os
from pathlib import Path

import pytest

from karpy.adapters.controlplane.bundles import CONTROL_PLANE, PEER, TOOLS, Bundle
from karpy.adapters.controlplane.toolchain import find_go
from karpy.errors import ControlPlaneMissing
from tests.controlplane.fakes import fake_go, fake_wheel, script


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with a PATH of its own, in which pip reaches no network."""
    return {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@pytest.mark.parametrize(
    ("bundle", "expected"),
    [(CONTROL_PLANE, (1, 26, 0)), (PEER, (1, 26, 9)), (TOOLS, (1, 26, 0))],
    ids=["", "peer", "tools"],
)
def test_the_module_says_which_go_it_needs(bundle: Bundle, expected: tuple[int, ...]) -> None:
    assert bundle.needed_go == expected


@pytest.mark.parametrize("version", ["go1.26.0", "go1.26.8", "go1.27rc1", "go2.0", "go1.27-devel"])
def test_a_go_of_the_machine_that_is_new_enough_is_taken(
    tmp_path: Path, environ: dict[str, str], version: str
) -> None:
    go = fake_go(tmp_path / "bin", version)
    told: list[str] = []

    assert find_go(environ, told.append) == go
    assert told == []


@pytest.mark.parametrize(
    ("version", "expected"),
    [("go1.21.5", "is 1.21.5"), ("go1.9", "is 1.9.0"), ("no go at all", "is unusable")],
)
def test_a_go_that_is_too_old_is_left_alone(
    tmp_path: Path, environ: dict[str, str], version: str, expected: str
) -> None:
    fake_go(tmp_path / "bin", version)
    fake_wheel(tmp_path)
    told: list[str] = []

    go = find_go(environ, told.append)

    assert go == tmp_path / ".cache" / "karpy" / "go" / "1.26" / "go" / "bin" / "go"
    assert os.access(go, os.X_OK)
    assert len(told) == 1
    assert expected in told[0]


def test_what_one_bundle_takes_may_be_too_old_for_another(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    go = fake_go(tmp_path / "bin", "go1.26.8")
    fake_wheel(tmp_path, version="1.27.3")

    peers = find_go(environ, str, PEER)

    assert find_go(environ, str) == go
    assert peers == tmp_path / ".cache" / "karpy" / "go" / "1.27" / "go" / "bin" / "go"


def test_a_go_that_was_installed_once_is_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    script(tmp_path / "bin" / "go", "exit 1")
    wheel = fake_wheel(tmp_path)
    first = find_go(environ, str)
    wheel.unlink()
    told: list[str] = []

    assert find_go(environ, told.append) == first
    assert told == []


def test_an_installation_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    script(tmp_path / "bin" / "go", "exit 1")

    with pytest.raises(ControlPlaneMissing, match="No matching distribution") as caught:
        find_go(environ, str)

    assert "install Go 1.26.0 or newer from https://go.dev/dl" in caught.value.hint
    assert list((tmp_path / ".cache" / "karpy" / "go").iterdir()) == []
