"""Commands in the pages exist, and those that need no cluster run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

from karpy.cli.main import whole_app
from karpy.wiring.options import read_options
from tests.cli.conftest import Karpy
from tests.cli.manifests import pod, stream
from tests.cli.nodemanifests import CLUSTER, POOLS
from tests.tidy.repository import ROOT

PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
_CONSOLE: Final = re.compile(r"(?ms)^```console\n(.*?)^```$")
_YAML: Final = re.compile(r"(?ms)^```yaml\n# (\S+\.yaml)\n(.*?)^```$")
_COMMENT: Final = re.compile(r"\s{2,}#.*$|\s{3,}[a-z].*$")
_END: Final = frozenset("|;&>()")
_ANSWERS: Final = (
    ("solve",),
    ("instances",),
    ("convert",),
    ("budgets",),
    ("top",),
    ("errors",),
    ("crds",),
    ("aws", "setup"),
)
"""Commands that need no cluster, at least with files."""
_SATISFIED: Final = frozenset({"instances", "errors", "crds", "aws"})
"""Commands that need neither a cluster nor files."""
_WORKLOADS: Final = stream(pod("web-0"), pod("web-1"))
GIVEN: Final = {
    "cluster.yaml": CLUSTER,
    "nodepools.yaml": POOLS,
    "pods.yaml": _WORKLOADS,
    "workloads.yaml": _WORKLOADS,
    "examples/": "",
}
"""Files that pages mention without their content."""
APP: Final = whole_app()


class Typed(Struct, frozen=True):
    """A command in a page."""

    page: Path
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}: karpy {' '.join(self.words)}"

    @property
    def files(self) -> set[str]:
        return {each for each in self.words if each.endswith((".yaml", ".json", "/"))}

    @property
    def shown(self) -> dict[str, str]:
        """The content of the files that the page shows, by name."""
        return dict(_YAML.findall(self.page.read_text(encoding="utf-8")))

    @property
    def is_runnable(self) -> bool:
        """Whether it needs no cluster, and only files of the page and of the fixture."""
        answers = any(self.words[: len(each)] == each for each in _ANSWERS)
        is_fed = bool(self.files) or not _SATISFIED.isdisjoint(self.words[:1])
        known = {*GIVEN, *self.shown}
        return answers and is_fed and "-" not in self.words and self.files <= known


def typed() -> Iterator[Typed]:
    """Yield all commands of all pages, each once per page."""
    for page in PAGES:
        known = set()
        for block in _CONSOLE.finditer(page.read_text(encoding="utf-8")):
            text = block[1].replace("\\\n", " ")
            for line in text.splitlines():
                if line.startswith("$ "):
                    known |= set(_commands(line[2:]))
        yield from (Typed(page, each) for each in sorted(known))


def _commands(line: str) -> Iterator[tuple[str, ...]]:
    """Yield Karpy's commands in a line of shell, without redirections."""
    found: list[str] | None = None
    lexer = shlex.shlex(_COMMENT.sub("", line), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    for word in lexer:
        if word in {"karpy", ".venv/bin/karpy"} and found is None:
            found = []
        elif found is not None and _END & set(word) and set(word) <= _END:
            yield _arguments(found)
            found = None
        elif found is not None:
            found.append(word)
    if found is not None:
        yield _arguments(found)


def _arguments(words: list[str]) -> tuple[str, ...]:
    # Here the `2` of `2>/dev/null` is a separate word.
    return tuple(words[:-1] if words and words[-1] == "2" else words)


COMMANDS: Final = list(typed())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.name)
def test_a_command_of_a_page_is_one(command: Typed) -> None:
    words = ["/dev/stdin" if each == "-" else each for each in command.words]
    if words and words[0] == "run":
        read_options(words[1:], {})
        return
    APP.parse_args(words, exit_on_error=False, print_error=False)


def test_the_pages_have_commands() -> None:
    assert len(COMMANDS) > 60


RUNNABLE: Final = [each for each in COMMANDS if each.is_runnable]


def test_enough_commands_are_runnable() -> None:
    assert len(RUNNABLE) > 20


@pytest.mark.parametrize("command", RUNNABLE, ids=lambda each: each.name)
def test_a_command_that_needs_no_cluster_runs(
    karpy: Karpy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Typed
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, text in {**GIVEN, **command.shown}.items():
        if not name.endswith("/"):
            (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)

    run = karpy(*command.words)

    assert run.code in {0, 3}, run.err
    assert run.out
