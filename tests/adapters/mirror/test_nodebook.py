from karpy.adapters.mirror.nodebook import NodeBook
from karpy.model.labels import INITIALIZED, NODE_POOL, REGISTERED
from karpy.model.nodes import KubeNode, NodeClaim

READY = {NODE_POOL: "default", REGISTERED: "true", INITIALIZED: "true"}


def claim(name: str, provider_id: str = "", node_name: str = "") -> NodeClaim:
    labels = {NODE_POOL: "default"}
    return NodeClaim(name, labels=labels, provider_id=provider_id, node_name=node_name)


def test_a_node_and_its_claim_are_one() -> None:
    book = NodeBook()
    book.claims.put("c1", claim("c1", provider_id="kwok://n1"))
    book.nodes.put("n1", KubeNode("n1", labels=READY, provider_id="kwok://n1"))

    joined = book.joined()

    assert [(node.name, node.claim) for node in joined] == [("n1", "c1")]


def test_a_claim_is_found_by_the_name_of_its_node_too() -> None:
    book = NodeBook()
    book.claims.put("c1", claim("c1", node_name="n1"))
    book.nodes.put("n1", KubeNode("n1", labels=READY))

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
    book.nodes.put("n1", KubeNode("n1"))
    book.nodes.put("n2", KubeNode("n2"))
    before = book.joined()

    book.nodes.put("n2", KubeNode("n2", provider_id="kwok://n2"))
    after = book.joined()

    assert after[0] is before[0]
    assert after[1] is not before[1]


def test_nothing_new_gives_the_same_nodes() -> None:
    book = NodeBook()
    book.nodes.put("n1", KubeNode("n1"))

    assert book.joined() is book.joined()
