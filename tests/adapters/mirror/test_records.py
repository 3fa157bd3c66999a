from karpy.adapters.mirror.records import IndexedShelf, Shelf


def test_a_write_that_changes_nothing_is_no_change() -> None:
    shelf: Shelf[str] = Shelf()
    heard: list[tuple[str, str | None, str | None]] = []
    shelf.listen(lambda *news: heard.append(news))

    changes = [shelf.put("a", "x"), shelf.put("a", "x"), shelf.put("b", None)]

    assert changes == [True, False, False]
    assert shelf.version == 1
    assert heard == [("a", None, "x")]


def test_an_index_follows_its_values() -> None:
    """A pod that moves to another node leaves the first."""
    shelf: IndexedShelf[str] = IndexedShelf(lambda value: value.partition("@")[2])
    shelf.put("p1", "p1@n1")
    shelf.put("p2", "p2@n1")

    shelf.put("p1", "p1@n2")
    shelf.put("p2", None)

    assert list(shelf.by_index("n1")) == []
    assert list(shelf.by_index("n2")) == ["p1@n2"]
    assert list(shelf.marks()) == ["n2"]


def test_a_value_without_a_mark_is_in_no_index() -> None:
    shelf: IndexedShelf[str] = IndexedShelf(lambda value: value.partition("@")[2])

    shelf.put("p1", "p1")

    assert list(shelf.marks()) == []
    assert shelf.values == {"p1": "p1"}
