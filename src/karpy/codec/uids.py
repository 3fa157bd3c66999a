"""UIDs for objects that no API server has seen yet."""

import hashlib


def derived_uid(*parts: str) -> str:
    """Make a UID out of names: the same names, the same UID."""
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
