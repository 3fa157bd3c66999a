from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from karpy.core.announcements import (
    is_awaited,
    launch_notices,
    nomination_notices,
    refusal_notices,
)
from karpy.model.notices import Notice
from karpy.model.verdicts import Nomination, Reason, Refusal, Verdict
from tests.builders import pod

WEB = pod("web")
VIRTUAL = replace(pod("spare"), is_virtual=True)
PODS = {each.key: each for each in (WEB, VIRTUAL)}
KEYS = tuple(PODS)
DISPLACED = "default/displaced"


def told(notices: Iterable[Notice]) -> list[tuple[str, str]]:
    return [(each.subject.name, each.reason) for each in notices]


def test_pods_that_do_not_exist_are_told_nothing() -> None:
    verdict = Verdict(refusals=(Refusal(Reason.NO_HOST, KEYS),))

    assert told(refusal_notices(verdict, PODS)) == [("web", "FailedScheduling")]
    assert told(launch_notices(KEYS, "web-1", PODS)) == [("web", "Nominated")]
    assert told(nomination_notices(Nomination("n", KEYS), "", PODS)) == [("web", "Nominated")]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [((VIRTUAL.key,), False), (KEYS, True), ((VIRTUAL.key, DISPLACED), True)],
)
def test_a_node_is_awaited_by_pods_that_exist(keys: tuple[str, ...], *, expected: bool) -> None:
    assert is_awaited(Nomination("n", keys), PODS) is expected
