"""Regions of AWS, and where their prices are asked for."""

import re
from typing import Final

_REGION: Final = re.compile(r"[a-z]{2,3}(?:-[a-z]+)+-[0-9]+", re.ASCII)
# Pricing has endpoints in four regions; which of them is asked follows from the name of the region.
_PRICING: Final = (("ap-", "ap-south-1"), ("cn-", "cn-northwest-1"), ("eu-", "eu-central-1"))
_PRICING_ELSEWHERE: Final = "us-east-1"


def zone_region(zone: str) -> str:
    """Return the region of a zone, a Local Zone included; empty if it is no zone."""
    found = _REGION.match(zone)
    return found[0] if found else ""


def pricing_region(region: str) -> str:
    """Return the region whose Pricing endpoint knows the prices of a region."""
    found = (where for prefix, where in _PRICING if region.startswith(prefix))
    return next(found, _PRICING_ELSEWHERE)
