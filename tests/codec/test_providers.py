import pytest

from karpy.codec.providers import edits, nearest


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("zone", "zone", 0),
        ("zone", "zones", 1),
        ("zone", "znoe", 1),
        ("category", "catgory", 1),
        ("memory", "meory", 1),
        ("capacity-tier", "capacity-type", None),
    ],
)
def test_a_swap_counts_as_one_edit(one: str, other: str, distance: int | None) -> None:
    assert (edits(one, other, 2), edits(other, one, 2)) == (distance, distance)


@pytest.mark.parametrize("key", ["team", "capacity-spread", "example.com/arch", "workload"])
def test_a_custom_label_is_not_taken_for_a_misspelling(key: str) -> None:
    assert nearest(key, ["kubernetes.io/arch", "karpenter.sh/capacity-type"]) is None
