import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.treefiles import is_kustomization, is_patch, kind_hint, why_unbuilt

OF_KUSTOMIZE = "kustomize.config.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("file", "value", "expected"),
    [
        ("base/kustomization.yaml", {"resources": []}, True),
        ("a.yaml", {"apiVersion": OF_KUSTOMIZE, "kind": "Kustomization"}, True),
        ("a.yaml", {"apiVersion": OF_KUSTOMIZE, "kind": "Component"}, True),
        ("a.yaml", {"resources": []}, False),
        ("kustomization.yaml", {"apiVersion": "v1", "kind": "Pod"}, False),
        (
            "a.yaml",
            {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"},
            False,
        ),
    ],
)
def test_a_kustomization_is_known_by_its_kind_or_file(
    file: str, value: JsonObject, expected: object
) -> None:
    assert is_kustomization(file, value) is expected


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"resources": ["a.yaml", "../base"], "patches": []}, ""),
        ({"patches": [{"path": "a.yaml"}]}, "`patches` would change what its files say"),
        (
            {"resources": ["https://example.com/a", "x?ref=1"], "namespace": "a"},
            (
                "`namespace` would change what its files say and "
                "`https://example.com/a`, `x?ref=1` would come from elsewhere"
            ),
        ),
    ],
)
def test_changes_of_a_kustomization_to_its_files_are_named(value: JsonObject, why: str) -> None:
    assert why_unbuilt(value) == why


def test_a_list_of_operations_is_a_patch() -> None:
    operation = {"op": "replace", "path": "/spec/weight", "value": 1}

    assert is_patch([operation])
    assert not is_patch([operation, {"kind": "Pod"}])
    assert not is_patch([])


@pytest.mark.parametrize(
    ("file", "word"),
    [
        ("chart/values.yaml", "helm template"),
        ("chart/values-prod.yaml", "helm template"),
        ("Chart.yaml", "helm template"),
        ("a.yaml", "`kind`"),
    ],
)
def test_a_file_without_a_kind_has_a_hint(file: str, word: str) -> None:
    assert word in kind_hint(file)
