"""
Make the file system of the image without Docker, and run what is in it: `python -m tests.image`.

The steps of the Dockerfile run as they are, below a folder: no base image is needed, and Python is
one of this machine. So what is fetched is what is locked, by its hashes.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.image.dockerfile import DOCKERFILE, Step, stages
from tests.tidy.repository import ROOT

_PLACES: Final = ("/build", "/opt/karpy", "/wheel", "/src")
_PLACE: Final = re.compile(rf"(?<!\S)(?:{'|'.join(_PLACES)})\b")
_TOOLS: Final = ("pip", "uv", "setuptools", "gcc", "cc")
_PYTHONS: Final = ("/usr/local/bin/python3", "/usr/bin/python3")
_RUNS: Final = (("--help",), ("run", "--help"), ("demo", "--plan"))


class Root:
    """The file system of an image below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.karpy = folder / "opt" / "karpy"
        self._at = folder
        for each in _PLACES:
            (folder / each[1:]).parent.mkdir(parents=True, exist_ok=True)
        self._bin = folder / "bin"
        self._bin.mkdir()
        python = self._bin / "python"
        python.write_text(f'#!/bin/sh\nexec {find_python()} "$@"\n', encoding="utf-8")
        python.chmod(0o755)

    def make(self, step: Step) -> None:
        """Do what a step of the first stage says."""
        match step.word:
            case "WORKDIR":
                self._at = self._folder / step.text[1:]
                self._at.mkdir(parents=True)
            case "COPY":
                *sources, target = step.paths
                for each in sources:
                    self._copy(ROOT / each, target)
            case "RUN":
                self._run(step.text)

    def _copy(self, source: Path, target: str) -> None:
        to = self._folder / target[1:] if target.startswith("/") else self._at / target
        if source.is_dir():
            shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, to)

    def _run(self, text: str) -> None:
        text = _PLACE.sub(lambda found: f"{self._folder}{found[0]}", text)
        environ = {**os.environ, "PATH": f"{self._bin}:{os.environ['PATH']}"}
        environ.pop("PYTHONPATH", None)
        subprocess.run(["/bin/sh", "-ec", text], cwd=self._at, env=environ, check=True)


def faults(karpy: Path) -> Iterator[str]:
    """Say what should not be in the image."""
    for path in karpy.rglob("*"):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & (stat.S_IWGRP | stat.S_IWOTH):
            yield f"{path} may be written by others"
        if path.lstat().st_uid != os.getuid():
            yield f"{path} belongs to another user"
    for name in _TOOLS:
        if (karpy / "bin" / name).exists():
            yield f"{name} is left in the image"


def run_as(user: str, karpy: Path, *words: str) -> str:
    """Run the entry point as the image does: as its user, with no variables of ours."""
    uid, _, gid = user.partition(":")
    drop = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    environ = {"PATH": f"{karpy / 'bin'}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    argv: list[str | Path] = [*(drop if _may_drop() else ()), karpy / "bin" / "karpy", *words]
    done = subprocess.run(argv, cwd="/", env=environ, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def find_python() -> Path:
    """Return a Python that any user may run, if there is one; else that of this process."""
    own = Path(sys.executable).resolve()
    rest = (path for path in map(Path, _PYTHONS) if path.exists() and _is_new_enough(path))
    return next((each for each in (own, *rest) if _is_open(each)), own)


def _is_new_enough(python: Path) -> bool:
    test = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([python, "-c", test], capture_output=True, check=False).returncode == 0


def _is_open(path: Path) -> bool:
    return all(each.stat().st_mode & stat.S_IXOTH for each in path.resolve().parents)


def _may_drop() -> bool:
    return os.getuid() == 0 and shutil.which("setpriv") is not None and _is_open(find_python())


def main() -> None:
    build, final = stages(DOCKERFILE.read_text(encoding="utf-8"))
    user = next(step.text for step in final if step.word == "USER")
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        root = Root(folder)
        for step in build:
            root.make(step)
        pip: list[str | Path] = [
            folder / "build" / "bin" / "pip",
            "--python",
            root.karpy / "bin" / "python",
        ]
        subprocess.run([*pip, "check"], stdout=subprocess.DEVNULL, check=True)
        if found := list(faults(root.karpy)):
            sys.exit("\n".join(found))
        before = {path: path.lstat().st_mtime_ns for path in root.karpy.rglob("*")}
        for words in _RUNS:
            assert run_as(user, root.karpy, *words), words
        after = {path: path.lstat().st_mtime_ns for path in root.karpy.rglob("*")}
        if before != after:
            sys.exit("running it changes the image, whose root is read-only")
        size = sum(path.lstat().st_size for path in root.karpy.rglob("*")) >> 20
    who = f"user {user}" if _may_drop() else "this user"
    print(f"installed by its hashes, and runs as {who}: {size} MB")


if __name__ == "__main__":
    main()
