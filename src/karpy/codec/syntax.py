"""The syntax of label keys and label values in Kubernetes."""

import re
from functools import lru_cache
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
_DOMAIN: Final = re.compile(
    r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", re.ASCII
)
_DOMAIN_MAX: Final = 253


@lru_cache(maxsize=8192)
def is_label_key(text: str) -> bool:
    """Say whether a text is a qualified name: `name` or `domain/name`."""
    domain, slash, name = text.rpartition("/")
    if slash and (len(domain) > _DOMAIN_MAX or not _DOMAIN.fullmatch(domain)):
        return False
    return _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Say whether a text may be the value of a label; the empty one may."""
    return not text or _NAME.fullmatch(text) is not None
