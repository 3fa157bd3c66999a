"""Instance types that meet criteria, cheapest first, and equivalent NodePool requirements."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from karpy.model.ec2 import (
    AMD_GPU,
    AUTO_MODE_DOMAIN,
    EC2_DOMAIN,
    GAUDI,
    INSTANCE_CATEGORY,
    INSTANCE_CPU,
    INSTANCE_FAMILY,
    INSTANCE_GENERATION,
    INSTANCE_GPU_COUNT,
    INSTANCE_GPU_NAME,
    INSTANCE_MEMORY,
    NVIDIA_GPU,
)
from karpy.model.instances import InstanceType, Offering
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.model.requirements import (
    Operator,
    Requirement,
    Requirements,
    as_integer,
    one_of,
    require,
    why_disjoint,
)
from karpy.model.resources import CPU, MEMORY

_MIB: Final = 2**20
_MILLI: Final = 1000
_DOMAINS: Final = (EC2_DOMAIN, AUTO_MODE_DOMAIN)
_GPUS: Final = (NVIDIA_GPU, AMD_GPU, GAUDI)
_BURSTABLE: Final = "t"
"""The category of burstable instance types."""


class NumberRange(Struct, frozen=True):
    """A range of whole numbers, bounds included; None is no bound."""

    least: int | None = None
    most: int | None = None

    def __contains__(self, number: int) -> bool:
        return (self.least is None or number >= self.least) and (
            self.most is None or number <= self.most
        )

    @property
    def is_open(self) -> bool:
        """Whether every number is in the range."""
        return self.least is None and self.most is None


class Criteria(Struct, frozen=True):
    """Criteria for instance types; an empty field is no criterion."""

    vcpus: NumberRange = NumberRange()
    memory_mib: NumberRange = NumberRange()
    gpus: NumberRange = NumberRange()
    generation: NumberRange = NumberRange()
    gpu_names: frozenset[str] = frozenset()
    architectures: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()
    capacity_types: frozenset[str] = frozenset()
    price_max: int | None = None
    """Micro-dollars per hour."""
    is_burstable: bool | None = None
    pool: Requirements = {}
    """Requirements of a NodePool that types must meet as well."""
    labels: Requirements = {}
    """Labels that the NodePool sets on its nodes."""


class InstanceChoice(Struct, frozen=True):
    """An instance type that meets criteria, and its offerings."""

    type: InstanceType
    offerings: tuple[Offering, ...]
    """The offerings that meet the criteria."""

    @property
    def price(self) -> int:
        """The lowest price, in micro-dollars per hour."""
        return min(each.price for each in self.offerings)

    def price_as(self, capacity_type: str) -> int | None:
        """Return the lowest price in a capacity type; None if there is no such offering."""
        prices = [each.price for each in self.offerings if each.capacity_type == capacity_type]
        return min(prices, default=None)

    @property
    def vcpus(self) -> int:
        return self.type.capacity[CPU] // _MILLI

    @property
    def memory_mib(self) -> int:
        return _memory_mib(self.type)

    @property
    def gpus(self) -> int:
        return _gpu_count(self.type)

    @property
    def gpu_name(self) -> str:
        return label(self.type, INSTANCE_GPU_NAME)

    @property
    def architecture(self) -> str:
        return _only(self.type.requirements.get(ARCH))


def choose(types: Iterable[InstanceType], criteria: Criteria) -> list[InstanceChoice]:
    """Return the types and offerings that meet criteria, cheapest first, then by name."""
    choices = [
        InstanceChoice(each, offerings)
        for each in types
        if _meets(each, criteria) and (offerings := tuple(_offerings(each, criteria)))
    ]
    return sorted(choices, key=lambda each: (each.price, each.type.name))


def requirements_of(
    criteria: Criteria, choices: Sequence[InstanceChoice], *, is_cut: bool = False
) -> list[Requirement]:
    """
    Return requirements of a NodePool that allow the chosen types.

    They use labels where possible, so that they also allow future types. They list the types by
    name if labels cannot express the criteria: a price, GPUs that are optional, or a list cut to
    the cheapest types (`is_cut`).
    """
    found = [each for _, each in sorted(criteria.pool.items())]
    domain = next((each for each in _DOMAINS if _has_labels(choices, each)), "")
    if domain and not is_cut and _can_be_labels(criteria):
        found += _label_requirements(criteria, domain)
    else:
        found.append(one_of(INSTANCE_TYPE, *(each.type.name for each in choices)))
    for key, values in (
        (ARCH, criteria.architectures),
        (ZONE, criteria.zones),
        (CAPACITY_TYPE, criteria.capacity_types),
    ):
        if values:
            found.append(one_of(key, *values))
    return found


def label(kind: InstanceType, name: str) -> str:
    """Return a label of a type, with the prefix of EC2NodeClasses or EKS Auto Mode, or nothing."""
    found = (_only(kind.requirements.get(domain + name)) for domain in _DOMAINS)
    return next((each for each in found if each), "")


def _meets(kind: InstanceType, criteria: Criteria) -> bool:
    if why_disjoint(kind.requirements, criteria.pool) or why_disjoint(
        kind.requirements, criteria.labels
    ):
        return False
    architecture = _only(kind.requirements.get(ARCH))
    category = label(kind, INSTANCE_CATEGORY)
    return (
        kind.capacity[CPU] // _MILLI in criteria.vcpus
        and _memory_mib(kind) in criteria.memory_mib
        and _has_gpus(kind, criteria.gpus)
        and _is_number_in(label(kind, INSTANCE_GENERATION), criteria.generation)
        and _is_among(architecture, criteria.architectures)
        and _is_among(category, criteria.categories)
        and _is_among(label(kind, INSTANCE_FAMILY), criteria.families)
        and _is_among(label(kind, INSTANCE_GPU_NAME), criteria.gpu_names)
        and (criteria.is_burstable is None or criteria.is_burstable == (category == _BURSTABLE))
    )


def _offerings(kind: InstanceType, criteria: Criteria) -> Iterator[Offering]:
    for each in kind.offerings:
        if (
            each.is_launchable
            and (criteria.price_max is None or each.price <= criteria.price_max)
            and _is_among(each.zone, criteria.zones)
            and _is_among(each.capacity_type, criteria.capacity_types)
            and why_disjoint(each.requirements, criteria.pool) is None
        ):
            yield each


def _can_be_labels(criteria: Criteria) -> bool:
    may_lack_gpus = not criteria.gpus.is_open and criteria.gpus.most != 0 and 0 in criteria.gpus
    return criteria.price_max is None and not may_lack_gpus


def _label_requirements(criteria: Criteria, domain: str) -> Iterator[Requirement]:
    for name, span in (
        (INSTANCE_CPU, criteria.vcpus),
        (INSTANCE_MEMORY, criteria.memory_mib),
        (INSTANCE_GENERATION, criteria.generation),
    ):
        if not span.is_open:
            yield _within(domain + name, span)
    if criteria.gpus.most == 0:
        yield require(domain + INSTANCE_GPU_COUNT, Operator.DOES_NOT_EXIST)
    elif not criteria.gpus.is_open:
        yield _within(domain + INSTANCE_GPU_COUNT, criteria.gpus)
    for name, values in (
        (INSTANCE_CATEGORY, criteria.categories),
        (INSTANCE_FAMILY, criteria.families),
        (INSTANCE_GPU_NAME, criteria.gpu_names),
    ):
        if values:
            yield one_of(domain + name, *values)
    if criteria.is_burstable is not None:
        operator = Operator.IN if criteria.is_burstable else Operator.NOT_IN
        yield require(domain + INSTANCE_CATEGORY, operator, [_BURSTABLE])


def _within(key: str, span: NumberRange) -> Requirement:
    if span.least == span.most:
        return one_of(key, str(span.least))
    return Requirement(key, complement=True, gte=span.least, lte=span.most)


def _has_labels(choices: Sequence[InstanceChoice], domain: str) -> bool:
    return any(domain + INSTANCE_CPU in each.type.requirements for each in choices[:1])


def _is_among(value: str, values: frozenset[str]) -> bool:
    return not values or value in values


def _is_number_in(text: str, span: NumberRange) -> bool:
    number = as_integer(text)
    return span.is_open or (number is not None and number in span)


def _memory_mib(kind: InstanceType) -> int:
    """Return the memory of the machine in MiB; nodes report a little less."""
    labelled = as_integer(label(kind, INSTANCE_MEMORY))
    return kind.capacity[MEMORY] // _MIB if labelled is None else labelled


def _has_gpus(kind: InstanceType, span: NumberRange) -> bool:
    # A type with a fraction of a GPU has a GPU name and a count of 0.
    if span.most == 0:
        return not label(kind, INSTANCE_GPU_NAME) and not _gpu_count(kind)
    return _gpu_count(kind) in span


def _gpu_count(kind: InstanceType) -> int:
    return sum(kind.capacity.get(each, 0) for each in _GPUS)


def _only(requirement: Requirement | None) -> str:
    if requirement is None or requirement.complement or len(requirement.values) != 1:
        return ""
    return min(requirement.values)
