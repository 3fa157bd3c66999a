"""Lists, pages, selectors."""

import pytest

from karpy.errors import BadRequest
from karpy.model.kinds import CONFIG_MAP, NODE, POD
from karpy.ports.objects import Query
from tests.contract.plain import config_map, meta, node, pod
from tests.contract.worlds import World


async def names(world: World, labels: str = "", fields: str = "") -> list[str]:
    page = await world.objects.list(POD, Query(world.namespace, labels, fields))
    return [each["metadata"]["name"] for each in page.items]


async def some_pods(world: World) -> None:
    await world.create(POD, pod("c", labels={"app": "web", "tier": "front"}))
    await world.create(POD, pod("a", labels={"app": "web"}))
    await world.create(POD, pod("b", labels={"app": "db"}))


async def test_a_list_is_ordered_by_name(world: World) -> None:
    await some_pods(world)

    assert await names(world) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("app=web", ["a", "c"]),
        ("app==web,tier=front", ["c"]),
        ("app!=web", ["b"]),
        ("tier", ["c"]),
        ("!tier", ["a", "b"]),
        ("app in (web,db)", ["a", "b", "c"]),
        ("app notin (web)", ["b"]),
        ("tier!=front", ["a", "b"]),
        ("app=nobody", []),
    ],
)
async def test_labels_select(world: World, labels: str, expected: list[str]) -> None:
    await some_pods(world)

    assert await names(world, labels=labels) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name!=a", ["b", "c"]),
        ("status.phase=Pending", ["a", "b", "c"]),
        ("spec.nodeName=", ["a", "b", "c"]),
        ("spec.nodeName=n1", []),
        ("spec.schedulerName=nobody,metadata.name=b", ["b"]),
    ],
)
async def test_fields_select(world: World, fields: str, expected: list[str]) -> None:
    await some_pods(world)

    assert await names(world, fields=fields) == expected


@pytest.mark.parametrize("fields", ["spec.hostNetworking=x", "metadata.labels=x"])
async def test_a_field_that_cannot_be_selected_by_is_refused(world: World, fields: str) -> None:
    with pytest.raises(BadRequest):
        await names(world, fields=fields)


@pytest.mark.parametrize("labels", ["a in b", "a b", "=x", "a=b=c"])
async def test_a_selector_must_be_one(world: World, labels: str) -> None:
    with pytest.raises(BadRequest):
        await names(world, labels=labels)


async def test_pages_make_the_list(world: World) -> None:
    for name in "abcde":
        await world.create(CONFIG_MAP, config_map(name))
    query = Query(world.namespace, fields="metadata.name!=kube-root-ca.crt")

    first = await world.objects.list(CONFIG_MAP, query, limit=2)
    second = await world.objects.list(CONFIG_MAP, query, limit=2, token=first.token)
    third = await world.objects.list(CONFIG_MAP, query, limit=2, token=second.token)

    pages = [[each["metadata"]["name"] for each in page.items] for page in (first, second, third)]
    assert pages == [["a", "b"], ["c", "d"], ["e"]]
    assert third.token == ""
    assert first.version == second.version == third.version


async def test_pages_show_the_moment_of_the_first_one(world: World) -> None:
    for name in "abc":
        await world.create(CONFIG_MAP, config_map(name))
    query = Query(world.namespace, fields="metadata.name!=kube-root-ca.crt")
    first = await world.objects.list(CONFIG_MAP, query, limit=2)

    await world.create(CONFIG_MAP, config_map("bb"))
    await world.objects.delete(CONFIG_MAP, "c", namespace=world.namespace)
    second = await world.objects.list(CONFIG_MAP, query, limit=2, token=first.token)

    assert [each["metadata"]["name"] for each in second.items] == ["c"]


async def test_a_page_must_be_continued_with_its_own_token(world: World) -> None:
    page = await world.objects.list(CONFIG_MAP, Query(world.namespace))

    with pytest.raises(BadRequest):
        await world.objects.list(CONFIG_MAP, limit=1, token=f"nonsense {page.version}")


async def test_objects_of_all_namespaces_are_listed_together(world: World) -> None:
    await world.create(CONFIG_MAP, config_map("mine"))
    await world.create(CONFIG_MAP, {"metadata": meta("theirs", namespace="default")})

    page = await world.objects.list(CONFIG_MAP)
    await world.objects.delete(CONFIG_MAP, "theirs", namespace="default")

    places = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in page.items}
    assert {(world.namespace, "mine"), ("default", "theirs")} <= places


async def test_nodes_are_found_by_whether_they_are_cordoned(world: World) -> None:
    await world.create(NODE, node("open"))
    await world.create(NODE, {**node("shut"), "spec": {"unschedulable": True}})

    page = await world.objects.list(NODE, Query(fields="spec.unschedulable=true"))

    assert [each["metadata"]["name"] for each in page.items] == ["shut"]
