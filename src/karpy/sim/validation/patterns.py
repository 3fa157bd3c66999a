"""Regular expressions as an API server reads them, which is not quite as Python does."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from jsonschema_rs import Draft4Validator, RegexOptions

LINEAR: Final = RegexOptions()
"""Never takes longer than the text is long, as Go."""


def matches(pattern: str, text: str) -> bool:
    """Say whether the pattern is found in the text; anchors mean the text, never a line."""
    return _matcher(pattern)(text)


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[str], bool]:
    try:
        return Draft4Validator({"pattern": pattern}, pattern_options=LINEAR).is_valid
    except ValueError:
        # Something only Go and Python know, such as a named group.
        searched = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
        return lambda text: searched.search(text) is not None
