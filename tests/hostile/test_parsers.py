"""The time of every parser of a field is linear in the length of its text."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from types import FrameType
from typing import Any, Final

import pytest

from karpy.adapters.mirror.records import CLAIMS
from karpy.codec.crds import PRICE_LENGTH_MAX, read_overlay
from karpy.codec.disruption import read_policy
from karpy.codec.fields import FieldInvalid, Fields, JsonObject, read_duration
from karpy.codec.fieldselectors import read_field_selector
from karpy.codec.labelselectors import SELECTOR_LENGTH_MAX, read_label_selector
from karpy.codec.pods import PodReader
from karpy.codec.records import read_claim_record
from karpy.codec.syntax import is_label_key, is_label_value
from karpy.codec.unreadable import bound_pod
from karpy.core.disruption.budgets import permit
from karpy.core.lifecycle.eviction import protection_of
from karpy.errors import BadRequest
from karpy.model.cron import SCHEDULE_LENGTH_MAX, ScheduleInvalid, read_schedule
from karpy.model.kinds import POD
from karpy.model.pools import DisruptionReason
from karpy.model.requirements import as_integer
from karpy.model.resources import AMOUNT_MAX, MEMORY, QUANTITY_LENGTH_MAX, parse_quantity
from karpy.model.times import (
    DURATION_LENGTH_MAX,
    LONGEST,
    MOMENT_LENGTH_MAX,
    clamp_moment,
    parse_duration,
    parse_moment,
    span,
)
from karpy.sim.store.quantities import QUANTITY_LENGTH_MAX as CANONICAL_LENGTH_MAX
from karpy.sim.store.quantities import canonical
from karpy.sim.workloads.shares import share
from tests.builders.pods import NOON

REFUSED: Final = (BadRequest, FieldInvalid, ScheduleInvalid, ValueError)
FEW, FACTOR = 250, 8
SLACK: Final = 0.25
"""Seconds of tolerance for a busy machine."""


def read_pod_share(text: str) -> object:
    return share(text, 100, is_rounded_up=True)


def read_version(text: str) -> object:
    """Compare a NodeClaim with its known version, as the mirror does."""
    return CLAIMS.from_object(claim(resourceVersion=text))


def claim(**meta: object) -> JsonObject:
    return {"metadata": {"name": "c", **meta}, "spec": {}, "status": {}}


def read_price(text: str) -> object:
    return read_overlay(Fields({"metadata": {"name": "o"}, "spec": {"priceAdjustment": text}}))


def read_selector(text: str) -> object:
    return read_field_selector(POD, text)


def read_budget(text: str) -> object:
    """Read a budget, and ask what it permits."""
    policy = read_policy(Fields({"spec": {"disruption": {"budgets": [{"nodes": text}]}}}))
    return permit(policy, DisruptionReason.EMPTY, 9, NOON)


def read_protection(text: str) -> object:
    """Read a pod, and ask whether it may be disturbed."""
    annotations = {"karpenter.sh/do-not-disrupt": text}
    pod = {"metadata": {"name": "p", "annotations": annotations}}
    return protection_of(bound_pod(pod), NOON)


PARSERS: Final[dict[str, tuple[Callable[[str], object], tuple[str, ...]]]] = {
    "duration": (parse_duration, ("{1}", "{1}h", ".{1}", "{1h}", "{1.}", "{1h}x", "-{9}h")),
    "protection": (read_protection, ("{1}", "{1}h", "{1h}")),
    "moment": (parse_moment, ("{2}", "2026-01-01T00:00:00.{0}Z", "2026-01-01T00:00:00Z{ }")),
    "quantity": (
        lambda text: parse_quantity(text, MEMORY),
        ("{1}", "{1}x", "1e{9}", "{1}.{1}", ".{0}1", "{ }"),
    ),
    "canonical quantity": (canonical, ("{1}", "{1}x", "1e{9}", "{1}.{1}", ".{0}1", "1e-{9}")),
    "schedule": (
        read_schedule,
        (
            "{*,}",
            "{1-}",
            "*/{1} * * * *",
            "@every {1}",
            "@every {1}h",
            "{ }",
            "{* }",
            "{1,}2 * * * *",
        ),
    ),
    "budget": (read_budget, ("{9}", "{9}%", "{0}1%", "{9}x")),
    "price": (read_price, ("+{1}", "+{1}x", "+{1}%", "+{1}.{1}", "-{0}%")),
    "integer": (as_integer, ("{0}", "{0}x", "{9}", "-{0}1", "{+}")),
    "share": (read_pod_share, ("{9}%", "{0}1%", "{9}")),
    "version": (read_version, ("{9}", "{0}1")),
    "label key": (is_label_key, ("{a}", "{a.}", "{a-}/a", "{a.}a/a", "{/}")),
    "label value": (is_label_value, ("{a}", "{a.}", "{-}")),
    "label selector": (
        read_label_selector,
        ("{a,}", "{a,}a", "a in ({b,}b)", "{ }a", "a{ }", "{!}", "{(}", "a={ }b", "a in ({(})"),
    ),
    "field selector": (
        read_selector,
        ("{metadata.name=a,}", "{=}", "{\\}", "metadata.name={\\,}", "{,}", "{a}", "{!}="),
    ),
}
ATTACKS: Final = [(name, form) for name, (_, forms) in PARSERS.items() for form in forms]


def grown(form: str, count: int) -> str:
    """Repeat the text in braces: `{1}h` becomes `111h`."""
    parts = [each.partition("}") for each in form.split("{")]
    first, *rest = parts
    return first[0] + "".join(repeated * count + after for repeated, _, after in rest)


def parse(name: str, text: str) -> None:
    """Parse a text; errors are allowed."""
    with suppress(*REFUSED):
        PARSERS[name][0](text)


def lines_of(call: Callable[[], object]) -> int:
    """Count the lines of Python that a call executes."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal count
        del frame, arg
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def seconds_of(call: Callable[[], object]) -> float:
    """Measure the CPU time of a call, including regular expressions."""
    start = time.process_time()
    call()
    return time.process_time() - start


@pytest.mark.parametrize(("name", "form"), ATTACKS)
def test_the_steps_of_a_parser_grow_no_faster_than_its_text(name: str, form: str) -> None:
    short, long = grown(form, FEW), grown(form, FACTOR * FEW)
    parse(name, short)

    few = lines_of(lambda: parse(name, short + " "))
    many = lines_of(lambda: parse(name, long + " "))

    assert many <= 2 * FACTOR * (few + 50)


@pytest.mark.parametrize(("name", "form"), ATTACKS)
def test_no_regular_expression_of_a_parser_backtracks(name: str, form: str) -> None:
    short, long = grown(form, FEW), grown(form, FACTOR * FEW)

    few = seconds_of(lambda: parse(name, short))
    many = seconds_of(lambda: parse(name, long))

    assert many <= 10 * FACTOR * few + SLACK


@pytest.mark.parametrize(("name", "form"), ATTACKS)
def test_a_megabyte_is_read_or_refused_at_once(name: str, form: str) -> None:
    took = seconds_of(lambda: parse(name, grown(form, 1_000_000)))

    assert took < 10


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (parse_duration, "0" * DURATION_LENGTH_MAX + "1h"),
        (parse_moment, "2026-01-01T00:00:00." + "0" * MOMENT_LENGTH_MAX + "Z"),
        (canonical, "0" * CANONICAL_LENGTH_MAX + "1"),
    ],
)
def test_what_is_longer_than_its_limit_is_none(parser: Callable[[str], object], text: str) -> None:
    assert parser(text) is None


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (lambda text: parse_quantity(text, MEMORY), "0" * QUANTITY_LENGTH_MAX + "1"),
        (read_schedule, "* * * * " + "*," * SCHEDULE_LENGTH_MAX + "*"),
        (read_price, "+" + "0" * PRICE_LENGTH_MAX + "1"),
        (read_label_selector, "a," * SELECTOR_LENGTH_MAX + "a"),
        (read_selector, "metadata.name=a," * SELECTOR_LENGTH_MAX),
    ],
)
def test_what_is_longer_than_its_limit_is_refused_in_few_words(
    parser: Callable[[str], object], text: str
) -> None:
    with pytest.raises(REFUSED) as caught:
        parser(text)

    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2562047h47m16.854775807s", LONGEST),
        ("-2562047h47m16.854775807s", -LONGEST),
        ("2562047h47m16.854775808s", None),
        ("9223372036854775807ns", LONGEST),
        ("9223372036854775808ns", None),
        ("100000000h", None),
        ("-100000000h", None),
        ("9" * 60 + "h", None),
    ],
)
def test_a_duration_is_no_longer_than_go_can_say(text: str, expected: timedelta | None) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2562047h47m16.854775808s", LONGEST),
        ("100000000h", LONGEST),
        ("-100000000h", -LONGEST),
        ("soon", None),
        ("1" * 100 + "h", None),
    ],
)
def test_a_duration_that_saturates_stops_at_the_longest(
    text: str, expected: timedelta | None
) -> None:
    assert parse_duration(text, saturates=True) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, timedelta()),
        (30, timedelta(seconds=30)),
        (2**63 - 1, LONGEST),
        (-(2**63), -LONGEST),
        (10**400, LONGEST),
        (float("inf"), LONGEST),
    ],
)
def test_any_number_of_seconds_is_a_duration(seconds: float, expected: timedelta) -> None:
    assert span(seconds) == expected


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_any_three_durations_can_be_added_to_a_moment(text: str) -> None:
    moment = parse_moment(text)

    assert moment is not None
    assert moment - 3 * LONGEST < moment < moment + 3 * LONGEST
    assert clamp_moment(moment) == moment


def test_an_object_says_no_duration_that_cannot_be_added_to_its_moments() -> None:
    obj = claim(creationTimestamp="9999-12-31T23:59:59Z")
    obj["spec"] = {"expireAfter": "100000000h"}

    record = read_claim_record(Fields(obj))

    assert record.expire_after == LONGEST
    assert record.meta.created is not None
    assert record.meta.created + record.expire_after > record.meta.created


def test_a_duration_that_is_none_is_shown_in_part() -> None:
    fields = Fields({"expireAfter": "9" * 20_000})

    with pytest.raises(FieldInvalid) as caught:
        read_duration(fields, "expireAfter")

    assert caught.value.problem == f"is `{'9' * 60}...`, not a duration"


def test_a_thousand_containers_ask_for_no_more_than_64_bits_hold() -> None:
    most = {"requests": {"cpu": str(AMOUNT_MAX), "memory": str(AMOUNT_MAX)}}
    containers = [{"name": f"c{index}", "resources": most} for index in range(1000)]

    pod = PodReader().read({"metadata": {"name": "p"}, "spec": {"containers": containers}})

    assert pod.requests == {"cpu": AMOUNT_MAX, "memory": AMOUNT_MAX, "pods": 1}
