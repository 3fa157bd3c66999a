import re
from collections import Counter

import pytest

from karpy.adapters.clouds.kwok.naming import draw, name_of, node_name, provider_id


def test_a_claim_always_gets_the_same_name() -> None:
    first, again = node_name("web-x7", "uid-1"), node_name("web-x7", "uid-1")

    assert first == again
    assert re.fullmatch(r"kwok-web-x7-[a-z]+-[a-z]+-\d{1,10}", first)


def test_a_claim_of_the_same_name_that_came_later_gets_another_one() -> None:
    assert node_name("web-x7", "uid-1") != node_name("web-x7", "uid-2")


@pytest.mark.parametrize("other", ["", "kwok://", "kwok:/n1", "aws:///eu-west-1a/i-1", "n1"])
def test_machines_of_other_clouds_have_no_name(other: str) -> None:
    assert name_of(other) is None


def test_a_provider_id_leads_back_to_its_name() -> None:
    assert name_of(provider_id("n1")) == "n1"


def test_tokens_draw_evenly() -> None:
    drawn = Counter(draw(f"uid-{number}", "place", 4) for number in range(400))

    assert sorted(drawn) == [0, 1, 2, 3]
    assert min(drawn.values()) > 70
