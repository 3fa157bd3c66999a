from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karpy.adapters.mirror.nodebook import NodeBook
from karpy.model.labels import INITIALIZED, NODE_POOL, REGISTERED
from karpy.model.records import ClaimRecord
from tests.builders.nodes import kube_node, node_claim

READY = {NODE_POOL: "default", REGISTERED: "true", INITIALIZED: "true"}


def claim(name: str, provider_id: str = "", node_name: str = "") -> ClaimRecord:
    labels = {NODE_POOL: "default"}
    return node_claim(name, labels=labels, provider_id=provider_id, node_name=node_name)


def test_a_node_and_its_claim_are_one() -> None:
    book = NodeBook()
    book.claims.put("c1", claim("c1", provider_id="kwok://n1"))
    book.nodes.put("n1", kube_node("n1", labels=READY, provider_id="kwok://n1"))

    joined = book.joined()

    assert [(node.name, node.claim) for node in joined] == [("n1", "c1")]


def test_a_claim_is_found_by_the_name_of_its_node_too() -> None:
    book = NodeBook()
    book.claims.put("c1", claim("c1", node_name="n1"))
    book.nodes.put("n1", kube_node("n1", labels=READY))

    joined = book.joined()

    assert [(node.name, node.claim) for node in joined] == [("n1", "c1")]


def test_a_claim_without_a_node_is_in_flight() -> None:
    book = NodeBook()
    book.claims.put("c1", claim("c1", provider_id="kwok://n1"))

    joined = book.joined()

    assert [(node.name, node.claim, node.is_initialized) for node in joined] == [
        ("c1", "c1", False)
    ]


def test_only_what_changed_is_joined_again() -> None:
    book = NodeBook()
    book.nodes.put("n1", kube_node("n1"))
    book.nodes.put("n2", kube_node("n2"))
    before = book.joined()

    book.nodes.put("n2", kube_node("n2", provider_id="kwok://n2"))
    after = book.joined()

    assert after[0] is before[0]
    assert after[1] is not before[1]


def test_nothing_new_gives_the_same_nodes() -> None:
    book = NodeBook()
    book.nodes.put("n1", kube_node("n1"))

    assert book.joined() is book.joined()


_NUMBERS = st.integers(0, 3)
_NODES = st.tuples(
    st.just("node"), _NUMBERS, st.sampled_from(["", "p0", "p1", "p2"]), st.sampled_from(["", "x"])
)
_CLAIMS = st.tuples(st.just("claim"), _NUMBERS, st.booleans(), st.booleans())
_GONE = st.tuples(st.sampled_from(["no node", "no claim"]), _NUMBERS)
_LOOK = st.just(("look",))


def _write(book: NodeBook, step: tuple[Any, ...]) -> None:
    match step:
        case ("node", number, provider, label):
            node = kube_node(f"n{number}", labels={"l": label}, provider_id=provider)
            book.nodes.put(node.name, node)
        case ("claim", number, has_machine, has_node):
            machine, node_name = f"p{number}" * has_machine, f"n{number}" * has_node
            claim = node_claim(f"c{number}", provider_id=machine, node_name=node_name)
            book.claims.put(claim.name, claim)
        case ("no node", number):
            book.nodes.put(f"n{number}", None)
        case ("no claim", number):
            book.claims.put(f"c{number}", None)
        case _:
            book.joined()


@given(st.lists(st.one_of(_NODES, _CLAIMS, _GONE, _LOOK), max_size=30))
def test_what_is_joined_bit_by_bit_is_as_if_joined_at_once(steps: list[tuple[Any, ...]]) -> None:
    book, fresh = NodeBook(), NodeBook()

    for step in steps:
        _write(book, step)

    for name, node in book.nodes.values.items():
        fresh.nodes.put(name, node)
    for name, claim in book.claims.values.items():
        fresh.claims.put(name, claim)
    assert book.joined() == fresh.joined()
    assert {node.claim for node in book.joined() if node.claim} == set(book.claims.values)
