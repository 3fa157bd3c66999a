"""minValues: how many values of a label the types left still offer."""

from msgspec.structs import replace

from karpy.core.scheduling.signatures import Signatures


def reached(signatures: Signatures, signature: int, mask: int) -> dict[str, int]:
    """Return, for each minValues that is not met, how many values there are."""
    lacking: dict[str, int] = {}
    for requirement in signatures.varieties[signature]:
        assert requirement.min_values is not None
        count = 0
        for value, bits in signatures.table.values(requirement.key).items():
            if bits & mask and value in requirement:
                count += 1
                if count == requirement.min_values:
                    break
        else:
            lacking[requirement.key] = count
    return lacking


def relax(signatures: Signatures, signature: int, lacking: dict[str, int]) -> int:
    """Return the signature that asks for no more variety than there is."""
    requirements = dict(signatures.requirements[signature])
    for key, count in lacking.items():
        requirements[key] = replace(requirements[key], min_values=count)
    return signatures.intern(requirements)
