import pytest

from karpy.errors import BadRequest, Expired
from karpy.model.kinds import NODE
from karpy.ports.objects import EVERYTHING, Page, Query
from karpy.sim.store.store import Store
from tests.sim.store.worlds import SetClock, add_nodes


@pytest.fixture
def five(store: Store) -> Store:
    for name in "edcba":
        store.create(NODE, {"metadata": {"name": name, "labels": {"of": name}}})
    return store


def names(page: Page) -> list[str]:
    return [each["metadata"]["name"] for each in page.items]


def test_pages_follow_each_other_and_the_last_has_no_token(five: Store) -> None:
    one = five.page(NODE, EVERYTHING, limit=2)
    two = five.page(NODE, EVERYTHING, limit=2, token=one.token)
    three = five.page(NODE, EVERYTHING, limit=2, token=two.token)

    assert [names(each) for each in (one, two, three)] == [["a", "b"], ["c", "d"], ["e"]]
    assert [each.remaining for each in (one, two, three)] == [3, 1, None]
    assert three.token == ""


def test_all_pages_show_the_moment_of_the_first(five: Store) -> None:
    one = five.page(NODE, EVERYTHING, limit=2)
    five.create(NODE, {"metadata": {"name": "c2"}})
    five.delete(NODE, "d")

    rest = five.page(NODE, EVERYTHING, limit=0, token=one.token)

    assert names(rest) == ["c", "d", "e"]
    assert rest.version == one.version


def test_a_list_with_a_selector_does_not_know_how_many_remain(five: Store) -> None:
    page = five.page(NODE, Query(labels="of in (a,b,c)"), limit=1)

    assert names(page) == ["a"]
    assert page.remaining is None


def test_a_token_that_history_has_forgotten_is_gone(clock: SetClock) -> None:
    store = Store(clock, history=3)
    add_nodes(store, range(5))
    token = store.page(NODE, EVERYTHING, limit=1).token
    add_nodes(store, range(5, 20))

    with pytest.raises(Expired, match="The provided continue parameter is too old"):
        store.page(NODE, EVERYTHING, limit=1, token=token)


@pytest.mark.parametrize("token", ["x", "????", "e30", "bnVsbA"])
def test_a_made_up_token_is_refused(five: Store, token: str) -> None:
    with pytest.raises(BadRequest, match="continue key is not valid"):
        five.page(NODE, EVERYTHING, limit=1, token=token)
