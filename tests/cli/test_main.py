import io
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy import __version__
from karpy.cli.versions import OLDEST_KUBERNETES, build_text
from karpy.wiring.process import Crashed
from tests.cli.conftest import Karpy, Run

SOURCE: Final = Path(__file__).parents[2] / "src"


def process(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "karpy", *words],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "utf-8", **environ},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("command", ["", "solve", "explain", "budgets", "demo", "errors"])
def test_help_is_worth_reading(karpy: Karpy, command: str, snapshot: SnapshotAssertion) -> None:
    assert karpy(*command.split(), "--help") == snapshot


def test_no_command_shows_the_help(karpy: Karpy) -> None:
    assert karpy() == karpy("--help")


def test_help_in_ascii_draws_ascii(karpy: Karpy) -> None:
    run = karpy("solve", "--help", encoding="ascii")

    assert run.code == 0
    assert run.out.isascii()


def test_the_version_is_printed_with_compatible_versions(karpy: Karpy) -> None:
    run = karpy("--version")

    ours, karpenter, kubernetes = run.out.splitlines()
    assert ours.startswith(f"karpy {__version__}")
    assert f"Python {platform.python_version()}" in ours
    assert karpenter == "karpenter API v1, as core v1.15.0 and AWS provider v1.14 have it"
    assert kubernetes == "kubernetes v1.29 or newer, tested with v1.36.3"


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        (None, ""),
        ('{"url": "file:///src", "dir_info": {"editable": true}}', "sources"),
        ('{"vcs_info": {"vcs": "git", "commit_id": "0123456789abcdef"}}', "commit 0123456789ab"),
        ('{"archive_info": {"hashes": {"sha256": "fedcba98765432"}}}', "sha256 fedcba987654"),
    ],
)
def test_a_build_is_named_by_what_was_installed(origin: str | None, text: str) -> None:
    assert build_text(origin) == text


def test_the_chart_asks_for_the_oldest_kubernetes_that_is_named() -> None:
    chart = (SOURCE.parent / "charts" / "karpenter" / "Chart.yaml").read_text()

    assert f'kubeVersion: ">={OLDEST_KUBERNETES.removeprefix("v")}.0-0"' in chart


@pytest.mark.parametrize("output", ["text", "json"])
def test_errors_lists_every_code(karpy: Karpy, output: str, snapshot: SnapshotAssertion) -> None:
    assert karpy("errors", "--output", output) == snapshot


@pytest.mark.parametrize(
    "words",
    [
        ["solv", "x.yaml"],
        ["solve"],
        ["solve", "x.yaml", "--bogus"],
        ["solve", "x.yaml", "--output", "xml"],
        ["solve", "x.yaml", "--timeout", "0"],
        ["solve", "x.yaml", "--timeout", "soon"],
        ["solve", "x.yaml", "--now", "yesterday"],
        ["solve", "x.yaml", "--preference-policy", "Maybe"],
        ["explain"],
        ["explain", "node"],
        ["explain", "node", "a", "x.yaml", "--context", "c"],
        ["explain", "node", "a", "x.yaml", "--feature-gates", "NodeRepairs=true"],
        ["explain", "node", "a", "x.yaml", "--feature-gates", "NodeRepair"],
        ["budgets"],
        ["budgets", "general", "x.yaml", "--nodes", "0"],
        ["budgets", "general", "x.yaml", "--kubeconfig", "k"],
        ["demo", "x.yaml"],
    ],
    ids=" ".join,
)
def test_misuse_is_reported_and_exits_with_2(
    karpy: Karpy, words: list[str], snapshot: SnapshotAssertion
) -> None:
    run = karpy(*words)

    assert run.code == 2
    assert run == snapshot


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (
            ["solve", "nowhere.yaml", "--output", "json"],
            1,
            {
                "code": "KP1002",
                "message": "cannot read `nowhere.yaml`: No such file or directory",
                "hint": "check the path and its permissions",
            },
        ),
        (
            ["explain", "--output=json", "--bogus"],
            2,
            {
                "code": "",
                "message": "Unknown option: --bogus.",
                "hint": "see `karpy explain --help`",
            },
        ),
    ],
)
def test_a_program_that_asks_for_json_gets_errors_as_json(
    karpy: Karpy, words: list[str], code: int, error: dict[str, str]
) -> None:
    run = karpy(*words)

    assert (run.code, json.loads(run.out)) == (code, {"error": error})
    assert error["message"] in run.err


def test_the_program_runs_as_a_module() -> None:
    done = process("errors", "--output", "json")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[\n")


def test_a_closed_pipe_is_quiet() -> None:
    """`karpy demo --manifests | head -1` ends without an error message."""
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "karpy", "errors"],
            env=environ,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )

    assert (done.returncode, done.stderr) == (141, b"")


class Failing(io.StringIO):
    """Standard input that raises when it is read."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def read(self, size: int | None = -1, /) -> str:
        del size
        raise self._error


def test_ctrl_c_is_quiet(karpy: Karpy) -> None:
    assert karpy("solve", "-", stdin=Failing(KeyboardInterrupt())) == (130, "", "")


def test_an_unexpected_error_asks_for_a_report(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    run = karpy("solve", "-", stdin=Failing(LookupError("the solver slipped")))

    assert run.code == 1
    assert run == snapshot


def test_debugging_adds_the_traceback(karpy: Karpy) -> None:
    slip = Failing(LookupError("the solver slipped"))

    run = karpy("solve", "-", stdin=slip, is_debugging=True)

    assert run.err.startswith("Traceback (most recent call last):\n")
    assert "error: karpy made a mistake: LookupError('the solver slipped') (KP9000)" in run.err


def test_an_error_in_the_log_is_not_printed_again(
    karpy: Karpy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that read the JSON lines of `karpy run` could not parse other text."""

    async def crash(*_: object) -> None:
        raise Crashed

    monkeypatch.setattr("karpy.cli.run.run_process", crash)

    assert karpy("run") == Run(1, "", "")
