"""Where a node may come up, as far as one label key can tell."""

from collections.abc import Sequence

from msgspec import Struct

from karpy.model.requirements import Requirement


class Domains(Struct, frozen=True):
    """In which domains of a key a node is or may come up."""

    values: frozenset[str] = frozenset()
    is_open: bool = False
    """Whether any other value is possible, too, but for those it shuns."""
    shunned: frozenset[str] = frozenset()
    may_lack: bool = False
    """Whether the node may carry no such label."""

    @property
    def is_sure(self) -> bool:
        """Whether the label is sure to be there, with one of the values."""
        return bool(self.values) and not self.is_open and not self.may_lack

    @property
    def settled(self) -> str | None:
        """The one domain it is sure to be in, or None."""
        return min(self.values) if self.is_sure and len(self.values) == 1 else None

    def may_meet(self, other: "Domains") -> bool:
        """Say whether two nodes may come up in the same domain."""
        if self.is_open and other.is_open:
            return True
        return any(map(self.may_be, other.values)) or any(map(other.may_be, self.values))

    def may_be(self, value: str) -> bool:
        """Say whether a node may come up in one domain."""
        return value in self.values or (self.is_open and value not in self.shunned)


def as_domains(values: Requirement | None) -> Domains:
    """Read what is known of a label as domains; one that is only shunned is not written at all."""
    if values is None or values.is_negative:
        return Domains(may_lack=True)
    if values.complement:
        return Domains(is_open=True, shunned=values.values)
    return Domains(values.values)


def join_domains(parts: Sequence[Domains]) -> Domains:
    """Say where a node may come up that may be any of several machines."""
    shunned = [part.shunned for part in parts if part.is_open]
    return Domains(
        frozenset().union(*(part.values for part in parts)),
        is_open=bool(shunned),
        shunned=frozenset.intersection(*shunned) if shunned else frozenset(),
        may_lack=any(part.may_lack for part in parts),
    )
