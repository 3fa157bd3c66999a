from pathlib import Path

import pytest

from tests.tidy.copies import COPIES, FOLDER
from tests.tidy.repository import shown


@pytest.mark.parametrize("path", COPIES, ids=shown)
def test_the_package_has_the_examples_as_they_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""

    assert text == COPIES[path](), "run `make fix` and commit the file"


def test_the_package_has_no_example_that_is_gone() -> None:
    assert set(FOLDER.rglob("*.yaml")) == set(COPIES), "delete the file"
