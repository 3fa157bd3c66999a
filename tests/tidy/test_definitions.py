from pathlib import Path

import pytest

from tests.tidy.definitions import DEFINITIONS, FOLDER
from tests.tidy.repository import shown


@pytest.mark.parametrize("path", DEFINITIONS, ids=shown)
def test_a_definition_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""

    assert text == DEFINITIONS[path](), "run `make fix` and commit the file"


def test_there_is_no_definition_of_a_kind_that_is_gone() -> None:
    files = set(FOLDER.glob("*"))

    assert files == set(DEFINITIONS), "delete the file"
