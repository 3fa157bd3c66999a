"""Violations of LimitRanges by pods, containers and claims, with the API server's messages."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from karpy.codec.fields import Fields, JsonObject
from karpy.codec.requests import effective_limits, effective_requests
from karpy.model.resources import PODS
from karpy.sim.store.checks.pods import amount_of
from karpy.sim.store.quantities import amount_text, canonical

Amounts = Mapping[str, int]
_NOTHING: Final[JsonObject] = {}
_MILLI: Final = 1000


class _Asked(Struct, frozen=True):
    """Requests and limits, as amounts and as written."""

    requests: Amounts
    limits: Amounts
    written: Mapping[tuple[str, str], str] = {}

    def text(self, part: str, name: str, amount: int) -> str:
        return self.written.get((part, name)) or amount_text(amount, name)


def pod_breaches(item: JsonObject, pod: JsonObject) -> Iterator[str]:
    """Yield the violations of a LimitRange item by a pod."""
    spec = pod.get("spec") or {}
    if item.get("type") == "Container":
        for key in ("containers", "initContainers"):
            for container in spec.get(key) or ():
                yield from _breaches(item, "Container", _asked(container.get("resources") or {}))
    elif item.get("type") == "Pod":
        bare = Fields({key: each for key, each in spec.items() if key != "overhead"}, "spec")
        requests = effective_requests(bare, Fields({}))
        requests.pop(PODS, None)
        yield from _breaches(item, "Pod", _Asked(requests, effective_limits(bare)))


def claim_breaches(item: JsonObject, claim: JsonObject) -> Iterator[str]:
    """Yield the violations of a LimitRange item by a PersistentVolumeClaim."""
    if item.get("type") != "PersistentVolumeClaim":
        return
    asked = _asked({"requests": ((claim.get("spec") or {}).get("resources") or {}).get("requests")})
    for name, bound in sorted((item.get("min") or _NOTHING).items()):
        yield from _below(asked, "PersistentVolumeClaim", name, bound)
    for name, bound in sorted((item.get("max") or _NOTHING).items()):
        what = f"maximum {name} usage per PersistentVolumeClaim is {_shown(bound)}"
        amount = asked.requests.get(name)
        if amount is None:
            yield f"{what}.  No request is specified"
        elif amount > amount_of(bound, name):
            yield f"{what}, but request is {asked.text('requests', name, amount)}"


def _breaches(item: JsonObject, title: str, asked: _Asked) -> Iterator[str]:
    for name, bound in sorted((item.get("min") or _NOTHING).items()):
        yield from _below(asked, title, name, bound)
    for name, bound in sorted((item.get("max") or _NOTHING).items()):
        yield from _above(asked, title, name, bound)
    for name, bound in sorted((item.get("maxLimitRequestRatio") or _NOTHING).items()):
        yield from _apart(asked, title, name, bound)


def _below(asked: _Asked, title: str, name: str, bound: object) -> Iterator[str]:
    what = f"minimum {name} usage per {title} is {_shown(bound)}"
    least, request, limit = amount_of(bound, name), asked.requests.get(name), asked.limits.get(name)
    if request is None:
        yield f"{what}.  No request is specified"
    elif request < least:
        yield f"{what}, but request is {asked.text('requests', name, request)}"
    elif limit is not None and limit < least:
        yield f"{what}, but limit is {asked.text('limits', name, limit)}"


def _above(asked: _Asked, title: str, name: str, bound: object) -> Iterator[str]:
    what = f"maximum {name} usage per {title} is {_shown(bound)}"
    most, request, limit = amount_of(bound, name), asked.requests.get(name), asked.limits.get(name)
    if limit is None:
        yield f"{what}.  No limit is specified"
    elif limit > most:
        yield f"{what}, but limit is {asked.text('limits', name, limit)}"
    elif request is not None and request > most:
        yield f"{what}, but request is {asked.text('requests', name, request)}"


def _apart(asked: _Asked, title: str, name: str, bound: object) -> Iterator[str]:
    what = f"{name} max limit to request ratio per {title} is {_shown(bound)}, but"
    request, limit = asked.requests.get(name), asked.limits.get(name)
    if not request:
        yield f"{what} no request is specified or request is 0"
    elif not limit:
        yield f"{what} no limit is specified or limit is 0"
    elif limit * _MILLI > request * amount_of(bound, "cpu"):
        # Ratios are stored in thousandths, like cpu.
        yield f"{what} provided ratio is {limit / request:f}"


def _asked(resources: JsonObject) -> _Asked:
    parts = {part: resources.get(part) or _NOTHING for part in ("requests", "limits")}
    amounts = {
        part: {name: amount_of(value, name) for name, value in given.items()}
        for part, given in parts.items()
    }
    written = {
        (part, name): _shown(value)
        for part, given in parts.items()
        for name, value in given.items()
    }
    return _Asked(amounts["requests"], amounts["limits"], written)


def _shown(value: object) -> str:
    return canonical(value) or str(value)
