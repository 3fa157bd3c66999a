import os
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.adapters.controlplane.bundles import CONTROL_PLANE, PEER, TOOLS, Bundle
from karpy.adapters.controlplane.programs import built_folder
from tests.cli.conftest import Karpy
from tests.controlplane.fakes import fake_go, script


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)


@pytest.mark.parametrize("command", ["", "up", "build", "path"])
def test_help_is_worth_reading(karpy: Karpy, command: str, snapshot: SnapshotAssertion) -> None:
    assert karpy("controlplane", *command.split(), "--help") == snapshot


@pytest.mark.parametrize(
    "words", [["down"], ["up", "--kubeconfig"], ["up", "--bogus"], ["path", "x"]], ids=" ".join
)
def test_misuse_is_reported_and_exits_with_2(
    karpy: Karpy, words: list[str], snapshot: SnapshotAssertion
) -> None:
    run = karpy("controlplane", *words)

    assert run.code == 2
    assert run == snapshot


def test_build_prints_the_folder_and_nothing_else(karpy: Karpy, tmp_path: Path) -> None:
    fake_go(tmp_path / "bin")

    run = karpy("controlplane", "build")

    assert (run.code, run.out) == (0, f"{built_folder(os.environ)}\n")
    assert "6 of 6 kwok: done after 0 s\n" in run.err


@pytest.mark.parametrize(("flag", "bundle"), [("--peer", PEER), ("--tools", TOOLS)])
def test_other_programs_are_built_if_asked_for(
    karpy: Karpy, tmp_path: Path, flag: str, bundle: Bundle
) -> None:
    fake_go(tmp_path / "bin", "go1.27.0")

    run = karpy("controlplane", "build", flag)

    assert (run.code, run.out) == (0, f"{built_folder(os.environ, bundle)}\n")
    assert karpy("controlplane", "path", flag) == (0, run.out, "")
    assert karpy("controlplane", "path").code == 1


def test_path_prints_the_folder_once_it_is_built(karpy: Karpy, tmp_path: Path) -> None:
    fake_go(tmp_path / "bin")
    karpy("controlplane", "build")

    assert karpy("controlplane", "path") == (0, f"{built_folder(os.environ)}\n", "")


def test_path_fails_while_nothing_is_built(karpy: Karpy) -> None:
    run = karpy("controlplane", "path")

    assert (run.code, run.out) == (1, "")
    assert run.err == (
        f"error: no control plane: its programs are not in `{built_folder(os.environ)}` yet "
        "(KP1009)\n\n"
        "hint: run `karpy controlplane build` (ten minutes, once), or name a folder that has them "
        "in KUBEBUILDER_ASSETS\n"
    )


@pytest.mark.parametrize(
    "text",
    ["", "[]", "contexts: 1", "{", "contexts: [{name: production}]", "contexts: [{name: {}}]"],
)
def test_a_kubeconfig_of_others_is_not_replaced(karpy: Karpy, tmp_path: Path, text: str) -> None:
    """Who has typed ~/.kube/config there would lose the way to every cluster."""
    path = tmp_path / "config"
    path.write_text(text)

    run = karpy("controlplane", "up", "--kubeconfig", str(path))

    assert run.code == 1
    assert f"cannot write `{path}`: it is there already" in run.err
    assert path.read_text() == text


def test_up_says_which_program_does_not_start(
    karpy: Karpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert [script(tmp_path / name, "echo no; exit 1") for name in CONTROL_PLANE.packages]

    run = karpy("controlplane", "up")

    assert (run.code, run.out) == (1, "")
    assert "ended with code 1; the end of" in run.err
