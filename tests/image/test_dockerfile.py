"""What the Dockerfile says; `python -m tests.image`, in `make install-check`, does what it says."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.charts.helm import CHART
from tests.image.__main__ import faults
from tests.image.dockerfile import DOCKERFILE, IGNORED, stages, taken
from tests.tidy.repository import ROOT

BUILD, FINAL = stages(DOCKERFILE.read_text(encoding="utf-8"))


def test_what_is_copied_is_there_and_nothing_else_is_sent_to_the_builder() -> None:
    copied = {path for step in BUILD if step.word == "COPY" for path in step.paths[:-1]}

    assert copied == taken(IGNORED)
    assert [each for each in copied if not (ROOT / each).exists()] == []


def test_whatever_is_fetched_has_its_hash_checked() -> None:
    commands = [
        each
        for step in BUILD
        if step.word == "RUN"
        for each in step.text.split("&&")
        if re.search(r"\binstall\b", each)
    ]

    assert len(commands) == 3
    assert all("--require-hashes" in each or "--no-index" in each for each in commands)


def test_the_last_stage_only_takes_what_the_first_has_made() -> None:
    assert [step.word for step in FINAL] == [
        "FROM",
        "LABEL",
        "COPY",
        "ENV",
        "USER",
        "ENTRYPOINT",
        "CMD",
    ]
    assert next(step for step in FINAL if step.word == "COPY").words == [
        "--from=build",
        "/opt/karpy",
        "/opt/karpy",
    ]


def test_the_image_runs_as_the_user_of_the_chart() -> None:
    deployment = (CHART / "templates" / "deployment.yaml").read_text("utf-8")
    (user,), (group,) = (
        re.findall(rf"runAs{word}: (\d+)", deployment) for word in ("User", "Group")
    )
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))

    assert next(step.text for step in FINAL if step.word == "USER") == f"{user}:{group}"
    assert values["podSecurityContext"]["fsGroup"] == int(group)


def test_the_entry_point_is_the_program() -> None:
    words = {step.word: step.words for step in FINAL}

    assert (words["ENTRYPOINT"], words["CMD"]) == (["karpy"], ["--help"])
    assert "PATH=/opt/karpy/bin:$PATH" in words["ENV"]


def test_labels_say_what_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    words = next(step for step in FINAL if step.word == "LABEL").words

    assert dict(each.removeprefix("org.opencontainers.image.").split("=", 1) for each in words) == {
        "title": project["name"],
        "description": project["description"],
        "version": project["version"],
        "licenses": project["license"],
    }


@pytest.mark.parametrize(
    ("name", "mode", "fault"),
    [("lib/x.py", 0o666, "may be written by others"), ("bin/pip", 0o755, "pip is left")],
)
def test_what_should_not_be_in_an_image_is_found(
    tmp_path: Path, name: str, mode: int, fault: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir()
    path.touch()
    path.chmod(mode)
    path.parent.chmod(0o755)

    (found,) = faults(tmp_path)
    assert fault in found
