"""
The names of KWOK's machines.

A machine is its Node, and its provider ID contains the Node's name. The name follows from the
NodeClaim alone, so that a second launch of a claim, also by another process, gives the same
machine.
"""

from hashlib import sha256
from typing import Final

SCHEME: Final = "kwok://"
_BITS: Final = 32
_MOODS: Final = (
    *("amber", "brave", "calm", "dapper", "eager", "fond", "gentle", "hasty"),
    *("idle", "jolly", "keen", "lucky", "merry", "nimble", "odd", "proud"),
)
_BEASTS: Final = (
    *("adder", "badger", "crane", "dingo", "egret", "ferret", "gecko", "heron"),
    *("ibis", "jackal", "kite", "lynx", "marten", "newt", "otter", "puffin"),
)


def node_name(claim: str, token: str) -> str:
    """Return the name of the Node that a NodeClaim gets: `kwok-<claim>-brave-otter-1234`."""
    mood, beast = draw(token, "mood", len(_MOODS)), draw(token, "beast", len(_BEASTS))
    number = draw(token, "number", 1 << _BITS)
    return f"kwok-{claim}-{_MOODS[mood]}-{_BEASTS[beast]}-{number}"


def provider_id(name: str) -> str:
    """Return the provider ID of a Node's machine."""
    return SCHEME + name


def name_of(provider_id: str) -> str | None:
    """Return the name of a machine's Node, or None if the provider ID is another cloud's."""
    name = provider_id.removeprefix(SCHEME)
    return name if name and name != provider_id else None


def draw(token: str, about: str, limit: int) -> int:
    """Return a pseudo-random number below the limit: a function of `token` and `about`."""
    digest = sha256(f"{token}:{about}".encode()).digest()
    return int.from_bytes(digest[:8]) * limit >> 64
