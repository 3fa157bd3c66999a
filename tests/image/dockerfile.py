"""A Dockerfile, read: its stages, and their steps one by one."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.tidy.repository import ROOT

DOCKERFILE: Final = ROOT / "Dockerfile"
IGNORED: Final = ROOT / ".dockerignore"


class Step(NamedTuple):
    """One instruction with all that follows it, continued lines put together."""

    word: str
    text: str

    @property
    def words(self) -> list[str]:
        """What it says, as a shell takes it apart; JSON where it is that."""
        if self.text.startswith("["):
            found: list[str] = json.loads(self.text)
            return found
        return shlex.split(self.text)

    @property
    def paths(self) -> list[str]:
        """What is copied, then where to."""
        return [each for each in self.words if not each.startswith("--")]


def stages(text: str) -> list[list[Step]]:
    """Take a Dockerfile apart, stage by stage; what comes before the first belongs to none."""
    found: list[list[Step]] = []
    for step in _steps(text):
        if step.word == "FROM":
            found.append([])
        if found:
            found[-1].append(step)
    return found


def _steps(text: str) -> Iterator[Step]:
    plain = "\n".join(each for each in text.splitlines() if not each.startswith("#"))
    for line in re.sub(r"\\\n\s*", "", plain).splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            yield Step(word, rest.strip())


def taken(path: Path) -> set[str]:
    """List what .dockerignore lets through."""
    return {each[1:] for each in path.read_text("utf-8").splitlines() if each.startswith("!")}
