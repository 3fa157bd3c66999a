"""Pods that nobody has read are found by their labels all the same."""

from collections.abc import Mapping

from karpy.codec.podcrowd import BETWEEN_VALUES, WrittenCrowd
from karpy.model.census import Alike
from tests.codec.plain import Json

PAIR = f"a{BETWEEN_VALUES}b"


def crowd(*pods: tuple[str, Mapping[str, str]]) -> WrittenCrowd:
    """Have pods on nodes with labels, sorted as a reader of pods sorts them."""
    objs: dict[str, list[Json]] = {}
    for node, labels in pods:
        obj = {"metadata": {"namespace": "shop", "labels": labels}, "spec": {"nodeName": node}}
        objs.setdefault(BETWEEN_VALUES.join(labels.values()), []).append(obj)
    return WrittenCrowd(objs)


def nodes(found: WrittenCrowd, *labels: tuple[str, str]) -> list[str]:
    return [node for row in found.having(dict.fromkeys(labels).keys()) for node in row.nodes]


def test_those_with_any_of_some_labels_are_found() -> None:
    found = crowd(("n0", {"app": "a"}), ("n1", {"app": "b", "tier": "web"}), ("n2", {}))

    assert nodes(found, ("app", "a"), ("tier", "web")) == ["n0", "n1"]


def test_the_same_value_of_another_label_does_not_count() -> None:
    assert nodes(crowd(("n0", {"app": "a"}), ("n1", {"tier": "a"})), ("app", "a")) == ["n0"]


def test_pods_with_the_same_labels_come_together() -> None:
    labels = {"app": "a"}

    found = list(crowd(("n0", labels), ("n1", {"app": "b"}), ("n2", labels)).having())

    assert found == [Alike(labels, "shop", ["n0", "n2"]), Alike({"app": "b"}, "shop", ["n1"])]


def test_values_that_look_like_two_are_one() -> None:
    found = crowd(("n0", {"app": PAIR}), ("n1", {"app": "a", "tier": "b"}))

    assert nodes(found, ("app", PAIR)) == ["n0"]
    assert nodes(found, ("app", "a")) == ["n1"]
