"""Finders of the AWS resources that the selectors of an EC2NodeClass select."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.adapters.clouds.aws.calls import AwsCalls, JsonObject
from karpy.codec.aws.answers import (
    read_image,
    read_placement_group,
    read_reservation,
    read_security_group,
    read_subnet,
)
from karpy.core.aws.images import (
    Variant,
    choose_images,
    filters_of,
    queries_of,
    requirements_by_id,
    tag_filters,
    unusable_images,
    variants_of,
)
from karpy.core.aws.refusals import is_not_found
from karpy.errors import AwsRefused
from karpy.model.ec2 import CapacityReservation, Image, PlacementGroup, SecurityGroup, Subnet
from karpy.model.ec2nodeclass import Ec2NodeClassSpec, FoundImage, ReservationTerm
from karpy.model.requirements import Requirement
from karpy.ports.clock import Clock

Describe = Callable[..., Awaitable[list[JsonObject]]]
"""A call that lists resources by filters."""

_PARAMETERS_FRESH: Final = timedelta(hours=24)
_TERMS_FRESH: Final = timedelta(minutes=5)


class Parameters:
    """A cache of SSM parameters: a day for those of aliases, minutes for selector terms."""

    def __init__(self, calls: AwsCalls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._known: dict[str, tuple[datetime, str]] = {}
        self._mutable: set[str] = set()

    async def values(
        self, names: Iterable[str], fresh: timedelta = _PARAMETERS_FRESH
    ) -> dict[str, str]:
        """Return the values of parameters; parameters that do not exist are left out."""
        wanted = list(dict.fromkeys(names))
        found = await asyncio.gather(*(self._value(each, fresh) for each in wanted))
        return {name: value for name, value in zip(wanted, found, strict=True) if value}

    def note_mutable(self, variants: Iterable[Variant]) -> None:
        """Remember the parameters whose values AWS changes."""
        self._mutable.update(each.parameter for each in variants if each.is_mutable)

    def mutable(self) -> dict[str, str]:
        """Return the cached values of parameters that AWS changes."""
        return {name: self._known[name][1] for name in self._mutable if name in self._known}

    def forget(self, name: str) -> None:
        """Drop a parameter from the cache."""
        self._known.pop(name, None)

    async def _value(self, name: str, fresh: timedelta) -> str:
        now, known = self._clock.now(), self._known.get(name)
        if known is not None and now - known[0] < fresh:
            return known[1]
        try:
            answer = await self._calls.get_parameter(Name=name)
        except AwsRefused as error:
            if is_not_found(error.aws_code):
                return ""
            raise
        value: str = (answer.get("Parameter") or {}).get("Value", "")
        self._known[name] = now, value
        return value


class FoundImages(Struct, frozen=True):
    """The images that a node class selects."""

    chosen: tuple[FoundImage, ...]
    unusable: tuple[str, ...]
    """IDs of images that boot no machine."""


class Finders:
    """Finds subnets, security groups, images, reservations and placement groups."""

    def __init__(self, calls: AwsCalls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self.parameters = Parameters(calls, clock)

    async def subnets(self, spec: Ec2NodeClassSpec) -> list[Subnet]:
        """Return the subnets that any term selects."""
        ids = [each.id for each in spec.subnet_terms if each.id]
        filters = [[("subnet-id", tuple(ids))]] if ids else []
        filters += [list(tag_filters(each.tags)) for each in spec.subnet_terms if not each.id]
        found = await self._all(self._calls.describe_subnets, filters)
        return list({each["SubnetId"]: read_subnet(each) for each in found}.values())

    async def security_groups(self, spec: Ec2NodeClassSpec) -> list[SecurityGroup]:
        """Return the security groups that any term selects."""
        terms = spec.security_group_terms
        ids = [each.id for each in terms if each.id]
        names = [each.name for each in terms if each.name and not each.id]
        filters = [[("group-id", tuple(ids))]] if ids else []
        filters += [[("group-name", tuple(names))]] if names else []
        filters += [list(tag_filters(each.tags)) for each in terms if not (each.id or each.name)]
        found = await self._all(self._calls.describe_security_groups, filters)
        return list({each["GroupId"]: read_security_group(each) for each in found}.values())

    async def images(self, spec: Ec2NodeClassSpec, version: str) -> "FoundImages":
        """Return the best image for each kind of machine, and the images that boot none."""
        by_id: Mapping[str, tuple[tuple[Requirement, ...], ...]] = {}
        alias, parameters = spec.alias, dict[str, str]()
        if alias is not None:
            variants = variants_of(alias, version)
            self.parameters.note_mutable(variants)
            found = await self.parameters.values(each.parameter for each in variants)
            by_id = requirements_by_id(found, variants)
        else:
            names = [each.ssm_parameter for each in spec.image_terms if each.ssm_parameter]
            parameters = await self.parameters.values(names, _TERMS_FRESH)
        queries = queries_of(spec, list(by_id), parameters)
        images: list[Image] = []
        for query in queries:
            owners = {"Owners": list(query.owners)} if query.owners else {}
            answers = await self._calls.describe_images(
                Filters=filters_of(query), IncludeDeprecated=True, **owners
            )
            images += map(read_image, answers)
        pairs = (
            (image, requirements) for image in images for requirements in by_id.get(image.id, ((),))
        )
        return FoundImages(choose_images(pairs, self._clock.now()), unusable_images(images))

    async def reservations(self, spec: Ec2NodeClassSpec) -> list[CapacityReservation]:
        """Return the capacity reservations that any term selects."""
        found: dict[str, CapacityReservation] = {}
        for term in spec.reservation_terms:
            try:
                answers = await self._calls.describe_capacity_reservations(**_request_of(term))
            except AwsRefused as error:
                if is_not_found(error.aws_code):
                    continue
                raise
            found |= {each["CapacityReservationId"]: read_reservation(each) for each in answers}
        return list(found.values())

    async def placement_group(self, spec: Ec2NodeClassSpec) -> PlacementGroup | None:
        """Return the selected placement group; None if none is selected or found."""
        wanted = spec.placement_group
        if wanted is None:
            return None
        key = {"GroupIds": [wanted.id]} if wanted.id else {"GroupNames": [wanted.name]}
        filters = [{"Name": "state", "Values": ["available"]}]
        try:
            found = await self._calls.describe_placement_groups(Filters=filters, **key)
        except AwsRefused as error:
            if is_not_found(error.aws_code) or "Unknown" in error.aws_code:
                return None
            raise
        return read_placement_group(found[0]) if found else None

    async def _all(
        self,
        call: Describe,
        filters: Sequence[Sequence[tuple[str, tuple[str, ...]]]],
    ) -> list[JsonObject]:
        requests = [
            [{"Name": name, "Values": list(values)} for name, values in pairs] for pairs in filters
        ]
        answers = await asyncio.gather(*(call(Filters=each) for each in requests))
        return [each for answer in answers for each in answer]


def _request_of(term: ReservationTerm) -> dict[str, object]:
    if term.id:
        return {"CapacityReservationIds": [term.id]}
    filters: list[tuple[str, tuple[str, ...]]] = [("state", ("active",))]
    if term.owner:
        filters.append(("owner-id", (term.owner,)))
    if term.match_criteria:
        filters.append(("instance-match-criteria", (term.match_criteria,)))
    filters += tag_filters(term.tags)
    return {"Filters": [{"Name": name, "Values": list(values)} for name, values in filters]}
