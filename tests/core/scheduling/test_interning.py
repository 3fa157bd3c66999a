from karpy.core.scheduling.interning import LabelSets
from karpy.model.labels import ARCH, HOSTNAME
from karpy.model.nodes import Node


def test_nodes_that_differ_by_their_hostname_only_share_a_set() -> None:
    sets = LabelSets()

    found = [sets.find(Node(name, {HOSTNAME: name, "a": "1"}))[1] for name in ("x", "y")]

    assert found[0] is found[1]


def test_nodes_that_are_labelled_otherwise_do_not() -> None:
    sets = LabelSets()

    found = [sets.find(Node("x", {HOSTNAME: "x", "a": value}))[1].index for value in ("1", "2")]

    assert found == [0, 1]


def test_a_node_without_a_hostname_is_known_by_its_name() -> None:
    labels, _ = LabelSets().find(Node("x", {"a": "1"}))

    assert labels == {HOSTNAME: "x", "a": "1"}


def test_an_empty_hostname_is_none() -> None:
    labels, _ = LabelSets().find(Node("x", {HOSTNAME: ""}))

    assert labels == {HOSTNAME: "x"}


def test_an_old_name_of_a_label_counts_like_the_new_one() -> None:
    labels, _ = LabelSets().find(Node("x", {HOSTNAME: "x", "beta.kubernetes.io/arch": "arm64"}))

    assert labels[ARCH] == "arm64"
