"""Where nodes may come up, and whether two may come up in the same place."""

import pytest

from karpy.core.check.constraints import Domains, as_domains, join_domains
from karpy.core.check.scene import Tally
from tests.builders import exists, is_in, not_in

NOT_RED = as_domains(exists("team") & not_in("team", "red"))
RED, BLUE = as_domains(is_in("team", "red")), as_domains(is_in("team", "blue"))
NOWHERE = as_domains(None)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (RED, RED, True),
        (RED, BLUE, False),
        (NOT_RED, BLUE, True),
        (NOT_RED, RED, False),
        (NOT_RED, NOT_RED, True),
        (NOT_RED, NOWHERE, False),
        (join_domains([NOT_RED, RED]), RED, True),
        (join_domains([NOT_RED, as_domains(exists("team"))]), RED, True),
    ],
)
def test_two_nodes_may_come_up_in_the_same_domain(
    one: Domains, other: Domains, *, expected: bool
) -> None:
    assert (one.may_meet(other), other.may_meet(one)) == (expected, expected)


def test_those_that_shun_a_domain_are_not_counted_there() -> None:
    tally = Tally([NOT_RED, RED, BLUE, NOWHERE])

    assert (tally["red"], tally["blue"], tally.most(NOT_RED)) == (1, 2, (2, "any"))
