import pytest

from karpy.codec.convert.conversion import Conversion
from karpy.codec.convert.manifests import convert
from karpy.codec.convert.neighbours import nearness
from karpy.codec.documents import read_documents
from tests.codec.convert.manifests import NODE_CLASS
from tests.codec.convert.test_kubelets import pool
from tests.codec.convert.test_v1alpha1 import BARE, SETTINGS


def tree(**files: str) -> Conversion:
    """Convert files; `prod__pool` is `prod/pool.yaml`."""
    return convert(
        document
        for name, text in files.items()
        for document in read_documents(f"{name.replace('__', '/')}.yaml", text)
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("a/b/x.yaml", "a/b/y.yaml", 2), ("a/b/x.yaml", "a/c/b.yaml", 1), ("x.yaml", "a/x.yaml", 0)],
)
def test_files_are_near_by_the_folders_they_have_in_common(
    one: str, other: str, expected: int
) -> None:
    assert nearness(one, other) == expected
    assert nearness(one, one) > expected


def test_a_kubelet_goes_to_the_nearest_class_of_the_name() -> None:
    conversion = tree(
        prod__class=NODE_CLASS,
        test__class=NODE_CLASS,
        test__pool=pool("a", 10),
        prod__pool=pool("b"),
    )

    kubelets = [each["spec"].get("kubelet") for each in conversion.objects[:2]]
    assert kubelets == [None, {"maxPods": 10}]


def test_the_nearest_settings_count() -> None:
    other = SETTINGS.replace("Usual", "Other")

    conversion = tree(prod__settings=SETTINGS, test__settings=other, test__class=BARE)

    assert conversion.objects[-1]["spec"]["instanceProfile"] == "Other"


def test_objects_of_one_name_are_counted() -> None:
    conversion = tree(prod__pool=pool("a"), test__pool=pool("a"), test__class=NODE_CLASS)

    assert conversion.repeated == ("NodePool a",)
    assert [each.file for each in conversion.files] == [
        "prod/pool.yaml",
        "test/pool.yaml",
        "test/class.yaml",
    ]
    assert (conversion.total.read, conversion.total.converted) == (3, 3)
