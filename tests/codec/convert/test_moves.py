from syrupy.assertion import SnapshotAssertion

from karpy.codec.comments import Comment, Side
from karpy.codec.convert.moves import placed
from karpy.codec.convert.objects import Found
from karpy.codec.convert.yamltexts import write_products
from tests.codec.convert.manifests import COMMENTED
from tests.codec.convert.texts import converted

OLD = {
    "kind": "Old",
    "spec": {"a": [{"key": "x"}, {"key": "y"}, {"key": "x"}], "b": {"c": 1}, "gone": 1},
}
NEW = {"kind": "New", "spec": {"d": [{"key": "y"}, {"key": "x"}, {"key": "x"}], "e": {"c": 1}}}
MOVES = {"spec.a": ("New:spec.d",), "spec.b.*": ("New:spec.none.*", "New:spec.e.*")}


def moved(*path: str | int, side: Side = Side.ABOVE) -> list[Comment]:
    comment = Comment(path, side, "# why")
    (made,) = placed(Found("", "", OLD, comments=(comment,)), MOVES, [NEW])
    return made


def test_a_comment_goes_where_its_field_goes() -> None:
    assert moved("spec", "b", "c") == [Comment(("spec", "e", "c"), Side.ABOVE, "# why")]


def test_entries_of_a_list_are_found_by_their_keys() -> None:
    assert [moved("spec", "a", index, "key")[0].path[2] for index in range(3)] == [1, 0, 2]


def test_a_comment_on_a_removed_field_goes_to_the_head_with_its_path() -> None:
    assert moved("spec", "gone") == [Comment((), Side.ABOVE, "# spec.gone: why")]


def test_a_comment_at_the_end_of_a_document_stays_there() -> None:
    assert moved(side=Side.BELOW) == [Comment((), Side.BELOW, "# why")]


def test_comments_on_a_status_are_left_out() -> None:
    assert moved("status", "gone") == []


def test_comments_of_a_provisioner_are_kept(snapshot: SnapshotAssertion) -> None:
    assert write_products(converted(COMMENTED, role="Nodes").products) == snapshot


def test_comments_of_a_workload_and_a_cluster_file_are_kept() -> None:
    workload = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  nodeSelector:\n"
        "    karpenter.sh/provisioner-name: a # ours\n"
    )
    cluster = (
        "karpenter:\n  node_pools:\n    web:\n      labels: {a: b} # tier\n"
        "      requirements:\n        # small\n        size: {key: a/b, operator: Exists}\n"
        "defaults: {cluster_name: shop}\n"
    )

    written = write_products(converted(workload, cluster).products)

    assert "    karpenter.sh/nodepool: a  # ours\n" in written
    assert "      labels:  # tier\n" in written
    assert "      # small\n      - key: a/b\n" in written


def test_comments_of_a_list_go_to_its_items() -> None:
    items = "apiVersion: v1\nkind: List\nitems:\n# first\n- apiVersion: karpenter.sh/v1beta1\n"
    items += "  kind: NodePool\n  metadata: {name: a} # a\n  spec: {template: {spec:\n"
    items += "    {nodeClassRef: {name: a}, requirements: []}}}\n"

    written = write_products(converted(items).products)

    assert written.startswith("---\n# first\napiVersion: karpenter.sh/v1\n")
    assert "metadata:  # a\n" in written
